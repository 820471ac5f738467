package runner_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"contend/runner"
	"contend/scenarios"
	"contend/targets"
)

// What a plan is said to take is what it takes, under windows that slide: all of
// its phases, on a target that answers at once.
func TestPlanTakesWhatIsAnnounced(t *testing.T) {
	second := func(n float64) targets.Limit { return targets.Limit{Requests: n, Per: time.Second} }
	minute := func(n float64) targets.Limit { return targets.Limit{Requests: n, Per: time.Minute} }
	controls := func(p *runner.Plan) {
		p.SkipControls, p.Unguarded, p.Twin, p.ControlRounds = false, false, scenarios.CheckThenSet{}, 3
	}
	for name, c := range map[string]struct {
		n, rounds int
		limits    []targets.Limit
		change    func(*runner.Plan)
		least     time.Duration
	}{
		"no limit":               {12, 20, nil, controls, 0},
		"fits":                   {3, 2, []targets.Limit{minute(1000)}, controls, 0},
		"a little over a minute": {12, 20, []targets.Limit{minute(350)}, controls, time.Minute},
		"a second":               {7, 40, []targets.Limit{second(20)}, controls, 20 * time.Second},
		"a second and a minute":  {12, 60, []targets.Limit{second(90), minute(360)}, controls, 2 * time.Minute},
		"units":                  {5, 30, []targets.Limit{minute(4000. * 0.9 / 25)}, controls, time.Minute},
		"as large as a round":    {10, 5, []targets.Limit{second(10)}, nil, 5 * time.Second},
		"staggered":              {4, 10, []targets.Limit{second(9)}, func(p *runner.Plan) { p.Stagger = 300 * time.Millisecond }, 9 * time.Second},
		"without controls":       {6, 40, []targets.Limit{minute(50)}, func(p *runner.Plan) { p.SkipControls = true }, 4 * time.Minute},
		"a nonce alone":          {6, 40, []targets.Limit{minute(50)}, func(p *runner.Plan) { p.SkipControls = false }, 4 * time.Minute},
		"begins with the minute": {4, 3, []targets.Limit{second(1000)}, func(p *runner.Plan) { p.Race = timed{} }, 2 * time.Minute},
		"late reads":             {4, 20, []targets.Limit{minute(1000)}, func(p *runner.Plan) { p.Late = 9 * time.Second }, 9 * time.Second},
		"late reads and a wait":  {4, 60, []targets.Limit{minute(250)}, func(p *runner.Plan) { p.Late = 9 * time.Second }, time.Minute},
		"a lease":                {4, 20, []targets.Limit{minute(60)}, func(p *runner.Plan) { p.Race = scenarios.NewLease() }, time.Minute},
		"more than are followed": {1, 10_500, []targets.Limit{second(100)}, nil, time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := plan(c.n, c.rounds)
				p.Limits = c.limits
				if c.change != nil {
					c.change(&p)
				}
				target := newQuota(1e9, time.Hour) // none that is met
				announced := p.Takes(target.Describe())
				began := time.Now()
				run(t, target, p)
				// Instants of exchanges are told apart by nanoseconds.
				took := target.at[len(target.at)-1].Sub(began).Round(time.Millisecond)
				if announced != took && (p.Rounds < 10_000 || (announced-took).Abs() > 2*time.Second) {
					t.Errorf("announced %s, took %s, for %d requests", announced, took, len(target.at))
				}
				if announced < c.least {
					t.Errorf("announced %s, want %s at least", announced, c.least)
				}
				for i := range target.at {
					for _, l := range c.limits {
						within := 0
						for _, other := range target.at[i:] {
							if other.Sub(target.at[i]) >= l.Per {
								break
							}
							within++
						}
						if float64(within) > l.Requests {
							t.Fatalf("%d requests within %s from request %d on, the limit is %g", within, l.Per, i, l.Requests)
						}
					}
				}
			})
		})
	}
}

// quota is a target that refuses what is over so many requests in a window, which
// begins with the first request after the last has ended.
type quota struct {
	scripted
	retryAfter time.Duration

	lock  sync.Mutex
	began time.Time
	count float64
	held  map[string]targets.Record
}

