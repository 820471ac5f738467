package targettest

import (
	"fmt"
	"time"

	"contend/targets"
)

// unmodified checks writes on condition of the time that a record bears.
func (s *suite) unmodified() {
	collection, key := targets.Versioned, s.key("unmodified")
	at := time.Date(2026, 11, 30, 12, 34, 56, 0, time.UTC)
	write := func(on, updated time.Time) targets.Op {
		op := s.write(key, collection, targets.Condition{Guard: targets.IfUnmodified, UpdatedAt: on})
		op.Value.UpdatedAt = updated
		return op
	}
	stored := func(promise string, op targets.Op) {
		if got := s.do(1, read(key, collection)); got.Record.Token != op.Value.Token || !got.Record.UpdatedAt.Equal(op.Value.UpdatedAt) {
			s.breaks(promise, "stored is %s %q of %s, not %q of %s", got.Outcome, got.Record.Token, got.Record.UpdatedAt, op.Value.Token, op.Value.UpdatedAt)
		}
	}
	seed := s.write(key, collection, targets.Condition{})
	seed.Value.UpdatedAt = at
	if s.finest == 0 {
		s.withoutUnmodified(seed, write(at, at))
		return
	}
	s.expect("a write on the time of an absent record loses", 0, write(at, at), targets.Conflict)
	s.expect("an unconditional write overwrites", 0, seed, targets.OK)
	later := at.Add(s.finest)
	s.expect("a write on another time than the record's loses", 0, write(later, later), targets.Conflict)
	s.expect("a write on another time than the record's loses", 1, write(at.Add(-s.finest), later), targets.Conflict)
	stored("a write on another time than the record's leaves it alone", seed)
	same := write(at.In(time.FixedZone("", 3600)), at)
	s.expect("a write on the record's time wins", 0, same, targets.OK)
	stored("a write on the record's time is stored", same)
	// The trap of a time that is too coarse.
	moved := write(at, later)
	s.expect("a write on the record's time wins, also where a write before it left the same", 1, moved, targets.OK)
	stored("a write on the record's time is stored", moved)
	s.expect("a write on a time that the record does not bear any more loses", 0, write(at, at), targets.Conflict)
	stored("a write on another time than the record's leaves it alone", moved)
	if s.finest > time.Nanosecond {
		finer := write(later.Add(s.finest/10), at)
		if reply := s.do(0, finer); reply.Outcome != targets.Unsupported || reply.Attempts != 0 {
			s.breaks("a condition on a finer time than the target keeps is unsupported, and nothing is asked of the store", "got %s after %d attempts", reply.Outcome, reply.Attempts)
		}
	}
	s.expect("a delete is accepted", 0, remove(key, collection), targets.OK)
	for round := range unmodifiedRounds {
		s.raceOnTime(fmt.Sprintf("%s-%d", key, round), at)
	}
}

const unmodifiedRounds = 10

// withoutUnmodified checks that a condition is not dropped without a word.
func (s *suite) withoutUnmodified(seed, op targets.Op) {
	const promise = "a condition on a time that the target cannot compare is unsupported, and nothing is asked of the store"
	s.expect("an unconditional write overwrites", 0, seed, targets.OK)
	if reply := s.do(0, op); reply.Outcome != targets.Unsupported || reply.Attempts != 0 {
		s.breaks(promise, "got %s after %d attempts", reply.Outcome, reply.Attempts)
	}
	if got := s.do(1, read(seed.Key, seed.Collection)); got.Record.Token != seed.Value.Token {
		s.breaks(promise, "stored is %s %q", got.Outcome, got.Record.Token)
	}
	s.expect("a delete is accepted", 0, remove(seed.Key, seed.Collection), targets.OK)
}

// raceOnTime lets all sessions write on the time of one record at once, each
// leaving a time of its own.
func (s *suite) raceOnTime(key string, at time.Time) {
	const promise = "of all who write at once on a time, each leaving another, exactly one wins"
	collection := targets.Versioned
	seed := s.write(key, collection, targets.Condition{})
	seed.Value.UpdatedAt = at
	s.expect("an unconditional write overwrites", 0, seed, targets.OK)
	ops := make([]targets.Op, len(s.sessions))
	for i := range ops {
		ops[i] = s.write(key, collection, targets.Condition{Guard: targets.IfUnmodified, UpdatedAt: at})
		ops[i].Value.UpdatedAt = at.Add(time.Duration(i+1) * s.finest)
	}
	won, others := "", 0
	for i, reply := range s.atOnce(ops) {
		switch reply.Outcome {
		case targets.OK:
			if won != "" {
				s.breaks(promise, "several won")
			}
			won = ops[i].Value.Token
		case targets.Conflict, targets.Aborted:
			others++
		default:
			s.breaks("who does not win a race is refused or aborted", "got %s (%s %s)", reply.Outcome, reply.Code, reply.Message)
		}
	}
	if won == "" {
		s.breaks(promise, "none won, %d were refused or aborted", others)
	}
	if got := s.do(0, read(key, collection)); got.Record.Token != won {
		s.breaks("the record of a winner is stored", "won by %q, stored is %s %q", won, got.Outcome, got.Record.Token)
	}
	s.expect("a delete is accepted", 0, remove(key, collection), targets.OK)
}
