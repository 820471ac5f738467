package runner_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"contend/runner"
	"contend/targets"
)

// heard keeps what a probe was answered.
type heard struct {
	questions []string
	exchanges []runner.Exchange
}

func (h *heard) Observe(e runner.Event) {
	if a := e.Answer; a != nil {
		h.questions, h.exchanges = append(h.questions, a.Question), append(h.exchanges, *a.Exchange)
	}
}

func named(key string) targets.Op { return targets.Op{Kind: targets.Raw, Key: key} }

// inquiry asks one request for each key, and has one to remove.
func inquiry(id string, keys ...string) runner.Inquiry {
	q := runner.Inquiry{ID: id, Remove: []targets.Op{{Kind: targets.Delete, Key: id}}}
	for _, key := range keys {
		q.Steps = append(q.Steps, runner.Step{Op: named(key)})
	}
	return q
}

func ask(t *testing.T, ctx context.Context, target targets.Target, plan runner.ProbePlan) (*heard, runner.Summary) {
	t.Helper()
	plan.Timeout = time.Second
	p, err := runner.OpenProbe(t.Context(), target, plan)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	h := &heard{}
	return h, p.Run(ctx, h)
}

func sent(target *scripted) string {
	var all []string
	for _, op := range target.ops {
		all = append(all, string(op.Kind[0])+" "+op.Key)
	}
	return strings.Join(all, ", ")
}

// What waits goes on when the others have been begun, no sooner than it may, and what
// may have been left is removed.
func TestProbeAsksInTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		target := &scripted{do: always(targets.OK)}
		late, later := inquiry("late", "a", "b", "c"), inquiry("later", "d", "e")
		late.Steps[1].After, late.Steps[2].After, later.Steps[1].After = time.Second, 5*time.Second, 3*time.Second
		h, summary := ask(t, t.Context(), target, runner.ProbePlan{Inquiries: []runner.Inquiry{late, later, inquiry("now", "f", "g")}})
		if got := sent(target); got != "r a, r d, r f, r g, r b, r e, r c, d late, d later, d now" {
			t.Errorf("sent %s", got)
		}
		for i, want := range map[int]time.Duration{0: 0, 4: time.Second, 5: 3 * time.Second, 6: 6 * time.Second} {
			if h.exchanges[i].Call != want {
				t.Errorf("request %d was sent at %s, want %s", i, h.exchanges[i].Call, want)
			}
		}
		if summary.Requests != 10 || summary.Stopped != nil || summary.Left != nil || summary.Interrupted || summary.Elapsed != 6*time.Second {
			t.Errorf("%+v", summary)
		}
	})
}

// An inquiry ends with a step that must be OK and is not, and what certainly left
// nothing is not removed.
func TestProbeEndsWhatItRestsOn(t *testing.T) {
	for outcome, removed := range map[targets.Outcome]bool{targets.Invalid: false, targets.Conflict: false, targets.Missing: false, targets.Throttled: false,
		targets.NotSent: false, targets.Unknown: true, targets.Unmapped: true} {
		target := &scripted{do: always(outcome)}
		q := inquiry("q", "a", "b")
		q.Steps[0].Must = true
		h, _ := ask(t, t.Context(), target, runner.ProbePlan{Inquiries: []runner.Inquiry{q}})
		want := "r a"
		if removed {
			want += ", d q"
		}
		if got := sent(target); got != want || len(h.exchanges) != 1 {
			t.Errorf("%s: sent %s, want %s", outcome, got, want)
		}
	}
	target := &scripted{do: always(targets.Invalid)}
	if ask(t, t.Context(), target, runner.ProbePlan{Inquiries: []runner.Inquiry{inquiry("q", "a", "b")}}); sent(target) != "r a, r b" {
		t.Errorf("what need not be OK: sent %s", sent(target))
	}
}

