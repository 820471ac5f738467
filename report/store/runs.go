package store

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"contend/report"
)

// Run is a stored run without its result.
type Run struct {
	ID          string
	Started     time.Time
	Elapsed     time.Duration
	Interrupted bool
	Scenario    string
	Verdict     string // empty where there is none
	Target      string // URL, with secrets masked
	Kind        string // of the target
	Server      string
	Simulated   bool
	Tool        string // the version of contend
	Go          string
	Labels      map[string]string
}

// Runs says which are meant: those that agree with every field that is not
// zero.
type Runs struct {
	ID       string // or its beginning, in capitals or not
	Scenario string
	Target   string // of the masked URL, any part
	Labels   map[string]string
	Since    time.Time // the start
	Until    time.Time // before it
}

// where gives the condition in SQL, after WHERE.
func (r Runs) where() (string, []any) {
	conditions, values := []string{"TRUE"}, []any(nil)
	also := func(condition string, v ...any) {
		conditions, values = append(conditions, condition), append(values, v...)
	}
	if r.ID != "" {
		id := strings.ToUpper(r.ID)
		also("substr(id, 1, length(?)) = ?", id, id)
	}
	if r.Scenario != "" {
		also("scenario = ?", r.Scenario)
	}
	if r.Target != "" {
		also("instr(target, ?) > 0", r.Target)
	}
	for name, value := range r.Labels {
		also("EXISTS (SELECT 1 FROM json_each(labels) WHERE key = ? AND value = ?)", name, value)
	}
	if !r.Since.IsZero() {
		also("started >= ?", r.Since.UnixNano())
	}
	if !r.Until.IsZero() {
		also("started < ?", r.Until.UnixNano())
	}
	return strings.Join(conditions, " AND "), values
}

// SaveResult keeps a result, in the place of what was kept of the same run.
func (s *Store) SaveResult(r report.Result) error {
	result, err := json.Marshal(r)
	if err != nil {
		return s.problem(err)
	}
	labels := r.Labels
	if labels == nil {
		labels = map[string]string{}
	}
	pairs, err := json.Marshal(labels)
	if err != nil {
		return s.problem(err)
	}
	return s.write(func(tx *sql.Tx) error {
		_, err := tx.Exec(`INSERT OR REPLACE INTO runs (id, started, elapsed, interrupted, scenario, verdict,
			target, kind, server, simulated, tool, go, labels, result) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
			r.Run, r.Started.UnixNano(), r.Elapsed, r.Interrupted, r.Scenario, string(r.Verdict.Status),
			r.Target.URL, r.Target.Kind, r.Target.Server, r.Target.Simulated, r.Tool.Version, r.Tool.Go, string(pairs), string(result))
		return err
	})
}

// Runs gives stored runs, the newest last.
func (s *Store) Runs(which Runs) iter.Seq2[Run, error] {
	where, values := which.where()
	return rows(s, `SELECT id, started, elapsed, interrupted, scenario, verdict, target, kind, server, simulated, tool, go, labels
		FROM runs WHERE `+where+` ORDER BY started, id`, values, func(row *sql.Rows) (Run, error) {
		var r Run
		var started int64
		var labels []byte
		if err := row.Scan(&r.ID, &started, &r.Elapsed, &r.Interrupted, &r.Scenario, &r.Verdict, &r.Target, &r.Kind, &r.Server,
			&r.Simulated, &r.Tool, &r.Go, &labels); err != nil {
			return r, err
		}
		r.Started = time.Unix(0, started).UTC()
		return r, json.Unmarshal(labels, &r.Labels)
	})
}

// Results gives stored results, the newest last.
func (s *Store) Results(which Runs) iter.Seq2[report.Result, error] {
	where, values := which.where()
	return rows(s, "SELECT result FROM runs WHERE "+where+" ORDER BY started, id", values, func(row *sql.Rows) (report.Result, error) {
		var r report.Result
		var text []byte
		if err := row.Scan(&text); err != nil {
			return r, err
		}
		return r, json.Unmarshal(text, &r)
	})
}

// Result gives the result of one run, by its ID or a beginning of it that no
// other has.
func (s *Store) Result(id string) (report.Result, error) {
	var found []string
	for r, err := range s.Runs(Runs{ID: id}) {
		if err != nil {
			return report.Result{}, err
		}
		found = append(found, r.ID)
	}
	switch {
	case len(found) == 0 || id == "":
		return report.Result{}, &Error{s.name, ErrNoRun, fmt.Sprintf("no ID begins with %q: `contend results list` shows them", id), nil}
	case len(found) > 1:
		return report.Result{}, &Error{s.name, ErrNoRun, fmt.Sprintf("%d IDs begin with %q, from %s to %s: give more of it",
			len(found), id, slices.Min(found), slices.Max(found)), nil}
	}
	for r, err := range s.Results(Runs{ID: found[0]}) {
		return r, err
	}
	return report.Result{}, &Error{s.name, ErrNoRun, found[0] + " was removed just now", nil}
}

// rows gives what a query finds, each row as one makes of it. Only the row in
// hand is in memory.
func rows[T any](s *Store, query string, values []any, one func(*sql.Rows) (T, error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var none T
		found, err := s.reader.Query(query, values...)
		if err != nil {
			yield(none, s.problem(err))
			return
		}
		defer found.Close()
		for found.Next() {
			each, err := one(found)
			if err != nil {
				yield(none, s.problem(err))
				return
			}
			if !yield(each, nil) {
				return
			}
		}
		if err := found.Err(); err != nil {
			yield(none, s.problem(err))
		}
	}
}
