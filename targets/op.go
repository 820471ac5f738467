// Package targets is the contract between contend and a store.
//
// A Target is a store; a Session on it is one contender's own connection and
// answers one Op at a time with a Reply. Nothing in this package retries.
package targets

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Kind says what an Op does.
type Kind string

const (
	Read   Kind = "read"   // with the store's strongest read
	Write  Kind = "write"  // under Op.If
	Delete Kind = "delete" // under Op.If: IfToken or IfVersion; without it, deleting what is absent is OK
	// Renew gives a key the time to live Op.TTL from now on, under Op.If: IfToken or
	// IfVersion. Value is the record that the key holds: some stores can renew only by
	// writing it again.
	Renew Kind = "renew"
	// Transact is Ops, which are reads, checks and writes of several keys under their
	// conditions, all or none of them: one outcome, and a Reply for each in Parts.
	Transact Kind = "transact"
	// Sequence is Ops one after another in one place, a Reply each in Parts; for
	// relayed targets.
	Sequence Kind = "sequence"
	// Raw is a request in the store's own language, for probes: see Op.Raw.
	Raw Kind = "raw"
)

// Guard names what a condition compares.
type Guard string

const (
	Unguarded Guard = ""
	IfAbsent  Guard = "absent"  // the key must not exist
	IfVersion Guard = "version" // the record must be at the version that Condition tells
	// IfUnmodified wants the record to bear the time that Condition tells, and looks
	// at nothing else: of two writes that leave the same time, both may be applied.
	IfUnmodified Guard = "unmodified"
	IfToken      Guard = "token" // the record must be the one of the write that Condition tells
)

// AllGuards lists every condition that a store can have.
var AllGuards = []Guard{IfAbsent, IfVersion, IfUnmodified, IfToken}

// Collection names where a key is kept, for stores that keep records of different
// kinds in different places: a plain key of Forge KVS can carry no version condition,
// an entity can. All ops on one key name the same one; a target may have more.
type Collection string

const (
	Plain     Collection = "absent"  // records that are created, read and deleted
	Versioned Collection = "version" // records that are also written on condition of what they hold
)

// Condition is what must hold for a Write to be applied. The zero Condition
// always holds.
type Condition struct {
	Guard Guard `json:"guard"`
	// Counter is the Record.Version that the record must have; for IfVersion,
	// on stores that compare a field of the record.
	Counter int64 `json:"counter"`
	// Version is the store's own version as an earlier Reply told it; for
	// IfVersion, on stores that compare that.
	Version string `json:"version,omitempty"`
	// UpdatedAt is the Record.UpdatedAt that the record must have, compared exactly;
	// for IfUnmodified. A store that keeps none so fine does not cut it: that is
	// Unsupported.
	UpdatedAt time.Time `json:"updated_at,omitzero"`
	// Token is the Record.Token that the record must have; for IfToken.
	Token string `json:"token,omitempty"`
}

// Holds compares a record with the condition, on stores that compare what it holds.
// Where there is no record it is not asked.
func (c Condition) Holds(r Record) bool {
	switch c.Guard {
	case Unguarded:
		return true
	case IfVersion:
		return r.Token != "" && r.Version == c.Counter
	case IfToken:
		return r.Token != "" && r.Token == c.Token
	case IfUnmodified:
		return !c.UpdatedAt.IsZero() && c.UpdatedAt.Equal(r.UpdatedAt)
	default:
		return false
	}
}

// TooFine is the reply to a condition on a time that is finer than the target keeps
// it; nil: it is not.
func (c Condition) TooFine(finest time.Duration) *Reply {
	if c.Guard != IfUnmodified || c.UpdatedAt.Nanosecond()%int(finest) == 0 {
		return nil
	}
	return &Reply{Outcome: Unsupported, Message: fmt.Sprintf("this target keeps times to %s, and cannot compare a finer one", finest)}
}

