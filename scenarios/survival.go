package scenarios

import (
	"cmp"
	"encoding/json"
	"math"
	"math/rand/v2"
	"slices"
	"time"
)

// Delay is where one key's delay lies, from its expiry until it no longer
// blocks: in (Low, High]. High forever: it still blocked when it was last probed.
// Low 0: it may have been gone at once.
//
// Ages that differ by less than a twentieth of the narrowest interval that they
// bound are taken as one: their differences tell of the probes, not of the store.
type Delay struct{ Low, High time.Duration }

// Step is a step of a survival curve. Mass is the share of the keys whose delay
// lies in (From, To], wherever in it; To is forever for what lies beyond all
// observation. Survival is the share that still blocks at ages from To until From
// of the next step, and Low to High is its pointwise 95 % interval at each of
// these ages. A step without mass begins where only the interval changes: its
// From and To are one. Nothing is known after forever: there all three are 0.
type Step struct {
	From, To            time.Duration
	Mass                float64
	Survival, Low, High float64
}

// MarshalJSON writes a time that is forever as null.
func (s Step) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		From     *time.Duration `json:"from_ns"`
		To       *time.Duration `json:"to_ns"`
		Mass     float64        `json:"mass"`
		Survival float64        `json:"survival"`
		Low      float64        `json:"low"`
		High     float64        `json:"high"`
	}{unlessForever(s.From), unlessForever(s.To), s.Mass, s.Survival, s.Low, s.High})
}

func unlessForever(d time.Duration) *time.Duration {
	if d == forever {
		return nil
	}
	return &d
}

// Turnbull gives the nonparametric maximum likelihood estimate of the delay's
// survival (Turnbull 1976). The masses are found by Newton's method on the cells
// that have some, to which cells are added until none would raise the likelihood
// (support reduction: Groeneboom, Jongbloed and Wellner 2008). With delays that
// are known exactly it is Kaplan–Meier.
//
// The interval at an age has the survivals that a likelihood ratio test does not
// reject, against the maximum under each survival (Thomas and Grunkemeier 1975).
// It holds the true survival in about 95 % of the cases where the keys' probes lie
// at the same ages, and in up to 99 % where they are spread.
func Turnbull(delays []Delay) []Step {
	if len(delays) == 0 {
		return nil
	}
	delays = joined(delays)
	return newCurve(delays).steps(delays)
}

// Quantile is where a quantile of the delay lies: by the estimate in (From, To],
// and with 95 % confidence in (Low, High]. To and High are forever where it lies,
// or may lie, beyond all observation.
type Quantile struct{ From, To, Low, High time.Duration }

// MarshalJSON writes a time that is forever as null.
func (q Quantile) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		From *time.Duration `json:"from_ns"`
		To   *time.Duration `json:"to_ns"`
		Low  *time.Duration `json:"low_ns"`
		High *time.Duration `json:"high_ns"`
	}{unlessForever(q.From), unlessForever(q.To), unlessForever(q.Low), unlessForever(q.High)})
}

// QuantileOf gives the time by which the given percentage of the keys is gone. Its
// confidence interval has the ages at which the interval of the survival contains
// what is left then (Brookmeyer and Crowley 1982). ok is false without a curve.
func QuantileOf(steps []Step, percentile float64) (q Quantile, ok bool) {
	if len(steps) == 0 {
		return q, false
	}
	left := 1 - percentile/100
	q = Quantile{To: forever, High: forever}
	for _, s := range steps {
		if s.Mass > 0 && s.Survival <= left+1e-9 {
			q.From, q.To = s.From, s.To
			break
		}
	}
	for i, s := range steps {
		if s.To == forever {
			break
		}
		if s.Low > left && i+1 < len(steps) {
			q.Low = steps[i+1].From
		}
		if s.High < left {
			q.High = s.To
			break
		}
	}
	return q, true
}

