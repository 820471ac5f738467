package targets

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

func postgresDriver() Driver {
	d := Driver{
		Name: "postgres", Schemes: []string{"postgres", "postgresql"},
		Form:    "postgres://[user:password@]host[:5432]/database",
		Example: "postgres://contend@127.0.0.1:5432/postgres?sslmode=disable&create=unique-violation",
		Summary: "PostgreSQL. A key is a row of the table contend_records, which is made where it is missing.",
		Parameters: []Parameter{
			{Name: "create", Default: "on-conflict", Meaning: "how create-if-absent is done", Values: []Value{
				{Name: "on-conflict", Meaning: "INSERT with ON CONFLICT DO NOTHING", Losers: []string{"0 rows"}},
				{Name: "unique-violation", Meaning: "INSERT", Losers: []string{"23505"}},
				{Name: "serializable", Meaning: "SELECT, then INSERT, in a SERIALIZABLE transaction", Losers: []string{"exists", "23505", "40001"}}}},
			{Name: "cas", Default: "where", Meaning: "how a write on a version, or on a time of change, is done", Values: []Value{
				{Name: "where", Meaning: "UPDATE with the comparison in its WHERE", Losers: []string{"0 rows"}},
				{Name: "repeatable-read", Meaning: "SELECT, compare, then UPDATE, in a REPEATABLE READ transaction", Losers: []string{"stale", "40001"}},
				{Name: "serializable", Meaning: "SELECT, compare, then UPDATE, in a SERIALIZABLE transaction", Losers: []string{"stale", "40001"}}}},
			{Name: "ttl", Meaning: "how a time to live is done; without it there is none", Values: []Value{
				{Name: expiresColumn, Meaning: "the column expires_at, by the server's clock: a create overwrites an expired row (DO UPDATE WHERE it has expired), " +
					"which is the application's doing; not with create=unique-violation"}}},
		},
		Accepted: postgresAccepted,
		Answers:  postgresAnswers,
		open:     openPostgres,
	}
	for _, name := range []string{"host", "port", "user", "password", "dbname", "sslmode", "sslrootcert", "sslcert", "sslkey",
		"sslpassword", "sslsni", "sslnegotiation", "channel_binding", "require_auth", "connect_timeout", "target_session_attrs",
		"application_name", "options"} {
		d.Parameters = append(d.Parameters, Parameter{Name: name})
	}
	return d
}

const (
	postgresMeasured = "measured on PostgreSQL 15"
	postgresManual   = "PostgreSQL manual, appendix A"
)

// postgresAccepted: the answers are command tags. Where a statement shows rows, they
// must be as many as its tag tells.
var postgresAccepted = []Accepted{
	{Request: "INSERT", Answer: "INSERT 0 1"},
	{Request: "INSERT", Answer: "INSERT 0 0", Code: "0 rows"},
	{Request: "UPDATE", Answer: "UPDATE 1"},
	{Request: "UPDATE", Answer: "UPDATE 0", Code: "0 rows"},
	{Request: "DELETE", Answer: "DELETE 1"},
	{Request: "DELETE", Answer: "DELETE 0"},
	{Request: "SELECT", Answer: "SELECT 1"},
	{Request: "SELECT", Answer: "SELECT 0"},
	{Request: "BEGIN", Answer: "BEGIN"},
	{Request: "COMMIT", Answer: "COMMIT"},
	{Request: "ROLLBACK", Answer: "ROLLBACK"},
}

// unexpectedTag is the error for an answer that is not among the accepted ones.
type unexpectedTag struct{ request, answer string }

func (e *unexpectedTag) Error() string { return e.request + " was answered with " + e.answer }

// tagged gives the code of the accepted answer that a command tag is.
func tagged(request, tag string) (code string, err error) {
	for _, row := range postgresAccepted {
		if row.Request == request && row.Answer == tag {
			return row.Code, nil
		}
	}
	return "", &unexpectedTag{request, strconv.Quote(tag)}
}

