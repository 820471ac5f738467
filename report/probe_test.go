package report

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"contend/runner"
	"contend/scenarios"
	"contend/scenarios/probe"
	"contend/targets/all"
)

// probeOf probes a simulated target in virtual time.
func probeOf(t *testing.T, url string, p *scenarios.Probe, change func(*RunHeader, *runner.End)) (result Result) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		target, err := all.Open(url)
		if err != nil {
			t.Fatal(err)
		}
		header := RunHeader{Run: "01TEST", Tool: Tool{"v1", "go1.26"}, Command: "contend probe", Scenario: "probe", Target: TargetOf(target.Describe()),
			Host: Host{"linux", "amd64", 2}, Started: time.Now(), Params: Params{KeyPrefix: "contend-", Expect: []string{"conflict>=1"}}}
		header.Params.SetOptions(p)
		end := runner.End{}
		if change != nil {
			change(&header, &end)
		}
		collector, err := NewCollector(header)
		if err != nil {
			t.Fatal(err)
		}
		probe, err := runner.OpenProbe(t.Context(), target, runner.ProbePlan{Setup: runner.Setup{Timeout: time.Second},
			Inquiries: probe.Inquiries(p.Questions(header.Target.Kind, "contend-", "01TEST"))})
		if err != nil {
			t.Fatal(err)
		}
		defer probe.Close()
		summary := probe.Run(t.Context(), collector)
		end.Requests, end.Elapsed = summary.Requests, summary.Elapsed
		if collector.Foreign() != nil {
			t.Error(collector.Foreign())
		}
		result = collector.Make(end)
	})
	return result
}

