package report

import (
	"fmt"
	"slices"

	"contend/scenarios"
)

// counterPart tells the price of the guard.
func counterPart(c *scenarios.CounterPrice) part {
	p := part{heading: "Price of the guard", columns: factColumns}
	p.fact("successes", "%s", fmt.Sprintf("accepted writes; each contender needs %d a round", c.Times), figure{name: "successes", value: c.Successes, unit: numbers})
	p.fact("successes a second", "%s", "of all contenders together, while they ran", figure{name: "successes a second", value: c.PerSecond, unit: perSecond})
	p.fact("tries a success", "%s, %s, %s", "writes that it took: p50, p99, most",
		figure{name: "tries p50", value: known(c.TriesMedian), unit: numbers}, figure{name: "tries p99", value: known(c.TriesP99), unit: numbers}, figure{name: "tries max", value: c.TriesMax, unit: numbers})
	p.fact("wasted", "%s", "requests that led to no success", figure{name: "wasted", value: c.Wasted, unit: shares})
	if f := c.Fairness; f != nil {
		meaning := fmt.Sprintf("a contender's share until the first was done; even is %s", percent(f.Even))
		if f.P != nil {
			meaning += fmt.Sprintf(" (contenders permuted within the rounds: p = %.2g)", *f.P)
		}
		p.fact("fairness", "%s to %s", meaning, figure{name: "fairness least", value: f.Least, unit: shares}, figure{name: "fairness most", value: f.Most, unit: shares})
		p.figures = append(p.figures, figure{name: "fairness even", value: f.Even, unit: shares}, figure{name: "fairness p", value: known(f.P)})
	}
	return p
}

// kneeShare of the best throughput is reached at the knee.
const kneeShare = 0.9

// throughputParts compare runs that differ in the number of contenders.
func (s Suite) throughputParts() []part {
	var prices []*scenarios.CounterPrice
	for _, r := range s.Runs {
		if r.Result != nil && r.Result.Detail.Counter != nil {
			prices = append(prices, r.Result.Detail.Counter)
		}
	}
	if len(prices) < 2 {
		return nil
	}
	slices.SortStableFunc(prices, func(a, b *scenarios.CounterPrice) int { return a.Contenders - b.Contenders })
	p := part{heading: "Throughput by contenders", columns: []column{{head: "contenders", unit: numbers}, {head: "successes/s", unit: perSecond},
		{head: "tries p50", unit: numbers}, {head: "tries max", unit: numbers}, {head: "wasted", unit: shares}}}
	curve := series{name: "successes a second"}
	best := 0.0
	for _, c := range prices {
		p.rows = append(p.rows, []any{c.Contenders, c.PerSecond, known(c.TriesMedian), c.TriesMax, c.Wasted})
		curve.points = append(curve.points, point{float64(c.Contenders), c.PerSecond})
		best = max(best, c.PerSecond)
	}
	i := slices.IndexFunc(prices, func(c *scenarios.CounterPrice) bool { return c.PerSecond >= kneeShare*best })
	p.notes = append(p.notes, fmt.Sprintf("Knee at %d contenders: %.4g successes a second, %s of the most that was seen; more contenders add little.",
		prices[i].Contenders, prices[i].PerSecond, percent(prices[i].PerSecond/best)))
	if first, last := prices[0].Contenders, prices[len(prices)-1].Contenders; best > 0 {
		p.plot = &plot{caption: fmt.Sprintf("successes a second, from %d to %d contenders", first, last), form: joined, series: []series{curve},
			x: axis{unit: "contenders", from: float64(first), to: float64(last)}, y: axis{unit: "successes a second", to: openEnd}}
	}
	return []part{p}
}
