package runner_test

import (
	"context"
	"encoding/json"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"contend/runner"
	"contend/scenarios"
	"contend/targets"
)

func TestOffsets(t *testing.T) {
	got := runner.Sweep{Most: 10 * time.Millisecond, Steps: 5}.Offsets()
	if want := []time.Duration{-10e6, -5e6, 0, 5e6, 10e6}; !slices.Equal(got, want) {
		t.Errorf("%s, want %s", got, want)
	}
	for _, s := range []runner.Sweep{{Most: time.Minute, Steps: 1001}, {Most: time.Microsecond, Steps: 3}, {Most: 100 * time.Microsecond, Steps: 21}, {Most: 10e6, Steps: 7}} {
		all := s.Offsets()
		if !s.Valid() || !slices.IsSorted(all) || all[0] != -s.Most || all[s.Steps-1] != s.Most || all[s.Steps/2] != 0 {
			t.Errorf("%+v: valid %v, %s", s, s.Valid(), all)
		}
		for i, offset := range all {
			if all[s.Steps-1-i] != -offset || s.Offset(i+1+3*s.Steps) == nil || *s.Offset(i + 1 + 3*s.Steps) != offset {
				t.Errorf("%+v: offset %d is %s", s, i, offset)
			}
		}
	}
	for _, s := range []runner.Sweep{{Most: 1e6}, {Steps: 21}, {Most: -1e6, Steps: 21}, {Most: 1e6, Steps: 20}, {Most: 1e6, Steps: 1}, {Most: 1e6, Steps: -3},
		{Most: 1e6, Steps: 1003}, {Most: time.Minute + 1, Steps: 21}, {Most: 9 * time.Microsecond, Steps: 21}} {
		if s.Valid() {
			t.Errorf("%+v is valid", s)
		}
	}
	if none := (runner.Sweep{}); !none.Valid() || none.Offset(1) != nil {
		t.Error("no sweep has an offset, or is invalid")
	}
}

// Of two contenders the second is released at the offset, to the nanosecond where the
// clock is as fine; the rounds of the control know none.
func TestSweepReleases(t *testing.T) {
	for _, lead := range []time.Duration{0, 300 * time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			p := plan(2, 14)
			p.Sweep = runner.Sweep{Most: 21 * time.Microsecond, Steps: 7}
			p.Race, p.Twin, p.ControlRounds, p.SkipControls = scenarios.FailIfExists{}, scenarios.CheckThenSet{}, 2, false
			h, _ := run(t, &scripted{lead: lead, do: always(targets.OK)}, p)
			if len(h.rounds) != 14 {
				t.Fatalf("%d rounds", len(h.rounds))
			}
			for i, r := range h.rounds {
				want := time.Duration(i%7-3) * 7 * time.Microsecond
				if r.Offset == nil || *r.Offset != want || r.Ops[1].Call-r.Ops[0].Call != want {
					t.Errorf("round %d: offset %v, called %s apart, want %s", r.Number, r.Offset, r.Ops[1].Call-r.Ops[0].Call, want)
				}
				if apart := r.Ops[1].Op.NotBefore.Sub(r.Ops[0].Op.NotBefore); lead > 0 && apart != want || r.Ops[0].Op.NotBefore.IsZero() != (lead == 0) {
					t.Errorf("round %d: not before instants %s apart, want %s", r.Number, apart, want)
				}
			}
			for _, r := range h.controls[0].Twin {
				if r.Offset != nil || r.Ops[0].Call != r.Ops[1].Call {
					t.Errorf("the control has an offset: %v, %s and %s", r.Offset, r.Ops[0].Call, r.Ops[1].Call)
				}
			}
		})
	}
}

// Contenders of a relayed target that are staggered reach the store so: each is given
// an instant of its own.
func TestStaggerOfARelayedTarget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := plan(3, 1)
		p.Stagger = 100 * time.Millisecond
		h, _ := run(t, &scripted{lead: 300 * time.Millisecond, do: always(targets.OK)}, p)
		for i, x := range h.rounds[0].Ops {
			if apart := x.Op.NotBefore.Sub(h.rounds[0].Ops[0].Op.NotBefore); apart != time.Duration(i)*p.Stagger {
				t.Errorf("contender %d: not before %s after the first", i, apart)
			}
		}
	})
}

// A limit on the rate holds although the second request of a round comes late.
func TestSweepKeepsToTheLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limit := targets.Limit{Requests: 4, Per: time.Second}
		p := plan(2, 9)
		p.Sweep, p.Limits = runner.Sweep{Most: 900 * time.Millisecond, Steps: 3}, []targets.Limit{limit}
		target := &scripted{do: always(targets.OK)}
		run(t, target, p)
		for i := range target.at[:len(target.at)-4] {
			if within := target.at[i+4].Sub(target.at[i]); within < limit.Per {
				t.Errorf("requests %d to %d were sent within %s", i, i+4, within)
			}
		}
	})
}

// An interrupted round of a sweep is settled with both its contenders.
func TestInterruptedSweep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		target := &scripted{do: always(targets.OK)}
		p := plan(2, 3)
		p.Sweep = runner.Sweep{Most: time.Second, Steps: 3}
		h := &history{}
		time.AfterFunc(500*time.Millisecond, cancel)
		summary := start(t, target, p).Run(ctx, h, nil)
		if !summary.Interrupted || len(h.rounds) != 1 || len(h.rounds[0].Ops) != 2 || h.rounds[0].Ops[0].Call-h.rounds[0].Ops[1].Call != time.Second {
			t.Errorf("%+v, %+v", summary, h.rounds)
		}
	})
}

// A record holds the offsets.
func TestRecordOfASweep(t *testing.T) {
	offset := -3 * time.Millisecond
	got := throughJSON(t, runner.Round{Number: 1, Offset: &offset})
	if got.Offset == nil || *got.Offset != offset {
		t.Errorf("%v", got.Offset)
	}
	if zero := time.Duration(0); throughJSON(t, runner.Round{Offset: &zero}).Offset == nil || throughJSON(t, runner.Round{}).Offset != nil {
		t.Error("an offset of 0 and none are the same")
	}
}

func throughJSON(t *testing.T, r runner.Round) (got runner.Round) {
	t.Helper()
	b, err := json.Marshal(r)
	if err == nil {
		err = json.Unmarshal(b, &got)
	}
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// What a plan takes, offsets of the release included, is what the run takes.
func TestSweepTakesWhatIsPlanned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := plan(2, 9)
		p.SkipControls, p.Late = true, time.Second
		p.Sweep, p.Limits = runner.Sweep{Most: 900 * time.Millisecond, Steps: 3}, []targets.Limit{{Requests: 4, Per: time.Second}}
		target := &scripted{do: always(targets.OK)}
		began := time.Now()
		run(t, target, p)
		if took, want := time.Since(began), p.Takes(target.Describe()); (took - want).Abs() > 100*time.Millisecond {
			t.Errorf("it took %s, and %s were planned", took, want)
		}
	})
}