// postgresAnswers: a code is an SQLSTATE, or the name of what refused a write:
// "0 rows", or what a SELECT showed first ("exists", "stale"). An SQLSTATE that
// ends in 000 stands for the rest of its class too, as in the SQL standard.
var postgresAnswers = []Answer{
	{Code: "0 rows", Outcome: Conflict, Source: postgresMeasured},
	{Code: "exists", Outcome: Conflict, Source: postgresMeasured},
	{Code: "stale", Outcome: Conflict, Source: postgresMeasured},
	{Code: "23505", Outcome: Conflict, Source: postgresMeasured},
	{Code: "23502", Outcome: Invalid, Source: postgresManual + ": not null"},
	{Code: "40001", Outcome: Aborted, Source: postgresMeasured},
	{Code: "40P01", Outcome: Aborted, Source: postgresManual + ": deadlock"},
	{Code: "55P03", Outcome: Aborted, Source: postgresMeasured + ": the holder of the lock may yet roll back"},
	{Code: "40003", Outcome: Unknown, Source: postgresManual + ": completion unknown"},
	{Code: "57014", Outcome: Unknown, Source: postgresManual + ": cancelled after it was sent"},
	{Code: "57P01", Outcome: Unknown, Source: postgresManual + ": the connection is ended"},
	{Code: "57P02", Outcome: Unknown, Source: postgresManual + ": the connection is ended"},
	{Code: "57P03", Outcome: Unknown, Source: postgresManual + ": the connection is ended"},
	{Code: "57P05", Outcome: Unknown, Source: postgresManual + ": the connection is ended"},
	{Code: "25P03", Outcome: Unknown, Source: postgresManual + ": the connection is ended"},
	{Code: "08000", Outcome: Unknown, Source: postgresManual + ": connection exceptions"},
	{Code: "53300", Outcome: Invalid, Source: postgresManual + ": too many connections"},
	{Code: "0A000", Outcome: Invalid, Source: postgresManual + ": not supported"},
	{Code: "22000", Outcome: Invalid, Source: postgresManual + ": data exceptions"},
	{Code: "25006", Outcome: Invalid, Source: postgresMeasured + ": read only: a standby, or default_transaction_read_only"},
	{Code: "25000", Outcome: Invalid, Source: postgresManual + ": transaction states"},
	{Code: "26000", Outcome: Invalid, Source: postgresMeasured + ": no such prepared statement: the session is another now"},
	{Code: "28000", Outcome: Invalid, Source: postgresManual + ": authorization"},
	{Code: "3D000", Outcome: Invalid, Source: postgresManual + ": no such database"},
	{Code: "3F000", Outcome: Invalid, Source: postgresManual + ": no such schema"},
	{Code: "42000", Outcome: Invalid, Source: postgresManual + ": syntax and access rules"},
	{Code: "54000", Outcome: Invalid, Source: postgresManual + ": program limits, as an index row's size"},
}

func postgresOutcome(code string) Outcome {
	outcome := outcomeOf(postgresAnswers, code, 0)
	if outcome == Unmapped && len(code) == len("00000") {
		return outcomeOf(postgresAnswers, code[:2]+"000", 0)
	}
	return outcome
}

const createTable = `create table if not exists contend_records (
	key text primary key, token text not null, version bigint not null,
	updated_at timestamptz, expires_at timestamptz, body jsonb)`

// postgresFinest is how fine a timestamptz is.
const postgresFinest = time.Microsecond

// expiresColumn is the strategy of the time to live in which the column is
// compared with the server's clock.
const expiresColumn = "expires-column"

// postgresStatement is a statement by the name that its code has for it.
type postgresStatement struct{ request, name, sql string }

