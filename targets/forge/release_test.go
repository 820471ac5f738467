package forge_test

import (
	"bytes"
	"crypto/x509"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"contend/targets"
	"contend/targets/all"
	"contend/targets/forge"
	"contend/targets/forge/emulator"
	"contend/targets/forge/server"
	"contend/targets/targettest/try"
)

// roots are the certificates of all servers of tests.
var roots = sync.OnceValue(func() *x509.CertPool {
	pool := x509.NewCertPool()
	forge.TrustHTTP(pool)
	return pool
})

// overTLS serves over TLS, by HTTP/1.1 and HTTP/2, and gives the host and port.
func overTLS(tb testing.TB, handler http.Handler, set func(*httptest.Server)) string {
	tb.Helper()
	s := httptest.NewUnstartedServer(handler)
	s.EnableHTTP2 = true
	s.Config.ErrorLog = log.New(io.Discard, "", 0) // of clients that left
	if set != nil {
		set(s)
	}
	s.StartTLS()
	tb.Cleanup(s.Close)
	roots().AddCert(s.Certificate())
	return s.Listener.Addr().String()
}

func emulated() http.Handler {
	return server.New(emulator.New(emulator.Options{Entities: server.DefaultEntities()}), server.Options{})
}

// restOver opens the REST form of Forge at a host.
func restOver(tb testing.TB, host, parameters string) targets.Target {
	tb.Helper()
	target, err := all.Open("forge+rest://" + host + parameters)
	if err != nil {
		tb.Fatal(err)
	}
	return target
}

var heldNeeds = targets.Needs{Guards: []targets.Guard{targets.IfAbsent, targets.IfVersion}, Sessions: 4, Timeout: 10 * time.Second}

// By HTTP/1.1 and by HTTP/2 requests are held back at their last byte, on a store that
// waits for it.
func TestForgeRESTHoldsLastBytesBack(t *testing.T) {
	t.Setenv("CONTEND_FORGE_TOKEN", "secret")
	host := overTLS(t, emulated(), nil)
	few := overTLS(t, emulated(), func(s *httptest.Server) {
		s.Config.HTTP2 = &http.HTTP2Config{MaxConcurrentStreams: 3}
	})
	for _, target := range []targets.Target{restOver(t, host, ""), restOver(t, host, "?http=2&create=transact"), restOver(t, few, "?http=2")} {
		if got := target.Describe().Releases; got[0] != targets.LastByte {
			t.Errorf("%s over TLS prefers %s", target.Describe().URL, got)
		}
		if err := try.Suite(t.Context(), target, heldNeeds); err != nil {
			t.Errorf("%s: %v", target.Describe().URL, err)
		}
	}
}

// unwaiting does not wait for the last byte of a body, which is a bracket.
func unwaiting(next http.Handler, answersEarly bool) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		most := make([]byte, max(0, r.ContentLength-1))
		if _, err := io.ReadFull(r.Body, most); err != nil {
			return
		}
		rest := r.Body
		r.Body = io.NopCloser(bytes.NewReader(append(most, '}')))
		if answersEarly {
			_ = http.NewResponseController(w).EnableFullDuplex()
			next.ServeHTTP(w, r)
			_ = http.NewResponseController(w).Flush()
			_, _ = io.Copy(io.Discard, rest)
			return
		}
		answer := httptest.NewRecorder()
		next.ServeHTTP(answer, r)
		_, _ = io.Copy(io.Discard, rest)
		for name, values := range answer.Header() {
			w.Header()[name] = values
		}
		w.WriteHeader(answer.Code)
		_, _ = w.Write(answer.Body.Bytes())
	})
}

