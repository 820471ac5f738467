package scenarios

import (
	"slices"
	"strings"
	"time"

	"contend/runner"
	"contend/targets"
)

// edit is a write of an editor.
type edit struct {
	operation
	again  bool          // its editor had been refused before
	opened time.Duration // when its editor had read what it wrote over
	holds  []string      // the edits that its document comes of, its own last
}

// possible tells whether the edit can have been applied.
func (e *edit) possible() bool { return e.kind == wrote || e.kind == indeterminate }

// document is the checklist as a read of the final state showed it.
type document struct {
	operation
	edits   []string
	foreign bool // not all of it is of this round
}

func (d *document) holds() map[string]bool {
	held := make(map[string]bool, len(d.edits))
	for _, token := range d.edits {
		held[token] = true
	}
	return held
}

// edited is what is kept of a round.
type edited struct {
	Shared
	scenario   *LostUpdate
	edits      []edit // by editor and time; of a plain round the acknowledged ones alone
	plain      bool
	back, late *document // the read-back, the last late read; nil: it told nothing
	still      bool      // a write that may have been applied left the time as it was
	chain      *versions // of --guard version
	// shown is a read that told what must not be: of a refused edit, or of a document
	// that nobody wrote so.
	shown *anomaly
	seen  map[string]bool // tokens of unknown edits that a read showed: they were applied
	// lagged: a late read was stale, of which another may have come round; age is for
	// how long.
	lagged bool
	age    time.Duration
}

// Judge keeps of a round what its ruling needs.
func (s *LostUpdate) Judge(r *runner.Round, oneCopy bool) Finding {
	k := &edited{Shared: findingOf(r, true), scenario: s}
	f := &k.Shared
	f.Evidence = evidenceOf(firstWrites(r))
	f.Evidence.ofAll(meetingsOf(r, oneCopy))
	var opened time.Duration
	turnedAway := runner.ByRunner // the editor that was last seen refused
	for i := range r.Ops {
		x := &r.Ops[i]
		if x.Op.Kind == targets.Read {
			opened = x.Return
		}
		a, ok := f.state.operationOf(x)
		if !ok || x.Op.Kind != targets.Write {
			continue
		}
		if x.Reply.ByRead {
			// What it read is another's; its own edit was never sent.
			a.token, a.version, a.body, a.kind = x.Op.Value.Token, x.Op.Value.Version, x.Op.Value.Body, noEffect
		}
		holds, _ := checklistOf(x.Op.Value.Body)
		k.edits = append(k.edits, edit{operation: a, again: turnedAway == x.Contender, opened: opened, holds: holds.Edits})
		if a.kind == refused || a.outcome == targets.Aborted || x.Reply.ByRead {
			turnedAway = x.Contender
		}
		if k.edits[len(k.edits)-1].possible() {
			k.still = k.still || x.Op.If.UpdatedAt.Equal(x.Op.Value.UpdatedAt)
		}
	}
	if s.Guard == byVersion {
		chain := versionsOf(f, r)
		k.chain = &chain
	}
	byToken := k.byToken()
	for _, all := range [][]runner.Exchange{r.Ops, r.Reads} {
		for i := range all {
			if x := &all[i]; x.Op.Kind == targets.Read || x.Reply.ByRead {
				k.show(f.state, x, byToken)
			}
		}
	}
	for i := range r.Reads {
		if d := k.documentOf(f.state, &r.Reads[i], byToken); d != nil {
			k.back = d
		}
	}
	if k.chain == nil {
		k.forget(s.account(f, k))
	} else if r := k.chain.rule(f); r.quiet() {
		k.forget(s.account(f, k))
	}
	return k
}

