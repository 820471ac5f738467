package stats

import "math"

// The nightly chart: so many nights for the baseline, an allowance and a threshold
// in standard deviations, and the least standard deviation of a logarithm. Nights
// that all have the same figure, as a coarse clock gives, would make any change an
// alarm; a change by one percent a night is none.
const (
	baselineNights = 40
	allowance      = 0.5
	threshold      = 10
	leastDeviation = 0.01
)

// Night is where the chart stands after a night: how far the figures have been
// above the baseline, and below it, in standard deviations. Alarm is "up" or "down"
// on the night on which one exceeds the threshold; both start from 0 after it.
type Night struct {
	Up    float64 `json:"up"`
	Down  float64 `json:"down"`
	Alarm string  `json:"alarm,omitempty"`
}

// Drift looks for a lasting change of a nightly median, such as a delay or a
// latency, in the order of the nights: two cumulative sums (CUSUM, Page 1954) of its
// logarithm. A night without one is not above 0, or NaN: nothing is put in its
// place. The baseline are the first 40 nights that have one; until it is complete
// the sums are 0, and it stays the same after an alarm.
func Drift(medians []float64) []Night {
	nights := make([]Night, len(medians))
	var baseline []float64
	var mean, deviation float64
	var now Night
	for i, median := range medians {
		now.Alarm = ""
		if !(median > 0) || math.IsInf(median, 1) {
			nights[i] = now
			continue
		}
		figure := math.Log(median)
		if len(baseline) < baselineNights {
			baseline = append(baseline, figure)
			mean, deviation = meanDeviation(baseline)
			deviation = max(deviation, leastDeviation)
			continue
		}
		z := (figure - mean) / deviation
		now.Up = max(0, now.Up+z-allowance)
		now.Down = max(0, now.Down-z-allowance)
		switch {
		case now.Up > threshold:
			now.Alarm = "up"
		case now.Down > threshold:
			now.Alarm = "down"
		}
		nights[i] = now
		if now.Alarm != "" {
			now = Night{}
		}
	}
	return nights
}

// meanDeviation gives the mean and the standard deviation of a sample.
func meanDeviation(values []float64) (mean, deviation float64) {
	n := float64(len(values))
	for _, v := range values {
		mean += v / n
	}
	squares := 0.0
	for _, v := range values {
		squares += (v - mean) * (v - mean)
	}
	return mean, math.Sqrt(squares / max(1, n-1))
}
