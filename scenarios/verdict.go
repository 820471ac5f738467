package scenarios

import (
	"encoding/json"
	"fmt"

	"contend/scenarios/stats"
)

// Status is one of three values, as in a linearizability checker.
type Status string

const (
	Held         Status = "held"
	Violated     Status = "violated"
	Inconclusive Status = "inconclusive"
)

// Verdict is what a run says.
type Verdict struct {
	Status     Status       `json:"status"` // of a probe null, here ""
	Property   string       `json:"property"`
	Reasons    []string     `json:"reasons"`
	Violations []Violation  `json:"violations"`
	Bound      *stats.Bound `json:"bound"`
	// ViolatedRounds counts rounds of the race; Violations lists the first few.
	ViolatedRounds int `json:"violated_rounds"`
	// Expected: an unguarded contest was violated, which is what it is for.
	Expected bool `json:"expected,omitempty"`
}

// MarshalJSON writes null for a status that there is not.
func (v Verdict) MarshalJSON() ([]byte, error) {
	type plain Verdict
	out := struct {
		Status *Status `json:"status"`
		plain
	}{plain: plain(v)}
	if v.Status != "" {
		out.Status = &v.Status
	}
	return json.Marshal(out)
}

// verdict goes in this order: violated by what is definite, whether or not
// there was a contest; held where a contest was shown; else inconclusive.
func (j *Judge) verdict(t *tally, stopped string) Verdict {
	info := j.terms.Scenario.Info()
	v := Verdict{Status: Inconclusive, Property: info.Property, Reasons: []string{}, Violations: []Violation{}, ViolatedRounds: t.violated}
	if own, ok := j.terms.Scenario.(interface {
		claims(all []Finding, terms Terms) string
	}); ok {
		v.Property = own.claims(j.findings, j.terms)
	}
	for _, c := range j.controls {
		v.Violations = append(v.Violations, c.violations...)
	}
	v.Violations = append(v.Violations, t.violations...)
	if j.removedFromOutside() {
		for i := range v.Violations {
			if x := &v.Violations[i]; missed[x.Kind] {
				x.Detail += "; " + removedText
			}
		}
	}
	switch {
	case len(j.disagreed) > 0:
		v.Reasons = append(v.Reasons, fmt.Sprintf("contend contradicts itself: its round rule and the general linearizability checker "+
			"differ on round %d; this is a bug in contend, please report it with the record", j.disagreed[0]))
		v.Violations = []Violation{}
	case len(v.Violations) > 0:
		v.Status = Violated
		v.Expected = info.Unguarded
	default:
		if j.terms.Sweep.Steps > 0 {
			v.Reasons = append(v.Reasons, neverHeld)
		}
		v.Reasons = append(v.Reasons, j.doubts(t, stopped)...)
		if len(v.Reasons) == 0 && !info.Unguarded {
			v.Status = Held
		}
		if info.Unguarded {
			v.Reasons = append(v.Reasons, "no collision was seen, and without a guard that proves nothing (raise --rounds or --contenders)")
		}
	}
	if j.terms.Sweep.Steps > 0 {
		return v // a rate over offsets of our choice says nothing
	}
	v.Bound = stats.BoundOf(t.violated, t.either)
	if v.Bound != nil && t.violated == 0 && t.uncertain > 0 {
		if worst := stats.BoundOf(t.uncertain, t.counted+t.uncertain); worst != nil {
			v.Bound.UncertainAtMost = &worst.AtMost
		}
	}
	return v
}

// neverHeld is why a sweep is not held.
const neverHeld = "a sweep maps the window, it is never held (leave --offset-sweep out)"

// removedText says what else can have removed a record.
const removedText = "keys are removed from outside: keys that nobody contended for are gone too (a flush, an eviction, another `contend clean`)"

// removedFromOutside tells whether keys vanish that nobody contended for.
func (j *Judge) removedFromOutside() bool { return j.nonceGone > 1 }

