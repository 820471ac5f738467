package runner

import (
	"slices"
	"time"

	"contend/targets"
)

// budget keeps requests to limits: in no window of a limit's length are more
// sent than it allows, save the excess of a round that is larger than the limit
// itself, which the time before the next round pays for. It knows no clock: a run
// asks it for its own time, and the plan of one for a time that it makes up.
type budget []*window

// window is one limit and what was spent of it lately, in the order of time.
type window struct {
	limit  targets.Limit
	spent  []spending
	within float64 // sum of spent
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

// delay tells how long to wait at now before n more requests fit, and for which
// limit.
func (b budget) delay(now time.Time, n int) (delay time.Duration, of targets.Limit) {
	for _, w := range b {
		if d := w.delay(now, float64(n)); d > delay {
			delay, of = d, w.limit
		}
	}
	return delay, of
}

// book notes requests as sent from now on: of each contender so many, one contender
// staggered after the other.
func (b budget) book(now time.Time, contenders, each int, stagger time.Duration) {
	for _, w := range b {
		w.forget(now)
		if stagger == 0 {
			w.book(now, float64(contenders*each))
			continue
		}
		for i := range contenders {
			w.book(now.Add(time.Duration(i)*stagger), float64(each))
		}
	}
}

// delay tells how long to wait at now before n more requests fit.
func (w *window) delay(now time.Time, n float64) time.Duration {
	const exactness = 1e-6 // of sums
	w.forget(now)
	need, within := min(n, w.limit.Requests), w.within
	delay := time.Duration(0)
	for _, s := range w.spent {
		if within+need <= w.limit.Requests+exactness {
			break
		}
		within -= s.n
		delay = s.at.Add(w.limit.Per).Sub(now)
	}
	return delay
}

// forget leaves out what has left the window.
func (w *window) forget(now time.Time) {
	gone := 0
	for gone < len(w.spent) && !w.spent[gone].at.Add(w.limit.Per).After(now) {
		w.within -= w.spent[gone].n
		gone++
	}
	if w.spent = w.spent[gone:]; len(w.spent) == 0 {
		w.within = 0
	}
}

// book notes n requests as sent at an instant, and what exceeds the limit as sent in
// the windows that follow.
func (w *window) book(at time.Time, n float64) {
	for ; n > 0; at = at.Add(w.limit.Per) {
		part := spending{at, min(n, w.limit.Requests)}
		n -= part.n
		w.within += part.n
		i := len(w.spent)
		for i > 0 && w.spent[i-1].at.After(at) {
			i--
		}
		if i > 0 && w.spent[i-1].at.Equal(at) {
			w.spent[i-1].n += part.n
			continue
		}
		w.spent = slices.Insert(w.spent, i, part)
	}
}

// course is how a plan goes under its limits if no request takes any time: the same
// budget, on a clock of its own that goes on where it has to wait.
type course struct {
	budget
	start, now time.Time
}

func newCourse(limits []targets.Limit) *course {
	now := time.Now()
	return &course{newBudget(limits), now, now}
}

func (c *course) took() time.Duration { return c.now.Sub(c.start) }

// await waits until n requests fit.
func (c *course) await(n int) {
	delay, _ := c.delay(c.now, n)
	c.now = c.now.Add(delay)
}

func (c *course) spend(n int) { c.spendSpread(1, n, 0) }

func (c *course) spendSpread(contenders, each int, stagger time.Duration) {
	c.await(contenders * each)
	c.book(c.now, contenders, each, stagger)
	c.now = c.now.Add(time.Duration(contenders-1) * stagger)
}

// batches spends count requests, at most so many at a time.
func (c *course) batches(count, most int) {
	for ; count > 0; count -= most {
		c.spend(min(count, most))
	}
}
