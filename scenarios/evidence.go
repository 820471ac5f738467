package scenarios

import (
	"slices"
	"time"

	"contend/runner"
	"contend/targets"
)

// Evidence tells of one round whether it was a contest. A figure that has no
// value (one contender, no winner) is negative.
type Evidence struct {
	Contenders      int
	MaxInFlight     int
	Overlap         float64 // share of the pairs that were in flight at one moment
	WinnerOverlap   float64 // share of the others sent before the winner was acknowledged
	GuardContention float64 // share of the others that met the guard while the winner's write was under way
	ReachedGuard    int     // contenders whose write was answered OK, Conflict or Aborted
	Skew            time.Duration
	Closest         time.Duration // shortest gap between two writes; negative: fewer than two
	WinnerRank      int           // place of the winner in the order of sending, from 1; 0: no winner
	Unmapped        int
	// Troubled counts the contenders that were throttled, invalid, not sent or
	// unknown; Unknown those of them that the read-back may settle.
	Troubled, Unknown int
}

// none marks a figure that has no value.
const none = -1

// span is one contender's part in a round.
type span struct {
	sent, end    time.Duration // first request sent, last reply complete
	guard, after time.Duration // the write: sent, reply complete
	wrote        bool
	met          bool // the guard answered
	won          bool
}

func evidenceOf(r *runner.Round) Evidence {
	e := Evidence{Overlap: none, WinnerOverlap: none, GuardContention: none, Closest: none}
	spans := e.spansOf(r)
	e.Contenders = len(spans)
	if len(spans) == 0 {
		return e
	}
	first, last := spans[0].sent, spans[0].sent
	for _, s := range spans {
		first, last = min(first, s.sent), max(last, s.sent)
	}
	e.Skew = last - first
	e.MaxInFlight, e.Overlap = overlap(spans)
	e.Closest = closest(spans)
	e.ofWinner(r, spans)
	return e
}

func (e *Evidence) spansOf(r *runner.Round) []span {
	spans := make([]span, 0, len(r.Ops))
	for i := range r.Ops {
		x := &r.Ops[i]
		if i == 0 || x.Contender != r.Ops[i-1].Contender {
			spans = append(spans, span{sent: x.Sent})
		}
		s := &spans[len(spans)-1]
		s.end = x.Return
		if x.Op.Kind == targets.Write {
			s.wrote, s.guard, s.after = true, x.Sent, x.Return
			o := x.Reply.Outcome
			s.won = o == targets.OK
			s.met = s.won || o == targets.Conflict || o == targets.Aborted
			if s.met {
				e.ReachedGuard++
			}
		}
		if i == len(r.Ops)-1 || r.Ops[i+1].Contender != x.Contender {
			e.note(x.Reply.Outcome)
		}
	}
	return spans
}

func (e *Evidence) note(o targets.Outcome) {
	switch o {
	case targets.Unmapped:
		e.Unmapped++
	case targets.Unknown:
		e.Unknown++
		e.Troubled++
	case targets.Throttled, targets.Invalid, targets.NotSent, targets.Unsupported:
		e.Troubled++
	}
}

// overlap counts in O(n log n): a pair does not overlap where one ends before
// the other is sent. Intervals are closed.
func overlap(spans []span) (peak int, share float64) {
	n := len(spans)
	sent, end := make([]time.Duration, n), make([]time.Duration, n)
	for i, s := range spans {
		sent[i], end[i] = s.sent, s.end
	}
	slices.Sort(sent)
	slices.Sort(end)
	apart, over := 0, 0
	for i, s := range sent {
		for over < n && end[over] < s {
			over++
		}
		apart += over
		peak = max(peak, i+1-over)
	}
	if n < 2 {
		return peak, none
	}
	pairs := n * (n - 1) / 2
	return peak, float64(pairs-apart) / float64(pairs)
}

func closest(spans []span) time.Duration {
	var at []time.Duration
	for _, s := range spans {
		if s.wrote {
			at = append(at, s.guard)
		}
	}
	if len(at) < 2 {
		return none
	}
	slices.Sort(at)
	least := at[1] - at[0]
	for i := 2; i < len(at); i++ {
		least = min(least, at[i]-at[i-1])
	}
	return least
}

// ofWinner fills in the figures about the winner: the OK write that was sent
// first, else the contender whose token the read-back shows.
func (e *Evidence) ofWinner(r *runner.Round, spans []span) {
	w, acknowledged := none, time.Duration(0)
	for i, s := range spans {
		if s.won && (w == none || s.guard < spans[w].guard) {
			w, acknowledged = i, s.after
		}
	}
	if w == none {
		w, acknowledged = winnerFromReadBack(r)
	}
	if w == none {
		return
	}
	e.WinnerRank = 1
	before, during := 0, 0
	for i, s := range spans {
		if i == w {
			continue
		}
		if s.guard < spans[w].guard {
			e.WinnerRank++
		}
		if s.sent <= acknowledged {
			before++
		}
		if s.met && s.guard <= acknowledged && s.after >= spans[w].guard {
			during++
		}
	}
	if others := len(spans) - 1; others > 0 {
		e.WinnerOverlap = float64(before) / float64(others)
		e.GuardContention = float64(during) / float64(others)
	}
}

// winnerFromReadBack finds the contender whose token is stored although no reply
// said so. It was acknowledged, as it were, by the earliest return of a refusal
// or of a read of its token.
func winnerFromReadBack(r *runner.Round) (contender int, acknowledged time.Duration) {
	var token string
	acknowledged = forever
	for i := range r.Reads {
		if read := &r.Reads[i]; read.Reply.Outcome == targets.OK {
			token = read.Reply.Record.Token
			acknowledged = min(acknowledged, read.Return)
		}
	}
	winner, place, previous := none, none, none
	for i := range r.Ops {
		x := &r.Ops[i]
		if x.Contender != previous {
			place++
			previous = x.Contender
		}
		if x.Op.Kind == targets.Write && x.Op.Value.Token == token {
			winner = place
		}
		if x.Reply.Outcome == targets.Conflict {
			acknowledged = min(acknowledged, x.Return)
		}
	}
	return winner, acknowledged
}
