package stats

import (
	"math"
	"slices"
	"time"
)

// Needed is how many samples a percentile needs to be told at all.
func Needed(percentile float64) int {
	switch {
	case percentile <= 50:
		return 1
	case percentile <= 90:
		return 10
	case percentile <= 95:
		return 20
	case percentile <= 99:
		return 100
	default:
		return 1000
	}
}

// Percentile is the nearest rank of sorted samples; ok is false where there are
// fewer than it needs.
func Percentile(sorted []time.Duration, percentile float64) (d time.Duration, ok bool) {
	n := len(sorted)
	if n == 0 || n < Needed(percentile) {
		return 0, false
	}
	return sorted[NearestRank(n, percentile)-1], true
}

// NearestRank is the rank, from 1, of a percentile among n samples.
func NearestRank(n int, percentile float64) int {
	return max(1, int(math.Ceil(percentile/100*float64(n)-1e-9)))
}

// Median of the values that exist, by nearest rank; nil: none does.
func Median[T float64 | int | time.Duration](values []T) *T {
	var have []T
	for _, v := range values {
		if v >= 0 {
			have = append(have, v)
		}
	}
	if len(have) == 0 {
		return nil
	}
	slices.Sort(have)
	return &have[NearestRank(len(have), 50)-1]
}
