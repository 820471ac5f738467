package scenarios

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"contend/runner"
)

// chainInput is an operation as the general checker's model of a chain sees it.
type chainInput struct {
	kind    operationKind
	version int64
	token   string
	end     bool // nothing happens after it; it asks for the version
}

type chainState struct {
	version int64
	token   string
	ended   bool
}

// chainModel is a record whose every write asks for the version before it. A write
// that may have been applied has no return time: if it never was, it comes last.
var chainModel = porcupine.Model{
	Init: func() any { return chainState{} },
	Step: func(state, input, _ any) (bool, any) {
		s, in := state.(chainState), input.(chainInput)
		applied := chainState{in.version, in.token, false}
		fits := s.version == in.version-1
		switch {
		case in.end:
			return s.version == in.version, chainState{in.version, s.token, true}
		case in.kind == indeterminate && (s.ended || !fits), in.kind == noEffect:
			return true, s
		case in.kind == indeterminate:
			return true, applied
		case in.kind == wrote:
			return fits, applied
		case in.kind == refused:
			return !fits, s
		case in.kind == sawOld:
			return s.version == 0 && in.version == 0, s
		case in.kind == sawNew:
			return s.version == in.version && s.token == in.token && s.version > 0, s
		default:
			return false, s
		}
	},
}

func chainOperations(operations []operation) []porcupine.Operation {
	ops := make([]porcupine.Operation, 0, len(operations)+1)
	for i := range operations {
		a := &operations[i]
		ops = append(ops, porcupine.Operation{ClientId: i, Input: chainInput{kind: a.kind, version: a.version, token: a.token},
			Call: int64(a.call), Return: int64(a.ret)})
	}
	return ops
}

// inOrder gives small random intervals with many ties, each with an instant in it,
// by their instants.
func inOrder(random *rand.Rand, n int) ([]operation, []time.Duration) {
	operations := make([]operation, n)
	points := make([]time.Duration, n)
	order := random.Perm(n)
	for i := range operations {
		call, length := time.Duration(random.IntN(14)), time.Duration(random.IntN(7))
		operations[i] = operation{call: call, ret: call + length, who: int32(i), token: fmt.Sprintf("c%d", i)}
		points[i] = call + time.Duration(random.IntN(int(length)+1))
		if random.IntN(4) == 0 {
			points[i] = call + length
		}
	}
	slices.SortStableFunc(order, func(i, j int) int { return int(points[i] - points[j]) })
	sorted := make([]operation, n)
	for to, from := range order {
		sorted[to] = operations[from]
	}
	slices.Sort(points)
	return sorted, points
}

// chainHistory gives a small random history: what an atomic store would have
// answered; many are then mutated.
func chainHistory(random *rand.Rand) []operation {
	operations, _ := inOrder(random, 3+random.IntN(8))
	unknown := 0.1 + 0.4*random.Float64()
	var version int64
	token := ""
	for i := range operations {
		a := &operations[i]
		if random.IntN(4) == 0 {
			a.kind, a.version, a.token = sawNew, version, token
			if version == 0 {
				a.kind = sawOld
			}
			continue
		}
		// Of a stale version, mostly of the current one, of one that is to come.
		a.version = max(0, version+int64([]int{-2, -1, -1, 0, 0, 0, 0, 0, 0, 1}[random.IntN(10)])) + 1
		fits := a.version == version+1
		switch {
		case random.Float64() < unknown:
			a.kind, a.ret = indeterminate, forever
			fits = fits && random.IntN(3) > 0
		case random.IntN(16) == 0:
			a.kind, fits = noEffect, false
		case fits:
			a.kind = wrote
		default:
			a.kind = refused
		}
		if fits {
			version, token = a.version, a.token
		}
	}
	for random.IntN(5) < 2 {
		operations = mutateHistory(operations, random)
	}
	return operations
}

