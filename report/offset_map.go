package report

import (
	"fmt"
	"time"

	"contend/scenarios"
)

// offsetPart is the map of a race window.
func (r Result) offsetPart() part {
	m, most := r.Detail.OffsetMap, r.Params.Sweep.Most
	p := part{heading: fmt.Sprintf("Race window: the second contender released from %s before the first to %s after it", most, most),
		columns: []column{{of: "figure"}, {head: "offset ms", unit: offsets}, {head: "rounds", unit: toRight}, {head: "uncertain", unit: toRight},
			{head: "violated", figure: "violated", unit: shares}, {head: "second won", figure: "second won", unit: shares},
			{head: "sent apart ms", figure: "sent apart p50", unit: offsets}, {head: "sent so", unit: toRight}, {head: "violated", figure: "violated when sent", unit: shares}},
		plot: r.offsetPlot()}
	for i := range m.Rows {
		row := &m.Rows[i]
		p.rows = append(p.rows, []any{" at offset " + row.Offset.String(), row.Offset, row.Asked.Rounds, row.Asked.Uncertain, known(row.Asked.ViolatedShare),
			known(row.Asked.SecondWonShare), known(row.SentApart), row.Sent.Rounds, known(row.Sent.ViolatedShare)})
	}
	p.notes = []string{r.windowText() + ".",
		fmt.Sprintf("Offset: of the release. Sent apart: from the first's guarded request sent to the second's, the median; "+
			"on its right the rounds that were sent so far apart, to the nearest offset (%d are not: sent further apart, or one not sent). "+
			"A busy machine makes these differ, most of all below 1 ms: go by the right side then.", m.Elsewhere),
		"Second won: its write was accepted; in a violated round the first's may be too. Shares are of the rounds that are certain or violated."}
	return p
}

// windowText says where violations were seen.
func (r Result) windowText() string {
	m, most := r.Detail.OffsetMap, r.Params.Sweep.Most
	if m.From == nil {
		return "No violation at any offset"
	}
	text := fmt.Sprintf("Violations with the second released from %s to %s ms after the first", signedMilliseconds(*m.From), signedMilliseconds(*m.To))
	if m.SentFrom != nil {
		text += fmt.Sprintf(", sent from %s to %s ms after it", signedMilliseconds(*m.SentFrom), signedMilliseconds(*m.SentTo))
	}
	if *m.From == -most || *m.To == most {
		text += "; it may reach further (raise --offset-sweep)"
	}
	return text
}

// offsetPlot shows the share of the rounds that were violated, or where none was, that
// the second won; by the guarded requests where a step is so short that a release may miss
// it. It is nil where no share is known.
func (r Result) offsetPlot() *plot {
	m, sweep := r.Detail.OffsetMap, r.Params.Sweep
	what, figure := "violated", func(s *scenarios.OffsetShares) *float64 { return s.ViolatedShare }
	if m.From == nil {
		what, figure = "won by the second", func(s *scenarios.OffsetShares) *float64 { return s.SecondWonShare }
	}
	by := "released"
	if sweep.Most/time.Duration(sweep.Steps/2) < time.Millisecond {
		by = "sent"
	}
	s, isKnown := series{name: what}, false
	for i := range m.Rows {
		shares := &m.Rows[i].Asked
		if by == "sent" {
			shares = &m.Rows[i].Sent
		}
		y := gap
		if v := figure(shares); v != nil {
			y, isKnown = 100**v, true
		}
		s.points = append(s.points, point{float64(m.Rows[i].Offset) / 1e6, y})
	}
	if !isKnown {
		return nil
	}
	end := float64(sweep.Most) / 1e6
	return &plot{caption: fmt.Sprintf("%% of the rounds %s, by how many ms after the first the second was %s", what, by), form: nearest, series: []series{s},
		x: axis{unit: "ms", from: -end, to: end, write: offsetTick, ticks: 5}, y: axis{unit: "%", to: 100, write: digits(0)}}
}

func offsetTick(ms float64) string {
	if ms == 0 {
		return "0"
	}
	return fmt.Sprintf("%+.3g", ms)
}
