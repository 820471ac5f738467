//go:build unix

package targets_test

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
	"fmt"
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
	"contend/targets/targettest"
)

// needsOf n sessions; nothing of it is reached on a machine that merely is slow.
func needsOf(n int) targets.Needs {
	return targets.Needs{Guards: []targets.Guard{targets.IfAbsent, targets.IfVersion}, Sessions: n, Timeout: time.Minute}
}

func openTarget(t *testing.T, url string) targets.Target {
	t.Helper()
	target, err := targets.Open(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { target.Close() })
	return target
}

func preparedTarget(t *testing.T, url string, needs targets.Needs) targets.Target {
	t.Helper()
	target := openTarget(t, url)
	if err := target.Prepare(t.Context(), needs); err != nil {
		t.Fatal(err)
	}
	return target
}

func openSession(t *testing.T, target targets.Target, contender int) targets.Session {
	t.Helper()
	session, err := target.Open(t.Context(), contender)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { session.Close() })
	return session
}

// sessionOn opens a session on a target of its own.
func sessionOn(t *testing.T, url string) targets.Session {
	t.Helper()
	return openSession(t, preparedTarget(t, url, needsOf(1)), 0)
}

func writeOp(key, token string, cond targets.Condition) targets.Op {
	return targets.Op{Kind: targets.Write, Key: key, If: cond, Value: targets.Record{Token: token, Version: cond.Counter + 1}}
}

func readOp(key string) targets.Op { return targets.Op{Kind: targets.Read, Key: key} }

var ifAbsent, ifFirst = targets.Condition{Guard: targets.IfAbsent}, targets.Condition{Guard: targets.IfVersion}

// expectReply sends an op and checks outcome and code of the reply.
func expectReply(t *testing.T, s targets.Session, op targets.Op, want targets.Outcome, code string) targets.Reply {
	t.Helper()
	got := s.Do(t.Context(), op)
	if got.Outcome != want || got.Code != code {
		t.Errorf("%s of %q under %q: got %s %q (%s), want %s %q", op.Kind, op.Key, op.If.Guard, got.Outcome, got.Code, got.Message, want, code)
	}
	return got
}

// racesOnVersion lets n sessions write one record on its version at once.
func racesOnVersion(t *testing.T, target targets.Target, n, rounds int) {
	t.Helper()
	var sessions []targets.Session
	for i := range n {
		sessions = append(sessions, openSession(t, target, i))
	}
	for round := range rounds {
		key := fmt.Sprintf("contend-test-version-%d", round)
		expectReply(t, sessions[0], targets.Op{Kind: targets.Write, Key: key, Value: targets.Record{Token: "seed"}}, targets.OK, "")
		replies, called, returned := make([]targets.Reply, n), make([]time.Time, n), make([]time.Time, n)
		start, done := make(chan struct{}), sync.WaitGroup{}
		for i, session := range sessions {
			done.Go(func() {
				<-start
				called[i] = time.Now()
				replies[i] = session.Do(t.Context(), writeOp(key, fmt.Sprint("token-", i), ifFirst))
				returned[i] = time.Now()
			})
		}
		close(start)
		done.Wait()
		var winners []string
		for i, reply := range replies {
			switch reply.Outcome {
			case targets.OK:
				winners = append(winners, fmt.Sprint("token-", i))
			case targets.Conflict, targets.Aborted:
			default:
				t.Errorf("got %s %s (%s)", reply.Outcome, reply.Code, reply.Message)
			}
			if reply.Sent.Before(called[i]) || reply.Sent.After(returned[i]) || reply.Attempts != 1 {
				t.Errorf("sent at %s in %d attempts, between %s and %s", reply.Sent, reply.Attempts, called[i], returned[i])
			}
		}
		stored := expectReply(t, sessions[0], readOp(key), targets.OK, "").Record
		if len(winners) != 1 || stored.Token != winners[0] || stored.Version != 1 {
			t.Errorf("won by %q, stored is %s at version %d", winners, stored.Token, stored.Version)
		}
	}
}

