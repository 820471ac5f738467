package runner_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"contend/runner"
	"contend/scenarios"
	"contend/targets"
	"contend/targets/all"
)

// scripted is a target whose answers a test gives.
type scripted struct {
	do   func(contender int, op targets.Op) targets.Reply
	list func(prefix string) ([]targets.Op, error) // nil: nothing is there
	lead time.Duration

	mu     sync.Mutex
	opened map[int]int // sessions by contender
	ops    []targets.Op
	at     []time.Time
}

func (s *scripted) Describe() targets.Description {
	return targets.Description{SentBy: "call", Relays: s.lead > 0, Guards: targets.AllGuards, TTL: targets.TTL{Unit: 1}}
}
func (s *scripted) Prepare(context.Context, targets.Needs) (targets.Server, error) {
	return targets.Server{Lead: s.lead}, nil
}
func (*scripted) Close() error { return nil }
func (s *scripted) List(_ context.Context, prefix string) ([]targets.Op, int, error) {
	if s.list == nil {
		return nil, 0, nil
	}
	deletes, err := s.list(prefix)
	return deletes, 1, err
}
func (s *scripted) Open(_ context.Context, n int) (targets.Session, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.opened == nil {
		s.opened = make(map[int]int)
	}
	s.opened[n]++
	return scriptedSession{s, n}, nil
}

type scriptedSession struct {
	*scripted
	contender int
}

func (s scriptedSession) Close() error { return nil }
func (s scriptedSession) Do(_ context.Context, op targets.Op) targets.Reply {
	s.mu.Lock()
	s.ops = append(s.ops, op)
	s.at = append(s.at, time.Now())
	s.mu.Unlock()
	r := s.do(s.contender, op)
	r.Attempts = 1
	return r
}

// history keeps everything it is shown.
type history struct {
	controls []runner.Controls
	rounds   []runner.Round
	late     []int
}

func (h *history) Observe(e runner.Event) {
	switch {
	case e.Controls != nil:
		h.controls = append(h.controls, *e.Controls)
	case e.Round != nil:
		kept := *e.Round
		kept.Seeds, kept.Ops, kept.Reads = slices.Clone(kept.Seeds), slices.Clone(kept.Ops), slices.Clone(kept.Reads)
		h.rounds = append(h.rounds, kept)
	case e.Late != nil:
		h.late = append(h.late, e.Late.Round)
	}
}

func run(t *testing.T, target targets.Target, p runner.Plan) (*history, runner.Summary) {
	t.Helper()
	h := &history{}
	return h, start(t, target, p).Run(t.Context(), h, nil)
}

func always(o targets.Outcome) func(int, targets.Op) targets.Reply {
	return func(int, targets.Op) targets.Reply { return targets.Reply{Outcome: o} }
}

func TestRoundWithUnknownOutcomeSettlesAndReadsTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		target := &scripted{do: func(contender int, op targets.Op) targets.Reply {
			switch {
			case op.Kind == targets.Read:
				return targets.Reply{Outcome: targets.Missing}
			case contender == 1:
				return targets.Reply{Outcome: targets.Unknown}
			default:
				return targets.Reply{Outcome: targets.Conflict}
			}
		}}
		p := plan(3, 2)
		p.Settle = time.Minute
		h, _ := run(t, target, p)
		for _, r := range h.rounds {
			if len(r.Reads) != 2 {
				t.Fatalf("round %d was read back %d times, want 2", r.Number, len(r.Reads))
			}
			last := max(r.Ops[0].Return, r.Ops[1].Return, r.Ops[2].Return)
			if wait := r.Reads[0].Call - last; wait < time.Minute {
				t.Errorf("round %d was read back %s after its last reply, want the settling time", r.Number, wait)
			}
		}
		// The contender that was not answered got a new session after each round, and when it
		// could not delete; nobody else did.
		if want := map[int]int{0: 1, 1: 4, 2: 1, -1: 1, -2: 1}; !cmp.Equal(target.opened, want) {
			t.Errorf("sessions opened: %s", cmp.Diff(want, target.opened))
		}
		if !cmp.Equal(h.late, []int{1, 2}) {
			t.Errorf("late reads of rounds %v, want each", h.late)
		}
	})
}

func TestReadBackIsRepeatedWhenItFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		failures := 2
		target := &scripted{}
		target.do = func(contender int, op targets.Op) targets.Reply {
			if op.Kind == targets.Read && contender < 0 && failures > 0 {
				failures--
				return targets.Reply{Outcome: targets.Unknown}
			}
			return targets.Reply{Outcome: targets.OK}
		}
		h, _ := run(t, target, plan(2, 1))
		var outcomes []targets.Outcome
		for _, read := range h.rounds[0].Reads {
			outcomes = append(outcomes, read.Reply.Outcome)
		}
		if want := []targets.Outcome{targets.Unknown, targets.Unknown, targets.OK}; !slices.Equal(outcomes, want) {
			t.Errorf("read-backs %v, want %v", outcomes, want)
		}
	})
}

// leaky is a store of which this is left however often it is deleted.
func leaky(keys ...string) func(string) ([]targets.Op, error) {
	return func(prefix string) (deletes []targets.Op, err error) {
		for _, key := range keys {
			if strings.HasPrefix(key, prefix) {
				deletes = append(deletes, targets.Op{Kind: targets.Delete, Key: key})
			}
		}
		return deletes, nil
	}
}

// What is there after the removal is told, and nothing else, whatever the store says
// of its deletes; and where it cannot be listed it is read.
func TestRemovalIsChecked(t *testing.T) {
	unlisted := func(string) ([]targets.Op, error) { return nil, errors.New("NOPERM SCAN") }
	for name, test := range map[string]struct {
		list             func(string) ([]targets.Op, error)
		write, del, read targets.Outcome
		want             string // of what is told; "": nothing is
	}{
		"gone":                              {nil, targets.OK, targets.OK, targets.OK, ""},
		"gone, though the delete failed":    {nil, targets.OK, targets.Unknown, targets.OK, ""},
		"accepted, and there":               {leaky("contend-01BENCH-r1"), targets.OK, targets.OK, targets.Missing, "1 still there, such as contend-01BENCH-r1; the store had accepted"},
		"refused, and there":                {leaky("contend-01BENCH-r1"), targets.OK, targets.Invalid, targets.Missing, "such as contend-01BENCH-r1; the store answered: invalid"},
		"of another run":                    {leaky("contend-01BENCI-r1"), targets.OK, targets.OK, targets.OK, ""},
		"not listed, and read":              {unlisted, targets.OK, targets.OK, targets.OK, "1 still there, such as contend-01BENCH-r1"},
		"not listed, and not there":         {unlisted, targets.OK, targets.OK, targets.Missing, ""},
		"neither listed nor read":           {unlisted, targets.OK, targets.OK, targets.Throttled, "may have been left behind: whether they are gone could not be seen: NOPERM SCAN"},
		"never written":                     {nil, targets.Invalid, targets.Invalid, targets.Invalid, ""},
		"never written, and not listed":     {unlisted, targets.Throttled, targets.Throttled, targets.Throttled, ""},
		"refused by a liar, and then there": {leaky("contend-01BENCH-r1"), targets.Invalid, targets.OK, targets.OK, "1 still there"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				target := &scripted{list: test.list, do: func(_ int, op targets.Op) targets.Reply {
					return targets.Reply{Outcome: map[targets.Kind]targets.Outcome{targets.Write: test.write, targets.Delete: test.del, targets.Read: test.read}[op.Kind]}
				}}
				_, summary := run(t, target, plan(2, 1))
				if told := fmt.Sprint(summary.Left); (summary.Left == nil) != (test.want == "") || !strings.Contains(told, test.want) && test.want != "" {
					t.Errorf("told %q, want %q", told, test.want)
				}
			})
		})
	}
}

// A listing that shows for a moment what was deleted is asked again.
func TestRemovalIsLookedForAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		looks := 0
		target := &scripted{do: always(targets.OK), list: func(prefix string) ([]targets.Op, error) {
			if looks++; looks == 1 {
				return leaky("contend-01BENCH-r1")(prefix)
			}
			return nil, nil
		}}
		if _, summary := run(t, target, plan(2, 1)); summary.Left != nil || looks != 2 {
			t.Errorf("left %v after %d looks", summary.Left, looks)
		}
	})
}

