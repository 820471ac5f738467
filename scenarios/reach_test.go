package scenarios

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/url"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"contend/runner"
	"contend/targets"
	"contend/targets/all"
	"contend/targets/targettest"
	"contend/targets/targettest/servers"
)

// staggered lets each contender of a contest go at a moment of its own after the release.
type staggered struct {
	Contest
	moment func(c *runner.Contender) time.Duration
}

func (s staggered) Contend(c *runner.Contender) {
	at := c.Elapsed() + s.moment(c) // which is asked for past the gate
	for left := at - c.Elapsed(); left > 0; left = at - c.Elapsed() {
		if left > time.Millisecond {
			time.Sleep(left - time.Millisecond)
		} else {
			runtime.Gosched()
		}
	}
	s.Contest.Contend(c)
}

// within spreads at random over some time.
func within(s Contest, d time.Duration) staggered {
	return staggered{s, func(c *runner.Contender) time.Duration { return time.Duration(c.Random().Int64N(int64(d))) }}
}

// steady is a Steering that stops nothing.
type steady struct{ *Judge }

func (steady) Proceed() bool { return true }

// raced runs some rounds without controls, and gives their judge.
func raced(t *testing.T, target targets.Target, s Contest, contenders, rounds int, seed uint64, others ...runner.Observer) *Judge {
	t.Helper()
	j := NewJudge(Terms{Scenario: s, Contenders: contenders, OneCopy: target.Describe().OneCopy, Thresholds: DefaultThresholds})
	r, err := runner.Open(t.Context(), target, runner.Plan{Setup: runner.Setup{Run: fmt.Sprintf("01TEST%d", seed), Prefix: "contend-", Timeout: time.Minute, Seed: seed, SkipControls: true},
		Contenders: contenders, Rounds: rounds, Late: time.Millisecond, Race: s})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if summary := r.Run(t.Context(), append(runner.Observers{steady{j}}, others...), steady{j}); summary.Stopped != nil || summary.Left != nil {
		t.Fatalf("the run: %v, %v", summary.Stopped, summary.Left)
	}
	return j
}

// clean gives the reach of each round that is certain and not violated; negative: it
// is unknown.
func (j *Judge) clean() []time.Duration {
	var reaches []time.Duration
	for _, kept := range j.findings {
		f := kept.Common()
		if r := kept.Rule(); r.Violation == nil && r.Winners == 1 && doubtOf(f, &r, j.terms, true) == (reason{}) {
			reaches = append(reaches, f.Evidence.Reach)
		}
	}
	return reaches
}

// below gives those of the known reaches that are shorter than the window which the
// store had for certain between check and set.
func below(reaches []time.Duration, window time.Duration) []time.Duration {
	return slices.DeleteFunc(slices.Clone(reaches), func(d time.Duration) bool { return d < 0 || d >= window })
}

// planted is a store with a window between the check and the set, and a contest on it.
type planted struct {
	store, query string
	scenario     Contest
	window       time.Duration
	way          time.Duration // to the check and back, on an idle machine
	want         int           // clean rounds
	reaches      []time.Duration
	target       targets.Target
}

func (p *planted) String() string {
	return fmt.Sprintf("%s %s%s, %s", p.store, p.scenario.Info().Name, p.query, p.window)
}

func (p *planted) open(t *testing.T) {
	flag := "-window"
	if p.store == "void-watch" {
		flag = "-delay" // of EXEC, after the GET that checks
	}
	p.target = targetAt(t, targettest.Wrong(t, p.store, flag, p.window.String())+p.query)
}

func targetAt(t *testing.T, address string) targets.Target {
	t.Helper()
	target, err := all.Open(address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { target.Close() })
	return target
}

