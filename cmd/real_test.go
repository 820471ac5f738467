package cmd_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"contend/report"
	"contend/scenarios"
	"contend/targets/targettest"
	"contend/targets/targettest/servers"
)

// realCases are the kinds of target whose servers are real ones.
func realCases() []targettest.Case {
	return slices.DeleteFunc(targettest.Cases(), func(c targettest.Case) bool { return !c.Real })
}

// No honest store is accused, by any strategy, and every contest without a guard
// is. Whether there was a contest depends on the machine and is not asserted.
func TestRealServers(t *testing.T) {
	t.Parallel()
	for _, c := range realCases() {
		t.Run(c.Kind, func(t *testing.T) {
			t.Parallel()
			for _, url := range c.Strategies(c.Start(t)) {
				for _, s := range scenarios.Contests() {
					flags, apart := briefly[s.Info().Name]
					if !apart {
						flags = []string{"-r", "100", "-n", "8"}
					} else if !strings.Contains(url, "cas=") {
						continue
					}
					code, r := resultOf(t, append([]string{s.Info().Name, "-t", url}, flags...)...)
					checkReal(t, s.Info(), code, r)
				}
			}
		})
	}
}

// briefly are the flags of contests that take their time, or ask the same guards as
// others: they are run by the strategies of a write on a version alone.
var briefly = map[string][]string{
	"lease":           {"-r", "20", "-n", "8"},
	"counter":         {"-r", "20", "-n", "4"},
	"duplicate-event": {"-r", "3", "--min-contended", "3", "-n", "2", "--control-rounds", "1", "--backoff", "20ms", "--offset", "0"},
}

func checkReal(t *testing.T, info scenarios.Info, code int, r report.Result) {
	t.Helper()
	unguarded := info.Unguarded
	where := r.Scenario + " on " + r.Target.URL
	if r.Target.Server == "" || r.Target.Simulated || r.Contention.Skew.Method != "kernel-write" {
		t.Errorf("%s: server %q, simulated %v, sent by %s", where, r.Target.Server, r.Target.Simulated, r.Contention.Skew.Method)
	}
	if r.Rounds < r.Params.Rounds || r.Rounds > r.Params.MaxRounds || len(r.Outcomes) == 0 {
		t.Errorf("%s: %d rounds, outcomes %v", where, r.Rounds, r.Outcomes)
	}
	for _, c := range r.Controls {
		if !c.AsExpected {
			t.Errorf("%s: control %s: %s", where, c.Name, c.Detail)
		}
	}
	if unguarded {
		if code != 1 || r.Verdict.ViolatedRounds != r.Rounds || !r.Verdict.Expected {
			t.Errorf("%s: exit %d, violated in %d rounds", where, code, r.Verdict.ViolatedRounds)
		}
		return
	}
	if code != 0 && code != 3 || len(r.Verdict.Violations) > 0 || r.Winners.Several > 0 && r.Detail.Counter == nil {
		t.Errorf("%s: exit %d, %v, %+v", where, code, r.Verdict.Violations, r.Winners)
	}
	if code == 3 && !strings.Contains(fmt.Sprint(r.Verdict.Reasons), "rounds count as contended, and held needs") {
		t.Errorf("%s is inconclusive for another reason than a lack of contest: %v", where, r.Verdict.Reasons)
	}
}

// Of the edits of a document none is lost under its version, whatever refused
// editors do; under a time in whole seconds one is in every round, by every strategy:
// editors whose transaction was aborted send the same again.
func TestRealServersLoseUpdates(t *testing.T) {
	t.Parallel()
	for _, c := range realCases() {
		for _, url := range c.Strategies(c.Start(t)) {
			if !strings.Contains(url, "cas=") {
				continue
			}
			for _, flags := range []string{"--on-conflict reload -r 20", "--on-conflict merge -r 20", "--guard timestamp --precision us -r 20", "--guard timestamp -r 2"} {
				t.Run(c.Kind+" "+url[strings.LastIndexByte(url, '?')+1:]+" "+flags, func(t *testing.T) {
					t.Parallel()
					code, r := resultOf(t, append([]string{"lost-update", "-t", url, "-n", "6", "--control-rounds", "1"}, strings.Fields(flags)...)...)
					e := r.Detail.Edits
					for _, c := range r.Controls {
						if !c.AsExpected {
							t.Errorf("control %s: %s", c.Name, c.Detail)
						}
					}
					if !strings.Contains(flags, "timestamp") {
						if code != 0 && code != 3 || e.Lost+e.Unexpected > 0 || e.Acknowledged < r.Rounds {
							t.Errorf("exit %d, %+v, %+v: %v %+v", code, r.Winners, e, r.Verdict.Reasons, r.Verdict.Violations)
						}
						return
					}
					for _, v := range r.Verdict.Violations {
						if v.Kind != "lost-update" {
							t.Errorf("%+v", v)
						}
					}
					// Of a machine that stood still for a second nothing is said.
					late := 0
					for _, u := range r.Contention.Uncounted {
						if strings.Contains(u.Why, "the second of their document was over") {
							late += u.Rounds
						}
					}
					if !strings.Contains(flags, "us") && (r.Verdict.ViolatedRounds+late != r.Rounds || late == r.Rounds) {
						t.Errorf("exit %d, violated in %d rounds, too late in %d, %+v: %v", code, r.Verdict.ViolatedRounds, late, e, r.Verdict.Reasons)
					}
				})
			}
		}
	}
}

