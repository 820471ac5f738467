package scenarios_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"contend/runner"
	"contend/scenarios"
	"contend/targets"
	"contend/targets/all"
)

// watched is a watch and what became of it.
type watched struct {
	scenarios.Judgement
	summary runner.Summary
	ghosts  []*runner.Ghost
}

func (w watched) arm(name string) []*runner.Ghost {
	var all []*runner.Ghost
	for _, g := range w.ghosts {
		if g.Arm == name {
			all = append(all, g)
		}
	}
	return all
}

// ghostCase is a watch in a bubble of its own.
type ghostCase struct {
	url     string
	wrap    func(targets.Session) targets.Session // nil: as it is
	options func(*scenarios.TTLGhost)
	plan    func(*runner.WatchPlan)
	journal runner.Journal
	cancel  time.Duration // 0: never
	taken   []*runner.Ghost
}

// wrapped gives sessions that behave otherwise.
type wrapped struct {
	targets.Target
	wrap func(targets.Session) targets.Session
}

func (w wrapped) Open(ctx context.Context, n int) (targets.Session, error) {
	s, err := w.Target.Open(ctx, n)
	if err != nil || w.wrap == nil {
		return s, err
	}
	return w.wrap(s), nil
}

func (c ghostCase) run(t *testing.T) watched {
	t.Helper()
	target, err := all.Open(c.url)
	if err != nil {
		t.Fatal(err)
	}
	defer target.Close()
	return c.on(t, target)
}

func (c ghostCase) on(t *testing.T, target targets.Target) watched {
	t.Helper()
	s := scenarios.NewTTLGhost()
	s.Keys = 8
	if c.options != nil {
		c.options(s)
	}
	plan := runner.WatchPlan{Setup: runner.Setup{Run: "01TEST", Prefix: "contend-", Timeout: 2 * time.Second, Seed: 1, ValueSize: 16},
		Sessions: 16, Keep: true}
	if c.plan != nil {
		c.plan(&plan)
	}
	w, err := runner.OpenWatch(t.Context(), wrapped{target, c.wrap}, plan)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	if c.cancel > 0 {
		time.AfterFunc(c.cancel, cancel)
	}
	judge := scenarios.NewGhostJudge(plan.Run)
	out := watched{ghosts: c.taken}
	var fresh []*runner.Ghost
	if c.taken == nil {
		fresh = s.Ghosts(plan.Run, plan.Prefix, target.Describe().URL, w.Start(), plan.Seed, !plan.SkipControls)
		out.ghosts = fresh
	}
	out.summary = w.Run(ctx, s, fresh, c.taken, c.journal, judge)
	out.Judgement = judge.Conclude(out.summary.End())
	return out
}

func (c ghostCase) inBubble(t *testing.T, check func(t *testing.T, w watched)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { check(t, c.run(t)) })
}

// checkBrackets wants the truth, the sweep so long after the expiry, inside of
// every interval.
func checkBrackets(t *testing.T, w watched, sweep time.Duration) {
	t.Helper()
	for i := range w.Detail.Ghosts.Keys {
		k := &w.Detail.Ghosts.Keys[i]
		if k.Arm != scenarios.WriteArm && k.Arm != scenarios.ReadArm {
			continue
		}
		last, first := k.LastBlocked, k.FirstFree
		if k.Arm == scenarios.ReadArm {
			last, first = k.LastShown, k.FirstGone
		}
		if last == nil || first == nil || *last > sweep || *first < sweep {
			t.Errorf("%s: from %v to %v, swept at %s", k.Key, last, first, sweep)
		}
	}
}

// Two days of watching a store that sweeps after 47 hours.
func TestGhostsOfTwoDays(t *testing.T) {
	c := ghostCase{url: "sim:?sweep=47h", options: func(s *scenarios.TTLGhost) { s.TTL, s.Watch = 30*time.Second, 48*time.Hour }}
	c.inBubble(t, func(t *testing.T, w watched) {
		if w.Verdict.Status != scenarios.Violated || w.Verdict.Violations[0].Kind != "ghost" || w.Verdict.ViolatedRounds != 8 {
			t.Errorf("verdict %+v", w.Verdict)
		}
		checkBrackets(t, w, 47*time.Hour)
		for _, g := range w.arm(scenarios.WriteArm) {
			if g.State != runner.GhostFree || g.FirstFree.Call-g.LastBlocked.Call > 15*time.Minute {
				t.Errorf("%s: %s, from %s to %s", g.Key, g.State, g.LastBlocked.Call, g.FirstFree.Call)
			}
		}
		if longest := w.Detail.Ghosts.Longest; longest == nil || *longest.LastBlocked < 46*time.Hour {
			t.Errorf("longest %+v", longest)
		}
		for _, c := range w.Controls {
			if !c.AsExpected {
				t.Errorf("control %+v", c)
			}
		}
	})
}

