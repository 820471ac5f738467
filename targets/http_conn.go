package targets

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"
)

// httpConn is one connection to an HTTP server, of a session's own. Nothing is
// sent twice: it keeps no pool, follows no redirect and resends nothing.
type httpConn struct {
	base  *url.URL // http or https
	conn  *http.ClientConn
	clock *sentClock
}

// answerLimit is more than any answer that a target reads.
const answerLimit = 10 << 20

func dialHTTP(ctx context.Context, base *url.URL) (*httpConn, error) {
	port := base.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[base.Scheme]
	}
	clock := &sentClock{}
	transport := &http.Transport{Protocols: new(http.Protocols), DialContext: clock.dial}
	transport.Protocols.SetHTTP1(true)
	conn, err := transport.NewClientConn(ctx, base.Scheme, net.JoinHostPort(base.Hostname(), port))
	if err != nil {
		return nil, err
	}
	return &httpConn{base, conn, clock}, nil
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
}

// post sends a JSON body once. An error comes with sent set where the request
// had been written. A connection that the server closed while it was idle is
// opened anew, as long as nothing was written to it.
func (c *httpConn) post(ctx context.Context, path, token string, body []byte) (httpAnswer, error) {
	a, err := c.postOnce(ctx, path, token, body)
	if err == nil || a.begun || ctx.Err() != nil {
		return a, err
	}
	fresh, dialErr := dialHTTP(ctx, c.base)
	if dialErr != nil {
		return a, dialErr
	}
	c.conn.Close()
	c.conn, c.clock = fresh.conn, fresh.clock
	return c.postOnce(ctx, path, token, body)
}

func (c *httpConn) postOnce(ctx context.Context, path, token string, body []byte) (a httpAnswer, err error) {
	c.clock.begin()
	defer func() { a.began, a.sent, a.begun = timeAt(&c.clock.began), c.clock.at(), c.clock.begun.Load() }()
	at := *c.base
	at.Path += path
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, at.String(), bytes.NewReader(body))
	if err != nil {
		return a, err
	}
	// Without it nobody can send the body again.
	request.GetBody = nil
	request.Header.Set("Content-Type", "application/json")
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := c.conn.RoundTrip(request)
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
