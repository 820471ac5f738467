package kit

import (
	"context"
	"net"
	"sync/atomic"
	"time"

	"contend/targets"
)

// Clock tells when a request was handed to the kernel: the instant before the
// first Write of it, and the return of the last complete Write before the first Read
// that brought data. Of an op with several round trips it tells the first, and the one
// whose guard decides.
type Clock struct {
	began, sent, guarded atomic.Pointer[time.Time]
	answered             atomic.Bool
	begun                atomic.Bool // something was written, whole or not
	several              atomic.Bool // the guarded request is another than the first
	guard                atomic.Bool // and it is on its way
	asking               atomic.Bool // something was written since the last answer
	trips                atomic.Int32
	halt                 atomic.Pointer[func() error]
}

// Stage is do with a halt: what it sends waits, encoded and with its deadlines set, in
// its first Write until meet has returned. do must write on the goroutine of the caller.
func (c *Clock) Stage(ctx context.Context, meet func(), do func() targets.Reply) targets.Reply {
	halt := func() error {
		// A connection that is closed at the end of ctx may have a last word.
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		meet()
		return nil
	}
	c.halt.Store(&halt)
	defer c.halt.Store(nil)
	return do()
}

// Begin forgets the request before.
func (c *Clock) Begin() {
	c.began.Store(nil)
	c.sent.Store(nil)
	c.guarded.Store(nil)
	c.answered.Store(false)
	c.begun.Store(false)
	c.several.Store(false)
	c.guard.Store(false)
	c.asking.Store(false)
	c.trips.Store(0)
}

// BeginSeveral tells that the guarded request is not the first of the op.
func (c *Clock) BeginSeveral() { c.several.Store(true) }

// GuardNext tells that what is written next is the guarded request.
func (c *Clock) GuardNext() {
	c.answered.Store(false)
	c.guard.Store(true)
}

// Guarded tells whether the guarded request, which is not the first, is sent or about to be.
func (c *Clock) Guarded() bool { return c.guard.Load() }

// lastByteNext tells that what is written next is the last byte of the request: it was
// not sent before, whatever was.
func (c *Clock) lastByteNext() {
	c.sent.Store(nil)
	c.answered.Store(false)
}

// Sent is when the first request was sent; the zero time while no complete Write was made.
func (c *Clock) Sent() time.Time { return timeAt(&c.sent) }

func timeAt(p *atomic.Pointer[time.Time]) time.Time {
	if t := p.Load(); t != nil {
		return *t
	}
	return time.Time{}
}

// RoundTrips is how many requests were begun, each after the answer to the one before.
func (c *Clock) RoundTrips() int { return int(c.trips.Load()) }

// Stamp tells the reply when its request was sent.
func (c *Clock) Stamp(r *targets.Reply) {
	r.Began, r.Sent, r.Guarded = timeAt(&c.began), c.Sent(), timeAt(&c.guarded)
	r.RoundTrips = c.RoundTrips()
	r.Unasked = c.several.Load() && r.Guarded.IsZero()
}

// Dial connects by TCP and puts the clock between the driver and the socket.
func (c *Clock) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return &clockedConn{conn, c}, nil
}

type clockedConn struct {
	net.Conn
	clock *Clock
}

func (c *clockedConn) Write(b []byte) (int, error) {
	if !c.clock.begun.Swap(true) {
		if halt := c.clock.halt.Swap(nil); halt != nil {
			if err := (*halt)(); err != nil {
				c.clock.begun.Store(false)
				return 0, err
			}
		}
		before := time.Now()
		c.clock.began.Store(&before)
	}
	if !c.clock.asking.Swap(true) {
		c.clock.trips.Add(1)
	}
	n, err := c.Conn.Write(b)
	if err != nil {
		return n, err
	}
	now, of := time.Now(), &c.clock.sent
	if c.clock.guard.Load() {
		of = &c.clock.guarded
	}
	if !c.clock.answered.Load() {
		of.Store(&now)
	} else {
		// A driver that reads in the background may have the answer before the
		// write returns; the request was sent all the same.
		of.CompareAndSwap(nil, &now)
	}
	return n, nil
}

func (c *clockedConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 {
		c.clock.answered.Store(true)
		c.clock.asking.Store(false)
	}
	return n, err
}