// mutateHistory makes the history a lie in one place, which may still be legal.
func mutateHistory(operations []operation, random *rand.Rand) []operation {
	at := random.IntN(len(operations))
	a := &operations[at]
	switch random.IntN(8) {
	case 0: // drop
		if len(operations) > 2 {
			return slices.Delete(operations, at, at+1)
		}
	case 1: // duplicate
		if len(operations) < 10 {
			return append(operations, *a)
		}
	case 2: // another outcome
		if a.kind < sawOld {
			a.kind = []operationKind{wrote, refused, indeterminate, noEffect}[random.IntN(4)]
		} else {
			a.kind = []operationKind{sawOld, sawNew, sawNothing}[random.IntN(3)]
			a.token = fmt.Sprintf("c%d", random.IntN(10))
		}
		switch {
		case a.kind == indeterminate:
			a.ret = forever
		case a.ret == forever:
			a.ret = a.call + time.Duration(random.IntN(7))
		}
	case 3, 4: // other times
		a.call = time.Duration(random.IntN(18))
		a.ret = max(a.ret, a.call)
	case 5, 6:
		if a.ret != forever {
			a.ret = a.call + time.Duration(random.IntN(4))
		}
	default: // another token, and what goes with it
		b := &operations[random.IntN(len(operations))]
		a.token, b.token = b.token, a.token
		if a.kind > sawOld && b.kind > sawOld || random.IntN(2) == 0 {
			a.version, b.version = b.version, a.version
		}
	}
	return operations
}

func changedOf(kind operationKind, change func(*operation)) func([]operation) []operation {
	return changed(func(a *operation) {
		if a.kind == kind {
			change(a)
		}
	})
}

func keeping(keep func(all []operation, a *operation) bool) func([]operation) []operation {
	return func(operations []operation) []operation {
		var kept []operation
		for i := range operations {
			if keep(operations, &operations[i]) {
				kept = append(kept, operations[i])
			}
		}
		return kept
	}
}

// provenVersion is the highest version that was read or accepted.
func provenVersion(operations []operation) (version int64) {
	for i := range operations {
		if operations[i].kind == wrote || operations[i].kind == sawNew {
			version = max(version, operations[i].version)
		}
	}
	return version
}

// beforeAll is an instant.
const beforeAll = math.MinInt64

