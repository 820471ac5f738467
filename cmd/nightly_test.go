package cmd_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"

	"contend/report"
	"contend/report/store"
)

const quietNight = `runs:
  - scenario: fail-if-exists
    target: "sim:?latency=20ms"
    rounds: 10
    contenders: 4
`

// nights keeps results of earlier nights, as tonight's would be but for what change
// makes of them.
func nights(t *testing.T, file string, n int, change func(night int, r *report.Result)) {
	t.Helper()
	_, tonight := resultOf(t, "fail-if-exists", "-t", "sim:?latency=20ms", "-r", "10", "-n", "4")
	kept, err := store.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer kept.Close()
	for night := range n {
		r := tonight
		r.Started = time.Now().UTC().AddDate(0, 0, night-n)
		r.Run = ulid.MustNew(ulid.Timestamp(r.Started), nil).String()
		// Each night has latencies of its own.
		text, _ := json.Marshal(tonight.Latency)
		r.Latency = nil
		_ = json.Unmarshal(text, &r.Latency)
		change(night, &r)
		if err := kept.SaveResult(r); err != nil {
			t.Fatal(err)
		}
	}
}

// A latency that has drifted is an alarm of the trend: exit 5, with its word in the
// report.
func TestNightlyAlarm(t *testing.T) {
	t.Parallel()
	const was = 2 * time.Millisecond // and is 20 ms at least
	dir := t.TempDir()
	file, suite := filepath.Join(dir, "nights.db"), filepath.Join(dir, "night.yaml")
	if err := os.WriteFile(suite, []byte(quietNight), 0o600); err != nil {
		t.Fatal(err)
	}
	nights(t, file, 45, func(night int, r *report.Result) {
		for i := range r.Latency {
			// About a fifth more or less.
			p50 := was + time.Duration(night%5-2)*was/10
			r.Latency[i].P50 = &p50
		}
	})
	if code, stdout, stderr := contend(t, "nightly", suite, "--store", file, "--no-progress"); code != 5 || !strings.Contains(stdout, "Alarm: ") {
		t.Errorf("exit %d, want 5:\n%s%s", code, stdout, stderr)
	}
}

// What changed since the night before is told: the tool's version here.
func TestNightlyTellsChanges(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file, suite := filepath.Join(dir, "nights.db"), filepath.Join(dir, "night.yaml")
	if err := os.WriteFile(suite, []byte(quietNight), 0o600); err != nil {
		t.Fatal(err)
	}
	nights(t, file, 2, func(_ int, r *report.Result) { r.Tool.Version = "v0.0.1-earlier" })
	if code, stdout, stderr := contend(t, "nightly", suite, "--store", file, "--no-progress"); code != 0 || !strings.Contains(stdout, "v0.0.1-earlier") {
		t.Errorf("exit %d:\n%s%s", code, stdout, stderr)
	}
}

// What is wrong with the command line is told before anything is sent.
func TestSuiteAndNightUsage(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	suite := filepath.Join(dir, "night.yaml")
	if err := os.WriteFile(suite, []byte(quietNight), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		text string
	}{
		{[]string{"nightly"}, "name one suite file"},
		{[]string{"nightly", suite, "--within", "0s"}, "--within 0s: must be longer than 0"},
		{[]string{"nightly", suite, "--store", ""}, "the nights need a store"},
		{[]string{"run", filepath.Join(dir, "absent.yaml")}, "name a suite file"},
		{[]string{"run", suite, "--store", filepath.Join(dir, "x.db"), "-o", "json=" + filepath.Join(dir, "x.db")}, "is the file of --store"},
	} {
		if code, stdout, stderr := contend(t, c.args...); code != 2 || !strings.Contains(stderr, c.text) {
			t.Errorf("%v: exit %d, want 2 and %q: %s%s", c.args, code, c.text, stdout, stderr)
		}
	}
}