// Two thousand rounds of each guarded contest on a real server, without one
// violation.
func TestRealRedisIsNeverAccused(t *testing.T) {
	t.Parallel()
	url := servers.Redis(t)
	for _, s := range scenarios.Contests() {
		if _, apart := briefly[s.Info().Name]; apart || s.Info().Unguarded {
			continue
		}
		code, r := resultOf(t, s.Info().Name, "-t", url, "-r", "2000", "--max-rounds", "2000")
		if code != 0 && code != 3 || r.Rounds != 2000 || len(r.Verdict.Violations) > 0 || r.Winners.One != 2000 {
			t.Errorf("%s: exit %d after %d rounds: %v, %+v, %v", s.Info().Name, code, r.Rounds, r.Verdict.Reasons, r.Winners, r.Verdict.Violations)
		}
		t.Log(r.VerdictLine())
	}
}

// built is the program as a user has it.
var built = sync.OnceValues(func() (string, error) {
	program := filepath.Join(builtIn, "contend")
	out, err := exec.Command("go", "build", "-o", program, "contend").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return program, nil
})

// process is a run in a process of its own, on a target that keeps it busy until
// it is stopped.
type process struct {
	*exec.Cmd
	stdout, stderr bytes.Buffer
	record         string
}

func startRun(t *testing.T, url string) *process {
	t.Helper()
	program, err := built()
	if err != nil {
		t.Fatal(err)
	}
	p := &process{record: filepath.Join(t.TempDir(), "run.jsonl")}
	p.Cmd = exec.Command(program, "fail-if-exists", "-t", url, "-n", "4", "-r", "100000000", "--timeout", "300ms", "--record", p.record)
	p.Stdout, p.Stderr = &p.stdout, &p.stderr
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Process.Kill() })
	for {
		text, _ := os.ReadFile(p.record)
		if bytes.Count(text, []byte("\n")) > 20 {
			return p
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func keys(t *testing.T, url string) int {
	t.Helper()
	code, stdout, stderr := contend(t, "clean", "-t", url, "--older-than", "0s", "--force", "--store", "")
	var n int
	if _, err := fmt.Sscanf(stdout, "removed %d key", &n); err != nil || code != 0 {
		t.Fatalf("exit %d: %s%s", code, stdout, stderr)
	}
	return n
}

// Interrupted once, a run settles, reports, removes its keys and exits 130.
func TestInterruptedRun(t *testing.T) {
	t.Parallel()
	url := servers.Redis(t)
	p := startRun(t, url)
	_ = p.Process.Signal(os.Interrupt)
	_ = p.Wait()
	if code := p.ProcessState.ExitCode(); code != 130 {
		t.Errorf("exit %d: %s", code, p.stderr.String())
	}
	if out := p.stdout.String(); !strings.Contains(out, "interrupted after") || !strings.Contains(out, "Winners and losers") {
		t.Errorf("no report:\n%s", out)
	}
	if n := keys(t, url); n != 0 {
		t.Errorf("%d keys were left behind", n)
	}
	if code, stdout, _ := contend(t, "judge", p.record, "-q"); code != 130 {
		t.Errorf("judged again: exit %d: %s", code, stdout)
	}
}

// A run that is killed leaves its record, and keys that clean removes.
func TestKilledRun(t *testing.T) {
	t.Parallel()
	url := servers.Redis(t)
	p := startRun(t, url)
	_ = p.Process.Kill()
	_ = p.Wait()
	code, stdout, _ := contend(t, "judge", p.record)
	if code != 130 || !strings.Contains(stdout, "interrupted after") {
		t.Errorf("judged: exit %d:\n%s", code, stdout)
	}
	f, err := os.Open(p.record)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var header struct{ Run string }
	if err := json.NewDecoder(f).Decode(&header); err != nil {
		t.Fatal(err)
	}
	// Another run's keys are left alone.
	if code, stdout, _ := contend(t, "clean", "-t", url, "--run", "01ARZ3NDEKTSV4RRFFQ69G5FAV"); code != 0 || !strings.HasPrefix(stdout, "removed 0 keys") {
		t.Errorf("cleaning another run: exit %d: %s", code, stdout)
	}
	if code, stdout, _ := contend(t, "clean", "-t", url, "--older-than", "1h"); code != 0 || !strings.HasPrefix(stdout, "removed 0 keys") {
		t.Errorf("cleaning old runs: exit %d: %s", code, stdout)
	}
	code, stdout, _ = contend(t, "clean", "-t", url, "--run", header.Run)
	if code != 0 || strings.HasPrefix(stdout, "removed 0 keys") {
		t.Errorf("cleaning the killed run: exit %d: %s", code, stdout)
	}
	if n := keys(t, url); n != 0 {
		t.Errorf("%d keys were left behind", n)
	}
}

// A server that dies in mid-run gives unknown outcomes, a stop after three rounds
// that nobody was served in, a report, and exit 4; never a violation.
func TestServerDiesInMidRun(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]func(testing.TB) *servers.Server{
		"redis":    func(tb testing.TB) *servers.Server { return servers.RedisServer(tb) },
		"postgres": func(tb testing.TB) *servers.Server { return servers.PostgresServer(tb) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := start(t)
			p := startRun(t, server.URL)
			server.Kill()
			_ = p.Wait()
			out := p.stdout.String()
			if code := p.ProcessState.ExitCode(); code != 4 {
				t.Errorf("exit %d: %s", code, p.stderr.String())
			}
			if !strings.Contains(out, "INCONCLUSIVE: the target decided on no write for 3 rounds; the first refusal: ") || strings.Contains(out, "VIOLATED") {
				t.Errorf("report:\n%s", out)
			}
			if stderr := p.stderr.String(); !strings.Contains(stderr, "keys may have been left behind: ") || !strings.Contains(stderr, "contend clean -t ") {
				t.Errorf("what was left behind is not told: %s", stderr)
			}
		})
	}
}

