package store

import (
	"database/sql"
	"fmt"
	"io"
)

// guard is a transaction that holds the lock of a file of its own.
type guard struct {
	db *sql.DB
	tx *sql.Tx
}

func (g guard) Close() error {
	_ = g.tx.Rollback()
	return g.db.Close()
}

// Guard lets one process at a time do what name says with this store: ErrHeld
// tells at once that another is at it. It is given up when it is closed, or by
// the system when the process dies. Its file, beside the store, stays empty.
func (s *Store) Guard(name string) (io.Closer, error) {
	db, err := connect(s.file+"-"+name+".lock", settings{}, "_txlock=exclusive", "_pragma=journal_mode(MEMORY)")
	if err != nil {
		return nil, s.problem(err)
	}
	tx, err := db.Begin()
	if err == nil {
		// A file that may not be written is opened for reading, and then locks nothing:
		// only a write tells. It is never committed.
		if _, err = tx.Exec("CREATE TABLE held (x)"); err == nil {
			return guard{db, tx}, nil
		}
		_ = tx.Rollback()
	}
	db.Close()
	if codeOf(err) == busy {
		return nil, &Error{s.name, ErrHeld, fmt.Sprintf("contend %s is running on it: wait for its end, or end that process", name), nil}
	}
	return nil, s.problem(err)
}
