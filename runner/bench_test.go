package runner_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"contend/report"
	"contend/runner"
	"contend/scenarios"
	"contend/targets"
)

// instant is a store that answers at once: the first contender to come to a key
// wins. Whatever a run costs on it is the runner's own.
type instant struct {
	last sync.Map // key → token, of the keys being contended for
}

func (*instant) Describe() targets.Description {
	return targets.Description{Kind: "instant", Volatile: true, SentBy: "call", Guards: targets.AllGuards}
}
func (*instant) Prepare(context.Context, targets.Needs) (targets.Server, error) {
	return targets.Server{}, nil
}
func (*instant) List(context.Context, string) ([]targets.Op, int, error) { return nil, 0, nil }
func (*instant) Close() error                                            { return nil }
func (i *instant) Open(context.Context, int) (targets.Session, error)    { return i, nil }

var (
	accepted = targets.Reply{Outcome: targets.OK, Attempts: 1}
	refused  = targets.Reply{Outcome: targets.Conflict, Code: "exists", Attempts: 1}
)

// Do forgets a key when it is read: the runner has then finished with it, and a
// million of them would be counted as its own memory.
func (i *instant) Do(_ context.Context, op targets.Op) targets.Reply {
	if op.Kind == targets.Read {
		token, _ := i.last.LoadAndDelete(op.Key)
		if token == nil {
			return targets.Reply{Outcome: targets.Invalid, Attempts: 1}
		}
		return targets.Reply{Outcome: targets.OK, Attempts: 1, Record: targets.Record{Token: token.(string), Version: 1}}
	}
	if _, taken := i.last.LoadOrStore(op.Key, op.Value.Token); taken {
		return refused
	}
	return accepted
}

// silent is an observer of nothing.
type silent struct{}

func (silent) Observe(runner.Event) {}

func plan(contenders, rounds int) runner.Plan {
	return runner.Plan{Setup: runner.Setup{Run: "01BENCH", Prefix: "contend-", Timeout: 10 * time.Second, SkipControls: true},
		Contenders: contenders, Rounds: rounds, Race: scenarios.FailIfExists{}, Unguarded: true}
}

// start opens a run that ends with the test.
func start(tb testing.TB, target targets.Target, p runner.Plan) *runner.Runner {
	tb.Helper()
	r, err := runner.Open(tb.Context(), target, p)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(r.Close)
	return r
}

// The runner's own cost of an operation, from the gate to what is written down.
func BenchmarkOperation(b *testing.B) {
	const contenders = 12
	rounds := b.N/contenders + 1
	b.ReportAllocs()
	start(b, &instant{}, plan(contenders, rounds)).Run(b.Context(), silent{}, nil)
}

// A million operations, judged and counted: what stays resident.
func BenchmarkMillionOperations(b *testing.B) {
	const contenders, rounds = 12, 1_000_000/12 + 1
	for b.Loop() {
		collector, err := report.NewCollector(report.RunHeader{Scenario: "fail-if-exists"})
		if err != nil {
			b.Fatal(err)
		}
		summary := start(b, &instant{}, plan(contenders, rounds)).Run(b.Context(), collector, collector)
		r := collector.Make(summary.End())
		if r.Winners.One != rounds {
			b.Fatalf("%+v", r.Winners)
		}
	}
	b.ReportMetric(residentPeak(b), "peak-MB")
}

// residentPeak is the most memory that the process has held, in MB; 0 where the
// system does not tell.
func residentPeak(b *testing.B) float64 {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(status), "VmHWM:")
	var kilobytes float64
	if _, err := fmt.Sscan(rest, &kilobytes); err != nil {
		b.Logf("VmHWM: %v", err)
	}
	return kilobytes / 1024
}

// The gate's spread: first to last call of a round.
func BenchmarkGateSpread(b *testing.B) {
	for _, n := range []int{12, 50, 200, 1000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			spreads := &spreads{}
			start(b, &instant{}, plan(n, max(b.N, 20))).Run(b.Context(), spreads, nil)
			b.ReportMetric(float64(spreads.median())/1e3, "µs-p50")
			b.ReportMetric(0, "ns/op")
		})
	}
}
