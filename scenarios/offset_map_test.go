package scenarios_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"contend/runner"
	"contend/scenarios"
	"contend/targets"
)

// distant is a session on a store that is far away, always as far.
type distant struct {
	targets.Session
	way time.Duration // there, and back
}

func (s distant) Do(ctx context.Context, op targets.Op) targets.Reply {
	time.Sleep(s.way)
	reply := s.Session.Do(ctx, op)
	reply.Began, reply.Sent, reply.Guarded = time.Time{}, time.Time{}, time.Time{} // from here, at the call
	time.Sleep(s.way)
	return reply
}

const sweptRounds = 2 // at each offset

// sweep maps a scenario on a target whose sessions are so far away.
func sweep(t *testing.T, s scenarios.Contest, url string, way time.Duration, of runner.Sweep) judged {
	t.Helper()
	if err := s.Sweep(func(string) bool { return false }); err != nil {
		t.Fatal(err)
	}
	far := func(s targets.Session) targets.Session { return distant{s, way} }
	got := raceOn(t, s, url, far, func(p *runner.Plan) {
		p.Contenders, p.Sweep, p.Rounds = 2, of, sweptRounds*of.Steps
	})
	m := got.Detail.OffsetMap
	if m == nil || len(m.Rows) != of.Steps || got.summary.Rounds != sweptRounds*of.Steps {
		t.Fatalf("%d rounds, map %+v", got.summary.Rounds, m)
	}
	for i, row := range m.Rows {
		if row.Offset != of.Offsets()[i] || row.Asked.Rounds != sweptRounds {
			t.Errorf("row %d: %+v", i, row)
		}
	}
	return got
}

// sharesAre wants the same of every row of a map, by the release and by the sending.
func sharesAre(t *testing.T, m *scenarios.OffsetMap, violated func(offset time.Duration) bool) {
	t.Helper()
	for _, row := range m.Rows {
		want := 0.0
		if violated(row.Offset) {
			want = 1
		}
		for by, s := range map[string]scenarios.OffsetShares{"released": row.Asked, "sent": row.Sent} {
			if by == "sent" && s.Rounds == 0 {
				continue // the second was told by its read
			}
			if s.ViolatedShare == nil || *s.ViolatedShare != want || s.Violated != int(want)*s.Rounds || s.Rounds != sweptRounds {
				t.Errorf("%s %s after the first: %+v, want %v violated", by, row.Offset, s, want)
			}
			second := row.Offset < 0 || want == 1
			if won := s.SecondWonShare; row.Offset != 0 && (won == nil || (*won == 1) != second || !second && *won != 0) {
				t.Errorf("%s %s after the first: the second won %+v, want %v", by, row.Offset, s, second)
			}
		}
		if row.SentApart != nil && *row.SentApart != row.Offset {
			t.Errorf("released %s after the first: sent %s after it", row.Offset, *row.SentApart)
		}
	}
}

// The contests with a window between check and set: the map is as wide as it is,
// wherever the store.
func TestOffsetMapIsAsWideAsTheGap(t *testing.T) {
	for _, c := range []struct {
		scenario func() scenarios.Contest
		gap      time.Duration
		way      time.Duration
		sweep    runner.Sweep
	}{
		{func() scenarios.Contest { return scenarios.FailIfExists{} }, 5 * time.Millisecond, time.Millisecond, runner.Sweep{Most: 12 * time.Millisecond, Steps: 13}},
		{func() scenarios.Contest { return scenarios.FailIfExists{} }, 5 * time.Millisecond, 20 * time.Millisecond, runner.Sweep{Most: 12 * time.Millisecond, Steps: 13}},
		{func() scenarios.Contest { return scenarios.VersionCAS{} }, 5 * time.Millisecond, 20 * time.Millisecond, runner.Sweep{Most: 12 * time.Millisecond, Steps: 13}},
		{func() scenarios.Contest { return scenarios.VersionCAS{} }, 50 * time.Microsecond, time.Millisecond, runner.Sweep{Most: 200 * time.Microsecond, Steps: 21}},
		{func() scenarios.Contest { return scenarios.NewLease() }, 5 * time.Millisecond, 0, runner.Sweep{Most: 12 * time.Millisecond, Steps: 13}},
	} {
		s := c.scenario()
		t.Run(s.Info().Name+" "+c.gap.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				got := sweep(t, s, "sim:?latency=0&fault=gap="+c.gap.String(), c.way, c.sweep)
				if got.Verdict.Status != scenarios.Violated || got.Verdict.Bound != nil {
					t.Errorf("%s, bound %v", got.Verdict.Status, got.Verdict.Bound)
				}
				m := got.Detail.OffsetMap
				within := func(offset time.Duration) bool { return offset.Abs() < c.gap }
				sharesAre(t, m, within)
				var inside []time.Duration
				for _, offset := range c.sweep.Offsets() {
					if within(offset) {
						inside = append(inside, offset)
					}
				}
				first, last := inside[0], inside[len(inside)-1]
				if *m.From != first || *m.To != last || *m.SentFrom != first || *m.SentTo != last {
					t.Errorf("violated from %s to %s, sent from %s to %s; want %s to %s", *m.From, *m.To, *m.SentFrom, *m.SentTo, first, last)
				}
			})
		})
	}
}

