package report

import (
	"time"

	"contend/runner"
	"contend/scenarios"
	"contend/scenarios/stats"
	"contend/targets"
)

// RunColumns are those of a row of RunRow.
func RunColumns() []Column {
	var columns []Column
	for _, name := range []string{"run", "started", "elapsed_ns", "scenario", "target", "kind", "simulated", "server", "tool", "go", "verdict",
		"interrupted", "requests", "rounds", "contended_rounds", "violated_rounds", "winners_min", "winners_max", "won_p50_ns", "lost_p50_ns",
		"throttled", "labels"} {
		columns = append(columns, Column{Head: name, Name: name})
	}
	return columns
}

// RunRow is a result in a row: its figures that tell most.
func RunRow(r Result) []any {
	won, lost := medianOf(r.Latency, "won"), medianOf(r.Latency, "lost")
	return []any{r.Run, r.Started, r.Elapsed, r.Scenario, r.Target.URL, r.Target.Kind, r.Target.Simulated, r.Target.Server, r.Tool.Version,
		r.Tool.Go, string(r.Verdict.Status), r.Interrupted, r.Requests, r.Rounds, r.Contention.ContendedRounds, r.Verdict.ViolatedRounds,
		r.Winners.Min, r.Winners.Max, known(won), known(lost), counted(r.Outcomes, targets.Throttled), r.Labels}
}

// medianOf is that of an outcome's last writes: as measured next to the store
// where that is known, since round trips of a relayed target include the wait for
// the common instant.
func medianOf(latency []Latency, outcome string) *time.Duration {
	var median *time.Duration
	for _, l := range latency {
		if l.Outcome == outcome && l.At == string(targets.Write) && (median == nil || l.Where != "") {
			median = l.P50
		}
	}
	return median
}

func counted(outcomes []Outcome, outcome targets.Outcome) int {
	n := 0
	for _, o := range outcomes {
		if o.Outcome == string(outcome) {
			n += o.Count
		}
	}
	return n
}

// GhostColumns are those of the rows of GhostRows.
func GhostColumns() []Column {
	return []Column{{"key", "key"}, {"", "run"}, {"arm", "arm"}, {"", "target"}, {"state", "state"}, {"", "open"}, {"", "why"},
		{"run started UTC", "run_started"}, {"TTL", "ttl_ns"}, {"", "granted_ns"}, {"expiry UTC", "expiry"},
		{"last blocked", ""}, {"", "last_blocked_ns"}, {"first free", ""}, {"", "first_free_ns"}, {"", "last_shown_ns"}, {"", "first_gone_ns"},
		{"next due UTC", "next_due"}, {"", "probes"}, {"", "unanswered"}}
}

// GhostRows are those keys of a run that are wanted, a row each. Ages are after
// the expiry, for which all keys of the run are looked at.
func GhostRows(ghosts []*runner.Ghost, wanted func(*runner.Ghost) bool) [][]any {
	judge := scenarios.NewGhostJudge(ghosts[0].Run)
	judge.Watching(ghosts)
	var rows [][]any
	for i, k := range judge.Conclude(runner.End{}).Detail.Ghosts.Keys {
		g := ghosts[i]
		if !wanted(g) {
			continue
		}
		var due time.Time
		if !g.Closed {
			due = g.Epoch.Add(g.Due)
		}
		coarse := func(d *time.Duration) any {
			if d == nil {
				return nil
			}
			return stats.Coarse(*d)
		}
		rows = append(rows, []any{g.Key, g.Run, g.Arm, g.Target, string(g.State), !g.Closed, g.Why, g.Epoch, g.Terms.TTL, known(granted(g)), k.Expiry,
			coarse(k.LastBlocked), known(k.LastBlocked), coarse(k.FirstFree), known(k.FirstFree), known(k.LastShown), known(k.FirstGone),
			due, g.Probes, g.Unanswered})
	}
	return rows
}

func granted(g *runner.Ghost) *time.Duration {
	if g.Granted == 0 {
		return nil
	}
	return &g.Granted
}
