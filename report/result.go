// Package report turns what was measured and judged into results, and results
// into their looks.
package report

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"contend/runner"
	"contend/scenarios"
	"contend/targets"
)

// ResultSchema is the format of a result.
const ResultSchema = "contend.result/1"

// RunHeader is what is known of a run before it starts. It is the head of a result
// and of a record.
type RunHeader struct {
	Run      string            `json:"run"`
	Tool     Tool              `json:"tool"`
	Command  string            `json:"command"` // can be pasted; secrets masked
	Scenario string            `json:"scenario"`
	Params   Params            `json:"params"`
	Labels   map[string]string `json:"labels"`
	Target   Target            `json:"target"`
	Host     Host              `json:"host"`
	Started  time.Time         `json:"started"`
}

// Tool is the contend that made a result.
type Tool struct {
	Version string `json:"version"`
	Go      string `json:"go"`
}

// Host is the machine that the contenders ran on.
type Host struct {
	OS   string `json:"os"`
	Arch string `json:"arch"`
	CPUs int    `json:"cpus"`
}

// Params are the flags that every scenario has, as they took effect.
type Params struct {
	Contenders    int           `json:"contenders"`
	Rounds        int           `json:"rounds"`      // that were to count; 0: until Duration was up
	MaxRounds     int           `json:"max_rounds"`  // raced at most
	Duration      time.Duration `json:"duration_ns"` // 0: until Rounds were done
	Timeout       time.Duration `json:"timeout_ns"`
	Settle        time.Duration `json:"settle_ns"`
	Late          time.Duration `json:"late_ns"`
	Stagger       time.Duration `json:"stagger_ns"`
	Sweep         runner.Sweep  `json:"offset_sweep,omitzero"` // its rounds are all of Rounds
	Release       string        `json:"release"`
	Rate          float64       `json:"rate"` // as --rate asked; 0: the target's own limits
	Limits        []Limit       `json:"limits,omitempty"`
	Seed          string        `json:"seed"`
	Unguarded     bool          `json:"unguarded"`
	SkipControls  bool          `json:"skip_controls"`
	ControlRounds int           `json:"control_rounds"`
	MinContended  int           `json:"min_contended"`

	Thresholds scenarios.Thresholds `json:"thresholds"`

	ValueSize     int      `json:"value_size"`
	KeyPrefix     string   `json:"key_prefix"`
	Expect        []string `json:"expect,omitempty"`
	ExpectVerdict string   `json:"expect_verdict"`

	// Options are the scenario's own parameters, in its JSON form.
	Options json.RawMessage `json:"options,omitempty"`
}

// Unguarded tells whether what is raced has no guard: it is never held.
func (f RunHeader) Unguarded() bool {
	contest, ok := scenarios.Find(f.Scenario).(scenarios.Contest)
	if !ok || f.Params.options(contest) != nil {
		return false
	}
	raced, _ := Raced(contest, f.Params.Unguarded)
	return raced.Info().Unguarded
}

// SetOptions notes the scenario's own parameters.
func (p *Params) SetOptions(options any) { p.Options, _ = json.Marshal(options) }

// options sets the scenario's own parameters.
func (p *Params) options(s scenarios.Scenario) error {
	own, ok := s.(scenarios.Parameterized)
	if !ok || len(p.Options) == 0 {
		return nil
	}
	if err := json.Unmarshal(p.Options, own); err != nil {
		return fmt.Errorf("the parameters of %s cannot be read: %w", s.Info().Name, err)
	}
	return own.Check()
}

// Limit is a number of requests in any span of time.
type Limit struct {
	Requests float64       `json:"requests"`
	Per      time.Duration `json:"per_ns"`
}

// LimitsOf tells the limits of a plan.
func LimitsOf(limits []targets.Limit) []Limit {
	var all []Limit
	for _, l := range limits {
		all = append(all, Limit{l.Requests, l.Per})
	}
	return all
}

// Target is a target as a result tells it.
type Target struct {
	Kind      string            `json:"kind"`
	URL       string            `json:"url"`
	Strategy  map[string]string `json:"strategy"`
	Simulated bool              `json:"simulated"`
	Server    string            `json:"server"`
	Notes     []string          `json:"notes"`
	SentBy    string            `json:"sent_by"`
	OneCopy   bool              `json:"one_copy"`
	// Relayed: something between us and the store asks it for us, and tells when.
	Relayed bool `json:"relayed"`
	// UnitsEach is what a request of this run costs of the store's quota, in its
	// units; 0: it has none.
	UnitsEach   int           `json:"quota_units_each,omitempty"`
	Uncertainty time.Duration `json:"clock_uncertainty_ns,omitempty"` // of the clocks there
}

