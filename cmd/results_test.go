package cmd_test

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"contend/report"
	"contend/report/store"
	"contend/runner"
	"contend/scenarios"
	"contend/targets"
)

// aStore has two runs of long ago and of now, the newer with keys in every state,
// and a key of a run that was killed.
func aStore(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "results.db")
	s, err := store.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	now := time.Now().UTC().Truncate(time.Second)
	save := func(run string, started time.Time) {
		r := report.Result{Schema: report.ResultSchema, RunHeader: report.RunHeader{Run: run, Scenario: "ttl-ghost", Started: started,
			Target: report.Target{Kind: "redis", URL: "redis://a:6379"}}, Verdict: scenarios.Verdict{Status: scenarios.Violated}}
		if err := s.SaveResult(r); err != nil {
			t.Fatal(err)
		}
	}
	save("01A00000000000000000000000", now.AddDate(0, 0, -30))
	save("01B00000000000000000000000", now)
	at := func(d time.Duration, outcome targets.Outcome) *runner.Observation {
		return &runner.Observation{Call: d, Return: d + 40*time.Millisecond, Outcome: outcome}
	}
	created := at(time.Second, targets.OK)
	var ghosts []*runner.Ghost
	add := func(run, arm string, state runner.GhostState, change func(*runner.Ghost)) {
		g := &runner.Ghost{Run: run, Target: "redis://a:6379", Arm: arm, Number: len(ghosts), Key: fmt.Sprintf("contend-%s-%s%d", run, arm, len(ghosts)),
			Epoch: now, Terms: runner.GhostTerms{TTL: 30 * time.Second, Watch: time.Hour, Tolerance: time.Second}, State: state, Created: created, Closed: true}
		change(g)
		ghosts = append(ghosts, g)
	}
	add("01B00000000000000000000000", "write", runner.GhostBlocked, func(g *runner.Ghost) {
		g.LastBlocked, g.Closed, g.Due = at(91040*time.Millisecond, targets.Conflict), false, 151*time.Second
	})
	add("01B00000000000000000000000", "write", runner.GhostFree, func(g *runner.Ghost) {
		g.LastBlocked, g.FirstFree = at(61040*time.Millisecond, targets.Conflict), at(90960*time.Millisecond, targets.OK)
	})
	add("01B00000000000000000000000", "write", runner.GhostEarly, func(g *runner.Ghost) { g.FirstFree = at(20*time.Second, targets.OK) })
	add("01B00000000000000000000000", "read", runner.GhostVisible, func(g *runner.Ghost) {
		g.Granted = 40 * time.Second // which holds for its siblings, of which nothing is told
		g.LastShown, g.FirstFree = at(61040*time.Millisecond, targets.OK), at(90960*time.Millisecond, targets.OK)
	})
	add("01B00000000000000000000000", "write", runner.GhostAbandoned, func(g *runner.Ghost) { g.Created, g.Why = nil, "its store died" })
	add("01C00000000000000000000000", "write", runner.GhostPending, func(g *runner.Ghost) { g.Created, g.Closed = nil, false })
	if err := s.Intend(ghosts); err != nil {
		t.Fatal(err)
	}
	for _, g := range ghosts[:2] {
		if err := s.Note(g, &runner.Exchange{Op: targets.Op{Kind: targets.Read, Key: g.Key}, Call: time.Minute}); err != nil {
			t.Fatal(err)
		}
	}
	return file
}

