package cmd_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"

	"contend/runner"
	"contend/scenarios"
	"contend/scenarios/probe"
	"contend/targets"
	"contend/targets/all"
	"contend/targets/targettest"
)

// mortal is a target whose process is killed after so many requests that may change
// something: nothing is sent any more.
type mortal struct {
	targets.Target
	run  string
	kill func()

	mu   sync.Mutex
	left int             // requests
	keys map[string]bool // that the run may have written to
}

var errKilled = errors.New("the process was killed")

func (m *mortal) dead() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.left <= 0
}

func (m *mortal) Open(ctx context.Context, contender int) (targets.Session, error) {
	if m.dead() {
		return nil, errKilled
	}
	inner, err := m.Target.Open(ctx, contender)
	return &mortalSession{inner, m}, err
}

func (m *mortal) List(ctx context.Context, prefix string) ([]targets.Op, int, error) {
	if m.dead() {
		return nil, 0, errKilled
	}
	return m.Target.List(ctx, prefix)
}

// lives counts a request, and tells whether it is still sent.
func (m *mortal) lives(op targets.Op) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.left <= 0 {
		return false
	}
	if op.Kind == targets.Read {
		return true
	}
	if m.left--; m.left == 0 {
		m.kill()
	}
	text, err := json.Marshal(op)
	for _, key := range regexp.MustCompile(`contend-`+m.run+`-[-\w]+`).FindAllString(string(text), -1) {
		m.keys[key] = err == nil
	}
	return true
}

type mortalSession struct {
	targets.Session
	of *mortal
}

func (s *mortalSession) Do(ctx context.Context, op targets.Op) targets.Reply {
	if !s.of.lives(op) {
		return targets.Reply{Outcome: targets.NotSent, Code: "killed"}
	}
	return s.Session.Do(context.WithoutCancel(ctx), op)
}

// carryOut runs a scenario on a target, small.
func carryOut(ctx context.Context, s scenarios.Scenario, target targets.Target, run string) error {
	const prefix = "contend-"
	switch s := s.(type) {
	case *scenarios.TTLGhost:
		p := runner.WatchPlan{Setup: runner.Setup{Run: run, Prefix: prefix, Timeout: 5 * time.Second}, Sessions: 2}
		s.Keys, s.Watch = 2, time.Second
		w, err := runner.OpenWatch(ctx, target, p)
		if err != nil {
			return err
		}
		defer w.Close()
		w.Run(ctx, s, s.Ghosts(run, prefix, "", w.Start(), 1, true), nil, nil, runner.Observers{})
	case *scenarios.Probe:
		inquiries := probe.Inquiries(s.Questions(target.Describe().Kind, prefix, run))
		p, err := runner.OpenProbe(ctx, target, runner.ProbePlan{Setup: runner.Setup{Run: run, Prefix: prefix, Timeout: 5 * time.Second},
			Inquiries: inquiries})
		if err != nil {
			return err
		}
		defer p.Close()
		p.Run(ctx, runner.Observers{})
	case scenarios.Contest:
		p := runner.Plan{Setup: runner.Setup{Run: run, Prefix: prefix, Timeout: 5 * time.Second, ValueSize: 20},
			Contenders: 3, Rounds: 1, Race: s, ControlRounds: 1}
		if few, ok := s.(interface{ Crowd() int }); ok {
			p.Contenders = few.Crowd()
		}
		if twin := s.Twin(); twin != nil {
			p.Twin = twin
		} else {
			p.Unguarded = true
		}
		r, err := runner.Open(ctx, target, p)
		if err != nil {
			return err
		}
		defer r.Close()
		r.Run(ctx, runner.Observers{}, nil)
	default:
		return fmt.Errorf("nobody knows how to run %s", s.Info().Name)
	}
	return nil
}

