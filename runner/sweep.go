package runner

import "time"

// Sweep is a series of offsets from −Most to Most in equal steps, the middle one 0: so
// long after the first of two contenders the second is released, before it where that
// is negative. The zero Sweep is none.
type Sweep struct {
	Most  time.Duration `json:"most_ns"`
	Steps int           `json:"steps"` // odd
}

// The bounds of a sweep.
const (
	MostOffset       = time.Minute
	LeastOffsetStep  = time.Microsecond
	LeastOffsetSteps = 3
	MostOffsetSteps  = 1001
)

// Valid tells whether it is none, or one that can be run.
func (s Sweep) Valid() bool {
	return s == Sweep{} || s.Steps >= LeastOffsetSteps && s.Steps <= MostOffsetSteps && s.Steps%2 == 1 &&
		s.Most <= MostOffset && s.Most/time.Duration(s.Steps/2) >= LeastOffsetStep
}

// Offsets are all of them, the least first.
func (s Sweep) Offsets() []time.Duration {
	all := make([]time.Duration, s.Steps)
	for i, half := 0, s.Steps/2; i < s.Steps; i++ {
		all[i] = s.Most * time.Duration(i-half) / time.Duration(half)
	}
	return all
}

// Offset gives the offset of a round, from 1; nil: there is no sweep. The rounds take the
// offsets in turn, so that a run which is cut has had them all alike.
func (s Sweep) Offset(round int) *time.Duration {
	if s.Steps == 0 {
		return nil
	}
	return &s.Offsets()[(round-1)%s.Steps]
}

// delay is how long after the gate a contender of the round is released for the
// round's offset.
func (r *Round) delay(contender int) time.Duration {
	switch {
	case r.Offset == nil:
		return 0
	case contender == 0:
		return max(0, -*r.Offset)
	default:
		return max(0, *r.Offset)
	}
}

// apart is how long after the first of its contenders the last is released for the
// round's offset.
func (r *Round) apart() time.Duration { return max(r.delay(0), r.delay(1)) }
