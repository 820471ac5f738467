package runner

import (
	"container/heap"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"contend/targets"
)

// Asking is what a watch asks of its keys: a function of what was seen of each.
type Asking interface {
	// Next says what to ask of the key next and when, since its epoch; an instant
	// that is over means at once. ok is false where nothing more is to be asked.
	Next(g *Ghost) (op targets.Op, due time.Duration, ok bool)
	// Observe takes a reply into account.
	Observe(g *Ghost, e *Exchange)
}

// WatchPlan says what a watch does.
type WatchPlan struct {
	Setup
	Part     string        // sets the checks of a process apart from those of an earlier one
	Budget   int64         // requests at most, the removal of keys included; 0: no end
	Within   time.Duration // the watch is cut then; 0: it ends by itself
	Sessions int           // side by side
	Needs    targets.Needs // of its writes
	// Keep leaves the keys that are still asked about, for another run to go on
	// with; otherwise a watch that is cut removes them.
	Keep bool
	// Once asks each key a single time, with what follows from the reply, and ends.
	Once bool
}

// Watcher is one watch, with its sessions open.
type Watcher struct {
	crew
	plan    WatchPlan
	body    json.RawMessage
	asking  Asking
	journal Journal

	queue    schedule
	free     []int // members that nobody uses
	answers  chan reply
	wall     time.Time     // at start
	jumped   time.Duration // how far the wall clock has left the monotonic one
	watched  []*Ghost
	unserved int    // requests since the last that was served
	refusal  string // the first of those
	removal  int    // requests that removing what is there will take
	// unwritten: the journal failed, so that what is closed may be open on disk.
	unwritten bool
}

// reply is an exchange that has come back, its times since the start of the
// watcher; or, without a key, word that the session can be used again.
type reply struct {
	ghost    *Ghost
	member   int
	exchange Exchange
}

// OpenWatch connects to the target and opens the sessions. Nothing is written
// yet. Close ends it.
func OpenWatch(ctx context.Context, target targets.Target, plan WatchPlan) (*Watcher, error) {
	w := &Watcher{crew: newCrew(ctx, target, &plan.Setup), plan: plan}
	w.wall = w.start.Round(0)
	w.body = body(rand.New(rand.NewPCG(plan.Seed, plan.Seed>>1)), plan.ValueSize)
	numbers := make([]int, max(plan.Sessions, ownSessions))
	for i := range numbers {
		numbers[i] = i
	}
	needs := plan.Needs
	needs.Sessions = len(numbers)
	if err := w.open(ctx, needs, numbers...); err != nil {
		return nil, err
	}
	return w, nil
}

// Close ends the sessions.
func (w *Watcher) Close() { w.close() }

// Start is the wall clock at the start of the watch: the epoch of its new keys.
func (w *Watcher) Start() time.Time { return w.wall }

// Run makes the controls, creates the fresh keys and asks about them and about
// those that were taken up from an earlier run, until nothing is left to ask or
// ctx ends. At last it removes the keys that it is done with. journal may be nil.
func (w *Watcher) Run(ctx context.Context, asking Asking, fresh, taken []*Ghost, journal Journal, observer Observer) Summary {
	w.asking, w.journal = asking, journal
	w.showTo(observer)
	w.watched = append(append(w.watched, fresh...), taken...)
	w.answers = make(chan reply)
	for i := range w.members {
		w.free = append(w.free, i)
	}
	limited, cancel := ctx, context.CancelFunc(func() {})
	if w.plan.Within > 0 {
		limited, cancel = context.WithDeadline(ctx, w.start.Add(w.plan.Within))
	}
	controls := w.controls(limited)
	cancel()
	w.show(Event{Controls: controls})
	for _, g := range fresh {
		// The creates are spread from here on.
		g.Terms.Offset += time.Since(w.start)
	}
	if journal != nil && len(fresh) > 0 {
		w.fail(journal.Intend(fresh))
	}
	for _, g := range w.watched {
		if !g.Closed && w.offset(g)+time.Since(w.start) < g.latest() {
			g.State, g.Closed, g.Why = GhostAbandoned, true, "our clock was set back while nobody watched"
		}
	}
	for _, g := range w.watched {
		w.show(Event{Ghost: g})
	}
	w.removal += w.target.Describe().Lists
	for _, g := range w.watched {
		if g.Created != nil {
			w.removal++
		}
		w.enqueue(g, nil)
	}
	w.loop(ctx)
	w.summary.Interrupted = ctx.Err() != nil
	if w.unserved >= len(w.members)*unservedRounds && w.summary.Stopped == nil {
		w.summary.Stopped = unserved(fmt.Errorf("the target served none of the last %d requests", w.unserved), w.refusal)
	}
	w.summary.Left = w.clean(controls)
	return w.end()
}

// fail ends the watch: what cannot be written down must not be done.
func (w *Watcher) fail(err error) {
	w.unwritten = w.unwritten || err != nil
	if err != nil && w.summary.Stopped == nil {
		w.summary.Stopped = fmt.Errorf("the store of results: %w", err)
	}
}

