package report

import (
	"slices"
	"strings"
	"testing"
	"time"

	"contend/runner"
	"contend/scenarios"
	"contend/scenarios/stats"
	"contend/scenarios/survival"
)

// aWatchedStore is a watch of four keys.
func aWatchedStore() *scenarios.GhostReport {
	s := func(seconds float64) *time.Duration { return ptr(time.Duration(seconds * 1e9)) }
	expiry := time.Date(2026, 3, 1, 3, 4, 5, 600e6, time.UTC)
	g := &scenarios.GhostReport{TTL: time.Second, Tolerance: 200 * time.Millisecond, Watch: time.Minute,
		Keys: []scenarios.GhostKey{
			{Key: "contend-01T-write1", Arm: scenarios.WriteArm, State: runner.GhostFree, Expiry: expiry, LastBlocked: s(10), FirstFree: s(20), Code: "KEY_CONFLICT", Status: 409},
			{Key: "contend-01T-write2", Arm: scenarios.WriteArm, State: runner.GhostBlocked, Expiry: expiry, LastBlocked: s(40)},
			{Key: "contend-01T-read1", Arm: scenarios.ReadArm, State: runner.GhostVisible, Expiry: expiry, LastShown: s(20), FirstGone: s(30)},
			{Key: "contend-01T-once1", Arm: scenarios.OnceArm, State: runner.GhostAbandoned, Why: "its store died"},
		},
		Arms: []scenarios.GhostArm{
			{Arm: scenarios.WriteArm, Keys: 2, States: map[runner.GhostState]int{runner.GhostFree: 1, runner.GhostBlocked: 1}, Probes: 35},
			{Arm: scenarios.TwinArm, Keys: 4, States: map[runner.GhostState]int{runner.GhostBlocked: 4}, Probes: 8},
		},
		Curve:  []survival.Step{{From: 10e9, To: 20e9, Mass: 0.5, Survival: 0.5, Low: 0.1, High: 0.9}},
		Median: &survival.Quantile{From: 10e9, To: 20e9, Low: 10e9, High: forever}, P90: &survival.Quantile{From: 40e9, To: forever, High: forever}}
	g.Longest = &g.Keys[1]
	return g
}

// aGhostResult has it with its verdict.
func aGhostResult() Result {
	r := Result{RunHeader: RunHeader{Run: "01T", Scenario: "ttl-ghost", Target: Target{URL: "sim:"}, Params: Params{KeyPrefix: "contend-"}}}
	r.Detail.Ghosts = aWatchedStore()
	return r
}

// Keys are counted by arm and state, in every look and in csv.
func TestArmsAreCountedByState(t *testing.T) {
	p := aGhostResult().delayPart()
	wantRows(t, p, "write | 2 | 1 | 0 | 1 | 0 | 0 | 0 | 35 | creates, until one is accepted",
		"twin | 4 | 4 | 0 | 0 | 0 | 0 | 0 | 8 | one create; the key has no TTL")
	wantFigures(t, aGhostResult(), map[string][]string{
		"keys": {"write 2 count", "twin 4 count"}, "keys blocked": {"write 1 count", "twin 4 count"}, "keys free": {"write 1 count", "twin 0 count"},
		"probes": {"write 35 count", "twin 8 count"}, "delay p50 at least": {"10000000000 ns"}, "delay p50 at most": {"20000000000 ns"},
		"delay p90 at least": {"40000000000 ns"}, "delay p90 at most": {"ns"}, "keys that blocked after a clean read": {"0 count"}})
	header := p.block().table.header
	if want := []string{"arm", "keys", "blocked", "visible", "free", "early", "pending", "abandoned", "probes", "asked by"}; !slices.Equal(header, want) {
		t.Errorf("%q", header)
	}
	r := aGhostResult()
	r.Detail.Ghosts.Median, r.Detail.Ghosts.P90 = nil, nil
	if _, told := csvOf(t, r)["delay p50 at least"]; told {
		t.Error("a median that is not known")
	}
}

