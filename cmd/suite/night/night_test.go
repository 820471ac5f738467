package night_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oklog/ulid/v2"

	"contend/cmd/exit"
	"contend/cmd/paste"
	"contend/cmd/suite/night"
	"contend/cmd/watch"
	"contend/report"
	"contend/report/store"
	"contend/runner"
	"contend/scenarios"
	"contend/targets"
	"contend/targets/all"
)

// place is an emulator that outlives the nights, with a store of their results.
type place struct {
	*testing.T
	targets.Target
	url      string // as it describes itself
	volatile bool
	kept     *store.Store

	mu     sync.Mutex
	said   []string
	opened []string
}

// inBubble runs a test with a clock of its own, at a place that never sweeps.
func inBubble(t *testing.T, test func(*testing.T, *place)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		target, err := all.Open("sim:?sweep=never&latency=1ms..9ms&seed=1")
		if err != nil {
			t.Fatal(err)
		}
		defer target.Close()
		kept, err := store.Open(filepath.Join(t.TempDir(), "nights.db"))
		if err != nil {
			t.Fatal(err)
		}
		defer kept.Close()
		test(t, &place{T: t, Target: target, url: "redis://127.0.0.1:1", kept: kept})
	})
}

func (p *place) Describe() targets.Description {
	d := p.Target.Describe()
	d.URL, d.Volatile = p.url, p.volatile
	return d
}

func (p *place) Close() error { return nil }

func (p *place) open(url string) (targets.Target, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.opened = append(p.opened, url)
	return p, nil
}

func (p *place) Tell(format string, a ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.said = append(p.said, fmt.Sprintf(format, a...))
}

func (p *place) Begin(report.RunHeader) func() { return func() {} }

func (p *place) OnInterrupt(_ context.Context, done, _ func()) func() { return done }

func (p *place) Progress() (runner.Observer, func()) {
	return runner.Observers{}, func() {}
}

// earlier makes the watch of an earlier night, which its time cut.
func (p *place) earlier() report.Result {
	p.Helper()
	s := scenarios.NewTTLGhost()
	s.Keys, s.Watch = 2, 48*time.Hour
	header := report.RunHeader{Run: ulid.Make().String(), Scenario: s.Info().Name, Target: report.TargetOf(p.Describe()), Started: time.Now().UTC(),
		Params: report.Params{Timeout: time.Second, Seed: "1", KeyPrefix: paste.DefaultPrefix}}
	header.Params.SetOptions(s)
	w := watch.Watch{Target: p, Scenario: s, Header: func() report.RunHeader { return header },
		Plan: runner.WatchPlan{Setup: runner.Setup{Run: header.Run, Prefix: paste.DefaultPrefix, Timeout: time.Second, Seed: 1}, Sessions: watch.Sessions, Needs: s.Needs()}}
	r, err := w.Run(p.Context(), watch.Equipment{Console: p, Kept: p.kept, Silent: true, Within: time.Hour})
	if err == nil {
		err = p.kept.SaveResult(r)
	}
	if err != nil || r.Cut == "" {
		p.Fatalf("%v: %+v", err, r)
	}
	return r
}

// night makes one of two hours.
func (p *place) night(ctx context.Context, runs ...night.Run) *report.Suite {
	s := &report.Suite{Started: time.Now().UTC()}
	const within = 2 * time.Hour
	n := night.Night{Runs: runs, Deadline: time.Now().Add(within), Open: p.open, Told: func(*report.SuiteRun) {},
		With: watch.Equipment{Console: p, Kept: p.kept, Silent: true, Within: within}}
	n.Run(ctx, s)
	night.Conclude(ctx, s)
	return s
}

// made is a run that takes a while and has held.
func (p *place) made(name string, takes time.Duration, seen func(watch.Equipment)) night.Run {
	return night.Run{Name: name, Target: "sim:", Make: func(_ context.Context, with watch.Equipment) (report.Result, error) {
		if seen != nil {
			seen(with)
		}
		time.Sleep(takes)
		r := report.Result{Verdict: scenarios.Verdict{Status: scenarios.Held}}
		r.Run, r.Scenario, r.Started = ulid.Make().String(), "fail-if-exists", time.Now().UTC()
		return r, nil
	}}
}

