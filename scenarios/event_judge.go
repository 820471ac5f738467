package scenarios

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"contend/runner"
	"contend/targets"
)

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