// A key's row has its ages as intervals for people, and one by one in csv.
func TestKeysTellTheirAges(t *testing.T) {
	p := aGhostResult().keyPart()
	wantRows(t, p, "write1 | 03:04:05.600 | █████░░░░░·········· | 10s to 20s | – | free", "write2 | 03:04:05.600 | ████████████████████ | over 40s | – | blocked",
		"read1 | 03:04:05.600 | ▓▓▓▓▓▓▓▓▓▓░░░░░····· | – | 20s to 30s | visible", "once1 | – | ░░░░░░░░░░░░░░░░░░░░ | – | – | abandoned: its store died")
	if p.heading != "Key by key: from the expiry to 40s after it" || p.notes[1] != "Every key begins with contend-01T-" {
		t.Errorf("%s, %q", p.heading, p.notes)
	}
	wantFigures(t, aGhostResult(), map[string][]string{"last blocked of write1": {"free write KEY_CONFLICT 409 10000000000 ns"},
		"first free of write1": {"free write KEY_CONFLICT 409 20000000000 ns"}, "first free of write2": {"blocked write ns"},
		"last shown of read1": {"visible read 20000000000 ns"}, "first gone of read1": {"visible read 30000000000 ns"}, "last blocked of once1": {"abandoned once ns"}})
	r := aGhostResult()
	r.Detail.Ghosts.Watch = 12 * time.Hour
	if got := r.keyPart().block().table.rows[0][1]; got != "03-01 03:04:05" {
		t.Errorf("the expiry of a key that is watched for half a day is %s", got)
	}
}

// A timeline has what is certain, and nothing else; blocking hides what reads show.
func TestTimelineHasOnlyWhatIsCertain(t *testing.T) {
	s := func(seconds float64) *time.Duration { return ptr(time.Duration(seconds * 1e9)) }
	for _, c := range []struct {
		key  scenarios.GhostKey
		want string
	}{
		{scenarios.GhostKey{}, "░░░░░░░░░░░░░░░░░░░░"},
		{scenarios.GhostKey{FirstFree: s(0)}, "····················"},
		{scenarios.GhostKey{LastBlocked: s(5), LastShown: s(10), FirstFree: s(15)}, "█████▓▓▓▓▓░░░░░·····"},
		{scenarios.GhostKey{LastShown: s(5), FirstGone: s(10)}, "▓▓▓▓▓░░░░░··········"},
		{scenarios.GhostKey{LastBlocked: s(5), FirstGone: s(10)}, "█████░░░░░░░░░░░░░░░"}, // gone for reads is not free
		{scenarios.GhostKey{LastBlocked: s(20)}, "████████████████████"},
		{scenarios.GhostKey{LastBlocked: s(0.5), FirstFree: s(1.5)}, "█···················"}, // each in the middle of a column
	} {
		if got := (lifetime{&c.key, 20 * time.Second}).String(); got != c.want {
			t.Errorf("%+v: %s, want %s", c.key, got, c.want)
		}
	}
}

// The curve begins with all keys, steps where a step begins, and ends where nothing more
// was seen.
func TestCurveIsData(t *testing.T) {
	p := curvePart(aWatchedStore())
	if p.plot.form != held || p.plot.x.to != 40e9 || p.plot.y.to != 1 || p.plot.caption != "0 to 40s after the expiry; with its 95 % interval" {
		t.Fatalf("%+v", p.plot)
	}
	for i, want := range []float64{0.1, 0.9, 0.5} {
		if got := p.plot.series[i].points; !slices.Equal(got, []point{{0, 1}, {10e9, want}}) {
			t.Errorf("%s: %v", p.plot.series[i].name, got)
		}
	}
	for age, want := range map[float64]float64{0: 1, 10e9: 1, 10e9 + 1: 0.5, 40e9: 0.5} {
		if got := p.plot.series[2].at(age, held); got != want {
			t.Errorf("at %g: %g, want %g", age, got, want)
		}
	}
	none := aWatchedStore()
	none.Curve = nil
	if p := curvePart(none); p.plot != nil || p.heading == "" {
		t.Errorf("a curve of nothing: %+v", p)
	}
	r := aGhostResult()
	r.Detail.Ghosts.Curve = nil
	if text := render(t, "table", r); !strings.Contains(text, "that still block, by age\nnone\n") {
		t.Errorf("%s", text)
	}
}

