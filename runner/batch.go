package runner

import (
	"context"

	"golang.org/x/sync/errgroup"

	"contend/targets"
)

// each sends count ops, spread over the contenders' sessions, and hands the
// exchanges over in order. It gives up when ctx ends, and on a target that serves
// nobody for some batches. With retry, what is refused for a quota is sent
// again when that has had time to renew; each such exchange is handed over too.
func (r *Runner) each(ctx context.Context, count int, retry bool, op func(i int) targets.Op, got func(i int, e *Exchange)) {
	n := len(r.contenders)
	unserved := 0
	for from := 0; from < count && unserved < unservedRounds; from += n {
		var left []int
		for i := from; i < min(from+n, count); i++ {
			left = append(left, i)
		}
		served := false
		for refused := 1; len(left) > 0; refused++ {
			if r.spend(ctx, len(left)) != nil {
				return
			}
			var refusal *targets.Reply
			left, refusal = r.batch(left, op, func(i int, e *Exchange) {
				served = served || e.Reply.Outcome.Served()
				got(i, e)
			})
			if !retry {
				break
			}
			if refusal != nil && !r.backOff(ctx, refused, refusal) {
				return
			}
		}
		if unserved++; served {
			unserved = 0
		}
		r.heap.betweenRounds()
	}
}

// batch sends these ops at once, each over a session of its own. It gives those that
// were refused for a quota, and one of the refusals.
func (r *Runner) batch(which []int, op func(i int) targets.Op, got func(i int, e *Exchange)) (refused []int, refusal *targets.Reply) {
	exchanges := make([]Exchange, len(which))
	var group errgroup.Group
	for j, i := range which {
		at := (j + r.shift) % len(r.contenders)
		exchanges[j] = Exchange{Contender: at, Op: op(i)}
		group.Go(func() error { r.exchange(r.contenders[at].member.session, &exchanges[j]); return nil })
	}
	_ = group.Wait()
	before := r.last
	for j, i := range which {
		e := &exchanges[j]
		e.follow(before)
		r.last = max(r.last, e.Return)
		r.summary.Requests += int64(e.Reply.Attempts)
		if e.Reply.Outcome == targets.Throttled {
			refused, refusal = append(refused, i), &e.Reply
		}
		got(i, e)
		if broken(e) {
			r.reopen(r.contenders[e.Contender].member)
		}
	}
	return refused, refusal
}

// reopenBroken opens again the sessions whose last round left a request unanswered.
func (r *Runner) reopenBroken() {
	var group errgroup.Group
	group.SetLimit(openAtOnce)
	for i := range r.contenders {
		c := &r.contenders[i]
		for j := range c.ops {
			if broken(&c.ops[j]) {
				group.Go(func() error { r.reopen(c.member); return nil })
				break
			}
		}
	}
	_ = group.Wait()
}
