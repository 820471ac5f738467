package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"contend/runner"
	"contend/scenarios"
	"contend/targets"
)

var firstNight = time.Date(2026, 3, 1, 3, 0, 0, 0, time.UTC)

// aRace is a run of a night, with these medians in milliseconds.
func aRace(night int, won, lost float64) TrendRun {
	ms := func(v float64) *time.Duration { d := time.Duration(v * 1e6); return &d }
	return TrendRun{RunHeader: RunHeader{Run: fmt.Sprintf("R%03d", night), Scenario: "fail-if-exists", Started: firstNight.AddDate(0, 0, night),
		Params: Params{Contenders: 12, ExpectVerdict: "held"}, Tool: Tool{Version: "v1", Go: "go1.26"},
		Target: Target{Kind: "redis", URL: "redis://a:6379", Server: "Redis 7", Strategy: map[string]string{"create": "nx"}}},
		Rounds: 20, Winners: scenarios.Winners{Min: 1, Max: 1, One: 20}, Verdict: TrendVerdict{Status: scenarios.Held},
		Latency: []Latency{{Outcome: "won", At: "write", P50: ms(won)}, {Outcome: "lost", At: "write", P50: ms(lost)}}}
}

// aWatch is a run with keys that were seen blocked and then free at these ages, in
// seconds; 0: not seen.
func aWatch(night int, ages ...[2]float64) TrendRun {
	r := aRace(night, 1, 1)
	r.Run, r.Scenario, r.Winners, r.Latency, r.Verdict.Status = fmt.Sprintf("W%03d", night), "ttl-ghost", scenarios.Winners{}, nil, scenarios.Violated
	r.Params.ExpectVerdict = "violated"
	for i, age := range ages {
		g := &runner.Ghost{Run: r.Run, Target: r.Target.URL, Key: fmt.Sprintf("%s-%d", r.Run, i), Arm: scenarios.WriteArm, Epoch: r.Started,
			Terms: runner.GhostTerms{TTL: 30 * time.Second, Tolerance: time.Second}, State: runner.GhostBlocked, Created: &runner.Observation{}}
		at := func(seconds float64, o targets.Outcome) *runner.Observation {
			if seconds == 0 {
				return nil
			}
			d := 30*time.Second + time.Duration(seconds*1e9)
			return &runner.Observation{Call: d, Return: d, Outcome: o}
		}
		g.LastBlocked, g.FirstFree = at(age[0], targets.Conflict), at(age[1], targets.OK)
		if g.Closed = g.FirstFree != nil; g.Closed {
			g.State = runner.GhostFree
		}
		r.Ghosts = append(r.Ghosts, g)
	}
	return r
}

func only(t *testing.T, report TrendReport) TrendSeries {
	t.Helper()
	if len(report.Series) != 1 {
		t.Fatalf("%d series, want 1: %+v", len(report.Series), report.Series)
	}
	return report.Series[0]
}

// What cannot be compared is not in one series.
func TestTrendSeries(t *testing.T) {
	base := aRace(0, 50, 50)
	for name, change := range map[string]func(*TrendRun){
		"scenario":   func(r *TrendRun) { r.Scenario = "version-cas" },
		"target":     func(r *TrendRun) { r.Target.URL = "redis://b:6379" },
		"strategy":   func(r *TrendRun) { r.Target.Strategy = map[string]string{"create": "watch"} },
		"contenders": func(r *TrendRun) { r.Params.Contenders = 2 },
		"unguarded":  func(r *TrendRun) { r.Params.Unguarded = true },
		"stagger":    func(r *TrendRun) { r.Params.Stagger = time.Millisecond },
		"sweep":      func(r *TrendRun) { r.Params.Sweep = runner.Sweep{Most: time.Millisecond, Steps: 21} },
		"steps":      func(r *TrendRun) { r.Params.Sweep = runner.Sweep{Most: time.Millisecond, Steps: 3} },
		"value size": func(r *TrendRun) { r.Params.ValueSize = 1000 },
		"option":     func(r *TrendRun) { r.Params.Options = json.RawMessage(`{"guard":"version","gap_ns":5000000}`) },
		"TTL":        func(r *TrendRun) { r.Params.Options = json.RawMessage(`{"ttl_ns":1000000000}`) },
	} {
		other := aRace(1, 50, 50)
		change(&other)
		report := Trend([]TrendRun{other, base})
		if len(report.Series) != 2 || report.Series[0].Title() == report.Series[1].Title() {
			t.Errorf("another %s: %d series: %+v", name, len(report.Series), report.Series)
		}
	}
	// These may be compared.
	for name, change := range map[string]func(*TrendRun){
		"rounds": func(r *TrendRun) { r.Params.Rounds = 100 }, "server": func(r *TrendRun) { r.Target.Server = "Redis 8" },
		"seed": func(r *TrendRun) { r.Params.Seed = "7" }, "label": func(r *TrendRun) { r.Labels = map[string]string{"a": "b"} },
	} {
		other := aRace(1, 50, 50)
		change(&other)
		if s := only(t, Trend([]TrendRun{other, base})); len(s.Nights) != 2 || s.Nights[0].Night != "2026-03-01" {
			t.Errorf("another %s: %+v", name, s)
		}
	}
}

