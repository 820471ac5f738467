package scenarios_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"contend/runner"
	"contend/scenarios"
	"contend/targets"
	"contend/targets/all"
)

// raceOn is race on sessions that behave otherwise.
func raceOn(t *testing.T, s scenarios.Contest, url string, wrap func(targets.Session) targets.Session, change func(*runner.Plan)) judged {
	t.Helper()
	target, err := all.Open(url)
	if err != nil {
		t.Fatal(err)
	}
	return raceWith(t, s, wrapped{target, wrap}, change)
}

func kindsOf(v scenarios.Verdict) map[string]int {
	kinds := make(map[string]int)
	for _, violation := range v.Violations {
		kinds[violation.Kind]++
	}
	return kinds
}

// wantViolated wants every round violated, by this kind alone.
func wantViolated(t *testing.T, got judged, kind string) {
	t.Helper()
	v := got.Verdict
	if v.Status != scenarios.Violated || v.ViolatedRounds != got.summary.Rounds || len(kindsOf(v)) != 1 || kindsOf(v)[kind] == 0 {
		t.Errorf("%s in %d of %d rounds by %v (%v), want %s in all", v.Status, v.ViolatedRounds, got.summary.Rounds, kindsOf(v), v.Reasons, kind)
	}
	for _, violation := range v.Violations {
		if len(violation.Witness) != 2 && !strings.Contains(violation.Detail, "one request shows it") {
			t.Errorf("%s has a witness of %d requests, and does not say why: %+v", violation.Kind, len(violation.Witness), violation)
		}
	}
}

func lease(change func(*scenarios.Lease)) *scenarios.Lease {
	s := scenarios.NewLease()
	change(s)
	return s
}

// apartFaults are what the planted faults make of contests with a rule of their
// own: the kinds of violation, or nothing where the run is to be inconclusive.
var apartFaults = map[string]map[string][]string{
	"lease":           chained,
	"counter":         but(chained, "stale-read=9", nil),
	"duplicate-event": but(chained, "stale-read=9", nil),
}

// but is faults with another end of one of them.
func but(faults map[string][]string, fault string, kinds []string) map[string][]string {
	faults = maps.Clone(faults)
	faults[fault] = kinds
	return faults
}

var chained = map[string][]string{
	"two-winners":         {"several-winners"},
	"gap":                 {"several-winners"},
	"gap=1h":              nil,
	"no-winner":           {"no-winner"},
	"loser-stored":        {"refused-but-applied"},
	"lost-write":          {"several-winners", "old-state-after-refusal"},
	"version-jump":        {"wrong-version", "version-without-writer"},
	"condition-ignored":   {"second-create-accepted", "stale-write-accepted"},
	"reply-dropped":       nil,
	"error-after":         nil,
	"request-dropped":     nil,
	"request-dropped=0.5": nil,
	"error-before":        nil,
	"error-before=0.5":    nil,
	"throttle":            nil,
	"throttle=0.5":        nil,
	"unmapped":            nil,
	"stale-read=9":        {"old-state-after-refusal"},
	"foreign-writer":      nil,
}

// Every planted fault is told for what it is in the contests with rules of their
// own too, in every round: but of the counter, whose contenders go on writing, a
// stored refusal may be written over before anyone has read it.
func TestPlantedFaultsApart(t *testing.T) {
	for name, faults := range apartFaults {
		for fault, kinds := range faults {
			t.Run(name+"/"+fault, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					hidden := name == "counter" && fault == "loser-stored"
					got := race(t, scenarios.Find(name).(scenarios.Contest), "sim:?latency=40ms&fault="+fault, func(p *runner.Plan) {
						if hidden {
							p.Rounds = 30 // so that most show it, whoever wins
						}
					})
					v := got.Verdict
					if kinds == nil {
						if v.Status != scenarios.Inconclusive || len(v.Reasons) == 0 {
							t.Errorf("%s: %v %+v", v.Status, v.Reasons, kindsOf(v))
						}
						return
					}
					needed := got.summary.Rounds
					switch {
					case fault == "condition-ignored":
						needed = 0 // seen in the controls, and no race was run
					case hidden:
						needed = needed/2 + 1
					}
					if v.Status != scenarios.Violated || v.ViolatedRounds < needed {
						t.Fatalf("%s in %d of %d rounds: %v", v.Status, v.ViolatedRounds, got.summary.Rounds, v.Reasons)
					}
					for kind := range kindsOf(v) {
						if !slices.Contains(kinds, kind) {
							t.Errorf("violated by %s, want one of %q", kind, kinds)
						}
					}
				})
			})
		}
	}
}

