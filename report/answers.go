package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"contend/scenarios/probe"
)

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
	text += fmt.Sprintf("; %d match the documentation, %d differ", p.AsKnown, p.NotAsKnown)
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

// answerParts are those of a probe.
func (r Result) answerParts() []part {
	p := r.Detail.Probe
	var all []part
	if p.Since != nil {
		all = append(all, sincePart(p))
	}
	if p.NotAsKnown > 0 {
		all = append(all, otherwisePart(p))
	}
	var groups []string
	for i := range p.Answers {
		if g := p.Answers[i].Group; !slices.Contains(groups, g) {
			groups = append(groups, g)
			all = append(all, groupPart(p, g))
		}
	}
	return append(all, r.probeLegend(), codesPart(p), r.latencyPart())
}

// sincePart tells what has changed since the earlier probe.
func sincePart(r *probe.Report) part {
	p := part{heading: fmt.Sprintf("Changed since run %s of %s on %s", r.Since.Run, r.Since.Started.UTC().Format("2006-01-02"), r.Since.Target),
		columns: plainColumns("question", "it was", "it is")}
	for i := range r.Answers {
		if a := &r.Answers[i]; a.Was != nil {
			p.rows = append(p.rows, []any{a.ID, answerText(*a.Was, ""), answerText(a.Kept(), "")})
		}
	}
	if len(p.rows) == 0 {
		p.notes = append(p.notes, fmt.Sprintf("Nothing has: %d questions were answered both times.", r.Since.Compared))
	}
	return p
}

// otherwisePart lists what was answered otherwise than is known.
func otherwisePart(r *probe.Report) part {
	p := part{heading: "Differs from the documentation", columns: plainColumns("question", "known", "from", "answered", "message")}
	for i := range r.Answers {
		a := &r.Answers[i]
		if a.AsKnown == nil || *a.AsKnown {
			continue
		}
		k := &a.Known
		text := answerText(probe.EarlierAnswer{Outcome: k.Outcome, Code: k.Code, Status: k.Status, Answer: k.Answer}, "")
		if k.Message != "" {
			text += ": " + k.Message
		}
		p.rows = append(p.rows, []any{a.ID, text, k.Source, answerText(a.Kept(), ""), a.Message})
	}
	return p
}

// groupPart has a row a question; the ways that one is asked in stand side by side.
func groupPart(r *probe.Report, group string) part {
	p := part{heading: group, columns: plainColumns("question")}
	column, row := make(map[string]int), make(map[string]int) // of a way and of a question
	for i := range r.Answers {
		a := &r.Answers[i]
		if a.Group != group {
			continue
		}
		if column[a.Way] == 0 {
			column[a.Way] = len(p.columns)
			p.columns = append(p.columns, plainColumns(cmp.Or(a.Way, "answered"))...)
		}
	}
	for i := range r.Answers {
		a := &r.Answers[i]
		if a.Group != group {
			continue
		}
		question := strings.TrimSuffix(a.ID, "/"+a.Way)
		at, seen := row[question]
		if !seen {
			at = len(p.rows)
			row[question] = at
			p.rows = append(p.rows, make([]any, len(p.columns)))
		}
		p.rows[at][0], p.rows[at][column[a.Way]] = a.Question, answerCell(a)
	}
	return p
}

// answerCell is an answer with its marks.
func answerCell(a *probe.Answer) string {
	if a.State != probe.Answered {
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
func answerText(a probe.EarlierAnswer, star string) string {
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

func (r Result) probeLegend() part {
	p := part{notes: []string{"✓ matches the documentation, ✗ differs from it, ? it does not say: the json output has the sources."}}
	if r.Detail.Probe.NotListed > 0 {
		p.notes = append(p.notes, "† a code that neither of the documentation's lists of codes contains.")
	}
	if r.Target.Simulated {
		p.notes = append(p.notes, "What is marked ? is an assumption of the emulator here; only a live site can show it.")
	}
	return p
}

// codesPart is the catalogue of the codes and messages that came.
func codesPart(r *probe.Report) part {
	p := part{heading: "Error objects: the codes that came", columns: []column{{head: "code"}, {head: "status", unit: toRight}, {head: "outcome"},
		{head: "listed"}, {head: "count", unit: toRight}, {head: "message"}}}
	type kind struct {
		code, outcome, message string
		status                 int
	}
	row := make(map[kind]int)
	for i := range r.Answers {
		a := &r.Answers[i]
		if a.State != probe.Answered || a.Code == "" {
			continue
		}
		k := kind{a.Code, string(a.Outcome), a.Message, a.Status}
		at, seen := row[k]
		if !seen {
			at = len(p.rows)
			row[k] = at
			p.rows = append(p.rows, []any{a.Code, unlessZero(a.Status), string(a.Outcome), known(a.Listed), 0, a.Message})
		}
		p.rows[at][4] = p.rows[at][4].(int) + 1
	}
	return p
}

// answerFigures are the counts, and two figures for each question.
func (r Result) answerFigures() []figure {
	p := r.Detail.Probe
	count := func(name string, n int) figure { return figure{name: name, value: n, unit: numbers} }
	all := []figure{count("answered", p.Answered), count("unanswered", p.Unanswered), count("not asked", p.NotAsked), count("as known", p.AsKnown),
		count("not as known", p.NotAsKnown), count("codes not listed", p.NotListed), count("changed", r.Changed())}
	for i := range p.Answers {
		a := &p.Answers[i]
		var asKnown any = "unknown"
		if a.AsKnown != nil {
			asKnown = *a.AsKnown
		}
		if a.State != probe.Answered {
			asKnown = string(a.State)
		}
		all = append(all,
			figure{"answer " + a.ID, a.Answer, plain, map[string]string{"outcome": string(a.Outcome), "at": a.Way, "code": a.Code, "status": forMachines(unlessZero(a.Status))}},
			figure{"as known " + a.ID, asKnown, plain, map[string]string{"at": a.Way}})
	}
	return all
}
