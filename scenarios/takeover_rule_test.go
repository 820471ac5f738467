package scenarios

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"contend/runner"
)

// takeoverInput is an operation, or the sweep, as the general checker's model of a key
// that expires sees it.
type takeoverInput struct {
	kind  operationKind
	token string
	sweep bool
}

// takeoverState is the record: the old one, none, or a new one with its token.
type takeoverState struct {
	shows operationKind // sawOld, sawNothing, sawNew
	token string
}

// takeoverModel is a key with a record that is swept once, at a time of the store's
// choice, and that can be created when it is absent.
var takeoverModel = porcupine.Model{
	Init: func() any { return takeoverState{shows: sawOld} },
	Step: func(state, input, _ any) (bool, any) {
		s, in := state.(takeoverState), input.(takeoverInput)
		absent := s.shows == sawNothing
		switch {
		case in.sweep && s.shows == sawOld:
			return true, takeoverState{shows: sawNothing}
		case in.sweep:
			return true, s
		case absent && (in.kind == wrote || in.kind == indeterminate):
			return true, takeoverState{sawNew, in.token}
		case in.kind == wrote:
			return false, s
		case in.kind == refused:
			return !absent, s
		case in.kind == sawNew:
			return s == takeoverState{sawNew, in.token}, s
		case in.kind >= sawOld:
			return s.shows == in.kind, s
		default:
			return true, s
		}
	},
}

// takeoverOperations are the operations and the sweep between two times.
func takeoverOperations(operations []operation, from, to time.Duration) []porcupine.Operation {
	ops := make([]porcupine.Operation, 0, len(operations)+1)
	for i := range operations {
		a := &operations[i]
		ops = append(ops, porcupine.Operation{ClientId: i, Input: takeoverInput{kind: a.kind, token: a.token}, Call: int64(a.call), Return: int64(a.ret)})
	}
	return append(ops, porcupine.Operation{ClientId: len(operations), Input: takeoverInput{sweep: true}, Call: int64(from), Return: int64(to)})
}

// takeoverHistory gives a small random history: what an atomic store would have
// answered that sweeps a record at some time after its expiry, or never; many are
// then mutated.
func takeoverHistory(random *rand.Rand) (operations []operation, expiry time.Duration) {
	operations, points := inOrder(random, 3+random.IntN(8))
	expiry = time.Duration(random.IntN(12))
	sweep := expiry + time.Duration(random.IntN(9))
	if random.IntN(12) == 0 {
		sweep = forever
	}
	unknown := 0.1 + 0.5*random.Float64()
	old, token := true, ""
	for i := range operations {
		a := &operations[i]
		if points[i] > sweep || points[i] == sweep && random.IntN(2) == 0 {
			old = false
		}
		absent := !old && token == ""
		switch {
		case random.IntN(20) < 9:
			a.kind, a.token = sawNew, token
			if old {
				a.kind = sawOld
			} else if absent {
				a.kind = sawNothing
			}
			continue
		case random.Float64() < unknown:
			a.kind, a.ret = indeterminate, forever
			absent = absent && random.IntN(2) == 0
		case random.IntN(16) == 0:
			a.kind, absent = noEffect, false
		case absent:
			a.kind = wrote
		default:
			a.kind = refused
		}
		if absent {
			token = a.token
		}
	}
	for random.IntN(5) < 3 {
		operations = mutateHistory(operations, random)
	}
	return operations, expiry
}

// brokenTakeovers are the rule of a takeover with one thing wrong, as a change to
// what the right one is shown.
var brokenTakeovers = []brokenChecker{
	{"the expiry is not looked at", changed(func(a *operation) {
		if a.call += 1000; a.ret != forever {
			a.ret += 1000
		}
	})},
	{"a takeover counts when it is sent", changedOf(wrote, func(a *operation) { a.ret = a.call })},
	{"reads of the old record are not looked at", without(sawOld)},
	{"reads of no record are not looked at", without(sawNothing)},
	{"reads of the new record are not looked at", without(sawNew)},
	{"refusals are not looked at", without(refused)},
	{"a refusal always comes before the sweep", changedOf(refused, func(a *operation) { a.kind = sawOld })},
	{"a refusal always comes after the takeover", changedOf(refused, func(a *operation) { a.call = forever })},
	{"a refusal counts when it returns", changedOf(refused, func(a *operation) { a.call = a.ret })},
	{"a refusal counts when it is called", changedOf(refused, func(a *operation) { a.ret = a.call })},
	{"reads of no record do not bound the sweep", changedOf(sawNothing, func(a *operation) { a.ret = forever })},
	{"reads of no record do not hold the takeover back", changedOf(sawNothing, func(a *operation) { a.call = beforeAll })},
	{"reads of the new record do not bound the takeover", changedOf(sawNew, func(a *operation) { a.ret = forever })},
	{"an unknown outcome was not applied", without(indeterminate)},
	{"an unknown outcome is a loss", changedOf(indeterminate, func(a *operation) { a.kind, a.ret = refused, a.call+4 })},
	{"the unknown outcome called last is taken", keeping(func(all []operation, a *operation) bool {
		return a.kind != indeterminate || !slices.ContainsFunc(all, func(b operation) bool { return b.kind == indeterminate && b.call > a.call })
	})},
	{"a second takeover is overlooked", func(operations []operation) []operation {
		var kept []operation
		for _, a := range operations {
			if a.kind != wrote || countKind(kept, wrote) == 0 {
				kept = append(kept, a)
			}
		}
		return kept
	}},
	{"the writer's return gives no bound", changedOf(wrote, func(a *operation) { a.ret = forever })},
	{"the writer's call gives no bound", changedOf(wrote, func(a *operation) { a.call = beforeAll })},
	{"tokens are not compared", changed(func(a *operation) { a.token = "" })},
	{"what was aborted may have been applied", changedOf(noEffect, func(a *operation) { a.kind, a.ret = indeterminate, forever })},
	{"intervals are open", changed(openInterval)},
}

