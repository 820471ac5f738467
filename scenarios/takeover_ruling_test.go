package scenarios

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"contend/runner"
	"contend/targets"
)

// takeoverStory is a round of leases with a time to live: one holder, and the contest
// for the lease that it leaves.
type takeoverStory struct {
	round  runner.Round
	lease  *Lease
	expiry time.Duration
	facts  []operation // of the contest, as each request tells by itself; of the holder's record reads show the old state
}

// leaseIn gives what is written for a lease of a period, by the token of an operation.
func leaseIn(period int, token string) targets.Record {
	return targets.Record{Token: storyKey + "-" + token + "-a1", Version: int64(period), Body: json.RawMessage(fmt.Sprintf(`{"period":%d,"expires_ns":0}`, period))}
}

// answerAll gives answers to the writes that have none: accepted where a read shows them.
func answerAll(operations []operation) {
	for i := range operations {
		if a := &operations[i]; a.kind == indeterminate {
			a.kind, a.ret = noEffect, a.call+8
			if slices.ContainsFunc(operations, func(b operation) bool { return b.kind == sawNew && b.token == a.token }) {
				a.kind = wrote
			}
		}
	}
}

// tellTakeover makes a story of what takeoverHistory gives, with answers that say
// nothing, requests that went out twice, and reads that failed, or were part of a
// write.
func tellTakeover(random *rand.Rand) *takeoverStory {
	const began = 10 // when the first of them may be called
	operations, expiry := takeoverHistory(random)
	if random.IntN(4) > 0 {
		answerAll(operations)
	}
	s := &takeoverStory{round: runner.Round{Number: 1, Key: storyKey}, lease: NewLease(), expiry: began + expiry}
	holder := runner.Exchange{Contender: 0, Call: 1, Return: 2, Reply: targets.Reply{Outcome: targets.OK, Attempts: 1},
		Op: targets.Op{Kind: targets.Write, Key: storyKey, Value: leaseIn(1, "c0")}}
	s.lease.Expiry, s.lease.Periods, s.lease.Term, s.lease.Tolerance = byTTL, 2, s.expiry-holder.Call, time.Hour
	s.round.Ops = append(s.round.Ops, holder)
	for i, a := range operations {
		if a.token = strings.Replace(a.token, "c", "c1", 1); a.token == "" {
			a.token = "c1" // apart from the holder's in any case
		}
		a.call += began
		if a.ret != forever {
			a.ret += began
		}
		x := runner.Exchange{Contender: i + 1, Call: a.call, Return: a.ret}
		if a.ret == forever {
			x.Return = a.call + time.Duration(random.IntN(20))
		}
		if tells := wordTakeover(random, &x, &a, holder.Op.Value); tells {
			s.facts = append(s.facts, a)
		}
		if x.Op.Kind == targets.Read {
			// Who reads has tried to take it before.
			tried := runner.Exchange{Contender: x.Contender, Call: 5, Return: 6, Reply: targets.Reply{Outcome: targets.Throttled, Attempts: 1},
				Op: targets.Op{Kind: targets.Write, Key: storyKey, Value: leaseIn(2, fmt.Sprintf("c2%d", i))}}
			s.round.Ops = append(s.round.Ops, tried)
		}
		s.round.Ops = append(s.round.Ops, x)
	}
	return s
}

