package cmd

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/spf13/pflag"

	"contend/cmd/exit"
	"contend/cmd/paste"
	"contend/cmd/quota"
	"contend/report"
	"contend/report/store"
	"contend/runner"
	"contend/scenarios"
	"contend/targets"
)

// watchTarget is the default of a watch: the emulator with a sweep that ends in
// seconds.
const watchTarget = "sim:?sweep=2s..8s"

// watchLaunch runs a watch.
type watchLaunch struct {
	commonFlags
	scenario  *scenarios.TTLGhost
	resume    bool
	url       string // as it is opened
	targetSet bool
	// timeoutSet and rateSet: a watch that is taken up goes on with these.
	timeoutSet, rateSet bool
	target              targets.Target
	command             string
	id                  string // of the run
	seed                uint64
	taken               *watchRun // the run that is taken up again; nil: a fresh one
}

func (l *watchLaunch) common() *commonFlags { return &l.commonFlags }

func (l *watchLaunch) info() scenarios.Info { return l.scenario.Info() }

func (l *watchLaunch) register(fs *pflag.FlagSet) {
	l.registerTarget(fs, watchTarget)
	fs.AddGoFlagSet(ownFlags(l.scenario))
	fs.BoolVar(&l.resume, "resume", false, "go on with the last watch in the store that did not end")
	l.registerRest(fs)
	l.storeByDefault = true
	fs.Lookup("store").Usage = "keep the result and every key in this `FILE` (SQLite; default: in your state folder, which is printed; \"\": nowhere)"
}

func (l *watchLaunch) check(fs *pflag.FlagSet) error {
	l.targetSet, l.storeGiven, l.timeoutSet, l.rateSet = fs.Changed("target"), fs.Changed("store"), fs.Changed("timeout"), fs.Changed("rate")
	wrong := append([]error{l.scenario.Check()}, l.commonFlags.check(fs)...)
	if l.resume {
		begun := []string{"value-size", "key-prefix", "seed", "expect", "expect-verdict", "label"}
		ownFlags(scenarios.NewTTLGhost()).VisitAll(func(f *flag.Flag) { begun = append(begun, f.Name) })
		for _, name := range begun {
			if fs.Changed(name) {
				wrong = append(wrong, fmt.Errorf("--%s: a watch goes on with what it was started with; leave it out beside --resume", name))
			}
		}
		switch file, err := l.storeFile(); {
		case err != nil:
			wrong = append(wrong, err)
		case file == "":
			wrong = append(wrong, errors.New("--resume needs the --store that the watch was kept in"))
		case !exists(file):
			wrong = append(wrong, fmt.Errorf("--resume: there is no store %s with a watch to go on with; name it with --store", file))
		}
		if l.targetSet && isVolatile(l.commonFlags.target) {
			wrong = append(wrong, errVolatile(l.commonFlags.target))
		}
	}
	return errors.Join(wrong...)
}

// storeFile is where results are kept; "": nowhere.
func (l *watchLaunch) storeFile() (string, error) {
	if l.storeGiven {
		return l.store, nil
	}
	return store.DefaultFile()
}

// errVolatile refuses to go on where nothing is left.
func errVolatile(url string) error {
	return fmt.Errorf("--resume: the keys of %s died with its process; `contend sim serve` keeps an emulator running that a watch can go on with", url)
}

func isVolatile(url string) bool {
	t, err := targets.Open(url)
	if err != nil {
		return false
	}
	defer t.Close()
	return t.Describe().Volatile
}

func (l *watchLaunch) ready(kept *store.Store, command string) error {
	l.command, l.url = command, l.commonFlags.target
	l.id, l.seed = ulid.Make().String(), l.seedOf()
	var err error
	if l.resume {
		if err = l.resumeLast(kept); err != nil {
			return err
		}
	}
	if l.target, err = openTarget(l.url, l.keyPrefix); err != nil {
		return err
	}
	// Made once before anything is sent, for its errors.
	_, err = report.NewWatchCollector(l.header())
	if unit := l.target.Describe().TTLUnit; err == nil && unit > 0 && l.scenario.TTL%unit != 0 {
		err = fmt.Errorf("--ttl %s: this target takes multiples of %s", l.scenario.TTL, unit)
	}
	if err == nil {
		err = l.checkBudget()
	}
	if err != nil {
		l.target.Close()
	}
	return err
}