func TestTakeoverRuleAgreesWithLinearizability(t *testing.T) {
	var expiry time.Duration
	draw := func(random *rand.Rand) (operations []operation) {
		operations, expiry = takeoverHistory(random)
		return operations
	}
	asModel := func(operations []operation) []porcupine.Operation {
		return takeoverOperations(operations, expiry, forever)
	}
	crossCheck(t, rand.New(rand.NewPCG(43, 47)), takeoverModel, draw, asModel, func(operations []operation) *anomaly {
		_, b := checkTakeover(operations, expiry)
		return b
	}, brokenTakeovers)
}

// The general checker finds the sweep possible at exactly those times that the rule
// gives.
func TestTakeoverBoundsTheSweep(t *testing.T) {
	random := rand.New(rand.NewPCG(53, 59))
	bounded, byRefusals := 0, 0
	for trial := range 4000 {
		operations, expiry := takeoverHistory(random)
		sweep, b := checkTakeover(operations, expiry)
		if b != nil {
			continue
		}
		const end = 40 // after all that has a time
		for at := expiry; at <= end; at++ {
			possible := porcupine.CheckOperations(takeoverModel, takeoverOperations(operations, at, at))
			if possible != (sweep.earliest <= at && at <= sweep.latest) {
				t.Fatalf("trial %d: a sweep at %d after expiry at %d is possible=%v, but %+v:\n%+v", trial, at, expiry, possible, sweep, operations)
			}
		}
		if sweep.earliest < expiry || sweep.latest > end && sweep.latest != forever {
			t.Fatalf("trial %d: %+v, with the expiry at %d:\n%+v", trial, sweep, expiry, operations)
		}
		if sweep.latest < forever {
			bounded++
		}
		if weaker, b := checkTakeover(without(refused)(operations), expiry); b == nil && weaker != sweep {
			byRefusals++
		}
	}
	t.Logf("%d with a latest time; %d bounded by refusals", bounded, byRefusals)
	if bounded == 0 || byRefusals == 0 {
		t.Error("the histories do not exercise it")
	}
}

// expiringStore is an honest store with a record that it sweeps.
type expiringStore struct {
	sweep time.Duration
	token string // of the new record
}

func (s *expiringStore) serve(a *operation, now time.Duration) {
	old := now < s.sweep
	switch {
	case a.kind == sawNew && old:
		a.kind = sawOld
	case a.kind == sawNew && s.token == "":
		a.kind = sawNothing
	case a.kind == sawNew:
		a.token = s.token
	case !old && s.token == "":
		s.token = a.token
	case a.kind == wrote:
		a.kind = refused
	}
}

func TestTakeoverOfAnHonestStore(t *testing.T) {
	random := rand.New(rand.NewPCG(61, 67))
	// Some look before they create.
	next := func(last *operation) operation {
		if last != nil && last.kind != sawNothing && random.IntN(3) > 0 {
			return operation{kind: sawNew}
		}
		return operation{kind: wrote}
	}
	taken, unknown := 0, 0
	var wide time.Duration
	for round := range 500 {
		expiry := time.Duration(random.IntN(30_000))
		s := expiringStore{sweep: expiry + time.Duration(random.IntN(20_000))}
		operations := honestRun(random, 24, 1000, next, s.serve)
		sweep, b := checkTakeover(operations, expiry)
		if b != nil {
			t.Fatalf("round %d: a false alarm: %s\n%+v\n%+v", round, b.kind, b.a, b.b)
		}
		if s.sweep < sweep.earliest || s.sweep > sweep.latest {
			t.Fatalf("round %d: swept at %d, not in %+v", round, s.sweep, sweep)
		}
		if sweep.latest < forever {
			taken++
			wide += sweep.latest - sweep.earliest
		}
		if s.token != "" && countKind(operations, wrote) == 0 {
			unknown++
		}
	}
	t.Logf("%d rounds with a takeover or an absence, the sweep within %d on average; %d by unknown outcomes", taken, int(wide)/max(taken, 1), unknown)
	if taken == 0 || unknown == 0 {
		t.Error("the rounds do not exercise the rule")
	}
}

