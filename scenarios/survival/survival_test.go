package survival

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"
)

// cosmesis are the months in which a breast retracted after radiotherapy alone, of
// 46 women: Finkelstein and Wolfe (1985), Biometrics 41, 933–945. The same numbers
// are in SAS/STAT (sample program ICLFTEX2, data set RT) and in R's MLEcens
// (cosmesis). 0 at the end: never seen.
var cosmesis = [][2]int{
	{45, 0}, {6, 10}, {0, 7}, {46, 0}, {46, 0}, {7, 16}, {17, 0}, {7, 14}, {37, 44}, {0, 8}, {4, 11}, {15, 0},
	{11, 15}, {22, 0}, {46, 0}, {46, 0}, {25, 37}, {46, 0}, {26, 40}, {46, 0}, {27, 34}, {36, 44}, {46, 0},
	{36, 48}, {37, 0}, {40, 0}, {17, 25}, {46, 0}, {11, 18}, {38, 0}, {5, 12}, {37, 0}, {0, 5}, {18, 0}, {24, 0},
	{36, 0}, {5, 11}, {19, 35}, {17, 25}, {24, 0}, {32, 0}, {33, 0}, {19, 26}, {37, 0}, {34, 0}, {36, 0},
}

func cosmesisDelays() []Delay {
	var delays []Delay
	for _, d := range cosmesis {
		delay := Delay{time.Duration(d[0]) * time.Hour, Forever}
		if d[1] > 0 {
			delay.High = time.Duration(d[1]) * time.Hour
		}
		delays = append(delays, delay)
	}
	return delays
}

// The documentation of R's Icens prints the first four masses of this estimate to
// seven digits (help page EM, Bioconductor). R's survival 3.5-3, which stops earlier,
// gives all survivals to four: survfit(Surv(l, r, type = "interval2") ~ 1).
func TestSurvivalAsPublished(t *testing.T) {
	want := []struct {
		from, to       int
		mass, survival float64
	}{
		{4, 5, 4.634677e-02, 0.95366},
		{6, 7, 3.336337e-02, 0.92027},
		{7, 8, 8.866737e-02, 0.83162},
		{11, 12, 7.075292e-02, 0.76088},
		{24, 25, 0, 0.66823},
		{33, 34, 0, 0.58641},
		{38, 40, 0, 0.46554},
		{46, 48, 0, 0},
	}
	got := slices.DeleteFunc(Turnbull(cosmesisDelays()), func(s Step) bool { return s.Mass == 0 })
	if len(got) != len(want) {
		t.Fatalf("%d masses, want %d: %v", len(got), len(want), got)
	}
	for i, w := range want {
		s := got[i]
		if s.From != time.Duration(w.from)*time.Hour || s.To != time.Duration(w.to)*time.Hour {
			t.Errorf("mass in (%v, %v], want (%d, %d]", s.From, s.To, w.from, w.to)
		}
		if w.mass > 0 && math.Abs(s.Mass-w.mass) > 6e-9 {
			t.Errorf("mass %.9f in (%d, %d], want %.9f", s.Mass, w.from, w.to, w.mass)
		}
		if math.Abs(s.Survival-w.survival) > 6e-5 {
			t.Errorf("survival %.5f after %d, want %.5f", s.Survival, w.to, w.survival)
		}
	}
}

// curveAt gives the survival at an age as far as it is known, and its interval.
func curveAt(steps []Step, age time.Duration) (least, most, low, high float64) {
	least, most, low, high = 1, 1, 0, 1
	for _, s := range steps {
		if s.From >= age && s.To > age {
			break
		}
		if s.To > age {
			return s.Survival, most, s.Low, high // in the midst of a mass
		}
		least, most, low, high = s.Survival, s.Survival, s.Low, s.High
	}
	return least, most, low, high
}

