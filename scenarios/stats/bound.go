// Package stats has the statistics of a verdict: bounds on a rate, percentiles, a
// test by permutation, and the chart of the nights. Pure functions, without a store.
package stats

import (
	"math"

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

// BoundOf gives the bound for violated of rounds; nil without rounds. With none
// violated it is 1 − 0.05^(1/rounds).
func BoundOf(violated, rounds int) *Bound {
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
