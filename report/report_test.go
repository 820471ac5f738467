package report

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"contend/runner"
	"contend/scenarios"
	"contend/targets"
	"contend/targets/all"
)

// resultOf runs a scenario on a simulated target in virtual time.
func resultOf(t *testing.T, scenario, url string, change func(*RunHeader, *runner.Plan)) (result Result) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		target, err := all.Open(url)
		if err != nil {
			t.Fatal(err)
		}
		raced, twin := Raced(scenarios.Find(scenario).(scenarios.Contest), false)
		plan := runner.Plan{Setup: runner.Setup{Run: "01TEST", Prefix: "contend-", Timeout: time.Second},
			Contenders: 12, Rounds: 20, Settle: time.Second, Race: raced, ControlRounds: 3, Unguarded: twin == nil}
		if twin != nil {
			plan.Twin = twin
		}
		header := RunHeader{Run: plan.Run, Tool: Tool{"v1", "go1.26"}, Command: "contend " + scenario, Scenario: scenario,
			Labels: map[string]string{"site": "a|b"}, Target: TargetOf(target.Describe()), Host: Host{"linux", "amd64", 2},
			Started: time.Now(), Params: Params{Contenders: 12, Rounds: 20, Release: "gate", Seed: "1", ControlRounds: 3,
				MinContended: scenarios.DefaultMinContended, Thresholds: scenarios.DefaultThresholds,
				KeyPrefix: "contend-", ExpectVerdict: "held"}}
		if change != nil {
			change(&header, &plan)
		}
		collector, err := NewCollector(header)
		if err != nil {
			t.Fatal(err)
		}
		r, err := runner.Open(t.Context(), target, plan)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		summary := r.Run(t.Context(), collector, collector)
		result = collector.Make(summary.End())
	})
	return result
}

