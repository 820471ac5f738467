package runner

import (
	"context"
	"math/rand/v2"
	"strconv"
	"time"

	"contend/targets"
)

// Contender is one of those that are released at once. Its methods are for its
// own goroutine.
type Contender struct {
	Number int
	Round  *Round // its key and seeds; not its exchanges

	run      *Runner
	member   *member
	starts   chan start
	start    start
	standing bool      // at the gate, or on its way there
	meet     func()    // pass
	instant  time.Time // before which nothing is to reach the store; zero: now
	ops      []Exchange
	writes   int
}

// start is what a contender needs to know of a round.
type start struct {
	over    context.Context // ended: the run is interrupted
	contest Contest
	round   *Round
}

// contend runs the contender's part of every round. It is one goroutine for the
// whole run: a fresh one would grow its stack in the middle of the race.
func (c *Contender) contend() {
	for s := range c.starts {
		c.start, c.Round, c.ops, c.writes, c.standing = s, s.round, c.ops[:0], 0, true
		s.contest.Contend(c)
		c.pass()
		c.run.meetings.leave()
	}
}

// pass waits at the gate of the round, where that has not been passed yet. The
// contender comes there with its first op, so that it can make it ready before; with
// whatever depends on the time; or in the end.
func (c *Contender) pass() {
	if !c.standing {
		return
	}
	c.standing = false
	c.instant = c.run.meetings.wait("")
	c.hold(c.run.strategy.apart(c.Number), func(d time.Duration) { wait(c.start.over, d) })
	// A round of a sweep holds its offset: it is written down.
	c.hold(c.Round.delay(c.Number), waitExactly)
}

// hold releases the contender so long after the others, or as soon as the run is
// interrupted, if wait hears that.
func (c *Contender) hold(d time.Duration, wait func(time.Duration)) {
	if d <= 0 {
		return
	}
	began := time.Now()
	wait(d)
	if !c.instant.IsZero() {
		c.instant = c.instant.Add(min(d, time.Since(began)))
	}
}

// Read asks for the round's key.
func (c *Contender) Read() *targets.Reply {
	return c.Do(targets.Op{Kind: targets.Read, Key: c.Round.Key, Collection: c.Round.Collection})
}

// Write stores a record with a token of its own and the given version.
func (c *Contender) Write(version int64, cond targets.Condition) *targets.Reply {
	record := c.Record()
	record.Version = version
	return c.Do(targets.Op{Kind: targets.Write, Key: c.Round.Key, Collection: c.Round.Collection, If: cond, Value: record})
}

// Record is one to be written: with a token of its own, our time, and the run's
// body.
func (c *Contender) Record() targets.Record {
	c.writes++
	return targets.Record{Token: Token(c.Round.Key, c.Number, c.writes), UpdatedAt: time.Now().UTC(), Body: c.run.body}
}

// Sleep waits; it gives false, at once, where the run is interrupted: the
// contender is then to leave the round.
func (c *Contender) Sleep(d time.Duration) bool {
	c.pass()
	return wait(c.start.over, d)
}

// Contenders is how many there are.
func (c *Contender) Contenders() int { return len(c.run.contenders) }

// Elapsed is the time since the start of the run, on the clock of the exchanges.
func (c *Contender) Elapsed() time.Duration {
	c.pass()
	return time.Since(c.run.start)
}

// Over tells whether the run is interrupted.
func (c *Contender) Over() bool { return c.start.over.Err() != nil }

// Random is the contender's own source of chance in this round.
func (c *Contender) Random() *rand.Rand {
	return rand.New(rand.NewPCG(c.run.plan.Seed+uint64(c.Round.Number), uint64(c.Number)))
}

// Do sends one op under the run's timeout and writes it down. The reply stays
// valid until the contender's next one.
func (c *Contender) Do(op targets.Op) *targets.Reply {
	c.ops = append(c.ops, Exchange{Contender: c.Number, Op: op})
	e := &c.ops[len(c.ops)-1]
	if c.standing && op.Kind == targets.Write && c.stage(e) {
		c.pass()
		return &e.Reply
	}
	c.pass()
	e.Op.NotBefore = c.instant
	c.run.exchange(c.member.session, e)
	return &e.Reply
}

// stage makes a write ready, meets the others, and goes on. It does nothing, and gives
// false, where the session or the release has no such halt.
func (c *Contender) stage(e *Exchange) bool {
	stager, able := c.member.session.(targets.Stager)
	how := c.run.strategy.ahead()
	if !able || how == "" {
		return false
	}
	c.run.stage(stager, e, how, c.meet)
	return true
}

// Barrier holds the contender until all that are still in the round have come
// to the barrier of this name.
func (c *Contender) Barrier(name string) {
	c.pass()
	c.instant = c.run.meetings.wait(name)
}

// Token names a write: its key (which names the run and the round), the
// contender and its attempt, from 1.
func Token(key string, contender, attempt int) string {
	var room [96]byte
	b := append(room[:0], key...)
	b = append(b, "-c"...)
	b = strconv.AppendInt(b, int64(contender), 10)
	b = append(b, "-a"...)
	b = strconv.AppendInt(b, int64(attempt), 10)
	return string(b)
}
