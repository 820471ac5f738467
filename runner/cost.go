package runner

import (
	"time"

	"contend/targets"
)

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
	each := func(contest Contest) int { return requestsOf(contest, "", p.Contenders) }
	keys := len(keysOf(p.Race, ""))
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
			c.Keys += p.ControlRounds * len(keysOf(p.Twin, ""))
		}
	}
	// A volatile target forgets by itself.
	if !d.Volatile {
		c.Clean = c.Keys + d.Lists
	}
	return c
}

// mostFollowed rounds of a plan are followed one by one; the rest go on as fast as the
// limits let them in the long run.
const mostFollowed = 10_000

// Takes is how long a plan takes by its limits alone, on a target that describes
// itself so and answers at once: from the first request to the last. Of a plan that
// runs for a duration it is the time of the controls.
func (p Plan) Takes(d targets.Description) time.Duration {
	c, n := newCourse(p.Limits), p.Contenders
	c.spend(warmUp(d.WarmUp, n+ownSessions))
	fixed := 0 // keys of the controls
	if !p.SkipControls {
		fixed++
		if !p.Unguarded {
			fixed += 2
			c.batches(sequentialCost(), 1)
		}
		c.spend(1)
		c.spend(n)
		for range p.ControlRounds {
			if p.Twin != nil {
				c.round(p, p.Twin, p.Stagger)
				fixed += len(keysOf(p.Twin, ""))
			}
		}
	}
	rounds := min(p.Rounds, mostFollowed)
	for i := range rounds {
		swept := Round{Offset: p.Sweep.Offset(i + 1)}
		c.round(p, p.Race, p.Stagger+swept.apart())
	}
	keys := len(keysOf(p.Race, ""))
	if rounds > 0 {
		c.now = c.now.Add(p.Late)
	}
	c.batches(rounds*keys, n)
	if !p.SkipControls {
		c.spend(1) // the nonce
	}
	each := p.Cost(d).EachRound + keys
	if !d.Volatile {
		c.batches(fixed+rounds*keys, n)
		c.batches(d.Lists, 1)
		each += keys
	}
	took := c.took()
	rest := time.Duration(0)
	for _, l := range p.Limits {
		rest = max(rest, time.Duration(float64(p.Rounds-rounds)*float64(each)/l.Requests*float64(l.Per)))
	}
	return took + rest
}

// round follows Runner.round.
func (c *course) round(p Plan, contest Contest, stagger time.Duration) {
	seeds, reads := len(contest.Seeds("")), len(keysOf(contest, ""))
	c.await(requestsOf(contest, "", p.Contenders))
	if timed, ok := contest.(Timed); ok {
		c.now = timed.Begin(c.now)
	}
	c.batches(seeds, 1)
	c.spendSpread(p.Contenders, contest.Requests(), stagger)
	c.batches(reads, 1)
}

// requestsOf counts those of a round in which nothing has to be asked again.
func requestsOf(contest Contest, key string, contenders int) int {
	return len(contest.Seeds(key)) + contenders*contest.Requests() + len(keysOf(contest, key))
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
