package report

import (
	"contend/runner"
	"contend/scenarios"
	"contend/targets"
)

// WatchCollector is an observer that makes a result of the watch that it is shown,
// in the run or from a record.
type WatchCollector struct {
	header       RunHeader
	judge        *scenarios.GhostJudge
	counts       *counts
	expectations []expectation
}

// NewWatchCollector prepares a result for a watch that starts as header says. It
// fails as NewCollector does.
func NewWatchCollector(header RunHeader) (*WatchCollector, error) {
	m := &WatchCollector{header: header, counts: newCounts(), judge: scenarios.NewGhostJudge(header.Run)}
	var err error
	m.expectations, err = parseExpectations(header.Params.Expect)
	return m, err
}

// Earlier takes the violations that an earlier process told of the run.
func (m *WatchCollector) Earlier(all []scenarios.Violation) { m.judge.Earlier(all) }

// Controls judges the checks that go before.
func (m *WatchCollector) Controls(c *runner.Controls) { m.judge.Controls(c) }

// Watching takes the keys.
func (m *WatchCollector) Watching(ghosts []*runner.Ghost) { m.judge.Watching(ghosts) }

// Asked takes a reply into account.
func (m *WatchCollector) Asked(g *runner.Ghost, e *runner.Exchange) {
	m.judge.Asked(g, e)
	if g.Run == m.header.Run && e.Op.Value.Token != runner.Token(g.Key, 0, 1) {
		m.counts.addProbe(e)
	}
}

// addProbe counts a request about a watched key.
func (c *counts) addProbe(e *runner.Exchange) {
	outcome := string(e.Reply.Outcome)
	switch o := e.Reply.Outcome; {
	case o == targets.OK && e.Op.Kind == targets.Write:
		outcome = "won"
	case o == targets.Conflict:
		outcome = "lost"
	case o == targets.OK:
		outcome = "shown"
	case o == targets.Unsupported:
		outcome = string(targets.Invalid)
	}
	c.addOutcome(outcome, string(e.Op.Kind), e)
}

// Make concludes.
func (m *WatchCollector) Make(end runner.End) Result {
	j := m.judge.Conclude(scenarios.GhostEnd{Stopped: end.Stopped, Cut: end.Cut, Interrupted: end.Interrupted})
	r := Result{Schema: ResultSchema, RunHeader: m.header, Elapsed: end.Elapsed, Interrupted: end.Interrupted,
		Stopped: end.Stopped, Cut: end.Cut, Left: end.Left, Requests: end.Requests, Controls: j.Controls, Rounds: j.Detail.Ghosts.Watched(),
		Outcomes: m.counts.outcomes(), Winners: j.Winners, Latency: m.counts.latencies(), Contention: j.Contention,
		Verdict: j.Verdict, Expectations: []Expectation{}, Detail: j.Detail}
	r.finish(m.expectations, m.counts)
	return r
}