// Record is what a key holds: fixed columns that every store can declare in
// advance.
type Record struct {
	Token     string          `json:"token"`   // unique to the write
	Version   int64           `json:"version"` // our own counter
	UpdatedAt time.Time       `json:"updated_at,omitzero"`
	ExpiresAt time.Time       `json:"expires_at,omitzero"` // enforced by the application, not by the store
	Body      json.RawMessage `json:"body,omitempty"`
}

// Op is one request. Its JSON form is contend.op/1: field names as tagged,
// durations in whole milliseconds, times in RFC 3339.
type Op struct {
	Kind       Kind
	Key        string
	Collection Collection
	Value      Record    // what Write stores
	If         Condition // of a Write
	TTL        time.Duration
	// NotBefore is the instant that a relayed target waits for, next to the
	// store and by the clock there; zero: none.
	NotBefore time.Time
	Ops       []Op // of a Sequence or a Transact
	// Raw is the request of a Raw, in the store's own language: see Driver.Raw. Key then
	// names no more than the run, by its prefix: a relay touches no other keys.
	Raw json.RawMessage
}

// ComparesAndSets tells whether a write is on condition of what the record holds.
func (o Op) ComparesAndSets() bool {
	return o.Kind == Write && o.If.Guard != Unguarded && o.If.Guard != IfAbsent
}

type opJSON struct {
	Kind       Kind       `json:"kind"`
	Key        string     `json:"key"`
	Collection Collection `json:"home,omitempty"`
	Value      *Record    `json:"value,omitempty"`
	If         *Condition `json:"if,omitempty"`
	TTL        int64      `json:"ttl_ms,omitempty"`

	NotBefore time.Time `json:"not_before,omitzero"`
	Ops       []Op      `json:"ops,omitempty"`

	Raw json.RawMessage `json:"raw,omitempty"`
}

// MarshalJSON writes the contend.op/1 form; a value is written for Write only.
func (o Op) MarshalJSON() ([]byte, error) {
	j := opJSON{Kind: o.Kind, Key: o.Key, Collection: o.Collection, TTL: o.TTL.Milliseconds(), NotBefore: o.NotBefore, Ops: o.Ops, Raw: o.Raw}
	if o.Kind == Write || o.Kind == Renew {
		j.Value = &o.Value
	}
	if o.If.Guard != Unguarded {
		j.If = &o.If
	}
	return json.Marshal(j)
}

// UnmarshalJSON reads the contend.op/1 form.
func (o *Op) UnmarshalJSON(b []byte) error {
	var j opJSON
	if err := json.Unmarshal(b, &j); err != nil {
		return err
	}
	*o = Op{Kind: j.Kind, Key: j.Key, Collection: j.Collection, TTL: time.Duration(j.TTL) * time.Millisecond, NotBefore: j.NotBefore, Ops: j.Ops, Raw: j.Raw}
	if j.Value != nil {
		o.Value = *j.Value
	}
	if j.If != nil {
		o.If = *j.If
	}
	return nil
}

// Outcome is what a reply means for the question whether the op was applied.
type Outcome string

const (
	OK          Outcome = "ok"          // applied, or read
	Conflict    Outcome = "conflict"    // the guard refused: exists, wrong version, 0 rows
	Aborted     Outcome = "aborted"     // certainly no effect, for contention; no proof that anyone won
	Missing     Outcome = "missing"     // a read of a key that is not there
	Throttled   Outcome = "throttled"   // refused for a quota; never reached the guard
	Invalid     Outcome = "invalid"     // the request itself is wrong
	NotSent     Outcome = "not-sent"    // certainly not applied: the whole request never left us
	Unknown     Outcome = "unknown"     // may have been applied
	Unsupported Outcome = "unsupported" // the store has no such thing; nothing was sent
	Unmapped    Outcome = "unmapped"    // an answer that the target's table has no row for
)

// Outcomes lists them all.
var Outcomes = []Outcome{OK, Conflict, Aborted, Missing, Throttled, Invalid, NotSent, Unknown, Unsupported, Unmapped}

