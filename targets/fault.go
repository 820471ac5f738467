package targets

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"time"
)

// A fault is wrong in the same way whatever the timing: it strikes the
// conditional writes of contenders (and the reads that follow one), never the
// seeds, and only condition-ignored the sequential checks. One of the time to live
// strikes every key that has one, whoever asks.
type fault struct {
	name  string
	gap   time.Duration
	share float64
	reads int

	mu   sync.Mutex
	keys map[string]*struckKey
}

// struckKey is what a fault remembers of one key.
type struckKey struct {
	seed     Op   // the last unconditional write by the runner
	seeded   bool // there was one
	refused  bool // a refusal was struck
	applied  bool // a contender's conditional write was applied
	readings int  // stale reads given since
}

const defaultGap = 5 * time.Millisecond

func faultValues() []Value {
	return []Value{
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
		{Name: "clock-offset", Meaning: "the expiry that reads tell is 5s too late"},
		{Name: "grants-double", Meaning: "twice the time to live that was asked for is granted, and told"},
	}
}

// parseFault gives nil for "".
func parseFault(text string) (*fault, error) {
	if text == "" {
		return nil, nil
	}
	name, argument, given := strings.Cut(text, "=")
	f := &fault{name: name, gap: defaultGap, share: 1, reads: 1, keys: make(map[string]*struckKey)}
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

// once runs change on what is remembered of a key, and gives its answer.
func (f *fault) once(key string, change func(*struckKey) bool) bool {
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
func (f *fault) before(op Op) Op {
	undo := Op{Kind: Delete, Key: op.Key, Collection: op.Collection}
	f.once(op.Key, func(k *struckKey) bool {
		if k.seeded {
			undo = k.seed
		}
		return true
	})
	return undo
}

type faultySession struct {
	inner     *simSession
	fault     *fault
	contender int
}

func (s *faultySession) Close() error { return s.inner.Close() }

func (s *faultySession) Do(ctx context.Context, op Op) Reply {
	f := s.fault
	if reply, struck := s.strikeExpiry(ctx, op); struck {
		return reply
	}
	conditional := op.Kind == Write && op.If.Guard != Unguarded
	switch {
	case conditional && f.name == "condition-ignored":
		op.If = Condition{}
		return s.inner.Do(ctx, op)
	case op.Kind == Write && !conditional && s.contender < 0:
		f.once(op.Key, func(k *struckKey) bool { k.seed, k.seeded = op, true; return true })
	case op.Kind == Read:
		return s.read(ctx, op)
	case op.Kind == Raw:
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
		if reply.Outcome == OK {
			f.once(op.Key, func(k *struckKey) bool { k.applied = true; return true })
			return s.strikeApplied(ctx, op, reply)
		}
		if reply.Outcome == Conflict {
			return s.strikeRefused(ctx, op, reply)
		}
		return reply
	}
	return s.inner.Do(ctx, op)
}

// clockOffset is by how much clock-offset is ahead.
const clockOffset = 5 * time.Second

// strikeExpiry is for the faults of the time to live.
func (s *faultySession) strikeExpiry(ctx context.Context, op Op) (reply Reply, struck bool) {
	switch s.fault.name {
	case "early-expiry":
		s.sweepIf(op, func(r Reply) bool { return r.Granted > 0 && time.Until(r.Expires) <= r.Granted/2 })
		return s.inner.Do(ctx, op), true
	case "sweep-on-access":
		if reply = s.inner.Do(ctx, op); reply.Outcome.Served() {
			s.sweepIf(op, expired)
		}
		return reply, true
	case "clean-reads":
		if reply = s.inner.Do(ctx, op); op.Kind == Read && expired(reply) {
			return notFound(), true
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
	return Reply{}, false
}

func expired(r Reply) bool {
	return r.Outcome == OK && !r.Expires.IsZero() && time.Until(r.Expires) <= 0
}

// sweepIf removes the key of op from the store, in no time, where a read of it says
// so. One session at a time does: what the next has read is not another's new record.
func (s *faultySession) sweepIf(op Op, due func(Reply) bool) {
	s.fault.mu.Lock()
	defer s.fault.mu.Unlock()
	if due(s.inner.apply(Op{Kind: Read, Key: op.Key, Collection: op.Collection})) {
		s.inner.apply(Op{Kind: Delete, Key: op.Key, Collection: op.Collection})
	}
}

// strikeRequest is for the faults that keep the store from seeing the write.
func (s *faultySession) strikeRequest(ctx context.Context, op Op) (Reply, bool) {
	if s.fault.name == "gap" {
		return s.checkThenSet(ctx, op), true
	}
	if s.fault.name == "no-winner" {
		return refusal(op), true
	}
	if s.fault.share < 1 && rand.Float64() >= s.fault.share {
		return Reply{}, false
	}
	switch s.fault.name {
	case "request-dropped":
		sent := time.Now()
		<-ctx.Done()
		return lost(ctx.Err(), sent), true
	case "error-before":
		return serverError(), true
	case "throttle":
		return Reply{Outcome: Throttled, Code: "RATE_LIMIT_EXCEEDED", Status: 429, Message: "planted by fault=throttle", Attempts: 1}, true
	}
	return Reply{}, false
}

// strikeApplied is for the faults that strike a write after it was applied.
func (s *faultySession) strikeApplied(ctx context.Context, op Op, reply Reply) Reply {
	op.If = Condition{}
	switch s.fault.name {
	case "reply-dropped":
		sent := time.Now()
		<-ctx.Done()
		return lost(ctx.Err(), sent)
	case "error-after":
		return serverError()
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
func (s *faultySession) strikeRefused(ctx context.Context, op Op, reply Reply) Reply {
	first := func() bool {
		return s.fault.once(op.Key, func(k *struckKey) bool { first := !k.refused; k.refused = true; return first })
	}
	op.If = Condition{}
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
		return Reply{Outcome: outcomeOf(forgeAnswers, "OUT_OF_CHEESE", 418), Code: "OUT_OF_CHEESE", Status: 418,
			Message: "planted by fault=unmapped", Attempts: 1}
	}
	return reply
}

// read shows the state before a contender's write where the fault says so.
func (s *faultySession) read(ctx context.Context, op Op) Reply {
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
	if undo.Kind == Delete {
		return notFound()
	}
	return Reply{Outcome: OK, Status: 200, Record: undo.Value, Attempts: 1}
}

// checkThenSet is the guard that a store does not have which checks and sets in
// two steps.
func (s *faultySession) checkThenSet(ctx context.Context, op Op) Reply {
	was := s.inner.Do(ctx, Op{Kind: Read, Key: op.Key, Collection: op.Collection})
	absent := was.Outcome == Missing
	holds := op.If.Guard == IfAbsent && absent || op.If.Guard == IfVersion && !absent && was.Record.Version == op.If.Counter ||
		op.If.Guard == IfUnmodified && op.If.unmodified(was.Record)
	if !holds {
		return refusal(op)
	}
	sent := time.Now()
	if err := sleep(ctx, s.fault.gap); err != nil {
		return lost(err, sent)
	}
	op.If = Condition{}
	return s.inner.Do(ctx, op)
}

func refusal(op Op) Reply {
	r := Reply{Outcome: Conflict, Code: "CONDITIONAL_CHECK_FAILED", Status: 400, Attempts: 1,
		Message: "Request failed due to conditional check specified or optimistic locking"}
	if op.If.Guard == IfAbsent {
		r.Code, r.Status, r.Message = "KEY_CONFLICT", 409, "Provided key already exists and cannot be overwritten"
	}
	return r
}

func notFound() Reply {
	return Reply{Outcome: Missing, Code: "KEY_NOT_FOUND", Status: 404, Message: "Provided key does not exist", Attempts: 1}
}

func serverError() Reply {
	return Reply{Outcome: Unknown, Code: "INTERNAL_SERVER_ERROR", Status: 500,
		Message: "An internal server error has occurred", Attempts: 1}
}
