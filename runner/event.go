package runner

import (
	"encoding/json"
	"time"
)

// Event is one thing that was observed of a run of any shape: one of its members is set.
// As JSON it is a line of a record. What it points to is used again: an observer keeps
// copies.
type Event struct {
	// Controls come first, once; a record has them in its first line.
	Controls *Controls `json:"-"`
	// Ghost is a key of a watch, as it is at the start: those that an earlier run made and
	// left included. All of them come before the first reply.
	Ghost  *Ghost    `json:"ghost,omitempty"`
	Asked  *Asked    `json:"asked,omitempty"`
	Round  *Round    `json:"round,omitempty"`
	Late   *LateRead `json:"late,omitempty"`
	Answer *Answer   `json:"answer,omitempty"`

	// These are in a record alone.
	End    *End            `json:"end,omitempty"`
	Result json.RawMessage `json:"result,omitempty"` // for people
}

// LateRead is the read of a round's key at the end of the run. Round 0 is the key of the
// nonce, which nobody contends for: one read, and where that shows no record another by
// another session.
type LateRead struct {
	Round int       `json:"round"`
	Read  *Exchange `json:"read"`
}

// Asked is a reply about a watched key.
type Asked struct {
	Ghost        *Ghost    `json:"-"` // as the reply left it
	Key          string    `json:"key"`
	Exchange     *Exchange `json:"exchange"`
	ClockUnknown bool      `json:"clock_unknown,omitempty"` // of the key, before the reply
}

// Answer is a reply to a step of an inquiry.
type Answer struct {
	Question string    `json:"question"` // the ID of the inquiry
	Exchange *Exchange `json:"exchange"`
}

// Shape is what kind of run it is.
type Shape int

const (
	Race Shape = iota
	Watch
	Probe
)

// of tells whether a run of the shape can have such an event.
func (e *Event) of(s Shape) bool {
	race, watch, probe := e.Round != nil || e.Late != nil, e.Ghost != nil || e.Asked != nil, e.Answer != nil
	return (!race || s == Race) && (!watch || s == Watch) && (!probe || s == Probe)
}

// Observer is shown everything in the order it happened, from one goroutine.
type Observer interface {
	Observe(Event)
}

// Waiter is an observer that is told what a run waits for, and how long, before it
// does.
type Waiter interface {
	Waiting(why string, d time.Duration)
}

// Observers is one that shows everything to each of them in turn.
type Observers []Observer

// Observe shows an event.
func (o Observers) Observe(e Event) {
	for _, each := range o {
		each.Observe(e)
	}
}

// Waiting tells those that want to know of waits.
func (o Observers) Waiting(why string, d time.Duration) {
	for _, each := range o {
		if w, ok := each.(Waiter); ok {
			w.Waiting(why, d)
		}
	}
}

// Summary is what a run of any shape comes to, beside its history.
type Summary struct {
	Requests    int64 // sent in all, controls included
	Units       int64 // of the store's quota, of a probe; 0: it counts requests
	Rounds      int   // of a race
	Elapsed     time.Duration
	Interrupted bool
	// Cut says why a watch ended before its keys were closed, where it was neither
	// interrupted nor stopped: its time, or its budget, was up.
	Cut string
	// Stopped says why the run could not go on, where it was not interrupted: the target
	// served nothing, or the journal failed.
	Stopped error
	// Left is a *Left where keys were left behind, or may have been.
	Left error
}

// End is how a run ended, as its record has it.
type End struct {
	Requests    int64         `json:"requests"`
	Rounds      int           `json:"rounds"`
	Elapsed     time.Duration `json:"elapsed_ns"`
	Interrupted bool          `json:"interrupted"`
	Stopped     string        `json:"stopped,omitempty"`
	Cut         string        `json:"cut,omitempty"`         // of a watch
	Units       int64         `json:"quota_units,omitempty"` // of a probe
	Left        string        `json:"left,omitempty"`        // what is told of keys that were left behind
}

// End gives the summary as a record has it.
func (s Summary) End() End {
	end := End{Requests: s.Requests, Rounds: s.Rounds, Elapsed: s.Elapsed, Interrupted: s.Interrupted, Cut: s.Cut, Units: s.Units}
	if s.Stopped != nil {
		end.Stopped = s.Stopped.Error()
	}
	if s.Left != nil {
		end.Left = s.Left.Error()
	}
	return end
}
