package scenarios

import (
	"errors"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"contend/runner"
	"contend/targets"
)

// TTLGhost watches keys after the end of their time to live.
type TTLGhost struct {
	Keys      int           `json:"keys"` // in each arm
	TTL       time.Duration `json:"ttl_ns"`
	Watch     time.Duration `json:"watch_ns"` // after the expiry
	Tolerance time.Duration `json:"tolerance_ns"`
	First     time.Duration `json:"first_ns"`
	Factor    float64       `json:"factor"`
	Cap       time.Duration `json:"cap_ns"`
	Budget    int64         `json:"budget,omitempty"` // requests at most; 0: no end
}

// NewTTLGhost gives the defaults. They make sense on the emulator: a watch there
// ends within 20 s.
func NewTTLGhost() *TTLGhost {
	return &TTLGhost{Keys: 20, TTL: time.Second, Watch: 12 * time.Second, Tolerance: time.Second,
		First: 100 * time.Millisecond, Factor: 1.5, Cap: 10 * time.Minute}
}

// Info describes the scenario.
func (*TTLGhost) Info() Info {
	return Info{
		Name:    "ttl-ghost",
		Summary: "keys with a TTL: how long after expiry do they still block create-if-absent, and does a read still show them",
		Help: `Watched: keys created with a TTL, asked about again and again after their expiry: one arm by create-if-absent, one by
reads, one a single time each at a random age, since asking may itself sweep; and a few before their expiry too.
Must hold: an expired key stops blocking create-if-absent within --tolerance of its expiry, no key goes early, and a
create that is refused before the expiry does not prolong the life of the key.
Inconclusive means that no key was seen to block longer, but not enough were seen to be free in time: the watch was
too short, requests stayed unanswered, or our clock was set.`,
		Property: "an expired key stops blocking create-if-absent within the tolerance of its expiry, and no sooner than it expires",
		Guard:    targets.IfAbsent,
	}
}

// Needs is what its creates ask of the target.
func (s *TTLGhost) Needs() targets.Needs {
	needs := guards(targets.IfAbsent)
	needs.Shortest, needs.Longest = s.TTL, s.TTL
	return needs
}

// Flags are the scenario's own.
func (s *TTLGhost) Flags(fs *flag.FlagSet) {
	fs.IntVar(&s.Keys, "keys", s.Keys, "keys in each arm: write, read, once")
	fs.DurationVar(&s.TTL, "ttl", s.TTL, "time to live of each key")
	fs.DurationVar(&s.Watch, "watch", s.Watch, "how long after its expiry a key is watched")
	fs.DurationVar(&s.Tolerance, "tolerance", s.Tolerance, "how long after its expiry a key may block a create")
	fs.DurationVar(&s.First, "first", s.First, "age at the first probe after the expiry")
	fs.Float64Var(&s.Factor, "factor", s.Factor, "by which the time between two probes grows")
	fs.DurationVar(&s.Cap, "cap", s.Cap, "the longest time between two probes")
	fs.Int64Var(&s.Budget, "budget", s.Budget, "requests at most; the watch ends when they are spent (0: no end)")
}

// Check refuses parameters that cannot be; all of them at once.
func (s *TTLGhost) Check() error {
	var wrong []error
	refuse := func(bad bool, format string, a ...any) {
		if bad {
			wrong = append(wrong, fmt.Errorf(format, a...))
		}
	}
	refuse(s.Keys < 1, "--keys %d: at least 1 must be watched", s.Keys)
	refuse(s.Keys > 10_000, "--keys %d: at most 10000", s.Keys)
	refuse(s.TTL <= 0, "--ttl %s: must be longer than 0", s.TTL)
	refuse(s.Watch <= 0, "--watch %s: must be longer than 0", s.Watch)
	refuse(s.Tolerance <= 0, "--tolerance %s: must be longer than 0", s.Tolerance)
	refuse(s.First <= 0, "--first %s: must be longer than 0", s.First)
	refuse(!(s.Factor >= 1) || math.IsInf(s.Factor, 0), "--factor %v: must be 1 or more", s.Factor)
	refuse(s.Cap < s.First, "--cap %s: must not be shorter than --first %s", s.Cap, s.First)
	refuse(s.TTL%time.Millisecond != 0, "--ttl %s: must be whole milliseconds", s.TTL)
	if len(wrong) == 0 {
		n := s.probes()
		refuse(n > mostProbes, "--first %s, --factor %v, --cap %s: make %.0f probes of each key in --watch %s; at most %d are made", s.First, s.Factor, s.Cap, n, s.Watch, mostProbes)
	}
	refuse(s.Budget < 0, "--budget %d: must not be negative", s.Budget)
	return errors.Join(wrong...)
}

