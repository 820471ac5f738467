//go:build unix

package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"contend/targets"
	"contend/targets/all"
	"contend/targets/postgres"
	"contend/targets/targettest/servers"
	"contend/targets/targettest/try"
)

const expiresColumn = "&ttl=expires-column"

// The creates that can take over an expired row, each with what refuses them.
var takeovers = map[string]string{"on-conflict": "0 rows", "serializable": "exists"}

// leased is a create with a time to live.
func leased(key, token string, ttl time.Duration) targets.Op {
	op := try.Write(key, token, try.IfAbsent)
	op.TTL = ttl
	return op
}

// takenOver goes through the life of a lease, on a session and with the server's
// superuser as the one who moves time, and gives the rules that were broken.
func takenOver(ctx context.Context, session targets.Session, admin *pgx.Conn, refusal string) error {
	const key = "contend-lease"
	var broken []error
	expect := func(rule string, op targets.Op, want targets.Outcome, code string) targets.Reply {
		got := session.Do(ctx, op)
		if got.Outcome != want || got.Code != code {
			broken = append(broken, fmt.Errorf("%s: got %s %q (%s)", rule, got.Outcome, got.Code, got.Message))
		}
		return got
	}
	holds := func(rule, token string) {
		if got := expect(rule, try.Read(key), targets.OK, ""); got.Record.Token != token {
			broken = append(broken, fmt.Errorf("%s: the row is %q's", rule, got.Record.Token))
		}
	}
	expires := func(at string) {
		if _, err := admin.Exec(ctx, "update contend_records set expires_at = "+at+" where key = $1", key); err != nil {
			broken = append(broken, err)
		}
	}
	expect("a row is removed", targets.Op{Kind: targets.Delete, Key: key}, targets.OK, "")
	expect("an absent key is created", leased(key, "first", time.Hour), targets.OK, "")
	expect("a live row blocks", leased(key, "second", time.Hour), targets.Conflict, refusal)
	holds("a live row is left alone", "first")
	expires("clock_timestamp() + interval '1 minute'")
	expect("a live row blocks until its end", leased(key, "second", time.Hour), targets.Conflict, refusal)
	expires("clock_timestamp()")
	holds("an expired row is shown", "first")
	expect("an expired row is taken over", leased(key, "third", time.Hour), targets.OK, "")
	expect("it is taken over once", leased(key, "fourth", time.Hour), targets.Conflict, refusal)
	holds("who took a row over has it", "third")
	expires("clock_timestamp()")
	expect("a create without a time to live takes over too", try.Write(key, "fifth", try.IfAbsent), targets.OK, "")
	expires("expires_at") // stays null
	expect("a row without a time to live blocks", leased(key, "sixth", time.Hour), targets.Conflict, refusal)
	holds("a row without a time to live is left alone", "fifth")
	return errors.Join(broken...)
}

func TestPostgresExpires(t *testing.T) {
	server := servers.Postgres(t)
	admin := postgresAdmin(t, server)
	for create, refusal := range takeovers {
		url := server + expiresColumn + "&create=" + create
		t.Run(create, func(t *testing.T) {
			if err := takenOver(t.Context(), try.SessionOn(t, url), admin, refusal); err != nil {
				t.Error(err)
			}
		})
		t.Run(create+" races", func(t *testing.T) { racesForExpired(t, admin, url) })
		t.Run(create+" tells", func(t *testing.T) { postgresTellsExpiry(t, admin, url) })
		t.Run(create+" of the record's own", func(t *testing.T) { postgresOwnExpiry(t, url) })
		t.Run(create+" by itself", func(t *testing.T) { postgresExpiresByItself(t, url) })
	}
	t.Run("planted", func(t *testing.T) { postgresPlanted(t, server, admin) })
	t.Run("a table of an earlier version", func(t *testing.T) { postgresEarlierTable(t, server) })
}

// Each statement that is wrong on purpose is found by the rule that it breaks.
func postgresPlanted(t *testing.T, server string, admin *pgx.Conn) {
	const expired = "contend_records.expires_at <= clock_timestamp()"
	for _, c := range []struct{ create, statement, text, other, rule string }{
		{"on-conflict", "claim", expired, "true", "a live row blocks: "},
		{"on-conflict", "claim", expired, "contend_records.expires_at > clock_timestamp()", "a live row blocks: "},
		{"on-conflict", "claim", expired, "contend_records.expires_at <= clock_timestamp() + interval '2 minutes'", "a live row blocks until its end: "},
		{"on-conflict", "claim", expired, "false", "an expired row is taken over: "},
		{"on-conflict", "claim", "expires_at = coalesce(", "expires_at = least(clock_timestamp(), ", "it is taken over once: "},
		{"on-conflict", "claim", "token = excluded.token", "token = contend_records.token", "who took a row over has it: "},
		{"on-conflict", "claim", ", false)", ", true)", "a row without a time to live blocks: "},
		{"on-conflict", "read", "where key = $1", "where key = $1 and (expires_at > clock_timestamp()) is not false", "an expired row is shown: "},
		{"serializable", "read", expired, "true", "a live row blocks: "},
		{"serializable", "read", expired, "false", "an expired row is taken over: "},
		{"serializable", "put", "expires_at = coalesce(", "expires_at = least(clock_timestamp(), ", "it is taken over once: "},
	} {
		session := try.SessionOn(t, server+expiresColumn+"&create="+c.create)
		if err := postgres.ReplaceInStatement(t.Context(), session, c.statement, c.text, c.other); err != nil {
			t.Fatal(err)
		}
		err := takenOver(t.Context(), session, admin, takeovers[c.create])
		if err == nil || !strings.Contains("\n"+err.Error(), "\n"+c.rule) {
			t.Errorf("%s with %q in %s: %v, want %q", c.create, c.other, c.statement, err, c.rule)
		}
	}
}