func render(t *testing.T, format string, r Result) string {
	t.Helper()
	var b bytes.Buffer
	if err := (Output{Format: format}).render(&b, r, Screen{}); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// awkward is a result with everything in it that breaks a table.
func awkward(t *testing.T) Result {
	r := resultOf(t, "fail-if-exists", "sim:?latency=40ms&fault=two-winners", nil)
	r.Outcomes = append(r.Outcomes, Outcome{Outcome: "unmapped", At: "write", Code: "A|B <b>_x_*y*`z`", Status: 599, Count: 3,
		Message: "first line\nsecond | line\r\nthird {noformat} [link] !image.png! ~x~ &lt; " + strings.Repeat("longword", 40)})
	r.Target.URL = "redis://" + strings.Repeat("very-long-host-name.", 12) + "example:6379/0"
	r.Expectations = append(r.Expectations, Expectation{Expr: "p99(won)<250ms", Met: false, Figure: "too few samples: 20"})
	return r
}

func TestTableKeepsToItsWidth(t *testing.T) {
	for _, r := range []Result{
		resultOf(t, "fail-if-exists", "sim:?latency=40ms", nil),
		resultOf(t, "version-cas", "sim:?latency=40ms&fault=throttle=0.5", nil),
		awkward(t),
	} {
		for _, columns := range []int{0, 200, 100, 80} {
			var b bytes.Buffer
			if err := writeTerminal(&b, r, Screen{Width: columns}); err != nil {
				t.Fatal(err)
			}
			for line := range strings.Lines(b.String()) {
				line = strings.TrimRight(line, "\n")
				most := widestScreen
				if columns == 80 {
					most = 80
				}
				if n := len([]rune(line)); n > most || strings.HasSuffix(line, " ") || strings.Contains(line, "\x1b") {
					t.Errorf("on %d columns a line of %d, %q", columns, n, line)
				}
			}
		}
	}
}

// In this order, and at a glance: that it is simulated, the verdict, winners and
// losers, latency, evidence, witness.
func TestTableOrder(t *testing.T) {
	text := render(t, "table", resultOf(t, "fail-if-exists", "sim:?latency=40ms&fault=two-winners", nil))
	at := 0
	for _, want := range []string{"SIMULATED", "VIOLATED in 20 of 20 rounds", "Winners and losers", "KEY_CONFLICT", "Latency", "Was there a contest",
		"max in flight", "Controls: sequential ✓, stale ✓, nonce ✓, negative control ✓", "Witness of several-winners", "r1-c", "r1-c", "contend fail-if-exists"} {
		i := strings.Index(text[at:], want)
		if i < 0 {
			t.Fatalf("%q is missing, or not where it belongs, in:\n%s", want, text)
		}
		at += i + len(want)
	}
}

func TestVerdictLine(t *testing.T) {
	for _, c := range []struct{ scenario, url, want string }{
		{"fail-if-exists", "sim:?latency=40ms", "fail-if-exists on sim:?latency=40ms (simulated): held: 20 of 20 rounds count as contended, none violated; violation rate under 14.0 % (95 % confidence) of rounds in which every reply was certain"},
		{"check-then-set", "sim:?latency=40ms", "check-then-set on sim:?latency=40ms (simulated): violated in 20 of 20 rounds: two writes were accepted where only one may win (expected: no guard); violation rate over 86.0 % (95 % confidence)"},
		{"fail-if-exists", "sim:?latency=40ms&fault=condition-ignored", "fail-if-exists on sim:?latency=40ms&fault=condition-ignored (simulated): violated in the sequential control: a second create of one key was accepted, with nothing running beside it; no race was run"},
	} {
		if got := resultOf(t, c.scenario, c.url, nil).VerdictLine(); got != c.want {
			t.Errorf("got  %s\nwant %s", got, c.want)
		}
	}
	stopped := resultOf(t, "fail-if-exists", "sim:?latency=40ms&fault=throttle", nil).VerdictLine()
	if !strings.Contains(stopped, "inconclusive: the target decided on no write for 3 rounds; the first refusal: RATE_LIMIT_EXCEEDED 429 (planted by fault=throttle); 3 of 3 rounds are uncertain") {
		t.Error(stopped)
	}
}

// Each way in which a run asks for less than usual stands in the verdict line, and
// each bound that it leaves.
func TestVerdictLineTellsItsStrength(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*RunHeader)
		want   string
	}{
		"rivals":           {func(f *RunHeader) { f.Params.Thresholds.Rivals = 2 }, "certain [weaker than usual: --min-rivals 2]"},
		"more rivals":      {func(f *RunHeader) { f.Params.Thresholds.Rivals = 11 }, "certain"},
		"contended":        {func(f *RunHeader) { f.Params.MinContended = 9 }, "certain [weaker than usual: --min-contended 9]"},
		"uncertain":        {func(f *RunHeader) { f.Params.Thresholds.Uncertain = 0.5 }, "certain [weaker than usual: --max-uncertain 0.5]"},
		"uncertain rounds": {func(f *RunHeader) { f.Params.Thresholds.UncertainRounds = 1 }, "certain [weaker than usual: --max-uncertain-rounds 1]"},
		"reach":            {func(f *RunHeader) { f.Params.Thresholds.Reach = time.Second }, "certain and the reach at most 1s"},
		"several": {func(f *RunHeader) { f.Params.Thresholds.Rivals, f.Params.MinContended = 1, 1 },
			"certain [weaker than usual: --min-rivals 1, --min-contended 1]"},
	} {
		got := resultOf(t, "fail-if-exists", "sim:?latency=40ms", func(f *RunHeader, _ *runner.Plan) { c.change(f) }).VerdictLine()
		if want := "held: 20 of 20 rounds count as contended, none violated; violation rate under 14.0 % (95 % confidence) of rounds in which every reply was " + c.want; !strings.HasSuffix(got, want) {
			t.Errorf("%s: %s", name, got)
		}
	}
	r := resultOf(t, "fail-if-exists", "sim:?latency=40ms", nil)
	most := 0.21
	r.Contention.UncertainRounds, r.Rounds, r.Verdict.Bound.UncertainAtMost = 1, 21, &most
	if got := r.VerdictLine(); !strings.HasSuffix(got, "every reply was certain, under 21.0 % with the uncertain 1 taken as violated") {
		t.Error(got)
	}
}