func TestTrendNight(t *testing.T) {
	a, b, c, next := aRace(0, 50, 40), aRace(0, 70, 60), aRace(0, 60, 80), aRace(0, 1, 1)
	a.Started = time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	b.Run, b.Winners, b.Outcomes = "R-b", scenarios.Winners{Min: 0, Max: 2, None: 1, One: 18, Several: 1}, []Outcome{{Outcome: "throttled", Count: 3}, {Outcome: "won", Count: 19}}
	c.Run, c.Winners, c.Verdict = "R-c", scenarios.Winners{Min: 1, Max: 1, One: 20}, TrendVerdict{Status: scenarios.Violated, ViolatedRounds: 1}
	// On the last moment of the day, told by another clock.
	c.Started = time.Date(2026, 3, 2, 4, 59, 59, 0, time.FixedZone("", 5*3600))
	next.Run, next.Started = "R-next", time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC)
	s := only(t, Trend([]TrendRun{c, next, a, b}))
	if len(s.Nights) != 2 {
		t.Fatalf("%d nights: %+v", len(s.Nights), s.Nights)
	}
	n := s.Nights[0]
	if n.Night != "2026-03-01" || !slices.Equal(n.Runs, []string{"R000", "R-b", "R-c"}) || n.Verdict != scenarios.Violated || n.Violated != 1 ||
		n.Rounds != 60 || n.ViolatedRounds != 1 || *n.WinnersMin != 0 || *n.WinnersMax != 2 || *n.Won != 60*time.Millisecond || *n.Lost != 60*time.Millisecond || n.Throttled != 3 {
		t.Errorf("%+v", n)
	}
	if want := "violated in 1 of 20 rounds (run R-c)"; len(n.Alarms) != 1 || n.Alarms[0] != want {
		t.Errorf("alarms %q, want %q", n.Alarms, want)
	}
}

// Of an even number of medians the lower one of the two in the middle is taken, one that
// was measured.
func TestMiddleWasMeasured(t *testing.T) {
	for want, all := range map[time.Duration][]time.Duration{0: nil, 7: {7}, 5: {9, 5}, 6: {9, 6, 5}, 3: {1, 9, 4, 3}} {
		got := middle(all)
		if (got == nil) != (len(all) == 0) || got != nil && *got != want {
			t.Errorf("of %v it is %v, want %v", all, got, want)
		}
	}
}

// Next to the store there is no wait for the common instant.
func TestTrendOfARelayedTarget(t *testing.T) {
	r := aRace(0, 50, 40)
	server := aRace(0, 7, 6).Latency
	for i := range server {
		server[i].Where = "server"
	}
	for _, latency := range [][]Latency{slices.Concat(server, r.Latency), slices.Concat(r.Latency, server)} {
		r.Latency = latency
		if n := only(t, Trend([]TrendRun{r})).Nights[0]; *n.Won != 7*time.Millisecond || *n.Lost != 6*time.Millisecond {
			t.Errorf("won %s, lost %s", *n.Won, *n.Lost)
		}
	}
}

func TestTrendTitle(t *testing.T) {
	r := aRace(0, 50, 50)
	r.Target.Simulated, r.Params.Unguarded, r.Params.Stagger, r.Params.ValueSize = true, true, time.Millisecond, 1000
	r.Params.Options = json.RawMessage(`{"guard":"version","gap_ns":5000000}`)
	s := only(t, Trend([]TrendRun{r}))
	if want := "fail-if-exists on redis://a:6379 (simulated), create=nx, 12 contenders, unguarded, stagger 1ms, 1000 bytes, gap 5ms, guard version"; s.Title() != want {
		t.Errorf("%s\nwant %s", s.Title(), want)
	}
}