// show looks at what a read showed: an edit that was told it failed, or a document
// that came back other than it was written. It keeps which unknown edits it showed.
func (k *edited) show(state startState, x *runner.Exchange, byToken map[string]*edit) {
	read, ok := state.operationOf(x)
	if !ok {
		return
	}
	c, _ := checklistOf(x.Reply.Record.Body)
	for _, token := range c.Edits {
		e := byToken[token]
		if e == nil {
			continue
		}
		if !e.possible() && k.shown == nil {
			k.shown = &anomaly{"refused-but-applied", &e.operation, &read}
		}
		if e.kind == indeterminate {
			if k.seen == nil {
				k.seen = make(map[string]bool)
			}
			k.seen[token] = true
		}
	}
	if k.shown != nil {
		return
	}
	var writer []operation
	if e := byToken[read.token]; e != nil && e.body != nil {
		writer = []operation{e.operation}
	}
	k.shown = state.changed(writer, &read)
}

// documentOf reads the final state; nil: it was not told.
func (k *edited) documentOf(state startState, x *runner.Exchange, byToken map[string]*edit) *document {
	a, ok := state.operationOf(x)
	if !ok {
		return nil
	}
	d := &document{operation: a}
	if a.kind == sawNothing {
		return d
	}
	c, ours := checklistOf(x.Reply.Record.Body)
	d.edits = c.Edits
	// Of a plain round the refused writes are not kept.
	ofRound := func(token string) bool {
		return byToken[token] != nil || k.plain && strings.HasPrefix(token, state.key+"-c")
	}
	if a.kind == sawMisplaced || a.kind == sawDamaged {
		return d // the store's own doing
	}
	d.foreign = !ours || a.token != state.seed && !ofRound(a.token)
	for _, token := range d.edits {
		d.foreign = d.foreign || !ofRound(token)
	}
	return d
}

func (k *edited) byToken() map[string]*edit {
	all := make(map[string]*edit, len(k.edits))
	for i := range k.edits {
		all[k.edits[i].token] = &k.edits[i]
	}
	return all
}

// forget keeps little of a round in which all is as it should be.
func (k *edited) forget(a account) {
	if k.back == nil || k.back.foreign || a.anomaly != nil || a.stale || a.applied+a.unsettled > 0 {
		return
	}
	k.plain = true
	k.edits = slices.DeleteFunc(k.edits, func(e edit) bool { return e.kind != wrote })
	for i := range k.edits {
		k.edits[i].holds = nil
		if k.edits[i].token != k.back.token {
			k.edits[i].body = nil
		}
	}
	k.edits = slices.Clip(k.edits)
	if k.chain != nil {
		k.chain.forget()
	}
}

// Forget does nothing: Judge has left out what is not needed.
func (k *edited) Forget(int) {}

// ReadLate takes a late read into account. One that shows what the read-back
// showed adds nothing but that it was made.
func (k *edited) ReadLate(e *runner.Exchange) {
	s, f := k.scenario, &k.Shared
	byToken := k.byToken()
	d := k.documentOf(f.state, e, byToken)
	if d == nil {
		return
	}
	f.readOnce = true
	d.late = true
	k.show(f.state, e, byToken)
	if k.late == nil && k.plain && k.back.token == d.token && k.back.version == d.version && slices.Equal(k.back.edits, d.edits) {
		k.late = k.back
		return
	}
	k.late = d
	f.addLate(d.operation)
	if a := s.account(f, k); a.stale {
		k.lagged, k.age = true, max(k.age, a.staleAge)
	}
}

// account is what became of the edits of a round.
type account struct {
	final              *document
	acknowledged       int
	lost               []loss
	recovered          []*edit
	unexpected         []string // tokens that the final document holds, of edits that were refused or that nobody made
	applied, unsettled int      // writes that may have been applied: seen, not seen
	settled            int      // of those seen, the unknown ones
	stale              bool
	staleAge           time.Duration
	undecided          bool // the last read shows such a state still
	anomaly            *anomaly
}

// doubt notes a read of a document that lacks what was acknowledged.
func (a *account) doubt(read *document, since time.Duration, undecided bool) {
	a.stale, a.undecided = true, a.undecided || undecided
	a.staleAge = max(a.staleAge, read.call-since)
}

