package targets

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"
)

// httpLine is a way to an HTTP server that one session has.
type httpLine interface {
	// post sends a JSON body once.
	post(ctx context.Context, path, token string, body []byte) (httpAnswer, error)
	// stage is post that calls meet before the last byte, and sends that when meet has
	// returned. Where it fails before, meet is not called.
	stage(ctx context.Context, path, token string, body []byte, meet func()) (httpAnswer, error)
	close() error
}

// httpConn is one connection to an HTTP server, of a session's own. Nothing is
// sent twice: it keeps no pool, follows no redirect and resends nothing.
type httpConn struct {
	base  *url.URL // http or https
	conn  *http.ClientConn
	wire  *holdingConn
	clock *sentClock
}

// answerLimit is more than any answer that a target reads.
const answerLimit = 10 << 20

// httpTLS is what TLS connections are made with.
var httpTLS = &tls.Config{}

func dialHTTP(ctx context.Context, base *url.URL) (*httpConn, error) {
	c := &httpConn{base: base, clock: &sentClock{}}
	var err error
	c.conn, err = dialClient(ctx, base, "http/1.1", c.clock.dial, func(conn net.Conn) net.Conn {
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
func dialClient(ctx context.Context, base *url.URL, protocol string, dial dialer, wrap func(net.Conn) net.Conn) (*http.ClientConn, error) {
	port := base.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[base.Scheme]
	}
	connect := func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err == nil && base.Scheme == "https" {
			conn, err = secure(ctx, conn, base.Hostname(), protocol)
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
func secure(ctx context.Context, conn net.Conn, host, protocol string) (net.Conn, error) {
	config := httpTLS.Clone()
	config.ServerName, config.NextProtos = host, []string{protocol}
	secured := tls.Client(conn, config)
	err := secured.HandshakeContext(ctx)
	if chosen := secured.ConnectionState().NegotiatedProtocol; err == nil && protocol == http2 && chosen != http2 {
		err = fmt.Errorf("the server does not speak HTTP/2 (by ALPN it chose %q): leave http=2 out of the URL", chosen)
	}
	if err != nil {
		conn.Close()
		return nil, err
	}
	return secured, nil
}

func (c *httpConn) close() error { return c.conn.Close() }

// httpAnswer is a whole answer. sent is when the request was written; zero: it
// was not, as a whole.
type httpAnswer struct {
	status int
	header http.Header
	body   []byte
	began  time.Time // before the first byte of it was
	sent   time.Time
	begun  bool // a part of the request was written
	early  bool // it came before the last byte of the request was written
}

// post sends a JSON body once. An error comes with sent set where the request
// had been written. A connection that the server closed while it was idle is
// opened anew, as long as nothing was written to it.
func (c *httpConn) post(ctx context.Context, path, token string, body []byte) (httpAnswer, error) {
	a, err := c.postOnce(ctx, path, token, bytes.NewReader(body), len(body))
	if err == nil || a.begun || ctx.Err() != nil {
		return a, err
	}
	if err := c.redial(ctx); err != nil {
		return a, err
	}
	return c.postOnce(ctx, path, token, bytes.NewReader(body), len(body))
}

func (c *httpConn) redial(ctx context.Context) error {
	fresh, err := dialHTTP(ctx, c.base)
	if err != nil {
		return err
	}
	c.conn.Close()
	*c = *fresh
	return nil
}

func (c *httpConn) postOnce(ctx context.Context, path, token string, body io.Reader, size int) (a httpAnswer, err error) {
	c.clock.begin()
	defer func() { a.began, a.sent, a.begun = timeAt(&c.clock.began), c.clock.at(), c.clock.begun.Load() }()
	return roundTrip(ctx, c.conn, c.base, path, token, body, size)
}

// roundTrip posts a JSON body, once.
func roundTrip(ctx context.Context, conn *http.ClientConn, base *url.URL, path, token string, body io.Reader, size int) (a httpAnswer, err error) {
	at := *base
	at.Path += path
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, at.String(), body)
	if err != nil {
		return a, err
	}
	request.ContentLength = int64(size)
	// Without it nobody can send the body again.
	request.GetBody = nil
	request.Header.Set("Content-Type", "application/json")
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := conn.RoundTrip(request)
	if err != nil {
		return a, err
	}
	defer response.Body.Close()
	a.status, a.header = response.StatusCode, response.Header
	a.body, err = io.ReadAll(io.LimitReader(response.Body, answerLimit+1))
	if err == nil && len(a.body) > answerLimit {
		err = fmt.Errorf("an answer of more than %d bytes", answerLimit)
	}
	return a, err
}
