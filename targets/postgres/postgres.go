// Package postgres is PostgreSQL as a target.
package postgres

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"contend/targets"
	"contend/targets/kit"
	"contend/targets/sqlkit"
)

// Driver is the kind of target.
func Driver() targets.Driver {
	return targets.Driver{
		Name: "postgres", Schemes: []string{"postgres", "postgresql"},
		Form:       "postgres://[user:password@]host[:5432]/database",
		Example:    "postgres://contend@127.0.0.1:5432/postgres?sslmode=disable&create=unique-violation",
		Summary:    "PostgreSQL. A key is a row of the table contend_records, which is made where it is missing.",
		Parameters: parameters(), Accepted: accepted, Answers: answers, Raw: rawForm, Make: open,
	}
}

type target struct {
	server      sqlkit.Server
	config      *pgx.ConnConfig
	strategies  map[string]string
	lockTimeout time.Duration // 0: none; known after Prepare
	pooled      bool          // the server's sessions are not those that we opened; the same
	id          string        // in the name of what its sessions prepare
	opened      atomic.Int64  // sessions, for their names
	open        atomic.Int64  // sessions, now
}

func open(a targets.Address) (targets.Target, error) {
	if a.Opaque != "" {
		return nil, a.Usagef("it names no host; the form is %s", a.Driver.Form)
	}
	t := &target{id: strings.ToLower(rand.Text()[:10]), strategies: a.Strategies()}
	config, err := pgx.ParseConfig(a.PassedOn())
	if err != nil {
		return nil, a.Usagef("%v", a.Mask(err))
	}
	// Nothing is prepared but by name: what the client prepares for itself would stay in
	// the sessions of a pooler.
	config.DefaultQueryExecMode = pgx.QueryExecModeExec
	t.config = config
	t.server = sqlkit.Server{Setup: setup, Address: a, State: sqlState, Hint: hint, Where: "host, port and sslmode",
		Connect: func(ctx context.Context) (sqlkit.Admin, error) { return t.connect(ctx) }}
	if ttl := a.Param("ttl"); ttl == "" {
		delete(t.strategies, "renew")
	} else if t.strategies["ttl"] = ttl; t.strategies["create"] == "unique-violation" {
		return nil, a.Usagef("a plain INSERT cannot take over an expired row; ttl=%s goes with create=on-conflict or create=serializable", ttl)
	}
	return t, nil
}

func (t *target) Describe() targets.Description {
	d := targets.Description{Kind: "postgres", URL: t.server.Address.Masked(), Strategies: t.strategies, Guards: targets.AllGuards, Finest: dialect.Finest,
		OneCopy: true, HashTags: true, SentBy: "kernel-write", Lists: 1,
		TTL: targets.TTL{Instead: "choose ?ttl=" + sqlkit.ExpiresColumn + ", where the expiry is a column and the takeover the application's, or another target"}}
	if t.strategies["ttl"] != "" {
		d.TTL = targets.TTL{Unit: time.Microsecond}
		d.Notes = append(d.Notes, expiresNote)
	}
	return d
}

func (t *target) Prepare(ctx context.Context, needs targets.Needs) (targets.Server, error) {
	t.lockTimeout = (needs.Timeout * 8 / 10).Truncate(time.Millisecond)
	told, pooled, err := t.server.Prepare(ctx, needs.Sessions)
	told.Name, t.pooled = serverOf(told.Name), pooled
	if t.lockTimeout > 0 {
		told.Notes = append(told.Notes, fmt.Sprintf(lockNote, t.lockTimeout), "the table contend_records stays in the database")
	}
	return told, err
}

func (t *target) List(ctx context.Context, prefix string) ([]targets.Op, int, error) {
	return t.server.List(ctx, prefix)
}

// Open prepares what the session will send, under names of its own, and sets what it
// needs; Close takes both back.
func (t *target) Open(ctx context.Context, _ int) (targets.Session, error) {
	s, err := t.connect(ctx)
	if err != nil {
		return nil, err
	}
	if err := s.set(ctx); err != nil {
		s.Close()
		return nil, t.server.Explain(ctx, err)
	}
	return s, nil
}

