package cmd_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"contend/cmd"
	"contend/report"
	"contend/runner"
)

// builtIn is the folder of the program that the tests build.
var builtIn string

// tidied removes it when they are done.
type tidied struct{ *testing.M }

func (m tidied) Run() int {
	// What reports look like is not up to where the tests run.
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		os.Unsetenv(name)
	}
	// Every test has the same, so that they can run side by side.
	os.Setenv("CONTEND_FORGE_TOKEN", "test")
	var err error
	if builtIn, err = os.MkdirTemp("", "contend-built-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(builtIn)
	return m.M.Run()
}

func TestMain(m *testing.M) {
	testscript.Main(tidied{m}, map[string]func(){
		// exits CODE ARGS… runs contend and wants that exit code.
		"exits": func() {
			want, _ := strconv.Atoi(os.Args[1])
			got := cmd.Run(context.Background(), os.Args[2:], os.Stdin, os.Stdout, os.Stderr)
			if got != want {
				fmt.Fprintf(os.Stderr, "exit code %d, want %d\n", got, want)
				os.Exit(1)
			}
		},
	})
}

// Sessions that a user would have.
func TestSessions(t *testing.T) {
	testscript.Run(t, testscript.Params{Dir: "testdata"})
}

// contend runs a command line and gives its exit code and what it wrote.
func contend(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = cmd.Run(t.Context(), args, strings.NewReader(""), &out, &errs)
	return code, out.String(), errs.String()
}

func resultOf(t *testing.T, args ...string) (int, report.Result) {
	t.Helper()
	code, stdout, stderr := contend(t, append(args, "-o", "json", "--no-progress")...)
	var r report.Result
	if err := json.Unmarshal([]byte(stdout), &r); err != nil {
		t.Fatalf("%v: exit %d, %v\n%s\n%s", args, code, err, stdout, stderr)
	}
	return code, r
}

// A record in which one loser's reply is turned into a success is violated: the
// verdict comes from the recorded ops alone.
func TestJudgeSeesATamperedRecord(t *testing.T) {
	for _, scenario := range []string{"fail-if-exists", "version-cas"} {
		record := filepath.Join(t.TempDir(), "run.jsonl")
		if code, _, stderr := contend(t, scenario, "-t", "sim:?latency=5ms", "-r", "4", "--max-rounds", "4", "--min-contended", "1", "-q", "--record", record); code != 0 {
			t.Fatalf("exit %d: %s", code, stderr)
		}
		if code, stdout, _ := contend(t, "judge", record, "-q"); code != 0 {
			t.Fatalf("untouched: exit %d: %s", code, stdout)
		}
		text, err := os.ReadFile(record)
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.SplitAfter(string(text), "\n")
		for i, line := range lines {
			if strings.HasPrefix(line, `{"round":{"round":3,`) {
				lines[i] = strings.Replace(line, `"outcome":"conflict"`, `"outcome":"ok"`, 1)
			}
		}
		if err := os.WriteFile(record, []byte(strings.Join(lines, "")), 0o600); err != nil {
			t.Fatal(err)
		}
		code, stdout, _ := contend(t, "judge", record)
		if code != 1 || !strings.Contains(stdout, "VIOLATED in 1 of 4 rounds") || !strings.Contains(stdout, "Witness of several-winners, round 3") {
			t.Errorf("%s: exit %d:\n%s", scenario, code, stdout)
		}
	}
}

