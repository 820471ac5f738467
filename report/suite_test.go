package report

import (
	"slices"
	"strings"
	"testing"
	"time"

	"contend/scenarios"
)

// aSuite has a run of each sort.
func aSuite() Suite {
	result := func(change func(*Result)) *Result {
		r := aRacedResult()
		change(&r)
		return &r
	}
	verdict := func(status scenarios.Status, reasons ...string) func(*Result) {
		return func(r *Result) {
			r.Verdict.Status, r.Verdict.Reasons = status, reasons
			if status == scenarios.Violated {
				r.Verdict.Violations, r.Verdict.ViolatedRounds = []scenarios.Violation{{Kind: "several-winners", Round: 1, Detail: "two writes"}}, 3
			}
		}
	}
	return Suite{File: "s.yaml", Command: "contend run s.yaml", Started: time.Date(2026, 3, 1, 3, 0, 0, 0, time.UTC), Elapsed: 61234 * time.Millisecond, Tool: Tool{Version: "v1"}, Runs: []SuiteRun{
		{Name: "good", Result: result(verdict(scenarios.Held))},
		{Name: "twin", Result: result(verdict(scenarios.Violated))},
		{Name: "bad", Exit: 1, Result: result(verdict(scenarios.Violated))},
		{Name: "idle", Exit: 3, Result: result(verdict(scenarios.Inconclusive, "nobody met", "2 rounds are uncertain"))},
		{Name: "down", Exit: 4, Error: "cannot reach the target"},
	}}
}

// Of each run the summary has what it came to, and whether that was expected.
func TestSummaryOfASuite(t *testing.T) {
	s := aSuite()
	s.Runs[0].Result.Target.Simulated = true
	d := s.summary()
	wantRows(t, d.parts[0], "good | sim: (simulated) | held | 20 of 25 rounds count; violated under 14.0 % | 0",
		"twin | sim: | violated, as expected | several-winners in 3 of 25 rounds | 0", "bad | sim: | violated | several-winners in 3 of 25 rounds | 1",
		"idle | sim: | inconclusive | nobody met; 2 rounds are uncertain | 3", "down | – | could not run | cannot reach the target | 4")
	want := []string{"5 runs of s.yaml: 1 held, 1 violated, as expected, 1 violated, 1 could not run, 1 inconclusive", "2026-03-01 03:00 UTC, 1m1.23s, by contend v1"}
	if !slices.Equal(d.lead, want) || d.title != "contend run s.yaml · 1 of 5 SIMULATED, not a live platform" || d.command != s.Command {
		t.Errorf("%s, %q", d.title, d.lead)
	}
	s.Interrupted, s.Runs = true, s.Runs[:1]
	if got := s.SummaryLine(); got != "1 run of s.yaml: 1 held; interrupted" {
		t.Error(got)
	}
}

// A run tells what else there is: thresholds, what weakens it, what cut it, its keys.
func TestRunOfASuiteTellsMore(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Result)
		want   string
	}{
		"missed": {func(r *Result) { r.Expectations = []Expectation{{"a<1", false, "2"}, {"b<1", true, "0"}} }, "expected a<1, measured 2; 20 of 25 rounds count; violated under 14.0 %"},
		"weak":   {func(r *Result) { r.Params.MinContended = 3 }, "20 of 25 rounds count; violated under 14.0 % [weaker than usual: --min-contended 3]"},
		"cut":    {func(r *Result) { r.Cut = "time was up" }, "20 of 25 rounds count; violated under 14.0 %; cut: time was up"},
		"watch":  {func(r *Result) { r.Detail.Ghosts = aWatchedStore() }, "20 of 25 keys count; violated under 14.0 %; median delay 10s to 20s"},
		"control": {func(r *Result) {
			r.Verdict = scenarios.Verdict{Status: scenarios.Violated, Violations: []scenarios.Violation{{Kind: "stale-accepted", Control: "stale"}}}
		}, "stale-accepted"},
	} {
		r := aRacedResult()
		c.change(&r)
		if got := (SuiteRun{Result: &r}).what(); got != c.want {
			t.Errorf("%s: %s\nwant %s", name, got, c.want)
		}
	}
}

// The whole report follows of runs that did not go as expected, and of no others.
func TestReportsOfWhatWentWrong(t *testing.T) {
	var titles []string
	for _, d := range aSuite().documents() {
		titles = append(titles, d.title)
	}
	if want := []string{"contend run s.yaml", "bad: contend fail-if-exists on sim: (S 1)", "idle: contend fail-if-exists on sim: (S 1)"}; !slices.Equal(titles, want) {
		t.Errorf("%q", titles)
	}
	if got := strings.Count(rendered(t, aSuite(), "csv"), ",verdict,"); got != 4 {
		t.Errorf("csv has %d runs, want 4", got)
	}
}

// Quiet has a line a run, one for all, and one an alarm.
func TestLinesOfASuite(t *testing.T) {
	s := aSuite()
	s.Night = &Night{Alarms: []string{"it drifts"}}
	lines := s.lines()
	if len(lines) != 7 || lines[4] != "down: could not run: cannot reach the target" || !strings.HasPrefix(lines[0], "good: fail-if-exists on sim:: held") ||
		lines[5] != s.SummaryLine() || lines[6] != "alarm: it drifts" {
		t.Errorf("%s", strings.Join(lines, "\n"))
	}
}

// A night tells of earlier keys, and of what changed, or that nothing did.
func TestNightTellsOfEarlierKeys(t *testing.T) {
	longest := aWatchedStore().Keys[0]
	n := &Night{Outstanding: []Outstanding{{Run: "R1", Target: "t", Open: 5, Answered: 4, Closed: 3, Blocked: 2, Visible: 1, Longest: &longest}, {Run: "R2", Target: "t"}}}
	parts := n.parts()
	wantRows(t, parts[0], "R1 | t | 5 | 4 | 3 | 2 | 1 | 10s to 20s", "R2 | t | 0 | 0 | 0 | 0 | 0 | –")
	wantNotes(t, parts[1], "No change was seen.")
	if len(parts) != 2 {
		t.Errorf("%+v", parts)
	}
	n.Changes, n.Alarms, n.Notes = make([]string, 1, 4), []string{"it drifts"}, []string{"a store is locked"}
	n.Changes[0] = "server: 7 → 8"
	for range 2 { // and what it was made of stays as it is
		parts = n.parts()
		wantNotes(t, parts[1], "server: 7 → 8", "Alarm: it drifts")
		wantNotes(t, parts[2], "a store is locked")
	}
	if len(n.Changes) != 1 || n.Changes[:2][1] != "" {
		t.Errorf("%q", n.Changes[:2])
	}
	s := aSuite()
	if s.Night = n; s.summary().title != "contend nightly s.yaml" {
		t.Error(s.summary().title)
	}
}
