package watch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oklog/ulid/v2"

	"contend/cmd/exit"
	"contend/cmd/paste"
	"contend/report"
	"contend/report/store"
	"contend/runner"
	"contend/scenarios"
	"contend/targets"
	"contend/targets/all"
)

// site is an emulator that outlives the processes that watch its keys, with a store
// of their results.
type site struct {
	*testing.T
	targets.Target
	url      string // as it describes itself
	volatile bool
	kept     *store.Store
	said     []string
	inFlight int
}

func newSite(t *testing.T, url string) *site {
	t.Helper()
	target, err := all.Open(url)
	if err != nil {
		t.Fatal(err)
	}
	kept, err := store.Open(filepath.Join(t.TempDir(), "ghosts.db"))
	if err != nil {
		t.Fatal(err)
	}
	s := &site{T: t, Target: target, url: "redis://127.0.0.1:1", kept: kept}
	t.Cleanup(func() {
		kept.Close()
		target.Close()
		if s.inFlight != 0 {
			t.Errorf("%d runs did not end", s.inFlight)
		}
	})
	return s
}

// Describe tells a target of which something is left.
func (s *site) Describe() targets.Description {
	d := s.Target.Describe()
	d.URL, d.Volatile = s.url, s.volatile
	return d
}

// Close ends a process, and not the emulator.
func (s *site) Close() error { return nil }

func (s *site) open(string) (targets.Target, error) { return s, nil }

func (s *site) Tell(format string, a ...any) { s.said = append(s.said, fmt.Sprintf(format, a...)) }

func (s *site) Begin(report.RunHeader) func() {
	s.inFlight++
	return func() { s.inFlight-- }
}

func (s *site) OnInterrupt(ctx context.Context, done, say func()) func() {
	return func() {
		if done(); ctx.Err() != nil {
			say()
		}
	}
}

func (s *site) Progress() (runner.Observer, func()) {
	s.Error("progress is shown")
	return runs{}, func() {}
}

// heard tells whether a line was told that has the text in it.
func (s *site) heard(text string) bool {
	return slices.ContainsFunc(s.said, func(line string) bool { return strings.Contains(line, text) })
}

func (s *site) equipment() Equipment { return Equipment{Console: s, Kept: s.kept, Silent: true} }

// fresh is a watch of two keys in each arm, for an hour.
func (s *site) fresh() *Watch {
	scenario := scenarios.NewTTLGhost()
	scenario.Keys, scenario.Watch, scenario.Cap = 2, time.Hour, time.Minute
	id := ulid.Make().String()
	header := report.RunHeader{Run: id, Scenario: scenario.Info().Name, Target: report.TargetOf(s.Describe()),
		Params: report.Params{Timeout: time.Second, Seed: "1", KeyPrefix: paste.DefaultPrefix}}
	header.Params.SetOptions(scenario)
	return &Watch{Target: s, Scenario: scenario,
		Plan:   runner.WatchPlan{Setup: runner.Setup{Run: id, Prefix: paste.DefaultPrefix, Timeout: time.Second, Seed: 1}, Sessions: Sessions, Needs: scenario.Needs()},
		Header: func() report.RunHeader { header.Started = time.Now().UTC(); return header }}
}

// goOn is the last watch that did not end, as another process takes it up.
func (s *site) goOn() *Watch {
	s.Helper()
	run, url, err := Last(s.kept, s.open, "")
	if err != nil || url != s.url {
		s.Fatalf("%s, %v", url, err)
	}
	w := s.fresh()
	w.Taken, w.Plan.Run = run, run.Header.Run
	if err := run.Parameters(w.Scenario); err != nil {
		s.Fatal(err)
	}
	_, _, w.Plan.Budget = w.Scenario.Limits()
	if err := w.Check(); err != nil {
		s.Fatal(err)
	}
	return w
}

// interrupted runs a watch for a while.
func (s *site) interrupted(w *Watch, after time.Duration) report.Result {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), after)
	defer cancel()
	return s.run(ctx, w, s.equipment())
}

func (s *site) run(ctx context.Context, w *Watch, with Equipment) report.Result {
	s.Helper()
	r, err := w.Run(ctx, with)
	if err != nil {
		s.Fatal(err)
	}
	if err := s.kept.SaveResult(r); err != nil {
		s.Fatal(err)
	}
	return r
}