// A store that forgets a key at its expiry is held, and its tolerance can be
// too short for its latency, but never violated.
func TestNoGhosts(t *testing.T) {
	c := ghostCase{url: "sim:?sweep=0s&latency=5ms"}
	c.inBubble(t, func(t *testing.T, w watched) {
		if w.Verdict.Status != scenarios.Held || w.Contention.ContendedRounds != 8 || w.Verdict.Bound == nil {
			t.Errorf("verdict %+v of %+v", w.Verdict, w.Contention)
		}
		if w.Verdict.Bound.AtMost < 0.31 || w.Verdict.Bound.AtMost > 0.32 { // 1 − 0.05^(1/8)
			t.Errorf("bound %v", w.Verdict.Bound.AtMost)
		}
	})
	c.url = "sim:?sweep=0s&latency=800ms"
	c.inBubble(t, func(t *testing.T, w watched) {
		if w.Verdict.Status != scenarios.Inconclusive || !strings.Contains(strings.Join(w.Verdict.Reasons, " "), "raise --tolerance") {
			t.Errorf("slow: %+v", w.Verdict)
		}
	})
}

// A control is a history too: a second create that is accepted on a key without a
// TTL breaks a rule.
func TestSecondCreateOfAKeyWithoutTTL(t *testing.T) {
	c := ghostCase{url: "sim:?sweep=0s&latency=5ms", wrap: func(s targets.Session) targets.Session { return forgetful{s} }}
	c.inBubble(t, func(t *testing.T, w watched) {
		v := w.Verdict
		if v.Status != scenarios.Violated || v.Violations[0].Kind != "second-create-accepted" || v.Violations[0].Control != "twin" || len(v.Violations[0].Witness) != 2 {
			t.Errorf("verdict %+v", v)
		}
	})
}

// renewing writes the holder's record again where it has refused a create with a TTL.
type renewing struct {
	targets.Session
	ttl func(asked time.Duration) time.Duration
}

func (r renewing) Do(ctx context.Context, op targets.Op) targets.Reply {
	reply := r.Session.Do(ctx, op)
	if reply.Outcome == targets.Conflict && op.If.Guard == targets.IfAbsent && op.TTL > 0 {
		held := r.Session.Do(ctx, targets.Op{Kind: targets.Read, Key: op.Key, Collection: op.Collection})
		if held.Outcome == targets.OK {
			r.Session.Do(ctx, targets.Op{Kind: targets.Write, Key: op.Key, Collection: op.Collection, Value: held.Record, TTL: r.ttl(op.TTL)})
		}
	}
	return reply
}

// refusalsThatPersist are stores in which a refused create changes the life of the
// key: it begins anew, is taken away, or is made twice as long.
var refusalsThatPersist = map[string]func(time.Duration) time.Duration{
	"renews the time to live":  func(asked time.Duration) time.Duration { return asked },
	"removes the time to live": func(time.Duration) time.Duration { return 0 },
	"doubles the time to live": func(asked time.Duration) time.Duration { return 2 * asked },
}

func TestRefusedCreatesThatProlong(t *testing.T) {
	for name, ttl := range refusalsThatPersist {
		t.Run(name, func(t *testing.T) {
			c := ghostCase{url: "sim:?sweep=0s&latency=5ms", options: func(s *scenarios.TTLGhost) { s.TTL = 4 * time.Second },
				wrap: func(s targets.Session) targets.Session { return renewing{s, ttl} }}
			c.inBubble(t, func(t *testing.T, w watched) {
				if w.Verdict.Status != scenarios.Violated {
					t.Fatalf("verdict %+v", w.Verdict)
				}
				for _, v := range w.Verdict.Violations {
					if v.Kind != "refusal-prolongs" || len(v.Witness) != 2 || !strings.Contains(v.Detail, "refused creates prolong the life of the key") {
						t.Errorf("violation %+v", v)
					}
				}
			})
			synctest.Test(t, func(t *testing.T) {
				s := lease(func(s *scenarios.Lease) { s.Expiry, s.Term = "ttl", 4*time.Second })
				got := raceOn(t, s, "sim:?latency=40ms&sweep=0s", func(s targets.Session) targets.Session { return renewing{s, ttl} }, nil)
				wantViolated(t, got, "ghost")
			})
		})
	}
}