// Below a held verdict stands what its reach excludes, or that none is known.
func TestReachIsTold(t *testing.T) {
	r := resultOf(t, "fail-if-exists", "sim:?latency=40ms", nil)
	const want = "Reach: in 10 rounds or more check and effect were at most 40.0 ms apart: a store that always takes longer is excluded, one that sometimes does is bounded by the rate only"
	if text := strings.Join(strings.Fields(render(t, "table", r)), " "); !strings.Contains(text, want) || !strings.Contains(text, " reach │ 40.0 ms │") {
		t.Error(text)
	}
	r.Contention.Reach.Reach = nil
	if text := strings.Join(strings.Fields(render(t, "table", r)), " "); !strings.Contains(text, "Reach unknown: fewer than 10 counted rounds bound how far check and effect were apart") {
		t.Error(text)
	}
}

// The page on what held means quotes reports word for word, has the numbers that the
// bounds give, names the controls that there are, and keeps to two screens.
func TestWhatHeldMeans(t *testing.T) {
	page, err := os.ReadFile("../docs/what-held-means.md")
	if err != nil {
		t.Fatal(err)
	}
	r := resultOf(t, "fail-if-exists", "sim:?latency=40ms", nil)
	reach := 100 * time.Microsecond
	r.Rounds, r.Contention.Reach.Reach = 23, &reach
	_, verdict, _ := strings.Cut(r.VerdictLine(), ": ")
	_, apart, _ := strings.Cut(r.reachText(), ": ")
	var quotes []string
	for paragraph := range strings.SplitSeq(string(page), "\n\n") {
		if strings.HasPrefix(paragraph, "> ") {
			quotes = append(quotes, strings.ReplaceAll(strings.TrimPrefix(paragraph, "> "), "\n> ", " "))
		}
	}
	if want := []string{verdict, apart}; !slices.Equal(quotes, want) {
		t.Errorf("the page quotes\n%q\nthe report says\n%q", quotes, want)
	}
	text := strings.Join(strings.Fields(string(page)), " ")
	for _, c := range r.Controls {
		if !strings.Contains(text, "| "+c.Name+" | ") {
			t.Errorf("the control %s is missing", c.Name)
		}
	}
	if !strings.Contains(text, "59 rounds bound the rate at 5 %, 299 at 1 %, 2,995 at 0.1 %") {
		t.Error("the bounds are not told")
	}
	for rounds, share := range map[int]float64{59: 0.05, 299: 0.01, 2995: 0.001} {
		if at := func(n int) float64 { return 1 - math.Pow(0.05, 1/float64(n)) }; at(rounds) > share || at(rounds-1) <= share {
			t.Errorf("%d rounds bound the rate at %g", rounds, at(rounds))
		}
	}
	if n := bytes.Count(page, []byte("\n")); n > 80 {
		t.Errorf("the page has %d lines", n)
	}
}

// Where nobody was released it is said why, and no table of nothing is shown.
func TestNobodyWasReleased(t *testing.T) {
	r := resultOf(t, "fail-if-exists", "sim:?latency=40ms", nil)
	r.Outcomes, r.Latency, r.Rounds, r.Contention = []Outcome{}, []Latency{}, 3, scenarios.Contention{UncertainRounds: 3,
		Uncertain: []scenarios.Uncounted{{Why: "could not be seeded: OOM", Rounds: 3}}}
	r.Refusal = &scenarios.Refusal{Request: "seed", Outcome: targets.Invalid, Code: "OOM", Message: "command not allowed"}
	for _, format := range []string{"table", "markdown", "jira"} {
		text := render(t, format, r)
		if strings.Contains(text, "Latency") || strings.Contains(text, "Was there a contest") || strings.Contains(text, "\nnone\n") {
			t.Errorf("%s shows figures of nobody: %s", format, text)
		}
		text = strings.Join(strings.Fields(text), " ")
		for _, want := range []string{"Winners and losers: no contender was released in 3 rounds", "The first request that the target refused, a seed: OOM (command not allowed)",
			"Uncertain: 3 could not be seeded: OOM.", "negative control ✓"} {
			if !strings.Contains(text, want) {
				t.Errorf("%s: %q is missing in %s", format, want, text)
			}
		}
	}
	none := resultOf(t, "fail-if-exists", "sim:?latency=40ms&fault=condition-ignored", nil)
	if text := render(t, "table", none); !strings.Contains(text, "\nWinners and losers: no race was run\nControls: sequential ✗") {
		t.Error(text)
	}
}

