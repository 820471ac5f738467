package scenarios

import (
	"slices"
	"time"

	"contend/runner"
	"contend/scenarios/stats"
	"contend/targets"
)

// Evidence tells of one round whether it was a contest. A figure that has no
// value (one contender, no winner) is negative.
type Evidence struct {
	Contenders int
	// Rivals are the other contenders whose guarded write met that of the winner; of
	// a contest with several accepted writes, summed over them.
	Rivals int
	// Reach is the greatest time that can have been between the check of the accepted
	// write and its effect; of several the smallest.
	Reach           time.Duration
	MaxInFlight     int
	Overlap         float64 // share of the pairs that were in flight at one moment
	WinnerOverlap   float64 // share of the others sent before the winner was acknowledged
	GuardContention float64 // share of the others that met the guard while the winner's write was in flight
	ReachedGuard    int     // contenders whose write was answered OK, Conflict or Aborted
	Skew            time.Duration
	Closest         time.Duration // shortest gap between two guarded writes; negative: fewer than two
	WinnerRank      int           // place of the winner in the order of sending, from 1; 0: no winner
	laterRivals     int           // of a lease: the most that a takeover of a later period met
	// Untold: the target relays, and does not tell when the store was asked, or by
	// clocks too far apart to tell whether two calls met.
	Untold bool
	// Troubled counts the contenders that were throttled, invalid, not sent or
	// unknown; Unknown and Throttled are those of them.
	Troubled, Unknown, Throttled int
	// byRead counts the contenders that were refused by what they had read, in front of
	// the guard.
	byRead int
	// Early: a request was answered before its last byte had been sent.
	Early bool
	// cause is the first trouble, as the target told it; timedOut tells whether every
	// unknown one is a request that was not answered in time.
	cause    string
	timedOut bool
}

// trouble names what most of the troubled have, and what would fix it.
func (e *Evidence) trouble() reason {
	const too = "had too many contenders "
	switch other := e.Troubled - e.Unknown - e.Throttled; {
	case e.Throttled >= e.Unknown && e.Throttled >= other:
		return reason{too + "throttled", "lower --rate"}
	case e.Unknown >= other && e.timedOut:
		return reason{too + "without an answer in time", "raise --timeout"}
	case e.Unknown >= other:
		return reason{too + "without a certain answer: " + e.cause, "find out why the target answers so"}
	default:
		return reason{too + "refused, or not sent: " + e.cause, "find out why the target answers so"}
	}
}

// none marks a figure that has no value.
const none = -1

// span is one contender's part in a round.
type span struct {
	contender    int
	sent, end    time.Duration // first request sent, last reply complete
	guard, after time.Duration // the write: sent, reply complete
	wrote        bool          // and the guarded request was sent
	met          bool          // the guard answered
	won          bool
}

