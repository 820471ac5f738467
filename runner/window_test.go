package runner

import (
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"contend/targets"
)

// at is an instant of a budget's time.
func at(d time.Duration) time.Time { return time.Unix(0, 0).Add(d) }

func TestDelay(t *testing.T) {
	const s = time.Second
	type spent struct {
		at time.Duration
		n  int
	}
	for name, c := range map[string]struct {
		limit float64
		spent []spent
		now   time.Duration
		n     int
		want  time.Duration
	}{
		"nothing spent":                  {10, nil, 0, 10, 0},
		"room is left":                   {10, []spent{{0, 4}}, 0, 6, 0},
		"no room is left":                {10, []spent{{0, 4}}, 0, 7, 60 * s},
		"a part has left the window":     {10, []spent{{0, 4}, {30 * s, 6}}, 61 * s, 4, 0},
		"until the first part leaves it": {10, []spent{{0, 4}, {30 * s, 6}}, 40 * s, 4, 20 * s},
		"until both parts have":          {10, []spent{{0, 4}, {30 * s, 6}}, 40 * s, 5, 50 * s},
		"more than a limit":              {10, nil, 0, 25, 0},
		"more than a limit, later":       {10, []spent{{0, 1}}, 0, 25, 60 * s},
		"an excess is paid for":          {10, []spent{{0, 25}}, 0, 1, 120 * s},
		"what an excess leaves":          {10, []spent{{0, 25}}, 120 * s, 5, 0},
		"what an excess does not leave":  {10, []spent{{0, 25}}, 120 * s, 6, 60 * s},
		"the edge of a window":           {10, []spent{{0, 10}}, 60 * s, 10, 0},
		"just before the edge":           {10, []spent{{0, 10}}, 60*s - 1, 10, 1},
		"thirds add up":                  {1, []spent{{0, 0}}, 0, 1, 0},
	} {
		b := newBudget([]targets.Limit{{Requests: c.limit, Per: time.Minute}})
		for _, x := range c.spent {
			b.book(at(x.at), 1, x.n, 0)
		}
		if got, _ := b.delay(at(c.now), c.n); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// Of several limits the one that takes longest is waited for, and named.
func TestDelayOfSeveralLimits(t *testing.T) {
	second, minute := targets.Limit{Requests: 2, Per: time.Second}, targets.Limit{Requests: 5, Per: time.Minute}
	b := newBudget([]targets.Limit{second, minute})
	now := at(0)
	for i, want := range []struct {
		delay time.Duration
		of    targets.Limit
	}{{0, targets.Limit{}}, {0, targets.Limit{}}, {time.Second, second}, {0, targets.Limit{}}, {time.Second, second}, {58 * time.Second, minute}} {
		delay, of := b.delay(now, 1)
		if delay != want.delay || of != want.of {
			t.Errorf("request %d: %s for %+v, want %s for %+v", i+1, delay, of, want.delay, want.of)
		}
		now = now.Add(delay)
		b.book(now, 1, 1, 0)
	}
	if delay, _ := (budget)(nil).delay(at(0), 1000); delay != 0 {
		t.Errorf("without a limit %s", delay)
	}
}

// Contenders that are staggered are counted when each is released.
func TestStaggeredBooking(t *testing.T) {
	b := newBudget([]targets.Limit{{Requests: 10, Per: time.Minute}})
	b.book(at(0), 5, 2, 10*time.Second)
	for _, c := range []struct{ now, want time.Duration }{{0, time.Minute}, {50 * time.Second, 10 * time.Second}, {time.Minute, 0}} {
		if got, _ := b.delay(at(c.now), 2); got != c.want {
			t.Errorf("at %s: %s, want %s", c.now, got, c.want)
		}
	}
	if got, _ := b.delay(at(time.Minute), 10); got != 40*time.Second {
		t.Errorf("for all: %s", got)
	}
}

// Whatever is booked when its delay is over, no window of the limit's length ever holds
// more than the limit.
func TestNoWindowHoldsMore(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 7))
	for range 200 {
		limit := targets.Limit{Requests: float64(3 + random.IntN(8)), Per: time.Duration(1+random.IntN(5)) * time.Second}
		b, now := newBudget([]targets.Limit{limit}), at(0)
		type sent struct {
			at time.Time
			n  int
		}
		var all []sent
		for range 50 {
			now = now.Add(time.Duration(random.IntN(int(limit.Per))))
			n := 1 + random.IntN(int(limit.Requests))
			delay, _ := b.delay(now, n)
			now = now.Add(delay)
			b.book(now, 1, n, 0)
			all = append(all, sent{now, n})
		}
		for i := range all {
			within := 0
			for _, x := range all[i:] {
				if x.at.Sub(all[i].at) < limit.Per {
					within += x.n
				}
			}
			if float64(within) > limit.Requests {
				t.Fatalf("%d requests within %s, the limit is %g", within, limit.Per, limit.Requests)
			}
		}
	}
}

// A course follows the same budget on a clock of its own: it takes no time.
func TestCourse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		c := newCourse([]targets.Limit{{Requests: 10, Per: time.Minute}})
		c.batches(35, 4)
		if c.took() != 4*time.Minute {
			t.Errorf("35 requests, 4 at a time: %s", c.took())
		}
		c.spendSpread(3, 1, 10*time.Second)
		if c.took() != 4*time.Minute+20*time.Second {
			t.Errorf("3 more, 10 s apart: %s", c.took())
		}
		if time.Since(began) != 0 {
			t.Errorf("it took %s", time.Since(began))
		}
	})
}
