package scenarios

import (
	"math"
	"time"
)

// sweepTime bounds when the store removed an expired record, or replaced it; latest
// is forever where nothing tells that it did.
type sweepTime struct{ earliest, latest time.Duration }

// checkTakeover is the rule of a key whose record expires and is created anew, in
// O(n). Reads see the old record (sawOld), none (sawNothing), or one that a
// contender created (sawNew); writes create the key if it is absent. expiry is the
// earliest time at which the old record may be gone. The new record stays; reads
// of foreign records are left to the caller.
//
// A history is legal iff at most one write was OK, the reads of a new record name
// one owner, which is that write, or an indeterminate one where none was OK, and there
// are instants q >= expiry of the sweep and p >= q of the owner's write, p while
// that was in flight, or never if nothing tells of a new record, such that
//
//	call <= q                       for each read of the old record,
//	q <= return and call <= p       for each read of none,
//	p <= return                     for each read of the new one,
//	call <= q   or  p <= return     for each refusal.
//
// The earliest p is the best: q, or the last call of the owner and the reads of
// none, if that is later. A refusal that returned before that call must have met
// the old record. Any other asks nothing: if it was called after q, it returned no
// earlier than both. So every q within the bounds is possible. An indeterminate owner
// is the one called first: it can stand in for any other.
func checkTakeover(operations []operation, expiry time.Duration) (sweepTime, *anomaly) {
	var d deciding
	var r takeoverReads
	for i := range operations {
		if a := &operations[i]; !d.note(a) {
			r.note(a)
		}
	}
	owner := d.w
	if owner == nil {
		owner = firstAdmissible(operations, r.fresh)
	}
	switch {
	case d.second != nil:
		return sweepTime{}, &anomaly{"several-winners", d.w, d.second}
	case r.fresh != nil && (r.other != nil || owner == nil || owner.token != r.fresh.token):
		return sweepTime{}, wrongOwner(operations, d.w, r.fresh, r.other)
	}

	taken := instant{forever, nil}.orReturn(owner).orReturn(r.fresh)
	latest := taken.orReturn(r.firstAbsent)
	switch {
	case taken.at < expiry:
		return sweepTime{}, &anomaly{"early-takeover", taken.by, nil}
	case latest.at < expiry:
		return sweepTime{}, &anomaly{"early-expiry", latest.by, nil}
	}
	sent := instant{math.MinInt64, nil}.orCall(owner).orCall(r.lastAbsent)
	if owner == nil {
		sent = instant{forever, nil}
	}
	if sent.at > taken.at {
		return sweepTime{}, outOfOrder(taken.by, sent.by)
	}
	earliest := instant{math.MinInt64, nil}.orCall(d.old)
	for i := range operations {
		if a := &operations[i]; a.kind == refused && a.ret < sent.at {
			earliest = earliest.orCall(a)
		}
	}
	switch {
	case earliest.at <= latest.at:
		return sweepTime{max(earliest.at, expiry), latest.at}, nil
	case earliest.by.kind == refused:
		return sweepTime{}, &anomaly{"refused-while-absent", latest.by, earliest.by}
	default:
		return sweepTime{}, outOfOrder(latest.by, earliest.by)
	}
}

// takeoverReads are the reads that bound a takeover.
type takeoverReads struct {
	fresh, other            *operation // of the new record: the first to return; one that names another owner
	firstAbsent, lastAbsent *operation // of none: the first to return, the last to be called
}

func (r *takeoverReads) note(a *operation) {
	switch {
	case a.kind == sawNothing:
		if r.firstAbsent == nil || a.ret < r.firstAbsent.ret {
			r.firstAbsent = a
		}
		if r.lastAbsent == nil || a.call > r.lastAbsent.call {
			r.lastAbsent = a
		}
	case a.kind != sawNew:
	case r.fresh != nil && r.fresh.token != a.token:
		r.other = a
	case r.fresh == nil || a.ret < r.fresh.ret:
		r.fresh = a
	}
}
