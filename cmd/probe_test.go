package cmd_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"contend/cmd"
	"contend/report"
	"contend/scenarios/probe"
	"contend/targets/forge/emulator"
	"contend/targets/forge/server"
)

// simServer is `contend sim serve` with options that it has no flags for, and what
// may answer in its place; its store is given too.
func simServer(t *testing.T, o emulator.Options, instead func(path, body string) (status int, answer string)) (url string, store *emulator.Store) {
	t.Helper()
	o.Entities = server.DefaultEntities()
	store = emulator.New(o)
	handler := server.New(store, server.Options{})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body))
		if instead != nil {
			if status, answer := instead(r.URL.Path, string(body)); status != 0 {
				w.WriteHeader(status)
				_, _ = io.WriteString(w, answer)
				return
			}
		}
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	return "forge+rest+" + s.URL, store
}

// answers are what a probe was answered, by question.
func answers(r report.Result) map[string]probe.Answer {
	all := make(map[string]probe.Answer)
	for _, a := range r.Detail.Probe.Answers {
		all[a.ID] = a
	}
	return all
}

// neverSwept keeps ghosts.
func neverSwept() time.Duration { return -1 }

// By the REST form the emulator is asked the same and answers the same; every key is
// removed again, and what is sent is what was planned at most.
func TestProbeByREST(t *testing.T) {
	t.Parallel()
	url, store := simServer(t, emulator.Options{Sweep: neverSwept}, nil)
	code, rest := resultOf(t, "probe", "-t", url)
	if code != 0 || rest.QuotaUnits == nil || *rest.QuotaUnits < rest.Requests+48 || !rest.Target.Simulated {
		t.Errorf("exit %d, %d requests, quota units %v: %s", code, rest.Requests, rest.QuotaUnits, rest.VerdictLine())
	}
	_, sim := resultOf(t, "probe", "-t", "sim:?latency=0")
	byREST, inProcess := answers(rest), answers(sim)
	for id, a := range inProcess {
		b := byREST[id]
		if a.Outcome != b.Outcome || a.Code != b.Code || a.Status != b.Status || a.Message != b.Message || a.Answer != b.Answer || a.State != b.State ||
			fmt.Sprint(a.AsKnown != nil && *a.AsKnown) != fmt.Sprint(b.AsKnown != nil && *b.AsKnown) {
			t.Errorf("%s: in the process %+v\nby REST %+v", id, a, b)
		}
		if b.Code != "" && (b.Trace == "" || !json.Valid(b.Raw)) {
			t.Errorf("%s: trace %q, error object %s", id, b.Trace, b.Raw)
		}
	}
	if len(byREST) != len(inProcess) || len(byREST) < 100 {
		t.Errorf("%d questions by REST, %d in the process", len(byREST), len(inProcess))
	}
	plain, err := store.Query(emulator.Query{})
	entities, err2 := store.EntityQuery(emulator.EntityQuery{EntityName: "contend-record", IndexName: "by-key"})
	if err != nil || err2 != nil || len(plain.Data)+len(entities.Data) != 0 {
		t.Errorf("left behind: %v, %v (%v, %v)", plain.Data, entities.Data, err, err2)
	}
	_, plan, _ := contend(t, "probe", "-t", url, "--dry-run")
	var most, units int64
	if _, err := fmt.Sscanf(plan[strings.Index(plan, "requests"):], "requests at most %d,", &most); err != nil || most < rest.Requests || most > rest.Requests+60 {
		t.Errorf("%d were sent, planned were at most %d: %v", rest.Requests, most, err)
	}
	if _, err := fmt.Sscanf(plan[strings.Index(plan, "quota units"):], "quota units at most about %d", &units); err != nil || units < *rest.QuotaUnits {
		t.Errorf("%d units were used, planned were %d: %v", *rest.QuotaUnits, units, err)
	}
}

