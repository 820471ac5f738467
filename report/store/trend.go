package store

import (
	"database/sql"
	"encoding/json"
	"strings"

	"contend/report"
	"contend/runner"
	"contend/scenarios"
)

// TrendRuns gives what a trend takes of the runs, with the keys that they
// watched, but for those that were asked a single time. Runs that were killed
// before they had a result are among them; they have no labels.
func (s *Store) TrendRuns(which Runs) ([]report.TrendRun, error) {
	where, values := which.where()
	var runs []report.TrendRun
	at := make(map[string]int)
	for r, err := range rows(s, "SELECT result FROM runs WHERE "+where+" ORDER BY started, id", values, func(row *sql.Rows) (r report.TrendRun, err error) {
		var text []byte
		if err := row.Scan(&text); err != nil {
			return r, err
		}
		return r, json.Unmarshal(text, &r)
	}) {
		if err != nil {
			return nil, err
		}
		at[r.Run] = len(runs)
		runs = append(runs, r)
	}
	watch := scenarios.NewTTLGhost().Info().Name
	ghosts, err := s.ghosts(`SELECT ghost FROM ghosts WHERE arm NOT IN (?, ?) AND (run IN (SELECT id FROM runs WHERE `+where+`)
		OR run NOT IN (SELECT id FROM runs)) ORDER BY epoch, run, id`, append([]any{scenarios.OnceArm, scenarios.TwinArm}, values...)...)
	for _, g := range ghosts {
		i, ok := at[g.Run]
		if !ok && !(len(which.Labels) == 0 && (which.Scenario == "" || which.Scenario == watch) && which.killed(g)) {
			continue
		}
		if !ok {
			i = len(runs)
			at[g.Run] = i
			runs = append(runs, report.TrendRun{Killed: true, RunHeader: report.RunHeader{Run: g.Run, Scenario: watch, Started: g.Epoch,
				Target: report.Target{URL: g.Target}}})
		}
		runs[i].Ghosts = append(runs[i].Ghosts, g)
	}
	return runs, err
}

// killed tells whether a run is meant that is only known by a key.
func (r Runs) killed(g *runner.Ghost) bool {
	return strings.HasPrefix(g.Run, strings.ToUpper(r.ID)) && strings.Contains(g.Target, r.Target) &&
		!g.Epoch.Before(r.Since) && (r.Until.IsZero() || g.Epoch.Before(r.Until))
}
