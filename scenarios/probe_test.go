package scenarios_test

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"contend/runner"
	"contend/scenarios"
	"contend/targets"
)

// probeIn asks a target, in the caller's bubble, where it has one.
func probeIn(t *testing.T, url string, p *scenarios.Probe) (*scenarios.ProbeReport, runner.Summary) {
	t.Helper()
	target, err := targets.Open(url)
	if err != nil {
		t.Fatal(err)
	}
	defer target.Close()
	kind := target.Describe().Kind
	if err := p.CheckFor(kind); err != nil {
		t.Fatal(err)
	}
	probe, err := runner.OpenProbe(t.Context(), target, runner.ProbePlan{Setup: runner.Setup{Timeout: 10 * time.Second},
		Inquiries: scenarios.Inquiries(p.Questions(kind, "contend-", "01TEST"))})
	if err != nil {
		t.Fatal(err)
	}
	defer probe.Close()
	judge := scenarios.NewProbeJudge(p, kind, "contend-", "01TEST")
	summary := probe.Run(t.Context(), judge)
	if judge.Foreign() != nil {
		t.Error(judge.Foreign())
	}
	return judge.Conclude(runner.End{}).Detail.Probe, summary
}

// probeSim is that in a bubble of its own.
func probeSim(t *testing.T, url string, p *scenarios.Probe) (report *scenarios.ProbeReport) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { report, _ = probeIn(t, url, p) })
	return report
}

