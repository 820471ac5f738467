package scenarios

import (
	"hash/fnv"
	"io"
	"slices"

	"contend/runner"
	"contend/targets"
)

// versions is what is kept of a round whose accepted writes each store the version
// after the one that they replace, from 0 on.
type versions struct {
	operations []operation // all that was done to the key and read of it; of a plain round the last accepted write and the last read-back
	plain      bool
	accepted   []uint64 // of a plain round: the sums of the accepted writes' tokens
	wrote      int      // accepted writes
	unknown    int      // that may have been applied
	refusals   int      // writes that the guard refused, or aborted
}

// versionsOf takes what a round did to its own key.
func versionsOf(f *Shared, r *runner.Round) versions {
	v := versions{operations: f.state.operationsOf(r)}
	for i := range v.operations {
		switch a := &v.operations[i]; {
		case a.kind == wrote:
			f.won++
			v.wrote++
		case a.kind == indeterminate:
			v.unknown++
		case a.kind == refused || !a.isRead() && a.outcome == targets.Aborted:
			v.refusals++
		}
	}
	return v
}

// last is the accepted write of the highest version; nil: there is none.
func (v *versions) last() *operation {
	var last *operation
	for i := range v.operations {
		if a := &v.operations[i]; a.kind == wrote && (last == nil || a.version > last.version) {
			last = a
		}
	}
	return last
}

// final is the last read-back; nil: there is none.
func (v *versions) final() *operation {
	for i := len(v.operations) - 1; i >= 0; i-- {
		if v.operations[i].who == runner.ByRunner {
			return &v.operations[i]
		}
	}
	return nil
}

// forget keeps of a round in which all is as it should be what a late read is
// compared with.
func (v *versions) forget() {
	last, final := v.last(), v.final()
	if v.unknown > 0 || last == nil || final == nil || final.token != last.token {
		return
	}
	for i := range v.operations {
		if v.operations[i].kind == wrote {
			v.accepted = append(v.accepted, sumOf(v.operations[i].token))
		}
	}
	v.operations, v.plain = []operation{*last, *final}, true
}

// sumOf stands for a token in little room.
func sumOf(token string) uint64 {
	h := fnv.New64a()
	_, _ = io.WriteString(h, token)
	return h.Sum64()
}

func (v *versions) readLate(f *Shared, e *runner.Exchange) {
	if e.Op.Key != f.state.key {
		return
	}
	a, ok := f.state.operationOf(e)
	if !ok {
		return
	}
	a.late, f.readOnce = true, true
	// What the read-back showed may itself be behind, unless it is the last write.
	if final := v.final(); v.plain && len(f.lates) == 0 && final.sameState(&a) && sameBody(final.body, a.body) {
		return
	}
	f.addLate(a)
}

// rule says what the chain and the reads mean together.
func (v *versions) rule(f *Shared) Ruling {
	r := Ruling{Winners: v.wrote}
	if f.Unseeded || r.void(f, v.operations) {
		return r
	}
	r.Unread = v.final() == nil
	check := v.check
	if v.plain {
		check = v.checkPlain
	}
	b := v.shown(f)
	if b == nil {
		b = r.believe(f, v.operations, func(operations []operation) *anomaly { return check(f.state, operations) })
	}
	r.history = nil
	r.accuse(f.Round, b)
	r.tellGone(v.operations, v.plain)
	r.settle(f, v.operations)
	r.Winners = v.wrote + r.Settled
	return r
}

// shown looks for a read of what no write can have stored: no lag explains that.
func (v *versions) shown(f *Shared) *anomaly {
	if v.plain {
		for i := range f.lates {
			if read := &f.lates[i]; read.kind == sawNew && !slices.Contains(v.accepted, sumOf(read.token)) {
				return &anomaly{"refused-but-applied", v.last(), read}
			}
		}
		return nil
	}
	operations := append(v.operations[:len(v.operations):len(v.operations)], f.lates...)
	for i := range operations {
		if operations[i].kind == sawNew {
			if b := notWritten(operations, &operations[i]); b != nil {
				return b
			}
		}
	}
	return nil
}

// check looks for what no order could make legal, and then for an order.
func (v *versions) check(s startState, operations []operation) *anomaly {
	for i := range operations {
		if b := s.changed(operations, &operations[i]); b != nil {
			return b
		}
		if operations[i].kind == sawNew {
			if b := notWritten(operations, &operations[i]); b != nil {
				return b
			}
		}
	}
	_, b := checkChain(operations)
	if b == nil {
		b = v.countAnomaly(operations)
	}
	if b != nil && b.b == nil && b.a != nil && b.a.kind == sawNothing {
		b.a, b.b = s.wrote, b.a
	}
	return b
}

// checkPlain compares the late reads of a plain round with the last accepted write:
// every version before had its writer, and nothing may come after it.
func (v *versions) checkPlain(s startState, operations []operation) *anomaly {
	last := v.last()
	for i := range operations {
		a := &operations[i]
		if b := s.changed(operations, a); b != nil {
			return b
		}
		switch {
		case a.kind == sawNothing:
			return &anomaly{"record-vanished", last, a}
		case !a.isRead(), a.token == last.token && a.version == last.version:
		case a.token == last.token:
			return &anomaly{"wrong-version", last, a}
		case a.level() >= last.version:
			return &anomaly{"refused-but-applied", last, a}
		default:
			return &anomaly{"lost-write", last, a}
		}
	}
	return nil
}

// accuse takes an anomaly, which may be nil, into the ruling.
func (r *Ruling) accuse(round int, b *anomaly) {
	switch {
	case b == nil || r.Violation != nil:
	case b.definite():
		r.Violation = violation(round, b)
	default:
		r.Indefinite = true
	}
}

// countAnomaly compares the version that the last read shows with the writes that
// were accepted: v0+|W| <= final <= v0+|W|+|U|, with v0 = 0.
func (v *versions) countAnomaly(operations []operation) *anomaly {
	var final *operation
	for i := range operations {
		if a := &operations[i]; a.isRead() && (a.late || a.who == runner.ByRunner) {
			final = a
		}
	}
	if final == nil {
		return nil
	}
	return checkCount(0, v.wrote, v.unknown, v.last(), final)
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
