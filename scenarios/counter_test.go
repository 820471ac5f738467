package scenarios

import (
	"math"
	"testing"
)

// The chi-square test tells even shares from uneven ones: 5.99 is the 95 % point
// of two degrees of freedom.
func TestFairness(t *testing.T) {
	for _, c := range []struct {
		shares []int
		p      float64 // negative: not to be told
	}{
		{[]int{10, 10, 10}, 1},
		{[]int{16, 8, 6}, math.Exp(-5.6 / 2)}, // (36+4+16)/10 = 5.6
		{[]int{40, 1, 1}, 0},
		{[]int{2, 2, 2}, -1},
	} {
		f := fairness(c.shares)
		if c.p < 0 {
			if f == nil || f.P != nil {
				t.Errorf("%v: %+v, want no p", c.shares, f)
			}
			continue
		}
		if f.P == nil || math.Abs(*f.P-c.p) > 1e-6 {
			t.Errorf("%v: p %v, want %v", c.shares, f.P, c.p)
		}
	}
	if fairness([]int{5}) != nil || fairness([]int{0, 0}) != nil {
		t.Error("one contender, or no success, has a fairness")
	}
}

func TestBackoff(t *testing.T) {
	if backoff("none", 5, 1) != 0 || backoff("exponential", 1, 0) != backoffBase || backoff("exponential", 40, 0) != backoffMost {
		t.Error("the wait is not as documented")
	}
	if d := backoff("jitter", 3, 0.5); d != 2*backoffBase {
		t.Errorf("jitter of one half: %s", d)
	}
}
