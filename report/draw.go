package report

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/guptarohit/asciigraph"
)

// How large plots are in a fixed width.
const (
	plotColumns = 60
	plotRows    = 10
	lowRows     = 6
)

// draw is a plot in a fixed width; "" is that of none.
func draw(p *plot) string {
	if p == nil {
		return ""
	}
	options := []asciigraph.Option{asciigraph.Height(plotRows), asciigraph.Caption(p.caption)}
	if p.low {
		options = append(options, asciigraph.Height(lowRows))
	}
	if p.form == joined {
		options = append(options, asciigraph.Width(plotColumns))
	}
	if !math.IsInf(p.y.from, 0) {
		options = append(options, asciigraph.LowerBound(p.y.from))
	}
	if !math.IsInf(p.y.to, 0) {
		options = append(options, asciigraph.UpperBound(p.y.to))
	}
	if p.y.write != nil {
		options = append(options, asciigraph.YAxisValueFormatter(p.y.write))
	}
	if p.x.ticks > 0 {
		options = append(options, asciigraph.XAxisRange(p.x.from, p.x.to), asciigraph.XAxisTickCount(p.x.ticks), asciigraph.XAxisValueFormatter(p.x.write))
	}
	var lines [][]float64
	for _, s := range p.series {
		lines = append(lines, p.columns(s))
	}
	picture := asciigraph.PlotMany(lines, options...)
	var b strings.Builder
	for line := range strings.Lines(picture + "\n" + p.marksBelow(picture, len(lines[0]))) {
		b.WriteString(strings.TrimRight(line, " \n") + "\n")
	}
	return b.String()
}

// columns are the values of a series from left to right.
func (p *plot) columns(s series) []float64 {
	var values []float64
	if p.form == joined || p.form == apart {
		for _, point := range s.points {
			values = append(values, point.y)
		}
		return values
	}
	for i := range plotColumns + 1 {
		values = append(values, s.at(p.x.from+(p.x.to-p.x.from)*float64(i)/plotColumns, p.form))
	}
	return values
}

// marksBelow is the line of the marks, each below its place.
func (p *plot) marksBelow(picture string, columns int) string {
	if len(p.marks) == 0 {
		return ""
	}
	signs := slices.Repeat([]string{" "}, columns)
	for _, m := range p.marks {
		signs[int(math.Round((m.x-p.x.from)/(p.x.to-p.x.from)*float64(columns-1)))] = m.sign
	}
	first, _, _ := strings.Cut(picture, "\n")
	axis := slices.IndexFunc([]rune(first), func(r rune) bool { return r == '┤' || r == '┼' })
	return strings.Repeat(" ", axis) + strings.Join(signs, "")
}

// digits writes a value with so many decimal places.
func digits(n int) func(float64) string {
	return func(v float64) string { return fmt.Sprintf("%.*f", n, v) }
}