// AgeStatus is what the only probe of a key found. Age is from the key's expiry: at
// least so old if it still blocked, at most so old if it was gone.
type AgeStatus struct {
	Age     time.Duration
	Blocked bool
}

// CurrentStatus gives the estimate of the delay's survival from keys that were
// probed once each. It is the monotone regression of Blocked on Age.
func CurrentStatus(seen []AgeStatus) []Step {
	return Turnbull(delaysOf(seen))
}

func delaysOf(seen []AgeStatus) []Delay {
	delays := make([]Delay, len(seen))
	for i, s := range seen {
		delays[i] = Delay{High: s.Age}
		if s.Blocked {
			delays[i] = Delay{s.Age, forever}
		}
	}
	return delays
}

// Disagree tests whether keys that were probed once, and else left alone, block
// for longer or shorter than those that were probed again and again. The statistic
// is the log-rank score of once for interval-censored delays (Finkelstein 1986)
// under the estimate from all keys. Its distribution is that in samples of the same
// estimate: once at its own ages, and write in intervals like its own (parametric
// bootstrap, always with the same seed). They disagree at p below 5 %, two-sided. ok
// is false with fewer than six keys on a side, or if at the ages of once it is known
// of fewer than half of write whether they blocked.
func Disagree(write []Delay, once []AgeStatus) (p float64, disagrees, ok bool) {
	if min(len(write), len(once)) < 6 {
		return 1, false, false
	}
	byBounds := func(a, b Delay) int { return cmp.Or(cmp.Compare(a.Low, b.Low), cmp.Compare(a.High, b.High)) }
	write = slices.Clone(write)
	slices.SortFunc(write, byBounds)
	seen := delaysOf(once)
	slices.SortFunc(seen, byBounds)
	known := 0
	for _, s := range once {
		for _, d := range write {
			if s.Age <= d.Low || d.High <= s.Age {
				known++
			}
		}
	}
	if 2*known < len(write)*len(once) {
		return 1, false, false
	}

	t := newTwoArms(joined(slices.Concat(write, seen)), len(write))
	score := math.Abs(t.score(t.stretches, t.curve.masses))
	random := rand.New(rand.NewPCG(1, 2))
	// As many samples as decide it: until twenty score as high.
	const enough, most = 20, 499
	high := 0
	for n := 1; n <= most; n++ {
		sample := t.sample(random)
		m := t.curve.fitter.fit(sample, len(t.curve.ends)-1, t.curve.masses, 1e-6)
		if math.Abs(t.score(sample, m)) >= score-1e-9 {
			high++
		}
		if high == enough {
			p = float64(enough) / float64(n)
			return p, p < 1-confidence, true
		}
	}
	p = float64(high+1) / (most + 1)
	return p, p < 1-confidence, true
}

// twoArms has the delays of two arms, and the estimate from both.
type twoArms struct {
	curve     *curve
	stretches []stretch // of each key; the first write ones are of the first arm
	write     int

	// For each cell with mass, in which stretches a key of write is seen whose delay lies
	// in it, and how often.
	drawn [][]stretch
	often [][]float64
}

func newTwoArms(delays []Delay, write int) *twoArms {
	t := &twoArms{curve: newCurve(delays), write: write}
	for _, d := range delays {
		from, _ := slices.BinarySearch(t.curve.ends, d.Low)
		to, _ := slices.BinarySearch(t.curve.ends, d.High)
		t.stretches = append(t.stretches, stretch{from, to, 1})
	}
	// A stretch is seen as often as it is probed and a delay lies in it. So it is probed
	// as often as it was seen, divided by its mass.
	m := t.curve.masses
	for _, cell := range m.cell {
		around := stretch{0, len(t.curve.ends) - 1, 1} // for a delay as none of write has
		var drawn []stretch
		var often []float64
		for _, s := range t.stretches[:write] {
			if s.from <= cell && cell < s.to {
				drawn, often = append(drawn, s), append(often, 1/m.within(s.from, s.to))
			}
			for _, bound := range []int{s.from, s.to} {
				if bound <= cell {
					around.from = max(around.from, bound)
				} else {
					around.to = min(around.to, bound)
				}
			}
		}
		if drawn == nil {
			drawn, often = []stretch{around}, []float64{1}
		}
		t.drawn, t.often = append(t.drawn, drawn), append(t.often, often)
	}
	return t
}

