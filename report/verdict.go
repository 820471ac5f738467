package report

import (
	"fmt"
	"strings"

	"contend/scenarios"
	"contend/scenarios/stats"
)

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
		"one that sometimes does is bounded by the rate only", reach.AtLeast, milliseconds(*reach.Reach))
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
