package probe_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"contend/runner"
	"contend/scenarios"
	"contend/scenarios/probe"
	"contend/targets"
	"contend/targets/all"
)

// probeIn asks a target, in the caller's bubble, where it has one.
func probeIn(t *testing.T, url string, p *scenarios.Probe) (*probe.Report, runner.Summary) {
	t.Helper()
	target, err := all.Open(url)
	if err != nil {
		t.Fatal(err)
	}
	defer target.Close()
	kind := target.Describe().Kind
	if err := p.CheckFor(kind); err != nil {
		t.Fatal(err)
	}
	asked, err := runner.OpenProbe(t.Context(), target, runner.ProbePlan{Setup: runner.Setup{Timeout: 10 * time.Second},
		Inquiries: probe.Inquiries(p.Questions(kind, "contend-", "01TEST"))})
	if err != nil {
		t.Fatal(err)
	}
	defer asked.Close()
	judge := judgeOf(p, kind)
	summary := asked.Run(t.Context(), listening{judge})
	if judge.Foreign() != nil {
		t.Error(judge.Foreign())
	}
	return judge.Report(), summary
}

// judgeOf is the judge of a probe of a kind of target.
func judgeOf(p *scenarios.Probe, kind string) *probe.Judge {
	return probe.NewJudge(kind, p.Questions(kind, "contend-", "01TEST"), p.Since)
}

// listening is a judge as an observer.
type listening struct{ *probe.Judge }

// Observe implements runner.Observer.
func (w listening) Observe(e runner.Event) {
	if e.Answer != nil {
		w.Answered(e.Answer.Question, e.Answer.Exchange)
	}
}

// probeSim is that in a bubble of its own.
func probeSim(t *testing.T, url string, p *scenarios.Probe) (report *probe.Report) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { report, _ = probeIn(t, url, p) })
	return report
}

func answerOf(t *testing.T, r *probe.Report, id string) *probe.Answer {
	t.Helper()
	for i := range r.Answers {
		if r.Answers[i].ID == id {
			return &r.Answers[i]
		}
	}
	t.Fatalf("no question %s", id)
	return nil
}

// lineOf is what is promised of an answer, in a line.
func lineOf(a *probe.Answer) string {
	reply := strings.TrimSpace(fmt.Sprintf("%s %s", a.Outcome, a.Code))
	if a.Status != 0 {
		reply += fmt.Sprintf(" %d", a.Status)
	}
	return strings.TrimRight(fmt.Sprintf("%s | %s | %s | %s", a.ID, reply, a.Message, a.Answer), " |")
}

// Every answer that differs from an earlier probe's is found, and no other.
func TestProbeFindsWhatHasChanged(t *testing.T) {
	before := probeSim(t, "sim:?latency=0", &scenarios.Probe{})
	earlier := func() *probe.Earlier {
		return &probe.Earlier{Run: "01EARLIER", Family: "forge", Target: "sim:", Answers: before.Kept()}
	}
	if r := probeSim(t, "sim:?latency=0", &scenarios.Probe{Since: earlier()}); r.Since.Changed != 0 || r.Since.Compared != len(r.Answers) || r.Since.Run != "01EARLIER" {
		t.Errorf("the same store: %+v", r.Since)
	}
	r := probeSim(t, "sim:?latency=0&fault=unmapped", &scenarios.Probe{Since: earlier()})
	changed := 0
	for i := range r.Answers {
		a, was := &r.Answers[i], answerOf(t, before, r.Answers[i].ID)
		struck := a.Code == "OUT_OF_CHEESE"
		if struck != (a.Was != nil) || struck && (a.Was.Code != was.Code || a.Was.Status != was.Status) {
			t.Errorf("%s: %s was %+v", a.ID, lineOf(a), a.Was)
		}
		if struck {
			changed++
			if a.AsKnown != nil && *a.AsKnown || *a.Listed || a.Outcome != targets.Unmapped {
				t.Errorf("%s: as known %v, listed %v, %s", a.ID, a.AsKnown, *a.Listed, a.Outcome)
			}
		}
	}
	if changed < 50 || changed != r.Since.Changed || r.NotAsKnown == 0 {
		t.Errorf("%d changed, told are %+v; %d not as known", changed, r.Since, r.NotAsKnown)
	}
	// Each part of an answer counts; a status that is not told does not.
	for _, c := range []struct {
		change  func(*probe.EarlierAnswer)
		changed int
	}{
		{func(*probe.EarlierAnswer) {}, 0},
		{func(a *probe.EarlierAnswer) { a.Status = 0 }, 0},
		{func(a *probe.EarlierAnswer) { a.Status = 418 }, 1},
		{func(a *probe.EarlierAnswer) { a.Code = "OTHER" }, 1},
		{func(a *probe.EarlierAnswer) { a.Outcome = targets.OK }, 1},
		{func(a *probe.EarlierAnswer) { a.Answer = "otherwise" }, 1},
		{func(a *probe.EarlierAnswer) { a.ID = "keys/of-a-later-contend" }, 0},
	} {
		since := earlier()
		at := slices.IndexFunc(since.Answers, func(a probe.EarlierAnswer) bool { return a.ID == "keys/empty" })
		c.change(&since.Answers[at])
		r := probeSim(t, "sim:?latency=0", &scenarios.Probe{Only: scenarios.Groups{"keys"}, Since: since})
		if r.Since.Changed != c.changed {
			t.Errorf("%+v: %d changed, want %d", since.Answers[at], r.Since.Changed, c.changed)
		}
	}
}

