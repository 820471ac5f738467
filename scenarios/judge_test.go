package scenarios

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"contend/runner"
	"contend/targets"
)

const ms = time.Millisecond

// op is a contender's write in a made-up round.
type op struct {
	outcome   targets.Outcome
	call, ret time.Duration
	attempts  int
}

// roundOf makes a round of creates, whose read-back shows what owner wrote;
// owner runner.ByRunner: nothing.
func roundOf(number int, owner int, ops ...op) *runner.Round {
	key := fmt.Sprintf("contend-01TEST-r%d", number)
	r := &runner.Round{Number: number, Key: key, Collection: targets.Plain}
	end := time.Duration(0)
	for i, o := range ops {
		r.Ops = append(r.Ops, runner.Exchange{Contender: i, Call: o.call, Began: o.call, Sent: o.call, Guard: o.call, Return: o.ret,
			Op:    targets.Op{Kind: targets.Write, Key: key, If: targets.Condition{Guard: targets.IfAbsent}, Value: targets.Record{Token: runner.Token(key, i, 1), Version: 1}},
			Reply: targets.Reply{Outcome: o.outcome, Attempts: max(1, o.attempts)}})
		end = max(end, o.ret)
	}
	r.Reads = []runner.Exchange{readOf(r, owner, end+ms)}
	return r
}

func readOf(r *runner.Round, owner int, at time.Duration) runner.Exchange {
	read := runner.Exchange{Contender: runner.ByRunner, Op: targets.Op{Kind: targets.Read, Key: r.Key}, Reply: targets.Reply{Outcome: targets.Missing}, Call: at, Sent: at, Return: at + ms}
	if owner != runner.ByRunner {
		read.Reply = targets.Reply{Outcome: targets.OK, Record: targets.Record{Token: runner.Token(r.Key, owner, 1), Version: 1}}
	}
	return read
}

// contested is a round in which the first of four wins and all are at the guard.
func contested(number int) *runner.Round {
	lost := op{targets.Conflict, 1 * ms, 9 * ms, 1}
	return roundOf(number, 0, op{targets.OK, 1 * ms, 8 * ms, 1}, lost, lost, lost)
}

func judgeOf(rounds ...*runner.Round) *Judge {
	j := NewJudge(Terms{Scenario: FailIfExists{}, MinContended: 1, Settle: 500 * ms, Thresholds: DefaultThresholds})
	for _, r := range rounds {
		j.Round(r)
	}
	return j
}

// agree makes the late read of a round show what its last read-back did.
func agree(j *Judge, rounds ...*runner.Round) *Judge {
	for _, r := range rounds {
		late := r.Reads[len(r.Reads)-1]
		late.Call, late.Sent, late.Return = late.Call+time.Hour, late.Sent+time.Hour, late.Return+time.Hour
		j.Late(r.Number, &late)
	}
	return j
}

func TestVerdictOfMadeUpRounds(t *testing.T) {
	win, lose := op{targets.OK, 1 * ms, 8 * ms, 1}, op{targets.Conflict, 1 * ms, 9 * ms, 1}
	unknown := op{targets.Unknown, 1 * ms, 9 * ms, 1}
	foreign := contested(3)
	foreign.Reads[0].Reply.Record.Token = "somebody-else"
	unread := contested(3)
	unread.Reads[0].Reply = targets.Reply{Outcome: targets.Unknown}
	for _, c := range []struct {
		name   string
		round  *runner.Round
		status Status
		kind   string
		reason string
	}{
		{"as it should be", contested(3), Held, "", ""},
		{"nobody wins and nobody is refused", roundOf(3, runner.ByRunner, op{targets.Aborted, ms, 9 * ms, 1}, op{targets.Aborted, ms, 9 * ms, 1}), Held, "", ""},
		{"an unknown winner", roundOf(3, 0, unknown, lose, lose, lose), Held, "", ""},
		{"an unknown outcome late to the party", roundOf(3, 0, win, lose, lose, unknown), Inconclusive, "", "without a certain answer"},
		{"two winners", roundOf(3, 0, win, win, lose, lose), Violated, "several-winners", ""},
		{"an unknown one wrote over the winner", roundOf(3, 1, win, unknown, lose, lose), Violated, "wrong-owner", ""},
		{"the loser's record", roundOf(3, 2, win, lose, lose, lose), Violated, "refused-but-applied", ""},
		{"a throttled one's record", roundOf(3, 1, win, op{targets.Throttled, ms, 9 * ms, 1}, lose, lose), Violated, "refused-but-applied", ""},
		{"a request never sent is stored", roundOf(3, 1, win, op{targets.NotSent, ms, 9 * ms, 1}, lose, lose), Violated, "refused-but-applied", ""},
		{"no winner", roundOf(3, runner.ByRunner, lose, lose, lose, lose), Violated, "no-winner", ""},
		{"refused too early", roundOf(3, 0, op{targets.OK, 20 * ms, 30 * ms, 1}, lose, lose, lose), Violated, "refused-before-winner", ""},
		{"a refusal after two attempts lost to itself", roundOf(3, 1, op{targets.Conflict, ms, 9 * ms, 1}, op{targets.Conflict, ms, 9 * ms, 2}, lose, lose), Held, "", ""},
		{"two winners, one after two attempts", roundOf(3, 0, win, op{targets.OK, ms, 9 * ms, 2}, lose, lose), Inconclusive, "", "more than once"},
		{"a foreign writer", foreign, Inconclusive, "", "nobody of this run wrote"},
		{"an unknown code", roundOf(3, 0, win, lose, lose, op{targets.Unmapped, ms, 9 * ms, 1}), Inconclusive, "", "no row in the target's table"},
		{"one winner by an answer after two attempts, two by others", roundOf(3, 1, op{targets.OK, ms, 9 * ms, 2}, win, win, lose), Violated, "several-winners", ""},
		{"no read-back", unread, Inconclusive, "", "could not be read once more"},
	} {
		v := agree(judgeOf(contested(1), contested(2), c.round), contested(1), contested(2), c.round).Conclude(runner.End{}).Verdict
		kind := ""
		if len(v.Violations) > 0 {
			kind = v.Violations[0].Kind
			if v.Violations[0].Round != 3 || len(v.Violations[0].Witness) == 0 {
				t.Errorf("%s: violation %+v", c.name, v.Violations[0])
			}
		}
		if v.Status != c.status || kind != c.kind || !strings.Contains(strings.Join(v.Reasons, "; "), c.reason) {
			t.Errorf("%s: %s %q %q; want %s %q %q", c.name, v.Status, kind, v.Reasons, c.status, c.kind, c.reason)
		}
	}
}

