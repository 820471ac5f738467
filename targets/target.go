package targets

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// A Session is one contender's own connection, dialled and authenticated
// before the race. It serves one Do at a time.
type Session interface {
	// Do sends one request, once, and waits for the answer or for ctx to end;
	// an op that ctx ended after it was sent is Unknown.
	Do(ctx context.Context, op Op) Reply
	Close() error
}

// A Target is a store that can be contended for.
type Target interface {
	// Describe tells what the target is; complete only after Prepare, and what
	// it tells of clocks and warm-up only when the sessions are open.
	Describe() Description
	// Prepare connects once, makes what the run needs (a table, a script) and
	// fails with an error that says what to do next. It can be repeated.
	Prepare(ctx context.Context, needs Needs) error
	// Open gives a session of its own, warmed. Sessions of contenders count
	// from 0; a negative number is one of the runner's own, for seeding and
	// reading back.
	Open(ctx context.Context, contender int) (Session, error)
	// List gives every key that begins with prefix, wherever the target keeps records,
	// each as the op that deletes it; and how many requests that took. It needs no
	// Prepare, and makes nothing: where there is no table yet, there are no keys.
	List(ctx context.Context, prefix string) (deletes []Op, requests int, err error)
	Close() error
}

// Needs is what a run asks of a target.
type Needs struct {
	Guards   []Guard       // the conditions that its writes will carry
	Sessions int           // how many will be open at once
	Timeout  time.Duration // after which the runner gives a request up
	// TTL: keys will be given a time to live. A target that has none fails to
	// prepare, with ErrUnsupported.
	TTL bool
	// Precision is that of the times which writes under IfUnmodified will compare;
	// 0: there are none. A target that cannot fails to prepare, with ErrUnsupported.
	Precision time.Duration
}

// compares fails where times are to be compared that are finer than the target,
// which a report knows by that name, keeps them.
func (n Needs) compares(name string, finest time.Duration) error {
	if n.Precision == 0 || n.Precision >= finest {
		return nil
	}
	return fmt.Errorf("%s: this target has no time as fine as %s: it keeps them to %s: choose a coarser precision, or another target: %w",
		name, n.Precision, finest, ErrUnsupported)
}

// finer is the reply to a condition on a time that is finer than the target keeps
// it; nil: it is not.
func (c Condition) finer(finest time.Duration) *Reply {
	if c.Guard != IfUnmodified || c.UpdatedAt.Nanosecond()%int(finest) == 0 {
		return nil
	}
	return &Reply{Outcome: Unsupported, Message: fmt.Sprintf("this target keeps times to %s, and cannot compare a finer one", finest)}
}

// unmodified tells whether a record bears the time of the condition.
func (c Condition) unmodified(r Record) bool {
	return !c.UpdatedAt.IsZero() && c.UpdatedAt.Equal(r.UpdatedAt)
}

// Description is what a report says of a target.
type Description struct {
	Kind       string            // the driver's name
	URL        string            // with secrets masked
	Server     string            // name and version as the server tells them
	Strategies map[string]string // the chosen way for each condition: create, cas
	Simulated  bool
	Volatile   bool // its keys die with the process
	// OneCopy: the guards of all writes on a key are checked on one copy of it, so
	// that a refusal shows that the winner's write had taken effect there.
	OneCopy bool
	Limits  []Limit // as documented; the default budget of a run
	// QuotaUnit is the bytes that a request may have to cost one unit of a Limit in
	// Units; 0: the store counts requests.
	QuotaUnit int
	// SentBy names how Reply.Sent is taken: "kernel-write", or "call" where the
	// entry of Do stands in for it.
	SentBy string
	// Releases are the ways in which contenders can be released, the one that suits the
	// target best first; none: the gate.
	Releases []Release
	Notes    []string // what a reader of a report must know
	// WarmUp is how many requests the opening of a session sends; Prepare then
	// sends one too.
	WarmUp int
	// Lists is how many requests a List sends that finds nothing.
	Lists int
	// Lead is how far ahead contenders of a relayed target are given their common
	// instant, so that all have arrived next to the store by then; 0: the target
	// does not relay.
	Lead time.Duration
	// HashTags: keys can hold { and }, which say where a cluster keeps them.
	HashTags bool
	// TTLUnit is what times to live are whole multiples of; 0: any.
	TTLUnit time.Duration
	// Uncertainty is how far apart the clocks next to the store may be.
	Uncertainty time.Duration
}

// Limit is a number of requests in any span of time.
type Limit struct {
	Requests float64
	Per      time.Duration
	Units    bool // it is units of QuotaUnit bytes that are counted
}

// Units is how many a request with a body of so many bytes costs; 0 where the
// store counts requests.
func (d Description) Units(bytes int) int {
	if d.QuotaUnit == 0 {
		return 0
	}
	// What stands around the body: key, token, times.
	const around = 300
	return max(1, (bytes+around+d.QuotaUnit-1)/d.QuotaUnit)
}

// UsageError is a target URL, parameter or wish that cannot be; nothing was
// sent. Its text says what to do instead.
type UsageError struct{ Text string }

func (e *UsageError) Error() string { return e.Text }

func usagef(format string, a ...any) error { return &UsageError{fmt.Sprintf(format, a...)} }

// ErrUnsupported is in the chain of errors that mean: this target has no such
// thing.
var ErrUnsupported = errors.New("not supported by this target")
