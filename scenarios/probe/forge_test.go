package probe_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"contend/scenarios"
	"contend/scenarios/probe"
	"contend/targets"
)

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
		if a.State != probe.Answered || a.AsKnown != nil && !*a.AsKnown || (a.AsKnown == nil) != (a.Known.Basis == probe.NotKnown) {
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
	for id, want := range map[string]probe.Known{
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
		if k.Status != want.Status || k.Code != want.Code || k.Message != want.Message || k.Answer != want.Answer || k.Basis == probe.NotKnown || k.Source == "" {
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
		if a := answerOf(t, r, id); a.Answer != want || a.Known.Basis != probe.NotKnown || a.AsKnown != nil {
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

// Where the target sweeps at once there is no ghost to ask about, which is told and
// is no failure.
func TestProbeWithoutGhosts(t *testing.T) {
	r := probeSim(t, "sim:?latency=0&sweep=0", &scenarios.Probe{Only: scenarios.Groups{"ghosts"}})
	for i := range r.Answers {
		if a := &r.Answers[i]; a.State != probe.NotAsked || !strings.Contains(a.Why, "swept") || a.AsKnown != nil || a.Code != "" {
			t.Errorf("%s: %+v", a.ID, a)
		}
	}
	if r.NotAsked != len(r.Answers) || r.Unanswered != 0 || len(r.Answers) != 7 {
		t.Errorf("%+v", r)
	}
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
