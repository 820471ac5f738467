package targets

import (
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
