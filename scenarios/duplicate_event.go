package scenarios

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"contend/runner"
	"contend/targets"
)

// DuplicateEvent delivers one event several times to a handler that repairs a page
// and comments on it once: the incident of "The duplicate Forge event that deleted
// our spam filter", 2026.
type DuplicateEvent struct {
	Saw           string        `json:"saw_violation"`
	Claim         string        `json:"claim"`
	ForceConflict bool          `json:"force_conflict"`
	Offsets       durations     `json:"offset_ns"`
	Backoff       time.Duration `json:"backoff_ns"`

	// inProcess is the flag of --saw-violation process: it lives as long as we do.
	inProcess *atomic.Bool
}

// durations are a flag's, with commas between.
type durations []time.Duration

// String writes what Set reads.
func (d *durations) String() string {
	var parts []string
	for _, each := range *d {
		parts = append(parts, each.String())
	}
	return strings.Join(parts, ",")
}

// Set reads durations with commas between.
func (d *durations) Set(text string) error {
	*d = nil
	for part := range strings.SplitSeq(text, ",") {
		if part = strings.TrimSpace(part); part == "0" {
			part = "0s"
		}
		each, err := time.ParseDuration(part)
		if err != nil || each < 0 {
			return errors.New("needs durations with commas between, such as 0s,50ms,400ms")
		}
		*d = append(*d, each)
	}
	return nil
}

// Where the flag lives that forbids a run which saw a violation to call the page
// clean, and how the marker is claimed.
const (
	sawRun     = "run"
	sawAttempt = "attempt"
	sawProcess = "process"
	sawNone    = "none"

	claimAtomic = "atomic"
	claimCheck  = "check-then-set"
	claimNone   = "none"
)

// NewDuplicateEvent gives the defaults.
func NewDuplicateEvent() *DuplicateEvent {
	return &DuplicateEvent{Saw: sawRun, Claim: claimAtomic, ForceConflict: true, Offsets: durations{0, 50 * time.Millisecond, 400 * time.Millisecond},
		Backoff: 500 * time.Millisecond, inProcess: new(atomic.Bool)}
}

// Info describes the scenario.
func (s *DuplicateEvent) Info() Info {
	info := Info{
		Name:    "duplicate-event",
		Summary: "one event delivered twice, a little apart; judged on the state of the guard, not on the symptom",
		Help: `Raced: an event is delivered to every contender (-n 2). A delivery reads the versioned page; a tampered one it repairs on
condition of the version, claims the marker and comments once; refused, it waits and reads again; a clean page clears the marker.
Must hold: the marker stays the winner's; a third delivery while it is there is silent; after a clean save, a new incident speaks.
Inconclusive means that no delivery lost the page's version to another, or that the later ones did not come about.
Only a flag that outlives the attempts and not the run (--saw-violation run) holds; an atomic claim changes none of it.
Even that has a hole: a delivery that comes when the page is repaired (--force-conflict=false --offset 400ms) sees no
violation, calls the page clean, and clears the marker: violated.` + sweepHelp,
		Property: "the marker that the winner claimed is there until a clean save clears it, and silences just the incident it is for",
		Guard:    targets.IfVersion,
	}
	if s.Saw == sawNone {
		info.Property = "the marker outlives a duplicate of its event (expected to be violated: nothing forbids the loser to clear it)"
		info.Unguarded = true
	}
	return info
}

// Crowd is how many deliveries there are, unless --contenders says otherwise.
func (*DuplicateEvent) Crowd() int { return 2 }

// Flags are the scenario's own.
func (s *DuplicateEvent) Flags(fs *flag.FlagSet) {
	fs.Var(&s.Offsets, "offset", "how long after the first each further delivery comes; of several, with commas between, each round takes the next")
	fs.StringVar(&s.Saw, "saw-violation", s.Saw, "where the flag lives that forbids a run which saw a violation to clear the marker: run, attempt, process, none")
	fs.StringVar(&s.Claim, "claim", s.Claim, "how the marker is claimed: atomic, check-then-set, none")
	fs.BoolVar(&s.ForceConflict, "force-conflict", s.ForceConflict, "hold the first write of every delivery until all have read, so that the losers collide each time")
	fs.DurationVar(&s.Backoff, "backoff", s.Backoff, "wait after the first refusal; it doubles with each")
}

