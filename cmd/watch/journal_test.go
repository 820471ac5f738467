package watch

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"contend/report/store"
	"contend/runner"
	"contend/scenarios"
	"contend/targets"
	"contend/targets/all"
)

// busy is a store that others use until so many writes have been refused.
type busy struct {
	refused, until int
	err            error
	during         func(n int) // each write; may be nil
}

func (b *busy) write() error {
	if b.during != nil {
		b.during(b.refused)
	}
	if b.refused == b.until {
		return nil
	}
	b.refused++
	return fmt.Errorf("store: %w", b.err)
}

func (b *busy) Intend([]*runner.Ghost) error               { return b.write() }
func (b *busy) Note(*runner.Ghost, *runner.Exchange) error { return b.write() }

// A store that others use is waited for; one that is full is not.
func TestJournalWaits(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		for _, c := range []struct {
			name    string
			kept    busy
			err     error
			refused int
			took    time.Duration
		}{
			{"at once", busy{err: store.ErrLocked}, nil, 0, 0},
			{"in a moment", busy{until: 3, err: store.ErrLocked}, nil, 3, 3 * pause},
			{"at the last try", busy{until: tries - 1, err: store.ErrLocked}, nil, tries - 1, (tries - 1) * pause},
			{"too late", busy{until: tries, err: store.ErrLocked}, store.ErrLocked, tries, (tries - 1) * pause},
			{"full", busy{until: 1, err: store.ErrFull}, store.ErrFull, 1, 0},
		} {
			for name, write := range map[string]func(journal) error{
				"intend": func(j journal) error { return j.Intend(nil) },
				"note":   func(j journal) error { return j.Note(nil, nil) },
			} {
				kept, start := c.kept, time.Now()
				err := write(journal{t.Context(), &kept})
				if took := time.Since(start); !errors.Is(err, c.err) || kept.refused != c.refused || took != c.took {
					t.Errorf("%s, %s: refused %d times in %s: %v", name, c.name, kept.refused, took, err)
				}
			}
		}
	})
}

// Who interrupts does not wait for others; what is to be written is tried once more.
func TestJournalHearsACancel(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		for n, want := range map[int]int{0: 1, 5: 6} { // cancelled in a write
			ctx, cancel := context.WithCancel(t.Context())
			kept := busy{until: tries, err: store.ErrLocked, during: func(i int) {
				if i == n {
					cancel()
				}
			}}
			err := journal{ctx, &kept}.Intend(nil)
			if !errors.Is(err, store.ErrLocked) || kept.refused != want {
				t.Errorf("cancelled in write %d: refused %d times, %v", n, kept.refused, err)
			}
			cancel()
		}
		ctx, cancel := context.WithTimeout(t.Context(), 2*pause+pause/2)
		defer cancel()
		kept, start := busy{until: 3, err: store.ErrLocked}, time.Now()
		if err := (journal{ctx, &kept}).Intend(nil); err != nil || time.Since(start) != 2*pause+pause/2 {
			t.Errorf("cancelled while it waits: refused %d times in %s: %v", kept.refused, time.Since(start), err)
		}
	})
}

// failing is a store of results whose disk is full from the nth reply on.
type failing struct {
	n    int
	open map[string]bool // as it is on disk
}

func (f *failing) Intend(ghosts []*runner.Ghost) error {
	for _, g := range ghosts {
		f.open[g.Key] = !g.Closed
	}
	return nil
}

func (f *failing) Note(g *runner.Ghost, _ *runner.Exchange) error {
	if f.n--; f.n < 0 {
		return store.ErrFull
	}
	f.open[g.Key] = !g.Closed
	return nil
}

// outliving is an emulator whose keys outlive the process, as far as it tells.
type outliving struct{ targets.Target }

func (o outliving) Describe() targets.Description {
	d := o.Target.Describe()
	d.Volatile = false
	return d
}

// What is still to be asked about by what is on disk stays in the store, wherever
// the disk was full: who goes on would take a key that we removed for one that was
// swept.
func TestGhostsStayWhereTheirEndIsNotWritten(t *testing.T) {
	t.Parallel()
	whole := 0
	for n := range 80 {
		synctest.Test(t, func(t *testing.T) {
			target, err := all.Open("sim:?sweep=never&latency=1ms..9ms&seed=1")
			if err != nil {
				t.Fatal(err)
			}
			defer target.Close()
			s := scenarios.NewTTLGhost()
			s.Keys, s.Watch, s.Tolerance = 2, time.Second, 500*time.Millisecond
			w, err := runner.OpenWatch(t.Context(), outliving{target}, runner.WatchPlan{Setup: runner.Setup{Run: "01M8P4QDXB77DTFBJ75KQR8WX4", Prefix: "contend-", Timeout: time.Second, Seed: 1}, Sessions: 16,
				Keep: true})
			if err != nil {
				t.Fatal(err)
			}
			defer w.Close()
			fresh := s.Ghosts("01M8P4QDXB77DTFBJ75KQR8WX4", "contend-", "sim:", w.Start(), 1, true)
			journal := &failing{n: n, open: make(map[string]bool)}
			summary := w.Run(t.Context(), s, fresh, nil, journal, runs{})
			if whole = n; errors.Is(summary.Stopped, store.ErrFull) {
				whole = 0
			}
			session, err := target.Open(t.Context(), 0)
			if err != nil {
				t.Fatal(err)
			}
			for _, g := range fresh {
				r := session.Do(t.Context(), targets.Op{Kind: targets.Read, Key: g.Key, Collection: targets.Plain})
				if g.Created != nil && journal.open[g.Key] && r.Outcome != targets.OK {
					t.Errorf("full after %d replies: %s is open on disk and gone from the store", n, g.Key)
				}
			}
		})
	}
	if whole == 0 {
		t.Error("the disk was full in every run: the end of a watch is not reached")
	}
}