// plantedWindows are stores of every kind with windows of every length.
func plantedWindows() []*planted {
	const us = time.Microsecond
	var all []*planted
	for _, on := range []struct {
		store, query string
		scenario     Contest
		way          time.Duration
	}{
		{"window", "", FailIfExists{}, 80 * us}, {"window", "", VersionCAS{}, 80 * us},
		{"window-cpu", "", FailIfExists{}, 80 * us}, {"window-cpu", "", VersionCAS{}, 80 * us},
		{"window-loop", "", FailIfExists{}, 80 * us}, {"window-loop", "", VersionCAS{}, 80 * us},
		{"void-watch", "?create=watch", FailIfExists{}, 300 * us}, {"void-watch", "?cas=watch", VersionCAS{}, 300 * us},
	} {
		for _, p := range []planted{{window: 20 * us, want: 70}, {window: 60 * us, want: 70}, {window: 200 * us, want: 60}, {window: ms, want: 30}, {window: 3 * ms, want: 20}} {
			p.store, p.query, p.scenario, p.way = on.store, on.query, on.scenario, on.way
			all = append(all, &p)
		}
	}
	return all
}

// No round that is certain and not violated claims that check and effect were closer
// together than they were, whatever the machine does meanwhile: each store measures its
// window by itself. There are such rounds, since the contenders are spread over three
// windows and the way there; how many in so many seconds is left to the machine.
func TestReachIsNeverBelowTheWindow(t *testing.T) {
	const patience = 20 * time.Second
	all := plantedWindows()
	for _, p := range all {
		p.open(t)
	}
	end, open := time.Now().Add(patience), slices.Clone(all)
	for pass := 0; len(open) > 0 && time.Now().Before(end); pass++ {
		for _, p := range open {
			j := raced(t, p.target, within(p.scenario, 3*(p.window+p.way)), 2+pass%4, max(20, p.want), uint64(pass))
			p.reaches = append(p.reaches, j.clean()...)
		}
		open = slices.DeleteFunc(open, func(p *planted) bool { return len(p.reaches) >= p.want })
	}
	clean, known := 0, 0
	for _, p := range all {
		told := slices.DeleteFunc(slices.Clone(p.reaches), func(d time.Duration) bool { return d < 0 })
		clean, known = clean+len(p.reaches), known+len(told)
		if wrong := below(p.reaches, p.window); len(wrong) > 0 {
			t.Errorf("%s: %d of %d clean rounds claim less: %v", p, len(wrong), len(p.reaches), wrong)
		}
		if slices.Sort(told); len(told) > 0 {
			t.Logf("%s: %d clean rounds, reach at least %.2f windows, median %.2f", p, len(p.reaches),
				float64(told[0])/float64(p.window), float64(told[len(told)/2])/float64(p.window))
		}
	}
	t.Logf("%d clean rounds, the reach of %d known", clean, known)
}

// opened is a target whose sessions are made otherwise.
type opened struct {
	targets.Target
	open     func(ctx context.Context, contender int) (targets.Session, error)
	describe func(*targets.Description)
}

func (o opened) Open(ctx context.Context, contender int) (targets.Session, error) {
	return o.open(ctx, contender)
}

func (o opened) Describe() targets.Description {
	d := o.Target.Describe()
	if o.describe != nil {
		o.describe(&d)
	}
	return d
}

// doing is a session that does otherwise.
type doing struct {
	targets.Session
	do func(targets.Session, context.Context, targets.Op) targets.Reply
}

func (d doing) Do(ctx context.Context, op targets.Op) targets.Reply { return d.do(d.Session, ctx, op) }

