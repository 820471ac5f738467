package report

import (
	"fmt"
	"slices"
	"strings"

	"contend/scenarios"
	"contend/targets"
)

func (r Result) contenders() int {
	n := 0
	for _, o := range r.Outcomes {
		n += o.Count
	}
	return n
}

// nobodyPart says why nobody was released, where figures of nobody would stand.
func (r Result) nobodyPart() part {
	p := part{heading: fmt.Sprintf("Winners and losers: no contender was released in %d rounds", r.Rounds)}
	if r.Rounds == 0 {
		p.heading = "Winners and losers: no race was run"
	}
	if f := r.Refusal; f != nil {
		p.notes = append(p.notes, fmt.Sprintf("The first request that the target refused, a %s: %s", f.Request, f.Text()))
	}
	p.notes = append(append(p.notes, r.uncountedTexts()...), r.controlsText())
	return p
}

// uncountedTexts say why rounds are uncertain, or do not count.
func (r Result) uncountedTexts() (texts []string) {
	if c := r.Contention; len(c.Uncounted) > 0 {
		texts = append(texts, fmt.Sprintf("Not counted: %s.", scenarios.UncountedText(c.Uncounted)))
	}
	if c := r.Contention; len(c.Uncertain) > 0 {
		texts = append(texts, fmt.Sprintf("Uncertain: %s.", scenarios.UncountedText(c.Uncertain)))
	}
	return texts
}

// outcomePart counts what became of the contenders.
func (r Result) outcomePart() part {
	p := part{heading: fmt.Sprintf("Winners and losers: %d contenders in %d rounds", r.contenders(), r.Rounds),
		columns: []column{{head: "outcome", of: "outcome"}, {head: "at", of: "at"}, {head: "code", of: "code"}, {head: "status", of: "status", unit: toRight},
			{head: "count", figure: "contenders", unit: numbers}, {head: "share", unit: shares}, {head: "message"}}}
	switch {
	case r.Detail.Ghosts != nil:
		p.heading = fmt.Sprintf("Probes: %d requests after the creates", r.contenders())
	case r.Detail.Counter != nil:
		p.heading = fmt.Sprintf("Accepted and refused: %d writes in %d rounds of %d contenders", r.contenders(), r.Rounds, r.Params.Contenders)
	}
	for _, o := range r.Outcomes {
		message := o.Message
		if o.Settled > 0 {
			message = strings.TrimSpace(fmt.Sprintf("%d resolved by read-back: applied. %s", o.Settled, message))
		}
		p.rows = append(p.rows, []any{o.Outcome, o.At, o.Code, unlessZero(o.Status), o.Count, float64(o.Count) / float64(r.contenders()), message})
	}
	w := r.Winners
	if total := w.None + w.One + w.Several; total > 0 && r.Detail.Counter == nil {
		who := "Winners"
		if r.Detail.Edits != nil {
			who = "Accepted edits"
		}
		p.notes = append(p.notes, fmt.Sprintf("%s a round: none in %d, one in %d, several in %d (fewest %d, most %d).",
			who, w.None, w.One, w.Several, w.Min, w.Max))
	}
	if l := r.Detail.Lease; l != nil {
		p.notes = append(p.notes, leasePart(l).notes...)
	}
	if slices.ContainsFunc(r.Outcomes, func(o Outcome) bool { return o.Outcome == string(targets.Unknown) }) {
		p.notes = append(p.notes, "unknown: indeterminate, a request whose effect its reply does not show.")
	}
	return p
}

// latencyPart has a distribution a row.
func (r Result) latencyPart() part {
	p := part{heading: "Latency in ms, from the call to the complete reply",
		columns: []column{{head: "outcome", of: "outcome"}, {of: "at"}, {of: "where"}, {head: "at"}, {head: "n", figure: "latency n", unit: numbers}}}
	for _, name := range []string{"min", "p50", "p90", "p95", "p99", "max"} {
		p.columns = append(p.columns, column{head: name, figure: "latency " + name, unit: times})
	}
	methods := map[string]string{"exact": "nearest rank", "hdr": "a histogram of three digits"}
	var used []string
	for _, l := range r.Latency {
		at := l.At
		if l.Where != "" {
			at += ", " + l.Where
		}
		p.rows = append(p.rows, []any{l.Outcome, l.At, l.Where, at, l.N, known(l.Min), known(l.P50), known(l.P90), known(l.P95), known(l.P99), known(l.Max)})
		if !slices.Contains(used, methods[l.Method]) {
			used = append(used, methods[l.Method])
		}
	}
	if r.Target.Relayed {
		p.notes = append(p.notes, "server: as measured next to the store; the others are round trips from here, the wait for the common instant included.")
	}
	if len(used) > 0 {
		p.notes = append(p.notes, fmt.Sprintf("Percentiles by %s; %s: too few samples (p90 needs 10, p95 20, p99 100).",
			strings.Join(used, " and "), dash))
	}
	return p
}

func (r Result) expectationPart() part {
	met := unit{write: func(cell any) string {
		if cell.(bool) {
			return "✓ yes"
		}
		return "✗ no"
	}}
	p := part{heading: "Expectations", columns: []column{{head: "expected", of: "figure"}, {head: "measured", unit: toRight}, {head: "met", figure: "expectation ", unit: met}}}
	for _, e := range r.Expectations {
		p.rows = append(p.rows, []any{e.Expr, e.Figure, e.Met})
	}
	return p
}
