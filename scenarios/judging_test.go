package scenarios

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"contend/runner"
	"contend/targets"
)

// A round that the scenario cannot have run, or not in its place of the sweep, is no part
// of its record; the first is told.
func TestForeignRounds(t *testing.T) {
	seed := runner.Exchange{Contender: runner.ByRunner, Op: targets.Op{Kind: targets.Write, Key: "k-01R-r1"}, Reply: targets.Reply{Outcome: targets.OK}}
	sweep := runner.Sweep{Most: time.Millisecond, Steps: 3}
	offset := func(d time.Duration) *time.Duration { return &d }
	for name, c := range map[string]struct {
		scenario Contest
		sweep    runner.Sweep
		round    runner.Round
		why      string // "": it is its own
	}{
		"its own":                 {FailIfExists{}, runner.Sweep{}, runner.Round{Collection: targets.Plain}, ""},
		"its own, seeded":         {VersionCAS{}, runner.Sweep{}, runner.Round{Collection: targets.Versioned, Seeds: []runner.Exchange{seed}}, ""},
		"another collection":      {FailIfExists{}, runner.Sweep{}, runner.Round{Collection: targets.Versioned}, "round 1 is not of the scenario named"},
		"no seed":                 {VersionCAS{}, runner.Sweep{}, runner.Round{Collection: targets.Versioned}, "round 1 has 0 seeds, and those of named have 1"},
		"a seed of another":       {FailIfExists{}, runner.Sweep{}, runner.Round{Collection: targets.Plain, Seeds: []runner.Exchange{seed}}, "round 1 has 1 seeds, and those of named have 0"},
		"its place in the sweep":  {FailIfExists{}, sweep, runner.Round{Collection: targets.Plain, Offset: offset(-time.Millisecond)}, ""},
		"another place":           {FailIfExists{}, sweep, runner.Round{Collection: targets.Plain, Offset: offset(0)}, "round 1 has not the offset"},
		"no offset in a sweep":    {FailIfExists{}, sweep, runner.Round{Collection: targets.Plain}, "round 1 has not the offset"},
		"an offset without sweep": {FailIfExists{}, runner.Sweep{}, runner.Round{Collection: targets.Plain, Offset: offset(0)}, "round 1 has not the offset"},
	} {
		j := NewJudge(Terms{Name: "named", Scenario: c.scenario, Contenders: 2, MinContended: 1, Sweep: c.sweep, Thresholds: DefaultThresholds})
		c.round.Number, c.round.Key = 1, "k-01R-r1"
		j.Observe(runner.Event{Round: &c.round})
		other := runner.Round{Number: 2, Key: "k-01R-r2", Collection: "elsewhere"}
		if c.why != "" {
			j.Observe(runner.Event{Round: &other})
		}
		err := j.Foreign()
		if (err == nil) != (c.why == "") || err != nil && (!errors.Is(err, runner.ErrNotARecord) || !strings.Contains(err.Error(), c.why)) {
			t.Errorf("%s: %v, want %q", name, err, c.why)
		}
	}
}

// A judge of any shape takes its own events into account, and is not disturbed by others.
func TestJudgesPassOverEventsOfOtherShapes(t *testing.T) {
	ghost := &runner.Ghost{Run: "01R", Key: "k-01R-write0", Arm: WriteArm, State: runner.GhostPending}
	read := exchangeOf(targets.Read, "k-01R-write0", targets.OK)
	events := []runner.Event{{Controls: &runner.Controls{Skipped: true}}, {Ghost: ghost}, {Asked: &runner.Asked{Ghost: ghost, Key: ghost.Key, Exchange: &read}},
		{Round: contested(1)}, {Late: &runner.LateRead{Round: 0, Read: &read}}, {Answer: &runner.Answer{Question: "nobody/asked", Exchange: &read}}, {}}
	race := NewJudge(Terms{Scenario: FailIfExists{}, Contenders: 12, MinContended: 1, Thresholds: DefaultThresholds})
	watch := NewGhostJudge("01R")
	probe := (&Probe{}).Judge("sim", "k-", "01R")
	for _, j := range []Judging{race, watch, probe} {
		for _, e := range events {
			j.Observe(e)
			j.Fates(e)
		}
	}
	if len(race.findings) != 1 || !race.Proceed() || race.Conclude(runner.End{Rounds: 7}).Rounds != 7 {
		t.Errorf("the race: %d findings", len(race.findings))
	}
	if got := watch.Conclude(runner.End{}); len(watch.ghosts) != 1 || got.Rounds != 1 || watch.Foreign() != nil {
		t.Errorf("the watch: %d keys, %+v", len(watch.ghosts), got)
	}
	if probe.Foreign() == nil || probe.Conclude(runner.End{}).Detail.Probe == nil || probe.Conclude(runner.End{}).Verdict.Status != "" {
		t.Errorf("the probe: %v", probe.Foreign())
	}
}