// score is that of the second arm, in about its standard deviations: above 0 where
// its keys are gone sooner.
func (t *twoArms) score(stretches []stretch, m masses) float64 {
	survival := make([]float64, len(t.curve.ends))
	for i, cell := range m.cell {
		survival[cell] = m.share[i]
	}
	for k := len(survival) - 2; k >= 0; k-- {
		survival[k] += survival[k+1]
	}
	timesLog := func(s float64) float64 {
		if s <= 0 {
			return 0
		}
		return s * math.Log(s)
	}
	sum, squares := 0.0, 0.0
	for i, s := range stretches {
		from, to := survival[s.from], survival[s.to]
		score := (timesLog(from) - timesLog(to)) / (from - to)
		squares += score * score
		if i >= t.write {
			sum += score
		}
	}
	if squares == 0 {
		return 0
	}
	return sum / math.Sqrt(squares)
}

// sample draws all delays anew from the one estimate.
func (t *twoArms) sample(random *rand.Rand) []stretch {
	cells := len(t.curve.ends) - 1
	sample := make([]stretch, len(t.stretches))
	for i, s := range t.stretches {
		at := pick(random, t.curve.masses.share)
		cell := t.curve.masses.cell[at]
		if i < t.write {
			sample[i] = t.drawn[at][pick(random, t.often[at])]
			continue
		}
		age := s.to
		if age == cells { // it blocked
			age = s.from
		}
		if sample[i] = (stretch{0, age, 1}); cell >= age {
			sample[i] = stretch{age, cells, 1}
		}
	}
	return sample
}

// pick draws one of the weights, as often as its share in all.
func pick(random *rand.Rand, weights []float64) int {
	total := 0.0
	for _, w := range weights {
		total += w
	}
	u := total * random.Float64()
	for i, w := range weights {
		if u -= w; u < 0 {
			return i
		}
	}
	return len(weights) - 1
}

// proper is the delay in the form that the estimate needs: not below 0, and not
// empty. One that is known exactly lies in the nanosecond before.
func (d Delay) proper() Delay {
	d.Low = max(d.Low, 0)
	if d.High <= d.Low {
		d.High = max(d.High, 1)
		d.Low = d.High - 1
	}
	return d
}

// joined gives the delays in their proper form, with ages that differ by less than
// a twentieth of the narrowest interval that they bound made one. Were they left as
// they are, a key that is gone just after another still blocked would draw the
// mass of both to the moment between.
func joined(delays []Delay) []Delay {
	type bound struct{ at, width time.Duration }
	proper := make([]Delay, len(delays))
	var bounds []bound
	for i, d := range delays {
		d = d.proper()
		proper[i] = d
		if bounds = append(bounds, bound{d.Low, forever}); d.High < forever {
			bounds[len(bounds)-1].width = d.High - d.Low
			bounds = append(bounds, bound{d.High, d.High - d.Low})
		}
	}
	slices.SortFunc(bounds, func(a, b bound) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.width, b.width))
	})
	bounds = slices.CompactFunc(bounds, func(a, b bound) bool { return a.at == b.at })
	// A key that still blocks at the last bounds an interval without an end: let it
	// have the narrower width of its neighbours.
	before, after := forever, forever
	narrow := make([]time.Duration, len(bounds))
	for i, b := range bounds {
		if b.width < forever {
			before = b.width
		}
		narrow[i] = before
	}
	for i, b := range slices.Backward(bounds) {
		if b.width < forever {
			after = b.width
		} else {
			bounds[i].width = min(narrow[i], after)
		}
	}
	one := map[time.Duration]time.Duration{forever: forever}
	first, narrowest := bounds[0].at, time.Duration(0)
	for _, b := range bounds {
		if narrowest = min(narrowest, b.width); b.width == forever || b.at-first >= narrowest/20 {
			first, narrowest = b.at, b.width
		}
		one[b.at] = first
	}
	for i, d := range proper {
		proper[i] = Delay{one[d.Low], one[d.High]}
	}
	return proper
}

