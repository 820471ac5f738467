package scenarios

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"contend/runner"
	"contend/targets"
)

// seedSuffix ends the token of a seed, after the key.
const seedSuffix = "-seed"

// newVersion is what every contender of a one-winner round writes: one more
// than the seed's, or the first of an absent key.
const newVersion = 1

// oneWinner judges the contests in which one write of a round may win.
type oneWinner struct{}

// oneWon is what is kept of their rounds.
type oneWon struct{ Shared }

// startState is what a round starts from.
type startState struct {
	key   string
	seed  string     // token of the seeded record; "": the key was absent
	wrote *operation // the seed
}

// startOf tells what a round whose key is seeded, or not, starts from.
func startOf(r *runner.Round, seeded bool) startState {
	s := startState{key: r.Key}
	if !seeded {
		return s
	}
	s.seed = r.Key + seedSuffix
	for i := range r.Seeds {
		if r.Seeds[i].Op.Key == r.Key {
			a, _ := s.operationOf(&r.Seeds[i])
			s.wrote = &a
		}
	}
	return s
}

// since is when the start state was acknowledged; 0 of an absent key.
func (s startState) since() time.Duration {
	if s.wrote == nil {
		return 0
	}
	return s.wrote.ret
}

// findingOf is what every scenario keeps of a round.
func findingOf(r *runner.Round, seeded bool) Shared {
	f := Shared{Round: r.Number, Unseeded: !r.Seeded(), state: startOf(r, seeded)}
	for i := range r.Seeds {
		f.answered = max(f.answered, r.Seeds[i].Return)
		if reply := &r.Seeds[i].Reply; reply.Outcome != targets.OK && f.refusal == "" {
			f.refusal = reply.Text()
		}
	}
	for i := range r.Ops {
		f.answered = max(f.answered, r.Ops[i].Return)
	}
	return f
}

// Judge keeps of a round what its ruling needs.
func (oneWinner) Judge(r *runner.Round, oneCopy bool) Finding {
	f := &oneWon{findingOf(r, len(r.Seeds) > 0)}
	f.Evidence = evidenceOf(r)
	f.Evidence.ofFirst(meetingsOf(r, oneCopy))
	operations := f.state.actsOf(r)
	f.won = countKind(operations, wrote)
	// Of the writes that certainly were not applied, those are kept that a read
	// shows to be stored all the same.
	stored := storedRefusals(operations)
	f.operations = slices.Clip(append(reduce(operations), stored...))
	return f
}

// actsOf reduces what was done to the round's own key, and the reads of it when all
// had returned.
func (s startState) actsOf(r *runner.Round) []operation {
	operations := make([]operation, 0, len(r.Ops)+len(r.Reads))
	for i := range r.Ops {
		if a, ok := s.operationOf(&r.Ops[i]); ok && r.Ops[i].Op.Key == r.Key {
			operations = append(operations, a)
		}
	}
	ops := len(operations)
	for i := range r.Reads {
		if a, ok := s.operationOf(&r.Reads[i]); ok && r.Reads[i].Op.Key == r.Key {
			a.token = sameText(operations[:ops], a.token)
			operations = append(operations, a)
		}
	}
	return operations
}

// sameText gives the writer's copy of a token that was read, so that a run of any
// length keeps each but once.
func sameText(writes []operation, token string) string {
	for i := range writes {
		if writes[i].token == token {
			return writes[i].token
		}
	}
	return token
}

// storedRefusals gives the writes whose token a read shows although their reply
// says that they were not applied. The one refusal that reduce keeps may be among
// them; it is left to it.
func storedRefusals(operations []operation) []operation {
	var stored []operation
	for i := range operations {
		a := &operations[i]
		if a.kind != refused && a.kind != noEffect {
			continue
		}
		for j := range operations {
			if operations[j].kind == sawNew && operations[j].token == a.token {
				kept := *a
				kept.kind = noEffect
				stored = append(stored, kept)
				break
			}
		}
	}
	return stored
}

