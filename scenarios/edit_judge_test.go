package scenarios

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"contend/runner"
	"contend/targets"
)

const madeUpKey = "contend-01TEST-r1"

// madeUpEdit is an editor's in a made-up round; tokens are written as editor.attempt.
type madeUpEdit struct {
	token     string
	over      string // the edits of the document that it goes back to, separated by blanks
	outcome   targets.Outcome
	call, ret time.Duration
	attempts  int
	still     bool // it leaves the time as it was
}

// tokenOf gives the whole token of one such as 3.1; any other is somebody else's.
func tokenOf(short string) string {
	var editor, attempt int
	if n, _ := fmt.Sscanf(short, "%d.%d", &editor, &attempt); n < 2 {
		return short
	}
	return runner.Token(madeUpKey, editor, attempt)
}

func checklistBody(edits string) json.RawMessage {
	c := checklist{Items: map[string]bool{}, Edits: []string{}}
	for short := range strings.FieldsSeq(edits) {
		c.Edits = append(c.Edits, tokenOf(short))
	}
	return c.body()
}

// shown is a read of the document; edits "missing": there was none, "unknown": no
// answer. The record's token is that of the last edit, and the version their number.
func shown(edits string, at time.Duration) runner.Exchange {
	x := runner.Exchange{Contender: runner.ByRunner, Call: at, Sent: at, Return: at + ms, Op: targets.Op{Kind: targets.Read, Key: madeUpKey}}
	switch all := strings.Fields(edits); {
	case edits == "missing":
		x.Reply = targets.Reply{Outcome: targets.Missing}
	case edits == "unknown":
		x.Reply = targets.Reply{Outcome: targets.Unknown}
	default:
		token := madeUpKey + seedSuffix
		if len(all) > 0 {
			token = tokenOf(all[len(all)-1])
		}
		x.Reply = targets.Reply{Outcome: targets.OK, Record: targets.Record{Token: token, Version: int64(len(all)), Body: checklistBody(edits)}}
	}
	return x
}

// editRound makes a round of two editors at least; back is what its read-back shows.
func editRound(guard targets.Guard, back string, writes ...madeUpEdit) *runner.Round {
	r := &runner.Round{Number: 1, Key: madeUpKey, Collection: targets.Versioned}
	at := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	for _, w := range writes {
		var editor, attempt int
		_, _ = fmt.Sscanf(w.token, "%d.%d", &editor, &attempt)
		if attempt == 1 {
			read := shown(w.over, 0)
			read.Contender = editor
			r.Ops = append(r.Ops, read)
		}
		value := targets.Record{Token: tokenOf(w.token), Version: int64(len(strings.Fields(w.over)) + 1), UpdatedAt: at, Body: checklistBody(w.over + " " + w.token)}
		if !w.still {
			value.UpdatedAt = at.Add(time.Second)
		}
		r.Ops = append(r.Ops, runner.Exchange{Contender: editor, Call: w.call, Began: w.call, Sent: w.call, Guard: w.call, Return: w.ret,
			Op: targets.Op{Kind: targets.Write, Key: madeUpKey, Collection: targets.Versioned, Value: value,
				If: targets.Condition{Guard: guard, Counter: value.Version - 1, UpdatedAt: at}},
			Reply: targets.Reply{Outcome: w.outcome, Attempts: max(1, w.attempts)}})
	}
	r.Reads = []runner.Exchange{shown(back, 100*ms)}
	return r
}

func ok(token, over string) madeUpEdit {
	return madeUpEdit{token, over, targets.OK, 10 * ms, 20 * ms, 1, false}
}
func no(token, over string) madeUpEdit {
	return madeUpEdit{token, over, targets.Conflict, 10 * ms, 20 * ms, 1, false}
}

