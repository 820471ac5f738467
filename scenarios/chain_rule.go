package scenarios

import (
	"math"
	"time"

	"contend/runner"
)

// chain is what a legal history of a record's versions tells. Version 0 was
// seeded, or is the absent key.
type chain struct {
	// lowest and highest bound the version once nothing is in flight any more: up
	// to lowest all were certainly stored; up to highest indeterminate writes may yet be.
	lowest, highest int64
	// writers stored the versions from 1 to lowest; nil where more than one
	// indeterminate write may be the one.
	writers []*operation
}

// checkChain is the rule of writes that store version j+1 on condition of
// version j, in O(n). operation.version is what a write stores or a read shows; a read
// of version 0 is sawOld. Nothing deletes the record, so no version comes twice.
// Reads of foreign records are left to the caller.
//
// A history is legal iff every proven version has one owner, and there are
// instants p(1) <= p(2) <= … <= p(k), k being the highest proven version or more,
// each while its owner was in flight, such that
//
//	call <= p(j+1) and p(j) <= return     for each read of version j,
//	call <= p(j)   or  p(j+1) <= return   for each refusal on version j,
//
// where p(0) is before everything and p(k+1) after it. The owner is the OK write,
// else, of the indeterminate ones that the reads allow, the one called first: it can
// stand in for any other.
//
// What p(j) can be, by all that concerns the versions up to j, is one interval
// [a, b]. A refusal on j that was called by b asks nothing of p(j+1): where
// p(j+1) is after the refusal's return, p(j) can be after its call. One that was
// called after b was answered by a later version, so p(j+1) <= its return.
func checkChain(operations []operation) (chain, *anomaly) {
	links, proven, b := linksOf(operations)
	if b != nil {
		return chain{}, b
	}
	for i := range links {
		if b := links[i].settle(operations); b != nil {
			return chain{}, b
		}
	}
	var c chain
	from, to := instant{math.MinInt64, nil}, instant{math.MinInt64, nil} // bounds of p(j)
	for j := int64(0); ; j++ {
		here, next := &links[j], &links[j+1]
		due := here.due(to.at)
		switch {
		case j >= proven && due.by == nil:
			// It may end here. Each indeterminate write on what it ends with may come yet.
			c.lowest, c.highest = j, j
			for links[c.highest+1].owner != nil {
				c.highest++
			}
			return c, nil
		case next.owner == nil && j < proven:
			return chain{}, &anomaly{"version-without-writer", firstAbove(operations, j+1), nil}
		case next.owner == nil && here.last != nil:
			return chain{}, &anomaly{"no-winner", due.by, here.last}
		case next.owner == nil:
			return chain{}, &anomaly{"no-winner", due.by, to.by}
		}
		from = from.orCall(next.owner).orCall(here.last)
		to = due.orReturn(next.owner).orReturn(next.fresh)
		if from.at > to.at {
			return chain{}, outOfOrder(to.by, from.by)
		}
		c.writers = append(c.writers, next.known())
	}
}

// instant is a bound, and the operation that it comes from.
type instant struct {
	at time.Duration
	by *operation
}

// orCall gives the later one of a lower bound and the call of a, if there is an a.
func (t instant) orCall(a *operation) instant {
	if a != nil && (t.by == nil || a.call > t.at) {
		return instant{a.call, a}
	}
	return t
}

// orReturn gives the earlier one of an upper bound and the return of a, if there
// is an a.
func (t instant) orReturn(a *operation) instant {
	if a != nil && (t.by == nil || a.ret < t.at) {
		return instant{a.ret, a}
	}
	return t
}

// link is what a history tells of one version.
type link struct {
	accepted      deciding     // the OK writes that stored it
	indeterminate []*operation // writes that may have stored it
	fresh         *operation   // the read of it that returned first
	other         *operation   // a read of it that names another owner
	last          *operation   // the read of it that was called last
	refused       []*operation // refusals of writes on condition of it
	owner         *operation   // who stored it, if it was stored: see checkChain
}

// linksOf sorts operations by version, and gives the highest version that is proven.
// There is a link for each version that can have been reached, and for one more.
func linksOf(operations []operation) (links []link, proven int64, b *anomaly) {
	highest := int64(countKind(operations, wrote) + countKind(operations, indeterminate))
	links = make([]link, highest+2)
	for i := range operations {
		a := &operations[i]
		possible := a.version >= 1 && a.version <= highest
		switch {
		case a.kind == sawNothing:
			return nil, 0, &anomaly{"record-vanished", a, nil}
		case a.kind == sawOld && a.version != 0:
			return nil, 0, &anomaly{"wrong-version", a, nil}
		case a.kind == sawNew && !possible:
			if b := notWritten(operations, a); b != nil {
				return nil, 0, b
			}
			return nil, 0, &anomaly{"version-without-writer", a, nil}
		case a.kind == wrote && !possible:
			return nil, 0, &anomaly{"version-without-writer", a, nil}
		case a.kind == wrote, a.kind == sawNew:
			proven = max(proven, a.version)
		}
		if a.kind == refused && a.version >= 1 && a.version <= highest+1 {
			l := &links[a.version-1]
			l.refused = append(l.refused, a)
		}
		if possible || a.kind == sawOld {
			links[a.version].note(a)
		}
	}
	return links, proven, nil
}