// noRead stands for a late read that was not made.
const noRead = -2

// confirm makes two late reads of a round, through two sessions, that agree.
func confirm(j *Judge, r *runner.Round, owner int) {
	for session := range 2 {
		read := readOf(r, owner, time.Second+time.Duration(session)*100*ms)
		read.Contender = session
		j.Late(r.Number, &read)
	}
}

// A missing or old state is believed when two sessions agree on it after the settling
// time, and not before, not by one session alone, and never of readers that lag.
func TestOldStateIsBelievedWhenConfirmed(t *testing.T) {
	lose, win := op{targets.Conflict, 1 * ms, 9 * ms, 1}, op{targets.OK, 1 * ms, 8 * ms, 1}
	for name, c := range map[string]struct {
		at       [2]time.Duration
		sessions [2]int
		lag      bool
		want     Status
	}{
		"confirmed":                      {[2]time.Duration{time.Second, 2 * time.Second}, [2]int{0, 1}, false, Violated},
		"one came before it had settled": {[2]time.Duration{100 * ms, time.Second}, [2]int{0, 1}, false, Inconclusive},
		"through one session":            {[2]time.Duration{time.Second, 2 * time.Second}, [2]int{1, 1}, false, Inconclusive},
		"the controls showed a lag":      {[2]time.Duration{time.Second, 2 * time.Second}, [2]int{0, 1}, true, Inconclusive},
	} {
		j := judgeOf()
		j.readersLag = c.lag
		r := roundOf(1, runner.ByRunner, win, lose, lose, lose)
		j.Round(r)
		for i, at := range c.at {
			read := readOf(r, runner.ByRunner, at)
			read.Contender = c.sessions[i]
			j.Late(1, &read)
		}
		if undecided := len(j.Undecided()) == 1; undecided != (c.want == Inconclusive) {
			t.Errorf("%s: undecided %v", name, undecided)
		}
		v := j.Conclude(runner.End{}).Verdict
		if v.Status != c.want || c.want == Inconclusive && !strings.Contains(fmt.Sprint(v.Reasons), "stale reads in 1 of 1 rounds") {
			t.Errorf("%s: %s, want %s: %v", name, v.Status, c.want, v.Reasons)
		}
	}
}

// What a late read shows can revise an earlier round, either way.
func TestLateReadRevises(t *testing.T) {
	lose := op{targets.Conflict, 1 * ms, 9 * ms, 1}
	win := op{targets.OK, 1 * ms, 8 * ms, 1}
	for _, c := range []struct {
		name   string
		round  *runner.Round
		late   int
		status Status
		kind   string
	}{
		{"as the read-back", contested(1), 0, Held, ""},
		{"the winner is gone", contested(1), runner.ByRunner, Violated, "lost-write"},
		{"a loser has taken its place", contested(1), 2, Violated, "refused-but-applied"},
		{"the read-back was stale", roundOf(1, runner.ByRunner, win, lose, lose, lose), 0, Inconclusive, ""},
		{"the old state, and no late read", roundOf(1, runner.ByRunner, win, lose, lose, lose), noRead, Inconclusive, ""},
		{"as it should be, and no late read", contested(1), noRead, Inconclusive, ""},
		{"the old state is confirmed", roundOf(1, runner.ByRunner, win, lose, lose, lose), runner.ByRunner, Violated, "lost-write"},
		{"an unknown write came late", roundOf(1, 0, win, lose, lose, op{targets.Unknown, ms, 9 * ms, 1}), 3, Violated, "wrong-owner"},
	} {
		j := judgeOf(c.round)
		if c.late != noRead {
			confirm(j, c.round, c.late)
		}
		v := j.Conclude(runner.End{}).Verdict
		kind := ""
		if len(v.Violations) > 0 {
			kind = v.Violations[0].Kind
		}
		if v.Status != c.status || kind != c.kind {
			t.Errorf("%s: %s %q %v, want %s %q", c.name, v.Status, kind, v.Reasons, c.status, c.kind)
		}
	}
}

