package scenarios

import (
	"testing"
	"time"

	"contend/runner"
	"contend/targets"
)

// A round is counted by its offset and by what became of it: by how far apart its
// guarded requests were sent, wherever that is.
func TestSweepMapCountsTwice(t *testing.T) {
	sweep := runner.Sweep{Most: 2 * ms, Steps: 5}
	m := sweepMap(sweep, []swept{
		{offset: -2 * ms, sent: -2*ms - ms/2 + 1, sentKnown: true, secondWon: true},
		{offset: -2 * ms, sent: -2*ms - ms/2 - 1, sentKnown: true, secondWon: true},           // further than any
		{offset: -ms, sentKnown: false, violated: true},                                       // one sent none
		{offset: ms, sent: 2*ms - ms/2 + 1, sentKnown: true, violated: true, secondWon: true}, // late
		{offset: ms, sent: ms, sentKnown: true, uncertain: true, secondWon: true},
		{offset: ms, sent: ms - 1, sentKnown: true},
		{offset: 2 * ms, sent: -9, sentKnown: true, violated: true, uncertain: true},
	})
	type counts struct{ rounds, uncertain, violated, won int }
	of := func(s OffsetShares) counts { return counts{s.Rounds, s.Uncertain, s.Violated, s.SecondWon} }
	for i, want := range []struct{ asked, sent counts }{
		{counts{2, 0, 0, 2}, counts{1, 0, 0, 1}},
		{counts{1, 0, 1, 0}, counts{}},
		{counts{}, counts{1, 0, 1, 0}},
		{counts{3, 1, 1, 1}, counts{2, 1, 0, 0}},
		{counts{1, 0, 1, 0}, counts{1, 0, 1, 1}},
	} {
		if row := m.Rows[i]; of(row.Asked) != want.asked || of(row.Sent) != want.sent || row.Offset != time.Duration(i-2)*ms {
			t.Errorf("%s: %+v and %+v, want %+v", row.Offset, row.Asked, row.Sent, want)
		}
	}
	if got := m.Rows[3]; *got.Asked.ViolatedShare != 0.5 || *got.Asked.SecondWonShare != 0.5 || *got.SentApart != ms {
		t.Errorf("%+v, sent apart %s", got.Asked, got.SentApart)
	}
	if got := m.Rows[2]; got.Asked.ViolatedShare != nil || got.SentApart != nil {
		t.Errorf("no round, and %+v", got)
	}
	if m.Elsewhere != 2 || *m.From != -ms || *m.To != 2*ms || *m.SentFrom != -9 || *m.SentTo != 2*ms-ms/2+1 {
		t.Errorf("%d elsewhere, violated from %s to %s, sent from %s to %s", m.Elsewhere, *m.From, *m.To, *m.SentFrom, *m.SentTo)
	}
}

// What a round of a sweep is known for.
func TestSweptRounds(t *testing.T) {
	offset := 3 * ms
	roundSwept := func(owner int, change func(r *runner.Round), ops ...op) *swept {
		r := roundOf(1, owner, ops...)
		r.Offset = &offset
		change(r)
		return sweptOf(r)
	}
	as := func(*runner.Round) {}
	ok, lost, unknown := op{targets.OK, ms, 9 * ms, 1}, op{targets.Conflict, 4 * ms, 8 * ms, 1}, op{targets.Unknown, 4 * ms, 8 * ms, 1}
	for name, c := range map[string]struct {
		got  *swept
		want swept
	}{
		"the first won":        {roundSwept(0, as, ok, lost), swept{sent: 3 * ms, sentKnown: true}},
		"the second won":       {roundSwept(1, as, lost, ok), swept{sent: -3 * ms, sentKnown: true, secondWon: true}},
		"read back":            {roundSwept(1, as, lost, unknown), swept{sentKnown: true, secondWon: true}},
		"unknown":              {roundSwept(0, as, ok, unknown), swept{sent: 3 * ms, sentKnown: true}},
		"refused at a read":    {roundSwept(0, func(r *runner.Round) { r.Ops[1].Guard = 0 }, ok, lost), swept{}},
		"another key":          {roundSwept(0, func(r *runner.Round) { r.Ops[1].Op.Key += "-work" }, ok, ok), swept{}},
		"by the relay's clock": {roundSwept(0, relayed(1000, 1002.5), ok, lost), swept{sent: 5 * ms / 2, sentKnown: true}},
		"untold by the relay":  {roundSwept(0, relayed(1000, 0), ok, lost), swept{}},
	} {
		c.want.offset = offset
		if *c.got != c.want {
			t.Errorf("%s: %+v, want %+v", name, *c.got, c.want)
		}
	}
	if sweptOf(roundOf(1, 0, ok, lost)) != nil {
		t.Error("a round of no sweep is taken for one")
	}
}

// relayed lets the two writes begin at these ms by the clock next to the store.
func relayed(first, second float64) func(*runner.Round) {
	return func(r *runner.Round) {
		r.Relayed = &runner.Relayed{Uncertainty: ms}
		for i, began := range []float64{first, second} {
			if began > 0 {
				r.Ops[i].Reply.Server = targets.Span{Began: began, Ended: began + 20}
			}
		}
	}
}
