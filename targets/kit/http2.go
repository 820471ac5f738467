package kit

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// http2 is the name that ALPN has for it.
const http2 = "h2"

// MostStreams share a connection: the last frames of so many fit into one packet.
const MostStreams = 100

// http2Conn is one connection to an HTTP server that several sessions share; every
// request is a stream of it.
type http2Conn struct {
	server HTTPServer
	conn   *http.ClientConn
	wire   *packetConn
}

func dialHTTP2(ctx context.Context, server HTTPServer) (*http2Conn, error) {
	c := &http2Conn{server: server}
	var err error
	c.conn, err = dialClient(ctx, server, http2, (&net.Dialer{}).DialContext, func(conn net.Conn) net.Conn {
		c.wire = newPacketConn(conn)
		return c.wire
	})
	if err != nil {
		return nil, err
	}
	return c, nil
}

// Close implements HTTPConn.
func (c *http2Conn) Close() error { return c.conn.Close() }

// Send implements HTTPConn.
func (c *http2Conn) Send(ctx context.Context, r *Request) (Answer, error) {
	return c.send(ctx, r, bytes.NewReader(r.Body))
}

// send takes the moment before the client has the request for its beginning.
func (c *http2Conn) send(ctx context.Context, r *Request, body io.Reader) (Answer, error) {
	var wrote atomic.Pointer[time.Time]
	began := time.Now()
	traced := httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteRequest: func(of httptrace.WroteRequestInfo) {
		if now := time.Now(); of.Err == nil {
			wrote.Store(&now)
		}
	}})
	a, err := roundTrip(traced, c.conn, c.server.Base, r, body)
	a.Began, a.Sent, a.begun = began, timeAt(&wrote), true
	if err == nil && a.Sent.IsZero() {
		a.Sent = time.Now() // the answer was quicker than the note
	}
	return a, err
}

// Stage is Send with a halt before the last byte, which is what meet is. The last
// frames of all that are halted are one packet, which goes when the first is released;
// before, a PING was answered: the server has read all that came before it.
func (c *http2Conn) Stage(ctx context.Context, r *Request, meet func()) (a Answer, err error) {
	h, done := c.wire.hold(r.Body), make(chan struct{})
	watched, early := watchEarly(ctx, h.released)
	go func() {
		defer close(done)
		defer c.wire.leave(h)
		a, err = c.send(watched, r, h)
	}()
	select {
	case <-h.reached:
	case <-done:
		return a.void(err)
	}
	halted := time.Now()
	if pinged := c.wire.ping(ctx); pinged != nil {
		c.Close()
	} else if meet(); early.Load() {
		h.Close()
	} else if !isClosed(done) {
		c.wire.release()
	}
	<-done
	sent := timeAt(&h.sent)
	// Without its last byte the server had most of it, and may have done it.
	if a.Sent = cmp.Or(sent, halted); early.Load() || sent.IsZero() {
		return a.void(err)
	}
	return a, err
}

// streamed is the body of a request whose last frame is held back.
type streamed struct {
	body              *bytes.Reader
	reached, released chan struct{} // all but the last byte is written; it may be
	closed            chan struct{}
	reach, end        sync.Once
	sent              atomic.Pointer[time.Time]
}

// Read halts before the last byte: what came before is written when the client asks
// for that.
func (h *streamed) Read(b []byte) (int, error) {
	if h.body.Len() > 1 {
		return h.body.Read(b[:min(len(b), h.body.Len()-1)])
	}
	h.reach.Do(func() { close(h.reached) })
	select {
	case <-h.released:
	case <-h.closed:
		return 0, net.ErrClosed
	}
	n, _ := h.body.Read(b)
	return n, io.EOF
}

func (h *streamed) Close() error {
	h.end.Do(func() { close(h.closed) })
	return nil
}

// packetConn is a connection of HTTP/2 that writes the last frames of requests in one
// packet.
type packetConn struct {
	net.Conn
	in     frames
	pings  sync.Mutex // one is on its way at a time
	pinged time.Time  // when the last was that was answered
	ack    chan struct{}
	closed chan struct{}
	once   sync.Once

	mu      sync.Mutex
	out     frames
	owed    bool // a PING is to be written where a frame ends
	halted  []*streamed
	awaited []*streamed // what is gathered is written when all of them are in it
	packet  []byte
	ends    int // of requests in the packet
}