func (w madeUpEdit) as(o targets.Outcome) madeUpEdit       { w.outcome = o; return w }
func (w madeUpEdit) at(call, ret time.Duration) madeUpEdit { w.call, w.ret = call*ms, ret*ms; return w }
func (w madeUpEdit) sent(attempts int) madeUpEdit          { w.attempts = attempts; return w }
func (w madeUpEdit) leavingTheTime() madeUpEdit            { w.still = true; return w }
func (w madeUpEdit) andAgain(token, over string) []madeUpEdit {
	return []madeUpEdit{w, ok(token, over).at(30, 40)}
}
func with(writes []madeUpEdit, more ...madeUpEdit) []madeUpEdit {
	return append(slices.Clone(writes), more...)
}
func lostUpdateBy(guard string) *LostUpdate { s := NewLostUpdate(); s.Guard = guard; return s }
func judgeEdits(s *LostUpdate, r *runner.Round) *Judge {
	j := NewJudge(Terms{Scenario: s, MinContended: 1, Thresholds: DefaultThresholds})
	j.Round(r)
	return j
}

const noLate = "no late read"

// Each case is a round, what its read-back and its late read show, and what the
// judge has to say. Editors 0 and 1 write at once; what comes later says so.
func TestRuleOfEdits(t *testing.T) {
	const as = "as the read-back"
	recovered := with(no("1.1", "").andAgain("1.2", "0.1"), ok("0.1", ""))
	for _, c := range []struct {
		name       string
		guard      string
		writes     []madeUpEdit
		back, late string
		status     Status
		kind       string
		reason     string
		witness    string // whose the two requests are
		counts     [4]int // acknowledged, lost, recovered, unexpected
	}{
		{"one wins, two are refused", "version", []madeUpEdit{ok("0.1", ""), no("1.1", ""), no("2.1", "")}, "0.1", as, Held, "", "", "", [4]int{1, 0, 0, 0}},
		{"a refused one tries again", "version", recovered, "0.1 1.2", as, Held, "", "", "", [4]int{2, 0, 1, 0}},
		{"both are accepted, one is lost", "none", []madeUpEdit{ok("0.1", ""), ok("1.1", "")}, "1.1", as, Violated, "lost-update", "", "contender 0, contender 1", [4]int{2, 1, 0, 0}},
		{"the same the other way", "none", []madeUpEdit{ok("0.1", ""), ok("1.1", "")}, "0.1", as, Violated, "lost-update", "", "contender 1, contender 0", [4]int{2, 1, 0, 0}},
		{"and it does not need the late read", "none", []madeUpEdit{ok("0.1", ""), ok("1.1", "")}, "0.1", noLate, Violated, "lost-update", "", "contender 1, contender 0", [4]int{2, 1, 0, 0}},
		{"a lost one had been recovered", "timestamp", with(no("1.1", "").andAgain("1.2", "0.1"), ok("0.1", ""), ok("2.1", "0.1").at(31, 41)), "0.1 2.1", as,
			Violated, "lost-update", "", "contender 1, contender 2", [4]int{3, 1, 0, 0}},
		{"it was not the one that was answered before", "none", []madeUpEdit{ok("0.1", "").at(1, 5), ok("1.1", "").at(10, 20), ok("2.1", "0.1").at(10, 20)}, "0.1 2.1", as,
			Violated, "lost-update", "", "contender 1, contender 2", [4]int{3, 1, 0, 0}},
		{"an unknown one wrote over it", "none", []madeUpEdit{ok("0.1", ""), ok("1.1", "").as(targets.Unknown)}, "1.1", as, Violated, "lost-update", "", "contender 0, contender 1", [4]int{1, 1, 0, 0}},
		{"the store lost it", "version", []madeUpEdit{ok("0.1", ""), no("1.1", ""), no("2.1", "")}, "", as, Violated, "lost-write", "", "contender 0, late read", [4]int{1, 1, 0, 0}},
		{"the store lost the later of two", "version", recovered, "0.1", as, Violated, "lost-write", "", "contender 1, late read", [4]int{2, 1, 0, 0}},
		{"the store lost the later of two, and answered the earlier after it", "version", []madeUpEdit{ok("0.1", "").at(10, 50), no("1.1", ""), ok("1.2", "0.1").at(30, 40)}, "0.1", as,
			Violated, "lost-write", "", "contender 1, late read", [4]int{2, 1, 0, 0}},
		{"the store seems to have lost it", "version", []madeUpEdit{ok("0.1", ""), no("1.1", ""), no("2.1", "")}, "", noLate, Inconclusive, "", "stale", "", [4]int{1, 0, 0, 0}},
		{"the read-back was stale", "version", []madeUpEdit{ok("0.1", ""), no("1.1", ""), no("2.1", "")}, "", "0.1", Inconclusive, "", "stale", "", [4]int{1, 0, 0, 0}},
		{"it is lost later on", "version", []madeUpEdit{ok("0.1", ""), no("1.1", ""), no("2.1", "")}, "0.1", "", Violated, "lost-write", "", "contender 0, late read", [4]int{1, 1, 0, 0}},
		{"a refused one is there later on", "version", []madeUpEdit{ok("0.1", ""), no("1.1", ""), no("2.1", "")}, "0.1", "0.1 1.1", Violated, "refused-but-applied", "", "contender 0, late read", [4]int{1, 0, 0, 1}},
		{"an unknown one comes over it later on", "none", []madeUpEdit{ok("0.1", ""), ok("1.1", "").as(targets.Unknown)}, "0.1", "1.1", Violated, "lost-update", "", "contender 0, contender 1", [4]int{1, 1, 0, 0}},
		{"a refused one is in the document", "version", []madeUpEdit{ok("0.1", ""), no("1.1", ""), no("2.1", "")}, "1.1", as, Violated, "refused-but-applied", "", "contender 1, late read", [4]int{1, 1, 0, 1}},
		{"a throttled one is in the document", "version", []madeUpEdit{ok("0.1", ""), no("1.1", "").as(targets.Throttled), no("2.1", "")}, "0.1 1.1", as, Violated, "refused-but-applied", "", "contender 1, late read", [4]int{1, 0, 0, 1}},
		{"an aborted one is in the document", "version", []madeUpEdit{ok("0.1", ""), no("1.1", "").as(targets.Aborted), no("2.1", "")}, "0.1 1.1", as, Violated, "refused-but-applied", "", "contender 1, late read", [4]int{1, 0, 0, 1}},
		{"an editor read a refused one", "version", with(no("1.1", "").andAgain("1.2", "0.1"), ok("0.1", ""), no("2.1", "1.1")), "0.1 1.2", as, Violated, "refused-but-applied", "", "contender 1, contender 2", [4]int{2, 0, 1, 0}},
		{"an unknown one is in the document", "version", []madeUpEdit{ok("0.1", "").as(targets.Unknown), no("1.1", ""), no("2.1", "")}, "0.1", as, Held, "", "", "", [4]int{0, 0, 0, 0}},
		{"an unknown one is not", "version", []madeUpEdit{ok("0.1", ""), no("1.1", "").as(targets.Unknown), no("2.1", "")}, "0.1", as, Inconclusive, "", "without a certain answer", "", [4]int{1, 0, 0, 0}},
		{"nobody wrote what is there", "version", []madeUpEdit{ok("0.1", ""), no("1.1", ""), no("2.1", "")}, "0.1 theirs", as, Inconclusive, "", "nobody of this run wrote", "", [4]int{1, 0, 0, 1}},
		{"somebody else writes over it later on", "version", []madeUpEdit{ok("0.1", ""), no("1.1", ""), no("2.1", "")}, "0.1", "theirs", Inconclusive, "", "nobody of this run wrote", "", [4]int{1, 0, 0, 1}},
		{"an editor of another round wrote what is there", "none", []madeUpEdit{ok("0.1", ""), ok("1.1", "")}, "7.1", as, Inconclusive, "", "nobody of this run wrote", "", [4]int{2, 0, 0, 1}},
		{"the document is gone", "version", []madeUpEdit{ok("0.1", ""), no("1.1", ""), no("2.1", "")}, "missing", as, Violated, "record-vanished", "", "late read", [4]int{1, 1, 0, 0}},
		{"the document seems to be gone", "version", []madeUpEdit{ok("0.1", ""), no("1.1", ""), no("2.1", "")}, "missing", "0.1", Inconclusive, "", "stale", "", [4]int{1, 0, 0, 0}},
		{"it seems to be gone, and no edit is known to have been made", "version", []madeUpEdit{ok("0.1", "").as(targets.Unknown), no("1.1", "").as(targets.Unknown)}, "missing", "", Inconclusive, "", "stale", "", [4]int{0, 0, 0, 0}},
		{"the same without a late read", "version", []madeUpEdit{ok("0.1", "").as(targets.Unknown), no("1.1", "").as(targets.Unknown)}, "missing", noLate, Inconclusive, "", "stale", "", [4]int{0, 0, 0, 0}},
		{"it was not read", "version", []madeUpEdit{ok("0.1", ""), no("1.1", ""), no("2.1", "")}, "unknown", noLate, Inconclusive, "", "could not be read once more at the end", "", [4]int{0, 0, 0, 0}},
		{"it was read late only", "version", []madeUpEdit{ok("0.1", ""), no("1.1", ""), no("2.1", "")}, "unknown", "0.1", Inconclusive, "", "could not be read back", "", [4]int{1, 0, 0, 0}},
		{"nobody wins", "version", []madeUpEdit{no("0.1", ""), no("1.1", "")}, "", as, Violated, "no-winner", "", "contender 0", [4]int{0, 0, 0, 0}},
		{"one is refused again, though nobody wrote in between", "version", []madeUpEdit{ok("0.1", ""), no("1.1", "").at(10, 22), no("1.2", "0.1").at(30, 40)}, "0.1", as, Violated, "no-winner", "", "contender 1, contender 0", [4]int{1, 0, 0, 0}},
		{"one is accepted before what it goes back to was sent", "version", []madeUpEdit{ok("0.1", "").at(30, 40), ok("1.1", "0.1"), no("2.1", "").at(30, 45)}, "0.1 1.1", as, Violated, "read-before-write", "", "contender 1, contender 0", [4]int{2, 0, 0, 0}},
		{"all are aborted", "version", []madeUpEdit{no("0.1", "").as(targets.Aborted), no("1.1", "").as(targets.Aborted)}, "", as, Inconclusive, "", "no accepted edit", "", [4]int{0, 0, 0, 0}},
		{"refused before anybody wrote", "timestamp", []madeUpEdit{ok("0.1", "").at(30, 40), no("1.1", ""), no("2.1", "")}, "0.1", as, Violated, "refused-before-winner", "", "contender 1, contender 0", [4]int{1, 0, 0, 0}},
		{"two accepted, one after two attempts", "none", []madeUpEdit{ok("0.1", "").sent(2), ok("1.1", "")}, "1.1", as, Inconclusive, "", "more than once", "", [4]int{2, 1, 0, 0}},
		{"one meets nobody", "version", []madeUpEdit{ok("0.1", ""), no("1.1", "").at(30, 40)}, "0.1", as, Inconclusive, "", "met no other at the guard", "", [4]int{1, 0, 0, 0}},
		{"one meets nobody, twice", "version", []madeUpEdit{ok("0.1", ""), no("1.1", "").at(30, 40), no("1.2", "").at(50, 60)}, "0.1", as, Inconclusive, "", "met no other at the guard", "", [4]int{1, 0, 0, 0}},
		{"two are refused after it", "version", []madeUpEdit{ok("0.1", ""), no("1.1", "").at(30, 40), no("2.1", "").at(50, 60)}, "0.1", as, Inconclusive, "", "met no other at the guard", "", [4]int{1, 0, 0, 0}},
		{"a time that the edits have moved on", "timestamp", []madeUpEdit{ok("0.1", ""), no("1.1", ""), no("2.1", "")}, "0.1", as, Inconclusive, "", "the second of their document was over", "", [4]int{1, 0, 0, 0}},
		{"a time that an edit left as it was", "timestamp", []madeUpEdit{ok("0.1", "").leavingTheTime(), no("1.1", ""), no("2.1", "")}, "0.1", as, Held, "", "", "", [4]int{1, 0, 0, 0}},
	} {
		s := lostUpdateBy(c.guard)
		r := editRound(s.Info().Guard, c.back, c.writes...)
		j := judgeEdits(s, r)
		if c.late == as {
			c.late = c.back
		}
		if c.late != noLate {
			for session := range 2 {
				read := shown(c.late, time.Second)
				read.Contender = session
				j.Late(1, &read)
			}
		}
		got := j.Conclude(runner.End{})
		v := got.Verdict
		kind, witness := "", ""
		if len(v.Violations) > 0 {
			var who []string
			for _, w := range v.Violations[0].Witness {
				who = append(who, w.Who)
			}
			kind, witness = v.Violations[0].Kind, strings.Join(who, ", ")
		}
		if v.Status != c.status || kind != c.kind || witness != c.witness || !strings.Contains(strings.Join(v.Reasons, "; "), c.reason) {
			t.Errorf("%s: %s %q by %q, %q; want %s %q by %q, %q", c.name, v.Status, kind, witness, v.Reasons, c.status, c.kind, c.witness, c.reason)
		}
		e := got.Detail.Edits
		if counts := [4]int{e.Acknowledged, e.Lost, e.Recovered, e.Unexpected}; counts != c.counts {
			t.Errorf("%s: acknowledged, lost, recovered, unexpected %v, want %v", c.name, counts, c.counts)
		}
	}
}