func newQuota(n float64, per time.Duration) *quota {
	q := &quota{held: make(map[string]targets.Record)}
	q.do = func(_ int, op targets.Op) targets.Reply {
		q.lock.Lock()
		defer q.lock.Unlock()
		if time.Since(q.began) >= per {
			q.began, q.count = time.Now(), 0
		}
		if q.count++; q.count > n {
			return targets.Reply{Outcome: targets.Throttled, Code: "RATE_LIMIT_EXCEEDED", Status: 429, RetryAfter: q.retryAfter}
		}
		record, exists := q.held[op.Key]
		switch {
		case op.Kind == targets.Delete:
			delete(q.held, op.Key)
			return targets.Reply{Outcome: targets.OK}
		case op.Kind == targets.Read && exists:
			return targets.Reply{Outcome: targets.OK, Record: record}
		case op.Kind == targets.Read:
			return targets.Reply{Outcome: targets.Missing}
		case op.If.Guard == targets.IfAbsent && exists, op.If.Guard == targets.IfVersion && record.Version != op.If.Counter:
			return targets.Reply{Outcome: targets.Conflict}
		}
		q.held[op.Key] = op.Value
		return targets.Reply{Outcome: targets.OK}
	}
	return q
}

// List shows what is held, and is not counted.
func (q *quota) List(_ context.Context, prefix string) (deletes []targets.Op, requests int, err error) {
	q.lock.Lock()
	defer q.lock.Unlock()
	for key := range q.held {
		if strings.HasPrefix(key, prefix) {
			deletes = append(deletes, targets.Op{Kind: targets.Delete, Key: key})
		}
	}
	return deletes, 0, nil
}

// waits is an observer that is told of waits.
type waits struct {
	history
	told []string
	late map[int]targets.Outcome // the last of each round
}

func (w *waits) Waiting(why string, d time.Duration) {
	w.told = append(w.told, fmt.Sprintf("%s: %s", d, why))
}

func (w *waits) Observe(e runner.Event) {
	if e.Late == nil {
		w.history.Observe(e)
		return
	}
	if w.late == nil {
		w.late = make(map[int]targets.Outcome)
	}
	w.late[e.Late.Round] = e.Late.Read.Reply.Outcome
}

// Late reads and the removal of keys wait until a spent quota is renewed, and say
// so, instead of giving up at once.
func TestASpentQuotaIsWaitedFor(t *testing.T) {
	for name, c := range map[string]struct {
		retryAfter time.Duration
		limits     []targets.Limit // of the run, which knows nothing of the quota
	}{
		"by its own patience": {},
		"as it asks for":      {45 * time.Second, nil},
		"one that asks a day": {24 * time.Hour, nil},
		"with a limit":        {0, []targets.Limit{{Requests: 1000, Per: time.Minute}}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := plan(3, 10)
				p.SkipControls, p.Twin, p.Limits = true, nil, c.limits
				// 10 rounds of 3 contenders and a read-back; 3 of 10 late reads pass.
				target := newQuota(43, time.Minute)
				target.retryAfter = c.retryAfter
				w := &waits{}
				summary := start(t, target, p).Run(t.Context(), w, nil)
				if summary.Left != nil || len(target.held) > 0 {
					t.Errorf("%v; %d keys are left", summary.Left, len(target.held))
				}
				if len(w.late) != 10 {
					t.Errorf("%d late reads", len(w.late))
				}
				for round, outcome := range w.late {
					if outcome != targets.OK {
						t.Errorf("the late read of round %d ended with %s", round, outcome)
					}
				}
				if told := strings.Join(w.told, "; "); !strings.Contains(told, "the target's quota is spent (429 RATE_LIMIT_EXCEEDED)") {
					t.Errorf("told %q", told)
				}
				if summary.Elapsed > 3*time.Minute {
					t.Errorf("took %s", summary.Elapsed)
				}
			})
		})
	}
}

// A quota that stays spent is given up in the end, and keys are then told to be left.
func TestAQuotaThatStaysSpentIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := plan(3, 10)
		p.SkipControls, p.Twin = true, nil
		target := newQuota(43, 1000*time.Hour)
		summary := start(t, target, p).Run(t.Context(), &waits{}, nil)
		if summary.Left == nil || !strings.Contains(summary.Left.Error(), "RATE_LIMIT_EXCEEDED") || len(target.held) != 10 {
			t.Errorf("%v; %d keys are left", summary.Left, len(target.held))
		}
		if summary.Elapsed < 5*time.Minute || summary.Elapsed > 10*time.Minute {
			t.Errorf("took %s", summary.Elapsed)
		}
	})
}

