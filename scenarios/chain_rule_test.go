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

// chainInput is an act as the general checker's model of a chain sees it.
type chainInput struct {
	kind    actKind
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
		case in.kind == uncertain && (s.ended || !fits), in.kind == excluded:
			return true, s
		case in.kind == uncertain:
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

func chainOperations(acts []act) []porcupine.Operation {
	ops := make([]porcupine.Operation, 0, len(acts)+1)
	for i := range acts {
		a := &acts[i]
		ops = append(ops, porcupine.Operation{ClientId: i, Input: chainInput{kind: a.kind, version: a.version, token: a.token},
			Call: int64(a.call), Return: int64(a.ret)})
	}
	return ops
}

// inOrder gives small random intervals with many ties, each with an instant in it,
// by their instants.
func inOrder(random *rand.Rand, n int) ([]act, []time.Duration) {
	acts := make([]act, n)
	points := make([]time.Duration, n)
	order := random.Perm(n)
	for i := range acts {
		call, length := time.Duration(random.IntN(14)), time.Duration(random.IntN(7))
		acts[i] = act{call: call, ret: call + length, who: int32(i), token: fmt.Sprintf("c%d", i)}
		points[i] = call + time.Duration(random.IntN(int(length)+1))
		if random.IntN(4) == 0 {
			points[i] = call + length
		}
	}
	slices.SortStableFunc(order, func(i, j int) int { return int(points[i] - points[j]) })
	sorted := make([]act, n)
	for to, from := range order {
		sorted[to] = acts[from]
	}
	slices.Sort(points)
	return sorted, points
}

// chainHistory gives a small random history: what an atomic store would have
// answered; many are then mutated.
func chainHistory(random *rand.Rand) []act {
	acts, _ := inOrder(random, 3+random.IntN(8))
	unknown := 0.1 + 0.4*random.Float64()
	var version int64
	token := ""
	for i := range acts {
		a := &acts[i]
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
			a.kind, a.ret = uncertain, forever
			fits = fits && random.IntN(3) > 0
		case random.IntN(16) == 0:
			a.kind, fits = excluded, false
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
		acts = mutateHistory(acts, random)
	}
	return acts
}

// mutateHistory makes the history a lie in one place, which may still be legal.
func mutateHistory(acts []act, random *rand.Rand) []act {
	at := random.IntN(len(acts))
	a := &acts[at]
	switch random.IntN(8) {
	case 0: // drop
		if len(acts) > 2 {
			return slices.Delete(acts, at, at+1)
		}
	case 1: // duplicate
		if len(acts) < 10 {
			return append(acts, *a)
		}
	case 2: // another outcome
		if a.kind < sawOld {
			a.kind = []actKind{wrote, refused, uncertain, excluded}[random.IntN(4)]
		} else {
			a.kind = []actKind{sawOld, sawNew, sawNothing}[random.IntN(3)]
			a.token = fmt.Sprintf("c%d", random.IntN(10))
		}
		switch {
		case a.kind == uncertain:
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
		b := &acts[random.IntN(len(acts))]
		a.token, b.token = b.token, a.token
		if a.kind > sawOld && b.kind > sawOld || random.IntN(2) == 0 {
			a.version, b.version = b.version, a.version
		}
	}
	return acts
}

func changedOf(kind actKind, change func(*act)) func([]act) []act {
	return changed(func(a *act) {
		if a.kind == kind {
			change(a)
		}
	})
}

func keeping(keep func(all []act, a *act) bool) func([]act) []act {
	return func(acts []act) []act {
		var kept []act
		for i := range acts {
			if keep(acts, &acts[i]) {
				kept = append(kept, acts[i])
			}
		}
		return kept
	}
}

// provenVersion is the highest version that was read or accepted.
func provenVersion(acts []act) (version int64) {
	for i := range acts {
		if acts[i].kind == wrote || acts[i].kind == sawNew {
			version = max(version, acts[i].version)
		}
	}
	return version
}

// beforeAll is an instant.
const beforeAll = math.MinInt64

// brokenChains are the chain rule with one thing wrong, as a change to what the
// right one is shown.
var brokenChains = []brokenChecker{
	{"reads of a version do not hold the next one back", changed(func(a *act) {
		if a.kind == sawOld || a.kind == sawNew {
			a.call = beforeAll
		}
	})},
	{"reads of the first version do not hold the next one back", changedOf(sawOld, func(a *act) { a.call = beforeAll })},
	{"reads do not bound their version", changedOf(sawNew, func(a *act) { a.ret = forever })},
	{"refusals are not looked at", without(refused)},
	{"a refusal always comes before its version", changedOf(refused, func(a *act) { a.ret = beforeAll })},
	{"a refusal always comes after the next version", changedOf(refused, func(a *act) { a.call = forever })},
	{"a refusal counts when it returns", changedOf(refused, func(a *act) { a.call = a.ret })},
	{"a refusal is one on the version before", changedOf(refused, func(a *act) { a.version-- })},
	{"refusals on the last version are legal", keeping(func(all []act, a *act) bool {
		return a.kind != refused || a.version <= provenVersion(all)
	})},
	{"an unknown outcome was not applied", without(uncertain)},
	{"an unknown outcome was applied if it came first", keeping(func(all []act, a *act) bool {
		return a.kind != uncertain || !slices.ContainsFunc(all, func(b act) bool {
			return b.kind == uncertain && b.version == a.version && b.call < a.call
		})
	})},
	{"the unknown outcome called last is taken", keeping(func(all []act, a *act) bool {
		return a.kind != uncertain || !slices.ContainsFunc(all, func(b act) bool {
			return b.kind == uncertain && b.version == a.version && b.call > a.call
		})
	})},
	{"unknown outcomes do not fill gaps", keeping(func(all []act, a *act) bool {
		return a.kind != uncertain || a.version > provenVersion(all) || slices.ContainsFunc(all, func(b act) bool {
			return b.kind == sawNew && b.version == a.version
		})
	})},
	{"unknown outcomes do not extend the chain", keeping(func(all []act, a *act) bool {
		return a.kind != uncertain || a.version <= provenVersion(all)
	})},
	{"unknown outcomes extend the chain by one", keeping(func(all []act, a *act) bool {
		return a.kind != uncertain || a.version <= provenVersion(all)+1
	})},
	{"a second winner is overlooked", func(acts []act) []act {
		var kept []act
		for _, a := range acts {
			if a.kind != wrote || !slices.ContainsFunc(kept, func(b act) bool { return b.kind == wrote && b.version == a.version }) {
				kept = append(kept, a)
			}
		}
		return kept
	}},
	{"the writer's return gives no bound", changedOf(wrote, func(a *act) { a.ret = forever })},
	{"the writer's call gives no bound", changedOf(wrote, func(a *act) { a.call = beforeAll })},
	{"tokens are not compared", changed(func(a *act) { a.token = "" })},
	{"what was aborted may have been applied", changedOf(excluded, func(a *act) { a.kind, a.ret = uncertain, forever })},
	{"intervals are open", changed(openInterval)},
}

// openInterval keeps those apart that touch.
func openInterval(a *act) {
	if a.call < a.ret {
		a.call++
	}
}

// crossCheck compares a checker with the general one on random histories, and
// wants every broken one told apart from it.
func crossCheck(t *testing.T, random *rand.Rand, model porcupine.Model, draw func(*rand.Rand) []act,
	operations func([]act) []porcupine.Operation, check func([]act) *breach, broken []brokenChecker) {
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
		acts := draw(random)
		b := check(acts)
		legal := porcupine.CheckOperations(model, operations(acts))
		if legal != (b == nil) {
			t.Fatalf("trial %d: the rule finds %+v, the general checker says legal=%v:\n%+v", trial, b, legal, acts)
		}
		if !legal {
			illegal++
			kinds[b.kind]++
			checkWitness(t, b)
		}
		for i := range acts {
			if acts[i].kind < sawOld {
				writes++
			}
		}
		unknown += countKind(acts, uncertain)
		for i := range broken {
			if caught[i] < enough {
				until[i] = trial
				if (check(broken[i].wrong(acts)) == nil) != legal {
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

// checkWitness wants a text for the breach, and, of two acts that cannot be served
// in their order, the first to return before the second is called.
func checkWitness(t *testing.T, b *breach) {
	t.Helper()
	if breachText[b.kind] == "" {
		t.Fatalf("breach %q has no text", b.kind)
	}
	if b.a == nil {
		t.Fatalf("breach %q has no witness", b.kind)
	}
	switch b.kind {
	case "accepted-too-early", "refused-before-winner", "read-before-write", "old-state-after-refusal", "state-went-back",
		"lost-write", "stale-read-after-write", "refused-while-absent":
		if b.b == nil || b.a.ret >= b.b.call {
			t.Fatalf("breach %q: %+v did not return before %+v was called", b.kind, b.a, b.b)
		}
	}
}

func TestChainRuleAgreesWithLinearizability(t *testing.T) {
	crossCheck(t, rand.New(rand.NewPCG(13, 17)), chainModel, chainHistory, chainOperations, func(acts []act) *breach {
		_, b := checkChain(acts)
		return b
	}, brokenChains)
}

// The versions that a legal history can end at are those that the general checker
// finds possible; so is every writer that is told.
func TestChainTellsWhatIsProven(t *testing.T) {
	random := rand.New(rand.NewPCG(19, 23))
	apart, settled, unsettled := 0, 0, 0
	for trial := range 3000 {
		acts := chainHistory(random)
		c, b := checkChain(acts)
		if b != nil {
			continue
		}
		if c.lowest < c.highest {
			apart++
		}
		ops := chainOperations(acts)
		for version := int64(0); version <= int64(len(acts))+1; version++ {
			end := porcupine.Operation{ClientId: len(ops), Input: chainInput{version: version, end: true}, Call: 1000, Return: 1000}
			possible := porcupine.CheckOperations(chainModel, append(ops[:len(ops):len(ops)], end))
			if possible != (c.lowest <= version && version <= c.highest) {
				t.Fatalf("trial %d: version %d is possible=%v at the end, but %+v:\n%+v", trial, version, possible, c, acts)
			}
		}
		if int64(len(c.writers)) != c.lowest {
			t.Fatalf("trial %d: %d writers, but %+v:\n%+v", trial, len(c.writers), c, acts)
		}
		for _, writer := range c.writers {
			switch {
			case writer == nil:
				unsettled++
			case writer.kind == uncertain:
				settled++
				// Without the only one that can have stored it there is no such history.
				rest := keeping(func(_ []act, a *act) bool { return a != writer })(acts)
				if !hasDuplicate(rest, writer) && porcupine.CheckOperations(chainModel, chainOperations(rest)) {
					t.Fatalf("trial %d: it need not be %+v:\n%+v", trial, writer, acts)
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
func hasDuplicate(acts []act, write *act) bool {
	return slices.ContainsFunc(acts, func(a act) bool {
		return a.kind == write.kind && a.token == write.token && a.version == write.version
	})
}

// queued is a request that a store serves at an instant.
type queued struct {
	act  int
	at   time.Duration
	late bool // nobody waits for it any more
}

// honestRun gives what contenders saw in so many requests to an honest store. next
// gives a contender's first request, or the one that follows its last; serve
// answers one that the store got.
func honestRun(random *rand.Rand, contenders, requests int, next func(last *act) act, serve func(a *act, now time.Duration)) []act {
	var acts []act
	var queue []queued
	send := func(who int32, now time.Duration, a act) {
		if len(acts) == requests {
			return
		}
		at := now + time.Duration(random.IntN(1000))
		a.who, a.call, a.ret = who, now, at+time.Duration(random.IntN(1000))
		if a.kind == wrote {
			a.token = fmt.Sprintf("c%d-%d", who, len(acts))
			if random.IntN(12) == 0 {
				// The contender gives up; the store gets it before or after that, or never.
				a.kind = uncertain
				if random.IntN(4) > 0 {
					queue = append(queue, queued{len(acts), now + time.Duration(random.IntN(5000)), true})
				}
			}
		}
		queue = append(queue, queued{act: len(acts), at: at})
		acts = append(acts, a)
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
		a := &acts[p.act]
		done := a.ret
		switch {
		case p.late:
			serve(a, p.at)
			continue
		case a.kind == uncertain:
			a.ret = forever
		case a.kind == wrote && random.IntN(30) == 0:
			a.kind = excluded
		default:
			serve(a, p.at)
		}
		send(a.who, done+time.Duration(random.IntN(300)), next(a))
	}
	return acts
}

// chainStore is an honest store with one record.
type chainStore struct {
	version int64
	token   string
	writers []string // of the versions 1, 2, …
}

func (s *chainStore) serve(a *act, _ time.Duration) {
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
func readThenWrite(last *act) act {
	if last == nil || last.kind < sawOld {
		return act{kind: sawNew}
	}
	return act{kind: wrote, version: last.version + 1}
}

func TestChainOfAnHonestStore(t *testing.T) {
	random := rand.New(rand.NewPCG(29, 31))
	var stored, settled, refusals int
	for round := range 500 {
		var s chainStore
		all := honestRun(random, 24, 1000, readThenWrite, s.serve)
		last := act{kind: sawNew, who: runner.Own, version: s.version, token: s.token, call: 1 << 40, ret: 1<<40 + 1}
		acts := append(all[:len(all):len(all)], last)
		for _, acts := range [][]act{all, acts} {
			c, b := checkChain(acts)
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
		if b := countActs(acts, 0, &last); b != nil {
			t.Fatalf("round %d: a false alarm: %s", round, b.kind)
		}
		refusals += countKind(acts, refused)
	}
	t.Logf("%d versions, the writers of %d told; %d refusals", stored, settled, refusals)
	if settled == 0 || refusals == 0 {
		t.Error("the rounds do not exercise the rule")
	}
}

func TestChainRuleNamesTheBreach(t *testing.T) {
	write := func(kind actKind, version int64, token string, call, ret time.Duration) act {
		if kind == uncertain {
			ret = forever
		}
		return act{kind: kind, version: version, token: token, call: call, ret: ret}
	}
	w1, w2 := write(wrote, 1, "a", 10, 20), write(wrote, 2, "b", 30, 40)
	u1, u2 := write(uncertain, 1, "u", 10, 0), write(uncertain, 2, "v", 30, 0)
	old := func(call, ret time.Duration) act { return act{kind: sawOld, call: call, ret: ret} }
	read := func(version int64, token string, call, ret time.Duration) act {
		return act{kind: sawNew, version: version, token: token, call: call, ret: ret}
	}
	mine := func(a act) act { a.who = runner.Own; return a }
	for _, c := range []struct {
		name            string
		acts            []act
		want            string
		a, b            int // places of the witness; -1: none
		lowest, highest int64
	}{
		{name: "nothing"},
		{name: "two versions", acts: []act{w1, w2, read(2, "b", 50, 51)}, lowest: 2, highest: 2},
		{name: "a write that may come yet", acts: []act{w1, u2}, lowest: 1, highest: 2},
		{name: "a gap that an uncertain write fills", acts: []act{u1, w2}, lowest: 2, highest: 2},
		{name: "a refusal that proves an uncertain write", acts: []act{u1, write(refused, 1, "l", 20, 25)}, lowest: 1, highest: 1},
		{name: "a refusal on a version to come", acts: []act{write(refused, 2, "l", 1, 5), w1}, lowest: 1, highest: 1},
		{name: "a refusal on a version long past", acts: []act{w1, w2, write(refused, 1, "l", 50, 55)}, lowest: 2, highest: 2},
		{name: "of what was aborted nothing is known", acts: []act{w1, write(excluded, 2, "x", 30, 40)}, lowest: 1, highest: 1},
		{"two winners", []act{w1, write(wrote, 1, "b", 50, 60)}, "several-winners", 0, 1, 0, 0},
		{"two owners", []act{u1, write(uncertain, 1, "v", 9, 0), read(1, "u", 30, 31), read(1, "v", 32, 33)}, "two-owners", 2, 3, 0, 0},
		{"another owner", []act{w1, u1, read(1, "u", 30, 31)}, "wrong-owner", 0, 2, 0, 0},
		{"an owner that never wrote", []act{w1, read(1, "z", 30, 31)}, "owner-never-wrote", 1, -1, 0, 0},
		{"an owner that was refused", []act{w1, write(refused, 1, "l", 30, 40), read(1, "l", 50, 51)}, "refused-but-applied", 1, 2, 0, 0},
		{"an owner that was aborted", []act{write(excluded, 1, "x", 30, 40), read(1, "x", 50, 51)}, "refused-but-applied", 0, 1, 0, 0},
		{"a version that leaps", []act{w1, read(2, "a", 30, 31)}, "wrong-version", 0, 1, 0, 0},
		{"a version that leaps far", []act{w1, read(1<<40, "a", 30, 31)}, "wrong-version", 0, 1, 0, 0},
		{"a version that nobody wrote", []act{w2}, "version-without-writer", 0, -1, 0, 0},
		{"a version that nobody wrote, far up", []act{w1, write(wrote, 1<<40, "b", 30, 40)}, "version-without-writer", 1, -1, 0, 0},
		{"accepted on what was not yet there", []act{write(wrote, 1, "a", 50, 60), w2}, "accepted-too-early", 1, 0, 0, 0},
		{"a read of what was not yet there", []act{w1, read(1, "a", 1, 5)}, "read-before-write", 1, 0, 0, 0},
		{"a stale read", []act{w1, w2, read(1, "a", 50, 51)}, "stale-read-after-write", 1, 2, 0, 0},
		{"a stale read of the first state", []act{w1, old(30, 31)}, "stale-read-after-write", 0, 1, 0, 0},
		{"a lost write", []act{w1, w2, mine(read(1, "a", 50, 51))}, "lost-write", 1, 2, 0, 0},
		{"reads that go back", []act{u1, u2, read(2, "v", 40, 41), read(1, "u", 50, 51)}, "state-went-back", 2, 3, 0, 0},
		{"refused while its version was the last", []act{w1, write(refused, 2, "l", 30, 40)}, "no-winner", 1, 0, 0, 0},
		{"refused although nobody wrote", []act{write(refused, 1, "l", 30, 40), old(50, 51)}, "no-winner", 0, 1, 0, 0},
		{"refused before the next version", []act{w1, write(refused, 2, "l", 21, 29), w2}, "refused-before-winner", 1, 2, 0, 0},
		{"read after it was refused", []act{w1, u2, write(refused, 2, "l", 31, 35), read(1, "a", 36, 37)}, "old-state-after-refusal", 2, 3, 0, 0},
		{"gone", []act{w1, {kind: sawNothing, call: 30, ret: 31}}, "record-vanished", 1, -1, 0, 0},
	} {
		got, b := checkChain(c.acts)
		if b == nil {
			if c.want != "" || got.lowest != c.lowest || got.highest != c.highest {
				t.Errorf("%s: got versions %d to %d, want %q or %d to %d", c.name, got.lowest, got.highest, c.want, c.lowest, c.highest)
			}
			continue
		}
		if b.kind != c.want || b.a != actAt(c.acts, c.a) || b.b != actAt(c.acts, c.b) {
			t.Errorf("%s: got breach %q of\n%+v\n%+v\nwant %q of %d and %d", c.name, b.kind, b.a, b.b, c.want, c.a, c.b)
		}
		checkWitness(t, b)
	}
}

func actAt(acts []act, at int) *act {
	if at < 0 {
		return nil
	}
	return &acts[at]
}

// countModel is a counter that its writes raise, whatever it is at.
var countModel = porcupine.Model{
	Init: func() any { return int64(0) },
	Step: func(state, input, _ any) (bool, any) {
		n, in := state.(int64), input.(chainInput)
		switch in.kind {
		case wrote, uncertain:
			return true, n + 1
		case sawNew:
			return n == in.version, n
		default:
			return true, n
		}
	},
}

// countHistory gives writes and, as the last act, what was counted.
func countHistory(random *rand.Rand) []act {
	acts := make([]act, random.IntN(9), 10)
	final := act{kind: sawNew, call: 30, ret: 31}
	for i := range acts {
		call := time.Duration(random.IntN(20))
		acts[i] = act{kind: wrote, call: call, ret: call + time.Duration(random.IntN(10)), who: int32(i)}
		switch random.IntN(6) {
		case 0:
			acts[i].kind = []actKind{refused, excluded}[random.IntN(2)]
		case 1, 2:
			acts[i].kind, acts[i].ret = uncertain, forever
			final.version += int64(random.IntN(2))
		default:
			final.version++
		}
	}
	if random.IntN(3) == 0 {
		final.version += int64(random.IntN(5) - 2)
	}
	return append(acts, final)
}

var brokenCounts = []brokenChecker{
	{"an unknown outcome did not count", without(uncertain)},
	{"an unknown outcome counts", changedOf(uncertain, func(a *act) { a.kind = wrote })},
	{"an accepted write may not count", changedOf(wrote, func(a *act) { a.kind = uncertain })},
	{"a refusal may count", changedOf(refused, func(a *act) { a.kind = uncertain })},
	{"what was aborted may count", changedOf(excluded, func(a *act) { a.kind = uncertain })},
	{"the first write is not counted", func(acts []act) []act { return acts[min(1, len(acts)-1):] }},
	{"there is no upper bound", changedOf(sawNew, func(a *act) { a.version = min(a.version, 2) })},
}

func TestCountAgreesWithLinearizability(t *testing.T) {
	crossCheck(t, rand.New(rand.NewPCG(37, 41)), countModel, countHistory, chainOperations, func(acts []act) *breach {
		return countActs(acts, 0, &acts[len(acts)-1])
	}, brokenCounts)
	w := act{kind: wrote}
	for final, want := range map[int64]string{6: "lost-update", 7: "", 8: "", 9: "over-count"} {
		got := ""
		if b := countActs([]act{w, w, {kind: uncertain}, {kind: refused}}, 5, &act{version: final}); b != nil {
			got = b.kind
		}
		if got != want {
			t.Errorf("from 5 to %d: got breach %q, want %q", final, got, want)
		}
	}
}

func BenchmarkCheckChain24000(b *testing.B) {
	for _, contenders := range []int{24, 1000} {
		b.Run(fmt.Sprintf("%d contenders", contenders), func(b *testing.B) {
			var s chainStore
			acts := honestRun(rand.New(rand.NewPCG(1, 1)), contenders, 24_000, readThenWrite, s.serve)
			b.Logf("%d versions, %d refused, %d uncertain", s.version, countKind(acts, refused), countKind(acts, uncertain))
			b.ReportAllocs()
			for b.Loop() {
				if _, breach := checkChain(acts); breach != nil {
					b.Fatal("the history is legal")
				}
			}
		})
	}
}

// countActs is checkCount of a history.
func countActs(acts []act, start int64, final *act) *breach {
	var last *act
	for i := range acts {
		if a := &acts[i]; a.kind == wrote && (last == nil || a.ret > last.ret) {
			last = a
		}
	}
	return checkCount(start, countKind(acts, wrote), countKind(acts, uncertain), last, final)
}
