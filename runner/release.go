package runner

import (
	"context"
	"runtime"
	"sync"
	"time"

	"contend/targets"
)

// strategy is how contenders that have met are released. A run chooses one, once.
type strategy interface {
	// ahead names what a session may do of a write before its contender meets the
	// others; "": nothing.
	ahead() targets.Release
	// open is asked when all have met, and returns when they may go. Before the instant that
	// it gives nothing is to reach the store; zero: they go at once.
	open(ctx context.Context) (instant time.Time)
	// apart is how long after the others a contender goes at the gate of a round.
	apart(contender int) time.Duration
}

// strategyOf chooses: a relayed target has a lead, and its contenders meet next to the
// store; of other targets the plan tells how.
func strategyOf(p *Plan, lead time.Duration) strategy {
	var s strategy = gate{p.Release}
	if lead > 0 {
		s = commonInstant{lead}
	}
	if p.Stagger > 0 {
		s = staggered{s, p.Stagger}
	}
	return s
}

// gate releases all at once. By targets.Gate no byte of a request is sent before, by
// targets.LastByte all but the last are.
type gate struct{ how targets.Release }

func (g gate) ahead() targets.Release {
	if g.how == "" {
		return targets.Gate
	}
	return g.how
}
func (gate) open(context.Context) time.Time { return time.Time{} }
func (gate) apart(int) time.Duration        { return 0 }

// commonInstant lets requests travel at once, to wait next to the store for an instant so
// far ahead that all have arrived by then.
type commonInstant struct{ lead time.Duration }

func (commonInstant) ahead() targets.Release           { return "" }
func (c commonInstant) open(context.Context) time.Time { return time.Now().Add(c.lead) }
func (commonInstant) apart(int) time.Duration          { return 0 }

// staggered releases one contender after the other.
type staggered struct {
	strategy
	by time.Duration
}

func (s staggered) apart(contender int) time.Duration { return time.Duration(contender) * s.by }

// meeting is a point where all that are still in a round wait for each other, to be
// released together: the gate of the round, and each barrier in it.
type meeting struct {
	name    string
	arrived int
	full    bool          // all have arrived
	gate    chan struct{} // closed to release them
	instant time.Time     // as strategy.open gave it; set before the gate is closed
}

// meetings are those of one round. Who arrives last releases nobody: it would be ahead of
// those that have to be woken. The runner does, when all wait.
type meetings struct {
	mu     sync.Mutex
	active int // contenders that have not left the round
	all    []*meeting
	full   chan *meeting // to serve; nil: everybody has left
}

// begin makes ready for a round of n contenders.
func (m *meetings) begin(n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	clear(m.all)
	m.active, m.all = n, m.all[:0]
}

// serve opens each meeting when it is full, until everybody has left.
func (m *meetings) serve(open func() time.Time) {
	for at := range m.full {
		if at == nil {
			return
		}
		at.instant = open()
		close(at.gate)
	}
}

// wait holds its caller until all have come to the meeting of this name. It gives the
// instant before which nothing is to reach the store.
func (m *meetings) wait(name string) time.Time {
	m.mu.Lock()
	at := m.named(name)
	at.arrived++
	full := m.isFull(at)
	m.mu.Unlock()
	if full {
		m.full <- at
	}
	<-at.gate
	return at.instant
}

// named gives the meeting of this name: most often it is the latest.
func (m *meetings) named(name string) *meeting {
	for i := len(m.all) - 1; i >= 0; i-- {
		if m.all[i].name == name {
			return m.all[i]
		}
	}
	at := &meeting{name: name, gate: make(chan struct{})}
	m.all = append(m.all, at)
	return at
}

// isFull tells, once, that all have arrived.
func (m *meetings) isFull(at *meeting) bool {
	if at.full || at.arrived < m.active {
		return false
	}
	at.full = true
	return true
}

// leave tells that the caller comes to no meeting any more.
func (m *meetings) leave() {
	m.mu.Lock()
	m.active--
	var full []*meeting
	for _, at := range m.all {
		if m.isFull(at) {
			full = append(full, at)
		}
	}
	last := m.active == 0
	m.mu.Unlock()
	for _, at := range full {
		m.full <- at
	}
	if last {
		m.full <- nil
	}
}

const (
	// timerLate is how late a timer may be.
	timerLate = 2 * time.Millisecond
	// stillTurns without a step of the clock: it is too coarse, or goes on only when
	// everybody waits.
	stillTurns = 1000
)

// waitExactly waits to the microsecond, where the clock is as fine: it is busy for the
// end of the time, which no more than one contender can afford to be.
func waitExactly(d time.Duration) {
	start := time.Now()
	if d > timerLate {
		time.Sleep(d - timerLate)
	}
	before, still := time.Duration(-1), 0
	for {
		now := time.Since(start)
		switch {
		case now >= d:
			return
		case now > before:
			before, still = now, 0
		case still == stillTurns:
			time.Sleep(d - now)
		default:
			still++
		}
		runtime.Gosched()
	}
}