// Honest stores are not accused, and the twins always are.
func TestContestsApart(t *testing.T) {
	for name := range apartFaults {
		s := scenarios.Find(name).(scenarios.Contest)
		synctest.Test(t, func(t *testing.T) {
			got := race(t, s, "sim:?latency=1ms..9ms", func(p *runner.Plan) { p.Rounds, p.Contenders = 500, 5 })
			if got.Verdict.Status != scenarios.Held || got.summary.Rounds != 500 {
				t.Errorf("%s after %d rounds: %v %+v", got.Verdict.Status, got.summary.Rounds, got.Verdict.Reasons, kindsOf(got.Verdict))
			}
		})
		synctest.Test(t, func(t *testing.T) {
			got := race(t, s.Twin(), "sim:?latency=1ms..9ms", func(p *runner.Plan) { p.Rounds = 50 })
			if v := got.Verdict; v.Status != scenarios.Violated || !v.Expected || v.ViolatedRounds != 50 {
				t.Errorf("%s without its guard: %s in %d rounds, expected %v: %v", name, v.Status, v.ViolatedRounds, v.Expected, v.Reasons)
			}
		})
	}
}

// unseedable does not take the seeds of the race.
type unseedable struct {
	targets.Session
	applied bool // it does, and says nothing
}

func (u unseedable) Do(ctx context.Context, op targets.Op) targets.Reply {
	if op.Kind != targets.Write || !strings.HasSuffix(op.Value.Token, "-seed") || strings.Contains(op.Key, "-t") {
		return u.Session.Do(ctx, op)
	}
	if u.applied {
		u.Session.Do(ctx, op)
		return targets.Reply{Outcome: targets.Unknown, Code: "timeout", Message: "no answer", Attempts: 1}
	}
	return targets.Reply{Outcome: targets.Throttled, Code: "OOM", Message: "command not allowed when used memory > 'maxmemory'", Attempts: 1}
}

// A round whose start state is not known is never ruled, whatever its late reads show,
// and the reason is what the seed was answered with.
func TestUnseededRoundIsNeverRuled(t *testing.T) {
	for _, s := range scenarios.Contests() {
		if len(s.Seeds("k")) == 0 {
			continue
		}
		for _, applied := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/applied=%v", s.Info().Name, applied), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					got := raceOn(t, s, "sim:?latency=40ms", func(s targets.Session) targets.Session { return unseedable{s, applied} },
						func(p *runner.Plan) { p.SkipControls = true })
					if v := got.Verdict; v.Status != scenarios.Inconclusive || len(v.Violations) > 0 || got.Contention.UncertainRounds != got.summary.Rounds {
						t.Fatalf("%s by %v, %d of %d rounds uncertain", v.Status, kindsOf(v), got.Contention.UncertainRounds, got.summary.Rounds)
					}
					want := map[bool]string{false: "OOM", true: "timeout"}[applied]
					if text := fmt.Sprint(got.Verdict.Reasons); !strings.Contains(text, "could not be seeded: "+want) || got.Refusal == nil || got.Refusal.Code != want {
						t.Errorf("%s; first refusal %+v", text, got.Refusal)
					}
				})
			})
		}
	}
}

// Several periods have one holder each, and a former holder is refused.
func TestLeasePeriods(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		got := race(t, lease(func(s *scenarios.Lease) { s.Periods, s.Term = 4, time.Second }), "sim:?latency=40ms", nil)
		if got.Verdict.Status != scenarios.Held || got.Winners.Min != 4 || got.Winners.Max != 4 {
			t.Errorf("%s, %+v: %v %+v", got.Verdict.Status, got.Winners, got.Verdict.Reasons, got.Verdict.Violations)
		}
	})
}