// Whatever runs, and whenever it is killed, clean finds what it has written. What is
// there is asked of the store key by key, since a listing is what is tested.
func TestCleanFindsWhatTheKilledLeave(t *testing.T) {
	t.Parallel()
	sim, _ := serve(t, "--quota=false", "--latency", "0", "--sweep", "1h")
	forge := "forge+rest+http" + strings.TrimPrefix(sim, "http") + "/kvs/api/v1"
	type place struct {
		url string
		// without: there are no times to live; second: one by another strategy has the rest.
		without, second bool
	}
	places := map[string]place{"forge": {url: forge}, "forge, entity": {url: forge + "?create=entity", second: true}}
	for _, c := range realCases() {
		server, expires := c.Start(t), func(v targettest.Variant) bool { return v.Expired != "" }
		lasts := slices.IndexFunc(c.Variants, func(v targettest.Variant) bool { return v.Expired == "" })
		if lasts >= 0 {
			places[c.Kind] = place{url: c.URL(server, c.Variants[lasts].Query), without: true}
		}
		if i := slices.IndexFunc(c.Variants, expires); i >= 0 {
			places[c.Kind+", ttl"] = place{url: c.URL(server, c.Variants[i].Query), second: lasts >= 0}
		}
	}
	expiring := scenarios.NewLease()
	expiring.Expiry, expiring.Term = "ttl", time.Second
	for store, at := range places {
		for _, s := range append(scenarios.All(), expiring) {
			needsTTL := s == scenarios.Scenario(expiring) || s.Info().Name == "ttl-ghost"
			// One strategy more is enough for what asks by requests of its own.
			if at.without && needsTTL || at.second && !needsTTL && s.Info().Name != "probe" {
				continue
			}
			name := s.Info().Name
			if s == scenarios.Scenario(expiring) {
				name += ", ttl"
			}
			t.Run(store+"/"+name, func(t *testing.T) {
				t.Parallel()
				killAndClean(t, scenarioLike(s), at.url)
			})
		}
	}
}

// scenarioLike gives one that no other test runs at the same moment.
func scenarioLike(s scenarios.Scenario) scenarios.Scenario {
	if lease, ok := s.(*scenarios.Lease); ok {
		return new(*lease)
	}
	return scenarios.Find(s.Info().Name)
}

// killAndClean kills a scenario at ever later moments, until it comes to its end.
func killAndClean(t *testing.T, s scenarios.Scenario, url string) {
	found, step := 0, 2
	if s.Info().Name == "ttl-ghost" {
		step = 5 // it takes its time
	}
	for at := 1; ; at = at*step + 1 {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		inner, err := all.Open(url)
		if err != nil {
			t.Fatal(err)
		}
		defer inner.Close()
		run := ulid.Make().String()
		m := &mortal{Target: inner, run: run, kill: cancel, left: at, keys: make(map[string]bool)}
		if err := carryOut(ctx, s, m, run); err != nil && !m.dead() {
			t.Fatal(err)
		}
		ended := !m.dead()
		there := present(t, inner, m.keys)
		if ended && len(there) > 0 {
			t.Errorf("at its end it left %q", there)
		}
		found += len(there)
		code, stdout, stderr := contend(t, "clean", "-t", url, "--run", run, "--store", "")
		if code != 0 || !strings.HasPrefix(stdout, "removed ") {
			t.Fatalf("killed after %d requests: clean: exit %d: %s%s", at, code, stdout, stderr)
		}
		if left := present(t, inner, m.keys); len(left) > 0 {
			t.Fatalf("killed after %d requests: clean did not find %q of %d: %s", at, left, len(there), stdout)
		}
		if ended {
			break
		}
	}
	if found == 0 {
		t.Error("nothing was ever left: the test has tested nothing")
	}
}

// present gives those keys that are there, in any collection.
func present(t *testing.T, target targets.Target, keys map[string]bool) (there []string) {
	t.Helper()
	s, err := target.Open(t.Context(), -1)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for key := range maps.Keys(keys) {
		for _, op := range readsOf(target.Describe().Kind, key) {
			if r := s.Do(t.Context(), op); r.Outcome != targets.Missing && r.Code != "KEY_TOO_LONG" {
				there = append(there, fmt.Sprintf("%s (%s %s)", key, r.Outcome, r.Code))
				break
			}
		}
	}
	return there
}

// readsOf reads a key wherever it may be, whatever the strategies of the target.
func readsOf(kind, key string) []targets.Op {
	if kind != "forge-rest" {
		return []targets.Op{{Kind: targets.Read, Key: key}}
	}
	raw := func(format string) targets.Op {
		return targets.Op{Kind: targets.Raw, Key: key, Raw: json.RawMessage(fmt.Sprintf(format, key))}
	}
	return []targets.Op{raw(`{"path":"/api/v1/get","body":{"key":%q}}`), raw(`{"path":"/api/v1/entity/get","body":{"entityName":"contend-record","key":%q}}`)}
}