// TargetOf is a target as its URL alone describes it.
func TargetOf(d targets.Description) Target {
	notes := d.Notes
	if notes == nil {
		notes = []string{}
	}
	// Those of conditional deletes and renewals are no part of any race.
	strategies := maps.Clone(d.Strategies)
	delete(strategies, "delete")
	delete(strategies, "renew")
	return Target{Kind: d.Kind, URL: d.URL, Strategy: strategies, Simulated: d.Simulated, Server: d.Server,
		Notes: notes, SentBy: d.SentBy, OneCopy: d.OneCopy, Relayed: d.Relays}
}

// Told adds what the server told of itself before the run.
func (t *Target) Told(s targets.Server) {
	t.Server = cmp.Or(s.Name, t.Server, "version not told")
	t.Simulated = t.Simulated || s.Simulated
	t.Notes = slices.Concat(t.Notes, s.Notes)
	t.Uncertainty = s.Uncertainty
}

// Result is everything that a run tells: format json.
type Result struct {
	Schema string `json:"schema"`
	RunHeader
	Elapsed     time.Duration `json:"elapsed_ns"`
	Interrupted bool          `json:"interrupted"`
	Stopped     string        `json:"stopped,omitempty"` // why the run ended early
	// Refusal is the first request that the target did not serve.
	Refusal      *scenarios.Refusal   `json:"first_refusal,omitempty"`
	Cut          string               `json:"cut,omitempty"`  // why a watch ended early, where that was foreseen
	Left         string               `json:"left,omitempty"` // what is told of keys that were left behind
	Requests     int64                `json:"requests"`
	QuotaUnits   *int64               `json:"quota_units"`
	Controls     []scenarios.Control  `json:"controls"`
	Rounds       int                  `json:"rounds"`
	Outcomes     []Outcome            `json:"outcomes"`
	Winners      scenarios.Winners    `json:"winners"`
	Latency      []Latency            `json:"latency"`
	Contention   scenarios.Contention `json:"contention"`
	Verdict      scenarios.Verdict    `json:"verdict"`
	Expectations []Expectation        `json:"expectations"`
	Detail       scenarios.Detail     `json:"detail"`

	// JSONTo is where the json output goes, which the other formats name; "": nowhere.
	JSONTo string `json:"-"`
}

// Outcome counts the contenders with one fate.
type Outcome struct {
	Outcome string `json:"outcome"`
	At      string `json:"at"`
	Code    string `json:"code"`
	Status  int    `json:"status"`
	Count   int    `json:"count"`
	Message string `json:"message,omitempty"` // of the first
	// Settled counts those of an unknown outcome that the read-back showed to be
	// applied.
	Settled int `json:"settled_as_applied,omitempty"`
}

// Latency is the distribution of one outcome's last request, call to return.
type Latency struct {
	Outcome string         `json:"outcome"`
	At      string         `json:"at"`
	Where   string         `json:"where,omitempty"` // "server": as the relay measured it, next to the store
	N       int            `json:"n"`
	Method  string         `json:"method"` // exact (nearest rank) or hdr (three digits)
	Min     *time.Duration `json:"min_ns"`
	P50     *time.Duration `json:"p50_ns"`
	P90     *time.Duration `json:"p90_ns"`
	P95     *time.Duration `json:"p95_ns"`
	P99     *time.Duration `json:"p99_ns"`
	Max     *time.Duration `json:"max_ns"`
}

// Collector is an observer that makes a result of what it is shown, in the run or
// from a record.
type Collector struct {
	header       RunHeader
	judge        *scenarios.Judge
	counts       *counts
	expectations []expectation
	proceed      bool
	raced        scenarios.Contest
	foreign      error
}

