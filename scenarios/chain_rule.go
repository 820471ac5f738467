package scenarios

import (
	"math"
	"time"

	"contend/runner"
)

// chain is what a legal history of a record's versions tells. Version 0 was
// seeded, or is the absent key.
type chain struct {
	// lowest and highest bound the version once nothing is under way any more: up
	// to lowest all were certainly stored; up to highest uncertain writes may yet be.
	lowest, highest int64
	// writers stored the versions from 1 to lowest; nil where more than one
	// uncertain write may be the one.
	writers []*act
}

// checkChain is the rule of writes that store version j+1 on condition of
// version j, in O(n). act.version is what a write stores or a read shows; a read
// of version 0 is sawOld. Nothing deletes the record, so no version comes twice.
// Reads of foreign records are left to the caller.
//
// A history is legal iff every proven version has one owner, and there are
// instants p(1) <= p(2) <= … <= p(k), k being the highest proven version or more,
// each while its owner was under way, such that
//
//	call <= p(j+1) and p(j) <= return     for each read of version j,
//	call <= p(j)   or  p(j+1) <= return   for each refusal on version j,
//
// where p(0) is before everything and p(k+1) after it. The owner is the OK write,
// else, of the uncertain ones that the reads allow, the one called first: it can
// stand in for any other.
//
// What p(j) can be, by all that concerns the versions up to j, is one interval
// [a, b]. A refusal on j that was called by b asks nothing of p(j+1): where
// p(j+1) is after the refusal's return, p(j) can be after its call. One that was
// called after b was answered by a later version, so p(j+1) <= its return.
func checkChain(acts []act) (chain, *breach) {
	links, proven, b := linksOf(acts)
	if b != nil {
		return chain{}, b
	}
	for i := range links {
		if b := links[i].settle(acts); b != nil {
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
			// It may end here. Each uncertain write on what it ends with may come yet.
			c.lowest, c.highest = j, j
			for links[c.highest+1].owner != nil {
				c.highest++
			}
			return c, nil
		case next.owner == nil && j < proven:
			return chain{}, &breach{"version-without-writer", firstAbove(acts, j+1), nil}
		case next.owner == nil && here.last != nil:
			return chain{}, &breach{"no-winner", due.by, here.last}
		case next.owner == nil:
			return chain{}, &breach{"no-winner", due.by, to.by}
		}
		from = from.orCall(next.owner).orCall(here.last)
		to = due.orReturn(next.owner).orReturn(next.fresh)
		if from.at > to.at {
			return chain{}, outOfOrder(to.by, from.by)
		}
		c.writers = append(c.writers, next.known())
	}
}

// instant is a bound, and the act that it comes from.
type instant struct {
	at time.Duration
	by *act
}

// orCall gives the later one of a lower bound and the call of a, if there is an a.
func (t instant) orCall(a *act) instant {
	if a != nil && (t.by == nil || a.call > t.at) {
		return instant{a.call, a}
	}
	return t
}

// orReturn gives the earlier one of an upper bound and the return of a, if there
// is an a.
func (t instant) orReturn(a *act) instant {
	if a != nil && (t.by == nil || a.ret < t.at) {
		return instant{a.ret, a}
	}
	return t
}

// link is what a history tells of one version.
type link struct {
	accepted  deciding // the OK writes that stored it
	uncertain []*act   // writes that may have stored it
	fresh     *act     // the read of it that returned first
	other     *act     // a read of it that names another owner
	last      *act     // the read of it that was called last
	refused   []*act   // refusals of writes on condition of it
	owner     *act     // who stored it, if it was stored: see checkChain
}

