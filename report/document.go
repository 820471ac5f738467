package report

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"contend/scenarios"
	"contend/scenarios/stats"
)

// document is a result as people read it, before it has a look.
type document struct {
	status scenarios.Status // "" where it is no verdict's
	title  string
	lead   []string // the verdict first
	blocks []block
	// command makes it again, pasted into a shell: a line that is never broken.
	command string
}

type block struct {
	heading string
	table   table
	wide    bool     // the table keeps a row on a line off a terminal
	plain   string   // after the table, in a fixed width, lines as they are
	text    []string // after that
}

type table struct {
	header []string
	right  []bool // columns aligned to the right
	whole  []bool // columns whose cells are not broken; nil: none
	rows   [][]string
}

func (t table) isWhole(column int) bool { return column < len(t.whole) && t.whole[column] }

const dash = "–"

// VerdictLine is the result in one line: format quiet.
func (r Result) VerdictLine() string {
	where := r.Target.URL
	if r.Target.Simulated {
		where += " (simulated)"
	}
	line := fmt.Sprintf("%s on %s: %s", r.Scenario, where, r.verdictText())
	for _, e := range r.Expectations {
		if !e.Met {
			line += fmt.Sprintf("; expected %s, measured %s", e.Expr, e.Figure)
		}
	}
	if wanted := r.Params.ExpectVerdict; wanted != "" && wanted != string(scenarios.Held) && wanted != string(r.Verdict.Status) {
		line += "; expected " + wanted
	}
	return line
}

// verdictText is the status with its strength.
func (r Result) verdictText() string {
	if r.Detail.Probe != nil {
		return r.probeText()
	}
	text := r.statusText()
	if r.Cut != "" && r.Detail.Ghosts == nil {
		text += "; cut: " + r.Cut
	}
	if r.Interrupted && r.Params.Contenders == 0 {
		text += "; interrupted"
	} else if r.Interrupted {
		text += fmt.Sprintf("; interrupted after %d rounds", r.Rounds)
		if r.Params.Rounds > 0 {
			text += fmt.Sprintf(", %d of %d counted", r.Contention.ContendedRounds, r.Params.Rounds)
		}
	}
	return text
}

func (r Result) statusText() string {
	v := r.Verdict
	if r.Detail.Ghosts != nil {
		return r.ghostStatus()
	}
	switch v.Status {
	case scenarios.Held:
		text := fmt.Sprintf("held: %d of %d rounds count as contended, none violated; violation rate under %s (%.0f %% confidence) of rounds in which every reply was certain",
			r.Contention.ContendedRounds, r.Rounds, percentUp(v.Bound.AtMost), 100*v.Bound.Confidence)
		if most := r.Params.Thresholds.Reach; most > 0 {
			text += fmt.Sprintf(" and the reach at most %s", stats.Coarse(most))
		}
		if all := v.Bound.UncertainAtMost; all != nil {
			text += fmt.Sprintf(", under %s with the uncertain %d taken as violated", percentUp(*all), r.Contention.UncertainRounds)
		}
		return text + r.weakened()
	case scenarios.Violated:
		return r.violatedText()
	default:
		return "inconclusive: " + strings.Join(v.Reasons, "; ")
	}
}

// weakened names the thresholds that ask for less than usual.
func (r Result) weakened() string {
	var all []string
	need, usual := r.Params.Thresholds, scenarios.DefaultThresholds
	if need.Rivals > 0 && need.Rivals < scenarios.RivalsNeeded(r.Params.Contenders, 0) {
		all = append(all, fmt.Sprintf("--min-rivals %d", need.Rivals))
	}
	if r.Params.MinContended < scenarios.DefaultMinContended {
		all = append(all, fmt.Sprintf("--min-contended %d", r.Params.MinContended))
	}
	if need.Uncertain > usual.Uncertain {
		all = append(all, fmt.Sprintf("--max-uncertain %g", need.Uncertain))
	}
	if need.UncertainRounds > usual.UncertainRounds {
		all = append(all, fmt.Sprintf("--max-uncertain-rounds %g", need.UncertainRounds))
	}
	if len(all) == 0 {
		return ""
	}
	return " [weaker than usual: " + strings.Join(all, ", ") + "]"
}

// reachText says what the counted rounds exclude.
func (r Result) reachText() string {
	reach := r.Contention.Reach
	if reach.Reach == nil {
		return "Reach unknown: fewer than " + fmt.Sprint(reach.AtLeast) + " counted rounds bound how far check and effect were apart"
	}
	return fmt.Sprintf("Reach: in %d rounds or more check and effect were at most %s ms apart: a store that always takes longer is excluded, "+
		"one that sometimes does is bounded by the rate only", reach.AtLeast, milliseconds(reach.Reach))
}