// stretch has the cells from <= cell < to, in which the delays of weight keys lie.
type stretch struct {
	from, to int
	weight   float64
}

// masses is a distribution: share[i] lies in cell[i]; the cells ascend.
type masses struct {
	cell  []int
	share []float64
}

// within gives the mass in the cells of from <= cell < to.
func (m masses) within(from, to int) float64 {
	sum := 0.0
	for i, c := range m.cell {
		if from <= c && c < to {
			sum += m.share[i]
		}
	}
	return sum
}

// with gives the distribution with a share moved into a cell that had none.
func (m masses) with(cell int, share float64) masses {
	at, _ := slices.BinarySearch(m.cell, cell)
	wider := masses{slices.Insert(slices.Clone(m.cell), at, cell), slices.Insert(slices.Clone(m.share), at, 0)}
	for i := range wider.share {
		wider.share[i] *= 1 - share
	}
	wider.share[at] = share
	return wider
}

// curve is the estimate. Cell k is (ends[k], ends[k+1]]; ends has 0, each bound of
// a delay, and forever.
type curve struct {
	ends      []time.Duration
	stretches []stretch
	keys      float64
	masses    masses
	best      float64 // the logarithm of the likelihood
	fitter    fitter
}

func newCurve(delays []Delay) *curve {
	c := &curve{ends: []time.Duration{0, forever}, keys: float64(len(delays))}
	for _, d := range delays {
		c.ends = append(c.ends, d.Low, d.High)
	}
	slices.Sort(c.ends)
	c.ends = slices.Compact(c.ends)
	for _, d := range delays {
		from, _ := slices.BinarySearch(c.ends, d.Low)
		to, _ := slices.BinarySearch(c.ends, d.High)
		c.stretches = append(c.stretches, stretch{from, to, 1})
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
	few = append(few, forever)
	wide := make([]Delay, len(delays))
	for i, d := range delays {
		after, _ := slices.BinarySearch(few, d.Low+1)
		to, _ := slices.BinarySearch(few, d.High)
		wide[i] = Delay{few[after-1], few[to]}
	}
	return wide
}

// steps gives the curve with its intervals.
func (c *curve) steps(delays []Delay) []Step {
	cells := len(c.ends) - 1
	known := c
	if cells > mostAges {
		known = newCurve(c.widened(delays))
	}
	knownLower, knownUpper := known.limits()
	lower, upper := make([]float64, cells+1), make([]float64, cells+1)
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
		steps = append(steps, Step{From: c.ends[cells-1], To: forever, Mass: mass})
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
		slopes := c.fitter.slopes(c.stretches, cells, m)
		best := from
		for k := from; k < to; k++ {
			if slopes[k] > slopes[best] {
				best = k
			}
		}
		m = m.with(best, more/(n+more))
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
			switch {
			case math.IsInf(most, 1):
				more = 4 * fewest
			case fewest == 0:
				more = most / 4
			default:
				more = math.Sqrt(fewest * most)
			}
		}
	}
	return p
}

// fitter maximizes likelihoods. It keeps its memory from one to the next.
type fitter struct {
	first, last []int     // of each stretch, in the cells with mass: first <= i < last
	before      []int     // how many cells with mass lie before a cell
	sums        []float64 // sums[i] is the mass before the i-th cell with mass
	slope       []float64
	gradient    []float64 // by sums
	direction   []float64 // of sums
	begin, row  []int     // where rows of the factor begin: column, place
	factor      []float64
	next        []float64
}

// grow gives a slice of n zeros.
func grow[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n, n+n/2)
	}
	s = s[:n]
	clear(s)
	return s
}

