package runner

import (
	"context"
	"math/rand/v2"
	"strconv"
	"sync"
	"time"

	"contend/targets"
)

// Contender is one of those that are let go at once. Its methods are for its
// own goroutine.
type Contender struct {
	Number int
	Round  *Round // its key and seeds; not its exchanges

	run      *Runner
	session  targets.Session
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
	gates   *barriers
	gate    chan struct{} // closed to let all go
	instant *time.Time    // set before the gate is closed
}

// contend runs the contender's part of every round. It is one goroutine for the
// whole run: a fresh one would grow its stack in the middle of the race.
func (c *Contender) contend() {
	for s := range c.starts {
		c.start, c.Round, c.ops, c.writes, c.standing = s, s.round, c.ops[:0], 0, true
		s.contest.Contend(c)
		c.pass()
		s.gates.leave()
		c.run.done <- struct{}{}
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
	c.run.ready <- struct{}{}
	<-c.start.gate
	c.instant = *c.start.instant
	c.hold(time.Duration(c.Number)*c.run.plan.Stagger, time.Sleep)
	c.hold(c.Round.delay(c.Number), waitExactly)
}

// hold releases the contender so long after the others.
func (c *Contender) hold(d time.Duration, wait func(time.Duration)) {
	if d <= 0 {
		return
	}
	wait(d)
	if !c.instant.IsZero() {
		c.instant = c.instant.Add(d)
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
	stager, stages := c.session.(targets.Stager)
	if stages && c.standing && op.Kind == targets.Write && c.run.server.Lead == 0 {
		c.run.stage(stager, e, c.run.plan.Release, c.meet)
		c.pass()
		return &e.Reply
	}
	c.pass()
	e.Op.NotBefore = c.instant
	c.run.exchange(c.session, e)
	return &e.Reply
}

// Barrier holds the contender until all that are still in the round have come
// to the barrier of this name.
func (c *Contender) Barrier(name string) {
	c.pass()
	c.instant = c.start.gates.wait(name)
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

// follow notes that the exchange began after an instant, where the clock was too
// coarse to show it.
func (e *Exchange) follow(instant time.Duration) {
	e.Call = max(e.Call, instant+1)
	e.Began = max(e.Began, e.Call)
	e.Sent = max(e.Sent, e.Began)
	if e.Guard > 0 {
		e.Guard = max(e.Guard, e.Sent)
	}
	e.Return = max(e.Return, e.Sent, e.Guard)
}

// shift moves the exchange to another clock.
func (e *Exchange) shift(by time.Duration) {
	e.Call, e.Began, e.Sent, e.Return = e.Call+by, e.Began+by, e.Sent+by, e.Return+by
	if e.Guard > 0 {
		e.Guard += by
	}
}

// barriers are the named barriers of one round.
type barriers struct {
	lead   time.Duration
	mu     sync.Mutex
	active int // contenders that have not left the round
	named  map[string]*barrier
}

type barrier struct {
	arrived int
	open    bool
	gate    chan struct{}
	instant time.Time // of those that were let go
}

// wait gives the instant before which nothing is to reach the store.
func (b *barriers) wait(name string) time.Time {
	b.mu.Lock()
	if b.named == nil {
		b.named = make(map[string]*barrier)
	}
	at := b.named[name]
	if at == nil {
		at = &barrier{gate: make(chan struct{})}
		b.named[name] = at
	}
	at.arrived++
	at.openIf(at.arrived >= b.active, b.lead)
	b.mu.Unlock()
	<-at.gate
	return at.instant
}

func (b *barriers) leave() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.active--
	for _, at := range b.named {
		at.openIf(at.arrived >= b.active, b.lead)
	}
}

func (b *barrier) openIf(all bool, lead time.Duration) {
	if all && !b.open {
		b.open = true
		b.instant = instantAhead(lead)
		close(b.gate)
	}
}

// instantAhead is the instant that contenders of a relayed target are given in
// common; zero where the target does not relay.
func instantAhead(lead time.Duration) time.Time {
	if lead == 0 {
		return time.Time{}
	}
	return time.Now().Add(lead)
}