// Each thing that is known of the delays is said, and nothing that is not.
func TestDelaysSayWhatIsKnown(t *testing.T) {
	base := []string{"Longest seen to block: write2 for over 40s.", "1 of the 2 keys of the write arm were still blocking when last asked (right-censored).", "Reads still showed 1 of 1 keys after their expiry, for 20s at least."}
	median := "Median delay 10s to 20s (95 % interval: over 10s), p90 over 40s (Turnbull's estimate over the write arm)."
	bare := func(g *scenarios.GhostReport) { g.Median, g.P90, g.Longest, g.Keys = nil, nil, nil, nil }
	for name, c := range map[string]struct {
		change func(*scenarios.GhostReport)
		want   []string
	}{
		"all":       {func(*scenarios.GhostReport) {}, append([]string{median}, base...)},
		"no p90":    {func(g *scenarios.GhostReport) { g.P90 = nil }, append([]string{strings.Replace(median, ", p90 over 40s", "", 1)}, base...)},
		"no median": {func(g *scenarios.GhostReport) { g.Median = nil }, base},
		"nothing":   {bare, nil},
		"once": {func(g *scenarios.GhostReport) {
			bare(g)
			g.Once = []survival.Step{{From: 1e9, To: 2e9, Mass: 1, Survival: 0, Low: 0, High: 1}}
		}, []string{"Of keys left alone until they were asked once, the median delay is 1s to 2s (current-status estimate of the once arm)."}},
		"agrees": {func(g *scenarios.GhostReport) { bare(g); g.OnceAgree = &scenarios.Agreement{P: 0.512} },
			[]string{"The once arm agrees with the write arm (p = 0.51): no sign that asking about a key changes how long it blocks."}},
		"disagrees": {func(g *scenarios.GhostReport) {
			bare(g)
			g.OnceAgree = &scenarios.Agreement{P: 0.0012, Disagrees: true}
		},
			[]string{"The once arm disagrees with the write arm (p = 0.0012): asking about a key changes how long it blocks, so the delays of the write arm are not those of a key left alone."}},
		"none early": {func(g *scenarios.GhostReport) {
			bare(g)
			g.EarlyFloor, g.EarlyBound = ptr(50*time.Millisecond), &stats.Bound{AtMost: 0.1391}
		}, []string{"No key went early: each of the early arm was seen to live until 50ms before its expiry or closer; of keys that go before that, the rate is under 14.0 % (95 % confidence)."}},
		"some early": {func(g *scenarios.GhostReport) {
			bare(g)
			g.EarlyFloor, g.EarlyBound = ptr(50*time.Millisecond), &stats.Bound{AtMost: 0.9, AtLeast: ptr(0.1)}
		}, nil},
		"clean reads": {func(g *scenarios.GhostReport) { bare(g); g.CleanReads = 3 },
			[]string{"3 keys still refused a create after a read had shown them gone: a read does not show whether a key is free."}},
		"granted more": {func(g *scenarios.GhostReport) { bare(g); g.Granted = []scenarios.Range{{From: 1e9, To: 2e9}} },
			[]string{"The store granted a TTL of 1s to 2s where 1s was asked."}},
		"granted as asked": {func(g *scenarios.GhostReport) { bare(g); g.Granted = []scenarios.Range{{From: 1e9, To: 1e9}} }, nil},
		"the same clock": {func(g *scenarios.GhostReport) { bare(g); g.Offset = []scenarios.Range{{From: -3e6, To: 5e6}} },
			[]string{"The store reports the expiry that our own clock gives (within 5ms): a cross-check only."}},
		"another clock": {func(g *scenarios.GhostReport) { bare(g); g.Offset = []scenarios.Range{{From: 1e9, To: 2e9}} },
			[]string{"The store reports an expiry +1 to +2 s from ours, by its own clock: a cross-check only."}},
		"a late clock": {func(g *scenarios.GhostReport) { bare(g); g.Offset = []scenarios.Range{{From: -2e9, To: -1e9}} },
			[]string{"The store reports an expiry -2 to -1 s from ours, by its own clock: a cross-check only."}},
	} {
		g := aWatchedStore()
		c.change(g)
		if got := delayText(g); !slices.Equal(got, c.want) {
			t.Errorf("%s:\n%s\nwant\n%s", name, strings.Join(got, "\n"), strings.Join(c.want, "\n"))
		}
	}
}

