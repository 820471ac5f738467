package report

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"contend/runner"
	"contend/scenarios"
	"contend/scenarios/stats"
	"contend/targets"
)

// aDocument has one of each thing that a look writes.
func aDocument() document {
	return document{status: scenarios.Violated, title: "T_1", lead: []string{"BAD: 1 rounds", "second"}, command: "contend x",
		parts: []part{
			{heading: "H*1", columns: []column{{head: "a|b"}, {head: "n", unit: numbers}}, rows: [][]any{{"x|y", 1}, {"", nil}}, notes: []string{"n_1"}},
			{heading: "None"},
			{heading: "Plot", plot: &plot{form: apart, low: true, y: axis{from: -openEnd, to: openEnd, write: digits(0)}, series: []series{{points: []point{{0, 10}, {1, 16}}}}}},
			{notes: []string{"last"}},
		}}
}

const aPicture = " 16 ┤╭\n 15 ┤│\n 14 ┤│\n 13 ┤│\n 12 ┤│\n 11 ┤│\n 10 ┼╯\n"

// The three looks for people have the same things in the same order.
func TestLooksOfADocument(t *testing.T) {
	var table, md, wiki bytes.Buffer
	if err := aDocument().shown().writeTerminal(&table, Screen{}); err != nil {
		t.Fatal(err)
	}
	if err := markdown.page(&md, aDocument().shown()); err != nil {
		t.Fatal(err)
	}
	if err := jira.page(&wiki, aDocument().shown()); err != nil {
		t.Fatal(err)
	}
	for format, c := range map[string]struct{ got, want string }{
		"table": {table.String(), "T_1\nBAD: 1 round\nsecond\n\nH*1\n a|b │ n\n─────┼───\n x|y │ 1\n –   │ –\nn_1\n\nNone\nnone\n\nPlot\n" + aPicture + "\nlast\n\nCommand\ncontend x\n"},
		"markdown": {md.String(), "## T\\_1\n\n**BAD: 1 round**\n\nsecond\n\n### H\\*1\n\n| a\\|b | n |\n|:-----|--:|\n| x\\|y | 1 |\n| –    | – |\n\n- n\\_1\n\n### None\n\n### Plot\n\n```text\n" +
			aPicture + "```\n\n- last\n\n### Command\n\n```sh\ncontend x\n```\n"},
		"jira": {wiki.String(), "h3. T_1\n\n*BAD: 1 round*\n\nsecond\n\nh4. H\\*1\n\n||a¦b||n||\n|x¦y|1|\n|–|–|\n\n* n_1\n\nh4. None\n\nh4. Plot\n\n{noformat}\n" +
			aPicture + "{noformat}\n\n* last\n\nh4. Command\n\n{noformat}\ncontend x\n{noformat}\n"},
	} {
		if c.got != c.want {
			t.Errorf("%s:\n%s\nwant\n%s", format, c.got, c.want)
		}
	}
}

// The verdict is coloured, and nothing else, by what it is.
func TestOnlyTheVerdictIsColoured(t *testing.T) {
	for status, code := range map[scenarios.Status]string{scenarios.Held: "32", scenarios.Violated: "31", scenarios.Inconclusive: "33", "": "33"} {
		d := aDocument()
		d.status = status
		var b bytes.Buffer
		if err := d.shown().writeTerminal(&b, Screen{Colour: true}); err != nil {
			t.Fatal(err)
		}
		if want := "\x1b[1;" + code + "mBAD: 1 round\x1b[0m\nsecond\n"; strings.Count(b.String(), "\x1b") != 2 || !strings.Contains(b.String(), want) {
			t.Errorf("%s: %q", status, b.String()[:60])
		}
	}
}

// A line keeps to its width: it breaks at spaces, and in a word that is wider than all.
func TestLinesAreCutAtTheirWidth(t *testing.T) {
	for _, c := range []struct {
		text   string
		width  int
		indent string
		want   string
	}{
		{"one two three", 7, "", "one two|three"}, {"one two three", 7, "  ", "one two|  three"}, {"", 7, "", ""}, {"abcdefghij", 4, "", "abcd|efgh|ij"},
		{"x abcdefghij", 4, " ", "x| abc| def| ghi| j"}, {"größer als", 6, "", "größer|als"}, {"a  b", 9, "", "a b"},
	} {
		got := wrapTo(c.text, c.width, c.indent)
		if strings.Join(got, "|") != c.want {
			t.Errorf("%q to %d: %q, want %s", c.text, c.width, got, c.want)
		}
		for _, line := range got {
			if len([]rune(line)) > c.width {
				t.Errorf("%q is wider than %d", line, c.width)
			}
		}
	}
}

