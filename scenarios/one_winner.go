package scenarios

import (
	"slices"

	"contend/runner"
	"contend/scenarios/stats"
	"contend/targets"
)

// newVersion is what every contender of a one-winner round writes: one more
// than the seed's, or the first of an absent key.
const newVersion = 1

// oneWinner judges the contests in which one write of a round may win.
type oneWinner struct{}

// oneWon is what is kept of their rounds.
type oneWon struct{ Shared }

// findingOf is what every scenario keeps of a round.
func findingOf(r *runner.Round, seeded bool) Shared {
	f := Shared{Round: r.Number, Unseeded: !r.Seeded(), state: startOf(r, seeded)}
	for i := range r.Seeds {
		f.answered = max(f.answered, r.Seeds[i].Return)
		if reply := &r.Seeds[i].Reply; reply.Outcome != targets.OK && f.refusal == "" {
			f.refusal = reply.Text()
		}
	}
	for i := range r.Ops {
		f.answered = max(f.answered, r.Ops[i].Return)
	}
	return f
}

// Judge keeps of a round what its ruling needs.
func (oneWinner) Judge(r *runner.Round, oneCopy bool) Finding {
	f := &oneWon{findingOf(r, len(r.Seeds) > 0)}
	f.Evidence = evidenceOf(r)
	f.Evidence.ofFirst(meetingsOf(r, oneCopy))
	operations := f.state.operationsOf(r)
	f.won = countKind(operations, wrote)
	// Of the writes that certainly were not applied, those are kept that a read
	// shows to be stored all the same.
	stored := storedRefusals(operations)
	f.operations = slices.Clip(append(reduce(operations), stored...))
	return f
}

// storedRefusals gives the writes whose token a read shows although their reply
// says that they were not applied. The one refusal that reduce keeps may be among
// them; it is left to it.
func storedRefusals(operations []operation) []operation {
	var stored []operation
	for i := range operations {
		a := &operations[i]
		if a.kind != refused && a.kind != noEffect {
			continue
		}
		for j := range operations {
			if operations[j].kind == sawNew && operations[j].token == a.token {
				kept := *a
				kept.kind = noEffect
				stored = append(stored, kept)
				break
			}
		}
	}
	return stored
}

// Sweep is possible: a contender does nothing but its write.
func (oneWinner) Sweep(func(string) bool) error { return nil }

// Fates gives what became of every contender, by its last request.
func (oneWinner) Fates(r *runner.Round) []Fate { return lastFates(r) }

// Contested wants rivals of the winner at the guard.
func (f *Shared) Contested(_ *Ruling, t *Terms) (why, fix string) {
	if f.Evidence.Rivals < 0 && !f.Evidence.Untold {
		return "had no winner", ""
	}
	return t.enoughRivals(&f.Evidence)
}

// Rule says what the round, with its late reads, means.
func (f *oneWon) Rule() Ruling {
	r := Ruling{Winners: f.won}
	if f.Unseeded || r.void(&f.Shared, f.operations) {
		return r
	}
	r.Unread = !f.plain && !readBack(f.operations)
	b := r.believe(&f.Shared, f.operations, func(operations []operation) *anomaly {
		if b := f.state.forbidden(operations); b != nil {
			return b
		}
		return checkRound(operations)
	})
	if r.legal = b == nil; b != nil && f.state.forbidden(r.history) != nil {
		r.history = nil // not by the order of what was done
	}
	r.accuse(f.Round, b)
	r.tellGone(f.operations, f.plain)
	r.settle(&f.Shared, f.operations)
	return r
}

// void tells whether a read shows what nobody of this run wrote.
func (r *Ruling) void(f *Shared, operations []operation) bool {
	for _, all := range [][]operation{operations, f.lates} {
		for i := range all {
			if all[i].kind == sawForeign {
				r.Void = true
				return true
			}
		}
	}
	return false
}

// readBack tells whether the runner has read the final state.
func readBack(operations []operation) bool {
	return slices.ContainsFunc(operations, func(a operation) bool { return a.who == runner.ByRunner })
}

