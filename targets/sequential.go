package targets

import "fmt"

// SequentialCheck is the result of one promise that a store must keep when
// nothing runs beside it.
type SequentialCheck struct {
	Control string // "sequential" (create) or "stale" (compare-and-set)
	Promise string
	Kept    bool
	// LeftOut: the store has no such condition, so nothing was checked.
	LeftOut bool
	// Violation names the broken rule where a guard let a write through that it
	// must refuse; empty where the reply was merely not as expected.
	Violation string
	// Behind: a read showed a missing or older record than had been written.
	Behind bool
	Detail string // what came instead, where the promise was not kept
	Op     Op     // the request whose reply decided
	Reply  Reply
}

// CheckSequential checks, on fresh keys that begin with key: a second create
// loses; after a delete a create wins; a compare-and-set on the right version
// wins and changes it; one on a stale version loses.
//
// do sends an op through one of two sessions, 0 and 1, so that a store that
// keeps its data per connection is found out. The ops depend on the replies
// alone: with do reading a recording, the checks are made again.
func CheckSequential(key string, do func(session int, op Op) Reply) []SequentialCheck {
	s := &sequence{do: do}
	s.create(key + "-create")
	s.compareAndSet(key + "-cas")
	return s.checks
}

type sequence struct {
	do         func(int, Op) Reply
	control    string
	key        string
	collection Collection
	tokens     int
	checks     []SequentialCheck
}

func (s *sequence) start(control, key string, collection Collection) {
	s.control, s.key, s.collection = control, key, collection
}

func (s *sequence) read(session int) (Op, Reply) {
	op := Op{Kind: Read, Key: s.key, Collection: s.collection}
	return op, s.do(session, op)
}

func (s *sequence) delete(session int) (Op, Reply) {
	op := Op{Kind: Delete, Key: s.key, Collection: s.collection}
	return op, s.do(session, op)
}

func (s *sequence) write(session int, version int64, cond Condition) (Op, Reply) {
	s.tokens++
	op := Op{Kind: Write, Key: s.key, Collection: s.collection, If: cond,
		Value: Record{Token: fmt.Sprintf("%s-%d", s.key, s.tokens), Version: version}}
	return op, s.do(session, op)
}

// expect notes whether the reply has the outcome; it tells whether to go on.
// Where accepted is not empty, an OK instead is that violation.
func (s *sequence) expect(promise string, op Op, got Reply, want Outcome, accepted string) bool {
	c := SequentialCheck{Control: s.control, Promise: promise, Op: op, Reply: got, Kept: got.Outcome == want}
	if got.Outcome == Unsupported {
		c.LeftOut = true
	}
	if !c.Kept {
		c.Detail = fmt.Sprintf("%s: expected %s, got %s", promise, want, got.Outcome)
		if got.Code != "" || got.Status != 0 {
			c.Detail += fmt.Sprintf(" (%s)", codeAndStatus(got))
		}
		// After more than one attempt a reply may be the writer's own doing.
		if got.Outcome == OK && accepted != "" && got.Attempts <= 1 {
			c.Violation = accepted
		}
	}
	s.checks = append(s.checks, c)
	return c.Kept
}

// holds notes whether the store holds the record of the given write.
// refused, where it is not the zero Op, is a write that was told it lost.
func (s *sequence) holds(promise string, session int, want, refused Op) bool {
	op, got := s.read(session)
	c := SequentialCheck{Control: s.control, Promise: promise, Op: op, Reply: got,
		Kept: got.Outcome == OK && got.Record.Token == want.Value.Token && got.Record.Version == want.Value.Version}
	if !c.Kept {
		c.Detail = fmt.Sprintf("%s: expected the record %s at version %d, got %s %s at version %d", promise,
			want.Value.Token, want.Value.Version, got.Outcome, got.Record.Token, got.Record.Version)
		c.Behind = got.Outcome == Missing || got.Outcome == OK && got.Record.Version < want.Value.Version
		if token := refused.Value.Token; token != "" && got.Record.Token == token {
			c.Violation, c.Op = "refused-but-applied", refused
		}
	}
	s.checks = append(s.checks, c)
	return c.Kept
}

func codeAndStatus(r Reply) string {
	switch {
	case r.Code == "":
		return fmt.Sprint(r.Status)
	case r.Status == 0:
		return r.Code
	default:
		return fmt.Sprintf("%s %d", r.Code, r.Status)
	}
}

func (s *sequence) create(key string) {
	s.start("sequential", key, Plain)
	ifAbsent := Condition{Guard: IfAbsent}
	op, got := s.read(0)
	if !s.expect("a key that was never written is missing", op, got, Missing, "") {
		return
	}
	first, got := s.write(0, 1, ifAbsent)
	if !s.expect("a create of a missing key wins", first, got, OK, "") {
		return
	}
	op, got = s.write(1, 1, ifAbsent)
	refused := s.expect("a second create loses", op, got, Conflict, "second-create-accepted")
	if refused {
		s.holds("a refused create leaves the record alone", 1, first, op)
	}
	op, got = s.delete(1)
	if s.expect("a delete is accepted", op, got, OK, "") && refused {
		op, got = s.write(1, 1, ifAbsent)
		s.expect("a create after a delete wins", op, got, OK, "")
		s.delete(0)
	}
}

func (s *sequence) compareAndSet(key string) {
	s.start("stale", key, Versioned)
	seed, got := s.write(0, 0, Condition{})
	if !s.expect("an unconditional write is accepted", seed, got, OK, "") {
		return
	}
	_, was := s.read(1)
	on := func(counter int64, r Reply) Condition {
		return Condition{Guard: IfVersion, Counter: counter, Version: r.Version}
	}
	right, got := s.write(0, 1, on(0, was))
	if !s.expect("a write on the right version wins", right, got, OK, "") {
		s.delete(0)
		return
	}
	if s.holds("a write on the right version is stored", 1, right, Op{}) {
		_, is := s.read(1)
		op, got := s.write(1, 1, on(0, was))
		if s.expect("a write on a stale version loses", op, got, Conflict, "stale-write-accepted") {
			s.holds("a refused write leaves the record alone", 0, right, op)
		}
		changed := was.Version == "" || was.Version != is.Version
		s.checks = append(s.checks, SequentialCheck{Control: s.control, Promise: "a write changes the store's own version",
			Kept: changed, Detail: detailUnless(changed, "the store's own version stayed "+was.Version), Op: right, Reply: is})
	}
	s.delete(0)
}

func detailUnless(ok bool, detail string) string {
	if ok {
		return ""
	}
	return detail
}