// Check refuses parameters that cannot be.
func (s *DuplicateEvent) Check() error {
	var wrong []error
	if !slices.Contains([]string{sawRun, sawAttempt, sawProcess, sawNone}, s.Saw) {
		wrong = append(wrong, fmt.Errorf("--saw-violation %q: there are run, attempt, process, none", s.Saw))
	}
	if !slices.Contains([]string{claimAtomic, claimCheck, claimNone}, s.Claim) {
		wrong = append(wrong, fmt.Errorf("--claim %q: there are atomic, check-then-set, none", s.Claim))
	}
	if len(s.Offsets) == 0 {
		wrong = append(wrong, errors.New("--offset: name at least one"))
	}
	if s.Backoff < 0 {
		wrong = append(wrong, fmt.Errorf("--backoff %s: must not be negative", s.Backoff))
	}
	return errors.Join(wrong...)
}

// Collection keeps the page where a write on a version works.
func (*DuplicateEvent) Collection() targets.Collection { return targets.Versioned }

const (
	markerSuffix  = "-marker"
	commentSuffix = "-comment"
)

// Others are the marker and the last comment.
func (*DuplicateEvent) Others(key string) []runner.Key {
	return []runner.Key{{Name: key + markerSuffix, Collection: targets.Plain}, {Name: key + commentSuffix, Collection: targets.Plain}}
}

// pageBody is what a page says beside its version.
type pageBody struct {
	Tampered bool `json:"tampered"`
	Editor   bool `json:"editor,omitempty"` // written by a person, not by the handler
}

func pageOf(r *targets.Record) (p pageBody) {
	_ = json.Unmarshal(r.Body, &p)
	return p
}

// delivered is what a marker or a comment says of the delivery that wrote it.
type delivered struct {
	Delivery int `json:"delivery"` // from 1; the duplicates first
}

// Seeds is the tampered page.
func (*DuplicateEvent) Seeds(key string) []targets.Op {
	seeds := seedAtZero(key)
	seeds[0].Value.Body, _ = json.Marshal(pageBody{Tampered: true, Editor: true})
	return seeds
}

// Requests are those of a delivery that loses and comes back; the first contender
// sends the later events too.
func (*DuplicateEvent) Requests() int { return 16 }

// Sweep puts the offsets of the sweep in the place of the scenario's own, and lets the
// conflict come or not.
func (s *DuplicateEvent) Sweep(given func(flag string) bool) error {
	switch {
	case given("offset"):
		return errors.New("--offset: the offsets are those of --offset-sweep; leave one of the two out")
	case given("force-conflict") && s.ForceConflict:
		return errors.New("--force-conflict: it holds both deliveries until they have read, so that no offset is left; leave it out with --offset-sweep")
	}
	s.Offsets, s.ForceConflict = durations{0}, false
	return nil
}

// Twin lets a run that saw a violation clear the marker; the conflict stays forced.
func (s *DuplicateEvent) Twin() Contest {
	if s.Saw == sawNone {
		return nil
	}
	twin := *s
	twin.Saw, twin.ForceConflict = sawNone, true
	return &twin
}

// mostAttempts of a delivery, as in the incident.
const mostAttempts = 3

// handler is one delivery on its way.
type handler struct {
	*runner.Contender
	scenario *DuplicateEvent
	delivery int
	saw      bool // this run has seen a violation
}

// Contend delivers the event; when all duplicates are through, the first contender
// sends what comes later.
func (s *DuplicateEvent) Contend(c *runner.Contender) {
	offset := s.Offsets[(c.Round.Number-1)%len(s.Offsets)]
	if !c.Sleep(time.Duration(c.Number) * offset) {
		return
	}
	s.deliver(c, c.Number+1, s.ForceConflict)
	c.Barrier("delivered")
	if c.Number != 0 || c.Over() {
		return
	}
	// The stale draft is saved once more: the same incident, which is to be silent.
	const later = 1_000_000
	if !s.edit(c) {
		return
	}
	s.deliver(c, later+1, false)
	// A clean save: nothing is wrong with the page, and the marker may go.
	s.deliver(c, later+2, false)
	// Tampered with again: a new incident, which is to speak.
	if s.edit(c) {
		s.deliver(c, later+3, false)
	}
}

