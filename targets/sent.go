package targets

import (
	"context"
	"net"
	"sync/atomic"
	"time"
)

// sentClock tells when a request was handed to the kernel: the return of the
// last complete Write before the first Read that brought data.
type sentClock struct {
	sent     atomic.Pointer[time.Time]
	answered atomic.Bool
	begun    atomic.Bool // something was written, whole or not
}

// begin forgets the request before.
func (c *sentClock) begin() {
	c.sent.Store(nil)
	c.answered.Store(false)
	c.begun.Store(false)
}

// at is the zero time while no complete Write was made.
func (c *sentClock) at() time.Time {
	if t := c.sent.Load(); t != nil {
		return *t
	}
	return time.Time{}
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
	c.clock.begun.Store(true)
	n, err := c.Conn.Write(b)
	if err != nil {
		return n, err
	}
	now := time.Now()
	if !c.clock.answered.Load() {
		c.clock.sent.Store(&now)
	} else {
		// A driver that reads in the background may have the answer before the
		// write returns; the request was sent all the same.
		c.clock.sent.CompareAndSwap(nil, &now)
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