// What a dry run tells is what a run sends to a store that answers everything.
func TestDryRunTellsWhatIsSent(t *testing.T) {
	t.Parallel()
	for _, url := range []string{servers.Redis(t), "sim:?latency=0"} {
		for _, s := range scenarios.Contests() {
			if _, apart := briefly[s.Info().Name]; apart {
				continue // who tries again, or waits, sends as many as it takes
			}
			flags := []string{s.Info().Name, "-t", url, "-r", "7", "--max-rounds", "7", "-n", "5"}
			_, plan, _ := contend(t, append(flags, "--dry-run")...)
			_, r := resultOf(t, flags...)
			if want := fmt.Sprintf("  requests     %d where all of the first 7 count: ", r.Requests); !strings.Contains(plan, want) || !strings.Contains(plan, "7 that count; at most 7 are raced") {
				t.Errorf("%s on %s: %d requests were sent, the plan says\n%s", s.Info().Name, url, r.Requests, plan)
			}
		}
	}
}

// What stands in front of a server, or refuses a run, ends it with exit 4, the cause and
// what to do; nothing of it is a verdict.
func TestCauseOfARunThatCannotBe(t *testing.T) {
	t.Parallel()
	postgres := servers.Postgres(t)
	for _, c := range []struct {
		name, url string
		says      []string
	}{
		{"transaction pooling", servers.PgBouncerServer(t, postgres, "pool_mode = transaction").URL,
			[]string{"a pooler in transaction mode is in between", "use session mode, or the server itself"}},
		{"a full pool", servers.PgBouncerServer(t, postgres, "pool_mode = session", "default_pool_size = 6", "query_wait_timeout = 2").URL,
			[]string{"the pool of the pooler in between is full", "default_pool_size", "lower the number of contenders"}},
		{"few connections", servers.RedisServer(t, "--maxclients", "6").URL, []string{"maxclients", "lower the number of contenders"}},
	} {
		code, out, stderr := contend(t, "fail-if-exists", "-t", c.url, "-r", "3")
		if code != 4 || out != "" {
			t.Errorf("%s: exit %d, %s", c.name, code, out)
		}
		for _, text := range c.says {
			if !strings.Contains(stderr, text) {
				t.Errorf("%s: %q is not said: %s", c.name, text, stderr)
			}
		}
		if strings.Contains(stderr, "is the server running") || strings.Contains(stderr, "drop it") {
			t.Errorf("%s: a false advice: %s", c.name, stderr)
		}
	}
}