// An unknown edit that the document holds is settled; one with an answer that nobody
// knows is applied as well, but stays what it is.
func TestSettledEdits(t *testing.T) {
	for o, settled := range map[targets.Outcome]int{targets.Unknown: 1, targets.Unmapped: 0} {
		j := judgeEdits(lostUpdateBy(byVersion), editRound(targets.IfVersion, "0.1", ok("0.1", "").as(o), no("1.1", ""), no("2.1", "")))
		if got := j.Conclude(runner.End{}); got.Settled != settled || got.Winners.One != 1 {
			t.Errorf("%s: %d settled, %+v", o, got.Settled, got.Winners)
		}
	}
}

// Of a relayed target that does not tell when it was asked, no contest is seen.
func TestEditsOfARelayedTargetWithoutTimes(t *testing.T) {
	r := editRound(targets.IfVersion, "0.1", ok("0.1", ""), no("1.1", ""), no("2.1", ""))
	r.Relayed = &runner.Relayed{Uncertainty: ms}
	j := judgeEdits(lostUpdateBy(byVersion), r)
	late := shown("0.1", time.Second)
	j.Late(1, &late)
	if v := j.Conclude(runner.End{}).Verdict; v.Status != Inconclusive || !strings.Contains(fmt.Sprint(v.Reasons), "no usable times next to the store") {
		t.Errorf("%s: %v", v.Status, v.Reasons)
	}
}