// Of all who take over an expired row at once exactly one wins.
func racesForExpired(t *testing.T, admin *pgx.Conn, url string) {
	const n, rounds = 12, 20
	target := try.Prepared(t, url, try.NeedsOf(n))
	listed := losersOf(t, target)
	var sessions []targets.Session
	for i := range n {
		sessions = append(sessions, try.Session(t, target, i))
	}
	for round := range rounds {
		key := fmt.Sprintf("contend-takeover-%d", round)
		try.Expect(t, sessions[0], leased(key, "seed", time.Hour), targets.OK, "")
		execute(t, admin, "update contend_records set expires_at = clock_timestamp() where key = '"+key+"'")
		replies := make([]targets.Reply, n)
		start, done := make(chan struct{}), sync.WaitGroup{}
		for i, session := range sessions {
			done.Go(func() {
				<-start
				replies[i] = session.Do(t.Context(), leased(key, fmt.Sprint("token-", i), time.Hour))
			})
		}
		close(start)
		done.Wait()
		var winners []string
		for i, reply := range replies {
			switch {
			case reply.Outcome == targets.OK:
				winners = append(winners, fmt.Sprint("token-", i))
			case !slices.Contains(listed, reply.Code):
				t.Errorf("a loser carries %s %q (%s); listed are %q", reply.Outcome, reply.Code, reply.Message, listed)
			}
		}
		stored := try.Expect(t, sessions[0], try.Read(key), targets.OK, "").Record
		if len(winners) != 1 || stored.Token != winners[0] {
			t.Errorf("won by %q, stored is %s", winners, stored.Token)
		}
	}
}

// losersOf gives the codes that the driver lists for the chosen create.
func losersOf(t *testing.T, target targets.Target) []string {
	t.Helper()
	d := target.Describe()
	for _, driver := range all.Drivers() {
		for _, p := range driver.Parameters {
			for _, v := range p.Values {
				if driver.Name == d.Kind && p.Name == "create" && v.Name == d.Strategies["create"] {
					return v.Losers
				}
			}
		}
	}
	t.Fatalf("no create=%s", d.Strategies["create"])
	return nil
}

// What a write stores is told with its reply, and the expiry by reads too.
func postgresTellsExpiry(t *testing.T, admin *pgx.Conn, url string) {
	session := try.SessionOn(t, url)
	const key = "contend-told"
	try.Expect(t, session, targets.Op{Kind: targets.Delete, Key: key}, targets.OK, "")
	told := func(reply targets.Reply, ttl time.Duration) {
		t.Helper()
		stored := query[time.Time](t, admin, "select expires_at from contend_records where key = $1", key)
		if !reply.Expires.Equal(stored) || reply.Granted <= 0 || reply.Granted > ttl {
			t.Errorf("expires at %s, granted %s; stored is %s, asked were %s", reply.Expires, reply.Granted, stored, ttl)
		}
		read := try.Expect(t, session, try.Read(key), targets.OK, "")
		if !read.Expires.Equal(stored) || read.Granted != 0 {
			t.Errorf("a read tells %s, granted %s; stored is %s", read.Expires, read.Granted, stored)
		}
		if left := query[time.Duration](t, admin, "select expires_at - clock_timestamp() from contend_records where key = $1", key); left > ttl {
			t.Errorf("%s are left of %s", left, ttl)
		}
	}
	for i, cond := range []targets.Condition{try.IfAbsent, {}, {Guard: targets.IfVersion, Counter: 1}} {
		op := try.Write(key, "a", cond)
		op.TTL = time.Duration(i+1)*time.Minute + 1400*time.Microsecond
		told(try.Expect(t, session, op, targets.OK, ""), op.TTL)
		execute(t, admin, "update contend_records set expires_at = clock_timestamp()")
	}
	told(try.Expect(t, session, leased(key, "b", 5*time.Minute), targets.OK, ""), 5*time.Minute)
	refused := session.Do(t.Context(), leased(key, "c", time.Minute))
	if refused.Outcome != targets.Conflict || !refused.Expires.IsZero() || refused.Granted != 0 {
		t.Errorf("a refusal tells %+v", refused)
	}
	for _, cond := range []targets.Condition{{}, {Guard: targets.IfVersion, Counter: 1}} {
		plain := try.Expect(t, session, try.Write(key, "d", cond), targets.OK, "")
		read := try.Expect(t, session, try.Read(key), targets.OK, "")
		if !plain.Expires.IsZero() || plain.Granted != 0 || !read.Expires.IsZero() || !read.Record.ExpiresAt.IsZero() {
			t.Errorf("without a time to live: told %+v, read %+v", plain, read)
		}
	}
}

