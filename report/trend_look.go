package report

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"contend/scenarios"
	"contend/scenarios/survival"
)

// String is the mark in a line.
func (m Mark) String() string { return fmt.Sprintf("%s, night of %s: %s", m.Series, m.Night, m.Text) }

// Title names a series in a line.
func (s *TrendSeries) Title() string {
	parts := []string{s.Scenario + " on " + s.Target}
	if s.Simulated {
		parts[0] += " (simulated)"
	}
	if len(s.Strategy) > 0 {
		parts = append(parts, pairs(s.Strategy, ", "))
	}
	if n := s.Terms.Contenders; n > 0 {
		parts = append(parts, fmt.Sprintf("%d contenders", n))
	}
	if s.Terms.Unguarded {
		parts = append(parts, "unguarded")
	}
	if s.Terms.Stagger > 0 {
		parts = append(parts, "stagger "+s.Terms.Stagger.String())
	}
	if sweep := s.Terms.Sweep; sweep.Steps > 0 {
		parts = append(parts, fmt.Sprintf("%d offsets up to %s", sweep.Steps, sweep.Most))
	}
	if b := s.Terms.ValueSize; b > 0 && b != usualSize {
		parts = append(parts, fmt.Sprintf("%d bytes", b))
	}
	parts = append(parts, s.options()...)
	if s.Terms.TTL > 0 {
		parts = append(parts, fmt.Sprintf("TTL %s, tolerance %s", s.Terms.TTL, s.Terms.Tolerance))
	}
	return strings.Join(parts, ", ")
}

// usualSize is the bytes of body in a write that no title needs to tell.
const usualSize = 64

// options words the scenario's own parameters.
func (s *TrendSeries) options() []string {
	var options map[string]any
	_ = json.Unmarshal(s.Terms.Options, &options) // there may be none
	var all []string
	for _, name := range slices.Sorted(maps.Keys(options)) {
		value := options[name]
		if ns, ok := value.(float64); ok && strings.HasSuffix(name, "_ns") {
			name, value = strings.TrimSuffix(name, "_ns"), time.Duration(ns)
		}
		all = append(all, fmt.Sprintf("%s %v", strings.ReplaceAll(name, "_", "-"), value))
	}
	return all
}

func (t TrendReport) documents() []document {
	var all []document
	for i := range t.Series {
		all = append(all, t.Series[i].document(t.Shown))
	}
	if len(all) == 0 {
		all = append(all, document{title: "No runs were stored that a trend could be made of"})
	}
	return all
}

func (s *TrendSeries) document(nights int) document {
	shown := s.shown(nights)
	last := &shown[len(shown)-1]
	d := document{title: "Trend of " + s.Title(), status: scenarios.Held}
	switch {
	case len(last.Alarms) > 0:
		d.status = scenarios.Violated
		d.lead = append(d.lead, fmt.Sprintf("ALARM on %s: %s", last.Night, strings.Join(last.Alarms, "; ")))
	default:
		text := fmt.Sprintf("No alarm on %s, the latest night", last.Night)
		for _, n := range slices.Backward(s.Nights) {
			if len(n.Alarms) > 0 {
				text += "; the last was on " + n.Night
				break
			}
		}
		d.lead = append(d.lead, text)
	}
	days := int(last.at().Sub(s.Nights[0].at())/(24*time.Hour)) + 1
	d.lead = append(d.lead, fmt.Sprintf("%s with a run, of %d since %s", plural(len(s.Nights), "night"), days, s.Nights[0].Night))
	d.parts = append(d.parts, s.nightPart(shown))
	for _, m := range trendMedians {
		if p, ok := medianPart(shown, m); ok {
			d.parts = append(d.parts, p)
		}
	}
	if p := markPart(shown); len(p.notes) > 0 {
		d.parts = append(d.parts, p)
	}
	return d
}

// shown are the nights that people see.
func (s *TrendSeries) shown(nights int) []TrendNight {
	last := s.Nights[len(s.Nights)-1].at()
	first := last.AddDate(0, 0, 1-nights).Format(dayFormat)
	i := slices.IndexFunc(s.Nights, func(n TrendNight) bool { return nights <= 0 || n.Night >= first })
	return s.Nights[i:]
}

const (
	alarmMark  = "▲"
	changeMark = "◆"
)