// A merge takes what mine changed in base, and leaves all else as theirs has it.
func TestMergedChecklists(t *testing.T) {
	base := checklist{Items: map[string]bool{"a": true, "b": true}, Edits: []string{"0"}}
	mine := checklist{Items: map[string]bool{"a": true, "b": false, "c": true}}
	theirs := checklist{Items: map[string]bool{"a": false, "b": true, "d": true}, Edits: []string{"0", "1"}}
	got := theirs.merged(base, mine)
	if want := `{"items":{"a":false,"b":false,"c":true,"d":true},"edits":["0","1"]}`; string(got.body()) != want {
		t.Errorf("got %s, want %s", got.body(), want)
	}
	if want := `{"items":{"a":false,"b":true,"d":true},"edits":["0","1"]}`; string(theirs.body()) != want {
		t.Errorf("theirs became %s", theirs.body())
	}
}

// A round under a time begins with the next tick of it, and its records bear ticks.
func TestRoundsBeginWithATick(t *testing.T) {
	now := time.Date(2026, 11, 30, 12, 0, 0, 123_456_789, time.FixedZone("", 3600))
	for precision, want := range map[string][2]time.Duration{"s": {time.Second, 0}, "ms": {124 * ms, 123 * ms}, "us": {123_457 * time.Microsecond, 123_456 * time.Microsecond}} {
		s := NewLostUpdate()
		s.Guard, s.Precision = byTimestamp, precision
		second := now.Truncate(time.Second)
		if begin, stamp := s.Begin(now).Sub(second), s.stamp(now).Sub(second); begin != want[0] || stamp != want[1] {
			t.Errorf("%s: begins at %s, bears %s; want %s", precision, begin, stamp, want)
		}
	}
	for _, guard := range []string{byVersion, byNothing} {
		if s := lostUpdateBy(guard); !s.Begin(now).Equal(now) || !s.stamp(now).Equal(now) || s.Needs().Precision != 0 {
			t.Errorf("guard %s: begins at %s, bears %s", guard, s.Begin(now), s.stamp(now))
		}
	}
}

