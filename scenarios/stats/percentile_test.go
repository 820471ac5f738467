package stats

import (
	"testing"
	"time"
)

// A percentile is the nearest rank, and is told only with the samples that it needs.
func TestPercentile(t *testing.T) {
	samples := make([]time.Duration, 1000)
	for i := range samples {
		samples[i] = time.Duration(i + 1)
	}
	for _, c := range []struct {
		percentile float64
		needed     int
		want       time.Duration // of so many samples 1, 2, 3 …
	}{{1, 1, 1}, {50, 1, 1}, {50.1, 10, 6}, {90, 10, 9}, {95, 20, 19}, {99, 100, 99}, {99.9, 1000, 999}} {
		if got := Needed(c.percentile); got != c.needed {
			t.Errorf("p%v needs %d samples, want %d", c.percentile, got, c.needed)
		}
		if got, ok := Percentile(samples[:c.needed], c.percentile); !ok || got != c.want {
			t.Errorf("p%v of %d samples is %d, %v; want %d", c.percentile, c.needed, got, ok, c.want)
		}
		if _, ok := Percentile(samples[:c.needed-1], c.percentile); ok {
			t.Errorf("p%v is told of %d samples", c.percentile, c.needed-1)
		}
	}
}

// The median is one of the values; those below 0 stand for none.
func TestMedian(t *testing.T) {
	for _, c := range []struct {
		values []int
		want   int // -1: none
	}{{nil, -1}, {[]int{-1, -1}, -1}, {[]int{0}, 0}, {[]int{5, -1, 3}, 3}, {[]int{9, 1, 5}, 5}, {[]int{4, 1, 3, 2}, 2}} {
		got := Median(c.values)
		if (got == nil) != (c.want < 0) || got != nil && *got != c.want {
			t.Errorf("the median of %v is %v, want %d", c.values, got, c.want)
		}
	}
}
