package runner

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"contend/targets"
)

// The strategy is chosen by the plan and the target, once.
func TestStrategies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, c := range map[string]struct {
			plan  Plan
			lead  time.Duration
			ahead targets.Release
			apart time.Duration // of contender 3
		}{
			"nothing asked for":    {Plan{}, 0, targets.Gate, 0},
			"gate":                 {Plan{Release: targets.Gate}, 0, targets.Gate, 0},
			"last byte":            {Plan{Release: targets.LastByte}, 0, targets.LastByte, 0},
			"staggered":            {Plan{Stagger: time.Second}, 0, targets.Gate, 3 * time.Second},
			"staggered last byte":  {Plan{Release: targets.LastByte, Stagger: time.Second}, 0, targets.LastByte, 3 * time.Second},
			"relayed":              {Plan{}, time.Minute, "", 0},
			"relayed, by the gate": {Plan{Release: targets.Gate}, time.Minute, "", 0},
			"relayed, staggered":   {Plan{Stagger: time.Second}, time.Minute, "", 3 * time.Second},
		} {
			s := strategyOf(&c.plan, c.lead)
			want := time.Time{}
			if c.lead > 0 {
				want = time.Now().Add(c.lead)
			}
			if got := s.open(t.Context()); !got.Equal(want) {
				t.Errorf("%s: not before %s, want %s", name, got, want)
			}
			if s.ahead() != c.ahead || s.apart(3) != c.apart || s.apart(0) != 0 {
				t.Errorf("%s: %q is done ahead, contender 3 goes %s after, contender 0 %s", name, s.ahead(), s.apart(3), s.apart(0))
			}
		}
	})
}

// met is a round whose contenders do nothing but meet.
type met struct {
	meetings
	mu     sync.Mutex
	passed []string
}

func (m *met) note(format string, a ...any) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.passed = append(m.passed, fmt.Sprintf(format, a...))
}

// round lets each of these run as a contender, serves, and gives when the meetings were
// opened.
func (m *met) round(contenders ...func()) (opened []time.Time) {
	m.full = make(chan *meeting, 1)
	m.begin(len(contenders))
	for _, contend := range contenders {
		go func() {
			contend()
			m.leave()
		}()
	}
	m.serve(func() time.Time {
		opened = append(opened, time.Now())
		return time.Now().Add(time.Hour)
	})
	return opened
}

// Nobody passes a meeting before the last has come, and all are given one instant.
func TestAllMeet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var m met
		var contenders []func()
		for i := range 20 {
			contenders = append(contenders, func() {
				for _, name := range []string{"", "after-read", "after-write"} {
					time.Sleep(time.Duration(i) * time.Second)
					if instant := m.wait(name); !instant.Equal(time.Now().Add(time.Hour)) {
						t.Errorf("contender %d: not before %s", i, instant)
					}
					m.note("%s at %s", name, time.Since(began))
				}
			})
		}
		opened := m.round(contenders...)
		var want []string
		for i, name := range []string{"", "after-read", "after-write"} {
			at := time.Duration(i+1) * 19 * time.Second
			if len(opened) != 3 || opened[i].Sub(began) != at {
				t.Fatalf("opened at %v", opened)
			}
			want = append(want, slices.Repeat([]string{fmt.Sprintf("%s at %s", name, at)}, 20)...)
		}
		if !slices.Equal(m.passed, want) {
			t.Errorf("passed: %q", m.passed)
		}
	})
}

// Who comes last is not ahead of those that it would have to wake: it waits as they do,
// until the meeting is opened.
func TestTheLastToComeIsNotAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := met{meetings: meetings{full: make(chan *meeting, 1)}}
		m.begin(3)
		for i := range 3 {
			go func() {
				m.wait("")
				m.note("%d", i)
				m.leave()
			}()
		}
		synctest.Wait()
		if len(m.passed) > 0 {
			t.Errorf("%v passed before anybody opened", m.passed)
		}
		m.serve(func() time.Time { return time.Time{} })
		if len(m.passed) != 3 {
			t.Errorf("%v passed", m.passed)
		}
	})
}