// Served tells whether the store dealt with the request: it did not for one
// that got no answer, was throttled or was wrong.
func (o Outcome) Served() bool {
	switch o {
	case OK, Conflict, Aborted, Missing, Unmapped:
		return true
	default:
		return false
	}
}

// Reply is what came back, in the store's own words and sorted into an Outcome.
type Reply struct {
	Outcome Outcome `json:"outcome"`
	Code    string  `json:"code,omitempty"`    // KEY_CONFLICT, 23505, nil, "0 rows": from a fixed set, never free text
	Status  int     `json:"status,omitempty"`  // HTTP or protocol status; 0 where the store has none
	Message string  `json:"message,omitempty"` // free text, for the reader
	Record  Record  `json:"record,omitzero"`   // of a Read that is OK
	Version string  `json:"version,omitempty"` // the store's own version, after writes too where it tells; opaque
	// Stored is the beginning of what a key holds, as text, where a Read is OK and
	// that is not a whole record of contend.
	Stored string `json:"stored,omitempty"`
	// Expires is the expiry as the store granted it, where it tells.
	Expires time.Time `json:"expires,omitzero"`
	// Granted is the time to live as the store granted it, where it tells: it may
	// have rounded or raised what was asked.
	Granted time.Duration `json:"granted_ns,omitempty"`
	// Attempts is how often the request went out. With more than one a refusal
	// is doubtful: the client may have lost to itself.
	Attempts int `json:"attempts,omitempty"`
	// RoundTrips is how many requests and answers the op took on the wire, one after the
	// other; 0 where the driver cannot tell.
	RoundTrips int `json:"round_trips,omitempty"`
	// Node is which of the store's nodes answered, where it is told.
	Node string `json:"node,omitempty"`
	// Began is the instant before the first byte of the whole operation was handed to
	// the kernel, Sent when the last byte of its first round trip had been, and Guarded
	// when the last byte of the request had been whose guard decides, where that is
	// another; with the monotonic clock, zero where the driver cannot tell.
	Began   time.Time `json:"-"`
	Sent    time.Time `json:"-"`
	Guarded time.Time `json:"-"`
	// Unasked: the op ended before its guarded request was sent.
	Unasked bool `json:"-"`
	// ByRead: the write was refused by the target's own comparison of what it had
	// read, which is in Record (Missing is told by an empty one): the store's guard
	// was not asked.
	ByRead bool `json:"by_read,omitempty"`
	// Early: the answer came before the last byte of the request had been sent, so that
	// nobody knows what was raced.
	Early bool `json:"early,omitempty"`
	// RetryAfter is how long a throttled client was asked to wait.
	RetryAfter time.Duration `json:"retry_after_ns,omitempty"`
	Trace      string        `json:"trace,omitempty"` // the vendor's request id, for the bug report
	// Server is when the store was asked and when it had answered, by the clock
	// next to it; zero where a target does not relay or does not tell.
	Server Span            `json:"server,omitzero"`
	Raw    json.RawMessage `json:"raw,omitempty"`   // the error object as it came; of a Raw op every answer
	Parts  []Reply         `json:"parts,omitempty"` // of a Sequence or a Transact
}

// Text tells the reply in one line: its code, status and message, or its outcome
// where it has none of them.
func (r *Reply) Text() string {
	var parts []string
	if r.Code != "" {
		parts = append(parts, r.Code)
	}
	if r.Status != 0 {
		parts = append(parts, strconv.Itoa(r.Status))
	}
	text := strings.Join(parts, " ")
	switch {
	case text == "" && r.Message == "":
		return string(r.Outcome)
	case text == "" || strings.HasPrefix(r.Message, text):
		return r.Message
	case r.Message == "":
		return text
	default:
		return text + " (" + r.Message + ")"
	}
}

// Span is an interval on a clock that is not ours, in milliseconds since 1970.
type Span struct {
	Began float64 `json:"began_ms"`
	Ended float64 `json:"ended_ms"`
}