// checkBudget refuses one that does not last for the creates.
func (l *watchLaunch) checkBudget() error {
	budget := l.scenario.Budget
	if budget == 0 {
		return nil
	}
	if l.taken != nil {
		if budget <= l.taken.before {
			return fmt.Errorf("--resume: the budget of %d requests that run %s was started with is spent", budget, l.id)
		}
		return nil
	}
	keys := len(l.scenario.Ghosts(l.id, l.keyPrefix, "", time.Time{}, l.seed, !l.skipControls))
	if least := int64(l.plan(true).Cost(l.target.Describe(), keys) + keys); budget < least {
		return fmt.Errorf("--budget %d: connecting, the checks, creating %d keys and removing them take %d", budget, keys, least)
	}
	return nil
}

// resumeLast finds the last watch that did not end.
func (l *watchLaunch) resumeLast(kept *store.Store) error {
	if kept == nil {
		return errors.New("--resume: there is no store with a watch to go on with; name it with --store")
	}
	wanted := ""
	if l.targetSet {
		wanted = targets.Redact(l.url)
	}
	open, err := kept.OpenGhosts(wanted)
	if err != nil {
		return err
	}
	closeVolatile(kept, open)
	// Run IDs sort by their time.
	last := ""
	for _, g := range open {
		if !isVolatile(g.Target) {
			last = max(last, g.Run)
		}
	}
	unconcluded, err := unconcludedWatch(kept, wanted)
	if err != nil {
		return err
	}
	last = max(last, unconcluded)
	switch {
	case last == "" && len(open) > 0:
		return errVolatile(open[0].Target)
	case last == "":
		return fmt.Errorf("--resume: %s holds no watch%s that has not ended; one of sim: ends with its process, and one of `contend sim serve` does not",
			kept.File(), onTarget(wanted))
	}
	if l.taken, err = loadWatch(kept, last); err != nil {
		return err
	}
	header := &l.taken.header
	if !l.targetSet {
		l.url = header.Target.URL
		if targets.Masked(l.url) {
			return fmt.Errorf("--resume: the secrets of %s are not in the store; give the target with --target or CONTEND_TARGET", l.url)
		}
	}
	p := header.Params
	l.id, l.command, l.keyPrefix, l.valueSize = header.Run, header.Command, p.KeyPrefix, p.ValueSize
	l.skipControls = l.skipControls || p.SkipControls
	if !l.timeoutSet {
		l.timeout = p.Timeout
	}
	if !l.rateSet {
		l.rate = p.Rate
	}
	return l.taken.parameters(l.scenario)
}

func onTarget(url string) string {
	if url == "" {
		return ""
	}
	return " on " + url
}

func (l *watchLaunch) close() { l.target.Close() }

func (l *watchLaunch) header() report.RunHeader {
	d := l.target.Describe()
	if l.taken != nil {
		return l.taken.header
	}
	header := l.commonFlags.header(l.scenario, l.id, d, l.command, l.seed, quota.Limits(d, l.rate, l.valueSize))
	header.Params.SetOptions(l.scenario)
	if l.url == watchTarget && !l.targetSet {
		header.Target.Notes = append(header.Target.Notes, fmt.Sprintf("the sweep of %s is this command's default, so that it ends in seconds; the published one is slower: -t sim:",
			strings.TrimPrefix(watchTarget, "sim:?sweep=")))
	}
	return header
}

// watchSessions are how many requests of a watch are in flight side by side.
const watchSessions = 16

func (l *watchLaunch) plan(kept bool) runner.WatchPlan {
	d := l.target.Describe()
	return runner.WatchPlan{Run: l.id, Prefix: l.keyPrefix, Timeout: l.timeout, Limits: quota.Limits(d, l.rate, l.valueSize), Budget: l.scenario.Budget,
		Sessions: watchSessions, Seed: l.seed, ValueSize: l.valueSize, SkipControls: l.skipControls, Keep: kept && !d.Volatile}
}

