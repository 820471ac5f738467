package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"contend/runner"
)

func aTable() Table {
	at := time.Date(2026, 11, 30, 3, 0, 0, 5, time.UTC)
	return Table{Name: "things", Title: "2 things", Notes: []string{"a note"}, Also: map[string]any{"schema": "x/1"},
		Columns: []Column{{"key", "key"}, {"number", "n"}, {"for people", ""}, {"", "for_machines"}, {"at", "at"}, {"took", "took_ns"}, {"labels", "labels"}, {"yes", "yes"}},
		Rows: [][]any{
			{"a|b\x1b[31m", 7, "p", "m", at, 1500 * time.Millisecond, map[string]string{"b": "2", "a": "1"}, true},
			{"", 1234, "q", nil, time.Time{}, nil, map[string]string(nil), false},
		}}
}

func written(t *testing.T, format string, screen Screen) string {
	t.Helper()
	var b bytes.Buffer
	if err := WriteAll([]Output{{Format: format}}, aTable(), &b, screen); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestTableFormats(t *testing.T) {
	for format, want := range map[string]string{
		"table": "2 things\n\n" +
			" key         │ number │ for people │ at                  │ took │ labels   │ yes\n" +
			"─────────────┼────────┼────────────┼─────────────────────┼──────┼──────────┼─────\n" +
			" a|b\\x1b[31m │      7 │ p          │ 2026-11-30 03:00:00 │ 1.5s │ a=1, b=2 │ yes\n" +
			" –           │   1234 │ q          │ –                   │    – │ –        │ no\na note\n",
		"csv": "key,n,for_machines,at,took_ns,labels,yes\n" +
			"a|b\\x1b[31m,7,m,2026-11-30T03:00:00.000000005Z,1500000000,a=1;b=2,true\n,1234,,,,,false\n",
		"jira":  "h3. 2 things\n\n||key||number||for people||at||took||labels||yes||\n|a¦b\\\\x1b\\[31m|7|p|2026-11-30 03:00:00|1.5s|a=1, b=2|yes|\n",
		"quiet": "a|b\\x1b[31m\n–\n",
	} {
		if got := written(t, format, Screen{}); got != want && (format != "jira" || !strings.HasPrefix(got, want)) {
			t.Errorf("%s:\n%s\nwant:\n%s", format, got, want)
		}
	}
	if got := written(t, "markdown", Screen{}); !strings.Contains(got, `| a\|b\\x1b\[31m`) || !strings.Contains(got, "- a note\n") {
		t.Errorf("markdown:\n%s", got)
	}
	var got map[string]any
	if err := json.Unmarshal([]byte(written(t, "json", Screen{})), &got); err != nil {
		t.Fatal(err)
	}
	things, _ := got["things"].([]any)
	first, second := things[0].(map[string]any), things[1].(map[string]any)
	if len(things) != 2 || got["schema"] != "x/1" || first["key"] != "a|b\x1b[31m" || first["took_ns"] != 1.5e9 || first["at"] != "2026-11-30T03:00:00.000000005Z" ||
		second["at"] != nil || second["took_ns"] != nil || len(first) != 7 {
		t.Errorf("json: %v", got)
	}
}

// A row is a line where the width is not known, and keeps to it where it is.
func TestTableWidth(t *testing.T) {
	widest := func(text string) int {
		n := 0
		for line := range strings.Lines(text) {
			n = max(n, len([]rune(strings.TrimRight(line, "\n"))))
		}
		return n
	}
	if n := widest(written(t, "table", Screen{Width: 70})); n > 70 {
		t.Errorf("a line has %d columns of 70", n)
	}
	wide := aTable()
	wide.Rows[0][2] = strings.Repeat("word ", 40)
	var b bytes.Buffer
	if err := WriteAll([]Output{{Format: "table"}}, wide, &b, Screen{}); err != nil || strings.Count(b.String(), "\n") != 7 {
		t.Errorf("%v:\n%s", err, b.String())
	}
}

// A line does not break between a number and its sign.
func TestPerCentStaysWithItsNumber(t *testing.T) {
	for text, want := range map[string]string{
		"a rate over 22.3 % (95 % confidence)": "a rate over|22.3 % (95 %|confidence)", "% of it": "% of it", "over a 5 %; then": "over a 5 %;|then",
	} {
		if got := strings.Join(wrapTo(text, 13, ""), "|"); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
}

func TestStreamCSVStopsAtAnError(t *testing.T) {
	broken := errors.New("broken")
	var rows iter.Seq2[[]any, error] = func(yield func([]any, error) bool) {
		_ = yield([]any{"a"}, nil) && yield(nil, broken)
	}
	var b bytes.Buffer
	if err := StreamCSV(&b, []Column{{"k", "k"}}, rows); !errors.Is(err, broken) || b.String() != "k\na\n" {
		t.Errorf("%v: %q", err, b.String())
	}
}

// What people copy is whole on a narrow screen, and the rest gives way.
func TestCellsToCopyAreWhole(t *testing.T) {
	const id = "01M8P4QDXB77DTFBJ75KQR8WX4"
	list := Table{Name: "runs", Title: "1 run", Whole: []string{"run"}, Columns: []Column{{"run", "run"}, {"started UTC", "started"}, {"scenario", "scenario"},
		{"target", "target"}, {"verdict", "verdict"}, {"labels", "labels"}},
		Rows: [][]any{{id, time.Unix(1e9, 0), "duplicate-event", "postgres://somebody@db.example.com:5432/production (simulated)", "inconclusive", map[string]string{"site": "test", "night": "yes"}}}}
	for _, columns := range []int{0, 100, 80} {
		var b bytes.Buffer
		if err := writeTerminal(&b, list, Screen{Width: columns}); err != nil || !strings.Contains(b.String(), "\n "+id+" │") {
			t.Errorf("%d columns: %v:\n%s", columns, err, &b)
		}
		for line := range strings.Lines(b.String()) {
			if columns > 0 && len([]rune(line)) > columns+1 {
				t.Errorf("%d columns: %q", columns, line)
			}
		}
	}
}

// Without UTF-8 every sign, box and letter is ASCII, and the columns stand as they
// did.
func TestASCIIScreen(t *testing.T) {
	r := resultOf(t, "fail-if-exists", "sim:?latency=40ms&fault=two-winners", nil)
	r.Labels = map[string]string{"ort": "Köln ✓ █▓░· – … 本"}
	for _, format := range []string{"table", "quiet"} {
		var b bytes.Buffer
		if err := (Output{Format: format}).render(&b, r, Screen{ASCII: true, Width: 90}); err != nil {
			t.Fatal(err)
		}
		for i, c := range b.String() {
			if c > 126 {
				t.Fatalf("%s: %q is shown, in %q", format, c, b.String()[max(0, i-40):i+4])
			}
		}
		if format == "table" && (!strings.Contains(b.String(), `ort=K\u00f6ln + #=-. - ... \u672c`) || !strings.Contains(b.String(), " outcome | at ")) {
			t.Error(b.String())
		}
	}
	shown := document{title: "x", parts: []part{{plot: &plot{form: joined, y: axis{from: 0, to: 1}, series: []series{{points: []point{{0, 0}, {1, 1}, {2, 0.3}}}}}}}}.shown()
	var signs, ascii bytes.Buffer
	for b, screen := range map[*bytes.Buffer]Screen{&signs: {}, &ascii: {ASCII: true}} {
		if err := shown.writeTerminal(b, screen); err != nil {
			t.Fatal(err)
		}
	}
	if len([]rune(signs.String())) != len(ascii.String()) || !strings.ContainsAny(signs.String(), "╭╮╯╰") {
		t.Errorf("%s\n%s", &signs, &ascii)
	}
}

// Where the other witnesses are is said as it is.
func TestWitnessesAreWhereTheReportSays(t *testing.T) {
	r := resultOf(t, "fail-if-exists", "sim:?latency=40ms&fault=two-winners", nil)
	file := filepath.Join(t.TempDir(), "r.json")
	for _, c := range []struct {
		outputs []Output
		says    string
	}{
		{[]Output{{"table", ""}}, "-o json=FILE writes the witnesses."},
		{[]Output{{"table", ""}, {"json", file}}, "r.json has the witnesses."},
		{[]Output{{"json", ""}, {"markdown", file + ".md"}}, "the json output has the witnesses."},
	} {
		for _, p := range []Printable{r, &Suite{Runs: []SuiteRun{{Name: "x", Exit: 1, Result: &r}}}} {
			var b bytes.Buffer
			if err := WriteAll(c.outputs, p, &b, Screen{Width: 200}); err != nil {
				t.Fatal(err)
			}
			text, _ := os.ReadFile(file + ".md")
			if all := b.String() + string(text); !strings.Contains(strings.Join(strings.Fields(all), " "), c.says) {
				t.Errorf("%v: %s", c.outputs, all)
			}
		}
	}
	if r.JSONTo != "" {
		t.Error("the result itself was changed")
	}
}

// One thing is no plural, and a duration has no more digits than anybody reads.
func TestWordsForPeople(t *testing.T) {
	for text, want := range map[string]string{
		"held: 1 of 1 rounds contended": "held: 1 of 1 round contended", "1 rounds of 12, 21 requests": "1 round of 12, 21 requests", "11 rounds": "11 rounds",
		"violated in 1 of 20 rounds": "violated in 1 of 20 rounds", "after 1 requests": "after 1 request", "0.1 rounds": "0.1 rounds", "1 more rounds": "1 more round",
		"1 keys are known, 1 rounds were": "1 key is known, 1 round was", "1 of 1 rounds count as contended": "1 of 1 round counts as contended", "21 keys are": "21 keys are",
	} {
		if got := sentence(text); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
	for d, want := range map[time.Duration]string{
		9260945: "9.261ms", 471: "471ns", 305711079: "305.7ms", 10590: "10.59µs", 0: "0s", 59999999999: "1m0s", 90*time.Second + 1: "1m30s", -1234567: "-1.235ms",
	} {
		if got := short(d).String(); got != want {
			t.Errorf("%d is %s, want %s", d, got, want)
		}
	}
	r := resultOf(t, "fail-if-exists", "sim:?latency=40ms", func(f *RunHeader, p *runner.Plan) {
		f.Params.Rounds, p.Rounds, f.Params.Expect = 1, 1, []string{"p50(lost)<1h", "max(won)<1h"}
	})
	for _, format := range []string{"table", "markdown", "jira", "quiet"} {
		if text := render(t, format, r); strings.Contains(text, " 1 rounds") {
			t.Errorf("%s: %s", format, text)
		}
	}
}
