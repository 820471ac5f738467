package scenarios

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"contend/runner"
	"contend/targets"
)

// story is a round as a runner writes it down, and what was read of its key at the end
// of the run. Times are in whatever unit.
type story struct {
	round runner.Round
	lates []runner.Exchange
}

const (
	storyKey    = "contend-01TEST-r1"
	storySettle = 50
)

func (s *story) copy() *story {
	c := *s
	c.round.Seeds, c.round.Ops, c.round.Reads = slices.Clone(s.round.Seeds), slices.Clone(s.round.Ops), slices.Clone(s.round.Reads)
	c.lates = slices.Clone(s.lates)
	return &c
}

// reads are those of the runner, in order.
func (s *story) reads(each func(*runner.Exchange)) {
	for i := range s.round.Reads {
		each(&s.round.Reads[i])
	}
	for i := range s.lates {
		each(&s.lates[i])
	}
}

// teller makes up stories.
type teller struct {
	*rand.Rand
	seeded bool
	states []targets.Record // that the key went through; the first is the start, without a token where the key was absent
}

// shows is what a read shows of a state; -1: of none, where there was a seed.
func (t *teller) shows(state int) targets.Reply {
	if state < 0 || t.states[state].Token == "" {
		return targets.Reply{Outcome: targets.Missing, Attempts: 1}
	}
	return targets.Reply{Outcome: targets.OK, Attempts: 1, Record: t.states[state]}
}

// drawn gives one of them.
func drawn[T any](random *rand.Rand, from ...T) T { return from[random.IntN(len(from))] }

// tell makes a story of what contenders saw of an honest store, which served these
// versions, each by the write with that token. Many are then lies.
func tell(random *rand.Rand, scenario Contest, operations []operation, writers []string) *story {
	t := &teller{Rand: random, states: make([]targets.Record, 1)}
	s := &story{round: runner.Round{Number: 1, Key: storyKey}}
	for _, op := range scenario.Seeds(storyKey) {
		if op.Key == storyKey {
			t.seeded, t.states[0] = true, op.Value
		}
		seed := runner.Exchange{Contender: runner.ByRunner, Op: op, Call: 1, Return: 2, Reply: targets.Reply{Outcome: targets.OK, Attempts: 1}}
		if random.IntN(16) == 0 {
			seed.Reply.Outcome = drawn(random, targets.Unknown, targets.Throttled, targets.NotSent)
		}
		s.round.Seeds = append(s.round.Seeds, seed)
	}
	names := map[string]string{}
	for i := range operations {
		if a := &operations[i]; a.kind < sawOld {
			names[a.token] = runner.Token(storyKey, int(a.who), i+1)
		}
	}
	for i, token := range writers {
		t.states = append(t.states, targets.Record{Token: names[token], Version: int64(i + 1)})
	}
	scale := drawn[time.Duration](random, 1, 100, 400)
	for i := range operations {
		a := &operations[i]
		x := runner.Exchange{Contender: int(a.who), Call: 10 + a.call/scale, Return: 10 + a.ret/scale}
		if a.ret == forever {
			x.Return = x.Call + time.Duration(random.IntN(20))
		}
		t.exchange(&x, a, names[a.token])
		s.round.Ops = append(s.round.Ops, x)
	}
	for random.IntN(5) < 2 {
		t.lie(s)
	}
	slices.SortStableFunc(s.round.Ops, func(a, b runner.Exchange) int { return a.Contender - b.Contender })
	t.readBack(s)
	return s
}