// connect opens a connection, on which nothing is set, and makes one round trip.
func (t *target) connect(ctx context.Context) (*session, error) {
	ctx, cancel := context.WithTimeout(ctx, kit.ConnectWithin)
	defer cancel()
	s := &session{target: t, prefix: fmt.Sprintf("contend_%s_%d_", t.id, t.opened.Add(1))}
	config, connected := t.config.Copy(), false
	config.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		if connected {
			// To cancel a statement, pgx connects anew: no request of ours.
			return (&net.Dialer{}).DialContext(ctx, network, address)
		}
		return s.Clock.Dial(ctx, network, address)
	}
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return nil, t.server.Explain(ctx, err)
	}
	s.conn, connected = conn, true
	s.Dialect, s.Conn, s.Strategies, s.Raw = dialect, s, t.strategies, s.raw
	s.Ended = func() error {
		if conn.IsClosed() {
			return pgconn.ErrConnClosed
		}
		return nil
	}
	s.Ready()
	if _, err := conn.Exec(ctx, "select 1"); err != nil {
		s.Close()
		if sqlState(err) == "" && ctx.Err() != nil {
			return nil, t.waits(ctx.Err())
		}
		return nil, t.server.Explain(ctx, err)
	}
	return s, nil
}

func (t *target) Close() error { return nil }

type session struct {
	sqlkit.Session
	target *target
	conn   *pgx.Conn
	prefix string // of the names of its statements
	// requests are those of the statements that it has prepared; nil: nothing is set.
	requests map[string]string
	counted  bool // among the open sessions
}

// Close takes back what is set.
func (s *session) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	s.unset(ctx)
	if s.counted {
		s.target.open.Add(-1)
		s.counted = false
	}
	return s.conn.Close(ctx)
}

// Execute implements sqlkit.Conn.
func (s *session) Execute(ctx context.Context, statement string, into []any, arguments ...any) (rows int, err error) {
	answer, err := s.conn.Query(ctx, s.prefix+statement, arguments...)
	if err != nil {
		return 0, err
	}
	defer answer.Close()
	shown := 0
	for ; answer.Next(); shown++ {
		if into == nil || shown > 0 {
			continue
		}
		if err := answer.Scan(into...); err != nil {
			return 0, err
		}
	}
	if err := answer.Err(); err != nil {
		return 0, err
	}
	tag, request := answer.CommandTag(), s.requests[statement]
	if _, err := tagged(request, tag.String()); err != nil {
		return 0, err
	}
	if rows = int(tag.RowsAffected()); into != nil && shown != rows {
		return 0, &unexpectedTag{request, fmt.Sprintf("%q and %d rows", tag, shown)}
	}
	return rows, nil
}

// Ask implements sqlkit.Admin.
func (s *session) Ask(ctx context.Context, sql string, arguments []any, into ...any) error {
	return s.conn.QueryRow(ctx, sql, arguments...).Scan(into...)
}

// Texts implements sqlkit.Admin.
func (s *session) Texts(ctx context.Context, sql string, arguments ...any) ([]string, error) {
	rows, err := s.conn.Query(ctx, sql, arguments...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

// ServedBy implements sqlkit.Admin.
func (s *session) ServedBy() int { return int(s.conn.PgConn().PID()) }

// Run implements sqlkit.Admin.
func (s *session) Run(ctx context.Context, sql string) error {
	_, err := s.conn.Exec(ctx, sql)
	return err
}

// Command implements sqlkit.Conn.
func (s *session) Command(ctx context.Context, request, sql string) error {
	tag, err := s.conn.Exec(ctx, sql)
	if err == nil {
		_, err = tagged(request, tag.String())
	}
	return err
}

// Sort implements sqlkit.Conn.
func (s *session) Sort(refused string, err error) targets.Reply {
	r := targets.Reply{Outcome: targets.OK, Code: refused, Attempts: 1}
	var tag *unexpectedTag
	var scan pgx.ScanArgError
	switch state := sqlState(err); {
	case state != "":
		r.Code, r.Message = state, kit.Sample(s.target.server.Address.Mask(err).Error())
		if cause, known := causes[state]; known {
			r.Message += " (" + cause + ")"
		}
	case errors.As(err, &tag), errors.As(err, &scan):
		return kit.UnexpectedError(err)
	case err != nil:
		return kit.Lost(s.target.server.Address.Mask(err), s.Clock.Sent())
	}
	if r.Code != "" {
		r.Outcome = outcomeOf(r.Code)
	}
	return r
}