func (l *watchLaunch) run(ctx context.Context, c console, with equipment) (report.Result, error) {
	plan := l.plan(with.kept != nil)
	plan.Within = with.within
	if with.share > 1 {
		for i := range plan.Limits {
			plan.Limits[i].Requests /= float64(with.share)
		}
	}
	own := l.taken
	var runs watchRuns
	if own != nil {
		plan.Part = strconv.FormatInt(time.Now().UnixNano(), 36)
		release, err := guardWatch(with.kept, l.id)
		if err != nil {
			return report.Result{}, exit.Failed(err)
		}
		defer release()
		// Who held it until now may have gone on.
		if own, err = loadWatch(with.kept, l.id); err != nil {
			return report.Result{}, exit.Failed(err)
		}
		if plan.Budget > 0 {
			plan.Budget = max(1, plan.Budget-own.before)
		}
	}
	l.warnOfLimits(c.err, l.target.Describe(), plan.Limits, 0)
	w, err := runner.OpenWatch(ctx, l.target, plan)
	if err != nil {
		return report.Result{}, exit.Connecting(err)
	}
	defer w.Close()
	var fresh, taken []*runner.Ghost
	if own == nil {
		header := l.header()
		fresh = l.scenario.Ghosts(l.id, l.keyPrefix, header.Target.URL, w.Start(), l.seed, !l.skipControls)
		if own, err = newWatchRun(header, fresh); err != nil {
			return report.Result{}, err
		}
		if with.kept != nil {
			release, err := guardWatch(with.kept, l.id)
			if err != nil {
				return report.Result{}, exit.Failed(err)
			}
			defer release()
			if err := with.kept.SaveResult(report.Begun(header)); err != nil {
				return report.Result{}, exit.Failed(err)
			}
		}
	} else {
		taken = own.ghosts
	}
	own.own = true
	runs = append(watchRuns{own}, with.earlier...)
	for _, run := range with.earlier {
		taken = append(taken, run.ghosts...)
	}
	summary := watch(ctx, c, w, l.scenario, fresh, taken, runs, own.header, with)
	if with.kept != nil && l.target.Describe().Volatile {
		defer abandonAll(c, with.kept, own.ghosts)
	}
	requests := summary.Requests
	for _, run := range with.earlier {
		requests -= run.requests
		if err := with.kept.SaveResult(run.conclude(summary, run.requests)); err != nil {
			c.tell("the result of run %s could not be kept: %v", run.header.Run, err)
		}
	}
	return own.conclude(summary, requests), nil
}

// abandonAll closes the keys of a target that dies with the process.
func abandonAll(c console, kept *store.Store, ghosts []*runner.Ghost) {
	var left []*runner.Ghost
	for _, g := range ghosts {
		if !g.Closed {
			scenarios.Abandon(g, "its target ended with the process of contend")
			left = append(left, g)
		}
	}
	if err := kept.UpdateGhosts(left); err != nil {
		c.tell("%v", err)
	}
}

// retryingJournal is a journal that waits for others who write to the store: a watch of
// days does not end because of a moment.
type retryingJournal struct{ kept *store.Store }

// patience is how often a store that is in use is tried again, and how long it is
// waited in between, beside the store's own wait.
const (
	patience  = 20
	breathing = time.Second
)

func (p retryingJournal) retry(write func() error) (err error) {
	for range patience {
		if err = write(); !errors.Is(err, store.ErrLocked) {
			return err
		}
		time.Sleep(breathing)
	}
	return err
}

// Intend implements runner.Journal.
func (p retryingJournal) Intend(ghosts []*runner.Ghost) error {
	return p.retry(func() error { return p.kept.Intend(ghosts) })
}

// Note implements runner.Journal.
func (p retryingJournal) Note(g *runner.Ghost, e *runner.Exchange) error {
	return p.retry(func() error { return p.kept.Note(g, e) })
}

