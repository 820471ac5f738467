package kit

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"contend/targets"
)

// HTTPServer is what connections are made to.
type HTTPServer struct {
	Base *url.URL    // http or https
	TLS  *tls.Config // for https; nil: the default
}

// Request is one request to an HTTP server.
type Request struct {
	Method string // "": POST
	Path   string // below the server's base; with what follows ?, if anything does
	Header http.Header
	Body   []byte
	// Sign sees the request as it will be sent, and adds what proves who sends it.
	Sign func(r *http.Request, body []byte) error
}

// JSON is the POST of a JSON body, with a bearer token unless that is empty.
func JSON(path, token string, body []byte) *Request {
	header := http.Header{"Content-Type": {"application/json"}}
	if token != "" {
		header.Set("Authorization", "Bearer "+token)
	}
	return &Request{Path: path, Header: header, Body: body}
}

// HTTPConn is a way to an HTTP server that one session has.
type HTTPConn interface {
	// Send sends a request once. An error comes with Answer.Sent set where the request
	// had been written.
	Send(ctx context.Context, r *Request) (Answer, error)
	// Stage is Send that calls meet before the last byte of the body, and sends that when
	// meet has returned. Where it fails before, meet is not called.
	Stage(ctx context.Context, r *Request, meet func()) (Answer, error)
	Close() error
}

// http1Conn is one connection to an HTTP server, of a session's own. Nothing is
// sent twice: it keeps no pool, follows no redirect and resends nothing.
type http1Conn struct {
	server HTTPServer
	conn   *http.ClientConn
	wire   *holdingConn
	clock  *Clock
}

// answerLimit is more than any answer that a target reads.
const answerLimit = 10 << 20

// DialHTTP connects by HTTP/1.1, on a connection of the session's own.
func DialHTTP(ctx context.Context, server HTTPServer) (HTTPConn, error) {
	c, err := dialHTTP1(ctx, server)
	if err != nil {
		return nil, err
	}
	return c, nil
}

func dialHTTP1(ctx context.Context, server HTTPServer) (*http1Conn, error) {
	c := &http1Conn{server: server, clock: &Clock{}}
	var err error
	c.conn, err = dialClient(ctx, server, "http/1.1", c.clock.Dial, func(conn net.Conn) net.Conn {
		c.wire = &holdingConn{Conn: conn, clock: c.clock, closed: make(chan struct{})}
		return c.wire
	})
	if err != nil {
		return nil, err
	}
	return c, nil
}

type dialer func(ctx context.Context, network, address string) (net.Conn, error)

// dialClient connects by the protocol, as ALPN names it; wrap sees what it writes and
// reads before TLS does.
func dialClient(ctx context.Context, server HTTPServer, protocol string, dial dialer, wrap func(net.Conn) net.Conn) (*http.ClientConn, error) {
	base := server.Base
	port := base.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[base.Scheme]
	}
	connect := func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err == nil && base.Scheme == "https" {
			conn, err = server.secure(ctx, conn, protocol)
		}
		if err != nil {
			return nil, err
		}
		return wrap(conn), nil
	}
	transport := &http.Transport{Protocols: new(http.Protocols), DialContext: connect, DialTLSContext: connect}
	// That of a connection which the transport does not know to be TLS is what it is
	// told: HTTP/1.1, or HTTP/2 without asking.
	transport.Protocols.SetHTTP1(protocol != http2)
	transport.Protocols.SetUnencryptedHTTP2(protocol == http2)
	return transport.NewClientConn(ctx, base.Scheme, net.JoinHostPort(base.Hostname(), port))
}

// secure makes the connection one of TLS that speaks the protocol.
func (s HTTPServer) secure(ctx context.Context, conn net.Conn, protocol string) (net.Conn, error) {
	config := s.TLS.Clone()
	if config == nil {
		config = &tls.Config{}
	}
	config.ServerName, config.NextProtos = s.Base.Hostname(), []string{protocol}
	secured, err := Secure(ctx, conn, config)
	if err != nil {
		return nil, err
	}
	if chosen := secured.ConnectionState().NegotiatedProtocol; protocol == http2 && chosen != http2 {
		conn.Close()
		return nil, fmt.Errorf("the server does not speak HTTP/2 (by ALPN it chose %q): leave http=2 out of the URL", chosen)
	}
	return secured, nil
}