// kaplanMeier gives the survival at an age from delays that are known exactly, or
// are longer than they were seen.
func kaplanMeier(delays []Delay, age time.Duration) float64 {
	survival := 1.0
	var times []time.Duration
	for _, d := range delays {
		if d.High < Forever && d.High <= age {
			times = append(times, d.High)
		}
	}
	slices.Sort(times)
	for _, at := range slices.Compact(times) {
		risk, gone := 0.0, 0.0
		for _, d := range delays {
			if d.High == at {
				gone++
			}
			if d.High < Forever && d.High >= at || d.High == Forever && d.Low >= at {
				risk++
			}
		}
		survival *= 1 - gone/risk
	}
	return survival
}

func TestSurvivalIsKaplanMeier(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		n := 1 + random.IntN(40)
		delays := make([]Delay, n)
		last := time.Duration(0)
		for i := range delays {
			at := time.Duration(1+random.IntN(20)) * time.Second
			delays[i] = []Delay{{at, at}, {at - 1, at}, {at, Forever}}[random.IntN(3)]
			last = max(last, delays[i].Low)
		}
		steps := Turnbull(delays)
		for age := time.Second; age <= last; age += time.Second {
			least, most, _, _ := curveAt(steps, age)
			if want := kaplanMeier(delays, age); math.Abs(least-want) > 1e-7 || math.Abs(most-want) > 1e-7 {
				t.Fatalf("survival %.9f to %.9f at %v, Kaplan–Meier %.9f, of %v", least, most, age, want, delays)
			}
		}
	}
}

// schedule is how keys are probed: at growth times the age of the probe before,
// from 10 s on. The first is put off by up to a factor of growth^phase for each key.
type schedule struct {
	growth, phase, horizon float64 // in seconds
}

func seconds(s float64) time.Duration { return time.Duration(s * 1e9) }

// probe gives where the delay lies as found by the probes of one key.
func (s schedule) probe(random *rand.Rand, delay float64) Delay {
	low, at := 0.0, 10*math.Pow(s.growth, s.phase*random.Float64())
	for at < delay {
		low = at
		if at *= s.growth; at > s.horizon {
			return Delay{seconds(low), Forever}
		}
	}
	return Delay{seconds(low), seconds(at)}
}

func (s schedule) probes(random *rand.Rand, n int, delay func(*rand.Rand) float64) []Delay {
	delays := make([]Delay, n)
	for i := range delays {
		delays[i] = s.probe(random, delay(random))
	}
	return delays
}

// weibull draws a delay with the shape 1.5 and the scale 700 s.
func weibull(random *rand.Rand) float64 { return 700 * math.Pow(random.ExpFloat64(), 1/1.5) }

func weibullSurvival(age float64) float64 { return math.Exp(-math.Pow(age/700, 1.5)) }

func weibullAge(survival float64) float64 { return 700 * math.Pow(-math.Log(survival), 1/1.5) }

var (
	shared = schedule{growth: 1.5, phase: 0, horizon: 1e5}
	nearly = schedule{growth: 1.5, phase: 0.005, horizon: 1e5}
	spread = schedule{growth: 1.5, phase: 1, horizon: 1e5}
)

// randomDelays has gaps, overlaps, exact and unending ones.
func randomDelays(random *rand.Rand) []Delay {
	delays := make([]Delay, 1+random.IntN(60))
	grid := time.Duration(1 + random.IntN(300))
	for i := range delays {
		low := time.Duration(random.IntN(40)) * grid
		delays[i] = Delay{low, low + time.Duration(random.IntN(12))*grid}
		if random.IntN(5) == 0 {
			delays[i].High = Forever
		}
	}
	return delays
}

