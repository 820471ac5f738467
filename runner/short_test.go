package runner

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"contend/targets"
)

// An interrupt may find contenders before their first request, in the last round that
// was run, be it of the twin; in no other round can one be missing.
func TestRoundThatLacksContenders(t *testing.T) {
	round := func(number int, label string, contenders int) *Round {
		r := &Round{Number: number, Key: "contend-01TEST-" + label}
		for i := range contenders {
			r.Ops = append(r.Ops, Exchange{Contender: i, Return: time.Millisecond, Reply: targets.Reply{Outcome: targets.Missing},
				Op: targets.Op{Kind: targets.Read, Key: r.Key}})
		}
		return r
	}
	whole, short := round(1, "r1", 2), round(1, "r1", 1)
	for name, c := range map[string]struct {
		twin        *Round
		rounds      []*Round
		interrupted bool
		fails       bool
	}{
		"the last round of an interrupted run":   {nil, []*Round{whole, round(2, "r2", 1)}, true, false},
		"the twin of an interrupted run":         {round(1, "t1", 1), nil, true, false},
		"the last round of one that was not":     {nil, []*Round{whole, round(2, "r2", 1)}, false, true},
		"a round that another follows":           {nil, []*Round{short, round(2, "r2", 2)}, true, true},
		"the twin of a run that raced":           {round(1, "t1", 1), []*Round{whole}, true, true},
		"more contenders than the run has":       {nil, []*Round{round(1, "r1", 3)}, true, true},
		"a run in which none of them is missing": {round(1, "t1", 2), []*Round{whole}, false, false},
	} {
		var b bytes.Buffer
		rec := NewRecorder(&b, map[string]any{"params": map[string]any{"contenders": 2}})
		controls := &Controls{}
		if c.twin != nil {
			controls.Twin = []Round{*c.twin}
		}
		rec.Observe(Event{Controls: controls})
		for _, r := range c.rounds {
			rec.Observe(Event{Round: r})
		}
		if err := rec.Finish(End{Rounds: len(c.rounds), Interrupted: c.interrupted}, nil); err != nil {
			t.Fatal(err)
		}
		_, err := Replay(&b, func(json.RawMessage) (Shown, error) { return Shown{Observer: unseen{}}, nil })
		if fails := err != nil; fails != c.fails || fails && !strings.Contains(err.Error(), "where the run had 2") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
