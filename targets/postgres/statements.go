package postgres

import (
	"context"
	"fmt"
	"time"

	"contend/targets"
	"contend/targets/sqlkit"
)

// parameters are the strategies, with the codes of their losers, and what is passed on.
func parameters() []targets.Parameter {
	all := []targets.Parameter{
		{Name: "create", Default: "on-conflict", Meaning: "how create-if-absent is done", Values: []targets.Value{
			{Name: "on-conflict", Meaning: "INSERT with ON CONFLICT DO NOTHING", Losers: []string{"0 rows"}},
			{Name: "unique-violation", Meaning: "INSERT", Losers: []string{"23505"}},
			{Name: "serializable", Meaning: "SELECT, then INSERT, in a SERIALIZABLE transaction", Losers: []string{"exists", "23505", "40001"}}}},
		{Name: "cas", Default: "where", Meaning: "how a write on a version, or on a time of change, is done", Values: []targets.Value{
			{Name: "where", Meaning: "UPDATE with the comparison in its WHERE", Losers: []string{"0 rows"}},
			{Name: "repeatable-read", Meaning: "SELECT, compare, then UPDATE, in a REPEATABLE READ transaction", Losers: []string{"stale", "40001"}},
			{Name: "serializable", Meaning: "SELECT, compare, then UPDATE, in a SERIALIZABLE transaction", Losers: []string{"stale", "40001"}}}},
		{Name: "delete", Default: "where", Meaning: "how a delete on a token or a version is done", Values: []targets.Value{
			{Name: "where", Meaning: "DELETE with the comparison in its WHERE", Losers: []string{"0 rows"}}}},
		{Name: "renew", Default: "where", Meaning: "how a time to live is renewed on a token or a version", Values: []targets.Value{
			{Name: "where", Meaning: "UPDATE of the expiry with the comparison in its WHERE; not of a row that has expired", Losers: []string{"0 rows"}}}},
		{Name: "ttl", Meaning: "how a time to live is done; without it there is none", Values: []targets.Value{
			{Name: sqlkit.ExpiresColumn, Meaning: "the column expires_at, by the server's clock: a create overwrites an expired row (DO UPDATE WHERE it has expired), " +
				"which is the application's doing; not with create=unique-violation"}}},
	}
	for _, name := range []string{"host", "port", "user", "password", "dbname", "sslmode", "sslrootcert", "sslcert", "sslkey",
		"sslpassword", "sslsni", "sslnegotiation", "channel_binding", "require_auth", "connect_timeout", "target_session_attrs",
		"application_name", "options"} {
		all = append(all, targets.Parameter{Name: name})
	}
	return all
}

// dialect is PostgreSQL in the words of sqlkit.
var dialect = sqlkit.Dialect{
	Name: "postgres", Finest: time.Microsecond, Answers: answers,
	Create: map[string]sqlkit.Strategy{
		"on-conflict":      {Statements: map[targets.Guard]string{targets.IfAbsent: "claim"}},
		"unique-violation": {Statements: map[targets.Guard]string{targets.IfAbsent: "insert"}},
		"serializable":     {Begin: serializable, Statements: map[targets.Guard]string{targets.IfAbsent: "insert"}, Expired: "put"},
	},
	Compare: map[string]sqlkit.Strategy{
		"where":           {Statements: comparing},
		"repeatable-read": {Begin: "begin isolation level repeatable read", Statements: comparing},
		"serializable":    {Begin: serializable, Statements: comparing},
	},
	Delete: map[string]sqlkit.Strategy{"where": {Statements: map[targets.Guard]string{targets.IfVersion: "delete-version", targets.IfToken: "delete-token"}}},
	Renew:  map[string]sqlkit.Strategy{"where": {Statements: map[targets.Guard]string{targets.IfVersion: "renew-version", targets.IfToken: "renew-token"}}},
}

const serializable = "begin isolation level serializable"

// comparing are the statements that compare in their WHERE.
var comparing = map[targets.Guard]string{targets.IfVersion: "update", targets.IfUnmodified: "modify", targets.IfToken: "replace"}

const createTable = `create table if not exists contend_records (
	key text primary key, token text not null, version bigint not null,
	updated_at timestamptz, expires_at timestamptz, body jsonb)`

// statement is a statement by the name that its code has for it.
type statement struct{ request, name, sql string }

