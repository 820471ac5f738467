package runner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"contend/targets"
)

// stand is a target that notes what becomes of its sessions.
type stand struct {
	describe targets.Description
	refuse   func(number int) error // to open; nil: none is refused
	prepare  error
	takes    time.Duration // to open a session
	lead     time.Duration // that the server tells
	do       func(op targets.Op) targets.Reply
	list     []string
	listed   func(ctx context.Context, looks int) ([]string, error) // nil: list

	mu             sync.Mutex
	needs          []targets.Needs
	opened, closed map[int]int
	opening, most  int // side by side
	sent           []targets.Op
	looks          int
}

func (s *stand) Describe() targets.Description { return s.describe }
func (s *stand) Close() error                  { return nil }
func (s *stand) Prepare(_ context.Context, needs targets.Needs) (targets.Server, error) {
	s.needs = append(s.needs, needs)
	return targets.Server{Lead: s.lead}, s.prepare
}

func (s *stand) List(ctx context.Context, prefix string) (deletes []targets.Op, requests int, err error) {
	keys := s.list
	s.looks++
	if s.listed != nil {
		keys, err = s.listed(ctx, s.looks)
	}
	for _, key := range keys {
		if strings.HasPrefix(key, prefix) {
			deletes = append(deletes, targets.Op{Kind: targets.Delete, Key: key})
		}
	}
	return deletes, 1, err
}

func (s *stand) Open(_ context.Context, n int) (targets.Session, error) {
	s.count(func() {
		s.opening++
		s.most = max(s.most, s.opening)
	})
	time.Sleep(s.takes)
	s.count(func() { s.opening-- })
	if s.refuse != nil {
		if err := s.refuse(n); err != nil {
			return nil, err
		}
	}
	s.count(func() {
		if s.opened == nil {
			s.opened, s.closed = make(map[int]int), make(map[int]int)
		}
		s.opened[n]++
	})
	return standing{s, n}, nil
}

func (s *stand) count(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

// standing is a session of a stand.
type standing struct {
	*stand
	number int
}

func (s standing) Close() error {
	s.count(func() { s.closed[s.number]++ })
	return nil
}

func (s standing) Do(_ context.Context, op targets.Op) targets.Reply {
	s.count(func() { s.sent = append(s.sent, op) })
	r := targets.Reply{Outcome: targets.OK}
	if s.do != nil {
		r = s.do(op)
	}
	r.Attempts = 1
	return r
}

// openedNotClosed lists the sessions that were left open.
func (s *stand) openedNotClosed() (left []int) {
	for n := range s.opened {
		if s.opened[n] != s.closed[n] {
			left = append(left, n)
		}
	}
	slices.Sort(left)
	return left
}

func crewOf(t *testing.T, target targets.Target, numbers ...int) *crew {
	t.Helper()
	c := newCrew(t.Context(), target, &Setup{Timeout: time.Second})
	if err := c.open(t.Context(), targets.Needs{Sessions: len(numbers)}, numbers...); err != nil {
		t.Fatal(err)
	}
	return &c
}

func TestCrewOpensEachSessionOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		target := &stand{describe: targets.Description{WarmUp: 3}, lead: time.Minute, takes: time.Second}
		var numbers []int
		for i := range 40 {
			numbers = append(numbers, i-2)
		}
		c := crewOf(t, target, numbers...)
		for i, m := range c.members {
			if s, ok := m.session.(standing); !ok || s.number != numbers[i] || m.number != numbers[i] || target.opened[m.number] != 1 {
				t.Errorf("member %d is number %d, session %+v", i, m.number, m.session)
			}
		}
		if target.most != openAtOnce || time.Since(c.start) != 3*time.Second {
			t.Errorf("%d were dialled side by side, in %s", target.most, time.Since(c.start))
		}
		if c.server.Lead != time.Minute || c.sent() != 1+40*3 {
			t.Errorf("lead %s, %d requests for connecting", c.server.Lead, c.sent())
		}
		if needs := target.needs; len(needs) != 1 || needs[0].Sessions != 40 || needs[0].Timeout != time.Second {
			t.Errorf("prepared for %+v", needs)
		}
		c.close()
		if left := target.openedNotClosed(); len(left) > 0 {
			t.Errorf("sessions %v are still open", left)
		}
	})
}

// A session that cannot be opened closes the others, in a run of any shape.
func TestOpeningThatFailsLeavesNoSessionOpen(t *testing.T) {
	refused := errors.New("no more clients")
	for name, c := range map[string]struct {
		sessions int
		open     func(ctx context.Context, target targets.Target) error
		text     string
	}{
		"race": {6, func(ctx context.Context, target targets.Target) error {
			_, err := Open(ctx, target, Plan{Contenders: 4, Race: bystanders{}})
			return err
		}, "opening 6 sessions: no more clients"},
		"watch": {5, func(ctx context.Context, target targets.Target) error {
			_, err := OpenWatch(ctx, target, WatchPlan{Sessions: 5})
			return err
		}, "opening 5 sessions: no more clients"},
		"probe": {1, func(ctx context.Context, target targets.Target) error {
			_, err := OpenProbe(ctx, target, ProbePlan{})
			return err
		}, "no more clients"},
	} {
		for failing := range c.sessions {
			n := 0
			target := &stand{}
			target.refuse = func(int) (err error) {
				target.count(func() {
					if n++; n == failing+1 {
						err = refused
					}
				})
				return err
			}
			err := c.open(t.Context(), target)
			if !errors.Is(err, refused) || err.Error() != c.text {
				t.Errorf("%s: %v, want %q", name, err, c.text)
			}
			if left := target.openedNotClosed(); len(left) > 0 || len(target.opened) != c.sessions-1 {
				t.Errorf("%s: where the session %d is refused, %v are left open of %d", name, failing, left, len(target.opened))
			}
		}
		target := &stand{prepare: errors.New("no such table")}
		if err := c.open(t.Context(), target); err == nil || err.Error() != "no such table" || len(target.opened) > 0 {
			t.Errorf("%s: not prepared: %v, %d sessions", name, err, len(target.opened))
		}
	}
}

