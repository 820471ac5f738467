package runner

import "contend/targets"

// Cost is how many requests a plan sends when everything goes well, and how many
// keys it writes.
type Cost struct {
	WarmUp    int // of connecting
	Controls  int
	EachRound int
	Rounds    int // 0: not known, the plan runs for a duration
	Late      int // of all rounds, and of the nonce
	Clean     int
	Keys      int
}

// Total is known only where the number of rounds is.
func (c Cost) Total() int { return c.WarmUp + c.Controls + c.Rounds*c.EachRound + c.Late + c.Clean }

// Cost counts, on a target that describes itself so.
func (p Plan) Cost(d targets.Description) Cost {
	each := func(contest Contest) int {
		return len(contest.Seeds("")) + p.Contenders*contest.Requests() + len(places(contest, ""))
	}
	keys := len(places(p.Race, ""))
	c := Cost{WarmUp: warmUp(d.WarmUp, p.Contenders+ownSessions), EachRound: each(p.Race), Rounds: p.Rounds, Late: p.Rounds * keys, Keys: p.Rounds * keys}
	if !p.SkipControls {
		c.Controls = 1 + p.Contenders
		c.Keys++
		c.Late++
		if !p.Unguarded {
			c.Controls += sequentialCost()
			c.Keys += 2
		}
		if p.Twin != nil {
			c.Controls += p.ControlRounds * each(p.Twin)
			c.Keys += p.ControlRounds * len(places(p.Twin, ""))
		}
	}
	// A volatile target forgets by itself.
	if !d.Volatile {
		c.Clean = c.Keys + d.Lists
	}
	return c
}

// sequentialCost counts the requests of the sequential checks.
func sequentialCost() (n int) {
	store := honest{}
	targets.CheckSequential("", func(_ int, op targets.Op) targets.Reply {
		n++
		return targets.Reply{Outcome: store.do(op), Record: store[op.Key]}
	})
	return n
}

// honest is a store that keeps its promises when nothing runs beside it: the
// sequential checks go all their way on it.
type honest map[string]targets.Record

func (h honest) do(op targets.Op) targets.Outcome {
	held, exists := h[op.Key]
	switch {
	case op.Kind == targets.Delete:
		delete(h, op.Key)
	case op.Kind == targets.Read && !exists:
		return targets.Missing
	case op.Kind == targets.Read:
	case op.If.Guard == targets.IfAbsent && exists, op.If.Guard == targets.IfVersion && held.Version != op.If.Counter:
		return targets.Conflict
	default:
		h[op.Key] = op.Value
	}
	return targets.OK
}
