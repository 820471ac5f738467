package report

import (
	"slices"
	"strings"
	"testing"
	"time"

	"contend/scenarios"
	"contend/scenarios/stats"
)

// aRacedResult has a contest of 12 contenders with all its evidence.
func aRacedResult() Result {
	ms := func(v float64) *time.Duration { return ptr(time.Duration(v * 1e6)) }
	r := Result{RunHeader: RunHeader{Run: "01T", Scenario: "fail-if-exists", Started: time.Date(2026, 3, 1, 3, 0, 0, 0, time.UTC),
		Target: Target{URL: "sim:", Server: "S 1", Strategy: map[string]string{"create": "nx", "cas": "lua"}}, Tool: Tool{"v1", "go1.26"}, Host: Host{"linux", "amd64", 2},
		Params: Params{Contenders: 12, Rounds: 20, KeyPrefix: "contend-", MinContended: 10, Thresholds: scenarios.DefaultThresholds}},
		Rounds: 25, Elapsed: 1234567890, Requests: 321}
	r.Outcomes = []Outcome{{Outcome: "won", At: "write", Count: 25}, {Outcome: "lost", At: "write", Code: "KEY_CONFLICT", Status: 409, Count: 74, Message: "exists"},
		{Outcome: "unknown", At: "write", Count: 1, Settled: 1}}
	r.Winners = scenarios.Winners{Min: 0, Max: 2, None: 1, One: 22, Several: 2}
	r.Latency = []Latency{{Outcome: "won", At: "write", N: 25, Method: "exact", Min: ms(1), P50: ms(40), P90: ms(123.4), P95: ms(200), Max: ms(300)},
		{Outcome: "won", At: "write", Where: "server", N: 25, Method: "hdr", Min: ms(0.5), Max: ms(1)}}
	r.Contention = scenarios.Contention{MaxInFlight: ptr(12), Overlap: ptr(0.5), WinnerOverlap: ptr(1.0), GuardContention: ptr(0.999), ReachedGuard: 100, Of: 300,
		Skew: scenarios.Skew{P50: ms(1), P99: ms(2), Method: "call"}, Closest: ptr(time.Duration(471)), Rivals: scenarios.Rivals{Needed: 5, P50: ptr(11)},
		ContendedRounds: 20, UncertainRounds: 2, Reach: scenarios.Reach{AtLeast: 10, Reach: ms(40), P50: ms(38)},
		Uncounted: []scenarios.Uncounted{{Why: "had too few rivals", Rounds: 3, Fix: "raise --contenders"}}, Uncertain: []scenarios.Uncounted{{Why: "were throttled", Rounds: 2}}}
	r.Verdict = scenarios.Verdict{Status: scenarios.Held, Property: "one may win", Bound: &stats.Bound{AtMost: 0.1391, Confidence: 0.95}}
	r.Controls = []scenarios.Control{{Name: "sequential", AsExpected: true}, {Name: "twin", AsExpected: true, Rounds: 3}}
	return r
}

// Each outcome has its code and its share; what is not there is a dash, and what the
// read-back showed is said.
func TestOutcomesHaveTheirShare(t *testing.T) {
	r := aRacedResult()
	wantRows(t, r.outcomePart(), "won | write | – | – | 25 | 25 % | –", "lost | write | KEY_CONFLICT | 409 | 74 | 74 % | exists",
		"unknown | write | – | – | 1 | 1 % | 1 resolved by read-back: applied.")
	wantNotes(t, r.outcomePart(), "Winners a round: none in 1, one in 22, several in 2 (fewest 0, most 2).",
		"unknown: indeterminate, a request whose effect its reply does not show.")
	wantFigures(t, r, map[string][]string{"contenders": {"won write 25 count", "lost write KEY_CONFLICT 409 74 count", "unknown write 1 count"}})
	for name, c := range map[string]struct {
		change        func(*Result)
		heading, note string
	}{
		"a race":  {func(*Result) {}, "Winners and losers: 100 contenders in 25 rounds", "Winners a round"},
		"edits":   {func(r *Result) { r.Detail.Edits = &scenarios.EditReport{} }, "Winners and losers: 100 contenders in 25 rounds", "Accepted edits a round"},
		"counter": {func(r *Result) { r.Detail.Counter = aCounter() }, "Accepted and refused: 100 writes in 25 rounds of 12 contenders", "unknown: indeterminate"},
		"watch":   {func(r *Result) { r.Detail.Ghosts, r.Winners = aWatchedStore(), scenarios.Winners{} }, "Probes: 100 requests after the creates", "unknown: indeterminate"},
	} {
		r := aRacedResult()
		c.change(&r)
		p := r.outcomePart()
		if p.heading != c.heading || (len(p.notes) > 0) != (c.note != "") || c.note != "" && !strings.HasPrefix(p.notes[0], c.note) {
			t.Errorf("%s: %s, %q", name, p.heading, p.notes)
		}
	}
}