// watch runs a watch and tells of its end.
func watch(ctx context.Context, c console, w *runner.Watcher, asking runner.Asking, fresh, taken []*runner.Ghost, runs watchRuns,
	header report.RunHeader, with equipment,
) runner.WatchSummary {
	observers := runner.WatchObservers{runs}
	var recorder *runner.Recorder
	if with.record != nil && with.record.name != "" {
		recorder = runner.NewRecorder(with.record, header)
		observers = append(observers, recorder)
	}
	done := func() {}
	if !with.silent {
		progress := report.NewWatchProgress(c.err, isTerminal(c.err))
		observers, done = append(observers, progress), progress.Done
	}
	defer c.runs.begin(header)()
	over := c.onInterrupt(ctx, done, func() {
		c.tell("interrupted: no more probes; what was measured is reported. Interrupt again to stop at once")
	})
	var journal runner.Journal
	if with.kept != nil {
		journal = retryingJournal{with.kept}
	}
	summary := w.Run(ctx, asking, fresh, taken, journal, observers)
	over()
	if with.kept != nil {
		if err := with.kept.UpdateGhosts(slices.Concat(fresh, taken)); err != nil && summary.Stopped == nil {
			summary.Stopped = err
		}
	}
	for _, text := range []string{errorText("stopped", summary.Stopped), prefixed("the watch was cut: ", summary.Cut)} {
		if text != "" {
			c.tell("%s", text)
		}
	}
	tellLeft(c, summary.Left, header)
	if n := runs[0].open(); n > 0 && with.kept != nil && !isVolatile(header.Target.URL) {
		c.tell("%d keys of run %s are still watched; go on with `contend ttl-ghost --resume --store %s`, or remove them with: %s",
			n, header.Run, paste.Quote(with.kept.File()), cleanCommand(header))
	}
	if recorder != nil {
		end := runs[0].end(summary, summary.Requests)
		if err := recorder.Finish(end, runs[0].conclude(summary, summary.Requests)); err != nil && with.record.err == nil {
			with.record.err = err
		}
	}
	return summary
}

func errorText(what string, err error) string {
	if err == nil {
		return ""
	}
	return what + ": " + err.Error()
}

func prefixed(prefix, text string) string {
	if text == "" {
		return ""
	}
	return prefix + text
}

func endOf(s runner.WatchSummary) runner.End {
	end := runner.End{Requests: s.Requests, Elapsed: s.Elapsed, Interrupted: s.Interrupted, Cut: s.Cut, Left: leftText(s.Left)}
	if s.Stopped != nil {
		end.Stopped = s.Stopped.Error()
	}
	return end
}

// printPlan is --dry-run.
func (l *watchLaunch) printPlan(out io.Writer) error {
	s, d := l.scenario, l.target.Describe()
	p := l.plan(l.store != "" || l.storeByDefault)
	var b strings.Builder
	line := func(name, format string, a ...any) {
		fmt.Fprintf(&b, "  %-12s %s\n", name, fmt.Sprintf(format, a...))
	}
	fmt.Fprintf(&b, "Plan of contend %s; nothing was sent\n", s.Info().Name)
	line("target", "%s%s", d.URL, map[bool]string{true: " (simulated)"}[d.Simulated])
	ghosts := s.Ghosts(l.id, l.keyPrefix, d.URL, time.Now(), l.seed, !l.skipControls)
	longest := (&runner.Ghost{Terms: runner.GhostTerms{TTL: s.TTL, Watch: s.Watch}}).End()
	if l.taken != nil {
		ghosts = l.taken.ghosts
		longest = max(0, time.Until(until(l.taken.ghosts))).Round(time.Second)
	}
	most := s.Most(ghosts)
	total := p.Cost(d, len(ghosts)) + most
	line("keys", "%d, all beginning with %s%s-", len(ghosts), p.Prefix, p.Run)
	line("requests", "at most %d: creates and probes %d, if every key blocks until the end", total, most)
	if s.Budget > 0 {
		line("budget", "%d requests", s.Budget)
	}
	if each := d.Units(l.valueSize); each == 0 {
		line("quota units", "– (none are documented for this target)")
	} else {
		line("quota units", "at most about %d, %d a request", each*total, each)
	}
	line("duration", "at most about %s", longest)
	if above := quota.Above(d, l.rate); above != "" {
		line("warning", "%s", above)
	}
	_, err := io.WriteString(out, b.String())
	return err
}