// What is known to be broken alarms nobody.
func TestTrendAlarmsOnViolation(t *testing.T) {
	for name, c := range map[string]struct {
		expect   string
		expected bool
		want     int
	}{
		"not expected": {"held", false, 1}, "expected": {"violated", false, 0}, "unguarded": {"held", true, 0},
	} {
		r := aRace(0, 50, 50)
		r.Params.ExpectVerdict, r.Verdict = c.expect, TrendVerdict{scenarios.Violated, 3, c.expected}
		report := Trend([]TrendRun{r})
		if got := len(report.Alarms(report.Latest())); got != c.want {
			t.Errorf("%s: %d alarms, want %d", name, got, c.want)
		}
	}
}

// Keys count for the night that made them, however late they end, and those of
// which nothing is known do not count.
func TestTrendSweep(t *testing.T) {
	first := aWatch(0, [2]float64{100, 120}, [2]float64{90, 110}, [2]float64{50, 60}, [2]float64{3 * 86400, 3*86400 + 600})
	second := aWatch(0, [2]float64{300, 0})
	second.Run = "W-second"
	abandoned := *first.Ghosts[0]
	abandoned.State, abandoned.LastBlocked, abandoned.FirstFree = runner.GhostAbandoned, &runner.Observation{Call: 1e18, Return: 1e18}, nil
	once := *first.Ghosts[0]
	once.Arm, once.LastBlocked = scenarios.OnceArm, &runner.Observation{Call: 1e17, Return: 1e17}
	read := *first.Ghosts[0]
	read.Arm, read.LastBlocked = scenarios.ReadArm, &runner.Observation{Call: 1e17, Return: 1e17}
	second.Ghosts = append(second.Ghosts, &abandoned, &once, &read)
	for i, g := range second.Ghosts {
		g.Run, g.Key = second.Run, fmt.Sprint("second-", i)
	}
	s := only(t, Trend([]TrendRun{first, second, aWatch(1, [2]float64{10, 20})}))
	n := s.Nights[0]
	if n.Keys != 5 || n.Open != 1 || n.Sweep == nil || n.Sweep.From != 100*time.Second || n.Sweep.To != 110*time.Second ||
		*n.Longest != 72*time.Hour || *n.LongestFree != 72*time.Hour+10*time.Minute || len(n.Alarms) != 0 {
		t.Errorf("%+v, %+v", n, n.Sweep)
	}
	if n := s.Nights[1]; n.Keys != 1 || n.Sweep.From != 10*time.Second || s.Terms.TTL != 30*time.Second || s.Terms.Tolerance != time.Second {
		t.Errorf("%+v, %+v", n, s.Terms)
	}
}

// A run that was killed counts where runs like it do.
func TestTrendOfAKilledRun(t *testing.T) {
	killed := aWatch(1, [2]float64{10, 20})
	killed.Killed, killed.Verdict, killed.RunHeader = true, TrendVerdict{}, RunHeader{Run: killed.Run, Scenario: killed.Scenario, Started: killed.Started, Target: Target{URL: killed.Target.URL}}
	s := only(t, Trend([]TrendRun{killed, aWatch(0, [2]float64{10, 20}), aWatch(2, [2]float64{10, 20})}))
	if len(s.Nights) != 3 || s.Nights[1].Keys != 1 || s.Nights[1].Verdict != "" || len(s.Nights[1].Changes)+len(s.Nights[2].Changes) > 0 {
		t.Errorf("%+v", s.Nights)
	}
	if s := only(t, Trend([]TrendRun{killed})); len(s.Nights) != 1 {
		t.Errorf("alone: %+v", s)
	}
}