// operationOf reduces an exchange; a read that failed tells nothing.
func (s startState) operationOf(e *runner.Exchange) (operation, bool) {
	a := operation{call: e.Call, ret: e.Return, who: int32(e.Contender), retried: e.Reply.Attempts > 1, outcome: e.Reply.Outcome,
		code: e.Reply.Code, status: int32(e.Reply.Status), trace: e.Reply.Trace}
	if e.Op.Kind == targets.Read {
		a.token, a.version, a.body = e.Reply.Record.Token, e.Reply.Record.Version, e.Reply.Record.Body
		a.kind = s.seen(&e.Reply)
		return a, e.Reply.Outcome == targets.OK || e.Reply.Outcome == targets.Missing
	}
	if e.Reply.ByRead {
		// It is what it read that refused it.
		seen := e.Reply
		if seen.Outcome = targets.OK; seen.Record.Token == "" && seen.Stored == "" {
			seen.Outcome = targets.Missing
		}
		a.token, a.version, a.body, a.kind = seen.Record.Token, seen.Record.Version, seen.Record.Body, s.seen(&seen)
		return a, true
	}
	a.token, a.version, a.body = e.Op.Value.Token, e.Op.Value.Version, e.Op.Value.Body
	switch o := e.Reply.Outcome; {
	case o == targets.OK:
		a.kind = wrote
	case o == targets.Unknown, o == targets.Unmapped, a.retried:
		// After more than one attempt a refusal may be the writer's own doing.
		a.kind, a.ret = indeterminate, forever
	case o == targets.Conflict:
		a.kind = refused
	default:
		a.kind = noEffect
	}
	return a, e.Op.Kind == targets.Write
}

// seen tells which state a read showed.
func (s startState) seen(reply *targets.Reply) operationKind {
	token := reply.Record.Token
	switch {
	case reply.Outcome == targets.Missing && s.seed != "":
		return sawNothing
	case reply.Outcome == targets.Missing, token == s.seed && s.seed != "":
		return sawOld
	case strings.HasPrefix(token, s.key+"-c"):
		return sawNew
	case strings.HasPrefix(token, s.run()):
		return sawMisplaced
	case token == "" && strings.Contains(reply.Stored, s.run()):
		return sawDamaged
	default:
		return sawForeign
	}
}

// run begins every token of the run: what stands before the label of the round.
func (s startState) run() string { return s.key[:strings.LastIndexByte(s.key, '-')+1] }

// Sweep is possible: a contender does nothing but its write.
func (oneWinner) Sweep(func(string) bool) error { return nil }

// Fates gives what became of every contender, by its last request.
func (oneWinner) Fates(r *runner.Round) []Fate { return lastFates(r) }

// Contested wants rivals of the winner at the guard.
func (f *Shared) Contested(_ *Ruling, t *Terms) (why, fix string) {
	if f.Evidence.Rivals < 0 && !f.Evidence.Untold {
		return "had no winner", ""
	}
	return t.enoughRivals(&f.Evidence)
}

// Rule says what the round, with its late reads, means.
func (f *oneWon) Rule() Ruling {
	r := Ruling{Winners: f.won}
	if f.Unseeded || r.void(&f.Shared, f.operations) {
		return r
	}
	r.Unread = !f.plain && !readBack(f.operations)
	b := r.believe(&f.Shared, f.operations, func(operations []operation) *anomaly {
		if b := f.state.forbidden(operations); b != nil {
			return b
		}
		return checkRound(operations)
	})
	if r.legal = b == nil; b != nil && f.state.forbidden(r.history) != nil {
		r.history = nil // not by the order of what was done
	}
	r.accuse(f.Round, b)
	r.tellGone(f.operations, f.plain)
	r.settle(&f.Shared, f.operations)
	return r
}

// void tells whether a read shows what nobody of this run wrote.
func (r *Ruling) void(f *Shared, operations []operation) bool {
	for _, all := range [][]operation{operations, f.lates} {
		for i := range all {
			if all[i].kind == sawForeign {
				r.Void = true
				return true
			}
		}
	}
	return false
}

// readBack tells whether the runner has read the final state.
func readBack(operations []operation) bool {
	return slices.ContainsFunc(operations, func(a operation) bool { return a.who == runner.ByRunner })
}