// loss is an acknowledged edit that the final document does not hold.
type loss struct {
	edit *edit
	by   *edit // that was written over it; nil: none can have been
}

// account compares the edits with the final document: as the late read shows it,
// else the read-back.
func (s *LostUpdate) account(f *Shared, k *edited) account {
	a := account{final: k.late}
	if k.late == nil {
		a.final = k.back
	}
	if a.final == nil {
		return a
	}
	held, byToken := a.final.holds(), k.byToken()
	confirmed := f.confirmed() != nil && !f.readersLag
	revised := k.late != nil && k.back != nil
	var before map[string]bool
	if revised {
		before = k.back.holds()
	}
	for i := range k.edits {
		e := &k.edits[i]
		switch {
		case e.kind == indeterminate && held[e.token]:
			a.applied++
			if e.outcome == targets.Unknown {
				a.settled++
			}
		case e.kind == indeterminate && k.seen[e.token]:
			a.applied++
			a.settled++
			a.lose(e, byToken, confirmed)
		case e.kind == indeterminate:
			a.unsettled++
		case e.kind == wrote:
			a.acknowledged++
			if held[e.token] && e.again {
				a.recovered = append(a.recovered, e)
			}
			if !held[e.token] && !a.final.foreign {
				a.lose(e, byToken, confirmed)
			}
			if revised && held[e.token] && !before[e.token] {
				a.doubt(k.back, e.ret, false)
			}
		}
	}
	for _, token := range a.final.edits {
		if e := byToken[token]; e == nil || !e.possible() {
			a.unexpected = append(a.unexpected, token)
		}
	}
	if a.final.kind == sawNothing && !confirmed {
		a.doubt(a.final, f.state.since(), true)
	} else if revised && k.late.kind != sawNothing && k.back.kind == sawNothing {
		a.doubt(k.back, f.state.since(), false)
	}
	a.anomaly = s.anomaly(f, k, &a, byToken)
	return a
}

// lose notes a lost edit. One over which no other can have been written is
// believed to be gone only where late reads confirm it.
func (a *account) lose(e *edit, byToken map[string]*edit, confirmed bool) {
	by := a.final.overwriter(e, byToken)
	if by == nil && !confirmed {
		answered := e.ret
		if e.kind == indeterminate {
			answered = e.call
		}
		a.doubt(a.final, answered, true)
		return
	}
	a.lost = append(a.lost, loss{e, by})
}

// overwriter finds the edit of a document that was written over a lost one: the
// first that comes of a document which the other did not know, and that was not
// answered before the other was sent.
func (d *document) overwriter(lost *edit, byToken map[string]*edit) *edit {
	after := d.edits
	for _, token := range lost.holds {
		if len(after) == 0 || after[0] != token {
			break
		}
		after = after[1:]
	}
	for _, token := range after {
		if e := byToken[token]; e != nil && e.ret >= lost.call {
			return e
		}
	}
	return nil
}

// anomaly finds what an account has that must not be.
func (s *LostUpdate) anomaly(f *Shared, k *edited, a *account, byToken map[string]*edit) *anomaly {
	switch {
	case a.final.foreign:
		return nil
	case a.final.kind == sawNothing && !a.undecided:
		return pair("record-vanished", f.state.wrote, &a.final.operation)
	case len(a.unexpected) > 0:
		if e := byToken[a.unexpected[0]]; e != nil {
			return &anomaly{"refused-but-applied", &e.operation, &a.final.operation}
		}
		return pair("refused-but-applied", writerIn(byToken, k.back.tokenOrNone()), &a.final.operation)
	case k.shown != nil:
		return k.shown
	}
	for _, l := range a.lost {
		if l.by != nil {
			return &anomaly{"lost-update", &l.edit.operation, &l.by.operation}
		}
	}
	if len(a.lost) > 0 {
		return &anomaly{"lost-write", &a.lost[0].edit.operation, &a.final.operation}
	}
	if b := k.refusedFirst(); b != nil {
		return b
	}
	if s.Guard == byVersion && !a.stale && a.final.version != int64(len(a.final.edits)) {
		return pair("version-jump", writerIn(byToken, a.final.token), &a.final.operation)
	}
	return nil
}

