package scenarios

import (
	"fmt"
	"math"
	"slices"
	"time"

	"contend/runner"
	"contend/scenarios/stats"
	"contend/targets"
)

// OffsetMap tells of a sweep how the rounds went by the offset of the second
// contender's release from the first's: a map of the race window.
type OffsetMap struct {
	// From and To are the least and the greatest offset with a violation; nil: there
	// was none. SentFrom and SentTo are the same by when the guarded requests were
	// sent; nil also where none of the violated rounds tells.
	From     *time.Duration `json:"violated_from_ns"`
	To       *time.Duration `json:"violated_to_ns"`
	SentFrom *time.Duration `json:"violated_sent_from_ns"`
	SentTo   *time.Duration `json:"violated_sent_to_ns"`
	// Elsewhere counts the rounds that are in the rows by their offset only: one of
	// the two sent no guarded request, or they were sent further apart than any offset.
	Elsewhere int         `json:"sent_elsewhere"`
	Rows      []OffsetRow `json:"rows"` // the least offset first
}

// OffsetRow is one offset. A release misses an offset of microseconds easily, so that
// the rounds are counted twice: by the offset that was asked for, and by how far apart
// the guarded requests were sent, to the nearest offset.
type OffsetRow struct {
	Offset time.Duration `json:"offset_ns"`
	Asked  OffsetShares  `json:"asked"`
	Sent   OffsetShares  `json:"sent"`
	// SentApart is the median, over the rounds with this offset, of how long after the
	// first's guarded request the second's was sent; nil: it is not known of any.
	SentApart *time.Duration `json:"sent_apart_p50_ns"`
}

// OffsetShares are the rounds of an offset. The shares are of those that are certain,
// or violated; nil: there is none.
type OffsetShares struct {
	Rounds         int      `json:"rounds"`
	Uncertain      int      `json:"uncertain"`
	Violated       int      `json:"violated"`
	SecondWon      int      `json:"second_won"` // the second's write was accepted; in a violated round the first's may be too
	ViolatedShare  *float64 `json:"violated_share"`
	SecondWonShare *float64 `json:"second_won_share"`
}

// swept is what is kept of a round of a sweep.
type swept struct {
	offset    time.Duration
	sent      time.Duration // the second's guarded request after the first's
	sentKnown bool
	secondWon bool
	violated  bool
	uncertain bool
}

// sweptOf gives nil for a round of no sweep.
func sweptOf(r *runner.Round) *swept {
	if r.Offset == nil {
		return nil
	}
	s := swept{offset: *r.Offset}
	times := timesOf(r)
	var at [2]time.Duration
	var sent [2]bool
	for i := range r.Ops {
		x := &r.Ops[i]
		if x.Op.Kind != targets.Write || x.Op.Key != r.Key || x.Contender > 1 {
			continue
		}
		if x.Contender == 1 {
			s.secondWon = s.secondWon || x.Reply.Outcome == targets.OK || x.Reply.Outcome == targets.Unknown && holds(r, x.Op.Value.Token)
		}
		if _, guard, _, known := times.of(x); known && x.Guard > 0 && !sent[x.Contender] {
			at[x.Contender], sent[x.Contender] = guard, true
		}
	}
	if s.sentKnown = sent[0] && sent[1]; s.sentKnown {
		s.sent = at[1] - at[0]
	}
	return &s
}

// holds tells whether the read-back shows the token.
func holds(r *runner.Round, token string) bool {
	for i := range r.Reads {
		if x := &r.Reads[i]; x.Op.Key == r.Key && x.Reply.Outcome == targets.OK && x.Reply.Record.Token == token {
			return true
		}
	}
	return false
}

// sweepMap makes the map of all rounds of a sweep.
func sweepMap(sweep runner.Sweep, rounds []swept) *OffsetMap {
	m := &OffsetMap{}
	for _, offset := range sweep.Offsets() {
		m.Rows = append(m.Rows, OffsetRow{Offset: offset})
	}
	apart := make([][]time.Duration, len(m.Rows))
	for i := range rounds {
		r := &rounds[i]
		at, asked := nearest(sweep, r.offset)
		if !asked {
			continue // no run has such a round
		}
		m.Rows[at].Asked.add(r)
		within := false
		if r.sentKnown {
			apart[at] = append(apart[at], r.sent)
			var near int
			if near, within = nearest(sweep, r.sent); within {
				m.Rows[near].Sent.add(r)
			}
		}
		if !within {
			m.Elsewhere++
		}
		if r.violated {
			widen(&m.From, &m.To, r.offset)
			if r.sentKnown {
				widen(&m.SentFrom, &m.SentTo, r.sent)
			}
		}
	}
	for i := range m.Rows {
		row := &m.Rows[i]
		if n := len(apart[i]); n > 0 {
			slices.Sort(apart[i])
			row.SentApart = &apart[i][stats.NearestRank(n, 50)-1]
		}
		row.Asked.share()
		row.Sent.share()
	}
	return m
}

// nearest gives the row whose offset is the nearest; within tells whether it is within
// half a step.
func nearest(sweep runner.Sweep, offset time.Duration) (row int, within bool) {
	half := sweep.Steps / 2
	row = half + int(math.Round(float64(offset)/float64(sweep.Most)*float64(half)))
	return row, row >= 0 && row < sweep.Steps
}

func widen(from, to **time.Duration, d time.Duration) {
	if *from == nil {
		low, high := d, d
		*from, *to = &low, &high
	}
	**from, **to = min(**from, d), max(**to, d)
}

func (s *OffsetShares) add(r *swept) {
	s.Rounds++
	switch {
	case r.violated:
		s.Violated++
	case r.uncertain:
		s.Uncertain++
		return
	}
	if r.secondWon {
		s.SecondWon++
	}
}

func (s *OffsetShares) share() {
	if of := float64(s.Rounds - s.Uncertain); of > 0 {
		violated, won := float64(s.Violated)/of, float64(s.SecondWon)/of
		s.ViolatedShare, s.SecondWonShare = &violated, &won
	}
}

// sweepHelp is for the help of contests that can be swept.
const sweepHelp = `
With --offset-sweep 10ms it maps the race window instead, by two contenders of which one is released after the other; never held.`

// sweepThese are the contests that have nothing but a write.
const sweepThese = "use fail-if-exists or version-cas"

// errWaiting refuses a sweep of contenders that wait for each other.
func errWaiting(who string) error {
	return fmt.Errorf("--offset-sweep: %s wait until all have read, so that no offset is left; %s", who, sweepThese)
}