// What a natural test shows: all but one lose at the read, and nobody reaches the
// condition. That is no evidence, and the report tells the share.
func TestLeaseNaturalTestIsInconclusive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := lease(func(s *scenarios.Lease) { s.ReadBarrier, s.Term = false, time.Minute })
		got := race(t, s, "sim:?latency=40ms", func(p *runner.Plan) { p.Stagger = 400 * time.Millisecond })
		if got.Verdict.Status != scenarios.Inconclusive || got.Detail.Lease.ReadShare != 1 || got.Detail.Lease.AtRead != 66 {
			t.Errorf("%s: %+v, %v", got.Verdict.Status, got.Detail.Lease, got.Verdict.Reasons)
		}
		if !strings.Contains(strings.Join(got.Verdict.Reasons, ""), "lost at the read") {
			t.Errorf("reasons %q", got.Verdict.Reasons)
		}
	})
}

// openWork ignores conditions on the record of the holders.
type openWork struct{ targets.Session }

func (o openWork) Do(ctx context.Context, op targets.Op) targets.Reply {
	if strings.HasSuffix(op.Key, "-work") && op.Kind == targets.Write && op.If.Guard != targets.Unguarded {
		op.If = targets.Condition{}
	}
	return o.Session.Do(ctx, op)
}

func TestLeaseFenceThatLetsFormerHoldersIn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := lease(func(s *scenarios.Lease) { s.Periods, s.Term = 6, time.Second })
		got := raceOn(t, s, "sim:?latency=40ms", func(s targets.Session) targets.Session { return openWork{s} }, nil)
		if kinds := kindsOf(got.Verdict); got.Verdict.Status != scenarios.Violated || kinds["stale-fence-accepted"] == 0 {
			t.Errorf("%s by %v", got.Verdict.Status, kinds)
		}
	})
}

// hasty shows leases that have run out long ago, so that they are taken at once.
type hasty struct{ targets.Session }

func (h hasty) Do(ctx context.Context, op targets.Op) targets.Reply {
	r := h.Session.Do(ctx, op)
	if op.Kind == targets.Read && r.Record.Version > 0 {
		r.Record.Body = json.RawMessage(`{"period":1,"expires_ns":0}`)
	}
	return r
}

// appliesAt applies what it refuses of keys that end so.
type appliesAt struct {
	targets.Session
	suffix string
}

func (s appliesAt) Do(ctx context.Context, op targets.Op) targets.Reply {
	reply := s.Session.Do(ctx, op)
	if reply.Outcome == targets.Conflict && strings.HasSuffix(op.Key, s.suffix) {
		op.If = targets.Condition{}
		s.Session.Do(ctx, op)
	}
	return reply
}

// showsAt shows something else of keys that end so, from the second time on where it
// is late.
type showsAt struct {
	targets.Session
	suffix string
	change func(*targets.Reply)
	late   bool
	seen   *sync.Map // keys that were read
}

func (s showsAt) Do(ctx context.Context, op targets.Op) targets.Reply {
	reply := s.Session.Do(ctx, op)
	if op.Kind == targets.Read && reply.Outcome == targets.OK && strings.HasSuffix(op.Key, s.suffix) && strings.Contains(op.Key, "-r") {
		if _, again := s.seen.LoadOrStore(op.Key, true); !s.late || again {
			s.change(&reply)
		}
	}
	return reply
}

// The other keys of a round are looked at like its own: what is read there was
// accepted there.
func TestOtherKeysOfARound(t *testing.T) {
	leases := lease(func(s *scenarios.Lease) { s.Periods, s.Term = 4, time.Second })
	shows := func(suffix string, late bool, change func(*targets.Reply)) func(targets.Session) targets.Session {
		seen := new(sync.Map)
		return func(s targets.Session) targets.Session { return showsAt{s, suffix, change, late, seen} }
	}
	body := func(r *targets.Reply) { r.Record.Body = json.RawMessage(`{"other":1}`) }
	foreign := func(r *targets.Reply) { r.Record = targets.Record{Token: "somebody-else", Version: 1} }
	refused := func(r *targets.Reply) { r.Record.Token = strings.TrimSuffix(r.Record.Token, "1") + "77" }
	for _, c := range []struct {
		name string
		s    scenarios.Contest
		wrap func(targets.Session) targets.Session
		kind string // "": inconclusive
	}{
		{"a refused fenced write is applied", leases, func(s targets.Session) targets.Session { return appliesAt{s, "-work"} }, "refused-but-applied"},
		{"another writes to the holders' record", leases, shows("-work", false, foreign), ""},
		{"another token of the round is read late there", leases, shows("-work", true, refused), "refused-but-applied"},
		{"another body of the marker", scenarios.NewDuplicateEvent(), shows("-marker", false, body), "changed-value"},
		{"another body of the marker, later on", scenarios.NewDuplicateEvent(), shows("-marker", true, body), "changed-value"},
		{"another writes the marker", scenarios.NewDuplicateEvent(), shows("-marker", false, foreign), ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				got := raceOn(t, c.s, "sim:?latency=40ms", c.wrap, func(p *runner.Plan) { p.Contenders = 2 })
				v := got.Verdict
				if c.kind == "" && (v.Status != scenarios.Inconclusive || !strings.Contains(fmt.Sprint(v.Reasons), "nobody of this run wrote")) ||
					c.kind != "" && (v.Status != scenarios.Violated || len(kindsOf(v)) != 1 || kindsOf(v)[c.kind] == 0) {
					t.Errorf("%s by %v, want %q: %v", v.Status, kindsOf(v), c.kind, v.Reasons)
				}
			})
		})
	}
}

