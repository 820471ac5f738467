package cmd

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"contend/cmd/exit"
	"contend/report"
	"contend/scenarios"
	"contend/targets/all"
)

// Whatever a record holds, judging and showing it is either a result or an error
// that says what is wrong; and what is shown can be read again.
func FuzzJudge(f *testing.F) {
	for _, args := range [][]string{
		{"fail-if-exists", "-t", "sim:?latency=1ms", "-n", "2", "-r", "1", "--control-rounds", "1"},
		{"lease", "-t", "sim:?latency=1ms&fault=two-winners", "-n", "2", "-r", "1", "--skip-controls"},
		{"counter", "-t", "sim:?latency=1ms", "-n", "2", "-r", "1", "--skip-controls"},
		{"ttl-ghost", "-t", "sim:?sweep=1ms..2ms", "--keys", "1", "--ttl", "1s", "--watch", "50ms", "--tolerance", "10ms", "--first", "10ms", "--skip-controls", "--store", ""},
		{"probe", "--only", "create"},
	} {
		record := filepath.Join(f.TempDir(), "run.jsonl")
		var errs bytes.Buffer
		if code := Run(f.Context(), append(args, "-q", "--record", record), strings.NewReader(""), io.Discard, &errs); code == exit.Usage || code == exit.CannotRun {
			f.Fatalf("%v: exit %d: %s", args, code, &errs)
		}
		text, err := os.ReadFile(record)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
		lines := bytes.SplitAfter(text, []byte("\n"))
		f.Add(bytes.Join(lines[:len(lines)/2], nil))
	}
	f.Fuzz(func(t *testing.T, record []byte) {
		r, err := judgeRecord("run.jsonl", bytes.NewReader(record))
		if err != nil {
			if !strings.HasPrefix(err.Error(), "judge run.jsonl: ") {
				t.Errorf("error %q", err)
			}
			return
		}
		var shown bytes.Buffer
		for _, format := range []string{"table", "markdown", "jira", "csv", "quiet", "json"} {
			shown.Reset()
			if err := report.WriteAll([]report.Output{{Format: format}}, r, &shown, report.Screen{}); err != nil && format != "json" {
				t.Fatalf("%s: %v", format, err)
			}
		}
		var again report.Result
		if err := json.Unmarshal(shown.Bytes(), &again); err != nil || again.Verdict.Status != r.Verdict.Status {
			t.Errorf("%v: %.2000s", err, shown.String())
		}
	})
}

// The flags of a race take what they can read and refuse the rest, and the command
// that a report shows makes the same run.
func FuzzFlags(f *testing.F) {
	f.Add("12", "10s", "p90(won)<250ms", "json", "site=test", "2.5", "0.8")
	f.Add("2,4,8", "1", "throttled==0", "json=x", "a=b=c", "1", "NaN")
	f.Add("1,,", "-1h2m3.5s", "n(won)>=1e9", "csv=", "=", "-1", "1e400")
	f.Add("99999999999999999999", "9223372036854775807ns", "p50(lost)<=µs", "yaml", "'\n\x00", "0x10", "0x1p-2")
	f.Fuzz(func(t *testing.T, crowd, duration, expect, output, label, rounds, share string) {
		if _, file, _ := strings.Cut(output, "="); strings.ContainsAny(file, "/\\") {
			return // it would be tried whether a file can be made there
		}
		t.Chdir(t.TempDir())
		given := map[string]string{"contenders": crowd, "timeout": duration, "stagger": duration, "expect": expect, "output": output, "label": label,
			"rounds": rounds, "max-uncertain": share, "rate": share}
		l := newLaunch(scenarios.Find("fail-if-exists")).(*contestLaunch)
		fs := pflag.NewFlagSet("", pflag.ContinueOnError)
		l.register(fs)
		for name, value := range given {
			if err := fs.Set(name, value); err != nil {
				if err = plainly(err); strings.Contains(err.Error(), "strconv") || strings.Contains(err.Error(), "time:") {
					t.Errorf("--%s %q: %v", name, value, err)
				}
				return
			}
		}
		if _, err := outputsOf(l.outputs, l.quiet); err != nil || l.check(fs) != nil {
			return
		}
		if err := l.ready(nil, ""); err != nil {
			return
		}
		defer l.close()
		if l.plan.Contenders < 1 || l.plan.Rounds < 1 || l.plan.Timeout <= 0 {
			t.Errorf("%v makes the plan %+v", given, l.plan)
		}
		if err := l.printPlan(io.Discard); err != nil {
			t.Error(err)
		}
	})
}

// An age is read as it is written.
func FuzzAge(f *testing.F) {
	for _, text := range []string{"36h", "400d", "2w", "1d12h", "0.5w", "-1h", "1e9d", "", "\n", "1d\n2h"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var a, again age
		if a.Set(text) != nil {
			return
		}
		if a < 0 || again.Set(a.String()) != nil || again != a {
			t.Errorf("%q is %d, written %q, read %d", text, a, a.String(), again)
		}
	})
}

// A suite that the program takes makes runs that can be planned.
func FuzzSuite(f *testing.F) {
	for _, file := range []string{"suite.yaml", "night.yaml"} {
		text, err := os.ReadFile(filepath.Join("..", "examples", file))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(text))
	}
	f.Add("runs:\n  - scenario: ttl-ghost\n    keys: [1, 2]\n    ttl: 1s\n    expect-verdict: violated\n")
	f.Fuzz(func(t *testing.T, text string) {
		if strings.Contains(text, "since") {
			return // which names a file
		}
		file := filepath.Join(t.TempDir(), "s.yaml")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		runs, err := readSuite(file)
		if err == nil && len(runs) == 0 {
			t.Error("a suite without a run")
		}
		for _, p := range runs {
			if all.Redact(p.launch.common().target) == "" {
				t.Errorf("%s has no target", p.name)
			}
		}
	})
}