// What the verdict rests on is left out in turn.
func TestGhostsInconclusive(t *testing.T) {
	for name, test := range map[string]struct {
		ghostCase
		reason string
	}{
		"few keys":    {ghostCase{url: "sim:?sweep=0s&latency=5ms", options: func(s *scenarios.TTLGhost) { s.Keys = 4 }}, "4 keys are known, and 5 are needed"},
		"no controls": {ghostCase{url: "sim:?sweep=0s&latency=5ms", plan: func(p *runner.WatchPlan) { p.SkipControls = true }}, "the controls were skipped"},
		"short watch": {ghostCase{url: "sim:?sweep=1h&latency=5ms", options: func(s *scenarios.TTLGhost) { s.Watch = 700 * time.Millisecond }},
			"were still blocking when the watch ended, and not for certain beyond the tolerance"},
		"interrupted": {ghostCase{url: "sim:?sweep=1h&latency=5ms", cancel: 2500 * time.Millisecond}, "were still watched when the watch ended"},
		"cut":         {ghostCase{url: "sim:?sweep=1h&latency=5ms", plan: func(p *runner.WatchPlan) { p.Within = 2500 * time.Millisecond }}, "its time of 2.5s was up"},
		"budget":      {ghostCase{url: "sim:?sweep=1h&latency=5ms", plan: func(p *runner.WatchPlan) { p.Budget = 150 }}, "the budget of 150 requests was spent"},
		"silent": {ghostCase{url: "sim:?sweep=0s&latency=5ms", wrap: fading()},
			"the target served none of the last"},
	} {
		t.Run(name, func(t *testing.T) {
			test.inBubble(t, func(t *testing.T, w watched) {
				if w.Verdict.Status != scenarios.Inconclusive || !strings.Contains(strings.Join(w.Verdict.Reasons, "; "), test.reason) {
					t.Errorf("verdict %+v; want inconclusive: %s", w.Verdict, test.reason)
				}
				if name == "budget" && w.summary.Requests > 150 {
					t.Errorf("%d requests", w.summary.Requests)
				}
			})
		})
	}
}

// fading gives sessions that answer for two seconds, and no more.
func fading() func(targets.Session) targets.Session {
	var once sync.Mutex
	var begun time.Time
	return func(s targets.Session) targets.Session {
		once.Lock()
		defer once.Unlock()
		if begun.IsZero() {
			begun = time.Now()
		}
		return fades{s, begun}
	}
}

type fades struct {
	targets.Session
	begun time.Time
}

func (f fades) Do(ctx context.Context, op targets.Op) targets.Reply {
	if time.Since(f.begun) > 2*time.Second {
		return targets.Reply{Outcome: targets.NotSent, Code: "connection"}
	}
	return f.Session.Do(ctx, op)
}

// forgetful gives every key a time to live.
type forgetful struct{ targets.Session }

func (f forgetful) Do(ctx context.Context, op targets.Op) targets.Reply {
	if op.Kind == targets.Write && op.TTL == 0 && op.If.Guard == targets.IfAbsent && strings.Contains(op.Key, scenarios.TwinArm) {
		op.TTL = time.Second
	}
	return f.Session.Do(ctx, op)
}

// Faults of the store are told for what they are.
func TestGhostFaults(t *testing.T) {
	for fault, check := range map[string]func(*testing.T, watched){
		"early-expiry": func(t *testing.T, w watched) {
			if w.Verdict.Status != scenarios.Violated || w.Verdict.Violations[0].Kind != "early-expiry" {
				t.Errorf("verdict %+v", w.Verdict)
			}
		},
		"sweep-on-access": func(t *testing.T, w watched) {
			if a := w.Detail.Ghosts.OnceAgree; a == nil || !a.Disagrees {
				t.Errorf("the control arm does not disagree: %+v", a)
			}
		},
		"clean-reads": func(t *testing.T, w watched) {
			if w.Verdict.Status != scenarios.Violated || w.Detail.Ghosts.CleanReads == 0 {
				t.Errorf("%d keys read clean and block: %+v", w.Detail.Ghosts.CleanReads, w.Verdict)
			}
		},
		"clock-offset": func(t *testing.T, w watched) {
			offset := w.Detail.Ghosts.Offset
			if len(offset) == 0 || offset[0].From < 4*time.Second || offset[0].To > 6*time.Second {
				t.Errorf("offset %+v", offset)
			}
			if w.Verdict.Status != scenarios.Held {
				t.Errorf("a store whose clock is off is not held: %+v", w.Verdict)
			}
		},
		"grants-double": func(t *testing.T, w watched) {
			granted := w.Detail.Ghosts.Granted
			if len(granted) == 0 || granted[0].From < 1900*time.Millisecond || granted[0].To > 2100*time.Millisecond {
				t.Errorf("granted %+v", granted)
			}
			if w.Verdict.Status == scenarios.Violated {
				t.Errorf("what the store granted is held against it: %+v", w.Verdict)
			}
		},
	} {
		t.Run(fault, func(t *testing.T) {
			sweep := "0s"
			if fault == "sweep-on-access" || fault == "clean-reads" {
				sweep = "6s"
			}
			c := ghostCase{url: "sim:?latency=5ms&sweep=" + sweep + "&fault=" + fault, options: func(s *scenarios.TTLGhost) { s.Keys = 20 }}
			c.inBubble(t, check)
		})
	}
}