// Where another's token stands, an unknown write may have been applied and written
// over, whatever the store counts: its round is uncertain. Where nothing was written
// as far as both reads tell, it was not applied.
func TestUnsettledUnknownIsUncertain(t *testing.T) {
	lose := op{targets.Conflict, 1 * ms, 9 * ms, 1}
	unknown := op{targets.Unknown, ms, 9 * ms, 1}
	aborted := op{targets.Aborted, ms, 9 * ms, 1}
	for name, c := range map[string]struct {
		owner     int
		ops       []op
		uncertain string
	}{
		"another's token stands":  {0, []op{{targets.OK, 1 * ms, 8 * ms, 1}, unknown}, "could not settle"},
		"its own token stands":    {1, []op{lose, unknown}, ""},
		"nothing was ever stored": {runner.ByRunner, []op{aborted, unknown}, ""},
		"two of twelve were not":  {runner.ByRunner, []op{unknown, unknown}, "without a certain answer"},
	} {
		r := roundOf(1, c.owner, append(slices.Clone(c.ops), slices.Repeat([]op{map[bool]op{true: lose, false: aborted}[c.owner != runner.ByRunner]}, 10)...)...)
		got := agree(judgeOf(r), r).Conclude(runner.End{}).Contention
		if text := fmt.Sprint(got.Uncertain); (got.UncertainRounds == 1) != (c.uncertain != "") || !strings.Contains(text, c.uncertain) {
			t.Errorf("%s: %d uncertain rounds: %s; want %q", name, got.UncertainRounds, text, c.uncertain)
		}
	}
}

// A request that was answered before its last byte was sent makes its round uncertain,
// also where the read-back tells what became of it.
func TestEarlyAnswerIsUncertain(t *testing.T) {
	for _, early := range []bool{false, true} {
		lose := op{targets.Conflict, 1 * ms, 9 * ms, 1}
		r := roundOf(1, 1, append([]op{lose, {targets.Unknown, ms, 9 * ms, 1}}, slices.Repeat([]op{lose}, 10)...)...)
		r.Ops[1].Reply.Early = early
		got := agree(judgeOf(r), r).Conclude(runner.End{}).Contention
		if text := fmt.Sprint(got.Uncertain); (got.UncertainRounds == 1) != early || early && !strings.Contains(text, "the server does not wait") {
			t.Errorf("early %v: %d uncertain rounds: %s", early, got.UncertainRounds, text)
		}
	}
}

// contradictory rules illegal rounds legal.
type contradictory struct{ FailIfExists }

func (c contradictory) Judge(r *runner.Round, oneCopy bool) Finding {
	return contradiction{c.FailIfExists.Judge(r, oneCopy)}
}

type contradiction struct{ Finding }

func (c contradiction) Rule() Ruling {
	r := c.Finding.Rule()
	r.legal, r.Violation = !r.legal, nil
	return r
}

// A judge that the general checker contradicts says so and nothing else.
func TestDisagreementIsInconclusive(t *testing.T) {
	for _, round := range []*runner.Round{contested(1), roundOf(1, 0, op{targets.OK, ms, 8 * ms, 1}, op{targets.OK, ms, 9 * ms, 1})} {
		j := judgeOf()
		j.terms.Scenario = contradictory{}
		j.Round(round)
		if v := j.Conclude(runner.End{}).Verdict; v.Status != Inconclusive || !strings.Contains(strings.Join(v.Reasons, ""), "bug in contend") {
			t.Errorf("%s: %v", v.Status, v.Reasons)
		}
	}
}