// closedPort gives an address that nobody listens on.
func closedPort(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

// expectError checks what an error says and that it keeps the secret.
func expectError(t *testing.T, err error, secret string, says ...string) {
	t.Helper()
	if err == nil {
		t.Fatal("no error")
	}
	for _, text := range says {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("the error does not say %q: %v", text, err)
		}
	}
	if secret != "" && strings.Contains(err.Error(), secret) {
		t.Errorf("the error tells the secret: %v", err)
	}
}

// expectUsageError checks that a URL is refused before anything is sent.
func expectUsageError(t *testing.T, url, secret string) {
	t.Helper()
	_, err := targets.Open(url)
	var usage *targets.UsageError
	if !errors.As(err, &usage) {
		t.Fatalf("%s: got %v, want a usage error", url, err)
	}
	expectError(t, err, secret)
}

// eventually polls until the condition holds or the test's time is up.
func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for !condition() {
		if time.Now().After(deadline) {
			t.Fatalf("not seen: %s", what)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

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

func TestRedisKeepsThePromises(t *testing.T) {
	url := targettest.Redis(t)
	for _, strategies := range redisStrategies {
		t.Run(strategies, func(t *testing.T) {
			if err := targettest.Suite(t.Context(), openTarget(t, url+"?"+strategies), needsOf(8), targettest.TTL(targettest.Gone)); err != nil {
				t.Error(err)
			}
		})
	}
	t.Run("fifty contenders", func(t *testing.T) {
		if err := targettest.Suite(t.Context(), openTarget(t, url), needsOf(50)); err != nil {
			t.Error(err)
		}
		for _, cas := range []string{"lua", "watch"} {
			racesOnVersion(t, preparedTarget(t, url+"?cas="+cas, needsOf(50)), 50, 10)
		}
	})
}

func TestRedisDescribesItself(t *testing.T) {
	target := preparedTarget(t, targettest.Redis(t)+"/3?create=watch", needsOf(1))
	got := target.Describe()
	if !strings.HasPrefix(got.Server, "Redis ") && !strings.HasPrefix(got.Server, "Valkey ") {
		t.Errorf("server %q", got.Server)
	}
	want := map[string]string{"create": "watch", "cas": "lua"}
	if !maps.Equal(got.Strategies, want) || got.SentBy != "kernel-write" || !got.OneCopy {
		t.Errorf("got %+v", got)
	}
}

func TestRedisSortsErrorReplies(t *testing.T) {
	url := targettest.Redis(t)
	admin := redisAdmin(t, url)
	command(t, admin, "rpush list 1")
	command(t, admin, "acl setuser reader on >hunter2 ~* +info +@read +@connection +script|load +watch +unwatch")
	asReader := strings.Replace(url, "redis://", "redis://reader:hunter2@", 1)
	command(t, admin, `set record {"token":"seed","version":0}`)
	short, shortScript := writeOp("new", "a", targets.Condition{}), writeOp("record", "a", ifFirst)
	short.TTL, shortScript.TTL = time.Microsecond, time.Microsecond
	for _, c := range []struct {
		name, url, before, after string
		op                       targets.Op
		outcome                  targets.Outcome
		code                     string
	}{
		{"read of a list", url, "", "", readOp("list"), targets.Invalid, "WRONGTYPE"},
		{"script on a list", url, "", "", writeOp("list", "a", ifFirst), targets.Invalid, "WRONGTYPE"},
		{"watched write on a list", url + "?cas=watch", "", "", writeOp("list", "a", ifFirst), targets.Invalid, "WRONGTYPE"},
		{"watched create on a list", url + "?create=watch", "", "", writeOp("list", "a", ifAbsent), targets.Invalid, "WRONGTYPE"},
		{"create on a list", url, "", "", writeOp("list", "a", ifAbsent), targets.Conflict, "nil"},
		{"too short an expiry", url, "", "", short, targets.Invalid, "ERR"},
		{"too short an expiry, by the script", url, "", "", shortScript, targets.Invalid, "ERR"},
		{"write of a reader", asReader, "", "", writeOp("new", "a", targets.Condition{}), targets.Invalid, "NOPERM"},
		{"watched create of a reader", asReader + "?create=watch", "", "", writeOp("new", "a", ifAbsent), targets.Invalid, "NOPERM"},
		{"memory spent", url, "config set maxmemory 1", "config set maxmemory 0", writeOp("new", "a", ifAbsent), targets.Throttled, "OOM"},
		{"memory spent, watched", url + "?create=watch", "config set maxmemory 1", "config set maxmemory 0", writeOp("new", "a", ifAbsent), targets.Throttled, "OOM"},
		{"scripts flushed", url, "script flush", "", writeOp("new", "a", ifFirst), targets.Invalid, "NOSCRIPT"},
		{"write to a replica", url, "replicaof 127.0.0.1 1", "replicaof no one", writeOp("new", "a", ifAbsent), targets.Invalid, "READONLY"},
		{"read of a replica without its master", url, "replicaof 127.0.0.1 1; config set replica-serve-stale-data no",
			"replicaof no one; config set replica-serve-stale-data yes", readOp("new"), targets.Invalid, "MASTERDOWN"},
	} {
		t.Run(c.name, func(t *testing.T) {
			session := sessionOn(t, c.url)
			command(t, admin, c.before)
			expectReply(t, session, c.op, c.outcome, c.code)
			command(t, admin, c.after)
			if got := admin.Exists(t.Context(), "new").Val(); got != 0 {
				t.Error("the refused write was applied")
			}
		})
	}
}

// A refusal, of whatever kind, leaves the session whole, on its one connection.
func TestRedisSessionOutlivesARefusal(t *testing.T) {
	server := targettest.RedisServer(t)
	session, admin := sessionOn(t, server.URL), redisAdmin(t, server.URL)
	connections := func() int { return strings.Count(admin.ClientList(t.Context()).Val(), "\n") }
	command(t, admin, "replicaof 127.0.0.1 1")
	before := connections()
	for range 2 {
		expectReply(t, session, writeOp("key", "a", ifAbsent), targets.Invalid, "READONLY")
		expectReply(t, session, readOp("key"), targets.Missing, "")
	}
	if after := connections(); after != before {
		t.Errorf("%d connections became %d", before, after)
	}
}

func TestRedisTellsForeignValuesFromOurs(t *testing.T) {
	url := targettest.Redis(t)
	admin := redisAdmin(t, url)
	for _, foreign := range []string{"hello", "5", "null", "[]", "{}", `{"token":5}`, `{"version":0}`, `"text"`, ""} {
		if err := admin.Set(t.Context(), "foreign", foreign, 0).Err(); err != nil {
			t.Fatal(err)
		}
		for _, strategies := range []string{"create=nx&cas=lua", "create=watch&cas=watch"} {
			session := sessionOn(t, url+"?"+strategies)
			if got := expectReply(t, session, readOp("foreign"), targets.OK, ""); !reflect.ValueOf(got.Record).IsZero() || got.Message == "" {
				t.Errorf("%q was read as %+v (%s)", foreign, got.Record, got.Message)
			}
			for _, cond := range []targets.Condition{ifAbsent, ifFirst} {
				if got := session.Do(t.Context(), writeOp("foreign", "a", cond)); got.Outcome != targets.Conflict {
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
	url := targettest.Redis(t)
	admin := redisAdmin(t, url)
	for _, strategies := range []string{"create=nx&cas=lua", "create=watch&cas=watch"} {
		session := sessionOn(t, url+"?"+strategies)
		for _, cond := range []targets.Condition{{}, ifAbsent, ifFirst} {
			expectReply(t, session, targets.Op{Kind: targets.Delete, Key: "key"}, targets.OK, "")
			if cond == ifFirst {
				expectReply(t, session, targets.Op{Kind: targets.Write, Key: "key", Value: targets.Record{Token: "seed"}}, targets.OK, "")
			}
			op := writeOp("key", "a", cond)
			op.TTL = time.Hour + 500*time.Millisecond
			expectReply(t, session, op, targets.OK, "")
			// A part of a second is kept only where the expiry was given by PX.
			at := admin.PExpireTime(t.Context(), "key").Val()
			if left := admin.PTTL(t.Context(), "key").Val(); left <= 0 || left > op.TTL || at <= 0 {
				t.Errorf("%s under %q: %s left, expires at %s", strategies, cond.Guard, left, at)
			}
		}
	}
}

func TestRedisListsWhatBeginsWithThePrefix(t *testing.T) {
	url := targettest.Redis(t)
	admin, target := redisAdmin(t, url), preparedTarget(t, url, needsOf(1))
	for _, prefix := range []string{"a*", "a?", "a[bc]", `a\*`, "a^-]"} {
		command(t, admin, "flushall")
		kept := []string{"abcd", "ab", "ac", "a", `a\`, "b" + prefix}
		for _, key := range append(kept, prefix, prefix+"1", prefix+"2") {
			command(t, admin, "set "+key+" value")
		}
		removed, err := removeListed(t, target, prefix)
		left := admin.Keys(t.Context(), "*").Val()
		slices.Sort(left)
		slices.Sort(kept)
		if removed != 3 || err != nil || !slices.Equal(left, kept) {
			t.Errorf("prefix %q: removed %d, %v; left %q", prefix, removed, err, left)
		}
	}
}

// removeListed deletes what a listing gives.
func removeListed(t *testing.T, target targets.Target, prefix string) (removed int, err error) {
	t.Helper()
	deletes, _, err := target.List(t.Context(), prefix)
	if len(deletes) == 0 {
		return 0, err
	}
	session := openSession(t, target, -1)
	for _, op := range deletes {
		expectReply(t, session, op, targets.OK, "")
	}
	return len(deletes), err
}

// pausedOp sends a create to a Redis that holds writes back and returns when the
// server has it.
func pausedOp(t *testing.T, ctx context.Context, server *targettest.Server) (targets.Session, <-chan targets.Reply) {
	t.Helper()
	session, admin := sessionOn(t, server.URL), redisAdmin(t, server.URL)
	command(t, admin, "client pause 3600000 write")
	replies := make(chan targets.Reply, 1)
	go func() { replies <- session.Do(ctx, writeOp("key", "a", ifAbsent)) }()
	eventually(t, "the create held back", func() bool {
		return strings.Contains(admin.Info(t.Context(), "clients").Val(), "blocked_clients:1\r\n")
	})
	return session, replies
}

func expectLost(t *testing.T, session targets.Session, got targets.Reply, code string) {
	t.Helper()
	if got.Outcome != targets.Unknown || got.Code != code || got.Attempts != 1 || got.Sent.IsZero() {
		t.Errorf("in mid-operation: got %+v, want unknown %q", got, code)
	}
	expectReply(t, session, readOp("key"), targets.NotSent, "connection")
}

func TestRedisKilledInMidOperation(t *testing.T) {
	server := targettest.RedisServer(t)
	session, replies := pausedOp(t, t.Context(), server)
	server.Kill()
	expectLost(t, session, <-replies, "connection")
}

func TestRedisOpCancelledInMidOperation(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	session, replies := pausedOp(t, ctx, targettest.RedisServer(t))
	cancel()
	expectLost(t, session, <-replies, "cancelled")
}

func TestRedisOpTimedOutInMidOperation(t *testing.T) {
	server := targettest.RedisServer(t)
	session := sessionOn(t, server.URL)
	command(t, redisAdmin(t, server.URL), "client pause 3600000 all")
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	expectLost(t, session, session.Do(ctx, writeOp("key", "a", ifAbsent)), "timeout")
}

func TestRedisPassword(t *testing.T) {
	server := targettest.RedisServer(t, "--requirepass", "open-sesame")
	as := func(userinfo string) string { return strings.Replace(server.URL, "redis://", "redis://"+userinfo, 1) }
	if err := targettest.Suite(t.Context(), openTarget(t, as(":open-sesame@")), needsOf(2)); err != nil {
		t.Error(err)
	}
	expectError(t, openTarget(t, as(":hunter%2F2@")).Prepare(t.Context(), needsOf(1)), "hunter", "WRONGPASS", "check user and password")
	expectError(t, openTarget(t, as("")).Prepare(t.Context(), needsOf(1)), "", "NOAUTH", "check user and password")
	_, err := openTarget(t, as(":hunter2@")).Open(t.Context(), 0)
	expectError(t, err, "hunter2", "check user and password")
	_, _, err = openTarget(t, as(":hunter2@")).List(t.Context(), "a")
	expectError(t, err, "hunter2", "check user and password")
}

func TestRedisUnreachable(t *testing.T) {
	address := closedPort(t)
	err := openTarget(t, "redis://user:hunter2@"+address).Prepare(t.Context(), needsOf(1))
	expectError(t, err, "hunter2", "cannot reach", address, "is the server running")
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	err = openTarget(t, "redis://"+address).Prepare(ended, needsOf(1))
	if expectError(t, err, "", "cannot reach"); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestRedisDatabases(t *testing.T) {
	url := targettest.Redis(t)
	expectReply(t, sessionOn(t, url+"/3"), writeOp("key", "a", ifAbsent), targets.OK, "")
	expectReply(t, sessionOn(t, url+"/0"), readOp("key"), targets.Missing, "")
	expectReply(t, sessionOn(t, url+"/3"), readOp("key"), targets.OK, "")
	expectError(t, openTarget(t, url+"/9999").Prepare(t.Context(), needsOf(1)), "", "out of range")
}

func TestRedisRefusesURLs(t *testing.T) {
	for _, url := range []string{"redis:", "redis:somewhere", "redis:///0", "redis://host/database", "redis://host/-1", "redis://host/0/1",
		"redis://host?create=maybe", "redis://host?cas=nx", "redis://host?max_retries=3"} {
		expectUsageError(t, url, "")
	}
	expectUsageError(t, "redis://user:hunter2@host/database", "hunter2")
}

func TestRedisOverTLS(t *testing.T) {
	signed, secret := selfSigned()
	certificate, key := fileOf(t, signed), fileOf(t, secret)
	_, port, _ := net.SplitHostPort(closedPort(t))
	server := targettest.RedisServer(t, "--tls-port", port, "--tls-cert-file", certificate, "--tls-key-file", key, "--tls-auth-clients", "no")
	t.Setenv("SSL_CERT_FILE", certificate)
	if err := targettest.Suite(t.Context(), openTarget(t, "rediss://127.0.0.1:"+port+"?create=watch"), needsOf(4)); err != nil {
		t.Error(err)
	}
	expectError(t, openTarget(t, "rediss://localhost:"+port).Prepare(t.Context(), needsOf(1)), "", "cannot reach", "certificate")
	// A Redis without TLS waits for the end of what it takes for a command.
	plain := strings.Replace(server.URL, "redis://", "rediss://", 1)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	expectError(t, openTarget(t, plain).Prepare(ctx, needsOf(1)), "", "cannot reach", "scheme")
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
	url := targettest.Redis(t)
	admin := sessionOn(t, url)
	at := time.Date(2026, 11, 30, 12, 34, 56, 0, time.UTC)
	put := writeOp("touched", "other", targets.Condition{})
	put.Value.UpdatedAt = at
	session := sessionOn(t, beforeMulti(t, url, func() { expectReply(t, admin, put, targets.OK, "") })+"?cas=watch")
	for _, c := range []struct {
		condition targets.Condition
		outcome   targets.Outcome
		code      string
	}{
		{targets.Condition{Guard: targets.IfVersion, Counter: 1}, targets.Conflict, "nil"},
		{targets.Condition{Guard: targets.IfUnmodified, UpdatedAt: at}, targets.Aborted, "touched"},
	} {
		expectReply(t, admin, put, targets.OK, "")
		expectReply(t, session, writeOp("touched", "mine", c.condition), c.outcome, c.code)
		if got := expectReply(t, admin, readOp("touched"), targets.OK, ""); got.Record.Token != "other" {
			t.Errorf("on %s: stored is %q", c.condition.Guard, got.Record.Token)
		}
	}
}
