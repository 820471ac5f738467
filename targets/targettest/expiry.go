package targettest

import (
	"time"

	"contend/targets"
)

// An Option tells Suite more of a target.
type Option func(*suite)

// Expired is what becomes of a key whose time to live has ended, as the target's
// driver documents it.
type Expired string

const (
	Gone    Expired = "gone"    // soon it is not read, and a create is accepted
	Shown   Expired = "shown"   // soon a create is accepted; until then it is read
	Blocked Expired = "blocked" // for longer than a test takes it is read and refuses creates
)

// TTL asks for a target that has a time to live, and waits for an expiry.
func TTL(after Expired) Option { return func(s *suite) { s.expired = after } }

const (
	longTTL  = time.Hour
	shortTTL = time.Second // the least that every store can grant
	// expiresWithin is how long after its expiry a key may still be there, where
	// the driver says that it is gone soon.
	expiresWithin = 30 * time.Second
	// clockSlack is how much sooner than by our clock a key may expire by another.
	clockSlack = 50 * time.Millisecond
)

func (s *suite) expiry() {
	if !s.hasTTL {
		s.withoutTTL()
		return
	}
	for _, guard := range []targets.Guard{targets.Unguarded, targets.IfAbsent, targets.IfVersion} {
		s.untilExpiry(guard)
	}
	switch s.expired {
	case Gone, Shown:
		s.gone()
	case Blocked:
		s.blocked()
	}
}

// withoutTTL checks that a time to live is not dropped without a word.
func (s *suite) withoutTTL() {
	const promise = "a time to live that the target has not is unsupported, and nothing is asked of the store"
	key, collection := s.key("ttl"), targets.Plain
	for _, guard := range []targets.Guard{targets.Unguarded, targets.IfAbsent} {
		op := s.write(key, collection, targets.Condition{Guard: guard})
		op.TTL = shortTTL
		if reply := s.do(0, op); reply.Outcome != targets.Unsupported || reply.Attempts != 0 {
			s.breaks(promise, "got %s (%s %s) after %d attempts", reply.Outcome, reply.Code, reply.Message, reply.Attempts)
		}
	}
	s.expect(promise, 0, read(key, collection), targets.Missing)
}

// untilExpiry checks a key whose time to live, given to it by a write under a
// guard, does not end while a test runs.
func (s *suite) untilExpiry(guard targets.Guard) {
	key, collection := s.key("ttl-"+string(guard)), targets.Plain
	cond := targets.Condition{Guard: guard}
	if guard == targets.IfVersion {
		collection = targets.Versioned
		s.expect("an unconditional write overwrites", 0, s.write(key, collection, targets.Condition{}), targets.OK)
		was := s.do(0, read(key, collection))
		cond.Counter, cond.Version = was.Record.Version, was.Version
	}
	op := s.write(key, collection, cond)
	op.TTL, op.Value.Version = longTTL, cond.Counter+1
	reply := s.do(0, op)
	if reply.Outcome == targets.Unsupported && guard != targets.Unguarded {
		return
	}
	if reply.Outcome != targets.OK {
		s.breaks("a write with a time to live is accepted", "under guard %q got %s (%s %s)", guard, reply.Outcome, reply.Code, reply.Message)
		return
	}
	s.told(reply)
	s.told(s.shows("a key is read until its time to live ends", op))
	again := s.do(1, s.write(key, collection, targets.Condition{Guard: targets.IfAbsent}))
	switch again.Outcome {
	case targets.Conflict, targets.Aborted, targets.Unsupported:
		s.shows("a refused create leaves the record alone", op)
	default:
		s.breaks("a key refuses creates until its time to live ends", "after a write under guard %q got %s (%s %s)",
			guard, again.Outcome, again.Code, again.Message)
	}
	s.expect("a delete is accepted", 0, remove(key, collection), targets.OK)
	s.expect("a deleted key is missing", 0, read(key, collection), targets.Missing)
}

// told checks what is told of a time to live; a clock there may count whole seconds.
func (s *suite) told(reply targets.Reply) {
	if reply.Granted != 0 && reply.Granted < longTTL-time.Second {
		s.breaks("the time to live that is told is not shorter than was asked for", "asked %s, told %s", longTTL, reply.Granted)
	}
}

// shows reads the key of a write through another session.
func (s *suite) shows(promise string, op targets.Op) targets.Reply {
	got := s.do(1, read(op.Key, op.Collection))
	if got.Outcome != targets.OK || got.Record.Token != op.Value.Token {
		s.breaks(promise, "wrote %s, got %s %s", op.Value.Token, got.Outcome, got.Record.Token)
	}
	return got
}

// expiring creates a key that expires while the test waits; ok is false where it
// cannot.
func (s *suite) expiring(name string) (op targets.Op, ok bool) {
	op = s.write(s.key(name), targets.Plain, targets.Condition{Guard: targets.IfAbsent})
	op.TTL = shortTTL
	switch reply := s.do(0, op); reply.Outcome {
	case targets.OK:
		return op, true
	case targets.Unsupported:
	default:
		s.breaks("a write with a time to live is accepted", "got %s (%s %s)", reply.Outcome, reply.Code, reply.Message)
	}
	return op, false
}

// gone checks two keys: to ask for one in one way can change what it is in the
// other. That which is read is the older one, so it has expired when the other has.
func (s *suite) gone() {
	first := time.Now()
	shown, ok := s.expiring("ttl-read")
	if !ok {
		return
	}
	second := time.Now()
	taken, ok := s.expiring("ttl-create")
	if !ok {
		return
	}
	s.within("an expired key accepts a create", second, func() bool {
		reply := s.do(1, s.write(taken.Key, taken.Collection, targets.Condition{Guard: targets.IfAbsent}))
		return reply.Outcome == targets.OK
	})
	if s.expired == Shown {
		s.shows("an expired key is read until it is taken over", shown)
		return
	}
	s.within("an expired key is not read", first, func() bool {
		return s.do(1, read(shown.Key, shown.Collection)).Outcome == targets.Missing
	})
}

// within asks until done: not before the time to live of a key has ended, which was
// written after the given moment, and soon after it.
func (s *suite) within(promise string, written time.Time, done func() bool) {
	for {
		over := done()
		took := time.Since(written)
		switch {
		case over && took < shortTTL-clockSlack:
			s.breaks("a key lives for its whole time to live", "%s, after %s of %s", promise, took, shortTTL)
			return
		case over:
			return
		case took > shortTTL+expiresWithin:
			s.breaks(promise, "not %s after its expiry", expiresWithin)
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func (s *suite) blocked() {
	op, ok := s.expiring("ttl-blocked")
	if !ok {
		return
	}
	time.Sleep(shortTTL + 2*clockSlack)
	for range 5 {
		reply := s.do(1, s.write(op.Key, op.Collection, targets.Condition{Guard: targets.IfAbsent}))
		if reply.Outcome != targets.Conflict && reply.Outcome != targets.Aborted {
			s.breaks("an expired key refuses creates", "got %s (%s %s)", reply.Outcome, reply.Code, reply.Message)
		}
		s.shows("an expired key is read", op)
	}
}