// Every knob of the emulator that stands for something unknown turns an answer, which
// --since finds, and no other.
func TestProbeSeesEveryKnob(t *testing.T) {
	t.Parallel()
	first := filepath.Join(t.TempDir(), "first.json")
	if code, _, stderr := contend(t, "probe", "-t", "sim:?latency=0", "-o", "json="+first, "-q"); code != 0 {
		t.Fatalf("exit %d: %s", code, stderr)
	}
	url, _ := simServer(t, emulator.Options{Sweep: neverSwept, HideGhosts: true, DeleteKeepsGhost: true, OverwriteKeepsExpiry: true, NotExistsNeedsRecord: true,
		ExpireGranularity: emulator.Seconds, QueryLag: 400 * time.Millisecond, LongTTLCode: "TTL_TOO_LONG"}, nil)
	code, r := resultOf(t, "probe", "-t", url, "--since", first)
	if code != 5 {
		t.Errorf("exit %d: %s", code, r.VerdictLine())
	}
	want := map[string]string{
		"ghosts/condition": "it does not", "ghosts/entity-create": "it does not", "ghosts/delete": "the key still blocks", "ghosts/overwrite": "it stays",
		"ttl/overwritten": "it stays", "ttl/granularity": "whole seconds", "ttl/over-year": "", "queries/lag": "it is behind", "conditions/not-exists-absent": "it does not hold",
	}
	for id, a := range answers(r) {
		answer, turned := want[id]
		if turned != (a.Was != nil) || turned && a.Answer != answer {
			t.Errorf("%s: %q, %s; it was %+v", id, a.Answer, a.Code, a.Was)
		}
	}
	if lag := answers(r)["queries/lag"]; lag.Figure == "" || answers(r)["ttl/over-year"].Code != "TTL_TOO_LONG" || r.Detail.Probe.Since.Changed != len(want) {
		t.Errorf("lag %q; %+v", lag.Figure, r.Detail.Probe.Since)
	}
}

// A platform that answers in other words is found, word by word; what stays unanswered
// is told and exits 3.
func TestProbeOfAnotherPlatform(t *testing.T) {
	t.Parallel()
	instead := func(path, body string) (int, string) {
		switch {
		case strings.HasSuffix(path, "/transaction") && strings.Contains(body, "transactions-twice"):
			return 400, `{"code":"KEY_DUPLICATION_ERROR","message":"Other words"}`
		case strings.Contains(body, "contend-undeclared"):
			return 429, `{"code":"TOO_MANY_REQUESTS","message":"Slow down"}`
		case strings.HasSuffix(path, "/transaction") && body == "{}":
			return 500, "<html>no JSON</html>"
		}
		return 0, ""
	}
	url, _ := simServer(t, emulator.Options{}, instead)
	code, r := resultOf(t, "probe", "-t", url, "--only", "transactions")
	all := answers(r)
	if a := all["transactions/key-twice"]; code != 3 || *a.AsKnown || a.Message != "Other words" {
		t.Errorf("exit %d: %+v", code, a)
	}
	if a := all["transactions/undeclared-entity"]; a.State != probe.Unanswered || !strings.Contains(a.Why, "throttled TOO_MANY_REQUESTS") {
		t.Errorf("%+v", a)
	}
	if a := all["transactions/empty"]; a.State != probe.Answered || a.Code != "UNKNOWN_ERROR" || a.Status != 500 || *a.AsKnown || *a.Listed {
		t.Errorf("%+v", a)
	}
	if !strings.Contains(r.VerdictLine(), "not all answered: 5 of 6 questions, 1 unanswered") {
		t.Error(r.VerdictLine())
	}
}

