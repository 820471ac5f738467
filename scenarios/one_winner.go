package scenarios

import (
	"fmt"
	"slices"
	"strings"

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

// startState is what a round starts from.
type startState struct {
	key  string
	seed string // token of the seeded record; "": the key was absent
}

// Judge keeps of a round what its ruling needs.
func (oneWinner) Judge(r *runner.Round) Finding {
	f := Finding{Round: r.Number, Unseeded: !r.Seeded(), Evidence: evidenceOf(r), state: startState{key: r.Key}}
	if len(r.Seeds) > 0 {
		f.state.seed = r.Key + seedSuffix
	}
	acts := make([]act, 0, len(r.Ops)+len(r.Reads))
	for i := range r.Ops {
		if a, ok := f.state.actOf(&r.Ops[i]); ok {
			acts = append(acts, a)
		}
	}
	f.won = countKind(acts, wrote)
	reads := len(acts)
	for i := range r.Reads {
		if a, ok := f.state.actOf(&r.Reads[i]); ok {
			a.token = sameText(acts[:reads], a.token)
			acts = append(acts, a)
		}
	}
	// Of the writes that certainly were not applied, those are kept that the
	// read-back shows to be stored all the same.
	stored := storedRefusals(acts[:reads], acts[reads:])
	f.acts = slices.Clip(append(reduce(acts), stored...))
	return f
}

// sameText gives the writer's copy of a token that was read, so that a run of any
// length keeps each but once.
func sameText(writes []act, token string) string {
	for i := range writes {
		if writes[i].token == token {
			return writes[i].token
		}
	}
	return token
}

// storedRefusals gives the acts among writes whose token a read shows although
// their reply says that they were not applied. The one refusal that reduce
// keeps may be among them; it is left to it.
func storedRefusals(writes, reads []act) []act {
	var stored []act
	for i := range writes {
		a := &writes[i]
		if a.kind != refused && a.kind != excluded {
			continue
		}
		for j := range reads {
			if reads[j].kind == sawNew && reads[j].token == a.token {
				kept := *a
				kept.kind = excluded
				stored = append(stored, kept)
				break
			}
		}
	}
	return stored
}

// actOf reduces an exchange; a read that failed tells nothing.
func (s startState) actOf(e *runner.Exchange) (act, bool) {
	a := act{call: e.Call, ret: e.Return, who: int32(e.Contender), retried: e.Reply.Attempts > 1, outcome: e.Reply.Outcome,
		code: e.Reply.Code, status: int32(e.Reply.Status), trace: e.Reply.Trace}
	if e.Op.Kind == targets.Read {
		a.token, a.version = e.Reply.Record.Token, e.Reply.Record.Version
		a.kind = s.seen(&e.Reply)
		return a, e.Reply.Outcome == targets.OK || e.Reply.Outcome == targets.Missing
	}
	a.token, a.version = e.Op.Value.Token, e.Op.Value.Version
	switch o := e.Reply.Outcome; {
	case o == targets.OK:
		a.kind = wrote
	case o == targets.Unknown, o == targets.Unmapped, a.retried:
		// After more than one attempt a refusal may be the writer's own doing.
		a.kind, a.ret = uncertain, forever
	case o == targets.Conflict:
		a.kind = refused
	default:
		a.kind = excluded
	}
	return a, e.Op.Kind == targets.Write
}

// seen tells which state a read showed.
func (s startState) seen(reply *targets.Reply) actKind {
	token := reply.Record.Token
	switch {
	case reply.Outcome == targets.Missing && s.seed != "":
		return sawNothing
	case reply.Outcome == targets.Missing, token == s.seed && s.seed != "":
		return sawOld
	case strings.HasPrefix(token, s.key+"-c"):
		return sawNew
	default:
		return sawForeign
	}
}

// Fates gives what became of every contender, by its last request.
func (oneWinner) Fates(r *runner.Round) []Fate { return lastFates(r) }

// Rule says what a finding, with its late read, means.
func (oneWinner) Rule(f *Finding) Ruling {
	acts := f.acts
	if f.late != nil {
		acts = append(acts[:len(acts):len(acts)], *f.late)
	}
	r := Ruling{Winners: f.won}
	for i := range acts {
		if acts[i].kind == sawForeign {
			r.Void = true
			return r
		}
	}
	r.Unread = !f.plain && !anyRead(acts)
	// A read-back of nothing is believed only if the late read confirms it.
	if f.late == nil || f.late.kind != sawNothing {
		if left := withoutReadBacks(acts, sawNothing); len(left) < len(acts) {
			acts, r.StaleRead = left, true
		}
	}
	b := f.state.forbidden(acts)
	if b == nil {
		b = r.judgeOrder(f, acts)
	}
	switch {
	case b == nil:
	case b.definite():
		r.Violation = violation(f.Round, b)
	default:
		r.Indefinite = true
	}
	r.settle(f, acts)
	return r
}

// anyRead tells whether the final state was seen.
func anyRead(acts []act) bool {
	for i := range acts {
		if acts[i].who == runner.Own || acts[i].late {
			return true
		}
	}
	return false
}

// forbidden looks for what no order could make legal: a stored refusal, a record
// that vanished, a version that did not go up by exactly one.
func (s startState) forbidden(acts []act) *breach {
	for i := range acts {
		read := &acts[i]
		switch {
		case read.kind == sawNothing:
			return &breach{"record-vanished", read, nil}
		case read.kind == sawNew:
			writer, possible := writerOf(acts, read)
			if !possible {
				return &breach{"refused-but-applied", writer, read}
			}
			if read.version != newVersion {
				return &breach{"version-jump", writer, read}
			}
		}
	}
	return nil
}

// writerOf finds the write whose token was read, and whether it can have been
// applied. The write of a late token may not have been kept: it was one that was
// refused, or one of more than two that were accepted.
func writerOf(acts []act, read *act) (writer *act, possible bool) {
	wins := 0
	for i := range acts {
		a := &acts[i]
		if a.kind == wrote {
			wins++
		}
		if a.token != read.token || a.kind == sawNew {
			continue
		}
		if a.kind == wrote || a.kind == uncertain {
			return a, true
		}
		writer = a
	}
	return writer, writer == nil && wins > 1
}

// judgeOrder applies the round rule. A read-back that shows the old state and
// stands against the rest is believed only if the late read confirms it.
func (r *Ruling) judgeOrder(f *Finding, acts []act) *breach {
	r.history = acts
	b := checkRound(acts)
	if b != nil && (f.late == nil || f.late.kind != sawOld) {
		without := withoutReadBacks(acts, sawOld)
		if len(without) < len(acts) && checkRound(without) == nil {
			r.history, r.StaleRead, b = without, true, nil
		}
	}
	r.legal = b == nil
	return b
}

func withoutReadBacks(acts []act, kind actKind) []act {
	var kept []act
	for i := range acts {
		if acts[i].kind != kind || acts[i].who != runner.Own {
			kept = append(kept, acts[i])
		}
	}
	return kept
}

// settle counts the winners, and the unknown outcomes that the reads resolve.
func (r *Ruling) settle(f *Finding, acts []act) {
	var owner string
	for i := range acts {
		if acts[i].kind == sawNew {
			owner = acts[i].token
		}
	}
	for i := range acts {
		if acts[i].kind != uncertain {
			continue
		}
		if acts[i].token == owner {
			r.Winners++
			if acts[i].outcome == targets.Unknown {
				r.Settled++
			}
		} else {
			r.Unsettled++
		}
	}
}

// violation words a breach.
func violation(round int, b *breach) *Violation {
	v := &Violation{Kind: b.kind, Round: round, Detail: breachText[b.kind]}
	for _, a := range []*act{b.a, b.b} {
		if a != nil {
			v.Witness = append(v.Witness, a.witness())
		}
	}
	return v
}

// breachText says what each kind of violation is.
var breachText = map[string]string{
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
	"refused-but-applied":     "a write that was told it failed is what the store holds",
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

func (a *act) witness() Witness {
	w := Witness{Call: a.call, Return: a.ret, Outcome: a.outcome, Code: a.code, Status: int(a.status),
		Token: a.token, Version: a.version, Trace: a.trace, Who: fmt.Sprintf("contender %d", a.who), Request: "write"}
	if a.kind >= sawOld {
		w.Request = "read"
	}
	switch {
	case a.late:
		w.Who = "late read"
	case a.who == runner.Own:
		w.Who = "read-back"
	}
	return w
}

// readLate takes a late read into account. One that shows what the read-back
// showed of a contender's record adds nothing, and is not kept.
func (oneWinner) readLate(f *Finding, e *runner.Exchange) {
	a, ok := f.state.actOf(e)
	if !ok {
		return
	}
	a.late, f.readOnce = true, true
	for i := range f.acts {
		b := &f.acts[i]
		same := b.kind == sawNew || f.plain && b.kind == wrote
		if a.kind == sawNew && same && b.token == a.token && b.version == a.version {
			return
		}
	}
	f.late = &a
}