// bystanders is a contest in which nobody does anything.
type bystanders struct{}

func (bystanders) Needs() targets.Needs           { return targets.Needs{} }
func (bystanders) Collection() targets.Collection { return targets.Plain }
func (bystanders) Seeds(string) []targets.Op      { return nil }
func (bystanders) Contend(*Contender)             {}
func (bystanders) Requests() int                  { return 1 }

// A session that may be broken is closed before another takes its number; one that
// cannot be opened again says so in each reply, and is tried once more the next time.
func TestReopen(t *testing.T) {
	down := false
	target := &stand{describe: targets.Description{WarmUp: 2}, refuse: func(int) error {
		if down {
			return errors.New("connection refused")
		}
		return nil
	}}
	c := crewOf(t, target, 0, 7)
	m := &c.members[1]
	c.reopen(m)
	if target.closed[7] != 1 || target.opened[7] != 2 || target.opened[0] != 1 || c.sent() != 5+2 {
		t.Errorf("opened %v, closed %v, %d requests", target.opened, target.closed, c.sent())
	}
	down = true
	c.reopen(m)
	if target.closed[7] != 2 || c.sent() != 5+2 {
		t.Errorf("closed %v, %d requests: one that failed counts", target.closed, c.sent())
	}
	e := Exchange{}
	if c.exchange(m.session, &e); e.Reply.Outcome != targets.NotSent || e.Reply.Code != "connection" || e.Reply.Message != "connection refused" || !broken(&e) {
		t.Errorf("the reply of one that is down: %+v", e.Reply)
	}
	down = false
	c.reopen(m)
	if c.exchange(m.session, &e); e.Reply.Outcome != targets.OK || broken(&e) {
		t.Errorf("the reply of one that is up again: %+v", e.Reply)
	}
	if c.close(); len(target.openedNotClosed()) > 0 {
		t.Errorf("opened %v, closed %v", target.opened, target.closed)
	}
}

func TestWhatBreaksAConnection(t *testing.T) {
	for _, o := range targets.Outcomes {
		want := o == targets.Unknown || o == targets.NotSent
		if got := broken(&Exchange{Reply: targets.Reply{Outcome: o}}); got != want {
			t.Errorf("%s: %v", o, got)
		}
	}
}

// Who can do with fewer sessions goes on with those that it gets.
func TestCrewThatDoesWithFewer(t *testing.T) {
	for refused, want := range map[string][]int{"none": {-1, -2, -3}, "-2": {-1, -3}, "-1 -3": {-2}, "-1 -2 -3": nil} {
		target := &stand{refuse: func(n int) error {
			if slices.Contains(strings.Fields(refused), fmt.Sprint(n)) {
				return errors.New("no more clients")
			}
			return nil
		}}
		c := newCrew(t.Context(), target, &Setup{Timeout: time.Second})
		err := c.openSome(t.Context(), targets.Needs{Sessions: 1}, -1, -2, -3)
		var got []int
		for _, m := range c.members {
			got = append(got, m.number)
		}
		if !slices.Equal(got, want) || (err != nil) != (want == nil) {
			t.Errorf("%s refused: %v, %v", refused, got, err)
		}
		if c.close(); len(target.openedNotClosed()) > 0 {
			t.Errorf("%s refused: left open", refused)
		}
	}
}

// Connecting waits for the limits and is counted by them, and gives up when ctx ends.
func TestConnectingKeepsToTheLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limits := []targets.Limit{{Requests: 5, Per: time.Minute}}
		c := newCrew(t.Context(), &stand{describe: targets.Description{WarmUp: 1}}, &Setup{Timeout: time.Second, Limits: limits})
		if err := c.open(t.Context(), targets.Needs{Sessions: 4}, 0, 1, 2, 3); err != nil || time.Since(c.start) > 0 {
			t.Fatalf("%v after %s", err, time.Since(c.start))
		}
		if delay, _ := c.budget.delay(time.Now(), 1); delay != time.Minute {
			t.Errorf("the next request waits %s", delay)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := c.prepare(ctx, targets.Needs{Sessions: 1}); !errors.Is(err, context.DeadlineExceeded) || time.Since(c.start) != time.Second {
			t.Errorf("%v after %s", err, time.Since(c.start))
		}
	})
}

// What a crew comes to has what opening sessions again sent, and how long it took.
func TestEndOfACrew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := crewOf(t, &stand{describe: targets.Description{WarmUp: 1}}, 0)
		c.summary.Requests += 10
		time.Sleep(time.Second)
		c.reopen(&c.members[0])
		if s := c.end(); s.Requests != 13 || s.Elapsed != time.Second {
			t.Errorf("%+v", s)
		}
	})
}
