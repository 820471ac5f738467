package forge

import (
	"math"
	"time"
)

// clocks compares the clocks next to the store with ours, one for each isolate of
// the app. An answer shows their clock minus ours up to what the way there and
// back took; the fastest answer of an isolate shows it best.
type clocks map[string]clockReading

// clockReading is what the fastest answer of an isolate shows.
type clockReading struct {
	way    time.Duration // there and back, without the invocation
	offset time.Duration // their clock minus ours, if both ways took the same
}

// note takes an answer into account; began and ended are of the invocation, in
// milliseconds since 1970, by its clock.
func (c clocks) note(isolate string, call, ret time.Time, began, ended float64) {
	at := func(ms float64) time.Time { return time.UnixMicro(int64(ms * 1000)) }
	there, back := at(began).Sub(call.Round(0)), at(ended).Sub(ret.Round(0))
	r := clockReading{way: there - back, offset: (there + back) / 2}
	if held, known := c[isolate]; !known || r.way < held.way {
		c[isolate] = r
	}
}

// offset is their clock minus ours: that of the fastest answer.
func (c clocks) offset() time.Duration {
	var best clockReading
	first := true
	for _, r := range c {
		if first || r.way < best.way {
			best, first = r, false
		}
	}
	return best.offset
}

// leastUncertainty is the fineness of the clocks themselves.
const leastUncertainty = time.Millisecond

// uncertainty estimates how far two of them are apart, by the spread of their
// offsets: what is the same for all ways there does not matter to it, what
// differs from way to way makes it larger.
func (c clocks) uncertainty() time.Duration {
	if len(c) == 0 {
		return 0
	}
	low, high := time.Duration(math.MaxInt64), time.Duration(math.MinInt64)
	for _, r := range c {
		low, high = min(low, r.offset), max(high, r.offset)
	}
	return max(high-low, leastUncertainty)
}
