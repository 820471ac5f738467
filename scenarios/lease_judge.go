package scenarios

import (
	"fmt"
	"maps"
	"slices"

	"contend/runner"
	"contend/targets"
)

// leased is what is kept of a round of leases.
type leased struct {
	Shared
	versions
	lease       *Lease
	own         *anomaly // of a rule of the lease's own
	work        []aside  // the record of the holders
	tenure      *tenure  // of a lease by time to live
	lostAtRead  int      // contenders that left at the read, over the periods
	lostAtWrite int
	fenced      bool // a former holder wrote to the record of the holders, and was refused
}

// Judge keeps of a round what its ruling needs.
func (s *Lease) Judge(r *runner.Round, oneCopy bool) Finding {
	k := &leased{Shared: findingOf(r, s.Expiry != byTTL), lease: s}
	f := &k.Shared
	f.Evidence = evidenceOf(firstWrites(r))
	s.meet(&f.Evidence, meetingsOf(r, oneCopy))
	var terms []term
	for i := range r.Ops {
		x := &r.Ops[i]
		if x.Op.Key != r.Key || x.Op.Kind != targets.Write {
			continue
		}
		if a, ok := f.state.operationOf(x); ok {
			terms = append(terms, term{operation: a, leaseBody: bodyOf(&x.Op.Value)})
		}
	}
	k.countLosers(terms, f.Evidence.Contenders*s.periods())
	if s.Expiry == byTTL {
		k.tenure = s.tenureOf(f, r)
		f.won = k.tenure.won
		for i := range k.tenure.operations {
			if a := k.tenure.operations[i]; a.kind == sawForeign {
				f.operations = append(f.operations, a)
			}
		}
		k.tenure.forget()
		return k
	}
	k.versions = versionsOf(f, r)
	for _, at := range s.Others(r.Key) {
		k.work = append(k.work, asideOf(r, at.Name, true))
	}
	if k.own = earlyTakeover(terms); k.own == nil {
		k.own, k.fenced = fence(r)
	}
	return k
}

// countLosers tells where the losers lost, by the first write of each contender in
// each period; of so many in all.
func (k *leased) countLosers(terms []term, of int) {
	type part struct {
		who    int32
		period int
	}
	first := make(map[part]bool)
	for i := range terms {
		t := &terms[i]
		if at := (part{t.who, t.Period}); !first[at] {
			first[at] = true
			if t.kind == refused {
				k.lostAtWrite++
			}
		}
	}
	k.lostAtRead = of - len(first)
}

// earlyTakeover finds a lease that was taken before the one before it had run out.
func earlyTakeover(terms []term) *anomaly {
	by := make(map[int64]*term)
	for i := range terms {
		if t := &terms[i]; t.kind == wrote {
			by[t.version] = t
		}
	}
	for _, version := range slices.Sorted(maps.Keys(by)) {
		t := by[version]
		if before := by[version-1]; before != nil && t.ret < before.Expires {
			return &anomaly{"early-takeover", &before.operation, &t.operation}
		}
	}
	return nil
}

// fence finds a write under a fencing token that was accepted after one under a
// higher token had been; and tells whether one was tried and refused.
func fence(r *runner.Round) (stale *anomaly, tried bool) {
	var accepted, turnedAway []operation
	work := startState{key: r.Key + workSuffix, seed: r.Key + workSuffix + seedSuffix}
	for i := range r.Ops {
		if x := &r.Ops[i]; x.Op.Key == work.key && x.Op.Kind == targets.Write {
			switch a, _ := work.operationOf(x); a.kind {
			case wrote:
				accepted = append(accepted, a)
			case refused:
				turnedAway = append(turnedAway, a)
			}
		}
	}
	for i := range accepted {
		high := &accepted[i]
		for j := range accepted {
			if late := &accepted[j]; late.version < high.version && late.call > high.ret {
				return &anomaly{"stale-fence-accepted", high, late}, true
			}
		}
		for j := range turnedAway {
			late := &turnedAway[j]
			tried = tried || late.version < high.version && late.call > high.ret
		}
	}
	return nil, tried
}

// ReadLate takes a late read into account.
func (k *leased) ReadLate(e *runner.Exchange) {
	if k.tenure != nil {
		k.tenure.readLate(&k.Shared, e)
		return
	}
	for i := range k.work {
		k.work[i].readLate(e)
	}
	k.readLate(&k.Shared, e)
}

// Forget keeps what a late read is compared with.
func (k *leased) Forget(winners int) {
	k.forget()
	k.Shared.Forget(winners)
}