func TestSurvivalHolds(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for range 500 {
		delays := randomDelays(random)
		steps := Turnbull(delays)
		sum, before := 0.0, Step{Survival: 1, Low: 1, High: 1}
		for i, s := range steps {
			sum += s.Mass
			switch {
			case s.Mass < 0 || s.From > s.To || s.Mass > 0 != (s.From < s.To) || s.From < before.To:
				t.Fatalf("step %d of %v is none: %v", i, delays, steps)
			case s.Survival > before.Survival || s.Low > before.Low || s.High > before.High:
				t.Fatalf("step %d of %v rises: %v", i, delays, steps)
			case !(0 <= s.Low && s.Low <= s.Survival && s.Survival <= s.High && s.High <= 1):
				t.Fatalf("step %d of %v is not in its interval: %v", i, delays, steps)
			case math.Abs(before.Survival-s.Mass-s.Survival) > 1e-9:
				t.Fatalf("step %d of %v loses another mass than its own: %v", i, delays, steps)
			case s.To == Forever && i != len(steps)-1:
				t.Fatalf("step %d of %v comes after all: %v", i, delays, steps)
			}
			before = s
		}
		if math.Abs(sum-1) > 1e-9 {
			t.Fatalf("the masses of %v add up to %v", delays, sum)
		}
		if steps[0].Mass == 0 && steps[1].From == 0 {
			t.Fatalf("%v has a step for no age: %v", delays, steps)
		}
		mixed := slices.Clone(delays)
		random.Shuffle(len(mixed), func(i, j int) { mixed[i], mixed[j] = mixed[j], mixed[i] })
		if other := Turnbull(mixed); !reflect.DeepEqual(steps, other) {
			t.Fatalf("in another order %v gives %v, not %v", delays, other, steps)
		}

		// The maximum: no place promises more than each key its one (Gentleman and
		// Geyer 1994). Only cells that begin at a bound need be looked at.
		joint := joined(delays)
		mass := func(d Delay) float64 {
			sum := 0.0
			for _, s := range steps {
				if s.Mass > 0 && d.Low <= s.From && s.To <= d.High {
					sum += s.Mass
				}
			}
			return sum
		}
		for _, at := range joint {
			promise := 0.0
			for _, d := range joint {
				if d.Low <= at.Low && at.Low < d.High {
					promise += 1 / mass(d)
				}
			}
			if promise > float64(len(delays))*(1+1e-6) {
				t.Fatalf("mass after %v would make %v likelier: %v", at.Low, delays, promise)
			}
		}
	}
}

// TestSurvivalCoverage holds the intervals against the truth, with 20 keys. Where
// all are probed at the same ages, or nearly, the share that they contain is that of
// the same test for one proportion, and not smooth in it; where the probes are
// spread, the ratio has another distribution than chi-squared, with a lower quantile
// (Banerjee and Wellner 2001), and they are wider than they need be.
func TestSurvivalCoverage(t *testing.T) {
	const runs, keys = 1000, 20
	for _, c := range []struct {
		name        string
		schedule    schedule
		seed        uint64
		ages        []float64
		least, most float64
	}{
		{"shared", shared, 1, []float64{10 * math.Pow(1.5, 8), 10 * math.Pow(1.5, 9), 10 * math.Pow(1.5, 10), 10 * math.Pow(1.5, 11)}, 0.92, 0.98},
		{"nearly shared", nearly, 2, []float64{10 * math.Pow(1.5, 8), 10 * math.Pow(1.5, 9), 10 * math.Pow(1.5, 10), 10 * math.Pow(1.5, 11)}, 0.92, 0.98},
		{"spread", spread, 3, []float64{weibullAge(0.8), weibullAge(0.7), weibullAge(0.6), weibullAge(0.5), weibullAge(0.4), weibullAge(0.3)}, 0.94, 0.99},
		{"spread, few left", spread, 4, []float64{weibullAge(0.97), weibullAge(0.9), weibullAge(0.1), weibullAge(0.05)}, 0.94, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			random := rand.New(rand.NewPCG(c.seed, 5))
			contained, width := make([]int, len(c.ages)), make([]float64, len(c.ages))
			for range runs {
				steps := Turnbull(c.schedule.probes(random, keys, weibull))
				for i, age := range c.ages {
					if c.schedule == nearly { // the probes are at this age or shortly after
						for _, s := range steps {
							if s.To >= seconds(age) && s.To < seconds(1.003*age) {
								age = s.To.Seconds()
								break
							}
						}
					}
					_, _, low, high := curveAt(steps, seconds(age))
					if truth := weibullSurvival(age); low <= truth && truth <= high {
						contained[i]++
					}
					width[i] += (high - low) / runs
				}
			}
			for i, age := range c.ages {
				share := float64(contained[i]) / runs
				t.Logf("S = %.3f: in %.1f %% of the intervals, of width %.2f", weibullSurvival(age), 100*share, width[i])
				if share < c.least || share > c.most {
					t.Errorf("S = %.3f is in %.1f %% of its intervals", weibullSurvival(age), 100*share)
				}
			}
		})
	}
}