// note takes a write or a read of the version into account.
func (l *link) note(a *operation) {
	switch a.kind {
	case wrote:
		l.accepted.note(a)
	case indeterminate:
		l.indeterminate = append(l.indeterminate, a)
	case sawOld, sawNew:
		if l.last == nil || a.call > l.last.call {
			l.last = a
		}
		switch {
		case a.kind == sawOld:
		case l.fresh != nil && l.fresh.token != a.token:
			l.other = a
		case l.fresh == nil || a.ret < l.fresh.ret:
			l.fresh = a
		}
	}
}

// settle finds the owner. It gives an anomaly where there is more than one, or the
// reads name none.
func (l *link) settle(operations []operation) *anomaly {
	w := l.accepted.w
	if l.accepted.second != nil {
		return &anomaly{"several-winners", w, l.accepted.second}
	}
	l.owner = w
	if w == nil {
		for _, u := range l.indeterminate {
			if l.fresh != nil && l.fresh.token != u.token {
				continue
			}
			if l.owner == nil || u.call < l.owner.call {
				l.owner = u
			}
		}
	}
	if l.fresh != nil && (l.other != nil || l.owner == nil || l.owner.token != l.fresh.token) {
		return wrongOwner(operations, w, l.fresh, l.other)
	}
	return nil
}

// due is by when the next version must have been there for the refusals' sake,
// if this one was there by latest.
func (l *link) due(latest time.Duration) instant {
	t := instant{forever, nil}
	for _, a := range l.refused {
		if a.call > latest {
			t = t.orReturn(a)
		}
	}
	return t
}

// known gives the owner if no other write can be it.
func (l *link) known() *operation {
	if l.accepted.w == nil && l.fresh == nil && len(l.indeterminate) > 1 {
		return nil
	}
	return l.owner
}

// firstAbove gives the write or the read that proves the lowest version above the
// given one.
func firstAbove(operations []operation, version int64) *operation {
	var first *operation
	for i := range operations {
		a := &operations[i]
		if (a.kind == wrote || a.kind == sawNew) && a.version > version && (first == nil || a.version < first.version) {
			first = a
		}
	}
	return first
}

// wrongOwner says what is wrong with reads that do not name w, where there is an
// OK write, or of which two name different owners. other may be nil.
func wrongOwner(operations []operation, w, fresh, other *operation) *anomaly {
	b := notWritten(operations, fresh)
	if b == nil && other != nil {
		b = notWritten(operations, other)
	}
	switch {
	case b != nil:
		return b
	case w == nil:
		return &anomaly{"two-owners", fresh, other}
	case fresh.token != w.token:
		return &anomaly{"wrong-owner", w, fresh}
	default:
		return &anomaly{"wrong-owner", w, other}
	}
}

// notWritten gives the anomaly if no write can have stored what was read.
func notWritten(operations []operation, read *operation) *anomaly {
	b := &anomaly{"owner-never-wrote", read, nil}
	for i := range operations {
		a := &operations[i]
		if a.token != read.token || a.kind >= sawOld {
			continue
		}
		switch {
		case a.kind == refused || a.kind == noEffect:
			b = &anomaly{"refused-but-applied", a, read}
		case a.version == read.version:
			return nil
		default:
			b = &anomaly{"wrong-version", a, read}
		}
	}
	return b
}

// outOfOrder words that then was called after first had returned, although it had
// to be served before.
func outOfOrder(first, then *operation) *anomaly {
	kind := ""
	write := then.kind == wrote || then.kind == indeterminate
	switch {
	case write && first.kind == wrote:
		kind = "accepted-too-early"
	case write && first.kind == refused:
		kind = "refused-before-winner"
	case write:
		kind = "read-before-write"
	case first.kind == refused:
		kind = "old-state-after-refusal"
	case first.kind != wrote:
		kind = "state-went-back"
	case then.late || then.who == runner.ByRunner:
		kind = "lost-write"
	default:
		kind = "stale-read-after-write"
	}
	return &anomaly{kind, first, then}
}

// checkCount is the rule of a counter that each applied write raises by one,
// whatever guards it: it ends at start and the accepted writes, or above that by as
// many as are indeterminate at most. final is a read when all was over, its version is
// the count; last is the accepted write that returned last, nil where there is none.
func checkCount(start int64, accepted, unsure int, last, final *operation) *anomaly {
	least := start + int64(accepted)
	switch {
	case final.version < least:
		return pair("lost-update", last, final)
	case final.version > least+int64(unsure):
		return pair("over-count", last, final)
	default:
		return nil
	}
}

// pair is an anomaly by a read and the write beside it, which may be nil.
func pair(kind string, write, read *operation) *anomaly {
	if write == nil {
		return &anomaly{kind, read, nil}
	}
	return &anomaly{kind, write, read}
}
