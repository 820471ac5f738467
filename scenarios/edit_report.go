package scenarios

import "time"

// EditReport is what became of the edits, over all rounds.
type EditReport struct {
	Guard        string `json:"guard"`
	OnConflict   string `json:"on_conflict"`
	Acknowledged int    `json:"acknowledged"`
	Recovered    int    `json:"recovered"`  // of them after a refusal
	Lost         int    `json:"lost"`       // of them not in the final document
	Unexpected   int    `json:"unexpected"` // in the final document, though refused, or made by nobody
	// Items are the first of those that are lost, recovered or unexpected.
	Items []EditedItem `json:"items"`
	Story *EditStory   `json:"story,omitempty"`
}

// EditedItem is an item that was lost, recovered or unexpected.
type EditedItem struct {
	Round  int    `json:"round"`
	Became string `json:"became"` // lost, recovered, unexpected
	Token  string `json:"token"`
	By     string `json:"by,omitempty"` // of a lost one: the token of what was written over it
}

// EditStory is how the first edit was lost that another was written over.
type EditStory struct {
	Round int      `json:"round"`
	Lost  Saved    `json:"lost"`
	Over  Saved    `json:"over"`
	Holds []string `json:"holds"` // the tokens of the final document
}

// Saved is a write of an editor. Times are since the start of the run.
type Saved struct {
	Editor int           `json:"editor"`
	Opened time.Duration `json:"opened_ns"` // when it had read the document
	Call   time.Duration `json:"call_ns"`
	Return time.Duration `json:"return_ns"`
	Held   int           `json:"held"` // edits in the document as it was read
	Told   bool          `json:"told"` // that it is saved
}

func savedOf(e *edit) Saved {
	return Saved{Editor: int(e.who), Opened: e.opened, Call: e.call, Return: e.ret, Held: max(0, len(e.holds)-1), Told: e.kind == wrote}
}

// shownItems of each sort are listed; all are counted.
const shownItems = 20

// Detail tells what became of the edits.
func (s *LostUpdate) Detail(all []Finding) Detail {
	p := EditReport{Guard: s.Guard, OnConflict: s.OnConflict, Items: []EditedItem{}}
	add := func(n *int, item EditedItem) {
		if *n++; *n <= shownItems {
			p.Items = append(p.Items, item)
		}
	}
	for _, kept := range all {
		k := kept.(*edited)
		f := &k.Shared
		a := s.account(f, k)
		p.Acknowledged += a.acknowledged
		for _, l := range a.lost {
			item := EditedItem{Round: f.Round, Became: "lost", Token: l.edit.token}
			if l.by != nil {
				item.By = l.by.token
			}
			add(&p.Lost, item)
			if l.by != nil && p.Story == nil && len(l.edit.holds) > 0 {
				p.Story = &EditStory{Round: f.Round, Lost: savedOf(l.edit), Over: savedOf(l.by), Holds: a.final.edits}
			}
		}
		for _, e := range a.recovered {
			add(&p.Recovered, EditedItem{Round: f.Round, Became: "recovered", Token: e.token})
		}
		for _, token := range a.unexpected {
			add(&p.Unexpected, EditedItem{Round: f.Round, Became: "unexpected", Token: token})
		}
	}
	return Detail{Edits: &p}
}