func TestResultsGhosts(t *testing.T) {
	t.Parallel()
	file := aStore(t)
	lines := func(args ...string) []string {
		t.Helper()
		code, stdout, stderr := contend(t, append([]string{"results", "ghosts", "--store", file}, args...)...)
		if code != 0 {
			t.Fatalf("%v: exit %d: %s", args, code, stderr)
		}
		var lines []string
		for _, line := range strings.Split(strings.TrimSpace(stdout), "\n") {
			if line = strings.Join(strings.Fields(strings.ReplaceAll(line, "│", " ")), " "); line != "" && !strings.HasPrefix(line, "─") {
				lines = append(lines, line)
			}
		}
		return lines
	}
	const when = `\d{4}-\d\d-\d\d \d\d:\d\d:\d\d`
	all := lines()
	for i, want := range []string{
		"6 keys in .*results.db", "key arm state run started UTC TTL expiry UTC last blocked first free next due UTC",
		"contend-01B0*-write0 write blocked " + when + " 30s " + when + " 50s – " + when,
		"contend-01B0*-write1 write free " + when + " 30s " + when + " 20s 50s –",
		"contend-01B0*-write2 write early " + when + " 30s " + when + " – -20.96s –",
		"contend-01B0*-read3 read visible " + when + " 30s " + when + " – 50s –",
		"contend-01B0*-write4 write abandoned " + when + " 30s – – – –",
		"contend-01C0*-write5 write pending " + when + " 30s – – – " + when,
	} {
		if i >= len(all) || !regexp.MustCompile("^"+want+"$").MatchString(all[i]) {
			t.Errorf("line %d of %d is not %s:\n%s", i, len(all), want, strings.Join(all, "\n"))
		}
	}
	for _, c := range []struct {
		args []string
		want int
		says string
	}{
		{[]string{"--open"}, 2, "2 keys still asked about in "}, {[]string{"--state", "free"}, 1, "1 key that are free in "},
		{[]string{"--run", "01c"}, 1, "1 key of run 01c in "},
		{[]string{"-t", "redis://a"}, 6, "6 keys on redis://a"}, {[]string{"-t", "sim:"}, 0, "0 keys on sim: in "},
	} {
		if got := lines(c.args...); len(got) != c.want+min(2, c.want+1) || !strings.HasPrefix(got[0], c.says) {
			t.Errorf("%v gives %d lines, want %d:\n%s", c.args, len(got), c.want, strings.Join(got, "\n"))
		}
	}
	var told struct {
		Ghosts []map[string]any `json:"ghosts"`
	}
	_, stdout, _ := contend(t, "results", "ghosts", "--store", file, "-o", "json", "--state", "blocked")
	at := func(name string) time.Time {
		when, _ := time.Parse(time.RFC3339Nano, fmt.Sprint(told.Ghosts[0][name]))
		return when
	}
	if err := json.Unmarshal([]byte(stdout), &told); err != nil || len(told.Ghosts) != 1 || at("next_due").Sub(at("run_started")) != 151*time.Second ||
		at("expiry").Sub(at("run_started")) != 41040*time.Millisecond || told.Ghosts[0]["open"] != true {
		t.Errorf("%v:\n%s", err, stdout)
	}
	_, stdout, _ = contend(t, "results", "ghosts", "--store", file, "-o", "json", "--state", "free")
	if err := json.Unmarshal([]byte(stdout), &told); err != nil || len(told.Ghosts) != 1 || told.Ghosts[0]["last_blocked_ns"] != 20e9 ||
		told.Ghosts[0]["first_free_ns"] != 50e9 || told.Ghosts[0]["next_due"] != nil || told.Ghosts[0]["probes"] != 0. {
		t.Errorf("%v:\n%s", err, stdout)
	}
}

func TestResultsExport(t *testing.T) {
	t.Parallel()
	file := aStore(t)
	code, stdout, stderr := contend(t, "results", "export", "--store", file)
	if code != 0 {
		t.Fatalf("exit %d: %s", code, stderr)
	}
	var got []string
	for line := range strings.Lines(stdout) {
		var e struct {
			Schema string
			Run    *report.Result
			Ghost  *runner.Ghost
			Probes []runner.Exchange
		}
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		switch {
		case e.Run != nil:
			got = append(got, e.Run.Run[:3])
		case e.Ghost != nil:
			got = append(got, fmt.Sprint(e.Ghost.Run[:3], " ", e.Ghost.Number, " ", len(e.Probes)))
		default:
			got = append(got, e.Schema)
		}
	}
	if want := "contend.export/1, 01A, 01B, 01B 0 1, 01B 1 1, 01B 2 0, 01B 3 0, 01B 4 0, 01C 5 0"; strings.Join(got, ", ") != want {
		t.Errorf("got %s\nwant %s", strings.Join(got, ", "), want)
	}
	for _, c := range []struct {
		args    []string
		rows    int
		columns string
	}{
		{[]string{"--format", "csv"}, 2, "run,started,"}, {[]string{"--format", "csv", "--since", "1w"}, 1, "run,started,"},
		{[]string{"--format", "csv", "--ghosts"}, 6, "key,run,arm,target,state,open,"},
		{[]string{"--format", "csv", "--ghosts", "-t", "redis://b"}, 0, "key,run,arm,target,state,open,"},
	} {
		_, stdout, _ := contend(t, append([]string{"results", "export", "--store", file}, c.args...)...)
		rows, err := csv.NewReader(strings.NewReader(stdout)).ReadAll()
		if err != nil || len(rows) != c.rows+1 || !strings.HasPrefix(stdout, c.columns) {
			t.Errorf("%v: %v, %d rows:\n%s", c.args, err, len(rows), stdout)
		}
	}
}