func (r Result) violatedText() string {
	v := r.Verdict
	first := v.Violations[0]
	if first.Control != "" {
		text := fmt.Sprintf("violated in the %s control: %s", first.Control, first.Detail)
		if r.Rounds == 0 {
			text += "; no race was run"
		}
		return text
	}
	text := fmt.Sprintf("violated in %d of %d rounds: %s", v.ViolatedRounds, r.Rounds, first.Detail)
	if v.Expected {
		text += " (expected: no guard)"
	}
	if r.Detail.OffsetMap != nil && r.Detail.OffsetMap.From != nil {
		text += "; " + strings.ToLower(r.windowText()[:1]) + r.windowText()[1:]
	}
	if v.Bound != nil && v.Bound.AtLeast != nil {
		text += fmt.Sprintf("; violation rate over %s (%.0f %% confidence)", percentDown(*v.Bound.AtLeast), 100*v.Bound.Confidence)
	}
	return text
}

// percent writes a share with two or three figures.
func percent(share float64) string {
	p := 100 * share
	switch {
	case p == 0 || p >= 99.95:
		return fmt.Sprintf("%.0f %%", p)
	case p == math.Trunc(p):
		return fmt.Sprintf("%.0f %%", p)
	case p >= 1:
		return fmt.Sprintf("%.1f %%", p)
	default:
		return fmt.Sprintf("%.*f %%", int(1-math.Floor(math.Log10(p))), p)
	}
}

// percentUp and percentDown write a bound, rounded to its safe side.
func percentUp(share float64) string   { return bound(share, math.Ceil) }
func percentDown(share float64) string { return bound(share, math.Floor) }

func bound(share float64, round func(float64) float64) string {
	p := 100 * share
	digits := 1
	if p < 1 && p > 0 {
		digits = int(1 - math.Floor(math.Log10(p)))
	}
	scale := math.Pow(10, float64(digits))
	return fmt.Sprintf("%.*f %%", digits, round(p*scale)/scale)
}

// milliseconds writes a duration in ms with about three figures.
func milliseconds(d *time.Duration) string {
	if d == nil {
		return dash
	}
	ms := float64(*d) / 1e6
	switch {
	case ms >= 100:
		return fmt.Sprintf("%.0f", ms)
	case ms >= 10:
		return fmt.Sprintf("%.1f", ms)
	case ms >= 1:
		return fmt.Sprintf("%.2f", ms)
	default:
		return fmt.Sprintf("%.3f", ms)
	}
}

func (r Result) documents() []document { return []document{r.document()} }

func (r Result) lines() []string { return []string{r.VerdictLine()} }

func (r Result) document() document {
	d := document{status: r.Verdict.Status, command: r.Command, title: fmt.Sprintf("contend %s on %s (%s)", r.Scenario, r.Target.URL, r.Target.Server)}
	if r.Target.Simulated {
		d.title += " · SIMULATED, not a live platform"
	}
	if r.Detail.Probe != nil {
		return r.probeDocument(d).printable()
	}
	status, rest, _ := strings.Cut(r.verdictText(), ":")
	d.lead = append(d.lead, strings.Replace(status, string(r.Verdict.Status), strings.ToUpper(string(r.Verdict.Status)), 1)+":"+rest)
	if r.Verdict.Status == scenarios.Held && r.Detail.Ghosts == nil {
		d.lead = append(d.lead, r.reachText())
	}
	d.lead = append(d.lead, "Property: "+r.Verdict.Property, r.runLine())
	if r.Detail.Ghosts != nil {
		d.blocks = append(d.blocks, r.ghostBlocks()...)
	}
	if r.Detail.OffsetMap != nil {
		d.blocks = append(d.blocks, r.offsetBlock())
	}
	switch {
	case r.contenders() == 0 && r.Detail.Ghosts == nil:
		d.blocks = append(d.blocks, r.nobodyBlock())
	case r.Detail.Ghosts == nil:
		d.blocks = append(d.blocks, r.outcomeBlock(), r.latencyBlock(), r.contestBlock())
	default:
		d.blocks = append(d.blocks, r.outcomeBlock(), r.latencyBlock())
	}
	if len(r.Detail.Deliveries) > 0 {
		d.blocks = append(d.blocks, r.deliveryBlock())
	}
	if r.Detail.Counter != nil {
		d.blocks = append(d.blocks, r.counterBlock())
	}
	if r.Detail.Edits != nil {
		d.blocks = append(d.blocks, r.editBlocks()...)
	}
	if len(r.Verdict.Violations) > 0 {
		d.blocks = append(d.blocks, r.witnessBlock(r.Verdict.Violations[0]))
	}
	if len(r.Expectations) > 0 {
		d.blocks = append(d.blocks, r.expectationBlock())
	}
	d.blocks = append(d.blocks, block{text: r.notes()})
	return d.printable()
}