func TestMarkdownAndJiraCells(t *testing.T) {
	r := awkward(t)
	for format, cells := range map[string]func(line string) int{
		"markdown": func(line string) int {
			return strings.Count(strings.ReplaceAll(line, `\|`, ""), "|") - 1
		},
		"jira": func(line string) int {
			return strings.Count(strings.ReplaceAll(line, "||", "|"), "|") - 1
		},
	} {
		text := render(t, format, r)
		columns, tables, rows := 0, 0, 0
		for line := range strings.Lines(text) {
			line = strings.TrimSpace(line)
			switch {
			case !strings.HasPrefix(line, "|"):
				columns = 0
			case columns == 0:
				columns = cells(line)
				tables++
			default:
				rows++
				if got := cells(line); got != columns {
					t.Errorf("%s: %d cells in a table of %d columns: %s", format, got, columns, line)
				}
			}
		}
		if tables != 5 || rows < 15 {
			t.Errorf("%s: %d tables with %d rows:\n%s", format, tables, rows, text)
		}
	}
	if markdown := render(t, "markdown", r); strings.Contains(markdown, "<b>") || !strings.Contains(markdown, `A\|B &lt;b&gt;\_x\_`) {
		t.Errorf("markup of a code came through:\n%s", markdown)
	}
	if jira := render(t, "jira", r); strings.Contains(jira, "third {noformat}") || !strings.Contains(jira, `third \{noformat\}`) || !strings.Contains(jira, "A¦B") || strings.Contains(jira, "| |\n||") {
		t.Errorf("markup of a message came through:\n%s", jira)
	}
}

func TestCSVIsRectangular(t *testing.T) {
	rows, err := csv.NewReader(strings.NewReader(render(t, "csv", awkward(t)))).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	figures := make(map[string]bool)
	for _, row := range rows[1:] {
		figures[row[5]] = true
	}
	for _, want := range []string{"verdict", "contenders", "latency p50", "release skew max", "violation rate at most", "uncertain rounds", "rivals needed", "rivals p50", "reach counted at least", "reach", "reach p50"} {
		if !figures[want] {
			t.Errorf("no row of %q", want)
		}
	}
}

