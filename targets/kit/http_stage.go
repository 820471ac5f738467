package kit

import (
	"bytes"
	"context"
	"net"
	"net/http/httptrace"
	"sync"
	"sync/atomic"
)

// held is the body of a request whose last byte is held back.
type held struct {
	body              *bytes.Reader
	last              atomic.Bool   // it has been read whole
	reached, released chan struct{} // all but the last byte is written; it may be
}

func hold(body []byte) *held {
	h := &held{body: bytes.NewReader(body), reached: make(chan struct{}), released: make(chan struct{})}
	h.last.Store(len(body) == 0)
	return h
}

// Read tells the connection when it has given the last byte.
func (h *held) Read(b []byte) (int, error) {
	n, err := h.body.Read(b)
	if h.body.Len() == 0 {
		h.last.Store(true)
	}
	return n, err
}

// holdingConn is a connection of HTTP/1.1 that can hold back the last byte of a
// request: that of the first Write after its body was read whole, which may be the
// headers' too.
type holdingConn struct {
	net.Conn
	clock  *Clock
	next   atomic.Pointer[held] // the request to come; nil: it is sent as it is
	once   sync.Once
	closed chan struct{}
}

func (c *holdingConn) Write(b []byte) (int, error) {
	h := c.next.Load()
	if h == nil || !h.last.Load() || len(b) == 0 {
		return c.Conn.Write(b)
	}
	c.next.Store(nil)
	all := len(b) - 1
	if all > 0 {
		if n, err := c.Conn.Write(b[:all]); err != nil {
			return n, err
		}
	}
	close(h.reached)
	select {
	case <-h.released:
	case <-c.closed:
		return all, net.ErrClosed
	}
	c.clock.lastByteNext()
	n, err := c.Conn.Write(b[all:])
	return all + n, err
}

func (c *holdingConn) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.Conn.Close()
}

// watchEarly gives a context for a request that is held back until released is closed:
// early is set where an answer begins before.
func watchEarly(ctx context.Context, released <-chan struct{}) (watched context.Context, early *atomic.Bool) {
	early = new(atomic.Bool)
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotFirstResponseByte: func() {
		early.Store(!isClosed(released))
	}}), early
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// void marks an answer that came before the request was sent whole, where there is one:
// it need not be whole itself.
func (a Answer) void(err error) (Answer, error) {
	if a.Status == 0 {
		return a, err
	}
	a.Early = true
	return a, nil
}

// Stage is Send with a halt before the last byte, which is what meet is.
func (c *http1Conn) Stage(ctx context.Context, r *Request, meet func()) (a Answer, err error) {
	for fresh := false; ; fresh = true {
		h, done := hold(r.Body), make(chan struct{})
		watched, early := watchEarly(ctx, h.released)
		c.wire.next.Store(h)
		go func() {
			defer close(done)
			a, err = c.sendOnce(watched, r, h)
		}()
		select {
		case <-h.reached:
			meet()
			if !early.Load() && !isClosed(done) {
				close(h.released)
				<-done
				return a, err
			}
			<-done
		case <-done:
		}
		if err == nil || a.begun || ctx.Err() != nil || fresh {
			// The request is still held back.
			c.conn.Close()
			return a.void(err)
		}
		if err := c.redial(ctx); err != nil {
			return a, err
		}
	}
}