// left are the keys of a run that the target still has, expired or not.
func (s *site) left(run string) (keys []string) {
	s.Helper()
	session, err := s.Target.Open(s.Context(), 0)
	if err != nil {
		s.Fatal(err)
	}
	defer session.Close()
	w := s.fresh()
	w.Plan.Run = run
	for _, g := range w.Ghosts() {
		if r := session.Do(s.Context(), targets.Op{Kind: targets.Read, Key: g.Key, Collection: targets.Plain}); r.Outcome != targets.Missing {
			keys = append(keys, g.Key)
		}
	}
	return keys
}

// noted counts the requests about the keys of a run that are in the store, and its open
// keys.
func (s *site) noted(run string) (requests int64, open int) {
	s.Helper()
	for g, err := range s.kept.Ghosts(store.Ghosts{Run: run}) {
		if err != nil {
			s.Fatal(err)
		}
		if !g.Closed {
			open++
		}
		for e, err := range s.kept.Probes(g) {
			if err != nil {
				s.Fatal(err)
			}
			requests += int64(e.Reply.Attempts)
		}
	}
	return requests, open
}

// inBubble runs a test with a clock of its own.
func inBubble(t *testing.T, test func(*testing.T)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, test)
}

// A watch goes on with its keys where the process before left it, as the same run.
func TestResume(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newSite(t, "sim:?sweep=10m&latency=1ms..9ms&seed=1")
		first := s.interrupted(s.fresh(), 5*time.Minute)
		before, open := s.noted(first.Run)
		first.Verdict.Violations = append(first.Verdict.Violations, scenarios.Violation{Kind: "several-winners", Control: "sequential", Detail: "seen by the first"})
		if err := s.kept.SaveResult(first); err != nil {
			t.Fatal(err)
		}
		if !first.Interrupted || first.Requests <= before || open == 0 || len(s.left(first.Run)) < open {
			t.Errorf("%+v; %d requests are noted, %d keys are open", first, before, open)
		}
		if !s.heard("keys of run " + first.Run + " are still watched; go on with `contend ttl-ghost --resume --store ") {
			t.Errorf("%q", s.said)
		}
		time.Sleep(time.Minute)
		second := s.run(t.Context(), s.goOn(), s.equipment())
		after, open := s.noted(first.Run)
		if second.Interrupted || second.Run != first.Run || open != 0 || after <= before || second.Requests < first.Requests+after-before {
			t.Errorf("%+v; %d and %d requests are noted, %d keys are open", second, before, after, open)
		}
		if v := second.Verdict; second.Elapsed < 10*time.Minute || v.Status != scenarios.Violated || v.ViolatedRounds != 2 || v.Violations[0].Detail != "seen by the first" {
			t.Errorf("after %s: %s", second.Elapsed, second.VerdictLine())
		}
		for i := range second.Detail.Ghosts.Keys {
			k := &second.Detail.Ghosts.Keys[i]
			if k.Arm == scenarios.WriteArm && (k.LastBlocked == nil || *k.LastBlocked > 10*time.Minute || k.FirstFree == nil || *k.FirstFree < 10*time.Minute) {
				t.Errorf("%+v", k)
			}
		}
		if left := s.left(first.Run); len(left) > 0 {
			t.Errorf("left: %v", left)
		}
		if _, _, err := Last(s.kept, s.open, ""); err == nil || !strings.Contains(err.Error(), "holds no watch that has not ended") {
			t.Errorf("once more: %v", err)
		}
	})
}

