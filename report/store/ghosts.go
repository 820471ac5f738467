package store

import (
	"database/sql"
	"encoding/json"
	"iter"
	"runtime"
	"strings"
	"sync"
	"time"

	"contend/runner"
)

var _ runner.Journal = (*Store)(nil)

// Ghosts says which are meant: those that agree with every field that is not
// zero.
type Ghosts struct {
	Run    string // its ID, or the beginning of it, in capitals or not
	Target string // of the masked URL, any part
	Open   bool   // only those that are still asked about
	State  runner.GhostState
	Since  time.Time // the start of the run
	Until  time.Time // before it
	// Siblings: and all other keys of the runs that these are of.
	Siblings bool
}

func (g Ghosts) where() (string, []any) {
	conditions, values := []string{"TRUE"}, []any(nil)
	also := func(condition string, v ...any) {
		conditions, values = append(conditions, condition), append(values, v...)
	}
	if g.Run != "" {
		id := strings.ToUpper(g.Run)
		also("substr(run, 1, length(?)) = ?", id, id)
	}
	if g.Target != "" {
		also("instr(target, ?) > 0", g.Target)
	}
	if g.Open {
		also("closed = 0")
	}
	if g.State != "" {
		also("state = ?", string(g.State))
	}
	if !g.Since.IsZero() {
		also("epoch >= ?", g.Since.UnixNano())
	}
	if !g.Until.IsZero() {
		also("epoch < ?", g.Until.UnixNano())
	}
	where := strings.Join(conditions, " AND ")
	if g.Siblings {
		where = "run IN (SELECT run FROM ghosts WHERE " + where + ")"
	}
	return where, values
}

const keepGhost = `INSERT INTO ghosts (run, key, arm, target, state, closed, epoch, due, watched, ghost)
	VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)
	ON CONFLICT (run, key) DO UPDATE SET state = ?5, closed = ?6, due = ?8, watched = ?9, ghost = ?10 RETURNING id`

// rowOf gives what keepGhost takes.
func rowOf(g *runner.Ghost) ([]any, error) {
	text, err := json.Marshal(g)
	return []any{g.Run, g.Key, g.Arm, g.Target, string(g.State), g.Closed, g.Epoch.UnixNano(), g.Epoch.Add(g.Due).UnixNano(),
		g.Epoch.Add(g.End()).UnixNano(), string(text)}, err
}

// Intend keeps ghosts, all or none.
func (s *Store) Intend(ghosts []*runner.Ghost) error { return s.UpdateGhosts(ghosts) }

