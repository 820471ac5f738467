package store

import (
	"container/heap"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	"contend/report"
	"contend/runner"
	"contend/scenarios"
	"contend/targets"
)

// schedule has the ghost that is due first on top.
type schedule []*runner.Ghost

func (s schedule) Len() int { return len(s) }
func (s schedule) Less(i, j int) bool {
	return s[i].Epoch.Add(s[i].Due).Before(s[j].Epoch.Add(s[j].Due))
}
func (s schedule) Swap(i, j int) { s[i], s[j] = s[j], s[i] }
func (s *schedule) Push(g any)   { *s = append(*s, g.(*runner.Ghost)) }
func (s *schedule) Pop() any {
	last := (*s)[len(*s)-1]
	*s = (*s)[:len(*s)-1]
	return last
}

// 100,000 outstanding ghosts, all of one target and among others, are loaded
// and scheduled.
func BenchmarkOutstanding(b *testing.B) {
	s, err := Open(filepath.Join(b.TempDir(), "results.db"))
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	const outstanding = 100_000
	var ghosts []*runner.Ghost
	for n := range outstanding {
		g := ghost(n/1000, n)
		g = probed(g, exchange(g, n%300))
		ghosts = append(ghosts, g)
	}
	began := time.Now()
	if err := s.Intend(ghosts); err != nil {
		b.Fatal(err)
	}
	b.Logf("writing them took %s", time.Since(began))
	for name, target := range map[string]string{"of a target": ghosts[0].Target, "of all": ""} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				open, err := s.OpenGhosts(target)
				if err != nil || len(open) != outstanding {
					b.Fatal(len(open), err)
				}
				queue := schedule(open)
				heap.Init(&queue)
			}
		})
	}
}

// A probe is on disk before the next is sent.
func BenchmarkNote(b *testing.B) {
	s, err := Open(filepath.Join(b.TempDir(), "results.db"))
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	g := ghost(0, 0)
	e := exchange(g, 0)
	for b.Loop() {
		if err := s.Note(g, e); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkIntend(b *testing.B) {
	s, err := Open(filepath.Join(b.TempDir(), "results.db"))
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	run := 0
	for b.Loop() {
		var ghosts []*runner.Ghost
		for n := range 60 {
			g := ghost(0, n)
			g.Run = fmt.Sprint(run)
			ghosts = append(ghosts, g)
		}
		run++
		if err := s.Intend(ghosts); err != nil {
			b.Fatal(err)
		}
	}
}

// watchedRun is a night's keys as a watch leaves them, with its result.
func watchedRun(b *testing.B, random *rand.Rand, night int) (report.Result, []*runner.Ghost) {
	b.Helper()
	w := scenarios.NewTTLGhost()
	w.TTL, w.Watch = 30*time.Second, 48*time.Hour
	header := result(night).RunHeader
	header.Run, header.Scenario = fmt.Sprintf("01P%023d", night), "ttl-ghost"
	header.Params.SetOptions(w)
	ghosts := w.Ghosts(header.Run, "contend-", header.Target.URL, header.Started, random.Uint64(), true)
	for _, g := range ghosts {
		sweep, now := time.Duration(500+600*random.Float64())*time.Second, time.Duration(0)
		for {
			op, due, ok := w.Next(g)
			if !ok {
				break
			}
			now = max(now, due)
			e := runner.Exchange{Op: op, Call: now, Return: now + 40*time.Millisecond, Reply: targets.Reply{Outcome: targets.Conflict, Attempts: 1, Code: "KEY_CONFLICT", Status: 409}}
			free := g.Created != nil && now > g.Created.Return+w.TTL+sweep
			switch {
			case g.Created == nil || op.Kind == targets.Write && free:
				e.Reply.Outcome = targets.OK
			case op.Kind == targets.Read && free:
				e.Reply.Outcome = targets.Missing
			case op.Kind == targets.Read:
				e.Reply.Outcome, e.Reply.Record.Token = targets.OK, runner.Token(g.Key, 0, 1)
			}
			w.Observe(g, &e)
		}
	}
	collector, err := report.NewCollector(header)
	if err != nil {
		b.Fatal(err)
	}
	for _, g := range ghosts {
		collector.Observe(runner.Event{Ghost: g})
	}
	return collector.Make(runner.End{Requests: 1000}), ghosts
}

// A year of nights, each with three races and a watch of 20 keys in each arm, is
// read and compared.
func BenchmarkYearOfNights(b *testing.B) {
	s, err := Open(filepath.Join(b.TempDir(), "results.db"))
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	random := rand.New(rand.NewPCG(1, 2))
	const nights = 365
	for night := range nights {
		watched, ghosts := watchedRun(b, random, night)
		results := []report.Result{watched}
		for i, scenario := range []string{"fail-if-exists", "version-cas", "check-then-set"} {
			r := result(night)
			won, lost := time.Duration(50e6*(1+random.Float64())), time.Duration(40e6*(1+random.Float64()))
			r.Run, r.Scenario, r.Latency = fmt.Sprintf("%s-%d", r.Run, i), scenario,
				[]report.Latency{{Outcome: "won", At: "write", P50: &won}, {Outcome: "lost", At: "write", P50: &lost}}
			results = append(results, r)
		}
		for _, r := range results {
			if err := s.SaveResult(r); err != nil {
				b.Fatal(err)
			}
		}
		if err := s.Intend(ghosts); err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		runs, err := s.TrendRuns(Runs{})
		if err != nil {
			b.Fatal(err)
		}
		if t := report.Trend(runs); len(t.Series) != 4 || len(t.Series[0].Nights) != nights {
			b.Fatalf("%d series", len(t.Series))
		}
	}
}