// What a spreadsheet would compute is shown as it is, numbers stay numbers, and a
// row is a line.
func TestCSVHoldsNoFormula(t *testing.T) {
	for text, want := range map[string]string{
		"=1+1": "'=1+1", "+a": "'+a", "-a": "'-a", "@SUM(A1)": "'@SUM(A1)", "\t=1": `'\t=1`, "\r=1": "'=1", "\n=1": "'=1", "＝1": "'＝1",
		"KEY_CONFLICT": "KEY_CONFLICT", "a=1": "a=1", "": "", "a\nb\x1b\u202e": `a b\x1b\u202e`,
	} {
		if got := csvText(text); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
	r := resultOf(t, "fail-if-exists", "sim:?latency=40ms&fault=two-winners", nil)
	r.Labels = map[string]string{"@x": "1", "b": "=2;=3\n4"}
	r.Outcomes[0].Code, r.Verdict.Status = "=HYPERLINK(\"x\")\x1b[31m\u2028", "-9"
	text := render(t, "csv", r)
	rows, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if err != nil || len(rows) != strings.Count(text, "\n") || strings.ContainsAny(text, "\x1b\u2028") {
		t.Fatalf("%v: %d rows in\n%s", err, len(rows), text)
	}
	code, labels := rows[0], rows[0]
	for _, row := range rows[1:] {
		if row[5] == "contenders" && code[0] == "run" {
			code = row
		}
		labels = row
	}
	if code[9] != `'=HYPERLINK("x")\x1b[31m\u2028` || labels[13] != "'@x=1;b==2;=3 4" || rows[1][11] != "-9" || code[11] == "" || code[11][0] == '\'' {
		t.Errorf("%q\n%q\n%q", rows[1], code, labels)
	}
	table := Table{Name: "x", Columns: []Column{{"a", "a"}, {"b", "b"}, {"c", "c"}}, Rows: [][]any{{"-1", -1, "@a\nb"}, {"=a", -1.5, map[string]string{"+": "1"}}}}
	var b bytes.Buffer
	if err := table.writeCSV(&b); err != nil || b.String() != "a,b,c\n'-1,-1,'@a b\n'=a,-1.5,'+=1\n" {
		t.Errorf("%v: %q", err, b.String())
	}
}

// What stands in a text is not markup of Jira, and neither calls somebody nor links
// an issue on GitHub.
func TestTextsAreNoMarkup(t *testing.T) {
	for text, want := range map[string]string{
		"_x_": `\_x\_`, "-x-": `\-x\-`, "*x*": `\*x\*`, "{x}": `\{x\}`, "+x+": `\+x\+`, "??x??": `\?\?x\?\?`, "fail-if-exists on sim:?latency=5ms": "fail-if-exists on sim:?latency=5ms",
		"a_b": "a_b", "--rounds": `\-\-rounds`, "[a|b]": `\[a¦b\]`, "_größe_": `\_größe\_`,
	} {
		if got := jiraText(text); got != want {
			t.Errorf("Jira: %q becomes %q, want %q", text, got, want)
		}
	}
	for text, want := range map[string]string{
		"@name": "`@name`", "see @org/team, #12": "see `@org/team`, `#12`", "a@b.example": "a@b.example", "org/repo#7!": "`org/repo#7`!", "GH-3": "`GH-3`",
		"#no": `\#no`, "_x_ @": `\_x\_ @`, "(@a)": "(`@a`)", "`@a`": "\\``@a`\\`",
	} {
		if got := markdownText(text); got != want {
			t.Errorf("Markdown: %q becomes %q, want %q", text, got, want)
		}
	}
	r := resultOf(t, "fail-if-exists", "sim:?latency=40ms&fault=two-winners", nil)
	r.Labels = map[string]string{"_who_": "@name", "issue": "#12"}
	if text := render(t, "jira", r); !strings.Contains(text, `* Labels: \_who\_=@name, issue=#12`) {
		t.Error(text)
	}
	if text := render(t, "markdown", r); !strings.Contains(text, "`@name`, issue=`#12`") {
		t.Error(text)
	}
}

// The command stands on one line in every format, as it is to be pasted, and what
// is in it does not end the code around it.
func TestCommandIsALine(t *testing.T) {
	r := resultOf(t, "fail-if-exists", "sim:?latency=40ms", nil)
	r.Command = "contend fail-if-exists -t 'sim:?latency=40ms&fault=two-winners' " + strings.Repeat("--label 'some=long value' ", 12) + "--label 'a={noformat}_x_```'"
	shell := strings.ReplaceAll(r.Command, "{noformat}", "{no''format}")
	for format, want := range map[string]string{
		"table": "\nCommand\n" + r.Command + "\n", "markdown": "\n### Command\n\n````sh\n" + r.Command + "\n````\n",
		"jira": "\nh4. Command\n\n{noformat}\n" + shell + "\n{noformat}\n",
	} {
		if text := render(t, format, r); !strings.HasSuffix(text, want) {
			t.Errorf("%s: %s", format, text[max(0, len(text)-900):])
		}
	}
	s := Suite{Command: r.Command, Runs: []SuiteRun{{Name: "x", Result: &r}}}
	var b bytes.Buffer
	if err := (Output{Format: "table"}).render(&b, s, Screen{Width: 80}); err != nil || !strings.HasSuffix(b.String(), "\nCommand\n"+r.Command+"\n") {
		t.Errorf("%v: %s", err, b.String())
	}
}

// What a store tells cannot break a line, in any format for people.
func TestTextsKeepToTheirLine(t *testing.T) {
	r := resultOf(t, "fail-if-exists", "sim:?latency=40ms&fault=two-winners", nil)
	const forged = "refused\n\rHELD: forged\x1b[2J\u202e\u200b"
	r.Outcomes[0].Message, r.Outcomes[0].Code, r.Labels = forged, forged, map[string]string{"site": forged}
	r.Verdict.Violations[0].Detail, r.Target.Notes, r.Target.Server, r.Stopped = forged, []string{forged}, forged, forged
	for _, format := range []string{"table", "markdown", "jira", "csv", "quiet"} {
		text := render(t, format, r)
		if strings.ContainsAny(text, "\r\x1b\u202e\u200b") || strings.Contains(text, "\nHELD") || strings.Contains(text, "\n**HELD") {
			t.Errorf("%s lets through what a store sent:\n%s", format, text)
		}
		if format == "quiet" && strings.Count(text, "\n") != 1 {
			t.Errorf("quiet has more than a line: %q", text)
		}
	}
}

// The members that the command line promises, by path; null is a value.
const promised = `schema run tool.version tool.go command scenario params.contenders params.rounds params.timeout_ns params.release params.seed
params.unguarded labels target.kind target.url target.strategy.create target.simulated target.server target.notes host.os host.arch host.cpus
started elapsed_ns interrupted requests quota_units controls.name controls.as_expected controls.rounds rounds outcomes.outcome outcomes.at
outcomes.code outcomes.status outcomes.count outcomes.message winners.min winners.max winners.none winners.one winners.several
latency.outcome latency.at latency.n latency.method latency.min_ns latency.p50_ns latency.p90_ns latency.p95_ns latency.p99_ns latency.max_ns
contention.max_in_flight contention.overlap contention.winner_overlap contention.guard_contention contention.reached_guard contention.of
contention.release_skew.p50_ns contention.release_skew.p99_ns contention.release_skew.max_ns contention.release_skew.method
contention.closest_ns contention.contended_rounds contention.rivals.needed contention.rivals.p50 contention.uncertain_rounds
contention.reach_ns.counted_at_least contention.reach_ns.reach contention.reach_ns.p50 contention.not_contended contention.uncertain
params.max_rounds params.min_contended params.late_ns params.settle_ns params.thresholds.min_rivals params.thresholds.max_uncertain
params.thresholds.max_uncertain_rounds verdict.bound.sided verdict.status verdict.property verdict.reasons verdict.violations.kind
verdict.violations.round verdict.violations.detail verdict.violations.witness verdict.bound.confidence verdict.bound.violation_rate_at_most
expectations.expr expectations.met expectations.figure detail`

func TestJSONHoldsWhatIsPromised(t *testing.T) {
	r := resultOf(t, "fail-if-exists", "sim:?latency=40ms&fault=two-winners", func(f *RunHeader, _ *runner.Plan) { f.Params.Expect = []string{"throttled==0"} })
	var object any
	if err := json.Unmarshal([]byte(render(t, "json", r)), &object); err != nil {
		t.Fatal(err)
	}
	var has func(v any, path []string) bool
	has = func(v any, path []string) bool {
		if len(path) == 0 {
			return true
		}
		switch v := v.(type) {
		case map[string]any:
			member, ok := v[path[0]]
			return ok && has(member, path[1:])
		case []any:
			for _, element := range v {
				if has(element, path) {
					return true
				}
			}
		}
		return false
	}
	for _, path := range strings.Fields(promised) {
		if !has(object, strings.Split(path, ".")) {
			t.Errorf("%s is missing", path)
		}
	}
	if object.(map[string]any)["target"].(map[string]any)["simulated"] != true {
		t.Error("a simulated target is not told as such")
	}
	var again Result
	if err := json.Unmarshal([]byte(render(t, "json", r)), &again); err != nil || again.Verdict.Violations[0].Witness[0] != r.Verdict.Violations[0].Witness[0] {
		t.Errorf("a result does not survive being read: %v", err)
	}
}

func TestParseOutputs(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct {
		values []string
		want   []Output
		fault  string
	}{
		{nil, []Output{{"table", ""}}, ""},
		{[]string{"json"}, []Output{{"json", ""}}, ""},
		{[]string{"json=" + dir + "/a"}, []Output{{"table", ""}, {"json", dir + "/a"}}, ""},
		{[]string{"quiet", "csv=" + dir + "/b"}, []Output{{"quiet", ""}, {"csv", dir + "/b"}}, ""},
		{[]string{"xml"}, nil, `unknown format "xml"; there are table, json, markdown, jira, csv, quiet`},
		{[]string{"json="}, nil, "file name is missing"},
		{[]string{"json", "csv"}, nil, "both go to standard output"},
		{[]string{"json=" + dir}, nil, "is a folder"},
		{[]string{"json=" + dir + "/none/x"}, nil, "there is no folder"},
	} {
		got, err := ParseOutputs(c.values)
		if c.fault != "" {
			if err == nil || !strings.Contains(err.Error(), c.fault) {
				t.Errorf("%q: error %v, want one with %q", c.values, err, c.fault)
			}
		} else if err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%q: got %v, %v; want %v", c.values, got, err, c.want)
		}
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("checking left %v behind", left)
	}
}

