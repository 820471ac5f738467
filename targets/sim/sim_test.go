package sim_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"contend/targets"
	"contend/targets/all"
	"contend/targets/targettest"
	"contend/targets/targettest/try"
)

var bothGuards = []targets.Guard{targets.IfAbsent, targets.IfVersion}

func TestSimKeepsThePromises(t *testing.T) {
	for sweep, expired := range map[string]targettest.Expired{"0": targettest.Gone, "7s": targettest.Gone, "1h": targettest.Blocked, "never": targettest.Blocked} {
		synctest.Test(t, func(t *testing.T) {
			target := try.Open(t, "sim:?latency=0&sweep="+sweep)
			needs := targets.Needs{Guards: bothGuards, Sessions: 8, Timeout: time.Second}
			if err := try.Suite(t.Context(), target, needs, targettest.TTL(expired)); err != nil {
				t.Errorf("sweep=%s: %v", sweep, err)
			}
		})
	}
}

// The suite sees the faults that do not spare what it does.
func TestSuiteSeesAPlantedFault(t *testing.T) {
	for _, fault := range []string{"condition-ignored", "two-winners", "no-winner", "loser-stored", "lost-write", "version-jump", "unmapped"} {
		err := try.Suite(t.Context(), try.Open(t, "sim:?latency=0&fault="+fault), targets.Needs{Guards: bothGuards, Sessions: 8, Timeout: time.Second})
		if err == nil {
			t.Errorf("a store with the fault %s passed", fault)
		}
	}
	for _, fault := range []string{"early-expiry", "sweep-on-access", "clean-reads"} {
		synctest.Test(t, func(t *testing.T) {
			needs := targets.Needs{Guards: bothGuards, Sessions: 8, Timeout: time.Second}
			if try.Suite(t.Context(), try.Open(t, "sim:?latency=0&fault="+fault), needs, targettest.TTL(targettest.Blocked)) == nil {
				t.Errorf("a store with the fault %s passed", fault)
			}
		})
	}
}

func TestSimLatencyIsThePublished(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := try.Session(t, try.Open(t, "sim:?seed=1"), 0)
		took := func(op targets.Op) time.Duration {
			began := time.Now()
			s.Do(t.Context(), op)
			return time.Since(began)
		}
		version := targets.Condition{Guard: targets.IfVersion}
		for range 200 {
			if d := took(targets.Op{Kind: targets.Write, Key: "k"}); d < 37*time.Millisecond || d > 93*time.Millisecond {
				t.Fatalf("a set took %s, published are 37 to 93 ms", d)
			}
			if d := took(targets.Op{Kind: targets.Write, Key: "k", Collection: targets.Versioned, If: version}); d < 212*time.Millisecond || d > 319*time.Millisecond {
				t.Fatalf("a transaction took %s, published are 212 to 319 ms", d)
			}
		}
	})
}

// An expired key blocks the next create until it is swept, and a read shows it.
func TestSimGhost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := try.Session(t, try.Open(t, "sim:?latency=0&sweep=10m"), 0)
		create := targets.Op{Kind: targets.Write, Key: "lease", TTL: 1500 * time.Millisecond, If: targets.Condition{Guard: targets.IfAbsent}}
		read := targets.Op{Kind: targets.Read, Key: "lease"}
		began := time.Now()
		if r := s.Do(t.Context(), create); r.Outcome != targets.OK {
			t.Fatalf("create: %+v", r)
		}
		// The platform counts whole seconds: 2 s are granted for 1.5 s, and told.
		if r := s.Do(t.Context(), read); !r.Expires.Equal(began.Add(2*time.Second)) || r.Granted != 2*time.Second {
			t.Errorf("expires at %s, granted %s; want %s", r.Expires, r.Granted, began.Add(2*time.Second))
		}
		time.Sleep(9 * time.Minute)
		if r := s.Do(t.Context(), create); r.Outcome != targets.Conflict || r.Code != "KEY_CONFLICT" || r.Status != 409 {
			t.Errorf("nine minutes after its expiry: %+v", r)
		}
		if r := s.Do(t.Context(), read); r.Outcome != targets.OK {
			t.Errorf("nine minutes after its expiry a read shows %s", r.Outcome)
		}
		time.Sleep(2 * time.Minute)
		if r := s.Do(t.Context(), create); r.Outcome != targets.OK {
			t.Errorf("after the sweep: %+v", r)
		}
	})
}

// A plain key cannot carry a version condition; nothing is done then.
func TestSimPlainKeyHasNoVersion(t *testing.T) {
	s := try.Session(t, try.Open(t, "sim:?latency=0"), 0)
	r := s.Do(t.Context(), targets.Op{Kind: targets.Write, Key: "k", Collection: targets.Plain, If: targets.Condition{Guard: targets.IfVersion}})
	if r.Outcome != targets.Unsupported || r.Attempts != 0 {
		t.Errorf("%+v", r)
	}
}

