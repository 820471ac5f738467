package runner_test

import (
	"bufio"
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/url"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"contend/report"
	"contend/runner"
	"contend/targets"
	"contend/targets/all"
	"contend/targets/targettest/servers"
)

// What a contender's way from the gate to the kernel costs on Redis: sent-µs-p50 is the
// time from the first request sent to the last, gate-µs-p50 that from its call to its
// sending, both medians. Run on an idle machine:
//
//	go test -run xxx -bench ReleaseSkew -benchtime 500x ./runner
//
// plain writes prepared bytes to a socket of its own past the same gate: no client can
// be quicker.
func BenchmarkReleaseSkew(b *testing.B) {
	server := servers.Redis(b)
	for _, n := range []int{12, 50, 200} {
		for _, way := range []struct {
			name string
			open func() targets.Target
		}{
			{"plain", func() targets.Target { return plainTarget{openURL(b, server), hostOf(b, server)} }},
			{"staged", func() targets.Target { return openURL(b, server) }},
			{"at-once", func() targets.Target { return unstaged{openURL(b, server)} }},
		} {
			b.Run(fmt.Sprintf("%s-%d", way.name, n), func(b *testing.B) {
				skews := &skews{}
				start(b, way.open(), plan(n, max(b.N, 20))).Run(b.Context(), skews, nil)
				b.ReportMetric(micros(skews.spread), "sent-µs-p50")
				b.ReportMetric(micros(skews.way), "gate-µs-p50")
				b.ReportMetric(micros(skews.reach), "reach-µs-p50")
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}

// Contended creates a second, judged and recorded, and what share that is of what
// redis-benchmark has with as many clients. Run on an idle machine:
//
//	go test -run xxx -bench ContendedCreates -benchtime 500x ./runner
func BenchmarkContendedCreates(b *testing.B) {
	server := servers.Redis(b)
	for _, n := range []int{12, 50, 200} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			best := redisBenchmark(b, hostOf(b, server), n)
			rounds := max(b.N, 20)
			collector, err := report.NewCollector(report.RunHeader{Scenario: "fail-if-exists"})
			if err != nil {
				b.Fatal(err)
			}
			run := start(b, openURL(b, server), plan(n, rounds))
			recorder := runner.NewRecorder(io.Discard, map[string]string{"scenario": "fail-if-exists"})
			raced := &raced{}
			run.Run(b.Context(), runner.Observers{collector, recorder, raced}, nil)
			each := float64(n*(rounds-1)) / raced.last.Sub(raced.first).Seconds()
			b.ReportMetric(each, "creates/s")
			b.ReportMetric(each/best, "of-redis-benchmark")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// raced notes when the first and the last round were over.
type raced struct{ first, last time.Time }

func (r *raced) Observe(e runner.Event) {
	if e.Round == nil {
		return
	}
	if r.last = time.Now(); r.first.IsZero() {
		r.first = r.last
	}
}

// redisBenchmark gives how many SET NX a second redis-benchmark sends.
func redisBenchmark(b *testing.B, address string, clients int) float64 {
	program, err := exec.LookPath("redis-benchmark")
	if err != nil {
		b.Skip("redis-benchmark is not installed")
	}
	host, port, _ := net.SplitHostPort(address)
	output, err := exec.CommandContext(b.Context(), program, "-h", host, "-p", port, "-c", strconv.Itoa(clients), "-n", "200000",
		"-r", "1000000000", "--csv", "set", "benchmark-__rand_int__", strings.Repeat("x", 200), "nx").Output()
	if err != nil {
		b.Fatal(err)
	}
	rows, err := csv.NewReader(strings.NewReader(string(output))).ReadAll()
	if err != nil || len(rows) == 0 {
		b.Fatalf("%v: %s", err, output)
	}
	each, err := strconv.ParseFloat(rows[len(rows)-1][1], 64)
	if err != nil {
		b.Fatal(err)
	}
	return each
}

// skews notes for each round the time from the first request sent to the last, the
// longest way from a call to its sending, and the reach.
type skews struct{ spread, way, reach []time.Duration }

func (s *skews) Observe(e runner.Event) {
	r := e.Round
	if r == nil {
		return
	}
	first, last := r.Ops[0].Sent, r.Ops[0].Sent
	var won *runner.Exchange
	for i := range r.Ops {
		x := &r.Ops[i]
		first, last = min(first, x.Sent), max(last, x.Sent)
		s.way = append(s.way, x.Sent-x.Call)
		if x.Reply.Outcome == targets.OK {
			won = x
		}
	}
	s.spread = append(s.spread, last-first)
	refused := time.Duration(0)
	for i := range r.Ops {
		if x := &r.Ops[i]; x.Reply.Outcome == targets.Conflict && (refused == 0 || x.Return < refused) {
			refused = x.Return
		}
	}
	if won != nil && refused > won.Began {
		s.reach = append(s.reach, refused-won.Began)
	}
}

func micros(all []time.Duration) float64 {
	if len(all) == 0 {
		return -1
	}
	slices.Sort(all)
	return float64(all[len(all)/2]) / 1e3
}

func openURL(b *testing.B, url string) targets.Target {
	target, err := all.Open(url)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { target.Close() })
	return target
}

func hostOf(b *testing.B, raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		b.Fatal(err)
	}
	return u.Host
}

// unstaged is a target whose sessions make nothing ready ahead.
type unstaged struct{ targets.Target }

func (u unstaged) Open(ctx context.Context, n int) (targets.Session, error) {
	s, err := u.Target.Open(ctx, n)
	return struct{ targets.Session }{s}, err
}

// plainTarget is a Redis whose contenders are plain sockets.
type plainTarget struct {
	targets.Target
	address string
}

func (t plainTarget) Open(ctx context.Context, n int) (targets.Session, error) {
	s, err := t.Target.Open(ctx, n)
	if err != nil || n < 0 {
		return s, err
	}
	conn, err := net.Dial("tcp", t.address)
	return &plainSocket{s, conn, bufio.NewReader(conn)}, err
}

// plainSocket writes prepared bytes.
type plainSocket struct {
	targets.Session // for what is no race
	conn            net.Conn
	answers         *bufio.Reader
}

func (s *plainSocket) Close() error {
	s.conn.Close()
	return s.Session.Close()
}

func (s *plainSocket) Stage(_ context.Context, op targets.Op, _ targets.Release, meet func()) targets.Reply {
	value, _ := json.Marshal(op.Value)
	request := fmt.Appendf(nil, "*4\r\n$3\r\nset\r\n$%d\r\n%s\r\n$%d\r\n%s\r\n$2\r\nnx\r\n", len(op.Key), op.Key, len(value), value)
	meet()
	r := targets.Reply{Outcome: targets.OK, Attempts: 1, Began: time.Now()}
	if _, err := s.conn.Write(request); err != nil {
		return targets.Reply{Outcome: targets.NotSent}
	}
	r.Sent = time.Now()
	switch answer, err := s.answers.ReadString('\n'); {
	case err != nil:
		r.Outcome = targets.Unknown
	case strings.HasPrefix(answer, "$-1"):
		r.Outcome, r.Code = targets.Conflict, "nil"
	}
	return r
}