// doubtful applies a share of the writes without saying so, and loses others.
type doubtful struct {
	targets.Session
	store *doubts
}

type doubts struct {
	mu sync.Mutex
	n  int
}

func (d *doubtful) Do(ctx context.Context, op targets.Op) targets.Reply {
	d.store.mu.Lock()
	d.store.n++
	turn := d.store.n
	d.store.mu.Unlock()
	unknown := targets.Reply{Outcome: targets.Unknown, Code: "timeout", Attempts: 1}
	control := !strings.Contains(op.Key, "-write") && !strings.Contains(op.Key, "-read") && !strings.Contains(op.Key, "-once")
	switch {
	case op.Kind != targets.Write || control:
	case turn%3 == 0:
		d.Session.Do(ctx, op)
		return unknown
	case turn%5 == 0:
		return unknown
	}
	return d.Session.Do(ctx, op)
}

// A write of our own that was applied unseen is never taken for a ghost.
func TestUnknownWritesAreNoGhosts(t *testing.T) {
	store := &doubts{}
	c := ghostCase{url: "sim:?sweep=0s&latency=5ms", wrap: func(s targets.Session) targets.Session { return &doubtful{s, store} },
		options: func(s *scenarios.TTLGhost) { s.Keys = 30 }}
	c.inBubble(t, func(t *testing.T, w watched) {
		if w.Verdict.Status == scenarios.Violated {
			t.Errorf("verdict %+v", w.Verdict)
		}
		settled := 0
		for _, g := range w.ghosts {
			if !g.Closed {
				t.Errorf("%s is still open", g.Key)
			}
			if g.Doubt && g.FirstFree != nil {
				settled++
			}
		}
		if settled == 0 {
			t.Error("no unknown write was settled: the test does not reach what it is for")
		}
	})
}

// A real ghost is seen through unknown writes.
func TestGhostsBehindUnknownWrites(t *testing.T) {
	store := &doubts{}
	c := ghostCase{url: "sim:?sweep=8s&latency=5ms", wrap: func(s targets.Session) targets.Session { return &doubtful{s, store} }}
	c.inBubble(t, func(t *testing.T, w watched) {
		if w.Verdict.Status != scenarios.Violated {
			t.Errorf("verdict %+v", w.Verdict)
		}
		for _, g := range w.arm(scenarios.WriteArm) {
			if g.FirstFree != nil && g.FirstFree.Return-g.Created.Call < 9*time.Second {
				t.Errorf("%s: free %s after its create", g.Key, g.FirstFree.Return-g.Created.Call)
			}
		}
	})
}

// notes is a journal that keeps copies, as a disk would.
type notes struct {
	mu       sync.Mutex
	ghosts   map[string]runner.Ghost
	intended map[string]bool
	probes   map[string]int
	fails    int // the call that fails; 0: none
	calls    int
}

func newNotes() *notes {
	return &notes{ghosts: make(map[string]runner.Ghost), intended: make(map[string]bool), probes: make(map[string]int)}
}

var errFull = errors.New("the disk is full")

func (n *notes) Intend(ghosts []*runner.Ghost) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, g := range ghosts {
		n.ghosts[g.Key], n.intended[g.Key] = *g, true
	}
	return nil
}

func (n *notes) Note(g *runner.Ghost, _ *runner.Exchange) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.calls++; n.calls == n.fails {
		return errFull
	}
	n.ghosts[g.Key] = *g
	n.probes[g.Key]++
	return nil
}

// audited sees whether the journal knew before the store was asked.
type audited struct {
	targets.Session
	notes *notes
	sent  *sync.Map // key → requests sent
	t     *testing.T
}

func (a audited) Do(ctx context.Context, op targets.Op) targets.Reply {
	a.notes.mu.Lock()
	intended, noted := a.notes.intended[op.Key], a.notes.probes[op.Key]
	a.notes.mu.Unlock()
	if intended {
		before, _ := a.sent.LoadOrStore(op.Key, 0)
		if op.Kind != targets.Delete && before.(int) != noted {
			a.t.Errorf("%s is asked for the %dth time with %d answers on disk", op.Key, before.(int)+1, noted)
		}
		a.sent.Store(op.Key, before.(int)+1)
	} else if op.TTL > 0 {
		a.t.Errorf("%s is created and not on disk", op.Key)
	}
	return a.Session.Do(ctx, op)
}