func (r Result) runLine() string {
	if g := r.Detail.Ghosts; g != nil {
		return fmt.Sprintf("Run %s, %s, %s: %d keys, %d requests%s", r.Run,
			r.Started.UTC().Format("2006-01-02 15:04 UTC"), r.Elapsed.Round(10*time.Millisecond), len(g.Keys), r.Requests, r.unitsText())
	}
	return fmt.Sprintf("Run %s, %s, %s: %d rounds of %d, %d requests", r.Run,
		r.Started.UTC().Format("2006-01-02 15:04 UTC"), r.Elapsed.Round(10*time.Millisecond), r.Rounds, r.Params.Contenders, r.Requests)
}

func (r Result) contenders() int {
	n := 0
	for _, o := range r.Outcomes {
		n += o.Count
	}
	return n
}

// nobodyBlock says why nobody was released, where figures of nobody would stand.
func (r Result) nobodyBlock() block {
	b := block{heading: fmt.Sprintf("Winners and losers: no contender was released in %d rounds", r.Rounds)}
	if r.Rounds == 0 {
		b.heading = "Winners and losers: no race was run"
	}
	if f := r.Refusal; f != nil {
		b.text = append(b.text, fmt.Sprintf("The first request that the target refused, a %s: %s", f.Request, f.Text()))
	}
	b.text = append(b.text, r.uncountedTexts()...)
	b.text = append(b.text, r.controlsText())
	return b
}

// uncountedTexts say why rounds are uncertain, or do not count.
func (r Result) uncountedTexts() (texts []string) {
	if c := r.Contention; len(c.Uncounted) > 0 {
		texts = append(texts, fmt.Sprintf("Not counted: %s.", scenarios.UncountedText(c.Uncounted)))
	}
	if c := r.Contention; len(c.Uncertain) > 0 {
		texts = append(texts, fmt.Sprintf("Uncertain: %s.", scenarios.UncountedText(c.Uncertain)))
	}
	return texts
}

func (r Result) outcomeBlock() block {
	heading := fmt.Sprintf("Winners and losers: %d contenders in %d rounds", r.contenders(), r.Rounds)
	if r.Detail.Ghosts != nil {
		heading = fmt.Sprintf("Probes: %d requests after the creates", r.contenders())
	}
	if r.Detail.Counter != nil {
		heading = fmt.Sprintf("Accepted and refused: %d writes in %d rounds of %d contenders", r.contenders(), r.Rounds, r.Params.Contenders)
	}
	b := block{heading: heading,
		table: table{header: []string{"outcome", "at", "code", "status", "count", "share", "message"},
			right: []bool{false, false, false, true, true, true, false}}}
	for _, o := range r.Outcomes {
		status, message := dash, o.Message
		if o.Status != 0 {
			status = fmt.Sprint(o.Status)
		}
		if o.Settled > 0 {
			message = strings.TrimSpace(fmt.Sprintf("%d turned out to be applied. %s", o.Settled, message))
		}
		b.table.rows = append(b.table.rows, []string{o.Outcome, o.At, orDash(o.Code), status, fmt.Sprint(o.Count),
			percent(float64(o.Count) / float64(r.contenders())), orDash(message)})
	}
	w := r.Winners
	if total := w.None + w.One + w.Several; total > 0 && r.Detail.Counter == nil {
		who := "Winners"
		if r.Detail.Edits != nil {
			who = "Accepted edits"
		}
		b.text = append(b.text, fmt.Sprintf("%s a round: none in %d, one in %d, several in %d (fewest %d, most %d).",
			who, w.None, w.One, w.Several, w.Min, w.Max))
	}
	if l := r.Detail.Lease; l != nil {
		b.text = append(b.text, fmt.Sprintf("Of those that lost, %d lost at the read (%s), where no guard is, and %d at the conditional write. Periods a round: %d.",
			l.AtRead, percent(l.ReadShare), l.AtWrite, l.Periods))
	}
	return b
}

