package runner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"contend/targets"
)

// course of a key: it is created, and then read at these instants since its epoch.
type asking struct {
	ages    []time.Duration
	notes   *[]string
	started time.Time
}

func (a asking) Next(g *Ghost) (op targets.Op, due time.Duration, ok bool) {
	switch {
	case g.Closed:
		return op, 0, false
	case g.Created == nil:
		return targets.Op{Kind: targets.Write, Key: g.Key, Collection: targets.Plain}, g.Terms.Offset, true
	default:
		return targets.Op{Kind: targets.Read, Key: g.Key, Collection: targets.Plain}, a.ages[g.Probes], true
	}
}

func (a asking) Observe(g *Ghost, e *Exchange) {
	a.note("observed", g)
	if g.Created == nil {
		g.Created = &Observation{Call: e.Call, Return: e.Return}
		return
	}
	g.Probes++
	g.Closed = g.Probes == len(a.ages)
}

func (a asking) note(what string, g *Ghost) {
	if a.notes != nil {
		*a.notes = append(*a.notes, fmt.Sprintf("%s %s %d", what, g.Key, g.Probes))
	}
}

// diary is a journal that takes its time.
type diary struct {
	asking
	takes time.Duration
	fails func(g *Ghost) error
}

func (d diary) Intend(ghosts []*Ghost) error {
	*d.notes = append(*d.notes, fmt.Sprintf("intended %d", len(ghosts)))
	return nil
}

func (d diary) Note(g *Ghost, _ *Exchange) error {
	time.Sleep(d.takes)
	d.note("noted", g)
	if d.fails != nil {
		return d.fails(g)
	}
	return nil
}

// watched is a watch of so many keys.
type watched struct {
	plan    WatchPlan
	keys    int
	ages    []time.Duration
	journal Journal
	target  *stand
	ctx     context.Context
	taken   []*Ghost
	notes   []string
}

func (w *watched) run(t *testing.T) ([]*Ghost, Summary) {
	t.Helper()
	if w.target == nil {
		w.target = &stand{}
	}
	if w.ctx == nil {
		w.ctx = t.Context()
	}
	w.plan.Run, w.plan.Prefix, w.plan.SkipControls = "01R", "k-", true
	if w.plan.Sessions == 0 {
		w.plan.Sessions = 4
	}
	if w.plan.Timeout == 0 {
		w.plan.Timeout = time.Second
	}
	watcher, err := OpenWatch(t.Context(), w.target, w.plan)
	if err != nil {
		t.Fatal(err)
	}
	defer watcher.Close()
	var fresh []*Ghost
	for i := range w.keys {
		fresh = append(fresh, &Ghost{Run: "01R", Key: fmt.Sprintf("k-01R-%d", i), Epoch: watcher.Start()})
	}
	return fresh, watcher.Run(w.ctx, asking{ages: w.ages, notes: &w.notes, started: watcher.Start()}, fresh, w.taken, w.journal, unseen{})
}

func (s *stand) keysOf(kind targets.Kind) (keys []string) {
	for _, op := range s.sent {
		if op.Kind == kind {
			keys = append(keys, op.Key)
		}
	}
	slices.Sort(keys)
	return keys
}

// Each key is asked when it is due, and a watch lasts no longer than its keys.
func TestAWatchAsksWhenItIsDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := watched{keys: 3, ages: []time.Duration{time.Minute, time.Hour, 48 * time.Hour}}
		ghosts, s := w.run(t)
		for _, g := range ghosts {
			if !g.Closed || g.Probes != 3 || !g.Removed {
				t.Errorf("%+v", g)
			}
		}
		// 3 creates, 9 reads, 3 deletes, and a look.
		if s.Elapsed != 48*time.Hour || s.Requests != 16 || s.Interrupted || s.Cut != "" || s.Stopped != nil || s.Left != nil {
			t.Errorf("%+v", s)
		}
	})
}

// A reply is taken into account and on disk before its key is asked again, and before
// anything else is sent.
func TestAReplyIsWrittenDownFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := watched{keys: 2, ages: []time.Duration{0, 0, 0}}
		w.journal = diary{asking{notes: &w.notes}, time.Minute, nil}
		w.run(t)
		if len(w.notes) != 1+2*2*4 || w.notes[0] != "intended 2" {
			t.Fatalf("%q", w.notes)
		}
		for i := 1; i < len(w.notes); i += 2 {
			key, found := strings.CutPrefix(w.notes[i], "observed ")
			noted, also := strings.CutPrefix(w.notes[i+1], "noted ")
			if !found || !also || key[:len(key)-2] != noted[:len(noted)-2] {
				t.Errorf("%q, then %q", w.notes[i], w.notes[i+1])
			}
		}
	})
}

// A journal that fails ends the watch: what may be open on disk stays in the store.
func TestAJournalThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		full := errors.New("no space left")
		w := watched{keys: 2, ages: []time.Duration{0, time.Hour}, plan: WatchPlan{Keep: true}}
		w.journal = diary{asking{notes: &w.notes}, 0, func(g *Ghost) error {
			if g.Probes == 1 {
				return full
			}
			return nil
		}}
		_, s := w.run(t)
		if !errors.Is(s.Stopped, full) || s.Elapsed >= time.Hour || len(w.target.keysOf(targets.Delete)) > 0 {
			t.Errorf("%+v, deleted %q", s, w.target.keysOf(targets.Delete))
		}
	})
}