// wordTakeover tells whether the request tells anything; it changes the operation where what
// is said is not what was done.
func wordTakeover(random *rand.Rand, x *runner.Exchange, a *operation, held targets.Record) bool {
	x.Op = targets.Op{Kind: targets.Write, Key: storyKey, Value: leaseIn(2, a.token), If: targets.Condition{Guard: targets.IfAbsent}}
	x.Reply.Attempts = 1
	again := random.IntN(30) == 0
	switch a.kind {
	case wrote:
		if x.Reply.Outcome = targets.OK; again {
			x.Reply.Attempts, a.retried = 2, true
		}
	case refused:
		if x.Reply.Outcome = targets.Conflict; again {
			x.Reply.Attempts, a.kind, a.ret = 2, indeterminate, forever
		}
	case indeterminate:
		x.Reply.Outcome = drawn(random, targets.Unknown, targets.Unmapped)
	case noEffect:
		x.Reply.Outcome = drawn(random, targets.Aborted, targets.Throttled, targets.NotSent)
	default:
		x.Reply.Outcome = targets.OK
		switch a.kind {
		case sawOld:
			x.Reply.Record = held
		case sawNothing:
			x.Reply.Outcome = targets.Missing
		default:
			x.Reply.Record = leaseIn(2, a.token)
		}
		switch random.IntN(8) {
		case 0:
			x.Op, x.Reply = targets.Op{Kind: targets.Read, Key: storyKey}, targets.Reply{Outcome: targets.Unknown}
			return false
		case 1, 2:
			if x.Reply.Outcome == targets.OK {
				x.Op.Value, x.Reply.Outcome, x.Reply.ByRead = leaseIn(2, fmt.Sprintf("c3%d", x.Contender)), targets.Conflict, true
			}
		}
		if !x.Reply.ByRead {
			x.Op = targets.Op{Kind: targets.Read, Key: storyKey}
		}
		if random.IntN(400) == 0 {
			a.kind, x.Reply.Record = sawForeign, targets.Record{Token: "somebody"}
			if !x.Reply.ByRead {
				x.Reply.Outcome = targets.OK
			}
		}
	}
	return true
}

// takeoverVerdict is what becomes of a story; unsure: nobody knows who holds the lease.
type takeoverVerdict struct{ void, violated, stale, unsure bool }

func (s *takeoverStory) ruled() (takeoverVerdict, Ruling) {
	j := NewJudge(Terms{Scenario: s.lease, Settle: storySettle, Thresholds: DefaultThresholds})
	j.Round(&s.round)
	r := j.findings[0].Rule()
	return takeoverVerdict{r.Void, r.Violation != nil || r.Indefinite, r.StaleRead, r.Unsettled > 0}, r
}

// wrong says in which way a verdict is not what the general checker makes of the
// contest; "" where it is.
func (s *takeoverStory) wrong(got takeoverVerdict) string {
	legal := func(facts []operation) bool {
		return porcupine.CheckOperations(takeoverModel, takeoverOperations(facts, s.expiry, forever))
	}
	is := func(kind operationKind) bool { return countKind(s.facts, kind) > 0 }
	if is(sawForeign) {
		if got.void {
			return ""
		}
		return "a foreign record is not seen"
	}
	// A reader that lags may show the holder's record, or none, when a write that was
	// accepted has been called, or another read has shown that there is a newer state.
	taken, gone := forever, forever
	for i := range s.facts {
		switch a := &s.facts[i]; a.kind {
		case wrote:
			taken = min(taken, a.call)
		case sawNew:
			taken = min(taken, a.ret)
		case sawNothing:
			gone = min(gone, a.ret)
		}
	}
	fresh := keeping(func(_ []operation, a *operation) bool {
		return a.kind != sawOld && a.kind != sawNothing || a.call <= taken && (a.kind == sawNothing || a.call <= gone)
	})(s.facts)
	switch {
	case got.void:
		return "void"
	case got.violated && legal(fresh):
		return "a false alarm"
	case got.violated:
		return ""
	case is(indeterminate) != got.unsure && countKind(s.facts, wrote) < 2:
		return "what is unknown is not told, or told of nothing"
	case got.unsure:
		return ""
	case !legal(fresh):
		return "a violation is overlooked"
	case got.stale != (len(fresh) < len(s.facts) && !legal(s.facts)):
		return "a stale read is overlooked, or told of nothing"
	}
	return ""
}

// eachTakeover changes the ops.
func eachTakeover(change func(*runner.Exchange)) func(*takeoverStory) {
	return func(s *takeoverStory) {
		for i := range s.round.Ops {
			change(&s.round.Ops[i])
		}
	}
}

