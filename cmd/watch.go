package cmd

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/spf13/pflag"

	"contend/cmd/quota"
	"contend/cmd/watch"
	"contend/report"
	"contend/report/store"
	"contend/runner"
	"contend/scenarios"
	"contend/targets"
	"contend/targets/all"
)

// watchTarget is the default of a watch: the emulator with a sweep that ends in
// seconds.
const watchTarget = "sim:?sweep=2s..8s"

// watchLaunch runs a watch.
type watchLaunch struct {
	commonFlags
	scenario  scenarios.Watch
	resume    bool
	url       string // as it is opened
	targetSet bool
	// timeoutSet and rateSet: a watch that is taken up goes on with these.
	timeoutSet, rateSet bool
	target              targets.Target
	command             string
	id                  string // of the run
	seed                uint64
	taken               *watch.Run // the run that is taken up again; nil: a fresh one
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
		wrong = append(wrong, l.checkResume(fs)...)
	}
	return errors.Join(wrong...)
}

// checkResume gives what is wrong with the flags beside --resume.
func (l *watchLaunch) checkResume(fs *pflag.FlagSet) []error {
	wrong := refusals{}
	begun := []string{"value-size", "key-prefix", "seed", "expect", "expect-verdict", "label"}
	ownFlags(l.scenario).VisitAll(func(f *flag.Flag) { begun = append(begun, f.Name) })
	for _, name := range begun {
		wrong.refuse(fs.Changed(name), "--%s: a watch goes on with what it was started with; leave it out beside --resume", name)
	}
	file := l.store
	if !l.storeGiven {
		var err error
		if file, err = store.DefaultFile(); err != nil {
			wrong = append(wrong, err)
		}
	}
	wrong.refuse(file == "" && l.storeGiven, "--resume needs the --store that the watch was kept in")
	wrong.refuse(file != "" && !exists(file), "--resume: there is no store %s with a watch to go on with; name it with --store", file)
	if url := l.commonFlags.target; l.targetSet && isVolatile(url) {
		wrong = append(wrong, watch.NothingLeft(url))
	}
	return wrong
}

func isVolatile(url string) bool { return watch.Opener(all.Open).Volatile(url) }

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
	if _, err = report.NewCollector(l.header()); err == nil {
		err = l.watch().Check()
	}
	if err != nil {
		l.target.Close()
	}
	return err
}

// resumeLast goes on with the last watch that did not end.
func (l *watchLaunch) resumeLast(kept *store.Store) (err error) {
	given := ""
	if l.targetSet {
		given = l.url
	}
	if l.taken, l.url, err = watch.Last(kept, all.Open, given); err != nil {
		return err
	}
	header := l.taken.Header
	p := header.Params
	l.id, l.command, l.keyPrefix, l.valueSize = header.Run, header.Command, p.KeyPrefix, p.ValueSize
	l.skipControls = l.skipControls || p.SkipControls
	if !l.timeoutSet {
		l.timeout = p.Timeout
	}
	if !l.rateSet {
		l.rate = p.Rate
	}
	return l.taken.Parameters(l.scenario)
}

func (l *watchLaunch) close() { l.target.Close() }

func (l *watchLaunch) header() report.RunHeader {
	d := l.target.Describe()
	if l.taken != nil {
		return l.taken.Header
	}
	header := l.commonFlags.header(l.scenario, l.id, d, l.command, l.seed, quota.Limits(d, l.rate, l.valueSize))
	header.Params.SetOptions(l.scenario)
	if l.url == watchTarget && !l.targetSet {
		header.Target.Notes = append(header.Target.Notes, fmt.Sprintf("the sweep of %s is this command's default, so that it ends in seconds; the published one is slower: -t sim:",
			strings.TrimPrefix(watchTarget, "sim:?sweep=")))
	}
	return header
}

// watch is what is to be run.
func (l *watchLaunch) watch() *watch.Watch {
	_, _, budget := l.scenario.Limits()
	return &watch.Watch{Target: l.target, Scenario: l.scenario, Header: l.header, Taken: l.taken, Plan: runner.WatchPlan{
		Setup: l.setup(l.id, l.seed, l.target.Describe()), Budget: budget, Sessions: watch.Sessions, Needs: l.scenario.Needs()}}
}

func (l *watchLaunch) run(ctx context.Context, c console, with watch.Equipment) (report.Result, error) {
	w := l.watch()
	l.warnOfLimits(c.err, l.target.Describe(), w.Plan.Limits, 0)
	return w.Run(ctx, with)
}

// printPlan is --dry-run.
func (l *watchLaunch) printPlan(out io.Writer) error {
	s, d, w := l.scenario, l.target.Describe(), l.watch()
	var b strings.Builder
	line := func(name, format string, a ...any) {
		fmt.Fprintf(&b, "  %-12s %s\n", name, fmt.Sprintf(format, a...))
	}
	fmt.Fprintf(&b, "Plan of contend %s; nothing was sent\n", s.Info().Name)
	line("target", "%s%s", d.URL, map[bool]string{true: " (simulated)"}[d.Simulated])
	ttl, after, budget := s.Limits()
	longest := (&runner.Ghost{Terms: runner.GhostTerms{TTL: ttl, Watch: after}}).End()
	if l.taken != nil {
		longest = max(0, time.Until(l.taken.Until())).Round(time.Second)
	}
	ghosts := w.Ghosts()
	most := s.Most(ghosts)
	total := w.Plan.Cost(d, len(ghosts)) + most
	line("keys", "%d, all beginning with %s%s-", len(ghosts), l.keyPrefix, l.id)
	line("requests", "at most %d: creates and probes %d, if every key blocks until the end", total, most)
	if budget > 0 {
		line("budget", "%d requests", budget)
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