// exchange words an operation: with answers that say nothing, requests that went out twice,
// and reads that failed, or that were part of a write.
func (t *teller) exchange(x *runner.Exchange, a *operation, token string) {
	x.Op, x.Reply.Attempts = targets.Op{Kind: targets.Write, Key: storyKey, Value: targets.Record{Token: token, Version: a.version}}, 1
	if t.seeded {
		x.Op.If = targets.Condition{Guard: targets.IfVersion, Counter: a.version - 1}
	} else {
		x.Op.If = targets.Condition{Guard: targets.IfAbsent}
	}
	switch again := t.IntN(12) == 0; a.kind {
	case wrote:
		if x.Reply.Outcome = targets.OK; again {
			x.Reply.Attempts = 2
		}
	case refused:
		if x.Reply.Outcome = targets.Conflict; again {
			x.Reply.Attempts = 2
		}
	case indeterminate:
		if x.Reply.Outcome = drawn(t.Rand, targets.Unknown, targets.Unknown, targets.Unmapped, targets.Conflict); x.Reply.Outcome == targets.Conflict {
			x.Reply.Attempts = 2
		}
	case noEffect:
		x.Reply.Outcome = drawn(t.Rand, targets.Aborted, targets.Throttled, targets.Invalid, targets.NotSent)
	default:
		byRead := a.kind == sawNew && t.IntN(3) == 0
		x.Reply = t.shows(max(0, int(a.version)))
		if byRead {
			x.Op.Value = targets.Record{Token: runner.Token(storyKey, x.Contender, 100+int(a.call%100)), Version: a.version}
			x.Reply.Outcome, x.Reply.ByRead, x.Reply.Code = targets.Conflict, true, "exists"
		} else if x.Op = (targets.Op{Kind: targets.Read, Key: storyKey}); t.IntN(8) == 0 {
			x.Reply = targets.Reply{Outcome: drawn(t.Rand, targets.Unknown, targets.Throttled), Attempts: 1}
		}
	}
}

// lie changes one op of a contender. It may be true nevertheless.
func (t *teller) lie(s *story) {
	at := t.IntN(len(s.round.Ops))
	x := &s.round.Ops[at]
	switch t.IntN(7) {
	case 0:
		if len(s.round.Ops) > 2 {
			s.round.Ops = slices.Delete(s.round.Ops, at, at+1)
		}
	case 1, 2:
		length := x.Return - x.Call
		x.Call = 10 + time.Duration(t.IntN(int(s.answered())))
		x.Return = x.Call + length
	case 3:
		x.Return = x.Call + time.Duration(t.IntN(3))
	case 4, 5:
		if x.Op.Kind == targets.Write && !x.Reply.ByRead {
			x.Reply.Outcome = drawn(t.Rand, targets.OK, targets.Conflict, targets.Aborted, targets.Unknown)
		} else if x.Op.Kind == targets.Read {
			x.Reply = t.shows(t.IntN(len(t.states)+1) - 1)
		}
	default:
		if other := &s.round.Ops[t.IntN(len(s.round.Ops))]; (x.Op.Kind == targets.Read && x.Reply.Outcome == targets.OK || x.Reply.ByRead) && other.Op.Kind == targets.Write {
			x.Reply.Record = other.Op.Value
		}
	}
}

// answered is when the last op had its answer.
func (s *story) answered() time.Duration {
	end := time.Duration(2)
	for i := range s.round.Ops {
		end = max(end, s.round.Ops[i].Return)
	}
	return end
}

// readBack reads the key when all have returned, and at the end of the run: honestly,
// by readers that lag, of a store that has lost what it had, or of one that stores
// what it refused.
func (t *teller) readBack(s *story) {
	at, last := s.answered(), len(t.states)-1
	way, lost := t.IntN(5), t.IntN(4) // lost from this read on
	before := t.IntN(last+2) - 1
	read := func(number, contender int) runner.Exchange {
		at += 1 + time.Duration(t.IntN(20)*t.IntN(3))
		x := runner.Exchange{Contender: contender, Op: targets.Op{Kind: targets.Read, Key: storyKey}, Call: at, Return: at + 1 + time.Duration(t.IntN(3)), Reply: t.shows(last)}
		at = x.Return
		switch {
		case t.IntN(8) == 0:
			x.Reply = targets.Reply{Outcome: drawn(t.Rand, targets.Unknown, targets.Throttled), Attempts: 1}
		case way == 0 && t.IntN(2) == 0:
			x.Reply = t.shows(t.IntN(last+2) - 1)
		case way == 1 && number >= lost:
			x.Reply = t.shows(before)
		case way == 2 && number >= lost && t.IntN(2) == 0:
			if other := &s.round.Ops[t.IntN(len(s.round.Ops))]; other.Op.Kind == targets.Write {
				x.Reply = targets.Reply{Outcome: targets.OK, Attempts: 1, Record: other.Op.Value}
			}
		case t.IntN(300) == 0:
			x.Reply = targets.Reply{Outcome: targets.OK, Attempts: 1, Record: targets.Record{Token: "somebody", Version: 1}}
		}
		return x
	}
	backs, sessions := 1+t.IntN(2), 1+t.IntN(3)
	for i := range backs {
		s.round.Reads = append(s.round.Reads, read(i, runner.ByRunner))
	}
	for i := range t.IntN(5) {
		s.lates = append(s.lates, read(backs+i, t.IntN(sessions)))
	}
}