func TestLeaseTakenBeforeItsExpiry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := lease(func(s *scenarios.Lease) { s.Periods, s.Term = 3, time.Hour })
		got := raceOn(t, s, "sim:?latency=40ms", func(s targets.Session) targets.Session { return hasty{s} }, nil)
		wantViolated(t, got, "early-takeover")
	})
}

// The trap of a lease by TTL: after its expiry nobody can take it. A store that
// frees a key at once is held.
func TestLeaseByTTL(t *testing.T) {
	byTTL := func(s *scenarios.Lease) { s.Expiry, s.Term = "ttl", time.Second }
	for _, skip := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			got := race(t, lease(byTTL), "sim:?latency=40ms&sweep=1h", func(p *runner.Plan) { p.SkipControls = skip })
			wantViolated(t, got, "ghost")
		})
	}
	synctest.Test(t, func(t *testing.T) {
		if got := race(t, lease(byTTL), "sim:?latency=40ms&sweep=0s", nil); got.Verdict.Status != scenarios.Held || got.Winners.Min != 2 {
			t.Errorf("%s, %+v: %v %+v", got.Verdict.Status, got.Winners, got.Verdict.Reasons, got.Verdict.Violations)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		early := lease(func(s *scenarios.Lease) { s.Expiry, s.Term = "ttl", 2*time.Second })
		got := raceOn(t, early, "sim:?latency=40ms&sweep=0s", func(s targets.Session) targets.Session { return &reopens{s} }, nil)
		if kinds := kindsOf(got.Verdict); got.Verdict.Status != scenarios.Violated {
			t.Errorf("%s by %v", got.Verdict.Status, kinds)
		}
	})
}

// What a lease by time to live is on stores that are wrong: of those that are, each
// is violated for what it is; where nobody can tell, it is inconclusive.
func TestLeaseByTTLOnWrongStores(t *testing.T) {
	for fault, kinds := range map[string][]string{
		"loser-stored":      {"refused-but-applied"},
		"lost-write":        {"early-takeover"},
		"version-jump":      {"wrong-version"},
		"early-expiry":      {"early-takeover"},
		"two-winners":       {"several-winners"},
		"no-winner":         {"no-winner"},
		"gap":               {"several-winners"},
		"condition-ignored": {"second-create-accepted", "stale-write-accepted"},
		"foreign-writer":    nil,
		"stale-read":        nil,
		"error-after":       nil,
		"reply-dropped":     nil,
		"unmapped":          nil,
	} {
		t.Run(fault, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := lease(func(s *scenarios.Lease) { s.Expiry, s.Term = "ttl", 2*time.Second })
				got := race(t, s, "sim:?latency=20ms&sweep=0s&fault="+fault, nil)
				v := got.Verdict
				if kinds == nil {
					if v.Status != scenarios.Inconclusive || len(v.Reasons) == 0 {
						t.Errorf("%s by %v: %v", v.Status, kindsOf(v), v.Reasons)
					}
					return
				}
				if v.Status != scenarios.Violated {
					t.Fatalf("%s: %v", v.Status, v.Reasons)
				}
				for kind := range kindsOf(v) {
					if !slices.Contains(kinds, kind) {
						t.Errorf("violated by %s, want one of %q", kind, kinds)
					}
				}
				for _, violation := range v.Violations {
					if len(violation.Witness) != 2 && !strings.Contains(violation.Detail, "one request shows it") {
						t.Errorf("a witness of one request, and no reason: %+v", violation)
					}
				}
			})
		})
	}
}