// NewCollector prepares a result for a run that starts as header says. It fails on an
// expectation that cannot be read and on an unknown scenario.
func NewCollector(header RunHeader) (*Collector, error) {
	scenario, ok := scenarios.Find(header.Scenario).(scenarios.Contest)
	if !ok {
		return nil, &UnknownScenarioError{header.Scenario}
	}
	m := &Collector{header: header, counts: newCounts()}
	var err error
	if m.expectations, err = parseExpectations(header.Params.Expect); err != nil {
		return nil, err
	}
	if err := header.Params.options(scenario); err != nil {
		return nil, err
	}
	if s := header.Params.Sweep; !s.Valid() {
		return nil, fmt.Errorf("%w: its header has no sweep of %d offsets up to %s", runner.ErrNotARecord, s.Steps, s.Most)
	}
	raced, twin := Raced(scenario, header.Params.Unguarded)
	m.raced = raced
	sentBy := header.Target.SentBy
	if header.Params.Release == string(targets.LastByte) {
		sentBy = header.Params.Release
	}
	m.judge = scenarios.NewJudge(scenarios.Terms{Scenario: raced, Twin: twin, MinContended: header.Params.MinContended,
		ControlRounds: header.Params.ControlRounds, OneCopy: header.Target.OneCopy, Contenders: header.Params.Contenders, SentBy: sentBy, Relayed: header.Target.Relayed,
		Settle: header.Params.Settle, Stagger: header.Params.Stagger, Sweep: header.Params.Sweep, Thresholds: header.Params.Thresholds})
	return m, nil
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

// Controls judges the controls.
func (m *Collector) Controls(c *runner.Controls) { m.proceed = m.judge.Controls(c) }

// Proceed tells whether there is anything to race for: a guard that the controls
// showed to be absent needs no contest.
func (m *Collector) Proceed() bool { return m.proceed }

// Doubtful names the rounds whose ruling waits for a late read.
func (m *Collector) Doubtful() []int { return m.judge.Doubtful() }

// Counted is how many rounds count so far.
func (m *Collector) Counted() int { return m.judge.Counted() }

// Undecided names the rounds that another late read may decide.
func (m *Collector) Undecided() []int { return m.judge.Undecided() }

// Foreign is an error where the rounds are of another scenario than the header
// says.
func (m *Collector) Foreign() error { return m.foreign }

// Round takes a round into account.
func (m *Collector) Round(r *runner.Round) {
	if r.Collection != m.raced.Collection() && m.foreign == nil {
		m.foreign = fmt.Errorf("%w: round %d is not of the scenario %s", runner.ErrNotARecord, r.Number, m.header.Scenario)
	}
	if want := len(m.raced.Seeds(r.Key)); len(r.Seeds) != want && m.foreign == nil {
		m.foreign = fmt.Errorf("%w: round %d has %d seeds, and those of %s have %d", runner.ErrNotARecord, r.Number, len(r.Seeds), m.header.Scenario, want)
	}
	if want := m.header.Params.Sweep.Offset(r.Number); m.foreign == nil && ((want == nil) != (r.Offset == nil) || want != nil && *want != *r.Offset) {
		m.foreign = fmt.Errorf("%w: round %d has not the offset of its place in the sweep", runner.ErrNotARecord, r.Number)
	}
	m.judge.Round(r)
	m.counts.add(m.raced.Fates(r))
}

// Late takes a late read into account.
func (m *Collector) Late(round int, read *runner.Exchange) { m.judge.Late(round, read) }

// Make concludes.
func (m *Collector) Make(end runner.End) Result {
	j := m.judge.Conclude(end.Stopped)
	r := Result{Schema: ResultSchema, RunHeader: m.header, Elapsed: end.Elapsed, Interrupted: end.Interrupted,
		Stopped: end.Stopped, Left: end.Left, Requests: end.Requests, Controls: j.Controls, Rounds: end.Rounds,
		Outcomes: m.counts.outcomes(), Winners: j.Winners, Latency: m.counts.latencies(), Contention: j.Contention,
		Verdict: j.Verdict, Expectations: []Expectation{}, Detail: j.Detail, Refusal: j.Refusal}
	if r.Controls == nil {
		r.Controls = []scenarios.Control{}
	}
	r.settle(j.Settled)
	r.finish(m.expectations, m.counts)
	return r
}

// finish tells the quota that was used, and which expectations were met.
func (r *Result) finish(expectations []expectation, c *counts) {
	if each := int64(r.Target.UnitsEach); each > 0 {
		units := each * r.Requests
		r.QuotaUnits = &units
	}
	for _, e := range expectations {
		r.Expectations = append(r.Expectations, e.check(c))
	}
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

// MarshalIndent gives the result as format json writes it.
func (r Result) MarshalIndent() ([]byte, error) { return marshalIndent(r) }

// Begun is the result of a watch that has not ended: what stays in a store where
// its process is killed.
func Begun(header RunHeader) Result {
	return Result{Schema: ResultSchema, RunHeader: header, Interrupted: true, Controls: []scenarios.Control{}, Outcomes: []Outcome{}, Latency: []Latency{},
		Expectations: []Expectation{}, Verdict: scenarios.Verdict{Status: scenarios.Inconclusive, Violations: []scenarios.Violation{},
			Reasons: []string{"the watch has not ended: it is still running, or contend was killed (go on with --resume)"}}}
}