// An honest store is violated nowhere, and never held.
func TestOffsetMapOfAnHonestStore(t *testing.T) {
	for _, s := range []scenarios.Contest{scenarios.FailIfExists{}, scenarios.VersionCAS{}, scenarios.NewLease()} {
		t.Run(s.Info().Name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				// So far away that no request of one arrives with one of the other.
				got := sweep(t, s, "sim:?latency=0", 300*time.Microsecond, runner.Sweep{Most: 12 * time.Millisecond, Steps: 13})
				v := got.Verdict
				if v.Status != scenarios.Inconclusive || len(v.Reasons) != 1 || !strings.Contains(v.Reasons[0], "a sweep maps the window, it is never held") {
					t.Errorf("%s: %q", v.Status, v.Reasons)
				}
				m := got.Detail.OffsetMap
				sharesAre(t, m, func(time.Duration) bool { return false })
				if m.From != nil || m.To != nil || m.SentFrom != nil || m.SentTo != nil {
					t.Errorf("%+v", m)
				}
			})
		})
	}
}

// A contender that comes when the lease has expired takes it: no window, and no violation.
func TestOffsetMapPastTheTerm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := scenarios.NewLease()
		got := sweep(t, s, "sim:?latency=0", time.Millisecond, runner.Sweep{Most: 3 * s.Term / 2, Steps: 3})
		if v := got.Verdict; v.Status != scenarios.Inconclusive {
			t.Errorf("%s: %+v", v.Status, v.Violations)
		}
		if last := got.Detail.OffsetMap.Rows[2]; *last.Asked.SecondWonShare != 1 {
			t.Errorf("%+v", last)
		}
	})
}

// The window of the handler is the other way about: a duplicate that comes while the
// page is being repaired collides with it, one that comes later takes it for clean.
func TestOffsetMapOfDuplicateEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const way = 20 * time.Millisecond // so that the repair is there 60 ms after the release, and the read of the duplicate 20 ms after its own
		got := sweep(t, scenarios.NewDuplicateEvent(), "sim:?latency=0", way, runner.Sweep{Most: 150 * time.Millisecond, Steps: 11})
		for _, row := range got.Detail.OffsetMap.Rows {
			want := 0
			if row.Offset.Abs() > 2*way {
				want = sweptRounds
			}
			if row.Asked.Violated != want || row.Asked.Uncertain != 0 {
				t.Errorf("%s after the first: %+v, want %d violated", row.Offset, row.Asked, want)
			}
			if won := *row.Asked.SecondWonShare; row.Offset != 0 && (won == 1) != (row.Offset < 0) {
				t.Errorf("%s after the first: the second won %v", row.Offset, won)
			}
		}
	})
}

// A winner whose reply was lost is known from the read-back; a round of which nothing is
// known has no share.
func TestOffsetMapOfLostReplies(t *testing.T) {
	of := runner.Sweep{Most: 12 * time.Millisecond, Steps: 3}
	synctest.Test(t, func(t *testing.T) {
		got := sweep(t, scenarios.FailIfExists{}, "sim:?latency=0&fault=reply-dropped", time.Millisecond, of)
		sharesAre(t, got.Detail.OffsetMap, func(time.Duration) bool { return false })
	})
	synctest.Test(t, func(t *testing.T) {
		got := sweep(t, scenarios.FailIfExists{}, "sim:?latency=0&fault=unmapped", time.Millisecond, of)
		for _, row := range got.Detail.OffsetMap.Rows {
			if s := row.Asked; s.Uncertain != sweptRounds || s.ViolatedShare != nil || s.SecondWonShare != nil || s.SecondWon != 0 {
				t.Errorf("%s: %+v, want all uncertain", row.Offset, s)
			}
		}
	})
}

// The contests whose contenders are not where the offset puts them refuse it, with the
// reason.
func TestSweepIsRefused(t *testing.T) {
	given := func(flags ...string) func(string) bool {
		return func(flag string) bool { return slices.Contains(flags, flag) }
	}
	periods, byTTL, slack := scenarios.NewLease(), scenarios.NewLease(), scenarios.NewLease()
	periods.Periods, byTTL.Expiry, slack.ReadBarrier = 3, "ttl", false
	for _, c := range []struct {
		scenario scenarios.Contest
		given    []string
		want     string // "": it is not refused
	}{
		{scenarios.FailIfExists{}, nil, ""},
		{scenarios.VersionCAS{}, nil, ""},
		{scenarios.CheckThenSet{}, nil, "wait until all have read"},
		{scenarios.VersionCAS{}.Twin(), nil, "wait until all have read"},
		{scenarios.NewLostUpdate(), nil, "wait until all have read"},
		{scenarios.NewCounter(), nil, "write until they have succeeded"},
		{scenarios.NewLease(), nil, ""},
		{scenarios.NewLease(), []string{"read-barrier"}, "--read-barrier: "},
		{slack, []string{"read-barrier"}, ""},
		{periods, nil, "the later of 3 begin together"},
		{byTTL, nil, "--expiry record"},
		{scenarios.NewDuplicateEvent(), nil, ""},
		{scenarios.NewDuplicateEvent(), []string{"offset"}, "--offset: "},
		{scenarios.NewDuplicateEvent(), []string{"force-conflict"}, "--force-conflict: "},
	} {
		err := c.scenario.Sweep(given(c.given...))
		if (err == nil) != (c.want == "") || err != nil && (!strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "--")) {
			t.Errorf("%s %q: %v, want %q", c.scenario.Info().Name, c.given, err, c.want)
		}
	}
}