// A claim that rests on what the winner sent last, or on a refusal that another copy
// of the record caused, is below the window; and the rounds show it.
func TestReachThatClaimsTooLittleIsSeen(t *testing.T) {
	const window = 200 * ms
	// The first is alone in its window, the others come well before a window later.
	late := func(from time.Duration) func(*runner.Contender) time.Duration {
		return func(c *runner.Contender) time.Duration {
			if c.Number == 0 {
				return 0
			}
			return from + time.Duration(c.Number)*10*ms
		}
	}
	t.Run("sent last", func(t *testing.T) {
		// Who finds no record is told a window later; then it is written at once.
		hold := holdReplies(t, targettest.Wrong(t, "void-watch", "-delay", "1ns"), "get\r\n", func(_ int, reply []byte) {
			if bytes.HasPrefix(reply, []byte("$-1\r\n")) {
				time.Sleep(window)
			}
		})
		honest := targetAt(t, hold+"?create=watch")
		wrong := opened{Target: honest, open: func(ctx context.Context, contender int) (targets.Session, error) {
			s, err := honest.Open(ctx, contender)
			return doing{s, func(s targets.Session, ctx context.Context, op targets.Op) targets.Reply {
				r := s.Do(ctx, op)
				if !r.Guarded.IsZero() {
					r.Began = r.Guarded
				}
				return r
			}}, err
		}}
		seenTooLittle(t, honest, wrong, staggered{FailIfExists{}, late(window)}, window)
	})
	t.Run("on two masters", func(t *testing.T) {
		first := targetAt(t, targettest.Wrong(t, "window", "-window", window.String()))
		second := targetAt(t, targettest.Wrong(t, "window-none"))
		open := func(ctx context.Context, contender int) (targets.Session, error) {
			s, err := first.Open(ctx, contender)
			if err != nil || contender <= 0 {
				return s, err
			}
			other, err := second.Open(ctx, contender)
			return doing{s, func(s targets.Session, ctx context.Context, op targets.Op) targets.Reply {
				if op.Kind != targets.Write {
					return s.Do(ctx, op)
				}
				// On the second the key is there already.
				before := op
				before.If = targets.Condition{}
				other.Do(ctx, before)
				return other.Do(ctx, op)
			}}, err
		}
		declared := opened{Target: first, open: open}
		honest := declared
		honest.describe = func(d *targets.Description) { d.OneCopy = false }
		seenTooLittle(t, honest, declared, staggered{FailIfExists{}, late(0)}, window)
	})
}

// seenTooLittle wants claims below the window on the wrong target, and none on the
// honest one.
func seenTooLittle(t *testing.T, honest, wrong targets.Target, s Contest, window time.Duration) {
	t.Helper()
	// A machine that stops for longer than a window hides it, but not in each round.
	seen := false
	for seed := uint64(0); seed < 20 && !seen; seed++ {
		seen = len(below(raced(t, wrong, s, 3, 1, seed).clean(), window)) > 0
	}
	if !seen {
		t.Error("no clean round claims too little")
	}
	reaches := raced(t, honest, s, 3, 2, 0).clean()
	if wrong := below(reaches, window); len(wrong) > 0 {
		t.Errorf("as it is, %v is claimed of a window of %s", wrong, window)
	}
	t.Logf("as it is: %v", reaches)
}

// holdReplies stands in front of a server and gives its URL then. Before the reply to
// what holds text is passed on to the client, the function is told which connection
// it is, from 0, and what the reply begins with.
func holdReplies(t *testing.T, server, text string, before func(connection int, reply []byte)) string {
	t.Helper()
	u, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	ends, end := context.WithCancel(context.Background())
	t.Cleanup(func() {
		l.Close()
		end()
		all.Wait()
	})
	join := func(number int, client net.Conn) {
		defer client.Close()
		backend, err := net.Dial("tcp", u.Host)
		if err != nil {
			return
		}
		defer backend.Close()
		defer context.AfterFunc(ends, func() { client.Close(); backend.Close() })()
		var asked atomic.Bool
		all.Go(func() {
			defer backend.Close()
			pass(backend, client, func(request []byte) {
				if bytes.Contains(request, []byte(text)) {
					asked.Store(true)
				}
			})
		})
		pass(client, backend, func(reply []byte) {
			if asked.Swap(false) {
				before(number, reply)
			}
		})
	}
	all.Go(func() {
		for number := 0; ; number++ {
			client, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() { join(number, client) })
		}
	})
	return strings.Replace(server, u.Host, l.Addr().String(), 1)
}

