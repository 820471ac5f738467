package scenarios

import (
	"slices"
	"time"

	"contend/scenarios/stats"
)

// Contention is the evidence that there was a contest. Figures are medians over
// all rounds, sums for ReachedGuard and Of; a figure without a value is null.
type Contention struct {
	MaxInFlight     *int           `json:"max_in_flight"`
	Overlap         *float64       `json:"overlap"`
	WinnerOverlap   *float64       `json:"winner_overlap"`
	GuardContention *float64       `json:"guard_contention"`
	ReachedGuard    int            `json:"reached_guard"`
	Of              int            `json:"of"`
	Skew            Skew           `json:"release_skew"`
	Closest         *time.Duration `json:"closest_ns"`
	Rivals          Rivals         `json:"rivals"`
	// ContendedRounds are those that count.
	ContendedRounds int   `json:"contended_rounds"`
	UncertainRounds int   `json:"uncertain_rounds"`
	Reach           Reach `json:"reach_ns"`
	// Uncounted says why the other rounds do not count.
	Uncounted []Uncounted `json:"not_contended"`
	// Uncertain says what is uncertain of rounds.
	Uncertain []Uncounted `json:"uncertain"`
}

// Rivals are the others whose guarded write met the winner's.
type Rivals struct {
	Needed int  `json:"needed"` // for a round to count
	P50    *int `json:"p50"`
}

// Reach bounds how far the check and the effect of an accepted write can have been
// apart, in so many of the counted rounds at least.
type Reach struct {
	AtLeast int            `json:"counted_at_least"`
	Reach   *time.Duration `json:"reach"`
	P50     *time.Duration `json:"p50"`
}

// Skew is the time from the first request sent to the last, over the rounds.
type Skew struct {
	P50    *time.Duration `json:"p50_ns"`
	P99    *time.Duration `json:"p99_ns"`
	Max    *time.Duration `json:"max_ns"`
	Method string         `json:"method"`
}

// reach tells how short it was in as many counted rounds as held needs.
func (j *Judge) reach(t *tally) Reach {
	out := Reach{AtLeast: max(1, j.terms.MinContended), P50: stats.Median(t.reaches)}
	if slices.Sort(t.reaches); len(t.reaches) >= out.AtLeast {
		out.Reach = &t.reaches[out.AtLeast-1]
	}
	return out
}

func (j *Judge) contention() Contention {
	c := Contention{Skew: Skew{Method: j.terms.SentBy}, Uncertain: []Uncounted{}}
	c.Rivals.Needed = RivalsNeeded(j.terms.Contenders, j.terms.Thresholds.Rivals)
	if j.terms.Relayed {
		c.Skew.Method = "server-span"
	}
	var flight, rivals []int
	var overlaps, winner, guard []float64
	var skews, closest []time.Duration
	for _, kept := range j.findings {
		e := &kept.Common().Evidence
		c.Of += e.Contenders
		c.ReachedGuard += e.ReachedGuard
		if e.Contenders == 0 || e.Untold {
			continue
		}
		flight = append(flight, e.MaxInFlight)
		rivals = append(rivals, e.Rivals)
		overlaps = append(overlaps, e.Overlap)
		winner = append(winner, e.WinnerOverlap)
		guard = append(guard, e.GuardContention)
		skews = append(skews, e.Skew)
		if e.Closest >= 0 {
			closest = append(closest, e.Closest)
		}
	}
	c.MaxInFlight, c.Overlap, c.WinnerOverlap, c.GuardContention = stats.Median(flight), stats.Median(overlaps), stats.Median(winner), stats.Median(guard)
	c.Rivals.P50 = stats.Median(rivals)
	slices.Sort(skews)
	if len(skews) > 0 {
		c.Skew.Max = &skews[len(skews)-1]
		c.Closest = least(closest)
	}
	c.Skew.P50, c.Skew.P99 = percentileOrNil(skews, 50), percentileOrNil(skews, 99)
	return c
}

func least(values []time.Duration) *time.Duration {
	if len(values) == 0 {
		return nil
	}
	d := slices.Min(values)
	return &d
}

func percentileOrNil(sorted []time.Duration, percentile float64) *time.Duration {
	if d, ok := stats.Percentile(sorted, percentile); ok {
		return &d
	}
	return nil
}
