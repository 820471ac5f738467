// Package report turns what was measured and judged into results, and results
// into their looks.
package report

import (
	"encoding/json"
	"fmt"
	"maps"
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
	d := targets.Description{Server: t.Server, Simulated: t.Simulated, Notes: t.Notes}.With(s)
	t.Server, t.Simulated, t.Notes, t.Uncertainty = d.Server, d.Simulated, d.Notes, s.Uncertainty
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

// MarshalIndent gives the result as format json writes it.
func (r Result) MarshalIndent() ([]byte, error) { return marshalIndent(r) }

// Begun is the result of a watch that has not ended: what stays in a store where
// its process is killed.
func Begun(header RunHeader) Result {
	return Result{Schema: ResultSchema, RunHeader: header, Interrupted: true, Controls: []scenarios.Control{}, Outcomes: []Outcome{}, Latency: []Latency{},
		Expectations: []Expectation{}, Verdict: scenarios.Verdict{Status: scenarios.Inconclusive, Violations: []scenarios.Violation{},
			Reasons: []string{"the watch has not ended: it is still running, or contend was killed (go on with --resume)"}}}
}
