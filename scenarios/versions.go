package scenarios

import (
	"contend/runner"
	"contend/targets"
)

// versions is what is kept of a round whose accepted writes each store the version
// after the one that they replace, from 0 on.
type versions struct {
	race     *breach // of the chain, as the contenders saw it
	settled  *breach // of the chain, the read-back included
	wrote    int     // accepted writes
	unknown  int     // that may have been applied
	refusals int     // writes that the guard refused, or aborted
	last     *act    // the accepted write of the highest version
	read     *act    // the read-back that was made last
	late     *act    // the read at the end of the run
}

// versionsOf takes what a round did to its own key.
func versionsOf(f *Finding, r *runner.Round) versions {
	var v versions
	var acts []act
	for i := range r.Ops {
		a, ok := f.state.actOf(&r.Ops[i])
		if !ok || r.Ops[i].Op.Key != r.Key {
			continue
		}
		switch {
		case a.kind == wrote:
			f.won++
			v.wrote++
			if v.last == nil || a.version > v.last.version {
				v.last = &a
			}
		case a.kind == uncertain:
			v.unknown++
		case a.kind == refused || a.outcome == targets.Aborted:
			v.refusals++
		}
		acts = append(acts, a)
	}
	before := len(acts)
	for i := range r.Reads {
		if a, ok := f.state.actOf(&r.Reads[i]); ok && r.Reads[i].Op.Key == r.Key {
			acts, v.read = append(acts, a), &a
		}
	}
	_, v.race = checkChain(withoutForeign(acts[:before]))
	_, v.settled = checkChain(withoutForeign(acts))
	return v
}

// withoutForeign leaves out reads of what nobody of this run wrote, and of nothing:
// they are ruled apart.
func withoutForeign(acts []act) []act {
	var ours []act
	for i := range acts {
		if k := acts[i].kind; k != sawForeign && k != sawNothing {
			ours = append(ours, acts[i])
		}
	}
	return ours
}

func (v *versions) readLate(f *Finding, e *runner.Exchange) {
	if e.Op.Key != f.state.key {
		return
	}
	if a, ok := f.state.actOf(e); ok {
		a.late, f.readOnce, v.late = true, true, &a
	}
}

// rule says what the chain and the reads of the final state mean together. What a
// read-back shows counts only where the late read does not contradict it.
func (v *versions) rule(f *Finding) Ruling {
	r := Ruling{Winners: v.wrote, Unread: v.read == nil && v.late == nil && !f.Unseeded}
	for _, read := range []*act{v.read, v.late} {
		if read != nil && read.kind == sawForeign {
			r.Void = true
			return r
		}
	}
	final := v.read
	before, late := firstBreach(v.settled, v.countBreach(v.read)), v.countBreach(v.late)
	b := v.race
	switch {
	case b != nil:
	case v.late == nil:
		b = before
	case late != nil:
		b = firstBreach(before, late)
	case before != nil && v.read != nil && v.read.token == v.late.token && v.read.version == v.late.version:
		b = before
	case before != nil:
		r.StaleRead = true
	}
	if v.late != nil {
		final = v.late
	}
	r.accuse(f.Round, b)
	// The count tells how many unknown writes were applied, whichever they were.
	if final != nil {
		r.Settled = min(v.unknown, max(0, int(final.version)-v.wrote))
	} else {
		r.Unsettled = v.unknown
	}
	return r
}

// accuse takes a breach, which may be nil, into the ruling.
func (r *Ruling) accuse(round int, b *breach) {
	switch {
	case b == nil || r.Violation != nil:
	case b.definite():
		r.Violation = violation(round, b)
	default:
		r.Indefinite = true
	}
}

func firstBreach(a, b *breach) *breach {
	if a != nil {
		return a
	}
	return b
}

// countBreach compares the version that a read shows with the writes that were
// accepted: v0+|W| <= final <= v0+|W|+|U|, with v0 = 0.
func (v *versions) countBreach(read *act) *breach {
	switch {
	case read == nil:
		return nil
	case read.kind == sawNothing:
		return &breach{"record-vanished", read, nil}
	default:
		return checkCount(0, v.wrote, v.unknown, v.last, read)
	}
}

// firstWrites leaves of a round what each contender did until its first write: the
// part that all began together.
func firstWrites(r *runner.Round) *runner.Round {
	first := *r
	first.Ops = nil
	for i := range r.Ops {
		x := &r.Ops[i]
		last := len(first.Ops) - 1
		begun := last >= 0 && first.Ops[last].Contender == x.Contender
		if !begun || first.Ops[last].Op.Kind == targets.Read && x.Op.Kind == targets.Write && x.Op.Key == r.Key {
			first.Ops = append(first.Ops, *x)
		}
	}
	return &first
}
