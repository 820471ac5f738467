package cmd_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"contend/report"
	"contend/scenarios"
)

// Measured on demand, on an idle machine: what default runs say of a store with a window
// between check and set, which waits while others run, or keeps a processor busy. So
// many runs of each, which take some seconds apiece:
//
//	CONTEND_MEASURE=50 go test -run TestDetectionRates -v -timeout 2h ./cmd
//
// Each is to be violated, or held with a reach that is not below the window.
func TestDetectionRates(t *testing.T) {
	runs, _ := strconv.Atoi(os.Getenv("CONTEND_MEASURE"))
	if runs < 1 {
		t.Skip("CONTEND_MEASURE is how many runs of each are to be measured")
	}
	contend, err := built()
	if err != nil {
		t.Fatal(err)
	}
	wrong := filepath.Join(t.TempDir(), "wrong")
	if out, err := exec.Command("go", "build", "-o", wrong, "contend/targets/targettest/wrong").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	t.Logf("%-7s %-11s %5s %9s %17s %6s %13s   smallest reach of the held", "window", "kind", "runs", "violated", "held, reach above", "WRONG", "inconclusive")
	for _, window := range []time.Duration{20 * time.Microsecond, 50 * time.Microsecond, 200 * time.Microsecond, time.Millisecond} {
		for _, kind := range []string{"window", "window-cpu"} {
			var violated, above, tooLow, inconclusive int
			var reaches []time.Duration
			for range runs {
				r := runOn(t, wrong, kind, window, contend)
				switch reach := r.Contention.Reach.Reach; {
				case r.Verdict.Status == scenarios.Violated:
					violated++
				case r.Verdict.Status != scenarios.Held || reach == nil:
					inconclusive++
					t.Logf("%s of %s: %s %v", kind, window, r.Verdict.Status, r.Verdict.Reasons)
				case *reach < window:
					tooLow++
					t.Errorf("%s of %s: held with a reach of %s", kind, window, *reach)
				default:
					above++
					reaches = append(reaches, *reach)
				}
			}
			least := "none is held"
			if len(reaches) > 0 {
				least = slices.Min(reaches).String()
			}
			t.Logf("%-7s %-11s %5d %9d %17d %6d %13d   %s", window, kind, runs, violated, above, tooLow, inconclusive, least)
		}
	}
}

// runOn gives the result of a default run on a wrong store in a process of its own.
func runOn(t *testing.T, wrong, store string, window time.Duration, contend string) (r report.Result) {
	t.Helper()
	command := exec.Command(wrong, store, "-window", window.String(), "--", contend, "fail-if-exists", "-t", "URL", "--no-progress", "-o", "json")
	command.Env = append(os.Environ(), "XDG_STATE_HOME="+t.TempDir())
	out, _ := command.Output() // the exit code is the verdict's
	if err := json.Unmarshal(out, &r); err != nil {
		t.Fatalf("%v: %v\n%s", command, err, out)
	}
	return r
}
