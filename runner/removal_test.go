package runner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"contend/targets"
)

// deletesOf are those of so many keys.
func deletesOf(n int) (deletes []targets.Op, keys []string) {
	for i := range n {
		keys = append(keys, fmt.Sprintf("p-%d", i))
		deletes = append(deletes, targets.Op{Kind: targets.Delete, Key: keys[i]})
	}
	return deletes, keys
}

func TestRemove(t *testing.T) {
	unlisted := errors.New("NOPERM SCAN")
	for name, c := range map[string]struct {
		keys    int
		outcome targets.Outcome
		listed  func(context.Context, int) ([]string, error)
		removed int
		left    string // of what is told; "": nothing is
		sent    int
	}{
		"nothing to remove":               {0, targets.OK, nil, 0, "", 0},
		"all gone":                        {20, targets.OK, nil, 20, "", 20},
		"some are still there":            {20, targets.OK, always("p-3", "p-7"), 18, "2 still there, such as p-3; the store had accepted their removal", 20},
		"refused":                         {20, targets.Invalid, always("p-0"), 19, "1 still there, such as p-0; the store answered: invalid", removalSessions},
		"what others wrote is not ours":   {20, targets.OK, always("p-new"), 20, "", 20},
		"listed for a moment":             {20, targets.OK, upTo(2, "p-1"), 20, "", 20},
		"cannot be listed":                {20, targets.OK, func(context.Context, int) ([]string, error) { return nil, unlisted }, 0, "could not be seen: NOPERM SCAN", 20},
		"there was nothing of it":         {20, targets.Missing, nil, 20, "", 20},
		"nobody answers":                  {100, targets.Unknown, always("p-0", "p-1"), 98, "2 still there, such as p-0; the store answered: unknown", removalSessions},
		"nobody answers, and all is gone": {100, targets.NotSent, nil, 100, "", removalSessions},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				deletes, _ := deletesOf(c.keys)
				target := &stand{listed: c.listed, do: func(targets.Op) targets.Reply { return targets.Reply{Outcome: c.outcome} }}
				got, err := Remove(t.Context(), target, "p-", deletes, time.Second, nil, nil)
				if err != nil || got.Removed != c.removed || (got.Left == nil) != (c.left == "") || got.Left != nil && !strings.Contains(got.Left.Error(), c.left) {
					t.Errorf("%+v, %v", got, err)
				}
				if len(target.sent) < c.sent || len(target.sent) > c.sent+removalSessions {
					t.Errorf("%d deletes were sent, want about %d", len(target.sent), c.sent)
				}
				if left := target.openedNotClosed(); len(left) > 0 || len(target.opened) > removalSessions {
					t.Errorf("sessions %v are left open of %d", left, len(target.opened))
				}
			})
		})
	}
}

func always(keys ...string) func(context.Context, int) ([]string, error) {
	return func(context.Context, int) ([]string, error) { return keys, nil }
}

func upTo(looks int, keys ...string) func(context.Context, int) ([]string, error) {
	return func(_ context.Context, look int) ([]string, error) {
		if look > looks {
			return nil, nil
		}
		return keys, nil
	}
}

// What a quota refuses is sent again after the others, when it was waited for; each key
// is removed once.
func TestRemovalAfterAQuota(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		deletes, keys := deletesOf(30)
		var accepted []string
		began := time.Now()
		target := &stand{}
		target.do = func(op targets.Op) (r targets.Reply) {
			target.count(func() {
				if len(accepted) >= 10 && time.Since(began) < time.Minute {
					r = targets.Reply{Outcome: targets.Throttled, RetryAfter: 20 * time.Second}
					return
				}
				accepted, r = append(accepted, op.Key), targets.Reply{Outcome: targets.OK}
			})
			return r
		}
		var told []string
		got, err := Remove(t.Context(), target, "p-", deletes, time.Second, nil, waiting{listener{"x", &told}})
		if err != nil || got != (Removal{Removed: 30}) {
			t.Errorf("%+v, %v", got, err)
		}
		if slices.Sort(accepted); !slices.Equal(accepted, slices.Sorted(slices.Values(keys))) {
			t.Errorf("%q were removed", accepted)
		}
		if len(told) == 0 || !strings.Contains(told[0], "quota is spent") || time.Since(began) > 5*time.Minute {
			t.Errorf("told %q, after %s", told, time.Since(began))
		}
	})
}

