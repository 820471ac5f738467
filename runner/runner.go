package runner

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"time"

	"contend/targets"
)

// ownSessions are the runner's own: two, since the sequential checks want to
// see that one sees what the other wrote.
const ownSessions = 2

// unservedRounds in a row end a run.
const unservedRounds = 3

// ErrUnserved is in the chain of what ends a run whose target decided on no write
// for three rounds.
var ErrUnserved = fmt.Errorf("the target decided on no write for %d rounds", unservedRounds)

// Runner is one race, with its sessions open.
type Runner struct {
	crew
	plan     Plan
	steering Steering
	strategy strategy
	meetings meetings

	random     *rand.Rand
	heap       *quietHeap
	body       json.RawMessage
	own        []member
	contenders []Contender
	order      []int
	shift      int           // of the sessions that each takes
	last       time.Duration // the latest return that the runner has seen
	unserved   int
	refusal    string      // the first of the rounds that were not served
	wrote      bool        // a write may have been applied
	twins      int         // begun
	races      int         // begun
	nonceWrite *targets.Op // nil: none was accepted
}

// Open connects to the target, makes what the plan needs there, and opens a
// session for each contender. Nothing is contended for yet. Close ends it.
func Open(ctx context.Context, target targets.Target, plan Plan) (*Runner, error) {
	r := &Runner{crew: newCrew(ctx, target, &plan.Setup), plan: plan,
		random: rand.New(rand.NewPCG(plan.Seed, plan.Seed>>1)), meetings: meetings{full: make(chan *meeting, 1)}}
	r.body = body(r.random, plan.ValueSize)
	needs := plan.Race.Needs()
	needs.Sessions = plan.Contenders + ownSessions
	var numbers []int
	for i := range plan.Contenders {
		numbers = append(numbers, i)
		r.order = append(r.order, i)
	}
	for i := range ownSessions {
		numbers = append(numbers, -1-i)
	}
	if err := r.open(ctx, needs, numbers...); err != nil {
		return nil, err
	}
	r.own = r.members[plan.Contenders:]
	r.strategy = strategyOf(&r.plan, r.server.Lead)
	r.contenders = make([]Contender, plan.Contenders)
	for i := range r.contenders {
		c := &r.contenders[i]
		*c = Contender{Number: i, run: r, member: &r.members[i], starts: make(chan start, 1)}
		c.meet = c.pass
		go c.contend()
	}
	return r, nil
}

// Close ends the sessions.
func (r *Runner) Close() {
	for i := range r.contenders {
		close(r.contenders[i].starts)
	}
	r.close()
}

// Run makes the controls, races, reads every key once more and removes what it
// wrote. When ctx ends it begins no round any more, lets the requests in flight
// finish and reads the round back.
func (r *Runner) Run(ctx context.Context, observer Observer, steering Steering) Summary {
	r.showTo(observer)
	r.steering = steering
	r.heap = newQuietHeap()
	defer r.heap.restore()
	if r.controls(ctx) {
		r.race(ctx)
	}
	r.lateReads(ctx)
	r.lateNonce()
	r.summary.Interrupted = ctx.Err() != nil
	r.summary.Left = r.clean()
	return r.end()
}

func (r *Runner) twinKey(n int) string { return r.plan.key(fmt.Sprintf("t%d", n)) }
func (r *Runner) raceKey(n int) string { return r.plan.key(fmt.Sprintf("r%d", n)) }

// ownDo sends an op through a session of the runner's own.
func (r *Runner) ownDo(session int, contender int, op targets.Op) Exchange {
	_ = r.spend(r.requests, 1)
	e := Exchange{Contender: contender, Op: op}
	r.exchange(r.own[session].session, &e)
	e.follow(r.last)
	r.last = e.Return
	r.wrote = r.wrote || mayHaveWritten(&e)
	r.summary.Requests += int64(e.Reply.Attempts)
	if broken(&e) {
		r.reopen(&r.own[session])
	}
	return e
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
		r.show(Event{Round: &round})
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
		r.readBack(ctx, round, keysOf(contest, round.Key))
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

// release releases all contenders at one moment and gathers what they wrote down. The
// order in which they come to the gate is drawn anew each round. It gives how many
// requests they sent.
func (r *Runner) release(ctx context.Context, contest Contest, round *Round) (sent int) {
	n := len(r.contenders)
	r.meetings.begin(n)
	start := start{over: ctx, contest: contest, round: round}
	r.random.Shuffle(n, func(i, j int) { r.order[i], r.order[j] = r.order[j], r.order[i] })
	for _, i := range r.order {
		r.contenders[i].starts <- start
	}
	r.meetings.serve(func() time.Time { return r.strategy.open(ctx) })
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