// Edits are ruled by all that was read of the document: by a read-back that a later one
// contradicts, by bodies and versions that are not as they were written, by an unknown
// edit that was shown and is gone.
func TestEditsAreRuledByAllReads(t *testing.T) {
	round := func() *runner.Round {
		r := editRound(targets.IfVersion, "0.1", ok("0.1", ""), no("1.1", ""), no("2.1", ""))
		r.Seeds = []runner.Exchange{{Contender: runner.ByRunner, Reply: targets.Reply{Outcome: targets.OK},
			Op: targets.Op{Kind: targets.Write, Key: madeUpKey, Value: targets.Record{Token: madeUpKey + seedSuffix, Body: checklistBody("")}}}}
		return r
	}
	for name, c := range map[string]struct {
		change func(*runner.Round)
		late   string
		kind   string
	}{
		"as it should be":               {func(*runner.Round) {}, "0.1", ""},
		"a refused edit in a read-back": {func(r *runner.Round) { r.Reads = []runner.Exchange{shown("0.1 1.1", 100*ms), shown("0.1", 110*ms)} }, "0.1", "refused-but-applied"},
		"another body at the read-back": {func(r *runner.Round) {
			r.Reads[0].Reply.Record.Body = json.RawMessage(`{"items":{"x":true},"edits":["` + tokenOf("0.1") + `"]}`)
		}, "0.1", "changed-value"},
		"the seed at another version":    {func(r *runner.Round) { r.Ops[0].Reply.Record.Version = 7 }, "0.1", "changed-value"},
		"another version than its edits": {func(r *runner.Round) { r.Reads[0].Reply.Record.Version = 2 }, "0.1", "wrong-version"},
		"a record of another round": {func(r *runner.Round) {
			r.Reads[0].Reply.Record.Token = "contend-01TEST-r9-c0-a1"
			r.Reads[0].Reply.Record.Body = json.RawMessage(`{"items":{},"edits":["contend-01TEST-r9-c0-a1"]}`)
		}, "0.1", "misplaced-record"},
		"an unknown edit was shown and is gone": {func(r *runner.Round) {
			r.Ops = append(r.Ops, editRound(targets.IfVersion, "", no("3.1", "0.1").as(targets.Unknown).at(30, 40)).Ops...)
			r.Reads = []runner.Exchange{shown("0.1 3.1", 100*ms)}
		}, "0.1", "lost-write"},
	} {
		r := round()
		c.change(r)
		j := judgeEdits(lostUpdateBy(byVersion), r)
		for session := range 2 {
			late := shown(c.late, time.Second)
			late.Contender = session
			j.Late(1, &late)
		}
		v := j.Conclude(runner.End{}).Verdict
		kind := ""
		if len(v.Violations) > 0 {
			kind = v.Violations[0].Kind
		}
		if kind != c.kind || (kind == "") != (v.Status == Held) {
			t.Errorf("%s: %s %q, want %q: %v", name, v.Status, kind, c.kind, v.Reasons)
		}
	}
}