func watching(r night.Run, url string) night.Run {
	r.Watch, r.Target = true, url
	return r
}

// Races are made one after the other, then the watches side by side, whatever their order
// in the suite; the results are in its order.
func TestRacesThenWatches(t *testing.T) {
	inBubble(t, func(t *testing.T, p *place) {
		start := time.Now()
		var mu sync.Mutex
		began := make(map[string]time.Duration)
		at := func(name string) func(watch.Equipment) {
			return func(with watch.Equipment) {
				mu.Lock()
				defer mu.Unlock()
				began[name] = time.Since(start)
				if with.Within != 2*time.Hour-began[name] || with.Kept != p.kept || !with.Silent {
					t.Errorf("%s is given %+v", name, with)
				}
			}
		}
		s := p.night(t.Context(), watching(p.made("w1", time.Hour, at("w1")), "redis://a"), p.made("r1", time.Minute, at("r1")),
			watching(p.made("w2", time.Hour, at("w2")), "redis://b"), p.made("r2", time.Minute, at("r2")))
		for name, want := range map[string]time.Duration{"r1": 0, "r2": time.Minute, "w1": 2 * time.Minute, "w2": 2 * time.Minute} {
			if began[name] != want {
				t.Errorf("%s began after %s, want %s", name, began[name], want)
			}
		}
		var names []string
		for _, r := range s.Runs {
			names = append(names, r.Name)
		}
		if !slices.Equal(names, []string{"w1", "r1", "w2", "r2"}) || s.Exit != exit.Held || s.Elapsed != time.Hour+2*time.Minute {
			t.Errorf("%v, exit %d, in %s", names, s.Exit, s.Elapsed)
		}
		if stored := slices.Collect(firsts(p.kept.Runs(store.Runs{}))); len(stored) != 4 {
			t.Errorf("%d results are kept", len(stored))
		}
	})
}

func firsts[A, B any](seq func(func(A, B) bool)) func(func(A) bool) {
	return func(yield func(A) bool) { seq(func(a A, _ B) bool { return yield(a) }) }
}

