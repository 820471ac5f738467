package report

import (
	"errors"
	"strings"
	"testing"
	"time"
)

// countsOf has so many of an outcome, which took so long each.
func countsOf(outcome string, took ...time.Duration) *counts {
	c := newCounts()
	c.contenders = len(took)
	c.byFate[fateKey{outcome, "write", "", 0}] = &Outcome{Outcome: outcome, Count: len(took)}
	for _, d := range took {
		c.sample(sampleKey{outcome, "write", ""}, d)
	}
	return c
}

// Each operator is right below its value, at it and above.
func TestOperatorsAtTheirValue(t *testing.T) {
	for operator, want := range map[string][3]bool{"<": {true, false, false}, "<=": {true, true, false}, "==": {false, true, false}, ">=": {false, true, true}, ">": {false, false, true}} {
		for i, n := range []int{1, 2, 3} {
			c := countsOf("won", make([]time.Duration, n)...)
			for _, text := range []string{"won" + operator + "2", "n(won)" + operator + "2", " won " + operator + " 2.0 "} {
				e, err := parseExpectation(text)
				if err != nil {
					t.Fatal(err)
				}
				if got := e.check(c); got.Met != want[i] || got.Expr != text {
					t.Errorf("%s of %d: %+v", text, n, got)
				}
			}
		}
	}
}

// A threshold that cannot be read is refused with what can be.
func TestThresholdsThatCannotBeRead(t *testing.T) {
	for text, want := range map[string]string{
		"won":              `--expect "won": needs the form FIGURE OP VALUE`,
		"won=>3":           "needs the form",
		"wins==3":          `unknown outcome "wins"; there are won, lost, ok, conflict,`,
		"p98(won)<1s":      `unknown figure "p98"; there are p50, p90, p95, p99, min, max, n`,
		"p90(won)<250":     "p90(won) is compared with a duration such as 250ms, not \"250\"",
		"won<x":            `"x" is not a number or percentage`,
		"n(won)<50%":       `"50%" is not a number or percentage`,
		"won==NaN":         `"NaN" is not a number or percentage`,
		"p90(not-sent)<1":  "p90(not-sent) is compared with a duration",
		"won<1, lost<2":    "needs the form",
		"p90(won) lost <1": "needs the form",
	} {
		_, err := parseExpectations([]string{"lost>0", text})
		var wrong *ExpectationError
		if !errors.As(err, &wrong) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
	err := CheckExpectations([]string{"won", "lost>0", "p98(won)<1s"})
	if err == nil || strings.Count(err.Error(), "--expect") != 2 {
		t.Errorf("both that are wrong are told: %v", err)
	}
	if err := CheckExpectations([]string{"lost>0"}); err != nil {
		t.Error(err)
	}
}

// What was not measured is never met, whatever the operator.
func TestWhatWasNotMeasuredIsNotMet(t *testing.T) {
	for text, figure := range map[string]string{
		"p90(won)>=0s": "too few samples: 2", "p50(lost)>=0s": "no sample", "max(lost)<1h": "no sample",
	} {
		e, err := parseExpectation(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := e.check(countsOf("won", 1, 2)); got.Met || got.Figure != figure {
			t.Errorf("%s: %+v, want %s", text, got, figure)
		}
	}
	for _, text := range []string{"won>=0", "won>=0%", "lost==0"} {
		e, err := parseExpectation(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := e.check(newCounts()); got.Met || got.Figure != "no contender ran" {
			t.Errorf("%s of nobody: %+v", text, got)
		}
	}
}

// A share is of the contenders, and a duration has four digits.
func TestFiguresOfThresholds(t *testing.T) {
	c := countsOf("won", time.Millisecond, 1234567, 2*time.Millisecond)
	c.contenders = 8
	for text, figure := range map[string]string{"won>=37.5%": "37.5%", "won==3": "3", "max(won)<=2ms": "2ms", "min(won)==1ms": "1ms", "p50(won)<1235us": "1.235ms"} {
		e, err := parseExpectation(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := e.check(c); !got.Met || got.Figure != figure {
			t.Errorf("%s: %+v, want %s", text, got, figure)
		}
	}
}