// place finds the stretches among the cells with mass.
func (f *fitter) place(stretches []stretch, cells int, cell []int) {
	f.before = grow(f.before, cells+1)
	n := 0
	for k := range f.before {
		f.before[k] = n
		if n < len(cell) && cell[n] == k {
			n++
		}
	}
	f.first, f.last = grow(f.first, len(stretches)), grow(f.last, len(stretches))
	for i, s := range stretches {
		f.first[i], f.last[i] = f.before[s.from], f.before[s.to]
	}
}

func (f *fitter) sum(share []float64) {
	f.sums = grow(f.sums, len(share)+1)
	for i, m := range share {
		f.sums[i+1] = f.sums[i] + m
	}
}

// mass is how much lies in the i-th stretch.
func (f *fitter) mass(i int) float64 { return f.sums[f.last[i]] - f.sums[f.first[i]] }

// value is the logarithm of the likelihood of the stretches as placed and summed.
func (f *fitter) value(stretches []stretch) float64 {
	value := 0.0
	for i, s := range stretches {
		mass := f.mass(i)
		if mass <= 0 {
			return math.Inf(-1)
		}
		value += s.weight * math.Log(mass)
	}
	return value
}

func (f *fitter) logLikelihood(stretches []stretch, cells int, m masses) float64 {
	f.place(stretches, cells, m.cell)
	f.sum(m.share)
	return f.value(stretches)
}

// slopes gives the derivative of the logarithm of the likelihood by the mass of
// each cell. At the maximum none is above the weight of all stretches, and by as much
// as the highest is above it, the logarithm may be below the maximum.
func (f *fitter) slopes(stretches []stretch, cells int, m masses) []float64 {
	f.place(stretches, cells, m.cell)
	f.sum(m.share)
	f.slope = grow(f.slope, cells+1)
	for i, s := range stretches {
		d := s.weight / f.mass(i)
		f.slope[s.from] += d
		f.slope[s.to] -= d
	}
	for k := 1; k < cells; k++ {
		f.slope[k] += f.slope[k-1]
	}
	return f.slope[:cells]
}

// fit gives the distribution for which the sum of weight × log(mass in the stretch)
// is within tolerance of the maximum. The start may leave no stretch empty.
func (f *fitter) fit(stretches []stretch, cells int, start masses, tolerance float64) masses {
	weight := 0.0
	for _, s := range stretches {
		weight += s.weight
	}
	m := masses{slices.Clone(start.cell), slices.Clone(start.share)}
	reached := math.Inf(-1)
	for range 1000 {
		m = f.climb(stretches, cells, m, tolerance)
		slopes := f.slopes(stretches, cells, m)
		value := f.value(stretches)
		if value <= reached+1e-3*tolerance {
			break // it is as near as the arithmetic allows
		}
		reached = value
		// Between each two cells with mass, add the one that promises most.
		var wider masses
		for i := 0; i <= len(m.cell); i++ {
			from, to := 0, cells
			if i > 0 {
				from = m.cell[i-1] + 1
			}
			if i < len(m.cell) {
				to = m.cell[i]
			}
			best := from
			for k := from; k < to; k++ {
				if slopes[k] > slopes[best] {
					best = k
				}
			}
			if from < to && slopes[best] > weight+tolerance {
				wider.cell, wider.share = append(wider.cell, best), append(wider.share, 0)
			}
			if i < len(m.cell) {
				wider.cell, wider.share = append(wider.cell, m.cell[i]), append(wider.share, m.share[i])
			}
		}
		if len(wider.cell) == len(m.cell) {
			break
		}
		m = wider
	}
	return m
}

