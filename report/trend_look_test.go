package report

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"contend/scenarios"
	"contend/scenarios/survival"
)

// nights of these days of March, with medians in milliseconds; 0: none.
func nights(won map[int]float64) []TrendNight {
	var all []TrendNight
	for day := range 31 {
		if v, ok := won[day]; ok {
			n := TrendNight{Night: fmt.Sprintf("2026-03-%02d", day)}
			if v > 0 {
				n.Won = ptr(time.Duration(v * 1e6))
			}
			all = append(all, n)
		}
	}
	return all
}

// Nights without a run share a row, which has no figures.
func TestNightsWithoutARunShareARow(t *testing.T) {
	day := func(d int) time.Time { return time.Date(2026, 3, d, 0, 0, 0, 0, time.UTC) }
	for _, c := range []struct {
		from, to int
		want     string
	}{{1, 2, ""}, {1, 3, "2026-03-02 0"}, {1, 5, "2026-03-02 to 03-04 0"}, {27, 32, "2026-03-28 to 03-31 0"}} {
		row := gapRow(day(c.from), day(c.to), 4)
		got := ""
		if row != nil {
			got = fmt.Sprint(row[0], " ", row[1])
			if row[2] != nil || row[3] != "" {
				t.Errorf("%d to %d: %v", c.from, c.to, row)
			}
		}
		if got != c.want {
			t.Errorf("%d to %d: %q, want %q", c.from, c.to, got, c.want)
		}
	}
}

// An alarm goes before a change, and a night with neither has no mark.
func TestMarksOfANight(t *testing.T) {
	for want, n := range map[string]TrendNight{"": {}, "▲": {Alarms: []string{"a"}}, "◆": {Changes: []string{"c"}}, "▲◆": {Alarms: []string{"a"}, Changes: []string{"c"}}} {
		if got := n.mark(); got != want {
			t.Errorf("%+v: %q, want %q", n, got, want)
		}
	}
	p := markPart([]TrendNight{{Night: "d1", Changes: []string{"c"}}, {Night: "d2"}, {Night: "d3", Changes: []string{"c3"}, Alarms: []string{"a3"}}})
	wantNotes(t, p, "d1 ◆ c", "d3 ▲ a3", "d3 ◆ c3")
}