// TestSurvivalCoverageAtOneAge is exact: keys that are all probed at one age only
// are a sample of a proportion.
func TestSurvivalCoverageAtOneAge(t *testing.T) {
	for _, keys := range []int{6, 10, 20, 60} {
		var low, high []float64
		for gone := 0; gone <= keys; gone++ {
			delays := slices.Repeat([]Delay{{0, time.Second}}, gone)
			delays = append(delays, slices.Repeat([]Delay{{time.Second, Forever}}, keys-gone)...)
			_, _, l, h := curveAt(Turnbull(delays), time.Second)
			low, high = append(low, l), append(high, h)
		}
		least, sum := 1.0, 0.0
		for percent := 2; percent <= 98; percent++ {
			p, share := float64(percent)/100, 0.0
			for gone := 0; gone <= keys; gone++ {
				if low[gone] <= p && p <= high[gone] {
					a, _ := math.Lgamma(float64(keys + 1))
					b, _ := math.Lgamma(float64(gone + 1))
					c, _ := math.Lgamma(float64(keys - gone + 1))
					share += math.Exp(a - b - c + float64(gone)*math.Log(1-p) + float64(keys-gone)*math.Log(p))
				}
			}
			least, sum = min(least, share), sum+share/97
		}
		t.Logf("%d keys: %.1f %% on average, %.1f %% at least", keys, 100*sum, 100*least)
		if least < 0.92 || sum < 0.95 || sum > 0.985 {
			t.Errorf("%d keys: the intervals contain %.1f %% on average, %.1f %% at least", keys, 100*sum, 100*least)
		}
	}
}

// TestSurvivalBias holds the estimate against those that take a probe as the time
// at which a key went: the last that was blocked, or the first that was not.
func TestSurvivalBias(t *testing.T) {
	const runs, keys = 400, 20
	random := rand.New(rand.NewPCG(6, 5))
	probed := schedule{growth: 1.5, phase: 1, horizon: 1800}
	ages := []float64{weibullAge(0.8), weibullAge(0.65), weibullAge(0.5), weibullAge(0.35)}
	bias := map[string]float64{}
	for range runs {
		delays := probed.probes(random, keys, weibull)
		steps := Turnbull(delays)
		naive := map[string][]Delay{}
		for _, d := range delays {
			last, first := d, Delay{d.High, d.High}
			if last.High < Forever {
				last.High = d.Low
			} else {
				first = d
			}
			naive["last blocked"] = append(naive["last blocked"], last)
			naive["first free"] = append(naive["first free"], first)
		}
		for _, age := range ages {
			truth := weibullSurvival(age)
			least, most, _, _ := curveAt(steps, seconds(age))
			bias["Turnbull"] += ((least+most)/2 - truth) / float64(runs*len(ages))
			for name, delays := range naive {
				bias[name] += (kaplanMeier(delays, seconds(age)) - truth) / float64(runs*len(ages))
			}
		}
	}
	t.Logf("bias of S: %.3f by Turnbull, %.3f from the last blocked probe, %.3f from the first free one", bias["Turnbull"], bias["last blocked"], bias["first free"])
	if math.Abs(bias["Turnbull"]) > 0.01 {
		t.Errorf("bias of the estimate: %.3f", bias["Turnbull"])
	}
	if bias["last blocked"] > -0.05 || bias["first free"] < 0.05 {
		t.Errorf("the naive estimates have a bias of %.3f and %.3f: the simulation tells nothing", bias["last blocked"], bias["first free"])
	}
}