func evidenceOf(r *runner.Round) Evidence {
	e := Evidence{Overlap: none, WinnerOverlap: none, GuardContention: none, Closest: none, Rivals: none, Reach: none, timedOut: true}
	if r.Relayed != nil && !told(r) {
		e.Untold = true
	}
	spans := e.spansOf(r)
	if len(spans) == 0 || e.Untold {
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
	times := timesOf(r)
	reached := runner.ByRunner // the contender that was last found at the guard
	for i := range r.Ops {
		x := &r.Ops[i]
		e.Early = e.Early || x.Reply.Early
		if i == len(r.Ops)-1 || r.Ops[i+1].Contender != x.Contender {
			e.Contenders++
			e.note(&x.Reply)
			if x.Reply.ByRead {
				e.byRead++
			}
		}
		o := x.Reply.Outcome
		met := metGuard(x)
		if met && reached != x.Contender {
			reached = x.Contender
			e.ReachedGuard++
		}
		sent, guard, end, known := times.of(x)
		if !known || o == targets.NotSent || o == targets.Unsupported {
			continue
		}
		if len(spans) == 0 || spans[len(spans)-1].contender != x.Contender {
			spans = append(spans, span{contender: x.Contender, sent: sent})
		}
		s := &spans[len(spans)-1]
		s.end = end
		if x.Op.Kind == targets.Write && x.Guard > 0 {
			s.wrote, s.guard, s.after, s.met, s.won = true, guard, end, met, o == targets.OK
		}
	}
	return spans
}

// metGuard tells whether the store's guard decided on the request.
func metGuard(x *runner.Exchange) bool {
	switch x.Reply.Outcome {
	case targets.OK, targets.Conflict, targets.Aborted:
		return x.Op.Kind == targets.Write && !x.Reply.ByRead
	default:
		return false
	}
}

// clock gives the times of a round's requests: by our own clock, or of a relayed
// target by those next to the store, from the first of them on.
type clock struct {
	relayed *runner.Relayed
	zero    float64
}

func timesOf(r *runner.Round) clock {
	c := clock{relayed: r.Relayed}
	for i := range r.Ops {
		if began := r.Ops[i].Reply.Server.Began; began > 0 && (c.zero == 0 || began < c.zero) {
			c.zero = began
		}
	}
	return c
}

func (c clock) since(ms float64) time.Duration {
	return time.Duration((ms - c.zero) * float64(time.Millisecond))
}

// of gives when a request was sent, its guarded part too, and its reply complete.
// Two relayed intervals meet for certain where they do by clocks that are as far
// apart as they may be: each is made shorter by half of that at its ends. Nothing is
// known of a relayed request that nobody answered.
func (c clock) of(x *runner.Exchange) (sent, guard, end time.Duration, known bool) {
	if c.relayed == nil {
		return x.Sent, x.Guard, x.Return, true
	}
	at, half := x.Reply.Server, c.relayed.Uncertainty/2
	began, end := c.since(at.Began)+half, c.since(at.Ended)-half
	return began, began, end, at.Ended > 0
}

// around gives an interval in which the whole operation certainly lay.
func (c clock) around(x *runner.Exchange) (began, end time.Duration, known bool) {
	if c.relayed == nil {
		return x.Began, x.Return, true
	}
	at, half := x.Reply.Server, c.relayed.Uncertainty/2
	return c.since(at.Began) - half, c.since(at.Ended) + half, at.Ended > 0
}

// told tells whether the clocks next to the store say enough: every contender
// that was served has a span, and the spans are longer than the clocks are apart.
func told(r *runner.Round) bool {
	var lengths []time.Duration
	for i := range r.Ops {
		reply := &r.Ops[i].Reply
		if reply.Server.Ended > 0 {
			lengths = append(lengths, time.Duration((reply.Server.Ended-reply.Server.Began)*float64(time.Millisecond)))
		} else if reply.Outcome.Served() {
			return false
		}
	}
	length := stats.Median(lengths)
	return length != nil && r.Relayed.Uncertainty <= *length
}

func (e *Evidence) note(reply *targets.Reply) {
	switch reply.Outcome {
	case targets.Unknown:
		e.Unknown++
		e.timedOut = e.timedOut && reply.Code == "timeout"
	case targets.Throttled:
		e.Throttled++
	case targets.Invalid, targets.NotSent, targets.Unsupported:
	default:
		return
	}
	e.Troubled++
	if e.cause == "" && reply.Outcome != targets.Throttled {
		e.cause = reply.Text()
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
	var w *span
	for i := range spans {
		if s := &spans[i]; s.won && (w == nil || s.guard < w.guard) {
			w = s
		}
	}
	var acknowledged time.Duration
	if w != nil {
		acknowledged = w.after
	} else if w, acknowledged = winnerFromReadBack(r, spans); w == nil {
		return
	}
	e.WinnerRank = 1
	before, during := 0, 0
	for i := range spans {
		s := &spans[i]
		if s == w {
			continue
		}
		if s.wrote && s.guard < w.guard {
			e.WinnerRank++
		}
		if s.sent <= acknowledged {
			before++
		}
		if s.met && s.guard <= acknowledged && s.after >= w.guard {
			during++
		}
	}
	if others := e.Contenders - 1; others > 0 {
		e.WinnerOverlap = float64(before) / float64(others)
		e.GuardContention = float64(during) / float64(others)
	}
}

// winnerFromReadBack finds the contender whose token is stored although no reply
// said so; nil: there is none whose request is known. It was acknowledged, as it
// were, by the earliest return of a refusal or of a read of its token.
func winnerFromReadBack(r *runner.Round, spans []span) (winner *span, acknowledged time.Duration) {
	times := timesOf(r)
	var token string
	acknowledged = forever
	seen := func(x *runner.Exchange) {
		if _, _, end, known := times.of(x); known {
			acknowledged = min(acknowledged, end)
		}
	}
	for i := range r.Reads {
		if read := &r.Reads[i]; read.Reply.Outcome == targets.OK {
			token = read.Reply.Record.Token
			seen(read)
		}
	}
	for i := range r.Ops {
		x := &r.Ops[i]
		if x.Op.Kind == targets.Write && x.Op.Value.Token == token {
			for j := range spans {
				if spans[j].contender == x.Contender {
					winner = &spans[j]
				}
			}
		}
		if x.Reply.Outcome == targets.Conflict {
			seen(x)
		}
	}
	return winner, acknowledged
}