// forbidden looks for what no order could make legal: a record of another key or a
// changed one, a stored refusal, a record that vanished, a version that did not go
// up by exactly one.
func (s startState) forbidden(operations []operation) *anomaly {
	for i := range operations {
		read := &operations[i]
		if b := s.changed(operations, read); b != nil {
			return b
		}
		switch {
		case read.kind == sawNothing:
			return &anomaly{"record-vanished", s.wrote, read}
		case read.kind == sawNew:
			writer, possible := writerOf(operations, read)
			if !possible {
				return &anomaly{"refused-but-applied", writer, read}
			}
			if read.version != newVersion {
				return &anomaly{"version-jump", writer, read}
			}
		}
	}
	return nil
}

// changed finds a read of what was not written so: a record of another key, one cut
// short, another body than its writer's, the seed at another version.
func (s startState) changed(operations []operation, read *operation) *anomaly {
	switch read.kind {
	case sawMisplaced:
		return &anomaly{"misplaced-record", s.partner(operations), read}
	case sawDamaged:
		return &anomaly{"changed-value", s.partner(operations), read}
	case sawOld:
		if seed := s.wrote; read.token != "" && seed != nil && (read.version != seed.version || !sameBody(read.body, seed.body)) {
			return &anomaly{"changed-value", seed, read}
		}
	case sawNew:
		for i := range operations {
			if w := &operations[i]; !w.isRead() && w.token == read.token && !sameBody(w.body, read.body) {
				return &anomaly{"changed-value", w, read}
			}
		}
	}
	return nil
}

// partner is the write that stands beside a read as its witness: the accepted one,
// else one that may have been applied, else the seed.
func (s startState) partner(operations []operation) *operation {
	best := s.wrote
	for i := range operations {
		switch a := &operations[i]; {
		case a.kind == wrote:
			return a
		case a.kind == indeterminate:
			best = a
		}
	}
	return best
}

// writerOf finds the write whose token was read, and whether it can have been
// applied. The write of a late token may not have been kept: it was one that was
// refused, or one of more than two that were accepted. Then the accepted write
// stands for it.
func writerOf(operations []operation, read *operation) (writer *operation, possible bool) {
	wins := 0
	var accepted *operation
	for i := range operations {
		a := &operations[i]
		if a.kind == wrote {
			wins, accepted = wins+1, a
		}
		if a.token != read.token || a.isRead() {
			continue
		}
		if a.kind == wrote || a.kind == indeterminate {
			return a, true
		}
		writer = a
	}
	if writer == nil {
		return accepted, wins > 1
	}
	return writer, false
}

// settle counts the winners, and the unknown outcomes that the reads resolve: one
// whose token was read was applied; none was where the read-back and the late read
// both show the state before any write. Where another's token stands, it may have
// been applied and written over.
func (r *Ruling) settle(f *Shared, operations []operation) {
	tokens := make(map[string]bool)
	back, late, untouched := false, false, true
	note := func(a *operation) {
		if !a.isRead() {
			return
		}
		if a.kind == sawNew {
			tokens[a.token] = true
		}
		untouched = untouched && a.kind == sawOld
		back, late = back || a.who == runner.ByRunner && !a.late, late || a.late
	}
	for i := range operations {
		note(&operations[i])
	}
	for i := range f.lates {
		note(&f.lates[i])
	}
	untouched = untouched && back && late && f.won == 0
	for i := range operations {
		switch {
		case operations[i].kind != indeterminate:
		case tokens[operations[i].token]:
			r.Winners++
			if operations[i].outcome == targets.Unknown {
				r.Settled++
			}
		case !untouched:
			r.Unsettled++
		}
	}
}

// violation words an anomaly.
func violation(round int, b *anomaly) *Violation {
	v := &Violation{Kind: b.kind, Round: round}
	for _, a := range []*operation{b.a, b.b} {
		if a != nil {
			v.Witness = append(v.Witness, a.witness())
		}
	}
	v.say(anomalyText[b.kind])
	return v
}

// say puts the violation into words, and why there is one request only where that is
// so.
func (v *Violation) say(text string) {
	if v.Detail = text; len(v.Witness) < 2 {
		v.Detail += " (" + aloneText(v.Kind) + ")"
	}
}

