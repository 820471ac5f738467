package report

import (
	"math"
	"slices"
	"strings"
	"testing"
)

// Between its points a series is what its form says.
func TestBetweenThePointsOfASeries(t *testing.T) {
	s := series{points: []point{{0, 1}, {10, 2}, {20, 3}}}
	for form, want := range map[form]map[float64]float64{
		held:    {-5: 1, 0: 1, 0.1: 1, 10: 1, 10.1: 2, 20: 2, 20.1: 3, 99: 3},
		nearest: {-5: 1, 0: 1, 4.9: 1, 5: 2, 10: 2, 14.9: 2, 15: 3, 99: 3},
	} {
		for x, y := range want {
			if got := s.at(x, form); got != y {
				t.Errorf("form %d at %g: %g, want %g", form, x, got, y)
			}
		}
	}
}

// A plot that is stretched has a value for each column, and one of places has its own.
func TestColumnsOfAPlot(t *testing.T) {
	s := series{points: []point{{-1, 0}, {0, 5}, {1, 9}}}
	p := plot{form: nearest, x: axis{from: -1, to: 1}}
	got := p.columns(s)
	if len(got) != plotColumns+1 || got[0] != 0 || got[14] != 0 || got[15] != 5 || got[30] != 5 || got[44] != 5 || got[45] != 9 || got[60] != 9 {
		t.Errorf("%v", got)
	}
	for _, form := range []form{joined, apart} {
		p.form = form
		if got := p.columns(s); !slices.Equal(got, []float64{0, 5, 9}) {
			t.Errorf("form %d: %v", form, got)
		}
	}
}

// A picture has its axes, its values and its gaps where they are, and no blank at the end
// of a line.
func TestPictureOfAPlot(t *testing.T) {
	for name, c := range map[string]struct {
		plot plot
		want string
	}{
		"places, a gap and marks": {plot{form: apart, low: true, x: axis{to: 4}, y: axis{from: -openEnd, to: openEnd, write: digits(1)},
			series: []series{{points: []point{{0, 1}, {1, 2}, {2, gap}, {3, 4}, {4, 4}}}}, marks: []mark{{1, "◆"}, {3, "▲"}}}, `
 4.0 ┤  ╶─
 3.5 ┤
 3.0 ┤
 2.5 ┤
 2.0 ┤╭╴
 1.5 ┤│
 1.0 ┼╯
      ◆ ▲
`},
		"bounds and a caption": {plot{caption: "c", form: apart, low: true, x: axis{to: 2}, y: axis{to: 60, write: digits(0)}, series: []series{{points: []point{{0, 30}, {1, 30}, {2, 30}}}}}, `
 60 ┤
 50 ┤
 40 ┤
 30 ┼──
 20 ┤
 10 ┤
  0 ┤
      c
`},
	} {
		if got := "\n" + draw(&c.plot); got != c.want {
			t.Errorf("%s:%s", name, got)
		}
	}
	if draw(nil) != "" {
		t.Error("there is a picture of no plot")
	}
	wide := draw(&plot{form: joined, y: axis{to: openEnd}, series: []series{{points: []point{{2, 50}, {4, 100}}}}})
	if n := strings.Count(wide, "\n"); n != plotRows+1 || len([]rune(strings.SplitAfter(wide, "\n")[0])) < plotColumns {
		t.Errorf("a line of two points, in %d lines:\n%s", n, wide)
	}
	ticks := draw(&plot{form: nearest, x: axis{from: -4, to: 4, write: offsetTick, ticks: 3}, y: axis{to: 100, write: digits(0)}, series: []series{{points: []point{{-4, 0}, {4, 100}}}}})
	if line := strings.Split(ticks, "\n")[plotRows+2]; strings.Join(strings.Fields(line), " ") != "-4 0 +4" {
		t.Errorf("ticks %q:\n%s", line, ticks)
	}
}

func TestEndsOfAxes(t *testing.T) {
	if !math.IsNaN(gap) || !math.IsInf(openEnd, 1) {
		t.Error("a gap or an open end is a number")
	}
	check(t, "digits", func(n int) string { return digits(n)(1.26) }, map[int]string{0: "1", 1: "1.3", 2: "1.26"})
}