// A target that answers nothing is asked no more after three requests; an answer that
// refuses, and one that the target has no request for, are none of these.
func TestProbeStopsWhereNothingIsAnswered(t *testing.T) {
	six := []runner.Inquiry{inquiry("1", "a"), inquiry("2", "b"), inquiry("3", "c"), inquiry("4", "d"), inquiry("5", "e"), inquiry("6", "f")}
	for _, c := range []struct {
		replies []targets.Reply // in turn, again and again
		asked   int
	}{
		{[]targets.Reply{{Outcome: targets.NotSent}}, 3},
		{[]targets.Reply{{Outcome: targets.Throttled}}, 3},
		{[]targets.Reply{{Outcome: targets.Unknown, Code: "timeout"}}, 3},
		{[]targets.Reply{{Outcome: targets.Unknown, Status: 500}}, 6},
		{[]targets.Reply{{Outcome: targets.Invalid}}, 6},
		{[]targets.Reply{{Outcome: targets.Unsupported}}, 6},
		{[]targets.Reply{{Outcome: targets.NotSent}, {Outcome: targets.NotSent}, {Outcome: targets.Missing}}, 6},
	} {
		n := 0
		target := &scripted{do: func(int, targets.Op) targets.Reply { n++; return c.replies[(n-1)%len(c.replies)] }}
		h, summary := ask(t, t.Context(), target, runner.ProbePlan{Inquiries: six})
		if len(h.exchanges) != c.asked || (summary.Stopped != nil) != (c.asked < 6) {
			t.Errorf("%+v: asked %d times, stopped: %v", c.replies, len(h.exchanges), summary.Stopped)
		}
	}
}

// An interrupted probe asks no more, and removes what it has written.
func TestProbeIsInterrupted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		target := &scripted{do: always(targets.OK)}
		slow := inquiry("slow", "a", "b")
		slow.Steps[1].After = time.Hour
		h, summary := ask(t, ctx, target, runner.ProbePlan{Inquiries: []runner.Inquiry{slow, inquiry("next", "c")}})
		if sent(target) != "r a, r c, d slow, d next" || !summary.Interrupted || summary.Elapsed != time.Second || len(h.exchanges) != 2 {
			t.Errorf("sent %s: %+v", sent(target), summary)
		}
	})
}

// Keys that are there after their removal are told; where nothing answers, no more are
// tried, and where nothing was written nothing is left.
func TestProbeTellsWhatItLeaves(t *testing.T) {
	for _, c := range []struct {
		write, del targets.Outcome
		keys       []string
		unlisted   bool
		tried      int
		want       string
	}{
		{targets.OK, targets.Invalid, []string{"base-a"}, false, 2, "1 still there, such as base-a; the store answered: NO"},
		{targets.OK, targets.OK, []string{"base-a", "base-b"}, false, 2, "2 still there, such as base-a; the store had accepted"},
		{targets.OK, targets.Invalid, nil, false, 2, "<nil>"},
		{targets.OK, targets.Unknown, nil, true, 1, "may have been left behind"},
		{targets.Invalid, targets.Unknown, nil, true, 0, "<nil>"},
		{targets.OK, targets.OK, []string{"other-a"}, false, 2, "<nil>"},
	} {
		synctest.Test(t, func(t *testing.T) {
			target := &scripted{list: leaky(c.keys...), do: func(_ int, op targets.Op) targets.Reply {
				if op.Kind == targets.Delete {
					return targets.Reply{Outcome: c.del, Code: "NO"}
				}
				return targets.Reply{Outcome: c.write}
			}}
			if c.unlisted {
				target.list = func(string) ([]targets.Op, error) { return nil, errors.New("no answer") }
			}
			_, summary := ask(t, t.Context(), target, runner.ProbePlan{Setup: runner.Setup{Prefix: "base"},
				Inquiries: []runner.Inquiry{inquiry("1", "a"), inquiry("2", "b")}})
			if told := fmt.Sprint(summary.Left); !strings.Contains(told, c.want) || len(target.ops) != 2+c.tried {
				t.Errorf("%+v: told %s after %d requests", c, told, len(target.ops))
			}
		})
	}
}

// metered is a target with a quota in units of 1000 bytes.
type metered struct{ *scripted }

func (metered) Describe() targets.Description {
	return targets.Description{SentBy: "call", WarmUp: 1, QuotaUnit: 1000}
}