// postgresStatements are prepared when a session is opened, so that each is one
// round trip.
//
// With a time to live, $7, a writing statement gives the expiry that it stored
// and the time. That of a row which is overwritten is not taken from excluded: it
// counts from after the wait for another's lock. A record's own expiry, $5, is in
// the same column and means the same.
func postgresStatements(ttl string) []postgresStatement {
	expiry, expired, told, unmodified := `$5`, `false`, ``, `$7`
	if ttl == expiresColumn {
		unmodified = `$8`
		expiry = `coalesce(clock_timestamp() + $7::interval, $5::timestamptz)`
		expired = `coalesce(contend_records.expires_at <= clock_timestamp(), false)`
		told = ` returning expires_at, clock_timestamp()`
	}
	insert := `insert into contend_records (key, version, token, updated_at, expires_at, body) values ($1, $2, $3, $4, ` + expiry + `, $6)`
	overwrite := ` on conflict (key) do update set version = excluded.version, token = excluded.token,
		updated_at = excluded.updated_at, expires_at = ` + expiry + `, body = excluded.body`
	claim := ` on conflict do nothing`
	if ttl == expiresColumn {
		claim = overwrite + ` where ` + expired
	}
	return []postgresStatement{
		{"SELECT", "read", `select token, version, updated_at, expires_at, body, ` + expired + ` from contend_records where key = $1`},
		{"DELETE", "delete", `delete from contend_records where key = $1`},
		{"INSERT", "insert", insert + told},
		{"INSERT", "claim", insert + claim + told},
		{"INSERT", "put", insert + overwrite + told},
		{"UPDATE", "update", `update contend_records set version = version + 1, token = $3, updated_at = $4, expires_at = ` + expiry + `, body = $6
			where key = $1 and version = $2` + told},
		{"UPDATE", "modify", `update contend_records set version = $2, token = $3, updated_at = $4, expires_at = ` + expiry + `, body = $6
			where key = $1 and updated_at = ` + unmodified + told},
	}
}

type postgresTarget struct {
	url         *url.URL
	config      *pgx.ConnConfig
	create, cas string
	ttl         string // "": none
	server      string
	lockTimeout time.Duration // 0: none
	pooled      bool          // the server's sessions are not those that we opened; known after Prepare
	id          string        // in the name of what its sessions prepare
	opened      atomic.Int64  // sessions, for their names
	open        atomic.Int64  // sessions, now
}

func openPostgres(u *url.URL) (Target, error) {
	if u.Opaque != "" {
		return nil, usagef("target %q names no host; the form is %s", Redact(u.String()), postgresDriver().Form)
	}
	// What is left for pgx must not be encoded anew: there, "+" is no space.
	pairs := slices.DeleteFunc(strings.Split(u.RawQuery, "&"), func(pair string) bool {
		name, _, _ := strings.Cut(pair, "=")
		return slices.Contains([]string{"create", "cas", "ttl"}, name)
	})
	theirs := *u
	theirs.RawQuery = strings.Join(pairs, "&")
	config, err := pgx.ParseConfig(theirs.String())
	if err != nil {
		return nil, usagef("target %q: %v", Redact(u.String()), redactError(err, u))
	}
	param := func(name string) string { return postgresDriver().param(u, name) }
	// Nothing is prepared but by name: what the client prepares for itself would stay in
	// the sessions of a pooler.
	config.DefaultQueryExecMode = pgx.QueryExecModeExec
	t := &postgresTarget{url: u, config: config, id: strings.ToLower(rand.Text()[:10]), create: param("create"), cas: param("cas"), ttl: param("ttl")}
	if t.ttl == expiresColumn && t.create == "unique-violation" {
		return nil, usagef("target %q: a plain INSERT cannot take over an expired row; ttl=%s goes with create=on-conflict or create=serializable",
			Redact(u.String()), expiresColumn)
	}
	return t, nil
}

func (t *postgresTarget) Describe() Description {
	d := Description{Kind: "postgres", URL: Redact(t.url.String()), Server: t.server,
		Strategies: map[string]string{"create": t.create, "cas": t.cas}, OneCopy: true, HashTags: true, SentBy: "kernel-write", Lists: 1}
	if t.ttl != "" {
		d.Strategies["ttl"] = t.ttl
		d.Notes = append(d.Notes, "the time to live is the column expires_at, by the server's clock: PostgreSQL removes no expired row and shows it "+
			"to reads; that a create takes it over is the application's doing, by its own statement")
	}
	if t.lockTimeout > 0 {
		d.Notes = append(d.Notes, fmt.Sprintf(
			"a request waits for another's lock for %s at most (lock_timeout, 80 %% of the request's timeout), then it is aborted with 55P03",
			t.lockTimeout), "the table contend_records stays in the database")
	}
	return d
}