// aloneText says why an anomaly of this kind may have a single request for its witness.
func aloneText(kind string) string {
	switch kind {
	case "owner-never-wrote", "version-without-writer":
		return "one request shows it: there is no other that could have written what it tells"
	case "no-winner":
		return "one request shows it: there is no other that could have won before it"
	case "early-takeover", "early-expiry":
		return "one request shows it: it was answered before the term was over"
	default:
		return "one request shows it, against all the others of the round together"
	}
}

// anomalyText says what each kind of violation is.
var anomalyText = map[string]string{
	"several-winners":         "two writes were accepted where only one may win",
	"two-owners":              "two reads name two different winners",
	"wrong-owner":             "the record is not the accepted write's but another contender's",
	"owner-never-wrote":       "the record names a contender that was not told it wrote",
	"no-winner":               "a contender was refused although nobody had won",
	"refused-before-winner":   "a contender was refused before any winner had sent its write",
	"read-before-write":       "a read showed the new record before its writer had sent it",
	"lost-write":              "an accepted write was not there when it was read back",
	"old-state-after-refusal": "a read showed the old state after a contender had been refused",
	"state-went-back":         "a read showed the old state after another had shown the new one",
	"early-takeover":          "the key was taken over before the record before it had run out",
	"stale-fence-accepted":    "a former holder's write was accepted after a later holder's",
	"early-expiry":            "the key was free before its time to live was over",
	"ghost":                   "the lease had expired, and nobody could take it",
	"lost-update":             "the counter is behind the writes that were accepted",
	"over-count":              "the counter is ahead of all writes that may have been applied",
	"refused-but-applied":     "a write that was told it failed is what the store holds: the store applied what it refused, or a proxy or client sends requests again",
	"misplaced-record":        "the key holds a record that was written to another key of this run: the store mixes keys up, or cuts them short",
	"changed-value":           "a record came back other than it was written: its value is not what the key holds",
	"record-vanished":         "the seeded record is gone although nobody deletes",
	"version-jump":            fmt.Sprintf("the stored version is not the %d that was written", newVersion),
	"refused-while-absent":    "a create was refused although the record had been seen gone and nobody had created another",
	"accepted-too-early":      "a write was accepted before the version that it was conditional on can have been there",
	"version-without-writer":  "a version was built upon that nobody can have written",
	"wrong-version":           "a record shows another version than its writer stored",
	"stale-read-after-write":  "a read that was sent after a write had been accepted still showed the state before",
	"second-create-accepted":  "a second create of one key was accepted, with nothing running beside it",
	"stale-write-accepted":    "a write on a stale version was accepted, with nothing running beside it",
}

func (a *operation) witness() Witness {
	w := Witness{Call: a.call, Return: a.ret, Outcome: a.outcome, Code: a.code, Status: int(a.status),
		Token: a.token, Version: a.version, Trace: a.trace, Who: fmt.Sprintf("contender %d", a.who), Request: "write"}
	if a.kind >= sawOld {
		w.Request = "read"
	}
	switch {
	case a.late:
		w.Who = "late read"
	case a.who == runner.ByRunner:
		w.Who = "read-back"
	}
	return w
}

// ReadLate takes a late read into account. One that shows what the read-back
// showed of a contender's record adds nothing, and is not kept.
func (f *oneWon) ReadLate(e *runner.Exchange) {
	a, ok := f.state.operationOf(e)
	if !ok {
		return
	}
	a.late, f.readOnce = true, true
	if len(f.lates) == 0 && a.kind == sawNew {
		for i := range f.operations {
			b := &f.operations[i]
			if (b.kind == sawNew || f.plain && b.kind == wrote) && b.token == a.token && b.version == a.version && sameBody(a.body, b.body) {
				return
			}
		}
	}
	f.addLate(a)
}

// mostLates is how many late reads of a round are kept: the first, which tell how
// old a stale state was, and the last two.
const mostLates = 8

func (f *Shared) addLate(a operation) {
	if len(f.lates) == mostLates {
		f.lates = slices.Delete(f.lates, mostLates-3, mostLates-2)
	}
	f.lates = append(f.lates, a)
}
