package survival

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
)

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
		t.stretches = append(t.stretches, stretchOf(d, t.curve.ends))
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