// A server that executes before the last byte is found out, and its early answer is
// void.
func TestServersThatDoNotWaitForTheLastByte(t *testing.T) {
	t.Setenv("CONTEND_FORGE_TOKEN", "secret")
	for _, version := range []string{"1", "2"} {
		target := restOver(t, overTLS(t, unwaiting(emulated(), false), nil), "?http="+version)
		if err := try.Suite(t.Context(), target, heldNeeds); err == nil || !strings.Contains(err.Error(), "a create that is held back has no effect") {
			t.Errorf("http=%s: the suite finds %v", version, err)
		}
		target = restOver(t, overTLS(t, unwaiting(emulated(), true), nil), "?http="+version)
		if _, err := target.Prepare(t.Context(), heldNeeds); err != nil {
			t.Fatal(err)
		}
		s, err := target.Open(t.Context(), 0)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		op := targets.Op{Kind: targets.Write, Key: "contend-early", If: targets.Condition{Guard: targets.IfAbsent}, Value: targets.Record{Token: "t"}}
		r := s.(targets.Stager).Stage(t.Context(), op, targets.LastByte, func() { time.Sleep(50 * time.Millisecond) })
		if r.Outcome != targets.Unknown || !r.Early || r.Status != 204 {
			t.Errorf("http=%s: an early answer is %+v", version, r)
		}
	}
}

// A server that ends the connection while a request is held back may have executed it.
func TestConnectionsThatEndWhileARequestIsHeldBack(t *testing.T) {
	t.Setenv("CONTEND_FORGE_TOKEN", "secret")
	for _, version := range []string{"1", "2"} {
		var held *httptest.Server
		host := overTLS(t, emulated(), func(s *httptest.Server) { held = s })
		target := restOver(t, host, "?http="+version)
		for _, body := range []int{0, 20_000} {
			s, err := target.Open(t.Context(), 0)
			if err != nil {
				t.Fatal(err)
			}
			op := targets.Op{Kind: targets.Write, Key: "contend-cut", If: targets.Condition{Guard: targets.IfAbsent},
				Value: targets.Record{Token: "t", Body: []byte(`"` + strings.Repeat("x", body) + `"`)}}
			met := 0
			r := s.(targets.Stager).Stage(t.Context(), op, targets.LastByte, func() {
				met++
				held.CloseClientConnections()
				time.Sleep(50 * time.Millisecond)
			})
			if r.Outcome != targets.Unknown || r.Early || met != 1 {
				t.Errorf("http=%s, %d bytes: %+v, halted %d times", version, body, r, met)
			}
			// A new session, or the same on a new connection, goes on.
			r = s.(targets.Stager).Stage(t.Context(), op, targets.LastByte, func() { met++ })
			if r.Outcome != targets.OK || r.Early || met != 2 {
				t.Errorf("http=%s, %d bytes, once more: %+v, halted %d times", version, body, r, met)
			}
			if r := s.Do(t.Context(), targets.Op{Kind: targets.Delete, Key: op.Key}); r.Outcome != targets.OK {
				t.Error(r)
			}
			s.Close()
		}
	}
}

// All that is held back on a connection of HTTP/2 is released at once, and an op that is
// not sent does not keep the packet waiting.
func TestOnePacket(t *testing.T) {
	t.Setenv("CONTEND_FORGE_TOKEN", "secret")
	target := restOver(t, overTLS(t, emulated(), nil), "?http=2")
	if _, err := target.Prepare(t.Context(), heldNeeds); err != nil {
		t.Fatal(err)
	}
	const contenders = 130 // of two connections
	gate, ready, replies := make(chan struct{}), make(chan struct{}, contenders), make(chan targets.Reply, contenders)
	for i := range contenders {
		s, err := target.Open(t.Context(), i)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		go func() {
			op := targets.Op{Kind: targets.Write, Key: "contend-packet", If: targets.Condition{Guard: targets.IfAbsent}, Value: targets.Record{Token: "t"}}
			replies <- s.(targets.Stager).Stage(t.Context(), op, targets.LastByte, func() {
				ready <- struct{}{}
				<-gate
			})
		}()
	}
	for range contenders {
		<-ready
	}
	released := time.Now()
	close(gate)
	won, sent := 0, map[time.Time]int{}
	for range contenders {
		r := <-replies
		if r.Outcome == targets.OK {
			won++
		} else if r.Outcome != targets.Conflict {
			t.Errorf("%+v", r)
		}
		if r.Sent.Before(released) || !r.Began.Before(released) {
			t.Errorf("began %s, sent %s after the release", r.Began.Sub(released), r.Sent.Sub(released))
		}
		sent[r.Sent]++
	}
	if won != 1 || len(sent) != 2 {
		t.Errorf("%d won; %d packets, want 2", won, len(sent))
	}
}