// missed are the kinds of violation that a record which is removed from outside makes.
var missed = map[string]bool{"lost-write": true, "record-vanished": true, "old-state-after-refusal": true, "state-went-back": true,
	"stale-read-after-write": true, "several-winners": true, "lost-update": true, "early-takeover": true, "second-create-accepted": true}

// doubts are the reasons against holding, each with what would fix it.
func (j *Judge) doubts(t *tally, stopped string) []string {
	var doubts []string
	add := func(format string, a ...any) { doubts = append(doubts, fmt.Sprintf(format, a...)) }
	rounds := len(j.findings)
	if stopped != "" {
		add("%s", stopped)
	}
	if j.skipped {
		add(skippedText, "violation")
	}
	doubts = append(doubts, harnessDoubts(j.controls, j.unmappedReplies, j.unmapped)...)
	if t.void > 0 {
		add("%d of %d rounds hold a token that nobody of this run wrote: someone else writes to these keys (stop them, or choose another --key-prefix)", t.void, rounds)
	}
	if t.indefinite > 0 {
		add("%d of %d rounds look violated, but by a request that went out more than once: a proxy or client sends requests again (switch that off)", t.indefinite, rounds)
	}
	if t.stale > 0 {
		add("%s", j.staleText(t))
	}
	if rounds == 0 && stopped == "" {
		add("no round was run")
	}
	if j.removedFromOutside() {
		add("%s", removedText)
	}
	tooUncertain := float64(t.uncertain) > j.terms.Thresholds.UncertainRounds*float64(rounds)
	// Where all that do not count are uncertain, it is said once.
	if rounds > 0 && j.terms.Sweep.Steps == 0 && t.counted < max(1, j.terms.MinContended) && !(tooUncertain && len(t.why) == 0) {
		add("%s", j.tooFewCounted(t))
	}
	if tooUncertain {
		add("%d of %d rounds are uncertain, and at most %.3g %% may be (--max-uncertain-rounds): %s", t.uncertain, rounds,
			100*j.terms.Thresholds.UncertainRounds, UncountedText(uncountedOf(t.unsure)))
	}
	return doubts
}

// skippedText is why a run without controls is not held, with what they would show.
const skippedText = "the controls were skipped, so nothing shows that a %s would have been seen (leave --skip-controls out)"

// harnessDoubts are the reasons against holding that the controls give, and replies that
// are unmapped.
func harnessDoubts(controls []Control, unmapped int, sample string) []string {
	var doubts []string
	for _, c := range controls {
		if !c.AsExpected && c.LeftOut == "" {
			doubts = append(doubts, fmt.Sprintf("control %s: %s", c.Name, c.Detail))
		}
	}
	if unmapped > 0 {
		doubts = append(doubts, fmt.Sprintf("%d of the replies have no row in the target's table, such as %s", unmapped, sample))
	}
	return doubts
}

func (j *Judge) tooFewCounted(t *tally) string {
	text := fmt.Sprintf("%d of %d rounds count as contended, and held needs %d (--min-contended)", t.counted, len(j.findings), max(1, j.terms.MinContended))
	switch why := uncountedOf(t.why); {
	case len(why) > 0:
		return text + ": " + UncountedText(why)
	case t.uncertain > 0:
		return text + ": the others are uncertain"
	default:
		return text + ": raise --rounds"
	}
}

// staleText tells of reads that showed a missing or old state.
func (j *Judge) staleText(t *tally) string {
	text := fmt.Sprintf("stale reads in %d of %d rounds: a read still showed a missing or old state %s after a newer one had been acknowledged",
		t.stale, len(j.findings), stats.Coarse(t.staleAge))
	switch {
	case j.readersLag:
		return text + "; since the controls showed readers that lag, no such read is taken for a violation (read from the primary)"
	case t.undecided > 0:
		return text + fmt.Sprintf("; in %d of them no later read shows whether it came round (let the run end by itself, or raise --settle)", t.undecided)
	default:
		return text + ", and later reads showed the newer one (read from the primary)"
	}
}
