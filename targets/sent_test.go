package targets

import (
	"context"
	"io"
	"net"
	"testing"
	"time"
)

// A request counts as sent by its last write before the answer; or by its first
// after, where the answer was read before the write returned.
func TestSentClock(t *testing.T) {
	near, far := net.Pipe()
	defer near.Close()
	defer far.Close()
	go func() { _, _ = io.Copy(io.Discard, far) }()
	clock := &sentClock{}
	conn := &clockedConn{near, clock}
	write := func() {
		if _, err := conn.Write([]byte("x")); err != nil {
			t.Fatal(err)
		}
	}
	if !clock.at().IsZero() {
		t.Error("sent before anything was written")
	}
	write()
	first := clock.at()
	write()
	second := clock.at()
	clock.answered.Store(true)
	write()
	if first.IsZero() || !second.After(first) || clock.at() != second {
		t.Errorf("sent at %v, then %v, and after the answer %v", first, second, clock.at())
	}
	clock.begin()
	clock.answered.Store(true)
	write()
	third := clock.at()
	write()
	if third.IsZero() || clock.at() != third {
		t.Errorf("a write whose answer came first: %v, then %v", third, clock.at())
	}
	clock.begin()
	clock.beginSeveral()
	before := time.Now()
	write()
	clock.answered.Store(true)
	var r Reply
	if clock.stamp(&r); !r.Unasked || !r.Guarded.IsZero() || r.Began.Before(before) || r.Sent.Before(r.Began) {
		t.Errorf("before the guarded request: %+v", r)
	}
	clock.guardNext()
	write()
	clock.answered.Store(true)
	write() // a commit
	if last := r; true {
		clock.stamp(&r)
		if r.Unasked || !r.Guarded.After(last.Sent) || r.Sent != last.Sent || r.Began != last.Began {
			t.Errorf("after the guarded request: %+v, before it %+v", r, last)
		}
	}
	near.Close()
	clock.begin()
	if _, err := conn.Write([]byte("x")); err == nil || !clock.at().IsZero() {
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
	clock := &sentClock{}
	conn := &clockedConn{near, clock}
	met, released := 0, time.Time{}
	send := func() (r Reply) {
		clock.begin()
		for range 2 {
			if _, err := conn.Write([]byte("x")); err != nil {
				return lost(err, clock.at())
			}
		}
		clock.stamp(&r)
		return r
	}
	meet := func() {
		if met++; clock.begun.Load() && !timeAt(&clock.began).IsZero() {
			t.Error("it began before it was released")
		}
		released = time.Now()
	}
	if r := clock.stage(t.Context(), meet, send); met != 1 || r.Began.Before(released) || r.Sent.Before(r.Began) {
		t.Errorf("halted %d times, released at %v: %+v", met, released, r)
	}
	if send(); met != 1 {
		t.Error("the next op was halted too")
	}
	if clock.stage(t.Context(), meet, func() Reply { return Reply{} }); met != 1 {
		t.Error("an op was halted that sends nothing")
	}
	if send(); met != 1 {
		t.Error("the op after one that sent nothing was halted")
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if r := clock.stage(ended, meet, send); met != 1 || r.Outcome != NotSent || r.Code != "cancelled" || clock.begun.Load() {
		t.Errorf("after its end: halted %d times, %+v", met, r)
	}
}