func newPacketConn(conn net.Conn) *packetConn {
	c := &packetConn{Conn: conn, ack: make(chan struct{}, 1), closed: make(chan struct{})}
	c.out.left = len("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
	return c
}

func (c *packetConn) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.Conn.Close()
}

func (c *packetConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.in.follow(b[:n], func(kind, flags byte) {
		if kind == framePing && flags&flagAck != 0 {
			select {
			case c.ack <- struct{}{}:
			default:
			}
		}
	})
	return n, err
}

func (c *packetConn) Write(b []byte) (n int, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.awaited) == 0 {
		n, err = c.Conn.Write(b)
		c.out.follow(b[:n], nil)
		if err == nil {
			err = c.payPing()
		}
		return n, err
	}
	c.packet = append(c.packet, b...)
	c.out.follow(b, func(kind, flags byte) {
		if kind == frameData && flags&flagEndStream != 0 {
			c.ends++
		}
	})
	return len(b), c.complete()
}

// complete writes the packet if all are in it that are awaited.
func (c *packetConn) complete() error {
	if c.ends < len(c.awaited) || len(c.packet) == 0 {
		return nil
	}
	_, err := c.Conn.Write(c.packet)
	if now := time.Now(); err == nil {
		for _, h := range c.awaited {
			h.sent.Store(&now)
		}
	}
	c.awaited, c.packet, c.ends = nil, c.packet[:0], 0
	return err
}

// hold makes the body of a request that a packet is to complete.
func (c *packetConn) hold(body []byte) *streamed {
	h := &streamed{body: bytes.NewReader(body), reached: make(chan struct{}), released: make(chan struct{}), closed: make(chan struct{})}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.halted = append(c.halted, h)
	return h
}

// release releases whoever has come to the halt.
func (c *packetConn) release() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.halted = slices.DeleteFunc(c.halted, func(h *streamed) bool {
		if !isClosed(h.reached) {
			return false
		}
		c.awaited = append(c.awaited, h)
		close(h.released)
		return true
	})
}

// leave tells that a request is over: a packet need not wait for it.
func (c *packetConn) leave(h *streamed) {
	c.mu.Lock()
	defer c.mu.Unlock()
	is := func(other *streamed) bool { return other == h }
	c.halted = slices.DeleteFunc(c.halted, is)
	if slices.ContainsFunc(c.awaited, is) {
		c.awaited = slices.DeleteFunc(c.awaited, is)
		_ = c.complete()
	}
}

// ping asks the server whether it has read all that was written before; an answer to a
// PING of somebody else's that was sent later will do.
func (c *packetConn) ping(ctx context.Context) error {
	from := time.Now()
	c.pings.Lock()
	defer c.pings.Unlock()
	if c.pinged.After(from) {
		return nil
	}
	sent := time.Now()
	c.mu.Lock()
	c.owed = true
	err := c.payPing()
	c.mu.Unlock()
	if err != nil {
		return err
	}
	select {
	case <-c.ack:
		c.pinged = sent
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-c.closed:
		return net.ErrClosed
	}
}

// payPing writes the PING that is owed, unless a frame has to be ended first.
func (c *packetConn) payPing() error {
	if !c.owed || !c.out.whole() {
		return nil
	}
	c.owed = false
	_, err := c.Conn.Write([]byte{0, 0, 8, framePing, 0, 0, 0, 0, 0, 'c', 'o', 'n', 't', 'e', 'n', 'd', 0})
	return err
}

// Of RFC 9113, section 6.
const (
	frameData     = 0x0
	framePing     = 0x6
	flagEndStream = 0x1
	flagAck       = 0x1
)

// frames follows a stream of frames, however it is cut.
type frames struct {
	header [9]byte
	have   int // of the header of the next
	left   int // of what follows the header
}

// whole tells whether a frame has just ended.
func (f *frames) whole() bool { return f.have == 0 && f.left == 0 }

