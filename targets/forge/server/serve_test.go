package server

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// pipes is a listener without a network, whose time is that of its bubble.
type pipes struct {
	conns chan net.Conn
	once  sync.Once
	done  chan struct{}
}

func newPipes() *pipes { return &pipes{conns: make(chan net.Conn), done: make(chan struct{})} }

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	p.once.Do(func() { close(p.done) })
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipe", Net: "unix"} }

func (p *pipes) dial() net.Conn {
	client, server := net.Pipe()
	p.conns <- server
	return client
}

func TestServeCutsSlowClientsOff(t *testing.T) {
	for name, c := range map[string]struct {
		sent string
		want string // of the answer
		took time.Duration
	}{
		"no request":   {"", "", readTimeout},
		"half headers": {"POST /kvs/api/v1/set HTTP/1.1\r\nHost: x\r\n", "", headerTimeout},
		"half body":    {"POST /kvs/api/v1/set HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{\"key\":", "did not arrive whole and in time", readTimeout},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, stop := context.WithCancel(t.Context())
				p, ended := newPipes(), make(chan error, 1)
				go func() { ended <- Serve(ctx, p, newHandler(Options{})) }()
				began := time.Now()
				client := p.dial()
				defer client.Close()
				io.WriteString(client, c.sent)
				answer, err := io.ReadAll(client)
				if err != nil || !strings.Contains(string(answer), c.want) {
					t.Errorf("got %q, %v", answer, err)
				}
				if took := time.Since(began); took > c.took+time.Second {
					t.Errorf("cut off after %s", took)
				}
				stop()
				if err := <-ended; err != nil {
					t.Errorf("the server ended with %v", err)
				}
			})
		})
	}
}

func TestServeCutsOffWhoDoesNotTakeTheAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		p, ended := newPipes(), make(chan error, 1)
		go func() { ended <- Serve(ctx, p, newHandler(Options{})) }()
		client := p.dial()
		defer client.Close()
		ask := func() {
			t.Helper()
			if _, err := io.WriteString(client, "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
				t.Error(err)
			}
		}
		ask()
		time.Sleep(writeTimeout - time.Second)
		answers := bufio.NewReader(client)
		if r, err := http.ReadResponse(answers, nil); err != nil || r.StatusCode != 200 {
			t.Errorf("in time: %v, %v", r, err)
		}
		answers.Discard(answers.Buffered())
		time.Sleep(writeTimeout)
		ask() // the deadline of the first answer has passed
		if r, err := http.ReadResponse(answers, nil); err != nil || r.StatusCode != 200 {
			t.Errorf("on the same connection: %v, %v", r, err)
		}
		answers.Discard(answers.Buffered())
		ask()
		time.Sleep(writeTimeout + time.Second)
		if r, err := http.ReadResponse(answers, nil); err == nil {
			t.Errorf("too late: %v", r)
		}
		stop()
		if err := <-ended; err != nil {
			t.Errorf("the server ended with %v", err)
		}
	})
}

func TestServeFinishesRequestsBeforeItStops(t *testing.T) {
	for name, c := range map[string]struct{ takes, stopped time.Duration }{
		"in time": {time.Second, time.Second},
		"never":   {time.Hour, stopTimeout},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begun := make(chan struct{})
				slow := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					close(begun)
					if sleep(r.Context(), c.takes) {
						fmt.Fprint(w, "done")
					}
				})
				ctx, stop := context.WithCancel(t.Context())
				p, ended := newPipes(), make(chan error, 1)
				go func() { ended <- Serve(ctx, p, slow) }()
				client := p.dial()
				defer client.Close()
				io.WriteString(client, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
				<-begun
				began := time.Now()
				stop()
				r, err := http.ReadResponse(bufio.NewReader(client), nil)
				if inTime := c.takes < stopTimeout; inTime != (err == nil) {
					t.Errorf("the request got %v, %v", r, err)
				}
				if err := <-ended; err != nil {
					t.Errorf("the server ended with %v", err)
				}
				if took := time.Since(began); took < c.stopped || took > c.stopped+time.Second {
					t.Errorf("stopped after %s", took)
				}
			})
		})
	}
}

func TestServeTellsWhyItCannot(t *testing.T) {
	p := newPipes()
	p.Close()
	if err := Serve(t.Context(), p, newHandler(Options{})); err == nil {
		t.Error("a closed listener is no error")
	}
}