func (n *TrendNight) mark() string {
	mark := ""
	if len(n.Alarms) > 0 {
		mark += alarmMark
	}
	if len(n.Changes) > 0 {
		mark += changeMark
	}
	return mark
}

// nightPart has a row a night; nights without a run share one.
func (s *TrendSeries) nightPart(shown []TrendNight) part {
	p := part{heading: "Night by night (UTC)", wide: true, columns: []column{{head: "night"}, {head: "runs", unit: toRight}, {head: "verdict"}}}
	watch := s.Terms.TTL > 0
	heads := []string{"rounds", "violated", "winners", "won ms", "lost ms", "throttled"}
	if watch {
		heads = []string{"keys", "still asked", "median delay", "longest block", "throttled"}
	}
	for _, head := range heads {
		p.columns = append(p.columns, column{head: head, unit: toRight})
	}
	if !watch {
		p.columns[6].unit, p.columns[7].unit = times, times
	}
	p.columns = append(p.columns, column{unit: signs})
	for i := range shown {
		n := &shown[i]
		if i > 0 {
			if gap := gapRow(shown[i-1].at(), n.at(), len(p.columns)); gap != nil {
				p.rows = append(p.rows, gap)
			}
		}
		row := []any{n.Night, len(n.Runs), string(n.Verdict)}
		if watch {
			var delay any
			if n.Sweep != nil {
				delay = quantileRange(n.Sweep)
			}
			row = append(row, n.Keys, n.Open, delay, span{n.Longest, n.LongestFree})
		} else {
			row = append(row, n.Rounds, n.ViolatedRounds, n.winners(), known(n.Won), known(n.Lost))
		}
		p.rows = append(p.rows, append(row, n.Throttled, n.mark()))
	}
	return p
}

// gapRow tells of the nights between two; nil where there is none.
func gapRow(from, to time.Time, columns int) []any {
	first, last := from.AddDate(0, 0, 1), to.AddDate(0, 0, -1)
	if first.After(last) {
		return nil
	}
	row := make([]any, columns)
	row[0], row[1], row[columns-1] = first.Format(dayFormat), 0, ""
	if last.After(first) {
		row[0] = first.Format(dayFormat) + " to " + last.Format("01-02")
	}
	return row
}

func (n *TrendNight) winners() string {
	switch {
	case n.WinnersMin == nil:
		return dash
	case *n.WinnersMin == *n.WinnersMax:
		return fmt.Sprint(*n.WinnersMin)
	default:
		return fmt.Sprintf("%d to %d", *n.WinnersMin, *n.WinnersMax)
	}
}

func markPart(shown []TrendNight) part {
	p := part{heading: "Alarms and changes"}
	for i := range shown {
		for _, text := range shown[i].Alarms {
			p.notes = append(p.notes, fmt.Sprintf("%s %s %s", shown[i].Night, alarmMark, text))
		}
		for _, text := range shown[i].Changes {
			p.notes = append(p.notes, fmt.Sprintf("%s %s %s", shown[i].Night, changeMark, text))
		}
	}
	return p
}

// medianPart has a median over the nights. ok is false with fewer than three nights to show.
func medianPart(shown []TrendNight, m trendMedian) (p part, ok bool) {
	picture, each, known := nightPlot(shown, m)
	if known < 3 {
		return p, false
	}
	text := fmt.Sprintf("%s to %s, a column a night", shown[0].Night, shown[len(shown)-1].Night)
	if each > 1 {
		text = fmt.Sprintf("%s to %s, a column for %d nights, with the middle one", shown[0].Night, shown[len(shown)-1].Night, each)
	}
	if len(picture.marks) > 0 {
		text += fmt.Sprintf("; %s alarm, %s change", alarmMark, changeMark)
	}
	return part{heading: strings.ToUpper(m.name[:1]) + m.name[1:], plot: picture, notes: []string{text + "."}}, true
}

// mostPoints is how many a plot of nights has at most.
const mostPoints = 72

