package emulator

import (
	"fmt"
	"time"
)

// MaxAhead is how far a clock can be put forward in all.
const MaxAhead = 100 * 365 * 24 * time.Hour

// now is the time of the store, in epoch milliseconds. The lock is held.
func (s *Store) now() int64 { return time.Now().UnixMilli() + s.ahead }

// Now is the time of the store: that of the machine, put forward.
func (s *Store) Now() time.Time {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return time.UnixMilli(s.now()).UTC()
}

// Forward puts the clock of the store forward, as if so long nothing had been asked
// of it: keys expire and are swept. d is positive, whole milliseconds, and together
// with what went before at most MaxAhead; otherwise it is refused.
func (s *Store) Forward(d time.Duration) error {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if d <= 0 || d%time.Millisecond != 0 || d.Milliseconds() > MaxAhead.Milliseconds()-s.ahead {
		return fmt.Errorf("the clock goes forward by whole milliseconds, by %s at most in all; it is ahead by %s already",
			MaxAhead, time.Duration(s.ahead)*time.Millisecond)
	}
	s.ahead += d.Milliseconds()
	return nil
}

// Reset forgets every key and puts the clock back to that of the machine.
func (s *Store) Reset() {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for _, t := range s.entities {
		t.forget()
	}
	s.plain.forget()
	s.secrets.forget()
	s.ahead = 0
}

func (t *table) forget() {
	clear(t.records)
	clear(t.history)
}
