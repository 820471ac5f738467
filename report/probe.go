package report

import (
	"contend/scenarios/probe"
	"encoding/json"
	"fmt"

	"contend/runner"
	"contend/scenarios"
)

// ProbeCollector is an observer that makes a result of the probe that it is shown, in
// the run or from a record.
type ProbeCollector struct {
	header       RunHeader
	judge        *probe.Judge
	counts       *counts
	expectations []expectation
}

// NewProbeCollector prepares a result for a probe that starts as header says. It fails
// as NewCollector does.
func NewProbeCollector(header RunHeader) (*ProbeCollector, error) {
	asked, ok := scenarios.Find(header.Scenario).(*scenarios.Probe)
	if !ok {
		return nil, &UnknownScenarioError{header.Scenario}
	}
	m := &ProbeCollector{header: header, counts: newCounts()}
	var err error
	if m.expectations, err = parseExpectations(header.Params.Expect); err != nil {
		return nil, err
	}
	if err := header.Params.options(asked); err != nil {
		return nil, err
	}
	m.judge = asked.Judge(header.Target.Kind, header.Params.KeyPrefix, header.Run)
	return m, nil
}

// Answered takes a reply into account.
func (m *ProbeCollector) Answered(question string, e *runner.Exchange) {
	if m.judge.Answered(question, e) {
		m.counts.addOutcome(string(e.Reply.Outcome), string(e.Op.Kind), e)
	}
}

// Foreign is an error where a reply is to no question of this probe.
func (m *ProbeCollector) Foreign() error { return m.judge.Foreign() }

// Make concludes.
func (m *ProbeCollector) Make(end runner.End) Result {
	r := Result{Schema: ResultSchema, RunHeader: m.header, Elapsed: end.Elapsed, Interrupted: end.Interrupted, Stopped: end.Stopped, Cut: end.Cut, Left: end.Left,
		Requests: end.Requests, Controls: []scenarios.Control{}, Outcomes: m.counts.outcomes(), Latency: m.counts.latencies(),
		Verdict:      scenarios.Verdict{Property: "none: a probe only asks", Reasons: []string{}, Violations: []scenarios.Violation{}},
		Expectations: []Expectation{}, Detail: scenarios.Detail{Probe: m.judge.Report()}}
	r.finish(m.expectations, m.counts)
	// Requests of a probe differ too much in size for an average.
	if r.QuotaUnits = nil; end.Units > 0 {
		r.QuotaUnits = &end.Units
	}
	return r
}

// Earlier reads the JSON result of a probe, for a later one to compare with.
func Earlier(text []byte) (*probe.Earlier, error) {
	var r Result
	if err := json.Unmarshal(text, &r); err != nil {
		return nil, fmt.Errorf("it is no JSON result: %w", err)
	}
	if r.Schema != ResultSchema || r.Detail.Probe == nil {
		return nil, fmt.Errorf("it is no JSON result of contend probe (-o json=FILE writes one)")
	}
	return &probe.Earlier{Run: r.Run, Family: probe.Family(r.Target.Kind), Target: r.Target.URL, Started: r.Started, Answers: r.Detail.Probe.Kept()}, nil
}
