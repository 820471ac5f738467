package scenarios

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"contend/runner"
)

// history gives a small random round: what an atomic register would have
// answered, with unknown outcomes and many ties; half are then mutated.
func history(random *rand.Rand) []operation {
	n := 2 + random.IntN(7)
	operations := make([]operation, n)
	points := make([]time.Duration, n)
	order := random.Perm(n)
	for i := range operations {
		call := time.Duration(random.IntN(12))
		length := time.Duration(random.IntN(8))
		operations[i] = operation{call: call, ret: call + length, who: int32(i), token: fmt.Sprintf("c%d", i)}
		points[i] = call + time.Duration(random.IntN(int(length)+1))
	}
	// Serve them by their instants, ties in any order.
	for i := 1; i < n; i++ {
		for j := i; j > 0 && points[order[j]] < points[order[j-1]]; j-- {
			order[j], order[j-1] = order[j-1], order[j]
		}
	}
	held := ""
	for _, i := range order {
		a := &operations[i]
		switch random.IntN(4) {
		case 0:
			a.kind, a.token = sawNew, held
			if held == "" {
				a.kind = sawOld
			}
		case 1:
			a.kind, a.ret = indeterminate, forever
			if held == "" && random.IntN(2) == 0 {
				held = a.token
			}
		default:
			a.kind = refused
			if held == "" {
				a.kind, held = wrote, a.token
			}
		}
	}
	if random.IntN(2) == 0 {
		mutate(operations, random)
	}
	return operations
}

// mutate makes the history a lie in one place, which may still be legal.
func mutate(operations []operation, random *rand.Rand) {
	a := &operations[random.IntN(len(operations))]
	switch random.IntN(4) {
	case 0:
		a.call = time.Duration(random.IntN(16))
		a.ret = max(a.ret, a.call)
	case 1:
		if a.ret != forever {
			a.ret = a.call + time.Duration(random.IntN(3))
		}
	case 2:
		a.kind, a.token = []operationKind{wrote, refused, sawOld}[random.IntN(3)], fmt.Sprintf("c%d", a.who)
		if a.ret == forever {
			a.ret = a.call + time.Duration(random.IntN(8))
		}
	default:
		a.kind, a.token = sawNew, fmt.Sprintf("c%d", random.IntN(len(operations)))
		if a.ret == forever {
			a.ret = a.call + 1
		}
	}
}

// brokenChecker is the round rule with one thing wrong, as a change to what the
// right one is shown.
type brokenChecker struct {
	name  string
	wrong func([]operation) []operation
}

func without(kind operationKind) func([]operation) []operation {
	return func(operations []operation) []operation {
		var kept []operation
		for _, a := range operations {
			if a.kind != kind {
				kept = append(kept, a)
			}
		}
		return kept
	}
}

func changed(change func(*operation)) func([]operation) []operation {
	return func(operations []operation) []operation {
		out := append([]operation(nil), operations...)
		for i := range out {
			change(&out[i])
		}
		return out
	}
}

var brokenCheckers = []brokenChecker{
	{"reads of the old state are not looked at", without(sawOld)},
	{"reads of the new state are not looked at", without(sawNew)},
	{"refusals are not looked at", without(refused)},
	{"an unknown outcome never wins", without(indeterminate)},
	{"an unknown outcome is a loss", changed(func(a *operation) {
		if a.kind == indeterminate {
			a.kind, a.ret = refused, a.call+4
		}
	})},
	{"a second winner is overlooked", func(operations []operation) []operation {
		var kept []operation
		for _, a := range operations {
			if a.kind != wrote || countKind(kept, wrote) == 0 {
				kept = append(kept, a)
			}
		}
		return kept
	}},
	{"the unknown outcome called last is taken", func(operations []operation) []operation {
		last := time.Duration(-1)
		for _, a := range operations {
			if a.kind == indeterminate {
				last = max(last, a.call)
			}
		}
		var kept []operation
		for _, a := range operations {
			if a.kind != indeterminate || a.call == last {
				kept = append(kept, a)
			}
		}
		return kept
	}},
	{"the winner's return gives no bound", changed(func(a *operation) {
		if a.kind == wrote {
			a.ret = forever
		}
	})},
	{"a refusal gives no bound", changed(func(a *operation) {
		if a.kind == refused {
			a.ret = forever
		}
	})},
	{"intervals are open", changed(func(a *operation) {
		a.call = 2*a.call + 1
		if a.ret != forever {
			a.ret = max(2*a.ret, a.call)
		}
	})},
}

