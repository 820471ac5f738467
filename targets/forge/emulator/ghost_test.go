package emulator

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// sweepAfter returns options whose keys are swept that long after expiry.
func sweepAfter(delay time.Duration) Options {
	return Options{Entities: lease, Sweep: func() time.Duration { return delay }}
}

var halfMinute = &TTL{raw(`30`), "SECONDS"}

func TestGhostTimelineOfTheArticle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(sweepAfter(900 * time.Second))
		claim := SetOptions{KeyPolicy: "FAIL_IF_EXISTS", TTL: halfMinute}
		_, err := s.Set("k", raw(`"first"`), claim)
		noError(t, err)
		expiry := time.Now().Add(30 * time.Second)
		for _, seconds := range []int{27, 89, 212, 515} {
			time.Sleep(time.Until(expiry.Add(time.Duration(seconds) * time.Second)))
			_, err := s.Set("k", raw(`"second"`), claim)
			wantError(t, err, 409, "KEY_CONFLICT", "Provided key already exists and cannot be overwritten")
			wantValue(t, s, "", "k", `"first"`)
		}
		time.Sleep(time.Until(expiry.Add(1117 * time.Second)))
		_, err = s.Set("k", raw(`"second"`), claim)
		noError(t, err)
		item, err := s.Get("k", GetOptions{MetadataFields: []string{"CREATED_AT"}})
		noError(t, err)
		wantJSON(t, item, fmt.Sprintf(`{"key":"k","value":"second","createdAt":%d}`, time.Now().UnixMilli()))
	})
}

func TestSweepHappensExactlyAfterItsDelay(t *testing.T) {
	for name, c := range map[string]struct {
		options Options
		delay   time.Duration
	}{
		"at expiry":  {Options{}, 0},
		"some delay": {sweepAfter(7 * time.Second), 7 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := New(c.options)
				_, err := s.Set("k", raw(`1`), SetOptions{TTL: halfMinute})
				noError(t, err)
				time.Sleep(30*time.Second + c.delay - time.Millisecond)
				wantValue(t, s, "", "k", `1`)
				time.Sleep(time.Millisecond)
				wantValue(t, s, "", "k", "")
				if len(s.plain.records) != 0 {
					t.Fatalf("%d records remain", len(s.plain.records))
				}
			})
		})
	}
}

func TestSweepIsDrawnForWritesWithTTLOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		drawn := 0
		s := New(Options{Sweep: func() time.Duration { drawn++; return -1 }})
		for _, o := range []SetOptions{{}, {TTL: halfMinute}, {}, {TTL: halfMinute}} {
			_, err := s.Set("k", raw(`1`), o)
			noError(t, err)
		}
		noError(t, s.Transact(Transaction{Set: []TransactionItem{
			{Key: "t", Value: raw(`1`), Options: &ItemOptions{TTL: halfMinute}},
		}}))
		if drawn != 3 {
			t.Fatalf("drawn %d times, want 3", drawn)
		}
		time.Sleep(10 * 365 * 24 * time.Hour)
		wantValue(t, s, "", "k", `1`)
		wantValue(t, s, "", "t", `1`)
	})
}

// ghostly returns a store where the entity key and the plain key k are ghosts.
func ghostly(t *testing.T, o Options) *Store {
	t.Helper()
	o.Entities = lease
	o.Sweep = func() time.Duration { return time.Hour }
	s := New(o)
	_, err := s.EntitySet("lease", "k", raw(`{"version":1}`), SetOptions{TTL: halfMinute})
	noError(t, err)
	_, err = s.Set("k", raw(`1`), SetOptions{TTL: halfMinute})
	noError(t, err)
	time.Sleep(30 * time.Second) // the moment of expiry
	return s
}

func TestHideGhosts(t *testing.T) {
	guarded := func(condition, value string) Transaction {
		return Transaction{Check: []TransactionItem{{
			Key: "k", EntityName: "lease",
			Conditions: &Conditions{And: []Condition{{"version", condition, values(value)}}},
		}}}
	}
	synctest.Test(t, func(t *testing.T) {
		s := ghostly(t, Options{})
		noError(t, s.Transact(guarded("EQUAL_TO", `1`)))
		wantError(t, s.Transact(guarded("NOT_EXISTS", `true`)), 400, "CONDITIONAL_CHECK_FAILED", "")
		_, err := s.EntitySet("lease", "k", raw(`{}`), SetOptions{KeyPolicy: "FAIL_IF_EXISTS"})
		wantError(t, err, 409, "KEY_CONFLICT", "")

		s = ghostly(t, Options{HideGhosts: true})
		wantError(t, s.Transact(guarded("EQUAL_TO", `1`)), 400, "CONDITIONAL_CHECK_FAILED", "")
		noError(t, s.Transact(guarded("NOT_EXISTS", `true`)))
		wantValue(t, s, "lease", "k", `{"version":1}`)
		_, err = s.EntitySet("lease", "k", raw(`{}`), SetOptions{KeyPolicy: "FAIL_IF_EXISTS"})
		noError(t, err)
		item, err := s.EntityGet("lease", "k", GetOptions{MetadataFields: []string{"CREATED_AT"}})
		noError(t, err)
		if *item.CreatedAt != time.Now().UnixMilli() {
			t.Fatalf("a hidden ghost passed on its createdAt %d", *item.CreatedAt)
		}
		_, err = s.Set("k", raw(`2`), SetOptions{KeyPolicy: "FAIL_IF_EXISTS"})
		wantError(t, err, 409, "KEY_CONFLICT", "")
	})
}

func TestDeletingAGhost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := ghostly(t, Options{})
		noError(t, s.Delete("k"))
		wantValue(t, s, "", "k", "")

		s = ghostly(t, Options{DeleteKeepsGhost: true})
		noError(t, s.Delete("k"))
		wantValue(t, s, "", "k", `1`)
		time.Sleep(time.Hour)
		wantValue(t, s, "", "k", "")
		_, err := s.Set("k", raw(`2`), SetOptions{TTL: halfMinute})
		noError(t, err)
		noError(t, s.Delete("k"))
		wantValue(t, s, "", "k", "")
	})
}

func TestOverwritingWithoutTTL(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for keeps, wanted := range map[bool]string{false: `2`, true: ""} {
			s := New(Options{OverwriteKeepsExpiry: keeps})
			_, err := s.Set("k", raw(`1`), SetOptions{TTL: halfMinute})
			noError(t, err)
			_, err = s.Set("k", raw(`2`), SetOptions{})
			noError(t, err)
			time.Sleep(time.Minute)
			wantValue(t, s, "", "k", wanted)
		}
	})
}

func TestExpireGranularity(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(1234 * time.Millisecond)
		for granularity, wanted := range map[Granularity]string{
			Milliseconds: "2000-01-01T00:00:31.234Z",
			Seconds:      "2000-01-01T00:00:31Z",
		} {
			s := New(Options{ExpireGranularity: granularity})
			item, err := s.Set("k", raw(`1`), SetOptions{
				TTL: halfMinute, ReturnValue: "LATEST", ReturnMetadataFields: []string{"EXPIRE_TIME"},
			})
			noError(t, err)
			if *item.ExpireTime != wanted {
				t.Errorf("granularity %d: got %s, want %s", granularity, *item.ExpireTime, wanted)
			}
		}
	})
}

func TestLongTTLCode(t *testing.T) {
	s := New(Options{LongTTLCode: "BAD_REQUEST"})
	_, err := s.Set("k", raw(`1`), SetOptions{TTL: &TTL{raw(`366`), "DAYS"}})
	wantError(t, err, 400, "BAD_REQUEST", "TTL must end within one year")
}
