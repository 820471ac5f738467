// Package runner releases contenders at one moment and writes down every request
// and reply. What it leaves is plain data: rounds of exchanges.
package runner

import (
	"encoding/json"
	"fmt"
	"time"

	"contend/targets"
)

// ByRunner is the Contender of exchanges that the runner made itself: seeds,
// read-backs, controls.
const ByRunner = -1

// Exchange is one request with its reply. Its times are on one monotonic clock,
// since the start of the run.
type Exchange struct {
	Contender int
	Op        targets.Op
	Reply     targets.Reply
	Call      time.Duration // before Do
	Return    time.Duration // after Do
	Began     time.Duration // before the first byte was handed to the kernel; Call where the driver cannot tell
	Sent      time.Duration // last byte of the first round trip handed to the kernel; Call where the driver cannot tell
	// Guard is when the last byte of the request was handed to the kernel whose guard
	// decides; 0: there was none, since the op ended before it.
	Guard time.Duration
}

type exchangeJSON struct {
	Contender int            `json:"contender"`
	Op        targets.Op     `json:"op"`
	Reply     *targets.Reply `json:"reply"`
	Call      time.Duration  `json:"call_ns"`
	Return    time.Duration  `json:"return_ns"`
	Began     *time.Duration `json:"began_ns,omitempty"`
	Sent      time.Duration  `json:"sent_ns"`
	Guard     time.Duration  `json:"guard_ns,omitempty"`
}

// MarshalJSON writes the contend.record/1 form.
func (e Exchange) MarshalJSON() ([]byte, error) {
	return json.Marshal(exchangeJSON{e.Contender, e.Op, &e.Reply, e.Call, e.Return, &e.Began, e.Sent, e.Guard})
}

// UnmarshalJSON reads the contend.record/1 form; one without began_ns is of a contend
// that did not tell the guarded request from the first.
func (e *Exchange) UnmarshalJSON(b []byte) error {
	j := exchangeJSON{Reply: &e.Reply}
	if err := json.Unmarshal(b, &j); err != nil {
		return err
	}
	limit(&e.Reply)
	e.Contender, e.Op, e.Call, e.Return, e.Sent, e.Guard = j.Contender, j.Op, j.Call, j.Return, j.Sent, j.Guard
	if e.Began = j.Call; j.Began != nil {
		e.Began = *j.Began
	} else if e.Op.Kind == targets.Write {
		e.Guard = e.Sent
	}
	return nil
}

// follow notes that the exchange began after an instant, where the clock was too
// coarse to show it.
func (e *Exchange) follow(instant time.Duration) {
	e.Call = max(e.Call, instant+1)
	e.Began = max(e.Began, e.Call)
	e.Sent = max(e.Sent, e.Began)
	if e.Guard > 0 {
		e.Guard = max(e.Guard, e.Sent)
	}
	e.Return = max(e.Return, e.Sent, e.Guard)
}

// shift moves the exchange to another clock.
func (e *Exchange) shift(by time.Duration) {
	e.Call, e.Began, e.Sent, e.Return = e.Call+by, e.Began+by, e.Sent+by, e.Return+by
	if e.Guard > 0 {
		e.Guard += by
	}
}

// Round is one contest on one fresh key. The runner uses its memory again for
// the next: whoever is handed one keeps copies, not the Round.
type Round struct {
	Number     int                `json:"round"` // from 1 in its phase
	Key        string             `json:"key"`
	Collection targets.Collection `json:"home,omitempty"`
	Seeds      []Exchange         `json:"seeds,omitempty"` // before the release
	Ops        []Exchange         `json:"ops"`             // of the contenders, by contender and time
	Reads      []Exchange         `json:"reads"`           // after all have returned
	Done       time.Duration      `json:"done_ns"`
	// Offset is how long after the first contender the second was released, before it
	// where that is negative. nil: the round is of no sweep.
	Offset *time.Duration `json:"offset_ns,omitempty"`
	// Relayed: the evidence of a contest is in the replies' server spans, not in
	// our own times. nil: the target does not relay.
	Relayed *Relayed `json:"relayed,omitempty"`
}

// Relayed tells of the clocks next to the store.
type Relayed struct {
	Uncertainty time.Duration `json:"uncertainty_ns"` // how far apart two of them may be
}

// Decided tells whether the store decided on a write of any contender, or where
// none of them wrote, answered a read.
func (r *Round) Decided() bool {
	wrote, read := false, false
	for i := range r.Ops {
		o := r.Ops[i].Reply.Outcome
		if r.Ops[i].Op.Kind != targets.Write {
			read = read || o == targets.OK || o == targets.Missing
			continue
		}
		if wrote = true; o == targets.OK || o == targets.Conflict || o == targets.Aborted {
			return true
		}
	}
	return read && !wrote
}

// refusal tells the first request of the round that the store did not serve; ""
// where it served all.
func (r *Round) refusal() string {
	for _, part := range [][]Exchange{r.Seeds, r.Ops} {
		for i := range part {
			if reply := &part[i].Reply; Refusing(reply.Outcome) {
				return reply.Text()
			}
		}
	}
	return ""
}

// Refusing tells whether an outcome says that the store, or the way to it, did not
// serve a request.
func Refusing(o targets.Outcome) bool {
	switch o {
	case targets.Throttled, targets.Invalid, targets.NotSent, targets.Unknown, targets.Unmapped:
		return true
	default:
		return false
	}
}

// unserved adds to an error what the first refusal was, where there is one.
func unserved(err error, refusal string) error {
	if refusal == "" {
		return err
	}
	return fmt.Errorf("%w; the first refusal: %s", err, refusal)
}

// Seeded tells whether every seed was accepted.
func (r *Round) Seeded() bool {
	for i := range r.Seeds {
		if r.Seeds[i].Reply.Outcome != targets.OK {
			return false
		}
	}
	return true
}

// Unsettled tells whether an op of a contender may have been applied without
// its reply saying so.
func (r *Round) Unsettled() bool {
	for i := range r.Ops {
		if o := r.Ops[i].Reply.Outcome; o == targets.Unknown || o == targets.Unmapped || r.Ops[i].Reply.Attempts > 1 {
			return true
		}
	}
	return false
}

// answered tells whether every op whose outcome is unknown was answered all the
// same: by an error that says nothing, or by something unmapped.
func (r *Round) answered() bool {
	for i := range r.Ops {
		reply := &r.Ops[i].Reply
		if reply.Attempts > 1 || reply.Outcome == targets.Unknown && reply.Status == 0 {
			return false
		}
	}
	return true
}

// Controls is what was done before the race to show that a violation would be
// seen.
type Controls struct {
	Key        string     `json:"key,omitempty"`        // that the sequential checks were made under
	Sequential []Exchange `json:"sequential,omitempty"` // in order; Contender 0 and 1 are the two sessions
	Nonce      []Exchange `json:"nonce,omitempty"`      // the write, then a read by each contender
	Twin       []Round    `json:"twin,omitempty"`
	Skipped    bool       `json:"skipped,omitempty"`
}

func firstNonEmpty(texts ...string) string {
	for _, t := range texts {
		if t != "" {
			return t
		}
	}
	return ""
}
