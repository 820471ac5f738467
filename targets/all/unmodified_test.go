package all_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"contend/targets"
	"contend/targets/targettest/try"
)

// A target says before anything is sent that it cannot compare times so fine.
func TestTimesAreAsFineAsTheTargetKeepsThem(t *testing.T) {
	t.Setenv("CONTEND_FORGE_TOKEN", "secret")
	for url, finest := range map[string]time.Duration{
		"sim:":                                time.Millisecond,
		"forge+https://example.invalid/x1/id": time.Millisecond,
		"forge+rest://example.invalid":        time.Millisecond,
		"postgres://example.invalid/db":       time.Microsecond,
	} {
		err := try.Prepare(t.Context(), t, url, targets.Needs{Precision: finest / 10})
		if !errors.Is(err, targets.ErrUnsupported) || !strings.Contains(err.Error(), "this target has no time as fine as "+(finest/10).String()) {
			t.Errorf("%s: %v", url, err)
		}
	}
	if err := try.Prepare(t.Context(), t, "sim:", targets.Needs{Precision: time.Millisecond}); err != nil {
		t.Error(err)
	}
}

// A store that checks and sets in two steps lets two writes on one time through,
// whatever times they leave.
func TestGapLetsTwoWritesOnOneTimeThrough(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		target := try.Open(t, "sim:?latency=0&fault=gap")
		at := time.Date(2026, 11, 30, 12, 34, 56, 0, time.UTC)
		put := targets.Op{Kind: targets.Write, Key: "k", Collection: targets.Versioned, Value: targets.Record{Token: "seed", UpdatedAt: at}}
		if r := try.Session(t, target, -1).Do(t.Context(), put); r.Outcome != targets.OK {
			t.Fatal(r)
		}
		put.If = targets.Condition{Guard: targets.IfUnmodified, UpdatedAt: at}
		replies := make(chan targets.Outcome, 2)
		for i := range 2 {
			s := try.Session(t, target, i)
			op := put
			op.Value.UpdatedAt = at.Add(time.Second)
			go func() { replies <- s.Do(t.Context(), op).Outcome }()
		}
		if first, second := <-replies, <-replies; first != targets.OK || second != targets.OK {
			t.Errorf("%s, %s", first, second)
		}
		put.Value.UpdatedAt = at.Add(2 * time.Second)
		if r := try.Session(t, target, 2).Do(t.Context(), put); r.Outcome != targets.Conflict {
			t.Errorf("afterwards: %s", r.Outcome)
		}
	})
}
