package targets

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// checkSessions refuses what puts several connections on one session of the server, or
// one connection on several, before anything is set there. It asks two connections at
// once which process serves them, one of them several times, and gives the process of
// the one that it opened and closed again.
func (t *postgresTarget) checkSessions(ctx context.Context, first *pgx.Conn, version string) (second int, err error) {
	shared := strings.Contains(version, "PGlite")
	other, err := t.connect(ctx)
	if err != nil {
		if shared {
			return 0, t.refuseShared()
		}
		return 0, err
	}
	defer other.Close()
	var served []int
	for _, conn := range []*pgx.Conn{first, first, other.conn, first} {
		var process int
		err := conn.QueryRow(ctx, `select pg_backend_pid()`).Scan(&process)
		if sqlState(err) == "42883" {
			return 0, nil // it has no such function, and cannot be asked
		}
		if err != nil {
			return 0, t.explain(err)
		}
		served = append(served, process)
	}
	mine := []int{served[0], served[1], served[3]}
	switch moves, meets := slices.Min(mine) != slices.Max(mine), slices.Contains(mine, served[2]); {
	case meets && shared:
		return 0, t.refuseShared()
	case moves || meets:
		return 0, fmt.Errorf("%s: a pooler in transaction mode is in between: %s; use session mode, or the server itself: %w",
			Redact(t.url.String()), map[bool]string{true: "the server's session changes from statement to statement",
				false: "two connections are on one session of the server"}[moves], ErrUnsupported)
	}
	t.pooled = int(first.PgConn().PID()) != served[0]
	return served[2], nil
}

func (t *postgresTarget) refuseShared() error {
	return fmt.Errorf("%s: several connections share one session there, as on PGlite's socket server, and none is alone in its transactions: "+
		"use a PostgreSQL server itself: %w", Redact(t.url.String()), ErrUnsupported)
}

// waits is the error for a connection that was taken, whose first statement was not
// answered.
func (t *postgresTarget) waits(err error) error {
	name, open := Redact(t.url.String()), int(t.open.Load())
	const limits = "PgBouncer: default_pool_size, max_db_connections"
	if !t.pooled {
		return fmt.Errorf("%s took the connection and does not answer: where a pooler in session mode is in between, its pool is full (%s): "+
			"lower the number of contenders, raise its limit, or close other clients: %w", name, limits, err)
	}
	// A run has two sessions of its own beside those of its contenders.
	lower := "lower the number of contenders"
	if room := open - 2; room > 1 {
		lower += fmt.Sprintf(" to %d", room)
	}
	return fmt.Errorf("%s: a connection waits for a session of the server while the run has %d: the pool of the pooler in between is full (%s): "+
		"%s, raise its limit, or close other clients: %w", name, open, limits, lower, err)
}

// set sets what the session needs, so that its lone statements run at READ COMMITTED
// whatever the server's default is, and prepares its statements.
func (s *postgresSession) set(ctx context.Context) error {
	s.requests = map[string]string{}
	settings := fmt.Sprintf(`set default_transaction_isolation = 'read committed'; set lock_timeout = %d`, s.target.lockTimeout.Milliseconds())
	if _, err := s.conn.Exec(ctx, settings); err != nil {
		return err
	}
	for _, statement := range postgresStatements(s.target.ttl) {
		if _, err := s.conn.Prepare(ctx, s.prefix+statement.name, statement.sql); err != nil {
			return err
		}
		s.requests[statement.name] = statement.request
	}
	return nil
}

// unset takes back what set has done: behind a pooler the session goes on to others.
func (s *postgresSession) unset(ctx context.Context) {
	if s.requests == nil || s.conn.IsClosed() {
		return
	}
	if s.conn.PgConn().TxStatus() != 'I' {
		s.conn.Exec(ctx, "rollback")
	}
	undo := "reset default_transaction_isolation; reset lock_timeout"
	for name := range s.requests {
		undo += "; deallocate " + s.prefix + name
	}
	if _, err := s.conn.Exec(ctx, undo); err != nil {
		// One message is one transaction; a raw op may have deallocated already.
		s.conn.Exec(ctx, "reset all; deallocate all")
	}
	s.requests = nil
}

// otherTable is the advice about a table of our name that is not ours.
const otherTable = "the table contend_records is not as contend makes it: rename it, or use another database or schema"

// postgresCauses says what to do about an SQLSTATE that names the cause.
var postgresCauses = map[string]string{
	"53300": "it has no connection left: lower the number of contenders, raise max_connections (or the limit of the user or database), or close other clients",
	"53100": "its disk is full",
	"53200": "its memory is full",
	"57P03": "it is starting up or shutting down: wait until it takes connections",
	"3D000": "there is no such database: check the one in the URL",
	"3F000": "no schema of the search_path can be used: grant usage and create on one, or set another",
	"25006": "it is read only, a standby or by default_transaction_read_only: name the primary in the URL",
	"42501": "the user may not: grant select, insert, update and delete on the table contend_records, which its owner can create by hand, or use a user who may",
	"42P10": "no unique key: " + otherTable,
	"22001": "a column is too short: " + otherTable,
	"42P01": "the table contend_records is gone: something drops it while the run goes on",
	"42703": otherTable,
	"42804": otherTable,
	"42809": otherTable,
	"42P05": "its sessions are shared with others: is a pooler in between? use session mode, or the server itself",
	"26000": "its sessions are shared with others: is a pooler in between? use session mode, or the server itself",
}

// poolerSays are what poolers say, all under one SQLSTATE, and what to do about it.
var poolerSays = []struct{ text, hint string }{
	{"max_client_conn", "the pooler in between takes no more connections (max_client_conn): raise it, or lower the number of contenders"},
	{"query_wait_timeout", "the pool of the pooler in between is full (PgBouncer: default_pool_size, max_db_connections): raise it, or lower the number of contenders"},
	{"unsupported startup parameter", "the pooler in between does not pass on this parameter: leave it out of the URL"},
}

// postgresHint says what to do about an error of the server, or of a pooler.
func postgresHint(err error) string {
	var answer *pgconn.PgError
	if !errors.As(err, &answer) {
		return "it gave no answer"
	}
	for _, pooler := range poolerSays {
		if strings.Contains(answer.Message, pooler.text) {
			return pooler.hint
		}
	}
	if hint, known := postgresCauses[answer.Code]; known {
		return hint
	}
	switch answer.Code[:min(2, len(answer.Code))] {
	case "28":
		return "check user, password and database in the URL, and the server's pg_hba.conf"
	case "42", "0A":
		return otherTable + ", or it is no PostgreSQL and does not know what contend asks"
	default:
		return "it answers with an error"
	}
}
