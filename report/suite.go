package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"contend/scenarios"
)

// SuiteSchema is the format of what a suite or a night tells.
const SuiteSchema = "contend.suite/1"

// Suite is what several runs tell together.
type Suite struct {
	Schema      string        `json:"schema"`
	Command     string        `json:"command"`
	Tool        Tool          `json:"tool"`
	File        string        `json:"file"`
	Started     time.Time     `json:"started"`
	Elapsed     time.Duration `json:"elapsed_ns"`
	Interrupted bool          `json:"interrupted"`
	Exit        int           `json:"exit"`
	Runs        []SuiteRun    `json:"runs"`
	Night       *Night        `json:"night,omitempty"`
}

// SuiteRun is one run of a suite.
type SuiteRun struct {
	Name   string  `json:"name"`
	Exit   int     `json:"exit"`            // as the command alone would have
	Error  string  `json:"error,omitempty"` // why there is no result
	Result *Result `json:"result,omitempty"`
}

// Night is what only a night tells.
type Night struct {
	// Outstanding are runs of earlier nights whose keys were asked about again.
	Outstanding []Outstanding `json:"outstanding"`
	// Changes since the nights before, in words.
	Changes []string `json:"changes"`
	// Alarms are of the trend: a drift that is more than chance.
	Alarms []string `json:"alarms"`
	// Notes are what could not be done.
	Notes []string `json:"notes,omitempty"`
}

// Outstanding is an earlier run with keys that had not been seen free.
type Outstanding struct {
	Run      string              `json:"run"`
	Target   string              `json:"target"`
	Open     int                 `json:"open"`              // keys that were not closed
	Answered int                 `json:"answered"`          // of those, about which the target told something tonight
	Closed   int                 `json:"closed"`            // of those, closed tonight
	Blocked  int                 `json:"blocked"`           // of those left, refused a create when last asked
	Visible  int                 `json:"visible"`           // of those left, still read
	Longest  *scenarios.GhostKey `json:"longest,omitempty"` // of the run's keys, the one that blocked longest
}

// Line is the run in one line.
func (r SuiteRun) Line() string {
	if r.Result == nil {
		return OneLine(fmt.Sprintf("%s: could not run: %s", r.Name, r.Error))
	}
	return sentence(r.Name + ": " + r.Result.VerdictLine())
}

// verdict is a cell of the summary.
func (r SuiteRun) verdict() string {
	switch {
	case r.Result == nil:
		return "could not run"
	case r.Result.Detail.Probe != nil:
		return r.Result.probeStatus()
	case r.Result.Verdict.Status == scenarios.Violated && r.Exit == 0:
		return "violated, as expected"
	default:
		return string(r.Result.Verdict.Status)
	}
}

// what tells of the run in a few words.
func (r SuiteRun) what() string {
	if r.Result == nil {
		return r.Error
	}
	var words []string
	for _, e := range r.Result.Expectations {
		if !e.Met {
			words = append(words, fmt.Sprintf("expected %s, measured %s", e.Expr, e.Figure))
		}
	}
	if r.Result.Detail.Probe != nil {
		return strings.Join(append(words, strings.TrimPrefix(r.Result.probeText(), r.Result.probeStatus()+": ")), "; ")
	}
	v, unit := r.Result.Verdict, "rounds"
	if r.Result.Detail.Ghosts != nil {
		unit = "keys"
	}
	switch v.Status {
	case scenarios.Held:
		words = append(words, fmt.Sprintf("%d of %d %s count; violated under %s", r.Result.Contention.ContendedRounds, r.Result.Rounds, unit, percentUp(v.Bound.AtMost))+r.Result.weakened())
	case scenarios.Violated:
		text := fmt.Sprintf("%s in %d of %d %s", v.Violations[0].Kind, v.ViolatedRounds, r.Result.Rounds, unit)
		if v.ViolatedRounds == 0 {
			text = v.Violations[0].Kind
		}
		words = append(words, text)
	default:
		words = append(words, v.Reasons...)
	}
	if r.Result.Cut != "" {
		words = append(words, "cut: "+r.Result.Cut)
	}
	if g := r.Result.Detail.Ghosts; g != nil && g.Median != nil {
		words = append(words, "median delay "+quantileRange(g.Median))
	}
	return strings.Join(words, "; ")
}