// deliveryBlock tells which way each delivery took.
func (r Result) deliveryBlock() block {
	b := block{heading: "What the deliveries did", table: table{header: []string{"delivery", "branch of the handler", "rounds"}, right: []bool{false, false, true}}}
	for _, d := range r.Detail.Deliveries {
		b.table.rows = append(b.table.rows, []string{d.Delivery, d.Branch, fmt.Sprint(d.Count)})
	}
	return b
}

func orDash(text string) string {
	if text == "" {
		return dash
	}
	return text
}

func (r Result) latencyBlock() block {
	b := block{heading: "Latency in ms, from the call to the complete reply",
		table: table{header: []string{"outcome", "at", "n", "min", "p50", "p90", "p95", "p99", "max"},
			right: []bool{false, false, true, true, true, true, true, true, true}}}
	methods := map[string]string{"exact": "nearest rank", "hdr": "a histogram of three digits"}
	var used []string
	for _, l := range r.Latency {
		at := l.At
		if l.Where != "" {
			at += ", " + l.Where
		}
		b.table.rows = append(b.table.rows, []string{l.Outcome, at, fmt.Sprint(l.N), milliseconds(l.Min), milliseconds(l.P50),
			milliseconds(l.P90), milliseconds(l.P95), milliseconds(l.P99), milliseconds(l.Max)})
		if !slices.Contains(used, methods[l.Method]) {
			used = append(used, methods[l.Method])
		}
	}
	if r.Target.Relayed {
		b.text = append(b.text, "server: as measured next to the store; the others are round trips from here, the wait for the common instant included.")
	}
	if len(used) > 0 {
		b.text = append(b.text, fmt.Sprintf("Percentiles by %s; %s: too few samples (p90 needs 10, p95 20, p99 100).",
			strings.Join(used, " and "), dash))
	}
	return b
}

func (r Result) contestBlock() block {
	c := r.Contention
	skew := fmt.Sprintf("%s, %s, %s ms", milliseconds(c.Skew.P50), milliseconds(c.Skew.P99), milliseconds(c.Skew.Max))
	inFlight, closest := dash, dash
	if c.MaxInFlight != nil {
		inFlight = fmt.Sprintf("%d of %d", *c.MaxInFlight, r.Params.Contenders)
	}
	if c.Closest != nil {
		closest = short(*c.Closest).String()
	}
	sentBy := map[string]string{"kernel-write": "at the kernel's write", "call": "at the call", "last-byte": "the last byte, at the kernel's write"}[c.Skew.Method]
	if r.Target.Relayed {
		sentBy = "next to the store, ± " + short(r.Target.Uncertainty).String()
	}
	b := block{heading: "Was there a contest? Medians over the rounds",
		table: table{header: []string{"figure", "value", "meaning"}, right: []bool{false, false, false},
			rows: [][]string{
				{"counted rounds", fmt.Sprintf("%d of %d raced", c.ContendedRounds, r.Rounds), "certain, and a real contest: what held rests on"},
				{"uncertain rounds", fmt.Sprint(c.UncertainRounds), "with an answer that may mean either"},
				{"uncounted rounds", fmt.Sprint(r.Rounds - c.ContendedRounds - c.UncertainRounds), "certain, and not a real contest"},
				{"rivals", fmt.Sprintf("%s, of %d needed", count(c.Rivals.P50), c.Rivals.Needed), "others whose write met the winner's at the guard"},
				{"reach", orDash(strings.TrimSuffix(milliseconds(c.Reach.P50)+" ms", dash+" ms")), "check and effect were no further apart"},
				{"max in flight", inFlight, "requests in flight at one moment"},
				{"overlap", share(c.Overlap), "pairs of contenders in flight together"},
				{"winner overlap", share(c.WinnerOverlap), "others sent before the winner had its reply"},
				{"guard contention", share(c.GuardContention), "others' writes in flight during the winner's"},
				{"reached the guard", fmt.Sprintf("%d of %d", c.ReachedGuard, c.Of), "contenders whose write the store decided on"},
				{"release skew", skew, "first to last sent: p50, p99, max (" + sentBy + ")"},
				{"closest sends", closest, "least time between two writes sent, of all rounds"},
			}}}
	b.text = append(append(b.text, r.uncountedTexts()...), r.controlsText())
	return b
}