func TestEvidenceOfAMadeUpRound(t *testing.T) {
	key := "contend-01TEST-r1"
	write := func(contender int, sent, ret time.Duration, o targets.Outcome) runner.Exchange {
		return runner.Exchange{Contender: contender, Call: sent - 1, Sent: sent, Guard: sent, Return: ret, Reply: targets.Reply{Outcome: o},
			Op: targets.Op{Kind: targets.Write, Key: key, Value: targets.Record{Token: runner.Token(key, contender, 1)}}}
	}
	read := func(contender int, sent, ret time.Duration, o targets.Outcome) runner.Exchange {
		return runner.Exchange{Contender: contender, Sent: sent, Return: ret, Reply: targets.Reply{Outcome: o}, Op: targets.Op{Kind: targets.Read, Key: key}}
	}
	// Contender 1 wins; 0 is refused while it does; 2 loses at the read; 3 comes after.
	e := evidenceOf(&runner.Round{Key: key, Ops: []runner.Exchange{
		read(0, 10, 20, targets.Missing), write(0, 25, 40, targets.Conflict),
		read(1, 11, 19, targets.Missing), write(1, 22, 35, targets.OK),
		read(2, 30, 36, targets.OK),
		read(3, 50, 55, targets.Missing), write(3, 60, 70, targets.Conflict),
	}})
	want := Evidence{Contenders: 4, MaxInFlight: 3, Overlap: 0.5, WinnerOverlap: 2.0 / 3, GuardContention: 1.0 / 3, ReachedGuard: 3,
		Skew: 40, Closest: 3, WinnerRank: 1, Rivals: none, Reach: none, timedOut: true}
	if e != want {
		t.Errorf("got  %+v\nwant %+v", e, want)
	}

	// A winner that only the read-back knows: acknowledged when the first was refused.
	r := &runner.Round{Key: key, Ops: []runner.Exchange{
		write(0, 10, 100, targets.Unknown), write(1, 12, 40, targets.Conflict), write(2, 50, 60, targets.Conflict),
	}, Reads: []runner.Exchange{{Reply: targets.Reply{Outcome: targets.OK, Record: targets.Record{Token: runner.Token(key, 0, 1)}}, Call: 200, Return: 210}}}
	if e := evidenceOf(r); e.WinnerOverlap != 0.5 || e.GuardContention != 0.5 || e.WinnerRank != 1 || e.Troubled != 1 || e.Unknown != 1 {
		t.Errorf("a winner known from the read-back: %+v", e)
	}

	// Nobody won: no figure rather than a wrong one.
	if e := evidenceOf(&runner.Round{Key: key, Ops: []runner.Exchange{write(0, 10, 20, targets.Aborted), write(1, 12, 22, targets.Throttled)}}); e.WinnerOverlap >= 0 || e.GuardContention >= 0 || e.Overlap != 1 || e.Troubled != 1 {
		t.Errorf("nobody won: %+v", e)
	}
}

// Overlap in O(n log n) is what counting every pair gives.
func TestOverlapIsWhatPairsGive(t *testing.T) {
	for seed := range 200 {
		n := 2 + seed%9
		spans := make([]span, n)
		x := uint32(seed*2654435761 + 1)
		next := func(limit uint32) time.Duration {
			x = x*1664525 + 1013904223
			return time.Duration((x >> 8) % limit)
		}
		for i := range spans {
			spans[i].sent = next(20)
			spans[i].end = spans[i].sent + next(10)
		}
		pairs, peak := 0, 0
		for i, a := range spans {
			at := 0
			for j, b := range spans {
				if i < j && a.sent <= b.end && b.sent <= a.end {
					pairs++
				}
				if b.sent <= a.sent && a.sent <= b.end {
					at++
				}
			}
			peak = max(peak, at)
		}
		gotPeak, got := overlap(spans)
		if want := float64(pairs) / float64(n*(n-1)/2); math.Abs(got-want) > 1e-12 || gotPeak != peak {
			t.Fatalf("%+v: overlap %v and peak %d, want %v and %d", spans, got, gotPeak, want, peak)
		}
	}
}

// Every control is seen to fail on a store that is wrong in its way.
func TestControlsSeeWhatIsWrong(t *testing.T) {
	type store struct {
		name                    string
		create, cas, perSession bool // wrong in that way
		wantControl, wantKind   string
	}
	for _, s := range []store{
		{name: "honest"},
		{name: "creates are not guarded", create: true, wantControl: "sequential", wantKind: "second-create-accepted"},
		{name: "versions are not looked at", cas: true, wantControl: "stale", wantKind: "stale-write-accepted"},
		{name: "each session has a store of its own", perSession: true, wantControl: "sequential", wantKind: "second-create-accepted"},
	} {
		held := []map[string]targets.Record{{}, {}}
		if !s.perSession {
			held[1] = held[0]
		}
		c := &runner.Controls{Key: "contend-01TEST-s"}
		targets.CheckSequential(c.Key, func(session int, op targets.Op) targets.Reply {
			reply := answer(held[session], op, s.create, s.cas)
			c.Sequential = append(c.Sequential, runner.Exchange{Contender: session, Op: op, Reply: reply})
			return reply
		})
		c.Nonce = nonceOf("a", "a", "a")
		j := judgeOf()
		proceed := j.Controls(c)
		var kinds []string
		for _, control := range j.controls {
			// A store for each session fails the other control too, in its own way.
			if control.Name == s.wantControl == control.AsExpected && !(s.perSession && control.Name == "stale") {
				t.Errorf("%s: control %s as expected: %v (%s)", s.name, control.Name, control.AsExpected, control.Detail)
			}
			for _, v := range control.violations {
				kinds = append(kinds, v.Kind)
				if len(v.Witness) != 2 || v.Detail == "" {
					t.Errorf("%s: violation %+v", s.name, v)
				}
			}
		}
		if s.wantKind == "" != proceed || s.wantKind != strings.Join(kinds, " ") {
			t.Errorf("%s: proceed %v, violations %q; want %q", s.name, proceed, kinds, s.wantKind)
		}
	}
}

