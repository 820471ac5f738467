package report

import (
	"fmt"
	"strings"
	"time"

	"contend/scenarios"
)

// document is a result as people read it, as data: no look has been given to it.
type document struct {
	status scenarios.Status // "" where it is no verdict's
	title  string
	lead   []string // the verdict first
	parts  []part
	// command makes it again, pasted into a shell: a line that is never broken.
	command string
}

// page is a document in words that are fit to be shown.
type page struct {
	status  scenarios.Status
	title   string
	lead    []string
	blocks  []block
	command string
}

type block struct {
	heading string
	table   table
	wide    bool  // the table keeps a row on a line off a terminal
	plot    *plot // after the table
	text    []string
}

type table struct {
	header []string
	right  []bool // columns aligned to the right
	whole  []bool // columns whose cells are not broken
	rows   [][]string
}

func (r Result) documents() []document { return []document{r.document()} }

func (r Result) lines() []string { return []string{r.VerdictLine()} }

func (r Result) document() document {
	d := document{status: r.Verdict.Status, command: r.Command, title: fmt.Sprintf("contend %s on %s (%s)", r.Scenario, r.Target.URL, r.Target.Server)}
	if r.Target.Simulated {
		d.title += " · SIMULATED, not a live platform"
	}
	status, rest, _ := strings.Cut(r.verdictText(), ":")
	if r.Detail.Probe != nil {
		d.lead = []string{strings.ToUpper(status) + ":" + rest, r.runLine()}
		d.parts = r.answerParts()
	} else {
		d.lead = append(d.lead, strings.Replace(status, string(r.Verdict.Status), strings.ToUpper(string(r.Verdict.Status)), 1)+":"+rest)
		if r.Verdict.Status == scenarios.Held && r.Detail.Ghosts == nil {
			d.lead = append(d.lead, r.reachText())
		}
		d.lead = append(d.lead, "Property: "+r.Verdict.Property, r.runLine())
		d.parts = r.parts()
	}
	if len(r.Expectations) > 0 {
		d.parts = append(d.parts, r.expectationPart())
	}
	d.parts = append(d.parts, part{notes: r.notes()})
	return d
}

// parts are those of a verdict.
func (r Result) parts() []part {
	all := r.firstParts()
	switch {
	case r.contenders() == 0 && r.Detail.Ghosts == nil:
		all = append(all, r.nobodyPart())
	case r.Detail.Ghosts == nil:
		all = append(all, r.outcomePart(), r.latencyPart(), r.contestPart())
	default:
		all = append(all, r.outcomePart(), r.latencyPart())
	}
	all = append(all, r.lastParts()...)
	if len(r.Verdict.Violations) > 0 {
		all = append(all, r.witnessPart(r.Verdict.Violations[0]))
	}
	return all
}

// firstParts are what only such a scenario has, where people want to know that first.
func (r Result) firstParts() []part {
	var all []part
	if r.Detail.Ghosts != nil {
		all = append(all, r.ghostParts()...)
	}
	if r.Detail.OffsetMap != nil {
		all = append(all, r.offsetPart())
	}
	return all
}

// lastParts are what only such a scenario has besides.
func (r Result) lastParts() []part {
	var all []part
	if len(r.Detail.Deliveries) > 0 {
		all = append(all, deliveryPart(r.Detail.Deliveries))
	}
	if r.Detail.Counter != nil {
		all = append(all, counterPart(r.Detail.Counter))
	}
	if r.Detail.Edits != nil {
		all = append(all, editParts(r.Detail.Edits)...)
	}
	return all
}

func (r Result) runLine() string {
	begin := fmt.Sprintf("Run %s, %s, %s: ", r.Run, r.Started.UTC().Format("2006-01-02 15:04 UTC"), r.Elapsed.Round(10*time.Millisecond))
	requests := fmt.Sprintf("%d requests", r.Requests)
	switch {
	case r.Detail.Probe != nil:
		return begin + requests + r.unitsText()
	case r.Detail.Ghosts != nil:
		return begin + fmt.Sprintf("%d keys, ", len(r.Detail.Ghosts.Keys)) + requests + r.unitsText()
	default:
		return begin + fmt.Sprintf("%d rounds of %d, ", r.Rounds, r.Params.Contenders) + requests
	}
}

func (r Result) unitsText() string {
	if r.QuotaUnits == nil {
		return ""
	}
	return fmt.Sprintf(", about %d quota units", *r.QuotaUnits)
}

func (r Result) notes() []string {
	var notes []string
	if r.Verdict.Status == scenarios.Violated {
		for _, reason := range r.Verdict.Reasons {
			notes = append(notes, "Note: "+reason)
		}
	}
	if r.Left != "" {
		notes = append(notes, "Note: "+r.Left)
	}
	for _, n := range r.Target.Notes {
		notes = append(notes, "Note: "+n)
	}
	notes = append(notes, "Strategy: "+pairs(r.Target.Strategy, ", "))
	if len(r.Labels) > 0 {
		notes = append(notes, "Labels: "+pairs(r.Labels, ", "))
	}
	made := fmt.Sprintf("contend %s, %s, %s/%s, %d CPUs", r.Tool.Version, r.Tool.Go, r.Host.OS, r.Host.Arch, r.Host.CPUs)
	if r.Params.Seed != "" {
		made += ", seed " + r.Params.Seed
	}
	return append(notes, made)
}
