package cmd

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"contend/report"
	"contend/report/store"
	"contend/runner"
	"contend/scenarios"
)

// watchRun is one run of a watch: tonight's, or an earlier one whose keys are
// asked about again.
type watchRun struct {
	header    report.RunHeader
	ghosts    []*runner.Ghost
	collector *report.WatchCollector
	own       bool          // the watch is made for it, not for another that asks about its keys too
	loaded    bool          // an earlier process began it
	before    int64         // requests of earlier processes
	requests  int64         // about its keys, of this process
	last      report.Result // as concluded last
}

func newWatchRun(header report.RunHeader, ghosts []*runner.Ghost) (*watchRun, error) {
	collector, err := report.NewWatchCollector(header)
	if err != nil {
		return nil, err
	}
	collector.Watching(ghosts)
	return &watchRun{header: header, ghosts: ghosts, collector: collector}, nil
}

// loadWatch reads a run that did not end from the store, and makes its keys ready
// to be asked about again.
func loadWatch(kept *store.Store, id string) (*watchRun, error) {
	r, err := kept.Result(id)
	if err != nil {
		return nil, err
	}
	var ghosts []*runner.Ghost
	for g, err := range kept.Ghosts(store.Ghosts{Run: id}) {
		if err != nil {
			return nil, err
		}
		ghosts = append(ghosts, g)
	}
	w, err := newWatchRun(r.RunHeader, ghosts)
	if err != nil {
		return nil, err
	}
	w.loaded = true
	w.collector.Earlier(r.Verdict.Violations)
	for _, g := range ghosts {
		for e, err := range kept.Probes(g) {
			if err != nil {
				return nil, err
			}
			w.collector.Asked(g, e)
			w.before += int64(e.Reply.Attempts)
		}
		scenarios.Resume(g, time.Since(g.Epoch))
	}
	// A process that was killed has told nothing but what it noted.
	w.before = max(w.before, r.Requests)
	return w, nil
}

// unconcludedWatch is the last run whose process was killed when nothing was left
// to ask about its keys, and before they were removed and the result was kept; "":
// there is none. target is its masked URL, or empty for all.
func unconcludedWatch(kept *store.Store, target string) (last string, err error) {
	for r, err := range kept.Runs(store.Runs{Scenario: scenarios.NewTTLGhost().Info().Name}) {
		if err != nil {
			return "", err
		}
		if !r.Interrupted || target != "" && r.Target != target || isVolatile(r.Target) {
			continue
		}
		for _, err := range kept.Ghosts(store.Ghosts{Run: r.ID}) {
			if err != nil {
				return "", err
			}
			last = max(last, r.ID)
			break
		}
	}
	return last, nil
}

// parameters are those that the run was started with.
func (w *watchRun) parameters(s *scenarios.TTLGhost) error {
	if err := json.Unmarshal(w.header.Params.Options, s); err != nil {
		return fmt.Errorf("the parameters of run %s cannot be read: %w", w.header.Run, err)
	}
	return s.Check()
}

// end is how the run ended with a watch that sent so many requests for it.
func (w *watchRun) end(s runner.WatchSummary, requests int64) runner.End {
	end := endOf(s)
	if w.open() == 0 {
		// It has come to its end, however the watch did.
		end.Interrupted, end.Cut = false, ""
		if !w.own {
			end.Stopped = ""
		}
	}
	if !w.own {
		end.Left = ""
	}
	end.Requests = w.before + requests
	if w.loaded {
		end.Elapsed = time.Since(w.header.Started)
	}
	return end
}

// conclude gives the result of the run after such a watch.
func (w *watchRun) conclude(s runner.WatchSummary, requests int64) report.Result {
	w.last = w.collector.Make(w.end(s, requests))
	return w.last
}

// watchRuns shows a watch to the runs that its keys belong to.
type watchRuns []*watchRun

// Controls shows the checks to all: they say of the target what holds for each.
func (w watchRuns) Controls(c *runner.Controls) {
	for _, run := range w {
		run.collector.Controls(c)
	}
}

// Watching shows nothing: each run has its keys.
func (w watchRuns) Watching([]*runner.Ghost) {}

// Asked shows a reply to the run of its key.
func (w watchRuns) Asked(g *runner.Ghost, e *runner.Exchange) {
	for _, run := range w {
		if run.header.Run == g.Run {
			run.requests += int64(e.Reply.Attempts)
			run.collector.Asked(g, e)
		}
	}
}

// open counts the keys that are not done with.
func (w *watchRun) open() (n int) {
	for _, g := range w.ghosts {
		if !g.Closed {
			n++
		}
	}
	return n
}

// until is when the last of the keys is asked for the last time.
func until(ghosts []*runner.Ghost) (last time.Time) {
	for _, g := range ghosts {
		if at := g.Epoch.Add(g.End()); !g.Closed && at.After(last) {
			last = at
		}
	}
	return last
}

// guardWatch lets one process at a time ask about the keys of a run.
func guardWatch(kept *store.Store, run string) (release func(), err error) {
	guard, err := kept.Guard("watch-" + run)
	if errors.Is(err, store.ErrHeld) {
		return nil, fmt.Errorf("another process watches the keys of run %s: wait for its end, or end it", run)
	}
	if err != nil {
		return nil, err
	}
	return func() {
		// Removed while it is held: nobody can have locked it in between.
		os.Remove(kept.File() + "-watch-" + run + ".lock")
		guard.Close()
	}, nil
}

// closeVolatile closes keys of targets that died with their process: their watch is
// over, and no process holds the guard of their run.
func closeVolatile(kept *store.Store, open []*runner.Ghost) {
	byRun := make(map[string][]*runner.Ghost)
	for _, g := range open {
		byRun[g.Run] = append(byRun[g.Run], g)
	}
	for run, ghosts := range byRun {
		if time.Since(until(ghosts)) < time.Minute || !isVolatile(ghosts[0].Target) {
			continue
		}
		release, err := guardWatch(kept, run)
		if err != nil {
			continue // its process lives, and is slow
		}
		// It may have told of its end since the keys were read.
		_ = abandonOpen(kept, run)
		release()
	}
}

// abandonOpen closes what the store still watches of a run whose target has ended with
// its process.
func abandonOpen(kept *store.Store, run string) error {
	var left []*runner.Ghost
	for g, err := range kept.Ghosts(store.Ghosts{Run: run, Open: true}) {
		if err != nil {
			return err
		}
		scenarios.Abandon(g, "its target ended with the process of contend")
		left = append(left, g)
	}
	return kept.UpdateGhosts(left)
}
