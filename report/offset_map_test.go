package report

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"contend/runner"
	"contend/scenarios"
)

// sweptResult is a sweep on a simulated target in virtual time.
func sweptResult(t *testing.T, url string, sweep runner.Sweep) Result {
	return resultOf(t, "version-cas", url, func(f *RunHeader, p *runner.Plan) {
		p.Contenders, p.Sweep, p.Rounds = 2, sweep, 2*sweep.Steps
		f.Params.Contenders, f.Params.Sweep, f.Params.Rounds = p.Contenders, p.Sweep, p.Rounds
	})
}

func TestOffsetMapIsShown(t *testing.T) {
	r := sweptResult(t, "sim:?latency=0&fault=gap=5ms", runner.Sweep{Most: 12 * time.Millisecond, Steps: 13})
	table := render(t, "table", r)
	for _, want := range []string{
		"VIOLATED in 10 of 26 rounds: two writes were accepted where only one may win; violations with the second released from -4.00 to +4.00 ms after the first",
		"Race window: the second contender released from 12ms before the first to 12ms after it",
		" -6.00 │ 2 │ 0 │ 0 % │ 100 % │ -6.00 │ 2 │ 0 %",
		" -4.00 │ 2 │ 0 │ 100 % │ 100 % │ -4.00 │ 2 │ 100 %",
		" +4.00 │ 2 │ 0 │ 100 % │ 100 % │ +4.00 │ 2 │ 100 %",
		" +6.00 │ 2 │ 0 │ 0 % │ 0 % │ +6.00 │ 2 │ 0 %",
		"% of the rounds violated, by how many ms after the first the second was released",
		" -12 -6 0 +6 +12",
	} {
		if !strings.Contains(strings.Join(strings.Fields(table), " "), strings.TrimSpace(want)) {
			t.Errorf("%q is not in\n%s", want, table)
		}
	}
	if strings.Contains(table, "violation rate") || strings.Contains(table, "raise --contenders") || strings.Contains(table, "may reach further") {
		t.Errorf("a rate over offsets of our choice, or advice that a sweep cannot take:\n%s", table)
	}
	for format, want := range map[string]string{"markdown": "```text\n 100", "jira": "{noformat}\n 100", "json": `"violated_from_ns": -4000000`, "quiet": "from -4.00 to +4.00 ms"} {
		if text := render(t, format, r); !strings.Contains(text, want) {
			t.Errorf("%s: %q is not in\n%s", format, want, text)
		}
	}
	if plain := ASCII(table); strings.Contains(plain, `\u`) {
		t.Errorf("a sign without a stand-in:\n%s", plain)
	}
	rows, err := csv.NewReader(strings.NewReader(render(t, "csv", r))).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	values := make(map[string]string)
	for _, row := range rows {
		values[row[5]] = row[11] + row[12]
	}
	for figure, want := range map[string]string{"violated at offset -4ms": "1share", "violated at offset 6ms": "0share", "violated when sent at offset 2ms": "1share",
		"second won at offset -12ms": "1share", "second won at offset 12ms": "0share", "sent apart p50 at offset -8ms": "-8000000ns"} {
		if values[figure] != want {
			t.Errorf("csv: %s is %q, want %q", figure, values[figure], want)
		}
	}
}

// The plot is of the second's wins where nothing was violated, and by the requests sent
// where a step is short; a window that fills the sweep may be larger.
func TestOffsetPlotShowsWhatThereIs(t *testing.T) {
	for _, c := range []struct {
		url  string
		most time.Duration
		want string
		not  string
	}{
		{"sim:?latency=0", 12 * time.Millisecond, "% of the rounds won by the second, by how many ms after the first the second was released", "may reach further"},
		{"sim:?latency=0", 12 * time.Microsecond, "% of the rounds won by the second, by how many ms after the first the second was sent", "may reach further"},
		{"sim:?latency=0&fault=gap", 12 * time.Microsecond, "% of the rounds violated, by how many ms after the first the second was sent", "won by"},
		{"sim:?latency=0&fault=gap", 4 * time.Millisecond, "it may reach further (raise --offset-sweep)", "won by"},
		{"sim:?latency=0&fault=two-winners", 12 * time.Millisecond, "it may reach further (raise --offset-sweep)", "won by"},
		{"sim:?latency=0", 12 * time.Millisecond, "No violation at any offset. Offset: of the release", "from"},
	} {
		r := sweptResult(t, c.url, runner.Sweep{Most: c.most, Steps: 13})
		p := r.offsetPart()
		picture := draw(p.plot)
		text := strings.Join(append(strings.Fields(picture), p.notes...), " ")
		if !strings.Contains(text, c.want) || strings.Contains(strings.ReplaceAll(text, "from the first's", ""), c.not) {
			t.Errorf("%s, %s: %q is not in, or %q is in\n%s", c.url, c.most, c.want, c.not, text)
		}
		if lines := strings.Split(strings.TrimSuffix(picture, "\n"), "\n"); len(lines) != plotRows+4 {
			t.Errorf("%s: a plot of %d lines:\n%s", c.url, len(lines), picture)
		}
	}
}

// A round without its offset, or with another, is not of the sweep; and there is no sweep
// of an even number of offsets.
func TestRecordOfAnotherSweep(t *testing.T) {
	sweep := runner.Sweep{Most: time.Millisecond, Steps: 3}
	at := func(d time.Duration) *time.Duration { return &d }
	for _, c := range []struct {
		sweep  runner.Sweep
		offset *time.Duration
		good   bool
	}{
		{sweep, at(-time.Millisecond), true},
		{runner.Sweep{}, nil, true},
		{sweep, nil, false},
		{sweep, at(0), false},
		{runner.Sweep{}, at(0), false},
	} {
		m, err := NewCollector(RunHeader{Scenario: "fail-if-exists", Params: Params{Sweep: c.sweep}})
		if err != nil {
			t.Fatal(err)
		}
		m.Observe(runner.Event{Round: &runner.Round{Number: 1, Key: "contend-01TEST-r1", Collection: scenarios.FailIfExists{}.Collection(), Offset: c.offset}})
		if got := m.Foreign(); (got == nil) != c.good || got != nil && !errors.Is(got, runner.ErrNotARecord) {
			t.Errorf("%+v, %v: %v", c.sweep, c.offset, got)
		}
	}
	if _, err := NewCollector(RunHeader{Scenario: "fail-if-exists", Params: Params{Sweep: runner.Sweep{Most: 1e6, Steps: 2}}}); !errors.Is(err, runner.ErrNotARecord) {
		t.Errorf("an impossible sweep: %v", err)
	}
}

// Progress of a sweep is of rounds raced: few count, and that ends nothing.
func TestProgressOfASweep(t *testing.T) {
	var b bytes.Buffer
	p := NewProgress(&b, false, "rounds", 42, 0)
	p.told = time.Time{}
	p.Observe(runner.Event{Round: &runner.Round{Number: 21}})
	if want := "contend: 21 of 42 rounds raced, after 0s\n"; b.String() != want {
		t.Errorf("%q, want %q", b.String(), want)
	}
	p.Counted, p.told = func() int { return 7 }, time.Time{}
	b.Reset()
	p.Observe(runner.Event{Round: &runner.Round{Number: 21}})
	if want := fmt.Sprintf("contend: 21 rounds raced, 7 of %d count, after 0s\n", 42); b.String() != want {
		t.Errorf("%q, want %q", b.String(), want)
	}
}
