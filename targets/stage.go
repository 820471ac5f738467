package targets

import "context"

// Release names how contenders are released.
type Release string

const (
	// Gate: nothing is sent before the moment at which they are.
	Gate Release = "gate"
	// LastByte: all is sent before but the last byte of each request, which the store
	// has to wait for.
	LastByte Release = "last-byte"
)

// A Stager is a Session that can do a part of an op before its contender is released.
type Stager interface {
	Session
	// Stage is Do with a halt. It does first what can be done ahead, which for
	// LastByte is to send all of a Write but the last byte; then it calls meet, on the
	// goroutine of the caller, and goes on when that returns. Where it fails before,
	// meet is not called. An op that it has no halt for waits at meet as a whole.
	//
	// The reply to a request that the store answered before its last byte was sent is
	// Unknown, and Early.
	Stage(ctx context.Context, op Op, how Release, meet func()) Reply
}