// shortlived ends a lease after a share of its term.
type shortlived struct {
	targets.Session
	share float64
}

func (s shortlived) Do(ctx context.Context, op targets.Op) targets.Reply {
	reply := s.Session.Do(ctx, op)
	if reply.Outcome == targets.OK && op.TTL > 0 {
		time.AfterFunc(time.Duration(s.share*float64(op.TTL)), func() {
			s.Session.Do(context.Background(), targets.Op{Kind: targets.Delete, Key: op.Key, Collection: op.Collection})
		})
	}
	return reply
}

// takesOver is GETSET: the refused contender's record is stored.
type takesOver struct{ targets.Session }

func (s takesOver) Do(ctx context.Context, op targets.Op) targets.Reply {
	reply := s.Session.Do(ctx, op)
	if reply.Outcome == targets.Conflict && op.If.Guard == targets.IfAbsent && op.TTL > 0 {
		op.If = targets.Condition{}
		s.Session.Do(ctx, op)
	}
	return reply
}

// A lease that lives a part of its term is taken early by whoever tries inside it;
// one that a refused contender's token stands in is no lease.
func TestLeaseByTTLThatDoesNotLast(t *testing.T) {
	for _, share := range []float64{0.01, 0.33, 0.5, 0.7} {
		synctest.Test(t, func(t *testing.T) {
			s := lease(func(s *scenarios.Lease) { s.Expiry, s.Term = "ttl", 4*time.Second })
			got := raceOn(t, s, "sim:?latency=5ms&sweep=0s", func(s targets.Session) targets.Session { return shortlived{s, share} }, nil)
			if v := got.Verdict; v.Status != scenarios.Violated || kindsOf(v)["early-takeover"] == 0 {
				t.Errorf("living %v of its term: %s by %v: %v", share, v.Status, kindsOf(v), v.Reasons)
			}
		})
	}
	synctest.Test(t, func(t *testing.T) {
		s := lease(func(s *scenarios.Lease) { s.Expiry, s.Term = "ttl", 4*time.Second })
		wantViolated(t, raceOn(t, s, "sim:?latency=20ms&sweep=0s", func(s targets.Session) targets.Session { return takesOver{s} }, nil), "refused-but-applied")
	})
}

// What was not tried is not claimed.
func TestLeaseClaimsWhatWasTried(t *testing.T) {
	for _, c := range []struct {
		change  func(*scenarios.Lease)
		claimed bool
	}{
		{func(s *scenarios.Lease) { s.Expiry, s.Term = "ttl", 2*time.Second }, true},
		{func(s *scenarios.Lease) {}, false}, // one period: no former holder
		{func(s *scenarios.Lease) { s.Periods, s.Term = 4, time.Second }, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			got := race(t, lease(c.change), "sim:?latency=40ms&sweep=0s", nil)
			if untested := strings.Contains(got.Verdict.Property, "not tested"); untested == c.claimed {
				t.Errorf("property %q", got.Verdict.Property)
			}
		})
	}
}

// generous grants far longer than was asked for, and says so.
type generous struct{ targets.Session }

func (s generous) Do(ctx context.Context, op targets.Op) targets.Reply {
	op.TTL *= 30
	r := s.Session.Do(ctx, op)
	if op.TTL > 0 && r.Outcome == targets.OK {
		r.Granted = op.TTL
	}
	return r
}

// That an expired lease can be taken again is not claimed where nobody ever did.
func TestLeaseByTTLThatNobodyTakesAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := lease(func(s *scenarios.Lease) { s.Expiry, s.Term = "ttl", 2*time.Second })
		got := raceOn(t, s, "sim:?latency=20ms&sweep=0s", func(s targets.Session) targets.Session { return generous{s} }, nil)
		if v := got.Verdict; v.Status == scenarios.Violated || !strings.Contains(v.Property, "taken again once it has expired was not tested (no round") ||
			strings.Contains(v.Property, "during a term was not tested") {
			t.Errorf("%s: %q, %v", v.Status, v.Property, v.Reasons)
		}
	})
}

