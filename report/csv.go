package report

import (
	"encoding/csv"
	"io"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// csvHeader are the columns of format csv. A figure tells those from outcome to status.
var csvHeader = []string{"run", "started", "scenario", "target", "simulated", "figure", "outcome", "at", "where", "code", "status", "value", "unit", "labels"}

// writeCSV writes format csv: one figure a row, so that the rows of many runs
// can stand in one table. An absent figure has an empty value.
func (r Result) writeCSV(w io.Writer) error { return writeResults(w, []Result{r}) }

func writeResults(w io.Writer, results []Result) error {
	out := csv.NewWriter(w)
	_ = out.Write(csvHeader)
	for i := range results {
		r := &results[i]
		begin := []string{csvText(r.Run), r.Started.UTC().Format(time.RFC3339), csvText(r.Scenario), csvText(r.Target.URL), strconv.FormatBool(r.Target.Simulated)}
		for _, f := range r.figures() {
			row := append(slices.Clone(begin), csvText(f.name+f.of["figure"]))
			for _, name := range csvHeader[len(row) : len(csvHeader)-3] {
				row = append(row, csvText(f.of[name]))
			}
			_ = out.Write(append(row, csvValue(f.value), f.unit.name, csvLabels(r.Labels)))
		}
	}
	out.Flush()
	return out.Error()
}

// figures are the rows of format csv, the parts of all results first.
func (r *Result) figures() []figure {
	all := []figure{{name: "verdict", value: string(r.Verdict.Status)}}
	if r.Detail.Probe != nil {
		return append(all, r.answerFigures()...)
	}
	all = append(all, r.roundFigures()...)
	parts := slices.Concat([]part{r.outcomePart(), r.latencyPart(), r.contestPart()}, r.firstParts(), r.lastParts())
	if r.Detail.Lease != nil {
		parts = append(parts, leasePart(r.Detail.Lease))
	}
	parts = append(parts, r.expectationPart())
	for _, p := range parts {
		all = append(all, p.allFigures()...)
	}
	return all
}

// roundFigures say how many rounds there were, and what follows from that.
func (r *Result) roundFigures() []figure {
	all := []figure{
		{name: "rounds", value: r.Rounds, unit: numbers},
		{name: "contended rounds", value: r.Contention.ContendedRounds, unit: numbers},
		{name: "uncertain rounds", value: r.Contention.UncertainRounds, unit: numbers},
		{name: "violated rounds", value: r.Verdict.ViolatedRounds, unit: numbers},
	}
	if b := r.Verdict.Bound; b != nil {
		all = append(all, figure{name: "violation rate at most", value: b.AtMost, unit: shares})
		if b.UncertainAtMost != nil {
			all = append(all, figure{name: "violation rate at most if uncertain violate", value: *b.UncertainAtMost, unit: shares})
		}
	}
	return all
}

// numeral is a number as people and programs write them.
var numeral = regexp.MustCompile(`^-?[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]+)?$`)

// csvValue writes the value of a figure; a share has six digits.
func csvValue(value any) string {
	if f, ok := value.(float64); ok {
		return strconv.FormatFloat(f, 'g', 6, 64)
	}
	text := forMachines(value)
	if numeral.MatchString(text) {
		return text
	}
	return csvText(text)
}

// formulaStarts begin what a spreadsheet computes, in every width they come in.
const formulaStarts = "=+-@\t\r\n＝＋－＠"

// csvText makes a text a cell that a spreadsheet shows as it is: on one line, and
// with a ' before what would be a formula.
func csvText(text string) string {
	shown := OneLine(text)
	if strings.IndexAny(text, formulaStarts) == 0 {
		return "'" + shown
	}
	return shown
}

// csvLabels writes labels into a cell. Each is guarded by itself, for a program
// that takes the ; between them for the end of a cell.
func csvLabels(labels map[string]string) string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		all = append(all, csvText(name+"="+labels[name]))
	}
	return strings.Join(all, ";")
}
