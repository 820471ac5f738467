package runner

import (
	"context"
	"fmt"
	"time"

	"contend/targets"
)

// connection is what a run has to a target: one clock, the budget, and the way to send
// a request.
type connection struct {
	target   targets.Target
	timeout  time.Duration // of one request
	start    time.Time
	requests context.Context // of requests: not cut off by an interrupt
	budget   budget
	server   targets.Server // as it told of itself
	told     Waiter         // nil: nobody
}

// wait tells whether ctx did not end before.
func wait(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// pause waits, and tells whether ctx did not end before.
func (l *connection) pause(ctx context.Context, why string, d time.Duration) bool {
	if l.told != nil {
		l.told.Waiting(why, d)
	}
	return wait(ctx, d)
}

// await waits until n requests fit the limits; it gives up when ctx ends.
func (l *connection) await(ctx context.Context, n int) error {
	delay, limit := l.budget.delay(time.Now(), n)
	if delay > 0 && !l.pause(ctx, fmt.Sprintf("the limit of %.4g requests in %s", limit.Requests, limit.Per), delay) {
		return ctx.Err()
	}
	return nil
}

// spend waits until n requests fit and books them; it gives up when ctx ends.
func (l *connection) spend(ctx context.Context, n int) error { return l.spendSpread(ctx, 1, n, 0) }

// spendSpread waits until the requests of a round fit: of each contender so many,
// one contender staggered after the other.
func (l *connection) spendSpread(ctx context.Context, contenders, each int, stagger time.Duration) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := l.await(ctx, contenders*each); err != nil {
		return err
	}
	l.budget.book(time.Now(), contenders, each, stagger)
	return nil
}

// backOff waits after the n-th refusal in a row for a quota, counted from 1, and tells
// whether to ask again.
func (l *connection) backOff(ctx context.Context, n int, r *targets.Reply) bool {
	longest := time.Duration(0)
	for _, w := range l.budget {
		longest = max(longest, w.limit.Per)
	}
	if longest == 0 {
		longest = time.Minute // none is known
	}
	d, again := backOffFor(n, longest, r)
	return again && l.pause(ctx, quotaSpent(r), d)
}

func newConnection(ctx context.Context, target targets.Target, timeout time.Duration, limits []targets.Limit) connection {
	return connection{target: target, timeout: timeout, start: time.Now(), requests: context.WithoutCancel(ctx), budget: newBudget(limits)}
}

// patience is how long connecting may take.
func (l *connection) patience() time.Duration { return max(l.timeout, 10*time.Second) }

// exchange sends e.Op and fills in the reply and the times.
func (l *connection) exchange(session targets.Session, e *Exchange) {
	timeout := l.timeout
	if !e.Op.NotBefore.IsZero() {
		timeout += l.server.Lead
	}
	ctx, cancel := context.WithTimeout(l.requests, timeout)
	e.Call = time.Since(l.start)
	e.Reply = session.Do(ctx, e.Op)
	e.Return = time.Since(l.start)
	cancel()
	l.tell(e)
}

// stage is exchange with a halt before the op is released, which is what meet is. The
// time that the request may take begins there once more.
func (l *connection) stage(session targets.Stager, e *Exchange, how targets.Release, meet func()) {
	ctx := newStageContext(l.requests, l.timeout)
	defer ctx.cancel(nil)
	e.Call = time.Since(l.start)
	e.Reply = session.Stage(ctx, e.Op, how, func() {
		ctx.timer.Stop()
		meet()
		ctx.timer.Reset(l.timeout)
		if how != targets.LastByte {
			e.Call = time.Since(l.start)
		}
	})
	e.Return = time.Since(l.start)
	ctx.timer.Stop()
	l.tell(e)
}

// stageContext is one whose time can be stopped, and begun anew.
type stageContext struct {
	context.Context
	cancel context.CancelCauseFunc
	timer  *time.Timer
}

func newStageContext(parent context.Context, timeout time.Duration) *stageContext {
	c := &stageContext{}
	c.Context, c.cancel = context.WithCancelCause(parent)
	c.timer = time.AfterFunc(timeout, func() { c.cancel(context.DeadlineExceeded) })
	return c
}

// Err tells that the time was up, as that of any context with a deadline does.
func (c *stageContext) Err() error {
	err := c.Context.Err()
	if err != nil && context.Cause(c.Context) == context.DeadlineExceeded {
		return context.DeadlineExceeded
	}
	return err
}

// tell fills in what the reply tells of its times.
func (l *connection) tell(e *Exchange) {
	limit(&e.Reply)
	e.Began, e.Sent, e.Guard = l.within(e, e.Reply.Began), l.within(e, e.Reply.Sent), 0
	switch r := &e.Reply; {
	case e.Op.Kind != targets.Write || r.ByRead || r.Unasked || r.Outcome == targets.NotSent || r.Outcome == targets.Unsupported:
	case r.Guarded.IsZero():
		e.Guard = e.Sent
	default:
		e.Guard = l.within(e, r.Guarded)
	}
}

// within gives an instant that a driver told on the clock of the run, Call where it
// told none.
func (l *connection) within(e *Exchange, at time.Time) time.Duration {
	if at.IsZero() {
		return e.Call
	}
	return min(max(at.Sub(l.start), e.Call), e.Return)
}