// What refused an edit before it was sent is what its editor read: another's edit,
// which is not taken for one that was told it failed. Its own must not be applied.
func TestAnEditIsRefusedByARead(t *testing.T) {
	for _, guard := range []string{byVersion, byTimestamp} {
		kind := targets.IfVersion
		if guard == byTimestamp {
			kind = targets.IfUnmodified
		}
		for name, c := range map[string]struct {
			final string
			want  string
		}{"of another": {"1.1", ""}, "of another and then its own": {"1.1 2.2", ""}, "of its own": {"1.1 2.1", "refused-but-applied"}} {
			writes := []madeUpEdit{ok("1.1", "").at(10, 20), no("2.1", "").at(22, 24)}
			if name == "of another and then its own" {
				writes = append(writes, ok("2.2", "1.1").at(30, 40))
			}
			r := editRound(kind, c.final, writes...)
			for i := range r.Ops {
				if x := &r.Ops[i]; x.Op.Value.Token == tokenOf("2.1") {
					x.Reply.ByRead, x.Reply.Code, x.Reply.Attempts, x.Guard = true, "stale", 1, 0
					x.Reply.Record = targets.Record{Token: tokenOf("1.1"), Version: 1, UpdatedAt: r.Ops[1].Op.Value.UpdatedAt, Body: checklistBody("1.1")}
				}
			}
			j := judgeEdits(lostUpdateBy(guard), r)
			late := shown(c.final, 2*time.Second)
			j.Late(1, &late)
			got := j.Conclude(runner.End{})
			if c.want == "" && len(got.Verdict.Violations) > 0 || c.want != "" && (len(got.Verdict.Violations) != 1 || got.Verdict.Violations[0].Kind != c.want) {
				t.Errorf("%s, %s: %+v", guard, name, got.Verdict.Violations)
			}
			if e := got.Detail.Edits; c.want == "" && (e.Unexpected != 0 || e.Lost != 0) || name == "of another and then its own" && e.Recovered != 1 {
				t.Errorf("%s, %s: %+v", guard, name, e)
			}
		}
	}
}