// In a table that is too wide the widest column gives way, but not one that is to be
// copied, and none below what can be read.
func TestWidestColumnGivesWay(t *testing.T) {
	cells := table{header: []string{"a", "b"}, right: make([]bool, 2), whole: make([]bool, 2), rows: [][]string{{"short", "a text that is much too wide"}}}
	fitted := fit(cells, 30)
	if got := fitted.rows[0]; got[0] != "short" || got[1] != "a text that is much\ntoo wide" {
		t.Errorf("%q", got)
	}
	if got := fit(cells, 5).rows[0][1]; got != "a text\nthat\nis\nmuch\ntoo\nwide" {
		t.Errorf("%q", got)
	}
	cells.whole[1] = true
	if got := fit(cells, 5).rows[0]; got[1] != cells.rows[0][1] {
		t.Errorf("a cell to copy is broken: %q", got)
	}
	if got := fit(cells, 100); !slices.Equal(got.rows[0], cells.rows[0]) {
		t.Errorf("%q", got.rows)
	}
}

func TestWidthOfAScreen(t *testing.T) {
	check(t, "columns", func(width int) string { return strings.Repeat("x", Screen{Width: width}.columns()) },
		map[int]string{0: strings.Repeat("x", 100), 20: strings.Repeat("x", 60), 80: strings.Repeat("x", 80), 300: strings.Repeat("x", 100)})
}