// A file is replaced whole or not at all.
func TestReplaceFile(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "out")
	write := func(text string, err error) error {
		return ReplaceFile(name, func(w io.Writer) error {
			_, _ = io.WriteString(w, text)
			return err
		})
	}
	if err := write("one", nil); err != nil {
		t.Fatal(err)
	}
	broken := errors.New("broken")
	if err := write("tw", broken); !errors.Is(err, broken) {
		t.Fatal(err)
	}
	if got, _ := os.ReadFile(name); string(got) != "one" {
		t.Errorf("after a failed write the file holds %q", got)
	}
	if err := write("three", nil); err != nil {
		t.Fatal(err)
	}
	if got, _ := os.ReadFile(name); string(got) != "three" {
		t.Errorf("the file holds %q", got)
	}
	if left, _ := os.ReadDir(dir); len(left) != 1 {
		t.Errorf("left behind: %v", left)
	}
}

func TestExpectations(t *testing.T) {
	c := newCounts()
	add := func(outcome targets.Outcome, took time.Duration) {
		c.add(scenarios.FailIfExists{}.Fates(&runner.Round{Ops: []runner.Exchange{{Op: targets.Op{Kind: targets.Write}, Reply: targets.Reply{Outcome: outcome}, Return: took}}}))
	}
	for i := range 30 {
		add(targets.OK, time.Duration(i+1)*time.Millisecond)
	}
	for range 70 {
		add(targets.Conflict, 5*time.Millisecond)
	}
	for _, e := range []struct {
		text, figure string
		met          bool
	}{
		{"p50(won)<=15ms", "15ms", true},
		{"p95(won)<29ms", "29ms", false},
		{"max(won)==30ms", "30ms", true},
		{"min(lost)>=5ms", "5ms", true},
		{"p99(won)<1h", "too few samples: 30", false},
		{"p50(aborted)<1h", "no sample", false},
		{"n(won)==30", "30", true},
		{"throttled == 0", "0", true},
		{"lost>=70%", "70%", true},
		{"lost>70%", "70%", false},
		{"won<30", "30", false},
	} {
		parsed, err := parseExpectation(e.text)
		if err != nil {
			t.Errorf("%s: %v", e.text, err)
			continue
		}
		if got := parsed.check(c); got.Met != e.met || got.Figure != e.figure {
			t.Errorf("%s: met %v with %s, want %v with %s", e.text, got.Met, got.Figure, e.met, e.figure)
		}
	}
	for _, text := range []string{"", "p98(won)<1s", "p99(wins)<1s", "p99(won)<1", "p99(won)=1s", "lost>x", "n(won)>50%", "won>1s", "p50(won)<1s extra"} {
		if _, err := parseExpectations([]string{text}); err == nil {
			t.Errorf("%q was accepted", text)
		}
	}
	if got := (expectation{text: "throttled==0", outcome: "throttled", operator: "=="}).check(newCounts()); got.Met {
		t.Error("an expectation is met although nobody contended")
	}
}