func TestThreeUnservedRoundsStop(t *testing.T) {
	for _, o := range []targets.Outcome{targets.Unknown, targets.NotSent, targets.Throttled, targets.Invalid} {
		synctest.Test(t, func(t *testing.T) {
			target := &scripted{do: always(o), list: func(string) ([]targets.Op, error) { return nil, errors.New("no answer") }}
			h, summary := run(t, target, plan(2, 100))
			if len(h.rounds) != 3 || !errors.Is(summary.Stopped, runner.ErrUnserved) {
				t.Errorf("%s: %d rounds, stopped by %v; want 3 and %v", o, len(h.rounds), summary.Stopped, runner.ErrUnserved)
			}
			if wrote := o == targets.Unknown; (summary.Left != nil) != wrote {
				t.Errorf("%s: left %v, want that told where a write may have been applied", o, summary.Left)
			}
		})
	}
}

// The end of the duration does not hide that the target has died.
func TestDurationWaitsForASilentTarget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		target := &scripted{do: func(_ int, op targets.Op) targets.Reply {
			if strings.HasSuffix(op.Key, "-r1") {
				return targets.Reply{Outcome: targets.OK}
			}
			time.Sleep(10 * time.Second)
			return targets.Reply{Outcome: targets.Unknown}
		}}
		p := plan(2, 0)
		p.Duration = time.Second
		h, summary := run(t, target, p)
		if len(h.rounds) != 4 || summary.Stopped == nil {
			t.Errorf("%d rounds, stopped: %v; want 4, and stopped", len(h.rounds), summary.Stopped)
		}
	})
}

func TestSeedThatFailsReleasesNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		target := &scripted{do: always(targets.Unknown)}
		p := plan(2, 100)
		p.Race = scenarios.VersionCAS{}
		h, summary := run(t, target, p)
		if len(h.rounds) != 3 || summary.Stopped == nil {
			t.Fatalf("%d rounds, stopped: %v", len(h.rounds), summary.Stopped)
		}
		for _, r := range h.rounds {
			if len(r.Ops) != 0 || r.Seeded() {
				t.Errorf("round %d released contenders on an unseeded key", r.Number)
			}
		}
	})
}

func TestStaggerAndOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := plan(5, 1)
		p.Stagger = 100 * time.Millisecond
		h, _ := run(t, &scripted{do: always(targets.OK)}, p)
		for i, op := range h.rounds[0].Ops {
			if want := time.Duration(i) * p.Stagger; op.Contender != i || op.Call-h.rounds[0].Ops[0].Call != want {
				t.Errorf("op %d is of contender %d at +%s, want +%s", i, op.Contender, op.Call-h.rounds[0].Ops[0].Call, want)
			}
		}
	})
}

func TestEveryWriteHasATokenOfItsOwn(t *testing.T) {
	target := &scripted{do: always(targets.OK)}
	p := plan(7, 20)
	p.SkipControls, p.Twin, p.ControlRounds = false, scenarios.CheckThenSet{}, 2
	run(t, target, p)
	seen := make(map[string]bool)
	for _, op := range target.ops {
		if op.Kind != targets.Write {
			continue
		}
		if seen[op.Value.Token] || !strings.HasPrefix(op.Value.Token, op.Key+"-") || !strings.HasPrefix(op.Key, "contend-01BENCH-") {
			t.Errorf("token %q on key %q", op.Value.Token, op.Key)
		}
		seen[op.Value.Token] = true
	}
	if len(seen) < 7*20 {
		t.Errorf("only %d tokens", len(seen))
	}
}

func TestEveryKeyIsRemoved(t *testing.T) {
	target := &scripted{do: always(targets.OK)}
	p := plan(4, 9)
	p.SkipControls, p.Unguarded, p.Twin, p.ControlRounds = false, false, scenarios.CheckThenSet{}, 2
	_, summary := run(t, target, p)
	written, removed := make(map[string]bool), make(map[string]bool)
	for _, op := range target.ops {
		switch op.Kind {
		case targets.Write:
			written[op.Key] = true
			delete(removed, op.Key)
		case targets.Delete:
			removed[op.Key] = true
		}
	}
	for key := range written {
		if !removed[key] {
			t.Errorf("%s was written and not removed", key)
		}
	}
	if summary.Left != nil || summary.Requests != int64(len(target.ops)) {
		t.Errorf("left behind: %v; %d requests told, %d made", summary.Left, summary.Requests, len(target.ops))
	}
}

