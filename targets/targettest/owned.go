package targettest

import (
	"slices"
	"sync"
	"time"

	"contend/targets"
)

// owned checks deletes and renewals on condition of the token or version of a record.
func (s *suite) owned() {
	s.unownedDeletes()
	has := make(map[targets.Kind]bool)
	for _, guard := range []targets.Guard{targets.IfVersion, targets.IfToken} {
		for parameter, kind := range map[string]targets.Kind{"delete": targets.Delete, "renew": targets.Renew} {
			strategy := s.described.Strategies[parameter]
			switch {
			case strategy != "" && (kind != targets.Renew || s.hasTTL):
				has[kind] = s.onCondition(kind, guard, parameter, strategy)
			case strategy == "":
				s.withoutStrategy(kind, guard)
			}
		}
	}
	if has[targets.Delete] {
		s.deleteRace()
	}
	if has[targets.Renew] && s.expired != "" {
		s.renewal()
	}
}

// on is the condition that a key holds the record of a write.
func on(guard targets.Guard, of targets.Op, was targets.Reply) targets.Condition {
	return targets.Condition{Guard: guard, Counter: of.Value.Version, Version: was.Version, Token: of.Value.Token}
}

func (s *suite) change(kind targets.Kind, of targets.Op, condition targets.Condition) targets.Op {
	op := targets.Op{Kind: kind, Key: of.Key, Collection: of.Collection, If: condition}
	if kind == targets.Renew {
		op.TTL, op.Value = longTTL, of.Value
	}
	return op
}

// seeded is a record that a key holds, with a time to live where it is to be renewed.
func (s *suite) seeded(kind targets.Kind, name string, version int64) (targets.Op, targets.Reply) {
	op := s.write(s.key(name), targets.Versioned, targets.Condition{})
	op.Value.Version = version
	if kind == targets.Renew {
		op.TTL = longTTL
	}
	s.expect("an unconditional write overwrites", 0, op, targets.OK)
	return op, s.do(1, read(op.Key, op.Collection))
}

// onCondition checks one condition; has is false where the store lacks it after all.
func (s *suite) onCondition(kind targets.Kind, guard targets.Guard, parameter, strategy string) (has bool) {
	losers, _ := s.driver.Losers(parameter, strategy)
	refused := func(promise string, session int, op targets.Op) {
		reply := s.sessions[session].Do(s.ctx, op)
		if reply.Outcome != targets.Conflict && reply.Outcome != targets.Aborted {
			s.breaks(promise, "%s on condition of the %s got %s (%s %s)", kind, guard, reply.Outcome, reply.Code, reply.Message)
		} else if !slices.Contains(losers, reply.Code) {
			s.breaks("a refusal carries a code that the driver lists", "%s=%s got %s %q; listed are %q", parameter, strategy, reply.Outcome, reply.Code, losers)
		}
	}
	const stale = "a delete or a renewal on condition of another record is refused"
	name := "owned-" + string(kind) + "-" + string(guard)
	old, was := s.seeded(kind, name, 1)
	held, is := s.seeded(kind, name, 2)
	if reply := s.sessions[0].Do(s.ctx, s.change(kind, held, on(guard, old, was))); reply.Outcome == targets.Unsupported && reply.Attempts == 0 {
		s.expect("a delete is accepted", 0, remove(held.Key, held.Collection), targets.OK)
		return false // a server that refuses scripts, say
	}
	refused(stale, 0, s.change(kind, held, on(guard, old, was)))
	if got := s.do(1, read(held.Key, held.Collection)); got.Record.Token != held.Value.Token {
		s.breaks("a refused delete or renewal leaves the record alone", "read %s %q, want %q", got.Outcome, got.Record.Token, held.Value.Token)
	}
	s.expect("a delete or a renewal on condition of the record is accepted", 0, s.change(kind, held, on(guard, held, is)), targets.OK)
	want := targets.OK
	if kind == targets.Delete {
		want = targets.Missing
	}
	got := s.expect("an accepted delete removes the record, and a renewal leaves it", 1, read(held.Key, held.Collection), want)
	if want == targets.OK && got.Record.Token != held.Value.Token {
		s.breaks("an accepted delete removes the record, and a renewal leaves it", "read %q, want %q", got.Record.Token, held.Value.Token)
	}
	s.expect("a delete is accepted", 0, remove(held.Key, held.Collection), targets.OK)
	refused("a delete or a renewal of what is not there is refused", 1, s.change(kind, held, on(guard, held, is)))
	return true
}

// unownedDeletes checks that a delete without a condition needs no record.
func (s *suite) unownedDeletes() {
	s.expect("a delete of an absent key is accepted", 1, remove(s.key("owned-absent"), targets.Versioned), targets.OK)
}

// withoutStrategy checks that a condition is not dropped without a word.
func (s *suite) withoutStrategy(kind targets.Kind, guard targets.Guard) {
	const promise = "a delete or a renewal on a condition that the target has not is unsupported, and nothing is asked of the store"
	held, is := s.seeded(targets.Delete, "unowned-"+string(kind)+"-"+string(guard), 1)
	other := s.write(held.Key, held.Collection, targets.Condition{})
	if reply := s.sessions[0].Do(s.ctx, s.change(kind, held, on(guard, other, is))); reply.Outcome != targets.Unsupported || reply.Attempts != 0 {
		s.breaks(promise, "got %s (%s %s) after %d attempts", reply.Outcome, reply.Code, reply.Message, reply.Attempts)
	}
	s.expect(promise, 1, read(held.Key, held.Collection), targets.OK)
	s.expect("a delete is accepted", 0, remove(held.Key, held.Collection), targets.OK)
}

// deleteRace lets all sessions delete one record at once.
func (s *suite) deleteRace() {
	for range raceRounds / 5 {
		held, is := s.seeded(targets.Delete, "owned-race", 1)
		replies := make([]targets.Reply, len(s.sessions))
		var all sync.WaitGroup
		for i, session := range s.sessions {
			all.Go(func() { replies[i] = session.Do(s.ctx, s.change(targets.Delete, held, on(targets.IfToken, held, is))) })
		}
		all.Wait()
		accepted := 0
		for _, reply := range replies {
			if reply.Outcome == targets.OK {
				accepted++
			}
		}
		if accepted != 1 {
			s.breaks("of all who delete one record at once exactly one is accepted", "%d of %d were", accepted, len(replies))
		}
	}
}

// renewal checks that a key outlives the time to live that it was written with.
func (s *suite) renewal() {
	op := s.write(s.key("owned-renewed"), targets.Versioned, targets.Condition{})
	op.TTL = shortTTL
	s.expect("an unconditional write overwrites", 0, op, targets.OK)
	is := s.do(1, read(op.Key, op.Collection))
	s.expect("a delete or a renewal on condition of the record is accepted", 0, s.change(targets.Renew, op, on(targets.IfToken, op, is)), targets.OK)
	time.Sleep(shortTTL + 2*clockSlack)
	const promise = "a renewed key outlives the time to live that it was written with"
	if got := s.do(1, read(op.Key, op.Collection)); got.Outcome != targets.OK || !got.Expires.IsZero() && time.Until(got.Expires) < shortTTL {
		s.breaks(promise, "read %s, expiring %s", got.Outcome, got.Expires)
	}
	create := s.write(op.Key, op.Collection, targets.Condition{Guard: targets.IfAbsent})
	if reply := s.do(0, create); reply.Outcome == targets.OK {
		s.breaks(promise, "a create was accepted")
	}
	s.expect("a delete is accepted", 0, remove(op.Key, op.Collection), targets.OK)
}
