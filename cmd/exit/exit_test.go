package exit_test

import (
	"errors"
	"fmt"
	"testing"

	"contend/cmd/exit"
	"contend/report"
	"contend/scenarios"
	"contend/scenarios/probe"
	"contend/targets"
)

// A violation is told however the run ended; what is expected to be broken is held
// when it is.
func TestOf(t *testing.T) {
	missed := []report.Expectation{{Met: true}, {Met: false}}
	for name, c := range map[string]struct {
		status   scenarios.Status
		expected string
		change   func(*report.Result)
		want     int
	}{
		"held":                       {scenarios.Held, "held", nil, exit.Held},
		"nothing expected":           {scenarios.Held, "", nil, exit.Held},
		"violated":                   {scenarios.Violated, "held", nil, exit.Violated},
		"violated, interrupted":      {scenarios.Violated, "held", func(r *report.Result) { r.Interrupted = true }, exit.Violated},
		"violated, stopped":          {scenarios.Violated, "held", func(r *report.Result) { r.Stopped = "x" }, exit.Violated},
		"interrupted":                {scenarios.Inconclusive, "held", func(r *report.Result) { r.Interrupted = true }, exit.Interrupted},
		"interrupted and stopped":    {scenarios.Held, "held", func(r *report.Result) { r.Interrupted, r.Stopped = true, "x" }, exit.Interrupted},
		"stopped":                    {scenarios.Inconclusive, "held", func(r *report.Result) { r.Stopped = "x" }, exit.CannotRun},
		"inconclusive":               {scenarios.Inconclusive, "held", nil, exit.Inconclusive},
		"inconclusive, a threshold":  {scenarios.Inconclusive, "held", func(r *report.Result) { r.Expectations = missed }, exit.Inconclusive},
		"a threshold":                {scenarios.Held, "held", func(r *report.Result) { r.Expectations = missed }, exit.Threshold},
		"broken as expected":         {scenarios.Violated, "violated", nil, exit.Held},
		"broken, and a threshold":    {scenarios.Violated, "violated", func(r *report.Result) { r.Expectations = missed }, exit.Threshold},
		"whole against expectation":  {scenarios.Held, "violated", nil, exit.Violated},
		"unclear if as expected":     {scenarios.Inconclusive, "violated", nil, exit.Inconclusive},
		"a probe":                    {"", "", probed(probe.Report{Answered: 2}), exit.Held},
		"a probe of nothing":         {"", "", probed(probe.Report{}), exit.CannotRun},
		"a probe without an answer":  {"", "", probed(probe.Report{Answered: 1, Unanswered: 1}), exit.Inconclusive},
		"a probe that was cut short": {"", "", func(r *report.Result) { probed(probe.Report{Answered: 1})(r); r.Interrupted = true }, exit.Interrupted},
	} {
		r := report.Result{Verdict: scenarios.Verdict{Status: c.status}}
		r.Params.ExpectVerdict = c.expected
		if c.change != nil {
			c.change(&r)
		}
		if got := exit.Of(r); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

func probed(p probe.Report) func(*report.Result) {
	return func(r *report.Result) { r.Detail.Probe = &p }
}

// The worst is by what it means and not by its number.
func TestWorst(t *testing.T) {
	order := []int{exit.Violated, exit.Interrupted, exit.CannotRun, exit.Threshold, exit.Inconclusive, exit.Held}
	for i, worse := range order {
		for _, better := range order[i:] {
			if got := exit.Worst([]int{better, worse, better}); got != worse {
				t.Errorf("of %d and %d: %d", worse, better, got)
			}
		}
	}
	if got := exit.Worst(nil); got != exit.Held {
		t.Errorf("of none: %d", got)
	}
}

// What a URL got wrong is no failure of the target.
func TestConnecting(t *testing.T) {
	for err, failure := range map[error]bool{
		errors.New("refused"): true,
		fmt.Errorf("opening: %w", &targets.UsageError{Text: "no such strategy"}): false,
	} {
		if _, got := errors.AsType[*exit.Failure](exit.Connecting(err)); got != failure {
			t.Errorf("%v is a failure: %v", err, got)
		}
	}
}