// Two processes of one run make their checks on keys of their own, and what the first may
// have written unseen is in doubt to the second.
func TestProcessesAreApart(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newSite(t, "sim:?sweep=10m&latency=1ms..9ms&seed=1")
		by := make(map[string]int) // a key of the checks → its process
		recorded := func(process int) recordFunc {
			return func(line []byte) (int, error) {
				for _, key := range regexp.MustCompile(`contend-[0-9A-Z]{26}-[sn][0-9a-z-]*"`).FindAllString(string(line), -1) {
					if other, found := by[key]; found && other != process {
						t.Errorf("%s is of the processes %d and %d", key, other, process)
					}
					by[key] = process
				}
				return len(line), nil
			}
		}
		w, with := s.fresh(), s.equipment()
		with.Record, with.Within = recorded(1), 5*time.Minute
		s.run(t.Context(), w, with)
		var open []string
		for g, err := range s.kept.Ghosts(store.Ghosts{Run: w.Plan.Run, Open: true}) {
			if err != nil {
				t.Fatal(err)
			}
			open = append(open, g.Key)
		}
		with = s.equipment()
		with.Record = recorded(2)
		s.run(t.Context(), s.goOn(), with)
		if len(by) < 6 || len(open) == 0 {
			t.Errorf("%d keys of checks, %d that are taken up", len(by), len(open))
		}
		for g, err := range s.kept.Ghosts(store.Ghosts{Run: w.Plan.Run}) {
			if taken := slices.Contains(open, g.Key); err != nil || taken != (g.Resumed >= 5*time.Minute) {
				t.Errorf("%s, taken up: %v, %s, %v", g.Key, taken, g.Resumed, err)
			}
		}
	})
}

// A process that was killed after its last reply, and before its result, has an end to
// come to as well.
func TestResumeOfAnUnconcludedRun(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newSite(t, "sim:?sweep=0s&latency=1ms..9ms&seed=1")
		w := s.fresh()
		r := s.run(t.Context(), w, s.equipment())
		if err := s.kept.SaveResult(report.Begun(r.RunHeader)); err != nil {
			t.Fatal(err)
		}
		again := s.run(t.Context(), s.goOn(), s.equipment())
		noted, _ := s.noted(r.Run)
		if again.Run != r.Run || again.Interrupted || again.Requests < noted || again.Verdict.Status != r.Verdict.Status {
			t.Errorf("%d requests are noted: %+v", noted, again)
		}
	})
}

// While one process watches the keys of a run, a second one is refused: before it sends
// anything.
func TestSecondProcess(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newSite(t, "sim:?sweep=10m&latency=1ms..9ms&seed=1")
		first := s.interrupted(s.fresh(), 5*time.Minute)
		w := s.goOn()
		release, err := guard(s.kept, first.Run)
		if err != nil {
			t.Fatal(err)
		}
		before, _ := s.noted(first.Run)
		_, err = w.Run(t.Context(), s.equipment())
		if _, failed := errors.AsType[*exit.Failure](err); !failed || !strings.Contains(err.Error(), "another process watches the keys of run "+first.Run) {
			t.Errorf("%v", err)
		}
		if after, _ := s.noted(first.Run); after != before {
			t.Errorf("%d requests were noted, then %d", before, after)
		}
		var notes []string
		earlier, releaseAll, err := Outstanding(s.kept, s.open, func(format string, a ...any) { notes = append(notes, fmt.Sprintf(format, a...)) })
		if releaseAll(); err != nil || len(earlier) > 0 || len(notes) != 1 || !strings.Contains(notes[0], "another process watches them") {
			t.Errorf("a night takes up %d runs, %v: %q", len(earlier), err, notes)
		}
		release()
		// What the other did meanwhile is known to who waited for its end.
		other := s.interrupted(s.goOn(), 10*time.Minute)
		r := s.run(t.Context(), w, s.equipment())
		if r.Interrupted || r.Requests <= other.Requests || other.Requests <= first.Requests {
			t.Errorf("%d, %d, then %d requests: %+v", first.Requests, other.Requests, r.Requests, r)
		}
		for g, err := range s.kept.Ghosts(store.Ghosts{Run: r.Run}) {
			if n := len(slices.Collect(firsts(s.kept.Probes(g)))); err != nil || g.Probes != n-1 {
				t.Errorf("%s has %d probes, %d are noted, %v", g.Key, g.Probes, n-1, err)
			}
		}
	})
}

// A fresh run is guarded from its first request to its end.
func TestFreshRunIsGuarded(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newSite(t, "sim:?sweep=0s&latency=1ms..9ms&seed=1")
		w, with, seen := s.fresh(), s.equipment(), 0
		with.Record = recordFunc(func([]byte) (int, error) {
			if release, err := guard(s.kept, w.Plan.Run); err == nil {
				release()
				t.Error("a second process could watch the keys")
			}
			seen++
			return 0, nil
		})
		s.run(t.Context(), w, with)
		if seen == 0 {
			t.Error("nothing was recorded")
		}
		release, err := guard(s.kept, w.Plan.Run)
		if err != nil {
			t.Fatal(err)
		}
		release()
	})
}

