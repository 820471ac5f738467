package runner

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"contend/targets"
)

// Contest is what the contenders of one round do.
type Contest interface {
	// Needs are the conditions that its writes carry, the times to live that its keys are
	// given and the precision of the times that it compares.
	Needs() targets.Needs
	// Collection is where the round's key is kept.
	Collection() targets.Collection
	// Seeds are the ops that bring a fresh key to the state the round starts
	// from.
	Seeds(key string) []targets.Op
	// Contend is run by every contender at once. What comes before its first op, Sleep,
	// Barrier or Elapsed is done ahead of the release.
	Contend(c *Contender)
	// Requests is how many requests a contender sends, where it need not try again;
	// what it sends beyond is paid for before the next round.
	Requests() int
}

// Key is a key, and where it is kept.
type Key struct {
	Name       string
	Collection targets.Collection
}

// ManyKeyed contests work on more keys than the round's own.
type ManyKeyed interface {
	// Others gives the other keys of a round; each begins with the round's own and
	// a hyphen.
	Others(key string) []Key
}

// Timed contests begin their rounds at instants of their choice.
type Timed interface {
	// Begin gives the instant, from now on, at which a round is to be seeded.
	Begin(now time.Time) time.Time
}

// Immediate contests have every contender begin with a write, which can be made ready
// before it is released.
type Immediate interface{ WritesFirst() }

// places are all keys of a round of the contest, its own first.
func keysOf(contest Contest, key string) []Key {
	all := []Key{{key, contest.Collection()}}
	if many, ok := contest.(ManyKeyed); ok {
		all = append(all, many.Others(key)...)
	}
	return all
}

// Plan says what a run does.
type Plan struct {
	Run        string // unique; part of every key and token
	Prefix     string // what every key begins with
	Contenders int
	Rounds     int             // that are to count; 0: until Duration is up
	MaxRounds  int             // raced at most, where fewer count; 0: no more than Rounds
	Duration   time.Duration   // 0: until Rounds count
	Timeout    time.Duration   // of one request
	Settle     time.Duration   // waited before the read-back of a round with an unknown outcome; so long a missing or old state is doubted
	Late       time.Duration   // at least so long after the last answer on a key it is read once more
	Stagger    time.Duration   // between one contender's release and the next
	Sweep      Sweep           // of the release of the second of two contenders, in the race
	Release    targets.Release // "": the gate
	Limits     []targets.Limit
	Seed       uint64 // of the order of release and the bodies
	ValueSize  int    // bytes of body in each write

	Race          Contest
	Twin          Contest // nil: none
	ControlRounds int     // rounds of the twin
	SkipControls  bool
	Unguarded     bool // the race has no guard: leave the sequential checks of guards out
}

// Steering is asked on the way. A nil one races, and doubts nothing.
type Steering interface {
	// Proceed decides, after the observer was shown the controls, whether to
	// race.
	Proceed() bool
	// Doubtful names the rounds whose judgement waits for a late read; an
	// interrupted run reads those first.
	Doubtful() []int
	// Counted is how many rounds count so far.
	Counted() int
	// Undecided names the rounds whose keys showed a missing or old state, where
	// another late read may show that the reads were stale, or confirm it.
	Undecided() []int
}

// Summary is what a run tells beside its history.
type Summary struct {
	Requests    int64 // sent in all, controls included
	Rounds      int   // of the race
	Elapsed     time.Duration
	Interrupted bool
	// Stopped says why the run ended before its rounds were done, where it was
	// not interrupted: the target served nothing.
	Stopped error
	// Left is a *Left where keys were left behind, or may have been.
	Left error
}

// ownSessions are the runner's own: two, since the sequential checks want to
// see that one sees what the other wrote.
const ownSessions = 2

// unservedRounds in a row end a run.
const unservedRounds = 3

// ErrUnserved is in the chain of what ends a run whose target decided on no write
// for three rounds.
var ErrUnserved = fmt.Errorf("the target decided on no write for %d rounds", unservedRounds)

