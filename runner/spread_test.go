package runner_test

import (
	"slices"
	"time"

	"contend/runner"
)

// spreads notes the time from the first call of each round to the last.
type spreads struct{ each []time.Duration }

func (s *spreads) Observe(e runner.Event) {
	r := e.Round
	if r == nil {
		return
	}
	first, last := r.Ops[0].Call, r.Ops[0].Call
	for i := range r.Ops {
		first, last = min(first, r.Ops[i].Call), max(last, r.Ops[i].Call)
	}
	s.each = append(s.each, last-first)
}

func (s *spreads) median() time.Duration {
	slices.Sort(s.each)
	return s.each[len(s.each)/2]
}
