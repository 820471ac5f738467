package report

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"contend/scenarios"
)

// Earlier reads the JSON result of a probe, for a later one to compare with.
func Earlier(text []byte) (*scenarios.Earlier, error) {
	var r Result
	if err := json.Unmarshal(text, &r); err != nil {
		return nil, fmt.Errorf("it is no JSON result: %w", err)
	}
	if r.Schema != ResultSchema || r.Detail.Probe == nil {
		return nil, fmt.Errorf("it is no JSON result of contend probe (-o json=FILE writes one)")
	}
	return &scenarios.Earlier{Run: r.Run, Family: scenarios.Family(r.Target.Kind), Target: r.Target.URL, Started: r.Started, Answers: r.Detail.Probe.Kept()}, nil
}

// Changed counts the answers that differ from those of the earlier probe.
func (r Result) Changed() int {
	if p := r.Detail.Probe; p != nil && p.Since != nil {
		return p.Since.Changed
	}
	return 0
}

// probeStatus says in a word what became of a probe.
func (r Result) probeStatus() string {
	p := r.Detail.Probe
	switch {
	case r.Changed() > 0:
		return "changed"
	case p.Unanswered > 0:
		return "not all answered"
	case p.Answered == 0:
		return "nothing asked"
	default:
		return "answered"
	}
}

// probeText is that with the figures.
func (r Result) probeText() string {
	p := r.Detail.Probe
	text := fmt.Sprintf("%s: %d of %d questions", r.probeStatus(), p.Answered, len(p.Answers))
	if r.probeStatus() == "changed" {
		text = fmt.Sprintf("changed: %d of %d answers differ from those of run %s; answered %d of %d questions", p.Since.Changed, p.Since.Compared, p.Since.Run,
			p.Answered, len(p.Answers))
	}
	if p.Unanswered > 0 {
		text += fmt.Sprintf(", %d unanswered", p.Unanswered)
	}
	if p.NotAsked > 0 {
		text += fmt.Sprintf(", %d not asked", p.NotAsked)
	}
	text += fmt.Sprintf("; %d as known, %d not as known", p.AsKnown, p.NotAsKnown)
	if p.NotListed > 0 {
		text += fmt.Sprintf(", %d with a code that the documentation does not list", p.NotListed)
	}
	if p.Since != nil && p.Since.Changed == 0 {
		text += fmt.Sprintf("; none of %d has changed since run %s", p.Since.Compared, p.Since.Run)
	}
	if r.Interrupted {
		text += "; interrupted"
	}
	for _, why := range []string{r.Stopped, r.Cut} {
		if why != "" {
			text += "; " + why
		}
	}
	return text
}

// probeDocument is a probe as people read it.
func (r Result) probeDocument(d document) document {
	status, rest, _ := strings.Cut(r.probeText(), ":")
	d.lead = append(d.lead, strings.ToUpper(status)+":"+rest, fmt.Sprintf("Run %s, %s, %s: %d requests%s", r.Run,
		r.Started.UTC().Format("2006-01-02 15:04 UTC"), r.Elapsed.Round(10*time.Millisecond), r.Requests, r.unitsText()))
	p := r.Detail.Probe
	if p.Since != nil {
		d.blocks = append(d.blocks, sinceBlock(p))
	}
	if p.NotAsKnown > 0 {
		d.blocks = append(d.blocks, otherwiseBlock(p))
	}
	var groups []string
	for i := range p.Answers {
		if g := p.Answers[i].Group; !slices.Contains(groups, g) {
			groups = append(groups, g)
			d.blocks = append(d.blocks, groupBlock(p, g))
		}
	}
	d.blocks = append(d.blocks, r.probeLegend(), codesBlock(p), r.latencyBlock())
	if len(r.Expectations) > 0 {
		d.blocks = append(d.blocks, r.expectationBlock())
	}
	d.blocks = append(d.blocks, block{text: r.notes()})
	return d
}

// sinceBlock tells what has changed since the earlier probe.
func sinceBlock(p *scenarios.ProbeReport) block {
	b := block{heading: fmt.Sprintf("Changed since run %s of %s on %s", p.Since.Run, p.Since.Started.UTC().Format("2006-01-02"), p.Since.Target),
		table: table{header: []string{"question", "it was", "it is"}, right: []bool{false, false, false}}}
	for i := range p.Answers {
		if a := &p.Answers[i]; a.Was != nil {
			b.table.rows = append(b.table.rows, []string{a.ID, answerText(*a.Was, ""), answerText(a.Kept(), "")})
		}
	}
	if len(b.table.rows) == 0 {
		b.text = append(b.text, fmt.Sprintf("Nothing has: %d questions were answered both times.", p.Since.Compared))
	}
	return b
}

// otherwiseBlock lists what was answered otherwise than is known.
func otherwiseBlock(p *scenarios.ProbeReport) block {
	b := block{heading: "Not as known", table: table{header: []string{"question", "known", "from", "answered", "message"}, right: make([]bool, 5)}}
	for i := range p.Answers {
		a := &p.Answers[i]
		if a.AsKnown == nil || *a.AsKnown {
			continue
		}
		k := &a.Known
		known := answerText(scenarios.EarlierAnswer{Outcome: k.Outcome, Code: k.Code, Status: k.Status, Answer: k.Answer}, "")
		if k.Message != "" {
			known += ": " + k.Message
		}
		b.table.rows = append(b.table.rows, []string{a.ID, known, k.Source, answerText(a.Kept(), ""), orDash(a.Message)})
	}
	return b
}

