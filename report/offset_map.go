package report

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/guptarohit/asciigraph"

	"contend/scenarios"
)

// offsetBlock is the map of a race window.
func (r Result) offsetBlock() block {
	m, most := r.Detail.OffsetMap, r.Params.Sweep.Most
	b := block{heading: fmt.Sprintf("Race window: the second contender released from %s before the first to %s after it", most, most),
		table: table{header: []string{"offset ms", "rounds", "uncertain", "violated", "second won", "sent apart ms", "sent so", "violated"},
			right: []bool{true, true, true, true, true, true, true, true}}}
	for _, row := range m.Rows {
		b.table.rows = append(b.table.rows, []string{signedMilliseconds(&row.Offset), fmt.Sprint(row.Asked.Rounds), fmt.Sprint(row.Asked.Uncertain),
			share(row.Asked.ViolatedShare), share(row.Asked.SecondWonShare), signedMilliseconds(row.SentApart),
			fmt.Sprint(row.Sent.Rounds), share(row.Sent.ViolatedShare)})
	}
	b.plain = r.offsetPlot()
	b.text = append(b.text, r.windowText()+".")
	b.text = append(b.text, fmt.Sprintf("Offset: of the release. Sent apart: from the first's guarded request sent to the second's, the median; "+
		"on its right the rounds that were sent so far apart, to the nearest offset (%d are not: sent further apart, or one not sent). "+
		"A busy machine makes these differ, most of all below 1 ms: go by the right side then.", m.Elsewhere))
	b.text = append(b.text, "Second won: its write was accepted; in a violated round the first's may be too. Shares are of the rounds that are certain or violated.")
	return b
}

// windowText says where violations were seen.
func (r Result) windowText() string {
	m, most := r.Detail.OffsetMap, r.Params.Sweep.Most
	if m.From == nil {
		return "No violation at any offset"
	}
	text := fmt.Sprintf("Violations with the second released from %s to %s ms after the first", signedMilliseconds(m.From), signedMilliseconds(m.To))
	if m.SentFrom != nil {
		text += fmt.Sprintf(", sent from %s to %s ms after it", signedMilliseconds(m.SentFrom), signedMilliseconds(m.SentTo))
	}
	if *m.From == -most || *m.To == most {
		text += "; it may reach further (raise --offset-sweep)"
	}
	return text
}

// offsetPlot draws the share of the rounds that were violated, or where none was, that
// the second won; by the guarded requests where a step is so short that a release may miss it.
func (r Result) offsetPlot() string {
	m, sweep := r.Detail.OffsetMap, r.Params.Sweep
	what, figure := "violated", func(s *scenarios.OffsetShares) *float64 { return s.ViolatedShare }
	if m.From == nil {
		what, figure = "won by the second", func(s *scenarios.OffsetShares) *float64 { return s.SecondWonShare }
	}
	by, known := "released", false
	if sweep.Most/time.Duration(sweep.Steps/2) < time.Millisecond {
		by = "sent"
	}
	values := make([]float64, plotColumns+1)
	for i := range values {
		row := &m.Rows[int(math.Round(float64(i)/plotColumns*float64(len(m.Rows)-1)))]
		shares := &row.Asked
		if by == "sent" {
			shares = &row.Sent
		}
		values[i] = math.NaN()
		if v := figure(shares); v != nil {
			values[i], known = 100**v, true
		}
	}
	if !known {
		return ""
	}
	end := float64(sweep.Most) / 1e6
	plot := asciigraph.Plot(values, asciigraph.Height(plotRows), asciigraph.LowerBound(0), asciigraph.UpperBound(100), asciigraph.Precision(0),
		asciigraph.XAxisRange(-end, end), asciigraph.XAxisTickCount(5), asciigraph.XAxisValueFormatter(offsetTick),
		asciigraph.Caption(fmt.Sprintf("%% of the rounds %s, by how many ms after the first the second was %s", what, by)))
	var lines []string
	for line := range strings.Lines(plot) {
		lines = append(lines, strings.TrimRight(line, " \n"))
	}
	return strings.Join(lines, "\n") + "\n"
}

func offsetTick(ms float64) string {
	if ms == 0 {
		return "0"
	}
	return fmt.Sprintf("%+.3g", ms)
}

// signedMilliseconds writes a duration in ms with its sign.
func signedMilliseconds(d *time.Duration) string {
	switch {
	case d == nil || *d == 0:
		return milliseconds(d)
	case *d < 0:
		positive := -*d
		return "-" + milliseconds(&positive)
	default:
		return "+" + milliseconds(d)
	}
}

// offsetRows are the figures of the map for format csv.
func (r *Result) offsetRows(write func(figure, outcome, at, code string, status int, value, unit string)) {
	text := func(share *float64) string {
		if share == nil {
			return ""
		}
		return number(*share)
	}
	for i := range r.Detail.OffsetMap.Rows {
		row := &r.Detail.OffsetMap.Rows[i]
		at := " at offset " + row.Offset.String()
		write("violated"+at, "", "", "", 0, text(row.Asked.ViolatedShare), "share")
		write("second won"+at, "", "", "", 0, text(row.Asked.SecondWonShare), "share")
		write("sent apart p50"+at, "", "", "", 0, nanoseconds(row.SentApart), "ns")
		write("violated when sent"+at, "", "", "", 0, text(row.Sent.ViolatedShare), "share")
	}
}
