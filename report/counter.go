package report

import (
	"fmt"
	"slices"

	"github.com/guptarohit/asciigraph"

	"contend/scenarios"
)

// counterBlock tells the price of the guard.
func (r Result) counterBlock() block {
	p := r.Detail.Counter
	whole := func(n *int) string {
		if n == nil {
			return dash
		}
		return fmt.Sprint(*n)
	}
	b := block{heading: "Price of the guard", table: table{header: []string{"figure", "value", "meaning"}, right: []bool{false, false, false},
		rows: [][]string{
			{"successes", fmt.Sprint(p.Successes), fmt.Sprintf("accepted writes; each contender needs %d a round", p.Times)},
			{"successes a second", fmt.Sprintf("%.4g", p.PerSecond), "of all contenders together, while they ran"},
			{"tries a success", fmt.Sprintf("%s, %s, %d", whole(p.TriesMedian), whole(p.TriesP99), p.TriesMax), "writes that it took: p50, p99, most"},
			{"wasted", percent(p.Wasted), "requests that led to no success"},
		}}}
	if f := p.Fairness; f != nil {
		value := fmt.Sprintf("%s to %s", percent(f.Least), percent(f.Most))
		meaning := fmt.Sprintf("a contender's share until the first was done; even is %s", percent(f.Even))
		if f.P != nil {
			meaning += fmt.Sprintf(" (contenders permuted within the rounds: p = %.2g)", *f.P)
		}
		b.table.rows = append(b.table.rows, []string{"fairness", value, meaning})
	}
	return b
}

// kneeShare of the best throughput is reached at the knee.
const kneeShare = 0.9

// curveBlocks compare runs that differ in the number of contenders.
func (s Suite) curveBlocks() []block {
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
	b := block{heading: "Throughput by contenders", table: table{header: []string{"contenders", "successes/s", "tries p50", "tries max", "wasted"},
		right: []bool{true, true, true, true, true}}}
	var curve []float64
	for _, p := range prices {
		curve = append(curve, p.PerSecond)
		median := dash
		if p.TriesMedian != nil {
			median = fmt.Sprint(*p.TriesMedian)
		}
		b.table.rows = append(b.table.rows, []string{fmt.Sprint(p.Contenders), fmt.Sprintf("%.4g", p.PerSecond), median, fmt.Sprint(p.TriesMax), percent(p.Wasted)})
	}
	best := slices.Max(curve)
	for i, perSecond := range curve {
		if perSecond >= kneeShare*best {
			b.text = append(b.text, fmt.Sprintf("Knee at %d contenders: %.4g successes a second, %s of the most that was seen; more contenders add little.",
				prices[i].Contenders, perSecond, percent(perSecond/best)))
			break
		}
	}
	if best > 0 {
		b.plain = asciigraph.Plot(curve, asciigraph.Height(plotRows), asciigraph.Width(plotColumns), asciigraph.LowerBound(0),
			asciigraph.Caption(fmt.Sprintf("successes a second, from %d to %d contenders", prices[0].Contenders, prices[len(prices)-1].Contenders))) + "\n"
	}
	return []block{b}
}