// A nonce that is gone at the end is asked for by two sessions, and once otherwise;
// one that was never stored, not at all.
func TestNonceIsReadLate(t *testing.T) {
	for name, test := range map[string]struct {
		nonce, late targets.Outcome
		want        []int // sessions that read late
	}{
		"there":          {targets.OK, targets.OK, []int{-1}},
		"gone":           {targets.OK, targets.Missing, []int{-1, -2}},
		"never accepted": {targets.Throttled, targets.Missing, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var raced atomic.Bool
			var late []int
			target := &scripted{}
			target.do = func(contender int, op targets.Op) targets.Reply {
				switch {
				case !strings.HasSuffix(op.Key, "-n"):
					if strings.HasSuffix(op.Key, "-r1") {
						raced.Store(true)
					}
					return targets.Reply{Outcome: targets.OK}
				case op.Kind == targets.Write:
					return targets.Reply{Outcome: test.nonce}
				case op.Kind == targets.Read && raced.Load():
					late = append(late, contender)
					return targets.Reply{Outcome: test.late}
				default:
					return targets.Reply{Outcome: targets.OK}
				}
			}
			p := plan(2, 1)
			p.SkipControls, p.Unguarded = false, true
			h, _ := run(t, target, p)
			shown := slices.DeleteFunc(h.late, func(round int) bool { return round != 0 })
			if !cmp.Equal(late, test.want) || len(shown) != len(test.want) {
				t.Errorf("read late by sessions %v, %d shown, want %v", late, len(shown), test.want)
			}
		})
	}
}

// What a dry run says is what a run does, where everything goes well.
func TestCostIsWhatIsSent(t *testing.T) {
	// The others try again, or end a part early.
	for _, s := range []scenarios.Contest{scenarios.FailIfExists{}, scenarios.VersionCAS{}, scenarios.CheckThenSet{}, scenarios.NewLostUpdate()} {
		for _, skip := range []bool{false, true} {
			target, err := all.Open("sim:?latency=0")
			if err != nil {
				t.Fatal(err)
			}
			p := plan(5, 4)
			p.Race, p.SkipControls, p.Unguarded, p.ControlRounds = s, skip, true, 3
			if twin := s.Twin(); twin != nil {
				p.Twin, p.Unguarded = twin, false
			}
			_, summary := run(t, target, p)
			if want := int64(p.Cost(target.Describe()).Total()); summary.Requests != want {
				t.Errorf("%s, controls skipped %v: %d requests, the plan says %d", s.Info().Name, skip, summary.Requests, want)
			}
		}
	}
}

func TestRateIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		target := &scripted{do: always(targets.OK)}
		p := plan(7, 40)
		p.Limits = []targets.Limit{{Requests: 20, Per: time.Second}}
		run(t, target, p)
		for i := range target.at {
			within := 0
			for _, other := range target.at[i:] {
				if d := other.Sub(target.at[i]); d < time.Second {
					within++
				}
			}
			if within > 20 {
				t.Fatalf("%d requests in the second from request %d on, the rate is 20", within, i)
			}
		}
	})
}

// timed begins its rounds with the minute.
type timed struct{ scenarios.VersionCAS }

func (timed) Begin(now time.Time) time.Time { return now.Truncate(time.Minute).Add(time.Minute) }

// A round that has begun when it is to does not wait for the limits after its
// seeds.
func TestTimedRoundIsNotHeldUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := plan(4, 3)
		p.Race, p.Twin, p.Unguarded, p.SkipControls = timed{}, nil, true, true
		p.Limits = []targets.Limit{{Requests: 7, Per: 70 * time.Second}}
		target := &scripted{do: always(targets.OK)}
		began := time.Now()
		h, _ := run(t, target, p)
		for _, r := range h.rounds {
			at := began.Add(r.Seeds[0].Call)
			if past := at.Sub(at.Truncate(time.Minute)); past > time.Millisecond || r.Ops[0].Call-r.Seeds[0].Return > time.Millisecond {
				t.Errorf("round %d was seeded %s past the minute, its contenders were let go %s after that", r.Number, past, r.Ops[0].Call-r.Seeds[0].Return)
			}
		}
	})
}

func TestInterruptReadsDoubtfulRoundsFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		p := plan(2, 100)
		h := &history{}
		target := &scripted{}
		target.do = func(_ int, op targets.Op) targets.Reply {
			if strings.HasSuffix(op.Key, "-r3") && op.Kind == targets.Write {
				cancel()
				// The request in flight is let finish.
				time.Sleep(time.Second)
			}
			return targets.Reply{Outcome: targets.OK}
		}
		summary := start(t, target, p).Run(ctx, h, doubting{2})
		if !summary.Interrupted || len(h.rounds) != 3 || len(h.rounds[2].Reads) != 1 || !slices.Equal(h.late, []int{2, 1, 3}) {
			t.Errorf("interrupted %v, %d rounds, late reads of %v", summary.Interrupted, len(h.rounds), h.late)
		}
		for _, op := range h.rounds[2].Ops {
			if op.Reply.Outcome != targets.OK {
				t.Errorf("a request in flight was cut off: %+v", op.Reply)
			}
		}
	})
}

// doubting races, and doubts the rounds that it lists.
type doubting []int

func (doubting) Proceed() bool      { return true }
func (d doubting) Doubtful() []int  { return d }
func (d doubting) Undecided() []int { return nil }
func (d doubting) Counted() int     { return 0 }

// The contenders of a relayed target are given one instant, ahead by the lead,
// at the release and again at each barrier; the runner's own requests none.
func TestContendersOfARelayedTargetShareAnInstant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		target := &scripted{lead: 3 * time.Second, do: func(_ int, op targets.Op) targets.Reply {
			time.Sleep(time.Until(op.NotBefore))
			if op.Kind == targets.Read {
				return targets.Reply{Outcome: targets.Missing}
			}
			return targets.Reply{Outcome: targets.OK}
		}}
		p := plan(3, 1)
		p.Race, p.Timeout = scenarios.CheckThenSet{}, time.Second
		h, _ := run(t, target, p)
		instants := make(map[targets.Kind]map[time.Time]bool)
		for _, op := range h.rounds[0].Ops {
			if instants[op.Op.Kind] == nil {
				instants[op.Op.Kind] = make(map[time.Time]bool)
			}
			instants[op.Op.Kind][op.Op.NotBefore] = true
			if op.Return-op.Call < target.lead || op.Reply.Outcome == targets.Unknown {
				t.Errorf("contender %d: %s after %s, the lead is %s beside the timeout", op.Contender, op.Reply.Outcome, op.Return-op.Call, target.lead)
			}
		}
		if len(instants[targets.Read]) != 1 || len(instants[targets.Write]) != 1 || cmp.Equal(instants[targets.Read], instants[targets.Write]) {
			t.Errorf("instants %v, want one for the reads and a later one for the writes", instants)
		}
		if h.rounds[0].Relayed == nil || !h.rounds[0].Reads[0].Op.NotBefore.IsZero() {
			t.Errorf("relayed %v, read-back not before %s", h.rounds[0].Relayed, h.rounds[0].Reads[0].Op.NotBefore)
		}
	})
}

// A contender that leaves early does not hold the others up.
func TestBarrierLetsGoWhenAllThatAreLeftHaveCome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		target := &scripted{do: func(contender int, op targets.Op) targets.Reply {
			if op.Kind == targets.Read && contender == 2 {
				time.Sleep(time.Hour)
			}
			return targets.Reply{Outcome: targets.OK}
		}}
		p := plan(4, 1)
		p.Race = earlyLeaver{}
		h, _ := run(t, target, p)
		var wrote []int
		for _, op := range h.rounds[0].Ops {
			if op.Op.Kind == targets.Write {
				wrote = append(wrote, op.Contender)
				if op.Call < time.Hour {
					t.Errorf("contender %d wrote at %s, before all had read", op.Contender, op.Call)
				}
			}
		}
		if !slices.Equal(wrote, []int{1, 2, 3}) {
			t.Errorf("contenders %v wrote, want 1, 2, 3", wrote)
		}
	})
}

// earlyLeaver leaves before the barrier as contender 0, and waits there twice
// otherwise.
type earlyLeaver struct{ scenarios.CheckThenSet }

func (earlyLeaver) Contend(c *runner.Contender) {
	c.Read()
	if c.Number == 0 {
		return
	}
	c.Barrier("after-read")
	c.Write(1, targets.Condition{})
	c.Barrier("after-write")
}