// Runner is one run, with its sessions open.
type Runner struct {
	connection
	plan     Plan
	observer Observer
	steering Steering

	random     *rand.Rand
	heap       *quietHeap
	body       json.RawMessage
	own        [ownSessions]targets.Session
	contenders []Contender
	order      []int
	shift      int           // of the sessions that each takes
	ready      chan struct{} // a contender stands at the gate
	done       chan struct{} // a contender has left the round
	last       time.Duration // the latest return that the runner has seen
	unserved   int
	refusal    string      // the first of the rounds that were not served
	wrote      bool        // a write may have been applied
	twins      int         // begun
	races      int         // begun
	nonceWrite *targets.Op // nil: none was accepted
	summary    Summary
}

// Open connects to the target, makes what the plan needs there, and opens a
// session for each contender. Nothing is contended for yet. Close ends it.
func Open(ctx context.Context, target targets.Target, plan Plan) (*Runner, error) {
	r := &Runner{connection: newConnection(ctx, target, plan.Timeout, plan.Limits), plan: plan,
		random: rand.New(rand.NewPCG(plan.Seed, plan.Seed>>1))}
	r.body = body(r.random, plan.ValueSize)
	needs := plan.Race.Needs()
	needs.Sessions = plan.Contenders + ownSessions
	if err := r.prepare(ctx, needs); err != nil {
		return nil, err
	}
	if err := r.open(ctx); err != nil {
		return nil, err
	}
	r.summary.Requests = int64(warmUp(r.warmUp, needs.Sessions))
	return r, nil
}

// Run makes the controls, races, reads every key once more and removes what it
// wrote. When ctx ends it releases nobody any more, lets the requests in flight
// finish and settles the round.
func (r *Runner) Run(ctx context.Context, observer Observer, steering Steering) Summary {
	r.observer, r.steering = observer, steering
	r.listen(observer)
	r.heap = newQuietHeap()
	defer r.heap.restore()
	if r.controls(ctx) {
		r.race(ctx)
	}
	r.lateReads(ctx)
	r.lateNonce()
	r.summary.Interrupted = ctx.Err() != nil
	r.summary.Left = r.clean()
	r.summary.Requests += r.reopened.Load()
	r.summary.Elapsed = time.Since(r.start)
	return r.summary
}

// body is a JSON string of size bytes, quotes included where they fit.
func body(random *rand.Rand, size int) json.RawMessage {
	if size < 2 {
		return nil
	}
	const letters = "abcdefghijklmnopqrstuvwxyz"
	var b strings.Builder
	b.WriteByte('"')
	for range size - 2 {
		b.WriteByte(letters[random.IntN(len(letters))])
	}
	b.WriteByte('"')
	return json.RawMessage(b.String())
}

// openAtOnce sessions are dialled side by side.
const openAtOnce = 16

