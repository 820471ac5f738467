package targets

import (
	"context"
	"net"
	"sync/atomic"
	"time"
)

// sentClock tells when a request was handed to the kernel: the instant before the
// first Write of it, and the return of the last complete Write before the first Read
// that brought data. Of an op with several round trips it tells the first, and the one
// whose guard decides.
type sentClock struct {
	began, sent, guarded atomic.Pointer[time.Time]
	answered             atomic.Bool
	begun                atomic.Bool // something was written, whole or not
	several              atomic.Bool // the guarded request is another than the first
	guard                atomic.Bool // and it is on its way
	halt                 atomic.Pointer[func() error]
}

// stage is do with a halt: what it sends waits, encoded and with its deadlines set, in
// its first Write until meet has returned. do must write on the goroutine of the caller.
func (c *sentClock) stage(ctx context.Context, meet func(), do func() Reply) Reply {
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

// begin forgets the request before.
func (c *sentClock) begin() {
	c.began.Store(nil)
	c.sent.Store(nil)
	c.guarded.Store(nil)
	c.answered.Store(false)
	c.begun.Store(false)
	c.several.Store(false)
	c.guard.Store(false)
}

// beginSeveral tells that the guarded request is not the first of the op.
func (c *sentClock) beginSeveral() { c.several.Store(true) }

// guardNext tells that what is written next is the guarded request.
func (c *sentClock) guardNext() {
	c.answered.Store(false)
	c.guard.Store(true)
}

// lastByteNext tells that what is written next is the last byte of the request: it was
// not sent before, whatever was.
func (c *sentClock) lastByteNext() {
	c.sent.Store(nil)
	c.answered.Store(false)
}

// at is the zero time while no complete Write was made.
func (c *sentClock) at() time.Time { return timeAt(&c.sent) }

func timeAt(p *atomic.Pointer[time.Time]) time.Time {
	if t := p.Load(); t != nil {
		return *t
	}
	return time.Time{}
}

// stamp tells the reply when its request was sent.
func (c *sentClock) stamp(r *Reply) {
	r.Began, r.Sent, r.Guarded = timeAt(&c.began), c.at(), timeAt(&c.guarded)
	r.Unasked = c.several.Load() && r.Guarded.IsZero()
}

// dial connects by TCP and puts the clock between the driver and the socket.
func (c *sentClock) dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return &clockedConn{conn, c}, nil
}

type clockedConn struct {
	net.Conn
	clock *sentClock
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
	}
	return n, err
}
