package runner

import (
	"context"
	"fmt"

	"contend/targets"
)

// controls makes the controls and tells whether to race.
func (r *Runner) controls(ctx context.Context) bool {
	c := &Controls{Skipped: r.plan.SkipControls}
	if !c.Skipped && ctx.Err() == nil {
		if !r.plan.Unguarded {
			c.sequential(r.plan.key("s"), r.ownDo)
		}
		r.nonce(ctx, c)
		for n := 1; r.plan.Twin != nil && n <= r.plan.ControlRounds && ctx.Err() == nil && r.summary.Stopped == nil; n++ {
			r.twins = n
			round := Round{Number: n, Key: r.twinKey(n)}
			if r.round(ctx, r.plan.Twin, &round) {
				c.Twin = append(c.Twin, round)
			}
		}
	}
	r.show(Event{Controls: c})
	proceed := r.steering == nil || r.steering.Proceed()
	return proceed && ctx.Err() == nil && r.summary.Stopped == nil
}

// sequential makes the checks with nothing running beside them, by do, which sends an op
// over one of two sessions as a contender.
func (c *Controls) sequential(key string, do func(session, contender int, op targets.Op) Exchange) {
	c.Key = key
	targets.CheckSequential(key, func(session int, op targets.Op) targets.Reply {
		e := do(session, session, op)
		c.Sequential = append(c.Sequential, e)
		return e.Reply
	})
}

// writeNonce is the op by which all sessions are to see that they are on one store.
func writeNonce(key string, collection targets.Collection) targets.Op {
	return targets.Op{Kind: targets.Write, Key: key, Collection: collection, Value: targets.Record{Token: Token(key, 0, 1)}}
}

// nonce writes one record and lets every contender read it: all of them must be
// on the same store, the one that the run was opened on.
func (r *Runner) nonce(ctx context.Context, c *Controls) {
	key := r.plan.key("n")
	collection := r.plan.Race.Collection()
	write := r.ownDo(0, ByRunner, writeNonce(key, collection))
	c.Nonce = append(c.Nonce, write)
	read := targets.Op{Kind: targets.Read, Key: key, Collection: collection}
	var blind []int // contenders that have not seen it
	r.each(r.requests, len(r.contenders), false, func(int) targets.Op { return read }, func(i int, e *Exchange) {
		c.Nonce = append(c.Nonce, *e)
		if e.Reply.Outcome == targets.Missing {
			blind = append(blind, i)
		}
	})
	if write.Reply.Outcome != targets.OK {
		return
	}
	r.nonceWrite = &write.Op
	written := r.last
	for gap := firstReread; len(blind) > 0 && ctx.Err() == nil && r.since(written) < r.plan.Settle; gap *= 2 {
		r.pause(ctx, fmt.Sprintf("%d of the sessions do not see yet what the run has written", len(blind)),
			min(gap, r.plan.Settle-r.since(written)))
		still := blind[:0]
		for _, i := range blind {
			_ = r.spend(r.requests, 1)
			e := Exchange{Contender: i, Op: read}
			r.exchange(r.contenders[i].member.session, &e)
			r.summary.Requests += int64(e.Reply.Attempts)
			c.Nonce = append(c.Nonce, e)
			if e.Reply.Outcome == targets.Missing {
				still = append(still, i)
			}
		}
		blind = still
	}
}