func answerOf(t *testing.T, r *scenarios.ProbeReport, id string) *scenarios.ProbeAnswer {
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
func lineOf(a *scenarios.ProbeAnswer) string {
	reply := strings.TrimSpace(fmt.Sprintf("%s %s", a.Outcome, a.Code))
	if a.Status != 0 {
		reply += fmt.Sprintf(" %d", a.Status)
	}
	return strings.TrimRight(fmt.Sprintf("%s | %s | %s | %s", a.ID, reply, a.Message, a.Answer), " |")
}

// What the emulator answers, question by question: what is known of the live
// platform, and what the emulator assumes.
func TestProbeOfTheEmulator(t *testing.T) {
	r := probeSim(t, "sim:?seed=1", &scenarios.Probe{})
	golden, err := os.ReadFile("testdata/probe-forge.txt")
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Split(strings.TrimSpace(string(golden)), "\n")
	for i := range r.Answers {
		a := &r.Answers[i]
		line := lineOf(a)
		if n := slices.Index(want, line); n >= 0 {
			want = slices.Delete(want, n, n+1)
		} else {
			t.Errorf("not in the golden file:\n%s", line)
		}
		if a.State != scenarios.ProbeAnswered || a.AsKnown != nil && !*a.AsKnown || (a.AsKnown == nil) != (a.Known.Basis == scenarios.NotKnown) {
			t.Errorf("%s: %s, as known: %v", a.ID, a.State, a.AsKnown)
		}
	}
	if len(want) > 0 {
		t.Errorf("only in the golden file:\n%s", strings.Join(want, "\n"))
	}
	if r.Answered != len(r.Answers) || r.Unanswered+r.NotAsked+r.NotAsKnown != 0 || r.Since != nil {
		t.Errorf("%+v", r)
	}
}

// What was published of the live platform, row by row of its table of answers, is
// asked, and known in these words.
func TestProbeKnowsWhatWasPublished(t *testing.T) {
	r := probeSim(t, "sim:?latency=0", &scenarios.Probe{})
	const check, semantic = "Request failed due to conditional check specified or optimistic locking", "Request cannot be processed due to one or more semantic errors"
	const integer = `Data type for property "version" is defined as "integer"`
	for id, want := range map[string]scenarios.Known{
		"create/present":                      {Status: 409, Code: "KEY_CONFLICT", Message: "Provided key already exists and cannot be overwritten"},
		"ghosts/create":                       {Status: 409, Code: "KEY_CONFLICT", Message: "Provided key already exists and cannot be overwritten"},
		"conditions/false":                    {Status: 400, Code: "CONDITIONAL_CHECK_FAILED", Message: check},
		"conditions/check-absent":             {Status: 400, Code: "CONDITIONAL_CHECK_FAILED", Message: check},
		"conditions/wrong-type":               {Status: 422, Code: "UNPROCESSABLE_ENTITY", Message: semantic},
		"types/integer-above-max/transaction": {Status: 422, Code: "UNPROCESSABLE_ENTITY", Message: semantic},
		"types/integer-below-min/transaction": {Status: 422, Code: "UNPROCESSABLE_ENTITY", Message: semantic},
		"transactions/operations-26":          {Status: 422, Code: "UNPROCESSABLE_ENTITY", Message: semantic},
		"transactions/key-twice":              {Status: 400, Code: "KEY_DUPLICATION_ERROR", Message: "Duplicate key found in request"},
		"transactions/empty":                  {Status: 400, Code: "INVALID_TRANSACTION_REQUEST", Message: "Transaction request must include one of set, check or delete."},
		"types/integer-above-max/direct":      {Status: 400, Code: "INCORRECT_PROPERTY_TYPE", Message: integer},
		"types/integer-below-min/direct":      {Status: 400, Code: "INCORRECT_PROPERTY_TYPE", Message: integer},
		"types/integer-text/direct":           {Status: 400, Code: "INCORRECT_PROPERTY_TYPE", Message: integer},
		"keys/undeclared-entity":              {Status: 404, Code: "SCHEMA_NOT_FOUND", Message: "The schema provided does not exist"},
		"ttl/zero":                            {Status: 400, Code: "INVALID_TTL", Message: "TTL value must be a positive integer, received: 0"},
		"create/return-value":                 {Status: 400, Code: "INVALID_KEY_POLICY_RETURN_VALUE_COMBINATION"},
		"batches/items-26": {Status: 400, Code: "TOO_MANY_BATCH_ENTITIES",
			Message: "Number of entities to set was 26, but you can only set a maximum of 25 entities at a time."},
		"batches/get-absent":         {Status: 200, Answer: "failed: KEY_NOT_FOUND, Provided key does not exist"},
		"keys/absent":                {Status: 404, Code: "KEY_NOT_FOUND", Message: "Provided key does not exist"},
		"metadata/unknown-field":     {Status: 400, Code: "BAD_REQUEST", Message: "Provided request body is invalid"},
		"types/integer-max/direct":   {Status: 204},
		"types/integer-min/direct":   {Status: 204},
		"types/float-now/direct":     {Status: 200, Answer: "exact"},
		"conditions/unindexed":       {Status: 204},
		"conditions/lands":           {Answer: "nothing"},
		"transactions/operations-25": {Status: 204},
	} {
		a := answerOf(t, r, id)
		k := a.Known
		if k.Status != want.Status || k.Code != want.Code || k.Message != want.Message || k.Answer != want.Answer || k.Basis == scenarios.NotKnown || k.Source == "" {
			t.Errorf("%s: known is %+v, published %+v", id, k, want)
		}
		if want.Status != 0 && a.Status != want.Status || a.Code != want.Code && want.Answer == "" || want.Message != "" && a.Message != want.Message || a.Answer != want.Answer {
			t.Errorf("%s: answered %s", id, lineOf(a))
		}
	}
}

// What no documentation tells is asked, and answered in words.
func TestProbeAsksWhatIsNotKnown(t *testing.T) {
	r := probeSim(t, "sim:?latency=0", &scenarios.Probe{})
	for id, want := range map[string]string{
		"ghosts/condition": "it does", "ghosts/entity-create": "it does", "ghosts/delete": "the key is free", "ghosts/overwrite": "it is cleared",
		"ttl/overwritten": "it is cleared", "ttl/granularity": "milliseconds", "queries/lag": "not at all", "conditions/not-exists-absent": "it holds",
		"ttl/over-year": "",
	} {
		if a := answerOf(t, r, id); a.Answer != want || a.Known.Basis != scenarios.NotKnown || a.AsKnown != nil {
			t.Errorf("%s: %+v", id, a)
		}
	}
	if a := answerOf(t, r, "queries/lag"); !strings.HasSuffix(a.Figure, "s") {
		t.Errorf("the lag is told as %q", a.Figure)
	}
}

// Codes that neither of the documentation's lists has are marked, and only those.
func TestProbeMarksWhatIsNotListed(t *testing.T) {
	r := probeSim(t, "sim:?latency=0", &scenarios.Probe{})
	listed := map[string]bool{}
	for i := range r.Answers {
		a := &r.Answers[i]
		if told := a.Code != "" && a.Group != "strategy"; told != (a.Listed != nil) {
			t.Errorf("%s: code %q, listed: %v", a.ID, a.Code, a.Listed)
		} else if told {
			listed[a.Code] = *a.Listed
		}
	}
	for code, want := range map[string]bool{"KEY_CONFLICT": false, "CONDITIONAL_CHECK_FAILED": false, "UNPROCESSABLE_ENTITY": false, "INCORRECT_PROPERTY_TYPE": false,
		"INVALID_TTL": false, "MAX_SIZE": true, "KEY_TOO_LONG": true, "EMPTY_KEY": true, "COMPLEX_QUERY_PAGE_LIMIT_NOT_IN_RANGE": true} {
		if got, came := listed[code]; got != want || !came {
			t.Errorf("%s: listed %v, want %v (it came: %v)", code, got, want, came)
		}
	}
}

// Every answer that differs from an earlier probe's is found, and no other.
func TestProbeFindsWhatHasChanged(t *testing.T) {
	before := probeSim(t, "sim:?latency=0", &scenarios.Probe{})
	earlier := func() *scenarios.Earlier {
		return &scenarios.Earlier{Run: "01EARLIER", Family: "forge", Target: "sim:", Answers: before.Kept()}
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
		change  func(*scenarios.EarlierAnswer)
		changed int
	}{
		{func(*scenarios.EarlierAnswer) {}, 0},
		{func(a *scenarios.EarlierAnswer) { a.Status = 0 }, 0},
		{func(a *scenarios.EarlierAnswer) { a.Status = 418 }, 1},
		{func(a *scenarios.EarlierAnswer) { a.Code = "OTHER" }, 1},
		{func(a *scenarios.EarlierAnswer) { a.Outcome = targets.OK }, 1},
		{func(a *scenarios.EarlierAnswer) { a.Answer = "otherwise" }, 1},
		{func(a *scenarios.EarlierAnswer) { a.ID = "keys/of-a-later-contend" }, 0},
	} {
		since := earlier()
		at := slices.IndexFunc(since.Answers, func(a scenarios.EarlierAnswer) bool { return a.ID == "keys/empty" })
		c.change(&since.Answers[at])
		r := probeSim(t, "sim:?latency=0", &scenarios.Probe{Only: scenarios.Groups{"keys"}, Since: since})
		if r.Since.Changed != c.changed {
			t.Errorf("%+v: %d changed, want %d", since.Answers[at], r.Since.Changed, c.changed)
		}
	}
}

// Where the target sweeps at once there is no ghost to ask about, which is told and
// is no failure.
func TestProbeWithoutGhosts(t *testing.T) {
	r := probeSim(t, "sim:?latency=0&sweep=0", &scenarios.Probe{Only: scenarios.Groups{"ghosts"}})
	for i := range r.Answers {
		if a := &r.Answers[i]; a.State != scenarios.ProbeNotAsked || !strings.Contains(a.Why, "swept") || a.AsKnown != nil || a.Code != "" {
			t.Errorf("%s: %+v", a.ID, a)
		}
	}
	if r.NotAsked != len(r.Answers) || r.Unanswered != 0 || len(r.Answers) != 7 {
		t.Errorf("%+v", r)
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

func TestProbeRefusesWhatCannotBe(t *testing.T) {
	for _, c := range []struct {
		probe scenarios.Probe
		kind  string
		want  string // ""; it can be
	}{
		{scenarios.Probe{Only: scenarios.Groups{"types", "strategy"}}, "sim", ""},
		{scenarios.Probe{Only: scenarios.Groups{"nope"}}, "sim", `--only "nope": the groups are`},
		{scenarios.Probe{Only: scenarios.Groups{"ghosts"}}, "elsewhere", `--only "ghosts": the groups are strategy`},
		{scenarios.Probe{Since: &scenarios.Earlier{Family: "forge"}}, "forge-rest", ""},
		{scenarios.Probe{Since: &scenarios.Earlier{Family: "forge"}}, "elsewhere", "--since: it holds answers of"},
	} {
		err := c.probe.CheckFor(c.kind)
		if (err == nil) != (c.want == "") || err != nil && !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%+v for %s: %v", c.probe, c.kind, err)
		}
	}
	if err := (&scenarios.Probe{Only: scenarios.Groups{"ghosts", "strategy"}}).Check(); err != nil {
		t.Error(err)
	}
	if err := (&scenarios.Probe{Only: scenarios.Groups{"nope"}}).Check(); err == nil {
		t.Error("a group that no target has was taken")
	}
}

// What becomes of a question by the replies to its steps.
func TestProbeStates(t *testing.T) {
	p := &scenarios.Probe{Only: scenarios.Groups{"create", "ghosts"}}
	questions := p.Questions("sim", "contend-", "01TEST")
	steps := func(id string) []runner.Step {
		return questions[slices.IndexFunc(questions, func(q scenarios.Question) bool { return q.ID == id })].Steps
	}
	ok := targets.Reply{Outcome: targets.OK, Status: 204}
	for _, c := range []struct {
		name, id string
		replies  []targets.Reply
		want     scenarios.ProbeState
		why      string
	}{
		{"nothing was sent", "create/present", nil, scenarios.ProbeUnanswered, "ended before"},
		{"it was interrupted", "create/present", []targets.Reply{ok}, scenarios.ProbeUnanswered, "in its middle"},
		{"the seed failed", "create/present", []targets.Reply{{Outcome: targets.Invalid, Code: "NO"}}, scenarios.ProbeUnanswered, "rests on was answered with invalid NO"},
		{"the seed is none of the target's", "create/present", []targets.Reply{{Outcome: targets.Unsupported, Message: "no such thing"}}, scenarios.ProbeNotAsked, "no such thing"},
		{"it is none of the target's", "create/present", []targets.Reply{ok, {Outcome: targets.Unsupported, Message: "no such thing"}}, scenarios.ProbeNotAsked, "no such thing"},
		{"it timed out", "create/present", []targets.Reply{ok, {Outcome: targets.Unknown, Code: "timeout"}}, scenarios.ProbeUnanswered, "unknown timeout"},
		{"it was throttled", "create/present", []targets.Reply{ok, {Outcome: targets.Throttled, Code: "429"}}, scenarios.ProbeUnanswered, "throttled"},
		{"it was not sent", "create/present", []targets.Reply{ok, {Outcome: targets.NotSent}}, scenarios.ProbeUnanswered, "not-sent"},
		{"a server error", "create/present", []targets.Reply{ok, {Outcome: targets.Unknown, Status: 500}}, scenarios.ProbeAnswered, ""},
		{"unmapped", "create/present", []targets.Reply{ok, {Outcome: targets.Unmapped, Code: "X", Status: 418}}, scenarios.ProbeAnswered, ""},
		{"accepted", "create/present", []targets.Reply{ok, ok}, scenarios.ProbeAnswered, ""},
		{"the ghost is gone", "ghosts/create", []targets.Reply{ok, {Outcome: targets.Missing, Status: 404}}, scenarios.ProbeNotAsked, "no ghost"},
	} {
		j := scenarios.NewProbeJudge(p, "sim", "contend-", "01TEST")
		for i, r := range c.replies {
			if last := j.Answered(c.id, &runner.Exchange{Op: steps(c.id)[i].Op, Reply: r}); last != (i == len(steps(c.id))-1) {
				t.Errorf("%s: step %d is told to be the last: %v", c.name, i, last)
			}
		}
		a := answerOf(t, j.Conclude(runner.End{}).Detail.Probe, c.id)
		if a.State != c.want || !strings.Contains(a.Why, c.why) || (a.AsKnown != nil) != (c.want == scenarios.ProbeAnswered) {
			t.Errorf("%s: %s, %q, as known: %v", c.name, a.State, a.Why, a.AsKnown)
		}
	}
	// A reply to something else is of no probe of ours.
	for _, e := range []struct {
		id string
		op targets.Op
	}{{"create/nope", steps("create/present")[0].Op}, {"create/present", steps("create/present")[1].Op}} {
		j := scenarios.NewProbeJudge(p, "sim", "contend-", "01TEST")
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
func shownAs(t *testing.T, kind, id string, last targets.Reply, before ...targets.Reply) *scenarios.ProbeAnswer {
	t.Helper()
	p := &scenarios.Probe{}
	j := scenarios.NewProbeJudge(p, kind, "contend-", "01TEST")
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
	return answerOf(t, j.Conclude(runner.End{}).Detail.Probe, id)
}

func got(raw string) targets.Reply {
	return targets.Reply{Outcome: targets.OK, Status: 200, Raw: json.RawMessage(raw)}
}

// What the emulator never answers is seen and told as well.
func TestProbeReadsOtherAnswers(t *testing.T) {
	empty := got(`{"data":[]}`)
	for _, c := range []struct {
		id     string
		last   targets.Reply
		before []targets.Reply
		want   string
		figure string
	}{
		{"create/previous", got(`{"value":"written"}`), nil, "the value written", ""},
		{"create/previous", targets.Reply{Outcome: targets.OK, Status: 204}, nil, "no value", ""},
		{"types/float-now/direct", got(`{"value":{"updatedAt":1787116436382}}`), nil, "not exact: 1787116436382", ""},
		{"types/float-now/transaction", got(`{"value":{"updatedAt":1.787116436381e12}}`), nil, "not exact: 1.787116436381e12", ""},
		{"types/float-now/direct", got(`{}`), nil, "not exact: <nil>", ""},
		{"conditions/lands", got(`{"value":{}}`), nil, "the other set", ""},
		{"conditions/not-exists-absent", targets.Reply{Outcome: targets.Conflict}, nil, "it does not hold", ""},
		{"conditions/not-exists-absent", targets.Reply{Outcome: targets.Invalid}, nil, "", ""},
		{"ttl/transaction", got(`{"value":1}`), nil, "it does not", ""},
		{"ttl/overwritten", got(`{"value":1,"expireTime":"2026-12-01T00:00:00Z"}`), nil, "it stays", ""},
		{"metadata/no-ttl", got(`{"value":1,"expireTime":"2026-12-01T00:00:00Z"}`), nil, "there is one", ""},
		{"batches/get-absent", got(`{"successfulKeys":[{"key":"k"}],"failedKeys":[]}`), nil, "1 done", ""},
		{"queries/lag", empty, []targets.Reply{{Outcome: targets.OK}, empty, empty, empty}, "it is behind", "more than 4s"},
		{"queries/lag", got(`{"data":[1]}`), []targets.Reply{{Outcome: targets.OK}, empty, empty, got(`{"data":[1]}`)}, "it is behind", "2s to 3s"},
		{"ghosts/query", empty, nil, "it is not", ""},
		{"ghosts/delete", targets.Reply{Outcome: targets.Conflict}, nil, "the key still blocks", ""},
		{"ghosts/condition", targets.Reply{Outcome: targets.Conflict}, nil, "it does not", ""},
		{"ghosts/entity-create", targets.Reply{Outcome: targets.OK}, nil, "it does not", ""},
	} {
		a := shownAs(t, "sim", c.id, c.last, c.before...)
		if a.Answer != c.want || a.Figure != c.figure || a.AsKnown != nil && *a.AsKnown {
			t.Errorf("%s: %q, figure %q, as known: %v; want %q, %q", c.id, a.Answer, a.Figure, a.AsKnown, c.want, c.figure)
		}
	}
	whole, fine, finer := got(`{"expireTime":"2026-12-01T00:00:00.000Z"}`), got(`{"expireTime":"2026-12-01T00:00:00.137Z"}`), got(`{"expireTime":"2026-12-01T00:00:00.1370001Z"}`)
	ok := targets.Reply{Outcome: targets.OK}
	for _, c := range []struct {
		first, second, third targets.Reply
		want                 string
	}{
		{whole, whole, whole, "whole seconds"}, {whole, fine, whole, "milliseconds"}, {whole, fine, finer, "finer than milliseconds"}, {whole, got(`{}`), fine, "it is not told"},
	} {
		if a := shownAs(t, "sim", "ttl/granularity", c.third, ok, c.first, ok, c.second, ok); a.Answer != c.want {
			t.Errorf("granularity: %q, want %q", a.Answer, c.want)
		}
	}
}

// A relay does not tell the status of what was accepted: that is as known.
func TestProbeThroughARelay(t *testing.T) {
	if a := shownAs(t, "forge", "conditions/true", targets.Reply{Outcome: targets.OK}); a.AsKnown == nil || !*a.AsKnown {
		t.Errorf("%+v", a.AsKnown)
	}
	for _, r := range []targets.Reply{{Outcome: targets.OK, Status: 418}, {Outcome: targets.Invalid, Code: "NO"}, {Outcome: targets.Conflict, Code: "KEY_CONFLICT", Status: 409}} {
		if a := shownAs(t, "forge", "conditions/true", r); *a.AsKnown {
			t.Errorf("%+v is told to be as known", r)
		}
	}
	for _, r := range []targets.Reply{
		{Outcome: targets.Conflict, Code: "KEY_CONFLICT", Status: 409, Message: "other words"},
		{Outcome: targets.Conflict, Code: "OTHER", Status: 409, Message: "Provided key already exists and cannot be overwritten"},
		{Outcome: targets.Conflict, Code: "KEY_CONFLICT", Status: 412, Message: "Provided key already exists and cannot be overwritten"},
		{Outcome: targets.Aborted, Code: "KEY_CONFLICT", Status: 409, Message: "Provided key already exists and cannot be overwritten"},
	} {
		if a := shownAs(t, "forge", "create/present", r); *a.AsKnown {
			t.Errorf("%+v is told to be as known", r)
		}
	}
}

// A Redis that breaks what is documented is found.
func TestProbeOfAnotherRedis(t *testing.T) {
	ok, none := got(`"OK"`), targets.Reply{Outcome: targets.Missing, Code: "nil", Raw: []byte("null")}
	for _, c := range []struct {
		id     string
		last   targets.Reply
		before []targets.Reply
		want   string
		known  bool
	}{
		{"conditions/nx-present", targets.Reply{Outcome: targets.Conflict, Code: "nil", Raw: []byte("null")}, nil, "", true},
		{"conditions/nx-present", ok, nil, "", false},
		{"conditions/nx-get-absent", got(`"new"`), []targets.Reply{{Outcome: targets.OK, Code: "nil", Raw: []byte("null")}}, "null, then new", true},
		{"conditions/nx-get-absent", none, []targets.Reply{{Outcome: targets.OK, Code: "nil", Raw: []byte("null")}}, "null, then ", false},
		{"conditions/nx-get-present", got(`"new"`), []targets.Reply{ok, got(`"old"`)}, "old, then new", false},
		{"types/integer-max", got(`9223372036854775807`), nil, "9223372036854775807", true},
		{"types/integer-max", got(`-1`), nil, "-1", false},
		{"types/list-read", targets.Reply{Outcome: targets.Invalid, Code: "ERR"}, nil, "", false},
		{"ttl/px-0", ok, nil, "", false},
		{"ttl/expired-created", targets.Reply{Outcome: targets.Conflict, Code: "nil", Raw: []byte("null")}, nil, "", false},
		{"ttl/expired-read", got(`"v"`), nil, "", false},
		{"ttl/granularity", got(`1000`), nil, "whole seconds", false},
		{"ttl/granularity", got(`-1`), nil, "none is told", false},
		{"ttl/granularity", got(`1499`), nil, "milliseconds", true},
		{"ttl/overwritten", got(`59999`), nil, "it stays", false},
		{"ttl/kept", got(`-1`), nil, "it is cleared", false},
		{"ttl/absent", got(`-1`), nil, "-1", false},
	} {
		a := shownAs(t, "redis", c.id, c.last, c.before...)
		if a.AsKnown == nil || *a.AsKnown != c.known || a.Answer != c.want {
			t.Errorf("%s, answered %s: %q, as known: %v; want %q, %v", c.id, c.last.Raw, a.Answer, a.AsKnown != nil && *a.AsKnown, c.want, c.known)
		}
	}
}

// A PostgreSQL that breaks what is documented is found.
func TestProbeOfAnotherPostgres(t *testing.T) {
	state := func(outcome targets.Outcome, code string) targets.Reply {
		return targets.Reply{Outcome: outcome, Code: code}
	}
	for _, c := range []struct {
		id     string
		last   targets.Reply
		before []targets.Reply
		want   string
		known  bool
	}{
		{"conditions/insert-present", state(targets.Conflict, "23505"), nil, "", true},
		{"conditions/insert-present", state(targets.Conflict, "0 rows"), nil, "", false},
		{"conditions/update-stale", got(`{"command":"UPDATE 1"}`), nil, "", false},
		{"conditions/update-same", state(targets.Conflict, "0 rows"), nil, "", false}, // as MySQL counts
		{"conditions/update-same", got(`{"command":"UPDATE 1"}`), nil, "UPDATE 1", true},
		{"types/integer-above-max", got(`{"command":"SELECT 1","rows":[["9223372036854775808"]]}`), nil, "", false},
		{"types/integer-fraction", got(`{"command":"SELECT 1","rows":[["1"]]}`), nil, "1", false},
		{"types/integer-max", got(`{"command":"SELECT 0"}`), nil, "", false},
		{"types/timestamp-precision", got(`{"command":"SELECT 1","rows":[["0.123"]]}`), nil, "0.123", false},
		{"types/timestamp-precision", got(`{"command":"SELECT 1","rows":[["0.123457"]]}`), nil, "0.123457", true},
		{"transactions/after-error", got(`{"command":"ROLLBACK"}`), []targets.Reply{{Outcome: targets.OK}, state(targets.Invalid, "22P02"), state(targets.Invalid, "25P02")}, "25P02, then ROLLBACK", true},
		{"transactions/after-error", got(`{"command":"COMMIT"}`), nil, ", then COMMIT", false},
	} {
		a := shownAs(t, "postgres", c.id, c.last, c.before...)
		if a.AsKnown == nil || *a.AsKnown != c.known || a.Answer != c.want {
			t.Errorf("%s, answered %s %s: %q, as known: %v; want %q, %v", c.id, c.last.Code, c.last.Raw, a.Answer, a.AsKnown != nil && *a.AsKnown, c.want, c.known)
		}
	}
}