// Close implements HTTPConn.
func (c *http1Conn) Close() error { return c.conn.Close() }

// Answer is a whole answer. Sent is when the request was written; zero: it was not, as a
// whole.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte
	Began  time.Time // before the first byte of the request was written
	Sent   time.Time
	Early  bool // it came before the last byte of the request was written
	begun  bool // a part of the request was written
}

// Stamp tells a reply when its request was sent.
func (a *Answer) Stamp(r *targets.Reply) {
	r.Began, r.Sent, r.Attempts, r.RoundTrips = a.Began, a.Sent, 1, 1
}

// Lost is the reply where no answer came.
func (a *Answer) Lost(err error) targets.Reply {
	r := Lost(err, a.Sent)
	r.Began = a.Began
	return r
}

// RetryAfter reads how long a throttled client is to wait, from the first of the headers
// that tells it in seconds; 0: none does.
func (a *Answer) RetryAfter(headers ...string) time.Duration {
	for _, name := range append([]string{"Retry-After"}, headers...) {
		if seconds, err := strconv.ParseFloat(a.Header.Get(name), 64); err == nil && seconds > 0 && seconds < 1e6 {
			return time.Duration(seconds * float64(time.Second))
		}
	}
	return 0
}

// Send sends a request once. A connection that the server closed while it was idle is
// opened anew, as long as nothing was written to it.
func (c *http1Conn) Send(ctx context.Context, r *Request) (Answer, error) {
	a, err := c.sendOnce(ctx, r, bytes.NewReader(r.Body))
	if err == nil || a.begun || ctx.Err() != nil {
		return a, err
	}
	if err := c.redial(ctx); err != nil {
		return a, err
	}
	return c.sendOnce(ctx, r, bytes.NewReader(r.Body))
}

func (c *http1Conn) redial(ctx context.Context) error {
	fresh, err := dialHTTP1(ctx, c.server)
	if err != nil {
		return err
	}
	c.conn.Close()
	*c = *fresh
	return nil
}

func (c *http1Conn) sendOnce(ctx context.Context, r *Request, body io.Reader) (a Answer, err error) {
	c.clock.Begin()
	defer func() { a.Began, a.Sent, a.begun = timeAt(&c.clock.began), c.clock.Sent(), c.clock.begun.Load() }()
	return roundTrip(ctx, c.conn, c.server.Base, r, body)
}

// roundTrip sends a request, once; body reads its body.
func roundTrip(ctx context.Context, conn *http.ClientConn, base *url.URL, r *Request, body io.Reader) (a Answer, err error) {
	at := *base
	path, query, _ := strings.Cut(r.Path, "?")
	at.Path += path
	at.RawQuery = query
	request, err := http.NewRequestWithContext(ctx, cmp.Or(r.Method, http.MethodPost), at.String(), body)
	if err != nil {
		return a, err
	}
	request.ContentLength = int64(len(r.Body))
	// Without it nobody can send the body again.
	request.GetBody = nil
	maps.Copy(request.Header, r.Header)
	if r.Sign != nil {
		if err := r.Sign(request, r.Body); err != nil {
			return a, err
		}
	}
	response, err := conn.RoundTrip(request)
	if err != nil {
		return a, err
	}
	defer response.Body.Close()
	a.Status, a.Header = response.StatusCode, response.Header
	a.Body, err = io.ReadAll(io.LimitReader(response.Body, answerLimit+1))
	if err == nil && len(a.Body) > answerLimit {
		err = fmt.Errorf("an answer of more than %d bytes", answerLimit)
	}
	return a, err
}

// IsLoopback tells whether a host is this machine.
func IsLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
