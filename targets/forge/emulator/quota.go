package emulator

import (
	"sync"
	"time"
)

// Effect is what a request is charged as.
type Effect int

// A transaction and a batch of sets or deletes are writes; a query and a batch
// of gets are reads.
const (
	Read Effect = iota
	Write
)

// Limits of an installation.
const (
	requestsPerSecond = 1000
	unitsPerMinute    = 4000 // of reads, and as many of writes
	unitBytes         = 10 << 10
)

// Quota counts the requests of one installation and refuses what is over its
// limits. It is safe for concurrent use; a nil Quota admits everything.
type Quota struct {
	code string

	mutex    sync.Mutex
	requests window
	units    [2]window // by Effect
}

// window counts what falls into a span of time; a span begins with the first
// request after the end of the last.
type window struct {
	began time.Time
	count int
}

// NewQuota gives a quota that refuses with this code, of which the platform has
// three: RATE_LIMIT_EXCEEDED, TOO_MANY_REQUESTS, REQUEST_THROTTLED.
func NewQuota(code string) *Quota {
	return &Quota{code: code}
}

// Admit counts a request of so many bytes, or answers 429 and does not count it.
// Every begun 10 KB are a unit; a request has at least one.
func (q *Quota) Admit(effect Effect, bytes int) error {
	if q == nil {
		return nil
	}
	units := max(1, (bytes+unitBytes-1)/unitBytes)
	q.mutex.Lock()
	defer q.mutex.Unlock()
	now := time.Now()
	q.requests.turn(now, time.Second)
	q.units[effect].turn(now, time.Minute)
	if q.requests.count+1 > requestsPerSecond || q.units[effect].count+units > unitsPerMinute {
		return &Error{429, q.code, "Request exceeds the quota of the installation"}
	}
	q.requests.count++
	q.units[effect].count += units
	return nil
}

// Forward lets so much time pass for the quota.
func (q *Quota) Forward(d time.Duration) {
	if q == nil {
		return
	}
	q.mutex.Lock()
	defer q.mutex.Unlock()
	for _, w := range []*window{&q.requests, &q.units[Read], &q.units[Write]} {
		w.began = w.began.Add(-d)
	}
}

// Reset forgets what was counted.
func (q *Quota) Reset() {
	if q == nil {
		return
	}
	q.mutex.Lock()
	defer q.mutex.Unlock()
	q.requests, q.units = window{}, [2]window{}
}

func (w *window) turn(now time.Time, span time.Duration) {
	if now.Sub(w.began) >= span {
		*w = window{began: now}
	}
}