// The arms of a watch: what is asked of a key.
const (
	WriteArm = "write" // creates, on the schedule, until one is accepted
	ReadArm  = "read"  // reads, on the schedule, until it is missing; then creates
	OnceArm  = "once"  // one create, at a random age
	EarlyArm = "early" // creates before the expiry, and on the schedule until one is accepted
	TwinArm  = "twin"  // a key without a TTL, asked as if it had expired: it must be seen to block
)

// earlyKeys are in the early arm at most, twinKeys in the twin's.
const (
	earlyKeys = 6
	twinKeys  = 4
)

// spreadOver is the time that creates are spread over: more than a second, since
// a store may count in whole ones.
const spreadOver = 1100 * time.Millisecond

// Ghosts gives the keys of a run. twin adds those of the control.
func (s *TTLGhost) Ghosts(run, prefix, target string, epoch time.Time, seed uint64, twin bool) []*runner.Ghost {
	var all []*runner.Ghost
	random := rand.New(rand.NewPCG(seed, 1))
	for _, arm := range []string{WriteArm, ReadArm, OnceArm, EarlyArm, TwinArm} {
		n := s.Keys
		switch {
		case arm == EarlyArm:
			n = min(n, earlyKeys)
		case arm == TwinArm && twin:
			n = min(n, twinKeys)
		case arm == TwinArm:
			n = 0
		}
		for i := range n {
			all = append(all, &runner.Ghost{Run: run, Target: target, Arm: arm, Number: i, Epoch: epoch, State: runner.GhostPending,
				Key: fmt.Sprintf("%s%s-%s%d", prefix, run, arm, i),
				Terms: runner.GhostTerms{TTL: s.TTL, Watch: s.Watch, Tolerance: s.Tolerance, First: s.First, Factor: s.Factor, Cap: s.Cap,
					Keys: n, Seed: random.Uint64(), Offset: time.Duration((float64(i) + random.Float64()) / float64(n) * float64(spreadOver))}})
		}
	}
	return all
}

// slack is how much two clocks may part in a span of time: 500 parts in a million,
// what a clock is slewed by at most.
func slack(span time.Duration) time.Duration { return span / 2000 }

// isEarly tells whether a create was accepted before the time to live that was
// asked for was over. It is certain only of a key that one process has watched, by
// a clock that did not jump.
func isEarly(g *runner.Ghost) bool {
	return g.FirstFree != nil && g.Resumed == 0 && !g.ClockUnknown &&
		g.FirstFree.Return+slack(g.Terms.TTL) < g.Created.Call+g.Terms.TTL
}

// afterDoubt is how long after a write that may have been applied unseen it can
// still come to the store.
const afterDoubt = time.Minute

// blocked notes a refusal. behind tells that a read did not show the first record,
// so that the refusal may be for one of our own that was applied unseen, and has
// expired in its turn.
func blocked(g *runner.Ghost, s *runner.Observation, behind bool) {
	g.LastBlocked = s
	_, from := g.Expiry()
	_, ttl := g.TTL()
	if g.Resumed > 0 {
		// The key was there when this process began: that needs no wall clock.
		from = max(from, g.Resumed+ttl)
	}
	if behind {
		from = max(from, g.DoubtAt+ttl+afterDoubt)
	}
	if age := s.Call - from - slack(s.Call-g.Created.Call); age > g.ProvenAge {
		g.Proven, g.ProvenAge = s, age
	}
}

// createToken is of the write that a key was created by.
func createToken(g *runner.Ghost) string { return runner.Token(g.Key, 0, 1) }

// probeTokens begin the tokens of later writes.
func probeTokens(g *runner.Ghost) string { return g.Key + "-c1-a" }

// Limits gives the time to live of the keys, how long they are watched after its end,
// and the budget of requests.
func (s *TTLGhost) Limits() (ttl, watch time.Duration, requests int64) {
	return s.TTL, s.Watch, s.Budget
}