// What has no turn is told, and so is why.
func TestNoTurn(t *testing.T) {
	inBubble(t, func(t *testing.T, p *place) {
		s := p.night(t.Context(), p.made("long", 3*time.Hour, nil), p.made("late", 0, nil), watching(p.made("watch", 0, nil), "redis://a"))
		if s.Exit != exit.CannotRun || s.Runs[0].Exit != exit.Held {
			t.Errorf("%+v", s)
		}
		for _, r := range s.Runs[1:] {
			if r.Exit != exit.CannotRun || r.Error != "its turn did not come within 2h0m0s" || r.Result != nil {
				t.Errorf("%+v", r)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		s = p.night(ctx, p.made("first", 2*time.Minute, nil), p.made("second", 0, nil))
		if r := s.Runs[1]; s.Exit != exit.Interrupted || !s.Interrupted || r.Exit != exit.Interrupted || r.Error != "interrupted before its turn" {
			t.Errorf("%+v", s)
		}
	})
}

// The first watch of a target asks about its earlier keys, and each of them has its part
// of the limits.
func TestEarlierKeysGoWithAWatch(t *testing.T) {
	inBubble(t, func(t *testing.T, p *place) {
		earlier := p.earlier()
		given := make(map[string]watch.Equipment)
		var mu sync.Mutex
		seen := func(name string) func(watch.Equipment) {
			return func(with watch.Equipment) {
				mu.Lock()
				defer mu.Unlock()
				given[name] = with
			}
		}
		s := p.night(t.Context(), watching(p.made("other", 0, seen("other")), "redis://other"),
			watching(p.made("first", 0, seen("first")), p.url), watching(p.made("second", 0, seen("second")), p.url))
		if w := given["first"]; w.Share != 2 || len(w.Earlier) != 1 || w.Earlier[0].Header.Run != earlier.Run || w.Earlier[0].Open() == 0 {
			t.Errorf("the first is given %+v", w)
		}
		if w := given["second"]; w.Share != 2 || len(w.Earlier) != 0 {
			t.Errorf("the second is given %+v", w)
		}
		if w := given["other"]; w.Share != 1 || len(w.Earlier) != 0 {
			t.Errorf("another is given %+v", w)
		}
		// Nobody asked.
		if o := s.Night.Outstanding; len(o) != 1 || o[0].Run != earlier.Run || o[0].Open == 0 || o[0].Answered != 0 || o[0].Closed != 0 || o[0].Blocked == 0 {
			t.Errorf("%+v", o)
		}
		// They are free for the next night, or a resume.
		if run, _, err := watch.Last(p.kept, p.open, ""); err != nil || run.Header.Run != earlier.Run {
			t.Errorf("%v", err)
		}
	})
}

// Keys on a target without a watch tonight are asked once; their result is kept.
func TestEarlierKeysAreLookedAfter(t *testing.T) {
	inBubble(t, func(t *testing.T, p *place) {
		earlier := p.earlier()
		time.Sleep(22 * time.Hour)
		s := p.night(t.Context(), p.made("race", 0, nil))
		o := s.Night.Outstanding
		if len(o) != 1 || o[0].Run != earlier.Run || o[0].Target != p.url || o[0].Answered != o[0].Open || o[0].Open == 0 || o[0].Blocked+o[0].Visible+o[0].Closed != o[0].Open ||
			o[0].Longest == nil || *o[0].Longest.LastBlocked < 22*time.Hour {
			t.Errorf("%+v", o)
		}
		r, err := p.kept.Result(earlier.Run)
		if err != nil || r.Requests <= earlier.Requests || len(s.Night.Notes) > 0 {
			t.Errorf("%v, %q: %+v", err, s.Night.Notes, r)
		}
		// At the end of their watch they are closed, and no night tells of them again.
		time.Sleep(30 * time.Hour)
		if s = p.night(t.Context()); len(s.Night.Outstanding) != 1 || s.Night.Outstanding[0].Closed != s.Night.Outstanding[0].Open {
			t.Errorf("%+v", s.Night)
		}
		if s = p.night(t.Context()); len(s.Night.Outstanding) != 0 {
			t.Errorf("%+v", s.Night)
		}
	})
}

// Keys that cannot be asked about are told with the reason, and stay for other nights.
func TestEarlierKeysThatAreNotAsked(t *testing.T) {
	const secret = "redis://:secret@127.0.0.1:1"
	masked := all.Redact(secret)
	for name, c := range map[string]struct {
		url  string
		runs func(*place) []night.Run
		ctx  func(context.Context) context.Context
		note string
	}{
		"masked": {url: masked, note: "the secrets of the target are not in the store; a run of the suite on that target brings them"},
		"masked, and known to the suite": {url: masked, runs: func(p *place) []night.Run {
			r := p.made("race", 0, nil)
			r.Target = secret
			return []night.Run{r}
		}},
		"no time": {url: "redis://127.0.0.1:1", runs: func(p *place) []night.Run { return []night.Run{p.made("race", 3*time.Hour, nil)} }, note: "the time was up"},
		"another process": {url: "redis://127.0.0.1:1", runs: func(p *place) []night.Run {
			_, release, err := watch.Outstanding(p.kept, p.open, p.Logf)
			if err != nil {
				p.Fatal(err)
			}
			p.Cleanup(release)
			return nil
		}, note: "another process watches them"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, p *place) {
				p.url = c.url
				earlier := p.earlier()
				var runs []night.Run
				if c.runs != nil {
					runs = c.runs(p)
				}
				p.opened = nil
				s := p.night(t.Context(), runs...)
				if notes := strings.Join(s.Night.Notes, "\n"); c.note == "" != (notes == "") || !strings.Contains(notes, c.note) || strings.Contains(notes, "secret@") {
					t.Errorf("%q", notes)
				}
				if asked := len(s.Night.Outstanding) > 0; asked != (c.note == "") {
					t.Errorf("%+v", s.Night.Outstanding)
				}
				if c.note == "" && !slices.Contains(p.opened, secret) {
					t.Errorf("opened %q", p.opened)
				}
				open, err := p.kept.OpenGhosts("")
				if err != nil || len(open) == 0 || open[0].Run != earlier.Run {
					t.Errorf("%d keys are open, %v", len(open), err)
				}
			})
		})
	}
}