// linksOf sorts acts by version, and gives the highest version that is proven.
// There is a link for each version that can have been reached, and for one more.
func linksOf(acts []act) (links []link, proven int64, b *breach) {
	highest := int64(countKind(acts, wrote) + countKind(acts, uncertain))
	links = make([]link, highest+2)
	for i := range acts {
		a := &acts[i]
		possible := a.version >= 1 && a.version <= highest
		switch {
		case a.kind == sawNothing:
			return nil, 0, &breach{"record-vanished", a, nil}
		case a.kind == sawOld && a.version != 0:
			return nil, 0, &breach{"wrong-version", a, nil}
		case a.kind == sawNew && !possible:
			if b := notWritten(acts, a); b != nil {
				return nil, 0, b
			}
			return nil, 0, &breach{"version-without-writer", a, nil}
		case a.kind == wrote && !possible:
			return nil, 0, &breach{"version-without-writer", a, nil}
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
func (l *link) note(a *act) {
	switch a.kind {
	case wrote:
		l.accepted.note(a)
	case uncertain:
		l.uncertain = append(l.uncertain, a)
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

// settle finds the owner. It gives a breach where there is more than one, or the
// reads name none.
func (l *link) settle(acts []act) *breach {
	w := l.accepted.w
	if l.accepted.second != nil {
		return &breach{"several-winners", w, l.accepted.second}
	}
	l.owner = w
	if w == nil {
		for _, u := range l.uncertain {
			if l.fresh != nil && l.fresh.token != u.token {
				continue
			}
			if l.owner == nil || u.call < l.owner.call {
				l.owner = u
			}
		}
	}
	if l.fresh != nil && (l.other != nil || l.owner == nil || l.owner.token != l.fresh.token) {
		return wrongOwner(acts, w, l.fresh, l.other)
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
func (l *link) known() *act {
	if l.accepted.w == nil && l.fresh == nil && len(l.uncertain) > 1 {
		return nil
	}
	return l.owner
}

// firstAbove gives the write or the read that proves the lowest version above the
// given one.
func firstAbove(acts []act, version int64) *act {
	var first *act
	for i := range acts {
		a := &acts[i]
		if (a.kind == wrote || a.kind == sawNew) && a.version > version && (first == nil || a.version < first.version) {
			first = a
		}
	}
	return first
}

// wrongOwner says what is wrong with reads that do not name w, where there is an
// OK write, or of which two name different owners. other may be nil.
func wrongOwner(acts []act, w, fresh, other *act) *breach {
	b := notWritten(acts, fresh)
	if b == nil && other != nil {
		b = notWritten(acts, other)
	}
	switch {
	case b != nil:
		return b
	case w == nil:
		return &breach{"two-owners", fresh, other}
	case fresh.token != w.token:
		return &breach{"wrong-owner", w, fresh}
	default:
		return &breach{"wrong-owner", w, other}
	}
}

// notWritten gives the breach if no write can have stored what was read.
func notWritten(acts []act, read *act) *breach {
	b := &breach{"owner-never-wrote", read, nil}
	for i := range acts {
		a := &acts[i]
		if a.token != read.token || a.kind >= sawOld {
			continue
		}
		switch {
		case a.kind == refused || a.kind == excluded:
			b = &breach{"refused-but-applied", a, read}
		case a.version == read.version:
			return nil
		default:
			b = &breach{"wrong-version", a, read}
		}
	}
	return b
}

// outOfOrder words that then was called after first had returned, although it had
// to be served before.
func outOfOrder(first, then *act) *breach {
	kind := ""
	write := then.kind == wrote || then.kind == uncertain
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
	case then.late || then.who == runner.Own:
		kind = "lost-write"
	default:
		kind = "stale-read-after-write"
	}
	return &breach{kind, first, then}
}

// checkCount is the rule of a counter that each applied write raises by one,
// whatever guards it: it ends at start and the accepted writes, or above that by as
// many as are uncertain at most. final is a read when all was over, its version is
// the count; last is the accepted write that returned last, nil where there is none.
func checkCount(start int64, accepted, unsure int, last, final *act) *breach {
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

// pair is a breach by a read and the write beside it, which may be nil.
func pair(kind string, write, read *act) *breach {
	if write == nil {
		return &breach{kind, read, nil}
	}
	return &breach{kind, write, read}
}