// offset is how long after the key's epoch the watcher started.
func (w *Watcher) offset(g *Ghost) time.Duration { return w.wall.Sub(g.Epoch.Round(0)) }

// latest is the last instant at which the key is known to have been asked.
func (g *Ghost) latest() time.Duration {
	last := time.Duration(0)
	for _, s := range []*Observation{g.Created, g.Tried, g.LastBlocked, g.FirstFree, g.LastShown, g.FirstGone} {
		if s != nil {
			last = max(last, s.Return)
		}
	}
	return last
}

// controls makes the sequential checks, and lets every session read what one of
// them wrote.
func (w *Watcher) controls(ctx context.Context) *Controls {
	c := &Controls{Skipped: w.plan.SkipControls}
	if c.Skipped || ctx.Err() != nil {
		return c
	}
	do := func(session, contender int, op targets.Op) Exchange {
		e := Exchange{Contender: contender, Op: op}
		if w.spend(ctx, 1) != nil {
			e.Reply = targets.Reply{Outcome: targets.NotSent, Code: "interrupted"}
			return e
		}
		w.exchange(w.members[session].session, &e)
		w.count(&e)
		return e
	}
	c.sequential(w.key("s"), do)
	key := w.key("n")
	c.Nonce = append(c.Nonce, do(0, ByRunner, writeNonce(key, targets.Plain)))
	for i := range w.members {
		if ctx.Err() != nil {
			break
		}
		c.Nonce = append(c.Nonce, do(i, i, targets.Op{Kind: targets.Read, Key: key, Collection: targets.Plain}))
	}
	w.removal += 3
	return c
}

func (w *Watcher) key(label string) string { return w.plan.key(label) + w.plan.Part }

func (w *Watcher) count(e *Exchange) {
	w.summary.Requests += int64(e.Reply.Attempts)
	if w.unserved++; e.Reply.Outcome.Served() {
		w.unserved, w.refusal = 0, ""
	} else if w.refusal == "" {
		w.refusal = e.Reply.Text()
	}
}

// enqueue asks what is next of the key, after an exchange; nil: it is the first.
func (w *Watcher) enqueue(g *Ghost, after *Exchange) {
	op, due, ok := w.asking.Next(g)
	if !ok {
		return
	}
	g.Due = due
	if w.plan.Once {
		if after != nil && due > after.Return {
			return
		}
		due = min(due, time.Since(w.start)+w.offset(g))
	}
	if op.Kind == targets.Write {
		op.Value.Body = w.body
	}
	heap.Push(&w.queue, asked{due - w.offset(g), op, g})
}

// loop sends what is due, as many side by side as there are sessions, and takes
// the replies. Nothing is sent while a reply waits to be written down.
func (w *Watcher) loop(ctx context.Context) {
	var cut <-chan time.Time
	if w.plan.Within > 0 {
		cut = time.After(w.plan.Within - time.Since(w.start))
	}
	over, interrupted := false, ctx.Done()
	for {
		if over = over || w.summary.Stopped != nil; over && w.busy() == 0 || w.busy() == 0 && len(w.queue) == 0 {
			return
		}
		var due <-chan time.Time
		if !over && len(w.free) > 0 && len(w.queue) > 0 {
			if w.plan.Budget > 0 && w.sent()+int64(w.busy()+w.removal)+1 > w.plan.Budget {
				w.summary.Cut = fmt.Sprintf("the budget of %d requests was spent", w.plan.Budget)
				over = true
				continue
			}
			delay, _ := w.budget.delay(time.Now(), 1)
			wait := max(w.queue[0].due-time.Since(w.start), delay)
			if wait <= 0 {
				select {
				case r := <-w.answers:
					w.take(&r)
				default:
					w.send()
				}
				continue
			}
			timer := time.NewTimer(wait)
			due = timer.C
		}
		select {
		case r := <-w.answers:
			w.take(&r)
		case <-due:
		case <-cut:
			w.summary.Cut = fmt.Sprintf("its time of %s was up", w.plan.Within)
			over = true
		case <-interrupted:
			over, interrupted = true, nil
		}
	}
}

func (w *Watcher) busy() int { return len(w.members) - len(w.free) }

// send sends what is due first.
func (w *Watcher) send() {
	next := heap.Pop(&w.queue).(asked)
	last := len(w.free) - 1
	number := w.free[last]
	w.free = w.free[:last]
	w.budget.book(time.Now(), 1, 1, 0)
	if next.op.Kind == targets.Write && next.ghost.Created == nil {
		w.removal++
	}
	go func() {
		m := &w.members[number]
		r := reply{ghost: next.ghost, member: number, exchange: Exchange{Contender: number, Op: next.op}}
		w.exchange(m.session, &r.exchange)
		w.answers <- r
		if broken(&r.exchange) {
			w.reopen(m)
		}
		w.answers <- reply{member: number}
	}()
}

