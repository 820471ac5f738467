package report

import (
	"slices"
	"strings"
	"testing"
	"time"

	"contend/scenarios"
	"contend/scenarios/probe"
)

// someAnswers are of two groups; one question was asked in two ways.
func someAnswers() *probe.Report {
	conflict := probe.Known{Source: "docs", Outcome: "conflict", Code: "KEY_CONFLICT", Status: 409, Message: "exists"}
	return &probe.Report{Answered: 4, Unanswered: 1, AsKnown: 1, NotAsKnown: 1, NotListed: 1, Answers: []probe.Answer{
		{ID: "keys/twice/direct", Group: "keys", Way: "direct", Question: "a key twice", State: probe.Answered, Outcome: "conflict", Code: "KEY_CONFLICT", Status: 409,
			Message: "exists", Known: conflict, AsKnown: ptr(true), Listed: ptr(true)},
		{ID: "keys/twice/transaction", Group: "keys", Way: "transaction", Question: "a key twice", State: probe.Answered, Outcome: "invalid", Code: "ODD", Status: 422,
			Message: "odd", Known: conflict, AsKnown: ptr(false), Listed: ptr(false), Was: &probe.EarlierAnswer{Outcome: "conflict", Code: "KEY_CONFLICT", Status: 409}},
		{ID: "keys/empty/direct", Group: "keys", Way: "direct", Question: "an empty key", State: probe.Answered, Outcome: "invalid", Code: "ODD", Status: 422, Message: "odd"},
		{ID: "ghosts/read", Group: "ghosts", Question: "does a read show a ghost", State: probe.Answered, Outcome: "ok", Answer: "it does", Figure: "for 3s"},
		{ID: "ghosts/late", Group: "ghosts", Question: "and later", State: probe.Unanswered, Why: "the time was up"},
	}}
}

// Ways stand side by side, one that a question was not asked in is a dash.
func TestWaysStandSideBySide(t *testing.T) {
	p := groupPart(someAnswers(), "keys")
	wantRows(t, p, "a key twice | ✓ KEY_CONFLICT 409 | ✗ ODD† 422", "an empty key | ? ODD 422 | –")
	if got, want := p.block().table.header, []string{"question", "direct", "transaction"}; !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	p = groupPart(someAnswers(), "ghosts")
	wantRows(t, p, "does a read show a ghost | ? it does (ok), for 3s", "and later | unanswered: the time was up")
	if got, want := p.block().table.header, []string{"question", "answered"}; !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

// Only what is not as known is listed as that, beside what is known.
func TestOnlyOtherAnswersAreListed(t *testing.T) {
	wantRows(t, otherwisePart(someAnswers()), "keys/twice/transaction | KEY_CONFLICT 409: exists | docs | ODD 422 | odd")
	r := someAnswers()
	r.Since = &probe.Since{Run: "R0", Target: "t", Started: time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC), Compared: 4, Changed: 1}
	p := sincePart(r)
	wantRows(t, p, "keys/twice/transaction | KEY_CONFLICT 409 | ODD 422")
	if len(p.notes) != 0 || p.heading != "Changed since run R0 of 2026-03-01 on t" {
		t.Errorf("%s, %q", p.heading, p.notes)
	}
	r.Answers[1].Was = nil
	wantNotes(t, sincePart(r), "Nothing has: 4 questions were answered both times.")
}

// Codes that came with the same message are counted together.
func TestCodesAreCounted(t *testing.T) {
	r := someAnswers()
	r.Answers[2].Listed = ptr(false)
	wantRows(t, codesPart(r), "KEY_CONFLICT | 409 | conflict | yes | 1 | exists", "ODD | 422 | invalid | no | 2 | odd")
	r.Answers[2].Message, r.Answers[2].Status, r.Answers[2].Listed = "", 0, nil
	wantRows(t, codesPart(r), "KEY_CONFLICT | 409 | conflict | yes | 1 | exists", "ODD | 422 | invalid | no | 1 | odd", "ODD | – | invalid | – | 1 | –")
}

func TestAnswerInAFewWords(t *testing.T) {
	check(t, "answerText", func(a probe.EarlierAnswer) string { return answerText(a, "†") }, map[probe.EarlierAnswer]string{
		{}: "", {Outcome: "ok"}: "ok", {Outcome: "ok", Status: 204}: "ok 204", {Outcome: "invalid", Code: "ODD", Status: 422}: "ODD† 422", {Status: 422}: "422",
		{Answer: "it does"}: "it does", {Answer: "it does", Outcome: "ok"}: "it does (ok)",
	})
}

// A probe says in a word what became of it, and how much of it.
func TestWhatBecameOfAProbe(t *testing.T) {
	for want, change := range map[string]func(*Result){
		"not all answered: 4 of 5 questions, 1 unanswered; 1 match the documentation, 1 differ, 1 with a code that the documentation does not list": func(*Result) {},
		"answered: 4 of 5 questions, 1 not asked; 1 match the documentation, 1 differ": func(r *Result) {
			r.Detail.Probe.Unanswered, r.Detail.Probe.NotAsked, r.Detail.Probe.NotListed = 0, 1, 0
		},
		"nothing asked: 0 of 5 questions; 1 match the documentation, 1 differ; interrupted; it fell silent; time was up": func(r *Result) {
			*r.Detail.Probe = probe.Report{Answers: r.Detail.Probe.Answers, AsKnown: 1, NotAsKnown: 1}
			r.Interrupted, r.Stopped, r.Cut = true, "it fell silent", "time was up"
		},
		"changed: 1 of 4 answers differ from those of run R0; answered 4 of 5 questions, 1 unanswered; 1 match the documentation, 1 differ": func(r *Result) {
			r.Detail.Probe.NotListed, r.Detail.Probe.Since = 0, &probe.Since{Run: "R0", Compared: 4, Changed: 1}
		},
		"not all answered: 4 of 5 questions, 1 unanswered; 1 match the documentation, 1 differ; none of 4 has changed since run R0": func(r *Result) {
			r.Detail.Probe.NotListed, r.Detail.Probe.Since = 0, &probe.Since{Run: "R0", Compared: 4}
		},
	} {
		r := Result{Detail: scenarios.Detail{Probe: someAnswers()}}
		change(&r)
		if got := r.verdictText(); got != want {
			t.Errorf("%s\nwant %s", got, want)
		}
	}
}

// Csv has the counts and two figures a question; the signs are explained where they stand.
func TestAnswersAsFigures(t *testing.T) {
	r := Result{Detail: scenarios.Detail{Probe: someAnswers()}}
	wantFigures(t, r, map[string][]string{"answered": {"4 count"}, "unanswered": {"1 count"}, "changed": {"0 count"}, "codes not listed": {"1 count"},
		"answer keys/twice/direct": {"conflict direct KEY_CONFLICT 409"}, "as known keys/twice/direct": {"direct true"}, "as known keys/twice/transaction": {"transaction false"},
		"answer ghosts/read": {"ok it does"}, "as known ghosts/read": {"unknown"}, "as known ghosts/late": {"unanswered"}})
	if notes := r.probeLegend().notes; len(notes) != 2 || !strings.HasPrefix(notes[1], "†") {
		t.Errorf("%q", notes)
	}
	if r.Detail.Probe.NotListed = 0; len(r.probeLegend().notes) != 1 {
		t.Errorf("%q", r.probeLegend().notes)
	}
	if r.Target.Simulated = true; !strings.Contains(r.probeLegend().notes[1], "only a live site can show it") {
		t.Errorf("%q", r.probeLegend().notes)
	}
}