// With many ages the intervals are those of a coarser curve.
func TestSurvivalOfMany(t *testing.T) {
	const runs, keys = 15, 1000
	random := rand.New(rand.NewPCG(14, 5))
	contained, width := 0, 0.0
	var ages []float64
	for survival := 0.9; survival > 0.1; survival -= 0.1 {
		ages = append(ages, weibullAge(survival))
	}
	for range runs {
		delays := schedule{1.1, 1, 1e5}.probes(random, keys, weibull)
		joint := joined(delays)
		c := newCurve(joint)
		if len(c.ends) <= mostAges {
			t.Fatalf("%d ages are not many", len(c.ends))
		}
		wide := c.widened(joint)
		for i, d := range joint {
			if wide[i].Low > d.Low || wide[i].High < d.High {
				t.Fatalf("%v is widened to %v", d, wide[i])
			}
		}
		if few := newCurve(wide).ends; len(few) > mostAges+1 {
			t.Fatalf("%d ages are left", len(few))
		}
		steps := Turnbull(delays)
		for _, age := range ages {
			_, _, low, high := curveAt(steps, seconds(age))
			if truth := weibullSurvival(age); low <= truth && truth <= high {
				contained++
			}
			width += (high - low) / float64(runs*len(ages))
		}
	}
	share := float64(contained) / float64(runs*len(ages))
	t.Logf("in %.1f %% of the intervals, of width %.3f", 100*share, width)
	if share < 0.95 || width > 0.08 {
		t.Errorf("S is in %.1f %% of the intervals, of width %.3f", 100*share, width)
	}
}

func TestSurvivalJoinsAges(t *testing.T) {
	const ms = time.Millisecond
	// Two keys are probed a millisecond apart; at 10 s one is gone, the other is not.
	delays := []Delay{{5 * time.Second, 10*time.Second + 3*ms}, {10*time.Second + 2*ms, 20 * time.Second}}
	got := slices.DeleteFunc(Turnbull(delays), func(s Step) bool { return s.Mass == 0 })
	if len(got) != 2 || got[0].From != 5*time.Second || got[1].To != 20*time.Second {
		t.Errorf("the mass lies in %v", got)
	}
	for i, s := range got {
		if math.Abs(s.Mass-0.5) > 1e-9 {
			t.Errorf("mass %d is %v", i, s.Mass)
		}
	}
	// So at the last probe, which has no interval behind it.
	delays = []Delay{{5 * time.Second, 10*time.Second + 3*ms}, {10*time.Second + 2*ms, Forever}, {10*time.Second + 1*ms, Forever}}
	if got := Turnbull(delays); math.Abs(got[len(got)-1].Mass-2./3) > 1e-9 || got[len(got)-1].To != Forever {
		t.Errorf("keys that still block are taken for gone: %v", got)
	}
	// Ages that differ by as much as the intervals are wide are none of the probes'.
	delays = []Delay{{5 * time.Second, 5*time.Second + ms}, {5*time.Second + 2*ms, 5*time.Second + 3*ms}}
	if got := joined(delays); !slices.Equal(got, delays) {
		t.Errorf("joined to %v", got)
	}
}

