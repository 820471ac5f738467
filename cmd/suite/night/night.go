package night

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"contend/cmd/exit"
	"contend/cmd/watch"
	"contend/report"
	"contend/report/store"
	"contend/runner"
	"contend/targets"
	"contend/targets/all"
)

// Night makes the runs of a suite within a time: races one after the other, then the
// watches side by side, each with the keys of earlier nights on its target.
type Night struct {
	Runs     []Run
	With     watch.Equipment // it keeps results, and its Within is what the night has
	Deadline time.Time       // of it
	Open     watch.Opener
	Told     func(*report.SuiteRun) // of each run as it ends, one at a time

	suite   *report.Suite
	results []*report.SuiteRun
	mu      sync.Mutex
}

// Run makes the night, and puts what it tells into the suite, which has started.
func (n *Night) Run(ctx context.Context, s *report.Suite) {
	s.Night = &report.Night{Outstanding: []report.Outstanding{}, Changes: []string{}, Alarms: []string{}}
	n.suite, n.results = s, make([]*report.SuiteRun, len(n.Runs))
	n.races(ctx)
	n.watches(ctx)
	for i, r := range n.results {
		if r == nil {
			r = &report.SuiteRun{Name: n.Runs[i].Name, Exit: exit.CannotRun, Error: fmt.Sprintf("its turn did not come within %s", n.With.Within)}
			if ctx.Err() != nil {
				r.Exit, r.Error = exit.Interrupted, "interrupted before its turn"
			}
		}
		s.Runs = append(s.Runs, *r)
	}
	n.compare()
}

// over tells whether no more is begun.
func (n *Night) over(ctx context.Context) bool {
	return ctx.Err() != nil || !time.Now().Before(n.Deadline)
}

// left is the time that is left of the night, for what has just begun some at least.
func (n *Night) left() time.Duration { return max(1, time.Until(n.Deadline)) }

// do makes a run in the time that is left.
func (n *Night) do(ctx context.Context, i int, with watch.Equipment) {
	with.Within = n.left()
	r := n.Runs[i].Do(ctx, with)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.results[i] = &r
	n.Told(&r)
}

// races makes what is no watch.
func (n *Night) races(ctx context.Context) {
	for i, r := range n.Runs {
		if !r.Watch && !n.over(ctx) {
			n.do(ctx, i, n.With)
		}
	}
}

// watches makes the watches side by side, and looks after the keys of earlier nights.
func (n *Night) watches(ctx context.Context) {
	earlier, release := n.outstanding()
	defer release()
	sharing := make(map[string]int)
	for _, r := range n.Runs {
		if r.Watch {
			sharing[all.Redact(r.Target)]++
		}
	}
	var group sync.WaitGroup
	defer group.Wait()
	for i, r := range n.Runs {
		if !r.Watch || n.over(ctx) {
			continue
		}
		with, url := n.With, all.Redact(r.Target)
		// The first watch of a target asks about its earlier keys too.
		with.Earlier, with.Share = earlier[url], sharing[url]
		delete(earlier, url)
		group.Go(func() {
			before := openBefore(with.Earlier)
			n.do(ctx, i, with)
			n.tellOutstanding(with.Earlier, before)
		})
	}
	for _, url := range slices.Sorted(maps.Keys(earlier)) {
		group.Go(func() { n.lookAfter(ctx, url, earlier[url]) })
	}
}

// note keeps what could not be done.
func (n *Night) note(format string, a ...any) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.suite.Night.Notes = append(n.suite.Night.Notes, fmt.Sprintf(format, a...))
}

// outstanding takes up the runs of earlier nights that have open keys, by target, until
// they are released.
func (n *Night) outstanding() (earlier map[string][]*watch.Run, release func()) {
	runs, release, err := watch.Outstanding(n.With.Kept, n.Open, n.note)
	if err != nil {
		n.note("The keys of earlier nights could not be read: %v", err)
	}
	earlier = make(map[string][]*watch.Run)
	for _, run := range runs {
		url := run.Ghosts[0].Target
		earlier[url] = append(earlier[url], run)
	}
	return earlier, release
}

// lookAfter asks once about each key of earlier nights on a target, whose URL is masked,
// that has no watch tonight.
func (n *Night) lookAfter(ctx context.Context, masked string, earlier []*watch.Run) {
	not := func(why string, a ...any) {
		n.note("Keys of %d earlier nights on %s were not asked about: %s", len(earlier), masked, fmt.Sprintf(why, a...))
	}
	if n.over(ctx) {
		not("the time was up")
		return
	}
	url := masked
	if i := slices.IndexFunc(n.Runs, func(r Run) bool { return all.Redact(r.Target) == masked }); i >= 0 {
		url = n.Runs[i].Target
	}
	if targets.Masked(url) {
		not("the secrets of the target are not in the store; a run of the suite on that target brings them")
		return
	}
	target, err := n.Open(url)
	if err != nil {
		not("%v", err)
		return
	}
	defer target.Close()
	with := n.With
	with.Silent, with.Within = true, n.left()
	before := openBefore(earlier)
	if err := watch.AskOnce(ctx, target, earlier, with, func(run string, err error) {
		n.note("The result of run %s could not be kept: %v", run, err)
	}); err != nil {
		not("%v", err)
		return
	}
	n.tellOutstanding(earlier, before)
}

// openKeys are the open ones of a run, and how often each had told something.
type openKeys map[*runner.Ghost]int

func openBefore(runs []*watch.Run) []openKeys {
	var all []openKeys
	for _, run := range runs {
		open := make(openKeys)
		for _, g := range run.Ghosts {
			if !g.Closed {
				open[g] = g.Probes - g.Unanswered
			}
		}
		all = append(all, open)
	}
	return all
}

// tellOutstanding tells what became of the keys of earlier runs, of which these were
// open.
func (n *Night) tellOutstanding(runs []*watch.Run, before []openKeys) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for i, run := range runs {
		o := report.Outstanding{Run: run.Header.Run, Target: run.Header.Target.URL, Open: len(before[i]), Closed: len(before[i]) - run.Open(), Longest: run.Longest()}
		for g, told := range before[i] {
			if g.Probes-g.Unanswered > told {
				o.Answered++
			}
		}
		for _, g := range run.Ghosts {
			switch {
			case g.Closed:
			case g.State == runner.GhostBlocked:
				o.Blocked++
			case g.State == runner.GhostVisible:
				o.Visible++
			}
		}
		n.suite.Night.Outstanding = append(n.suite.Night.Outstanding, o)
	}
}

// compare tells what has changed since the nights before.
func (n *Night) compare() {
	runs, err := n.With.Kept.TrendRuns(store.Runs{})
	if err != nil {
		n.note("The nights before could not be read: %v", err)
		return
	}
	trend, tonight := report.Trend(runs), n.suite.Started.Truncate(24*time.Hour)
	for _, m := range trend.Changes(tonight) {
		n.suite.Night.Changes = append(n.suite.Night.Changes, m.String())
	}
	for _, m := range trend.Alarms(tonight) {
		n.suite.Night.Alarms = append(n.suite.Night.Alarms, m.String())
	}
}