func TestTakeoverRuleNamesTheAnomaly(t *testing.T) {
	at := func(kind operationKind, token string, call, ret time.Duration) operation {
		return operation{kind: kind, token: token, call: call, ret: ret}
	}
	const expiry = 100
	w := at(wrote, "w", 120, 130)
	u := at(indeterminate, "u", 120, forever)
	for _, c := range []struct {
		name             string
		operations       []operation
		want             string
		a, b             int // places of the witness; -1: none
		earliest, latest time.Duration
	}{
		{name: "nothing", earliest: expiry, latest: forever},
		{name: "taken over", operations: []operation{at(sawOld, "", 110, 111), w, at(sawNew, "w", 140, 141)}, earliest: 110, latest: 130},
		{name: "taken over before any other", operations: []operation{at(refused, "l", 112, 115), w}, earliest: 112, latest: 130},
		{name: "refused by the new record", operations: []operation{w, at(refused, "l", 121, 125)}, earliest: expiry, latest: 130},
		{name: "seen gone", operations: []operation{at(sawOld, "", 101, 102), at(sawNothing, "", 105, 106)}, earliest: 101, latest: 106},
		{name: "an uncertain takeover", operations: []operation{u, at(refused, "l", 125, 126)}, earliest: expiry, latest: forever},
		{name: "an uncertain takeover that was read", operations: []operation{u, at(sawNew, "u", 140, 141)}, earliest: expiry, latest: 141},
		{name: "sent before the expiry", operations: []operation{at(wrote, "w", 90, 100)}, earliest: expiry, latest: 100},
		{"two takeovers", []operation{w, at(wrote, "v", 140, 150)}, "several-winners", 0, 1, 0, 0},
		{"two owners", []operation{u, at(indeterminate, "v", 120, forever), at(sawNew, "u", 140, 141), at(sawNew, "v", 142, 143)}, "two-owners", 2, 3, 0, 0},
		{"another owner", []operation{w, u, at(sawNew, "u", 140, 141)}, "wrong-owner", 0, 2, 0, 0},
		{"an owner that never wrote", []operation{at(sawNew, "z", 140, 141)}, "owner-never-wrote", 0, -1, 0, 0},
		{"an owner that was refused", []operation{at(refused, "l", 120, 121), at(sawNew, "l", 140, 141)}, "refused-but-applied", 0, 1, 0, 0},
		{"taken over early", []operation{at(wrote, "w", 90, 99)}, "early-takeover", 0, -1, 0, 0},
		{"taken over early, as was read", []operation{at(indeterminate, "u", 90, forever), at(sawNew, "u", 95, 99)}, "early-takeover", 1, -1, 0, 0},
		{"gone early", []operation{at(sawNothing, "", 90, 99)}, "early-expiry", 0, -1, 0, 0},
		{"read before it was written", []operation{w, at(sawNew, "w", 110, 119)}, "read-before-write", 1, 0, 0, 0},
		{"the old record after the new one", []operation{u, at(sawNew, "u", 125, 126), at(sawOld, "", 127, 128)}, "state-went-back", 1, 2, 0, 0},
		{"the old record after it was gone", []operation{at(sawNothing, "", 110, 111), at(sawOld, "", 112, 113)}, "state-went-back", 0, 1, 0, 0},
		{"nothing after the new one", []operation{u, at(sawNew, "u", 125, 126), at(sawNothing, "", 127, 128)}, "state-went-back", 1, 2, 0, 0},
		{"the old record after the takeover", []operation{w, at(sawOld, "", 140, 141)}, "stale-read-after-write", 0, 1, 0, 0},
		{"nothing after the takeover", []operation{w, {kind: sawNothing, who: runner.ByRunner, call: 140, ret: 141}}, "lost-write", 0, 1, 0, 0},
		{"refused while it was gone", []operation{at(sawNothing, "", 110, 111), at(refused, "l", 112, 113), w}, "refused-while-absent", 0, 1, 0, 0},
		{"refused while it was gone, and nobody wrote", []operation{at(sawNothing, "", 110, 111), at(refused, "l", 112, 113)}, "refused-while-absent", 0, 1, 0, 0},
	} {
		sweep, b := checkTakeover(c.operations, expiry)
		if b == nil {
			if want := (sweepTime{c.earliest, c.latest}); c.want != "" || sweep != want {
				t.Errorf("%s: got %+v, want %q or %+v", c.name, sweep, c.want, want)
			}
			continue
		}
		if b.kind != c.want || b.a != operationAt(c.operations, c.a) || b.b != operationAt(c.operations, c.b) {
			t.Errorf("%s: got anomaly %q of\n%+v\n%+v\nwant %q of %d and %d", c.name, b.kind, b.a, b.b, c.want, c.a, c.b)
		}
		checkWitness(t, b)
	}
}
