package stores

import (
	"net"
	"runtime"
	"time"
)

const usualWindow = 2 * time.Millisecond

// windowStores check, let a window pass, and set. In the window another write on a
// condition can make the same check.
func windowStores() []Store {
	threads := func(wait func(time.Duration)) func(*redis, time.Duration) func() {
		return func(s *redis, window time.Duration) func() {
			s.guard = s.inTwoSteps(func() { wait(window) })
			return func() {}
		}
	}
	var all []Store
	for _, w := range []struct {
		name, says string
		plant      func(s *redis, window time.Duration) (stop func())
	}{
		{"window", "a write on a condition checks, waits for -window (2ms) while others run, and sets; each client has a thread", threads(yield)},
		{"window-cpu", "the same, but who waits keeps a processor busy", threads(spin)},
		{"window-loop", "the same in one loop for all clients, which serves others during the wait", (*redis).loop},
		{"window-none", "the twin of these that is right: check and set are one step", func(*redis, time.Duration) func() { return func() {} }},
	} {
		all = append(all, Store{Name: w.name, Says: w.says, URL: redisURL, serve: func(l net.Listener, o Options) func() {
			if o.Window <= 0 {
				o.Window = usualWindow
			}
			s := newRedis()
			stop := w.plant(s, o.Window)
			stopServing := s.serve(l)
			return func() {
				stopServing()
				stop()
			}
		}})
	}
	return all
}

// inTwoSteps is a guard with a window.
func (s *redis) inTwoSteps(wait func()) func(func() bool, func()) bool {
	return func(check func() bool, set func()) bool {
		met := s.inOneStep(check, func() {})
		if met {
			wait()
			s.inOneStep(always, set)
		}
		return met
	}
}

func always() bool { return true }

// sleepsFrom is the shortest wait that a sleep is exact enough for.
const sleepsFrom = 300 * time.Microsecond

// yield lets others have the processor.
func yield(d time.Duration) {
	if d >= sleepsFrom {
		time.Sleep(d)
		return
	}
	for end := time.Now().Add(d); time.Now().Before(end); {
		runtime.Gosched()
	}
}

func spin(d time.Duration) {
	for end := time.Now().Add(d); time.Now().Before(end); {
	}
}

// guarded is a write on a condition on its way through the loop.
type guarded struct {
	check func() bool
	set   func()
	met   chan bool // has room for the answer
	due   time.Time // of the set
}

// loop lets one goroutine do all checks and sets.
func (s *redis) loop(window time.Duration) (stop func()) {
	writes, stopped := make(chan guarded), make(chan struct{})
	s.guard = func(check func() bool, set func()) bool {
		g := guarded{check: check, set: set, met: make(chan bool, 1)}
		select {
		case writes <- g:
			return <-g.met
		case <-stopped:
			return false
		}
	}
	begin := func(waiting []guarded, g guarded) []guarded {
		if !s.inOneStep(g.check, func() {}) {
			g.met <- false
			return waiting
		}
		g.due = time.Now().Add(window)
		return append(waiting, g)
	}
	go func() {
		var waiting []guarded // in the order in which they are due
		for {
			for len(waiting) > 0 && !time.Now().Before(waiting[0].due) {
				s.inOneStep(always, waiting[0].set)
				waiting[0].met <- true
				waiting = waiting[1:]
			}
			var next <-chan time.Time
			idle := make(chan struct{})
			switch {
			case len(waiting) > 0 && time.Until(waiting[0].due) >= sleepsFrom:
				next = time.After(time.Until(waiting[0].due))
			case len(waiting) > 0:
				close(idle)
			}
			select {
			case g := <-writes:
				waiting = begin(waiting, g)
			case <-next:
			case <-idle:
				runtime.Gosched()
			case <-stopped:
				return
			}
		}
	}()
	return func() { close(stopped) }
}
