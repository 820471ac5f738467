package report

import (
	"fmt"

	"contend/runner"
	"contend/scenarios"
	"contend/targets"
)

// Collector is an observer that makes a result of the run that it is shown, as it goes on
// or from a record.
type Collector struct {
	// Steering is that of a race; nil for runs of another shape.
	runner.Steering
	header       RunHeader
	shape        runner.Shape
	asking       runner.Asking // of a watch
	judge        scenarios.Judging
	counts       *counts
	expectations []expectation
}

// NewCollector prepares a result for a run that starts as header says. It fails on an
// expectation that cannot be read and on an unknown scenario.
func NewCollector(header RunHeader) (*Collector, error) {
	c := &Collector{header: header, counts: newCounts()}
	var err error
	switch s := scenarios.Find(header.Scenario).(type) {
	case scenarios.Contest:
		err = c.race(s)
	case scenarios.Watch:
		c.shape, c.asking, c.judge = runner.Watch, s, scenarios.NewGhostJudge(header.Run)
	case scenarios.Asks:
		err = header.Params.options(s)
		c.shape, c.judge = runner.Probe, s.Judge(header.Target.Kind, header.Params.KeyPrefix, header.Run)
	default:
		return nil, &UnknownScenarioError{header.Scenario}
	}
	if err != nil {
		return nil, err
	}
	c.expectations, err = parseExpectations(header.Params.Expect)
	return c, err
}

// race prepares to judge a race.
func (c *Collector) race(s scenarios.Contest) error {
	p, target := c.header.Params, c.header.Target
	if err := p.options(s); err != nil {
		return err
	}
	if !p.Sweep.Valid() {
		return fmt.Errorf("%w: its header has no sweep of %d offsets up to %s", runner.ErrNotARecord, p.Sweep.Steps, p.Sweep.Most)
	}
	raced, twin := Raced(s, p.Unguarded)
	sentBy := target.SentBy
	if p.Release == string(targets.LastByte) {
		sentBy = p.Release
	}
	judge := scenarios.NewJudge(scenarios.Terms{Name: c.header.Scenario, Scenario: raced, Twin: twin, MinContended: p.MinContended,
		ControlRounds: p.ControlRounds, OneCopy: target.OneCopy, Contenders: p.Contenders, SentBy: sentBy, Relayed: target.Relayed,
		Settle: p.Settle, Stagger: p.Stagger, Sweep: p.Sweep, Thresholds: p.Thresholds})
	c.Steering, c.judge = judge, judge
	return nil
}

// UnknownScenarioError is a scenario that this contend does not have.
type UnknownScenarioError struct{ Name string }

func (e *UnknownScenarioError) Error() string { return "unknown scenario " + e.Name }

// Raced gives what is raced, and the twin that is its control: nil where the
// race itself has no guard.
func Raced(s scenarios.Contest, unguarded bool) (raced, twin scenarios.Contest) {
	if t := s.Twin(); t != nil {
		if unguarded {
			return t, nil
		}
		return s, t
	}
	return s, nil
}

// Shown says that a record is to be shown to the collector.
func (c *Collector) Shown() runner.Shown {
	return runner.Shown{Shape: c.shape, Observer: c, Asking: c.asking}
}

// Observe takes an event into account.
func (c *Collector) Observe(e runner.Event) {
	c.judge.Observe(e)
	c.counts.add(c.judge.Fates(e))
}

// Foreign is an error where what was shown is of another scenario than the header says.
func (c *Collector) Foreign() error { return c.judge.Foreign() }

// Earlier takes the violations that an earlier process told of the same watch.
func (c *Collector) Earlier(all []scenarios.Violation) {
	if watch, ok := c.judge.(*scenarios.GhostJudge); ok {
		watch.Earlier(all)
	}
}

// Make concludes.
func (c *Collector) Make(end runner.End) Result {
	j := c.judge.Conclude(end)
	r := Result{Schema: ResultSchema, RunHeader: c.header, Elapsed: end.Elapsed, Interrupted: end.Interrupted, Stopped: end.Stopped, Cut: end.Cut,
		Left: end.Left, Requests: end.Requests, Controls: j.Controls, Rounds: j.Rounds, Outcomes: c.counts.outcomes(), Winners: j.Winners,
		Latency: c.counts.latencies(), Contention: j.Contention, Verdict: j.Verdict, Expectations: []Expectation{}, Detail: j.Detail, Refusal: j.Refusal}
	if r.Controls == nil {
		r.Controls = []scenarios.Control{}
	}
	r.settle(j.Settled)
	r.QuotaUnits = c.units(end)
	for _, e := range c.expectations {
		r.Expectations = append(r.Expectations, e.check(c.counts))
	}
	return r
}

// units is the quota that was used; nil: the store counts requests. Those of a probe
// differ too much in size for an average.
func (c *Collector) units(end runner.End) *int64 {
	units := end.Units
	if c.shape != runner.Probe {
		units = int64(c.header.Target.UnitsEach) * end.Requests
	}
	if units == 0 && (c.shape == runner.Probe || c.header.Target.UnitsEach == 0) {
		return nil
	}
	return &units
}

// settle notes how many unknown outcomes turned out to be applied.
func (r *Result) settle(n int) {
	for i := range r.Outcomes {
		if o := &r.Outcomes[i]; o.Outcome == string(targets.Unknown) && n > 0 {
			o.Settled = min(n, o.Count)
			n -= o.Settled
		}
	}
}