// honestControls are the sequential checks of a store that keeps its promises.
func honestControls() *runner.Controls {
	held := map[string]targets.Record{}
	c := &runner.Controls{Key: "contend-01TEST-s"}
	targets.CheckSequential(c.Key, func(session int, op targets.Op) targets.Reply {
		reply := answer(held, op, false, false)
		c.Sequential = append(c.Sequential, runner.Exchange{Contender: session, Op: op, Reply: reply})
		return reply
	})
	return c
}

func answer(held map[string]targets.Record, op targets.Op, unguardedCreate, unguardedVersion bool) targets.Reply {
	was, exists := held[op.Key]
	switch {
	case op.Kind == targets.Delete:
		delete(held, op.Key)
	case op.Kind == targets.Read && !exists:
		return targets.Reply{Outcome: targets.Missing}
	case op.Kind == targets.Read:
		return targets.Reply{Outcome: targets.OK, Record: was}
	case op.If.Guard == targets.IfAbsent && exists && !unguardedCreate,
		op.If.Guard == targets.IfVersion && was.Version != op.If.Counter && !unguardedVersion:
		return targets.Reply{Outcome: targets.Conflict, Code: "refused"}
	default:
		held[op.Key] = op.Value
	}
	return targets.Reply{Outcome: targets.OK}
}

func nonceOf(written string, read ...string) []runner.Exchange {
	all := []runner.Exchange{{Contender: runner.ByRunner, Op: targets.Op{Kind: targets.Write, Value: targets.Record{Token: written}}, Reply: targets.Reply{Outcome: targets.OK}}}
	for i, token := range read {
		all = append(all, runner.Exchange{Contender: i, Reply: targets.Reply{Outcome: targets.OK, Record: targets.Record{Token: token}}})
	}
	return all
}

func TestNonceAndTwinControls(t *testing.T) {
	twin := func(rounds ...*runner.Round) []runner.Round {
		var all []runner.Round
		for _, r := range rounds {
			all = append(all, *r)
		}
		return all
	}
	win := op{targets.OK, 1 * ms, 8 * ms, 1}
	double := func(n int) *runner.Round { return roundOf(n, 0, win, win) }
	for _, c := range []struct {
		name  string
		nonce []runner.Exchange
		twin  []runner.Round
		fails string
	}{
		{"all well", nonceOf("a", "a", "a"), twin(double(1), double(2)), ""},
		{"a session sees another store", nonceOf("a", "a", "b"), twin(double(1), double(2)), "nonce"},
		{"nothing was read", nonceOf("a"), twin(double(1), double(2)), "nonce"},
		{"the twin was not violated once", nonceOf("a", "a"), twin(double(1), contested(2)), "twin"},
		{"nothing was checked before", nonceOf("a", "a", "a"), twin(double(1), double(2)), "sequential"},
		{"the twin was cut short", nonceOf("a", "a"), twin(double(1)), "twin"},
	} {
		j := NewJudge(Terms{Scenario: FailIfExists{}, Twin: CheckThenSet{}, MinContended: 1, ControlRounds: 2, Thresholds: DefaultThresholds})
		controls := honestControls()
		if controls.Nonce, controls.Twin = c.nonce, c.twin; c.name == "nothing was checked before" {
			controls.Key, controls.Sequential = "", nil
		}
		if !j.Controls(controls) {
			t.Errorf("%s: no race", c.name)
		}
		j.Round(contested(1))
		v := agree(j, contested(1)).Conclude(runner.End{}).Verdict
		want := Held
		if c.fails != "" {
			want = Inconclusive
		}
		if v.Status != want || (c.fails != "") != slices.ContainsFunc(v.Reasons, func(r string) bool { return strings.HasPrefix(r, "control "+c.fails+":") }) {
			t.Errorf("%s: %s, %v", c.name, v.Status, v.Reasons)
		}
	}
}

func TestMinContended(t *testing.T) {
	j := agree(judgeOf(contested(1), contested(2)), contested(1), contested(2))
	j.terms.MinContended = 3
	if v := j.Conclude(runner.End{}).Verdict; v.Status != Inconclusive || !strings.Contains(v.Reasons[0], "2 of 2 rounds count as contended, and held needs 3 (--min-contended)") {
		t.Errorf("%s: %v", v.Status, v.Reasons)
	}
}