func firsts[A, B any](seq iter.Seq2[A, B]) iter.Seq[A] {
	return func(yield func(A) bool) { seq(func(a A, _ B) bool { return yield(a) }) }
}

type recordFunc func([]byte) (int, error)

func (f recordFunc) Write(b []byte) (int, error) {
	if n, err := f(b); err != nil {
		return n, err
	}
	return len(b), nil
}

func (recordFunc) Fail(error) {}

// A record that cannot be written is told, and is no reason to end.
func TestRecordFails(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newSite(t, "sim:?sweep=0s&latency=1ms..9ms&seed=1")
		with, full := s.equipment(), &fullRecord{}
		with.Record = full
		if r := s.run(t.Context(), s.fresh(), with); r.Stopped != "" || !errors.Is(full.err, io.ErrShortWrite) {
			t.Errorf("%v: %+v", full.err, r)
		}
	})
}

type fullRecord struct{ err error }

func (*fullRecord) Write([]byte) (int, error) { return 0, io.ErrShortWrite }
func (f *fullRecord) Fail(err error)          { f.err = err }

// A budget is one for all the processes of a run.
func TestBudgetOverProcesses(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newSite(t, "sim:?sweep=never&latency=1ms..9ms&seed=1")
		w := s.fresh()
		keys := len(w.Ghosts())
		least := int64(w.Plan.Cost(s.Describe(), keys) + keys)
		w.Plan.Budget = least - 1
		if err := w.Check(); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("--budget %d: connecting, the checks, creating %d keys and removing them take %d", least-1, keys, least)) {
			t.Errorf("one too few: %v", err)
		}
		budget := least + 150
		w.Scenario.(*scenarios.TTLGhost).Budget, w.Plan.Budget = budget, budget
		w = withOptions(w)
		if err := w.Check(); err != nil {
			t.Fatal(err)
		}
		first := s.interrupted(w, 30*time.Second)
		if !first.Interrupted || first.Requests >= budget {
			t.Fatalf("%+v", first)
		}
		second := s.run(t.Context(), s.goOn(), s.equipment())
		if second.Cut != fmt.Sprintf("the budget of %d requests was spent", budget-first.Requests) || second.Requests > budget || second.Requests <= first.Requests {
			t.Errorf("%d requests, then %d of %d: %q", first.Requests, second.Requests, budget, second.Cut)
		}
		if !s.heard("the watch was cut: the budget of ") {
			t.Errorf("%q", s.said)
		}
		run, _, err := Last(s.kept, s.open, "")
		if err != nil {
			t.Fatal(err)
		}
		w.Taken, w.Plan.Budget = run, run.before
		if err := w.Check(); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("the budget of %d requests that run %s was started with is spent", run.before, w.Plan.Run)) {
			t.Errorf("spent: %v", err)
		}
	})
}

// withOptions has the header tell the scenario's parameters as they are now.
func withOptions(w *Watch) *Watch {
	header := w.Header
	w.Header = func() report.RunHeader {
		h := header()
		h.Params.SetOptions(w.Scenario)
		return h
	}
	return w
}

// A watch whose time is up keeps its keys for the next process, and is no interrupted
// one.
func TestCutByTime(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newSite(t, "sim:?sweep=never&latency=1ms..9ms&seed=1")
		with := s.equipment()
		with.Within = 10 * time.Minute
		r := s.run(t.Context(), s.fresh(), with)
		if r.Cut != "its time of 10m0s was up" || r.Interrupted || r.Stopped != "" || r.Elapsed < 10*time.Minute || r.Elapsed > 11*time.Minute {
			t.Errorf("%+v", r)
		}
		if _, open := s.noted(r.Run); open == 0 || len(s.left(r.Run)) < open || !s.heard("the watch was cut: its time of 10m0s was up") {
			t.Errorf("%d keys are open, %d are there: %q", open, len(s.left(r.Run)), s.said)
		}
	})
}

