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

func lostUpdate(change func(*scenarios.LostUpdate)) *scenarios.LostUpdate {
	s := scenarios.NewLostUpdate()
	change(s)
	return s
}

var onConflict = []string{"give-up", "reload", "merge"}

// Every planted fault is told for what it is, whatever editors do that are refused
// and whatever guards them.
func TestLostUpdateFaults(t *testing.T) {
	for _, c := range []struct {
		fault  string
		status scenarios.Status
		kind   string
		reason string
	}{
		{"two-winners", scenarios.Violated, "lost-update", ""},
		{"gap", scenarios.Violated, "lost-update", ""},
		{"condition-ignored", scenarios.Violated, "lost-update", ""},
		{"no-winner", scenarios.Violated, "no-winner", ""},
		{"loser-stored", scenarios.Violated, "refused-but-applied", ""},
		{"lost-write", scenarios.Violated, "lost-write", ""},
		{"version-jump", scenarios.Violated, "version-jump", ""},
		{"reply-dropped", scenarios.Inconclusive, "", "controls were skipped"},
		{"error-after", scenarios.Inconclusive, "", "controls were skipped"},
		{"foreign-writer", scenarios.Inconclusive, "", "nobody of this run wrote"},
		{"stale-read=99", scenarios.Violated, "lost-write", ""},
		{"throttle=0", scenarios.Inconclusive, "", "controls were skipped"},
	} {
		for _, mode := range onConflict {
			for _, guard := range []string{"version", "timestamp"} {
				t.Run(c.fault+"/"+mode+"/"+guard, func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						s := lostUpdate(func(s *scenarios.LostUpdate) { s.OnConflict, s.Guard, s.Attempts = mode, guard, 4 })
						if guard == "timestamp" {
							s.Precision = "ms"
						}
						want := c
						switch {
						case (c.fault == "loser-stored" || c.fault == "version-jump") && mode != "give-up":
							// Both write once more, a while after: what comes of that depends on who has read before.
							return
						case guard == "timestamp" && c.fault == "version-jump":
							// It compares no versions.
							want.status, want.kind, want.reason = scenarios.Inconclusive, "", "controls were skipped"
						}
						got := race(t, s, "sim:?latency=40ms&fault="+c.fault, func(p *runner.Plan) { p.SkipControls = true })
						if want.status == scenarios.Violated {
							wantViolated(t, got, want.kind)
							return
						}
						v := got.Verdict
						if v.Status != want.status || !strings.Contains(strings.Join(v.Reasons, "; "), want.reason) {
							t.Errorf("%s: %v %+v, want %s because of %q", v.Status, v.Reasons, v.Violations, want.status, want.reason)
						}
					})
				})
			}
		}
	}
}

// An honest store is never accused, whatever refused editors do, and what they did
// is told.
func TestLostUpdateHonestStore(t *testing.T) {
	const rounds, editors = 500, 6
	for _, mode := range onConflict {
		for _, guard := range []string{"version", "timestamp"} {
			t.Run(mode+"/"+guard, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := lostUpdate(func(s *scenarios.LostUpdate) { s.OnConflict, s.Guard = mode, guard })
					if guard == "timestamp" {
						s.Precision = "ms"
					}
					got := race(t, s, "sim:?latency=2ms..9ms", func(p *runner.Plan) { p.Rounds, p.Contenders = rounds, editors })
					v, e := got.Verdict, got.Detail.Edits
					if guard == "timestamp" && v.Status == scenarios.Violated {
						// Of editors who read anew two may save within one millisecond: then it is no guard.
						if mode == "give-up" || kindsOf(v)["lost-update"] != len(v.Violations) {
							t.Errorf("%+v", v.Violations)
						}
						return
					}
					if v.Status != scenarios.Held || got.Contention.ContendedRounds != rounds || e.Lost+e.Unexpected > 0 {
						t.Errorf("%s, %d contended, %+v: %v %+v", v.Status, got.Contention.ContendedRounds, e, v.Reasons, v.Violations)
					}
					each := editors
					if mode == "give-up" {
						each = 1
					}
					if e.Acknowledged != rounds*each || e.Recovered != rounds*(each-1) {
						t.Errorf("%d acknowledged, %d recovered, want %d and %d", e.Acknowledged, e.Recovered, rounds*each, rounds*(each-1))
					}
				})
			})
		}
	}
}