// The round rule, its reduction and the general checker agree on random
// histories, and every broken rule is told apart from them.
func TestRoundRuleAgreesWithLinearizability(t *testing.T) {
	const trials = 200_000
	random := rand.New(rand.NewPCG(7, 11))
	caught := make(map[string]int)
	illegal := 0
	for trial := range trials {
		operations := history(random)
		legal := checkRound(operations) == nil
		general, known := secondOpinion(operations)
		if !known || general != legal {
			t.Fatalf("trial %d: the rule says legal=%v, the general checker %v (known %v):\n%+v", trial, legal, general, known, operations)
		}
		if reduced := reduce(operations); (checkRound(reduced) == nil) != legal {
			t.Fatalf("trial %d: reduced, the ruling is no longer legal=%v:\n%+v\n%+v", trial, legal, operations, reduced)
		}
		if !legal {
			illegal++
		}
		for _, broken := range brokenCheckers {
			if (checkRound(broken.wrong(operations)) == nil) != general {
				caught[broken.name]++
			}
		}
	}
	t.Logf("%d of %d histories were illegal", illegal, trials)
	if illegal < trials/20 || illegal > trials*19/20 {
		t.Errorf("%d of %d histories were illegal: they do not exercise the rule", illegal, trials)
	}
	for _, broken := range brokenCheckers {
		t.Logf("%6d disagreements: %s", caught[broken.name], broken.name)
		if caught[broken.name] == 0 {
			t.Errorf("the broken checker was not caught: %s", broken.name)
		}
	}
}

// The reduced history with few unknown outcomes, which is what the second
// opinion is asked about, is ruled as the whole.
func TestSecondOpinionOnReducedHistory(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 5))
	for trial := range 20_000 {
		operations := history(random)
		legal := checkRound(operations) == nil
		if got, known := secondOpinion(fewIndeterminate(reduce(operations))); !known || got != legal {
			t.Fatalf("trial %d: legal=%v, but %v of the reduced history:\n%+v", trial, legal, got, operations)
		}
	}
}

func TestRoundRuleNamesTheAnomaly(t *testing.T) {
	w := operation{kind: wrote, call: 10, ret: 20, token: "w"}
	l := operation{kind: refused, call: 12, ret: 18, token: "l"}
	u := operation{kind: indeterminate, call: 10, ret: forever, token: "u"}
	old := func(call, ret time.Duration) operation {
		return operation{kind: sawOld, call: call, ret: ret, who: runner.ByRunner}
	}
	fresh := func(token string, call, ret time.Duration) operation {
		return operation{kind: sawNew, token: token, call: call, ret: ret, who: runner.ByRunner}
	}
	early := operation{kind: refused, call: 1, ret: 9, token: "l"}
	for _, c := range []struct {
		name       string
		operations []operation
		want       string
	}{
		{"nobody did anything", nil, ""},
		{"one winner, one loser", []operation{w, l, fresh("w", 30, 31)}, ""},
		{"a refusal that touches the winner's call", []operation{w, {kind: refused, call: 1, ret: 10}}, ""},
		{"an unknown outcome may have won", []operation{u, l}, ""},
		{"nobody won and nobody was refused", []operation{old(30, 31)}, ""},
		{"two winners", []operation{w, {kind: wrote, call: 11, ret: 19, token: "v"}}, "several-winners"},
		{"two owners", []operation{u, {kind: indeterminate, call: 9, ret: forever, token: "v"}, fresh("u", 30, 31), fresh("v", 32, 33)}, "two-owners"},
		{"another owner", []operation{w, u, fresh("u", 30, 31)}, "wrong-owner"},
		{"an owner that never wrote", []operation{fresh("x", 30, 31)}, "owner-never-wrote"},
		{"no winner", []operation{l, old(30, 31)}, "no-winner"},
		{"refused before the winner was called", []operation{w, early}, "refused-before-winner"},
		{"read before it was written", []operation{w, fresh("w", 1, 9)}, "read-before-write"},
		{"lost", []operation{w, l, old(30, 31)}, "lost-write"},
		{"old state after a refusal", []operation{u, l, old(30, 31)}, "old-state-after-refusal"},
		{"the state went back", []operation{u, fresh("u", 30, 31), old(32, 33)}, "state-went-back"},
	} {
		got := ""
		if b := checkRound(c.operations); b != nil {
			got = b.kind
			if anomalyText[got] == "" {
				t.Errorf("%s: anomaly %q has no text", c.name, got)
			}
		}
		if got != c.want {
			t.Errorf("%s: got anomaly %q, want %q", c.name, got, c.want)
		}
	}
}

func BenchmarkCheckRound5000(b *testing.B) {
	random := rand.New(rand.NewPCG(1, 1))
	operations := make([]operation, 5000)
	for i := range operations {
		operations[i] = operation{kind: refused, call: time.Duration(random.IntN(1000)), ret: time.Duration(2000 + random.IntN(1000)), token: fmt.Sprint(i)}
		if random.IntN(20) == 0 {
			operations[i].kind, operations[i].ret = indeterminate, forever
		}
	}
	operations[4000].kind = wrote
	b.ResetTimer()
	for b.Loop() {
		if checkRound(operations) != nil {
			b.Fatal("the round is legal")
		}
	}
}
