// Package fault plants faults round the sessions of any target, to see that contend sees
// them.
package fault

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"time"

	"contend/targets"
	"contend/targets/kit"
)

// A Fault is wrong in the same way whatever the timing: it strikes the
// conditional writes of contenders (and the reads that follow one), never the
// seeds, and only condition-ignored the sequential checks. One of the time to live
// strikes every key that has one, whoever asks.
type Fault struct {
	name    string
	gap     time.Duration
	share   float64
	reads   int
	replies Replies

	mu   sync.Mutex
	keys map[string]*struckKey
}

// Replies are what the faults answer, with the codes of the target's own table.
type Replies struct {
	Exists, Stale targets.Reply // the refusals of create-if-absent and of compare-and-set
	Missing, Read targets.Reply // a read of a missing key, and of one that is there
	Failed        targets.Reply // an error of the server, which says nothing of the write
	Throttled     targets.Reply
	Unmapped      targets.Reply // a code that the table does not have
}

// Instant is a session that can apply an op without any delay of its own.
type Instant interface {
	Apply(op targets.Op) targets.Reply
}

// struckKey is what a fault remembers of one key.
type struckKey struct {
	seed     targets.Op // the last unconditional write by the runner
	seeded   bool       // there was one
	refused  bool       // a refusal was struck
	applied  bool       // a contender's conditional write was applied
	readings int        // stale reads given since
}

const defaultGap = 5 * time.Millisecond

// Parameter is the parameter of a URL that plants a fault.
func Parameter() targets.Parameter {
	return targets.Parameter{Name: "fault", Meaning: "a fault planted in the store, to see that contend sees it", Values: values()}
}

func values() []targets.Value {
	return []targets.Value{
		{Name: "two-winners", Meaning: "the first refused write of each key is applied and acknowledged too"},
		{Name: "gap", Argument: "D", Meaning: "a write checks, waits D (default 5ms), then sets, with no guard between"},
		{Name: "no-winner", Meaning: "every write is told that it lost; none is applied"},
		{Name: "loser-stored", Meaning: "the first refused write of each key is applied, and told that it lost"},
		{Name: "lost-write", Meaning: "an acknowledged write is gone when it is read back"},
		{Name: "version-jump", Meaning: "a write stores one version more than it was given"},
		{Name: "condition-ignored", Meaning: "conditions are not looked at"},
		{Name: "reply-dropped", Meaning: "an applied write is never answered"},
		{Name: "error-after", Meaning: "an applied write is answered with 500"},
		{Name: "request-dropped", Argument: "SHARE", Meaning: "a share (default 1) of the writes vanishes without an answer"},
		{Name: "error-before", Argument: "SHARE", Meaning: "a share (default 1) of the writes is answered with 500 and not applied"},
		{Name: "throttle", Argument: "SHARE", Meaning: "a share (default 1) of the writes is answered with 429"},
		{Name: "unmapped", Meaning: "a refusal carries a code that nobody knows"},
		{Name: "stale-read", Argument: "N", Meaning: "the first N reads (default 1) after an applied write show the state before it"},
		{Name: "foreign-writer", Meaning: "somebody else overwrites what a contender has written"},
		{Name: "early-expiry", Meaning: "a key is gone at half its time to live"},
		{Name: "sweep-on-access", Meaning: "a write or read of an expired key is answered, then the key is swept; one that nobody asks about stays until its sweep"},
		{Name: "clean-reads", Meaning: "reads do not show an expired key, which blocks creates until its sweep all the same"},
		{Name: "clock-offset", Meaning: "the expiry that reads report is 5s too late"},
		{Name: "grants-double", Meaning: "twice the time to live that was asked for is granted, and reported"},
	}
}

// Parse reads the value of the parameter; it gives nil for "".
func Parse(text string, replies Replies) (*Fault, error) {
	if text == "" {
		return nil, nil
	}
	name, argument, given := strings.Cut(text, "=")
	f := &Fault{name: name, gap: defaultGap, share: 1, reads: 1, replies: replies, keys: make(map[string]*struckKey)}
	if !given {
		return f, nil
	}
	var err error
	switch name {
	case "gap":
		if f.gap, err = time.ParseDuration(argument); err != nil || f.gap < 0 {
			return nil, fmt.Errorf("fault gap=%q needs a duration such as 5ms", argument)
		}
	case "stale-read":
		if f.reads, err = strconv.Atoi(argument); err != nil || f.reads < 1 {
			return nil, fmt.Errorf("fault stale-read=%q needs a number of reads", argument)
		}
	default:
		if f.share, err = strconv.ParseFloat(argument, 64); err != nil || !(f.share >= 0 && f.share <= 1) {
			return nil, fmt.Errorf("fault %s=%q needs a share from 0 to 1", name, argument)
		}
	}
	return f, nil
}