// SummaryLine is the suite in one line.
func (s Suite) SummaryLine() string {
	counts := make(map[string]int)
	for _, r := range s.Runs {
		counts[r.verdict()]++
	}
	var parts []string
	for _, verdict := range []string{"held", "violated, as expected", "violated", "could not run", "inconclusive", "answered", "changed",
		"not all answered", "nothing asked"} {
		if n := counts[verdict]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, verdict))
		}
	}
	text := fmt.Sprintf("%s of %s: %s", plural(len(s.Runs), "run"), s.File, strings.Join(parts, ", "))
	if s.Interrupted {
		text += "; interrupted"
	}
	return text
}

func (s Suite) lines() []string {
	var lines []string
	for _, r := range s.Runs {
		lines = append(lines, r.Line())
	}
	lines = append(lines, s.SummaryLine())
	if s.Night != nil {
		for _, a := range s.Night.Alarms {
			lines = append(lines, "alarm: "+a)
		}
	}
	return lines
}

// documents are the summary, and of the runs that did not go as expected the
// whole report.
func (s Suite) documents() []document {
	all := []document{s.summary()}
	for _, r := range s.Runs {
		if r.Result != nil && r.Exit != 0 {
			d := r.Result.document()
			d.title = r.Name + ": " + d.title
			all = append(all, d)
		}
	}
	return all
}

func (s Suite) summary() document {
	simulated := 0
	p := part{heading: "Runs", columns: append(plainColumns("run", "target", "verdict", "what"), column{head: "exit", unit: toRight})}
	for _, r := range s.Runs {
		target := ""
		if r.Result != nil {
			target = r.Result.Target.URL
			if r.Result.Target.Simulated {
				simulated++
				target += " (simulated)"
			}
		}
		p.rows = append(p.rows, []any{r.Name, target, r.verdict(), r.what(), r.Exit})
	}
	d := document{title: "contend " + s.what() + " " + s.File, lead: []string{s.SummaryLine()}, parts: []part{p}}
	if simulated > 0 {
		d.title += fmt.Sprintf(" · %d of %d SIMULATED, not a live platform", simulated, len(s.Runs))
	}
	d.lead = append(d.lead, fmt.Sprintf("%s, %s, by contend %s", s.Started.UTC().Format("2006-01-02 15:04 UTC"), s.Elapsed.Round(10*time.Millisecond), s.Tool.Version))
	d.command = s.Command
	d.parts = append(d.parts, s.throughputParts()...)
	if s.Night != nil {
		d.parts = append(d.parts, s.Night.parts()...)
	}
	return d
}

func (s Suite) what() string {
	if s.Night != nil {
		return "nightly"
	}
	return "run"
}

func (n *Night) parts() []part {
	ghosts := part{heading: "Keys of earlier nights", wide: true, columns: []column{{head: "run"}, {head: "target"}, {head: "open", unit: toRight}, {head: "answered", unit: toRight},
		{head: "closed", unit: toRight}, {head: "blocked", unit: toRight}, {head: "visible", unit: toRight}, {head: "longest block", unit: toRight}}}
	for _, o := range n.Outstanding {
		var longest span
		if o.Longest != nil {
			longest = span{o.Longest.LastBlocked, o.Longest.FirstFree}
		}
		ghosts.rows = append(ghosts.rows, []any{o.Run, o.Target, o.Open, o.Answered, o.Closed, o.Blocked, o.Visible, longest})
	}
	changes := part{heading: "Changes since the nights before", notes: slices.Clone(n.Changes)}
	for _, a := range n.Alarms {
		changes.notes = append(changes.notes, "Alarm: "+a)
	}
	if len(changes.notes) == 0 {
		changes.notes = []string{"No change was seen."}
	}
	all := []part{ghosts, changes}
	if len(n.Notes) > 0 {
		all = append(all, part{heading: "Left undone", notes: n.Notes})
	}
	return all
}

func (s Suite) writeCSV(w io.Writer) error {
	var results []Result
	for _, r := range s.Runs {
		if r.Result != nil {
			results = append(results, *r.Result)
		}
	}
	return writeResults(w, results)
}

// MarshalIndent gives the suite as format json writes it.
func (s Suite) MarshalIndent() ([]byte, error) { return marshalIndent(s) }

func marshalIndent(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	err := e.Encode(v)
	return b.Bytes(), err
}