// pass copies, and shows what comes before it is passed on.
func pass(to io.Writer, from io.Reader, show func([]byte)) {
	buffer := make([]byte, 1<<16)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			show(buffer[:n])
			if _, err := to.Write(buffer[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// noting keeps the contenders' requests of the last round.
type noting struct{ round runner.Round }

func (n *noting) Observe(e runner.Event) {
	if e.Round != nil {
		n.round = *e.Round
		n.round.Ops = slices.Clone(e.Round.Ops)
	}
}

// Two contenders read at the same time, and one has its answer so late that the other
// is done by then: neither met the other at the guard, though their ops were in flight
// together.
func TestRivalsRestOnTheGuardedRequest(t *testing.T) {
	redis := func(t *testing.T) string { return targettest.Wrong(t, "window-none") }
	postgres := func(t *testing.T) string { return servers.Postgres(t) }
	for _, c := range []struct {
		start       func(t *testing.T) string
		query, read string // read is part of the request whose reply is held
		scenario    Contest
	}{
		{redis, "create=watch", "get\r\n", FailIfExists{}},
		{redis, "cas=watch", "get\r\n", VersionCAS{}},
		{postgres, "cas=repeatable-read", "_read\x00", VersionCAS{}},
	} {
		t.Run(c.query, func(t *testing.T) {
			address, query := c.start(t), "?"+c.query
			if strings.Contains(address, "?") {
				query = "&" + c.query
			}
			var released atomic.Bool
			var reads atomic.Int32
			bothRead, oneIsDone := make(chan struct{}), make(chan struct{})
			inner := targetAt(t, holdReplies(t, address, c.read, func(int, []byte) {
				if !released.Load() {
					return
				}
				switch reads.Add(1) {
				case 1:
					<-bothRead
				case 2:
					close(bothRead)
					<-oneIsDone
				}
			})+query)
			done := sync.OnceFunc(func() { close(oneIsDone) })
			target := opened{Target: inner, open: func(ctx context.Context, contender int) (targets.Session, error) {
				s, err := inner.Open(ctx, contender)
				return doing{s, func(s targets.Session, ctx context.Context, op targets.Op) targets.Reply {
					r := s.Do(ctx, op)
					if released.Load() {
						done()
					}
					return r
				}}, err
			}}
			var seen noting
			j := raced(t, target, staggered{c.scenario, func(*runner.Contender) time.Duration {
				released.Store(true)
				return 0
			}}, 2, 1, 1, &seen)
			checkApart(t, j.findings[0].Common().Evidence, seen.round)
		})
	}
}

// checkApart wants no rivals of two contenders of which one sent its guarded request
// when the other was done; by the first requests that they sent they would be.
func checkApart(t *testing.T, got Evidence, r runner.Round) {
	t.Helper()
	slices.SortFunc(r.Ops, func(a, b runner.Exchange) int { return int(a.Guard - b.Guard) })
	if len(r.Ops) != 2 || r.Ops[0].Guard == 0 || r.Ops[1].Guard < r.Ops[0].Return || r.Ops[1].Sent >= r.Ops[0].Guard || !metGuard(&r.Ops[1]) {
		t.Fatalf("not the round that it was to be: %+v", r.Ops)
	}
	if gap := r.Ops[1].Guard - r.Ops[0].Guard; got.Rivals != 0 || got.GuardContention != 0 || got.Closest != gap || got.WinnerOverlap != 1 {
		t.Errorf("%d rivals, guard contention %v, closest %v, winner overlap %v; want 0, 0, %v, 1", got.Rivals, got.GuardContention, got.Closest, got.WinnerOverlap, gap)
	}
	first := r
	first.Ops = slices.Clone(r.Ops)
	for i := range first.Ops {
		first.Ops[i].Guard = first.Ops[i].Sent
	}
	wrong := evidenceOf(&first)
	wrong.ofFirst(meetingsOf(&first, true))
	if wrong.Rivals != 1 || wrong.GuardContention != 1 || wrong.Closest == got.Closest {
		t.Errorf("by the first requests: %d rivals, guard contention %v, closest %v: the round does not tell these figures from the right ones", wrong.Rivals, wrong.GuardContention, wrong.Closest)
	}
}
