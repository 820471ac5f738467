package fault_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"contend/targets"
	"contend/targets/targettest/try"
)

// seenOfExpiry gives what is seen of keys that were given ten seconds to live and
// are swept a minute after it: what a read tells at once, then the outcomes of ops on
// a key that nobody asked about before, at the second in front of the colon.
func seenOfExpiry(t *testing.T, url string, collection targets.Collection) string {
	s := try.Session(t, try.Open(t, url), -1)
	do := func(kind targets.Kind, number int, ttl time.Duration) targets.Reply {
		op := targets.Op{Kind: kind, Key: fmt.Sprint("contend-", number), Collection: collection}
		if kind == targets.Write {
			op.If, op.TTL, op.Value.Token = targets.Condition{Guard: targets.IfAbsent}, ttl, "t"
		}
		return s.Do(t.Context(), op)
	}
	began := time.Now()
	asked := []struct {
		second int
		kinds  []targets.Kind
	}{
		{4, []targets.Kind{targets.Write}},
		{6, []targets.Kind{targets.Write}},
		{7, []targets.Kind{targets.Read}},
		{15, []targets.Kind{targets.Write, targets.Write}},
		{16, []targets.Kind{targets.Read, targets.Write}},
		{17, []targets.Kind{targets.Read}},
		{71, []targets.Kind{targets.Write}},
		{81, []targets.Kind{targets.Write}},
	}
	for number := range asked {
		if r := do(targets.Write, number, 10*time.Second); r.Outcome != targets.OK {
			t.Fatalf("%s: %+v", url, r)
		}
	}
	told := do(targets.Read, 0, 0)
	seen := []string{fmt.Sprintf("%s %s", told.Expires.Sub(began), told.Granted)}
	for number, a := range asked {
		time.Sleep(time.Until(began.Add(time.Duration(a.second) * time.Second)))
		text := fmt.Sprintf("%d:", a.second)
		for _, kind := range a.kinds {
			text += fmt.Sprint(" ", do(kind, number, 0).Outcome)
		}
		seen = append(seen, text)
	}
	return strings.Join(seen, ", ")
}

// Each fault of the time to live shows in what is seen, and nothing else changes.
func TestFaultsOfTheTimeToLive(t *testing.T) {
	const honest = "10s 10s, 4: conflict, 6: conflict, 7: ok, 15: conflict conflict, 16: ok conflict, 17: ok, 71: ok, 81: ok"
	for fault, want := range map[string]string{
		"":                       honest,
		"&fault=throttle=0":      honest,
		"&fault=early-expiry":    "10s 10s, 4: conflict, 6: ok, 7: missing, 15: ok conflict, 16: missing ok, 17: missing, 71: ok, 81: ok",
		"&fault=sweep-on-access": "10s 10s, 4: conflict, 6: conflict, 7: ok, 15: conflict ok, 16: ok ok, 17: ok, 71: ok, 81: ok",
		"&fault=clean-reads":     "10s 10s, 4: conflict, 6: conflict, 7: ok, 15: conflict conflict, 16: missing conflict, 17: missing, 71: ok, 81: ok",
		"&fault=clock-offset":    "15s 10s, 4: conflict, 6: conflict, 7: ok, 15: conflict conflict, 16: ok conflict, 17: ok, 71: ok, 81: ok",
		"&fault=grants-double":   "20s 20s, 4: conflict, 6: conflict, 7: ok, 15: conflict conflict, 16: ok conflict, 17: ok, 71: conflict, 81: ok",
	} {
		for _, collection := range []targets.Collection{targets.Plain, targets.Versioned} {
			synctest.Test(t, func(t *testing.T) {
				if got := seenOfExpiry(t, "sim:?latency=0&sweep=1m"+fault, collection); got != want {
					t.Errorf("%q, collection %s:\ngot  %s\nwant %s", fault, collection, got, want)
				}
			})
		}
	}
}

// Keys without a time to live are spared.
func TestFaultsOfTheTimeToLiveSpareOtherKeys(t *testing.T) {
	for _, fault := range []string{"early-expiry", "sweep-on-access", "clean-reads", "clock-offset", "grants-double"} {
		synctest.Test(t, func(t *testing.T) {
			s := try.Session(t, try.Open(t, "sim:?latency=0&fault="+fault), 0)
			create := targets.Op{Kind: targets.Write, Key: "k", If: targets.Condition{Guard: targets.IfAbsent}}
			for i, want := range []targets.Outcome{targets.OK, targets.Conflict, targets.Conflict} {
				time.Sleep(time.Hour)
				if r := s.Do(t.Context(), create); r.Outcome != want {
					t.Errorf("%s: create %d: %+v", fault, i, r)
				}
			}
			if r := s.Do(t.Context(), targets.Op{Kind: targets.Read, Key: "k"}); r.Outcome != targets.OK || !r.Expires.IsZero() || r.Granted != 0 {
				t.Errorf("%s: %+v", fault, r)
			}
		})
	}
}

// What sweeps a key does so once: of those who ask for it at once one gets it.
func TestFaultsOfTheTimeToLiveLetOneIn(t *testing.T) {
	for fault, after := range map[string]time.Duration{"early-expiry": 6 * time.Second, "sweep-on-access": 15 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			target := try.Open(t, "sim:?latency=40ms&fault="+fault)
			create := targets.Op{Kind: targets.Write, Key: "k", TTL: 10 * time.Second, If: targets.Condition{Guard: targets.IfAbsent}}
			first := try.Session(t, target, -1)
			first.Do(t.Context(), create)
			time.Sleep(after)
			first.Do(t.Context(), targets.Op{Kind: targets.Read, Key: "k"}) // after which both have swept it
			var won sync.Map
			var group sync.WaitGroup
			for i := range 12 {
				s := try.Session(t, target, i)
				group.Go(func() {
					if r := s.Do(t.Context(), create); r.Outcome == targets.OK {
						won.Store(i, true)
					}
				})
			}
			group.Wait()
			winners := 0
			won.Range(func(any, any) bool { winners++; return true })
			if winners != 1 {
				t.Errorf("%s: %d of 12 got the key", fault, winners)
			}
		})
	}
}
