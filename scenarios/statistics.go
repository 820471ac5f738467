package scenarios

import (
	"math"
	"slices"
	"time"

	"github.com/aclements/go-moremath/mathx"
)

// confidence of every bound.
const confidence = 0.95

// Bound is a one-sided bound, each way, on the rate of violated rounds at the
// given confidence: exact (Clopper–Pearson).
type Bound struct {
	Confidence float64  `json:"confidence"`
	AtMost     float64  `json:"violation_rate_at_most"`
	AtLeast    *float64 `json:"violation_rate_at_least,omitempty"`
	// UncertainAtMost takes every uncertain round for a violated one.
	UncertainAtMost *float64 `json:"violation_rate_at_most_if_uncertain_violate,omitempty"`
	Sided           string   `json:"sided"` // "one": each way at the confidence; both together are a 90 % interval
}

// boundOf gives the bound for violated of rounds; nil without rounds. With none
// violated it is 1 − 0.05^(1/rounds).
func boundOf(violated, rounds int) *Bound {
	if rounds == 0 {
		return nil
	}
	b := &Bound{Confidence: confidence, Sided: "one"}
	if violated == 0 {
		b.AtMost = 1 - math.Pow(1-confidence, 1/float64(rounds))
		return b
	}
	k, n := float64(violated), float64(rounds)
	b.AtMost = 1.0
	if violated < rounds {
		b.AtMost = betaQuantile(confidence, k+1, n-k)
	}
	least := betaQuantile(1-confidence, k, n-k+1)
	b.AtLeast = &least
	return b
}

// betaQuantile inverts the regularized incomplete beta function by bisection.
func betaQuantile(p, a, b float64) float64 {
	low, high := 0.0, 1.0
	for range 60 {
		middle := (low + high) / 2
		if mathx.BetaInc(middle, a, b) < p {
			low = middle
		} else {
			high = middle
		}
	}
	return (low + high) / 2
}

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

// median of the values that exist, by nearest rank; nil: none does.
func median[T float64 | int | time.Duration](values []T) *T {
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
