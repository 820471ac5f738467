//go:build unix

package redis_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"io"
	"maps"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"contend/targets"
	"contend/targets/targettest/servers"
	"contend/targets/targettest/try"
)

func redisAdmin(t *testing.T, url string) *redis.Client {
	t.Helper()
	options, err := redis.ParseURL(url)
	if err != nil {
		t.Fatal(err)
	}
	client := redis.NewClient(options)
	t.Cleanup(func() { client.Close() })
	return client
}

// command runs commands whose words hold no blanks, separated by semicolons.
func command(t *testing.T, client *redis.Client, commands string) {
	t.Helper()
	for words := range strings.SplitSeq(commands, ";") {
		var arguments []any
		for word := range strings.FieldsSeq(words) {
			arguments = append(arguments, word)
		}
		if len(arguments) == 0 {
			continue
		}
		if err := client.Do(t.Context(), arguments...).Err(); err != nil {
			t.Fatalf("%s: %v", words, err)
		}
	}
}

var redisStrategies = []string{"create=nx&cas=lua", "create=nx&cas=watch", "create=watch&cas=lua", "create=watch&cas=watch"}

func TestRedisOfFiftyContenders(t *testing.T) {
	url := servers.Redis(t)
	t.Run("fifty contenders", func(t *testing.T) {
		if err := try.Suite(t.Context(), try.Open(t, url), try.NeedsOf(50)); err != nil {
			t.Error(err)
		}
		for _, cas := range []string{"lua", "watch"} {
			try.RacesOnVersion(t, try.Prepared(t, url+"?cas="+cas, try.NeedsOf(50)), 50, 10)
		}
	})
}

func TestRedisDescribesItself(t *testing.T) {
	got := try.Described(t, servers.Redis(t)+"/3?create=watch", try.NeedsOf(1))
	if !strings.HasPrefix(got.Server, "Redis ") && !strings.HasPrefix(got.Server, "Valkey ") {
		t.Errorf("server %q", got.Server)
	}
	want := map[string]string{"create": "watch", "cas": "lua", "delete": "lua", "renew": "lua"}
	if !maps.Equal(got.Strategies, want) || got.SentBy != "kernel-write" || !got.OneCopy {
		t.Errorf("got %+v", got)
	}
}

func TestRedisSortsErrorReplies(t *testing.T) {
	url := servers.Redis(t)
	admin := redisAdmin(t, url)
	command(t, admin, "rpush list 1")
	command(t, admin, "acl setuser reader on >hunter2 ~* +info +@read +@connection +script|load +watch +unwatch")
	asReader := strings.Replace(url, "redis://", "redis://reader:hunter2@", 1)
	command(t, admin, `set record {"token":"seed","version":0}`)
	short, shortScript := try.Write("new", "a", targets.Condition{}), try.Write("record", "a", try.IfFirst)
	short.TTL, shortScript.TTL = time.Microsecond, time.Microsecond
	for _, c := range []struct {
		name, url, before, after string
		op                       targets.Op
		outcome                  targets.Outcome
		code                     string
	}{
		{"read of a list", url, "", "", try.Read("list"), targets.Invalid, "WRONGTYPE"},
		{"script on a list", url, "", "", try.Write("list", "a", try.IfFirst), targets.Invalid, "WRONGTYPE"},
		{"watched write on a list", url + "?cas=watch", "", "", try.Write("list", "a", try.IfFirst), targets.Invalid, "WRONGTYPE"},
		{"watched create on a list", url + "?create=watch", "", "", try.Write("list", "a", try.IfAbsent), targets.Invalid, "WRONGTYPE"},
		{"create on a list", url, "", "", try.Write("list", "a", try.IfAbsent), targets.Conflict, "nil"},
		{"too short an expiry", url, "", "", short, targets.Invalid, "ERR"},
		{"too short an expiry, by the script", url, "", "", shortScript, targets.Invalid, "ERR"},
		{"write of a reader", asReader, "", "", try.Write("new", "a", targets.Condition{}), targets.Invalid, "NOPERM"},
		{"watched create of a reader", asReader + "?create=watch", "", "", try.Write("new", "a", try.IfAbsent), targets.Invalid, "NOPERM"},
		{"memory spent", url, "config set maxmemory 1", "config set maxmemory 0", try.Write("new", "a", try.IfAbsent), targets.Throttled, "OOM"},
		{"memory spent, watched", url + "?create=watch", "config set maxmemory 1", "config set maxmemory 0", try.Write("new", "a", try.IfAbsent), targets.Throttled, "OOM"},
		{"scripts flushed", url, "script flush", "", try.Write("new", "a", try.IfFirst), targets.Invalid, "NOSCRIPT"},
		{"write to a replica", url, "replicaof 127.0.0.1 1", "replicaof no one", try.Write("new", "a", try.IfAbsent), targets.Invalid, "READONLY"},
		{"read of a replica without its master", url, "replicaof 127.0.0.1 1; config set replica-serve-stale-data no",
			"replicaof no one; config set replica-serve-stale-data yes", try.Read("new"), targets.Invalid, "MASTERDOWN"},
	} {
		t.Run(c.name, func(t *testing.T) {
			session := try.SessionOn(t, c.url)
			command(t, admin, c.before)
			try.Expect(t, session, c.op, c.outcome, c.code)
			command(t, admin, c.after)
			if got := admin.Exists(t.Context(), "new").Val(); got != 0 {
				t.Error("the refused write was applied")
			}
		})
	}
}