// nightPlot has a point for so many nights that there are not too many: the middle one
// of those with a run, or a gap. known is how many nights have a median.
func nightPlot(shown []TrendNight, m trendMedian) (p *plot, each, known int) {
	first := shown[0].at()
	place := func(n *TrendNight) int { return int(n.at().Sub(first) / (24 * time.Hour)) }
	days := place(&shown[len(shown)-1]) + 1
	each = (days + mostPoints - 1) / mostPoints
	medians, signs := make([][]float64, (days+each-1)/each), make([]string, (days+each-1)/each)
	for i := range shown {
		at := place(&shown[i]) / each
		if v := m.of(&shown[i]); !math.IsNaN(v) {
			medians[at] = append(medians[at], v)
			known++
		}
		switch mark := shown[i].mark(); {
		case strings.HasPrefix(mark, alarmMark):
			signs[at] = alarmMark
		case mark != "" && signs[at] == "":
			signs[at] = changeMark
		}
	}
	line := series{name: m.name}
	p = &plot{form: apart, low: true, x: axis{unit: "nights", to: float64((len(medians) - 1) * each)}, y: axis{unit: "ns", from: -openEnd, to: openEnd, write: m.write}}
	for i, all := range medians {
		x, y := float64(i*each), gap
		if len(all) > 0 {
			slices.Sort(all)
			y = all[(len(all)-1)/2]
		}
		line.points = append(line.points, point{x, y})
		if signs[i] != "" {
			p.marks = append(p.marks, mark{x, signs[i]})
		}
	}
	p.series = []series{line}
	return p, each, known
}

// MarshalIndent gives all nights of all series.
func (t TrendReport) MarshalIndent() ([]byte, error) {
	series := t.Series
	if series == nil {
		series = []TrendSeries{}
	}
	return marshalIndent(struct {
		Schema string        `json:"schema"`
		Series []TrendSeries `json:"series"`
	}{TrendSchema, series})
}

// lines have one a series.
func (t TrendReport) lines() []string {
	var lines []string
	for i := range t.Series {
		s := &t.Series[i]
		last := &s.Nights[len(s.Nights)-1]
		parts := []string{plural(len(s.Nights), "night"), last.Night + " " + orDash(string(last.Verdict))}
		for _, m := range trendMedians {
			if v := m.of(last); !math.IsNaN(v) {
				text := m.write(v)
				if q := last.Sweep; q != nil && q.To == survival.Forever && v == float64(q.From) {
					text = "over " + text
				}
				parts = append(parts, m.name+" "+text)
			}
		}
		line := s.Title() + ": " + strings.Join(parts, ", ")
		for _, a := range last.Alarms {
			line += "; alarm: " + a
		}
		lines = append(lines, line)
	}
	return lines
}

func (t TrendReport) writeCSV(w io.Writer) error {
	var columns []Column
	for _, name := range []string{"scenario", "target", "simulated", "strategy", "contenders", "unguarded", "stagger_ns", "offset_sweep_ns", "value_size", "ttl_ns", "tolerance_ns",
		"night", "runs", "verdict", "violated_runs", "rounds", "violated_rounds", "winners_min", "winners_max", "won_p50_ns", "lost_p50_ns", "throttled",
		"keys", "open", "sweep_median_from_ns", "sweep_median_to_ns", "sweep_longest_from_ns", "sweep_longest_to_ns", "alarms", "changes"} {
		columns = append(columns, Column{Name: name})
	}
	return StreamCSV(w, columns, func(yield func([]any, error) bool) {
		for i := range t.Series {
			s := &t.Series[i]
			for j := range s.Nights {
				if !yield(s.row(&s.Nights[j]), nil) {
					return
				}
			}
		}
	})
}

func (s *TrendSeries) row(n *TrendNight) []any {
	var from, to any
	if q := n.Sweep; q != nil {
		from, to = unlessOpen(q.From), unlessOpen(q.To)
	}
	return []any{s.Scenario, s.Target, s.Simulated, pairs(s.Strategy, ";"), s.Terms.Contenders, s.Terms.Unguarded, s.Terms.Stagger, s.Terms.Sweep.Most, s.Terms.ValueSize,
		s.Terms.TTL, s.Terms.Tolerance, n.Night, strings.Join(n.Runs, ";"), string(n.Verdict), n.Violated, n.Rounds, n.ViolatedRounds,
		known(n.WinnersMin), known(n.WinnersMax), known(n.Won), known(n.Lost), n.Throttled, n.Keys, n.Open, from, to, known(n.Longest), known(n.LongestFree),
		strings.Join(n.Alarms, "; "), strings.Join(n.Changes, "; ")}
}