// Next says what to ask of the key next.
func (s *TTLGhost) Next(g *runner.Ghost) (op targets.Op, due time.Duration, ok bool) {
	read := targets.Op{Kind: targets.Read, Key: g.Key, Collection: targets.Plain}
	write := targets.Op{Kind: targets.Write, Key: g.Key, Collection: targets.Plain, If: targets.Condition{Guard: targets.IfAbsent}}
	if g.Arm != TwinArm {
		write.TTL = g.Terms.TTL
	}
	switch {
	case g.Closed:
		return op, 0, false
	case g.Tried != nil:
		return read, max(g.Tried.Return, g.NotBefore), true
	case g.Created == nil:
		write.Value = targets.Record{Token: createToken(g), Version: 1}
		return write, max(g.Terms.Offset, g.NotBefore), true
	}
	write.Value = targets.Record{Token: fmt.Sprintf("%s%d", probeTokens(g), g.Probes+1), Version: 1}
	if wantsWrite(g) {
		return write, max(g.Asked, g.NotBefore), true
	}
	if g.Arm == OnceArm && g.LastBlocked != nil {
		return read, g.NotBefore, true
	}
	_, latest := g.Expiry()
	all := ages(g)
	next, found := slices.BinarySearch(all, g.Asked-latest)
	if found {
		next++
	}
	if g.Probes == 0 {
		next = 0
	}
	// What was missed meanwhile is asked once.
	due = max(latest+all[min(next, len(all)-1)], g.NotBefore)
	if g.Arm == ReadArm && g.FirstGone == nil {
		return read, due, true
	}
	return write, due, true
}

// wantsWrite tells whether a key that is read is to be written at once: it has
// just gone, or its watch ends.
func wantsWrite(g *runner.Ghost) bool {
	if g.Arm != ReadArm || g.Probes == 0 {
		return false
	}
	return g.FirstGone != nil && g.Asked == g.FirstGone.Call || !g.Final && g.Asked >= g.End()
}

// Observe takes a reply into account.
func (s *TTLGhost) Observe(g *runner.Ghost, e *runner.Exchange) {
	seen := observationOf(e)
	creating := g.Created == nil
	if !creating {
		g.Probes++
	}
	g.NotBefore = 0
	if e.Reply.Outcome == targets.Throttled {
		g.NotBefore = e.Return + e.Reply.RetryAfter
		if !creating {
			g.NotBefore = min(g.NotBefore, max(e.Return, g.End()))
		}
	}
	settled := true
	switch {
	case creating:
		s.create(g, e, seen)
	case g.Tried != nil:
		settled = settle(g, e, seen)
	case e.Op.Kind == targets.Read:
		g.Asked = e.Call
		settled = observeRead(g, e, seen)
	default:
		g.Asked = e.Call
		g.Final = g.Final || e.Call >= g.End()
		settled = observeWrite(g, e, seen)
	}
	if !settled {
		g.Unanswered++
	}
	if g.Created != nil && g.Tried == nil && !g.Closed {
		g.Closed = g.FirstFree != nil || over(g, e)
	}
	g.State = stateOf(g)
}

func observationOf(e *runner.Exchange) *runner.Observation {
	r := &e.Reply
	return &runner.Observation{Call: e.Call, Return: e.Return, Outcome: r.Outcome, Code: r.Code, Status: r.Status, Message: r.Message, Trace: r.Trace}
}

// mostCreates that had no effect are tried again.
const mostCreates = 3

// create handles what comes before the create is acknowledged.
func (s *TTLGhost) create(g *runner.Ghost, e *runner.Exchange, seen *runner.Observation) {
	outcome := e.Reply.Outcome
	switch {
	case g.Tried == nil && outcome == targets.OK && e.Reply.Attempts <= 1:
		g.Created = seen
		noteExpiry(g, &e.Reply)
	case g.Tried == nil && (outcome == targets.Unknown || outcome == targets.Unmapped || e.Reply.Attempts > 1):
		g.Tried = seen
	case g.Tried != nil && outcome == targets.OK && e.Reply.Record.Token == createToken(g):
		// It was applied between its call and this read.
		seen.Call, g.Created, g.Tried = g.Tried.Call, seen, nil
		noteExpiry(g, &e.Reply)
	case g.Tried == nil && g.Creates < mostCreates && (outcome == targets.Throttled || outcome == targets.NotSent || outcome == targets.Aborted):
		// It had no effect, and may be tried again.
		g.Creates++
		g.NotBefore = e.Return + max(min(e.Reply.RetryAfter, time.Minute), time.Second<<g.Creates)
	default:
		why := fmt.Sprintf("its create was answered with %s", strings.TrimSpace(fmt.Sprintf("%s %s", outcome, e.Reply.Code)))
		if g.Tried != nil {
			why = "its create was not answered"
		}
		Abandon(g, why)
	}
}

// Abandon closes a key about which nothing more can be known.
func Abandon(g *runner.Ghost, why string) {
	g.State, g.Closed, g.Why, g.Tried = runner.GhostAbandoned, true, why, nil
}