func (t *postgresTarget) Prepare(ctx context.Context, needs Needs) error {
	if needs.TTL && t.ttl == "" {
		return fmt.Errorf("%s: PostgreSQL has no time to live of its own: choose ?ttl=%s, where the expiry is a column and the takeover "+
			"the application's, or another target: %w", Redact(t.url.String()), expiresColumn, ErrUnsupported)
	}
	if err := needs.compares(Redact(t.url.String()), postgresFinest); err != nil {
		return err
	}
	t.lockTimeout = (needs.Timeout * 8 / 10).Truncate(time.Millisecond)
	s, err := t.connect(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	var version string
	if err := s.conn.QueryRow(ctx, `select version()`).Scan(&version); err != nil {
		return t.explain(err)
	}
	t.server = postgresServer(version)
	second, err := t.checkSessions(ctx, s.conn, version)
	if err != nil {
		return err
	}
	if err := t.checkConnections(ctx, s.conn, second, needs.Sessions); err != nil {
		return err
	}
	return t.ensureTable(ctx, s.conn)
}

// postgresServer takes name and version out of what version() tells, such as
// "PostgreSQL 15.18 (Debian 15.18-0+deb12u1) on x86_64-pc-linux-gnu, compiled by …".
func postgresServer(version string) string {
	version, _, _ = strings.Cut(version, " (")
	version, _, _ = strings.Cut(version, " on ")
	return version
}

// checkConnections refuses a run whose sessions the server has no room for. Our
// own connection, which asks, is closed before theirs are opened; so is the other, of
// the process closed, which may still be about to end.
func (t *postgresTarget) checkConnections(ctx context.Context, conn *pgx.Conn, closed, sessions int) error {
	var most, reserved, used int
	err := conn.QueryRow(ctx, `select current_setting('max_connections')::int,
		current_setting('superuser_reserved_connections')::int + coalesce(current_setting('reserved_connections', true)::int, 0),
		(select count(*) from pg_stat_activity where datid is not null and pid <> pg_backend_pid() and pid <> $1
			and coalesce(backend_type, 'client backend') = 'client backend')`, closed).Scan(&most, &reserved, &used)
	if err != nil {
		return t.explain(err)
	}
	if free := most - reserved - used; free < sessions {
		return fmt.Errorf("%s has room for %d more connections (max_connections %d, reserved %d, in use %d), but the run needs %d:"+
			" lower the number of contenders, raise max_connections, or close other clients",
			Redact(t.url.String()), max(free, 0), most, reserved, used, sessions)
	}
	return nil
}

// ensureTable asks first, since a user who may use the table need not be
// allowed to create one.
func (t *postgresTarget) ensureTable(ctx context.Context, conn *pgx.Conn) error {
	var exists bool
	if err := conn.QueryRow(ctx, `select to_regclass('contend_records') is not null`).Scan(&exists); err != nil {
		return t.explain(err)
	}
	if exists {
		return nil
	}
	_, err := conn.Exec(ctx, createTable)
	switch sqlState(err) {
	case "23505", "42P07", "42710": // another process created it at the same moment
		return nil
	}
	if err != nil {
		return fmt.Errorf("%s: cannot create the table contend_records: %s: %w", Redact(t.url.String()), postgresHint(err), redactError(err, t.url))
	}
	return nil
}

// sqlState is "" for an error that the server did not send.
func sqlState(err error) string {
	var answer *pgconn.PgError
	if errors.As(err, &answer) {
		return answer.Code
	}
	return ""
}

// Open prepares what the session will send, under names of its own, and sets what it
// needs; Close takes both back.
func (t *postgresTarget) Open(ctx context.Context, _ int) (Session, error) {
	s, err := t.connect(ctx)
	if err != nil {
		return nil, err
	}
	if err := s.set(ctx); err != nil {
		s.Close()
		return nil, t.explain(err)
	}
	s.counted = true
	t.open.Add(1)
	return s, nil
}

// connect opens a connection, on which nothing is set, and makes one round trip.
func (t *postgresTarget) connect(ctx context.Context) (*postgresSession, error) {
	ctx, cancel := context.WithTimeout(ctx, connectWithin)
	defer cancel()
	s := &postgresSession{target: t, prefix: fmt.Sprintf("contend_%s_%d_", t.id, t.opened.Add(1))}
	config, connected := t.config.Copy(), false
	config.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		if connected {
			// To cancel a statement, pgx connects anew: no request of ours.
			return (&net.Dialer{}).DialContext(ctx, network, address)
		}
		return s.clock.dial(ctx, network, address)
	}
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return nil, t.explain(err)
	}
	s.conn, connected = conn, true
	if _, err := s.conn.Exec(ctx, "select 1"); err != nil {
		s.Close()
		if sqlState(err) == "" && ctx.Err() != nil {
			return nil, t.waits(ctx.Err())
		}
		return nil, t.explain(err)
	}
	return s, nil
}