// Of a relayed target the round trips overlap whatever happens at the store: the
// spans next to the store decide.
func TestRelayedEvidence(t *testing.T) {
	relayed := func(uncertainty time.Duration, spans ...targets.Span) *runner.Round {
		r := contested(1)
		r.Relayed = &runner.Relayed{Uncertainty: uncertainty}
		for i := range r.Ops {
			r.Ops[i].Call, r.Ops[i].Sent, r.Ops[i].Return = 1*ms, 1*ms, 3*time.Second
			if i < len(spans) {
				r.Ops[i].Reply.Server = spans[i]
			}
		}
		r.Reads[0].Call, r.Reads[0].Return = 4*time.Second, 5*time.Second
		return r
	}
	at := func(began float64) targets.Span {
		return targets.Span{Began: 1787116436381 + began, Ended: 1787116436381 + began + 50}
	}
	for _, c := range []struct {
		name      string
		round     *runner.Round
		contended bool
		why       string
	}{
		{"all at the store together", relayed(ms, at(0), at(1), at(2), at(3)), true, ""},
		{"one after another at the store", relayed(ms, at(0), at(100), at(200), at(300)), false, "met no other"},
		{"together, however far apart the clocks are", relayed(40*ms, at(0), at(9), at(9), at(9)), true, ""},
		{"together only if the clocks are right", relayed(40*ms, at(0), at(11), at(11), at(11)), false, "met no other"},
		{"clocks further apart than a call is long", relayed(60*ms, at(0), at(1), at(2), at(3)), false, "usable times"},
		{"no times told", relayed(ms), false, "usable times"},
		{"times of some told", relayed(ms, at(0), at(1)), false, "usable times"},
	} {
		got := agree(judgeOf(c.round), c.round).Conclude(runner.End{})
		if contended := got.Contention.ContendedRounds == 1; contended != c.contended {
			t.Errorf("%s: contended %v: %v", c.name, contended, got.Contention.Uncounted)
		}
		if want := map[bool]Status{true: Held, false: Inconclusive}[c.contended]; got.Verdict.Status != want {
			t.Errorf("%s: %s", c.name, got.Verdict.Status)
		}
		if c.why != "" && !strings.Contains(fmt.Sprint(got.Contention.Uncounted), c.why) {
			t.Errorf("%s: not contended because of %v", c.name, got.Contention.Uncounted)
		}
	}
}

// Each threshold decides: a round that just meets it counts, and does not where
// more is asked.
func TestThresholds(t *testing.T) {
	lost := op{targets.Conflict, 1 * ms, 9 * ms, 1}
	late := op{targets.Conflict, 20 * ms, 29 * ms, 1} // after the winner's reply
	round := func(number int) *runner.Round {
		return roundOf(number, 0, op{targets.OK, 1 * ms, 8 * ms, 1}, lost, lost, late, op{targets.Throttled, 1 * ms, 9 * ms, 1})
	}
	unseeded := contested(2)
	unseeded.Seeds = []runner.Exchange{{Contender: runner.ByRunner, Op: targets.Op{Kind: targets.Write, Key: unseeded.Key}, Reply: targets.Reply{Outcome: targets.Throttled}}}
	meets := Thresholds{Rivals: 2, Uncertain: 0.2, UncertainRounds: 0.5, Reach: 8 * ms}
	for name, change := range map[string]func(*Thresholds){
		"":                        func(*Thresholds) {},
		"fewer than 3 rivals":     func(m *Thresholds) { m.Rivals = 3 },
		"throttled (lower --rate": func(m *Thresholds) { m.Uncertain = 0.1 },
		"at most 49 %":            func(m *Thresholds) { m.UncertainRounds = 0.49 },
		"reach above 7ms":         func(m *Thresholds) { m.Reach = 7 * ms },
	} {
		j := judgeOf()
		j.terms.Thresholds, j.terms.OneCopy = meets, true
		change(&j.terms.Thresholds)
		j.Round(round(1))
		j.Round(unseeded)
		got := agree(j, round(1)).Conclude(runner.End{})
		v := got.Verdict
		if held := v.Status == Held; held != (name == "") || !strings.Contains(fmt.Sprint(v.Reasons), name) {
			t.Errorf("threshold %q: %s %v", name, v.Status, v.Reasons)
		}
		if name == "" && (v.Bound.UncertainAtMost == nil || *v.Bound.UncertainAtMost <= v.Bound.AtMost || got.Contention.Reach.Reach == nil || *got.Contention.Reach.Reach != 8*ms) {
			t.Errorf("bound %+v, reach %+v", v.Bound, got.Contention.Reach)
		}
	}
}

// A winner that met no other in flight is no contest, whatever is asked for.
func TestNoRivalNeverCounts(t *testing.T) {
	r := roundOf(1, 0, op{targets.OK, 1 * ms, 8 * ms, 1}, op{targets.Conflict, 10 * ms, 12 * ms, 1}, op{targets.Conflict, 20 * ms, 22 * ms, 1})
	j := judgeOf()
	j.terms.Thresholds = Thresholds{Rivals: -1, Uncertain: 1, UncertainRounds: 1}
	j.Round(r)
	if got := agree(j, r).Conclude(runner.End{}); got.Contention.ContendedRounds != 0 || got.Verdict.Status != Inconclusive {
		t.Errorf("%s with %d counted rounds", got.Verdict.Status, got.Contention.ContendedRounds)
	}
}

// A contender that writes again and again while the winner's write is in flight is one
// rival.
func TestRivalThatWritesOften(t *testing.T) {
	r := roundOf(1, 0, op{targets.OK, 1 * ms, 80 * ms, 1}, op{targets.Aborted, 2 * ms, 9 * ms, 1}, op{targets.Aborted, 10 * ms, 19 * ms, 1}, op{targets.Conflict, 20 * ms, 29 * ms, 1})
	for i := range r.Ops[1:] {
		r.Ops[i+1].Contender = 1
	}
	if all := meetingsOf(r, true); len(all) != 1 || all[0].rivals != 1 {
		t.Errorf("%+v, want one rival", all)
	}
}

