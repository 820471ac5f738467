package cmd

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/spf13/cobra"

	"contend/cmd/exit"
	"contend/cmd/paste"
	"contend/cmd/quota"
	"contend/report"
	"contend/report/store"
	"contend/runner"
	"contend/scenarios"
	"contend/targets"
)

func newNightly(c console) *cobra.Command {
	var flags suiteFlags
	var within time.Duration
	cmd := &cobra.Command{
		Use: "nightly FILE", Short: "a suite for a schedule: races, new and outstanding ghosts, one report, trend against earlier nights", GroupID: "other",
		Args: oneFile("nightly", "name one suite file"),
		Long: `nightly runs a suite file from cron, systemd or a CI schedule: its races one after the other; then its watches, side by
side, each with the keys of earlier nights that were not seen free yet; then one report with what has changed since the
nights before. Everything is kept in --store. What is known to be broken is written expect-verdict: violated in the
suite, so that a night is green until something changes. A watch that has not ended when --within is over is cut, and
its keys are asked about again in the next night.

` + exit.Help + `
Of several runs the worst counts: violated, could not run, threshold, inconclusive, held. An alarm of the trend exits 5.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if within <= 0 {
				return fmt.Errorf("--within %s: must be longer than 0", within)
			}
			n := night{c: c, flags: &flags, file: args[0], within: within, deadline: time.Now().Add(within),
				storeGiven: cmd.Flags().Changed("store")}
			return n.run(cmd.Context(), commandLine("nightly "+paste.Quote(args[0]), cmd.Flags()))
		},
	}
	flags.register(cmd.Flags())
	cmd.Flags().Lookup("store").Usage = "the results of all nights, a `FILE` (SQLite; default: in your state folder, which is printed)"
	cmd.Flags().DurationVar(&within, "within", 2*time.Hour, "what is not done then is cut, settled and reported")
	return cmd
}

// night is one run of nightly.
type night struct {
	c          console
	flags      *suiteFlags
	file       string
	within     time.Duration
	deadline   time.Time
	storeGiven bool
	kept       *store.Store
	suite      report.Suite
	outputs    []report.Output
	releases   []func() // of the earlier runs that are looked after
	mu         sync.Mutex
}

func (n *night) run(ctx context.Context, command string) error {
	runs, err := readSuite(n.file)
	if err != nil {
		return err
	}
	if n.outputs, err = outputsOf(n.flags.outputs, n.flags.quiet, append(suiteFiles(n.file, runs), storeOf(n.flags.store))...); err != nil {
		return err
	}
	tellOverruled(n.c, runs)
	if n.flags.dryRun {
		if err := checkDry(n.c, n.flags.set, n.outputs); err != nil {
			return err
		}
		return printPlans(n.c.plan(), runs)
	}
	if n.kept, err = openStore(n.c, &commonFlags{store: n.flags.store, storeByDefault: true, storeGiven: n.storeGiven, quiet: n.flags.quiet}, true); err != nil {
		return err
	}
	if n.kept == nil {
		return errors.New("--store \"\": the nights need a store; name a file")
	}
	defer n.kept.Close()
	guard, err := n.kept.Guard("nightly")
	if err != nil {
		return exit.Failed(err)
	}
	defer guard.Close()
	n.suite = report.Suite{Schema: report.SuiteSchema, Command: command, Tool: tool(), File: n.file, Started: time.Now().UTC(), Night: &report.Night{
		Outstanding: []report.Outstanding{}, Changes: []string{}, Alarms: []string{}}}
	results := make([]*report.SuiteRun, len(runs))
	n.races(ctx, runs, results)
	n.watches(ctx, runs, results)
	for i, r := range results {
		if r == nil {
			r = &report.SuiteRun{Name: runs[i].name, Exit: exit.CannotRun, Error: fmt.Sprintf("its turn did not come within %s", n.within)}
			if ctx.Err() != nil {
				r.Exit, r.Error = exit.Interrupted, "interrupted before its turn"
			}
		}
		n.suite.Runs = append(n.suite.Runs, *r)
	}
	n.compare()
	return concludeSuite(ctx, n.c, &n.suite, n.outputs, n.flags.noColour)
}

// left is the time that is left of the night; it is over where there is none.
func (n *night) left() time.Duration { return time.Until(n.deadline) }

func (n *night) equipment() equipment {
	return equipment{kept: n.kept, silent: n.flags.silent(), within: n.left()}
}

func (n *night) done(results []*report.SuiteRun, i int, r report.SuiteRun) {
	n.mu.Lock()
	defer n.mu.Unlock()
	results[i] = &r
	tellRun(n.c, n.outputs, &r)
}

// races runs what is no watch.
func (n *night) races(ctx context.Context, runs []planned, results []*report.SuiteRun) {
	for i, p := range runs {
		if _, isWatch := p.launch.(*watchLaunch); !isWatch && ctx.Err() == nil && n.left() > 0 {
			n.done(results, i, p.run(ctx, n.c, n.equipment()))
		}
	}
}

// watches runs the watches side by side, and looks after the keys of earlier
// nights.
func (n *night) watches(ctx context.Context, runs []planned, results []*report.SuiteRun) {
	earlier := n.outstanding()
	var group sync.WaitGroup
	sharing := make(map[string]int)
	for _, p := range runs {
		if l, isWatch := p.launch.(*watchLaunch); isWatch {
			sharing[targets.Redact(l.commonFlags.target)]++
		}
	}
	for i, p := range runs {
		l, isWatch := p.launch.(*watchLaunch)
		if !isWatch || ctx.Err() != nil || n.left() <= 0 {
			continue
		}
		with := n.equipment()
		// The first watch of a target asks about its earlier keys too.
		url := targets.Redact(l.commonFlags.target)
		with.earlier, with.share = earlier[url], sharing[url]
		delete(earlier, url)
		group.Go(func() {
			before := openBefore(with.earlier)
			n.done(results, i, p.run(ctx, n.c, with))
			n.tellOutstanding(with.earlier, before)
		})
	}
	for _, url := range slices.Sorted(maps.Keys(earlier)) {
		group.Go(func() { n.lookAfter(ctx, url, targetOf(runs, url), earlier[url]) })
	}
	group.Wait()
	for _, release := range n.releases {
		release()
	}
}

// targetOf gives the URL, with its secrets, that a masked one stands for.
func targetOf(runs []planned, masked string) string {
	for _, p := range runs {
		if url := p.launch.common().target; targets.Redact(url) == masked {
			return url
		}
	}
	return masked
}

func (n *night) note(format string, a ...any) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.suite.Night.Notes = append(n.suite.Night.Notes, fmt.Sprintf(format, a...))
}

// outstanding loads the runs of earlier nights that have keys which are not done
// with, by target. Those of targets that died with their process are closed.
func (n *night) outstanding() map[string][]*watchRun {
	open, err := n.kept.OpenGhosts("")
	if err != nil {
		n.note("The keys of earlier nights could not be read: %v", err)
		return nil
	}
	closeVolatile(n.kept, open)
	byRun := make(map[string][]*runner.Ghost)
	for _, g := range open {
		byRun[g.Run] = append(byRun[g.Run], g)
	}
	all := make(map[string][]*watchRun)
	for _, id := range slices.Sorted(maps.Keys(byRun)) {
		ghosts := byRun[id]
		if isVolatile(ghosts[0].Target) {
			continue
		}
		release, err := guardWatch(n.kept, id)
		if err != nil {
			n.note("The keys of run %s were not asked about: another process watches them", id)
			continue
		}
		n.releases = append(n.releases, release)
		run, err := loadWatch(n.kept, id)
		if err != nil {
			n.note("The keys of run %s could not be read: %v", id, err)
			continue
		}
		all[ghosts[0].Target] = append(all[ghosts[0].Target], run)
	}
	return all
}

// lookAfter asks once about each key of earlier nights on a target that has no
// watch tonight.
func (n *night) lookAfter(ctx context.Context, masked, url string, earlier []*watchRun) {
	if ctx.Err() != nil || n.left() <= 0 {
		n.note("Keys of %d earlier nights on %s were not asked about: the time was up", len(earlier), masked)
		return
	}
	if targets.Masked(url) {
		n.note("Keys of %d earlier nights on %s were not asked about: the secrets of the target are not in the store; a run of the suite on that target brings them", len(earlier), masked)
		return
	}
	target, err := targets.Open(url)
	if err != nil {
		n.note("Keys of %d earlier nights on %s were not asked about: %v", len(earlier), masked, err)
		return
	}
	defer target.Close()
	params := earlier[0].header.Params
	limits := quota.Limits(target.Describe(), params.Rate, params.ValueSize)
	w, err := runner.OpenWatch(ctx, target, runner.WatchPlan{Run: ulid.Make().String(), Prefix: params.KeyPrefix, Timeout: params.Timeout, Limits: limits,
		Within: n.left(), Sessions: watchSessions, ValueSize: params.ValueSize, Keep: true, Once: true})
	if err != nil {
		n.note("Keys of %d earlier nights on %s were not asked about: %v", len(earlier), masked, err)
		return
	}
	defer w.Close()
	var taken []*runner.Ghost
	for _, run := range earlier {
		taken = append(taken, run.ghosts...)
	}
	before := openBefore(earlier)
	summary := watch(ctx, n.c, w, scenarios.NewTTLGhost(), nil, taken, earlier, earlier[0].header, equipment{kept: n.kept, silent: true})
	for _, run := range earlier {
		if err := n.kept.SaveResult(run.conclude(summary, run.requests)); err != nil {
			n.note("The result of run %s could not be kept: %v", run.header.Run, err)
		}
	}
	n.tellOutstanding(earlier, before)
}

// openKeys are those of a run that were not done with, and how often each had told
// something.
type openKeys map[*runner.Ghost]int

func openBefore(runs []*watchRun) []openKeys {
	var all []openKeys
	for _, run := range runs {
		open := make(openKeys)
		for _, g := range run.ghosts {
			if !g.Closed {
				open[g] = g.Probes - g.Unanswered
			}
		}
		all = append(all, open)
	}
	return all
}

// tellOutstanding notes what became of the keys of earlier runs, of which so many
// were open.
func (n *night) tellOutstanding(runs []*watchRun, before []openKeys) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for i, run := range runs {
		o := report.Outstanding{Run: run.header.Run, Target: run.header.Target.URL, Open: len(before[i]), Closed: len(before[i]) - run.open()}
		for g, told := range before[i] {
			if g.Probes-g.Unanswered > told {
				o.Answered++
			}
		}
		for _, g := range run.ghosts {
			switch {
			case g.Closed:
			case g.State == runner.GhostBlocked:
				o.Blocked++
			case g.State == runner.GhostVisible:
				o.Visible++
			}
		}
		if run.last.Detail.Ghosts != nil {
			o.Longest = run.last.Detail.Ghosts.Longest
		}
		n.suite.Night.Outstanding = append(n.suite.Night.Outstanding, o)
	}
}

// compare tells what has changed since the nights before.
func (n *night) compare() {
	runs, err := n.kept.TrendRuns(store.Runs{})
	if err != nil {
		n.note("The nights before could not be read: %v", err)
		return
	}
	trend, tonight := report.Trend(runs), n.suite.Started.Truncate(day)
	for _, m := range trend.Changes(tonight) {
		n.suite.Night.Changes = append(n.suite.Night.Changes, m.String())
	}
	for _, m := range trend.Alarms(tonight) {
		n.suite.Night.Alarms = append(n.suite.Night.Alarms, m.String())
	}
}