// noteExpiry keeps what the store says of the expiry.
func noteExpiry(g *runner.Ghost, r *targets.Reply) {
	if !r.Expires.IsZero() {
		g.Expires = r.Expires
	}
	if r.Granted > 0 {
		g.Granted = r.Granted
	}
}

// observeWrite tells whether the reply says anything, now or after a read.
func observeWrite(g *runner.Ghost, e *runner.Exchange, seen *runner.Observation) bool {
	outcome := e.Reply.Outcome
	switch {
	case outcome == targets.OK:
		g.FirstFree = seen
	case e.Reply.Attempts > 1, outcome == targets.Unknown, outcome == targets.Unmapped:
		g.Doubt, g.DoubtAt, g.Tried = true, e.Return, seen
	case outcome != targets.Conflict:
		return false
	case g.Doubt:
		g.Tried = seen
	default:
		_, latest := g.Expiry()
		if e.Return < g.Created.Call+g.Terms.TTL {
			g.BlockedLive, g.LivedUntil = true, max(g.LivedUntil, e.Call)
		}
		if g.ProvenAge <= g.Terms.Tolerance && e.Call-latest > g.Terms.Tolerance {
			// Before it is called a ghost, a read shows whose record it is.
			g.Tried = seen
		} else {
			blocked(g, seen, false)
		}
	}
	return true
}

// observeRead tells whether the reply says anything.
func observeRead(g *runner.Ghost, e *runner.Exchange, seen *runner.Observation) bool {
	token := e.Reply.Record.Token
	switch {
	case e.Reply.Outcome == targets.Missing:
		if g.FirstGone == nil {
			g.FirstGone = seen
		}
	case e.Reply.Outcome != targets.OK:
		return false
	case token == createToken(g):
		g.LastShown = seen
		noteExpiry(g, &e.Reply)
	case strings.HasPrefix(token, probeTokens(g)):
		// A write of ours that was not acknowledged.
		g.FirstFree = seen
	default:
		Abandon(g, fmt.Sprintf("it holds a record that this run did not write: %q", token))
	}
	return true
}

// settle takes the read that was to say what became of a write. It tells whether
// the two together say anything.
func settle(g *runner.Ghost, e *runner.Exchange, seen *runner.Observation) bool {
	tried := g.Tried
	g.Tried = nil
	if !observeRead(g, e, seen) || g.Closed {
		return false
	}
	refused := tried.Outcome == targets.Conflict
	switch {
	case g.FirstFree == seen:
		// Accepted between the write's call and this read.
		seen.Call = tried.Call
		return true
	case refused && g.LastShown == seen:
		blocked(g, tried, false)
		return true
	case refused && e.Reply.Outcome == targets.Missing && (!g.Doubt || tried.Call > g.DoubtAt+g.Terms.TTL+afterDoubt):
		blocked(g, tried, g.Doubt)
		return true
	default:
		return false
	}
}

// over tells whether the exchange was the last on the key's schedule.
func over(g *runner.Ghost, e *runner.Exchange) bool {
	if g.Probes == 0 {
		return false
	}
	end := g.End()
	switch g.Arm {
	case OnceArm:
		return g.LastBlocked == nil || e.Op.Kind == targets.Read
	case TwinArm:
		_, latest := g.Expiry()
		end = latest + twinAge(g.Terms)
	}
	return g.Asked >= end && (g.Arm != ReadArm || g.Final)
}

// stateOf says what is known of the key.
func stateOf(g *runner.Ghost) runner.GhostState {
	if g.State == runner.GhostAbandoned || g.Created == nil {
		return g.State
	}
	earliest, _ := g.Expiry()
	after := func(s *runner.Observation) bool { return s != nil && s.Call >= earliest }
	switch {
	case isEarly(g):
		return runner.GhostEarly
	case g.FirstFree != nil && g.Arm == ReadArm && g.FirstGone == nil && after(g.LastShown):
		return runner.GhostVisible
	case g.FirstFree != nil:
		return runner.GhostFree
	case after(g.LastBlocked):
		return runner.GhostBlocked
	case after(g.LastShown):
		return runner.GhostVisible
	default:
		return runner.GhostPending
	}
}

// Resume makes ready a key that an earlier process left: a request of that
// process may have been applied without anyone being told. at is now, since the
// key's epoch.
func Resume(g *runner.Ghost, at time.Duration) {
	switch {
	case g.Closed:
	case g.Created == nil:
		Abandon(g, "contend ended before its create was acknowledged")
	default:
		g.Doubt, g.DoubtAt, g.Resumed = true, at, at
	}
}