// explain says what to do about an error outside of Do.
func (t *postgresTarget) explain(err error) error {
	name, hint, err := Redact(t.url.String()), postgresHint(err), redactError(err, t.url)
	if sqlState(err) == "" {
		return unreachable(name, "host, port and sslmode", err)
	}
	return fmt.Errorf("%s refuses us: %s: %w", name, hint, err)
}

func (t *postgresTarget) List(ctx context.Context, prefix string) (deletes []Op, requests int, err error) {
	s, err := t.connect(ctx)
	if err != nil {
		return nil, 0, err
	}
	defer s.Close()
	rows, err := s.conn.Query(ctx, `select key from contend_records where key like $1`, likeEscape(prefix)+"%")
	if err == nil {
		deletes, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (op Op, err error) {
			op.Kind = Delete
			return op, row.Scan(&op.Key)
		})
	}
	if sqlState(err) == "42P01" {
		return nil, 1, nil
	}
	if err != nil {
		return nil, 1, t.explain(err)
	}
	return deletes, 1, nil
}

func likeEscape(text string) string {
	return strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`).Replace(text)
}

func (t *postgresTarget) Close() error { return nil }

type postgresSession struct {
	target *postgresTarget
	clock  sentClock
	conn   *pgx.Conn
	prefix string // of the names of its statements
	// requests are those of the statements that it has prepared; nil: nothing is set.
	requests map[string]string
	counted  bool          // among the open sessions
	ttl      time.Duration // of the op in flight
	// What that op stored, as the statement told it.
	expires time.Time
	granted time.Duration
}

func (s *postgresSession) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	s.unset(ctx)
	if s.counted {
		s.target.open.Add(-1)
		s.counted = false
	}
	return s.conn.Close(ctx)
}

func (s *postgresSession) Do(ctx context.Context, op Op) Reply {
	if op.TTL > 0 && s.target.ttl == "" {
		return Reply{Outcome: Unsupported, Message: "PostgreSQL has no time to live of its own; choose ?ttl=" + expiresColumn +
			", or leave the TTL out, or choose another target"}
	}
	if err := ctx.Err(); err != nil {
		return lost(err, time.Time{})
	}
	if s.conn.IsClosed() {
		return lost(pgconn.ErrConnClosed, time.Time{})
	}
	s.clock.begin()
	s.ttl, s.expires, s.granted = op.TTL, time.Time{}, 0
	r := s.do(ctx, op)
	s.clock.stamp(&r)
	return r
}

// Stage has the driver encode the first statement of the op before meet.
func (s *postgresSession) Stage(ctx context.Context, op Op, _ Release, meet func()) Reply {
	return s.clock.stage(ctx, meet, func() Reply { return s.Do(ctx, op) })
}

func (s *postgresSession) do(ctx context.Context, op Op) Reply {
	switch op.Kind {
	case Read:
		return s.read(ctx, op.Key)
	case Delete:
		_, err := s.execute(ctx, "delete", nil, op.Key)
		return s.reply("", err)
	case Write:
		return s.write(ctx, op)
	case Raw:
		return s.raw(ctx, op.Raw)
	default:
		return Reply{Outcome: Unsupported, Message: fmt.Sprintf("postgres has no op %q", op.Kind)}
	}
}

// postgresAnswer is what a raw op is answered by its last statement.
type postgresAnswer struct {
	Command string      `json:"command"`        // its tag, such as "INSERT 0 1"
	Rows    [][]*string `json:"rows,omitempty"` // as text; null is null
}

// postgresError is the error object of a raw op.
type postgresError struct {
	Severity   string `json:"severity"`
	Code       string `json:"code"`
	Message    string `json:"message"`
	Detail     string `json:"detail,omitempty"`
	Hint       string `json:"hint,omitempty"`
	Table      string `json:"table,omitempty"`
	Column     string `json:"column,omitempty"`
	Constraint string `json:"constraint,omitempty"`
}

// raw sends statements as they are, in one message.
func (s *postgresSession) raw(ctx context.Context, statements json.RawMessage) Reply {
	var text string
	if err := json.Unmarshal(statements, &text); err != nil || strings.TrimSpace(text) == "" {
		return Reply{Outcome: Unsupported, Message: "a raw op on PostgreSQL is a text of statements"}
	}
	results, err := s.conn.PgConn().Exec(ctx, text).ReadAll()
	var failed *pgconn.PgError
	switch {
	case errors.As(err, &failed):
		r := s.reply("", err)
		r.Raw, _ = json.Marshal(postgresError{failed.Severity, failed.Code, failed.Message, failed.Detail, failed.Hint,
			failed.TableName, failed.ColumnName, failed.ConstraintName})
		return r
	case err != nil || len(results) == 0:
		return s.reply("", err)
	}
	last := results[len(results)-1]
	answer := postgresAnswer{Command: last.CommandTag.String()}
	for _, row := range last.Rows {
		var columns []*string
		for _, column := range row {
			var value *string
			if column != nil {
				value = new(string(column))
			}
			columns = append(columns, value)
		}
		answer.Rows = append(answer.Rows, columns)
	}
	refused := ""
	if tag := last.CommandTag; tag.RowsAffected() == 0 && (tag.Insert() || tag.Update() || tag.Delete()) {
		refused = "0 rows"
	}
	r := s.reply(refused, nil)
	r.Raw, _ = json.Marshal(answer)
	return r
}

func (s *postgresSession) read(ctx context.Context, key string) Reply {
	record, found, _, err := s.stored(ctx, key)
	r := s.reply("", err)
	switch {
	case err != nil:
	case !found:
		r.Outcome = Missing
	default:
		r.Record = record
		if s.target.ttl == expiresColumn {
			r.Expires = record.ExpiresAt
		}
	}
	return r
}

// stored gives the record of a key, and whether its time to live is over.
func (s *postgresSession) stored(ctx context.Context, key string) (record Record, found, expired bool, err error) {
	var updated, expires *time.Time
	var body []byte
	rows, err := s.execute(ctx, "read", []any{&record.Token, &record.Version, &updated, &expires, &body, &expired}, key)
	record.UpdatedAt, record.ExpiresAt, record.Body = timeOrZero(updated), timeOrZero(expires), body
	return record, rows > 0, expired, err
}

func timeOrZero(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.UTC()
}

func timeOrNull(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// values are the parameters that the writing statements share; version is the
// one to store, or for "update" the one to find.
func (s *postgresSession) values(op Op, version int64) []any {
	all := []any{op.Key, version, op.Value.Token, timeOrNull(op.Value.UpdatedAt), timeOrNull(op.Value.ExpiresAt), []byte(op.Value.Body)}
	switch {
	case s.target.ttl == "":
	case op.TTL > 0:
		all = append(all, op.TTL)
	default:
		all = append(all, nil)
	}
	return all
}

func (s *postgresSession) write(ctx context.Context, op Op) Reply {
	stored, guarded := s.values(op, op.Value.Version), s.values(op, op.If.Counter)
	if refused := op.If.finer(postgresFinest); refused != nil {
		return *refused
	}
	switch op.If.Guard {
	case Unguarded:
		return s.reply(s.put(ctx, "put", stored))
	case IfAbsent:
		switch s.target.create {
		case "on-conflict":
			return s.reply(s.put(ctx, "claim", stored))
		case "unique-violation":
			return s.reply(s.put(ctx, "insert", stored))
		}
		return s.inTransaction(ctx, "serializable", op.Key, func(_ Record, found, expired bool) (refused string) {
			if found && !expired {
				return "exists"
			}
			return ""
		}, func(expired bool) (refused string, err error) {
			if expired {
				return s.put(ctx, "put", stored)
			}
			return s.put(ctx, "insert", stored)
		})
	case IfVersion:
		return s.compareAndSet(ctx, op.Key, "update", guarded, func(r Record) bool { return r.Token != "" && r.Version == op.If.Counter })
	case IfUnmodified:
		return s.compareAndSet(ctx, op.Key, "modify", append(stored, op.If.UpdatedAt), op.If.unmodified)
	default:
		return Reply{Outcome: Unsupported, Message: fmt.Sprintf("postgres has no guard %q", op.If.Guard)}
	}
}

// compareAndSet executes a statement that compares in its WHERE, by itself or, as
// the strategy is, in a transaction after a SELECT that compares as well.
func (s *postgresSession) compareAndSet(ctx context.Context, key, statement string, arguments []any, same func(Record) bool) Reply {
	level := "serializable"
	switch s.target.cas {
	case "where":
		return s.reply(s.put(ctx, statement, arguments))
	case "repeatable-read":
		level = "repeatable read"
	}
	return s.inTransaction(ctx, level, key, func(r Record, _, _ bool) (refused string) {
		if !same(r) {
			return "stale"
		}
		return ""
	}, func(bool) (refused string, err error) { return s.put(ctx, statement, arguments) })
}

// put executes a statement that writes one row, and gives what it was refused by,
// if it was.
func (s *postgresSession) put(ctx context.Context, statement string, arguments []any) (refused string, err error) {
	if s.target.ttl == "" {
		rows, err := s.execute(ctx, statement, nil, arguments...)
		return refusedBy(rows), err
	}
	var expires *time.Time
	var now time.Time
	rows, err := s.execute(ctx, statement, []any{&expires, &now}, arguments...)
	if rows > 0 && err == nil && expires != nil {
		s.expires = expires.UTC()
		if s.ttl > 0 {
			// The clock was read twice, microseconds apart.
			s.granted = expires.Sub(now).Round(time.Millisecond)
		}
	}
	return refusedBy(rows), err
}

func refusedBy(rows int) string {
	if rows == 0 {
		return "0 rows"
	}
	return ""
}

// execute sends a prepared statement and gives the number of rows that its tag tells:
// 0 or 1. into takes what the row shows; nil: it shows nothing.
func (s *postgresSession) execute(ctx context.Context, statement string, into []any, arguments ...any) (rows int, err error) {
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

// inTransaction reads the key, writes unless what was read refuses that, and commits
// unless the write was refused or failed.
func (s *postgresSession) inTransaction(ctx context.Context, level, key string, refuse func(r Record, found, expired bool) string,
	write func(expired bool) (refused string, err error),
) Reply {
	s.clock.beginSeveral()
	if err := s.command(ctx, "BEGIN", "begin isolation level "+level); err != nil {
		return s.reply("", err)
	}
	record, found, expired, err := s.stored(ctx, key)
	refused, byRead := "", false
	if err == nil {
		refused = refuse(record, found, expired)
		byRead = refused != ""
	}
	if err == nil && !byRead {
		s.clock.guardNext()
		if refused, err = write(expired); refused == "" && err == nil {
			return s.reply("", s.command(ctx, "COMMIT", "commit"))
		}
	}
	reply := s.reply(refused, err)
	if reply.ByRead = byRead; byRead {
		reply.Record = record
	}
	// What is not committed has no effect: where this fails, the connection ends it,
	// and the reply stands.
	if err := s.command(ctx, "ROLLBACK", "rollback"); err != nil {
		s.conn.Close(ctx)
	}
	return reply
}

// command sends a statement without arguments whose tag is the request.
func (s *postgresSession) command(ctx context.Context, request, sql string) error {
	tag, err := s.conn.Exec(ctx, sql)
	if err == nil {
		_, err = tagged(request, tag.String())
	}
	return err
}

// reply sorts what came back: what refused the write, or the error.
func (s *postgresSession) reply(refused string, err error) Reply {
	r := Reply{Outcome: OK, Attempts: 1, Sent: s.clock.at()}
	var tag *unexpectedTag
	var scan pgx.ScanArgError
	switch state := sqlState(err); {
	case state != "":
		r.Code, r.Message = state, sample(redactError(err, s.target.url).Error())
		if cause, known := postgresCauses[state]; known {
			r.Message += " (" + cause + ")"
		}
	case errors.As(err, &tag), errors.As(err, &scan):
		return Reply{Outcome: Unmapped, Code: unexpected, Message: sample(err.Error()), Attempts: 1, Sent: r.Sent}
	case err != nil:
		return lost(redactError(err, s.target.url), s.clock.at())
	default:
		r.Code = refused
	}
	if r.Code != "" {
		r.Outcome = postgresOutcome(r.Code)
	}
	if r.Outcome == OK {
		r.Expires, r.Granted = s.expires, s.granted
	}
	return r
}
