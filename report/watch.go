package report

import (
	"fmt"
	"strings"
	"time"

	"github.com/guptarohit/asciigraph"

	"contend/runner"
	"contend/scenarios"
)

// ghostStatus is the verdict of a watch with its strength.
func (r Result) ghostStatus() string {
	v, g := r.Verdict, r.Detail.Ghosts
	switch v.Status {
	case scenarios.Held:
		return fmt.Sprintf("held: %d of %d keys that were asked by creates were free within %s of their expiry, none blocked longer or went early; "+
			"rate under %s (%.0f %% confidence, if keys are swept independently)",
			r.Contention.ContendedRounds, r.Contention.Of, g.Tolerance, percentUp(v.Bound.AtMost), 100*v.Bound.Confidence)
	case scenarios.Violated:
		first := v.Violations[0]
		if first.Control != "" {
			return fmt.Sprintf("violated in the %s control: %s", first.Control, first.Detail)
		}
		text := fmt.Sprintf("violated by %d of the %d keys of the write arm: %s", v.ViolatedRounds, g.Watched(), first.Detail)
		if v.ViolatedRounds == 0 {
			text = fmt.Sprintf("violated by %d keys of other arms than write, such as %s: %s", len(v.Violations), first.Witness[0].Who, first.Detail)
		} else if g.Median != nil {
			text += "; median delay " + quantileText(g.Median)
		}
		return text
	default:
		return "inconclusive: " + strings.Join(v.Reasons, "; ")
	}
}

func (r Result) unitsText() string {
	if r.QuotaUnits == nil {
		return ""
	}
	return fmt.Sprintf(", about %d quota units", *r.QuotaUnits)
}

// ages writes an interval of ages, or of a delay.
func ages(low, high *time.Duration) string {
	switch {
	case low == nil && high == nil:
		return dash
	case high == nil:
		return "over " + scenarios.Coarse(*low).String()
	case low == nil || *low <= 0:
		return "up to " + scenarios.Coarse(*high).String()
	default:
		return scenarios.Coarse(*low).String() + " to " + scenarios.Coarse(*high).String()
	}
}

// ghostBlocks tell of a watch: what is known in all, key by key, and the curve.
func (r Result) ghostBlocks() []block {
	return []block{r.delayBlock(), r.keyBlock(), r.curveBlock()}
}

// delayBlock is the summary of a watch.
func (r Result) delayBlock() block {
	g := r.Detail.Ghosts
	b := block{heading: "How long expired keys still block", table: table{header: []string{"arm", "keys", "blocked", "visible", "free", "early", "pending", "abandoned", "probes", "asked by"},
		right: []bool{false, true, true, true, true, true, true, true, true, false}}}
	asked := map[string]string{scenarios.WriteArm: "creates, until one is accepted", scenarios.ReadArm: "reads, then a create",
		scenarios.OnceArm: "one create at a random age", scenarios.EarlyArm: "creates before the expiry and after, until one is accepted",
		scenarios.TwinArm: "one create; the key has no TTL"}
	for _, a := range g.Arms {
		row := []string{a.Arm, fmt.Sprint(a.Keys)}
		for _, state := range []runner.GhostState{runner.GhostBlocked, runner.GhostVisible, runner.GhostFree, runner.GhostEarly, runner.GhostPending, runner.GhostAbandoned} {
			row = append(row, fmt.Sprint(a.States[state]))
		}
		b.table.rows = append(b.table.rows, append(row, fmt.Sprint(a.Probes), asked[a.Arm]))
	}
	b.text = append(b.text, delayText(g)...)
	if len(r.Contention.Uncounted) > 0 {
		b.text = append(b.text, fmt.Sprintf("Of the write arm, %d of %d keys count; the others: %s.", r.Contention.ContendedRounds, r.Contention.Of,
			scenarios.UncountedText(r.Contention.Uncounted)))
	}
	b.text = append(b.text, fmt.Sprintf("TTL asked %s, tolerance %s, watched for %s. Ages count from the expiry by our own clock: between call and return of the create, plus the TTL "+
		"(or a longer one, where the store told that it granted that).", g.TTL, g.Tolerance, g.Watch))
	b.text = append(b.text, r.controlsText())
	return b
}

// timelineColumns is how wide the life of a key is drawn.
const timelineColumns = 20

// keyBlock has a line a key.
func (r Result) keyBlock() block {
	g := r.Detail.Ghosts
	longest := time.Duration(1)
	for i := range g.Keys {
		for _, age := range []*time.Duration{g.Keys[i].LastBlocked, g.Keys[i].FirstFree, g.Keys[i].LastShown, g.Keys[i].FirstGone} {
			if age != nil {
				longest = max(longest, *age)
			}
		}
	}
	b := block{heading: fmt.Sprintf("Key by key: from the expiry to %s after it", scenarios.Coarse(longest)),
		table: table{header: []string{"key", "expiry UTC", "timeline", "blocks until", "read until", "state"},
			right: []bool{false, false, false, true, true, false}}}
	prefix := r.Params.KeyPrefix + r.Run + "-"
	for i := range g.Keys {
		k := &g.Keys[i]
		expiry := dash
		if !k.Expiry.IsZero() {
			expiry = k.Expiry.UTC().Format(map[bool]string{false: "15:04:05.000", true: "01-02 15:04:05"}[g.Watch >= 12*time.Hour])
		}
		state := string(k.State)
		if k.Why != "" {
			state += ": " + k.Why
		}
		b.table.rows = append(b.table.rows, []string{strings.TrimPrefix(k.Key, prefix), expiry, timeline(k, longest),
			ages(k.LastBlocked, k.FirstFree), ages(k.LastShown, k.FirstGone), state})
	}
	b.text = append(b.text, "█ blocks creates, ▓ is read, ░ not known, · free. An interval is from the last probe that was refused to the first that was accepted.",
		"Every key begins with "+prefix)
	return b
}