// Without a store nobody can go on, so that nothing is left behind.
func TestInterruptedWithoutAStore(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newSite(t, "sim:?sweep=never&latency=1ms..9ms&seed=1")
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		defer cancel()
		r, err := s.fresh().Run(ctx, Equipment{Console: s, Silent: true})
		if left := s.left(r.Run); err != nil || !r.Interrupted || len(left) > 0 || s.heard("still watched") || !s.heard("interrupted: no more probes") {
			t.Errorf("%v; left: %v; %q: %+v", err, left, s.said, r)
		}
	})
}

// The keys of a target that dies with its process are closed as it ends; what was seen
// of them is told before.
func TestVolatileTarget(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newSite(t, "sim:?sweep=never&latency=1ms..9ms&seed=1")
		s.volatile = true
		r := s.interrupted(s.fresh(), 5*time.Minute)
		if _, open := s.noted(r.Run); !r.Interrupted || open > 0 || s.heard("still watched") {
			t.Errorf("%d keys are open: %+v", open, r)
		}
		for g, err := range s.kept.Ghosts(store.Ghosts{Run: r.Run}) {
			if err != nil || g.State == runner.GhostAbandoned && g.Why != "its target ended with the process of contend" {
				t.Errorf("%+v, %v", g, err)
			}
		}
		for i := range r.Detail.Ghosts.Keys {
			if k := &r.Detail.Ghosts.Keys[i]; k.State == runner.GhostAbandoned {
				t.Errorf("%+v", k)
			}
		}
		if _, _, err := Last(s.kept, s.open, ""); err == nil || !strings.Contains(err.Error(), "holds no watch that has not ended") {
			t.Errorf("%v", err)
		}
	})
}

// Side by side on one target, each watch keeps to its part of the limits.
func TestShareOfTheLimits(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newSite(t, "sim:?sweep=0s&latency=1ms&seed=1")
		took := func(share int) time.Duration {
			w, with := s.fresh(), s.equipment()
			w.Plan.Limits = []targets.Limit{{Requests: 60, Per: time.Minute}}
			w.Plan.SkipControls, w.Scenario.(*scenarios.TTLGhost).Watch = true, 2*time.Second
			with.Share = share
			r := s.run(t.Context(), w, with)
			if w.Plan.Limits[0].Requests != 60 {
				t.Error("the plan was changed")
			}
			return r.Elapsed
		}
		if alone, shared := took(1), took(6); shared < alone+time.Minute {
			t.Errorf("alone %s, as one of six %s", alone, shared)
		}
	})
}

// A watch of the same target asks about the keys of an earlier run too, whose result has
// its own requests only.
func TestEarlierRuns(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newSite(t, "sim:?sweep=40m&latency=1ms..9ms&seed=1")
		with := s.equipment()
		with.Within = 10 * time.Minute
		first := s.run(t.Context(), s.fresh(), with)
		time.Sleep(20 * time.Minute)
		earlier, release, err := Outstanding(s.kept, s.open, t.Logf)
		defer release()
		if err != nil || len(earlier) != 1 || earlier[0].Open() == 0 {
			t.Fatalf("%d runs, %v", len(earlier), err)
		}
		before, _ := s.noted(first.Run)
		with = s.equipment()
		with.Earlier = earlier
		second := s.run(t.Context(), s.fresh(), with)
		stored, err := s.kept.Result(first.Run)
		after, open := s.noted(first.Run)
		if err != nil || open > 0 || earlier[0].Open() > 0 || stored.Cut != "" || stored.Requests != first.Requests+after-before || after == before {
			t.Errorf("%v: %d keys are open; %d requests, then %d noted: %+v", err, open, first.Requests, after-before, stored)
		}
		own, _ := s.noted(second.Run)
		w := s.fresh()
		if most := own + int64(w.Plan.Cost(s.Describe(), 2*len(w.Ghosts()))); second.Requests <= own || second.Requests > most || second.Run == first.Run || earlier[0].Longest() == nil {
			t.Errorf("%d of %d requests are noted: %+v", own, second.Requests, second)
		}
		if left := append(s.left(first.Run), s.left(second.Run)...); len(left) > 0 {
			t.Errorf("left: %v", left)
		}
	})
}

