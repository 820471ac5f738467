package emulator

import (
	"testing"
	"testing/synctest"
	"time"
)

const overQuota = "RATE_LIMIT_EXCEEDED"

// admits lets n requests of one size in; the next one is refused.
func admits(t *testing.T, q *Quota, effect Effect, bytes, n int) {
	t.Helper()
	for i := range n {
		if err := q.Admit(effect, bytes); err != nil {
			t.Fatalf("request %d of %d: %v", i+1, n, err)
		}
	}
	wantError(t, q.Admit(effect, bytes), 429, overQuota, "")
}

func TestQuotaOfASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := NewQuota(overQuota)
		admits(t, q, Read, 0, 1000)
		wantError(t, q.Admit(Write, 0), 429, overQuota, "")
		time.Sleep(time.Second - time.Nanosecond)
		wantError(t, q.Admit(Read, 0), 429, overQuota, "")
		time.Sleep(time.Nanosecond)
		admits(t, q, Write, 0, 1000)
	})
}

func TestQuotaOfAMinute(t *testing.T) {
	for name, c := range map[string]struct{ bytes, admitted int }{
		"10 KB cost 1":                {10 << 10, 4000},
		"a byte more costs 2":         {10<<10 + 1, 2000},
		"25 KB cost 3":                {25 << 10, 1333},
		"a batch is its total size":   {25 * (200 << 10), 8},
		"none costs 1 as one byte do": {0, 4000},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := NewQuota(overQuota)
				for left := c.admitted; left > 1000; left -= 1000 {
					for range 1000 {
						noError(t, q.Admit(Write, c.bytes))
					}
					time.Sleep(time.Second)
				}
				admits(t, q, Write, c.bytes, (c.admitted-1)%1000+1)
				noError(t, NewQuota(overQuota).Admit(Write, c.bytes))
				time.Sleep(time.Second)
				noError(t, q.Admit(Read, c.bytes)) // reads have their own
				wantError(t, q.Admit(Write, c.bytes), 429, overQuota, "")
				time.Sleep(time.Minute)
				noError(t, q.Admit(Write, c.bytes))
			})
		})
	}
}

func TestRefusedRequestsAreNotCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := NewQuota("TOO_MANY_REQUESTS")
		for range 10 {
			wantError(t, q.Admit(Write, 4001*unitBytes), 429, "TOO_MANY_REQUESTS", "")
		}
		noError(t, q.Admit(Write, 4000*unitBytes))
	})
}

func TestNoQuotaAdmitsEverything(t *testing.T) {
	var none *Quota
	for range 2000 {
		noError(t, none.Admit(Read, 1<<30))
	}
}