// brokenTakeoverJudges are one with one thing wrong, as a change to what the right one
// is shown.
var brokenTakeoverJudges = []struct {
	name  string
	shown func(*takeoverStory)
}{
	{"the term is shorter", func(s *takeoverStory) { s.lease.Term -= 4 }},
	{"the term is longer", func(s *takeoverStory) { s.lease.Term += 4 }},
	{"a term counts from its answer", eachTakeover(func(x *runner.Exchange) {
		if x.Op.Value.Version == 1 {
			x.Call += 3
		}
	})},
	{"a read that failed shows that there is nothing", eachTakeover(func(x *runner.Exchange) {
		if x.Op.Kind == targets.Read && x.Reply.Outcome == targets.Unknown {
			x.Reply.Outcome = targets.Missing
		}
	})},
	{"reads of nothing are not looked at", eachTakeover(func(x *runner.Exchange) {
		if x.Reply.Outcome == targets.Missing {
			x.Reply.Outcome = targets.Throttled
		}
	})},
	{"reads of a record are not looked at", eachTakeover(func(x *runner.Exchange) {
		if x.Op.Kind == targets.Read && x.Reply.Outcome == targets.OK {
			x.Reply.Outcome = targets.Throttled
		}
	})},
	{"a refusal by a read is one by the guard", eachTakeover(func(x *runner.Exchange) { x.Reply.ByRead = false })},
	{"a refusal after two attempts is one", eachTakeover(func(x *runner.Exchange) {
		if x.Reply.Outcome == targets.Conflict {
			x.Reply.Attempts = 1
		}
	})},
	{"an unknown outcome is a refusal", eachTakeover(func(x *runner.Exchange) {
		if x.Op.Kind == targets.Write && x.Reply.Outcome == targets.Unknown {
			x.Reply.Outcome = targets.Conflict
		}
	})},
	{"what was aborted may have been applied", eachTakeover(func(x *runner.Exchange) {
		if x.Reply.Outcome == targets.Aborted {
			x.Reply.Outcome = targets.Unknown
		}
	})},
	{"refusals are not looked at", eachTakeover(func(x *runner.Exchange) {
		if x.Reply.Outcome == targets.Conflict && !x.Reply.ByRead && x.Reply.Attempts == 1 {
			x.Reply.Outcome = targets.Aborted
		}
	})},
	{"a second takeover is overlooked", func(s *takeoverStory) {
		won := false
		eachTakeover(func(x *runner.Exchange) {
			if x.Op.Value.Version == 2 && x.Reply.Outcome == targets.OK {
				if won {
					x.Reply.Outcome = targets.Conflict
				}
				won = true
			}
		})(s)
	}},
	{"a foreign record is none", eachTakeover(func(x *runner.Exchange) {
		if x.Reply.Record.Token == "somebody" {
			x.Reply = targets.Reply{Outcome: targets.Throttled, Attempts: 1}
		}
	})},
}

// A contest for a lease that has expired is ruled as the general checker rules it,
// without the reads that show less than somebody had been told, and nothing is said of
// one with an unknown outcome.
func TestTakeoverRuleInRulings(t *testing.T) {
	t.Parallel()
	const (
		trials = 200_000
		enough = 30
	)
	random := rand.New(rand.NewPCG(89, 97))
	var violated, stale, unsure, void int
	caught := make([]int, len(brokenTakeoverJudges))
	start := time.Now()
	for trial := range trials {
		s := tellTakeover(random)
		got, r := s.ruled()
		if wrong := s.wrong(got); wrong != "" {
			t.Fatalf("trial %d: %s: %+v (%+v), the expiry at %d:\n%+v", trial, wrong, got, r.Violation, s.expiry, s.facts)
		}
		for n, is := range map[*int]bool{&violated: got.violated, &stale: got.stale, &unsure: got.unsure, &void: got.void} {
			if is {
				*n++
			}
		}
		for i, b := range brokenTakeoverJudges {
			if caught[i] == enough {
				continue
			}
			shown := *s
			lease := *s.lease
			shown.lease, shown.round.Ops = &lease, slices.Clone(s.round.Ops)
			b.shown(&shown)
			if got, _ := shown.ruled(); s.wrong(got) != "" {
				caught[i]++
			}
		}
	}
	t.Logf("%d stories in %v: %d violated, %d with stale reads, %d unsure, %d void", trials, time.Since(start).Round(time.Millisecond), violated, stale, unsure, void)
	if min(violated, stale, unsure, void) < trials/2000 || violated > trials/2 {
		t.Error("the stories do not exercise the judging")
	}
	for i, b := range brokenTakeoverJudges {
		t.Logf("%3d disagreements: %s", caught[i], b.name)
		if caught[i] == 0 {
			t.Errorf("the broken judge was not caught: %s", b.name)
		}
	}
}
