package report

import (
	"fmt"
	"math"
	"strings"
	"time"

	"contend/scenarios"
)

// contestPart is the evidence that there was a contest.
func (r Result) contestPart() part {
	c := r.Contention
	sentBy := map[string]string{"kernel-write": "at the kernel's write", "call": "at the call", "last-byte": "the last byte, at the kernel's write"}[c.Skew.Method]
	if r.Target.Relayed {
		sentBy = "next to the store, ± " + short(r.Target.Uncertainty).String()
	}
	number := func(n any) figure { return figure{value: n, unit: numbers} }
	share := func(s *float64) figure { return figure{value: known(s), unit: shares} }
	ms := func(d *time.Duration) figure { return figure{value: known(d), unit: times} }
	p := part{heading: "Was there a contest? Medians over the rounds", columns: factColumns, figures: contestFigures(c)}
	p.fact("counted rounds", "%s of %s raced", "certain, and a real contest: what held rests on", number(c.ContendedRounds), number(r.Rounds))
	p.fact("uncertain rounds", "%s", "with an answer that may mean either", number(c.UncertainRounds))
	p.fact("uncounted rounds", "%s", "certain, and not a real contest", number(r.Rounds-c.ContendedRounds-c.UncertainRounds))
	p.fact("rivals", "%s, of %s needed", "others whose write met the winner's at the guard", number(known(c.Rivals.P50)), number(c.Rivals.Needed))
	p.fact("reach", "%s ms", "check and effect were no further apart", ms(c.Reach.P50))
	p.fact("max in flight", "%s of "+fmt.Sprint(r.Params.Contenders), "requests in flight at one moment", number(known(c.MaxInFlight)))
	p.fact("overlap", "%s", "pairs of contenders in flight together", share(c.Overlap))
	p.fact("winner overlap", "%s", "others sent before the winner had its reply", share(c.WinnerOverlap))
	p.fact("guard contention", "%s", "others' writes in flight during the winner's", share(c.GuardContention))
	p.fact("reached the guard", "%s of %s", "contenders whose write the store decided on", number(c.ReachedGuard), number(c.Of))
	p.fact("release skew", "%s, %s, %s ms", "first to last sent: p50, p99, max ("+sentBy+")", ms(c.Skew.P50), ms(c.Skew.P99), ms(c.Skew.Max))
	p.fact("least gap", "%s", "between two sends of writes, of all rounds", figure{value: known(c.Closest), unit: shortTimes})
	p.notes = append(r.uncountedTexts(), r.controlsText())
	return p
}

// contestFigures are those of the evidence, in the order that format csv has had them in.
func contestFigures(c scenarios.Contention) []figure {
	return []figure{
		{name: "rivals needed", value: c.Rivals.Needed, unit: numbers},
		{name: "rivals p50", value: known(c.Rivals.P50), unit: numbers},
		{name: "reach counted at least", value: c.Reach.AtLeast, unit: numbers},
		{name: "max in flight", value: known(c.MaxInFlight), unit: numbers},
		{name: "reach", value: known(c.Reach.Reach), unit: times},
		{name: "reach p50", value: known(c.Reach.P50), unit: times},
		{name: "overlap", value: known(c.Overlap), unit: shares},
		{name: "winner overlap", value: known(c.WinnerOverlap), unit: shares},
		{name: "guard contention", value: known(c.GuardContention), unit: shares},
		{name: "release skew p50", value: known(c.Skew.P50), unit: times},
		{name: "release skew p99", value: known(c.Skew.P99), unit: times},
		{name: "release skew max", value: known(c.Skew.Max), unit: times},
		{name: "closest sends", value: known(c.Closest), unit: times},
		{name: "reached guard", value: c.ReachedGuard, unit: numbers},
	}
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
			text = fmt.Sprintf("negative control ✓ (the twin: %d keys without a TTL blocked past the tolerance, as a ghost would)", c.Rounds)
		case c.Name == "live":
			text = fmt.Sprintf("live ✓ (%d keys blocked before their expiry)", c.Rounds)
		case c.Name == "twin":
			text = fmt.Sprintf("negative control ✓ (the unguarded twin, violated in %d of %d rounds)", c.Rounds, c.Rounds)
		}
		controls = append(controls, text)
	}
	if len(controls) == 0 {
		controls = []string{"none were made"}
	}
	return "Controls: " + strings.Join(controls, ", ") + "."
}

// witnessPart shows the requests that cannot all be right.
func (r Result) witnessPart(v scenarios.Violation) part {
	where := "round " + fmt.Sprint(v.Round)
	if v.Key != "" {
		where = "key " + v.Key
	}
	if v.Control != "" {
		where = "the " + v.Control + " control"
	}
	p := part{heading: fmt.Sprintf("Witness of %s, %s: %s", v.Kind, where, v.Detail),
		columns: []column{{head: "who"}, {head: "request"}, {head: "call ms", unit: instants}, {head: "return ms", unit: instants}, {head: "reply"},
			{head: "version", unit: toRight}, {head: "token …"}}}
	begin := r.Params.KeyPrefix + r.Run + "-"
	if v.Key != "" {
		// A watch writes no versions, and the keys say who wrote.
		p.columns = p.columns[:len(p.columns)-2]
	}
	for _, w := range v.Witness {
		reply := string(w.Outcome)
		if w.Code != "" {
			reply += " " + w.Code
		}
		if w.Status != 0 {
			reply += fmt.Sprintf(" %d", w.Status)
		}
		p.rows = append(p.rows, []any{w.Who, w.Request, w.Call, unlessNever(w.Return), reply, w.Version, strings.TrimPrefix(w.Token, begin)}[:len(p.columns)])
	}
	text := "Times since the start of the run."
	if v.Key == "" {
		text += " Every token begins with " + begin
	}
	p.notes = append(p.notes, text)
	if more := len(r.Verdict.Violations) - 1; more > 0 {
		where := "-o json=FILE writes"
		if r.JSONTo != "" {
			where = r.JSONTo + " has"
		}
		p.notes = append(p.notes, fmt.Sprintf("%s more: %s the witnesses.", plural(more, "violation"), where))
	}
	return p
}

// unlessNever is a cell of an instant; the greatest one is that of what never came.
func unlessNever(at time.Duration) any {
	if at == math.MaxInt64 {
		return nil
	}
	return at
}