// Who leaves keeps nobody waiting, at whatever meeting the others stand.
func TestWhoLeavesIsNotWaitedFor(t *testing.T) {
	for name, c := range map[string]struct {
		contenders []func(*met)
		opened     int
	}{
		"leaves before any meeting": {[]func(*met){func(*met) {}, func(m *met) { m.wait("a") }, func(m *met) { m.wait("a") }}, 1},
		"leaves last":               {[]func(*met){func(*met) { time.Sleep(time.Second) }, func(m *met) { m.wait("a") }}, 1},
		"the others stand apart":    {[]func(*met){func(m *met) { m.wait("a"); m.wait("b") }, func(m *met) { m.wait("a") }}, 2},
		"nobody meets":              {[]func(*met){func(*met) {}, func(*met) {}}, 0},
		"one alone":                 {[]func(*met){func(m *met) { m.wait("a"); m.wait("b"); m.wait("c") }}, 3},
		"passed again":              {[]func(*met){func(m *met) { m.wait("a"); m.wait("a") }, func(m *met) { m.wait("a") }}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var m met
				var contenders []func()
				for _, contend := range c.contenders {
					contenders = append(contenders, func() { contend(&m) })
				}
				if opened := m.round(contenders...); len(opened) != c.opened {
					t.Errorf("%d meetings were opened, want %d", len(opened), c.opened)
				}
			})
		})
	}
}

// Two that wait for each other at different meetings are released when the third leaves:
// no meeting is opened before all that are left have come to it.
func TestMeetingsApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var m met
		began := time.Now()
		opened := m.round(
			func() { m.wait("a"); m.note("a") },
			func() { time.Sleep(time.Second); m.wait("a"); m.wait("b"); m.note("b") },
			func() { time.Sleep(2 * time.Second) },
		)
		if len(opened) != 2 || opened[0].Sub(began) != 2*time.Second || !slices.Equal(m.passed, []string{"a", "b"}) {
			t.Errorf("opened %v, passed %v", opened, m.passed)
		}
	})
}

// The meetings of one round are not those of the next.
func TestMeetingsOfTheNextRound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var m met
		for range 3 {
			if opened := m.round(func() { m.wait(""); m.wait("a") }, func() { m.wait("") }); len(opened) != 2 || len(m.all) != 2 {
				t.Errorf("%d opened, %d kept", len(opened), len(m.all))
			}
		}
	})
}

// timing notes when each contender was released.
type timing struct {
	bystanders
	mu sync.Mutex
	at map[int]time.Duration
}

func (c *timing) Contend(one *Contender) {
	d := one.Elapsed()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at[one.Number] = d
}

// An interrupt ends a stagger at once: who is in the round still has its say.
func TestACancelEndsAStagger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(90*time.Minute, cancel)
		contest := &timing{at: make(map[int]time.Duration)}
		r, err := Open(t.Context(), &stand{describe: targets.Description{Volatile: true}}, Plan{Setup: Setup{Run: "01TEST", SkipControls: true},
			Contenders: 4, Rounds: 2, Race: contest, Stagger: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		s := r.Run(ctx, unseen{}, nil)
		for i, want := range []time.Duration{0, time.Hour, 90 * time.Minute, 90 * time.Minute} {
			if contest.at[i] != want {
				t.Errorf("contender %d was released after %s, want %s", i, contest.at[i], want)
			}
		}
		if !s.Interrupted || s.Rounds != 1 || s.Elapsed != 90*time.Minute {
			t.Errorf("%+v", s)
		}
	})
}

// The instant of a staggered contender goes as far as it was held.
func TestInstantOfWhoIsHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		for _, c := range []struct{ asked, held, want time.Duration }{{time.Second, time.Second, time.Second}, {time.Second, time.Millisecond, time.Millisecond}, {0, time.Hour, 0}, {-1, time.Hour, 0}} {
			one := Contender{instant: start}
			one.hold(c.asked, func(time.Duration) { time.Sleep(c.held) })
			if got := one.instant.Sub(start); got != c.want {
				t.Errorf("held for %s of %s: the instant is %s later", c.held, c.asked, got)
			}
		}
		at := Contender{}
		if at.hold(time.Second, waitExactly); !at.instant.IsZero() {
			t.Errorf("without an instant there is one: %s", at.instant)
		}
	})
}

func TestWaitExactly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, d := range []time.Duration{0, 1, time.Microsecond, timerLate, timerLate + 1, time.Hour} {
			start := time.Now()
			if waitExactly(d); time.Since(start) != d {
				t.Errorf("%s took %s", d, time.Since(start))
			}
		}
	})
}
