//go:build unix

package postgres_test

import (
	"errors"
	"net/url"
	"strings"
	"testing"
	"time"

	"contend/targets"
	"contend/targets/targettest/servers"
	"contend/targets/targettest/try"
)

// through opens a connection of an administrator that prepares nothing.
func through(t *testing.T, pooler string) (setting func(sql string) string) {
	t.Helper()
	conn := postgresAdmin(t, pooler+"&default_query_exec_mode=simple_protocol")
	return func(sql string) string { return query[string](t, conn, sql) }
}

// expectUntouched looks at all sessions that a pooler of at most so many has.
func expectUntouched(t *testing.T, pooler string, sessions int) {
	t.Helper()
	var conns []func(string) string
	for range sessions {
		setting := through(t, pooler)
		setting("select txid_current()::text")
		conns = append(conns, setting)
	}
	for range 3 {
		for _, setting := range conns {
			for sql, want := range map[string]string{"show lock_timeout": "0", "show default_transaction_isolation": "read committed",
				"select count(*)::text from pg_prepared_statements": "0"} {
				if got := setting(sql); got != want {
					t.Errorf("%s: %s, want %s", sql, got, want)
				}
			}
		}
	}
}

// What gives the sessions of the server from hand to hand is refused, and nothing is
// left in them.
func TestPostgresRefusesSharedSessions(t *testing.T) {
	server := servers.Postgres(t)
	for name, settings := range map[string][]string{
		"transaction":              {"pool_mode = transaction", "default_pool_size = 4"},
		"transaction, one session": {"pool_mode = transaction", "default_pool_size = 1"},
		"transaction, in turns":    {"pool_mode = transaction", "default_pool_size = 2", "server_round_robin = 1"},
		"statement":                {"pool_mode = statement", "default_pool_size = 4"},
	} {
		t.Run(name, func(t *testing.T) {
			pooler := servers.PgBouncerServer(t, server, settings...).URL
			// Both sessions exist before they are asked for.
			first, second := postgresAdmin(t, server), postgresAdmin(t, server)
			_, _ = first, second
			for range 3 {
				err := try.Prepare(t.Context(), t, pooler, try.NeedsOf(3))
				try.ExpectError(t, err, "", "a pooler in transaction mode is in between", "use session mode, or the server itself")
				if !errors.Is(err, targets.ErrUnsupported) {
					t.Errorf("got %v", err)
				}
			}
			expectUntouched(t, pooler, 4)
			if query[bool](t, first, "select to_regclass('contend_records') is not null") {
				t.Error("the table was made")
			}
		})
	}
}

// In session mode all promises are kept, and a session that goes back to the pooler is as
// it came, though nothing there resets it.
func TestPostgresBehindAPoolerInSessionMode(t *testing.T) {
	server := servers.Postgres(t)
	pooler := servers.PgBouncerServer(t, server, "pool_mode = session", "default_pool_size = 12", "server_reset_query =").URL
	for _, strategies := range postgresStrategies[:3] {
		if err := try.Suite(t.Context(), try.Open(t, pooler+strategies), try.NeedsOf(6)); err != nil {
			t.Error(err)
		}
	}
	target := try.Prepared(t, pooler, try.NeedsOf(3))
	raw := func(s targets.Session, statements string) {
		if got := s.Do(t.Context(), targets.Op{Kind: targets.Raw, Raw: []byte(`"` + statements + `"`)}); got.Outcome != targets.OK {
			t.Errorf("%s: %+v", statements, got)
		}
	}
	for _, statements := range []string{"select 1", "begin", "deallocate all"} {
		s, err := target.Open(t.Context(), 0)
		if err != nil {
			t.Fatal(err)
		}
		raw(s, statements)
		s.Close()
		expectUntouched(t, pooler, 3)
	}
}

// A pool with no session left makes a connection wait; the error names the limit, and
// how many the run had got.
func TestPostgresPoolIsFull(t *testing.T) {
	server := servers.Postgres(t)
	t.Run("for the run", func(t *testing.T) {
		pooler := servers.PgBouncerServer(t, server, "pool_mode = session", "default_pool_size = 3").URL
		target := try.Prepared(t, pooler, try.NeedsOf(4))
		for i := range 3 {
			try.Session(t, target, i)
		}
		_, err := target.Open(try.Within(t, time.Second), 3)
		try.ExpectError(t, err, "", "while the run has 3", "default_pool_size", "lower the number of contenders")
		if strings.Contains(err.Error(), "is the server running") {
			t.Error(err)
		}
	})
	t.Run("for the first two", func(t *testing.T) {
		pooler := servers.PgBouncerServer(t, server, "pool_mode = session", "default_pool_size = 1").URL
		err := try.Prepare(try.Within(t, time.Second), t, pooler, try.NeedsOf(4))
		try.ExpectError(t, err, "", "its pool is full", "default_pool_size", "lower the number of contenders")
	})
	t.Run("refused", func(t *testing.T) {
		pooler := servers.PgBouncerServer(t, server, "pool_mode = session", "max_client_conn = 1").URL
		try.ExpectError(t, try.Prepare(t.Context(), t, pooler, try.NeedsOf(4)), "", "max_client_conn", "lower the number of contenders")
	})
	t.Run("waited too long", func(t *testing.T) {
		pooler := servers.PgBouncerServer(t, server, "pool_mode = session", "default_pool_size = 1", "query_wait_timeout = 1").URL
		try.ExpectError(t, try.Prepare(t.Context(), t, pooler, try.NeedsOf(4)), "", "query_wait_timeout", "default_pool_size")
	})
	t.Run("a parameter that it does not pass on", func(t *testing.T) {
		pooler := servers.PgBouncerServer(t, server, "pool_mode = session").URL
		err := try.Prepare(t.Context(), t, pooler+"&options="+url.QueryEscape("-c lock_timeout=1"), try.NeedsOf(4))
		try.ExpectError(t, err, "", "unsupported startup parameter", "leave it out of the URL")
	})
}

func TestPostgresRefusesPGlite(t *testing.T) {
	server := servers.PGliteServer(t).URL
	for range 2 {
		err := try.Prepare(t.Context(), t, server, try.NeedsOf(3))
		try.ExpectError(t, err, "", "several connections share one session", "PGlite")
		if !errors.Is(err, targets.ErrUnsupported) {
			t.Errorf("got %v", err)
		}
	}
	expectUntouched(t, server, 1)
}