// What ends a watch before its keys do, when, and which keys it then removes.
func TestWhatEndsAWatch(t *testing.T) {
	refusing := func(targets.Op) targets.Reply {
		return targets.Reply{Outcome: targets.Invalid, Message: "no such table"}
	}
	const day = 24 * time.Hour
	for name, c := range map[string]struct {
		watched watched
		cancel  time.Duration
		elapsed time.Duration
		cut     string
		stopped string
		deleted int
	}{
		"an interrupt, at once":           {watched{keys: 3, ages: []time.Duration{day}}, time.Hour, time.Hour, "", "", 3},
		"an interrupt that keeps":         {watched{keys: 3, ages: []time.Duration{day}, plan: WatchPlan{Keep: true}}, time.Hour, time.Hour, "", "", 0},
		"its time":                        {watched{keys: 3, ages: []time.Duration{day}, plan: WatchPlan{Within: time.Minute}}, 0, time.Minute, "its time of 1m0s was up", "", 3},
		"its budget":                      {watched{keys: 3, ages: []time.Duration{time.Second, time.Minute, day}, target: &stand{describe: targets.Description{Lists: 1}}, plan: WatchPlan{Budget: 13}}, 0, time.Minute, "the budget of 13 requests was spent", "", 3},
		"a target that served nothing":    {watched{keys: 20, ages: []time.Duration{day}, target: &stand{do: refusing, describe: targets.Description{Volatile: true}}}, 0, day, "", "served none of the last 40 requests; the first refusal: no such table", 0},
		"each key was asked a time":       {watched{keys: 3, ages: []time.Duration{day, 2 * day}, plan: WatchPlan{Once: true}}, 0, 0, "", "", 3},
		"a volatile target keeps nothing": {watched{keys: 3, ages: []time.Duration{day}, target: &stand{describe: targets.Description{Volatile: true}}}, 0, day, "", "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := c.watched
				if c.cancel > 0 {
					ctx, cancel := context.WithTimeout(t.Context(), c.cancel)
					defer cancel()
					w.ctx = ctx
				}
				_, s := w.run(t)
				if s.Elapsed != c.elapsed || s.Interrupted != (c.cancel > 0) || s.Cut != c.cut || !strings.Contains(fmt.Sprint(s.Stopped), c.stopped) || (s.Stopped == nil) != (c.stopped == "") {
					t.Errorf("%+v", s)
				}
				if got := w.target.keysOf(targets.Delete); len(got) != c.deleted {
					t.Errorf("deleted %q", got)
				}
				if w.plan.Budget > 0 && s.Requests > w.plan.Budget {
					t.Errorf("%d requests", s.Requests)
				}
			})
		})
	}
}

// A request in flight when the watch is interrupted is waited for, and written down.
func TestAnInterruptedWatchTakesWhatIsInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		w := watched{keys: 2, ages: []time.Duration{time.Hour}, ctx: ctx, plan: WatchPlan{Setup: Setup{Timeout: time.Minute}, Keep: true}}
		w.target = &stand{do: func(targets.Op) targets.Reply {
			time.Sleep(10 * time.Second)
			return targets.Reply{Outcome: targets.OK}
		}}
		w.journal = diary{asking{notes: &w.notes}, 0, nil}
		ghosts, s := w.run(t)
		if !s.Interrupted || s.Elapsed != 10*time.Second || ghosts[0].Created == nil || ghosts[1].Created == nil || len(w.notes) != 5 {
			t.Errorf("%+v, %q", s, w.notes)
		}
	})
}

// Keys of an earlier run are asked at their own time, and looked for under its name; one
// whose clock was set back is given up.
func TestKeysOfAnEarlierRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		now := time.Now()
		earlier := func(key string, age time.Duration) *Ghost {
			return &Ghost{Run: "01Q", Key: "k-01Q-" + key, Epoch: now.Add(-age), Created: &Observation{Return: time.Second}}
		}
		late := earlier("late", time.Hour)
		late.Probes, late.LastBlocked = 1, &Observation{Return: 2 * time.Hour}
		w := watched{ages: []time.Duration{90 * time.Minute}, taken: []*Ghost{earlier("a", time.Hour), late}}
		w.target = &stand{list: []string{"k-01Q-a", "k-01Q-other"}}
		_, s := w.run(t)
		if s.Elapsed != 30*time.Minute+1100*time.Millisecond || !w.taken[0].Closed || w.taken[0].Removed {
			t.Errorf("%+v, %+v", s, w.taken[0])
		}
		if late.State != GhostAbandoned || !strings.Contains(late.Why, "set back") || !late.Removed {
			t.Errorf("%+v", late)
		}
		if s.Left == nil || !strings.Contains(s.Left.Error(), "1 still there, such as k-01Q-a;") {
			t.Errorf("left: %v", s.Left)
		}
	})
}

// The checks before a watch send what its cost says, and their keys are removed.
func TestCostOfAWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		target := &stand{describe: targets.Description{WarmUp: 1, Lists: 1}}
		store := honest{}
		target.do = func(op targets.Op) (r targets.Reply) {
			target.count(func() { r.Outcome = store.do(op); r.Record = store[op.Key] })
			return r
		}
		plan := WatchPlan{Setup: Setup{Run: "01R", Prefix: "k-", Timeout: time.Second}, Sessions: 3}
		watcher, err := OpenWatch(t.Context(), target, plan)
		if err != nil {
			t.Fatal(err)
		}
		defer watcher.Close()
		ghosts := []*Ghost{{Run: "01R", Key: "k-01R-0", Epoch: watcher.Start()}, {Run: "01R", Key: "k-01R-1", Epoch: watcher.Start()}}
		s := watcher.Run(t.Context(), asking{ages: []time.Duration{time.Second}}, ghosts, nil, nil, unseen{})
		if want := int64(plan.Cost(target.Describe(), len(ghosts)) + 2*2); s.Requests != want || s.Left != nil {
			t.Errorf("%d requests, %d were announced; left %v", s.Requests, want, s.Left)
		}
		if len(store) != 0 {
			t.Errorf("left: %v", store)
		}
	})
}
