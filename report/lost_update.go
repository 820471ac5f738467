package report

import (
	"fmt"
	"math"
	"strings"
	"time"

	"contend/scenarios"
)

// shownItems of each sort are in the table.
const shownItems = 6

// editBlocks tell what became of the edits of a document, and how the first was
// lost.
func (r Result) editBlocks() []block {
	p := r.Detail.Edits
	b := block{heading: fmt.Sprintf("Edits: %d acknowledged, %d of them lost; %d recovered after a refusal; %d unexpected", p.Acknowledged, p.Lost, p.Recovered, p.Unexpected),
		table: table{header: []string{"round", "edit", "became", "because"}, right: []bool{true, false, false, false}}}
	shown := make(map[string]int)
	for _, item := range p.Items {
		if shown[item.Became]++; shown[item.Became] > shownItems {
			continue
		}
		because := map[string]string{"lost": "the store lost it: nothing was written over it", "recovered": "its editor tried again",
			"unexpected": "the final document holds it, though it was refused or nobody made it"}[item.Became]
		if item.By != "" {
			because = editOf(item.By) + " was written over it"
		}
		b.table.rows = append(b.table.rows, []string{fmt.Sprint(item.Round), editOf(item.Token), item.Became, because})
	}
	if more := p.Lost + p.Recovered + p.Unexpected - len(b.table.rows); more > 0 {
		b.text = append(b.text, fmt.Sprintf("%d more; the json output lists the first of each sort.", more))
	}
	if len(b.table.rows) == 0 {
		b.table = table{}
		b.text = append(b.text, "The final documents hold every acknowledged edit, and no other.")
	}
	if p.Story == nil {
		return []block{b}
	}
	return []block{b, storyBlock(p.Story)}
}

// editOf shortens a token to editor and attempt.
func editOf(token string) string {
	if i := strings.LastIndex(token, "-c"); i >= 0 {
		return token[i+1:]
	}
	return token
}

// storyBlock tells how an edit was lost, step by step.
func storyBlock(s *scenarios.EditStory) block {
	b := block{heading: fmt.Sprintf("How an edit of round %d was lost", s.Round),
		table: table{header: []string{"who", "does", "sent ms", "answered ms"}, right: []bool{false, false, true, true}}}
	add := func(e scenarios.Saved, does, sent string, answered time.Duration) {
		at := dash
		if answered < math.MaxInt64 {
			at = sinceStart(answered)
		}
		b.table.rows = append(b.table.rows, []string{fmt.Sprintf("contender %d", e.Editor), does, sent, at})
	}
	first, second := s.Lost, s.Over
	if second.Opened < first.Opened {
		first, second = second, first
	}
	add(first, "opens the document: "+ticked(first.Held), dash, first.Opened)
	add(second, "opens the document: "+ticked(second.Held), dash, second.Opened)
	add(s.Lost, fmt.Sprintf("saves it with item %d ticked, and is told that it is saved", s.Lost.Editor), sinceStart(s.Lost.Call), s.Lost.Return)
	told := "is told that it is saved"
	if !s.Over.Told {
		told = "gets no answer"
	}
	add(s.Over, fmt.Sprintf("saves over it the document as opened, with item %d ticked, and %s", s.Over.Editor, told), sinceStart(s.Over.Call), s.Over.Return)
	holds := "no edit"
	if len(s.Holds) > 0 {
		var names []string
		for _, token := range s.Holds {
			names = append(names, editOf(token))
		}
		holds = strings.Join(names, ", ")
	}
	b.text = append(b.text, fmt.Sprintf("In the end the document holds %s. Item %d is not ticked, and contender %d does not know.", holds, s.Lost.Editor, s.Lost.Editor))
	return b
}

func sinceStart(d time.Duration) string { return fmt.Sprintf("%.3f", float64(d)/1e6) }

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
