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
	act
	again  bool          // its editor had been refused before
	opened time.Duration // when its editor had read what it wrote over
	holds  []string      // the edits that its document comes of, its own last
}

// possible tells whether the edit can have been applied.
func (e *edit) possible() bool { return e.kind == wrote || e.kind == uncertain }

// document is the checklist as a read of the final state showed it.
type document struct {
	act
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
	edits      []edit // by editor and time; of a plain round the acknowledged ones alone
	plain      bool
	back, late *document // the read-back, the late read; nil: it told nothing
	refused    int       // editors that the guard refused, or a transaction aborted
	still      bool      // a write that may have been applied left the time as it was
	chain      *breach   // of the versions
	shown      *breach   // what an editor read on the way
}

// Judge keeps of a round what its ruling needs.
func (s *LostUpdate) Judge(r *runner.Round) Finding {
	f := findingOf(r, true)
	f.Evidence = evidenceOf(firstWrites(r))
	k := &edited{}
	f.own = k
	var opened time.Duration
	var acts []act
	turnedAway := runner.Own // the editor that was last seen refused
	for i := range r.Ops {
		x := &r.Ops[i]
		if x.Op.Kind == targets.Read {
			opened = x.Return
		}
		a, ok := f.state.actOf(x)
		if !ok || x.Op.Kind != targets.Write {
			continue
		}
		holds, _ := checklistOf(x.Op.Value.Body)
		k.edits = append(k.edits, edit{act: a, again: turnedAway == x.Contender, opened: opened, holds: holds.Edits})
		acts = append(acts, a)
		if a.kind == refused || a.outcome == targets.Aborted {
			if turnedAway != x.Contender {
				k.refused++
			}
			turnedAway = x.Contender
		}
		if k.edits[len(k.edits)-1].possible() {
			k.still = k.still || x.Op.If.UpdatedAt.Equal(x.Op.Value.UpdatedAt)
		}
	}
	if s.Guard == byVersion {
		_, k.chain = checkChain(acts)
	}
	byToken := k.byToken()
	k.shown = shownRefusal(f.state, r.Ops, byToken)
	for i := range r.Reads {
		if d := k.documentOf(f.state, &r.Reads[i], byToken); d != nil {
			k.back = d
		}
	}
	k.forget(s.account(k))
	return f
}

// shownRefusal finds an editor who read an edit that was told it failed.
func shownRefusal(state startState, ops []runner.Exchange, byToken map[string]*edit) *breach {
	for i := range ops {
		if ops[i].Op.Kind != targets.Read {
			continue
		}
		c, _ := checklistOf(ops[i].Reply.Record.Body)
		for _, token := range c.Edits {
			if e := byToken[token]; e != nil && !e.possible() {
				read, _ := state.actOf(&ops[i])
				return &breach{"refused-but-applied", &e.act, &read}
			}
		}
	}
	return nil
}