// take writes a reply down before its key is asked again.
func (w *Watcher) take(r *reply) {
	g, e := r.ghost, &r.exchange
	if g == nil {
		w.free = append(w.free, r.member)
		return
	}
	w.count(e)
	offset := w.offset(g)
	e.shift(offset)
	w.checkClock()
	w.asking.Observe(g, e)
	w.enqueue(g, e)
	w.show(Event{Asked: &Asked{g, g.Key, e, g.ClockUnknown}})
	if w.journal != nil {
		w.fail(w.journal.Note(g, e))
	}
}

// clockJump is how far the wall clock may leave the monotonic one unnoticed. It
// does where the machine sleeps or its clock is set.
const clockJump = 250 * time.Millisecond

// checkClock marks what is watched where the clocks part: an age is then no less
// than the monotonic clock says, but may be more.
func (w *Watcher) checkClock() {
	now := time.Now()
	jumped := now.Round(0).Sub(w.wall) - now.Sub(w.start)
	if (jumped - w.jumped).Abs() < clockJump {
		return
	}
	w.jumped = jumped
	for _, g := range w.watched {
		g.ClockUnknown = g.ClockUnknown || !g.Closed
	}
	if w.journal != nil {
		w.fail(w.journal.Intend(w.watched))
	}
}

// clean removes the keys that nothing more is asked about and looks whether they are
// gone; a volatile target forgets them by itself.
func (w *Watcher) clean(controls *Controls) error {
	if w.target.Describe().Volatile {
		return nil
	}
	var deletes []targets.Op
	ghosts := make(map[string]*Ghost) // by key; nil: of a check
	bases := []string{w.plan.key("")}
	remove := func(key string, collection targets.Collection, g *Ghost) {
		deletes, ghosts[key] = append(deletes, targets.Op{Kind: targets.Delete, Key: key, Collection: collection}), g
	}
	if !controls.Skipped && controls.Key != "" {
		remove(w.key("n"), targets.Plain, nil)
		remove(controls.Key+"-create", targets.Plain, nil)
		remove(controls.Key+"-cas", targets.Versioned, nil)
	}
	for _, g := range w.watched {
		if !g.Removed && (g.Closed && !w.unwritten || !w.plan.Keep) && (g.Created != nil || g.Tried != nil || g.State == GhostAbandoned) {
			remove(g.Key, targets.Plain, g)
			if base := g.base(); !slices.Contains(bases, base) {
				bases = append(bases, base)
			}
		}
	}
	wrote := slices.ContainsFunc(slices.Concat(controls.Sequential, controls.Nonce), func(e Exchange) bool { return mayHaveWritten(&e) }) ||
		len(bases) > 1 || slices.ContainsFunc(w.watched, func(g *Ghost) bool { return g.Created != nil || g.Tried != nil })
	left := &Left{}
	accepted := make(map[string]bool)
	w.removeAll(deletes, func(i int, r *targets.Reply) {
		w.summary.Requests += int64(r.Attempts)
		left.refuse(r)
		accepted[deletes[i].Key] = gone(r)
	})
	for _, base := range bases {
		keys, err := w.look(base, func(key string) bool { _, ours := ghosts[key]; return ours })
		left.Keys = append(left.Keys, keys...)
		if err != nil && wrote {
			left.Unseen = err
		}
	}
	for _, key := range left.Keys {
		accepted[key] = false
	}
	for key, g := range ghosts {
		if g != nil {
			g.Removed = accepted[key]
		}
	}
	return left.orNil()
}

// base is what every key of the ghost's run begins with.
func (g *Ghost) base() string {
	before, _, _ := strings.Cut(g.Key, g.Run+"-")
	return before + g.Run + "-"
}

// asked is what is to be sent next about a key.
type asked struct {
	due   time.Duration // since the start of the watcher
	op    targets.Op
	ghost *Ghost
}

// schedule is a heap: what is due first is on top.
type schedule []asked

func (s schedule) Len() int           { return len(s) }
func (s schedule) Less(i, j int) bool { return s[i].due < s[j].due }
func (s schedule) Swap(i, j int)      { s[i], s[j] = s[j], s[i] }

// Push implements heap.Interface.
func (s *schedule) Push(x any) { *s = append(*s, x.(asked)) }

// Pop implements heap.Interface.
func (s *schedule) Pop() any {
	last := len(*s) - 1
	x := (*s)[last]
	*s = (*s)[:last]
	return x
}

// Cost is how many requests a watch of so many keys sends beside those about the
// keys: to connect, for the checks before, and to remove them all.
func (p WatchPlan) Cost(d targets.Description, keys int) int {
	sessions := max(p.Sessions, ownSessions)
	n := warmUp(d.WarmUp, sessions)
	if !p.SkipControls {
		n += sequentialCost() + 1 + sessions
	}
	if !d.Volatile {
		n += keys + d.Lists
		if !p.SkipControls {
			n += 3
		}
	}
	return n
}
