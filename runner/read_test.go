package runner

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"contend/targets"
)

// creating is a contest in which each contender creates the key.
type creating struct{ bystanders }

func (creating) Contend(c *Contender) { c.Write(1, targets.Condition{Guard: targets.IfAbsent}) }

// wide has a second key in each round.
type wide struct{ creating }

func (wide) Others(key string) []Key { return []Key{{key + "-page", targets.Versioned}} }

// memory keeps the late reads of a run, and the rounds.
type memory struct {
	rounds []Round
	late   []string // round and session
	at     []time.Duration
}

func (m *memory) Observe(e Event) {
	switch {
	case e.Round != nil:
		kept := *e.Round
		kept.Ops, kept.Reads = slices.Clone(kept.Ops), slices.Clone(kept.Reads)
		m.rounds = append(m.rounds, kept)
	case e.Late != nil:
		m.late = append(m.late, fmt.Sprintf("%d by %d", e.Late.Round, e.Late.Read.Contender))
		m.at = append(m.at, e.Late.Read.Call.Round(time.Millisecond))
	}
}

// steering names rounds that are undecided for so many late reads of each.
type steering struct {
	*memory
	doubtful, undecided []int
	reads               int
	counted             int
}

func (steering) Proceed() bool     { return true }
func (s steering) Counted() int    { return s.counted }
func (s steering) Doubtful() []int { return s.doubtful }
func (s steering) Undecided() (left []int) {
	for _, n := range s.undecided {
		if count(s.late, fmt.Sprintf("%d by", n)) < s.reads {
			left = append(left, n)
		}
	}
	return left
}

func count(all []string, prefix string) (n int) {
	for _, s := range all {
		if strings.HasPrefix(s, prefix) {
			n++
		}
	}
	return n
}

// raced runs so many rounds of two contenders.
func raced(t *testing.T, ctx context.Context, target targets.Target, plan Plan, s steering) (*memory, Summary) {
	t.Helper()
	plan.Run, plan.Prefix, plan.Contenders, plan.SkipControls, plan.Unguarded = "01R", "k-", 2, true, true
	if plan.Timeout == 0 {
		plan.Timeout = time.Second
	}
	if plan.Race == nil {
		plan.Race = creating{}
	}
	r, err := Open(t.Context(), target, plan)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if s.memory == nil {
		s.memory = &memory{}
	}
	return s.memory, r.Run(ctx, s.memory, s)
}

// Every key is read once more when it has been left alone for long enough, those of a
// round with several keys as well.
func TestLateReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, s := raced(t, t.Context(), &stand{}, Plan{Rounds: 3, Late: time.Minute}, steering{})
		if want := []string{"1 by 0", "2 by 1", "3 by 0"}; !slices.Equal(m.late, want) {
			t.Errorf("late reads %q, want %q", m.late, want)
		}
		if m.at[0] != time.Minute || s.Elapsed.Round(time.Second) != time.Minute {
			t.Errorf("read at %s, after %s", m.at, s.Elapsed)
		}
		target := &stand{}
		m, _ = raced(t, t.Context(), target, Plan{Rounds: 2, Race: wide{}}, steering{})
		if count(m.late, "1 by") != 2 || count(m.late, "2 by") != 2 || len(m.rounds[0].Reads) != 2 {
			t.Errorf("late reads %q, %d read-backs", m.late, len(m.rounds[0].Reads))
		}
		if got := target.keysOf(targets.Delete); !slices.Equal(got, []string{"k-01R-r1", "k-01R-r1-page", "k-01R-r2", "k-01R-r2-page"}) {
			t.Errorf("deleted %q", got)
		}
	})
}

// A round in doubt is read again at growing distances, by the sessions in turn, until it
// is in doubt no more, or the settling time is over and the last reads are made.
func TestRoundsInDoubtAreReadAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, _ := raced(t, t.Context(), &stand{}, Plan{Rounds: 3, Settle: time.Minute}, steering{undecided: []int{2}, reads: 4})
		if want := []string{"1 by 0", "2 by 1", "3 by 0", "2 by 1", "2 by 0", "2 by 1"}; !slices.Equal(m.late, want) {
			t.Errorf("late reads %q, want %q", m.late, want)
		}
		for i, want := range []time.Duration{50 * time.Millisecond, 150 * time.Millisecond, 350 * time.Millisecond} {
			if got := m.at[3+i] - m.at[2]; got != want {
				t.Errorf("the reading %d came %s after the first, want %s", i+1, got, want)
			}
		}
		m, s := raced(t, t.Context(), &stand{}, Plan{Rounds: 1, Settle: time.Second}, steering{undecided: []int{1}, reads: 1000})
		after := slices.IndexFunc(m.at, func(at time.Duration) bool { return at-m.at[0] >= time.Second })
		if len(m.late)-after != confirmingReads+1 && len(m.late)-after != confirmingReads || s.Elapsed > 2*time.Second {
			t.Errorf("%d reads when the settling time was over: %s", len(m.late)-after, m.at)
		}
	})
}

