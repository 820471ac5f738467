package scenarios

import (
	"slices"
	"time"

	"contend/runner"
	"contend/targets"
)

// meeting is an accepted write, and who met it at the guard.
type meeting struct {
	winner *runner.Exchange // nil: known from the read-back alone
	rivals int
	last   int           // the rival that was counted last: each counts once, however often it wrote
	reach  time.Duration // negative: unknown
}

// meetingsOf gives the accepted writes of a round to its own key, in the order in
// which they were sent, or the one that only the read-back tells of. oneCopy: the
// target checks its guards on one copy.
func meetingsOf(r *runner.Round, oneCopy bool) []meeting {
	writes := make(map[targets.Condition][]*runner.Exchange)
	var accepted []*runner.Exchange
	for i := range r.Ops {
		x := &r.Ops[i]
		if x.Op.Kind != targets.Write || x.Op.Key != r.Key || x.Guard == 0 {
			continue
		}
		at := conditionOf(x)
		writes[at] = append(writes[at], x)
		if x.Reply.Outcome == targets.OK {
			accepted = append(accepted, x)
		}
	}
	slices.SortFunc(accepted, func(a, b *runner.Exchange) int { return int(a.Guard - b.Guard) })
	times := timesOf(r)
	var all []meeting
	for _, w := range accepted {
		m := meeting{winner: w, last: runner.ByRunner, reach: none}
		_, sent, end, known := times.of(w)
		if !known {
			continue
		}
		for _, x := range writes[conditionOf(w)] {
			m.meet(times, x, w, sent, end)
		}
		m.reach = reachOf(r, times, w, writes[conditionOf(w)], oneCopy)
		all = append(all, m)
	}
	if len(accepted) == 0 {
		all = append(all, unacknowledged(r, times, writes)...)
	}
	return all
}

// conditionOf gives what two writes have in common that compete.
func conditionOf(x *runner.Exchange) targets.Condition {
	c := x.Op.If
	c.UpdatedAt = c.UpdatedAt.UTC().Round(0)
	return c
}

// meet counts the contender of a write that met the winner's; those of one contender
// follow each other.
func (m *meeting) meet(times clock, x, w *runner.Exchange, sent, end time.Duration) {
	_, g, e, known := times.of(x)
	if known && x.Contender != w.Contender && x.Contender != m.last && metGuard(x) && g <= end && e >= sent {
		m.rivals++
		m.last = x.Contender
	}
}

// unacknowledged gives the write that won as the read-back tells. It was there when
// the first was refused, or read its token; who was refused met it.
func unacknowledged(r *runner.Round, times clock, writes map[targets.Condition][]*runner.Exchange) []meeting {
	for i := range r.Reads {
		read := &r.Reads[i]
		for _, group := range writes {
			for _, w := range group {
				if read.Reply.Outcome != targets.OK || read.Op.Key != r.Key || w.Op.Value.Token != read.Reply.Record.Token {
					continue
				}
				_, sent, _, known := times.of(w)
				if r.Relayed != nil && !known {
					return nil
				}
				m := meeting{last: runner.ByRunner, reach: none}
				end := forever
				for _, x := range group {
					if _, _, e, known := times.of(x); known && x.Reply.Outcome == targets.Conflict {
						end = min(end, e)
					}
				}
				for _, x := range group {
					if x.Reply.Outcome == targets.Conflict {
						m.meet(times, x, w, sent, end)
					}
				}
				return []meeting{m}
			}
		}
	}
	return nil
}

// reachOf bounds how far the check of an accepted write and its effect can have been
// apart: from the instant before the first byte of its whole operation to the
// earliest reply that only it can have caused. That is a contender's read of its
// token or a refusal under its condition, which on one copy nobody else can have
// caused. Negative: there is no such reply.
func reachOf(r *runner.Round, times clock, w *runner.Exchange, same []*runner.Exchange, oneCopy bool) time.Duration {
	began, _, known := times.around(w)
	if !known || w.Reply.Attempts > 1 {
		return none
	}
	earliest := forever
	caused := func(x *runner.Exchange) {
		if _, end, known := times.around(x); known {
			earliest = min(earliest, end)
		}
	}
	for _, x := range same {
		if oneCopy && x.Contender != w.Contender && x.Reply.Outcome == targets.Conflict && !x.Reply.ByRead && x.Reply.Attempts <= 1 {
			caused(x)
		}
	}
	for i := range r.Ops {
		x := &r.Ops[i]
		shows := x.Op.Kind == targets.Read && x.Reply.Outcome == targets.OK || x.Reply.ByRead
		if shows && x.Op.Key == r.Key && x.Reply.Record.Token == w.Op.Value.Token {
			caused(x)
		}
	}
	if earliest == forever || earliest < began {
		return none
	}
	return earliest - began
}

// ofFirst takes the figures of the accepted write that was sent first.
func (e *Evidence) ofFirst(all []meeting) {
	if len(all) > 0 && !e.Untold {
		e.Rivals, e.Reach = all[0].rivals, all[0].reach
	}
}

// ofAll sums the rivals of all accepted writes, and takes their smallest reach.
func (e *Evidence) ofAll(all []meeting) {
	for _, m := range all {
		if e.Untold {
			return
		}
		e.Rivals = max(0, e.Rivals) + m.rivals
		if m.reach >= 0 && (e.Reach < 0 || m.reach < e.Reach) {
			e.Reach = m.reach
		}
	}
}

// RivalsNeeded is how many rivals an accepted write must have met for its round to
// count: half of the others rounded up, five at most, unless another number is asked
// for.
func RivalsNeeded(contenders, asked int) int {
	if asked > 0 {
		return asked
	}
	return max(1, min(contenders/2, 5))
}