// follow takes what comes next; each is shown the type and the flags of every header.
func (f *frames) follow(b []byte, each func(kind, flags byte)) {
	for len(b) > 0 {
		if f.left > 0 {
			n := min(f.left, len(b))
			f.left, b = f.left-n, b[n:]
			continue
		}
		n := copy(f.header[f.have:], b)
		f.have, b = f.have+n, b[n:]
		if f.have == len(f.header) {
			f.have, f.left = 0, int(binary.BigEndian.Uint32(f.header[:])>>8)
			if each != nil {
				each(f.header[3], f.header[4])
			}
		}
	}
}

// SharedHTTP2 are connections that the contenders share, in the order of their numbers.
type SharedHTTP2 struct {
	Server HTTPServer
	mu     sync.Mutex
	most   int // sessions of one; 0: MostStreams
	lines  map[int]*sharedLine
}

// sharedLine is a connection for as long as a session has it.
type sharedLine struct {
	*http2Conn
	users int
}

// DialOwn connects by HTTP/2 for one session alone. Its answers tell how many
// streams the server allows.
func (s *SharedHTTP2) DialOwn(ctx context.Context) (HTTPConn, error) {
	c, err := dialHTTP2(ctx, s.Server)
	if err != nil {
		return nil, err
	}
	return &ownHTTP2{c, s}, nil
}

// ownHTTP2 learns how many streams the server allows, from the first answer.
type ownHTTP2 struct {
	*http2Conn
	of *SharedHTTP2
}

// Send implements HTTPConn.
func (c *ownHTTP2) Send(ctx context.Context, r *Request) (Answer, error) {
	a, err := c.http2Conn.Send(ctx, r)
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	if err == nil && c.of.most == 0 { // once: it says who shares a connection with whom
		c.of.most = max(1, min(MostStreams, c.conn.Available()))
	}
	return a, err
}

// take gives one share of a connection, which is made anew where the one before is at
// its end.
func (s *SharedHTTP2) take(ctx context.Context, contender int) (at int, line *sharedLine, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lines == nil {
		s.lines = make(map[int]*sharedLine)
	}
	at = contender / cmp.Or(s.most, MostStreams)
	if line = s.lines[at]; line == nil || line.conn.Err() != nil {
		conn, err := dialHTTP2(ctx, s.Server)
		if err != nil {
			return at, nil, err
		}
		line = &sharedLine{http2Conn: conn}
		s.lines[at] = line
	}
	line.users++
	return at, line, nil
}

// give takes a share back, and closes what nobody has a share of.
func (s *SharedHTTP2) give(at int, line *sharedLine) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if line.users--; line.users > 0 {
		return nil
	}
	if s.lines[at] == line {
		delete(s.lines, at)
	}
	return line.http2Conn.Close()
}

// share is what one session has of a connection.
type share struct {
	of        *SharedHTTP2
	contender int
	at        int
	line      *sharedLine // nil: closed
}

// Dial gives a contender its share of a connection.
func (s *SharedHTTP2) Dial(ctx context.Context, contender int) (HTTPConn, error) {
	at, line, err := s.take(ctx, contender)
	if err != nil {
		return nil, err
	}
	return &share{s, contender, at, line}, nil
}

// renew changes a connection that the server has closed.
func (s *share) renew(ctx context.Context) error {
	switch {
	case s.line == nil:
		return net.ErrClosed
	case s.line.conn.Err() == nil:
		return nil
	}
	at, line, err := s.of.take(ctx, s.contender)
	if err == nil {
		s.of.give(s.at, s.line)
		s.at, s.line = at, line
	}
	return err
}

// Send implements HTTPConn.
func (s *share) Send(ctx context.Context, r *Request) (Answer, error) {
	if err := s.renew(ctx); err != nil {
		return Answer{}, err
	}
	return s.line.Send(ctx, r)
}

// Stage implements HTTPConn.
func (s *share) Stage(ctx context.Context, r *Request, meet func()) (Answer, error) {
	if err := s.renew(ctx); err != nil {
		return Answer{}, err
	}
	return s.line.Stage(ctx, r, meet)
}

// Close implements HTTPConn.
func (s *share) Close() (err error) {
	if s.line != nil {
		err = s.of.give(s.at, s.line)
		s.line = nil
	}
	return err
}