// An interrupt leaves no more time for late reads than somebody waits who interrupts; the
// doubtful rounds come first.
func TestLateReadsOfAnInterruptedRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		var reads atomic.Int32
		target := &stand{do: func(op targets.Op) targets.Reply {
			if op.Kind == targets.Write && strings.HasSuffix(op.Key, "-r4") {
				cancel()
			}
			if op.Kind == targets.Read && reads.Add(1) > 4 {
				time.Sleep(4 * time.Second)
			}
			return targets.Reply{Outcome: targets.OK}
		}}
		m, s := raced(t, ctx, target, Plan{Setup: Setup{Timeout: time.Minute}, Rounds: 100}, steering{doubtful: []int{3, 2}})
		if want := []string{"3 by 0", "2 by 1", "1 by 0", "4 by 1"}; !s.Interrupted || len(m.rounds) != 4 || !slices.Equal(m.late, want) {
			t.Errorf("%d rounds, late reads %q, want %q", len(m.rounds), m.late, want)
		}
		if s.Elapsed > afterInterrupt {
			t.Errorf("took %s", s.Elapsed)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		m, s := raced(t, ctx, &stand{}, Plan{Rounds: 3, Late: time.Hour}, steering{})
		if len(m.late) != 3 || s.Elapsed.Round(time.Millisecond) != time.Second {
			t.Errorf("interrupted while it waited: late reads %q, after %s", m.late, s.Elapsed)
		}
	})
}

// An interrupt ends what a round waits for before it is read back, at once.
func TestACancelEndsTheSettling(t *testing.T) {
	reply := func(kind targets.Kind, r targets.Reply) func(targets.Op) targets.Reply {
		return func(op targets.Op) targets.Reply {
			if op.Kind == kind {
				return r
			}
			return targets.Reply{Outcome: targets.OK}
		}
	}
	for name, do := range map[string]func(targets.Op) targets.Reply{
		"the settling time":               reply(targets.Write, targets.Reply{Outcome: targets.Unknown}),
		"the pause that a store asks for": reply(targets.Read, targets.Reply{Outcome: targets.Unknown, RetryAfter: time.Hour}),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				m, s := raced(t, ctx, &stand{do: do, describe: targets.Description{Volatile: true}}, Plan{Rounds: 5, Settle: time.Hour}, steering{})
				if !s.Interrupted || len(m.rounds) != 1 || len(m.rounds[0].Reads) == 0 || m.rounds[0].Done.Round(time.Millisecond) != time.Second {
					t.Errorf("%+v, %d rounds, done at %s", s, len(m.rounds), m.rounds[0].Done)
				}
			})
		})
	}
}

// A round whose unknown requests were all answered settles for a moment only, and one in
// which all is known not at all.
func TestHowLongARoundSettles(t *testing.T) {
	for name, c := range map[string]struct {
		reply targets.Reply
		reads int
		after time.Duration
	}{
		"known":                {targets.Reply{Outcome: targets.OK}, 1, 0},
		"refused":              {targets.Reply{Outcome: targets.Conflict}, 1, 0},
		"timed out":            {targets.Reply{Outcome: targets.Unknown}, 2, time.Minute},
		"answered by an error": {targets.Reply{Outcome: targets.Unknown, Status: 500}, 2, settleAnswered},
		"unmapped":             {targets.Reply{Outcome: targets.Unmapped}, 2, settleAnswered},
	} {
		synctest.Test(t, func(t *testing.T) {
			target := &stand{do: func(op targets.Op) targets.Reply {
				if op.Kind == targets.Write {
					return c.reply
				}
				return targets.Reply{Outcome: targets.OK}
			}}
			m, _ := raced(t, t.Context(), target, Plan{Rounds: 1, Settle: time.Minute}, steering{})
			r := m.rounds[0]
			if got := r.Reads[0].Call - r.answeredAt(); len(r.Reads) != c.reads || got.Round(time.Millisecond) != c.after {
				t.Errorf("%s: %d reads, %s after the last answer", name, len(r.Reads), got)
			}
		})
	}
}

// A run goes on until as many rounds count as are wanted, unless none of the first do, or
// no more are to be raced.
func TestHowManyRoundsAreRaced(t *testing.T) {
	for _, c := range []struct{ rounds, most, counted, want int }{
		{5, 0, 0, 5}, {5, 20, 0, 5}, {5, 20, 5, 5}, {5, 20, 3, 20}, {5, 3, 1, 5}, {5, 5, 1, 5},
	} {
		synctest.Test(t, func(t *testing.T) {
			m, s := raced(t, t.Context(), &stand{}, Plan{Rounds: c.rounds, MaxRounds: c.most}, steering{counted: c.counted})
			if len(m.rounds) != c.want || s.Rounds != c.want {
				t.Errorf("%+v: %d rounds", c, s.Rounds)
			}
		})
	}
}

// What is drawn for a contender depends on the seed, the round and its number alone.
func TestRandomOfAContender(t *testing.T) {
	draw := func(seed uint64, round, number int) uint64 {
		c := Contender{Number: number, Round: &Round{Number: round}, run: &Runner{plan: Plan{Setup: Setup{Seed: seed}}}}
		return c.Random().Uint64()
	}
	if again := draw(1, 2, 3); again != draw(1, 2, 3) {
		t.Error("the same draw gives another number")
	}
	seen := make(map[uint64]bool)
	for round := range 5 {
		for number := range 5 {
			seen[draw(1, round, number)] = true
		}
	}
	if len(seen) != 25 || draw(2, 9, 0) == draw(1, 9, 0) {
		t.Errorf("%d numbers of 25", len(seen))
	}
}

func TestTokensAndRuns(t *testing.T) {
	if got := Token("contend-01R-r12", 3, 4); got != "contend-01R-r12-c3-a4" {
		t.Errorf("token %q", got)
	}
	for key, want := range map[string]string{"contend-01R-r12": "01R", "contend-01R-": "01R", "contend-01R": "", "other-01R-r1": "", "contend-": "", "": ""} {
		if got := RunOf("contend-", key); got != want {
			t.Errorf("%q is of run %q, want %q", key, got, want)
		}
	}
}