func TestRecordIsReadBackAsItWas(t *testing.T) {
	var b bytes.Buffer
	recorder := runner.NewRecorder(&b, map[string]any{"scenario": "x", "params": map[string]int{"contenders": 3}})
	h := &history{}
	target, err := all.Open("sim:?latency=0")
	if err != nil {
		t.Fatal(err)
	}
	p := plan(3, 4)
	p.Race, p.Twin, p.SkipControls, p.Unguarded, p.ControlRounds, p.ValueSize = scenarios.VersionCAS{}, scenarios.VersionCAS{}.Twin(), false, false, 1, 20
	summary := start(t, target, p).Run(t.Context(), runner.Observers{h, recorder}, nil)
	end := summary.End()
	if err := recorder.Finish(end, "for people"); err != nil {
		t.Fatal(err)
	}
	read := &history{}
	got, err := runner.Replay(bytes.NewReader(b.Bytes()), func(line json.RawMessage) (runner.Shown, error) {
		var header struct{ Schema, Scenario string }
		if err := json.Unmarshal(line, &header); err != nil || header.Scenario != "x" || header.Schema != runner.RecordSchema {
			t.Errorf("header %s: %v", header, err)
		}
		return runner.Shown{Observer: read}, nil
	})
	if err != nil || got != end {
		t.Fatalf("end %+v, %v; want %+v", got, err, end)
	}
	ignoreSent := cmp.FilterPath(func(p cmp.Path) bool {
		return slices.Contains([]string{".Sent", ".Began", ".Guarded"}, p.Last().String()) && p.Index(-2).Type().Name() == "Reply"
	}, cmp.Ignore())
	if diff := cmp.Diff(h, read, cmp.AllowUnexported(history{}), ignoreSent); diff != "" {
		t.Errorf("what was read differs from what was shown:\n%s", diff)
	}

	// Cut off anywhere, a record is read as far as its last whole line.
	random := rand.New(rand.NewPCG(1, 2))
	first := bytes.IndexByte(b.Bytes(), '\n')
	for range 200 {
		cut := b.Bytes()[:first+1+random.IntN(b.Len()-first-1)]
		part := &history{}
		end, err := runner.Replay(bytes.NewReader(cut), func(json.RawMessage) (runner.Shown, error) { return runner.Shown{Observer: part}, nil })
		if err != nil {
			t.Fatalf("cut at %d of %d: %v", len(cut), b.Len(), err)
		}
		if whole := bytes.Count(cut, []byte(`{"round":{`)); len(part.rounds) < whole-1 {
			t.Errorf("cut at %d: %d rounds read of %d", len(cut), len(part.rounds), whole)
		}
		if whole := bytes.Contains(cut, []byte(`{"end":`)) && bytes.HasSuffix(cut, []byte("\n")); !whole && !end.Interrupted && len(cut) < b.Len()-len(`{"result":"for people"}`)-2 {
			t.Errorf("cut at %d: the run is not told to be interrupted", len(cut))
		}
	}
}