// reopens lets a second create in while the first holds the key.
type reopens struct{ targets.Session }

func (r *reopens) Do(ctx context.Context, op targets.Op) targets.Reply {
	if op.If.Guard == targets.IfAbsent && op.TTL > 0 {
		op.If = targets.Condition{}
	}
	return r.Session.Do(ctx, op)
}

// Only a flag that outlives the attempts and not the run holds; how the marker is
// claimed changes none of it.
func TestDuplicateEventVariants(t *testing.T) {
	for saw, kind := range map[string]string{"run": "", "attempt": "marker-deleted", "none": "marker-deleted", "process": "silenced"} {
		for _, claim := range []string{"atomic", "check-then-set", "none"} {
			// Without a claim nothing silences anybody, whoever deletes what.
			if claim == "none" {
				switch saw {
				case "run":
					kind = "spoke-again"
				case "process":
					kind = "spoke-again"
				}
			}
			t.Run(saw+"/"+claim, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := scenarios.NewDuplicateEvent()
					s.Saw, s.Claim = saw, claim
					got := race(t, s, "sim:?latency=40ms", func(p *runner.Plan) { p.Contenders = 2 })
					if kind != "" {
						wantViolated(t, got, kind)
					} else if got.Verdict.Status != scenarios.Held {
						t.Errorf("%s: %v %+v", got.Verdict.Status, got.Verdict.Reasons, got.Verdict.Violations)
					}
				})
			})
		}
	}
}

// The branches of the incident, in its own order.
func TestDuplicateEventTellsTheBranches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := scenarios.NewDuplicateEvent()
		s.Saw = "attempt"
		got := race(t, s, "sim:?latency=40ms", func(p *runner.Plan) { p.Contenders = 2 })
		want := map[string]string{
			"duplicate that repaired the page": "repaired, claimed the marker, commented",
			"other duplicate":                  "refused, read again; clean page: cleared the marker",
			"third delivery":                   "repaired, claimed the marker, commented",
			"clean save":                       "clean page: cleared the marker",
			"delivery of a new incident":       "repaired, claimed the marker, commented",
		}
		for _, d := range got.Detail.Deliveries {
			if want[d.Delivery] != d.Branch || d.Count != 6 {
				t.Errorf("%s: %s, %d times", d.Delivery, d.Branch, d.Count)
			}
			delete(want, d.Delivery)
		}
		if len(want) > 0 {
			t.Errorf("not told: %v", want)
		}
	})
}

// keepsMarkers accepts that a marker is deleted, and keeps it.
type keepsMarkers struct{ targets.Session }

func (s keepsMarkers) Do(ctx context.Context, op targets.Op) targets.Reply {
	if op.Kind == targets.Delete && strings.HasSuffix(op.Key, "-marker") {
		return targets.Reply{Outcome: targets.OK, Attempts: 1}
	}
	return s.Session.Do(ctx, op)
}

// A handler that has cleared the marker is not said not to have.
func TestDuplicateEventOnAStoreThatKeepsMarkers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		got := raceOn(t, scenarios.NewDuplicateEvent(), "sim:?latency=40ms", func(s targets.Session) targets.Session { return keepsMarkers{s} },
			func(p *runner.Plan) { p.Contenders = 2 })
		wantViolated(t, got, "silenced")
		if v := got.Verdict.Violations; len(v) > 0 && (!strings.Contains(v[0].Detail, "holds it still") || v[0].Witness[0].Request != "clear the marker") {
			t.Errorf("%+v", v[0])
		}
	})
}

// A duplicate that comes when all is over reads a clean page and clears the marker,
// whatever its own flag says: nobody has lost, and the violation does not say so.
func TestDuplicateEventThatComesLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := scenarios.NewDuplicateEvent()
		s.ForceConflict = false
		_ = s.Offsets.Set("5s")
		got := race(t, s, "sim:?latency=40ms", func(p *runner.Plan) { p.Contenders = 2 })
		wantViolated(t, got, "late-delivery-cleared")
	})
}