// An unknown outcome that was settled makes up for no contender that was throttled.
func TestSettledMakesUpForNoOther(t *testing.T) {
	f := &Shared{readOnce: true, Evidence: Evidence{Contenders: 12, Troubled: 3, Throttled: 3}}
	for settled, unknown := range map[int]int{3: 0, 4: 1} {
		f.Evidence.Unknown, f.Evidence.Troubled = unknown, 3+unknown
		if why := doubtOf(f, &Ruling{Settled: settled}, Terms{Thresholds: DefaultThresholds}, true); !strings.Contains(why.why, "throttled") {
			t.Errorf("%d settled, %d unknown at last: %+v", settled, unknown, why)
		}
	}
	f.Evidence.Throttled, f.Evidence.Unknown, f.Evidence.Troubled = 0, 3, 3
	if why := doubtOf(f, &Ruling{Settled: 3}, Terms{Thresholds: DefaultThresholds}, true); why != (reason{}) {
		t.Errorf("all were settled: %+v", why)
	}
}

// Who lost at a read in front of the guard is no rival, and the reason says so.
func TestRefusedAtAReadIsNoRival(t *testing.T) {
	r := roundOf(1, 0, op{targets.OK, 1 * ms, 8 * ms, 1}, op{targets.Conflict, 2 * ms, 9 * ms, 1})
	x := &r.Ops[1]
	x.Guard, x.Reply.ByRead, x.Reply.Record = 0, true, targets.Record{Token: r.Ops[0].Op.Value.Token, Version: 1}
	got := agree(judgeOf(r), r).Conclude(runner.End{})
	if text := fmt.Sprint(got.Contention.Uncounted); got.Contention.ContendedRounds != 0 || !strings.Contains(text, "refused at a read in front of it") {
		t.Errorf("%s, %s", got.Verdict.Status, text)
	}
}

// K is half of the others rounded up, and five at most.
func TestRivalsNeeded(t *testing.T) {
	for n, want := range map[int]int{2: 1, 3: 1, 4: 2, 5: 2, 6: 3, 10: 5, 11: 5, 12: 5, 200: 5} {
		if got := RivalsNeeded(n, 0); got != want {
			t.Errorf("of %d contenders %d rivals are needed, want %d", n, got, want)
		}
	}
	if RivalsNeeded(12, 7) != 7 {
		t.Error("another number was asked for")
	}
}

// Rivals were in flight with the winner's guarded request, not with its first round
// trip; a refusal at a read is none, and neither is one that came before or after.
func TestRivalsAndReach(t *testing.T) {
	key := "contend-01TEST-r1"
	ifAbsent := targets.Condition{Guard: targets.IfAbsent}
	write := func(contender int, began, guard, ret time.Duration, o targets.Outcome) runner.Exchange {
		return runner.Exchange{Contender: contender, Call: began - 1, Began: began, Sent: began + 2, Guard: guard, Return: ret, Reply: targets.Reply{Outcome: o, Attempts: 1},
			Op: targets.Op{Kind: targets.Write, Key: key, If: ifAbsent, Value: targets.Record{Token: runner.Token(key, contender, 1)}}}
	}
	byRead := write(5, 10, 0, 62, targets.Conflict)
	byRead.Reply.ByRead, byRead.Reply.Record.Token = true, runner.Token(key, 0, 1)
	other := write(6, 10, 55, 70, targets.Conflict)
	other.Op.If = targets.Condition{Guard: targets.IfVersion, Counter: 3}
	r := &runner.Round{Key: key, Ops: []runner.Exchange{
		write(0, 10, 50, 80, targets.OK),
		write(1, 10, 45, 90, targets.Conflict), // met
		write(2, 11, 60, 95, targets.Aborted),  // met
		write(3, 12, 20, 49, targets.Conflict), // answered before the winner's guarded request was sent
		write(4, 85, 86, 99, targets.Conflict), // sent when the winner had its reply
		byRead,
		other,
		write(7, 13, 51, 60, targets.Throttled),
	}}
	for _, c := range []struct {
		oneCopy bool
		reach   time.Duration
	}{
		{true, 39},  // the refusal at 49: only the winner can have caused it
		{false, 52}, // the read of its token at 62
	} {
		all := meetingsOf(r, c.oneCopy)
		if len(all) != 1 || all[0].rivals != 2 || all[0].reach != c.reach {
			t.Errorf("one copy %v: %+v, want 2 rivals and a reach of %d", c.oneCopy, all, c.reach)
		}
	}
	r.Ops = r.Ops[1:2]
	if all := meetingsOf(r, true); len(all) != 0 {
		t.Errorf("nobody won: %+v", all)
	}
}