func TestRecordThatIsNone(t *testing.T) {
	header := fmt.Sprintf(`{"schema":%q,"params":{"contenders":1},"controls":{}}`, runner.RecordSchema)
	round := func(number int, op string) string {
		return fmt.Sprintf(`{"round":{"round":%d,"key":"k","ops":[%s],"reads":[]}}`+"\n", number, op)
	}
	const op = `{"contender":0,"op":{"kind":"write","key":"k","value":{"token":"t","version":1}},"reply":{"outcome":"ok"},"call_ns":1,"return_ns":3,"sent_ns":2}`
	twin := func(number int) string {
		return fmt.Sprintf(`{"round":%d,"key":"k","ops":[%s],"reads":[]}`, number, op)
	}
	good := header + "\n" + round(1, op)
	if _, err := runner.Replay(strings.NewReader(good+`{"end":{"rounds":1}}`+"\n"), func(json.RawMessage) (runner.Shown, error) { return runner.Shown{Observer: &history{}}, nil }); err != nil {
		t.Fatalf("a whole record: %v", err)
	}
	for name, text := range map[string]string{
		"empty":                    "",
		"another file":             "hello\nworld\n",
		"another schema":           `{"schema":"contend.result/1"}` + "\n",
		"no controls":              fmt.Sprintf(`{"schema":%q}`, runner.RecordSchema) + "\n",
		"a damaged line":           header + "\n" + `{"round":` + "\n" + `{"round":{"round":2,"ops":[],"reads":[]}}` + "\n",
		"a round twice":            good + round(1, op),
		"a round left out":         good + round(3, op),
		"a contender left out":     header + "\n" + round(1, "") + `{"end":{"rounds":1}}` + "\n",
		"a contender too many":     header + "\n" + round(1, op+","+strings.Replace(op, `"contender":0`, `"contender":1`, 1)),
		"an unknown outcome":       header + "\n" + round(1, strings.Replace(op, `"ok"`, `"xx"`, 1)),
		"a return before a call":   header + "\n" + round(1, strings.Replace(op, `"return_ns":3`, `"return_ns":0`, 1)),
		"sent before the call":     header + "\n" + round(1, strings.Replace(op, `"sent_ns":2`, `"sent_ns":0`, 1)),
		"another key":              header + "\n" + round(1, strings.Replace(op, `"key":"k"`, `"key":"j"`, 1)),
		"an empty line":            good + "{}\n",
		"fewer rounds than it had": good + `{"end":{"rounds":2}}` + "\n",
		"a late read of nothing":   good + `{"late":{"round":2,"read":` + op + "}}\n",
		"an op twice":              header + "\n" + round(1, op+","+op),
		"a token twice":            header + "\n" + round(1, op+","+strings.NewReplacer(`"call_ns":1`, `"call_ns":4`, `"return_ns":3`, `"return_ns":6`, `"sent_ns":2`, `"sent_ns":5`).Replace(op)),
		"one contender in between": strings.Replace(header, `"contenders":1`, `"contenders":2`, 1) + "\n" + round(1, op+","+strings.Replace(op, `"contender":0`, `"contender":1`, 1)+","+op),
		"a twin's round twice":     strings.Replace(header, `"controls":{}`, `"controls":{"twin":[`+twin(1)+","+twin(1)+`]}`, 1) + "\n",
		"a late read at time 0":    good + `{"late":{"round":1,"read":` + strings.NewReplacer(`"write"`, `"read"`, `"key":"k"`, `"key":"k-r1-"`, `"call_ns":1`, `"call_ns":0`, `"sent_ns":2`, `"sent_ns":0`).Replace(op) + "}}\n",
		"a nonce of nothing":       good + `{"late":{"round":0,"read":` + strings.Replace(op, `"write"`, `"read"`, 1) + "}}\n",
		"something after the end":  good + `{"end":{"rounds":1}}` + "\n" + round(2, op),
		"a line of wrong type":     header + "\n" + `{"round":"three"}` + "\n",
	} {
		_, err := runner.Replay(strings.NewReader(text), func(json.RawMessage) (runner.Shown, error) { return runner.Shown{Observer: &history{}}, nil })
		if !errors.Is(err, runner.ErrNotARecord) {
			t.Errorf("%s: got error %v, want %v", name, err, runner.ErrNotARecord)
		}
	}
}

