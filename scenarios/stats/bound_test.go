package stats

import (
	"math"
	"testing"
)

// The bounds are those of the binomial distribution itself.
func TestBounds(t *testing.T) {
	atMost := func(k, n int, p float64) float64 {
		sum, term := 0.0, math.Pow(1-p, float64(n))
		for i := 0; i <= k; i++ {
			sum += term
			term *= float64(n-i) / float64(i+1) * p / (1 - p)
		}
		return sum
	}
	for _, c := range []struct{ k, n int }{{0, 12}, {0, 59}, {0, 299}, {1, 20}, {5, 100}, {19, 20}} {
		b := BoundOf(c.k, c.n)
		if got := atMost(c.k, c.n, b.AtMost); math.Abs(got-0.05) > 1e-6 {
			t.Errorf("%d of %d: at the upper bound %v, so few have probability %v, want 0.05", c.k, c.n, b.AtMost, got)
		}
		if c.k > 0 {
			if got := 1 - atMost(c.k-1, c.n, *b.AtLeast); math.Abs(got-0.05) > 1e-6 {
				t.Errorf("%d of %d: at the lower bound %v, so many have probability %v, want 0.05", c.k, c.n, *b.AtLeast, got)
			}
		}
	}
	if b := BoundOf(20, 20); b.AtMost != 1 || math.Abs(*b.AtLeast-math.Pow(0.05, 1.0/20)) > 1e-9 {
		t.Errorf("all of 20: %v, %v", b.AtMost, *b.AtLeast)
	}
	if BoundOf(0, 59).AtMost > 0.05 || BoundOf(0, 58).AtMost < 0.05 || BoundOf(0, 299).AtMost > 0.01 || BoundOf(0, 0) != nil {
		t.Error("59 rounds bound the rate at 5 %, 299 at 1 %, none at nothing")
	}
}