// A percentile of too few samples is a dash, and stands empty in csv; the server's own
// time is told apart.
func TestLatencyOfTooFewSamples(t *testing.T) {
	r := aRacedResult()
	wantRows(t, r.latencyPart(), "won | write | 25 | 1.00 | 40.0 | 123 | 200 | – | 300", "won | write, server | 25 | 0.500 | – | – | – | – | 1.00")
	wantNotes(t, r.latencyPart(), "Percentiles by nearest rank and a histogram of three digits; –: too few samples (p90 needs 10, p95 20, p99 100).")
	wantFigures(t, r, map[string][]string{"latency n": {"won write 25 count", "won write server 25 count"}, "latency p50": {"won write 40000000 ns", "won write server ns"},
		"latency p99": {"won write ns", "won write server ns"}, "latency max": {"won write 300000000 ns", "won write server 1000000 ns"}})
	r.Target.Relayed, r.Latency = true, r.Latency[:1]
	wantNotes(t, r.latencyPart(), "server: as measured next to the store; the others are round trips from here, the wait for the common instant included.",
		"Percentiles by nearest rank; –: too few samples (p90 needs 10, p95 20, p99 100).")
	if r.Latency = nil; len(r.latencyPart().notes) != 1 {
		t.Errorf("%q", r.latencyPart().notes)
	}
}

// The evidence of a contest is what it was, and a dash where it is not known.
func TestContestTellsItsEvidence(t *testing.T) {
	r := aRacedResult()
	values := func() string {
		var all []string
		for _, row := range r.contestPart().block().table.rows {
			all = append(all, row[0]+": "+row[1])
		}
		return strings.Join(all, "\n")
	}
	if got, want := values(), `counted rounds: 20 of 25 raced
uncertain rounds: 2
uncounted rounds: 3
rivals: 11, of 5 needed
reach: 38.0 ms
max in flight: 12 of 12
overlap: 50 %
winner overlap: 100 %
guard contention: 99.9 %
reached the guard: 100 of 300
release skew: 1.00, 2.00, – ms
least gap: 471ns`; got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	wantNotes(t, r.contestPart(), "Not counted: 3 had too few rivals (raise --contenders).", "Uncertain: 2 were throttled.",
		"Controls: sequential ✓, negative control ✓ (the unguarded twin, violated in 3 of 3 rounds).")
	r.Contention = scenarios.Contention{Rivals: scenarios.Rivals{Needed: 5}}
	if got, want := values(), `counted rounds: 0 of 25 raced
uncertain rounds: 0
uncounted rounds: 25
rivals: –, of 5 needed
reach: –
max in flight: –
overlap: –
winner overlap: –
guard contention: –
reached the guard: 0 of 0
release skew: –, –, – ms
least gap: –`; got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	for method, want := range map[string]string{"kernel-write": "(at the kernel's write)", "call": "(at the call)", "last-byte": "(the last byte, at the kernel's write)"} {
		r.Contention.Skew.Method = method
		if got := r.contestPart().rows[10][2].(string); !strings.HasSuffix(got, want) {
			t.Errorf("%s: %s", method, got)
		}
	}
	r.Target.Relayed, r.Target.Uncertainty = true, 12345678
	if got := r.contestPart().rows[10][2].(string); !strings.HasSuffix(got, "(next to the store, ± 12.35ms)") {
		t.Errorf("relayed: %s", got)
	}
}

