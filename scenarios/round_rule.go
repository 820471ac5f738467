package scenarios

import (
	"encoding/json"
	"math"
	"time"

	"contend/runner"
	"contend/targets"
)

// operation is one request reduced to what legality depends on.
type operation struct {
	kind      operationKind
	late      bool  // a late read
	retried   bool  // it went out more than once: its answer proves little
	who       int32 // contender; runner.ByRunner
	status    int32
	call, ret time.Duration // unanswered writes return at forever
	version   int64         // written, or read
	token     string        // written, or read
	body      json.RawMessage
	outcome   targets.Outcome
	code      string
	trace     string
}

type operationKind uint8

const (
	wrote         operationKind = iota // a write that was OK
	refused                            // a write that its guard refused
	indeterminate                      // a write that may have been applied
	noEffect                           // a write that certainly was not applied, for another reason
	sawOld                             // a read of the state before
	sawNew                             // a read of a token that a contender of the round wrote
	sawForeign                         // a read of what nobody of this run wrote
	sawNothing                         // a read of nothing, where a record had been seeded
	sawMisplaced                       // a read of a record that this run wrote to another key
	sawDamaged                         // a read of a record of this run that is cut short or changed
)

const forever = time.Duration(math.MaxInt64)

// anomaly is why a round is illegal: two operations that no order can reconcile. The
// second is nil where one operation alone is too many.
type anomaly struct {
	kind string
	a, b *operation
}

// definite tells whether the anomaly rests on nothing that may have lost to
// itself.
func (b *anomaly) definite() bool {
	return (b.a == nil || !b.a.retried) && (b.b == nil || !b.b.retried)
}

// checkRound is the rule of a round in which one write may win, in O(n).
//
// Legal iff at most one write was OK; all reads of the new state name one
// owner, which is that write, or an indeterminate one where no write was OK; and
// either nothing tells of a new state at all, or, with w the OK write, else the
// admissible indeterminate write that was called first,
//
//	max(call w, calls of reads of the old state) <=
//	min(return w, returns of refusals, returns of reads of the new state).
//
// Intervals are closed. It gives nil for a legal round.
func checkRound(operations []operation) *anomaly {
	var d deciding
	var fresh, other *operation // other: a read that names another owner than fresh
	for i := range operations {
		a := &operations[i]
		if d.note(a) || a.kind != sawNew {
			continue
		}
		switch {
		case fresh != nil && fresh.token != a.token:
			other = a
		case fresh == nil || a.ret < fresh.ret:
			fresh = a
		}
	}
	w, second, lost, old := d.w, d.second, d.lost, d.old
	switch {
	case second != nil:
		return &anomaly{"several-winners", w, second}
	case w != nil && fresh != nil && fresh.token != w.token:
		return &anomaly{"wrong-owner", w, fresh}
	case w != nil && other != nil:
		return &anomaly{"wrong-owner", w, other}
	case other != nil:
		return &anomaly{"two-owners", fresh, other}
	}
	if w == nil {
		if lost == nil && fresh == nil {
			return nil
		}
		if w = firstAdmissible(operations, fresh); w == nil {
			return nobodyWon(lost, fresh, old)
		}
	}
	return checkWindow(w, lost, old, fresh)
}

// deciding are the operations of their kinds that the rule depends on.
type deciding struct {
	w, second *operation // OK writes: two that went out once, as far as there are
	lost      *operation // the refusal that returned first
	old       *operation // the read of the old state that was called last
}

// note takes an operation into account; it tells whether the operation is of these kinds.
func (d *deciding) note(a *operation) bool {
	switch a.kind {
	case wrote:
		// A write that went out once proves more than one that went out twice.
		switch {
		case d.w == nil:
			d.w = a
		case d.w.retried && !a.retried:
			d.w, d.second = a, d.w
		case d.second == nil || d.second.retried && !a.retried:
			d.second = a
		}
	case refused:
		if d.lost == nil || a.ret < d.lost.ret {
			d.lost = a
		}
	case sawOld:
		if d.old == nil || a.call > d.old.call {
			d.old = a
		}
	default:
		return false
	}
	return true
}

// firstAdmissible gives the indeterminate write that was called first among those
// that can be the owner the reads name.
func firstAdmissible(operations []operation, fresh *operation) *operation {
	var w *operation
	for i := range operations {
		a := &operations[i]
		if a.kind == indeterminate && (fresh == nil || a.token == fresh.token) && (w == nil || a.call < w.call) {
			w = a
		}
	}
	return w
}

func nobodyWon(lost, fresh, old *operation) *anomaly {
	if lost == nil {
		return &anomaly{"owner-never-wrote", fresh, nil}
	}
	return &anomaly{"no-winner", lost, old}
}

// checkWindow looks for an instant at which w can have been applied.
func checkWindow(w, lost, old, fresh *operation) *anomaly {
	if old != nil && old.call > w.ret {
		return &anomaly{"lost-write", w, old}
	}
	end := w
	if lost != nil && lost.ret < end.ret {
		end = lost
	}
	if fresh != nil && fresh.ret < end.ret {
		end = fresh
	}
	if w.call > end.ret {
		if end == lost {
			return &anomaly{"refused-before-winner", lost, w}
		}
		return &anomaly{"read-before-write", fresh, w}
	}
	if old != nil && old.call > end.ret {
		if end == lost {
			return &anomaly{"old-state-after-refusal", lost, old}
		}
		return &anomaly{"state-went-back", fresh, old}
	}
	return nil
}

// reduce keeps the operations that the rule depends on: two of the OK
// writes, the refusal that returned first, the contenders' read of the old state
// that was called last, their read of the new state that returned first for each
// owner, every indeterminate write, and what the runner itself read.
func reduce(operations []operation) []operation {
	var kept, rest []operation
	var d deciding
	for i := range operations {
		a := &operations[i]
		switch {
		case a.who == runner.ByRunner:
			rest = append(rest, *a)
		case d.note(a):
		case a.kind == sawNew:
			kept = keepEarliest(kept, a)
		case a.kind == noEffect:
			// Without effect; what was stored in spite of that is found before.
		default:
			rest = append(rest, *a)
		}
	}
	for _, a := range []*operation{d.w, d.second, d.lost, d.old} {
		if a != nil {
			kept = append(kept, *a)
		}
	}
	return append(kept, rest...)
}

func countKind(operations []operation, k operationKind) int {
	n := 0
	for i := range operations {
		if operations[i].kind == k {
			n++
		}
	}
	return n
}

func keepEarliest(kept []operation, read *operation) []operation {
	for i := range kept {
		if kept[i].kind == sawNew && kept[i].token == read.token {
			if read.ret < kept[i].ret {
				kept[i] = *read
			}
			return kept
		}
	}
	return append(kept, *read)
}