// What a fault in the controls looks like is judged from the record too.
func TestJudgeSeesTamperedControls(t *testing.T) {
	record := filepath.Join(t.TempDir(), "run.jsonl")
	if code, _, stderr := contend(t, "fail-if-exists", "-t", "sim:?latency=5ms", "-r", "2", "--min-contended", "1", "-q", "--record", record); code != 0 {
		t.Fatalf("exit %d: %s", code, stderr)
	}
	text, _ := os.ReadFile(record)
	tampered := strings.Replace(string(text), `"outcome":"conflict","code":"KEY_CONFLICT"`, `"outcome":"ok","code":"KEY_CONFLICT"`, 1)
	if err := os.WriteFile(record, []byte(tampered), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, stdout, _ := contend(t, "judge", record, "-q"); code != 1 || !strings.Contains(stdout, "sequential control: a second create") {
		t.Errorf("exit %d: %s", code, stdout)
	}
}

// A run that was killed leaves a record, which is judged as far as it goes.
func TestJudgeOfACutRecord(t *testing.T) {
	record := filepath.Join(t.TempDir(), "run.jsonl")
	contend(t, "fail-if-exists", "-t", "sim:?latency=5ms", "-r", "6", "-q", "--record", record)
	text, err := os.ReadFile(record)
	if err != nil {
		t.Fatal(err)
	}
	cut := strings.Index(string(text), `{"round":{"round":5,`) + 200
	if err := os.WriteFile(record, text[:cut], 0o600); err != nil {
		t.Fatal(err)
	}
	code, stdout, _ := contend(t, "judge", record)
	if code != 130 || !strings.Contains(stdout, "interrupted after 4 rounds, 0 of 6 counted") ||
		!strings.Contains(stdout, "Uncertain: 4 could not be read once more at the end.") {
		t.Errorf("exit %d:\n%s", code, stdout)
	}
}

// The bound in a result is the one that its counted rounds give, and every round that
// was raced is counted, uncertain, or told with the reason why it is neither.
func TestResultIsConsistent(t *testing.T) {
	code, r := resultOf(t, "version-cas", "-t", "sim:?latency=5ms", "-r", "12", "--max-rounds", "12", "-n", "5", "--expect", "lost>=75%")
	if code != 0 || r.Rounds != 12 || r.Contention.Of != 60 || r.Winners.One != 12 || !r.Expectations[0].Met {
		t.Errorf("exit %d: %+v", code, r)
	}
	c := r.Contention
	others := 0
	for _, u := range append(c.Uncounted, c.Uncertain...) {
		others += u.Rounds
	}
	if c.ContendedRounds < 10 || c.ContendedRounds+others != 12 || c.UncertainRounds != 0 || len(c.Uncertain) != 0 {
		t.Errorf("%d rounds count, %d are uncertain, of the others it tells %+v, %+v", c.ContendedRounds, c.UncertainRounds, c.Uncounted, c.Uncertain)
	}
	if b := r.Verdict.Bound; math.Abs(b.AtMost-(1-math.Pow(0.05, 1/float64(c.ContendedRounds)))) > 1e-12 || b.AtLeast != nil || b.UncertainAtMost != nil || b.Sided != "one" {
		t.Errorf("the bound of %d rounds is %+v", c.ContendedRounds, b)
	}
	if c.Rivals.Needed != 2 || *c.Rivals.P50 < 2 || *c.Rivals.P50 > 4 || c.Reach.AtLeast != 10 || *c.Reach.Reach < 5*time.Millisecond || *c.Reach.P50 > r.Elapsed {
		t.Errorf("rivals %+v, reach %+v", c.Rivals, c.Reach)
	}
	total := 0
	for _, o := range r.Outcomes {
		total += o.Count
	}
	if total != 60 || r.Requests == 0 || r.Elapsed == 0 || r.Interrupted {
		t.Errorf("%d contenders, %d requests in %s", total, r.Requests, r.Elapsed)
	}
}

// A repeatable flag's twin in the environment holds a value a line.
func TestRepeatableFlagFromTheEnvironment(t *testing.T) {
	t.Setenv("CONTEND_LABEL", "a=1\nb=2=3\n")
	if _, r := resultOf(t, "fail-if-exists", "-t", "sim:?latency=5ms", "-r", "1"); r.Labels["a"] != "1" || r.Labels["b"] != "2=3" || len(r.Labels) != 2 {
		t.Errorf("labels %v", r.Labels)
	}
}

// An interrupt while connecting is no target that cannot be reached.
func TestInterruptedBeforeTheStart(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out, errs bytes.Buffer
	if code := cmd.Run(ctx, []string{"fail-if-exists", "-r", "5", "-q"}, strings.NewReader(""), &out, &errs); code != 130 {
		t.Errorf("exit %d: %s%s", code, out.String(), errs.String())
	}
}

func TestCleanRemovesWhatARunLeft(t *testing.T) {
	if got := runner.RunOf("contend-", "contend-01ABC-r3"); got != "01ABC" {
		t.Errorf("run of a key: %q", got)
	}
	for _, key := range []string{"other-01ABC-r3", "contend-", "contend-01ABC"} {
		if got := runner.RunOf("contend-", key); got != "" {
			t.Errorf("%s is of run %q, want none", key, got)
		}
	}
}

// A record whose scenario was changed is not judged by another's rules.
func TestJudgeOfAnotherScenario(t *testing.T) {
	record := filepath.Join(t.TempDir(), "run.jsonl")
	contend(t, "version-cas", "-t", "sim:?latency=5ms", "-r", "2", "-q", "--record", record)
	text, err := os.ReadFile(record)
	if err != nil {
		t.Fatal(err)
	}
	changed := strings.Replace(string(text), `"scenario":"version-cas"`, `"scenario":"fail-if-exists"`, 1)
	if err := os.WriteFile(record, []byte(changed), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, _, stderr := contend(t, "judge", record); code != 2 || !strings.Contains(stderr, "is not of the scenario fail-if-exists") {
		t.Errorf("exit %d: %s", code, stderr)
	}
}

// A run that cannot start leaves an earlier record as it was, and makes no file.
func TestRecordOfARunThatCannotStart(t *testing.T) {
	dir := t.TempDir()
	earlier, fresh := filepath.Join(dir, "earlier"), filepath.Join(dir, "fresh")
	if err := os.WriteFile(earlier, []byte("kept"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{earlier, fresh} {
		if code, _, _ := contend(t, "fail-if-exists", "-t", "redis://127.0.0.1:1", "-q", "--record", name); code != 4 {
			t.Errorf("exit %d", code)
		}
	}
	if text, _ := os.ReadFile(earlier); string(text) != "kept" {
		t.Errorf("the earlier record holds %q", text)
	}
	if _, err := os.Stat(fresh); !os.IsNotExist(err) {
		t.Errorf("an empty record was left: %v", err)
	}
}

// What a label or a store sends cannot steer the terminal.
func TestControlCharactersAreShown(t *testing.T) {
	_, stdout, _ := contend(t, "fail-if-exists", "-t", "sim:?latency=5ms", "-r", "1", "--label", "x=\x1b[31mred\u202e", "--no-progress")
	if strings.ContainsAny(stdout, "\x1b\u202e") || !strings.Contains(stdout, `x=\x1b[31mred\u202e`) {
		t.Errorf("%q", stdout[max(0, len(stdout)-300):])
	}
}
