package runner

import (
	"context"
	"fmt"
	"time"

	"contend/targets"
)

// settleAnswered is how long a round settles in which every unknown request was
// answered, as by a 500: it is no longer on its way. The late read comes later.
const settleAnswered = 100 * time.Millisecond

// readAttempts of a read-back that fails; a read has no effect and may be
// repeated.
const readAttempts = 3

// readBack reads the final state of every key: once, or twice after the settling
// time where an outcome is unknown. An interrupt ends that time; late reads then tell
// what it was to show.
func (r *Runner) readBack(ctx context.Context, round *Round, keys []Key) {
	reads := 1
	if round.Unsettled() {
		settle := r.plan.Settle
		if round.answered() {
			settle = min(settle, settleAnswered)
		}
		wait(ctx, settle)
		reads = 2
	}
	for _, at := range keys {
		r.readKey(ctx, round, at, reads)
	}
}

func (r *Runner) readKey(ctx context.Context, round *Round, at Key, reads int) {
	for failed, refused := 0, 0; reads > 0 && failed < readAttempts; {
		e := r.ownDo(0, ByRunner, targets.Op{Kind: targets.Read, Key: at.Name, Collection: at.Collection})
		round.Reads = append(round.Reads, e)
		switch refused++; {
		case e.Reply.Outcome == targets.OK || e.Reply.Outcome == targets.Missing:
			reads, refused = reads-1, 0
		case e.Reply.Outcome == targets.Throttled && r.backOff(r.requests, refused, &e.Reply):
		default:
			failed++
			wait(ctx, min(e.Reply.RetryAfter, r.patience()))
		}
	}
}

// lateReads reads the key of every round once more, when it has been left alone
// for a while, and those in doubt again until they are not; after an interrupt
// the doubtful ones first, and only as many as time allows.
func (r *Runner) lateReads(ctx context.Context) {
	if r.summary.Rounds == 0 {
		return
	}
	number := func(i int) int { return i + 1 }
	if ctx.Err() != nil {
		order := r.doubtfulFirst()
		number = func(i int) int { return order[i] }
	}
	// What was to end by itself ends sooner once it is interrupted.
	within, cancel := context.WithCancel(r.requests)
	defer cancel()
	defer context.AfterFunc(ctx, func() {
		if wait(within, afterInterrupt) {
			cancel()
		}
	})()
	if r.summary.Stopped != nil {
		r.reopenBroken()
	}
	answered := r.last
	if d := r.plan.Late - r.since(answered); d > 0 {
		left := ctx
		if ctx.Err() != nil {
			left = within
		}
		r.pause(left, "reading every key once more", d)
	}
	r.readLate(within, r.summary.Rounds, number)
	r.readUndecided(within, answered)
}

// readLate reads every key of so many rounds.
func (r *Runner) readLate(ctx context.Context, rounds int, number func(int) int) {
	keys := len(keysOf(r.plan.Race, ""))
	r.each(ctx, rounds*keys, true, func(i int) targets.Op {
		at := keysOf(r.plan.Race, r.raceKey(number(i/keys)))[i%keys]
		return targets.Op{Kind: targets.Read, Key: at.Name, Collection: at.Collection}
	}, func(i int, e *Exchange) { r.show(Event{Late: &LateRead{number(i / keys), e}}) })
}

const (
	// firstReread of a key in doubt comes after this; the distances double.
	firstReread = 50 * time.Millisecond
	// mostUndecided rounds are read again; more of them say nothing new.
	mostUndecided = 1000
	// confirmingReads are made once the settling time is over: two must agree, and
	// one may fail.
	confirmingReads = 3
)

// readUndecided reads keys that showed a missing or old state again, at growing
// distances, each time through another session, until the steering is sure, or
// the settling time has passed since the last answer and the last reads are made.
func (r *Runner) readUndecided(ctx context.Context, answered time.Duration) {
	defer func() { r.shift = 0 }()
	for gap, last := firstReread, confirmingReads; last > 0 && r.steering != nil; gap *= 2 {
		rounds := r.steering.Undecided()
		if len(rounds) == 0 || ctx.Err() != nil {
			return
		}
		rounds = rounds[:min(len(rounds), mostUndecided)]
		left := r.plan.Settle - r.since(answered)
		if left <= 0 {
			last--
			left = firstReread
		}
		r.pause(ctx, fmt.Sprintf("the keys of %d rounds show a missing or old state: reading them again", len(rounds)), min(gap, left))
		r.shift++
		r.readLate(ctx, len(rounds), func(i int) int { return rounds[i] })
	}
}

// lateNonce reads the nonce once more: it is gone only where somebody else removes
// keys.
func (r *Runner) lateNonce() {
	if r.nonceWrite == nil || r.summary.Stopped != nil {
		return
	}
	for session := range r.own {
		e := r.ownDo(session, ByRunner, targets.Op{Kind: targets.Read, Key: r.nonceWrite.Key, Collection: r.nonceWrite.Collection})
		r.show(Event{Late: &LateRead{0, &e}})
		if e.Reply.Outcome != targets.Missing {
			return
		}
	}
}

// afterInterrupt is how long an interrupted run still reads keys.
const afterInterrupt = 10 * time.Second

// doubtfulFirst gives the numbers of all rounds, those first whose judgement waits
// for a late read.
func (r *Runner) doubtfulFirst() []int {
	var order []int
	if r.steering != nil {
		order = r.steering.Doubtful()
	}
	doubtful := make(map[int]bool, len(order))
	for _, n := range order {
		doubtful[n] = true
	}
	for n := 1; n <= r.summary.Rounds; n++ {
		if !doubtful[n] {
			order = append(order, n)
		}
	}
	return order
}
