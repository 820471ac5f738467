package report

import (
	"fmt"
	"math"
	"testing"
	"time"

	"contend/scenarios"
	"contend/scenarios/survival"
)

// forever is how a quantile says that its end was not observed.
const forever = time.Duration(math.MaxInt64)

func ptr[T any](v T) *T { return &v }

// check compares what a rule gives with what it should, case by case.
func check[In comparable](t *testing.T, what string, rule func(In) string, cases map[In]string) {
	t.Helper()
	for in, want := range cases {
		if got := rule(in); got != want {
			t.Errorf("%s of %v is %q, want %q", what, in, got, want)
		}
	}
}

// A share has figures enough to tell it from none and from all.
func TestSmallSharesAreNotNone(t *testing.T) {
	check(t, "percent", percent, map[float64]string{
		0: "0 %", 1: "100 %", 0.5: "50 %", 0.9995: "100 %", 0.99949: "99.9 %", 0.999: "99.9 %", 0.01: "1 %", 0.0123: "1.2 %", 0.00999: "1.00 %",
		0.00123: "0.12 %", 0.0001: "0.010 %", 0.0000456: "0.0046 %", 1.0 / 3: "33.3 %",
	})
	for _, s := range []float64{1e-9, 1e-6, 1e-3} {
		if got := percent(s); got == "0 %" {
			t.Errorf("%g becomes %s", s, got)
		}
	}
}

// An upper bound is never rounded down, nor a lower one up.
func TestBoundsKeepToTheirSafeSide(t *testing.T) {
	check(t, "percentUp", percentUp, map[float64]string{0.1391: "14.0 %", 0.0051: "0.51 %", 0.00511: "0.52 %", 0.000101: "0.011 %", 1: "100.0 %", 0: "0.0 %"})
	check(t, "percentDown", percentDown, map[float64]string{0.8609: "86.0 %", 0.0059: "0.59 %", 0.00599: "0.59 %", 0.000199: "0.019 %", 1: "100.0 %", 0: "0.0 %"})
	for n := 1; n < 3000; n += 7 {
		b := 1 - math.Pow(0.05, 1/float64(n))
		var up, down float64
		if _, err := fmt.Sscan(percentUp(b), &up); err != nil || up/100 < b-1e-12 {
			t.Errorf("%g is told to be at most %s", b, percentUp(b))
		}
		if _, err := fmt.Sscan(percentDown(b), &down); err != nil || down/100 > b+1e-12 {
			t.Errorf("%g is told to be at least %s", b, percentDown(b))
		}
	}
}

// Milliseconds have about three figures, and the unit stands elsewhere.
func TestMillisecondsHaveThreeFigures(t *testing.T) {
	check(t, "milliseconds", milliseconds, map[time.Duration]string{
		0: "0.000", 1: "0.000", 500: "0.001", 1234 * time.Microsecond: "1.23", 999_999: "1.000", time.Millisecond: "1.00", 10 * time.Millisecond: "10.0",
		99_949_000: "99.9", 100 * time.Millisecond: "100", 12345 * time.Millisecond: "12345",
	})
	check(t, "signedMilliseconds", signedMilliseconds, map[time.Duration]string{
		0: "0.000", -4 * time.Millisecond: "-4.00", 4 * time.Millisecond: "+4.00", -500: "-0.001", 120 * time.Millisecond: "+120",
	})
}

// An interval of ages says which of its ends was observed.
func TestAgesTellWhatWasObserved(t *testing.T) {
	s := func(seconds float64) *time.Duration { return ptr(time.Duration(seconds * 1e9)) }
	for _, c := range []struct {
		low, high *time.Duration
		want      string
	}{
		{nil, nil, "–"}, {s(1), nil, "over 1s"}, {nil, s(2), "up to 2s"}, {s(0), s(2), "up to 2s"}, {s(-1), s(2), "up to 2s"}, {s(1), s(2), "1s to 2s"},
		{s(1.23456), s(3723), "1.23s to 1h2m0s"}, {s(0), nil, "over 0s"},
	} {
		if got := ages(c.low, c.high); got != c.want {
			t.Errorf("%v to %v: %s, want %s", c.low, c.high, got, c.want)
		}
		if got := (span{c.low, c.high}).String(); got != c.want {
			t.Errorf("the cell of %v to %v: %s, want %s", c.low, c.high, got, c.want)
		}
	}
	for _, c := range []struct {
		q                survival.Quantile
		text, rangeAlone string
	}{
		{survival.Quantile{From: 1e9, To: 2e9, Low: 5e8, High: 3e9}, "1s to 2s (95 % interval: 500ms to 3s)", "1s to 2s"},
		{survival.Quantile{From: 1e9, To: forever, Low: 5e8, High: forever}, "over 1s (95 % interval: over 500ms)", "over 1s"},
		{survival.Quantile{From: 1e9, To: 2e9, High: forever}, "1s to 2s", "1s to 2s"},       // the interval says nothing
		{survival.Quantile{From: 1e9, To: 2e9, Low: 1e9, High: 2e9}, "1s to 2s", "1s to 2s"}, // nor does it say anything else
		{survival.Quantile{To: 2e9, High: 3e9}, "up to 2s (95 % interval: up to 3s)", "up to 2s"},
	} {
		if got := quantileText(&c.q); got != c.text {
			t.Errorf("%+v: %s, want %s", c.q, got, c.text)
		}
		if got := quantileRange(&c.q); got != c.rangeAlone {
			t.Errorf("%+v: %s, want %s", c.q, got, c.rangeAlone)
		}
	}
}

func TestOneThingIsNoPlural(t *testing.T) {
	check(t, "plural", func(n int) string { return plural(n, "night") }, map[int]string{0: "0 nights", 1: "1 night", 2: "2 nights"})
	check(t, "orDash", orDash, map[string]string{"": "–", "x": "x"})
	check(t, "signed", signed, map[scenarios.Range]string{{From: -15e8, To: 25e7}: "-1.5 to +0.25 s", {}: "+0 to +0 s"})
}