// facts is what the requests of a story tell, each by itself.
func (s *story) facts() []operation {
	var facts []operation
	of := func(x *runner.Exchange, late bool) {
		a := operation{call: x.Call, ret: x.Return, who: int32(x.Contender), late: late, retried: x.Reply.Attempts > 1,
			token: x.Op.Value.Token, version: x.Op.Value.Version}
		outcome := x.Reply.Outcome
		switch {
		case x.Op.Kind == targets.Read && outcome != targets.OK && outcome != targets.Missing:
			return
		case x.Op.Kind == targets.Read || x.Reply.ByRead:
			a.token, a.version = x.Reply.Record.Token, x.Reply.Record.Version
			switch {
			case a.token == "" && len(s.round.Seeds) > 0:
				a.kind = sawNothing
			case a.token == "" || a.token == storyKey+"-seed":
				a.kind = sawOld
			case a.token == "somebody":
				a.kind = sawForeign
			default:
				a.kind = sawNew
			}
		case outcome == targets.OK:
			a.kind = wrote
		case outcome == targets.Unknown || outcome == targets.Unmapped || a.retried:
			a.kind, a.ret = indeterminate, forever
		case outcome == targets.Conflict:
			a.kind = refused
		default:
			a.kind = noEffect
		}
		facts = append(facts, a)
	}
	for i := range s.round.Ops {
		of(&s.round.Ops[i], false)
	}
	for i := range s.round.Reads {
		of(&s.round.Reads[i], false)
	}
	for i := range s.lates {
		of(&s.lates[i], true)
	}
	return facts
}

// behindOf tells whether a read shows less than had been shown, or answered, before it
// was called; nothing is less than the seed.
func behindOf(facts []operation, read *operation) bool {
	far := func(a *operation) int64 {
		switch a.kind {
		case sawNothing:
			return -1
		case sawOld:
			return 0
		default:
			return a.version
		}
	}
	return read.kind == sawNothing || read.kind >= sawOld && slices.ContainsFunc(facts, func(a operation) bool {
		return (a.kind == wrote || a.kind == refused || a.kind == sawNew) && a.ret < read.call && far(&a) > far(read)
	})
}

// verdictOf is what is to become of a story.
type verdictOf struct{ unruled, void, violated, stale bool }

// wanted says it by what the general checker says: of all that was done and read, else
// of all but the reads that are behind; those count where the last two late reads
// agree, through two sessions, when the key had settled. believed is what the ruling
// is to rest on.
func (s *story) wanted(t *testing.T) (want verdictOf, believed []operation) {
	if !s.round.Seeded() {
		return verdictOf{unruled: true}, nil
	}
	legal := func(facts []operation) bool { return porcupine.CheckOperations(chainModel, chainOperations(facts)) }
	facts := s.facts()
	if slices.ContainsFunc(facts, func(a operation) bool { return a.kind == sawForeign }) {
		return verdictOf{void: true}, nil
	}
	if legal(facts) {
		return verdictOf{}, facts
	}
	// However old the state is, somebody must have written what a read shows.
	written := keeping(func(all []operation, a *operation) bool {
		return a.kind != sawNew || slices.ContainsFunc(all, func(w operation) bool { return (w.kind == wrote || w.kind == indeterminate) && w.token == a.token })
	})(facts)
	if len(written) < len(facts) {
		return verdictOf{violated: true}, nil // that read alone shows it, whatever the order
	}
	fresh := keeping(func(all []operation, a *operation) bool { return !behindOf(all, a) })(facts)
	if !legal(fresh) {
		return verdictOf{violated: true}, fresh
	}
	if n := len(facts); n >= 2 && facts[n-2].late {
		a, b, from := &facts[n-2], &facts[n-1], s.answered()+storySettle
		if a.who != b.who && a.call >= from && b.call >= from && a.kind == b.kind && a.token == b.token && a.version == b.version && behindOf(facts, b) {
			believed := append(fresh, *a, *b)
			if legal(believed) {
				t.Fatalf("what two sessions confirm breaks nothing:\n%+v", facts)
			}
			return verdictOf{violated: true}, believed
		}
	}
	return verdictOf{stale: true}, fresh
}