// A time in whole seconds is no guard: both edits are accepted, and one is lost, in
// every round, whatever a refused editor would do; and so is one in milliseconds
// where all edits fall into one.
func TestLostUpdateCoarseTimestamp(t *testing.T) {
	for _, c := range []struct{ precision, target string }{{"s", "sim:"}, {"s", "sim:?latency=5ms"}, {"ms", "sim:?latency=0"}} {
		for _, n := range []int{2, 12} {
			for _, mode := range onConflict {
				t.Run(fmt.Sprintf("%s/%s/%d/%s", c.precision, c.target, n, mode), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						s := lostUpdate(func(s *scenarios.LostUpdate) { s.Guard, s.Precision, s.OnConflict = "timestamp", c.precision, mode })
						got := race(t, s, c.target, func(p *runner.Plan) { p.Contenders = n })
						wantViolated(t, got, "lost-update")
						if e := got.Detail.Edits; e.Acknowledged != 6*n || e.Lost != 6*(n-1) || e.Story == nil {
							t.Errorf("%+v", e)
						}
						if got.Contention.ContendedRounds != 6 {
							t.Errorf("%d contended rounds", got.Contention.ContendedRounds)
						}
					})
				})
			}
		}
	}
}

// Edits so slow that the second is over do not put a guard in whole seconds to the
// test, and are not said to have shown that it holds.
func TestLostUpdateSlowerThanTheTick(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := lostUpdate(func(s *scenarios.LostUpdate) { s.Guard = "timestamp" })
		got := race(t, s, "sim:?latency=600ms", nil)
		if v := got.Verdict; v.Status != scenarios.Inconclusive || !strings.Contains(fmt.Sprint(v.Reasons), "the second of their document was over") {
			t.Errorf("%s: %v %+v", v.Status, v.Reasons, v.Violations)
		}
	})
}

// Two editors open the document, one saves, the other saves over it.
func TestLostUpdateStory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		got := race(t, lostUpdate(func(s *scenarios.LostUpdate) { s.Guard = "none" }), "sim:?latency=40ms", func(p *runner.Plan) { p.Contenders, p.Rounds = 2, 3 })
		wantViolated(t, got, "lost-update")
		e := got.Detail.Edits
		if !got.Verdict.Expected || e.Acknowledged != 6 || e.Lost != 3 || len(e.Items) != 3 {
			t.Errorf("expected %v, %+v", got.Verdict.Expected, e)
		}
		lost, over := e.Story.Lost, e.Story.Over
		if lost.Editor == over.Editor || !lost.Told || !over.Told || lost.Opened > over.Call || over.Opened > lost.Call || lost.Held+over.Held != 0 {
			t.Errorf("%+v", e.Story)
		}
		for _, item := range e.Items {
			if item.Became != "lost" || item.By == "" || item.By == item.Token {
				t.Errorf("%+v", item)
			}
		}
		if len(e.Story.Holds) != 1 || e.Story.Holds[0] != e.Items[0].By {
			t.Errorf("the document holds %q, written over by %q", e.Story.Holds, e.Items[0].By)
		}
	})
}

// aborts the first write of every editor on condition of something, as stores do
// that abort transactions; the second is as the store has it.
type aborts struct{ targets.Session }

func (a *aborts) Do(ctx context.Context, op targets.Op) targets.Reply {
	if op.Kind == targets.Write && strings.HasSuffix(op.Value.Token, "-a1") && op.If.Guard != targets.Unguarded {
		return targets.Reply{Outcome: targets.Aborted, Code: "40001", Attempts: 1}
	}
	return a.Session.Do(ctx, op)
}