// A request that its deadline overtakes may have been applied.
func TestSimTimeoutIsUnknown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := try.Session(t, try.Open(t, "sim:?latency=1s"), 0)
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		if r := s.Do(ctx, targets.Op{Kind: targets.Write, Key: "k"}); r.Outcome != targets.Unknown || r.Code != "timeout" {
			t.Errorf("%+v", r)
		}
	})
}

func TestRedact(t *testing.T) {
	for raw, want := range map[string]string{
		"sim:?latency=0":                       "sim:?latency=0",
		"redis://u:p@h:1/0":                    "redis://u:xxxxx@h:1/0",
		"redis://:p@h:1/0":                     "redis://:xxxxx@h:1/0",
		"postgres://u@h/d?password=p&port=1":   "postgres://u@h/d?password=xxxxx&port=1",
		"postgres://u:p%40q@h/d?sslpassword=p": "postgres://u:xxxxx@h/d?sslpassword=xxxxx",
		"redis://u:p%zz@h":                     "redis:xxxxx",
	} {
		if got := all.Redact(raw); got != want {
			t.Errorf("%s: got %s, want %s", raw, got, want)
		}
	}
}

// Every driver's table, parameters and example can be used as they stand.
func TestDriversDescribeThemselves(t *testing.T) {
	t.Setenv("CONTEND_FORGE_TOKEN", "secret")
	for _, d := range all.Drivers() {
		try.Open(t, d.Example)
		for _, a := range d.Answers {
			if a.Source == "" || a.Outcome == "" {
				t.Errorf("%s: answer %+v has no source or outcome", d.Name, a)
			}
		}
		for _, p := range d.Parameters {
			for _, v := range p.Values {
				if v.Meaning == "" {
					t.Errorf("%s: %s=%s has no meaning", d.Name, p.Name, v.Name)
				}
				if p.Name != "create" && p.Name != "cas" {
					continue
				}
				if len(v.Losers) == 0 {
					t.Errorf("%s: %s=%s tells no loser's code", d.Name, p.Name, v.Name)
				}
				scheme, _, _ := strings.Cut(d.Example, "?")
				try.Open(t, scheme+"?"+p.Name+"="+v.Name)
			}
		}
	}
}

func TestOpJSON(t *testing.T) {
	op := targets.Op{Kind: targets.Write, Key: "k", Collection: targets.Versioned, TTL: 1500 * time.Millisecond,
		Value: targets.Record{Token: "t", Version: 1, UpdatedAt: time.UnixMilli(1787116436381).UTC(), Body: []byte(`"x"`)},
		If:    targets.Condition{Guard: targets.IfVersion, Counter: 0, Version: "etag"}}
	const want = `{"kind":"write","key":"k","home":"version","value":{"token":"t","version":1,"updated_at":"2026-08-19T05:13:56.381Z","body":"x"},` +
		`"if":{"guard":"version","counter":0,"version":"etag"},"ttl_ms":1500}`
	got, err := op.MarshalJSON()
	if err != nil || string(got) != want {
		t.Errorf("got  %s, %v\nwant %s", got, err, want)
	}
	const onTime = `{"kind":"write","key":"k","value":{"token":"","version":0},"if":{"guard":"unmodified","counter":0,"updated_at":"2026-08-19T05:13:56Z"}}`
	unmodified := targets.Op{Kind: targets.Write, Key: "k", If: targets.Condition{Guard: targets.IfUnmodified, UpdatedAt: time.Unix(1787116436, 0).UTC()}}
	if got, err := unmodified.MarshalJSON(); err != nil || string(got) != onTime {
		t.Errorf("got  %s, %v\nwant %s", got, err, onTime)
	}
	var again targets.Op
	if err := again.UnmarshalJSON(got); err != nil || again.Value.Token != "t" || again.If != op.If || again.TTL != op.TTL || !again.Value.UpdatedAt.Equal(op.Value.UpdatedAt) {
		t.Errorf("read back as %+v, %v", again, err)
	}
	raw := targets.Op{Kind: targets.Raw, Key: "k", Raw: []byte(`{"path":"/api/v1/get"}`)}
	if got, err = raw.MarshalJSON(); err != nil || string(got) != `{"kind":"raw","key":"k","raw":{"path":"/api/v1/get"}}` {
		t.Errorf("raw: %s, %v", got, err)
	}
	if err := again.UnmarshalJSON(got); err != nil || string(again.Raw) != string(raw.Raw) {
		t.Errorf("raw, read back: %+v, %v", again, err)
	}
}
