package report

import (
	"strings"
	"testing"

	"contend/scenarios"
	"contend/scenarios/stats"
)

// The verdict says how strong it is, what was expected, and what cut it short.
func TestVerdictIsNotStrongerThanItsRun(t *testing.T) {
	const held = "held: 20 of 25 rounds count as contended, none violated; violation rate under 14.0 % (95 % confidence) of rounds in which every reply was certain"
	violated := func(v scenarios.Verdict) func(*Result) {
		return func(r *Result) {
			v.Status = scenarios.Violated
			r.Verdict = v
		}
	}
	two := []scenarios.Violation{{Kind: "several-winners", Round: 1, Detail: "two writes were accepted"}}
	control := []scenarios.Violation{{Control: "stale", Detail: "a stale write was accepted"}}
	for name, c := range map[string]struct {
		change func(*Result)
		want   string
	}{
		"held":               {func(*Result) {}, held},
		"cut":                {func(r *Result) { r.Cut = "time was up" }, held + "; cut: time was up"},
		"interrupted":        {func(r *Result) { r.Interrupted = true }, held + "; interrupted after 25 rounds, 20 of 20 counted"},
		"of a duration":      {func(r *Result) { r.Interrupted, r.Params.Rounds = true, 0 }, held + "; interrupted after 25 rounds"},
		"violated":           {violated(scenarios.Verdict{ViolatedRounds: 3, Violations: two}), "violated in 3 of 25 rounds: two writes were accepted"},
		"violated, expected": {violated(scenarios.Verdict{ViolatedRounds: 3, Violations: two, Expected: true}), "violated in 3 of 25 rounds: two writes were accepted (expected: no guard)"},
		"violated, a bound": {violated(scenarios.Verdict{ViolatedRounds: 3, Violations: two, Bound: &stats.Bound{AtLeast: ptr(0.0459), Confidence: 0.95}}),
			"violated in 3 of 25 rounds: two writes were accepted; violation rate over 4.5 % (95 % confidence)"},
		"in a control": {violated(scenarios.Verdict{Violations: control}), "violated in the stale control: a stale write was accepted"},
		"before any race": {func(r *Result) { violated(scenarios.Verdict{Violations: control})(r); r.Rounds = 0 },
			"violated in the stale control: a stale write was accepted; no race was run"},
		"inconclusive": {func(r *Result) {
			r.Verdict = scenarios.Verdict{Status: scenarios.Inconclusive, Reasons: []string{"a", "b"}}
		}, "inconclusive: a; b"},
	} {
		r := aRacedResult()
		c.change(&r)
		if got := r.verdictText(); got != c.want {
			t.Errorf("%s: %s\nwant %s", name, got, c.want)
		}
	}
}

// A line names the target, that it is simulated, and what was expected in vain.
func TestVerdictLineTellsWhatWasExpected(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Result)
		begin  string
		end    string
	}{
		"as it is":          {func(*Result) {}, "fail-if-exists on sim:: held", "was certain"},
		"simulated":         {func(r *Result) { r.Target.Simulated = true }, "fail-if-exists on sim: (simulated): held", "was certain"},
		"missed":            {func(r *Result) { r.Expectations = []Expectation{{"a<1", false, "2"}, {"b<1", true, "0"}} }, "fail", "; expected a<1, measured 2"},
		"expected violated": {func(r *Result) { r.Params.ExpectVerdict = "violated" }, "fail", "; expected violated"},
		"expected held":     {func(r *Result) { r.Params.ExpectVerdict = "held" }, "fail", "was certain"},
	} {
		r := aRacedResult()
		c.change(&r)
		if got := r.VerdictLine(); !strings.HasPrefix(got, c.begin) || !strings.HasSuffix(got, c.end) {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// A window that was found stands in the verdict, in the middle of its sentence.
func TestVerdictTellsTheWindow(t *testing.T) {
	r := aRacedResult()
	r.Verdict = scenarios.Verdict{Status: scenarios.Violated, ViolatedRounds: 3, Violations: []scenarios.Violation{{Detail: "two"}}}
	r.Params.Sweep.Most, r.Params.Sweep.Steps = 9e6, 3
	r.Detail.OffsetMap = &scenarios.OffsetMap{}
	if got := r.verdictText(); got != "violated in 3 of 25 rounds: two" {
		t.Error(got)
	}
	r.Detail.OffsetMap.From, r.Detail.OffsetMap.To = ptr(-r.Params.Sweep.Most/3), ptr(r.Params.Sweep.Most/3)
	if got := r.verdictText(); got != "violated in 3 of 25 rounds: two; violations with the second released from -3.00 to +3.00 ms after the first" {
		t.Error(got)
	}
	r.Verdict.Status = scenarios.Inconclusive
	if got := r.windowText(); strings.Contains(got, "further") {
		t.Error(got)
	}
}