// A key is on disk before it is created, and every answer before the next
// question.
func TestJournalGoesFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, sent := newNotes(), &sync.Map{}
		c := ghostCase{url: "sim:?sweep=4s", journal: n, wrap: func(s targets.Session) targets.Session { return audited{s, n, sent, t} }}
		if w := c.run(t); w.Verdict.Status != scenarios.Violated || len(n.probes) != len(w.ghosts) {
			t.Errorf("%d of %d keys noted: %+v", len(n.probes), len(w.ghosts), w.Verdict)
		}
	})
}

// A disk that is full ends the watch; what was measured is judged.
func TestJournalThatFails(t *testing.T) {
	n := newNotes()
	n.fails = 100
	c := ghostCase{url: "sim:?sweep=1h", journal: n}
	c.inBubble(t, func(t *testing.T, w watched) {
		if !errors.Is(w.summary.Stopped, errFull) {
			t.Errorf("stopped by %v", w.summary.Stopped)
		}
		// Those in flight come back, and no other goes out.
		if n.calls > 100+16 {
			t.Errorf("%d answers after the failure", n.calls-100)
		}
	})
}

// A watch that died at any moment is taken up from its journal: every key is
// accounted for, and what it is said to have done is true.
func TestResumeAfterADeathAtAnyMoment(t *testing.T) {
	const sweep = 20 * time.Second
	for i := range 40 {
		death := time.Duration(i) * 333 * time.Millisecond
		synctest.Test(t, func(t *testing.T) {
			target, err := all.Open("sim:?sweep=" + sweep.String())
			if err != nil {
				t.Fatal(err)
			}
			n := newNotes()
			lost := make(map[string]runner.Ghost)
			options := func(s *scenarios.TTLGhost) { s.Watch = time.Minute }
			// What is on disk at that moment is all that is left.
			time.AfterFunc(death, func() {
				n.mu.Lock()
				defer n.mu.Unlock()
				for key, g := range n.ghosts {
					lost[key] = g
				}
			})
			ghostCase{journal: n, options: options, cancel: death + time.Nanosecond}.on(t, target)
			time.Sleep(3 * time.Second)
			var taken []*runner.Ghost
			n.mu.Lock()
			defer n.mu.Unlock()
			for _, g := range lost {
				scenarios.Resume(&g, time.Since(g.Epoch))
				taken = append(taken, &g)
			}
			slices.SortFunc(taken, func(a, b *runner.Ghost) int { return strings.Compare(a.Key, b.Key) })
			if len(taken) == 0 {
				return // it died before it meant to create anything
			}
			w := ghostCase{taken: taken, options: options, plan: func(p *runner.WatchPlan) { p.Part = "2" }}.on(t, target)
			created := 0
			for _, g := range w.ghosts {
				if !g.Closed || g.State == runner.GhostPending {
					t.Errorf("death at %s: %s is left %s", death, g.Key, g.State)
				}
				if g.Created != nil {
					created++
				}
				if g.Created == nil && g.State != runner.GhostAbandoned {
					t.Errorf("death at %s: %s was not created and is %s", death, g.Key, g.State)
				}
			}
			for i := range w.Detail.Ghosts.Keys {
				k := &w.Detail.Ghosts.Keys[i]
				if k.Arm == scenarios.WriteArm && (k.LastBlocked != nil && *k.LastBlocked > sweep || k.FirstFree != nil && *k.FirstFree < sweep) {
					t.Errorf("death at %s: %s blocked until %v, free from %v, swept at %s", death, k.Key, k.LastBlocked, k.FirstFree, sweep)
				}
			}
			if death > 6*time.Second && created < len(taken) {
				t.Errorf("death at %s: %d of %d keys were created", death, created, len(taken))
			}
		})
	}
}

// Keys of an earlier run are asked a single time each, whatever is due, with what
// follows from the reply; and then no more.
func TestOnceAsksOnce(t *testing.T) {
	for _, at := range []time.Duration{1500 * time.Millisecond, 3 * time.Second, 20 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			target, err := all.Open("sim:?sweep=1h&latency=5ms")
			if err != nil {
				t.Fatal(err)
			}
			first := ghostCase{cancel: at, options: func(s *scenarios.TTLGhost) { s.Watch = time.Minute }}.on(t, target)
			before := make(map[string]int)
			for _, g := range first.ghosts {
				scenarios.Resume(g, time.Since(g.Epoch))
				before[g.Key] = g.Probes
			}
			began := time.Now()
			w := ghostCase{taken: first.ghosts, plan: func(p *runner.WatchPlan) { p.Part, p.Once = "2", true }}.on(t, target)
			for _, g := range w.ghosts {
				// A refusal is in doubt and is settled by a read, a key that has gone is written, and
				// what falls due meanwhile may be asked too.
				if n := g.Probes - before[g.Key]; n > 6 || n == 0 && !g.Closed {
					t.Errorf("cut at %s: %s was asked %d times", at, g.Key, n)
				}
			}
			if took := time.Since(began); took > 2*time.Second {
				t.Errorf("cut at %s: it took %s", at, took)
			}
		})
	}
}