// An earlier run that comes to its end has ended, however the watch did that asked about
// its keys.
func TestEarlierRunEndsInAWatchThatIsCut(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newSite(t, "sim:?sweep=40m&latency=1ms..9ms&seed=1")
		with := s.equipment()
		with.Within = 10 * time.Minute
		first := s.run(t.Context(), s.fresh(), with)
		time.Sleep(20 * time.Minute)
		earlier, release, err := Outstanding(s.kept, s.open, t.Logf)
		defer release()
		if err != nil || len(earlier) != 1 {
			t.Fatalf("%d runs, %v", len(earlier), err)
		}
		with.Within, with.Earlier = 35*time.Minute, earlier
		second := s.run(t.Context(), s.fresh(), with)
		stored, err := s.kept.Result(first.Run)
		if err != nil || stored.Cut != "" || stored.Interrupted || second.Cut == "" {
			t.Errorf("%v: %q, and of the watch %q", err, stored.Cut, second.Cut)
		}
	})
}

// Keys whose target has no watch are asked a single time each.
func TestAskOnce(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newSite(t, "sim:?sweep=never&latency=1ms..9ms&seed=1")
		with := s.equipment()
		with.Within = 10 * time.Minute
		first := s.run(t.Context(), s.fresh(), with)
		before, open := s.noted(first.Run)
		earlier, release, err := Outstanding(s.kept, s.open, t.Logf)
		defer release()
		if err != nil || len(earlier) != 1 {
			t.Fatalf("%d runs, %v", len(earlier), err)
		}
		started := time.Now()
		if err := AskOnce(t.Context(), s, earlier, s.equipment(), func(run string, err error) { t.Errorf("%s: %v", run, err) }); err != nil {
			t.Fatal(err)
		}
		after, stillOpen := s.noted(first.Run)
		// A create that is refused is followed by the read that says by whose record.
		if took := time.Since(started); took > time.Minute || after < before+int64(open) || after > before+2*int64(open) || stillOpen == 0 {
			t.Errorf("in %s %d requests about %d keys; %d are open", took, after-before, open, stillOpen)
		}
		if stored, err := s.kept.Result(first.Run); err != nil || stored.Requests != first.Requests+after-before {
			t.Errorf("%v: %+v", err, stored)
		}
	})
}

// The store has no secrets: who goes on brings them, and they name the same target.
func TestMaskedTarget(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		const url = "redis://:secret@127.0.0.1:1"
		s := newSite(t, "sim:?sweep=10m&latency=1ms..9ms&seed=1")
		s.url = all.Redact(url)
		r := s.interrupted(s.fresh(), 5*time.Minute)
		if _, _, err := Last(s.kept, s.open, ""); err == nil || !strings.Contains(err.Error(), "the secrets of "+s.url+" are not in the store; give the target with --target or CONTEND_TARGET") {
			t.Errorf("%v", err)
		}
		if run, opened, err := Last(s.kept, s.open, url); err != nil || opened != url || run.Header.Run != r.Run {
			t.Errorf("%s, %v", opened, err)
		}
		if _, _, err := Last(s.kept, s.open, "redis://:secret@127.0.0.1:2"); err == nil || !strings.Contains(err.Error(), "holds no watch on "+all.Redact("redis://:secret@127.0.0.1:2")+" that") {
			t.Errorf("another target: %v", err)
		}
	})
}

// Where a process with a volatile target was killed, there is nothing to go on with.
func TestResumeOfAVolatileTarget(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newSite(t, "sim:?sweep=10m&latency=1ms..9ms&seed=1")
		s.interrupted(s.fresh(), 5*time.Minute)
		s.volatile = true
		if _, _, err := Last(s.kept, s.open, ""); err == nil || err.Error() != NothingLeft(s.url).Error() {
			t.Errorf("%v", err)
		}
		time.Sleep(2 * time.Hour)
		if _, _, err := Last(s.kept, s.open, ""); err == nil || err.Error() != NothingLeft(s.url).Error() {
			t.Errorf("as they are closed: %v", err)
		}
		if _, _, err := Last(s.kept, s.open, ""); err == nil || !strings.Contains(err.Error(), "holds no watch that has not ended") {
			t.Errorf("closed: %v", err)
		}
		if _, _, err := Last(nil, s.open, ""); err == nil || !strings.Contains(err.Error(), "there is no store") {
			t.Errorf("no store: %v", err)
		}
	})
}