// groupBlock has a line a question; the ways that one is asked in stand side by side.
func groupBlock(p *scenarios.ProbeReport, group string) block {
	b := block{heading: group}
	ways := []string{}
	var lines []string
	cells := make(map[string]map[string]string)
	texts := make(map[string]string)
	for i := range p.Answers {
		a := &p.Answers[i]
		if a.Group != group {
			continue
		}
		if !slices.Contains(ways, a.Way) {
			ways = append(ways, a.Way)
		}
		line := strings.TrimSuffix(a.ID, "/"+a.Way)
		if cells[line] == nil {
			cells[line] = make(map[string]string)
			lines = append(lines, line)
		}
		cells[line][a.Way], texts[line] = answerCell(a), a.Question
	}
	b.table.header = []string{"question"}
	for _, way := range ways {
		if way == "" {
			way = "answered"
		}
		b.table.header = append(b.table.header, way)
	}
	b.table.right = make([]bool, len(b.table.header))
	for _, line := range lines {
		row := []string{texts[line]}
		for _, way := range ways {
			row = append(row, orDash(cells[line][way]))
		}
		b.table.rows = append(b.table.rows, row)
	}
	return b
}

// answerCell is an answer with its marks.
func answerCell(a *scenarios.ProbeAnswer) string {
	if a.State != scenarios.ProbeAnswered {
		return strings.ReplaceAll(string(a.State), "-", " ") + ": " + a.Why
	}
	mark, star := "?", ""
	switch {
	case a.AsKnown != nil && *a.AsKnown:
		mark = "✓"
	case a.AsKnown != nil:
		mark = "✗"
	}
	if a.Listed != nil && !*a.Listed {
		star = "†"
	}
	text := mark + " " + answerText(a.Kept(), star)
	if a.Figure != "" {
		text += ", " + a.Figure
	}
	return text
}

// answerText is an answer in a few words; star follows its code.
func answerText(a scenarios.EarlierAnswer, star string) string {
	reply := string(a.Outcome)
	if a.Code != "" {
		reply = a.Code + star
	}
	if a.Status != 0 {
		reply = strings.TrimSpace(fmt.Sprintf("%s %d", reply, a.Status))
	}
	switch {
	case a.Answer == "":
		return reply
	case reply == "":
		return a.Answer
	default:
		return fmt.Sprintf("%s (%s)", a.Answer, reply)
	}
}

func (r Result) probeLegend() block {
	b := block{text: []string{"✓ as known, ✗ not as known, ? nothing was known before: the json output tells the sources."}}
	if r.Detail.Probe.NotListed > 0 {
		b.text = append(b.text, "† a code that neither of the documentation's lists of codes contains.")
	}
	if r.Target.Simulated {
		b.text = append(b.text, "What is marked ? is an assumption of the emulator here; only a live site can tell.")
	}
	return b
}

// codesBlock is the catalogue of the codes and messages that came.
func codesBlock(p *scenarios.ProbeReport) block {
	b := block{heading: "Error objects: the codes that came",
		table: table{header: []string{"code", "status", "outcome", "listed", "count", "message"}, right: []bool{false, true, false, false, true, false}}}
	type kind struct {
		code, outcome, message string
		status                 int
	}
	at := make(map[kind]int)
	counts := []int{}
	for i := range p.Answers {
		a := &p.Answers[i]
		if a.State != scenarios.ProbeAnswered || a.Code == "" {
			continue
		}
		k := kind{a.Code, string(a.Outcome), a.Message, a.Status}
		if row, seen := at[k]; seen {
			counts[row]++
			continue
		}
		status, listed := dash, dash
		if a.Status != 0 {
			status = fmt.Sprint(a.Status)
		}
		if a.Listed != nil {
			listed = map[bool]string{true: "yes", false: "no"}[*a.Listed]
		}
		at[k] = len(counts)
		counts = append(counts, 1)
		b.table.rows = append(b.table.rows, []string{a.Code, status, string(a.Outcome), listed, "", orDash(a.Message)})
	}
	for i := range b.table.rows {
		b.table.rows[i][4] = fmt.Sprint(counts[i])
	}
	return b
}

// probeRows are those of format csv.
func (r *Result) probeRows(write func(figure, outcome, at, code string, status int, value, unit string)) {
	p := r.Detail.Probe
	for _, f := range []struct {
		name  string
		count int
	}{{"answered", p.Answered}, {"unanswered", p.Unanswered}, {"not asked", p.NotAsked}, {"as known", p.AsKnown}, {"not as known", p.NotAsKnown},
		{"codes not listed", p.NotListed}, {"changed", r.Changed()}} {
		write(f.name, "", "", "", 0, fmt.Sprint(f.count), "count")
	}
	for i := range p.Answers {
		a := &p.Answers[i]
		known := "unknown"
		if a.AsKnown != nil {
			known = fmt.Sprint(*a.AsKnown)
		}
		if a.State != scenarios.ProbeAnswered {
			known = string(a.State)
		}
		write("answer "+a.ID, string(a.Outcome), a.Way, a.Code, a.Status, a.Answer, "")
		write("as known "+a.ID, "", a.Way, "", 0, known, "")
	}
}
