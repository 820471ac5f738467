package runner

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"contend/targets"
)

// crew is what a run of any shape stands on: the connection, the sessions that it opens,
// closes and opens again, who looks on, and what it comes to.
type crew struct {
	connection
	members  []member
	observer Observer
	summary  Summary
	warmUp   int          // as targets.Description has it
	reopened atomic.Int64 // requests that opening sessions again has sent
}

// member is one session of a crew.
type member struct {
	number  int // as the target counts them: negative for the runner's own
	session targets.Session
}

func newCrew(ctx context.Context, target targets.Target, s *Setup) crew {
	return crew{connection: newConnection(ctx, target, s.Timeout, s.Limits)}
}

// openAtOnce sessions are dialled side by side.
const openAtOnce = 16

// open makes what the run needs at the target and opens sessions of these numbers. With
// an error none is left open.
func (c *crew) open(ctx context.Context, needs targets.Needs, numbers ...int) error {
	if err := c.prepare(ctx, needs); err != nil {
		return err
	}
	if err := c.dial(ctx, numbers); err != nil {
		c.close()
		if len(numbers) > 1 {
			err = fmt.Errorf("opening %d sessions: %w", len(numbers), err)
		}
		return err
	}
	c.summary.Requests = int64(warmUp(c.warmUp, len(numbers)))
	return nil
}

// openSome is open for a crew that can do with fewer sessions, where it gets one.
func (c *crew) openSome(ctx context.Context, needs targets.Needs, numbers ...int) error {
	if err := c.prepare(ctx, needs); err != nil {
		return err
	}
	err := c.dial(ctx, numbers)
	c.members = slices.DeleteFunc(c.members, func(m member) bool { return m.session == nil })
	if len(c.members) > 0 {
		return nil
	}
	return err
}

// prepare makes what the run needs at the target.
func (c *crew) prepare(ctx context.Context, needs targets.Needs) error {
	d := c.target.Describe()
	if err := d.Check(needs); err != nil {
		return err
	}
	c.warmUp = d.WarmUp
	needs.Timeout = c.timeout
	if err := c.spend(ctx, warmUp(c.warmUp, needs.Sessions)); err != nil {
		return err
	}
	// Some open the sessions of the run, as many side by side.
	ctx, cancel := context.WithTimeout(ctx, c.patience()*time.Duration(1+needs.Sessions/openAtOnce))
	defer cancel()
	var err error
	c.server, err = c.target.Prepare(ctx, needs)
	return err
}

// Server is what the server told of itself.
func (c *crew) Server() targets.Server { return c.server }

// warmUp is what connecting so many sessions sends, where each sends so much.
func warmUp(each, sessions int) int {
	if each == 0 {
		return 0
	}
	return 1 + each*sessions
}

// dial opens the sessions, those that it can.
func (c *crew) dial(ctx context.Context, numbers []int) error {
	c.members = make([]member, len(numbers))
	var group errgroup.Group
	group.SetLimit(openAtOnce)
	for i := range c.members {
		m := &c.members[i]
		m.number = numbers[i]
		group.Go(func() error {
			session, err := c.session(ctx, m.number)
			if err == nil {
				m.session = session
			}
			return err
		})
	}
	return group.Wait()
}

func (c *crew) session(ctx context.Context, number int) (targets.Session, error) {
	ctx, cancel := context.WithTimeout(ctx, c.patience())
	defer cancel()
	return c.target.Open(ctx, number)
}

// close ends the sessions.
func (c *crew) close() {
	for _, m := range c.members {
		if m.session != nil {
			m.session.Close()
		}
	}
}

// broken tells whether the connection that an exchange was made over may be.
func broken(e *Exchange) bool {
	return e.Reply.Outcome == targets.Unknown || e.Reply.Outcome == targets.NotSent
}

// reopen replaces a session whose connection may be broken.
func (c *crew) reopen(m *member) {
	m.session.Close()
	fresh, err := c.session(c.requests, m.number)
	if err != nil {
		fresh = closedSession{err}
	} else {
		c.reopened.Add(int64(c.warmUp))
	}
	m.session = fresh
}

// closedSession stands in for one that could not be opened again.
type closedSession struct{ err error }

func (s closedSession) Do(context.Context, targets.Op) targets.Reply {
	return targets.Reply{Outcome: targets.NotSent, Code: "connection", Message: s.err.Error()}
}
func (s closedSession) Close() error { return nil }

// show shows an event to who looks on.
func (c *crew) show(e Event) { c.observer.Observe(e) }

// showTo lets an observer see the run, and know of its waits if it wants to.
func (c *crew) showTo(observer Observer) {
	c.observer = observer
	c.told, _ = observer.(Waiter)
}

// sent is how many requests have been sent so far, as far as they were counted.
func (c *crew) sent() int64 { return c.summary.Requests + c.reopened.Load() }

// end completes what the run came to.
func (c *crew) end() Summary {
	c.summary.Requests, c.summary.Elapsed = c.sent(), time.Since(c.start)
	return c.summary
}