// An interrupt ends the wait for the limits of rounds at once, that of late reads
// after a while; what was written is still removed.
func TestAnInterruptEndsWaits(t *testing.T) {
	for name, c := range map[string]struct {
		at     time.Duration
		limits []targets.Limit
		most   time.Duration
	}{
		"between rounds": {90 * time.Second, []targets.Limit{{Requests: 10, Per: time.Minute}}, 5 * time.Minute},
		"in late reads":  {5 * time.Second, nil, 3 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := plan(3, 10)
				p.SkipControls, p.Twin, p.Limits = true, nil, c.limits
				target := newQuota(43, time.Minute)
				ctx, cancel := context.WithTimeout(t.Context(), c.at)
				defer cancel()
				w := &waits{}
				summary := start(t, target, p).Run(ctx, w, nil)
				if !summary.Interrupted || summary.Left != nil || len(target.held) > 0 {
					t.Errorf("interrupted %t, %v, %d keys left", summary.Interrupted, summary.Left, len(target.held))
				}
				if len(w.late) >= 10 || summary.Elapsed > c.most {
					t.Errorf("%d late reads, took %s", len(w.late), summary.Elapsed)
				}
				if len(w.told) == 0 {
					t.Error("nothing was told")
				}
			})
		})
	}
}

// once creates each key, and asks no more.
type once struct{}

func (once) Next(g *runner.Ghost) (targets.Op, time.Duration, bool) {
	return targets.Op{Kind: targets.Write, Key: g.Key, Collection: targets.Plain}, 0, !g.Closed
}

func (once) Observe(g *runner.Ghost, e *runner.Exchange) {
	g.Closed, g.Created = true, &runner.Observation{Return: e.Return}
}

func TestAWatchWaitsToRemoveItsKeys(t *testing.T) {
	for name, renewed := range map[string]time.Duration{"renewed": time.Minute, "spent for good": 1000 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				target := newQuota(25, renewed)
				watch, err := runner.OpenWatch(t.Context(), target, runner.WatchPlan{Setup: runner.Setup{Run: "01TEST", Prefix: "contend-", Timeout: time.Second, SkipControls: true},
					Sessions: 4})
				if err != nil {
					t.Fatal(err)
				}
				defer watch.Close()
				var ghosts []*runner.Ghost
				for i := range 20 {
					ghosts = append(ghosts, &runner.Ghost{Key: fmt.Sprintf("contend-01TEST-g%d", i), Epoch: watch.Start()})
				}
				w := &waits{}
				summary := watch.Run(t.Context(), once{}, ghosts, nil, nil, w)
				if renewed == time.Minute && (summary.Left != nil || len(target.held) > 0) {
					t.Errorf("%v; %d keys are left", summary.Left, len(target.held))
				}
				if renewed > time.Minute && (summary.Left == nil || len(target.held) != 15 || summary.Elapsed > 5*time.Minute) {
					t.Errorf("%v; %d keys are left after %s", summary.Left, len(target.held), summary.Elapsed)
				}
				if !strings.Contains(strings.Join(w.told, "; "), "quota is spent") {
					t.Errorf("told %q", w.told)
				}
			})
		})
	}
}

func TestAProbeWaitsToRemoveItsKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		target := newQuota(4, time.Minute)
		plan := runner.ProbePlan{Setup: runner.Setup{Timeout: time.Second}}
		for _, key := range []string{"a", "b", "c"} {
			plan.Inquiries = append(plan.Inquiries, runner.Inquiry{ID: key,
				Steps:  []runner.Step{{Op: targets.Op{Kind: targets.Write, Key: key}}},
				Remove: []targets.Op{{Kind: targets.Delete, Key: key}}})
		}
		p, err := runner.OpenProbe(t.Context(), target, plan)
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		a := &waits{}
		summary := p.Run(t.Context(), a)
		if summary.Left != nil || len(target.held) > 0 || len(a.told) == 0 {
			t.Errorf("%v; %d keys are left; told %q", summary.Left, len(target.held), a.told)
		}
	})
}

func TestProbeTakesWhatIsAnnounced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		target := metered{&scripted{do: always(targets.OK)}}
		plan := runner.ProbePlan{Setup: runner.Setup{Timeout: time.Second, Limits: []targets.Limit{{Requests: 5, Per: time.Minute}}}}
		for i := range 20 {
			plan.Inquiries = append(plan.Inquiries, inquiry(fmt.Sprint(i), "a", "b"))
		}
		began := time.Now()
		_, _ = ask(t, t.Context(), target, plan)
		if announced, took := plan.Takes(target.Describe()), target.at[len(target.at)-1].Sub(began); announced != took || took < 10*time.Minute {
			t.Errorf("announced %s, took %s", announced, took)
		}
	})
}