// statements are prepared when a session is opened, so that each is one
// round trip.
//
// With a time to live, $7, a writing statement gives the expiry that it stored
// and the time. That of a row which is overwritten is not taken from excluded: it
// counts from after the wait for another's lock. A record's own expiry, $5, is in
// the same column and means the same.
func statements(ttl string) []statement {
	expiry, expired, told, compared := `$5`, `false`, ``, `$7`
	if ttl == sqlkit.ExpiresColumn {
		compared = `$8`
		expiry = `coalesce(clock_timestamp() + $7::interval, $5::timestamptz)`
		expired = `coalesce(contend_records.expires_at <= clock_timestamp(), false)`
		told = ` returning expires_at, clock_timestamp()`
	}
	insert := `insert into contend_records (key, version, token, updated_at, expires_at, body) values ($1, $2, $3, $4, ` + expiry + `, $6)`
	overwrite := ` on conflict (key) do update set version = excluded.version, token = excluded.token,
		updated_at = excluded.updated_at, expires_at = ` + expiry + `, body = excluded.body`
	claim := ` on conflict do nothing`
	if ttl == sqlkit.ExpiresColumn {
		claim = overwrite + ` where ` + expired
	}
	all := []statement{
		{"SELECT", "read", `select token, version, updated_at, expires_at, body, ` + expired + ` from contend_records where key = $1`},
		{"DELETE", "delete", `delete from contend_records where key = $1`},
		{"INSERT", "insert", insert + told},
		{"INSERT", "claim", insert + claim + told},
		{"INSERT", "put", insert + overwrite + told},
		{"UPDATE", "update", `update contend_records set version = version + 1, token = $3, updated_at = $4, expires_at = ` + expiry + `, body = $6
			where key = $1 and version = $2` + told},
		{"UPDATE", "modify", `update contend_records set version = $2, token = $3, updated_at = $4, expires_at = ` + expiry + `, body = $6
			where key = $1 and updated_at = ` + compared + told},
		{"UPDATE", "replace", `update contend_records set version = $2, token = $3, updated_at = $4, expires_at = ` + expiry + `, body = $6
			where key = $1 and token = ` + compared + told},
		{"DELETE", "delete-version", `delete from contend_records where key = $1 and version = $2`},
		{"DELETE", "delete-token", `delete from contend_records where key = $1 and token = $2`},
	}
	if ttl == sqlkit.ExpiresColumn {
		renew := `update contend_records set expires_at = clock_timestamp() + $3::interval where not ` + expired + ` and key = $1 and `
		all = append(all, statement{"UPDATE", "renew-version", renew + `version = $2` + told}, statement{"UPDATE", "renew-token", renew + `token = $2` + told})
	}
	return all
}

// settings are those of a session: its lone statements run at READ COMMITTED whatever the
// server's default is.
const (
	settings = `set default_transaction_isolation = 'read committed'; set lock_timeout = `
	undo     = "reset default_transaction_isolation; reset lock_timeout"
)

// setup is what a server is asked before a run.
var setup = sqlkit.Setup{
	Version: `select version()`, Without: "unknown, speaks as PostgreSQL",
	Session: `select pg_backend_pid()`, NoFunction: "42883",
	Lone: "PGlite", LoneText: "several connections share one session there, as on PGlite's socket server, and none is alone in its transactions: " +
		"use a PostgreSQL server itself",
	Room: `select current_setting('max_connections')::int,
		current_setting('superuser_reserved_connections')::int + coalesce(current_setting('reserved_connections', true)::int, 0),
		(select count(*) from pg_stat_activity where datid is not null and pid <> pg_backend_pid() and pid <> $1
			and coalesce(backend_type, 'client backend') = 'client backend')`,
	RoomSetting: "max_connections",
	Table:       `select to_regclass('contend_records') is not null`, Create: createTable,
	Meanwhile: []string{"23505", "42P07", "42710"},
	Keys:      `select key from contend_records where key like $1`, NoTable: "42P01",
}

// set sets what the session needs, so that its lone statements run at READ COMMITTED
// whatever the server's default is, and prepares its statements.
func (s *session) set(ctx context.Context) error {
	s.requests = map[string]string{}
	if _, err := s.conn.Exec(ctx, fmt.Sprint(settings, s.target.lockTimeout.Milliseconds())); err != nil {
		return err
	}
	for _, statement := range statements(s.target.strategies["ttl"]) {
		if _, err := s.conn.Prepare(ctx, s.prefix+statement.name, statement.sql); err != nil {
			return err
		}
		s.requests[statement.name] = statement.request
	}
	s.target.open.Add(1)
	s.counted = true
	return nil
}

// unset takes back what set has done: behind a pooler the session goes on to others.
func (s *session) unset(ctx context.Context) {
	if s.requests == nil || s.conn.IsClosed() {
		return
	}
	if s.conn.PgConn().TxStatus() != 'I' {
		s.conn.Exec(ctx, "rollback")
	}
	undo := undo
	for name := range s.requests {
		undo += "; deallocate " + s.prefix + name
	}
	if _, err := s.conn.Exec(ctx, undo); err != nil {
		// One message is one transaction; a raw op may have deallocated already.
		s.conn.Exec(ctx, "reset all; deallocate all")
	}
	s.requests = nil
}

// What a reader of a report must know.
const (
	expiresNote = "the time to live is the column expires_at, by the server's clock: PostgreSQL removes no expired row and shows it to reads; " +
		"that a create takes it over is the application's doing, by its own statement"
	lockNote = "a request waits for another's lock for %s at most (lock_timeout, 80 %% of the request's timeout), then it is aborted with 55P03"
)
