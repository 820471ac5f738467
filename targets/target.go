package targets

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
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
	// Describe tells what is known from the URL alone.
	Describe() Description
	// Prepare connects, makes what the run needs (a table, a script), and gives what the
	// server tells of itself. It fails with an error that says what to do next, but not
	// where a name or a version is not told. It can be repeated.
	Prepare(ctx context.Context, needs Needs) (Server, error)
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
	// Shortest and Longest are the times to live that keys will be given; 0: none.
	Shortest, Longest time.Duration
	// Precision is that of the times which writes under IfUnmodified will compare;
	// 0: there are none.
	Precision time.Duration
}

// TTL are the times to live that a target takes.
type TTL struct {
	Unit     time.Duration // they are whole multiples of it; 0: the target has none
	Min, Max time.Duration // 0: no bound
	// Instead is what to choose where the target has none; "": another target.
	Instead string
}

// Check is an error with ErrUnsupported in its chain where the target lacks something
// that a run needs, and a *UsageError where it has it, but takes no such values. Nothing is
// sent to find out.
func (d Description) Check(n Needs) error {
	lacks := func(what, instead string) error {
		return fmt.Errorf("%s: this target has no %s: %s: %w", d.URL, what, instead, ErrUnsupported)
	}
	const another = "choose another target"
	for _, guard := range n.Guards {
		if guard != Unguarded && !slices.Contains(d.Guards, guard) {
			return lacks("write on condition of "+guardTexts[guard], "choose another strategy, or another target")
		}
	}
	if n.Precision != 0 && n.Precision < d.Finest {
		return lacks(fmt.Sprintf("time as fine as %s", n.Precision), fmt.Sprintf("it keeps them to %s: choose a coarser precision, or another target", d.Finest))
	}
	if n.Longest == 0 {
		return nil
	}
	if d.TTL.Unit == 0 {
		return lacks("time to live of its own", cmp.Or(d.TTL.Instead, another))
	}
	for _, ttl := range []time.Duration{n.Shortest, n.Longest} {
		if ttl%d.TTL.Unit != 0 || ttl < d.TTL.Min || d.TTL.Max > 0 && ttl > d.TTL.Max {
			return &UsageError{fmt.Sprintf("%s: this target takes times to live that are %s, and not %s", d.URL, d.TTL.text(), ttl)}
		}
	}
	return nil
}

func (t TTL) text() string {
	text := fmt.Sprintf("multiples of %s", t.Unit)
	if t.Min > t.Unit {
		text += fmt.Sprintf(", %s at least", t.Min)
	}
	if t.Max > 0 {
		text += fmt.Sprintf(", %s at most", t.Max)
	}
	return text
}

var guardTexts = map[Guard]string{IfAbsent: "absence (create-if-absent)", IfVersion: "a version (compare-and-set)",
	IfUnmodified: "a time of change", IfToken: "the token of a record"}

// ComparesAndSets tells whether the run has writes on condition of what a record holds.
func (n Needs) ComparesAndSets() bool {
	return slices.ContainsFunc(n.Guards, func(g Guard) bool { return g != Unguarded && g != IfAbsent })
}

// Description is what is known of a target from its URL alone.
type Description struct {
	Kind       string            // the driver's name
	URL        string            // with secrets masked
	Server     string            // what the kind of server is called, until one tells
	Strategies map[string]string // the chosen way for each condition: create, cas, delete, renew
	Guards     []Guard           // the conditions that writes can carry
	TTL        TTL
	Finest     time.Duration // how fine the times are that it keeps and compares; 0: any
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
	// Relays: contenders are given a common instant ahead, which they wait for next to
	// the store.
	Relays bool
	Notes  []string // what a reader of a report must know
	// WarmUp is how many requests are sent for each session before it can be used;
	// Prepare sends one more.
	WarmUp int
	// Lists is how many requests a List sends that finds nothing.
	Lists int
	// HashTags: keys can hold { and }, which say where a cluster keeps them.
	HashTags bool
}

// Server is what a server tells of itself before a run.
type Server struct {
	Name      string   // and version; "": it does not tell
	Simulated bool     // it says that it is
	Notes     []string // what a reader of a report must know
	// Lead is how far ahead contenders of a relayed target are given their common
	// instant, so that all have arrived next to the store by then.
	Lead time.Duration
	// Uncertainty is how far apart the clocks next to the store may be.
	Uncertainty time.Duration
}

// With is the description of a target whose server has told of itself.
func (d Description) With(s Server) Description {
	d.Server = cmp.Or(s.Name, d.Server, "version not reported")
	d.Simulated = d.Simulated || s.Simulated
	d.Notes = append(slices.Clip(d.Notes), s.Notes...)
	return d
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

// ErrUnsupported is in the chain of errors that mean: this target has no such
// thing.
var ErrUnsupported = errors.New("not supported by this target")
