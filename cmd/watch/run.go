// Package watch runs watches of expired keys over processes: it keeps them in a
// store of results, goes on with what an earlier process began, and asks about the keys
// of several runs at once.
package watch

import (
	"time"

	"contend/report"
	"contend/report/store"
	"contend/runner"
	"contend/scenarios"
)

// Run is one run of a watch: one that this process began, or an earlier one whose
// keys are asked about again.
type Run struct {
	Header    report.RunHeader
	Ghosts    []*runner.Ghost
	collector *report.Collector
	own       bool          // the watch is made for it, not for another that asks about its keys too
	loaded    bool          // an earlier process began it
	before    int64         // requests of earlier processes
	requests  int64         // about its keys, of this process
	last      report.Result // as concluded last
}

func newRun(header report.RunHeader, ghosts []*runner.Ghost) (*Run, error) {
	collector, err := report.NewCollector(header)
	if err != nil {
		return nil, err
	}
	for _, g := range ghosts {
		collector.Observe(runner.Event{Ghost: g})
	}
	return &Run{Header: header, Ghosts: ghosts, collector: collector}, nil
}

// Load reads a run that did not end from the store, and makes its keys ready to be
// asked about again.
func Load(kept *store.Store, id string) (*Run, error) {
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
	run, err := newRun(r.RunHeader, ghosts)
	if err != nil {
		return nil, err
	}
	run.loaded = true
	run.collector.Earlier(r.Verdict.Violations)
	for _, g := range ghosts {
		for e, err := range kept.Probes(g) {
			if err != nil {
				return nil, err
			}
			run.collector.Observe(runner.Event{Asked: &runner.Asked{Ghost: g, Key: g.Key, Exchange: e}})
			run.before += int64(e.Reply.Attempts)
		}
		scenarios.Resume(g, time.Since(g.Epoch))
	}
	// A process that was killed has told nothing but what it noted.
	run.before = max(run.before, r.Requests)
	return run, nil
}

// Open counts the keys that are still asked about.
func (r *Run) Open() (n int) {
	for _, g := range r.Ghosts {
		if !g.Closed {
			n++
		}
	}
	return n
}

// Until is when the last of its open keys is asked for the last time.
func (r *Run) Until() time.Time { return until(r.Ghosts) }

func until(ghosts []*runner.Ghost) (last time.Time) {
	for _, g := range ghosts {
		if at := g.Epoch.Add(g.End()); !g.Closed && at.After(last) {
			last = at
		}
	}
	return last
}

// Longest tells of the key that blocked longest, as concluded last; nil: none did.
func (r *Run) Longest() *scenarios.GhostKey {
	if r.last.Detail.Ghosts == nil {
		return nil
	}
	return r.last.Detail.Ghosts.Longest
}

// end is how the run ended with a watch that sent so many requests for it.
func (r *Run) end(s runner.Summary, requests int64) runner.End {
	end := s.End()
	if end.Requests = r.before + requests; !r.own {
		end.Left = ""
	}
	if r.Open() == 0 {
		// It has come to its end, however the watch did.
		end.Interrupted, end.Cut = false, ""
		if !r.own {
			end.Stopped = ""
		}
	}
	if r.loaded {
		end.Elapsed = time.Since(r.Header.Started)
	}
	return end
}

// conclude gives the result of the run after such a watch.
func (r *Run) conclude(s runner.Summary, requests int64) report.Result {
	r.last = r.collector.Make(r.end(s, requests))
	return r.last
}

// runs shows a watch to those that its keys belong to.
type runs []*Run

// Observe shows the checks to all, since they say of the target what holds for each, and
// a reply to the run of its key. Each run has its keys.
func (all runs) Observe(e runner.Event) {
	for _, run := range all {
		if a := e.Asked; a != nil && run.Header.Run == a.Ghost.Run {
			run.requests += int64(a.Exchange.Reply.Attempts)
			run.collector.Observe(e)
		} else if e.Controls != nil {
			run.collector.Observe(e)
		}
	}
}

// ghosts are the keys of all.
func (all runs) ghosts() (ghosts []*runner.Ghost) {
	for _, run := range all {
		ghosts = append(ghosts, run.Ghosts...)
	}
	return ghosts
}