// documentOf reads the final state; nil: it was not told.
func (k *edited) documentOf(state startState, x *runner.Exchange, byToken map[string]*edit) *document {
	a, ok := state.actOf(x)
	if !ok {
		return nil
	}
	d := &document{act: a}
	if a.kind == sawNothing {
		return d
	}
	c, ours := checklistOf(x.Reply.Record.Body)
	d.edits = c.Edits
	// Of a plain round the refused writes are not kept.
	ofRound := func(token string) bool {
		return byToken[token] != nil || k.plain && strings.HasPrefix(token, state.key+"-c")
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
	if k.back == nil || k.back.foreign || a.breach != nil || a.stale || a.applied+a.unsettled > 0 {
		return
	}
	k.plain = true
	k.edits = slices.DeleteFunc(k.edits, func(e edit) bool { return e.kind != wrote })
	for i := range k.edits {
		k.edits[i].holds = nil
	}
	k.edits = slices.Clip(k.edits)
}

// readLate takes a late read into account. One that shows what the read-back
// showed adds nothing but that it was made.
func (s *LostUpdate) readLate(f *Finding, e *runner.Exchange) {
	k := f.own.(*edited)
	d := k.documentOf(f.state, e, k.byToken())
	if d == nil {
		return
	}
	f.readOnce = true
	d.late, k.late = true, d
	if k.plain && k.back.token == d.token && k.back.version == d.version && slices.Equal(k.back.edits, d.edits) {
		k.late = k.back
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
	breach             *breach
}

// loss is an acknowledged edit that the final document does not hold.
type loss struct {
	edit *edit
	by   *edit // that was written over it; nil: none can have been
}

// account compares the edits with the final document: as the late read shows it,
// else the read-back.
func (s *LostUpdate) account(k *edited) account {
	a := account{final: k.late}
	if k.late == nil {
		a.final = k.back
	}
	if a.final == nil {
		return a
	}
	held, byToken := a.final.holds(), k.byToken()
	revised := k.late != nil && k.back != nil
	var before map[string]bool
	if revised {
		before = k.back.holds()
	}
	for i := range k.edits {
		e := &k.edits[i]
		switch {
		case e.kind == uncertain && held[e.token]:
			a.applied++
			if e.outcome == targets.Unknown {
				a.settled++
			}
		case e.kind == uncertain:
			a.unsettled++
		case e.kind == wrote:
			a.acknowledged++
			if held[e.token] && e.again {
				a.recovered = append(a.recovered, e)
			}
			if !held[e.token] && !a.final.foreign {
				a.lose(e, byToken, k.late != nil)
			}
			a.stale = a.stale || revised && held[e.token] && !before[e.token]
		}
	}
	for _, token := range a.final.edits {
		if e := byToken[token]; e == nil || !e.possible() {
			a.unexpected = append(a.unexpected, token)
		}
	}
	if a.final.kind == sawNothing && k.late == nil || revised && k.late.kind != sawNothing && k.back.kind == sawNothing {
		a.stale = true
	}
	a.breach = s.breach(k, &a, byToken)
	return a
}

// lose notes a lost edit. One over which no other can have been written is
// believed to be gone only where a late read confirms it.
func (a *account) lose(e *edit, byToken map[string]*edit, confirmed bool) {
	by := a.final.overwriter(e, byToken)
	if by == nil && !confirmed {
		a.stale = true
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

// breach finds what an account has that must not be.
func (s *LostUpdate) breach(k *edited, a *account, byToken map[string]*edit) *breach {
	switch {
	case a.final.foreign:
		return nil
	case a.final.kind == sawNothing && k.late != nil:
		return &breach{"record-vanished", &a.final.act, nil}
	case len(a.unexpected) > 0:
		if e := byToken[a.unexpected[0]]; e != nil {
			return &breach{"refused-but-applied", &e.act, &a.final.act}
		}
		return &breach{"refused-but-applied", &a.final.act, nil}
	case k.shown != nil:
		return k.shown
	}
	for _, l := range a.lost {
		if l.by != nil {
			return &breach{"lost-update", &l.edit.act, &l.by.act}
		}
	}
	if len(a.lost) > 0 {
		return &breach{"lost-write", &a.lost[0].edit.act, &a.final.act}
	}
	if b := k.refusedFirst(); b != nil {
		return b
	}
	if s.Guard == byVersion && !a.stale && a.final.version != int64(len(a.final.edits)) {
		return &breach{"version-jump", &a.final.act, nil}
	}
	return k.chain
}

// refusedFirst finds an editor that was refused before anybody can have changed
// the document.
func (k *edited) refusedFirst() *breach {
	first := forever
	var refusal, applied *act
	for i := range k.edits {
		e := &k.edits[i]
		if e.kind == refused && (refusal == nil || e.ret < refusal.ret) {
			refusal = &e.act
		}
		if e.possible() && e.call < first {
			first, applied = e.call, &e.act
		}
	}
	switch {
	case refusal == nil || first <= refusal.ret:
		return nil
	case applied == nil:
		return &breach{"no-winner", refusal, nil}
	default:
		return &breach{"refused-before-winner", refusal, applied}
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
		return breachText[kind]
	}
}

// Rule says what a finding, with its late read, means.
func (s *LostUpdate) Rule(f *Finding) Ruling {
	k := f.own.(*edited)
	a := s.account(k)
	r := Ruling{Winners: a.acknowledged + a.applied, Settled: a.settled, Unsettled: a.unsettled, StaleRead: a.stale, Unread: a.final == nil && !f.Unseeded}
	if k.back != nil && k.back.foreign || k.late != nil && k.late.foreign {
		return Ruling{Void: true, Winners: r.Winners}
	}
	if r.accuse(f.Round, a.breach); r.Violation != nil {
		r.Violation.Detail = editText(r.Violation.Kind)
	}
	return r
}

// contested wants two editors that met at the guard; where that is a time in whole
// seconds, within one of them.
func (s *LostUpdate) contested(f *Finding, r *Ruling, _ Terms) reason {
	k := f.own.(*edited)
	switch {
	case f.Evidence.Untold:
		return reason{"had no usable times next to the store: the relay tells none, or its clocks are further apart than a call is long", ""}
	case r.Winners == 0:
		return reason{"had no accepted edit", "their outcomes tell why"}
	case k.refused < 2 && f.Evidence.GuardContention <= 0:
		return reason{"had fewer than two editors at the guard together", "raise --contenders"}
	case s.Stamps() == time.Second && !k.still:
		return reason{"had edits so late that the second of their document was over", "lower --stagger and --contenders, or choose a finer --precision"}
	default:
		return reason{}
	}
}

// EditReport is what became of the edits, over all rounds.
type EditReport struct {
	Guard        string `json:"guard"`
	OnConflict   string `json:"on_conflict"`
	Acknowledged int    `json:"acknowledged"`
	Recovered    int    `json:"recovered"`  // of them after a refusal
	Lost         int    `json:"lost"`       // of them not in the final document
	Unexpected   int    `json:"unexpected"` // in the final document, though refused, or made by nobody
	// Items are the first of those that are lost, recovered or unexpected.
	Items []EditedItem `json:"items"`
	Story *EditStory   `json:"story,omitempty"`
}

// EditedItem is an item that was lost, recovered or unexpected.
type EditedItem struct {
	Round  int    `json:"round"`
	Became string `json:"became"` // lost, recovered, unexpected
	Token  string `json:"token"`
	By     string `json:"by,omitempty"` // of a lost one: the token of what was written over it
}

// EditStory is how the first edit was lost that another was written over.
type EditStory struct {
	Round int      `json:"round"`
	Lost  Saved    `json:"lost"`
	Over  Saved    `json:"over"`
	Holds []string `json:"holds"` // the tokens of the final document
}

// Saved is a write of an editor. Times are since the start of the run.
type Saved struct {
	Editor int           `json:"editor"`
	Opened time.Duration `json:"opened_ns"` // when it had read the document
	Call   time.Duration `json:"call_ns"`
	Return time.Duration `json:"return_ns"`
	Held   int           `json:"held"` // edits in the document as it was read
	Told   bool          `json:"told"` // that it is saved
}

func savedOf(e *edit) Saved {
	return Saved{Editor: int(e.who), Opened: e.opened, Call: e.call, Return: e.ret, Held: max(0, len(e.holds)-1), Told: e.kind == wrote}
}

// shownItems of each sort are listed; all are counted.
const shownItems = 20

func (s *LostUpdate) detail(findings []*Finding) Detail {
	p := EditReport{Guard: s.Guard, OnConflict: s.OnConflict, Items: []EditedItem{}}
	add := func(n *int, item EditedItem) {
		if *n++; *n <= shownItems {
			p.Items = append(p.Items, item)
		}
	}
	for _, f := range findings {
		a := s.account(f.own.(*edited))
		p.Acknowledged += a.acknowledged
		for _, l := range a.lost {
			item := EditedItem{Round: f.Round, Became: "lost", Token: l.edit.token}
			if l.by != nil {
				item.By = l.by.token
			}
			add(&p.Lost, item)
			if l.by != nil && p.Story == nil && len(l.edit.holds) > 0 {
				p.Story = &EditStory{Round: f.Round, Lost: savedOf(l.edit), Over: savedOf(l.by), Holds: a.final.edits}
			}
		}
		for _, e := range a.recovered {
			add(&p.Recovered, EditedItem{Round: f.Round, Became: "recovered", Token: e.token})
		}
		for _, token := range a.unexpected {
			add(&p.Unexpected, EditedItem{Round: f.Round, Became: "unexpected", Token: token})
		}
	}
	return Detail{Edits: &p}
}
