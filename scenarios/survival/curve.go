package survival

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// curve is the estimate. Cell k is (ends[k], ends[k+1]]; ends has 0, each bound of
// a delay, and Forever.
type curve struct {
	ends      []time.Duration
	stretches []stretch
	keys      float64
	masses    masses
	best      float64 // the logarithm of the likelihood
	fitter    fitter
}

func newCurve(delays []Delay) *curve {
	c := &curve{ends: []time.Duration{0, Forever}, keys: float64(len(delays))}
	for _, d := range delays {
		c.ends = append(c.ends, d.Low, d.High)
	}
	slices.Sort(c.ends)
	c.ends = slices.Compact(c.ends)
	for _, d := range delays {
		c.stretches = append(c.stretches, stretchOf(d, c.ends))
	}
	slices.SortFunc(c.stretches, func(a, b stretch) int {
		return cmp.Or(cmp.Compare(a.to, b.to), cmp.Compare(a.from, b.from))
	})
	distinct := c.stretches[:1]
	for _, s := range c.stretches[1:] {
		if last := &distinct[len(distinct)-1]; s.from == last.from && s.to == last.to {
			last.weight++
		} else {
			distinct = append(distinct, s)
		}
	}
	c.stretches = distinct

	// Start with the fewest cells that leave no stretch empty.
	var start masses
	for _, s := range c.stretches {
		if n := len(start.cell); n == 0 || start.cell[n-1] < s.from {
			start.cell = append(start.cell, s.to-1)
		}
	}
	for range start.cell {
		start.share = append(start.share, 1/float64(len(start.cell)))
	}
	c.masses = c.fitter.fit(c.stretches, len(c.ends)-1, start, 1e-9)
	c.best = c.fitter.logLikelihood(c.stretches, len(c.ends)-1, c.masses)
	return c
}

// The intervals of a curve with more ages than mostAges are those of one with so
// many, to which each delay is widened. A step without mass needs a change of an
// interval by noticeable.
const (
	mostAges   = 150
	noticeable = 0.01
)

// limits gives the interval at each of the ends, as far as it is known. Lower and
// upper limit fall with age: in between, the upper one of the end before holds,
// and the lower one of the end after.
func (c *curve) limits() (lower, upper []float64) {
	cells := len(c.ends) - 1
	lower, upper = make([]float64, cells+1), make([]float64, cells+1)
	for k := range cells {
		upper[k] = c.limit(k, cells)
		lower[k] = 1 - c.limit(0, k)
	}
	for k := range cells {
		lower[k+1] = min(lower[k+1], lower[k])
	}
	for k := range cells {
		upper[cells-k-1] = max(upper[cells-k-1], upper[cells-k])
	}
	return lower, upper
}

// widened gives delays of which each begins and ends at one of few ends.
func (c *curve) widened(delays []Delay) []Delay {
	var few []time.Duration
	for i := range mostAges {
		few = append(few, c.ends[i*(len(c.ends)-1)/mostAges])
	}
	few = append(few, Forever)
	wide := make([]Delay, len(delays))
	for i, d := range delays {
		after, _ := slices.BinarySearch(few, d.Low+1)
		to, _ := slices.BinarySearch(few, d.High)
		wide[i] = Delay{few[after-1], few[to]}
	}
	return wide
}

// intervals gives the interval at each of the ends.
func (c *curve) intervals(delays []Delay) (lower, upper []float64) {
	known := c
	if len(c.ends)-1 > mostAges {
		known = newCurve(c.widened(delays))
	}
	knownLower, knownUpper := known.limits()
	lower, upper = make([]float64, len(c.ends)), make([]float64, len(c.ends))
	at := 0
	for k, end := range c.ends {
		for known.ends[at] < end {
			at++
		}
		lower[k], upper[k] = knownLower[at], knownUpper[at]
		if known.ends[at] > end {
			upper[k] = knownUpper[at-1]
		}
	}
	return lower, upper
}