// edit saves a tampered page, as a person would.
func (s *DuplicateEvent) edit(c *runner.Contender) bool {
	seen := c.Read()
	if seen.Outcome != targets.OK {
		return false
	}
	record := c.Record()
	record.Version = seen.Record.Version + 1
	record.Body, _ = json.Marshal(pageBody{Tampered: true, Editor: true})
	return c.Do(targets.Op{Kind: targets.Write, Key: c.Round.Key, Collection: targets.Versioned, Value: record,
		If: targets.Condition{Guard: targets.IfVersion, Counter: seen.Record.Version, Version: seen.Version}}).Outcome == targets.OK
}

// deliver runs the handler.
func (s *DuplicateEvent) deliver(c *runner.Contender, delivery int, hold bool) {
	h := handler{c, s, delivery, false}
	// In a forced conflict the loser comes back when the winner has commented, as in
	// the incident, however slow the store.
	settled := !hold
	settle := func() {
		if !settled {
			settled = true
			c.Barrier("settled")
		}
	}
	defer settle()
	for attempt := range mostAttempts {
		if s.Saw == sawAttempt {
			// The flag is made inside of the retry loop, and is new on the attempt that matters.
			h.saw = false
		}
		// Both deliveries read the page, and it is tampered with.
		page := c.Read()
		if hold && attempt == 0 {
			c.Barrier("after-read")
		}
		if page.Outcome != targets.OK {
			return
		}
		if !pageOf(&page.Record).Tampered {
			h.clean()
			return
		}
		h.saw = true
		s.inProcess.Store(true)
		if h.repair(page) {
			h.comment()
			return
		}
		// The 409: back off, and read again a page that the other has fixed.
		if !c.Sleep(s.Backoff << attempt) {
			return
		}
		settle()
	}
}

// repair restores the page on condition of its version.
func (h *handler) repair(page *targets.Reply) bool {
	record := h.Record()
	record.Version = page.Record.Version + 1
	record.Body, _ = json.Marshal(pageBody{})
	return h.Do(targets.Op{Kind: targets.Write, Key: h.Round.Key, Collection: targets.Versioned, Value: record,
		If: targets.Condition{Guard: targets.IfVersion, Counter: page.Record.Version, Version: page.Version}}).Outcome == targets.OK
}

// comment claims the marker of the incident, and comments if it was not there.
func (h *handler) comment() {
	key := h.Round.Key + markerSuffix
	condition := targets.Condition{}
	switch h.scenario.Claim {
	case claimAtomic:
		condition.Guard = targets.IfAbsent
	case claimCheck:
		if h.Do(targets.Op{Kind: targets.Read, Key: key, Collection: targets.Plain}).Outcome != targets.Missing {
			return
		}
	}
	if h.write(key, condition).Outcome == targets.OK {
		h.write(h.Round.Key+commentSuffix, targets.Condition{})
	}
}

func (h *handler) write(key string, condition targets.Condition) *targets.Reply {
	record := h.Record()
	record.Version = 1
	record.Body, _ = json.Marshal(delivered{h.delivery})
	return h.Do(targets.Op{Kind: targets.Write, Key: key, Collection: targets.Plain, Value: record, If: condition})
}

// clean is the branch of a page without violations: it clears the marker, unless
// this run has seen one.
func (h *handler) clean() {
	saw := h.saw
	switch h.scenario.Saw {
	case sawNone:
		saw = false
	case sawProcess:
		saw = h.scenario.inProcess.Load()
	}
	if !saw {
		h.Do(targets.Op{Kind: targets.Delete, Key: h.Round.Key + markerSuffix, Collection: targets.Plain})
	}
}

// delivery is what one delivery did, as it was recorded.
type delivery struct {
	name     string
	reads    []*runner.Exchange // of the page
	refused  *runner.Exchange   // a repair
	repaired *runner.Exchange
	claimed  *runner.Exchange // the marker, accepted
	held     *runner.Exchange // the marker, found or refused
	comment  *runner.Exchange // accepted
	cleared  *runner.Exchange // the marker
	doubtful bool             // a request of it was not served, or may have been applied unseen
}