// timeline draws a key's life after its expiry.
func timeline(k *scenarios.GhostKey, longest time.Duration) string {
	var b strings.Builder
	for i := range timelineColumns {
		at := time.Duration(float64(longest) * (float64(i) + 0.5) / timelineColumns)
		until := func(age *time.Duration) bool { return age != nil && at <= *age }
		from := func(age *time.Duration) bool { return age != nil && at >= *age }
		switch {
		case until(k.LastBlocked):
			b.WriteRune('█')
		case until(k.LastShown):
			b.WriteRune('▓')
		case from(k.FirstFree), from(k.FirstGone) && k.LastBlocked == nil:
			b.WriteRune('·')
		default:
			b.WriteRune('░')
		}
	}
	return b.String()
}

const (
	plotColumns = 60
	plotRows    = 10
)

// curveBlock draws the share of keys that still block.
func (r Result) curveBlock() block {
	g := r.Detail.Ghosts
	b := block{heading: "Share of the keys of the write arm that still block, by age"}
	end := g.LastAge()
	if len(g.Curve) == 0 || end == 0 {
		return b
	}
	var low, middle, high []float64
	for i := range plotColumns + 1 {
		s := scenarios.SurvivalAt(g.Curve, time.Duration(float64(end)*float64(i)/plotColumns))
		low, middle, high = append(low, s.Low), append(middle, s.Survival), append(high, s.High)
	}
	b.plain = asciigraph.PlotMany([][]float64{low, high, middle}, asciigraph.Height(plotRows), asciigraph.LowerBound(0), asciigraph.UpperBound(1),
		asciigraph.Precision(1), asciigraph.Caption(fmt.Sprintf("0 to %s after the expiry; with its 95 %% interval", scenarios.Coarse(end)))) + "\n"
	return b
}

// delayText tells what the arms say together.
func delayText(g *scenarios.GhostReport) []string {
	var lines []string
	add := func(format string, a ...any) { lines = append(lines, fmt.Sprintf(format, a...)) }
	if g.Median != nil {
		text := "Median delay " + quantileText(g.Median)
		if g.P90 != nil {
			text += ", p90 " + quantileText(g.P90)
		}
		lines = append(lines, text+" (Turnbull's estimate over the write arm).")
	}
	if k := g.Longest; k != nil {
		add("Longest seen to block: %s for %s.", k.Key[strings.LastIndex(k.Key, "-")+1:], ages(k.LastBlocked, k.FirstFree))
	}
	open := 0
	for i := range g.Keys {
		if k := &g.Keys[i]; k.Arm == scenarios.WriteArm && k.FirstFree == nil && k.LastBlocked != nil {
			open++
		}
	}
	if open > 0 {
		add("%d of the %d keys of the write arm were never seen free.", open, g.Watched())
	}
	if q, ok := scenarios.QuantileOf(g.Once, 50); ok {
		add("Of keys left alone until they were asked once, the median delay is %s (current-status estimate of the once arm).", quantileText(&q))
	}
	switch a := g.OnceAgree; {
	case a == nil:
	case a.Disagrees:
		add("The once arm disagrees with the write arm (p = %.2g): asking about a key changes how long it blocks, so the delays of the write arm are not those of a key left alone.", a.P)
	default:
		add("The once arm agrees with the write arm (p = %.2g): no sign that asking about a key changes how long it blocks.", a.P)
	}
	if floor, bound := g.EarlyFloor, g.EarlyBound; floor != nil && bound != nil && bound.AtLeast == nil {
		add("No key went early: each of the early arm was seen to live until %s before its expiry or closer; of keys that go before that, the rate is under %s (95 %% confidence).",
			scenarios.Coarse(*floor), percentUp(bound.AtMost))
	}
	if shown, of, longest := g.Shown(); shown > 0 {
		add("Reads still showed %d of %d keys after their expiry, for %s at least.", shown, of, scenarios.Coarse(longest))
	}
	if g.CleanReads > 0 {
		add("%d keys still refused a create after a read had shown them gone: reads do not tell whether a key is free.", g.CleanReads)
	}
	for _, r := range g.Granted {
		if r.From != g.TTL || r.To != g.TTL {
			add("The store granted a TTL of %s where %s was asked.", ages(&r.From, &r.To), g.TTL)
		}
	}
	for _, r := range g.Offset {
		if r.From <= 0 && r.To >= 0 {
			add("The store tells the expiry that our own clock gives (within %s): a cross-check only.", scenarios.Coarse(max(-r.From, r.To)))
		} else {
			add("The store tells an expiry %s from ours, by its own clock: a cross-check only.", signed(r))
		}
	}
	return lines
}

// signed writes how far one clock is from another.
func signed(r scenarios.Range) string {
	return fmt.Sprintf("%+.3g to %+.3g s", r.From.Seconds(), r.To.Seconds())
}

// quantileText writes where a quantile lies, with its 95 % interval.
func quantileText(q *scenarios.Quantile) string {
	text := quantileRange(q)
	if interval := agesTo(q.Low, q.High); interval != text && !(q.Low <= 0 && scenarios.Open(q.High)) {
		text += " (95 % interval: " + interval + ")"
	}
	return text
}

func quantileRange(q *scenarios.Quantile) string { return agesTo(q.From, q.To) }

// agesTo writes an interval that may have no end.
func agesTo(from, to time.Duration) string {
	if scenarios.Open(to) {
		return ages(&from, nil)
	}
	return ages(&from, &to)
}