// steps gives the curve with its intervals.
func (c *curve) steps(delays []Delay) []Step {
	cells := len(c.ends) - 1
	lower, upper := c.intervals(delays)
	var steps []Step
	left, mass, i := 1.0, 0.0, 0
	lowest := 0.0 // of the last step, as it began
	for k := range cells {
		// From the end at k, behind the mass of the cell before it, to the next.
		hasMass := i < len(c.masses.cell) && c.masses.cell[i] == k
		until := k + 1
		if hasMass {
			until = k
		}
		low, high := min(lower[until], left), max(upper[k], left)
		if last := len(steps) - 1; mass > 0 || last < 0 || steps[last].High-high > noticeable || lowest-low > noticeable {
			step := Step{From: c.ends[k], To: c.ends[k], Mass: mass, Survival: left, Low: low, High: high}
			if mass > 0 {
				step.From = c.ends[k-1]
			}
			steps = append(steps, step)
			lowest = low
		} else {
			steps[last].Low = low
		}
		mass = 0
		if hasMass {
			mass = c.masses.share[i]
			left -= mass
			if i++; i == len(c.masses.cell) {
				left = 0
			}
		}
	}
	if mass > 0 {
		steps = append(steps, Step{From: c.ends[cells-1], To: Forever, Mass: mass})
	}
	if steps[0].To == 0 && steps[0].From == steps[1].From {
		steps = steps[1:] // no age lies before the first mass
	}
	return steps
}

// limit is the highest probability of the cells from <= cell < to that the
// likelihood ratio test does not reject. The maximum under a probability is found
// as the one with some more keys of which only that is known, that they lie in
// these cells: the more, the higher the probability.
func (c *curve) limit(from, to int) float64 {
	cells := len(c.ends) - 1
	outside := func(s stretch) bool { return s.to <= from || to <= s.from }
	if !slices.ContainsFunc(c.stretches, outside) {
		return 1
	}
	if from == to {
		return 0
	}
	n := c.keys
	at := c.masses.within(from, to)
	critical := 3.841458820694124 * (1 + 1/n) // of chi-squared; with few keys somewhat more
	if at < 1e-9 {
		critical = -2 * math.Log((1-confidence)/2) // which is exact for none of n
	}
	root := math.Sqrt(critical)

	// First as many more as it takes for a known number of n (Wilson's limit).
	p := (at + critical/(2*n) + root*math.Sqrt(at*(1-at)/n+critical/(4*n*n))) / (1 + critical/n)
	more := n * (p - at) / (1 - p)
	fewest, most := 0.0, math.Inf(1)
	m := c.masses
	if at < 1e-9 {
		m = m.with(steepest(c.fitter.slopes(c.stretches, cells, m), from, to), more/(n+more))
	}
	stretches := append(slices.Clone(c.stretches), stretch{from, to, 0})
	for range 50 {
		stretches[len(stretches)-1].weight = more
		m = c.fitter.fit(stretches, cells, m, 1e-4)
		p = m.within(from, to)
		rest := m.within(0, from) + m.within(to, cells)
		// The root of the statistic is about linear in the logarithm of the rest, and
		// its derivative is known.
		statistic := math.Sqrt(max(1e-6, 2*(c.best-c.fitter.logLikelihood(c.stretches, cells, m))))
		next := rest * math.Exp((statistic-root)*statistic*p/(more*rest))
		if math.Abs(statistic-root) < 0.02*root {
			return 1 - next
		}
		if statistic < root {
			fewest = more
		} else {
			most = more
		}
		known := n
		if p > at+1e-9 {
			known = more * rest / (p - at)
		}
		more = known * (1 - next - at) / next
		if !(fewest < more && more < most) {
			more = between(fewest, most)
		}
	}
	return p
}

// between gives a number between two on a logarithmic scale, where one of them may
// be 0 or infinite.
func between(fewest, most float64) float64 {
	switch {
	case math.IsInf(most, 1):
		return 4 * fewest
	case fewest == 0:
		return most / 4
	default:
		return math.Sqrt(fewest * most)
	}
}