// A cancel ends the removal at once, wherever it is.
func TestACancelEndsTheRemoval(t *testing.T) {
	for name, c := range map[string]struct {
		target *stand
		limits []targets.Limit
		after  time.Duration
	}{
		"while a quota is waited for": {&stand{do: func(targets.Op) targets.Reply {
			return targets.Reply{Outcome: targets.Throttled, RetryAfter: time.Hour}
		}}, nil, time.Second},
		"while a limit is waited for": {&stand{}, []targets.Limit{{Requests: 1, Per: time.Hour}}, time.Second},
		"between two looks":           {&stand{listed: always("p-1")}, nil, 150 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), c.after)
				defer cancel()
				deletes, _ := deletesOf(3)
				began := time.Now()
				got, err := Remove(ctx, c.target, "p-", deletes, time.Second, c.limits, nil)
				if took := time.Since(began); took != c.after || err == nil && got.Left == nil {
					t.Errorf("%+v, %v, after %s", got, err, took)
				}
			})
		})
	}
	target := &stand{}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	deletes, _ := deletesOf(3)
	if _, err := Remove(ctx, target, "p-", deletes, time.Second, nil, nil); !errors.Is(err, context.Canceled) || len(target.sent) > 0 {
		t.Errorf("cancelled before: %v, %d sent", err, len(target.sent))
	}
}

// Fewer sessions than wanted do; with none nothing is removed.
func TestRemovalWithFewSessions(t *testing.T) {
	for _, most := range []int{0, 1, 3} {
		n := 0
		target := &stand{}
		target.refuse = func(int) (err error) {
			target.count(func() {
				if n++; n > most {
					err = errors.New("no more clients")
				}
			})
			return err
		}
		deletes, _ := deletesOf(30)
		got, err := Remove(t.Context(), target, "p-", deletes, time.Second, nil, nil)
		if most == 0 && (err == nil || len(target.sent) > 0) || most > 0 && (err != nil || got.Removed != 30 || len(target.sent) != 30) {
			t.Errorf("with %d: %+v, %v, %d sent", most, got, err, len(target.sent))
		}
	}
}

func TestLeftTells(t *testing.T) {
	for want, l := range map[string]Left{
		"keys were left behind: 2 still there, such as a; the store had accepted their removal":              {Keys: []string{"a", "b"}},
		"keys were left behind: 1 still there, such as a; the store answered: NO":                            {Keys: []string{"a"}, Refused: "NO"},
		"keys may have been left behind: whether they are gone could not be seen: nobody answers":            {Unseen: errors.New("nobody answers")},
		"keys were left behind: 1 still there, such as a; the store had accepted their removal" + "\x00both": {Keys: []string{"a"}, Unseen: errors.New("no")},
	} {
		want, _, _ = strings.Cut(want, "\x00")
		if got := l.orNil(); got == nil || got.Error() != want {
			t.Errorf("%v, want %s", got, want)
		}
	}
	if got := (&Left{Refused: "NO"}).orNil(); got != nil {
		t.Errorf("where nothing is left: %v", got)
	}
	var l Left
	for _, r := range []targets.Reply{{Outcome: targets.OK}, {Outcome: targets.Missing}, {Outcome: targets.Unsupported}, {Outcome: targets.Invalid, Code: "NO"}, {Outcome: targets.Invalid, Code: "NEVER"}} {
		l.refuse(&r)
	}
	if l.Refused != "NO" {
		t.Errorf("the first refusal: %q", l.Refused)
	}
}
