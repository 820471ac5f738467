package store

import (
	"database/sql"
	"math"
	"time"
)

// Pruned counts what was removed, or would be.
type Pruned struct {
	Runs   int   // with a result
	Ghosts int   // of these and of runs that were killed
	Probes int   // of the ghosts
	Kept   int   // runs that are old enough, but have a ghost that is still watched
	Bytes  int64 // that the file is smaller
}

// condemned are the runs that started before ?1, but for those with an open
// ghost whose watch goes on after it: what is still asked about needs all the
// keys of its run.
const condemned = `WITH old AS (
		SELECT id AS run FROM runs WHERE started < ?1 UNION SELECT run FROM ghosts WHERE epoch < ?1
	), watched AS (
		SELECT run FROM ghosts WHERE closed = 0 AND watched >= ?1 AND epoch < ?1
	), condemned AS (
		SELECT run FROM old WHERE run NOT IN watched
	) `

// Prune removes the runs that started before a time, with their ghosts and all
// probes, and gives the room back to the disk. A run with an open ghost whose
// watch had not ended by then is kept whole; an open ghost whose watch had is
// not: nobody resumed it. A dry one only counts. Where it fails half-way, the
// runs that were removed are removed whole.
func (s *Store) Prune(before time.Time, dry bool) (Pruned, error) {
	p, at := Pruned{}, before.UnixNano()
	err := s.reader.QueryRow(condemned+`SELECT (SELECT count(*) FROM runs WHERE id IN condemned),
		(SELECT count(*) FROM ghosts WHERE run IN condemned),
		(SELECT count(*) FROM probes WHERE ghost IN (SELECT id FROM ghosts WHERE run IN condemned)),
		(SELECT count(*) FROM old WHERE run IN watched)`, at).Scan(&p.Runs, &p.Ghosts, &p.Probes, &p.Kept)
	if err != nil || dry {
		return p, s.problem(err)
	}
	p.Runs, p.Ghosts, p.Probes = 0, 0, 0
	var runs []string
	for run, err := range rows(s, condemned+"SELECT run FROM condemned ORDER BY run", []any{at}, func(row *sql.Rows) (run string, err error) {
		return run, row.Scan(&run)
	}) {
		if err != nil {
			return p, err
		}
		runs = append(runs, run)
	}
	size, err := s.size()
	if err != nil {
		return p, err
	}
	// A transaction a run: the write-ahead log stays small, and others get their turn.
	for _, run := range runs {
		if err := s.remove(run, &p); err != nil {
			return p, err
		}
	}
	if err := s.shrink(); err != nil {
		return p, err
	}
	now, err := s.size()
	p.Bytes = size - now
	return p, err
}

func (s *Store) remove(run string, p *Pruned) error {
	return s.write(func(tx *sql.Tx) error {
		for _, step := range []struct {
			statement string
			count     *int
		}{
			{"DELETE FROM probes WHERE ghost IN (SELECT id FROM ghosts WHERE run = ?)", &p.Probes},
			{"DELETE FROM ghosts WHERE run = ?", &p.Ghosts},
			{"DELETE FROM runs WHERE id = ?", &p.Runs},
		} {
			result, err := tx.Exec(step.statement, run)
			if err != nil {
				return err
			}
			n, err := result.RowsAffected()
			if err != nil {
				return err
			}
			*step.count += int(n)
		}
		return nil
	})
}

// size is that of the file when its write-ahead log is worked in.
func (s *Store) size() (int64, error) {
	var pages, each int64
	err := s.reader.QueryRow("SELECT page_count, page_size FROM pragma_page_count, pragma_page_size").Scan(&pages, &each)
	return pages * each, s.problem(err)
}

// shrink gives free pages back, some at a time so that others get their turn.
func (s *Store) shrink() error {
	for last := math.MaxInt; ; {
		var free int
		if err := s.writer.QueryRow("PRAGMA freelist_count").Scan(&free); err != nil {
			return s.problem(err)
		}
		if free == 0 || free >= last {
			break
		}
		last = free
		if _, err := s.writer.Exec("PRAGMA incremental_vacuum(1000)"); err != nil {
			return s.problem(err)
		}
	}
	// Where others are reading, the next who closes does it.
	var busy, log, done int
	return s.problem(s.writer.QueryRow("PRAGMA wal_checkpoint(TRUNCATE)").Scan(&busy, &log, &done))
}