func (r Result) controlsText() string {
	var controls []string
	for _, c := range r.Controls {
		text := c.Name + " ✓"
		switch {
		case c.LeftOut != "":
			text = c.Name + " left out (" + c.LeftOut + ")"
		case !c.AsExpected:
			text = c.Name + " ✗ (" + c.Detail + ")"
		case c.Name == "twin" && r.Detail.Ghosts != nil:
			text = fmt.Sprintf("twin ✓ (%d keys without a TTL blocked past the tolerance, as a ghost would)", c.Rounds)
		case c.Name == "live":
			text = fmt.Sprintf("live ✓ (%d keys blocked before their expiry)", c.Rounds)
		case c.Name == "twin":
			text = fmt.Sprintf("twin ✓ (unguarded, violated in %d of %d rounds)", c.Rounds, c.Rounds)
		}
		controls = append(controls, text)
	}
	if len(controls) == 0 {
		controls = []string{"none were made"}
	}
	return "Controls: " + strings.Join(controls, ", ") + "."
}

func count(n *int) string {
	if n == nil {
		return dash
	}
	return fmt.Sprint(*n)
}

func share(s *float64) string {
	if s == nil {
		return dash
	}
	return percent(*s)
}

func (r Result) witnessBlock(v scenarios.Violation) block {
	where := "round " + fmt.Sprint(v.Round)
	if v.Key != "" {
		where = "key " + v.Key
	}
	if v.Control != "" {
		where = "the " + v.Control + " control"
	}
	b := block{heading: fmt.Sprintf("Witness of %s, %s: %s", v.Kind, where, v.Detail),
		table: table{header: []string{"who", "request", "call ms", "return ms", "reply", "version", "token …"},
			right: []bool{false, false, true, true, false, true, false}}}
	begin := r.Params.KeyPrefix + r.Run + "-"
	last := len(b.table.header)
	if v.Key != "" {
		// A watch writes no versions, and the keys say who wrote.
		last -= 2
	}
	b.table.header, b.table.right = b.table.header[:last], b.table.right[:last]
	for _, w := range v.Witness {
		returned, reply := dash, string(w.Outcome)
		if w.Code != "" {
			reply += " " + w.Code
		}
		if w.Status != 0 {
			reply += fmt.Sprintf(" %d", w.Status)
		}
		if w.Return < math.MaxInt64 {
			returned = fmt.Sprintf("%.3f", float64(w.Return)/1e6)
		}
		b.table.rows = append(b.table.rows, []string{w.Who, w.Request, fmt.Sprintf("%.3f", float64(w.Call)/1e6), returned,
			reply, fmt.Sprint(w.Version), orDash(strings.TrimPrefix(w.Token, begin))}[:last])
	}
	text := "Times since the start of the run."
	if v.Key == "" {
		text += " Every token begins with " + begin
	}
	b.text = append(b.text, text)
	if more := len(r.Verdict.Violations) - 1; more > 0 {
		where := "-o json=FILE writes"
		if r.JSONTo != "" {
			where = r.JSONTo + " has"
		}
		b.text = append(b.text, fmt.Sprintf("%s more: %s the witnesses.", plural(more, "violation"), where))
	}
	return b
}

func (r Result) expectationBlock() block {
	b := block{heading: "Expectations", table: table{header: []string{"expected", "measured", "met"}, right: []bool{false, true, false}}}
	for _, e := range r.Expectations {
		met := "✗ no"
		if e.Met {
			met = "✓ yes"
		}
		b.table.rows = append(b.table.rows, []string{e.Expr, e.Figure, met})
	}
	return b
}

func (r Result) notes() []string {
	var notes []string
	if r.Verdict.Status == scenarios.Violated {
		for _, reason := range r.Verdict.Reasons {
			notes = append(notes, "Note: "+reason)
		}
	}
	if r.Left != "" {
		notes = append(notes, "Note: "+r.Left)
	}
	for _, n := range r.Target.Notes {
		notes = append(notes, "Note: "+n)
	}
	var strategies, labels []string
	for condition, way := range r.Target.Strategy {
		strategies = append(strategies, condition+"="+way)
	}
	for k, v := range r.Labels {
		labels = append(labels, k+"="+v)
	}
	slices.Sort(strategies)
	slices.Sort(labels)
	notes = append(notes, "Strategy: "+strings.Join(strategies, ", "))
	if len(labels) > 0 {
		notes = append(notes, "Labels: "+strings.Join(labels, ", "))
	}
	made := fmt.Sprintf("contend %s, %s, %s/%s, %d CPUs", r.Tool.Version, r.Tool.Go, r.Host.OS, r.Host.Arch, r.Host.CPUs)
	if r.Params.Seed != "" {
		made += ", seed " + r.Params.Seed
	}
	return append(notes, made)
}