// ruled gives what a judge makes of a story. kept may change what the judge keeps of
// it; nil: it does not.
func (s *story) ruled(scenario Contest, change func(Finding)) (*Shared, Ruling, *Judge) {
	j := NewJudge(Terms{Scenario: scenario, Settle: storySettle, Thresholds: DefaultThresholds})
	j.Round(&s.round)
	for i := range s.lates {
		j.Late(1, &s.lates[i])
	}
	kept := j.findings[0]
	if change != nil {
		change(kept)
	}
	return kept.Common(), kept.Rule(), j
}

func (r *Ruling) verdictOf(f *Shared) verdictOf {
	return verdictOf{f.Unseeded, r.Void, r.Violation != nil || r.Indefinite, r.StaleRead}
}

// brokenBelief is a judge with one thing wrong: as a change to what the right one is
// shown, or keeps.
type brokenBelief struct {
	name  string
	shown func(*story)
	kept  func(Finding)
}

// common changes what every scenario keeps.
func common(change func(*Shared)) func(Finding) { return func(k Finding) { change(k.Common()) } }

// eachOp changes the contenders' ops.
func eachOp(change func(*runner.Exchange)) func(*story) {
	return func(s *story) {
		for i := range s.round.Ops {
			change(&s.round.Ops[i])
		}
	}
}

// ruledUnseeded is not seen where nothing is seeded.
const ruledUnseeded = "an unseeded round is ruled"

var brokenBeliefs = []brokenBelief{
	{"an old read is believed that none confirms", func(s *story) {
		if n := len(s.lates); n > 0 {
			again, once := s.lates[n-1], s.answered()+storySettle
			again.Contender, again.Call, again.Return = again.Contender+1, once+1000, once+1001
			more := again
			more.Contender++
			s.lates = append(s.lates, again, more)
		}
	}, nil},
	{"an old read that is confirmed is not believed", nil, common(func(f *Shared) { f.readersLag = true })},
	{"one session is taken for two", nil, common(func(f *Shared) {
		for i := range f.lates {
			f.lates[i].who = int32(i)
		}
	})},
	{"reads are believed before the key has settled", nil, common(func(f *Shared) { f.believedFrom = 0 })},
	{"two reads that differ confirm each other", nil, common(func(f *Shared) {
		if n := len(f.lates); n > 1 {
			last := f.lates[n-1]
			last.who, last.call = f.lates[n-2].who, max(f.believedFrom, f.lates[n-2].call)
			f.lates[n-2] = last
		}
	})},
	{"late reads are not looked at", nil, common(func(f *Shared) { f.lates = nil })},
	{"the first late read is the last word", nil, common(func(f *Shared) { f.lates = f.lates[:min(1, len(f.lates))] })},
	{"read-backs are not looked at", func(s *story) { s.round.Reads = nil }, nil},
	{"a read that failed shows that there is nothing", func(s *story) {
		s.reads(func(x *runner.Exchange) {
			if x.Reply.Outcome != targets.OK {
				x.Reply.Outcome = targets.Missing
			}
		})
	}, nil},
	{ruledUnseeded, func(s *story) {
		for i := range s.round.Seeds {
			s.round.Seeds[i].Reply.Outcome = targets.OK
		}
	}, nil},
	{"the winner of a plain round is forgotten", nil, func(kept Finding) {
		if k := chainIn(kept); k != nil && k.plain {
			k.operations, k.plain = nil, false
		} else if f := kept.Common(); f.plain {
			f.operations = nil
		}
	}},
	{"a refusal after two attempts is one", eachOp(func(x *runner.Exchange) {
		if x.Reply.Outcome == targets.Conflict {
			x.Reply.Attempts = 1
		}
	}), nil},
	{"an unknown outcome is a refusal", eachOp(func(x *runner.Exchange) {
		if x.Reply.Outcome == targets.Unknown && x.Op.Kind == targets.Write {
			x.Reply.Outcome = targets.Conflict
		}
	}), nil},
	{"a refusal by a read is one by the guard", eachOp(func(x *runner.Exchange) { x.Reply.ByRead = false }), nil},
	{"a foreign record is none", func(s *story) {
		s.reads(func(x *runner.Exchange) {
			if x.Reply.Record.Token == "somebody" {
				x.Reply = targets.Reply{Outcome: targets.Missing}
			}
		})
	}, nil},
}