// A refusal, of whatever kind, leaves the session whole, on its one connection.
func TestRedisSessionOutlivesARefusal(t *testing.T) {
	server := servers.RedisServer(t)
	session, admin := try.SessionOn(t, server.URL), redisAdmin(t, server.URL)
	connections := func() int { return strings.Count(admin.ClientList(t.Context()).Val(), "\n") }
	command(t, admin, "replicaof 127.0.0.1 1")
	before := connections()
	for range 2 {
		try.Expect(t, session, try.Write("key", "a", try.IfAbsent), targets.Invalid, "READONLY")
		try.Expect(t, session, try.Read("key"), targets.Missing, "")
	}
	if after := connections(); after != before {
		t.Errorf("%d connections became %d", before, after)
	}
}

func TestRedisTellsForeignValuesFromOurs(t *testing.T) {
	url := servers.Redis(t)
	admin := redisAdmin(t, url)
	for _, foreign := range []string{"hello", "5", "null", "[]", "{}", `{"token":5}`, `{"version":0}`, `"text"`, ""} {
		if err := admin.Set(t.Context(), "foreign", foreign, 0).Err(); err != nil {
			t.Fatal(err)
		}
		for _, strategies := range []string{"create=nx&cas=lua", "create=watch&cas=watch"} {
			session := try.SessionOn(t, url+"?"+strategies)
			if got := try.Expect(t, session, try.Read("foreign"), targets.OK, ""); !reflect.ValueOf(got.Record).IsZero() || got.Message == "" {
				t.Errorf("%q was read as %+v (%s)", foreign, got.Record, got.Message)
			}
			for _, cond := range []targets.Condition{try.IfAbsent, try.IfFirst} {
				if got := session.Do(t.Context(), try.Write("foreign", "a", cond)); got.Outcome != targets.Conflict {
					t.Errorf("%q under %s, %s: got %s %s", foreign, cond.Guard, strategies, got.Outcome, got.Code)
				}
			}
		}
		if got := admin.Get(t.Context(), "foreign").Val(); got != foreign {
			t.Errorf("%q became %q", foreign, got)
		}
	}
}

func TestRedisWritesWithAnExpiry(t *testing.T) {
	url := servers.Redis(t)
	admin := redisAdmin(t, url)
	for _, strategies := range []string{"create=nx&cas=lua", "create=watch&cas=watch"} {
		session := try.SessionOn(t, url+"?"+strategies)
		for _, cond := range []targets.Condition{{}, try.IfAbsent, try.IfFirst} {
			try.Expect(t, session, targets.Op{Kind: targets.Delete, Key: "key"}, targets.OK, "")
			if cond == try.IfFirst {
				try.Expect(t, session, targets.Op{Kind: targets.Write, Key: "key", Value: targets.Record{Token: "seed"}}, targets.OK, "")
			}
			op := try.Write("key", "a", cond)
			op.TTL = time.Hour + 500*time.Millisecond
			try.Expect(t, session, op, targets.OK, "")
			// A part of a second is kept only where the expiry was given by PX.
			at := admin.PExpireTime(t.Context(), "key").Val()
			if left := admin.PTTL(t.Context(), "key").Val(); left <= 0 || left > op.TTL || at <= 0 {
				t.Errorf("%s under %q: %s left, expires at %s", strategies, cond.Guard, left, at)
			}
		}
	}
}