// Format csv keeps the figures that it has always had, in their order: programs read them.
func TestFiguresOfEveryRunAreKept(t *testing.T) {
	r := aRacedResult()
	r.Verdict.Bound.UncertainAtMost, r.Expectations = ptr(0.25), []Expectation{{Expr: "throttled==0", Met: true, Figure: "0"}, {Expr: "p99(won)<1s", Figure: "too few samples: 25"}}
	r.Latency = r.Latency[:1]
	var got []string
	for _, f := range r.figures() {
		got = append(got, strings.TrimSpace(f.name+f.of["figure"]+" "+csvValue(f.value)+" "+f.unit.name))
	}
	want := strings.Split(`verdict held
rounds 25 count
contended rounds 20 count
uncertain rounds 2 count
violated rounds 0 count
violation rate at most 0.1391 share
violation rate at most if uncertain violate 0.25 share
contenders 25 count
contenders 74 count
contenders 1 count
latency n 25 count
latency min 1000000 ns
latency p50 40000000 ns
latency p90 123400000 ns
latency p95 200000000 ns
latency p99  ns
latency max 300000000 ns
rivals needed 5 count
rivals p50 11 count
reach counted at least 10 count
max in flight 12 count
reach 40000000 ns
reach p50 38000000 ns
overlap 0.5 share
winner overlap 1 share
guard contention 0.999 share
release skew p50 1000000 ns
release skew p99 2000000 ns
release skew max  ns
closest sends 471 ns
reached guard 100 count
expectation throttled==0 true
expectation p99(won)<1s false`, "\n")
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s", strings.Join(got, "\n"))
	}
	// The scenario's own come before the expectations.
	r.Detail.Counter = aCounter()
	if names := r.figures(); names[len(names)-1].name != "expectation " || names[len(names)-3].name != "fairness p" {
		t.Errorf("%+v", names[len(names)-3:])
	}
	if header := strings.Join(csvHeader, ","); header != "run,started,scenario,target,simulated,figure,outcome,at,where,code,status,value,unit,labels" {
		t.Error(header)
	}
}

// A control that was not as expected is not ticked, and one that was left out says why.
func TestControlsThatFailedAreNotTicked(t *testing.T) {
	for want, c := range map[string][]scenarios.Control{
		"Controls: none were made.":                                  nil,
		"Controls: sequential ✗ (a second create was accepted).":     {{Name: "sequential", Detail: "a second create was accepted"}},
		"Controls: stale left out (there are no versions), nonce ✓.": {{Name: "stale", LeftOut: "there are no versions"}, {Name: "nonce", AsExpected: true}},
		"Controls: twin ✗ (it was violated in 1 of 3 rounds).":       {{Name: "twin", Detail: "it was violated in 1 of 3 rounds"}},
		"Controls: negative control ✓ (the unguarded twin, violated in 3 of 3 rounds), live ✓ (2 keys blocked before their expiry).": {{Name: "twin", AsExpected: true, Rounds: 3}, {Name: "live", AsExpected: true, Rounds: 2}},
	} {
		if got := (Result{Controls: c}).controlsText(); got != want {
			t.Errorf("%s\nwant %s", got, want)
		}
	}
}

