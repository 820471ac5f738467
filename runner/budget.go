package runner

import (
	"context"
	"time"

	"contend/targets"
)

// budget keeps requests to limits: in no window of a limit's length are more
// sent than it allows, save the excess of a round that is larger than the limit
// itself, which the time before the next round pays for.
type budget []*window

// window is one limit and what was spent of it lately.
type window struct {
	limit targets.Limit
	spent []spending
}

type spending struct {
	at time.Time
	n  float64
}

func newBudget(limits []targets.Limit) budget {
	var b budget
	for _, l := range limits {
		b = append(b, &window{limit: l})
	}
	return b
}

// spend waits until n requests fit and books them; it gives up when ctx ends.
func (b budget) spend(ctx context.Context, n int) error { return b.spendSpread(ctx, 1, n, 0) }

// spendSpread waits until the requests of a round fit: of each contender so many,
// one contender staggered after the other.
func (b budget) spendSpread(ctx context.Context, contenders, each int, stagger time.Duration) error {
	n := contenders * each
	if len(b) == 0 {
		return ctx.Err()
	}
	wait := time.NewTimer(b.delay(n))
	defer wait.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-wait.C:
	}
	now := time.Now()
	for _, w := range b {
		if stagger == 0 {
			w.book(now, float64(n))
			continue
		}
		for i := range contenders {
			w.book(now.Add(time.Duration(i)*stagger), float64(each))
		}
	}
	return nil
}

// delay tells how long to wait before n more requests fit.
func (b budget) delay(n int) time.Duration {
	delay := time.Duration(0)
	for _, w := range b {
		delay = max(delay, w.delay(time.Now(), float64(n)))
	}
	return delay
}

// book notes n requests as sent now.
func (b budget) book(n int) {
	for _, w := range b {
		w.book(time.Now(), float64(n))
	}
}

// delay tells how long to wait at now before n more requests fit.
func (w *window) delay(now time.Time, n float64) time.Duration {
	within := 0.0
	for _, s := range w.spent {
		within += s.n
	}
	need := min(n, w.limit.Requests)
	delay := time.Duration(0)
	for _, s := range w.spent {
		if within+need <= w.limit.Requests {
			break
		}
		within -= s.n
		delay = max(delay, s.at.Add(w.limit.Per).Sub(now))
	}
	return delay
}

// book notes n requests as sent from now on, what exceeds the limit as sent in
// the windows that follow, and forgets what is older than one.
func (w *window) book(now time.Time, n float64) {
	first := 0
	for first < len(w.spent) && !w.spent[first].at.After(now.Add(-w.limit.Per)) {
		first++
	}
	w.spent = append(w.spent[:0], w.spent[first:]...)
	for at := now; n > 0; at = at.Add(w.limit.Per) {
		w.spent = append(w.spent, spending{at, min(n, w.limit.Requests)})
		n -= w.limit.Requests
	}
}

// Duration is the least that n requests take under the limits, from the first
// to the last.
func Duration(limits []targets.Limit, n int) time.Duration {
	least := time.Duration(0)
	for _, l := range limits {
		if excess := float64(n) - l.Requests; excess > 0 {
			least = max(least, time.Duration(excess/l.Requests*float64(l.Per)))
		}
	}
	return least
}
