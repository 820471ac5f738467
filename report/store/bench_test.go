package store

import (
	"container/heap"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"contend/runner"
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