func TestRedisListsWhatBeginsWithThePrefix(t *testing.T) {
	url := servers.Redis(t)
	admin, target := redisAdmin(t, url), try.Prepared(t, url, try.NeedsOf(1))
	for _, prefix := range []string{"a*", "a?", "a[bc]", `a\*`, "a^-]"} {
		command(t, admin, "flushall")
		kept := []string{"abcd", "ab", "ac", "a", `a\`, "b" + prefix}
		for _, key := range append(kept, prefix, prefix+"1", prefix+"2") {
			command(t, admin, "set "+key+" value")
		}
		removed, err := try.RemoveListed(t, target, prefix)
		left := admin.Keys(t.Context(), "*").Val()
		slices.Sort(left)
		slices.Sort(kept)
		if removed != 3 || err != nil || !slices.Equal(left, kept) {
			t.Errorf("prefix %q: removed %d, %v; left %q", prefix, removed, err, left)
		}
	}
}

// pausedOp sends a create to a Redis that holds writes back and returns when the
// server has it.
func pausedOp(t *testing.T, ctx context.Context, server *servers.Server) (targets.Session, <-chan targets.Reply) {
	t.Helper()
	session, admin := try.SessionOn(t, server.URL), redisAdmin(t, server.URL)
	command(t, admin, "client pause 3600000 write")
	replies := make(chan targets.Reply, 1)
	go func() { replies <- session.Do(ctx, try.Write("key", "a", try.IfAbsent)) }()
	try.Eventually(t, "the create held back", func() bool {
		return strings.Contains(admin.Info(t.Context(), "clients").Val(), "blocked_clients:1\r\n")
	})
	return session, replies
}

func TestRedisKilledInMidOperation(t *testing.T) {
	server := servers.RedisServer(t)
	session, replies := pausedOp(t, t.Context(), server)
	server.Kill()
	try.ExpectLost(t, session, <-replies, "connection")
}

func TestRedisOpCancelledInMidOperation(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	session, replies := pausedOp(t, ctx, servers.RedisServer(t))
	cancel()
	try.ExpectLost(t, session, <-replies, "cancelled")
}

func TestRedisOpTimedOutInMidOperation(t *testing.T) {
	server := servers.RedisServer(t)
	session := try.SessionOn(t, server.URL)
	command(t, redisAdmin(t, server.URL), "client pause 3600000 all")
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	try.ExpectLost(t, session, session.Do(ctx, try.Write("key", "a", try.IfAbsent)), "timeout")
}

func TestRedisPassword(t *testing.T) {
	server := servers.RedisServer(t, "--requirepass", "open-sesame")
	as := func(userinfo string) string { return strings.Replace(server.URL, "redis://", "redis://"+userinfo, 1) }
	if err := try.Suite(t.Context(), try.Open(t, as(":open-sesame@")), try.NeedsOf(2)); err != nil {
		t.Error(err)
	}
	try.ExpectError(t, try.Prepare(t.Context(), t, as(":hunter%2F2@"), try.NeedsOf(1)), "hunter", "WRONGPASS", "check user and password")
	try.ExpectError(t, try.Prepare(t.Context(), t, as(""), try.NeedsOf(1)), "", "NOAUTH", "check user and password")
	_, err := try.Open(t, as(":hunter2@")).Open(t.Context(), 0)
	try.ExpectError(t, err, "hunter2", "check user and password")
	_, _, err = try.Open(t, as(":hunter2@")).List(t.Context(), "a")
	try.ExpectError(t, err, "hunter2", "check user and password")
}

func TestRedisUnreachable(t *testing.T) {
	address := try.ClosedPort(t)
	err := try.Prepare(t.Context(), t, "redis://user:hunter2@"+address, try.NeedsOf(1))
	try.ExpectError(t, err, "hunter2", "cannot reach", address, "is the server running")
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	err = try.Prepare(ended, t, "redis://"+address, try.NeedsOf(1))
	if try.ExpectError(t, err, "", "cannot reach"); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestRedisDatabases(t *testing.T) {
	url := servers.Redis(t)
	try.Expect(t, try.SessionOn(t, url+"/3"), try.Write("key", "a", try.IfAbsent), targets.OK, "")
	try.Expect(t, try.SessionOn(t, url+"/0"), try.Read("key"), targets.Missing, "")
	try.Expect(t, try.SessionOn(t, url+"/3"), try.Read("key"), targets.OK, "")
	try.ExpectError(t, try.Prepare(t.Context(), t, url+"/9999", try.NeedsOf(1)), "", "out of range")
}

func TestRedisRefusesURLs(t *testing.T) {
	for _, url := range []string{"redis:", "redis:somewhere", "redis:///0", "redis://host/database", "redis://host/-1", "redis://host/0/1",
		"redis://host?create=maybe", "redis://host?cas=nx", "redis://host?max_retries=3"} {
		try.ExpectUsageError(t, url, "")
	}
	try.ExpectUsageError(t, "redis://user:hunter2@host/database", "hunter2")
}

func TestRedisOverTLS(t *testing.T) {
	signed, secret := selfSigned()
	certificate, key := fileOf(t, signed), fileOf(t, secret)
	_, port, _ := net.SplitHostPort(try.ClosedPort(t))
	server := servers.RedisServer(t, "--tls-port", port, "--tls-cert-file", certificate, "--tls-key-file", key, "--tls-auth-clients", "no")
	t.Setenv("SSL_CERT_FILE", certificate)
	if err := try.Suite(t.Context(), try.Open(t, "rediss://127.0.0.1:"+port+"?create=watch"), try.NeedsOf(4)); err != nil {
		t.Error(err)
	}
	try.ExpectError(t, try.Prepare(t.Context(), t, "rediss://localhost:"+port, try.NeedsOf(1)), "", "cannot reach", "certificate")
	// A Redis without TLS waits for the end of what it takes for a command.
	plain := strings.Replace(server.URL, "redis://", "rediss://", 1)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	try.ExpectError(t, try.Prepare(ctx, t, plain, try.NeedsOf(1)), "", "cannot reach", "scheme")
}

// selfSigned is a certificate for 127.0.0.1 that signs itself, and its key. It
// is the only one of a process, since Go reads the trusted certificates once.
var selfSigned = sync.OnceValues(func() (certificate, key []byte) {
	must := func(err error) {
		if err != nil {
			panic(err)
		}
	}
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "contend test"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	signed, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	must(err)
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	must(err)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: signed}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})
})

func fileOf(t *testing.T, content []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file.pem")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// beforeMulti stands between a session and the server, and calls do before a
// MULTI reaches the server.
func beforeMulti(t *testing.T, url string, do func()) (behind string) {
	t.Helper()
	server := strings.TrimPrefix(url, "redis://")
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
			far, err := net.Dial("tcp", server)
			if err != nil {
				near.Close()
				return
			}
			go func() { _, _ = io.Copy(near, far); near.Close() }()
			go func() {
				defer far.Close()
				for packet := make([]byte, 1<<16); ; {
					n, err := near.Read(packet)
					if err != nil {
						return
					}
					if bytes.Contains(packet[:n], []byte("multi")) {
						do()
					}
					_, _ = far.Write(packet[:n])
				}
			}()
		}
	}()
	return "redis://" + listener.Addr().String()
}

// A key that is written between WATCH and EXEC refuses a write on its version,
// which has changed; a write on its time, which may be as it was, is aborted.
func TestRedisWatchedKeyIsTouched(t *testing.T) {
	url := servers.Redis(t)
	admin := try.SessionOn(t, url)
	at := time.Date(2026, 11, 30, 12, 34, 56, 0, time.UTC)
	put := try.Write("touched", "other", targets.Condition{})
	put.Value.UpdatedAt = at
	session := try.SessionOn(t, beforeMulti(t, url, func() { try.Expect(t, admin, put, targets.OK, "") })+"?cas=watch")
	for _, c := range []struct {
		condition targets.Condition
		outcome   targets.Outcome
		code      string
	}{
		{targets.Condition{Guard: targets.IfVersion, Counter: 1}, targets.Conflict, "nil"},
		{targets.Condition{Guard: targets.IfUnmodified, UpdatedAt: at}, targets.Aborted, "touched"},
	} {
		try.Expect(t, admin, put, targets.OK, "")
		try.Expect(t, session, try.Write("touched", "mine", c.condition), c.outcome, c.code)
		if got := try.Expect(t, admin, try.Read("touched"), targets.OK, ""); got.Record.Token != "other" {
			t.Errorf("on %s: stored is %q", c.condition.Guard, got.Record.Token)
		}
	}
}