func rendered(t *testing.T, r Printable, format string) string {
	t.Helper()
	var b bytes.Buffer
	if err := (Output{Format: format}).write(r, &b, Screen{}); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// lines that begin with this, up to spaces.
func lineWith(text, begin string) string {
	for line := range strings.Lines(text) {
		if line = strings.Join(strings.Fields(line), " "); strings.HasPrefix(line, begin) {
			return line
		}
	}
	return ""
}

// The table tells each answer, how it compares with what is known, the ways side by
// side, and the catalogue of error objects.
func TestProbeTable(t *testing.T) {
	table := rendered(t, probeOf(t, "sim:?latency=0", &scenarios.Probe{}, nil), "table")
	for _, want := range []string{
		"contend probe on sim:?latency=0 (Forge KVS emulator) · SIMULATED, not a live platform",
		"ANSWERED: 101 of 101 questions; 57 match the documentation, 0 differ, 43 with a code",
		"question │ direct │ transaction",
		"2147483648 in an integer │ ✓ INCORRECT_PROPERTY_TYPE† 400 │ ✓ UNPROCESSABLE_ENTITY† 422",
		"a value of 240 KiB and a byte │ ✓ MAX_SIZE 400",
		"does a transaction's condition see a ghost │ ? it does (ok 204)",
		"KEY_CONFLICT │ 409 │ conflict │ no │ 5 │ Provided key already exists",
		"MAX_SIZE │ 400 │ invalid │ yes │ 1 │ Provided value is larger",
		"What is marked ? is an assumption of the emulator here",
		"conflict>=1 │ 9 │ ✓ yes",
		"Run 01TEST, 2000-01-01 00:00 UTC, 3.25s: 150 requests",
	} {
		if lineWith(table, want) == "" {
			t.Errorf("the table has no line %q:\n%s", want, table)
		}
	}
	for _, other := range []string{"Property:", "Was there a contest", "Differs from the documentation", "seed", "Changed since", "not asked"} {
		if strings.Contains(table, other) {
			t.Errorf("the table has %q", other)
		}
	}
}

// What is not as known, not asked and changed stands out.
func TestProbeTableOfWhatIsWrong(t *testing.T) {
	before := probeOf(t, "sim:?latency=0", &scenarios.Probe{Only: scenarios.Groups{"keys", "ghosts"}}, nil)
	text, err := before.MarshalIndent()
	if err != nil {
		t.Fatal(err)
	}
	since, err := Earlier(text)
	if err != nil {
		t.Fatal(err)
	}
	p := &scenarios.Probe{Only: scenarios.Groups{"keys", "ghosts"}, Since: since}
	r := probeOf(t, "sim:?latency=0&sweep=0&fault=unmapped", p, nil)
	table := rendered(t, r, "table")
	for _, want := range []string{
		"CHANGED: 7 of 9 answers differ from those of run 01TEST; answered 9 of 16 questions, 7 unanswered; 1",
		"Changed since run 01TEST of 2000-01-01 on sim:?latency=0",
		"keys/absent │ KEY_NOT_FOUND 404 │ OUT_OF_CHEESE 418",
		"Differs from the documentation",
		"does a get show a ghost │ unanswered: what it rests on was answered with",
		"an empty key │ ✗ OUT_OF_CHEESE† 418",
	} {
		if lineWith(table, want) == "" {
			t.Errorf("the table has no line %q:\n%s", want, table)
		}
	}
	swept := rendered(t, probeOf(t, "sim:?latency=0&sweep=0", p, nil), "table")
	for _, want := range []string{"ANSWERED: 9 of 16 questions, 7 not asked; ", "Nothing has: 9 questions were answered both times.", "does a get show a ghost │ not asked: there was no ghost"} {
		if lineWith(swept, want) == "" {
			t.Errorf("the table has no line %q:\n%s", want, swept)
		}
	}
	if same := probeOf(t, "sim:?latency=0", p, nil); !strings.Contains(same.VerdictLine(), "; none of 16 has changed since run 01TEST") || same.Changed() != 0 {
		t.Error(same.VerdictLine())
	}
	if line := r.VerdictLine(); !strings.HasPrefix(line, "probe on sim:?latency=0&sweep=0&fault=unmapped (simulated): changed: 7 of 9") || r.Changed() != 7 {
		t.Error(line)
	}
	for change, want := range map[string]string{"interrupted": "; interrupted", "stopped": "; it fell silent", "cut": "; its time was up"} {
		r := probeOf(t, "sim:?latency=0", &scenarios.Probe{Only: scenarios.Groups{"keys"}}, func(_ *RunHeader, end *runner.End) {
			end.Interrupted = change == "interrupted"
			end.Stopped = map[bool]string{true: "it fell silent"}[change == "stopped"]
			end.Cut = map[bool]string{true: "its time was up"}[change == "cut"]
		})
		if !strings.Contains(r.VerdictLine(), want+"; expected conflict>=1") {
			t.Errorf("%s: %s", change, r.VerdictLine())
		}
	}
}

// A probe has no verdict: its status is null, and comes back from a file as none.
func TestProbeHasNoVerdict(t *testing.T) {
	r := probeOf(t, "sim:?latency=0", &scenarios.Probe{Only: scenarios.Groups{"types"}}, func(_ *RunHeader, end *runner.End) { end.Units = 31 })
	text, err := r.MarshalIndent()
	if err != nil || !bytes.Contains(text, []byte("\"verdict\": {\n    \"status\": null,")) {
		t.Errorf("%v: %s", err, text[:min(len(text), 3000)])
	}
	var again Result
	if err := json.Unmarshal(text, &again); err != nil || again.Verdict.Status != "" || again.QuotaUnits == nil || *again.QuotaUnits != 31 {
		t.Errorf("%v: %+v", err, again.Verdict)
	}
	if twice, _ := again.MarshalIndent(); !bytes.Equal(text, twice) {
		t.Error("read back and written again it differs")
	}
	for _, status := range []scenarios.Status{scenarios.Held, scenarios.Violated} {
		text, _ := json.Marshal(scenarios.Verdict{Status: status, Property: "p"})
		if !strings.HasPrefix(string(text), `{"status":"`+string(status)+`","property":"p",`) {
			t.Errorf("%s: %s", status, text)
		}
	}
}

// Rows of CSV are the counts, and two for each question.
func TestProbeCSV(t *testing.T) {
	r := probeOf(t, "sim:?latency=0&sweep=0", &scenarios.Probe{Only: scenarios.Groups{"types", "ghosts"}}, nil)
	rows, err := csv.NewReader(strings.NewReader(rendered(t, r, "csv"))).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	figures := map[string]string{}
	for _, row := range rows {
		figures[row[5]] = strings.Join(row[6:], ",")
	}
	for figure, want := range map[string]string{
		"verdict": ",,,,,,,", "answered": ",,,,,26,count,", "not asked": ",,,,,7,count,", "changed": ",,,,,0,count,",
		"answer types/integer-above-max/direct":   "invalid,direct,,INCORRECT_PROPERTY_TYPE,400,,,",
		"as known types/integer-above-max/direct": ",direct,,,,true,,",
		"answer types/float-now/transaction":      "ok,transaction,,,200,exact,,",
		"as known types/integer-null/direct":      ",direct,,,,unknown,,",
		"as known ghosts/read":                    ",,,,,not-asked,,",
	} {
		if got := figures[figure]; got != want {
			t.Errorf("%s: %s, want %s", figure, got, want)
		}
	}
}

// In a suite it stands with the others.
func TestProbeInASuite(t *testing.T) {
	r := probeOf(t, "sim:?latency=0", &scenarios.Probe{Only: scenarios.Groups{"keys"}}, nil)
	s := Suite{File: "suite.yaml", Runs: []SuiteRun{{Name: "site", Result: &r}}}
	table := rendered(t, s, "table")
	if !strings.Contains(table, "1 run of suite.yaml: 1 answered") || lineWith(table, "site │ sim:?latency=0 (simulated) │ answered │ expected conflict>=1, measured 0; 9 of 9") == "" {
		t.Errorf("%s", table)
	}
}

// What is no result of a probe is refused as an earlier one.
func TestEarlierRefuses(t *testing.T) {
	race := resultOf(t, "fail-if-exists", "sim:?latency=5ms", func(_ *RunHeader, p *runner.Plan) { p.Rounds = 1 })
	text, err := race.MarshalIndent()
	if err != nil {
		t.Fatal(err)
	}
	for _, wrong := range []string{"", "{}", "[]", `{"schema":"contend.suite/1"}`, string(text)} {
		if _, err := Earlier([]byte(wrong)); err == nil || !strings.Contains(err.Error(), "no JSON result") {
			t.Errorf("%.40s: %v", wrong, err)
		}
	}
}
