package report

import (
	"fmt"
	"strings"
	"time"

	"contend/runner"
	"contend/scenarios"
	"contend/scenarios/stats"
	"contend/scenarios/survival"
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

// ghostParts tell of a watch: what is known in all, key by key, and the curve.
func (r Result) ghostParts() []part {
	return []part{r.delayPart(), r.keyPart(), curvePart(r.Detail.Ghosts)}
}

// ghostStates are those of a key, in the order of the summary.
var ghostStates = []runner.GhostState{runner.GhostBlocked, runner.GhostVisible, runner.GhostFree, runner.GhostEarly, runner.GhostPending, runner.GhostAbandoned}

// delayPart is the summary of a watch.
func (r Result) delayPart() part {
	g := r.Detail.Ghosts
	p := part{heading: "How long expired keys still block", columns: []column{{head: "arm", of: "at"}, {head: "keys", figure: "keys", unit: numbers}},
		figures: delayFigures(g)}
	for _, state := range ghostStates {
		p.columns = append(p.columns, column{head: string(state), figure: "keys " + string(state), unit: numbers})
	}
	p.columns = append(p.columns, column{head: "probes", figure: "probes", unit: numbers}, column{head: "asked by"})
	asked := map[string]string{scenarios.WriteArm: "creates, until one is accepted", scenarios.ReadArm: "reads, then a create",
		scenarios.OnceArm: "one create at a random age", scenarios.EarlyArm: "creates before the expiry and after, until one is accepted",
		scenarios.TwinArm: "one create; the key has no TTL"}
	for _, a := range g.Arms {
		row := []any{a.Arm, a.Keys}
		for _, state := range ghostStates {
			row = append(row, a.States[state])
		}
		p.rows = append(p.rows, append(row, a.Probes, asked[a.Arm]))
	}
	p.notes = append(p.notes, delayText(g)...)
	if len(r.Contention.Uncounted) > 0 {
		p.notes = append(p.notes, fmt.Sprintf("Of the write arm, %d of %d keys count; the others: %s.", r.Contention.ContendedRounds, r.Contention.Of,
			scenarios.UncountedText(r.Contention.Uncounted)))
	}
	p.notes = append(p.notes, fmt.Sprintf("TTL asked %s, tolerance %s, watched for %s. Ages count from the expiry by our own clock: between call and return of the create, plus the TTL "+
		"(or a longer one, where the store reported that it granted that).", g.TTL, g.Tolerance, g.Watch), r.controlsText())
	return p
}

// delayFigures are the estimates over the write arm. What lies beyond all that was
// observed has no value.
func delayFigures(g *scenarios.GhostReport) []figure {
	var all []figure
	for _, f := range []struct {
		name string
		q    *survival.Quantile
	}{{"delay p50", g.Median}, {"delay p90", g.P90}} {
		if f.q != nil {
			all = append(all, figure{name: f.name + " at least", value: unlessOpen(f.q.From), unit: times},
				figure{name: f.name + " at most", value: unlessOpen(f.q.To), unit: times})
		}
	}
	return append(all, figure{name: "keys that blocked after a clean read", value: g.CleanReads, unit: numbers})
}

// unlessOpen is a cell of an age that was observed.
func unlessOpen(age time.Duration) any {
	if age == survival.Forever {
		return nil
	}
	return age
}

// keyPart has a row a key.
func (r Result) keyPart() part {
	g := r.Detail.Ghosts
	longest := time.Duration(1)
	for i := range g.Keys {
		for _, age := range []*time.Duration{g.Keys[i].LastBlocked, g.Keys[i].FirstFree, g.Keys[i].LastShown, g.Keys[i].FirstGone} {
			if age != nil {
				longest = max(longest, *age)
			}
		}
	}
	p := part{heading: fmt.Sprintf("Key by key: from the expiry to %s after it", stats.Coarse(longest)),
		columns: []column{{of: "figure"}, {of: "at"}, {of: "outcome"}, {of: "code"}, {of: "status"}, {head: "key"}, {head: "expiry UTC"}, {head: "timeline"},
			{head: "blocks until", unit: toRight}, {figure: "last blocked", unit: times}, {figure: "first free", unit: times},
			{head: "read until", unit: toRight}, {figure: "last shown", unit: times}, {figure: "first gone", unit: times}, {head: "state"}}}
	prefix := r.Params.KeyPrefix + r.Run + "-"
	expiryFormat := "15:04:05.000"
	if g.Watch >= 12*time.Hour {
		expiryFormat = "01-02 15:04:05"
	}
	for i := range g.Keys {
		k := &g.Keys[i]
		name, expiry, state := strings.TrimPrefix(k.Key, prefix), "", string(k.State)
		if !k.Expiry.IsZero() {
			expiry = k.Expiry.UTC().Format(expiryFormat)
		}
		if k.Why != "" {
			state += ": " + k.Why
		}
		p.rows = append(p.rows, []any{" of " + name, k.Arm, string(k.State), k.Code, unlessZero(k.Status), name, expiry, lifetime{k, longest},
			span{k.LastBlocked, k.FirstFree}, known(k.LastBlocked), known(k.FirstFree),
			span{k.LastShown, k.FirstGone}, known(k.LastShown), known(k.FirstGone), state})
	}
	p.notes = []string{"█ blocks creates, ▓ is read, ░ not known, · free. An interval is from the last probe that was refused to the first that was accepted.",
		"Every key begins with " + prefix}
	return p
}

// span is a cell of an interval of ages.
type span struct{ low, high *time.Duration }

func (s span) String() string { return ages(s.low, s.high) }

// lifetime is a cell of what is known of a key, from its expiry to an age.
type lifetime struct {
	key  *scenarios.GhostKey
	upTo time.Duration
}

// timelineColumns is how wide the life of a key is drawn.
const timelineColumns = 20

func (l lifetime) String() string {
	var b strings.Builder
	for i := range timelineColumns {
		at := time.Duration(float64(l.upTo) * (float64(i) + 0.5) / timelineColumns)
		until := func(age *time.Duration) bool { return age != nil && at <= *age }
		from := func(age *time.Duration) bool { return age != nil && at >= *age }
		switch k := l.key; {
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

// curvePart is the share of keys that still block.
func curvePart(g *scenarios.GhostReport) part {
	p := part{heading: "Share of the keys of the write arm that still block, by age"}
	end := g.LastAge()
	if len(g.Curve) == 0 || end == 0 {
		return p
	}
	p.plot = &plot{caption: fmt.Sprintf("0 to %s after the expiry; with its 95 %% interval", stats.Coarse(end)), form: held,
		x: axis{unit: "ns", to: float64(end)}, y: axis{unit: "share", to: 1, write: digits(1)},
		series: []series{{name: "low"}, {name: "high"}, {name: "share"}}}
	add := func(age time.Duration, values ...float64) {
		for i, y := range values {
			p.plot.series[i].points = append(p.plot.series[i].points, point{float64(age), y})
		}
	}
	add(0, 1, 1, 1)
	for _, step := range g.Curve {
		add(step.From, step.Low, step.High, step.Survival)
	}
	return p
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
		add("%d of the %d keys of the write arm were still blocking when last asked (right-censored).", open, g.Watched())
	}
	if q, ok := survival.QuantileOf(g.Once, 50); ok {
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
			stats.Coarse(*floor), percentUp(bound.AtMost))
	}
	if shown, of, longest := g.Shown(); shown > 0 {
		add("Reads still showed %d of %d keys after their expiry, for %s at least.", shown, of, stats.Coarse(longest))
	}
	if g.CleanReads > 0 {
		add("%d keys still refused a create after a read had shown them gone: a read does not show whether a key is free.", g.CleanReads)
	}
	for _, r := range g.Granted {
		if r.From != g.TTL || r.To != g.TTL {
			add("The store granted a TTL of %s where %s was asked.", ages(&r.From, &r.To), g.TTL)
		}
	}
	for _, r := range g.Offset {
		if r.From <= 0 && r.To >= 0 {
			add("The store reports the expiry that our own clock gives (within %s): a cross-check only.", stats.Coarse(max(-r.From, r.To)))
		} else {
			add("The store reports an expiry %s from ours, by its own clock: a cross-check only.", signed(r))
		}
	}
	return lines
}