// branch names the way that the delivery took through the handler.
func (d *delivery) branch() string {
	var way string
	if d.refused != nil {
		way = "refused, read again; "
	}
	switch {
	case len(d.reads) == 0:
		return "did not begin"
	case d.comment != nil:
		return way + "repaired, claimed the marker, commented"
	case d.repaired != nil && d.held != nil:
		return way + "repaired, found the marker, silent"
	case d.repaired != nil:
		return way + "repaired, and went no further"
	case d.cleared != nil:
		return way + "clean page: cleared the marker"
	case !pageOf(&d.reads[len(d.reads)-1].Reply.Record).Tampered:
		return way + "clean page: left the marker"
	default:
		return way + "gave up"
	}
}

// deliveries takes a round apart: the duplicates, and of the first contender what
// came later. Those that did not come about are nil.
func deliveries(r *runner.Round) (duplicates []*delivery, third, save, fourth *delivery) {
	var now *delivery
	for i := range r.Ops {
		x := &r.Ops[i]
		if i == 0 || r.Ops[i-1].Contender != x.Contender {
			now = &delivery{name: fmt.Sprintf("delivery %d", x.Contender+1)}
			duplicates = append(duplicates, now)
		}
		page := x.Op.Key == r.Key
		if page && x.Op.Kind == targets.Write && pageOf(&x.Op.Value).Editor {
			// The read before it was the editor's.
			now.reads = now.reads[:max(0, len(now.reads)-1)]
			switch {
			case x.Reply.Outcome != targets.OK:
			case third == nil:
				third = &delivery{name: "third delivery"}
				now = third
			default:
				fourth = &delivery{name: "delivery of a new incident"}
				now = fourth
			}
			continue
		}
		if page && x.Op.Kind == targets.Read && now == third && now.repaired != nil {
			save = &delivery{name: "clean save"}
			now = save
		}
		now.note(x, page)
	}
	return duplicates, third, save, fourth
}

func (d *delivery) note(x *runner.Exchange, page bool) {
	outcome := x.Reply.Outcome
	switch marker := strings.HasSuffix(x.Op.Key, markerSuffix); {
	case page && outcome == targets.Aborted:
		d.refused = x
	case outcome != targets.OK && outcome != targets.Conflict && outcome != targets.Missing:
		// What was not done, or not for certain, explains what follows.
		d.doubtful = true
	case page && x.Op.Kind == targets.Read:
		if outcome == targets.OK {
			d.reads = append(d.reads, x)
		}
	case page && outcome == targets.OK:
		d.repaired = x
	case page:
		d.refused = x
	case marker && x.Op.Kind == targets.Delete:
		if outcome == targets.OK {
			d.cleared = x
		}
	case marker && x.Op.Kind == targets.Read:
		if outcome == targets.OK {
			d.held = x
		}
	case marker && outcome == targets.OK:
		d.claimed = x
	case marker:
		d.held = x
	case outcome == targets.OK:
		d.comment = x
	}
}

// eventful is what is kept of a round of deliveries.
type eventful struct {
	Shared
	versions
	violation *Violation
	branches  []DeliveryBranch
	forced    bool // a duplicate was refused at the page
	claims    bool // two claimed the marker at once
	later     bool // the later deliveries came about
	doubtful  bool
	others    []aside // the marker and the last comment
	// stale: a read of the marker showed what it had been before; age is for how long.
	stale bool
	age   time.Duration
}

// Judge keeps of a round what its ruling needs.
//
// It leaves rivals and reach out: the subject is the handler, not the guard.
func (s *DuplicateEvent) Judge(r *runner.Round, _ bool) Finding {
	k := &eventful{Shared: findingOf(r, true)}
	k.Evidence = evidenceOf(firstWrites(r))
	k.versions = versionsOf(&k.Shared, r)
	duplicates, third, save, fourth := deliveries(r)
	k.later = third != nil && third.repaired != nil && save != nil && fourth != nil && fourth.repaired != nil
	all := append(slices.Clone(duplicates), third, save, fourth)
	for _, d := range all {
		if d == nil {
			continue
		}
		k.doubtful = k.doubtful || d.doubtful
		k.branches = append(k.branches, DeliveryBranch{Delivery: roleOf(d, duplicates), Branch: d.branch()})
	}
	for _, d := range duplicates {
		k.forced = k.forced || d.refused != nil
	}
	for _, at := range s.Others(r.Key) {
		k.others = append(k.others, asideOf(r, at.Name, false))
	}
	k.claims = claimsMet(r)
	k.age, k.stale = staleMarker(r)
	if !k.doubtful {
		k.violation = eventViolation(k.Round, duplicates, third, save, fourth)
	}
	return k
}