// Many samples go into a histogram, whose percentiles stay within its three
// digits of the exact nearest rank.
func TestManySamples(t *testing.T) {
	for _, n := range []int{exactSamples, exactSamples + 1, 200_000} {
		all, half := &samples{}, &samples{}
		var exact []time.Duration
		for i := range n {
			d := time.Duration(1+i*i%99_991) * time.Microsecond
			exact = append(exact, d)
			if i%2 == 0 {
				half.add(d)
			} else {
				all.add(d)
			}
		}
		all.merge(half)
		if all.n != n || (all.histogram != nil) != (n > exactSamples) {
			t.Fatalf("%d samples, histogram %v", all.n, all.histogram != nil)
		}
		for _, p := range []float64{50, 90, 95, 99} {
			got, _ := all.percentile(p)
			want := exactPercentile(exact, p)
			if ratio := float64(got) / float64(want); ratio < 0.999 || ratio > 1.001 {
				t.Errorf("%d samples: p%g is %s, exactly %s", n, p, got, want)
			}
		}
		l := all.latency(sampleKey{"won", "write", ""})
		if *l.Min != time.Microsecond || l.N != n || l.Method != map[bool]string{true: "hdr", false: "exact"}[n > exactSamples] {
			t.Errorf("%+v", l)
		}
	}
}

