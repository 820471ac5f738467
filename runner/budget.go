package runner

import (
	"context"
	"time"
)

// budget keeps requests to a rate: in no second are more sent than it allows,
// save the excess of a round that is larger than the rate itself, which the
// time before the next round pays for.
type budget struct {
	rate  float64 // requests a second; 0: unlimited
	spent []spending
}

type spending struct {
	at time.Time
	n  float64
}

// spend waits until n requests fit and books them; it gives up when ctx ends.
func (b *budget) spend(ctx context.Context, n int) error {
	if b.rate == 0 {
		return ctx.Err()
	}
	wait := time.NewTimer(b.delay(time.Now(), float64(n)))
	defer wait.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-wait.C:
	}
	b.book(time.Now(), float64(n))
	return nil
}

// delay tells how long to wait at now before n more requests fit.
func (b *budget) delay(now time.Time, n float64) time.Duration {
	within := 0.0
	for _, s := range b.spent {
		within += s.n
	}
	need := min(n, b.rate)
	for _, s := range b.spent {
		if within+need <= b.rate {
			break
		}
		within -= s.n
		if d := s.at.Add(time.Second).Sub(now); within+need <= b.rate && d > 0 {
			return d
		}
	}
	return 0
}

// book notes n requests as sent from now on, what exceeds the rate as sent in
// the seconds that follow, and forgets what is older than a second.
func (b *budget) book(now time.Time, n float64) {
	first := 0
	for first < len(b.spent) && !b.spent[first].at.After(now.Add(-time.Second)) {
		first++
	}
	b.spent = append(b.spent[:0], b.spent[first:]...)
	for at := now; n > 0; at = at.Add(time.Second) {
		b.spent = append(b.spent, spending{at, min(n, b.rate)})
		n -= b.rate
	}
}
