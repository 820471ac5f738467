package runner

import (
	"testing"
	"time"

	"contend/targets"
)

func TestBackOffGrowsToTheLongestWindow(t *testing.T) {
	for _, c := range []struct {
		n          int
		longest    time.Duration
		retryAfter time.Duration
		want       time.Duration
		again      bool
	}{
		{1, time.Minute, 0, time.Second, true},
		{2, time.Minute, 0, 2 * time.Second, true},
		{7, time.Minute, 0, time.Minute, true},
		{8, time.Minute, 0, time.Minute, true},
		{9, time.Minute, 0, time.Minute, false},
		{100, time.Minute, 0, time.Minute, false},
		{3, time.Second, 0, time.Second, true},
		{1, time.Minute, 45 * time.Second, 45 * time.Second, true},
		{1, time.Minute, 24 * time.Hour, 2 * time.Minute, true},
	} {
		if d, again := backOffFor(c.n, c.longest, &targets.Reply{RetryAfter: c.retryAfter}); d != c.want || again != c.again {
			t.Errorf("refusal %d, %s, retry after %s: got %s, %t", c.n, c.longest, c.retryAfter, d, again)
		}
	}
}