// Note says for the reader of a report what is planted.
func (f *Fault) Note() string { return "a fault is planted on purpose: " + f.name }

// Wrap plants the fault round a session; contender is as in targets.Target.Open. A nil
// Fault leaves the session as it is.
func (f *Fault) Wrap(inner targets.Session, contender int) targets.Session {
	if f == nil {
		return inner
	}
	return &session{inner: inner, fault: f, contender: contender}
}

// once runs change on what is remembered of a key, and gives its answer.
func (f *Fault) once(key string, change func(*struckKey) bool) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	k := f.keys[key]
	if k == nil {
		k = &struckKey{}
		f.keys[key] = k
	}
	return change(k)
}

// before gives the op that brings a key to the state before any contender's
// write.
func (f *Fault) before(op targets.Op) targets.Op {
	undo := targets.Op{Kind: targets.Delete, Key: op.Key, Collection: op.Collection}
	f.once(op.Key, func(k *struckKey) bool {
		if k.seeded {
			undo = k.seed
		}
		return true
	})
	return undo
}

type session struct {
	inner     targets.Session
	fault     *Fault
	contender int
}

func (s *session) Close() error { return s.inner.Close() }

func (s *session) Do(ctx context.Context, op targets.Op) targets.Reply {
	f := s.fault
	if reply, struck := s.strikeExpiry(ctx, op); struck {
		return reply
	}
	conditional := op.Kind == targets.Write && op.If.Guard != targets.Unguarded
	switch {
	case conditional && f.name == "condition-ignored":
		op.If = targets.Condition{}
		return s.inner.Do(ctx, op)
	case op.Kind == targets.Write && !conditional && s.contender < 0:
		f.once(op.Key, func(k *struckKey) bool { k.seed, k.seeded = op, true; return true })
	case op.Kind == targets.Read:
		return s.read(ctx, op)
	case op.Kind == targets.Raw:
		reply := s.inner.Do(ctx, op)
		if f.name == "unmapped" && reply.Status >= 400 {
			return s.strikeRefused(ctx, op, reply)
		}
		return reply
	case conditional && s.contender >= 0:
		if reply, struck := s.strikeRequest(ctx, op); struck {
			return reply
		}
		reply := s.inner.Do(ctx, op)
		if reply.Outcome == targets.OK {
			f.once(op.Key, func(k *struckKey) bool { k.applied = true; return true })
			return s.strikeApplied(ctx, op, reply)
		}
		if reply.Outcome == targets.Conflict {
			return s.strikeRefused(ctx, op, reply)
		}
		return reply
	}
	return s.inner.Do(ctx, op)
}

// clockOffset is by how much clock-offset is ahead.
const clockOffset = 5 * time.Second

// strikeExpiry is for the faults of the time to live.
func (s *session) strikeExpiry(ctx context.Context, op targets.Op) (reply targets.Reply, struck bool) {
	switch s.fault.name {
	case "early-expiry":
		s.sweepIf(ctx, op, func(r targets.Reply) bool { return r.Granted > 0 && time.Until(r.Expires) <= r.Granted/2 })
		return s.inner.Do(ctx, op), true
	case "sweep-on-access":
		if reply = s.inner.Do(ctx, op); reply.Outcome.Served() {
			s.sweepIf(ctx, op, expired)
		}
		return reply, true
	case "clean-reads":
		if reply = s.inner.Do(ctx, op); op.Kind == targets.Read && expired(reply) {
			return sent(s.fault.replies.Missing), true
		}
		return reply, true
	case "clock-offset":
		if reply = s.inner.Do(ctx, op); !reply.Expires.IsZero() {
			reply.Expires = reply.Expires.Add(clockOffset)
		}
		return reply, true
	case "grants-double":
		op.TTL *= 2
		return s.inner.Do(ctx, op), true
	}
	return targets.Reply{}, false
}

func expired(r targets.Reply) bool {
	return r.Outcome == targets.OK && !r.Expires.IsZero() && time.Until(r.Expires) <= 0
}

// sweepIf removes the key of op from the store, in no time, where a read of it says
// so. One session at a time does: what the next has read is not another's new record.
func (s *session) sweepIf(ctx context.Context, op targets.Op, due func(targets.Reply) bool) {
	s.fault.mu.Lock()
	defer s.fault.mu.Unlock()
	if due(s.apply(ctx, targets.Op{Kind: targets.Read, Key: op.Key, Collection: op.Collection})) {
		s.apply(ctx, targets.Op{Kind: targets.Delete, Key: op.Key, Collection: op.Collection})
	}
}

