package report

import (
	"fmt"
	"strings"

	"contend/scenarios"
)

// shownItems of each sort are in the table.
const shownItems = 6

// editParts tell what became of the edits of a document, and how the first was
// lost.
func editParts(e *scenarios.EditReport) []part {
	p := part{heading: fmt.Sprintf("Edits: %d acknowledged, %d of them lost; %d recovered after a refusal; %d unexpected", e.Acknowledged, e.Lost, e.Recovered, e.Unexpected),
		columns: []column{{head: "round", unit: numbers}, {head: "edit"}, {head: "became"}, {head: "because"}},
		figures: []figure{
			{name: "edits acknowledged", value: e.Acknowledged, unit: numbers},
			{name: "edits lost", value: e.Lost, unit: numbers},
			{name: "edits recovered", value: e.Recovered, unit: numbers},
			{name: "edits unexpected", value: e.Unexpected, unit: numbers},
		}}
	shown := make(map[string]int)
	for _, item := range e.Items {
		if shown[item.Became]++; shown[item.Became] > shownItems {
			continue
		}
		because := map[string]string{"lost": "the store lost it: nothing was written over it", "recovered": "its editor tried again",
			"unexpected": "the final document holds it, though it was refused or nobody made it"}[item.Became]
		if item.By != "" {
			because = editOf(item.By) + " was written over it"
		}
		p.rows = append(p.rows, []any{item.Round, editOf(item.Token), item.Became, because})
	}
	if more := e.Lost + e.Recovered + e.Unexpected - len(p.rows); more > 0 {
		p.notes = append(p.notes, fmt.Sprintf("%d more; the json output lists the first of each sort.", more))
	}
	if len(p.rows) == 0 {
		p.notes = append(p.notes, "The final documents hold every acknowledged edit, and no other.")
	}
	if e.Story == nil {
		return []part{p}
	}
	return []part{p, storyPart(e.Story)}
}

// editOf shortens a token to editor and attempt.
func editOf(token string) string {
	if i := strings.LastIndex(token, "-c"); i >= 0 {
		return token[i+1:]
	}
	return token
}

// storyPart tells how an edit was lost, step by step.
func storyPart(s *scenarios.EditStory) part {
	p := part{heading: fmt.Sprintf("How an edit of round %d was lost", s.Round),
		columns: []column{{head: "who"}, {head: "does"}, {head: "sent ms", unit: instants}, {head: "answered ms", unit: instants}}}
	add := func(e scenarios.Saved, does string, sent, answered any) {
		p.rows = append(p.rows, []any{fmt.Sprintf("contender %d", e.Editor), does, sent, answered})
	}
	first, second := s.Lost, s.Over
	if second.Opened < first.Opened {
		first, second = second, first
	}
	add(first, "opens the document: "+ticked(first.Held), nil, first.Opened)
	add(second, "opens the document: "+ticked(second.Held), nil, second.Opened)
	add(s.Lost, fmt.Sprintf("saves it with item %d ticked, and is told that it is saved", s.Lost.Editor), s.Lost.Call, unlessNever(s.Lost.Return))
	told := "is told that it is saved"
	if !s.Over.Told {
		told = "gets no answer"
	}
	add(s.Over, fmt.Sprintf("saves over it the document as opened, with item %d ticked, and %s", s.Over.Editor, told), s.Over.Call, unlessNever(s.Over.Return))
	holds := "no edit"
	if len(s.Holds) > 0 {
		var names []string
		for _, token := range s.Holds {
			names = append(names, editOf(token))
		}
		holds = strings.Join(names, ", ")
	}
	p.notes = append(p.notes, fmt.Sprintf("In the end the document holds %s. Item %d is not ticked, and contender %d does not know.", holds, s.Lost.Editor, s.Lost.Editor))
	return p
}

func ticked(n int) string {
	switch n {
	case 0:
		return "nothing is ticked"
	case 1:
		return "one item is ticked"
	default:
		return fmt.Sprintf("%d items are ticked", n)
	}
}