// A probe waits for its ghosts some seconds, not more.
func TestProbeIsShort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		if _, summary := probeIn(t, "sim:?latency=0", &scenarios.Probe{}); summary.Elapsed > 5*time.Second {
			t.Errorf("it took %s", summary.Elapsed)
		}
	})
}

// IDs are unique, a question has a text, and its keys begin with those of the run,
// also where it removes them; another run has other keys and the same questions.
func TestProbeQuestions(t *testing.T) {
	for _, kind := range []string{"sim", "redis", "postgres", "elsewhere"} {
		seen := map[string]bool{}
		again := (&scenarios.Probe{}).Questions(kind, "contend-", "01OTHER")
		for i, q := range (&scenarios.Probe{}).Questions(kind, "contend-", "01TEST") {
			if seen[q.ID] || q.Text == "" || len(q.Steps) == 0 || q.Steps[len(q.Steps)-1].Must || q.Known.Basis == "" || again[i].ID != q.ID {
				t.Errorf("%s: %s is there twice, or lacks something: %+v", kind, q.ID, q)
			}
			seen[q.ID] = true
			ops := slices.Clone(q.Remove)
			for _, s := range q.Steps {
				ops = append(ops, s.Op)
			}
			for _, op := range ops {
				text, _ := json.Marshal(op)
				if !strings.HasPrefix(op.Key, "contend-01TEST-") || strings.Contains(string(text), "01OTHER") {
					t.Errorf("%s: %s: the key of %s", kind, q.ID, text)
				}
			}
		}
		if len(seen) < 5 {
			t.Errorf("%s: %d questions", kind, len(seen))
		}
	}
}

