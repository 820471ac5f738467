package report

import (
	"fmt"
	"math"
	"time"

	"contend/scenarios"
	"contend/scenarios/stats"
	"contend/scenarios/survival"
)

// dash stands for what is not known.
const dash = "–"

func orDash(text string) string {
	if text == "" {
		return dash
	}
	return text
}

// plural writes a number of things.
func plural(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// percent writes a share with two or three figures.
func percent(share float64) string {
	p := 100 * share
	switch {
	case p == 0 || p >= 99.95:
		return fmt.Sprintf("%.0f %%", p)
	case p == math.Trunc(p):
		return fmt.Sprintf("%.0f %%", p)
	case p >= 1:
		return fmt.Sprintf("%.1f %%", p)
	default:
		return fmt.Sprintf("%.*f %%", int(1-math.Floor(math.Log10(p))), p)
	}
}

// percentUp and percentDown write a bound, rounded to its safe side.
func percentUp(share float64) string   { return bound(share, math.Ceil) }
func percentDown(share float64) string { return bound(share, math.Floor) }

func bound(share float64, round func(float64) float64) string {
	p := 100 * share
	digits := 1
	if p < 1 && p > 0 {
		digits = int(1 - math.Floor(math.Log10(p)))
	}
	scale := math.Pow(10, float64(digits))
	return fmt.Sprintf("%.*f %%", digits, round(p*scale)/scale)
}

// milliseconds writes a duration in ms with about three figures.
func milliseconds(d time.Duration) string {
	ms := float64(d) / 1e6
	switch {
	case ms >= 100:
		return fmt.Sprintf("%.0f", ms)
	case ms >= 10:
		return fmt.Sprintf("%.1f", ms)
	case ms >= 1:
		return fmt.Sprintf("%.2f", ms)
	default:
		return fmt.Sprintf("%.3f", ms)
	}
}

// signedMilliseconds writes a duration in ms with its sign.
func signedMilliseconds(d time.Duration) string {
	switch {
	case d < 0:
		return "-" + milliseconds(-d)
	case d == 0:
		return milliseconds(d)
	default:
		return "+" + milliseconds(d)
	}
}

// short is a duration for people: of four digits at most.
func short(d time.Duration) time.Duration {
	if d.Abs() >= time.Minute {
		return stats.Coarse(d)
	}
	unit := time.Duration(1)
	for d.Abs()/unit >= 10_000 {
		unit *= 10
	}
	return d.Round(unit)
}

// ages writes an interval of ages, or of a delay.
func ages(low, high *time.Duration) string {
	switch {
	case low == nil && high == nil:
		return dash
	case high == nil:
		return "over " + stats.Coarse(*low).String()
	case low == nil || *low <= 0:
		return "up to " + stats.Coarse(*high).String()
	default:
		return stats.Coarse(*low).String() + " to " + stats.Coarse(*high).String()
	}
}

// agesTo writes an interval that may have no end.
func agesTo(from, to time.Duration) string {
	if to == survival.Forever {
		return ages(&from, nil)
	}
	return ages(&from, &to)
}

// quantileText writes where a quantile lies, with its 95 % interval.
func quantileText(q *survival.Quantile) string {
	text := quantileRange(q)
	if interval := agesTo(q.Low, q.High); interval != text && !(q.Low <= 0 && q.High == survival.Forever) {
		text += " (95 % interval: " + interval + ")"
	}
	return text
}

func quantileRange(q *survival.Quantile) string { return agesTo(q.From, q.To) }

// signed writes how far one clock is from another.
func signed(r scenarios.Range) string {
	return fmt.Sprintf("%+.3g to %+.3g s", r.From.Seconds(), r.To.Seconds())
}