// A late read that lacks an acknowledged edit was stale where the next one shows it:
// the round is not held, whatever guards it. So is one in which an editor has read
// somebody else's document.
func TestEditsReadLateThatComeRound(t *testing.T) {
	for _, guard := range []string{byVersion, byTimestamp} {
		s := lostUpdateBy(guard)
		round := func() *runner.Round {
			r := editRound(s.Info().Guard, "1.1", ok("1.1", "").leavingTheTime(), no("2.1", ""))
			r.Seeds = []runner.Exchange{{Contender: runner.ByRunner, Op: targets.Op{Kind: targets.Write, Key: r.Key,
				Value: targets.Record{Token: r.Key + seedSuffix, Body: checklistBody("")}}, Reply: targets.Reply{Outcome: targets.OK}}}
			return r
		}
		for _, c := range []struct {
			lates  string
			status Status
			reason string
		}{
			{"1.1|1.1", Held, ""},
			{"|1.1", Inconclusive, "later reads showed the newer one"},
			{"missing|1.1", Inconclusive, "later reads showed the newer one"},
			{"|", Violated, ""},
		} {
			j := judgeEdits(s, round())
			for i, edits := range strings.Split(c.lates, "|") {
				late := shown(edits, time.Second+time.Duration(i)*100*ms)
				late.Contender = i
				j.Late(1, &late)
			}
			if v := j.Conclude(runner.End{}).Verdict; v.Status != c.status || !strings.Contains(fmt.Sprint(v.Reasons), c.reason) {
				t.Errorf("%s, late reads %q: %s, want %s: %v", guard, c.lates, v.Status, c.status, v.Reasons)
			}
		}
	}
	r := editRound(targets.IfVersion, "1.1", ok("1.1", ""), no("2.1", ""))
	r.Ops[2].Reply.Record = targets.Record{Token: "somebody-else", Version: 0}
	j := judgeEdits(lostUpdateBy(byVersion), r)
	late := shown("1.1", time.Second)
	j.Late(1, &late)
	if v := j.Conclude(runner.End{}).Verdict; v.Status != Inconclusive || !strings.Contains(fmt.Sprint(v.Reasons), "nobody of this run wrote") {
		t.Errorf("an editor read a foreign document: %s %v", v.Status, v.Reasons)
	}
}