// The verdict of a watch says which keys it is of.
func TestVerdictOfAWatchNamesItsKeys(t *testing.T) {
	violation := scenarios.Violation{Kind: "late", Key: "k", Detail: "it blocked for long", Witness: []scenarios.Witness{{Who: "read1"}}}
	for name, c := range map[string]struct {
		verdict scenarios.Verdict
		change  func(*Result)
		want    string
	}{
		"held": {scenarios.Verdict{Status: scenarios.Held, Bound: &stats.Bound{AtMost: 0.1391, Confidence: 0.95}}, func(r *Result) { r.Contention.ContendedRounds, r.Contention.Of = 19, 20 },
			"held: 19 of 20 keys that were asked by creates were free within 200ms of their expiry, none blocked longer or went early; rate under 14.0 % (95 % confidence, if keys are swept independently)"},
		"violated": {scenarios.Verdict{Status: scenarios.Violated, ViolatedRounds: 1, Violations: []scenarios.Violation{violation}}, nil,
			"violated by 1 of the 2 keys of the write arm: it blocked for long; median delay 10s to 20s (95 % interval: over 10s)"},
		"violated, no median": {scenarios.Verdict{Status: scenarios.Violated, ViolatedRounds: 1, Violations: []scenarios.Violation{violation}}, func(r *Result) { r.Detail.Ghosts.Median = nil },
			"violated by 1 of the 2 keys of the write arm: it blocked for long"},
		"violated elsewhere": {scenarios.Verdict{Status: scenarios.Violated, Violations: []scenarios.Violation{violation}}, nil,
			"violated by 1 keys of other arms than write, such as read1: it blocked for long"},
		"violated in a control": {scenarios.Verdict{Status: scenarios.Violated, Violations: []scenarios.Violation{{Control: "live", Detail: "no key blocked"}}}, nil,
			"violated in the live control: no key blocked"},
		"inconclusive": {scenarios.Verdict{Status: scenarios.Inconclusive, Reasons: []string{"a", "b"}}, nil, "inconclusive: a; b"},
		"interrupted": {scenarios.Verdict{Status: scenarios.Inconclusive, Reasons: []string{"a"}}, func(r *Result) { r.Interrupted, r.Cut = true, "the budget was spent" },
			"inconclusive: a; interrupted"}, // why it was cut is one of the reasons
	} {
		r := aGhostResult()
		r.Verdict = c.verdict
		if c.change != nil {
			c.change(&r)
		}
		if got := r.verdictText(); got != c.want {
			t.Errorf("%s: %s\nwant %s", name, got, c.want)
		}
	}
}

// What is left out of the write arm is told with its reasons, and the terms of the watch.
func TestWatchTellsItsTerms(t *testing.T) {
	r := aGhostResult()
	r.Contention.Uncounted, r.Contention.ContendedRounds, r.Contention.Of = []scenarios.Uncounted{{Why: "were abandoned", Rounds: 2}}, 3, 5
	r.Controls = []scenarios.Control{{Name: "live", AsExpected: true, Rounds: 4}, {Name: "twin", AsExpected: true, Rounds: 4}}
	notes := r.delayPart().notes
	got := notes[len(notes)-3:]
	if got[0] != "Of the write arm, 3 of 5 keys count; the others: 2 were abandoned." || !strings.HasPrefix(got[1], "TTL asked 1s, tolerance 200ms, watched for 1m0s. ") ||
		got[2] != "Controls: live ✓ (4 keys blocked before their expiry), negative control ✓ (the twin: 4 keys without a TTL blocked past the tolerance, as a ghost would)." {
		t.Errorf("%q", got)
	}
	if r.QuotaUnits = ptr(int64(7)); !strings.HasSuffix(r.runLine(), ": 4 keys, 0 requests, about 7 quota units") {
		t.Error(r.runLine())
	}
}