func exchangeOf(kind targets.Kind, key string, o targets.Outcome) runner.Exchange {
	return runner.Exchange{Op: targets.Op{Kind: kind, Key: key}, Reply: targets.Reply{Outcome: o, Attempts: 1}}
}

// A guard that the controls showed to be absent is not raced for.
func TestProceed(t *testing.T) {
	for name, c := range map[string]struct {
		skipped bool
		ignored bool
		want    bool
	}{"skipped": {true, false, true}, "as expected": {false, false, true}, "the guard is ignored": {false, true, false}} {
		j := NewJudge(Terms{Scenario: FailIfExists{}, Contenders: 2, MinContended: 1, Thresholds: DefaultThresholds})
		controls := runner.Controls{Skipped: c.skipped, Key: "k-01R-s"}
		held := make(map[string]targets.Record)
		targets.CheckSequential(controls.Key, func(session int, op targets.Op) targets.Reply {
			e := runner.Exchange{Contender: session, Op: op, Reply: targets.Reply{Outcome: targets.OK, Attempts: 1}}
			record, exists := held[op.Key]
			switch {
			case op.Kind == targets.Read && exists:
				e.Reply.Record = record
			case op.Kind == targets.Read:
				e.Reply.Outcome = targets.Missing
			case op.Kind == targets.Delete:
				delete(held, op.Key)
			case !c.ignored && (op.If.Guard == targets.IfAbsent && exists || op.If.Guard == targets.IfVersion && record.Version != op.If.Counter):
				e.Reply.Outcome = targets.Conflict
			default:
				held[op.Key] = op.Value
			}
			controls.Sequential = append(controls.Sequential, e)
			return e.Reply
		})
		j.Observe(runner.Event{Controls: &controls})
		if got := j.Proceed(); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// What came of the requests about a key is counted under these names, but for its create
// and for keys of another run.
func TestFatesOfAWatch(t *testing.T) {
	j := NewGhostJudge("01R")
	fate := func(run string, e runner.Exchange) []string {
		var all []string
		for _, f := range j.Fates(runner.Event{Asked: &runner.Asked{Ghost: &runner.Ghost{Run: run, Key: "k-" + run + "-write0"}, Exchange: &e}}) {
			all = append(all, f.Outcome+" at "+f.At)
		}
		return all
	}
	for _, c := range []struct {
		kind    targets.Kind
		outcome targets.Outcome
		want    string
	}{
		{targets.Write, targets.OK, "won at write"}, {targets.Write, targets.Conflict, "lost at write"}, {targets.Read, targets.OK, "shown at read"},
		{targets.Read, targets.Missing, "missing at read"}, {targets.Write, targets.Unknown, "unknown at write"}, {targets.Write, targets.Throttled, "throttled at write"},
		{targets.Write, targets.Unsupported, "invalid at write"}, {targets.Read, targets.Unmapped, "unmapped at read"},
	} {
		if got := fate("01R", exchangeOf(c.kind, "k", c.outcome)); !slices.Equal(got, []string{c.want}) {
			t.Errorf("%s of a %s: %v, want %s", c.outcome, c.kind, got, c.want)
		}
	}
	create := exchangeOf(targets.Write, "k", targets.OK)
	create.Op.Value.Token = runner.Token("k-01R-write0", 0, 1)
	if got := fate("01R", create); got != nil {
		t.Errorf("the create counts: %v", got)
	}
	if got := fate("01Q", exchangeOf(targets.Write, "k", targets.OK)); got != nil {
		t.Errorf("a key of another run counts: %v", got)
	}
	if got := j.Fates(runner.Event{Round: contested(1)}); got != nil {
		t.Errorf("a round counts: %v", got)
	}
}

// Of a question only the last answer counts.
func TestFatesOfAProbe(t *testing.T) {
	p := &Probe{Only: Groups{"strategy"}}
	j := p.Judge("sim", "k-", "01R")
	for _, q := range p.Questions("sim", "k-", "01R") {
		for i, step := range q.Steps {
			e := runner.Exchange{Op: step.Op, Reply: targets.Reply{Outcome: targets.OK}}
			event := runner.Event{Answer: &runner.Answer{Question: q.ID, Exchange: &e}}
			j.Observe(event)
			if got := j.Fates(event); (len(got) == 1) != (i == len(q.Steps)-1) || len(got) > 0 && (got[0].Outcome != "ok" || got[0].At != string(step.Op.Kind)) {
				t.Errorf("%s, step %d: %v", q.ID, i, got)
			}
		}
	}
	if j.Foreign() != nil {
		t.Error(j.Foreign())
	}
}