// climb maximizes over the cells that m has, and drops those that lose their mass.
func (f *fitter) climb(stretches []stretch, cells int, m masses, tolerance float64) masses {
	value := f.logLikelihood(stretches, cells, m)
	for range 1000 {
		if len(m.cell) == 1 {
			break
		}
		gain := f.newton(stretches, len(m.cell))
		change := func(i int) float64 { return f.direction[i+1] - f.direction[i] }
		step := 1.0
		for i, share := range m.share {
			if change(i) < 0 {
				step = min(step, share/-change(i))
			}
		}
		longest := step
		for step > 0 {
			f.next = f.next[:0]
			for i, share := range m.share {
				if share += step * change(i); share < 1e-15 {
					share = 0
				}
				f.next = append(f.next, share)
			}
			f.sum(f.next)
			if v := f.value(stretches); v >= value+1e-4*step*gain {
				value = v
				copy(m.share, f.next)
				break
			}
			if step /= 2; step < 1e-12 {
				return m
			}
		}
		// A cell that is to gain mass stays.
		kept := masses{m.cell[:0], m.share[:0]}
		for i, share := range m.share {
			if share > 0 || change(i) > 0 {
				kept.cell, kept.share = append(kept.cell, m.cell[i]), append(kept.share, share)
			}
		}
		if len(kept.cell) < len(m.cell) {
			m = kept
			value = f.logLikelihood(stretches, cells, m)
		} else if longest == 1 && gain < tolerance {
			break
		}
	}
	return m
}

// newton sets direction to where the quadratic model of the value has its maximum,
// and gives the derivative of the value along it. In the sums each stretch has two
// variables at most; so the matrix is sparse when few stretches overlap, and its
// factor is kept by rows from the first entry that is not zero.
func (f *fitter) newton(stretches []stretch, n int) float64 {
	f.begin, f.row = grow(f.begin, n), grow(f.row, n)
	for r := range f.begin {
		f.begin[r] = r
	}
	for i := range stretches {
		if u, v := f.first[i], f.last[i]; u > 0 && v < n {
			f.begin[v] = min(f.begin[v], u)
		}
	}
	size := 0
	for r := range f.row {
		f.row[r] = size - f.begin[r]
		size += r - f.begin[r] + 1
	}
	f.factor = grow(f.factor, size)
	f.gradient = grow(f.gradient, n)
	for i, s := range stretches {
		u, v := f.first[i], f.last[i]
		slope := s.weight / f.mass(i)
		curvature := slope / f.mass(i)
		if u > 0 {
			f.gradient[u] -= slope
			f.factor[f.row[u]+u] += curvature
		}
		if v < n {
			f.gradient[v] += slope
			f.factor[f.row[v]+v] += curvature
		}
		if u > 0 && v < n {
			f.factor[f.row[v]+u] -= curvature
		}
	}
	// Cholesky, and the solution with the factor and its transpose.
	f.direction = grow(f.direction, n+1)
	for r := 1; r < n; r++ {
		begin := f.begin[r]
		row := f.factor[f.row[r]+begin : f.row[r]+r+1]
		diagonal := row[r-begin]
		pivot, y := diagonal, f.gradient[r]
		for c := begin; c < r; c++ {
			shared := max(begin, f.begin[c])
			other := f.factor[f.row[c]+shared : f.row[c]+c+1]
			x := row[c-begin]
			for i, o := range other[:c-shared] {
				x -= row[shared-begin+i] * o
			}
			x /= other[c-shared]
			row[c-begin] = x
			pivot -= x * x
			y -= x * f.direction[c]
		}
		if pivot < 1e-13*diagonal {
			pivot = diagonal // the maximum is not unique
		}
		row[r-begin] = math.Sqrt(pivot)
		f.direction[r] = y / row[r-begin]
	}
	for r := n - 1; r > 0; r-- {
		begin := f.begin[r]
		row := f.factor[f.row[r]+begin : f.row[r]+r+1]
		f.direction[r] /= row[r-begin]
		for c := begin; c < r; c++ {
			f.direction[c] -= row[c-begin] * f.direction[r]
		}
	}
	gain := 0.0
	for r := 1; r < n; r++ {
		gain += f.gradient[r] * f.direction[r]
	}
	return gain
}
