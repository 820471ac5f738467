package kit

import (
	"context"
	"io"
	"net"
	"testing"
	"time"

	"contend/targets"
)

// A request counts as sent by its last write before the answer; or by its first
// after, where the answer was read before the write returned.
func TestSentClock(t *testing.T) {
	near, far := net.Pipe()
	defer near.Close()
	defer far.Close()
	go func() { _, _ = io.Copy(io.Discard, far) }()
	clock := &Clock{}
	conn := &clockedConn{near, clock}
	write := func() {
		if _, err := conn.Write([]byte("x")); err != nil {
			t.Fatal(err)
		}
	}
	if !clock.Sent().IsZero() {
		t.Error("sent before anything was written")
	}
	write()
	first := clock.Sent()
	write()
	second := clock.Sent()
	clock.answered.Store(true)
	write()
	if first.IsZero() || !second.After(first) || clock.Sent() != second {
		t.Errorf("sent at %v, then %v, and after the answer %v", first, second, clock.Sent())
	}
	clock.Begin()
	clock.answered.Store(true)
	write()
	third := clock.Sent()
	write()
	if third.IsZero() || clock.Sent() != third {
		t.Errorf("a write whose answer came first: %v, then %v", third, clock.Sent())
	}
	clock.Begin()
	clock.BeginSeveral()
	before := time.Now()
	write()
	clock.answered.Store(true)
	var r targets.Reply
	if clock.Stamp(&r); !r.Unasked || !r.Guarded.IsZero() || r.Began.Before(before) || r.Sent.Before(r.Began) {
		t.Errorf("before the guarded request: %+v", r)
	}
	clock.GuardNext()
	write()
	clock.answered.Store(true)
	write() // a commit
	if last := r; true {
		clock.Stamp(&r)
		if r.Unasked || !r.Guarded.After(last.Sent) || r.Sent != last.Sent || r.Began != last.Began {
			t.Errorf("after the guarded request: %+v, before it %+v", r, last)
		}
	}
	near.Close()
	clock.Begin()
	if _, err := conn.Write([]byte("x")); err == nil || !clock.Sent().IsZero() {
		t.Error("a write that failed counts as sent")
	}
}

// What is sent by Stage waits for the moment; where its context ends before, nothing is
// sent at all.
func TestSentClockHalts(t *testing.T) {
	near, far := net.Pipe()
	defer near.Close()
	defer far.Close()
	go func() { _, _ = io.Copy(io.Discard, far) }()
	clock := &Clock{}
	conn := &clockedConn{near, clock}
	met, released := 0, time.Time{}
	send := func() (r targets.Reply) {
		clock.Begin()
		for range 2 {
			if _, err := conn.Write([]byte("x")); err != nil {
				return Lost(err, clock.Sent())
			}
		}
		clock.Stamp(&r)
		return r
	}
	meet := func() {
		if met++; clock.begun.Load() && !timeAt(&clock.began).IsZero() {
			t.Error("it began before it was released")
		}
		released = time.Now()
	}
	if r := clock.Stage(t.Context(), meet, send); met != 1 || r.Began.Before(released) || r.Sent.Before(r.Began) {
		t.Errorf("halted %d times, released at %v: %+v", met, released, r)
	}
	if send(); met != 1 {
		t.Error("the next op was halted too")
	}
	if clock.Stage(t.Context(), meet, func() targets.Reply { return targets.Reply{} }); met != 1 {
		t.Error("an op was halted that sends nothing")
	}
	if send(); met != 1 {
		t.Error("the op after one that sent nothing was halted")
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if r := clock.Stage(ended, meet, send); met != 1 || r.Outcome != targets.NotSent || r.Code != "cancelled" || clock.begun.Load() {
		t.Errorf("after its end: halted %d times, %+v", met, r)
	}
}
