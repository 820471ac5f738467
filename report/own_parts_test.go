package report

import (
	"encoding/csv"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"contend/scenarios"
	"contend/scenarios/stats"
)

// csvOf are the rows of format csv of a result, by their figures: outcome, at, where,
// code, status, value, unit, with what is empty left out.
func csvOf(t *testing.T, r Result) map[string][]string {
	t.Helper()
	rows, err := csv.NewReader(strings.NewReader(render(t, "csv", r))).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	figures := make(map[string][]string)
	for _, row := range rows[1:] {
		cells := slices.DeleteFunc(slices.Clone(row[6:13]), func(cell string) bool { return cell == "" })
		figures[row[5]] = append(figures[row[5]], strings.Join(cells, " "))
	}
	return figures
}

// wantFigures compares some of the figures of format csv with what they should be.
func wantFigures(t *testing.T, r Result, want map[string][]string) {
	t.Helper()
	got := csvOf(t, r)
	for figure, rows := range want {
		if !slices.Equal(got[figure], rows) {
			t.Errorf("%s is %q, want %q", figure, got[figure], rows)
		}
	}
}

// wantRows compares the rows that people see of a part.
func wantRows(t *testing.T, p part, want ...string) {
	t.Helper()
	var got []string
	for _, row := range p.block().table.rows {
		got = append(got, strings.Join(row, " | "))
	}
	if !slices.Equal(got, want) {
		t.Errorf("the rows are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func wantNotes(t *testing.T, p part, want ...string) {
	t.Helper()
	if !slices.Equal(p.notes, want) {
		t.Errorf("the notes are\n%s\nwant\n%s", strings.Join(p.notes, "\n"), strings.Join(want, "\n"))
	}
}

// everyLook renders a result in the formats for people, with its lines joined.
func everyLook(t *testing.T, r Result) map[string]string {
	looks := make(map[string]string)
	for _, format := range []string{"table", "markdown", "jira"} {
		looks[format] = strings.Join(strings.Fields(render(t, format, r)), " ")
	}
	return looks
}

func aCounter() *scenarios.CounterPrice {
	return &scenarios.CounterPrice{Contenders: 4, Times: 3, Successes: 144, PerSecond: 202.3214, TriesMedian: ptr(1), TriesMax: 7, Wasted: 0.4911,
		Fairness: &stats.Fairness{Least: 0.185, Most: 0.352, Even: 0.25, P: ptr(0.582)}}
}

func TestCounterTellsThePriceOfItsGuard(t *testing.T) {
	wantRows(t, counterPart(aCounter()),
		"successes | 144 | accepted writes; each contender needs 3 a round",
		"successes a second | 202.3 | of all contenders together, while they ran",
		"tries a success | 1, –, 7 | writes that it took: p50, p99, most",
		"wasted | 49.1 % | requests that led to no success",
		"fairness | 18.5 % to 35.2 % | a contender's share until the first was done; even is 25 % (contenders permuted within the rounds: p = 0.58)")
	wantFigures(t, Result{Detail: scenarios.Detail{Counter: aCounter()}}, map[string][]string{
		"successes": {"144 count"}, "successes a second": {"202.321 1/s"}, "tries p50": {"1 count"}, "tries p99": {"count"}, "tries max": {"7 count"},
		"wasted": {"0.4911 share"}, "fairness least": {"0.185 share"}, "fairness most": {"0.352 share"}, "fairness even": {"0.25 share"}, "fairness p": {"0.582"}})
	few := aCounter()
	few.Fairness.P = nil
	if rows := counterPart(few).rows; strings.Contains(rows[4][2].(string), "p =") {
		t.Errorf("a probability that is not known: %q", rows[4])
	}
	few.Fairness = nil
	if p := counterPart(few); len(p.rows) != 4 || len(p.figures) != 6 {
		t.Errorf("a fairness that is not known: %+v", p)
	}
}

// The knee is the least number of contenders that comes near the best, whatever the
// order of the runs.
func TestKneeIsTheFirstNearTheBest(t *testing.T) {
	suite := func(perSecond map[int]float64, order ...int) Suite {
		var s Suite
		for _, n := range order {
			s.Runs = append(s.Runs, SuiteRun{Result: &Result{Detail: scenarios.Detail{Counter: &scenarios.CounterPrice{Contenders: n, PerSecond: perSecond[n], TriesMax: n}}}})
		}
		return s
	}
	rates := map[int]float64{2: 50, 4: 90, 8: 100, 16: 95}
	p := suite(rates, 16, 2, 8, 4).throughputParts()[0]
	wantRows(t, p, "2 | 50 | – | 2 | 0 %", "4 | 90 | – | 4 | 0 %", "8 | 100 | – | 8 | 0 %", "16 | 95 | – | 16 | 0 %")
	wantNotes(t, p, "Knee at 4 contenders: 90 successes a second, 90 % of the most that was seen; more contenders add little.")
	if want := []point{{2, 50}, {4, 90}, {8, 100}, {16, 95}}; !slices.Equal(p.plot.series[0].points, want) || p.plot.x.from != 2 || p.plot.x.to != 16 ||
		p.plot.caption != "successes a second, from 2 to 16 contenders" {
		t.Errorf("%+v", p.plot)
	}
	rates[4] = 89.9
	wantNotes(t, suite(rates, 2, 4, 8, 16).throughputParts()[0],
		"Knee at 8 contenders: 100 successes a second, 100 % of the most that was seen; more contenders add little.")
	if parts := suite(rates, 2).throughputParts(); parts != nil {
		t.Errorf("a comparison of one run: %+v", parts)
	}
	if p := suite(map[int]float64{}, 2, 4).throughputParts()[0]; p.plot != nil {
		t.Errorf("a curve of nothing: %+v", p.plot)
	}
	none := Suite{Runs: []SuiteRun{{}, {Result: &Result{}}}}
	if parts := none.throughputParts(); parts != nil {
		t.Errorf("a comparison of other scenarios: %+v", parts)
	}
}

func TestLeaseTellsWhereTheyLost(t *testing.T) {
	l := &scenarios.LeaseLosers{AtRead: 90, AtWrite: 30, ReadShare: 0.75, Periods: 2}
	r := Result{Outcomes: []Outcome{{Outcome: "lost", At: "read", Count: 90}}, Detail: scenarios.Detail{Lease: l}}
	const want = "Of those that lost, 90 lost at the read (75 %), where no guard is, and 30 at the conditional write. Periods a round: 2."
	wantNotes(t, r.outcomePart(), want)
	wantFigures(t, r, map[string][]string{"lost at the read": {"90 count"}, "lost at the write": {"30 count"},
		"lost at the read share": {"0.75 share"}, "periods a round": {"2 count"}})
	for format, text := range everyLook(t, r) {
		if strings.Count(text, "90 lost at the read") != 1 {
			t.Errorf("%s: %s", format, text)
		}
	}
}

func TestDeliveriesTellTheirBranch(t *testing.T) {
	r := Result{Outcomes: []Outcome{{Outcome: "won", Count: 1}}, Detail: scenarios.Detail{Deliveries: []scenarios.DeliveryBranch{
		{Delivery: "third delivery", Branch: "repaired", Count: 12}, {Delivery: "clean save", Branch: "gave up", Count: 3}}}}
	wantRows(t, deliveryPart(r.Detail.Deliveries), "third delivery | repaired | 12", "clean save | gave up | 3")
	wantFigures(t, r, map[string][]string{"deliveries": {"repaired third delivery 12 count", "gave up clean save 3 count"}})
	for format, text := range everyLook(t, r) {
		if !strings.Contains(text, "What the deliveries did") || !strings.Contains(text, "gave up") {
			t.Errorf("%s: %s", format, text)
		}
	}
	r.Detail.Deliveries = nil
	if text := render(t, "table", r); strings.Contains(text, "deliveries") {
		t.Errorf("no delivery: %s", text)
	}
}

func someEdits() *scenarios.EditReport {
	e := &scenarios.EditReport{Acknowledged: 40, Lost: 8, Recovered: 1, Unexpected: 2}
	for i := range 8 {
		e.Items = append(e.Items, scenarios.EditedItem{Round: i + 1, Became: "lost", Token: "contend-01T-r1-c3-1", By: "contend-01T-r1-c7-1"})
	}
	e.Items[1].By = ""
	e.Items = append(e.Items, scenarios.EditedItem{Round: 9, Became: "recovered", Token: "contend-01T-r9-c2-1"},
		scenarios.EditedItem{Round: 10, Became: "unexpected", Token: "foreign"})
	e.Story = &scenarios.EditStory{Round: 3, Holds: []string{"contend-01T-r3-c7-1", "x"},
		Lost: scenarios.Saved{Editor: 3, Opened: 2 * time.Millisecond, Call: 4 * time.Millisecond, Return: 5 * time.Millisecond, Held: 1, Told: true},
		Over: scenarios.Saved{Editor: 7, Opened: time.Millisecond, Call: 6 * time.Millisecond, Return: math.MaxInt64, Held: 2}}
	return e
}

// Of each sort the first few are shown, and the rest is counted.
func TestEditsAreCutToAFewOfEachSort(t *testing.T) {
	p := editParts(someEdits())[0]
	wantRows(t, p, "1 | c3-1 | lost | c7-1 was written over it", "2 | c3-1 | lost | the store lost it: nothing was written over it",
		"3 | c3-1 | lost | c7-1 was written over it", "4 | c3-1 | lost | c7-1 was written over it", "5 | c3-1 | lost | c7-1 was written over it",
		"6 | c3-1 | lost | c7-1 was written over it", "9 | c2-1 | recovered | its editor tried again",
		"10 | foreign | unexpected | the final document holds it, though it was refused or nobody made it")
	wantNotes(t, p, "3 more; the json output lists the first of each sort.")
	if p.heading != "Edits: 40 acknowledged, 8 of them lost; 1 recovered after a refusal; 2 unexpected" {
		t.Error(p.heading)
	}
	wantFigures(t, Result{Detail: scenarios.Detail{Edits: someEdits()}}, map[string][]string{
		"edits acknowledged": {"40 count"}, "edits lost": {"8 count"}, "edits recovered": {"1 count"}, "edits unexpected": {"2 count"}})
	fine := editParts(&scenarios.EditReport{Acknowledged: 40})
	if len(fine) != 1 || len(fine[0].rows) != 0 {
		t.Errorf("%+v", fine)
	}
	wantNotes(t, fine[0], "The final documents hold every acknowledged edit, and no other.")
}

// The story is told in the order in which the document was opened, and knows who was
// told what.
func TestStoryOfALostEdit(t *testing.T) {
	e := someEdits()
	p := editParts(e)[1]
	wantRows(t, p, "contender 7 | opens the document: 2 items are ticked | – | 1.000", "contender 3 | opens the document: one item is ticked | – | 2.000",
		"contender 3 | saves it with item 3 ticked, and is told that it is saved | 4.000 | 5.000",
		"contender 7 | saves over it the document as opened, with item 7 ticked, and gets no answer | 6.000 | –")
	wantNotes(t, p, "In the end the document holds c7-1, x. Item 3 is not ticked, and contender 3 does not know.")
	e.Story.Over.Told, e.Story.Over.Opened, e.Story.Over.Held, e.Story.Holds = true, 3*time.Millisecond, 0, nil
	p = editParts(e)[1]
	if row := p.rows[0]; row[0] != "contender 3" || p.rows[1][1] != "opens the document: nothing is ticked" || !strings.HasSuffix(p.rows[3][1].(string), "and is told that it is saved") {
		t.Errorf("%v", p.rows)
	}
	wantNotes(t, p, "In the end the document holds no edit. Item 3 is not ticked, and contender 3 does not know.")
}

// The rows of the map are the same for people and for csv; a share of no round is not 0.
func TestOffsetsWithoutACertainRound(t *testing.T) {
	ms := func(n int) time.Duration { return time.Duration(n) * time.Millisecond }
	r := Result{Outcomes: []Outcome{{Outcome: "won", Count: 1}}}
	r.Params.Sweep.Most, r.Params.Sweep.Steps = ms(2), 3
	r.Detail.OffsetMap = &scenarios.OffsetMap{From: ptr(ms(0)), To: ptr(ms(2)), SentFrom: ptr(ms(-1)), SentTo: ptr(ms(1)), Elsewhere: 2, Rows: []scenarios.OffsetRow{
		{Offset: ms(-2), Asked: scenarios.OffsetShares{Rounds: 4, Uncertain: 4}},
		{Offset: 0, Asked: scenarios.OffsetShares{Rounds: 4, ViolatedShare: ptr(0.5), SecondWonShare: ptr(0.75)}, SentApart: ptr(ms(1)),
			Sent: scenarios.OffsetShares{Rounds: 3, ViolatedShare: ptr(1.0)}},
		{Offset: ms(2), Asked: scenarios.OffsetShares{Rounds: 4, ViolatedShare: ptr(0.25), SecondWonShare: ptr(0.0)}},
	}}
	p := r.offsetPart()
	wantRows(t, p, "-2.00 | 4 | 4 | – | – | – | 0 | –", "0.000 | 4 | 0 | 50 % | 75 % | +1.00 | 3 | 100 %", "+2.00 | 4 | 0 | 25 % | 0 % | – | 0 | –")
	wantFigures(t, r, map[string][]string{"violated at offset -2ms": {"share"}, "violated at offset 0s": {"0.5 share"}, "second won at offset 2ms": {"0 share"},
		"sent apart p50 at offset 0s": {"1000000 ns"}, "violated when sent at offset 0s": {"1 share"}, "violated when sent at offset 2ms": {"share"}})
	if p.notes[0] != "Violations with the second released from 0.000 to +2.00 ms after the first, sent from -1.00 to +1.00 ms after it; it may reach further (raise --offset-sweep)." ||
		!strings.Contains(p.notes[1], "(2 are not:") {
		t.Errorf("%q", p.notes)
	}
	points := p.plot.series[0].points
	if len(points) != 3 || !math.IsNaN(points[0].y) || points[1] != (point{0, 50}) || points[2] != (point{2, 25}) || p.plot.x.from != -2 || p.plot.x.to != 2 || p.plot.y.to != 100 {
		t.Errorf("%+v", p.plot)
	}
	for i := range r.Detail.OffsetMap.Rows {
		r.Detail.OffsetMap.Rows[i].Asked, r.Detail.OffsetMap.Rows[i].Sent = scenarios.OffsetShares{}, scenarios.OffsetShares{}
	}
	if r.offsetPlot() != nil {
		t.Error("a plot of nothing")
	}
}

func TestOffsetTicksHaveASign(t *testing.T) {
	check(t, "offsetTick", offsetTick, map[float64]string{0: "0", 6: "+6", -6: "-6", 0.0125: "+0.0125", -1.23456: "-1.23"})
}

// What only one scenario has is in no other's report.
func TestPartsOfOneScenarioOnly(t *testing.T) {
	full := Result{Outcomes: []Outcome{{Outcome: "won", At: "write", Count: 2}}, Rounds: 1}
	headings := func(r Result) []string {
		var all []string
		for _, p := range r.document().parts {
			heading, _, _ := strings.Cut(p.heading, ":")
			all = append(all, heading)
		}
		return all
	}
	if got, want := headings(full), []string{"Winners and losers", "Latency in ms, from the call to the complete reply", "Was there a contest? Medians over the rounds", ""}; !reflect.DeepEqual(got, want) {
		t.Errorf("%q", got)
	}
	full.Detail.Counter = aCounter()
	if got, want := headings(full), []string{"Accepted and refused", "Latency in ms, from the call to the complete reply", "Was there a contest? Medians over the rounds", "Price of the guard", ""}; !reflect.DeepEqual(got, want) {
		t.Errorf("%q", got)
	}
	full.Detail.Counter, full.Detail.Ghosts = nil, aWatchedStore()
	if got, want := headings(full), []string{"How long expired keys still block", "Key by key", "Share of the keys of the write arm that still block, by age", "Probes",
		"Latency in ms, from the call to the complete reply", ""}; !reflect.DeepEqual(got, want) {
		t.Errorf("%q", got)
	}
}
