package scenarios

import (
	"bytes"
	"cmp"
	"encoding/json"
	"math"
	"reflect"
	"slices"
	"time"

	"contend/runner"
)

// A read of a missing or old state is in doubt: a replica or a cache may lag. What
// a read shows of a newer state is not, since nobody else can have written it.

// level is how far a read, or a write that was answered, shows the record to have
// come: its version; 0 for the state at the start, less where even that is missing.
// A refusal shows that the version it would have written had been reached.
func (a *operation) level() int64 {
	switch a.kind {
	case sawNothing:
		return -1
	case sawOld:
		return 0
	default:
		return max(1, a.version)
	}
}

func (a *operation) isRead() bool { return a.kind >= sawOld }

// sameState tells whether two reads show the same.
func (a *operation) sameState(b *operation) bool {
	return a.kind == b.kind && a.token == b.token && a.version == b.version
}

// proof is an instant at which the record was known to have come so far.
type proof struct {
	at    time.Duration
	level int64
}

// proofsOf lists them by time, each with the highest level until then.
func proofsOf(operations []operation) []proof {
	proofs := []proof{{math.MinInt64, 0}}
	for i := range operations {
		if a := &operations[i]; a.kind == wrote || a.kind == refused || a.kind == sawNew {
			proofs = append(proofs, proof{a.ret, a.level()})
		}
	}
	slices.SortFunc(proofs, func(a, b proof) int { return cmp.Compare(a.at, b.at) })
	for i := 1; i < len(proofs); i++ {
		proofs[i].level = max(proofs[i].level, proofs[i-1].level)
	}
	return proofs
}

// behind tells whether the read shows less than had been proven before it was
// called, and for how long it had been.
func (a *operation) behind(proofs []proof) (age time.Duration, is bool) {
	if !a.isRead() || a.kind > sawNew && a.kind != sawNothing {
		return 0, false // a damaged or foreign record is not an older one
	}
	i, _ := slices.BinarySearchFunc(proofs, a.level()+1, func(p proof, level int64) int { return cmp.Compare(p.level, level) })
	if i == len(proofs) || proofs[i].at >= a.call {
		return 0, false
	}
	return max(0, a.call-max(0, proofs[i].at)), true
}

// withoutStale leaves out the reads that show less than had been proven before they
// were called, and gives the greatest age at which one still did; that of the start
// state was acknowledged at since.
func withoutStale(operations []operation, since time.Duration) (fresh []operation, age time.Duration) {
	proofs := proofsOf(operations)
	for i := range operations {
		if d, stale := operations[i].behind(proofs); stale {
			age = max(age, min(d, max(0, operations[i].call-since)))
		} else {
			fresh = append(fresh, operations[i])
		}
	}
	return fresh, age
}

// confirmed gives the last two reads at the end of the run, where they were made
// through two sessions when the settling time was over, and agree.
func (f *Shared) confirmed() []operation {
	if len(f.lates) < 2 {
		return nil
	}
	last := f.lates[len(f.lates)-2:]
	if last[0].who == last[1].who || min(last[0].call, last[1].call) < f.believedFrom || !last[0].sameState(&last[1]) {
		return nil
	}
	return last
}

// believe applies a rule to what was done and read. An anomaly that rests on reads of
// a missing or old state counts only where they were confirmed; otherwise they are
// stale, or in doubt. operations are those of the round; check gives an anomaly or nil.
func (r *Ruling) believe(f *Shared, operations []operation, check func([]operation) *anomaly) *anomaly {
	all := append(operations[:len(operations):len(operations)], f.lates...)
	r.history = all
	b := check(all)
	if b == nil {
		return nil
	}
	fresh, age := withoutStale(all, f.state.since())
	if len(fresh) == len(all) {
		return b
	}
	for i := range all {
		if b := f.state.changed(all, &all[i]); b != nil {
			return b // however old the state is that a read shows, it was not written so
		}
	}
	if without := check(fresh); without != nil {
		r.history = fresh
		return without
	}
	confirmed := f.confirmed()
	if _, stale := confirmedBehind(confirmed, all); stale && !f.readersLag {
		believed := append(fresh, confirmed...)
		if b := check(believed); b != nil {
			r.history = believed
			return b
		}
		return b
	}
	r.history, r.StaleRead, r.StaleAge = fresh, true, age
	// A late read that showed what the read-back did is not kept.
	r.Undecided = !f.readOnce
	if n := len(f.lates); n > 0 {
		_, r.Undecided = f.lates[n-1].behind(proofsOf(all))
	}
	return nil
}

// goneSince is added to the violation where a record was read back as it was written,
// and is missing or older now, though nobody writes any more.
const goneSince = "it had been read back before, and is gone since: removed from outside (a flush, an eviction, another `contend clean`), or lost later on"

// tellGone adds that to the ruling of a round whose operations, with a read-back that showed
// its last write, are as before any late read; plain: only the quiet ones are kept.
func (r *Ruling) tellGone(operations []operation, plain bool) {
	if r.Violation == nil || r.Violation.Kind != "lost-write" && r.Violation.Kind != "record-vanished" {
		return
	}
	for i := range operations {
		plain = plain || operations[i].who == runner.ByRunner && !operations[i].late && operations[i].kind == sawNew
	}
	if plain {
		r.Violation.Detail += "; " + goneSince
	}
}

func confirmedBehind(confirmed, all []operation) (time.Duration, bool) {
	if confirmed == nil {
		return 0, false
	}
	return confirmed[1].behind(proofsOf(all))
}

// sameBody compares two bodies as JSON: a store may write them in another way.
func sameBody(a, b json.RawMessage) bool {
	if bytes.Equal(a, b) {
		return true
	}
	var x, y any
	if len(a) > 0 && json.Unmarshal(a, &x) != nil || len(b) > 0 && json.Unmarshal(b, &y) != nil {
		return false
	}
	return reflect.DeepEqual(x, y)
}
