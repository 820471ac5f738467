//go:build unix

package targettest

import (
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"contend/targets/targettest/servers"
	"contend/targets/targettest/wrong/stores"
)

// wrongServers are real servers whose settings, or what stands in front of them, make
// them wrong. Each starts all that it needs.
var wrongServers = []WrongStore{
	{Name: "redis-replica", Says: "a real replica of Redis: it refuses writes", start: func(w *WrongServer, _ stores.Options) (string, error) {
		primary, err := w.redis()
		if err != nil {
			return "", err
		}
		replica, err := w.redis("--replicaof", strings.ReplaceAll(hostPort(primary.URL), ":", " "))
		return urlOf(replica, err)
	}},
	{Name: "redis-full", Says: "a real Redis that takes eight connections (maxclients)", start: func(w *WrongServer, _ stores.Options) (string, error) {
		return urlOf(w.redis("--maxclients", "8"))
	}},
	{Name: "redis-evicting", Says: "a real Redis whose memory another client keeps full, with maxmemory-policy allkeys-random",
		start: func(w *WrongServer, _ stores.Options) (string, error) {
			server, err := w.redis("--maxmemory", "4mb", "--maxmemory-policy", "allkeys-random")
			if err != nil {
				return "", err
			}
			return server.URL, w.fill(hostPort(server.URL))
		}},
	{Name: "redis-restricted", Says: "a real Redis, and a user without the dangerous commands, INFO among them", start: func(w *WrongServer, _ stores.Options) (string, error) {
		server, err := w.redis("--user", "app", "on", ">secret", "~*", "&*", "+@all", "-@dangerous")
		if err != nil {
			return "", err
		}
		return "redis://app:secret@" + hostPort(server.URL), nil
	}},
	{Name: "row-level-security", Says: "a real PostgreSQL whose policies let a user insert rows and not change or delete any: 0 rows, no error",
		start: func(w *WrongServer, _ stores.Options) (string, error) { return w.postgresAs(rowLevelSecurity) }},
	{Name: "delete-trigger", Says: "a real PostgreSQL whose trigger turns each DELETE into nothing: 0 rows, no error",
		start: func(w *WrongServer, _ stores.Options) (string, error) { return w.postgresAs(deleteTrigger) }},
	{Name: "pgbouncer-transaction", Says: "a real PgBouncer in transaction mode: a client's statements go to several sessions",
		start: func(w *WrongServer, _ stores.Options) (string, error) { return w.pgBouncer("transaction") }},
	{Name: "pgbouncer-full", Says: "a real PgBouncer in session mode with four sessions: further clients wait",
		start: func(w *WrongServer, _ stores.Options) (string, error) { return w.pgBouncer("session") }},
	{Name: "pglite", Says: "a real PGlite behind its socket server: all clients share one session",
		start: func(w *WrongServer, _ stores.Options) (string, error) { return urlOf(w.server(servers.StartPGlite)) }},
}

func urlOf(s *servers.Server, err error) (string, error) {
	if err != nil {
		return "", err
	}
	return s.URL, nil
}

// fill writes to a Redis until it is stopped, more than it has room for.
func (w *WrongServer) fill(address string) error {
	c, err := net.Dial("tcp", address)
	if err != nil {
		return err
	}
	go io.Copy(io.Discard, c)
	go func() {
		value := strings.Repeat("x", 4000)
		for i := 0; ; i++ {
			key := fmt.Sprint("filler-", i)
			if _, err := fmt.Fprintf(c, "*3\r\n$3\r\nSET\r\n$%d\r\n%s\r\n$%d\r\n%s\r\n", len(key), key, len(value), value); err != nil {
				return
			}
			time.Sleep(200 * time.Microsecond)
		}
	}()
	w.stops = append(w.stops, func() { c.Close() })
	return nil
}

const recordsTable = `create table contend_records (key text primary key, token text not null, version bigint not null,
	updated_at timestamptz, expires_at timestamptz, body jsonb);
create role app login;
grant all on contend_records to app;
`

const rowLevelSecurity = recordsTable + `
alter table contend_records enable row level security;
create policy anybody_reads on contend_records for select using (true);
create policy anybody_inserts on contend_records for insert with check (true);
create policy nobody_updates on contend_records for update using (false);
create policy nobody_deletes on contend_records for delete using (false);
`

const deleteTrigger = recordsTable + `
create function keep() returns trigger language plpgsql as 'begin return null; end';
create trigger keep before delete on contend_records for each row execute function keep();
`

func (w *WrongServer) postgres() (*servers.Server, error) {
	return w.server(func(dir string) (*servers.Server, error) { return servers.StartPostgres(dir) })
}

// postgresAs starts a PostgreSQL with a script of statements that makes the role app,
// whose URL it gives.
func (w *WrongServer) postgresAs(script string) (string, error) {
	server, err := w.postgres()
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(context.Background(), servers.ReadyWithin)
	defer cancel()
	conn, err := pgx.Connect(ctx, server.URL)
	if err != nil {
		return "", err
	}
	defer conn.Close(ctx)
	if _, err := conn.PgConn().Exec(ctx, script).ReadAll(); err != nil {
		return "", err
	}
	return strings.Replace(server.URL, "postgres://postgres@", "postgres://app@", 1), nil
}

// pgBouncer starts a PgBouncer with four sessions of a PostgreSQL.
func (w *WrongServer) pgBouncer(mode string) (string, error) {
	postgres, err := w.postgres()
	if err != nil {
		return "", err
	}
	bouncer, err := w.server(func(dir string) (*servers.Server, error) {
		return servers.StartPgBouncer(dir, postgres.URL, "pool_mode = "+mode, "default_pool_size = 4", "max_client_conn = 300")
	})
	if err != nil {
		return "", err
	}
	w.stops = append(w.stops, bouncer.Kill) // interrupted, it would wait for its clients
	return bouncer.URL, nil
}
