package report

import (
	"encoding/csv"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"contend/scenarios"
)

// writeCSV writes format csv: one figure a row, so that the rows of many runs
// can stand in one table. An absent figure has an empty value.
func (r Result) writeCSV(w io.Writer) error { return writeResults(w, []Result{r}) }

func writeResults(w io.Writer, results []Result) error {
	out := csv.NewWriter(w)
	_ = out.Write([]string{"run", "started", "scenario", "target", "simulated", "figure", "outcome", "at", "where", "code", "status", "value", "unit", "labels"})
	for i := range results {
		results[i].rows(out)
	}
	out.Flush()
	return out.Error()
}

func (r *Result) rows(out *csv.Writer) {
	labels, where := csvLabels(r.Labels), ""
	write := func(figure, outcome, at, code string, status int, value, unit string) {
		code2 := ""
		if status != 0 {
			code2 = strconv.Itoa(status)
		}
		if !numeral.MatchString(value) {
			value = csvText(value)
		}
		_ = out.Write([]string{csvText(r.Run), r.Started.UTC().Format(time.RFC3339), csvText(r.Scenario), csvText(r.Target.URL), strconv.FormatBool(r.Target.Simulated),
			csvText(figure), csvText(outcome), csvText(at), csvText(where), csvText(code), code2, value, unit, labels})
	}
	write("verdict", "", "", "", 0, string(r.Verdict.Status), "")
	if r.Detail.Probe != nil {
		r.probeRows(write)
		return
	}
	write("rounds", "", "", "", 0, strconv.Itoa(r.Rounds), "count")
	write("contended rounds", "", "", "", 0, strconv.Itoa(r.Contention.ContendedRounds), "count")
	write("uncertain rounds", "", "", "", 0, strconv.Itoa(r.Contention.UncertainRounds), "count")
	write("violated rounds", "", "", "", 0, strconv.Itoa(r.Verdict.ViolatedRounds), "count")
	if b := r.Verdict.Bound; b != nil {
		write("violation rate at most", "", "", "", 0, number(b.AtMost), "share")
		if b.UncertainAtMost != nil {
			write("violation rate at most if uncertain violate", "", "", "", 0, number(*b.UncertainAtMost), "share")
		}
	}
	for _, o := range r.Outcomes {
		write("contenders", o.Outcome, o.At, o.Code, o.Status, strconv.Itoa(o.Count), "count")
	}
	for _, l := range r.Latency {
		where = l.Where
		write("latency n", l.Outcome, l.At, "", 0, strconv.Itoa(l.N), "count")
		for _, f := range []struct {
			name  string
			value *time.Duration
		}{{"min", l.Min}, {"p50", l.P50}, {"p90", l.P90}, {"p95", l.P95}, {"p99", l.P99}, {"max", l.Max}} {
			write("latency "+f.name, l.Outcome, l.At, "", 0, nanoseconds(f.value), "ns")
		}
	}
	where = ""
	contentionRows(r.Contention, func(figure, value, unit string) { write(figure, "", "", "", 0, value, unit) })
	if r.Detail.OffsetMap != nil {
		r.offsetRows(write)
	}
	for _, e := range r.Expectations {
		write("expectation "+e.Expr, "", "", "", 0, strconv.FormatBool(e.Met), "")
	}
}

// contentionRows writes the evidence that there was a contest.
func contentionRows(c scenarios.Contention, write func(figure, value, unit string)) {
	for _, f := range []struct {
		name  string
		value *int
	}{{"rivals needed", &c.Rivals.Needed}, {"rivals p50", c.Rivals.P50}, {"reach counted at least", &c.Reach.AtLeast}, {"max in flight", c.MaxInFlight}} {
		text := ""
		if f.value != nil {
			text = strconv.Itoa(*f.value)
		}
		write(f.name, text, "count")
	}
	write("reach", nanoseconds(c.Reach.Reach), "ns")
	write("reach p50", nanoseconds(c.Reach.P50), "ns")
	for _, f := range []struct {
		name  string
		value *float64
	}{{"overlap", c.Overlap}, {"winner overlap", c.WinnerOverlap}, {"guard contention", c.GuardContention}} {
		text := ""
		if f.value != nil {
			text = number(*f.value)
		}
		write(f.name, text, "share")
	}
	write("release skew p50", nanoseconds(c.Skew.P50), "ns")
	write("release skew p99", nanoseconds(c.Skew.P99), "ns")
	write("release skew max", nanoseconds(c.Skew.Max), "ns")
	write("closest sends", nanoseconds(c.Closest), "ns")
	write("reached guard", strconv.Itoa(c.ReachedGuard), "count")
}

// numeral is a number as people and programs write them.
var numeral = regexp.MustCompile(`^-?[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]+)?$`)

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

func number(f float64) string { return strconv.FormatFloat(f, 'g', 6, 64) }

func nanoseconds(d *time.Duration) string {
	if d == nil {
		return ""
	}
	return fmt.Sprint(int64(*d))
}
