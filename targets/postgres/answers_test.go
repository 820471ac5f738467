//go:build unix

package postgres_test

import (
	"bytes"
	"io"
	"net"
	"net/url"
	"strings"
	"testing"

	"contend/targets"
	"contend/targets/targettest/servers"
	"contend/targets/targettest/try"
)

// altered stands between a session and a server, and replaces a text of the server's by
// another of the same length.
func altered(t *testing.T, server, text, other string) (behind string) {
	t.Helper()
	u, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			near, err := listener.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("tcp", u.Host)
			if err != nil {
				near.Close()
				return
			}
			go func() { _, _ = io.Copy(far, near); far.Close() }()
			go func() {
				defer near.Close()
				for packet := make([]byte, 1<<16); ; {
					n, err := far.Read(packet)
					if err != nil {
						return
					}
					_, _ = near.Write(bytes.ReplaceAll(packet[:n], []byte(text), []byte(other)))
				}
			}()
		}
	}()
	behind = strings.Replace(server, u.Host, listener.Addr().String(), 1)
	return behind
}

// A command tag that the statement does not have is Unmapped, and is told.
func TestPostgresAcceptsNoOtherTag(t *testing.T) {
	server := servers.Postgres(t)
	seed := try.SessionOn(t, server)
	for _, c := range []struct {
		query, tag, other string
		op                targets.Op
	}{
		{"", "INSERT 0 1\x00", "INSERT 0 2\x00", try.Write("key", "a", try.IfAbsent)},
		{"", "INSERT 0 1\x00", "UPDATE 111\x00", try.Write("key", "a", targets.Condition{})},
		{"&create=unique-violation", "INSERT 0 1\x00", "INSERT 1 1\x00", try.Write("key", "a", try.IfAbsent)},
		{"&create=serializable", "INSERT 0 1\x00", "INSERT 0 7\x00", try.Write("key", "a", try.IfAbsent)},
		{"&create=serializable", "COMMIT\x00", "VACUUM\x00", try.Write("key", "a", try.IfAbsent)},
		{"&create=serializable", "BEGIN\x00", "FETCH\x00", try.Write("key", "a", try.IfAbsent)},
		{"", "UPDATE 1\x00", "UPDATE 3\x00", try.Write("seeded", "a", try.IfFirst)},
		{"&cas=repeatable-read", "UPDATE 1\x00", "DELETE 1\x00", try.Write("seeded", "a", try.IfFirst)},
		{expiresColumn, "INSERT 0 1\x00", "INSERT 0 2\x00", try.Write("key", "a", try.IfAbsent)},
		{"", "DELETE 1\x00", "DELETE 2\x00", targets.Op{Kind: targets.Delete, Key: "seeded"}},
		{"", "SELECT 1\x00", "SELECT 2\x00", try.Read("seeded")},
		{"", "SELECT 0\x00", "SELECT 1\x00", try.Read("nowhere")},
	} {
		try.Expect(t, seed, targets.Op{Kind: targets.Delete, Key: "key"}, targets.OK, "")
		try.Expect(t, seed, targets.Op{Kind: targets.Write, Key: "seeded", Value: targets.Record{Token: "seed"}}, targets.OK, "")
		session := try.Session(t, try.Open(t, altered(t, server, c.tag, c.other)+c.query), 0)
		got := try.Expect(t, session, c.op, targets.Unmapped, "unexpected")
		if !strings.Contains(got.Message, strings.TrimSuffix(c.other, "\x00")) || got.Attempts != 1 || got.Sent.IsZero() {
			t.Errorf("%q for %q: %+v", c.other, c.tag, got)
		}
	}
}

// What keeps a run from starting is named by its cause.
func TestPostgresRefusalsAreToldByTheirCause(t *testing.T) {
	server := servers.Postgres(t)
	for name, c := range map[string]struct{ setup, code, says string }{
		"readonly":  {"alter database readonly set default_transaction_read_only = on", "25006", "name the primary in the URL"},
		"othertype": {"create table contend_records (key text primary key, token int, version text, updated_at int, expires_at int, body int)", "42883", "not as contend makes it"},
		"columns":   {"create table contend_records (id int primary key)", "42703", "not as contend makes it"},
		"forbidden": {"create table contend_records (key text primary key); revoke all on schema public from public; create role stranger login; " +
			"alter table contend_records owner to postgres; alter role stranger set search_path = public", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			database := newDatabase(t, server, name)
			execute(t, postgresAdmin(t, database), c.setup)
			if c.code == "" {
				database, c.code, c.says = strings.Replace(database, "postgres@", "stranger@", 1), "3F000", "search_path"
			}
			target := try.Open(t, database)
			_, err := target.Prepare(t.Context(), try.NeedsOf(1))
			if err == nil {
				_, err = target.Open(t.Context(), 0)
			}
			try.ExpectError(t, err, "", c.code, c.says)
			for _, false := range []string{"drop it", "is the server running"} {
				if strings.Contains(err.Error(), false) {
					t.Error(err)
				}
			}
		})
	}
	for code, c := range map[string]struct{ key, says string }{"22001": {"varchar(3) primary key", "too short"}, "42P10": {"text", "no unique key"}} {
		misfit := newDatabase(t, server, "misfit_"+strings.ToLower(code))
		execute(t, postgresAdmin(t, misfit), "create table contend_records (key "+c.key+", token text, version bigint, updated_at timestamptz, expires_at timestamptz, body jsonb)")
		if got := try.Expect(t, try.SessionOn(t, misfit), try.Write("longer", "a", targets.Condition{}), targets.Invalid, code); !strings.Contains(got.Message, c.says) {
			t.Errorf("got %+v", got)
		}
	}
	limited := newDatabase(t, server, "limited")
	admin := postgresAdmin(t, limited)
	execute(t, admin, "create role guest login connection limit 0")
	err := try.Prepare(t.Context(), t, strings.Replace(limited, "postgres@", "guest@", 1), try.NeedsOf(1))
	try.ExpectError(t, err, "", "53300", "lower the number of contenders")
	for _, url := range []string{"postgres://me@127.0.0.1:1/d?sslmode=disable", "redis://127.0.0.1:1"} {
		err := try.Prepare(t.Context(), t, url, try.NeedsOf(1))
		try.ExpectError(t, err, "", "is the server running")
	}
}