// Without --keep nothing is left in a store that does not die with the process.
func TestWatchRemovesItsKeys(t *testing.T) {
	for _, keep := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			target, err := all.Open("sim:?sweep=1h&latency=5ms")
			if err != nil {
				t.Fatal(err)
			}
			w := ghostCase{cancel: 4 * time.Second, plan: func(p *runner.WatchPlan) { p.Keep = keep }}.on(t, lasting{target})
			s, err := target.Open(t.Context(), 0)
			if err != nil {
				t.Fatal(err)
			}
			for _, g := range w.ghosts {
				r := s.Do(t.Context(), targets.Op{Kind: targets.Read, Key: g.Key, Collection: targets.Plain})
				if left := r.Outcome == targets.OK; left != (keep && !g.Closed) {
					t.Errorf("keep %v, closed %v: %s is left: %v", keep, g.Closed, g.Key, left)
				}
			}
		})
	}
}

// lasting is a target whose keys outlive the process.
type lasting struct{ targets.Target }

func (l lasting) Describe() targets.Description {
	d := l.Target.Describe()
	d.Volatile = false
	return d
}

// The count of a plan is what a watch sends when every key blocks to the end.
func TestMostIsWhatAWatchSends(t *testing.T) {
	c := ghostCase{url: "sim:?sweep=never&latency=5ms"}
	c.inBubble(t, func(t *testing.T, w watched) {
		s := scenarios.NewTTLGhost()
		s.Keys = 8
		fresh := s.Ghosts("01TEST", "contend-", "", time.Time{}, 1, true)
		plan := runner.WatchPlan{Sessions: 16}
		most := plan.Cost(targets.Description{Volatile: true}, len(fresh)) + s.Most(fresh)
		// The read arm's keys are free to none, so that each ends with a create that is refused.
		if got := int(w.summary.Requests); got > most || got < most-len(fresh) {
			t.Errorf("%d requests, the plan says at most %d", got, most)
		}
	})
}

// clocked changes what a reply tells of the expiry.
type clocked struct {
	targets.Session
	tell func(op targets.Op, r *targets.Reply)
}

func (c clocked) Do(ctx context.Context, op targets.Op) targets.Reply {
	r := c.Session.Do(ctx, op)
	c.tell(op, &r)
	return r
}

// A store that tells its expiry in whole seconds, cut off or rounded up, is neither
// accused of a ghost nor of an early end.
func TestExpiryToldInWholeSeconds(t *testing.T) {
	for _, up := range []bool{false, true} {
		for offset := range 10 {
			synctest.Test(t, func(t *testing.T) {
				time.Sleep(time.Duration(offset) * 100 * time.Millisecond)
				tell := func(_ targets.Op, r *targets.Reply) {
					if r.Expires.IsZero() {
						return
					}
					told := r.Expires.Truncate(time.Second)
					if up && told.Before(r.Expires) {
						told = told.Add(time.Second)
					}
					r.Granted += told.Sub(r.Expires)
					r.Expires = told
				}
				w := ghostCase{url: "sim:?sweep=600ms&latency=20ms", options: func(s *scenarios.TTLGhost) { s.TTL, s.Watch = 2*time.Second, 4*time.Second },
					wrap: func(s targets.Session) targets.Session { return clocked{s, tell} }}.run(t)
				if w.Verdict.Status == scenarios.Violated {
					t.Errorf("up %v, offset %d: %+v", up, offset, w.Verdict.Violations[0])
				}
			})
		}
	}
}

// shorter grants less than it was asked for.
type shorter struct{ targets.Session }

func (s shorter) Do(ctx context.Context, op targets.Op) targets.Reply {
	op.TTL /= 2
	return s.Session.Do(ctx, op)
}