// A platform that answers nothing any more ends the probe, and is told with exit 4.
// An error with a status is an answer, but nothing that a question could rest on.
func TestProbeOfASilentPlatform(t *testing.T) {
	t.Parallel()
	const questions, resting = 26, 2
	for status, want := range map[int]struct {
		exit, answered int
		words          string
	}{503: {3, questions - resting, "what it rests on"}, 429: {4, 0, "the target answered none of the last 3 requests"}} {
		url, _ := simServer(t, emulator.Options{}, func(_, body string) (int, string) {
			if strings.Contains(body, "types-") {
				return status, ""
			}
			return 0, ""
		})
		code, r := resultOf(t, "probe", "-t", url, "--only", "types")
		text := r.VerdictLine() + answers(r)["types/float-now/direct"].Why
		if code != want.exit || r.Detail.Probe.Answered != want.answered || r.Detail.Probe.Unanswered != questions-want.answered || !strings.Contains(text, want.words) {
			t.Errorf("%d: exit %d: %s", status, code, text)
		}
	}
}

// A record from which a reply is taken, or in which one is changed, is judged by what
// it holds; one with a question of another contend is refused.
func TestJudgeOfAProbe(t *testing.T) {
	t.Parallel()
	record := filepath.Join(t.TempDir(), "probe.jsonl")
	if code, _, stderr := contend(t, "probe", "-t", "sim:?latency=0", "--only", "keys", "-q", "--record", record); code != 0 {
		t.Fatalf("exit %d: %s", code, stderr)
	}
	text, err := os.ReadFile(record)
	if err != nil {
		t.Fatal(err)
	}
	judge := func(text string) (int, string) {
		changed := filepath.Join(t.TempDir(), "changed.jsonl")
		if err := os.WriteFile(changed, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		code, stdout, stderr := contend(t, "judge", changed, "-q")
		return code, stdout + stderr
	}
	lines := strings.SplitAfter(string(text), "\n")
	if code, out := judge(strings.Join(lines[:5], "")); code != 130 || !strings.Contains(out, "not all answered: 4 of 9 questions, 5 unanswered") {
		t.Errorf("cut: exit %d: %s", code, out)
	}
	if code, out := judge(strings.Replace(string(text), `"code":"KEY_TOO_LONG"`, `"code":"OTHER"`, 1)); code != 0 || !strings.Contains(out, "1 differ") {
		t.Errorf("changed: exit %d: %s", code, out)
	}
	if code, out := judge(strings.Replace(string(text), `"question":"keys/empty"`, `"question":"keys/other"`, 1)); code != 2 || !strings.Contains(out, `does not ask the question "keys/other"`) {
		t.Errorf("another question: exit %d: %s", code, out)
	}
	if code, out := judge(strings.Replace(string(text), `"scenario":"probe"`, `"scenario":"ttl-ghost"`, 1)); code != 2 {
		t.Errorf("another scenario: exit %d: %s", code, out)
	}
}

// Interrupted, a probe asks no more, reports what was answered, and exits 130, judged
// again too; cut by the end of a night it exits as what stayed unanswered says.
func TestProbeIsInterrupted(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	record := filepath.Join(t.TempDir(), "probe.jsonl")
	var out, errs bytes.Buffer
	code := cmd.Run(ctx, []string{"probe", "-t", "sim:?latency=30ms", "--record", record, "--no-progress"}, strings.NewReader(""), &out, &errs)
	if code != 130 || !strings.Contains(errs.String(), "interrupted: nothing more is asked") || !strings.Contains(out.String(), "NOT ALL ANSWERED: ") {
		t.Errorf("exit %d: %s\n%s", code, errs.String(), out.String())
	}
	if code, stdout, _ := contend(t, "judge", record, "-q"); code != 130 || !strings.Contains(stdout, "; interrupted") {
		t.Errorf("judged again: exit %d: %s", code, stdout)
	}
	suite := filepath.Join(t.TempDir(), "suite.yaml")
	if err := os.WriteFile(suite, []byte("runs: [{scenario: probe, target: 'sim:?latency=30ms'}]"), 0o600); err != nil {
		t.Fatal(err)
	}
	code, stdout, _ := contend(t, "nightly", suite, "--store", filepath.Join(t.TempDir(), "kept.db"), "--within", "300ms", "-q")
	if code != 3 || !strings.Contains(stdout, "not all answered: ") || !strings.Contains(stdout, "; its time of ") {
		t.Errorf("cut: exit %d: %s", code, stdout)
	}
}
