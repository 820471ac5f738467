package targettest

import (
	"slices"
	"time"

	"contend/targets"
)

// heldFor is at least how long a staged op is held back.
const heldFor = 200 * time.Millisecond

// staging holds creates back, in every way that the target's contenders can be released.
func (s *suite) staging() {
	releases := s.target.Describe().Releases
	stager, stages := s.sessions[0].(targets.Stager)
	if !stages {
		if slices.Contains(releases, targets.LastByte) {
			s.breaks("who can hold requests back at their last byte stages them", "the sessions are no Stager")
		}
		return
	}
	for _, how := range []targets.Release{targets.Gate, targets.LastByte} {
		if how == targets.LastByte && !slices.Contains(releases, how) {
			continue
		}
		create := s.write(s.key("staged-"+string(how)), targets.Plain, targets.Condition{Guard: targets.IfAbsent})
		if reply := s.stage(stager, create, how, func() {}); reply.Outcome == targets.Unsupported {
			return
		} else if reply.Outcome != targets.OK {
			s.breaks("a staged create of an absent key wins", "by %s: got %s (%s %s)", how, reply.Outcome, reply.Code, reply.Message)
		}
		if got := s.do(1, read(create.Key, create.Collection)); got.Record.Token != create.Value.Token {
			s.breaks("what a staged create was accepted for is stored", "by %s: stored is %s %q", how, got.Outcome, got.Record.Token)
		}
		create = s.write(s.key("overtaken-"+string(how)), targets.Plain, targets.Condition{Guard: targets.IfAbsent})
		reply := s.stage(stager, create, how, func() { s.overtake(how, create) })
		if reply.Outcome != targets.Conflict {
			s.breaks("a staged create is decided on when it is released", "by %s: a key that was created meanwhile got %s (%s %s)", how, reply.Outcome, reply.Code, reply.Message)
		}
	}
}

// stage halts an op through a session, for as long as meanwhile takes.
func (s *suite) stage(stager targets.Stager, op targets.Op, how targets.Release, meanwhile func()) targets.Reply {
	halted, release, replies := make(chan struct{}), make(chan struct{}), make(chan targets.Reply, 1)
	go func() {
		replies <- stager.Stage(s.ctx, op, how, func() {
			close(halted)
			<-release
		})
	}()
	select {
	case <-halted:
	case reply := <-replies:
		if reply.Outcome != targets.Unsupported {
			s.breaks("a staged op waits to be released", "by %s: got %s (%s %s) before", how, reply.Outcome, reply.Code, reply.Message)
		}
		return reply
	}
	met := time.Now()
	meanwhile()
	released := time.Now()
	close(release)
	reply := <-replies
	s.check(op, reply)
	switch {
	case reply.Early:
		s.breaks("a store waits for the last byte of a request", "it answered before")
	case how == targets.Gate && !reply.Began.IsZero() && reply.Began.Before(released):
		s.breaks("before the gate nothing is sent", "the op began %s before", released.Sub(reply.Began))
	case how == targets.LastByte && (reply.Began.IsZero() || reply.Began.After(met)):
		s.breaks("what is held back began with its first byte", "it says that it began later, or not when")
	case how == targets.LastByte && reply.Sent.Before(released):
		s.breaks("what is held back counts as sent by its last byte", "it says that it was sent %s before", released.Sub(reply.Sent))
	}
	return reply
}

// overtake looks for the key of a create that is held back, and creates it.
func (s *suite) overtake(how targets.Release, held targets.Op) {
	time.Sleep(heldFor)
	mine := s.write(held.Key, held.Collection, held.If)
	var seen, created targets.Reply
	done := make(chan struct{})
	go func() {
		defer close(done)
		seen = s.sessions[1].Do(s.ctx, read(held.Key, held.Collection))
		created = s.sessions[1].Do(s.ctx, mine)
	}()
	timer := time.NewTimer(answerWithin)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
		s.breaks("nobody waits for a create that is held back", "by %s: another session got no answer within %s", how, answerWithin)
		return
	}
	if seen.Outcome != targets.Missing {
		s.breaks("a create that is held back has no effect", "by %s: its key was %s", how, seen.Outcome)
	}
	if created.Outcome != targets.OK {
		s.breaks("a key whose create is held back can be created", "by %s: got %s (%s %s)", how, created.Outcome, created.Code, created.Message)
	}
}
