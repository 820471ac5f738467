package watch

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	"github.com/oklog/ulid/v2"

	"contend/cmd/exit"
	"contend/cmd/paste"
	"contend/cmd/quota"
	"contend/report"
	"contend/report/store"
	"contend/runner"
	"contend/scenarios"
	"contend/targets"
)

// Console is where a command tells what goes on.
type Console interface {
	// Tell writes a line to people.
	Tell(format string, a ...any)
	// Begin notes a run that may have keys on its target until end is called.
	Begin(run report.RunHeader) (end func())
	// OnInterrupt has say called once ctx ends, after done has taken the progress away.
	// over ends that, and calls done itself where say was not called.
	OnInterrupt(ctx context.Context, done, say func()) (over func())
	// Progress shows how a watch goes, until done is called.
	Progress() (progress runner.Observer, done func())
}

// Record is where every request and reply is written.
type Record interface {
	io.Writer
	// Fail notes why it is not whole; the first reason counts.
	Fail(error)
}

// Equipment is what a run is given beside its plan.
type Equipment struct {
	Console Console
	Record  Record       // nil: none
	Kept    *store.Store // nil: none
	Silent  bool         // nothing of the progress is shown
	// Within is the time that is left: what is not done then is cut. 0: no end.
	Within time.Duration
	// Share is how many watches of the same target run side by side: each keeps to its
	// part of the target's limits.
	Share int
	// Earlier are runs whose keys a watch of the same target asks about too.
	Earlier []*Run
}

// Watch is one that is to be run.
type Watch struct {
	Target   targets.Target
	Scenario scenarios.Watch
	Plan     runner.WatchPlan
	// Header is the head of a fresh run's result, asked for when it is connected.
	Header func() report.RunHeader
	Taken  *Run // the run that is gone on with; nil: a fresh one
}

// Sessions are how many requests of a watch are in flight side by side.
const Sessions = 16

// Parameters are those that the run was started with.
func (r *Run) Parameters(s scenarios.Watch) error {
	if err := json.Unmarshal(r.Header.Params.Options, s); err != nil {
		return fmt.Errorf("the parameters of run %s cannot be read: %w", r.Header.Run, err)
	}
	return s.Check()
}

// fresh makes the keys of a new run.
func (w *Watch) fresh(target string, epoch time.Time) []*runner.Ghost {
	p := w.Plan
	return w.Scenario.Ghosts(p.Run, p.Prefix, target, epoch, p.Seed, !p.SkipControls)
}

// Ghosts are the keys that it is to ask about, as far as they are known before it
// starts.
func (w *Watch) Ghosts() []*runner.Ghost {
	if w.Taken != nil {
		return w.Taken.Ghosts
	}
	return w.fresh(w.Target.Describe().URL, time.Now())
}

// Check refuses what the target does not take, and a budget that does not last for
// the creates.
func (w *Watch) Check() error {
	d, budget := w.Target.Describe(), w.Plan.Budget
	if err := d.Check(w.Scenario.Needs()); err != nil {
		return exit.Connecting(err)
	}
	if budget == 0 {
		return nil
	}
	if w.Taken != nil {
		if budget <= w.Taken.before {
			return fmt.Errorf("--resume: the budget of %d requests that run %s was started with is spent", budget, w.Plan.Run)
		}
		return nil
	}
	keys := len(w.Ghosts())
	if least := int64(w.Plan.Cost(d, keys) + keys); budget < least {
		return fmt.Errorf("--budget %d: connecting, the checks, creating %d keys and removing them take %d", budget, keys, least)
	}
	return nil
}

// Run runs it, and gives the result of its own run. Those of earlier runs it keeps
// itself.
func (w *Watch) Run(ctx context.Context, with Equipment) (report.Result, error) {
	plan, run, volatile := w.Plan, w.Taken, w.Target.Describe().Volatile
	plan.Within, plan.Keep = with.Within, with.Kept != nil && !volatile
	plan.Limits = slices.Clone(plan.Limits)
	for i := range plan.Limits {
		plan.Limits[i].Requests /= float64(max(1, with.Share))
	}
	if run != nil {
		plan.Part = strconv.FormatInt(time.Now().UnixNano(), 36)
		release, err := guard(with.Kept, plan.Run)
		if err != nil {
			return report.Result{}, exit.Failed(err)
		}
		defer release()
		// Who held it until now may have gone on.
		if run, err = Load(with.Kept, plan.Run); err != nil {
			return report.Result{}, exit.Failed(err)
		}
		if plan.Budget > 0 {
			plan.Budget = max(1, plan.Budget-run.before)
		}
	}
	watcher, err := runner.OpenWatch(ctx, w.Target, plan)
	if err != nil {
		return report.Result{}, exit.Connecting(err)
	}
	defer watcher.Close()
	var fresh []*runner.Ghost
	if run == nil {
		header := w.Header()
		header.Target.Told(watcher.Server())
		fresh = w.fresh(header.Target.URL, watcher.Start())
		if run, err = newRun(header, fresh); err != nil {
			return report.Result{}, err
		}
		release, err := begin(with.Kept, header)
		if err != nil {
			return report.Result{}, exit.Failed(err)
		}
		defer release()
	}
	run.own = true
	all := append(runs{run}, with.Earlier...)
	summary := with.ask(ctx, watcher, w.Scenario, all, fresh, plan.Keep)
	requests := summary.Requests
	for _, earlier := range with.Earlier {
		requests -= earlier.requests
	}
	with.keep(with.Earlier, summary, func(run string, err error) {
		with.Console.Tell("the result of run %s could not be kept: %v", run, err)
	})
	if with.Kept != nil && volatile {
		if err := abandon(with.Kept, plan.Run); err != nil {
			with.Console.Tell("%v", err)
		}
	}
	return run.conclude(summary, requests), nil
}