func (r *Runner) open(ctx context.Context) error {
	n := r.plan.Contenders
	r.contenders = make([]Contender, n)
	r.ready, r.done = make(chan struct{}, n), make(chan struct{}, n)
	var group errgroup.Group
	group.SetLimit(openAtOnce)
	for i := range r.contenders {
		r.contenders[i] = Contender{Number: i, run: r, starts: make(chan start, 1)}
		r.contenders[i].meet = r.contenders[i].pass
		r.order = append(r.order, i)
		group.Go(func() (err error) {
			r.contenders[i].session, err = r.session(ctx, i)
			return err
		})
	}
	for i := range r.own {
		group.Go(func() (err error) {
			r.own[i], err = r.session(ctx, -1-i)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		r.Close()
		return fmt.Errorf("opening %d sessions: %w", len(r.contenders)+len(r.own), err)
	}
	for i := range r.contenders {
		go r.contenders[i].contend()
	}
	return nil
}

// Close ends the sessions.
func (r *Runner) Close() {
	for i := range r.contenders {
		close(r.contenders[i].starts)
		if r.contenders[i].session != nil {
			r.contenders[i].session.Close()
		}
	}
	for _, s := range r.own {
		if s != nil {
			s.Close()
		}
	}
}

// key names what a round or control works on.
func (r *Runner) key(label string) string { return r.plan.Prefix + r.plan.Run + "-" + label }

// RunOf gives the run that a key belongs to; "" where the key is of no run.
func RunOf(prefix, key string) string {
	rest, ok := strings.CutPrefix(key, prefix)
	if !ok {
		return ""
	}
	run, _, ok := strings.Cut(rest, "-")
	if !ok {
		return ""
	}
	return run
}

func (r *Runner) twinKey(n int) string { return r.key(fmt.Sprintf("t%d", n)) }
func (r *Runner) raceKey(n int) string { return r.key(fmt.Sprintf("r%d", n)) }

// ownDo sends an op through a session of the runner's own.
func (r *Runner) ownDo(session int, contender int, op targets.Op) Exchange {
	_ = r.spend(r.requests, 1)
	e := Exchange{Contender: contender, Op: op}
	r.exchange(r.own[session], &e)
	e.follow(r.last)
	r.last = e.Return
	r.wrote = r.wrote || mayHaveWritten(&e)
	r.summary.Requests += int64(e.Reply.Attempts)
	if broken(&e) {
		r.reopen(&r.own[session], -1-session)
	}
	return e
}

// controls makes the controls and tells whether to race.
func (r *Runner) controls(ctx context.Context) bool {
	c := &Controls{Skipped: r.plan.SkipControls}
	if !c.Skipped && ctx.Err() == nil {
		if !r.plan.Unguarded {
			c.Key = r.key("s")
			targets.CheckSequential(c.Key, func(session int, op targets.Op) targets.Reply {
				e := r.ownDo(session, session, op)
				c.Sequential = append(c.Sequential, e)
				return e.Reply
			})
		}
		r.nonce(ctx, c)
		for n := 1; r.plan.Twin != nil && n <= r.plan.ControlRounds && ctx.Err() == nil && r.summary.Stopped == nil; n++ {
			r.twins = n
			round := Round{Number: n, Key: r.twinKey(n)}
			if r.round(ctx, r.plan.Twin, &round) {
				c.Twin = append(c.Twin, round)
			}
		}
	}
	r.observer.Controls(c)
	proceed := r.steering == nil || r.steering.Proceed()
	return proceed && ctx.Err() == nil && r.summary.Stopped == nil
}

// nonce writes one record and lets every contender read it: all of them must be
// on the same store, the one that the run was opened on.
func (r *Runner) nonce(ctx context.Context, c *Controls) {
	key := r.key("n")
	collection := r.plan.Race.Collection()
	write := r.ownDo(0, ByRunner, targets.Op{Kind: targets.Write, Key: key, Collection: collection, Value: targets.Record{Token: Token(key, 0, 1)}})
	c.Nonce = append(c.Nonce, write)
	read := targets.Op{Kind: targets.Read, Key: key, Collection: collection}
	var blind []int // contenders that have not seen it
	r.each(r.requests, len(r.contenders), false, func(int) targets.Op { return read }, func(i int, e *Exchange) {
		c.Nonce = append(c.Nonce, *e)
		if e.Reply.Outcome == targets.Missing {
			blind = append(blind, i)
		}
	})
	if write.Reply.Outcome != targets.OK {
		return
	}
	r.nonceWrite = &write.Op
	written := r.last
	for gap := firstReread; len(blind) > 0 && ctx.Err() == nil && r.since(written) < r.plan.Settle; gap *= 2 {
		r.pause(ctx, fmt.Sprintf("%d of the sessions do not see yet what the run has written", len(blind)),
			min(gap, r.plan.Settle-r.since(written)))
		still := blind[:0]
		for _, i := range blind {
			_ = r.spend(r.requests, 1)
			e := Exchange{Contender: i, Op: read}
			r.exchange(r.contenders[i].session, &e)
			r.summary.Requests += int64(e.Reply.Attempts)
			c.Nonce = append(c.Nonce, e)
			if e.Reply.Outcome == targets.Missing {
				still = append(still, i)
			}
		}
		blind = still
	}
}

// since is the time since an instant on the clock of the exchanges.
func (r *Runner) since(instant time.Duration) time.Duration { return time.Since(r.start) - instant }

// race runs the rounds.
func (r *Runner) race(ctx context.Context) {
	began := time.Now()
	var round Round
	for ctx.Err() == nil && r.summary.Stopped == nil {
		n := r.summary.Rounds + 1
		// A target that fell silent is given its three rounds, even past the duration.
		expired := r.plan.Duration > 0 && time.Since(began) >= r.plan.Duration && r.unserved == 0
		if r.plan.Rounds > 0 && r.enough() || expired {
			return
		}
		r.races = n
		round = Round{Number: n, Key: r.raceKey(n), Offset: r.plan.Sweep.Offset(n), Seeds: round.Seeds[:0], Ops: round.Ops[:0], Reads: round.Reads[:0]}
		if !r.round(ctx, r.plan.Race, &round) {
			return
		}
		r.summary.Rounds = n
		r.observer.Round(&round)
		r.heap.betweenRounds()
	}
}

// enough tells whether as many rounds count as are wanted, or no more are to be
// raced: where none of the first counts, the next ones will not either. What became
// of the rounds is not looked at.
func (r *Runner) enough() bool {
	raced, wanted := r.summary.Rounds, r.plan.Rounds
	if r.steering == nil || raced < wanted || r.plan.MaxRounds <= wanted {
		return raced >= wanted
	}
	counted := r.steering.Counted()
	return counted == 0 || counted >= wanted || raced >= r.plan.MaxRounds
}

// round seeds, releases, settles and reads back. It tells whether the round was
// run: it was not if ctx ended before the release.
func (r *Runner) round(ctx context.Context, contest Contest, round *Round) bool {
	round.Collection = contest.Collection()
	if r.server.Lead > 0 {
		round.Relayed = &Relayed{Uncertainty: r.server.Uncertainty}
	}
	// Once it has begun nothing is to wait for the limits any more.
	if r.await(ctx, requestsOf(contest, round.Key, len(r.contenders))) != nil {
		return false
	}
	if timed, ok := contest.(Timed); ok && !wait(ctx, time.Until(timed.Begin(time.Now()))) {
		return false
	}
	seeds := contest.Seeds(round.Key)
	for _, op := range seeds {
		if ctx.Err() != nil {
			return false
		}
		round.Seeds = append(round.Seeds, r.ownDo(0, ByRunner, op))
	}
	if round.Seeded() {
		if r.spendSpread(ctx, len(r.contenders), contest.Requests(), r.plan.Stagger+round.apart()) != nil {
			return false
		}
		sent := r.release(ctx, contest, round)
		if excess := sent - len(r.contenders)*contest.Requests(); excess > 0 {
			r.budget.book(time.Now(), 1, excess, 0)
		}
		r.readBack(round, keysOf(contest, round.Key))
		r.reopenBroken()
	}
	if round.Decided() {
		r.unserved, r.refusal = 0, ""
	} else if r.unserved++; r.unserved >= unservedRounds {
		r.summary.Stopped = unserved(ErrUnserved, firstNonEmpty(r.refusal, round.refusal()))
	} else if r.refusal == "" {
		r.refusal = round.refusal()
	}
	round.Done = time.Since(r.start)
	return true
}

// wait tells whether ctx did not end before.
func wait(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// release lets all contenders go at one moment and gathers what they wrote
// down. They wait at a closed channel; the order in which they are woken is
// drawn anew each round. It gives how many requests they sent.
func (r *Runner) release(ctx context.Context, contest Contest, round *Round) (sent int) {
	n := len(r.contenders)
	start := start{over: ctx, contest: contest, round: round, gates: &barriers{active: n, lead: r.server.Lead}, gate: make(chan struct{}), instant: new(time.Time)}
	r.random.Shuffle(n, func(i, j int) { r.order[i], r.order[j] = r.order[j], r.order[i] })
	for _, i := range r.order {
		r.contenders[i].starts <- start
	}
	for range n {
		<-r.ready
	}
	*start.instant = instantAhead(r.server.Lead)
	close(start.gate)
	for range n {
		<-r.done
	}
	for i := range r.contenders {
		round.Ops = append(round.Ops, r.contenders[i].ops...)
	}
	for i := range round.Ops {
		sent += round.Ops[i].Reply.Attempts
		r.last = max(r.last, round.Ops[i].Return)
		r.wrote = r.wrote || mayHaveWritten(&round.Ops[i])
	}
	r.summary.Requests += int64(sent)
	return sent
}

// settleAnswered is how long a round settles in which every unknown request was
// answered, as by a 500: it is no longer on its way. The late read comes later.
const settleAnswered = 100 * time.Millisecond

// readAttempts of a read-back that fails; a read has no effect and may be
// repeated.
const readAttempts = 3

// readBack reads the final state of every key: once, or twice after the settling
// time where an outcome is unknown.
func (r *Runner) readBack(round *Round, places []Key) {
	reads := 1
	if round.Unsettled() {
		settle := r.plan.Settle
		if round.answered() {
			settle = min(settle, settleAnswered)
		}
		time.Sleep(settle)
		reads = 2
	}
	for _, at := range places {
		r.readKey(round, at, reads)
	}
}

func (r *Runner) readKey(round *Round, at Key, reads int) {
	for failed, refused := 0, 0; reads > 0 && failed < readAttempts; {
		e := r.ownDo(0, ByRunner, targets.Op{Kind: targets.Read, Key: at.Name, Collection: at.Collection})
		round.Reads = append(round.Reads, e)
		switch refused++; {
		case e.Reply.Outcome == targets.OK || e.Reply.Outcome == targets.Missing:
			reads, refused = reads-1, 0
		case e.Reply.Outcome == targets.Throttled && r.backOff(r.requests, refused, &e.Reply):
		default:
			failed++
			time.Sleep(min(e.Reply.RetryAfter, r.patience()))
		}
	}
}

// reopenBroken opens again the sessions whose last round left a request unanswered.
func (r *Runner) reopenBroken() {
	var group errgroup.Group
	group.SetLimit(openAtOnce)
	for i := range r.contenders {
		c := &r.contenders[i]
		for j := range c.ops {
			if broken(&c.ops[j]) {
				group.Go(func() error { r.reopen(&c.session, c.Number); return nil })
				break
			}
		}
	}
	_ = group.Wait()
}

// each sends count ops, spread over the contenders' sessions, and hands the
// exchanges over in order. It gives up when ctx ends, and on a target that serves
// nobody for some batches. Where it is patient, what is refused for a quota is sent
// again when that has had time to renew; each such exchange is handed over too.
func (r *Runner) each(ctx context.Context, count int, patient bool, op func(i int) targets.Op, got func(i int, e *Exchange)) {
	n := len(r.contenders)
	unserved := 0
	for from := 0; from < count && unserved < unservedRounds; from += n {
		var left []int
		for i := from; i < min(from+n, count); i++ {
			left = append(left, i)
		}
		served := false
		for refused := 1; len(left) > 0; refused++ {
			if r.spend(ctx, len(left)) != nil {
				return
			}
			var refusal *targets.Reply
			left, refusal = r.batch(left, op, func(i int, e *Exchange) {
				served = served || e.Reply.Outcome.Served()
				got(i, e)
			})
			if !patient {
				break
			}
			if refusal != nil && !r.backOff(ctx, refused, refusal) {
				return
			}
		}
		if unserved++; served {
			unserved = 0
		}
		r.heap.betweenRounds()
	}
}

// batch sends these ops at once, each over a session of its own. It gives those that
// were refused for a quota, and one of the refusals.
func (r *Runner) batch(which []int, op func(i int) targets.Op, got func(i int, e *Exchange)) (refused []int, refusal *targets.Reply) {
	exchanges := make([]Exchange, len(which))
	var group errgroup.Group
	for j, i := range which {
		at := (j + r.shift) % len(r.contenders)
		exchanges[j] = Exchange{Contender: at, Op: op(i)}
		group.Go(func() error { r.exchange(r.contenders[at].session, &exchanges[j]); return nil })
	}
	_ = group.Wait()
	before := r.last
	for j, i := range which {
		e := &exchanges[j]
		e.follow(before)
		r.last = max(r.last, e.Return)
		r.summary.Requests += int64(e.Reply.Attempts)
		if e.Reply.Outcome == targets.Throttled {
			refused, refusal = append(refused, i), &e.Reply
		}
		got(i, e)
		if broken(e) {
			r.reopen(&r.contenders[e.Contender].session, e.Contender)
		}
	}
	return refused, refusal
}

// lateReads reads the key of every round once more, when it has been left alone
// for a while, and those in doubt again until they are not; after an interrupt
// the doubtful ones first, and only as many as time allows.
func (r *Runner) lateReads(ctx context.Context) {
	if r.summary.Rounds == 0 {
		return
	}
	number := func(i int) int { return i + 1 }
	if ctx.Err() != nil {
		order := r.doubtfulFirst()
		number = func(i int) int { return order[i] }
	}
	// What was to end by itself ends sooner once it is interrupted.
	within, cancel := context.WithCancel(r.requests)
	defer cancel()
	defer context.AfterFunc(ctx, func() {
		if wait(within, afterInterrupt) {
			cancel()
		}
	})()
	if r.summary.Stopped != nil {
		r.reopenBroken()
	}
	answered := r.last
	if d := r.plan.Late - r.since(answered); d > 0 {
		left := ctx
		if ctx.Err() != nil {
			left = within
		}
		r.pause(left, "reading every key once more", d)
	}
	r.readLate(within, r.summary.Rounds, number)
	r.readUndecided(within, answered)
}

// readLate reads every key of so many rounds.
func (r *Runner) readLate(ctx context.Context, rounds int, number func(int) int) {
	keys := len(keysOf(r.plan.Race, ""))
	r.each(ctx, rounds*keys, true, func(i int) targets.Op {
		at := keysOf(r.plan.Race, r.raceKey(number(i/keys)))[i%keys]
		return targets.Op{Kind: targets.Read, Key: at.Name, Collection: at.Collection}
	}, func(i int, e *Exchange) { r.observer.Late(number(i/keys), e) })
}

const (
	// firstReread of a key in doubt comes after this; the distances double.
	firstReread = 50 * time.Millisecond
	// mostUndecided rounds are read again; more of them say nothing new.
	mostUndecided = 1000
	// confirmingReads are made once the settling time is over: two must agree, and
	// one may fail.
	confirmingReads = 3
)

// readUndecided reads keys that showed a missing or old state again, at growing
// distances, each time through another session, until the steering is sure, or
// the settling time has passed since the last answer and the last reads are made.
func (r *Runner) readUndecided(ctx context.Context, answered time.Duration) {
	defer func() { r.shift = 0 }()
	for gap, last := firstReread, confirmingReads; last > 0 && r.steering != nil; gap *= 2 {
		rounds := r.steering.Undecided()
		if len(rounds) == 0 || ctx.Err() != nil {
			return
		}
		rounds = rounds[:min(len(rounds), mostUndecided)]
		left := r.plan.Settle - r.since(answered)
		if left <= 0 {
			last--
			left = firstReread
		}
		r.pause(ctx, fmt.Sprintf("the keys of %d rounds show a missing or old state: reading them again", len(rounds)), min(gap, left))
		r.shift++
		r.readLate(ctx, len(rounds), func(i int) int { return rounds[i] })
	}
}

// lateNonce reads the nonce once more: it is gone only where somebody else removes
// keys.
func (r *Runner) lateNonce() {
	if r.nonceWrite == nil || r.summary.Stopped != nil {
		return
	}
	for session := range r.own {
		e := r.ownDo(session, ByRunner, targets.Op{Kind: targets.Read, Key: r.nonceWrite.Key, Collection: r.nonceWrite.Collection})
		r.observer.Late(0, &e)
		if e.Reply.Outcome != targets.Missing {
			return
		}
	}
}

// afterInterrupt is how long an interrupted run still reads keys.
const afterInterrupt = 10 * time.Second

// doubtfulFirst gives the numbers of all rounds, those first whose judgement waits
// for a late read.
func (r *Runner) doubtfulFirst() []int {
	var order []int
	if r.steering != nil {
		order = r.steering.Doubtful()
	}
	doubtful := make(map[int]bool, len(order))
	for _, n := range order {
		doubtful[n] = true
	}
	for n := 1; n <= r.summary.Rounds; n++ {
		if !doubtful[n] {
			order = append(order, n)
		}
	}
	return order
}

// clean deletes every key of the run and looks whether they are gone; a volatile
// target forgets them by itself.
func (r *Runner) clean() error {
	if r.target.Describe().Volatile {
		return nil
	}
	everything := func(string) bool { return true }
	if !r.wrote {
		// A refusal may be a lie.
		keys, requests, err := r.look(r.key(""), everything)
		r.summary.Requests += int64(requests)
		if len(keys) == 0 || err != nil {
			return nil
		}
	}
	left := &Left{}
	count, place := r.written()
	r.each(r.requests, count, true, func(i int) targets.Op {
		at := place(i)
		return targets.Op{Kind: targets.Delete, Key: at.Name, Collection: at.Collection}
	}, func(_ int, e *Exchange) { left.refuse(&e.Reply) })
	keys, requests, err := r.look(r.key(""), everything)
	r.summary.Requests += int64(requests)
	if left.Keys = keys; err != nil {
		r.readLeft(left, count, place, err)
	}
	return left.orNil()
}

// written are all keys that the run may have written to.
func (r *Runner) written() (count int, place func(i int) Key) {
	collection := r.plan.Race.Collection()
	var fixed []Key
	if !r.plan.SkipControls {
		fixed = append(fixed, Key{r.key("n"), collection})
	}
	if !r.plan.SkipControls && !r.plan.Unguarded {
		fixed = append(fixed, Key{r.key("s-create"), targets.Plain}, Key{r.key("s-cas"), targets.Versioned})
	}
	for n := 1; n <= r.twins; n++ {
		fixed = append(fixed, keysOf(r.plan.Twin, r.twinKey(n))...)
	}
	keys := len(keysOf(r.plan.Race, ""))
	return len(fixed) + r.races*keys, func(i int) Key {
		if i < len(fixed) {
			return fixed[i]
		}
		i -= len(fixed)
		return keysOf(r.plan.Race, r.raceKey(i/keys+1))[i%keys]
	}
}

// readLeft reads the keys where they could not be listed.
func (r *Runner) readLeft(left *Left, count int, place func(i int) Key, unlisted error) {
	seen := 0
	r.each(r.requests, count, true, func(i int) targets.Op {
		at := place(i)
		return targets.Op{Kind: targets.Read, Key: at.Name, Collection: at.Collection}
	}, func(i int, e *Exchange) {
		switch e.Reply.Outcome {
		case targets.OK:
			left.Keys = append(left.Keys, e.Op.Key)
			seen++
		case targets.Missing:
			seen++
		}
	})
	if seen < count {
		left.Unseen = unlisted
	}
}

func firstNonEmpty(texts ...string) string {
	for _, t := range texts {
		if t != "" {
			return t
		}
	}
	return ""
}