func TestSurvivalOfFew(t *testing.T) {
	if got := Turnbull(nil); got != nil {
		t.Errorf("no key gives %v", got)
	}
	if _, ok := QuantileOf(nil, 50); ok {
		t.Error("no key has a quantile")
	}
	for _, c := range []struct {
		name     string
		delays   []Delay
		from, to time.Duration // of the only mass
	}{
		{"one", []Delay{{1, 3}}, 1, 3},
		{"at once", []Delay{{0, 5}}, 0, 5},
		{"at expiry", []Delay{{0, 0}}, 0, 1},
		{"before expiry", []Delay{{-7, -5}}, 0, 1},
		{"exactly", []Delay{{9, 9}}, 8, 9},
		{"still blocking", []Delay{{4, Forever}, {7, Forever}}, 7, Forever},
		{"never seen", []Delay{{0, Forever}}, 0, Forever},
		{"alike", slices.Repeat([]Delay{{60 * time.Second, 61 * time.Second}}, 20), 60 * time.Second, 61 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			steps := Turnbull(c.delays)
			last := steps[len(steps)-1]
			if last.From != c.from || last.To != c.to || last.Mass != 1 {
				t.Errorf("%v, want all mass in (%v, %v]", steps, c.from, c.to)
			}
			q, ok := QuantileOf(steps, 50)
			if !ok || q.From != c.from || q.To != c.to || q.Low > c.from || q.High < c.to {
				t.Errorf("median %v", q)
			}
			if c.name == "alike" && (q.Low != c.from || q.High != c.to) {
				t.Errorf("the median of twenty keys that all went in (%v, %v] may lie in (%v, %v]", c.from, c.to, q.Low, q.High)
			}
		})
	}
}

func TestQuantileOf(t *testing.T) {
	// By the published survivals: half are gone by (38, 40], a quarter by (24, 25].
	steps := Turnbull(cosmesisDelays())
	for _, c := range []struct {
		percentile float64
		from, to   time.Duration
	}{{50, 38, 40}, {25, 24, 25}, {5, 6, 7}, {90, 46, 48}} {
		q, ok := QuantileOf(steps, c.percentile)
		if !ok || q.From != c.from*time.Hour || q.To != c.to*time.Hour || q.Low > q.From || q.High < q.To {
			t.Errorf("%v %%: %v", c.percentile, q)
		}
	}
	if q, _ := QuantileOf(steps, 95); q.High != Forever {
		t.Errorf("46 women tell no upper limit of the 95th percentile: %v", q)
	}

	for _, percentile := range []float64{50, 90} {
		const runs, keys = 300, 40
		random := rand.New(rand.NewPCG(7, 5))
		truth := seconds(weibullAge(1 - percentile/100))
		contained, open := 0, 0
		for range runs {
			q, _ := QuantileOf(Turnbull(spread.probes(random, keys, weibull)), percentile)
			if q.Low < truth && truth <= q.High {
				contained++
			}
			if q.High == Forever {
				open++
			}
		}
		t.Logf("p%v: in %.1f %% of the intervals, of which %.1f %% have no end", percentile, 100*float64(contained)/runs, 100*float64(open)/runs)
		if share := float64(contained) / runs; share < 0.94 {
			t.Errorf("p%v is in %.1f %% of its intervals", percentile, 100*share)
		}
		if percentile == 50 && (open > 0 || contained == runs) {
			t.Errorf("of %d medians %d have no upper limit, and %d are in their interval", runs, open, contained)
		}
	}
}

func TestSurvivalJSON(t *testing.T) {
	steps := Turnbull([]Delay{{time.Second, 2 * time.Second}, {3 * time.Second, Forever}})
	median, _ := QuantileOf(steps, 50)
	p90, _ := QuantileOf(steps, 90)
	got, err := json.Marshal([]any{steps[len(steps)-1], median, p90})
	want := `[{"from_ns":3000000000,"to_ns":null,"mass":0.5,"survival":0,"low":0,"high":0},` +
		`{"from_ns":1000000000,"to_ns":2000000000,"low_ns":0,"high_ns":null},` +
		`{"from_ns":3000000000,"to_ns":null,"low_ns":1000000000,"high_ns":null}]`
	if err != nil || string(got) != want {
		t.Errorf("%s, want\n%s (%v)", got, want, err)
	}
}

// once probes n keys at ages that are spread over half an hour.
func once(random *rand.Rand, n int, delay func(*rand.Rand) float64) []AgeStatus {
	seen := make([]AgeStatus, n)
	for i := range seen {
		age := 1800 * random.Float64()
		seen[i] = AgeStatus{seconds(age), delay(random) > age}
	}
	return seen
}

