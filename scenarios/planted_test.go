package scenarios_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"contend/runner"
	"contend/scenarios"
	"contend/targets"
	"contend/targets/all"
)

// judged is a run and what became of it.
type judged struct {
	scenarios.Judgement
	summary runner.Summary
}

// race runs a scenario on a target of its own inside the caller's bubble.
func race(t *testing.T, s scenarios.Contest, url string, change func(*runner.Plan)) judged {
	t.Helper()
	target, err := all.Open(url)
	if err != nil {
		t.Fatal(err)
	}
	return raceWith(t, s, target, change)
}

func raceWith(t *testing.T, s scenarios.Contest, target targets.Target, change func(*runner.Plan)) judged {
	t.Helper()
	defer target.Close()
	plan := runner.Plan{Setup: runner.Setup{Run: "01TEST", Prefix: "contend-", Timeout: 2 * time.Second, Seed: 1, ValueSize: 16},
		Contenders: 12, Rounds: 6, Settle: time.Second, Late: time.Second, Race: s, ControlRounds: 3}
	terms := scenarios.Terms{Scenario: s, MinContended: 1, ControlRounds: 3, SentBy: target.Describe().SentBy, OneCopy: target.Describe().OneCopy,
		Thresholds: scenarios.DefaultThresholds}
	if twin := s.Twin(); twin != nil {
		plan.Twin, terms.Twin = twin, twin
	} else {
		plan.Unguarded = true
	}
	if change != nil {
		change(&plan)
	}
	terms.Contenders, terms.Settle, terms.Sweep = plan.Contenders, plan.Settle, plan.Sweep
	r, err := runner.Open(t.Context(), target, plan)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	o := scenarios.NewJudge(terms)
	summary := r.Run(t.Context(), o, o)
	return judged{o.Conclude(summary.End()), summary}
}

// guarded are the contests in which one write of a round may win; the others have
// a matrix of their own, by their names.
func guarded() []scenarios.Contest {
	var all []scenarios.Contest
	for _, s := range scenarios.Contests() {
		if _, apart := apartFaults[s.Info().Name]; !s.Info().Unguarded && !apart {
			all = append(all, s)
		}
	}
	return all
}

// Every planted fault is told for what it is in every guarded scenario, by the
// race itself (with the controls skipped) and with the controls before it.
func TestPlantedFaults(t *testing.T) {
	for _, c := range []struct {
		fault   string
		status  scenarios.Status
		kind    string // of the violation in the race
		reason  string // part of a reason
		stopped bool
	}{
		{"two-winners", scenarios.Violated, "several-winners", "", false},
		{"gap", scenarios.Violated, "several-winners", "", false},
		{"gap=1h", scenarios.Inconclusive, "", "decided on no write", true},
		{"no-winner", scenarios.Violated, "no-winner", "", false},
		{"loser-stored", scenarios.Violated, "refused-but-applied", "", false},
		{"lost-write", scenarios.Violated, "lost-write", "", false},
		{"version-jump", scenarios.Violated, "version-jump", "", false},
		{"condition-ignored", scenarios.Violated, "several-winners", "", false},
		{"reply-dropped", scenarios.Held, "", "", false},
		{"error-after", scenarios.Held, "", "", false},
		{"request-dropped", scenarios.Inconclusive, "", "decided on no write", true},
		{"request-dropped=0.5", scenarios.Inconclusive, "", "without an answer in time (raise --timeout)", false},
		{"error-before", scenarios.Inconclusive, "", "decided on no write", true},
		{"error-before=0.5", scenarios.Inconclusive, "", "without a certain answer: INTERNAL_SERVER_ERROR 500", false},
		{"throttle", scenarios.Inconclusive, "", "decided on no write", true},
		{"throttle=0.5", scenarios.Inconclusive, "", "throttled", false},
		{"throttle=0", scenarios.Held, "", "", false},
		{"unmapped", scenarios.Inconclusive, "", "OUT_OF_CHEESE 418", false},
		{"stale-read", scenarios.Inconclusive, "", "stale", false},
		{"stale-read=2", scenarios.Inconclusive, "", "and later reads showed the newer one", false},
		{"stale-read=9", scenarios.Violated, "lost-write", "", false},
		{"foreign-writer", scenarios.Inconclusive, "", "nobody of this run wrote", false},
	} {
		for _, s := range guarded() {
			for _, skip := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/%s/skip-controls=%v", s.Info().Name, c.fault, skip), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						// Every request takes as long as every other, so that all are in flight together.
						got := race(t, s, "sim:?latency=40ms&fault="+c.fault, func(p *runner.Plan) { p.SkipControls = skip })
						want := c.status
						if skip && want == scenarios.Held {
							want = scenarios.Inconclusive
						}
						v := got.Verdict
						if v.Status != want {
							t.Fatalf("got %s, want %s: %v %+v", v.Status, want, v.Reasons, v.Violations)
						}
						if (got.summary.Stopped != nil) != c.stopped {
							t.Errorf("stopped: %v, want %v", got.summary.Stopped, c.stopped)
						}
						if !strings.Contains(strings.Join(v.Reasons, "; "), c.reason) {
							t.Errorf("reasons %q do not tell %q", v.Reasons, c.reason)
						}
						if want != scenarios.Violated {
							return
						}
						kinds := []string{kindOf(s, c.kind)}
						if c.fault == "condition-ignored" && !skip {
							kinds = []string{"second-create-accepted", "stale-write-accepted"}
						} else if v.ViolatedRounds != got.summary.Rounds || v.ViolatedRounds != 6 {
							t.Errorf("violated in %d of %d rounds, want all of 6", v.ViolatedRounds, got.summary.Rounds)
						}
						for _, violation := range v.Violations {
							if !slices.Contains(kinds, violation.Kind) || violation.Detail == "" {
								t.Errorf("violation %q (%s), want one of %q", violation.Kind, violation.Detail, kinds)
							}
							if len(violation.Witness) == 0 || violation.Witness[0].Who == "" ||
								len(violation.Witness) != 2 && !strings.Contains(violation.Detail, "one request shows it") {
								t.Errorf("violation %q has a witness of %d requests, and does not say why: %s", violation.Kind, len(violation.Witness), violation.Detail)
							}
						}
					})
				})
			}
		}
	}
}