// An editor whose write the store aborted sends the same again, on the same
// condition: so a store that aborts hides no coarse guard. Who is refused then gives
// up.
func TestLostUpdateAborted(t *testing.T) {
	abort := func(s targets.Session) targets.Session { return &aborts{s} }
	synctest.Test(t, func(t *testing.T) {
		got := raceOn(t, lostUpdate(func(s *scenarios.LostUpdate) { s.Guard = "timestamp" }), "sim:?latency=5ms", abort, nil)
		wantViolated(t, got, "lost-update")
	})
	synctest.Test(t, func(t *testing.T) {
		got := raceOn(t, lostUpdate(func(*scenarios.LostUpdate) {}), "sim:?latency=5ms", abort, func(p *runner.Plan) { p.SkipControls = true })
		if got.Verdict.Status != scenarios.Inconclusive || got.Contention.ContendedRounds != 6 || got.Winners.One != 6 || got.Detail.Edits.Recovered != 6 ||
			got.summary.Requests != 6*(1+12*3+2) {
			t.Errorf("%s, %+v, %+v: %v %+v", got.Verdict.Status, got.Winners, got.Detail.Edits, got.Verdict.Reasons, got.Verdict.Violations)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		s := lostUpdate(func(s *scenarios.LostUpdate) { s.Attempts = 1 })
		got := raceOn(t, s, "sim:?latency=5ms", abort, func(p *runner.Plan) { p.SkipControls = true })
		if got.Winners.None != 6 || len(got.Verdict.Violations) > 0 || !strings.Contains(fmt.Sprint(got.Verdict.Reasons), "no accepted edit") {
			t.Errorf("%+v: %v %+v", got.Winners, got.Verdict.Reasons, got.Verdict.Violations)
		}
	})
}

// An interrupted editor leaves where it would have tried again.
func TestLostUpdateInterrupted(t *testing.T) {
	for _, mode := range onConflict[1:] {
		synctest.Test(t, func(t *testing.T) {
			target, err := all.Open("sim:?latency=40ms")
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			s := lostUpdate(func(s *scenarios.LostUpdate) { s.OnConflict = mode })
			o := scenarios.NewJudge(scenarios.Terms{Scenario: s, MinContended: 1, Thresholds: scenarios.DefaultThresholds})
			r, err := runner.Open(ctx, target, runner.Plan{Setup: runner.Setup{Run: "01TEST", Prefix: "contend-", Timeout: time.Second, SkipControls: true},
				Contenders: 12, Rounds: 1000, Race: s, Unguarded: true})
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			// In the midst of the first round: all have read and are writing.
			time.AfterFunc(100*time.Millisecond, cancel)
			summary := r.Run(ctx, o, o)
			got := o.Conclude(runner.End{})
			if !summary.Interrupted || summary.Rounds != 1 || got.Winners.Max != 1 || len(got.Verdict.Violations) > 0 {
				t.Errorf("%s: interrupted %v after %d rounds, %+v %+v", mode, summary.Interrupted, summary.Rounds, got.Winners, got.Verdict.Violations)
			}
		})
	}
}

func TestLostUpdateParameters(t *testing.T) {
	for _, c := range []struct {
		change func(*scenarios.LostUpdate)
		says   []string
	}{
		{func(*scenarios.LostUpdate) {}, nil},
		{func(s *scenarios.LostUpdate) { s.Guard, s.Precision, s.OnConflict = "timestamp", "us", "merge" }, nil},
		{func(s *scenarios.LostUpdate) { s.Guard, s.OnConflict = "none", "reload" }, nil},
		{func(s *scenarios.LostUpdate) { s.Precision = "ms" }, []string{"--precision ms: goes with --guard timestamp"}},
		{func(s *scenarios.LostUpdate) { s.Guard, s.Precision, s.OnConflict, s.Attempts = "luck", "ns", "cry", 0 },
			[]string{`--guard "luck": there are version, timestamp, none`, `--precision "ns": there are`, `--on-conflict "cry": there are`, "--attempts 0: from 1"}},
	} {
		s := lostUpdate(c.change)
		err := s.Check()
		if (err != nil) != (len(c.says) > 0) {
			t.Errorf("%+v: %v", s, err)
		}
		for _, text := range c.says {
			if err != nil && !slices.ContainsFunc(strings.Split(err.Error(), "\n"), func(line string) bool { return strings.HasPrefix(line, text) }) {
				t.Errorf("%+v: %v does not say %q", s, err, text)
			}
		}
	}
}