// What becomes of a question by the replies to its steps.
func TestProbeStates(t *testing.T) {
	p := &scenarios.Probe{Only: scenarios.Groups{"create", "ghosts"}}
	questions := p.Questions("sim", "contend-", "01TEST")
	steps := func(id string) []runner.Step {
		return questions[slices.IndexFunc(questions, func(q probe.Question) bool { return q.ID == id })].Steps
	}
	ok := targets.Reply{Outcome: targets.OK, Status: 204}
	for _, c := range []struct {
		name, id string
		replies  []targets.Reply
		want     probe.State
		why      string
	}{
		{"nothing was sent", "create/present", nil, probe.Unanswered, "ended before"},
		{"it was interrupted", "create/present", []targets.Reply{ok}, probe.Unanswered, "in its middle"},
		{"the seed failed", "create/present", []targets.Reply{{Outcome: targets.Invalid, Code: "NO"}}, probe.Unanswered, "rests on was answered with invalid NO"},
		{"the seed is none of the target's", "create/present", []targets.Reply{{Outcome: targets.Unsupported, Message: "no such thing"}}, probe.NotAsked, "no such thing"},
		{"it is none of the target's", "create/present", []targets.Reply{ok, {Outcome: targets.Unsupported, Message: "no such thing"}}, probe.NotAsked, "no such thing"},
		{"it timed out", "create/present", []targets.Reply{ok, {Outcome: targets.Unknown, Code: "timeout"}}, probe.Unanswered, "unknown timeout"},
		{"it was throttled", "create/present", []targets.Reply{ok, {Outcome: targets.Throttled, Code: "429"}}, probe.Unanswered, "throttled"},
		{"it was not sent", "create/present", []targets.Reply{ok, {Outcome: targets.NotSent}}, probe.Unanswered, "not-sent"},
		{"a server error", "create/present", []targets.Reply{ok, {Outcome: targets.Unknown, Status: 500}}, probe.Answered, ""},
		{"unmapped", "create/present", []targets.Reply{ok, {Outcome: targets.Unmapped, Code: "X", Status: 418}}, probe.Answered, ""},
		{"accepted", "create/present", []targets.Reply{ok, ok}, probe.Answered, ""},
		{"the ghost is gone", "ghosts/create", []targets.Reply{ok, {Outcome: targets.Missing, Status: 404}}, probe.NotAsked, "no ghost"},
	} {
		j := judgeOf(p, "sim")
		for i, r := range c.replies {
			if last := j.Answered(c.id, &runner.Exchange{Op: steps(c.id)[i].Op, Reply: r}); last != (i == len(steps(c.id))-1) {
				t.Errorf("%s: step %d is told to be the last: %v", c.name, i, last)
			}
		}
		a := answerOf(t, j.Report(), c.id)
		if a.State != c.want || !strings.Contains(a.Why, c.why) || (a.AsKnown != nil) != (c.want == probe.Answered) {
			t.Errorf("%s: %s, %q, as known: %v", c.name, a.State, a.Why, a.AsKnown)
		}
	}
	// A reply to something else is of no probe of ours.
	for _, e := range []struct {
		id string
		op targets.Op
	}{{"create/nope", steps("create/present")[0].Op}, {"create/present", steps("create/present")[1].Op}} {
		j := judgeOf(p, "sim")
		if j.Answered(e.id, &runner.Exchange{Op: e.op}); j.Foreign() == nil {
			t.Errorf("%s, %s: taken", e.id, e.op.Raw)
		}
	}
}

// What a report shows of a request and an answer is short; what a judge reads is whole.
func TestProbeReportIsShort(t *testing.T) {
	r := probeSim(t, "sim:?latency=0", &scenarios.Probe{})
	text, err := json.Marshal(r)
	if err != nil || len(text) > 200_000 {
		t.Errorf("%d bytes, %v", len(text), err)
	}
	if a := answerOf(t, r, "sizes/value-240-kib"); !strings.Contains(string(a.Requests[0].Raw), "(245758 characters)") {
		t.Errorf("the request: %s", a.Requests[0].Raw)
	}
	if a := answerOf(t, r, "transactions/operations-26"); !strings.Contains(string(a.Requests[0].Raw), "(26 items)") {
		t.Errorf("the request: %s", a.Requests[0].Raw)
	}
}

// shownAs makes a report of one question whose last reply is another, after replies
// that are as they must be.
func shownAs(t *testing.T, kind, id string, last targets.Reply, before ...targets.Reply) *probe.Answer {
	t.Helper()
	p := &scenarios.Probe{}
	j := judgeOf(p, kind)
	for _, q := range p.Questions(kind, "contend-", "01TEST") {
		for i, s := range q.Steps {
			if q.ID != id {
				break
			}
			e := runner.Exchange{Op: s.Op, Reply: targets.Reply{Outcome: targets.OK}, Call: time.Duration(i) * time.Second, Return: time.Duration(i)*time.Second + time.Millisecond}
			if i < len(before) {
				e.Reply = before[i]
			}
			if i == len(q.Steps)-1 {
				e.Reply = last
			}
			j.Answered(id, &e)
		}
	}
	return answerOf(t, j.Report(), id)
}

func got(raw string) targets.Reply {
	return targets.Reply{Outcome: targets.OK, Status: 200, Raw: json.RawMessage(raw)}
}
