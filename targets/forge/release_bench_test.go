package forge_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"contend/targets"
)

// How far apart requests of contenders arrive at a server that is far away, over TLS:
// 20 ms, and on every way a jitter of its own from 0.1 to 8 ms. arrival-ms-p50 is the
// time from the first arrival to the last, reach-ms-p50 that from the first byte of the
// request that won to the first refusal; times-tighter compares the arrival with the
// default client's. Run on an idle machine:
//
//	go test -run xxx -bench Arrival -benchtime 20x ./targets
//
// default is http.Client as it comes, which keeps two connections; warm keeps one for
// each contender, and sends at the gate.
func BenchmarkArrival(b *testing.B) {
	b.Setenv("CONTEND_FORGE_TOKEN", "secret")
	for _, n := range []int{12, 30, 100} {
		var usual float64
		for _, way := range []struct {
			name, parameters string
			how              targets.Release
		}{{"default", "", ""}, {"warm", "", targets.Gate}, {"last-byte", "", targets.LastByte}, {"one-packet", "?http=2", targets.LastByte}} {
			b.Run(fmt.Sprintf("%d/%s", n, way.name), func(b *testing.B) {
				site := newArrivals()
				address := distant(b, overTLS(b, site, func(s *httptest.Server) { s.EnableHTTP2 = way.parameters != "" }))
				var contend func(key string) time.Duration
				if way.how == "" {
					contend = defaultClients(b, address, n)
				} else {
					contend = stagedClients(b, restOver(b, address, way.parameters), n, way.how)
				}
				rounds := max(b.N, 5)
				var reaches []time.Duration
				for i := range rounds {
					reaches = append(reaches, contend(fmt.Sprintf("contend-r%d", i)))
				}
				spread := milliseconds(site.spreads(b, rounds, n))
				if way.how == "" {
					usual = spread
				} else {
					b.ReportMetric(usual/spread, "times-tighter")
				}
				b.ReportMetric(spread, "arrival-ms-p50")
				b.ReportMetric(milliseconds(reaches), "reach-ms-p50")
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}

func milliseconds(all []time.Duration) float64 {
	if len(all) == 0 {
		return -1
	}
	slices.Sort(all)
	return float64(all[len(all)/2]) / 1e6
}

// arrivals is a server that has every first create of a key, and notes when whole
// requests have come.
type arrivals struct {
	mu sync.Mutex
	at map[string][]time.Time
}

func newArrivals() *arrivals { return &arrivals{at: map[string][]time.Time{}} }

func (a *arrivals) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	now := time.Now()
	if err != nil {
		return
	}
	_, key, _ := strings.Cut(string(body), `"key":"`)
	key, _, _ = strings.Cut(key, `"`)
	w.Header().Set("Content-Type", "application/json")
	if !strings.HasPrefix(key, "contend-r") {
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, `{"code":"KEY_NOT_FOUND","message":"no such key"}`)
		return
	}
	a.mu.Lock()
	a.at[key] = append(a.at[key], now)
	first := len(a.at[key]) == 1
	a.mu.Unlock()
	if first {
		w.Header().Del("Content-Type")
		w.WriteHeader(http.StatusNoContent)
		return
	}
	w.WriteHeader(http.StatusConflict)
	_, _ = io.WriteString(w, `{"code":"KEY_CONFLICT","message":"it is there"}`)
}

// spreads gives the time from the first arrival of each round to the last.
func (a *arrivals) spreads(b *testing.B, rounds, n int) (all []time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for key, at := range a.at {
		if len(at) != n {
			b.Fatalf("%d requests for %s, want %d", len(at), key, n)
		}
		all = append(all, slices.MaxFunc(at, time.Time.Compare).Sub(slices.MinFunc(at, time.Time.Compare)))
	}
	if len(all) != rounds {
		b.Fatalf("%d rounds arrived, want %d", len(all), rounds)
	}
	return all
}

// round is what its contenders saw: when the winner began, and the first was refused.
type round struct {
	mu           sync.Mutex
	won, refused time.Time
}

func (r *round) note(won bool, began time.Time) {
	now := time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	if won {
		r.won = began
	} else if r.refused.IsZero() {
		r.refused = now
	}
}

// stagedClients gives what releases as many sessions of the target at once.
func stagedClients(b *testing.B, target targets.Target, n int, how targets.Release) func(key string) time.Duration {
	if _, err := target.Prepare(b.Context(), heldNeeds); err != nil {
		b.Fatal(err)
	}
	sessions := make([]targets.Stager, n)
	for i := range sessions {
		s, err := target.Open(b.Context(), i)
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { s.Close() })
		sessions[i] = s.(targets.Stager)
	}
	return func(key string) time.Duration {
		var ready, done sync.WaitGroup
		gate, seen := make(chan struct{}), &round{}
		ready.Add(n)
		for i, s := range sessions {
			done.Go(func() {
				op := targets.Op{Kind: targets.Write, Key: key, If: targets.Condition{Guard: targets.IfAbsent}, Value: targets.Record{Token: fmt.Sprint(i)}}
				r := s.Stage(b.Context(), op, how, func() {
					ready.Done()
					<-gate
				})
				if r.Outcome != targets.OK && r.Outcome != targets.Conflict {
					b.Errorf("%+v", r)
				}
				seen.note(r.Outcome == targets.OK, r.Began)
			})
		}
		ready.Wait()
		close(gate)
		done.Wait()
		return seen.refused.Sub(seen.won)
	}
}

// defaultClients gives what posts by one http.Client as often at once.
func defaultClients(b *testing.B, address string, n int) func(key string) time.Duration {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig = &tls.Config{RootCAs: roots()}
	b.Cleanup(transport.CloseIdleConnections)
	client := &http.Client{Transport: transport}
	return func(key string) time.Duration {
		var done sync.WaitGroup
		gate, seen := make(chan struct{}), &round{}
		for range n {
			done.Go(func() {
				<-gate
				began := time.Now()
				response, err := client.Post("https://"+address+"/set", "application/json", strings.NewReader(`{"key":"`+key+`"}`))
				if err != nil {
					b.Error(err)
					return
				}
				_, _ = io.Copy(io.Discard, response.Body)
				response.Body.Close()
				seen.note(response.StatusCode == http.StatusNoContent, began)
			})
		}
		close(gate)
		done.Wait()
		return seen.refused.Sub(seen.won)
	}
}

// distant gives the address of a proxy that is 20 ms away from the server, each way.
func distant(b *testing.B, address string) string {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	b.Cleanup(func() {
		stop()
		listener.Close()
	})
	go func() {
		for {
			near, err := listener.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("tcp", address)
			if err != nil {
				near.Close()
				return
			}
			context.AfterFunc(ctx, func() { near.Close(); far.Close() })
			go carry(near, far)
			go carry(far, near)
		}
	}()
	return listener.Addr().String()
}

// carry brings over what comes, later, and in order.
func carry(from, to net.Conn) {
	type parcel struct {
		due   time.Time
		bytes []byte
	}
	parcels := make(chan parcel, 10_000)
	go func() {
		defer to.Close()
		for p := range parcels {
			time.Sleep(time.Until(p.due))
			if _, err := to.Write(p.bytes); err != nil {
				return
			}
		}
	}()
	defer close(parcels)
	for {
		b := make([]byte, 32<<10)
		n, err := from.Read(b)
		if n > 0 {
			jitter := 100*time.Microsecond + rand.N(7900*time.Microsecond)
			parcels <- parcel{time.Now().Add(20*time.Millisecond + jitter), b[:n]}
		}
		if err != nil {
			return
		}
	}
}
