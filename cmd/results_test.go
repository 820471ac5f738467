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
		r := report.Result{Schema: report.ResultSchema, Front: report.Front{Run: run, Scenario: "ttl-ghost", Started: started,
			Target: report.Target{Kind: "redis", URL: "redis://a:6379"}}, Verdict: scenarios.Verdict{Status: scenarios.Violated}}
		if err := s.SaveResult(r); err != nil {
			t.Fatal(err)
		}
	}
	save("01A00000000000000000000000", now.AddDate(0, 0, -30))
	save("01B00000000000000000000000", now)
	at := func(d time.Duration, outcome targets.Outcome) *runner.Sighting {
		return &runner.Sighting{Call: d, Return: d + 40*time.Millisecond, Outcome: outcome}
	}
	created := at(time.Second, targets.OK) // expires between 31 s and 31.04 s
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
		"contend-01B0*-write0 write blocked " + when + " 30s " + when + " 1m0s – " + when,
		"contend-01B0*-write1 write free " + when + " 30s " + when + " 30s 1m0s –",
		"contend-01B0*-write2 write early " + when + " 30s " + when + " – -10.96s –",
		"contend-01B0*-read3 read visible " + when + " 30s " + when + " – 1m0s –",
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
	_, stdout, _ := contend(t, "results", "ghosts", "--store", file, "-o", "json", "--state", "free")
	var told struct {
		Ghosts []map[string]any `json:"ghosts"`
	}
	if err := json.Unmarshal([]byte(stdout), &told); err != nil || len(told.Ghosts) != 1 || told.Ghosts[0]["last_blocked_ns"] != 30e9 ||
		told.Ghosts[0]["first_free_ns"] != 60e9 || told.Ghosts[0]["next_due"] != nil || told.Ghosts[0]["probes"] != 0. {
		t.Errorf("%v:\n%s", err, stdout)
	}
}

func TestResultsExport(t *testing.T) {
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