// What is still watched stays, and what is kept is told.
func TestResultsPrune(t *testing.T) {
	t.Parallel()
	file := aStore(t)
	_, stdout, _ := contend(t, "results", "prune", "--keep", "2w", "--store", file)
	if !strings.HasPrefix(stdout, "removed 1 run, 0 ghosts and 0 probes of before ") {
		t.Errorf("%s", stdout)
	}
	_, stdout, _ = contend(t, "results", "prune", "--keep", "0s", "--store", file)
	if !strings.HasPrefix(stdout, "removed 0 runs, 0 ghosts and 0 probes of before ") || !strings.HasSuffix(stdout, "kept 2 runs of before then, with keys that are still watched\n") {
		t.Errorf("%s", stdout)
	}
}

// A file that others write to at the same time is read as it is.
func TestResultsWhileWriting(t *testing.T) {
	t.Parallel()
	file := aStore(t)
	s, err := store.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if code, stdout, stderr := contend(t, "results", "list", "--store", file); code != 0 || !strings.HasPrefix(stdout, "2 runs in ") {
		t.Errorf("exit %d: %s%s", code, stdout, stderr)
	}
}

// An alarm on the latest night is an exit status for whoever asks for it.
func TestResultsTrend(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "results.db")
	s, err := store.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	first := time.Date(2026, 10, 1, 3, 0, 0, 0, time.UTC)
	save := func(night int, status scenarios.Status) {
		t.Helper()
		won := 50 * time.Millisecond
		r := report.Result{Schema: report.ResultSchema, RunHeader: report.RunHeader{Run: fmt.Sprintf("01A%023d", night), Scenario: "fail-if-exists",
			Started: first.AddDate(0, 0, night), Params: report.Params{Contenders: 12, ExpectVerdict: "held"},
			Target: report.Target{Kind: "redis", URL: "redis://a:6379"}}, Rounds: 20, Verdict: scenarios.Verdict{Status: status},
			Latency: []report.Latency{{Outcome: "won", At: "write", N: 20, P50: &won}}}
		if err := s.SaveResult(r); err != nil {
			t.Fatal(err)
		}
	}
	for night := range 40 {
		save(night, scenarios.Held)
	}
	if code, stdout, stderr := contend(t, "results", "trend", "--store", file, "--fail-on-alarm"); code != 0 || strings.Count(stdout, "│ held ") != 30 ||
		!strings.Contains(stdout, "No alarm on 2026-11-09") || !strings.Contains(stdout, "40 nights with a run, of 40 since 2026-10-01") {
		t.Errorf("exit %d: %s%s", code, stdout, stderr)
	}
	save(40, scenarios.Violated)
	for args, want := range map[string]struct {
		code int
		says string
	}{
		"": {0, "ALARM on 2026-11-10: violated"}, "--fail-on-alarm": {5, "ALARM on 2026-11-10: violated"},
		"--fail-on-alarm -t redis://b": {0, "No runs were stored"},
	} {
		if code, stdout, _ := contend(t, append([]string{"results", "trend", "--store", file}, strings.Fields(args)...)...); code != want.code || !strings.Contains(stdout, want.says) {
			t.Errorf("%q: exit %d, want %d:\n%s", args, code, want.code, stdout)
		}
	}
	save(41, scenarios.Held)
	if code, stdout, _ := contend(t, "results", "trend", "--store", file, "--fail-on-alarm", "--nights", "3"); code != 0 || strings.Count(stdout, "│ held ") != 2 ||
		!strings.Contains(stdout, "No alarm on 2026-11-11, the latest night; the last was on 2026-11-10") {
		t.Errorf("exit %d:\n%s", code, stdout)
	}
	if _, stdout, _ := contend(t, "results", "trend", "--store", file, "--nights", "0", "-o", "csv"); strings.Count(stdout, "\n") != 43 {
		t.Errorf("%s", stdout)
	}
}
