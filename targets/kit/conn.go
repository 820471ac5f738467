package kit

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"net"
	"sync/atomic"
	"time"
)

// ConnectWithin bounds how long a connection may take: who dials the port of
// something else may wait for ever.
const ConnectWithin = 30 * time.Second

// ErrClosed is the error of a session whose connection is closed.
var ErrClosed = errors.New("the session's connection is closed")

// Conn is the one connection of a session. A client that would dial another in the
// middle of a race gets this one and then none.
type Conn struct {
	net.Conn
	handedOut, closed atomic.Bool
	first             []byte // what the server said first
}

// Connect dials by TCP, and by TLS where there is a configuration, with the clock next to
// the socket.
func (c *Clock) Connect(ctx context.Context, address string, secure *tls.Config) (*Conn, error) {
	conn, err := c.Dial(ctx, "tcp", address)
	if err == nil && secure != nil {
		conn, err = Secure(ctx, conn, secure)
	}
	if err != nil {
		return nil, err
	}
	return &Conn{Conn: conn}, nil
}

// Secure makes a connection one of TLS; it closes one that does not become one.
func Secure(ctx context.Context, conn net.Conn, config *tls.Config) (*tls.Conn, error) {
	secured := tls.Client(conn, config)
	if err := secured.HandshakeContext(ctx); err != nil {
		conn.Close()
		return nil, err
	}
	return secured, nil
}

// Read keeps what came first: a client may pass over a refusal that comes before it has
// asked anything, and then finds the connection closed.
func (c *Conn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if c.first == nil && n > 0 {
		c.first = bytes.Clone(b[:n])
	}
	return n, err
}

// First gives what the server said first.
func (c *Conn) First() []byte { return c.first }

// HandOut is a client's dialer: it gives the connection, once.
func (c *Conn) HandOut(context.Context, string, string) (net.Conn, error) {
	if c.handedOut.Swap(true) {
		return nil, ErrClosed
	}
	return c, nil
}

// Close implements net.Conn.
func (c *Conn) Close() error {
	c.closed.Store(true)
	return c.Conn.Close()
}

// Ended is ErrClosed where the connection is closed.
func (c *Conn) Ended() error {
	if c.closed.Load() {
		return ErrClosed
	}
	return nil
}

// CloseAtEndOf closes the connection when ctx ends, for clients that obey a deadline
// only, until that is called off.
func (c *Conn) CloseAtEndOf(ctx context.Context) (callOff func() bool) {
	return context.AfterFunc(ctx, func() { c.Close() })
}