// Rule says what the round, with its late reads, means.
func (k *leased) Rule() Ruling {
	f := &k.Shared
	if k.tenure != nil {
		r := Ruling{Winners: f.won}
		if f.Unseeded || r.void(f, f.operations) {
			return r
		}
		r.StaleRead, r.StaleAge = k.tenure.stale, k.tenure.staleAge
		if k.tenure.doubt {
			r.Unsettled = 1
		}
		r.accuse(f.Round, k.tenure.anomaly)
		return r
	}
	r := k.rule(f)
	if k.unknown > 0 {
		// Who held the lease, and for how long, is not known of the whole round.
		r.Unsettled = max(1, r.Unsettled)
	}
	if k.own != nil && !r.Void {
		// What accepted writes show alone goes before what reads show.
		r.Violation = nil
		r.accuse(f.Round, k.own)
	}
	if !f.Unseeded {
		r.accuseAside(f.Round, k.work)
	}
	return r
}

// claims tells what held means by what was tried.
func (s *Lease) claims(all []Finding, terms Terms) string {
	if s.blind {
		return s.Info().Property
	}
	needed, rivals := max(1, terms.MinContended), RivalsNeeded(terms.Contenders, terms.Thresholds.Rivals)
	tried, again, fenced := 0, 0, 0
	for _, kept := range all {
		k := kept.(*leased)
		if k.tenure != nil && k.tenure.tried > 0 {
			tried++
		}
		if k.Evidence.laterRivals >= rivals {
			again++
		}
		if k.fenced {
			fenced++
		}
	}
	switch {
	case s.Expiry == byTTL && (tried < needed || again < needed):
		return claimsByTTL(tried, again, needed)
	case s.Expiry == byTTL:
		return s.Info().Property
	case fenced < needed:
		return fmt.Sprintf("one contender holds the lease at a time; whether a former holder's fencing token is refused was not tested "+
			"(%s had one that wrote too late, and %d are needed: raise --periods)", roundsText(fenced), needed)
	default:
		return s.Info().Property
	}
}

// claimsByTTL tells what held means where not all was tried often enough.
func claimsByTTL(tried, again, needed int) string {
	text, untested := "one contender takes the lease", ""
	if tried >= needed {
		text += ", and nobody takes it during a term"
	} else {
		untested = fmt.Sprintf("; whether it can be taken during a term was not tested (%s had a try inside a term, and %d are needed)", roundsText(tried), needed)
	}
	if again >= needed {
		text += ", and it can be taken again once it has expired"
	} else {
		untested += fmt.Sprintf("; whether it can be taken again once it has expired was not tested (%s had one that took it when others wanted it too, and %d are needed)", roundsText(again), needed)
	}
	return text + untested
}

func roundsText(n int) string {
	switch n {
	case 0:
		return "no round"
	case 1:
		return "1 round"
	default:
		return fmt.Sprintf("%d rounds", n)
	}
}

// Fates gives what became of every contender, by its last request about the lease;
// where the store ends it, reads that only look who has it are left out.
func (s *Lease) Fates(r *runner.Round) []Fate {
	lease := *r
	lease.Ops = nil
	wrote := make(map[int]bool)
	for i := range r.Ops {
		x := &r.Ops[i]
		looks := s.Expiry == byTTL && x.Op.Kind == targets.Read && wrote[x.Contender]
		if x.Op.Key == r.Key && !looks {
			lease.Ops = append(lease.Ops, *x)
			wrote[x.Contender] = wrote[x.Contender] || x.Op.Kind == targets.Write
		}
	}
	return lastFates(&lease)
}

// meet takes the first period: a round counts when that does. The reach is the
// smallest of all periods, but of those that follow an expiry.
func (s *Lease) meet(e *Evidence, all []meeting) {
	e.ofFirst(all)
	if e.Untold {
		return
	}
	for _, m := range all[min(1, len(all)):] {
		e.laterRivals = max(e.laterRivals, m.rivals)
	}
	if s.Expiry == byTTL {
		return
	}
	for _, m := range all {
		if m.reach >= 0 && (e.Reach < 0 || m.reach < e.Reach) {
			e.Reach = m.reach
		}
	}
}

// Contested wants rivals of the winner at the guard.
func (k *leased) Contested(r *Ruling, t *Terms) (why, fix string) {
	why, fix = k.Shared.Contested(r, t)
	if why != "" && k.lostAtRead > k.lostAtWrite && !k.lease.ReadBarrier {
		return "had most contenders lost at the read, where no guard is", "leave --read-barrier on"
	}
	return why, fix
}