// brokenChains are the chain rule with one thing wrong, as a change to what the
// right one is shown.
var brokenChains = []brokenChecker{
	{"reads of a version do not hold the next one back", changed(func(a *operation) {
		if a.kind == sawOld || a.kind == sawNew {
			a.call = beforeAll
		}
	})},
	{"reads of the first version do not hold the next one back", changedOf(sawOld, func(a *operation) { a.call = beforeAll })},
	{"reads do not bound their version", changedOf(sawNew, func(a *operation) { a.ret = forever })},
	{"refusals are not looked at", without(refused)},
	{"a refusal always comes before its version", changedOf(refused, func(a *operation) { a.ret = beforeAll })},
	{"a refusal always comes after the next version", changedOf(refused, func(a *operation) { a.call = forever })},
	{"a refusal counts when it returns", changedOf(refused, func(a *operation) { a.call = a.ret })},
	{"a refusal is one on the version before", changedOf(refused, func(a *operation) { a.version-- })},
	{"refusals on the last version are legal", keeping(func(all []operation, a *operation) bool {
		return a.kind != refused || a.version <= provenVersion(all)
	})},
	{"an unknown outcome was not applied", without(indeterminate)},
	{"an unknown outcome was applied if it came first", keeping(func(all []operation, a *operation) bool {
		return a.kind != indeterminate || !slices.ContainsFunc(all, func(b operation) bool {
			return b.kind == indeterminate && b.version == a.version && b.call < a.call
		})
	})},
	{"the unknown outcome called last is taken", keeping(func(all []operation, a *operation) bool {
		return a.kind != indeterminate || !slices.ContainsFunc(all, func(b operation) bool {
			return b.kind == indeterminate && b.version == a.version && b.call > a.call
		})
	})},
	{"unknown outcomes do not fill gaps", keeping(func(all []operation, a *operation) bool {
		return a.kind != indeterminate || a.version > provenVersion(all) || slices.ContainsFunc(all, func(b operation) bool {
			return b.kind == sawNew && b.version == a.version
		})
	})},
	{"unknown outcomes do not extend the chain", keeping(func(all []operation, a *operation) bool {
		return a.kind != indeterminate || a.version <= provenVersion(all)
	})},
	{"unknown outcomes extend the chain by one", keeping(func(all []operation, a *operation) bool {
		return a.kind != indeterminate || a.version <= provenVersion(all)+1
	})},
	{"a second winner is overlooked", func(operations []operation) []operation {
		var kept []operation
		for _, a := range operations {
			if a.kind != wrote || !slices.ContainsFunc(kept, func(b operation) bool { return b.kind == wrote && b.version == a.version }) {
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

// openInterval keeps those apart that touch.
func openInterval(a *operation) {
	if a.call < a.ret {
		a.call++
	}
}

// crossCheck compares a checker with the general one on random histories, and
// wants every broken one told apart from it.
func crossCheck(t *testing.T, random *rand.Rand, model porcupine.Model, draw func(*rand.Rand) []operation,
	asModel func([]operation) []porcupine.Operation, check func([]operation) *anomaly, broken []brokenChecker) {
	t.Helper()
	const (
		trials = 200_000
		enough = 30 // times that a broken checker is caught
	)
	start := time.Now()
	kinds := make(map[string]int)
	caught, until := make([]int, len(broken)), make([]int, len(broken))
	illegal, writes, unknown := 0, 0, 0
	for trial := range trials {
		operations := draw(random)
		b := check(operations)
		legal := porcupine.CheckOperations(model, asModel(operations))
		if legal != (b == nil) {
			t.Fatalf("trial %d: the rule finds %+v, the general checker says legal=%v:\n%+v", trial, b, legal, operations)
		}
		if !legal {
			illegal++
			kinds[b.kind]++
			checkWitness(t, b)
		}
		for i := range operations {
			if operations[i].kind < sawOld {
				writes++
			}
		}
		unknown += countKind(operations, indeterminate)
		for i := range broken {
			if caught[i] < enough {
				until[i] = trial
				if (check(broken[i].wrong(operations)) == nil) != legal {
					caught[i]++
				}
			}
		}
	}
	t.Logf("%d histories in %v: %d illegal, %d %% of the writes unknown", trials, time.Since(start).Round(time.Millisecond),
		illegal, 100*unknown/writes)
	if illegal < trials*8/100 || illegal > trials*20/100 {
		t.Errorf("%d of %d histories were illegal: wanted 8 to 20 %%", illegal, trials)
	}
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		t.Logf("%6d %s", kinds[kind], kind)
	}
	for i := range broken {
		t.Logf("%3d disagreements by trial %6d: %s", caught[i], until[i], broken[i].name)
		if caught[i] == 0 {
			t.Errorf("the broken checker was not caught: %s", broken[i].name)
		}
	}
}

// checkWitness wants a text for the anomaly, and, of two operations that cannot be served
// in their order, the first to return before the second is called.
func checkWitness(t *testing.T, b *anomaly) {
	t.Helper()
	if anomalyText[b.kind] == "" {
		t.Fatalf("anomaly %q has no text", b.kind)
	}
	if b.a == nil {
		t.Fatalf("anomaly %q has no witness", b.kind)
	}
	switch b.kind {
	case "accepted-too-early", "refused-before-winner", "read-before-write", "old-state-after-refusal", "state-went-back",
		"lost-write", "stale-read-after-write", "refused-while-absent":
		if b.b == nil || b.a.ret >= b.b.call {
			t.Fatalf("anomaly %q: %+v did not return before %+v was called", b.kind, b.a, b.b)
		}
	}
}

func TestChainRuleAgreesWithLinearizability(t *testing.T) {
	crossCheck(t, rand.New(rand.NewPCG(13, 17)), chainModel, chainHistory, chainOperations, func(operations []operation) *anomaly {
		_, b := checkChain(operations)
		return b
	}, brokenChains)
}

// The versions that a legal history can end at are those that the general checker
// finds possible; so is every writer that is told.
func TestChainTellsWhatIsProven(t *testing.T) {
	random := rand.New(rand.NewPCG(19, 23))
	apart, settled, unsettled := 0, 0, 0
	for trial := range 3000 {
		operations := chainHistory(random)
		c, b := checkChain(operations)
		if b != nil {
			continue
		}
		if c.lowest < c.highest {
			apart++
		}
		ops := chainOperations(operations)
		for version := int64(0); version <= int64(len(operations))+1; version++ {
			end := porcupine.Operation{ClientId: len(ops), Input: chainInput{version: version, end: true}, Call: 1000, Return: 1000}
			possible := porcupine.CheckOperations(chainModel, append(ops[:len(ops):len(ops)], end))
			if possible != (c.lowest <= version && version <= c.highest) {
				t.Fatalf("trial %d: version %d is possible=%v at the end, but %+v:\n%+v", trial, version, possible, c, operations)
			}
		}
		if int64(len(c.writers)) != c.lowest {
			t.Fatalf("trial %d: %d writers, but %+v:\n%+v", trial, len(c.writers), c, operations)
		}
		for _, writer := range c.writers {
			switch {
			case writer == nil:
				unsettled++
			case writer.kind == indeterminate:
				settled++
				// Without the only one that can have stored it there is no such history.
				rest := keeping(func(_ []operation, a *operation) bool { return a != writer })(operations)
				if !hasDuplicate(rest, writer) && porcupine.CheckOperations(chainModel, chainOperations(rest)) {
					t.Fatalf("trial %d: it need not be %+v:\n%+v", trial, writer, operations)
				}
			}
		}
	}
	t.Logf("%d with several ends; %d uncertain writers told, %d not", apart, settled, unsettled)
	if apart == 0 || settled == 0 || unsettled == 0 {
		t.Error("the histories do not exercise it")
	}
}

// hasDuplicate tells whether the write has a duplicate.
func hasDuplicate(operations []operation, write *operation) bool {
	return slices.ContainsFunc(operations, func(a operation) bool {
		return a.kind == write.kind && a.token == write.token && a.version == write.version
	})
}

// queued is a request that a store serves at an instant.
type queued struct {
	operation int
	at        time.Duration
	late      bool // nobody waits for it any more
}

// honestRun gives what contenders saw in so many requests to an honest store. next
// gives a contender's first request, or the one that follows its last; serve
// answers one that the store got.
func honestRun(random *rand.Rand, contenders, requests int, next func(last *operation) operation, serve func(a *operation, now time.Duration)) []operation {
	var operations []operation
	var queue []queued
	send := func(who int32, now time.Duration, a operation) {
		if len(operations) == requests {
			return
		}
		at := now + time.Duration(random.IntN(1000))
		a.who, a.call, a.ret = who, now, at+time.Duration(random.IntN(1000))
		if a.kind == wrote {
			a.token = fmt.Sprintf("c%d-%d", who, len(operations))
			if random.IntN(12) == 0 {
				// The contender gives up; the store gets it before or after that, or never.
				a.kind = indeterminate
				if random.IntN(4) > 0 {
					queue = append(queue, queued{len(operations), now + time.Duration(random.IntN(5000)), true})
				}
			}
		}
		queue = append(queue, queued{operation: len(operations), at: at})
		operations = append(operations, a)
	}
	for who := range contenders {
		send(int32(who), time.Duration(random.IntN(500)), next(nil))
	}
	for len(queue) > 0 {
		first := 0
		for i := range queue {
			if queue[i].at < queue[first].at {
				first = i
			}
		}
		p := queue[first]
		queue = slices.Delete(queue, first, first+1)
		a := &operations[p.operation]
		done := a.ret
		switch {
		case p.late:
			serve(a, p.at)
			continue
		case a.kind == indeterminate:
			a.ret = forever
		case a.kind == wrote && random.IntN(30) == 0:
			a.kind = noEffect
		default:
			serve(a, p.at)
		}
		send(a.who, done+time.Duration(random.IntN(300)), next(a))
	}
	return operations
}

// chainStore is an honest store with one record.
type chainStore struct {
	version int64
	token   string
	writers []string // of the versions 1, 2, …
}

func (s *chainStore) serve(a *operation, _ time.Duration) {
	switch {
	case a.kind == sawNew && s.version == 0:
		a.kind = sawOld
	case a.kind == sawNew:
		a.version, a.token = s.version, s.token
	case a.version == s.version+1:
		s.version, s.token = a.version, a.token
		s.writers = append(s.writers, a.token)
	case a.kind == wrote:
		a.kind = refused
	}
}

// readThenWrite asks for what was read.
func readThenWrite(last *operation) operation {
	if last == nil || last.kind < sawOld {
		return operation{kind: sawNew}
	}
	return operation{kind: wrote, version: last.version + 1}
}

func TestChainOfAnHonestStore(t *testing.T) {
	random := rand.New(rand.NewPCG(29, 31))
	var stored, settled, refusals int
	for round := range 500 {
		var s chainStore
		all := honestRun(random, 24, 1000, readThenWrite, s.serve)
		last := operation{kind: sawNew, who: runner.ByRunner, version: s.version, token: s.token, call: 1 << 40, ret: 1<<40 + 1}
		operations := append(all[:len(all):len(all)], last)
		for _, operations := range [][]operation{all, operations} {
			c, b := checkChain(operations)
			if b != nil {
				t.Fatalf("round %d: a false alarm: %s\n%+v\n%+v", round, b.kind, b.a, b.b)
			}
			if s.version < c.lowest || s.version > c.highest {
				t.Fatalf("round %d: the version is %d, not from %d to %d", round, s.version, c.lowest, c.highest)
			}
			for i, w := range c.writers {
				if w != nil && w.token != s.writers[i] {
					t.Fatalf("round %d: version %d was not written by %q but by %q", round, i+1, w.token, s.writers[i])
				}
				if w != nil {
					settled++
				}
				stored++
			}
		}
		if b := countOperations(operations, 0, &last); b != nil {
			t.Fatalf("round %d: a false alarm: %s", round, b.kind)
		}
		refusals += countKind(operations, refused)
	}
	t.Logf("%d versions, the writers of %d told; %d refusals", stored, settled, refusals)
	if settled == 0 || refusals == 0 {
		t.Error("the rounds do not exercise the rule")
	}
}

func TestChainRuleNamesTheAnomaly(t *testing.T) {
	write := func(kind operationKind, version int64, token string, call, ret time.Duration) operation {
		if kind == indeterminate {
			ret = forever
		}
		return operation{kind: kind, version: version, token: token, call: call, ret: ret}
	}
	w1, w2 := write(wrote, 1, "a", 10, 20), write(wrote, 2, "b", 30, 40)
	u1, u2 := write(indeterminate, 1, "u", 10, 0), write(indeterminate, 2, "v", 30, 0)
	old := func(call, ret time.Duration) operation { return operation{kind: sawOld, call: call, ret: ret} }
	read := func(version int64, token string, call, ret time.Duration) operation {
		return operation{kind: sawNew, version: version, token: token, call: call, ret: ret}
	}
	mine := func(a operation) operation { a.who = runner.ByRunner; return a }
	for _, c := range []struct {
		name            string
		operations      []operation
		want            string
		a, b            int // places of the witness; -1: none
		lowest, highest int64
	}{
		{name: "nothing"},
		{name: "two versions", operations: []operation{w1, w2, read(2, "b", 50, 51)}, lowest: 2, highest: 2},
		{name: "a write that may come yet", operations: []operation{w1, u2}, lowest: 1, highest: 2},
		{name: "a gap that an uncertain write fills", operations: []operation{u1, w2}, lowest: 2, highest: 2},
		{name: "a refusal that proves an uncertain write", operations: []operation{u1, write(refused, 1, "l", 20, 25)}, lowest: 1, highest: 1},
		{name: "a refusal on a version to come", operations: []operation{write(refused, 2, "l", 1, 5), w1}, lowest: 1, highest: 1},
		{name: "a refusal on a version long past", operations: []operation{w1, w2, write(refused, 1, "l", 50, 55)}, lowest: 2, highest: 2},
		{name: "of what was aborted nothing is known", operations: []operation{w1, write(noEffect, 2, "x", 30, 40)}, lowest: 1, highest: 1},
		{"two winners", []operation{w1, write(wrote, 1, "b", 50, 60)}, "several-winners", 0, 1, 0, 0},
		{"two owners", []operation{u1, write(indeterminate, 1, "v", 9, 0), read(1, "u", 30, 31), read(1, "v", 32, 33)}, "two-owners", 2, 3, 0, 0},
		{"another owner", []operation{w1, u1, read(1, "u", 30, 31)}, "wrong-owner", 0, 2, 0, 0},
		{"an owner that never wrote", []operation{w1, read(1, "z", 30, 31)}, "owner-never-wrote", 1, -1, 0, 0},
		{"an owner that was refused", []operation{w1, write(refused, 1, "l", 30, 40), read(1, "l", 50, 51)}, "refused-but-applied", 1, 2, 0, 0},
		{"an owner that was aborted", []operation{write(noEffect, 1, "x", 30, 40), read(1, "x", 50, 51)}, "refused-but-applied", 0, 1, 0, 0},
		{"a version that leaps", []operation{w1, read(2, "a", 30, 31)}, "wrong-version", 0, 1, 0, 0},
		{"a version that leaps far", []operation{w1, read(1<<40, "a", 30, 31)}, "wrong-version", 0, 1, 0, 0},
		{"a version that nobody wrote", []operation{w2}, "version-without-writer", 0, -1, 0, 0},
		{"a version that nobody wrote, far up", []operation{w1, write(wrote, 1<<40, "b", 30, 40)}, "version-without-writer", 1, -1, 0, 0},
		{"accepted on what was not yet there", []operation{write(wrote, 1, "a", 50, 60), w2}, "accepted-too-early", 1, 0, 0, 0},
		{"a read of what was not yet there", []operation{w1, read(1, "a", 1, 5)}, "read-before-write", 1, 0, 0, 0},
		{"a stale read", []operation{w1, w2, read(1, "a", 50, 51)}, "stale-read-after-write", 1, 2, 0, 0},
		{"a stale read of the first state", []operation{w1, old(30, 31)}, "stale-read-after-write", 0, 1, 0, 0},
		{"a lost write", []operation{w1, w2, mine(read(1, "a", 50, 51))}, "lost-write", 1, 2, 0, 0},
		{"reads that go back", []operation{u1, u2, read(2, "v", 40, 41), read(1, "u", 50, 51)}, "state-went-back", 2, 3, 0, 0},
		{"refused while its version was the last", []operation{w1, write(refused, 2, "l", 30, 40)}, "no-winner", 1, 0, 0, 0},
		{"refused although nobody wrote", []operation{write(refused, 1, "l", 30, 40), old(50, 51)}, "no-winner", 0, 1, 0, 0},
		{"refused before the next version", []operation{w1, write(refused, 2, "l", 21, 29), w2}, "refused-before-winner", 1, 2, 0, 0},
		{"read after it was refused", []operation{w1, u2, write(refused, 2, "l", 31, 35), read(1, "a", 36, 37)}, "old-state-after-refusal", 2, 3, 0, 0},
		{"gone", []operation{w1, {kind: sawNothing, call: 30, ret: 31}}, "record-vanished", 1, -1, 0, 0},
	} {
		got, b := checkChain(c.operations)
		if b == nil {
			if c.want != "" || got.lowest != c.lowest || got.highest != c.highest {
				t.Errorf("%s: got versions %d to %d, want %q or %d to %d", c.name, got.lowest, got.highest, c.want, c.lowest, c.highest)
			}
			continue
		}
		if b.kind != c.want || b.a != operationAt(c.operations, c.a) || b.b != operationAt(c.operations, c.b) {
			t.Errorf("%s: got anomaly %q of\n%+v\n%+v\nwant %q of %d and %d", c.name, b.kind, b.a, b.b, c.want, c.a, c.b)
		}
		checkWitness(t, b)
	}
}

func operationAt(operations []operation, at int) *operation {
	if at < 0 {
		return nil
	}
	return &operations[at]
}

// countModel is a counter that its writes raise, whatever it is at.
var countModel = porcupine.Model{
	Init: func() any { return int64(0) },
	Step: func(state, input, _ any) (bool, any) {
		n, in := state.(int64), input.(chainInput)
		switch in.kind {
		case wrote, indeterminate:
			return true, n + 1
		case sawNew:
			return n == in.version, n
		default:
			return true, n
		}
	},
}

// countHistory gives writes and, as the last operation, what was counted.
func countHistory(random *rand.Rand) []operation {
	operations := make([]operation, random.IntN(9), 10)
	final := operation{kind: sawNew, call: 30, ret: 31}
	for i := range operations {
		call := time.Duration(random.IntN(20))
		operations[i] = operation{kind: wrote, call: call, ret: call + time.Duration(random.IntN(10)), who: int32(i)}
		switch random.IntN(6) {
		case 0:
			operations[i].kind = []operationKind{refused, noEffect}[random.IntN(2)]
		case 1, 2:
			operations[i].kind, operations[i].ret = indeterminate, forever
			final.version += int64(random.IntN(2))
		default:
			final.version++
		}
	}
	if random.IntN(3) == 0 {
		final.version += int64(random.IntN(5) - 2)
	}
	return append(operations, final)
}

var brokenCounts = []brokenChecker{
	{"an unknown outcome did not count", without(indeterminate)},
	{"an unknown outcome counts", changedOf(indeterminate, func(a *operation) { a.kind = wrote })},
	{"an accepted write may not count", changedOf(wrote, func(a *operation) { a.kind = indeterminate })},
	{"a refusal may count", changedOf(refused, func(a *operation) { a.kind = indeterminate })},
	{"what was aborted may count", changedOf(noEffect, func(a *operation) { a.kind = indeterminate })},
	{"the first write is not counted", func(operations []operation) []operation { return operations[min(1, len(operations)-1):] }},
	{"there is no upper bound", changedOf(sawNew, func(a *operation) { a.version = min(a.version, 2) })},
}

func TestCountAgreesWithLinearizability(t *testing.T) {
	crossCheck(t, rand.New(rand.NewPCG(37, 41)), countModel, countHistory, chainOperations, func(operations []operation) *anomaly {
		return countOperations(operations, 0, &operations[len(operations)-1])
	}, brokenCounts)
	w := operation{kind: wrote}
	for final, want := range map[int64]string{6: "lost-update", 7: "", 8: "", 9: "over-count"} {
		got := ""
		if b := countOperations([]operation{w, w, {kind: indeterminate}, {kind: refused}}, 5, &operation{version: final}); b != nil {
			got = b.kind
		}
		if got != want {
			t.Errorf("from 5 to %d: got anomaly %q, want %q", final, got, want)
		}
	}
}

func BenchmarkCheckChain24000(b *testing.B) {
	for _, contenders := range []int{24, 1000} {
		b.Run(fmt.Sprintf("%d contenders", contenders), func(b *testing.B) {
			var s chainStore
			operations := honestRun(rand.New(rand.NewPCG(1, 1)), contenders, 24_000, readThenWrite, s.serve)
			b.Logf("%d versions, %d refused, %d uncertain", s.version, countKind(operations, refused), countKind(operations, indeterminate))
			b.ReportAllocs()
			for b.Loop() {
				if _, anomaly := checkChain(operations); anomaly != nil {
					b.Fatal("the history is legal")
				}
			}
		})
	}
}

// countOperations is checkCount of a history.
func countOperations(operations []operation, start int64, final *operation) *anomaly {
	var last *operation
	for i := range operations {
		if a := &operations[i]; a.kind == wrote && (last == nil || a.ret > last.ret) {
			last = a
		}
	}
	return checkCount(start, countKind(operations, wrote), countKind(operations, indeterminate), last, final)
}
