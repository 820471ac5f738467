package suite_test

import (
	"errors"
	"strings"
	"testing"

	"contend/cmd/suite"
)

// A file is either a suite of so many named runs, or each of its faults has a place
// and a line of text.
func FuzzRead(f *testing.F) {
	for _, text := range []string{
		"runs:\n  - scenario: fail-if-exists\n",
		"defaults:\n  target: sim:\n  timeout: 10s\nruns:\n  - name: a\n    scenario: ttl-ghost\n    keys: [1, 2]\n    expect: ['p99(won)<1s']\n    labels: {site: '${SITE}'}\n",
		"runs: [{scenario: version-cas, contenders: 0, rounds: -1, target: 'redis://a:${PW}@b'}]",
		"runs: &a\n  - *a\n", "{", "runs:\n\t- x", "--- a\n--- b", "!!binary x", "runs: [{<<: {}}]",
	} {
		f.Add(text)
	}
	getenv := func(name string) (string, bool) { return "s3cr3t", name == "PW" || name == "SITE" }
	f.Fuzz(func(t *testing.T, text string) {
		s, err := suite.Read("s.yaml", []byte(text), sample(), getenv, checked)
		if err == nil {
			names := make(map[string]bool)
			for _, run := range s.Runs {
				names[run.Name] = true
			}
			if len(s.Runs) == 0 || len(s.Runs) > suite.MaxRuns || len(names) != len(s.Runs) {
				t.Errorf("%d runs with %d names", len(s.Runs), len(names))
			}
			return
		}
		problems, ok := errors.AsType[*suite.Problems](err)
		if !ok || len(problems.List) == 0 {
			t.Fatalf("error %v", err)
		}
		for _, p := range problems.List {
			if p.Line < 1 || p.Column < 1 || p.Text == "" || strings.ContainsAny(p.Text, "\n\r") || strings.Contains(p.Text, "s3cr3t") && !strings.Contains(text, "s3cr3t") {
				t.Errorf("problem %+v", p)
			}
		}
	})
}