// monotone is the share of those that blocked at each age, ascending, made not to
// rise by pooling adjacent violators.
func monotone(seen []AgeStatus) []float64 {
	type block struct{ blocked, n float64 }
	var blocks []block
	for _, s := range seen {
		b := block{0, 1}
		if s.Blocked {
			b.blocked = 1
		}
		blocks = append(blocks, b)
		for i := len(blocks) - 1; i > 0 && blocks[i].blocked/blocks[i].n >= blocks[i-1].blocked/blocks[i-1].n; i-- {
			blocks[i-1].blocked += blocks[i].blocked
			blocks[i-1].n += blocks[i].n
			blocks = blocks[:i]
		}
	}
	var shares []float64
	for _, b := range blocks {
		shares = append(shares, slices.Repeat([]float64{b.blocked / b.n}, int(b.n))...)
	}
	return shares
}

func TestCurrentStatusIsMonotoneRegression(t *testing.T) {
	random := rand.New(rand.NewPCG(8, 5))
	for range 200 {
		// So far apart that none are taken as one.
		seen := make([]AgeStatus, 1+random.IntN(50))
		age := 1.0
		for i := range seen {
			age *= 1.1
			seen[i] = AgeStatus{seconds(age), random.Float64() < 1/age}
		}
		want := monotone(seen)
		mixed := slices.Clone(seen)
		random.Shuffle(len(mixed), func(i, j int) { mixed[i], mixed[j] = mixed[j], mixed[i] })
		steps := CurrentStatus(mixed)
		for i, s := range seen {
			if least, most, _, _ := curveAt(steps, s.Age); math.Abs(least-want[i]) > 1e-6 || math.Abs(most-want[i]) > 1e-6 {
				t.Fatalf("survival %.6f to %.6f at %v, want %.6f, of %v", least, most, s.Age, want[i], seen)
			}
		}
	}
}

func TestDisagreeRarelyByChance(t *testing.T) {
	for name, delay := range map[string]func(*rand.Rand) float64{
		"Weibull":       weibull,
		"long":          func(random *rand.Rand) float64 { return 2000 * random.ExpFloat64() },
		"every minute":  func(random *rand.Rand) float64 { return 60 * random.Float64() },
		"half are soon": func(random *rand.Rand) float64 { return float64(random.IntN(2)) * 5000 * random.ExpFloat64() },
	} {
		t.Run(name, func(t *testing.T) {
			const runs, keys = 400, 20
			random := rand.New(rand.NewPCG(9, 5))
			alarms, unknown := 0, 0
			for range runs {
				_, disagrees, ok := Disagree(schedule{1.5, 1, 1800}.probes(random, keys, delay), once(random, keys, delay))
				if disagrees {
					alarms++
				}
				if !ok {
					unknown++
				}
			}
			t.Logf("false alarms: %.1f %%", 100*float64(alarms)/runs)
			// 5 % of 400, and twice the deviation of that.
			if alarms > 29 {
				t.Errorf("%d false alarms in %d", alarms, runs)
			}
			if unknown > 0 {
				t.Errorf("%d of %d times there was too little to say", unknown, runs)
			}
		})
	}
}

// sweptOnAccess gives what probes find in a store that removes an expired key soon
// after an access, which still fails, and else in its own time.
func sweptOnAccess(random *rand.Rand, n int) []Delay {
	delays := make([]Delay, n)
	for i := range delays {
		delays[i] = schedule{1.5, 0, 1800}.probe(random, min(weibull(random), 10+5*random.ExpFloat64()))
	}
	return delays
}