// forbidden looks for what no order could make legal: a record of another key or a
// changed one, a stored refusal, a record that vanished, a version that did not go
// up by exactly one.
func (s startState) forbidden(operations []operation) *anomaly {
	for i := range operations {
		read := &operations[i]
		if b := s.changed(operations, read); b != nil {
			return b
		}
		switch {
		case read.kind == sawNothing:
			return &anomaly{"record-vanished", s.wrote, read}
		case read.kind == sawNew:
			writer, possible := writerOf(operations, read)
			if !possible {
				return &anomaly{"refused-but-applied", writer, read}
			}
			if read.version != newVersion {
				return &anomaly{"version-jump", writer, read}
			}
		}
	}
	return nil
}

// writerOf finds the write whose token was read, and whether it can have been
// applied. The write of a late token may not have been kept: it was one that was
// refused, or one of more than two that were accepted. Then the accepted write
// stands for it.
func writerOf(operations []operation, read *operation) (writer *operation, possible bool) {
	wins := 0
	var accepted *operation
	for i := range operations {
		a := &operations[i]
		if a.kind == wrote {
			wins, accepted = wins+1, a
		}
		if a.token != read.token || a.isRead() {
			continue
		}
		if a.kind == wrote || a.kind == indeterminate {
			return a, true
		}
		writer = a
	}
	if writer == nil {
		return accepted, wins > 1
	}
	return writer, false
}

// settle counts the winners, and the unknown outcomes that the reads resolve: one
// whose token was read was applied; none was where the read-back and the late read
// both show the state before any write. Where another's token stands, it may have
// been applied and written over.
func (r *Ruling) settle(f *Shared, operations []operation) {
	tokens := make(map[string]bool)
	back, late, untouched := false, false, true
	note := func(a *operation) {
		if !a.isRead() {
			return
		}
		if a.kind == sawNew {
			tokens[a.token] = true
		}
		untouched = untouched && a.kind == sawOld
		back, late = back || a.who == runner.ByRunner && !a.late, late || a.late
	}
	for i := range operations {
		note(&operations[i])
	}
	for i := range f.lates {
		note(&f.lates[i])
	}
	untouched = untouched && back && late && f.won == 0
	for i := range operations {
		switch {
		case operations[i].kind != indeterminate:
		case tokens[operations[i].token]:
			r.Winners++
			if operations[i].outcome == targets.Unknown {
				r.Settled++
			}
		case !untouched:
			r.Unsettled++
		}
	}
}

// ReadLate takes a late read into account. One that shows what the read-back
// showed of a contender's record adds nothing, and is not kept.
func (f *oneWon) ReadLate(e *runner.Exchange) {
	a, ok := f.state.operationOf(e)
	if !ok {
		return
	}
	a.late, f.readOnce = true, true
	if len(f.lates) == 0 && a.kind == sawNew {
		for i := range f.operations {
			b := &f.operations[i]
			if (b.kind == sawNew || f.plain && b.kind == wrote) && b.token == a.token && b.version == a.version && sameBody(a.body, b.body) {
				return
			}
		}
	}
	f.addLate(a)
}

// mostLates is how many late reads of a round are kept: the first, which tell how
// old a stale state was, and the last two.
const mostLates = 8

func (f *Shared) addLate(a operation) {
	if len(f.lates) == mostLates {
		f.lates = slices.Delete(f.lates, mostLates-3, mostLates-2)
	}
	f.lates = append(f.lates, a)
}

// WinnerRank is the winner's place in the order of sending, from 1.
type WinnerRank struct {
	Median       int     `json:"median"`
	Max          int     `json:"max"`
	FirstSentWon float64 `json:"first_sent_won"` // share of the rounds
}

// Detail tells the winner's place in the order of sending: a store that always
// serves the first request sent was hardly contended for.
func (oneWinner) Detail(all []Finding) Detail {
	var ranks []int
	first := 0
	for _, kept := range all {
		if rank := kept.Common().Evidence.WinnerRank; rank > 0 {
			ranks = append(ranks, rank)
			if rank == 1 {
				first++
			}
		}
	}
	if len(ranks) == 0 {
		return Detail{}
	}
	return Detail{WinnerRank: &WinnerRank{*stats.Median(ranks), slices.Max(ranks), float64(first) / float64(len(ranks))}}
}