// A witness has every request with its times, and of a watch neither versions nor tokens.
func TestWitnessOfAViolation(t *testing.T) {
	r := aRacedResult()
	v := scenarios.Violation{Kind: "several-winners", Round: 7, Detail: "two writes were accepted", Witness: []scenarios.Witness{
		{Who: "contender 1", Request: "create", Call: 1500 * time.Microsecond, Return: 2 * time.Millisecond, Outcome: "ok", Status: 204, Token: "contend-01T-r7-c1-1", Version: 1},
		{Who: "contender 2", Request: "create", Call: 0, Return: forever, Outcome: "unknown", Code: "TIMEOUT", Version: 2}}}
	r.Verdict.Violations = []scenarios.Violation{v, v, v}
	p := r.witnessPart(v)
	wantRows(t, p, "contender 1 | create | 1.500 | 2.000 | ok 204 | 1 | r7-c1-1", "contender 2 | create | 0.000 | – | unknown TIMEOUT | 2 | –")
	wantNotes(t, p, "Times since the start of the run. Every token begins with contend-01T-", "2 violations more: -o json=FILE writes the witnesses.")
	if p.heading != "Witness of several-winners, round 7: two writes were accepted" {
		t.Error(p.heading)
	}
	r.JSONTo, r.Verdict.Violations = "out.json", r.Verdict.Violations[:2]
	if notes := r.witnessPart(v).notes; notes[1] != "1 violation more: out.json has the witnesses." {
		t.Errorf("%q", notes)
	}
	v.Key = "write3"
	p = r.witnessPart(v)
	wantRows(t, p, "contender 1 | create | 1.500 | 2.000 | ok 204", "contender 2 | create | 0.000 | – | unknown TIMEOUT")
	if p.heading != "Witness of several-winners, key write3: two writes were accepted" || p.notes[0] != "Times since the start of the run." {
		t.Errorf("%s, %q", p.heading, p.notes)
	}
	if v.Control = "stale"; r.witnessPart(v).heading != "Witness of several-winners, the stale control: two writes were accepted" {
		t.Error(r.witnessPart(v).heading)
	}
}

// An expectation that was not met is not ticked.
func TestExpectationsThatWereMissed(t *testing.T) {
	r := Result{Expectations: []Expectation{{"throttled==0", true, "0"}, {"p99(won)<1s", false, "too few samples: 25"}}}
	wantRows(t, r.expectationPart(), "throttled==0 | 0 | ✓ yes", "p99(won)<1s | too few samples: 25 | ✗ no")
	wantFigures(t, r, map[string][]string{"expectation throttled==0": {"true"}, "expectation p99(won)<1s": {"false"}})
	if p := r.document().parts; p[len(p)-2].heading != "Expectations" {
		t.Errorf("%+v", p)
	}
}

// What a report ends with: reasons of a violation, what was left, the target's notes, how
// it was made.
func TestNotesAtTheEnd(t *testing.T) {
	r := aRacedResult()
	r.Verdict.Reasons, r.Left, r.Target.Notes, r.Params.Seed, r.Labels = []string{"a reason"}, "2 keys are left", []string{"a note"}, "7", map[string]string{"b": "2", "a": "1"}
	want := []string{"Note: 2 keys are left", "Note: a note", "Strategy: cas=lua, create=nx", "Labels: a=1, b=2", "contend v1, go1.26, linux/amd64, 2 CPUs, seed 7"}
	if got := r.notes(); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	r.Verdict.Status = scenarios.Violated
	if got := r.notes(); got[0] != "Note: a reason" {
		t.Errorf("%q", got)
	}
	bare := Result{}
	if got, want := bare.notes(), []string{"Strategy: ", "contend , , /, 0 CPUs"}; !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

// The first lines are the title, which says what is simulated, the verdict, its reach, the
// property and the run.
func TestLeadOfAReport(t *testing.T) {
	r := aRacedResult()
	d := r.document()
	want := []string{"HELD: 20 of 25 rounds count as contended, none violated; violation rate under 14.0 % (95 % confidence) of rounds in which every reply was certain",
		"Reach: in 10 rounds or more check and effect were at most 40.0 ms apart: a store that always takes longer is excluded, one that sometimes does is bounded by the rate only",
		"Property: one may win", "Run 01T, 2026-03-01 03:00 UTC, 1.23s: 25 rounds of 12, 321 requests"}
	if !slices.Equal(d.lead, want) || d.title != "contend fail-if-exists on sim: (S 1)" {
		t.Errorf("%s\n%s", d.title, strings.Join(d.lead, "\n"))
	}
	r.Target.Simulated, r.Verdict.Status, r.Verdict.Reasons = true, scenarios.Inconclusive, []string{"nobody met"}
	if d := r.document(); d.title != "contend fail-if-exists on sim: (S 1) · SIMULATED, not a live platform" || d.lead[0] != "INCONCLUSIVE: nobody met" || len(d.lead) != 3 {
		t.Errorf("%s\n%s", d.title, strings.Join(d.lead, "\n"))
	}
}