func TestDisagreeFindsSweepOnAccess(t *testing.T) {
	const runs, keys = 60, 20
	random := rand.New(rand.NewPCG(10, 5))
	for _, c := range []struct {
		name  string
		write func() []Delay
		least int
	}{
		{"swept on access", func() []Delay { return sweptOnAccess(random, keys) }, runs * 95 / 100},
		{"gone in a third of the time", func() []Delay {
			return schedule{1.5, 1, 1800}.probes(random, keys, func(random *rand.Rand) float64 { return weibull(random) / 3 })
		}, runs * 85 / 100},
		{"kept alive by access", func() []Delay {
			return schedule{1.5, 1, 1800}.probes(random, keys, func(random *rand.Rand) float64 { return weibull(random) * 4 })
		}, runs * 85 / 100},
	} {
		t.Run(c.name, func(t *testing.T) {
			found := 0
			for range runs {
				if _, disagrees, _ := Disagree(c.write(), once(random, keys, weibull)); disagrees {
					found++
				}
			}
			t.Logf("found in %.1f %%", 100*float64(found)/runs)
			if found < c.least {
				t.Errorf("found in %d of %d", found, runs)
			}
		})
	}
}

func TestDisagreeSaysWhenItCannot(t *testing.T) {
	random := rand.New(rand.NewPCG(11, 5))
	write, seen := spread.probes(random, 20, weibull), once(random, 20, weibull)
	p, _, ok := Disagree(write, seen)
	if !ok {
		t.Error("twenty keys a side are enough")
	}
	for range 5 {
		random.Shuffle(len(write), func(i, j int) { write[i], write[j] = write[j], write[i] })
		random.Shuffle(len(seen), func(i, j int) { seen[i], seen[j] = seen[j], seen[i] })
		if other, _, _ := Disagree(write, seen); other != p {
			t.Errorf("in another order p is %v, not %v", other, p)
		}
	}
	unblocked := slices.Repeat([]AgeStatus{{10 * time.Second, true}}, 20)
	for name, c := range map[string]struct {
		write []Delay
		once  []AgeStatus
	}{
		"no key":        {nil, nil},
		"few in write":  {slices.Repeat([]Delay{{0, time.Second}}, 5), unblocked},
		"few in once":   {slices.Repeat([]Delay{{0, time.Second}}, 20), unblocked[:5]},
		"later ages":    {slices.Repeat([]Delay{{time.Second, Forever}}, 20), unblocked},
		"coarse probes": {slices.Repeat([]Delay{{time.Second, time.Minute}}, 20), unblocked},
	} {
		if p, disagrees, ok := Disagree(c.write, c.once); ok || disagrees || p != 1 {
			t.Errorf("%s: p %v, disagrees %v, ok %v", name, p, disagrees, ok)
		}
	}
	if p, disagrees, ok := Disagree(slices.Repeat([]Delay{{0, time.Second}}, 6), unblocked[:6]); !ok || !disagrees {
		t.Errorf("six keys gone at once, and six that block: p %v, disagrees %v, ok %v", p, disagrees, ok)
	}
	if p, disagrees, ok := Disagree(slices.Repeat([]Delay{{time.Minute, Forever}}, 6), unblocked[:6]); !ok || disagrees {
		t.Errorf("all block: p %v, disagrees %v, ok %v", p, disagrees, ok)
	}
}

func BenchmarkTurnbull(b *testing.B) {
	exact := schedule{growth: 1.0001, phase: 1, horizon: 1800}
	for _, keys := range []int{20, 60, 8000} {
		for name, s := range map[string]schedule{"shared": shared, "nearly shared": nearly, "spread": spread, "exact": exact} {
			b.Run(fmt.Sprintf("%s/%d", name, keys), func(b *testing.B) {
				delays := s.probes(rand.New(rand.NewPCG(12, 5)), keys, weibull)
				for b.Loop() {
					Turnbull(delays)
				}
			})
		}
	}
}

func BenchmarkDisagree(b *testing.B) {
	for _, keys := range []int{20, 60} {
		b.Run(fmt.Sprint(keys), func(b *testing.B) {
			random := rand.New(rand.NewPCG(13, 5))
			write, seen := sweptOnAccess(random, keys), once(random, keys, weibull)
			for b.Loop() {
				Disagree(write, seen)
			}
		})
	}
}