// Keys that died with their process are closed, and no word is lost on them.
func TestEarlierKeysOfAVolatileTarget(t *testing.T) {
	inBubble(t, func(t *testing.T, p *place) {
		p.earlier()
		p.volatile = true
		time.Sleep(50 * time.Hour)
		s := p.night(t.Context())
		if open, err := p.kept.OpenGhosts(""); err != nil || len(open) > 0 || len(s.Night.Outstanding) > 0 || len(s.Night.Notes) > 0 {
			t.Errorf("%d keys are open, %v: %+v", len(open), err, s.Night)
		}
	})
}

// A run that fails is told, and the next is made.
func TestRunsThatFail(t *testing.T) {
	inBubble(t, func(t *testing.T, p *place) {
		failing := night.Run{Name: "failing", Make: func(context.Context, watch.Equipment) (report.Result, error) {
			return report.Result{}, errors.New("refused")
		}}
		unkept := p.made("unkept", 0, func(with watch.Equipment) { p.kept.Close() })
		s := report.Suite{Started: time.Now()}
		var told []string
		night.All(t.Context(), []night.Run{failing, p.made("good", 0, nil), unkept}, &s, watch.Equipment{Console: p, Kept: p.kept}, func(r *report.SuiteRun) {
			told = append(told, fmt.Sprint(r.Name, " ", r.Exit))
		})
		if want := []string{"failing 4", "good 0", "unkept 4"}; !slices.Equal(told, want) || s.Runs[0].Error != "refused" || s.Runs[2].Result == nil {
			t.Errorf("%q: %+v", told, s.Runs)
		}
		if len(p.said) != 1 || !strings.Contains(p.said[0], "the result of unkept could not be kept: ") {
			t.Errorf("%q", p.said)
		}
		if night.Conclude(t.Context(), &s); s.Exit != exit.CannotRun {
			t.Errorf("exit %d", s.Exit)
		}
		ctx, cancel := context.WithCancel(t.Context())
		s = report.Suite{Started: time.Now()}
		cancelling := p.made("cancelling", 0, func(watch.Equipment) { cancel() })
		night.All(ctx, []night.Run{cancelling, p.made("never", 0, nil)}, &s, watch.Equipment{Console: p}, func(*report.SuiteRun) {})
		if night.Conclude(ctx, &s); len(s.Runs) != 1 || s.Exit != exit.Interrupted || !s.Interrupted {
			t.Errorf("%+v", s)
		}
	})
}

// What differs from the nights before is told; a drift that is more than chance is an
// alarm, which has an exit status.
func TestChangesAndAlarms(t *testing.T) {
	inBubble(t, func(t *testing.T, p *place) {
		result := func(version string, p50 time.Duration) report.Result {
			r := report.Result{Verdict: scenarios.Verdict{Status: scenarios.Held}, Rounds: 10, Latency: []report.Latency{{Outcome: "won", At: "write", N: 100, P50: &p50}}}
			r.Run, r.Scenario, r.Started = ulid.Make().String(), "fail-if-exists", time.Now().UTC()
			r.Tool.Version, r.Target.URL, r.Target.Kind = version, p.url, "redis"
			return r
		}
		tonight := func(version string, p50 time.Duration) *report.Suite {
			time.Sleep(24 * time.Hour)
			return p.night(t.Context(), night.Run{Name: "race", Target: p.url, Make: func(context.Context, watch.Equipment) (report.Result, error) {
				return result(version, p50), nil
			}})
		}
		for n := range 45 {
			s := tonight("v1", 20*time.Millisecond+time.Duration(n%5-2)*2*time.Millisecond)
			if s.Exit != exit.Held || len(s.Night.Alarms) > 0 || len(s.Night.Changes) > 0 {
				t.Fatalf("night %d: exit %d: %+v", n, s.Exit, s.Night)
			}
		}
		if s := tonight("v2", 20*time.Millisecond); s.Exit != exit.Held || len(s.Night.Changes) != 1 || !strings.Contains(s.Night.Changes[0], "v2") {
			t.Errorf("another version: exit %d: %+v", s.Exit, s.Night)
		}
		if s := tonight("v2", 200*time.Millisecond); s.Exit != exit.Threshold || len(s.Night.Alarms) == 0 {
			t.Errorf("ten times slower: exit %d: %+v", s.Exit, s.Night)
		}
	})
}