// claimsMet tells whether two deliveries claimed the marker at the same time.
func claimsMet(r *runner.Round) bool {
	var claims []*runner.Exchange
	for i := range r.Ops {
		x := &r.Ops[i]
		if x.Op.Key != r.Key+markerSuffix || x.Op.Kind != targets.Write {
			continue
		}
		for _, other := range claims {
			if other.Contender != x.Contender && other.Call <= x.Return && x.Call <= other.Return {
				return true
			}
		}
		claims = append(claims, x)
	}
	return false
}

// staleMarker looks for a read of the marker that does not show what had been done to
// it before: a claim that nobody can have cleared, or a clearing.
func staleMarker(r *runner.Round) (age time.Duration, stale bool) {
	var claims, clears, reads []*runner.Exchange
	for i := range r.Ops {
		switch x := &r.Ops[i]; {
		case x.Op.Key != r.Key+markerSuffix:
		case x.Op.Kind == targets.Read:
			reads = append(reads, x)
		case x.Op.Kind == targets.Delete:
			clears = append(clears, x)
		case x.Reply.Outcome == targets.OK:
			claims = append(claims, x)
		}
	}
	for _, read := range reads {
		for _, claim := range claims {
			cleared := slices.ContainsFunc(clears, func(d *runner.Exchange) bool { return d.Return >= claim.Call && d.Call <= read.Return })
			if read.Reply.Outcome == targets.Missing && claim.Return < read.Call && !cleared {
				age, stale = max(age, read.Call-claim.Return), true
			}
			for _, d := range clears {
				shows := read.Reply.Outcome == targets.OK && read.Reply.Record.Token == claim.Op.Value.Token
				if shows && d.Reply.Outcome == targets.OK && claim.Return < d.Call && d.Return < read.Call {
					age, stale = max(age, read.Call-d.Return), true
				}
			}
		}
	}
	return age, stale
}

// claims tells what held means by what was tried: all but one lose at the page, so
// that the marker is seldom claimed by two.
func (s *DuplicateEvent) claims(all []Finding, _ Terms) string {
	property := s.Info().Property
	for _, kept := range all {
		if kept.(*eventful).claims {
			return property
		}
	}
	if s.Claim == claimAtomic && s.Saw != sawNone {
		property += "; the claim itself was not contended for, so whether it is atomic was not tested (contend fail-if-exists tests that)"
	}
	return property
}

// roleOf tells a duplicate by whether it won, for the table of branches.
func roleOf(d *delivery, duplicates []*delivery) string {
	switch {
	case !slices.Contains(duplicates, d):
		return d.name
	case d.repaired != nil:
		return "duplicate that repaired the page"
	default:
		return "other duplicate"
	}
}

// eventViolation looks at the state of the guard first, and then at the symptoms.
func eventViolation(round int, duplicates []*delivery, third, save, fourth *delivery) *Violation {
	var winner *delivery
	for _, d := range duplicates {
		if d.comment == nil {
			continue
		}
		if winner != nil {
			return eventWitness(round, "double-comment", "two deliveries of one event commented", winner, "comment", winner.comment, d, "comment", d.comment)
		}
		winner = d
	}
	if winner != nil {
		for _, d := range duplicates {
			if d == winner || d.cleared == nil || d.cleared.Call <= winner.claimed.Return {
				continue
			}
			kind, detail := "marker-deleted", "a duplicate that had lost cleared the marker that the winner had claimed"
			if d.refused == nil {
				kind, detail = "late-delivery-cleared", "a duplicate that came when the page had been repaired took it for clean, and cleared the marker "+
					"of the incident: nobody had lost, and no flag of its own run can know"
			}
			return eventWitness(round, kind, detail, winner, "claim the marker", winner.claimed, d, "clear the marker", d.cleared)
		}
		if third != nil && third.comment != nil {
			return eventWitness(round, "spoke-again", "the same incident was commented on once more, while the marker should have been there",
				winner, "comment", winner.comment, third, "comment", third.comment)
		}
	}
	if save != nil && fourth != nil && fourth.repaired != nil && fourth.comment == nil && fourth.held != nil && len(save.reads) > 0 {
		if save.cleared != nil {
			return eventWitness(round, "silenced", "a new incident after a clean save was not commented on: the marker had been cleared, and the store holds it still",
				save, "clear the marker", save.cleared, fourth, "claim the marker", fourth.held)
		}
		return eventWitness(round, "silenced", "a new incident after a clean save was not commented on: the marker of the earlier one was never cleared",
			save, "read a clean page", save.reads[0], fourth, "claim the marker", fourth.held)
	}
	return nil
}