// chainIn is what is kept of a round that has a chain of versions; nil: it has none.
func chainIn(kept Finding) *versions {
	switch k := kept.(type) {
	case *counted:
		return &k.versions
	case *leased:
		return &k.versions
	default:
		return nil
	}
}

// checkRulings compares whole rulings with the general checker, on random stories, and
// wants every broken judge told apart from it.
func checkRulings(t *testing.T, scenario Contest, trials int, draw func() *story, broken []brokenBelief) {
	t.Helper()
	const enough = 30
	start := time.Now()
	var seen struct{ unruled, void, violated, stale, indefinite, confirmed, failed, lates, retried int }
	caught, until := make([]int, len(broken)), make([]int, len(broken))
	for trial := range trials {
		s := draw()
		want, believed := s.wanted(t)
		f, r, j := s.ruled(scenario, nil)
		if got := r.verdictOf(f); got != want {
			t.Fatalf("trial %d: ruled %+v (%+v), want %+v:\n%s", trial, got, r.Violation, want, s)
		}
		if len(j.disagreed)+len(disagreement(f, &r)) > 0 {
			t.Fatalf("trial %d: the second opinion differs:\n%s", trial, s)
		}
		checkDefinite(t, s, &r, believed)
		count := func(n *int, is bool) {
			if is {
				*n++
			}
		}
		count(&seen.unruled, want.unruled)
		count(&seen.void, want.void)
		count(&seen.violated, want.violated)
		count(&seen.stale, want.stale)
		count(&seen.indefinite, r.Indefinite)
		count(&seen.confirmed, len(believed) > 1 && want.violated && behindOf(believed, &believed[len(believed)-1]))
		count(&seen.retried, slices.ContainsFunc(s.round.Ops, func(x runner.Exchange) bool { return x.Reply.Attempts > 1 }))
		seen.lates += len(s.lates)
		s.reads(func(x *runner.Exchange) { count(&seen.failed, !x.Reply.Outcome.Served()) })
		for i, b := range broken {
			if caught[i] == enough || b.name == ruledUnseeded && len(s.round.Seeds) == 0 {
				continue
			}
			until[i] = trial
			shown := s
			if b.shown != nil {
				shown = s.copy()
				b.shown(shown)
			}
			if f, r, _ := shown.ruled(scenario, b.kept); r.verdictOf(f) != want {
				caught[i]++
			}
		}
	}
	t.Logf("%d stories in %v: %+v", trials, time.Since(start).Round(time.Millisecond), seen)
	if seen.unruled == 0 && len(scenario.Seeds(storyKey)) > 0 || min(seen.void, seen.violated, seen.stale, seen.indefinite, seen.confirmed, seen.failed, seen.lates, seen.retried) < trials/2000 ||
		seen.violated > trials/2 {
		t.Error("the stories do not exercise the judging")
	}
	for i := range broken {
		t.Logf("%3d disagreements by trial %6d: %s", caught[i], until[i], broken[i].name)
		if caught[i] == 0 && (seen.unruled > 0 || broken[i].name != ruledUnseeded) {
			t.Errorf("the broken judge was not caught: %s", broken[i].name)
		}
	}
}

// checkDefinite wants a violation to stand where the writes that went out more than once
// need not have been applied, and the lack of one to rest on those.
func checkDefinite(t *testing.T, s *story, r *Ruling, believed []operation) {
	t.Helper()
	if believed == nil {
		return
	}
	doubted := changed(func(a *operation) {
		if a.retried && a.kind == wrote {
			a.kind = indeterminate
		}
	})(believed)
	switch {
	case r.Violation != nil && porcupine.CheckOperations(chainModel, chainOperations(doubted)):
		t.Fatalf("%s rests on requests that went out twice:\n%s", r.Violation.Kind, s)
	case r.Indefinite && !slices.ContainsFunc(believed, func(a operation) bool { return a.retried }):
		t.Fatalf("no request went out twice:\n%s", s)
	}
}

func (s *story) String() string {
	text := fmt.Sprintf("answered at %d, %d seeds\n", s.answered(), len(s.round.Seeds))
	for _, a := range s.facts() {
		text += fmt.Sprintf("%d: kind %d from %d to %d, version %d %q, late %v, retried %v\n", a.who, a.kind, a.call, a.ret, a.version, a.token, a.late, a.retried)
	}
	return text
}