// A record's own expiry is in the column too, and counts.
func postgresOwnExpiry(t *testing.T, url string) {
	session := try.SessionOn(t, url)
	for ahead, want := range map[time.Duration]targets.Outcome{-time.Hour: targets.OK, time.Hour: targets.Conflict} {
		op := try.Write("contend-own", "a", targets.Condition{})
		op.Value.ExpiresAt = time.Now().Add(ahead).Round(time.Millisecond)
		written := try.Expect(t, session, op, targets.OK, "")
		read := try.Expect(t, session, try.Read(op.Key), targets.OK, "")
		for _, r := range []targets.Reply{written, read} {
			if !r.Expires.Equal(op.Value.ExpiresAt) || r.Granted != 0 {
				t.Errorf("%s ahead: expires at %s, granted %s", ahead, r.Expires, r.Granted)
			}
		}
		if r := session.Do(t.Context(), leased(op.Key, "b", time.Hour)); r.Outcome != want {
			t.Errorf("%s ahead: a create got %s %s", ahead, r.Outcome, r.Code)
		}
	}
}

// The server's clock alone ends a lease.
func postgresExpiresByItself(t *testing.T, url string) {
	session := try.SessionOn(t, url)
	const key, ttl = "contend-short", 50 * time.Millisecond
	try.Expect(t, session, targets.Op{Kind: targets.Delete, Key: key}, targets.OK, "")
	called := time.Now()
	try.Expect(t, session, leased(key, "first", ttl), targets.OK, "")
	try.Eventually(t, "the expired row taken over", func() bool {
		return session.Do(t.Context(), leased(key, "second", time.Hour)).Outcome == targets.OK
	})
	if lived := time.Since(called); lived < ttl {
		t.Errorf("the row was taken over after %s of %s", lived, ttl)
	}
}

// No column is added: the table may be another's, and earlier versions go on with
// it.
func postgresEarlierTable(t *testing.T, server string) {
	database := newDatabase(t, server, "earlier")
	admin := postgresAdmin(t, database)
	execute(t, admin, `create table contend_records (
		key text primary key, token text not null, version bigint not null,
		updated_at timestamptz, expires_at timestamptz, body jsonb)`)
	execute(t, admin, "create role tenant login")
	execute(t, admin, "grant select, insert, update, delete on contend_records to tenant")
	session := try.SessionOn(t, strings.Replace(database, "postgres@", "tenant@", 1)+expiresColumn)
	if err := takenOver(t.Context(), session, admin, "0 rows"); err != nil {
		t.Error(err)
	}
}

func TestPostgresTimeToLiveIsChosen(t *testing.T) {
	const url = "postgres://user:hunter2@127.0.0.1:1/db?sslmode=disable"
	err := try.Prepare(t.Context(), t, url, targets.Needs{Shortest: time.Minute, Longest: time.Minute})
	try.ExpectError(t, err, "hunter2", "this target has no time to live of its own", "choose ?ttl=expires-column", "or another target")
	if !errors.Is(err, targets.ErrUnsupported) {
		t.Errorf("no ErrUnsupported in %v", err)
	}
	err = try.Prepare(t.Context(), t, url+expiresColumn, targets.Needs{Shortest: time.Minute, Longest: time.Minute})
	try.ExpectError(t, err, "hunter2", "cannot reach")
	for _, parameters := range []string{"&ttl=maybe", "&ttl=", expiresColumn + "&create=unique-violation", expiresColumn + expiresColumn} {
		try.ExpectUsageError(t, url+parameters, "hunter2")
	}
	_, err = all.Open(url + expiresColumn + "&create=unique-violation")
	try.ExpectError(t, err, "", "goes with create=on-conflict or create=serializable")
	d := try.Open(t, url+expiresColumn).Describe()
	want := map[string]string{"create": "on-conflict", "cas": "where", "delete": "where", "renew": "where", "ttl": "expires-column"}
	if notes := strings.Join(d.Notes, "\n"); !maps.Equal(d.Strategies, want) || !strings.Contains(notes, "column expires_at") || !strings.Contains(notes, "the application's doing") {
		t.Errorf("strategies %v, notes %q", d.Strategies, d.Notes)
	}
}