// A read-back of nothing, where a record had been seeded, is believed only if the
// late read confirms it.
func TestVanishedRecord(t *testing.T) {
	lose := op{targets.Conflict, 1 * ms, 9 * ms, 1}
	seeded := func(owner int) *runner.Round {
		r := roundOf(1, owner, op{targets.OK, 1 * ms, 8 * ms, 1}, lose, lose, lose)
		r.Seeds = []runner.Exchange{{Contender: runner.ByRunner, Op: targets.Op{Kind: targets.Write, Key: r.Key, Value: targets.Record{Token: r.Key + seedSuffix}},
			Reply: targets.Reply{Outcome: targets.OK}}}
		return r
	}
	for late, want := range map[int]Status{0: Inconclusive, noRead: Inconclusive, runner.ByRunner: Violated} {
		j := judgeOf()
		j.terms.Scenario = VersionCAS{}
		r := seeded(runner.ByRunner)
		j.Round(r)
		if late != noRead {
			confirm(j, r, late)
		}
		if v := j.Conclude(runner.End{}).Verdict; v.Status != want {
			t.Errorf("late read %d: %s, want %s: %v %v", late, v.Status, want, v.Reasons, v.Violations)
		}
	}
}

// An answer that nobody knows is one, wherever it came.
func TestUnmappedReads(t *testing.T) {
	unknown := runner.Exchange{Contender: runner.ByRunner, Op: targets.Op{Kind: targets.Read}, Reply: targets.Reply{Outcome: targets.Unmapped, Code: "STRANGE"}}
	back := contested(1)
	back.Reads = append([]runner.Exchange{unknown}, back.Reads...)
	late := agree(judgeOf(contested(1)), contested(1))
	late.Late(1, &unknown)
	// A contender's, after which it went on.
	early := contested(1)
	early.Ops = append([]runner.Exchange{{Op: unknown.Op, Reply: unknown.Reply}}, early.Ops...)
	for name, j := range map[string]*Judge{"read-back": agree(judgeOf(back), back), "late read": late, "on the way": agree(judgeOf(early), early)} {
		if v := j.Conclude(runner.End{}).Verdict; v.Status != Inconclusive || !strings.Contains(fmt.Sprint(v.Reasons), "STRANGE") {
			t.Errorf("%s: %s %v", name, v.Status, v.Reasons)
		}
	}
}

// A request that never left was not in flight, and only an unknown outcome that
// was settled is taken off the troubled.
func TestTroubleAndFlight(t *testing.T) {
	lose := op{targets.Conflict, 1 * ms, 9 * ms, 1}
	ops := []op{{targets.OK, 1 * ms, 8 * ms, 1}}
	for len(ops) < 10 {
		ops = append(ops, lose)
	}
	unsent := append(slices.Clone(ops), op{targets.NotSent, 1 * ms, 9 * ms, 1})
	if e := evidenceOf(roundOf(1, 0, unsent...)); e.MaxInFlight != 10 || e.Contenders != 11 || e.Troubled != 1 {
		t.Errorf("%d of %d in flight, %d troubled; one was not sent", e.MaxInFlight, e.Contenders, e.Troubled)
	}
	// Two of twelve are throttled; a refusal after two attempts turns out to be the winner's.
	throttled := append(slices.Clone(ops[1:]), op{targets.Conflict, ms, 9 * ms, 2}, op{targets.Throttled, ms, 9 * ms, 1}, op{targets.Throttled, ms, 9 * ms, 1})
	r := roundOf(1, 9, throttled...)
	if v := agree(judgeOf(r), r).Conclude(runner.End{}).Verdict; v.Status != Inconclusive || !strings.Contains(fmt.Sprint(v.Reasons), "throttled") {
		t.Errorf("%s %v", v.Status, v.Reasons)
	}
}

// A refusal that the store applied all the same is a violation in the controls
// too; two accepted creates that went out twice prove nothing.
func TestControlsAreHistories(t *testing.T) {
	for _, c := range []struct {
		name     string
		attempts int
		wrong    bool // refuses, and stores
		kind     string
	}{
		{"refuses, and stores", 1, true, "refused-but-applied"},
		{"accepts a second create that went out twice", 2, false, ""},
	} {
		held := map[string]targets.Record{}
		controls := &runner.Controls{Key: "contend-01TEST-s", Nonce: nonceOf("a", "a")}
		targets.CheckSequential(controls.Key, func(session int, op targets.Op) targets.Reply {
			reply := answer(held, op, c.attempts > 1, c.attempts > 1)
			if c.wrong && reply.Outcome == targets.Conflict {
				held[op.Key] = op.Value
			}
			reply.Attempts = c.attempts
			controls.Sequential = append(controls.Sequential, runner.Exchange{Contender: session, Op: op, Reply: reply})
			return reply
		})
		j := judgeOf()
		j.Controls(controls)
		var kinds []string
		failed := 0
		for _, control := range j.controls {
			if !control.AsExpected {
				failed++
			}
			for _, v := range control.violations {
				kinds = append(kinds, v.Kind)
			}
		}
		if failed != 2 || len(kinds) > 0 != (c.kind != "") || len(kinds) > 0 && kinds[0] != c.kind {
			t.Errorf("%s: %d controls not as expected, violations %q, want %q", c.name, failed, kinds, c.kind)
		}
	}
}