func TestWinnersOfANight(t *testing.T) {
	for want, n := range map[string]TrendNight{"–": {}, "1": {WinnersMin: ptr(1), WinnersMax: ptr(1)}, "0 to 2": {WinnersMin: ptr(0), WinnersMax: ptr(2)}} {
		if got := n.winners(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// Races and watches have columns of their own, and what is not known is a dash.
func TestRowsOfNights(t *testing.T) {
	all := nights(map[int]float64{1: 50, 4: 0})
	all[0].Runs, all[0].Verdict, all[0].Rounds, all[0].ViolatedRounds, all[0].Throttled, all[0].Alarms = []string{"a", "b"}, scenarios.Violated, 40, 2, 3, []string{"x"}
	all[0].WinnersMin, all[0].WinnersMax = ptr(0), ptr(2)
	race := TrendSeries{Nights: all}
	wantRows(t, race.nightPart(all), "2026-03-01 | 2 | violated | 40 | 2 | 0 to 2 | 50.0 | – | 3 | ▲",
		"2026-03-02 to 03-03 | 0 | – | – | – | – | – | – | – | ", "2026-03-04 | 0 | – | 0 | 0 | – | – | – | 0 | ")
	all[0].Keys, all[0].Open, all[0].Sweep = 5, 1, &survival.Quantile{From: 1e9, To: 2e9, High: forever}
	all[0].Longest, all[0].LongestFree = ptr(3*time.Second), ptr(4*time.Second)
	watch := TrendSeries{Nights: all, Terms: TrendTerms{TTL: time.Second}}
	wantRows(t, watch.nightPart(all), "2026-03-01 | 2 | violated | 5 | 1 | 1s to 2s | 3s to 4s | 3 | ▲",
		"2026-03-02 to 03-03 | 0 | – | – | – | – | – | – | ", "2026-03-04 | 0 | – | 0 | 0 | – | – | 0 | ")
}

// A plot of many nights has the middle one of a few in each place, a gap where none ran,
// and an alarm before a change.
func TestManyNightsInFewPlaces(t *testing.T) {
	var all []TrendNight
	for i := range 2*mostPoints - 1 {
		n := TrendNight{Night: firstNight.AddDate(0, 0, i).Format(dayFormat)}
		if i < 10 || i >= 14 {
			n.Won = ptr(time.Duration(i+1) * time.Millisecond)
		}
		all = append(all, n)
	}
	all[2].Changes, all[3].Alarms, all[20].Changes, all[21].Changes = []string{"c"}, []string{"a"}, []string{"c"}, []string{"c"}
	all[30].Alarms, all[31].Changes = []string{"a"}, []string{"c"}
	p, each, known := nightPlot(all, trendMedians[0])
	points := p.series[0].points
	if each != 2 || known != len(all)-4 || len(points) != mostPoints {
		t.Fatalf("%d nights in a place, %d known, %d places", each, known, len(points))
	}
	if points[0] != (point{0, 1e6}) || points[4] != (point{8, 9e6}) || !math.IsNaN(points[5].y) || !math.IsNaN(points[6].y) || points[7] != (point{14, 15e6}) ||
		points[71] != (point{142, 143e6}) || p.x.to != 142 {
		t.Errorf("%v", points)
	}
	if want := []mark{{2, "▲"}, {20, "◆"}, {30, "▲"}}; !slices.Equal(p.marks, want) {
		t.Errorf("%v, want %v", p.marks, want)
	}
	if _, each, _ = nightPlot(all[:mostPoints], trendMedians[0]); each != 1 {
		t.Errorf("%d nights in a place where there is room for each", each)
	}
}

// Fewer than three nights are no curve.
func TestTwoNightsAreNoCurve(t *testing.T) {
	for want, won := range map[bool]map[int]float64{false: {1: 50, 2: 0, 9: 50}, true: {1: 50, 2: 50, 9: 50}} {
		p, ok := medianPart(nights(won), trendMedians[0])
		if ok != want {
			t.Errorf("%v: %v", won, ok)
		}
		if ok && (p.heading != "Median latency of won" || p.notes[0] != "2026-03-01 to 2026-03-09, a column a night." || len(p.plot.series[0].points) != 9) {
			t.Errorf("%+v", p)
		}
	}
}

// The nights that are shown are counted in days back from the latest, not in runs.
func TestShownNightsAreDays(t *testing.T) {
	s := TrendSeries{Nights: nights(map[int]float64{1: 1, 2: 1, 20: 1, 28: 1, 30: 1})}
	for shown, want := range map[int]string{0: "2026-03-01", 1: "2026-03-30", 2: "2026-03-30", 3: "2026-03-28", 11: "2026-03-20", 28: "2026-03-20", 29: "2026-03-02", 99: "2026-03-01"} {
		if got := s.shown(shown)[0].Night; got != want {
			t.Errorf("the first of %d nights is %s, want %s", shown, got, want)
		}
	}
}

// The first line says whether the latest night alarms, or when one did.
func TestLeadOfATrend(t *testing.T) {
	s := TrendSeries{Scenario: "x", Target: "t", Nights: nights(map[int]float64{1: 1, 2: 1, 5: 1})}
	for name, c := range map[string]struct {
		alarms map[int]string
		want   string
		status scenarios.Status
	}{
		"none":         {nil, "No alarm on 2026-03-05, the latest night", scenarios.Held},
		"an early one": {map[int]string{0: "a", 1: "b"}, "No alarm on 2026-03-05, the latest night; the last was on 2026-03-02", scenarios.Held},
		"now":          {map[int]string{1: "b", 2: "c"}, "ALARM on 2026-03-05: c", scenarios.Violated},
	} {
		s.Nights = nights(map[int]float64{1: 1, 2: 1, 5: 1})
		for i, text := range c.alarms {
			s.Nights[i].Alarms = []string{text}
		}
		if d := s.document(0); d.lead[0] != c.want || d.status != c.status || d.lead[1] != "3 nights with a run, of 5 since 2026-03-01" || d.title != "Trend of x on t" {
			t.Errorf("%s: %s, %q", name, d.title, d.lead)
		}
	}
}

// A series is named by what its runs have in common, and not by what is usual.
func TestTitleHasWhatIsNotUsual(t *testing.T) {
	for want, terms := range map[string]TrendTerms{
		"x on t":                                       {},
		"x on t, 12 contenders":                        {Contenders: 12, ValueSize: usualSize},
		"x on t, 1000 bytes":                           {ValueSize: 1000},
		"x on t, TTL 1s, tolerance 200ms":              {TTL: time.Second, Tolerance: 200 * time.Millisecond},
		"x on t, at-once true, gap 5ms, guard version": {Options: []byte(`{"guard":"version","gap_ns":5000000,"at_once":true}`)},
	} {
		s := TrendSeries{Scenario: "x", Target: "t", Terms: terms}
		if got := s.Title(); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