// A disk that is full ends the record, not the run.
func TestRecorderKeepsItsFirstError(t *testing.T) {
	full := errors.New("no space left")
	recorder := runner.NewRecorder(writerFunc(func([]byte) (int, error) { return 0, full }), struct{}{})
	target, err := all.Open("sim:?latency=0")
	if err != nil {
		t.Fatal(err)
	}
	summary := start(t, target, plan(2, 3)).Run(t.Context(), recorder, nil)
	if summary.Rounds != 3 || !errors.Is(recorder.Err(), full) {
		t.Errorf("%d rounds, recorder error %v", summary.Rounds, recorder.Err())
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }

// halting is a scripted store whose sessions make a create ready for a while before it
// is released.
type halting struct {
	*scripted
	ready func(contender int) time.Duration // how long that takes; negative: it fails
	took  time.Duration                     // what an answer takes from then on
}

func (h halting) Open(ctx context.Context, n int) (targets.Session, error) {
	s, err := h.scripted.Open(ctx, n)
	return haltingSession{s, h, n}, err
}

type haltingSession struct {
	targets.Session
	store     halting
	contender int
}

func (s haltingSession) Stage(ctx context.Context, op targets.Op, _ targets.Release, meet func()) targets.Reply {
	d := s.store.ready(s.contender)
	if d < 0 {
		return targets.Reply{Outcome: targets.NotSent, Code: "connection"}
	}
	began := time.Now()
	time.Sleep(d)
	meet()
	select {
	case <-ctx.Done():
		return targets.Reply{Outcome: targets.Unknown, Code: ctx.Err().Error(), Attempts: 1}
	case <-time.After(s.store.took):
	}
	r := s.Session.Do(ctx, op)
	r.Began = began
	return r
}

// Contenders make their creates ready before the gate, and are released when the last
// is: by the gate the call comes after it, by the last byte before anything is sent.
// The time that a request may take begins at the gate.
func TestOpsAreMadeReadyBeforeTheGate(t *testing.T) {
	const took, longest = 8 * time.Second, 9 * time.Second
	for _, how := range []targets.Release{"", targets.Gate, targets.LastByte} {
		synctest.Test(t, func(t *testing.T) {
			store := halting{&scripted{do: always(targets.OK)}, func(n int) time.Duration { return time.Duration(n) * longest / 3 }, took}
			p := plan(4, 1)
			p.Release, p.Timeout = how, 10*time.Second
			h := &history{}
			start(t, store, p).Run(t.Context(), h, nil)
			for _, x := range h.rounds[0].Ops {
				call := map[bool]time.Duration{true: 0, false: longest}[how == targets.LastByte]
				if x.Reply.Outcome == targets.Unknown || x.Call != call || x.Began != call || x.Return != longest+took {
					t.Errorf("by %q, contender %d: call %s, began %s, return %s, %+v", how, x.Contender, x.Call, x.Began, x.Return, x.Reply)
				}
			}
		})
	}
}

// A request that is not answered in time is told to be so, and one that cannot be made
// ready holds nobody up.
func TestStagedOpsThatFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := halting{&scripted{do: always(targets.OK)}, func(n int) time.Duration { return time.Duration(n-1) * time.Second }, time.Minute}
		p := plan(3, 1)
		h := &history{}
		start(t, store, p).Run(t.Context(), h, nil)
		ops := h.rounds[0].Ops
		if r := ops[0]; r.Reply.Outcome != targets.NotSent || r.Return != 0 {
			t.Errorf("failed before the gate: %+v, returned at %s", r.Reply, r.Return)
		}
		for _, x := range ops[1:] {
			if x.Reply.Outcome != targets.Unknown || x.Reply.Code != context.DeadlineExceeded.Error() || x.Return != time.Second+p.Timeout {
				t.Errorf("not answered in time: %+v, returned at %s", x.Reply, x.Return)
			}
		}
	})
}

// What needs the time, or waits, goes through the gate first.
func TestAContenderThatAsksForTheTimeHasPassedTheGate(t *testing.T) {
	for name, first := range map[string]func(*runner.Contender){
		"elapsed": func(c *runner.Contender) { c.Elapsed() },
		"sleep":   func(c *runner.Contender) { c.Sleep(0) },
		"barrier": func(c *runner.Contender) { c.Barrier("b") },
		"read":    func(c *runner.Contender) { c.Read() },
	} {
		synctest.Test(t, func(t *testing.T) {
			store := halting{&scripted{do: always(targets.OK)}, func(int) time.Duration { t.Errorf("%s: an op is made ready after the gate", name); return 0 }, 0}
			p := plan(2, 1)
			p.Race = beginsWith{first: first}
			start(t, store, p).Run(t.Context(), &history{}, nil)
		})
	}
	// Who does nothing at all keeps nobody waiting.
	synctest.Test(t, func(t *testing.T) {
		p := plan(2, 1)
		p.Race = beginsWith{idle: true}
		if summary := start(t, &scripted{do: always(targets.OK)}, p).Run(t.Context(), &history{}, nil); summary.Rounds != 1 {
			t.Errorf("%+v", summary)
		}
	})
}

// beginsWith does something before it writes.
type beginsWith struct {
	scenarios.FailIfExists
	first func(*runner.Contender)
	idle  bool
}

func (b beginsWith) Contend(c *runner.Contender) {
	if b.idle {
		return
	}
	b.first(c)
	c.Write(1, targets.Condition{})
}