// kindOf gives the kind of violation that a scenario sees where others have several
// winners: of edits, of which each may be accepted, the earlier are lost.
func kindOf(s scenarios.Contest, kind string) string {
	if _, edits := s.(*scenarios.LostUpdate); edits && kind == "several-winners" {
		return "lost-update"
	}
	return kind
}

// A settled unknown outcome counts as the winner, not as one more.
func TestUnknownSettledByReadBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		got := race(t, scenarios.FailIfExists{}, "sim:?latency=40ms&fault=reply-dropped", nil)
		if got.Settled != 6 || got.Winners.One != 6 || got.Contention.ContendedRounds != 6 {
			t.Errorf("settled %d, rounds with one winner %d, contended %d; want 6 each", got.Settled, got.Winners.One, got.Contention.ContendedRounds)
		}
	})
}

// An honest store is never accused, and a contest without a guard always is.
func TestHonestStore(t *testing.T) {
	const rounds = 2000
	for _, s := range guarded() {
		t.Run(s.Info().Name, func(t *testing.T) {
			got := race(t, s, "sim:?latency=0", func(p *runner.Plan) { p.Rounds = rounds })
			if got.Verdict.Status == scenarios.Violated || len(got.Verdict.Violations) > 0 || got.summary.Rounds != rounds {
				t.Errorf("%s after %d rounds: %+v", got.Verdict.Status, got.summary.Rounds, got.Verdict.Violations)
			}
			if got.Winners.One != rounds {
				t.Errorf("%+v winners, want one in each of %d rounds", got.Winners, rounds)
			}
		})
	}
}

func TestUnguardedIsViolated(t *testing.T) {
	unguarded := []scenarios.Contest{scenarios.CheckThenSet{}}
	for _, s := range guarded() {
		unguarded = append(unguarded, s.Twin())
	}
	for _, s := range unguarded {
		// With any latency: the barrier after the read makes the collision certain.
		got := race(t, s, "sim:?latency=0", func(p *runner.Plan) { p.Rounds = 50 })
		if v := got.Verdict; v.Status != scenarios.Violated || !v.Expected || v.ViolatedRounds != 50 {
			t.Errorf("%s without its guard: %s in %d rounds, expected %v: %v", s.Info().Name, v.Status, v.ViolatedRounds, v.Expected, v.Reasons)
		}
	}
}

// Contenders that come one after another are no contest.
func TestStaggeredIsInconclusive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		got := race(t, scenarios.FailIfExists{}, "sim:?latency=40ms", func(p *runner.Plan) { p.Stagger = 50 * time.Millisecond })
		if got.Verdict.Status != scenarios.Inconclusive || got.Contention.ContendedRounds != 0 {
			t.Errorf("%s with %d contended rounds", got.Verdict.Status, got.Contention.ContendedRounds)
		}
		if flight := got.Contention.MaxInFlight; flight == nil || *flight != 1 {
			t.Errorf("max in flight %v, want 1", flight)
		}
	})
}

func TestSingleContender(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		got := race(t, scenarios.FailIfExists{}, "sim:?latency=40ms", func(p *runner.Plan) { p.Contenders = 1 })
		c := got.Contention
		if got.Verdict.Status != scenarios.Inconclusive || c.Overlap != nil || c.WinnerOverlap != nil || c.GuardContention != nil {
			t.Errorf("%s; overlap %v, winner overlap %v, guard contention %v: want inconclusive and no figures",
				got.Verdict.Status, c.Overlap, c.WinnerOverlap, c.GuardContention)
		}
	})
}

// An interrupted run judges what it has.
func TestInterrupted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		target, err := all.Open("sim:?latency=40ms")
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		s := scenarios.FailIfExists{}
		o := scenarios.NewJudge(scenarios.Terms{Scenario: s, Twin: s.Twin(), MinContended: 1, ControlRounds: 3,
			Thresholds: scenarios.DefaultThresholds})
		r, err := runner.Open(ctx, target, runner.Plan{Setup: runner.Setup{Run: "01TEST", Prefix: "contend-", Timeout: time.Second},
			Contenders: 12, Rounds: 1000, Race: s, Twin: s.Twin(), ControlRounds: 3})
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		summary := r.Run(ctx, runner.Observers{o, stopAfter{3, cancel}}, o)
		got := o.Conclude(runner.End{})
		if !summary.Interrupted || summary.Rounds != 3 || got.Verdict.Status != scenarios.Held || got.Contention.ContendedRounds != 3 {
			t.Errorf("interrupted %v after %d rounds: %s, %v", summary.Interrupted, summary.Rounds, got.Verdict.Status, got.Verdict.Reasons)
		}
	})
}

// stopAfter interrupts a run after some rounds.
type stopAfter struct {
	rounds int
	stop   func()
}

func (s stopAfter) Observe(e runner.Event) {
	if e.Round != nil && e.Round.Number == s.rounds {
		s.stop()
	}
}