// The budget is kept, a large request counting its units.
func TestProbeKeepsItsBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		target := metered{&scripted{do: always(targets.OK)}}
		large := inquiry("large", "a")
		large.Steps[0].Op.Raw = json.RawMessage(`"` + strings.Repeat("x", 3000) + `"`)
		plan := runner.ProbePlan{Setup: runner.Setup{Limits: []targets.Limit{{Requests: 5, Per: time.Minute}}},
			Inquiries: []runner.Inquiry{inquiry("1", "b", "c"), large, inquiry("2", "d")}}
		h, summary := ask(t, t.Context(), target, plan)
		// Connecting 2 and two requests are a minute's; the next minute's are the large one, of 4
		// units, and one more; then come the removals.
		for i, want := range []time.Duration{0, 0, time.Minute, time.Minute} {
			if h.exchanges[i].Call != want {
				t.Errorf("request %d was sent at %s, want %s", i+1, h.exchanges[i].Call, want)
			}
		}
		requests, units := plan.Cost(target.Describe())
		if summary.Requests != 9 || summary.Units != 12 || int64(requests) != summary.Requests || int64(units) != summary.Units {
			t.Errorf("%d requests of %d units; planned were %d of %d", summary.Requests, summary.Units, requests, units)
		}
	})
}

// A record of a probe shows what the probe showed.
func TestProbeIsReplayed(t *testing.T) {
	var record bytes.Buffer
	recorder := runner.NewRecorder(&record, map[string]any{"run": "01TEST"})
	first := &heard{}
	both := runner.Observers{recorder, first}
	target := &scripted{do: func(_ int, op targets.Op) targets.Reply {
		return targets.Reply{Outcome: targets.Invalid, Code: "NO", Status: 400, Raw: json.RawMessage(fmt.Sprintf(`{"key":%q}`, op.Key))}
	}}
	p, err := runner.OpenProbe(t.Context(), target, runner.ProbePlan{Setup: runner.Setup{Timeout: time.Second},
		Inquiries: []runner.Inquiry{inquiry("1", "a", "b"), inquiry("2", "c")}})
	if err != nil {
		t.Fatal(err)
	}
	summary := p.Run(t.Context(), both)
	if err := recorder.Finish(runner.End{Requests: summary.Requests, Units: 7}, "result"); err != nil {
		t.Fatal(err)
	}
	replay := func(text string) (*heard, runner.End, error) {
		again := &heard{}
		end, err := runner.Replay(strings.NewReader(text), func(json.RawMessage) (runner.Shown, error) {
			return runner.Shown{Shape: runner.Probe, Observer: again}, nil
		})
		return again, end, err
	}
	again, end, err := replay(record.String())
	if err != nil || end.Requests != 3 || end.Units != 7 || end.Interrupted || !slices.Equal(again.questions, []string{"1", "1", "2"}) {
		t.Errorf("%v: %+v, %v", err, end, again.questions)
	}
	one, _ := json.Marshal(first.exchanges)
	if two, _ := json.Marshal(again.exchanges); !bytes.Equal(one, two) {
		t.Errorf("replayed as\n%s\nwant\n%s", two, one)
	}
	// Cut off, it was interrupted; a line of another shape, or that no run writes, is refused.
	lines := strings.SplitAfter(record.String(), "\n")
	if _, end, err = replay(lines[0] + lines[1]); err != nil || !end.Interrupted || end.Requests != 1 {
		t.Errorf("cut: %v, %+v", err, end)
	}
	for _, wrong := range []string{`{"ghost":{"key":"k"}}` + "\n", `{"round":{"round":1}}` + "\n", strings.Replace(lines[1], `"outcome":"invalid"`, `"outcome":"splendid"`, 1)} {
		if _, _, err := replay(lines[0] + wrong); !errors.Is(err, runner.ErrNotARecord) {
			t.Errorf("%s: %v", wrong, err)
		}
	}
	race := runner.Shown{Observer: &history{}}
	if _, err := runner.Replay(strings.NewReader(record.String()), func(json.RawMessage) (runner.Shown, error) { return race, nil }); !errors.Is(err, runner.ErrNotARecord) {
		t.Errorf("shown as a race: %v", err)
	}
}
