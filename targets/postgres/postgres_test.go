//go:build unix

package postgres_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"contend/targets"
	"contend/targets/targettest/servers"
	"contend/targets/targettest/try"
)

func postgresAdmin(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(context.Background()) })
	return conn
}

func execute(t *testing.T, conn *pgx.Conn, sql string) {
	t.Helper()
	if _, err := conn.Exec(t.Context(), sql); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

func query[T any](t *testing.T, conn *pgx.Conn, sql string, arguments ...any) (value T) {
	t.Helper()
	if err := conn.QueryRow(t.Context(), sql, arguments...).Scan(&value); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return value
}

// newDatabase makes a database on the server of a URL and gives its own URL.
func newDatabase(t *testing.T, server, name string) string {
	t.Helper()
	execute(t, postgresAdmin(t, server), "create database "+name)
	return strings.Replace(server, "/postgres?", "/"+name+"?", 1)
}

var (
	postgresCreates = []string{"on-conflict", "unique-violation", "serializable"}
	postgresCASes   = []string{"where", "repeatable-read", "serializable"}
	// Each strategy at least once, without and with a time to live.
	postgresStrategies = []string{"&create=on-conflict&cas=where", "&create=unique-violation&cas=repeatable-read",
		"&create=serializable&cas=serializable", expiresColumn + "&create=on-conflict&cas=repeatable-read",
		expiresColumn + "&create=serializable&cas=where", expiresColumn + "&cas=serializable"}
)

func TestPostgresOfFiftyContenders(t *testing.T) {
	server := servers.Postgres(t)
	for i := range postgresCreates {
		t.Run("fifty contenders, create="+postgresCreates[i], func(t *testing.T) {
			if err := try.Suite(t.Context(), try.Open(t, server+"&create="+postgresCreates[i]), try.NeedsOf(50)); err != nil {
				t.Error(err)
			}
		})
		t.Run("fifty contenders, cas="+postgresCASes[i], func(t *testing.T) {
			try.RacesOnVersion(t, try.Prepared(t, server+"&cas="+postgresCASes[i], try.NeedsOf(50)), 50, 10)
		})
	}
}

func TestPostgres(t *testing.T) {
	server := servers.Postgres(t)
	for name, test := range map[string]func(t *testing.T, server string){
		"describes itself":               postgresDescribesItself,
		"sorts errors":                   postgresSortsErrors,
		"lock held":                      postgresLockHeld,
		"cancelled in mid-operation":     postgresCancelled,
		"statement cancelled":            postgresStatementCancelled,
		"connection terminated":          postgresConnectionTerminated,
		"fails at COMMIT":                postgresFailsAtCommit,
		"counts versions":                postgresCountsVersions,
		"has no time to live":            postgresHasNoTimeToLive,
		"too few connections":            postgresTooFewConnections,
		"prepared by several at once":    postgresPreparedAtOnce,
		"user who may not create":        postgresUserWhoMayNotCreate,
		"cleans":                         postgresCleans,
		"passes on its own parameters":   postgresParameters,
		"survives a refused statement":   postgresSurvivesRefusal,
		"reads what others may have put": postgresReadsOthersRows,
	} {
		t.Run(name, func(t *testing.T) { test(t, server) })
	}
}

func postgresDescribesItself(t *testing.T, server string) {
	needs := try.NeedsOf(1)
	needs.Timeout = 10 * time.Second
	got := try.Described(t, server+"&cas=serializable", needs)
	version := query[string](t, postgresAdmin(t, server), "show server_version")
	if number, _, _ := strings.Cut(version, " "); got.Server != "PostgreSQL "+number {
		t.Errorf("server %q, whose version is %q", got.Server, version)
	}
	want := map[string]string{"create": "on-conflict", "cas": "serializable", "delete": "where"}
	if !maps.Equal(got.Strategies, want) || got.SentBy != "kernel-write" || !got.OneCopy {
		t.Errorf("got %+v", got)
	}
	if notes := strings.Join(got.Notes, "\n"); !strings.Contains(notes, "8s") || !strings.Contains(notes, "lock_timeout") {
		t.Errorf("the lock timeout is not told: %q", got.Notes)
	}
}

func postgresSortsErrors(t *testing.T, server string) {
	database := newDatabase(t, server, "errors")
	admin := postgresAdmin(t, database)
	try.Prepared(t, database, try.NeedsOf(1))
	execute(t, admin, `create function fail() returns trigger language plpgsql as
		$$ begin raise exception 'planted' using errcode = new.token; end $$`)
	execute(t, admin, `create trigger fail before insert or update on contend_records for each row
		when (new.token ~ '^[0-9A-Z]{5}$') execute function fail()`)
	for state, outcome := range map[string]targets.Outcome{
		"23505": targets.Conflict, "40001": targets.Aborted, "40P01": targets.Aborted, "55P03": targets.Aborted,
		"40003": targets.Unknown, "57014": targets.Unknown, "57P01": targets.Unknown, "08006": targets.Unknown, "25P03": targets.Unknown,
		"53300": targets.Invalid, "42501": targets.Invalid, "22P02": targets.Invalid, "28000": targets.Invalid,
		"25006": targets.Invalid, "3D000": targets.Invalid, "54000": targets.Invalid, "0A000": targets.Invalid,
		"23514": targets.Unmapped, "53100": targets.Unmapped, "XX000": targets.Unmapped, "ZZ001": targets.Unmapped,
	} {
		for _, strategies := range postgresStrategies {
			session := try.SessionOn(t, database+strategies)
			try.Expect(t, session, try.Write("key", state, try.IfAbsent), outcome, state)
			try.Expect(t, session, try.Read("key"), targets.Missing, "")
		}
	}
	session := try.SessionOn(t, database)
	try.Expect(t, session, try.Write("a\x00b", "a", try.IfAbsent), targets.Invalid, "22021")
	broken := try.Write("key", "a", try.IfAbsent)
	broken.Value.Body = json.RawMessage("{")
	try.Expect(t, session, broken, targets.Invalid, "22P02")
	execute(t, admin, "drop table contend_records")
	try.Expect(t, session, try.Write("key", "a", try.IfAbsent), targets.Invalid, "42P01")
}

// eachStrategy runs a test with a session of each strategy and the write that
// goes by it.
func eachStrategy(t *testing.T, server string, needs targets.Needs, test func(t *testing.T, session targets.Session, op targets.Op)) {
	t.Helper()
	for _, strategies := range postgresStrategies {
		for name, cond := range map[string]targets.Condition{"create": try.IfAbsent, "cas": try.IfFirst} {
			t.Run(name+" with "+strategies, func(t *testing.T) {
				test(t, try.Session(t, try.Prepared(t, server+strategies, needs), 0), try.Write("locked", "a", cond))
			})
		}
	}
}

// lock makes the write of op wait for a lock, until the test ends or release is
// called.
func lock(t *testing.T, server string, op targets.Op) (release func()) {
	t.Helper()
	holder := postgresAdmin(t, server)
	execute(t, holder, "delete from contend_records where key = 'locked'")
	insert := "insert into contend_records (key, token, version) values ('locked', 'held', 0)"
	if op.If.Guard == targets.IfVersion {
		execute(t, holder, insert)
		insert = "select from contend_records where key = 'locked' for update"
	}
	execute(t, holder, "begin")
	execute(t, holder, insert)
	return func() { execute(t, holder, "rollback") }
}

func postgresLockHeld(t *testing.T, server string) {
	needs := try.NeedsOf(1)
	needs.Timeout = 100 * time.Millisecond
	eachStrategy(t, server, needs, func(t *testing.T, session targets.Session, op targets.Op) {
		release := lock(t, server, op)
		try.Expect(t, session, op, targets.Aborted, "55P03")
		release()
		try.Expect(t, session, op, targets.OK, "")
	})
}

// waiting runs an op that waits for a lock and returns when it does, with the
// number of the server's process that serves it.
func waiting(t *testing.T, ctx context.Context, server string, session targets.Session, op targets.Op) (process int, replies <-chan targets.Reply) {
	t.Helper()
	lock(t, server, op)
	admin := postgresAdmin(t, server)
	reply := make(chan targets.Reply, 1)
	go func() { reply <- session.Do(ctx, op) }()
	try.Eventually(t, "the write waiting for the lock", func() bool {
		process = query[int](t, admin, "select coalesce(max(pid), 0) from pg_stat_activity where wait_event_type = 'Lock'")
		return process != 0
	})
	return process, reply
}

func postgresCancelled(t *testing.T, server string) {
	eachStrategy(t, server, try.NeedsOf(1), func(t *testing.T, session targets.Session, op targets.Op) {
		ctx, cancel := context.WithCancel(t.Context())
		_, replies := waiting(t, ctx, server, session, op)
		cancel()
		try.ExpectLost(t, session, <-replies, "cancelled")
	})
}

func postgresStatementCancelled(t *testing.T, server string) {
	admin := postgresAdmin(t, server)
	eachStrategy(t, server, try.NeedsOf(1), func(t *testing.T, session targets.Session, op targets.Op) {
		process, replies := waiting(t, t.Context(), server, session, op)
		query[bool](t, admin, "select pg_cancel_backend($1)", process)
		if got := <-replies; got.Outcome != targets.Unknown || got.Code != "57014" {
			t.Errorf("got %+v", got)
		}
		if got := session.Do(t.Context(), try.Read("locked")); got.Outcome != targets.OK && got.Outcome != targets.Missing {
			t.Errorf("the session does not go on: got %+v", got)
		}
	})
}

func postgresConnectionTerminated(t *testing.T, server string) {
	admin := postgresAdmin(t, server)
	eachStrategy(t, server, try.NeedsOf(1), func(t *testing.T, session targets.Session, op targets.Op) {
		process, replies := waiting(t, t.Context(), server, session, op)
		query[bool](t, admin, "select pg_terminate_backend($1)", process)
		try.ExpectLost(t, session, <-replies, "57P01")
	})
}

// failAtCommit makes a COMMIT fail with the SQLSTATE that the token names, or
// wait for the lock that admin holds: a deferred trigger runs there.
func failAtCommit(t *testing.T, admin *pgx.Conn) {
	t.Helper()
	execute(t, admin, `create function fail() returns trigger language plpgsql as $$ begin
		if new.token = 'waits' then perform pg_advisory_xact_lock(1); return null; end if;
		raise exception 'planted' using errcode = new.token; end $$`)
	execute(t, admin, `create constraint trigger fail after insert or update on contend_records deferrable initially deferred
		for each row when (new.token <> 'seed') execute function fail()`)
	execute(t, admin, "insert into contend_records (key, token, version) values ('present', 'seed', 0)")
	execute(t, admin, "select pg_advisory_lock(1)")
}

// waitingAtCommit is waiting, for a COMMIT.
func waitingAtCommit(t *testing.T, admin *pgx.Conn, session targets.Session, op targets.Op) (process int, replies <-chan targets.Reply) {
	t.Helper()
	reply := make(chan targets.Reply, 1)
	go func() { reply <- session.Do(t.Context(), op) }()
	try.Eventually(t, "the COMMIT waiting", func() bool {
		process = query[int](t, admin, "select coalesce(max(pid), 0) from pg_stat_activity where wait_event = 'advisory'")
		return process != 0
	})
	return process, reply
}

func postgresFailsAtCommit(t *testing.T, server string) {
	database := newDatabase(t, server, "commits")
	admin := postgresAdmin(t, database)
	try.Prepared(t, database, try.NeedsOf(1))
	failAtCommit(t, admin)
	for _, strategies := range postgresStrategies {
		session := try.SessionOn(t, database+strategies)
		for _, op := range []targets.Op{try.Write("absent", "40001", try.IfAbsent), try.Write("present", "40001", try.IfFirst)} {
			try.Expect(t, session, op, targets.Aborted, "40001")
		}
		for _, op := range []targets.Op{try.Write("absent", "waits", try.IfAbsent), try.Write("present", "waits", try.IfFirst)} {
			session := try.SessionOn(t, database+strategies)
			process, replies := waitingAtCommit(t, admin, session, op)
			query[bool](t, admin, "select pg_terminate_backend($1)", process)
			try.ExpectLost(t, session, <-replies, "57P01")
		}
	}
}

func postgresCountsVersions(t *testing.T, server string) {
	for _, cas := range postgresCASes {
		session := try.SessionOn(t, server+"&cas="+cas)
		seed := targets.Op{Kind: targets.Write, Key: "counted", Value: targets.Record{Token: "seed", Version: 5}}
		try.Expect(t, session, seed, targets.OK, "")
		op := targets.Op{Kind: targets.Write, Key: "counted", Value: targets.Record{Token: "a", Version: 99},
			If: targets.Condition{Guard: targets.IfVersion, Counter: 5}}
		try.Expect(t, session, op, targets.OK, "")
		if got := try.Expect(t, session, try.Read("counted"), targets.OK, ""); got.Record.Version != 6 {
			t.Errorf("%s: one write took version 5 to %d", cas, got.Record.Version)
		}
	}
}

func postgresHasNoTimeToLive(t *testing.T, server string) {
	op := try.Write("expiring", "a", try.IfAbsent)
	op.TTL = time.Second
	session := try.SessionOn(t, server)
	if got := try.Expect(t, session, op, targets.Unsupported, ""); got.Attempts != 0 || !got.Sent.IsZero() {
		t.Errorf("something was sent: %+v", got)
	}
	try.Expect(t, session, try.Read("expiring"), targets.Missing, "")
}

func postgresTooFewConnections(t *testing.T, server string) {
	most := query[int](t, postgresAdmin(t, server), "select current_setting('max_connections')::int")
	err := try.Prepare(t.Context(), t, server, try.NeedsOf(most))
	try.ExpectError(t, err, "", fmt.Sprintf("max_connections %d", most), "reserved 3", fmt.Sprintf("needs %d", most), "lower the number of contenders")
}

func postgresPreparedAtOnce(t *testing.T, server string) {
	database := newDatabase(t, server, "prepared")
	admin := postgresAdmin(t, database)
	for range 10 {
		execute(t, admin, "drop table if exists contend_records")
		var failures [8]error
		start, done := make(chan struct{}), sync.WaitGroup{}
		for i := range failures {
			target := try.Open(t, database)
			done.Go(func() {
				<-start
				_, failures[i] = target.Prepare(t.Context(), try.NeedsOf(1))
			})
		}
		close(start)
		done.Wait()
		for _, err := range failures {
			if err != nil {
				t.Error(err)
			}
		}
		try.Expect(t, try.SessionOn(t, database), try.Write("key", "a", try.IfAbsent), targets.OK, "")
	}
}

func postgresUserWhoMayNotCreate(t *testing.T, server string) {
	database := newDatabase(t, server, "permissions")
	admin := postgresAdmin(t, database)
	execute(t, admin, "revoke create on schema public from public")
	execute(t, admin, "create role writer login")
	asWriter := strings.Replace(database, "postgres@", "writer:hunter2@", 1)
	try.ExpectError(t, try.Prepare(t.Context(), t, asWriter, try.NeedsOf(1)), "hunter2", "cannot create the table contend_records", "42501")
	try.Prepared(t, database, try.NeedsOf(1))
	target := try.Prepared(t, asWriter, try.NeedsOf(1))
	session := try.Session(t, target, 0)
	try.Expect(t, session, try.Write("key", "a", try.IfAbsent), targets.Invalid, "42501")
	execute(t, admin, "grant select, insert, update, delete on contend_records to writer")
	try.Expect(t, session, try.Write("key", "a", try.IfAbsent), targets.OK, "")
}

func postgresCleans(t *testing.T, server string) {
	database := newDatabase(t, server, "cleaned")
	target := try.Open(t, database)
	if removed, err := try.RemoveListed(t, target, "a"); removed != 0 || err != nil {
		t.Errorf("without a table: removed %d, %v", removed, err)
	}
	try.Prepared(t, database, try.NeedsOf(1))
	admin := postgresAdmin(t, database)
	for _, prefix := range []string{"a%", "a_", `a\`, `a\%`} {
		execute(t, admin, "delete from contend_records")
		kept := []string{"abcd", "ab", "a", "b" + prefix}
		for _, key := range append(kept, prefix, prefix+"1", prefix+"2") {
			if _, err := admin.Exec(t.Context(), "insert into contend_records (key, token, version) values ($1, 'a', 0)", key); err != nil {
				t.Fatal(err)
			}
		}
		removed, err := try.RemoveListed(t, target, prefix)
		left := query[[]string](t, admin, "select array_agg(key) from contend_records")
		slices.Sort(left)
		slices.Sort(kept)
		if removed != 3 || err != nil || !slices.Equal(left, kept) {
			t.Errorf("prefix %q: removed %d, %v; left %q", prefix, removed, err, left)
		}
	}
}

func postgresParameters(t *testing.T, server string) {
	try.Prepared(t, server, try.NeedsOf(1))
	parsed, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	elsewhere := fmt.Sprintf("postgres:///postgres?host=%s&port=%s&user=postgres&create=unique-violation&application_name=a+b"+
		"&sslmode=disable&options=-c%%20default_transaction_read_only%%3Don", parsed.Hostname(), parsed.Port())
	session := try.SessionOn(t, elsewhere)
	try.Expect(t, session, try.Write("key", "a", try.IfAbsent), targets.Invalid, "25006")
	names := query[[]string](t, postgresAdmin(t, server), "select array_agg(application_name) from pg_stat_activity")
	if !slices.Contains(names, "a+b") {
		t.Errorf("application names are %q", names)
	}
}

func postgresSurvivesRefusal(t *testing.T, server string) {
	for _, strategies := range postgresStrategies {
		session := try.SessionOn(t, server+strategies)
		try.Expect(t, session, targets.Op{Kind: targets.Delete, Key: "refused"}, targets.OK, "")
		try.Expect(t, session, try.Write("refused", "a", try.IfAbsent), targets.OK, "")
		stale := targets.Condition{Guard: targets.IfVersion, Counter: 7}
		for range 3 {
			for _, cond := range []targets.Condition{try.IfAbsent, stale} {
				if got := session.Do(t.Context(), try.Write("refused", "b", cond)); got.Outcome != targets.Conflict {
					t.Errorf("got %+v", got)
				}
			}
		}
		if got := try.Expect(t, session, try.Read("refused"), targets.OK, ""); got.Record.Token != "a" {
			t.Errorf("the refused write was applied: %+v", got)
		}
		if got := session.Do(t.Context(), try.Write("refused-too", "b", stale)); got.Outcome != targets.Conflict {
			t.Errorf("a write on a version of a missing key: got %+v", got)
		}
	}
}

func postgresReadsOthersRows(t *testing.T, server string) {
	session := try.SessionOn(t, server)
	execute(t, postgresAdmin(t, server), `insert into contend_records (key, token, version, body) values ('foreign', '', 3, '"text"')`)
	got := try.Expect(t, session, try.Read("foreign"), targets.OK, "").Record
	if got.Token != "" || got.Version != 3 || !got.UpdatedAt.IsZero() || string(got.Body) != `"text"` {
		t.Errorf("got %+v", got)
	}
}

func TestPostgresKilledInMidOperation(t *testing.T) {
	for _, strategy := range []string{"&create=on-conflict", "&create=serializable"} {
		server := servers.PostgresServer(t)
		session := try.SessionOn(t, server.URL+strategy)
		_, replies := waiting(t, t.Context(), server.URL, session, try.Write("locked", "a", try.IfAbsent))
		server.Kill()
		got := <-replies
		// The server's processes may say that the crash of another ends them.
		if got.Outcome != targets.Unknown || got.Attempts != 1 || got.Sent.IsZero() {
			t.Errorf("%s: got %+v", strategy, got)
		}
		try.Expect(t, session, try.Read("locked"), targets.NotSent, "connection")
	}
}

func TestPostgresConnectionLostAtCommit(t *testing.T) {
	for _, strategies := range postgresStrategies {
		url := servers.Postgres(t)
		admin := postgresAdmin(t, url)
		session := try.SessionOn(t, url+strategies)
		failAtCommit(t, admin)
		process, replies := waitingAtCommit(t, admin, session, try.Write("present", "waits", try.IfFirst))
		// The process of the connection alone, which says nothing any more.
		if err := syscall.Kill(process, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		try.ExpectLost(t, session, <-replies, "connection")
	}
}

func TestPostgresRefusesTheLogin(t *testing.T) {
	server := servers.PostgresServer(t, "max_connections=8", "superuser_reserved_connections=1")
	admin := postgresAdmin(t, server.URL)
	execute(t, admin, "create role guarded login superuser password 'open-sesame'")
	rules := query[string](t, admin, "show hba_file")
	content, err := os.ReadFile(rules)
	if err != nil {
		t.Fatal(err)
	}
	// The file stays its owner's, as whom the server runs.
	if err := os.WriteFile(rules, append([]byte("host all guarded 127.0.0.1/32 scram-sha-256\n"), content...), 0o600); err != nil {
		t.Fatal(err)
	}
	execute(t, admin, "select pg_reload_conf()")
	as := func(userinfo string) string { return strings.Replace(server.URL, "postgres@", userinfo+"@", 1) }
	try.Eventually(t, "the rule in force", func() bool {
		return try.Prepare(t.Context(), t, as("guarded:wrong"), try.NeedsOf(1)) != nil
	})
	err = try.Prepare(t.Context(), t, as("guarded:hunter%2F2"), try.NeedsOf(1))
	try.ExpectError(t, err, "hunter", "28P01", "check user, password and database")
	_, err = try.Open(t, as("guarded:hunter2")).Open(t.Context(), 0)
	try.ExpectError(t, err, "hunter2", "check user, password and database")
	_, _, err = try.Open(t, as("guarded:hunter2")).List(t.Context(), "a")
	try.ExpectError(t, err, "hunter2", "check user, password and database")
	if err := try.Suite(t.Context(), try.Open(t, as("guarded:open-sesame")), try.NeedsOf(2)); err != nil {
		t.Error(err)
	}
	try.ExpectError(t, try.Prepare(t.Context(), t, strings.Replace(server.URL, "/postgres?", "/nowhere?", 1), try.NeedsOf(1)), "", "3D000")
	postgresFull(t, server.URL)
}

// postgresFull takes what connections there are.
func postgresFull(t *testing.T, server string) {
	target := try.Prepared(t, server, try.NeedsOf(2))
	_, err := target.Prepare(t.Context(), try.NeedsOf(8))
	try.ExpectError(t, err, "", "room for ", "max_connections 8", "reserved 1", "in use ", "needs 8")
	for i := range 20 {
		session, err := target.Open(t.Context(), i)
		if err != nil {
			try.ExpectError(t, err, "", "53300", "lower the number of contenders")
			return
		}
		t.Cleanup(func() { session.Close() })
	}
	t.Error("twenty sessions on eight connections")
}

func TestPostgresUnreachable(t *testing.T) {
	address := try.ClosedPort(t)
	err := try.Prepare(t.Context(), t, "postgres://user:hunter2@"+address+"/postgres?sslpassword=hunter2", try.NeedsOf(1))
	try.ExpectError(t, err, "hunter2", "cannot reach", address, "is the server running")
}

func TestPostgresRefusesURLs(t *testing.T) {
	for _, url := range []string{"postgres:somewhere", "postgres://host/db?sslmode=maybe", "postgres://host/db?create=maybe",
		"postgresql://host/db?cas=on-conflict", "postgres://host/db?pool_max_conns=3", "postgres://host/db?service=mine",
		"postgres://host/db?target_session_attrs=best", "postgres://host/db?connect_timeout=soon"} {
		try.ExpectUsageError(t, url, "")
	}
	try.ExpectUsageError(t, "postgres://user:hunter2@host/db?sslmode=maybe", "hunter2")
	try.ExpectUsageError(t, "postgres://host/db?user=me&password=hunter2&sslmode=maybe", "hunter2")
}