// strikeRequest is for the faults that keep the store from seeing the write.
func (s *session) strikeRequest(ctx context.Context, op targets.Op) (targets.Reply, bool) {
	if s.fault.name == "gap" {
		return s.checkThenSet(ctx, op), true
	}
	if s.fault.name == "no-winner" {
		return s.fault.refusal(op), true
	}
	if s.fault.share < 1 && rand.Float64() >= s.fault.share {
		return targets.Reply{}, false
	}
	switch s.fault.name {
	case "request-dropped":
		began := time.Now()
		<-ctx.Done()
		return kit.Lost(ctx.Err(), began), true
	case "error-before":
		return sent(s.fault.replies.Failed), true
	case "throttle":
		return planted(s.fault.replies.Throttled, "throttle"), true
	}
	return targets.Reply{}, false
}

// strikeApplied is for the faults that strike a write after it was applied.
func (s *session) strikeApplied(ctx context.Context, op targets.Op, reply targets.Reply) targets.Reply {
	op.If = targets.Condition{}
	switch s.fault.name {
	case "reply-dropped":
		began := time.Now()
		<-ctx.Done()
		return kit.Lost(ctx.Err(), began)
	case "error-after":
		return sent(s.fault.replies.Failed)
	case "version-jump":
		op.Value.Version++
		s.inner.Do(ctx, op)
	case "foreign-writer":
		op.Value.Token = "somebody-else"
		s.inner.Do(ctx, op)
	}
	return reply
}

// strikeRefused is for the faults that strike a write after it was refused.
func (s *session) strikeRefused(ctx context.Context, op targets.Op, reply targets.Reply) targets.Reply {
	first := func() bool {
		return s.fault.once(op.Key, func(k *struckKey) bool { first := !k.refused; k.refused = true; return first })
	}
	op.If = targets.Condition{}
	switch s.fault.name {
	case "two-winners":
		if first() {
			return s.inner.Do(ctx, op)
		}
	case "loser-stored":
		if first() {
			s.inner.Do(ctx, op)
		}
	case "unmapped":
		return planted(s.fault.replies.Unmapped, "unmapped")
	}
	return reply
}

// read shows the state before a contender's write where the fault says so.
func (s *session) read(ctx context.Context, op targets.Op) targets.Reply {
	stale := s.fault.once(op.Key, func(k *struckKey) bool {
		switch s.fault.name {
		case "lost-write":
			return k.applied
		case "stale-read":
			if k.applied {
				k.readings++
			}
			return k.applied && k.readings <= s.fault.reads
		default:
			return false
		}
	})
	if !stale {
		return s.inner.Do(ctx, op)
	}
	undo := s.fault.before(op)
	if s.fault.name == "lost-write" {
		s.inner.Do(ctx, undo)
		return s.inner.Do(ctx, op)
	}
	if undo.Kind == targets.Delete {
		return sent(s.fault.replies.Missing)
	}
	was := sent(s.fault.replies.Read)
	was.Record = undo.Value
	return was
}

// checkThenSet is the guard that a store does not have which checks and sets in
// two steps.
func (s *session) checkThenSet(ctx context.Context, op targets.Op) targets.Reply {
	was := s.inner.Do(ctx, targets.Op{Kind: targets.Read, Key: op.Key, Collection: op.Collection})
	holds := was.Outcome == targets.Missing
	if op.If.Guard != targets.IfAbsent {
		holds = !holds && op.If.Holds(was.Record)
	}
	if !holds {
		return s.fault.refusal(op)
	}
	began := time.Now()
	if err := kit.Sleep(ctx, s.fault.gap); err != nil {
		return kit.Lost(err, began)
	}
	op.If = targets.Condition{}
	return s.inner.Do(ctx, op)
}

// planted is a reply that says where it comes from.
func planted(r targets.Reply, name string) targets.Reply {
	r.Message = "planted by fault=" + name
	return sent(r)
}

// refusal is the store's own, of the op's condition.
func (f *Fault) refusal(op targets.Op) targets.Reply {
	if op.If.Guard == targets.IfAbsent {
		return sent(f.replies.Exists)
	}
	return sent(f.replies.Stale)
}

// sent is a reply to a request that went out once.
func sent(r targets.Reply) targets.Reply {
	r.Attempts = 1
	return r
}

// apply sends an op of the fault's own, in no time where the session can.
func (s *session) apply(ctx context.Context, op targets.Op) targets.Reply {
	if instant, ok := s.inner.(Instant); ok {
		return instant.Apply(op)
	}
	return s.inner.Do(ctx, op)
}
