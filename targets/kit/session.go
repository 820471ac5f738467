package kit

import (
	"context"
	"errors"
	"slices"
	"time"

	"contend/targets"
)

// Op sends an op once.
type Op func(context.Context, targets.Op) targets.Reply

// Session is a targets.Stager over one connection: the part of it that stores share.
type Session struct {
	Store string // its name, for messages
	Clock Clock
	// Ops send an op of each kind that the store has, once.
	Ops map[targets.Kind]Op
	// Ended is the error of a connection that is closed; nil: it is open.
	Ended func() error
	// CloseAtEndOf closes the connection when ctx ends, until that is called off; nil:
	// the client does so itself.
	CloseAtEndOf func(ctx context.Context) (callOff func() bool)
}

// Do implements targets.Session.
func (s *Session) Do(ctx context.Context, op targets.Op) targets.Reply {
	if err := ctx.Err(); err != nil {
		return Lost(err, time.Time{})
	}
	do, known := s.Ops[op.Kind]
	if !known {
		return Unsupported("%s has no op %q", s.Store, op.Kind)
	}
	if err := s.Ended(); err != nil {
		return Lost(err, time.Time{})
	}
	if s.CloseAtEndOf != nil {
		defer s.CloseAtEndOf(ctx)()
	}
	s.Clock.Begin()
	r := do(ctx, op)
	s.Clock.Stamp(&r)
	return r
}

// Stage has the client encode the first request of the op before meet.
func (s *Session) Stage(ctx context.Context, op targets.Op, _ targets.Release, meet func()) targets.Reply {
	return s.Clock.Stage(ctx, meet, func() targets.Reply { return s.Do(ctx, op) })
}

// Lost is the reply where a client has no answer. One of its own errors tells that its
// connection is closed; any other, that it could make nothing of what came, which it
// quotes.
func (s *Session) Lost(ctx context.Context, err error, own ...error) targets.Reply {
	isOwn := func(closed error) bool { return errors.Is(err, closed) }
	switch {
	case ctx.Err() != nil:
		err = ctx.Err()
	case !NoAnswer(err) && !errors.Is(err, ErrClosed) && !slices.ContainsFunc(own, isOwn):
		return Unexpected("the request", err.Error())
	}
	return Lost(err, s.Clock.Sent())
}