// What a store sent cannot move the cursor, hide, or turn the direction of a text.
func TestControlCharactersAreShown(t *testing.T) {
	check(t, "OneLine", OneLine, map[string]string{
		"a\x1b[2Jb": `a\x1b[2Jb`, "a\tb": `a\tb`, "a\x00b": `a\x00b`, "a\u202eb": `a\u202eb`, "a\u200bb": `a\u200bb`, "a\ufeffb": `a\ufeffb`, "a\u00a0b": `a\u00a0b`,
		"a\nb": "a b", "a\r\n\nb": "a b", "\na": "a", "a\xffb": "a\ufffdb", "größe ✓ 本": "größe ✓ 本", "'": "'", `\`: `\`, "\x7f": `\x7f`, "": "", "\u2028": `\u2028`,
	})
	check(t, "Lines", Lines, map[string]string{"a\nb\x07": "a\nb\\a", "a\rb": `a\rb`})
	shown := document{title: "a\nb", lead: []string{"a\nb"}, command: "a\nb", parts: []part{{heading: "a\nb", columns: plainColumns("a\nb"), rows: [][]any{{"a\nb"}}, notes: []string{"a\nb"}}}}.shown()
	for _, text := range []string{shown.title, shown.lead[0], shown.command, shown.blocks[0].heading, shown.blocks[0].table.header[0], shown.blocks[0].table.rows[0][0], shown.blocks[0].text[0]} {
		if text != "a b" {
			t.Errorf("a text of two lines is shown as %q", text)
		}
	}
	check(t, "ASCII", ASCII, map[string]string{"✓ ✗ – … µs │ ▲": "+ x - ... us | ^", "ö": `\u00f6`, "a~": "a~", "\x7f": `\x7f`})
}

// What ends a cell, a fence or a line in a markup is not left as it is.
func TestTextsDoNotEndTheirCell(t *testing.T) {
	check(t, "markdown", markdownText, map[string]string{"a|b": `a\|b`, "a\nb": "a<br>b", "a\r\nb": "a<br>b", "a\rb": "a<br>b", "<b>&": "&lt;b&gt;&amp;", "`": "\\`", "~x~": `\~x\~`, `\`: `\\`})
	check(t, "jira", jiraText, map[string]string{"a|b": "a¦b", "a\nb": "a b", "a\r\nb": "a  b", "!x!": `\!x\!`, "a?b": "a?b", "^": `\^`, "~a": `\~a`, `\`: `\\`})
	check(t, "a cell of Jira", jiraCell, map[string]string{"": " ", "x": "x"})
	check(t, "fence", fence, map[string]string{"x": "```sh\nx\n```\n", "a```b": "````sh\na```b\n````\n", "`````": "``````sh\n`````\n``````\n"})
	if got := jira.code("a {noformat} b"); got != "{noformat}\na {no''format} b\n{noformat}\n" {
		t.Error(got)
	}
	check(t, "csvText", csvText, map[string]string{"a;b": "a;b", "\u2028=1": `\u2028=1`, "＠x": "'＠x", "1-2": "1-2"})
	check(t, "csvLabels", func(name string) string { return csvLabels(map[string]string{name: "v", "z": "=1"}) }, map[string]string{"a": "a=v;z==1", "=a": "'=a=v;z==1"})
}

// The value of a figure is a number, or a text that a spreadsheet shows as it is.
func TestValuesOfFigures(t *testing.T) {
	for _, c := range []struct {
		value any
		want  string
	}{
		{nil, ""}, {12, "12"}, {int64(-3), "-3"}, {1.0 / 3, "0.333333"}, {1e-9, "1e-09"}, {0.0, "0"}, {true, "true"}, {time.Millisecond, "1000000"}, {-time.Millisecond, "-1000000"},
		{"held", "held"}, {"-9", "-9"}, {"-9a", "'-9a"}, {"=1", "'=1"}, {"1e5", "1e5"}, {"+1", "'+1"}, {"", ""},
	} {
		if got := csvValue(c.value); got != c.want {
			t.Errorf("%v: %q, want %q", c.value, got, c.want)
		}
	}
}

// A row of a stored run has a cell for each column, and the medians that a trend takes.
func TestRowOfAStoredRun(t *testing.T) {
	r := aRacedResult()
	r.Latency = append(r.Latency, Latency{Outcome: "lost", At: "read", P50: ptr(time.Second)}, Latency{Outcome: "lost", At: "write", P50: ptr(time.Millisecond)})
	r.Outcomes = append(r.Outcomes, Outcome{Outcome: "throttled", Code: "a", Count: 2}, Outcome{Outcome: "throttled", Code: "b", Count: 3})
	cells := make(map[string]string)
	row := RunRow(r)
	for i, c := range RunColumns() {
		cells[c.Name] = forMachines(row[i])
	}
	for name, want := range map[string]string{"run": "01T", "verdict": "held", "rounds": "25", "contended_rounds": "20", "winners_min": "0", "winners_max": "2",
		"lost_p50_ns": "1000000", "won_p50_ns": "", "throttled": "5", "elapsed_ns": "1234567890", "requests": "321"} {
		if cells[name] != want {
			t.Errorf("%s is %q, want %q", name, cells[name], want)
		}
	}
	if len(row) != len(RunColumns()) {
		t.Errorf("%d cells in %d columns", len(row), len(RunColumns()))
	}
}

// A row of a key has its ages for people and for machines; one that is closed has no next
// question, and one that is not wanted no row.
func TestRowsOfStoredKeys(t *testing.T) {
	run := aWatch(0, [2]float64{10, 20}, [2]float64{1.23456, 0})
	run.Ghosts[0].Granted, run.Ghosts[1].Due = 31*time.Second, time.Hour
	columns := GhostColumns()
	rows := GhostRows(run.Ghosts, func(*runner.Ghost) bool { return true })
	cell := func(row int, head, name string) any {
		return rows[row][slices.IndexFunc(columns, func(c Column) bool { return c.Head == head && c.Name == name })]
	}
	if len(rows) != 2 || len(rows[0]) != len(columns) {
		t.Fatalf("%d rows of %d cells", len(rows), len(rows[0]))
	}
	for i, want := range map[int][]any{0: {"W000-0", false, 31 * time.Second, time.Time{}}, 1: {"W000-1", true, nil, firstNight.Add(time.Hour)}} {
		if got := []any{cell(i, "key", "key"), cell(i, "", "open"), cell(i, "", "granted_ns"), cell(i, "next due UTC", "next_due")}; !slices.Equal(got, want) {
			t.Errorf("%v, want %v", got, want)
		}
	}
	if cell(1, "first free", "") != nil || cell(1, "last blocked", "") == cell(1, "", "last_blocked_ns") || cell(1, "last blocked", "") != stats.Coarse(cell(1, "", "last_blocked_ns").(time.Duration)) {
		t.Errorf("%v", rows[1])
	}
	if rows := GhostRows(run.Ghosts, func(g *runner.Ghost) bool { return !g.Closed }); len(rows) != 1 || rows[0][0] != "W000-1" {
		t.Errorf("%v", rows)
	}
}

// The median of an outcome is of its writes; next to the store where that was measured.
func TestMedianOfAnOutcome(t *testing.T) {
	read, write, server := Latency{Outcome: "won", At: "read", P50: ptr(1 * time.Second)}, Latency{Outcome: "won", At: "write", P50: ptr(2 * time.Second)},
		Latency{Outcome: "won", At: "write", Where: "server", P50: ptr(3 * time.Second)}
	for want, latency := range map[time.Duration][]Latency{0: {read}, 2 * time.Second: {read, write}, 3 * time.Second: {server, write}} {
		got := medianOf(latency, "won")
		if (got == nil) != (want == 0) || got != nil && *got != want {
			t.Errorf("%v, want %s", got, want)
		}
	}
	if medianOf([]Latency{write}, "lost") != nil || counted([]Outcome{{Outcome: "throttled", Count: 2}}, targets.Throttled) != 2 {
		t.Error("an outcome counts for another")
	}
}