// begin keeps a fresh run, which other processes then leave alone.
func begin(kept *store.Store, header report.RunHeader) (release func(), err error) {
	if kept == nil {
		return func() {}, nil
	}
	if release, err = guard(kept, header.Run); err != nil {
		return nil, err
	}
	if err = kept.SaveResult(report.Begun(header)); err != nil {
		release()
		return nil, err
	}
	return release, nil
}

// AskOnce asks once about each key of earlier runs on a target that has no watch of its
// own, and keeps their results; failed is told of those that could not be kept.
func AskOnce(ctx context.Context, target targets.Target, earlier []*Run, with Equipment, failed func(run string, err error)) error {
	p := earlier[0].Header.Params
	asking, ok := scenarios.Find(earlier[0].Header.Scenario).(scenarios.Watch)
	if !ok {
		return &report.UnknownScenarioError{Name: earlier[0].Header.Scenario}
	}
	if err := earlier[0].Parameters(asking); err != nil {
		return err
	}
	watcher, err := runner.OpenWatch(ctx, target, runner.WatchPlan{
		Setup: runner.Setup{Run: ulid.Make().String(), Prefix: p.KeyPrefix, Timeout: p.Timeout,
			Limits: quota.Limits(target.Describe(), p.Rate, p.ValueSize), ValueSize: p.ValueSize},
		Within: with.Within, Sessions: Sessions, Needs: asking.Needs(), Keep: true, Once: true})
	if err != nil {
		return err
	}
	defer watcher.Close()
	with.keep(earlier, with.ask(ctx, watcher, asking, earlier, nil, true), failed)
	return nil
}

// keep keeps the results of earlier runs after a watch.
func (with Equipment) keep(earlier []*Run, summary runner.Summary, failed func(run string, err error)) {
	for _, run := range earlier {
		if err := with.Kept.SaveResult(run.conclude(summary, run.requests)); err != nil {
			failed(run.Header.Run, err)
		}
	}
}

// ask runs a watcher over the keys of all runs, and tells of its end. Those of the
// first are fresh, or none is. keep: keys that are still open stay where they are.
func (with Equipment) ask(ctx context.Context, w *runner.Watcher, asking runner.Asking, all runs, fresh []*runner.Ghost, keep bool) runner.Summary {
	c, header, observers := with.Console, all[0].Header, runner.Observers{all}
	var recorder *runner.Recorder
	if with.Record != nil {
		recorder = runner.NewRecorder(with.Record, header)
		observers = append(observers, recorder)
	}
	done := func() {}
	if !with.Silent {
		var progress runner.Observer
		progress, done = c.Progress()
		observers = append(observers, progress)
	}
	defer c.Begin(header)()
	over := c.OnInterrupt(ctx, done, func() {
		c.Tell("interrupted: no more probes; what was measured is reported. Interrupt again to stop at once")
	})
	var kept runner.Journal
	if with.Kept != nil {
		kept = journal{ctx, with.Kept}
	}
	ghosts := all.ghosts()
	summary := w.Run(ctx, asking, fresh, ghosts[len(fresh):], kept, observers)
	over()
	if kept != nil {
		if err := kept.Intend(ghosts); err != nil && summary.Stopped == nil {
			summary.Stopped = err
		}
	}
	with.tellEnd(all[0], summary, keep)
	if recorder != nil {
		end := all[0].end(summary, summary.Requests)
		if err := recorder.Finish(end, all[0].conclude(summary, summary.Requests)); err != nil {
			with.Record.Fail(err)
		}
	}
	return summary
}

// tellEnd tells why a watch ended early, and which of the keys of its run it left.
func (with Equipment) tellEnd(run *Run, summary runner.Summary, keep bool) {
	c, header := with.Console, run.Header
	clean := paste.Clean(header.Target.URL, header.Run, header.Params.KeyPrefix)
	if summary.Stopped != nil {
		c.Tell("stopped: %v", summary.Stopped)
	}
	if summary.Cut != "" {
		c.Tell("the watch was cut: %s", summary.Cut)
	}
	if summary.Left != nil {
		c.Tell("%v; remove them with: %s", summary.Left, clean)
	}
	if n := run.Open(); n > 0 && keep {
		c.Tell("%d keys of run %s are still watched; go on with `contend ttl-ghost --resume --store %s`, or remove them with: %s",
			n, header.Run, paste.Quote(with.Kept.File()), clean)
	}
}