// UpdateGhosts keeps ghosts as they are, all or none.
func (s *Store) UpdateGhosts(ghosts []*runner.Ghost) error {
	return s.write(func(tx *sql.Tx) error {
		keep, err := tx.Prepare(keepGhost)
		if err != nil {
			return err
		}
		defer keep.Close()
		for _, g := range ghosts {
			row, err := rowOf(g)
			if err == nil {
				_, err = keep.Exec(row...)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// Note keeps a ghost as it is and adds an exchange to its probes, both or
// neither.
func (s *Store) Note(g *runner.Ghost, e *runner.Exchange) error {
	row, err := rowOf(g)
	if err != nil {
		return s.problem(err)
	}
	text, err := json.Marshal(e)
	if err != nil {
		return s.problem(err)
	}
	return s.write(func(tx *sql.Tx) error {
		var id int64
		if err := tx.QueryRow(keepGhost, row...).Scan(&id); err != nil {
			return err
		}
		_, err = tx.Exec("INSERT INTO probes (ghost, n, exchange) SELECT ?1, coalesce(max(n) + 1, 0), ?2 FROM probes WHERE ghost = ?1",
			id, string(text))
		return err
	})
}

// OpenGhosts gives the ghosts of a target, by its masked URL, that are still
// asked about, by when they are due; "": of all targets.
func (s *Store) OpenGhosts(target string) ([]*runner.Ghost, error) {
	if target == "" {
		return s.ghosts("SELECT ghost FROM ghosts WHERE closed = 0 ORDER BY due")
	}
	return s.ghosts("SELECT ghost FROM ghosts WHERE closed = 0 AND target = ? ORDER BY due", target)
}

// ghosts gives all that a query finds. Most of the time goes into reading JSON,
// which is shared out.
func (s *Store) ghosts(query string, values ...any) ([]*runner.Ghost, error) {
	const batch = 1000
	var ghosts []*runner.Ghost
	var wait sync.WaitGroup
	room, errs := make(chan struct{}, runtime.GOMAXPROCS(0)), make(chan error, 1)
	decode := func(texts [][]byte) {
		into := make([]runner.Ghost, len(texts))
		for i := range into {
			ghosts = append(ghosts, &into[i])
		}
		room <- struct{}{}
		wait.Go(func() {
			defer func() { <-room }()
			for i, text := range texts {
				if err := json.Unmarshal(text, &into[i]); err != nil {
					select {
					case errs <- err:
					default:
					}
				}
			}
		})
	}
	var texts [][]byte
	var failed error
	for text, err := range rows(s, query, values, func(row *sql.Rows) (text []byte, err error) { return text, row.Scan(&text) }) {
		if failed = err; failed != nil {
			break
		}
		if texts = append(texts, text); len(texts) == batch {
			decode(texts)
			texts = nil
		}
	}
	decode(texts)
	wait.Wait()
	select {
	case err := <-errs:
		return nil, s.problem(err)
	default:
	}
	if failed != nil {
		return nil, failed
	}
	return ghosts, nil
}

// Ghosts gives stored ghosts, by the start of their run, arm and number.
func (s *Store) Ghosts(which Ghosts) iter.Seq2[*runner.Ghost, error] {
	where, values := which.where()
	return rows(s, "SELECT ghost FROM ghosts WHERE "+where+" ORDER BY epoch, run, id", values, func(row *sql.Rows) (*runner.Ghost, error) {
		var text []byte
		if err := row.Scan(&text); err != nil {
			return nil, err
		}
		g := new(runner.Ghost)
		return g, json.Unmarshal(text, g)
	})
}

// Probes gives the exchanges that were noted for a ghost, the newest last.
func (s *Store) Probes(g *runner.Ghost) iter.Seq2[*runner.Exchange, error] {
	return rows(s, "SELECT exchange FROM probes WHERE ghost = (SELECT id FROM ghosts WHERE run = ? AND key = ?) ORDER BY n",
		[]any{g.Run, g.Key}, func(row *sql.Rows) (*runner.Exchange, error) {
			var text []byte
			if err := row.Scan(&text); err != nil {
				return nil, err
			}
			e := new(runner.Exchange)
			return e, json.Unmarshal(text, e)
		})
}

// Entry is a part of a store as it lies there: a run's result, or a ghost with
// its probes.
type Entry struct {
	Run    json.RawMessage `json:"run,omitempty"`
	Ghost  json.RawMessage `json:"ghost,omitempty"`
	Probes json.RawMessage `json:"probes,omitempty"` // an array
}

// Entries gives runs, each followed by its ghosts, the newest run last. A run
// that was killed may have ghosts only; it has no scenario and no labels.
func (s *Store) Entries(which Runs) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		where, values := which.where()
		ids := rows(s, `SELECT id FROM (SELECT id, started, scenario, target, labels FROM runs
			UNION ALL SELECT run, min(epoch), '', target, '{}' FROM ghosts WHERE run NOT IN (SELECT id FROM runs) GROUP BY run)
			WHERE `+where+` ORDER BY started, id`, values, func(row *sql.Rows) (id string, err error) { return id, row.Scan(&id) })
		for id, err := range ids {
			if err != nil {
				yield(Entry{}, err)
				return
			}
			for e, err := range s.entriesOf(id) {
				if !yield(e, err) || err != nil {
					return
				}
			}
		}
	}
}

func (s *Store) entriesOf(run string) iter.Seq2[Entry, error] {
	// A ghost and its probes are as they were at one moment.
	return rows(s, `SELECT result, NULL, NULL FROM runs WHERE id = ?1
		UNION ALL
		SELECT * FROM (SELECT NULL, ghost, (SELECT '[' || group_concat(exchange, ',' ORDER BY n) || ']' FROM probes WHERE probes.ghost = ghosts.id)
			FROM ghosts WHERE run = ?1 ORDER BY id)`, []any{run}, func(row *sql.Rows) (e Entry, err error) {
		return e, row.Scan((*[]byte)(&e.Run), (*[]byte)(&e.Ghost), (*[]byte)(&e.Probes))
	})
}