// Keys that go a little early are seen to; of those that do not, the report tells how
// close to the expiry they were seen to live, and early and late have a bound each.
func TestKeysThatGoALittleEarly(t *testing.T) {
	for share, early := range map[float64]bool{0.3: true, 0.93: true, 0.97: true, 1.0: false} {
		c := ghostCase{url: "sim:?sweep=0s&latency=5ms", options: func(s *scenarios.TTLGhost) { s.TTL = 4 * time.Second },
			wrap: func(s targets.Session) targets.Session { return shortlived{s, share} }}
		c.inBubble(t, func(t *testing.T, w watched) {
			g := w.Detail.Ghosts
			if got := w.Verdict.Status == scenarios.Violated && w.Verdict.Violations[0].Kind == "early-expiry"; got != early {
				t.Errorf("gone at %v of the TTL: %+v", share, w.Verdict)
			}
			if !early && (w.Verdict.Status != scenarios.Held || g.EarlyFloor == nil || *g.EarlyFloor > 100*time.Millisecond || g.EarlyBound == nil || g.EarlyBound.AtLeast != nil) {
				t.Errorf("%+v, floor %v, bound %+v", w.Verdict, g.EarlyFloor, g.EarlyBound)
			}
		})
	}
}

// A key of which it is not clear may have blocked too: it is in the denominator.
func TestUnclearKeysAreInTheBound(t *testing.T) {
	c := ghostCase{url: "sim:?sweep=1h&latency=5ms", options: func(s *scenarios.TTLGhost) { s.Watch = 700 * time.Millisecond }}
	c.inBubble(t, func(t *testing.T, w watched) {
		if w.Verdict.Status != scenarios.Inconclusive || w.Contention.ContendedRounds != 0 || w.Verdict.Bound == nil || w.Verdict.Bound.AtMost > 0.32 {
			t.Errorf("%+v of %+v: bound %+v", w.Verdict, w.Contention, w.Verdict.Bound)
		}
	})
}

// A store that grants less than was asked lets keys go early, whatever it tells.
func TestGrantOfLess(t *testing.T) {
	c := ghostCase{url: "sim:?sweep=0s&latency=5ms", options: func(s *scenarios.TTLGhost) { s.TTL = 4 * time.Second },
		wrap: func(s targets.Session) targets.Session { return shorter{s} }}
	c.inBubble(t, func(t *testing.T, w watched) {
		if w.Verdict.Status != scenarios.Violated || w.Verdict.Violations[0].Kind != "early-expiry" {
			t.Errorf("verdict %+v", w.Verdict)
		}
		for _, g := range w.arm(scenarios.EarlyArm) {
			if g.State != runner.GhostEarly {
				t.Errorf("%s is %s", g.Key, g.State)
			}
		}
	})
}

// Between two processes there is only the wall clock: that it was set forward makes
// no ghost, and set back no early end.
func TestWallClockSetBetweenProcesses(t *testing.T) {
	for _, set := range []time.Duration{2 * time.Minute, -500 * time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			target, err := all.Open("sim:?sweep=0s&latency=5ms")
			if err != nil {
				t.Fatal(err)
			}
			options := func(s *scenarios.TTLGhost) { s.TTL = time.Minute }
			first := ghostCase{cancel: 10 * time.Second, options: options}.on(t, target)
			for _, g := range first.ghosts {
				// Our clock goes ahead: the epoch lies further back.
				g.Epoch = g.Epoch.Add(-set)
				scenarios.Resume(g, time.Since(g.Epoch))
			}
			w := ghostCase{taken: first.ghosts, options: options, plan: func(p *runner.WatchPlan) { p.Part = "2" }}.on(t, target)
			if w.Verdict.Status == scenarios.Violated {
				t.Errorf("set by %s: %+v", set, w.Verdict.Violations[0])
			}
		})
	}
}

// A ghost is seen by a process that takes it up, by its own clock alone.
func TestGhostAfterResume(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		target, err := all.Open("sim:?sweep=1h&latency=5ms")
		if err != nil {
			t.Fatal(err)
		}
		first := ghostCase{cancel: 1500 * time.Millisecond}.on(t, target)
		for _, g := range first.ghosts {
			scenarios.Resume(g, time.Since(g.Epoch))
		}
		w := ghostCase{taken: first.ghosts, plan: func(p *runner.WatchPlan) { p.Part = "2" }}.on(t, target)
		if w.Verdict.Status != scenarios.Violated || w.Verdict.Violations[0].Kind != "ghost" {
			t.Errorf("verdict %+v", w.Verdict)
		}
	})
}

// A machine that slept makes no early end.
func TestSleepIsNoEarlyExpiry(t *testing.T) {
	c := ghostCase{url: "sim:?sweep=0s&latency=5ms&fault=early-expiry"}
	c.inBubble(t, func(t *testing.T, w watched) {
		for _, g := range w.ghosts {
			g.ClockUnknown = true
		}
		judge := scenarios.NewGhostJudge("01TEST")
		judge.Watching(w.ghosts)
		if v := judge.Conclude(runner.End{}).Verdict; v.Status != scenarios.Inconclusive {
			t.Errorf("verdict %+v", v)
		}
	})
}