func TestTrendChanges(t *testing.T) {
	runs := []TrendRun{aRace(0, 50, 50), aRace(1, 50, 50), aRace(4, 50, 50), aRace(5, 50, 50)}
	runs[2].Target.Server = "Redis 8"
	runs[3].Target.Server, runs[3].Tool.Version, runs[3].Target.Kind, runs[3].Tool.Go = "Redis 8", "v2", "valkey", "go1.27"
	report := Trend(runs)
	var got []string
	for _, m := range report.Changes(firstNight) {
		got = append(got, m.Night+" "+m.Text)
	}
	want := []string{"2026-03-05 server: Redis 7 → Redis 8", "2026-03-06 kind of target: redis → valkey", "2026-03-06 contend: v1 → v2", "2026-03-06 Go: go1.26 → go1.27"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
	if n := len(report.Changes(report.Latest())); n != 3 {
		t.Errorf("%d changes on the latest night, want 3", n)
	}
	if m := report.Changes(report.Latest())[0].String(); m != "fail-if-exists on redis://a:6379, create=nx, 12 contenders, night of 2026-03-06: kind of target: redis → valkey" {
		t.Error(m)
	}
}

// drifting gives nights with a noise of 8 %, shifted by a factor from one night
// on, with some nights missing.
func drifting(nights, from int, factor float64) []TrendRun {
	random := rand.New(rand.NewPCG(3, 4))
	var runs []TrendRun
	for n := range nights {
		noise, scale := math.Exp(0.08*random.NormFloat64()), 1.0
		if n >= from {
			scale = factor
		}
		if n%10 == 7 {
			continue
		}
		runs = append(runs, aRace(n, 50, 50*noise*scale), aWatch(n, [2]float64{100 * noise * scale, 101 * noise * scale}))
	}
	return runs
}

func TestTrendDrift(t *testing.T) {
	quiet := Trend(drifting(80, 80, 1))
	if alarms := quiet.Alarms(time.Time{}); len(alarms) != 0 {
		t.Errorf("quiet nights alarm: %v", alarms)
	}
	report := Trend(drifting(80, 60, 1.4))
	shift := firstNight.AddDate(0, 0, 60).Format(dayFormat)
	for i, what := range []string{"median latency of lost has drifted up: ", "median delay until expired keys are free has drifted up: "} {
		s := report.Series[i]
		at := slices.IndexFunc(s.Nights, func(n TrendNight) bool { return len(n.Alarms) > 0 })
		if at < 0 || s.Nights[at].Night < shift || s.Nights[at].Night > "2026-05-06" || !strings.HasPrefix(s.Nights[at].Alarms[0], what) {
			t.Errorf("%s: the first alarm is on night %d: %+v", what, at, s.Nights[max(0, at)])
		}
	}
	for _, m := range report.Alarms(time.Time{}) {
		if strings.Contains(m.Text, "won") {
			t.Errorf("what did not change drifts: %v", m)
		}
	}
	// Keys that are not freed any more drift up as well.
	runs := drifting(80, 80, 1)
	for i := range runs {
		if runs[i].Scenario == "ttl-ghost" && runs[i].Started.After(firstNight.AddDate(0, 0, 60)) {
			runs[i].Ghosts = aWatch(0, [2]float64{1000, 0}).Ghosts
		}
	}
	if alarms := Trend(runs).Alarms(time.Time{}); len(alarms) == 0 || !strings.Contains(alarms[0].Text, "drifted up: 16m40s") {
		t.Errorf("keys that stay: %v", alarms)
	}
}

func trendText(t *testing.T, report TrendReport, format string) string {
	t.Helper()
	var b bytes.Buffer
	if err := WriteAll([]Output{{Format: format}}, report, &b, Screen{}); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestTrendForPeople(t *testing.T) {
	runs := []TrendRun{aRace(0, 50, 40), aRace(1, 52, 41), aRace(2, 51, 42), aRace(6, 90, 80), aRace(7, 50, 41), aRace(9, 50, 40)}
	runs[3].Target.Server, runs[4].Target.Server, runs[5].Target.Server = "Redis 8", "Redis 8", "Redis 8"
	runs[5].Verdict = TrendVerdict{Status: scenarios.Violated, ViolatedRounds: 2}
	runs[5].Winners.Max = 2
	report := Trend(runs)
	want := `Trend of fail-if-exists on redis://a:6379, create=nx, 12 contenders
ALARM on 2026-03-10: violated in 2 of 20 rounds (run R009)
6 nights with a run, of 10 since 2026-03-01

Night by night (UTC)
 night               │ runs │ verdict  │ rounds │ violated │ winners │ won ms │ lost ms │ throttled │
─────────────────────┼──────┼──────────┼────────┼──────────┼─────────┼────────┼─────────┼───────────┼───
 2026-03-01          │    1 │ held     │     20 │        0 │       1 │   50.0 │    40.0 │         0 │
 2026-03-02          │    1 │ held     │     20 │        0 │       1 │   52.0 │    41.0 │         0 │
 2026-03-03          │    1 │ held     │     20 │        0 │       1 │   51.0 │    42.0 │         0 │
 2026-03-04 to 03-06 │    0 │ –        │      – │        – │       – │      – │       – │         – │
 2026-03-07          │    1 │ held     │     20 │        0 │       1 │   90.0 │    80.0 │         0 │ ◆
 2026-03-08          │    1 │ held     │     20 │        0 │       1 │   50.0 │    41.0 │         0 │
 2026-03-09          │    0 │ –        │      – │        – │       – │      – │       – │         – │
 2026-03-10          │    1 │ violated │     20 │        2 │  1 to 2 │   50.0 │    40.0 │         0 │ ▲

Median latency of won
`
	got := trendText(t, report, "table")
	if !strings.HasPrefix(got, want) {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
	// Between the third night and the seventh nothing is drawn, and the marks stand
	// below their nights.
	plot := got[len(want):]
	plot = plot[:strings.Index(plot, "\n\n")]
	var axis int
	for line := range strings.Lines(plot) {
		cells := []rune(strings.TrimRight(line, "\n"))
		if at := slices.IndexFunc(cells, func(r rune) bool { return r == '┤' || r == '┼' }); at >= 0 {
			axis = at
			for x := at + 4; x < min(len(cells), at+6); x++ {
				if cells[x] != ' ' {
					t.Errorf("%q is drawn in a gap:\n%s", string(cells[x]), plot)
				}
			}
		} else if strings.Contains(line, alarmMark) && !strings.Contains(line, "alarm") {
			if string(cells) != strings.Repeat(" ", axis+6)+"◆  ▲" {
				t.Errorf("marks are not below their nights:\n%s", plot)
			}
		}
	}
	if !strings.Contains(plot, "◆  ▲\n2026-03-01 to 2026-03-10, a column a night; ▲ alarm, ◆ change.") || !strings.Contains(plot, "90.0 ms") {
		t.Errorf("the plot is\n%s", plot)
	}
	if !strings.HasSuffix(got, "Alarms and changes\n2026-03-07 ◆ server: Redis 7 → Redis 8\n2026-03-10 ▲ violated in 2 of 20 rounds (run R009)\n") {
		t.Errorf("got:\n%s", got)
	}
	if got := trendText(t, report, "markdown"); !strings.Contains(got, "```text\n") || !strings.Contains(got, "| 2026-03-10 ") {
		t.Errorf("markdown:\n%s", got)
	}
	report.Shown = 3
	if got := trendText(t, report, "table"); strings.Contains(got, "2026-03-07 ") || !strings.Contains(got, "\n 2026-03-08 ") ||
		!strings.Contains(got, "of 10 since 2026-03-01") {
		t.Errorf("the last 3 nights:\n%s", got)
	}
	if got := trendText(t, report, "quiet"); got != "fail-if-exists on redis://a:6379, create=nx, 12 contenders: 6 nights, 2026-03-10 violated, "+
		"median latency of won 50.0 ms, median latency of lost 40.0 ms; alarm: violated in 2 of 20 rounds (run R009)\n" {
		t.Error(got)
	}
	if got := trendText(t, TrendReport{}, "table"); !strings.HasPrefix(got, "No runs were stored") {
		t.Error(got)
	}
}

func TestTrendForMachines(t *testing.T) {
	report := Trend([]TrendRun{aRace(0, 50, 40), aWatch(1, [2]float64{100, 0}), aWatch(2, [2]float64{100, 120})})
	report.Shown = 1 // for people only
	var got struct {
		Schema string
		Series []TrendSeries
	}
	if err := json.Unmarshal([]byte(trendText(t, report, "json")), &got); err != nil || got.Schema != TrendSchema || len(got.Series) != 2 ||
		*got.Series[0].Nights[0].Won != 50*time.Millisecond || len(got.Series[1].Nights) != 2 {
		t.Errorf("%v: %+v", err, got)
	}
	lines := strings.Split(trendText(t, report, "csv"), "\n")
	header := strings.Split(lines[0], ",")
	cell := func(line int, name string) string { return strings.Split(lines[line], ",")[slices.Index(header, name)] }
	if len(lines) != 5 || cell(1, "won_p50_ns") != "50000000" || cell(1, "keys") != "0" || cell(2, "sweep_median_from_ns") != "100000000000" ||
		cell(2, "sweep_median_to_ns") != "" || cell(3, "sweep_median_to_ns") != "120000000000" || cell(3, "night") != "2026-03-03" {
		t.Errorf("%s", strings.Join(lines, "\n"))
	}
	if got := trendText(t, TrendReport{}, "json"); !strings.Contains(got, `"series": []`) {
		t.Error(got)
	}
}

// A long time is put into fewer columns.
func TestTrendPlotOfAYear(t *testing.T) {
	var runs []TrendRun
	for n := range 365 {
		if n < 100 || n >= 150 {
			runs = append(runs, aRace(n, 50+float64(n%7), 40))
		}
	}
	got := trendText(t, Trend(runs), "table")
	plot := got[strings.Index(got, "Median latency of won"):]
	if !strings.Contains(plot, "a column for 6 nights, with the middle one.") {
		t.Errorf("%s", plot)
	}
	for line := range strings.Lines(plot) {
		if n := len([]rune(line)); n > 100 {
			t.Errorf("a line has %d columns: %s", n, line)
		}
	}
}