// The atomic claim is named as untested where nobody contended for the marker.
func TestDuplicateEventTellsThatTheClaimWasNotContendedFor(t *testing.T) {
	for claim, untested := range map[string]bool{"atomic": true, "check-then-set": false} {
		synctest.Test(t, func(t *testing.T) {
			s := scenarios.NewDuplicateEvent()
			s.Claim = claim
			got := race(t, s, "sim:?latency=40ms", func(p *runner.Plan) { p.Contenders = 2 })
			if told := strings.Contains(got.Verdict.Property, "was not contended for"); got.Verdict.Status != scenarios.Held || told != untested {
				t.Errorf("claim %s: %s, %q", claim, got.Verdict.Status, got.Verdict.Property)
			}
		})
	}
}

// cutsKeys keeps so many characters of a key.
type cutsKeys struct {
	targets.Session
	length int
}

func (c cutsKeys) Do(ctx context.Context, op targets.Op) targets.Reply {
	op.Key = op.Key[:min(len(op.Key), c.length)]
	return c.Session.Do(ctx, op)
}

// alters shows other bodies than were written.
type alters struct {
	targets.Session
	change func(*targets.Reply)
}

func (a alters) Do(ctx context.Context, op targets.Op) targets.Reply {
	r := a.Session.Do(ctx, op)
	if op.Kind == targets.Read && r.Outcome == targets.OK && r.Record.Version > 0 {
		a.change(&r)
	}
	return r
}

// What a key holds must be what was written to it: another round's record, our own
// cut short or another body is the store's doing, and nobody else's.
func TestValueIsWhatTheKeyHolds(t *testing.T) {
	for name, c := range map[string]struct {
		wrap func(targets.Session) targets.Session
		kind string
		from int // the first round that it shows in
	}{
		"keys are cut short": {func(s targets.Session) targets.Session { return cutsKeys{s, len("contend-01TEST-r")} }, "misplaced-record", 2},
		"another body": {func(s targets.Session) targets.Session {
			return alters{s, func(r *targets.Reply) { r.Record.Body = json.RawMessage(`"other"`) }}
		}, "changed-value", 1},
		"no body": {func(s targets.Session) targets.Session {
			return alters{s, func(r *targets.Reply) { r.Record.Body = nil }}
		}, "changed-value", 1},
		"our record cut short": {func(s targets.Session) targets.Session {
			return alters{s, func(r *targets.Reply) { r.Stored, r.Record = `{"token":"`+r.Record.Token+`","ver`, targets.Record{} }}
		}, "changed-value", 1},
	} {
		for _, s := range []scenarios.Contest{scenarios.FailIfExists{}, scenarios.NewCounter()} {
			if name == "keys are cut short" && s.Info().Guard != targets.IfAbsent {
				continue // its seeds would be of all rounds
			}
			t.Run(s.Info().Name+"/"+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					got := raceOn(t, s, "sim:?latency=40ms", c.wrap, func(p *runner.Plan) { p.SkipControls = true })
					if v := got.Verdict; v.Status != scenarios.Violated || v.ViolatedRounds != got.summary.Rounds-c.from+1 || len(kindsOf(v)) != 1 || kindsOf(v)[c.kind] == 0 {
						t.Errorf("%s in %d of %d rounds by %v: %v", v.Status, v.ViolatedRounds, got.summary.Rounds, kindsOf(v), v.Reasons)
					}
				})
			})
		}
	}
}

// The price of the guard is counted, not estimated.
func TestCounterPrice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := scenarios.NewCounter()
		s.Backoff, s.Times = "none", 2
		got := race(t, s, "sim:?latency=40ms", func(p *runner.Plan) { p.Contenders = 4 })
		p := got.Detail.Counter
		// All move in step: of each four tries one succeeds, and a round takes as many steps as there are successes.
		if got.Verdict.Status != scenarios.Held || p.Successes != 6*8 || p.TriesMax < 4 || p.Wasted <= 0.5 || p.Contenders != 4 {
			t.Errorf("%s: %+v", got.Verdict.Status, p)
		}
		if each := p.Elapsed / 6; each != 8*80*time.Millisecond {
			t.Errorf("a round takes %s, want 8 steps of a read and a write", each)
		}
		if p.PerSecond < 12.4 || p.PerSecond > 12.6 {
			t.Errorf("%v successes a second, want one in 80 ms", p.PerSecond)
		}
	})
}