// served gives a story of contenders who ask as next says, and an honest store.
func served(random *rand.Rand, scenario Contest, next func(last *operation) operation) *story {
	var store chainStore
	operations := honestRun(random, 2+random.IntN(4), 3+random.IntN(6), next, store.serve)
	return tell(random, scenario, operations, store.writers)
}

func TestRoundRuleInRulings(t *testing.T) {
	t.Parallel()
	for _, scenario := range []Contest{FailIfExists{}, VersionCAS{}} {
		t.Run(scenario.Info().Name, func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(71, 73))
			checkRulings(t, scenario, 100_000, func() *story {
				return served(random, scenario, func(*operation) operation {
					if random.IntN(4) == 0 {
						return operation{kind: sawNew}
					}
					return operation{kind: wrote, version: 1}
				})
			}, brokenBeliefs)
		})
	}
}

func TestChainRuleInRulings(t *testing.T) {
	t.Parallel()
	random, scenario := rand.New(rand.NewPCG(79, 83)), NewLease()
	checkRulings(t, scenario, 200_000, func() *story { return served(random, scenario, readThenWrite) }, brokenBeliefs)
}

// The counter has the rule of its count beside that of the chain.
func TestCountInRulings(t *testing.T) {
	t.Parallel()
	random, scenario := rand.New(rand.NewPCG(101, 103)), NewCounter()
	count := func(change func(*versions)) func(Finding) {
		return func(k Finding) { change(chainIn(k)) }
	}
	checkRulings(t, scenario, 200_000, func() *story { return served(random, scenario, readThenWrite) }, append(brokenBeliefs,
		brokenBelief{"what is unknown did not count", nil, count(func(v *versions) { v.unknown = 0 })},
		brokenBelief{"a write counts twice", nil, count(func(v *versions) { v.wrote++ })},
		brokenBelief{"a write does not count", nil, count(func(v *versions) { v.wrote-- })},
	))
}

// A version that was accepted and is not shown any more is lost where two sessions
// confirm it, though they show what the read-back did.
func TestChainThatHasGoneBack(t *testing.T) {
	write := func(contender int, version int64, call time.Duration) runner.Exchange {
		return runner.Exchange{Contender: contender, Call: call, Return: call + 5, Reply: targets.Reply{Outcome: targets.OK, Attempts: 1},
			Op: targets.Op{Kind: targets.Write, Key: storyKey, Value: targets.Record{Token: runner.Token(storyKey, contender, 1), Version: version}}}
	}
	for _, scenario := range []Contest{NewLease(), NewCounter()} {
		s := &story{round: runner.Round{Number: 1, Key: storyKey, Ops: []runner.Exchange{write(0, 1, 10), write(1, 2, 20)}}}
		for _, op := range scenario.Seeds(storyKey) {
			s.round.Seeds = append(s.round.Seeds, runner.Exchange{Contender: runner.ByRunner, Op: op, Call: 1, Return: 2, Reply: targets.Reply{Outcome: targets.OK}})
		}
		read := func(contender int, at time.Duration, shows int) runner.Exchange {
			return runner.Exchange{Contender: contender, Call: at, Return: at + 1, Op: targets.Op{Kind: targets.Read, Key: storyKey},
				Reply: targets.Reply{Outcome: targets.OK, Attempts: 1, Record: s.round.Ops[shows].Op.Value}}
		}
		s.round.Reads = []runner.Exchange{read(runner.ByRunner, 30, 0)}
		s.lates = []runner.Exchange{read(0, 100, 0), read(1, 110, 0)}
		if _, r, _ := s.ruled(scenario, nil); r.Violation == nil || r.Violation.Kind != "lost-write" {
			t.Errorf("%s: gone for good: %+v", scenario.Info().Name, r)
		}
		s.lates[1] = read(1, 110, 1)
		if _, r, _ := s.ruled(scenario, nil); r.Violation != nil || !r.StaleRead || r.Undecided {
			t.Errorf("%s: shown again: %+v", scenario.Info().Name, r)
		}
		s.lates = s.lates[:1]
		if _, r, j := s.ruled(scenario, nil); r.Violation != nil || !r.Undecided || len(j.Undecided()) != 1 {
			t.Errorf("%s: one late read only: %+v", scenario.Info().Name, r)
		}
	}
}