// A refusal after a client's own retry may be for its own record.
func TestThrottledAfterARetry(t *testing.T) {
	wrap := func(s targets.Session) targets.Session { return &retrying{Session: s} }
	ghostCase{url: "sim:?sweep=0s&latency=5ms", wrap: wrap}.inBubble(t, func(t *testing.T, w watched) {
		if w.Verdict.Status == scenarios.Violated {
			t.Errorf("verdict %+v", w.Verdict.Violations[0])
		}
	})
}

// retrying sends probes twice, and tells of the second that it was throttled.
type retrying struct{ targets.Session }

func (r *retrying) Do(ctx context.Context, op targets.Op) targets.Reply {
	reply := r.Session.Do(ctx, op)
	if strings.Contains(op.Value.Token, "-c1-a") && reply.Outcome == targets.OK {
		return targets.Reply{Outcome: targets.Throttled, Status: 429, Attempts: 2}
	}
	return reply
}

// An interrupted watch holds nothing, and neither does one whose keys that are left
// alone were not answered.
func TestHeldNeedsTheKeysLeftAlone(t *testing.T) {
	c := ghostCase{url: "sim:?sweep=1h&latency=5ms&fault=sweep-on-access", cancel: 5 * time.Second,
		options: func(s *scenarios.TTLGhost) { s.First = 10 * time.Millisecond }}
	c.inBubble(t, func(t *testing.T, w watched) {
		if w.Verdict.Status == scenarios.Held {
			t.Error("an interrupted watch is held")
		}
	})
	deaf := func(s targets.Session) targets.Session { return deafOnce{s} }
	ghostCase{url: "sim:?sweep=0s&latency=5ms", wrap: deaf}.inBubble(t, func(t *testing.T, w watched) {
		if w.Verdict.Status != scenarios.Inconclusive || !strings.Contains(strings.Join(w.Verdict.Reasons, ""), "asked a single time") {
			t.Errorf("verdict %+v", w.Verdict)
		}
	})
}

type deafOnce struct{ targets.Session }

func (d deafOnce) Do(ctx context.Context, op targets.Op) targets.Reply {
	if strings.Contains(op.Key, "-once") && strings.Contains(op.Value.Token, "-c1-a") {
		return targets.Reply{Outcome: targets.Throttled, Status: 429, Attempts: 1}
	}
	return d.Session.Do(ctx, op)
}

// intruded lets somebody else write an expired key.
type intruded struct{ targets.Session }

func (i intruded) Do(ctx context.Context, op targets.Op) targets.Reply {
	if strings.Contains(op.Value.Token, "-c1-a") && op.TTL > 0 {
		theirs := op
		theirs.Value.Token, theirs.TTL = "somebody-else", 0
		i.Session.Do(ctx, theirs)
	}
	return i.Session.Do(ctx, op)
}

func TestForeignRecordIsNoGhost(t *testing.T) {
	wrap := func(s targets.Session) targets.Session { return intruded{s} }
	ghostCase{url: "sim:?sweep=0s&latency=5ms", wrap: wrap}.inBubble(t, func(t *testing.T, w watched) {
		if w.Verdict.Status != scenarios.Inconclusive {
			t.Errorf("verdict %+v", w.Verdict)
		}
	})
}

// A key that is read to the end of its watch, when our own write is in doubt, is
// asked for the last time once.
func TestEndOfAKeyInDoubt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		target, err := all.Open("sim:?sweep=1h&latency=5ms")
		if err != nil {
			t.Fatal(err)
		}
		first := ghostCase{cancel: 5 * time.Second}.on(t, target)
		for _, g := range first.ghosts {
			scenarios.Resume(g, time.Since(g.Epoch))
		}
		time.Sleep(time.Minute)
		w := ghostCase{taken: first.ghosts, plan: func(p *runner.WatchPlan) { p.Part, p.Within = "2", time.Hour }}.on(t, target)
		if w.summary.Requests > 300 || w.summary.Cut != "" {
			t.Errorf("%d requests, cut: %q", w.summary.Requests, w.summary.Cut)
		}
	})
}

// A target that asks for patience without end does not keep a watch alive.
func TestRetryAfterWithoutEnd(t *testing.T) {
	wrap := func(s targets.Session) targets.Session {
		return clocked{s, func(op targets.Op, r *targets.Reply) {
			if strings.Contains(op.Value.Token, "-c1-a") {
				*r = targets.Reply{Outcome: targets.Throttled, Status: 429, Attempts: 1, RetryAfter: 999_999 * time.Second}
			}
		}}
	}
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		ghostCase{url: "sim:?sweep=0s&latency=5ms", wrap: wrap}.run(t)
		if took := time.Since(began); took > time.Minute {
			t.Errorf("it took %s", took)
		}
	})
}