func eventWitness(round int, kind, detail string, a *delivery, did string, x *runner.Exchange, b *delivery, then string, y *runner.Exchange) *Violation {
	of := func(d *delivery, request string, e *runner.Exchange) Witness {
		return Witness{Who: d.name, Request: request, Call: e.Call, Return: e.Return, Outcome: e.Reply.Outcome, Code: e.Reply.Code,
			Status: e.Reply.Status, Trace: e.Reply.Trace, Token: e.Op.Value.Token, Version: e.Op.Value.Version}
	}
	return &Violation{Kind: kind, Round: round, Detail: detail, Witness: []Witness{of(a, did, x), of(b, then, y)}}
}

// ReadLate takes a late read into account.
func (k *eventful) ReadLate(e *runner.Exchange) {
	for i := range k.others {
		k.others[i].readLate(e)
	}
	k.readLate(&k.Shared, e)
}

// Forget keeps what a late read is compared with.
func (k *eventful) Forget(int) { k.forget() }

// Rule says what the round, with its late reads, means.
func (k *eventful) Rule() Ruling {
	r := k.rule(&k.Shared)
	r.Winners = 0
	for _, b := range k.branches {
		if strings.HasSuffix(b.Branch, "commented") && strings.HasPrefix(b.Delivery, "duplicate") {
			r.Winners++
		}
	}
	if !k.Unseeded {
		r.accuseAside(k.Round, k.others)
	}
	if k.stale && !k.Unseeded && !r.Void {
		r.StaleRead, r.StaleAge = true, max(r.StaleAge, k.age)
	}
	// What a delivery does that was shown an old state is not the handler's fault.
	if !k.Unseeded && !r.Void && !r.StaleRead && r.Violation == nil && k.violation != nil {
		r.Violation = k.violation
	}
	if k.doubtful && r.Violation == nil {
		r.Unsettled = max(r.Unsettled, 1)
	}
	return r
}

// Fates gives what became of every duplicate at the page: won by repairing it, or
// lost there.
func (*DuplicateEvent) Fates(r *runner.Round) []Fate {
	var fates []Fate
	duplicates, _, _, _ := deliveries(r)
	for _, d := range duplicates {
		switch {
		case d.repaired != nil:
			fates = append(fates, fateOf(d.repaired))
		case d.refused != nil:
			fates = append(fates, fateOf(d.refused))
		case len(d.reads) > 0:
			fates = append(fates, fateOf(d.reads[len(d.reads)-1]))
		}
	}
	return fates
}

// Contested wants a delivery that lost, and the later ones.
func (k *eventful) Contested(*Ruling, *Terms) (why, fix string) {
	switch {
	case !k.forced:
		return "had no delivery that lost the page's version to another", "leave --force-conflict on"
	case !k.later:
		return "did not come to its later deliveries", ""
	default:
		return "", ""
	}
}

// DeliveryBranch is the way that deliveries took through the handler.
type DeliveryBranch struct {
	Delivery string `json:"delivery"`
	Branch   string `json:"branch"`
	Count    int    `json:"count"` // over the rounds
}

// Detail counts the ways that deliveries took.
func (*DuplicateEvent) Detail(rounds []Finding) Detail {
	var all []DeliveryBranch
	for _, kept := range rounds {
		for _, b := range kept.(*eventful).branches {
			i := slices.IndexFunc(all, func(a DeliveryBranch) bool { return a.Delivery == b.Delivery && a.Branch == b.Branch })
			if i < 0 {
				i, all = len(all), append(all, b)
			}
			all[i].Count++
		}
	}
	return Detail{Deliveries: all}
}
