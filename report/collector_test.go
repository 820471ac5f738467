package report

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"contend/runner"
	"contend/scenarios"
	"contend/targets"
)

// A collector is of the shape of its scenario, and only one of a race steers.
func TestShapesOfCollectors(t *testing.T) {
	for _, s := range scenarios.All() {
		name := s.Info().Name
		c, err := NewCollector(RunHeader{Scenario: name, Run: "01R", Target: Target{Kind: "sim"}})
		if err != nil {
			t.Fatal(err)
		}
		want := runner.Race
		switch s.(type) {
		case scenarios.Watch:
			want = runner.Watch
		case scenarios.Asks:
			want = runner.Probe
		}
		shown := c.Shown()
		if shown.Shape != want || shown.Observer != runner.Observer(c) || (shown.Asking != nil) != (want == runner.Watch) || (c.Steering != nil) != (want == runner.Race) {
			t.Errorf("%s: %+v, steering %v", name, shown, c.Steering)
		}
		if c.Foreign() != nil {
			t.Errorf("%s: %v", name, c.Foreign())
		}
		r := c.Make(runner.End{})
		if r.Controls == nil || r.Expectations == nil || r.Outcomes == nil || r.Latency == nil || r.Verdict.Reasons == nil || r.Verdict.Violations == nil {
			t.Errorf("%s: a list is null: %+v", name, r)
		}
	}
	var unknown *UnknownScenarioError
	if _, err := NewCollector(RunHeader{Scenario: "splendid"}); !errors.As(err, &unknown) || unknown.Name != "splendid" {
		t.Errorf("an unknown scenario: %v", err)
	}
	for _, name := range []string{"fail-if-exists", "ttl-ghost", "probe"} {
		if _, err := NewCollector(RunHeader{Scenario: name, Params: Params{Expect: []string{"p99(won"}}}); err == nil {
			t.Errorf("%s: an expectation that cannot be read is none", name)
		}
	}
}

// The quota of a run is what its requests cost each, but of a probe what they cost
// together; a store that counts requests has none.
func TestQuotaUnits(t *testing.T) {
	for _, c := range []struct {
		scenario string
		each     int
		end      runner.End
		want     int64 // -1: none
	}{
		{"fail-if-exists", 25, runner.End{Requests: 4}, 100}, {"fail-if-exists", 25, runner.End{}, 0}, {"fail-if-exists", 0, runner.End{Requests: 4}, -1},
		{"ttl-ghost", 25, runner.End{Requests: 4}, 100}, {"ttl-ghost", 0, runner.End{Requests: 4}, -1},
		{"probe", 25, runner.End{Requests: 4, Units: 7}, 7}, {"probe", 25, runner.End{Requests: 4}, -1}, {"probe", 0, runner.End{Requests: 4}, -1},
	} {
		m, err := NewCollector(RunHeader{Scenario: c.scenario, Run: "01R", Target: Target{Kind: "sim", UnitsEach: c.each}})
		if err != nil {
			t.Fatal(err)
		}
		got := m.Make(c.end).QuotaUnits
		if (got == nil) != (c.want < 0) || got != nil && *got != c.want {
			t.Errorf("%s, %d each, %+v: %v, want %d", c.scenario, c.each, c.end, got, c.want)
		}
	}
}

// How a run ended is told as it was, whatever its shape.
func TestResultTellsTheEnd(t *testing.T) {
	end := runner.End{Requests: 1, Rounds: 2, Elapsed: 3, Interrupted: true, Stopped: "it fell silent", Cut: "its time was up", Left: "1 still there"}
	for _, name := range []string{"fail-if-exists", "ttl-ghost", "probe"} {
		m, err := NewCollector(RunHeader{Scenario: name, Run: "01R", Target: Target{Kind: "sim"}})
		if err != nil {
			t.Fatal(err)
		}
		r := m.Make(end)
		if r.Requests != 1 || r.Elapsed != 3 || !r.Interrupted || r.Stopped != end.Stopped || r.Cut != end.Cut || r.Left != end.Left {
			t.Errorf("%s: %+v", name, r)
		}
		if rounds := map[string]int{"fail-if-exists": 2}[name]; r.Rounds != rounds {
			t.Errorf("%s: %d rounds, want %d", name, r.Rounds, rounds)
		}
	}
}

// What an earlier process told of the controls of a watch stands.
func TestEarlierViolationsOfAWatch(t *testing.T) {
	earlier := []scenarios.Violation{{Kind: "ignored", Control: "sequential", Witness: []scenarios.Witness{}}, {Kind: "ghost", Key: "k"}}
	for name, want := range map[string]int{"ttl-ghost": 1, "fail-if-exists": 0} {
		m, err := NewCollector(RunHeader{Scenario: name, Run: "01R"})
		if err != nil {
			t.Fatal(err)
		}
		m.Earlier(earlier)
		if got := m.Make(runner.End{}).Verdict.Violations; len(got) != want || want > 0 && got[0].Kind != "ignored" {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// A plain line tells how far a run of each shape is, at most every few seconds.
func TestProgressOfEachShape(t *testing.T) {
	ghosts := []*runner.Ghost{{Key: "a", Closed: true}, {Key: "b"}, {Key: "c"}}
	reply := func(o targets.Outcome) *runner.Exchange { return &runner.Exchange{Reply: targets.Reply{Outcome: o}} }
	var keys []runner.Event
	for _, g := range ghosts {
		keys = append(keys, runner.Event{Ghost: g})
	}
	for name, c := range map[string]struct {
		unit   string
		rounds int
		events []runner.Event
		silent time.Duration
		want   string
	}{
		"rounds":       {"rounds", 9, []runner.Event{{Controls: &runner.Controls{}}, {Round: &runner.Round{Number: 4}}}, 0, "4 of 9 rounds raced, after 0s"},
		"late reads":   {"rounds", 9, []runner.Event{{Late: &runner.LateRead{Round: 3}}}, 0, "reading every key once more: 3"},
		"the nonce":    {"rounds", 9, []runner.Event{{Late: &runner.LateRead{}}}, 0, ""},
		"keys":         {"keys", 1, append(slices.Clip(keys), runner.Event{Asked: &runner.Asked{Exchange: reply(targets.OK)}}), time.Hour, "1 of 3 keys are done after 0s"},
		"silent":       {"keys", 1, append(slices.Clip(keys), runner.Event{Asked: &runner.Asked{Exchange: reply(targets.Unknown)}}), time.Hour, "1 of 3 keys are done after 0s; nothing was answered for 1h0m0s"},
		"questions":    {"questions", 7, []runner.Event{{Answer: &runner.Answer{Question: "a"}}}, 0, "1 of 7 questions were asked after 0s"},
		"other events": {"keys", 1, keys, 0, ""},
	} {
		var b bytes.Buffer
		p := NewProgress(&b, false, c.unit, c.rounds, 0)
		p.told, p.answered = time.Time{}, p.answered.Add(-c.silent)
		for _, e := range c.events {
			p.Observe(e)
		}
		want := ""
		if c.want != "" {
			want = "contend: " + c.want + "\n"
		}
		if b.String() != want {
			t.Errorf("%s: %q, want %q", name, b.String(), want)
		}
		p.Observe(runner.Event{Answer: &runner.Answer{Question: "b"}})
		if c.want != "" && strings.Count(b.String(), "\n") != 1 {
			t.Errorf("%s: told again at once: %q", name, b.String())
		}
	}
}