func exactPercentile(values []time.Duration, p float64) time.Duration {
	s := &samples{n: len(values), exact: values}
	d, _ := s.percentile(p)
	return d
}

// Twelve samples: the smallest percentiles are told, the others are dashes.
func TestFewSamples(t *testing.T) {
	s := &samples{}
	for i := range 12 {
		s.add(time.Duration(12-i) * time.Millisecond)
	}
	l := s.latency(sampleKey{"won", "write", ""})
	if *l.P50 != 6*time.Millisecond || *l.P90 != 11*time.Millisecond || l.P95 != nil || l.P99 != nil || *l.Max != 12*time.Millisecond {
		t.Errorf("%+v", l)
	}
}

// An expectation is refused, or checked against any counts.
func FuzzExpectation(f *testing.F) {
	for _, text := range []string{"p90(won)<250ms", "throttled==0", "lost>=90%", "n(won) <= 1e3", "max(lost)>1h", "p50(won)<", "won==NaN", "unknown>=-0%", "min(won)<9999999999h"} {
		f.Add(text)
	}
	c := newCounts()
	c.contenders = 2
	c.byFate[fateKey{"won", "write", "", 0}] = &Outcome{Outcome: "won", Count: 2}
	c.sample(sampleKey{"won", "write", ""}, time.Millisecond)
	f.Fuzz(func(t *testing.T, text string) {
		all, err := parseExpectations([]string{text})
		if err != nil {
			if !strings.HasPrefix(err.Error(), "--expect ") || strings.Contains(err.Error(), "strconv") {
				t.Errorf("error %q", err)
			}
			return
		}
		if got := all[0].check(c); got.Expr != text || got.Figure == "" {
			t.Errorf("%q: %+v", text, got)
		}
		if v := all[0].value; v != v {
			t.Errorf("%q is compared with no number", text)
		}
	})
}

// What -o takes is a known format, to standard output once at most.
func FuzzOutputs(f *testing.F) {
	for _, text := range []string{"json", "csv=x", "=", "table\njson", "quiet=\x00"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if strings.Contains(text, "/") {
			return // it would be tried whether a file can be made there
		}
		t.Chdir(t.TempDir())
		outputs, err := ParseOutputs(strings.Split(text, "\n"))
		standard := 0
		for _, o := range outputs {
			if o.File == "" {
				standard++
			}
			if !slices.Contains(formats, o.Format) {
				t.Errorf("format %q", o.Format)
			}
		}
		if err == nil && standard != 1 {
			t.Errorf("%q: %d outputs go to standard output", text, standard)
		}
		if left, _ := os.ReadDir("."); len(left) > 0 {
			t.Errorf("checking left %v behind", left)
		}
	})
}