func (d *document) tokenOrNone() string {
	if d == nil {
		return ""
	}
	return d.token
}

// writerIn gives the edit of that token; nil: there is none.
func writerIn(byToken map[string]*edit, token string) *operation {
	if e := byToken[token]; e != nil {
		return &e.operation
	}
	return nil
}

// refusedFirst finds an editor that was refused before anybody can have changed
// the document.
func (k *edited) refusedFirst() *anomaly {
	first := forever
	var refusal, applied *operation
	for i := range k.edits {
		e := &k.edits[i]
		if e.kind == refused && (refusal == nil || e.ret < refusal.ret) {
			refusal = &e.operation
		}
		if e.possible() && e.call < first {
			first, applied = e.call, &e.operation
		}
	}
	switch {
	case refusal == nil || first <= refusal.ret:
		return nil
	case applied == nil:
		return &anomaly{"no-winner", refusal, nil}
	default:
		return &anomaly{"refused-before-winner", refusal, applied}
	}
}

// editText says what a kind of violation is where it is said of edits.
func editText(kind string) string {
	switch kind {
	case "lost-update":
		return "an acknowledged edit is gone: another editor wrote over it a document that does not hold it"
	case "lost-write":
		return "an acknowledged edit is gone, and no other was written over it"
	case "refused-but-applied":
		return "the document holds an edit that was told it failed"
	case "version-jump":
		return "the version did not go up by exactly one for each edit that the final document holds"
	case "no-winner":
		return "an editor was refused although nobody had changed the document"
	case "refused-before-winner":
		return "an editor was refused before any other had sent its edit"
	default:
		return anomalyText[kind]
	}
}

// Rule says what the round, with its late reads, means.
func (k *edited) Rule() Ruling {
	s, f := k.scenario, &k.Shared
	if f.Unseeded {
		return Ruling{}
	}
	a := s.account(f, k)
	r := Ruling{StaleAge: a.staleAge, Undecided: a.undecided, Winners: a.acknowledged + a.applied, Settled: a.settled, Unsettled: a.unsettled, StaleRead: a.stale, Unread: k.back == nil}
	if k.back != nil && k.back.foreign || k.late != nil && k.late.foreign {
		return Ruling{Void: true, Winners: r.Winners}
	}
	r.accuse(f.Round, a.anomaly)
	if k.lagged && a.anomaly == nil {
		r.StaleRead, r.StaleAge = true, max(r.StaleAge, k.age)
	}
	if k.chain != nil && r.Violation == nil {
		chain := k.chain.rule(f)
		if chain.Void {
			return Ruling{Void: true, Winners: r.Winners}
		}
		r.Violation, r.Indefinite = chain.Violation, r.Indefinite || chain.Indefinite
		r.StaleRead, r.StaleAge, r.Undecided = r.StaleRead || chain.StaleRead, max(r.StaleAge, chain.StaleAge), r.Undecided || chain.Undecided
	}
	if r.Violation != nil {
		r.Violation.say(editText(r.Violation.Kind))
		r.tellGone(nil, k.plain)
	}
	return r
}

// Contested wants rivals of the accepted edits at the guard; where that is a time in
// whole seconds, within one of them.
func (k *edited) Contested(r *Ruling, t *Terms) (why, fix string) {
	switch {
	case r.Winners == 0:
		return "had no accepted edit", ""
	case k.scenario.stamps() == time.Second && !k.still:
		return "had edits so late that the second of their document was over", "lower --stagger and --contenders, or choose a finer --precision"
	default:
		return t.enoughRivals(&k.Evidence)
	}
}
