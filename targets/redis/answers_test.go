//go:build unix

package redis_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"contend/targets"
	"contend/targets/targettest/servers"
	"contend/targets/targettest/try"
)

// answering is a server that speaks RESP and answers a command, in small letters, as the
// test says; "": as a Redis would that knows no key.
func answering(t *testing.T, answer func(words []string) string) (url string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				for in := bufio.NewReader(conn); ; {
					words, err := readCommand(in)
					if err != nil {
						return
					}
					text := answer(words)
					if text == "" {
						text = usualAnswer(words)
					}
					fmt.Fprint(conn, text)
				}
			}()
		}
	}()
	return "redis://" + listener.Addr().String()
}

func readCommand(in *bufio.Reader) (words []string, err error) {
	number := func() (n int, err error) {
		line, err := in.ReadString('\n')
		if err != nil {
			return 0, err
		}
		return strconv.Atoi(strings.TrimSpace(line[1:]))
	}
	n, err := number()
	for ; n > 0 && err == nil; n-- {
		var length int
		if length, err = number(); err == nil {
			word := make([]byte, length+2)
			_, err = io.ReadFull(in, word)
			words = append(words, strings.ToLower(string(word[:length])))
		}
	}
	return words, err
}

func usualAnswer(words []string) string {
	switch words[0] {
	case "hello":
		return "-ERR unknown command 'HELLO'\r\n"
	case "ping":
		return "+PONG\r\n"
	case "info":
		return "$20\r\nredis_version:7.0.15\r\n"
	case "script":
		return "$40\r\n" + strings.Repeat("a", 40) + "\r\n"
	case "get":
		return "$-1\r\n"
	case "del", "evalsha":
		return ":1\r\n"
	case "exec":
		return "*1\r\n+OK\r\n"
	}
	if words[0] == "set" && len(words) == 3 && strings.Contains(words[1], "queued") {
		return "+QUEUED\r\n"
	}
	return "+OK\r\n"
}

// What is no answer of the protocol's is neither OK nor a refusal: it is Unmapped, and
// its message a sample.
func TestRedisAcceptsNothingElse(t *testing.T) {
	create, put, stale := try.Write("key", "a", try.IfAbsent), try.Write("key", "a", targets.Condition{}), try.Write("key", "a", try.IfFirst)
	queued := try.Write("queued", "a", try.IfAbsent)
	remove := targets.Op{Kind: targets.Delete, Key: "key"}
	for _, c := range []struct {
		query, command, answer string
		op                     targets.Op
		sample                 string
	}{
		{"", "set", ":0\r\n", create, "SET NX was answered with :0"},
		{"", "set", ":1\r\n", create, "SET NX was answered with :1"},
		{"", "set", "$0\r\n\r\n", create, "SET NX was answered with $0"},
		{"", "set", "$2\r\nOK\r\n", create, "SET NX was answered with $2 OK"},
		{"", "set", "+QUEUED\r\n", create, "SET NX was answered with +QUEUED"},
		{"", "set", "*0\r\n", create, "SET NX was answered with *0"},
		{"", "set", ":0\r\n", put, "SET was answered with :0"},
		{"", "set", "$-1\r\n", put, "SET was answered with $-1"},
		{"", "set", "+ok\r\n", put, "SET was answered with +ok"},
		{"", "set", "HTTP/1.1 200 OK\r\n\r\n", create, "HTTP/1.1 200 OK"},
		{"", "evalsha", ":2\r\n", stale, "EVALSHA was answered with :2"},
		{"", "evalsha", "$1\r\n1\r\n", stale, "EVALSHA was answered with $1 1"},
		{"", "evalsha", "$-1\r\n", stale, "EVALSHA was answered with $-1"},
		{"", "del", "+OK\r\n", remove, "DEL was answered with +OK"},
		{"", "del", ":2\r\n", remove, "DEL was answered with :2"},
		{"", "get", "+OK\r\n", try.Read("key"), "GET was answered with +OK"},
		{"", "get", ":0\r\n", try.Read("key"), "GET was answered with :0"},
		{"?create=watch", "watch", ":1\r\n", queued, "WATCH was answered with :1"},
		{"?create=watch", "get", ":1\r\n", queued, "GET was answered with :1"},
		{"?create=watch", "multi", ":1\r\n", queued, "MULTI was answered with :1"},
		{"?create=watch", "multi", "-NOPERM no\r\n", try.Write("key", "a", try.IfAbsent), "SET after MULTI was answered with +OK"},
		{"?create=watch", "exec", "*0\r\n", queued, "EXEC was answered with *0"},
		{"?create=watch", "exec", "*1\r\n:1\r\n", queued, "EXEC was answered with *1 :1"},
		{"?create=watch", "exec", "+OK\r\n", queued, "EXEC was answered with +OK"},
	} {
		url := answering(t, func(words []string) string {
			if words[0] == c.command {
				return c.answer
			}
			return ""
		})
		got := try.Expect(t, try.SessionOn(t, url+c.query), c.op, targets.Unmapped, "unexpected")
		if !strings.Contains(got.Message, c.sample) || got.Attempts != 1 || got.Sent.IsZero() {
			t.Errorf("%q: %+v, want the sample %q", c.answer, got, c.sample)
		}
	}
	// Whatever it holds, a sample is one short line.
	long := answering(t, func(words []string) string {
		if words[0] != "set" {
			return ""
		}
		return "+\x1b[31m\u202e\x00" + strings.Repeat("x", 5000) + "\r\n"
	})
	if got := try.SessionOn(t, long).Do(t.Context(), create).Message; len(got) > 250 || strings.ContainsAny(got, "\x1b\x00\n\u202e") {
		t.Errorf("the sample is %q", got)
	}
}

// An error without a code that the table has is Unmapped, with its text.
func TestRedisErrorsWithoutACause(t *testing.T) {
	for text, want := range map[string]struct {
		outcome targets.Outcome
		code    string
	}{
		"Unknown error": {targets.Unmapped, "without-code"}, "ERR syntax": {targets.Invalid, "ERR"}, "NOVELTY of a fork": {targets.Unmapped, "NOVELTY"},
		"": {targets.Unmapped, "without-code"}, strings.Repeat("A", 300): {targets.Unmapped, "without-code"},
	} {
		url := answering(t, func(words []string) string {
			if words[0] != "set" {
				return ""
			}
			return "-" + text + "\r\n"
		})
		got := try.Expect(t, try.SessionOn(t, url), try.Write("key", "a", try.IfAbsent), want.outcome, want.code)
		if !strings.HasPrefix(text, strings.TrimSuffix(got.Message, "…")) || text != "" && got.Message == "" {
			t.Errorf("%q: the message is %q", text, got.Message)
		}
	}
}

// What the server says when it is asked for its name is named, and a refusal is none for
// the run.
func TestRedisNamesTheServer(t *testing.T) {
	for info, want := range map[string]string{
		"redis_version:7.0.15": "Redis 7.0.15",
		"redis_version:7.2.4\r\nvalkey_version:8.1.0\r\nserver_name:valkey": "Valkey 8.1.0",
		"redis_version:7.4.0\r\ndragonfly_version:df-v1.34.2":               "Dragonfly df-v1.34.2",
		"redis_version:6.3.4\r\nserver_name:KeyDB":                          "KeyDB, compatible with Redis 6.3.4",
		"server_name:fork\r\nfork_version:2.0\r\nredis_version:5.0":         "fork 2.0",
		"server_name:fork": "fork",
		"uptime:5":         "unknown, speaks as Redis",
		"-NOPERM User reader has no permissions to run the 'info' command":     "unknown, speaks as Redis",
		"-ERR unknown command 'INFO', with args beginning with: 'server' \x1b": "unknown, speaks as Redis",
	} {
		url := answering(t, func(words []string) string {
			switch {
			case words[0] != "info":
				return ""
			case info[0] == '-':
				return info + "\r\n"
			default:
				return fmt.Sprintf("$%d\r\n%s\r\n", len(info), info)
			}
		})
		d := try.Described(t, url, try.NeedsOf(1))
		if notes := strings.Join(d.Notes, "; "); d.Server != want || strings.HasPrefix(want, "unknown") != strings.Contains(notes, "unknown") || strings.Contains(notes, "\x1b") {
			t.Errorf("%q: %q, with the notes %q", info, d.Server, notes)
		}
	}
}

// A user without dangerous commands, and without scripts, goes on as far as the run has no
// need of them.
func TestRedisUserWithoutDangerousCommands(t *testing.T) {
	url := servers.Redis(t)
	admin := redisAdmin(t, url)
	command(t, admin, "acl setuser careful on >hunter2 ~* +@all -@dangerous; acl setuser unscripted on >hunter2 ~* +@all -@dangerous -@scripting")
	as := func(user string) string { return strings.Replace(url, "redis://", "redis://"+user+":hunter2@", 1) }
	for _, strategies := range redisStrategies {
		if err := try.Suite(t.Context(), try.Open(t, as("careful")+"?"+strategies), try.NeedsOf(4)); err != nil {
			t.Errorf("%s: %v", strategies, err)
		}
	}
	err := try.Prepare(t.Context(), t, as("unscripted"), try.NeedsOf(4))
	try.ExpectError(t, err, "hunter2", "?cas=watch", "NOPERM")
	if err := try.Suite(t.Context(), try.Open(t, as("unscripted")+"?cas=watch"), try.NeedsOf(4)); err != nil {
		t.Error(err)
	}
	createOnly := try.NeedsOf(4)
	createOnly.Guards = []targets.Guard{targets.IfAbsent}
	target := try.Prepared(t, as("unscripted"), createOnly)
	session := try.Session(t, target, 0)
	try.Expect(t, session, try.Write("key", "a", try.IfAbsent), targets.OK, "")
	if got := try.Expect(t, session, try.Write("key", "a", try.IfFirst), targets.Unsupported, ""); !strings.Contains(got.Message, "?cas=watch") {
		t.Errorf("got %+v", got)
	}
	for query, instead := range map[string]string{"": "?cas=watch&delete=watch&renew=watch does", "?cas=watch": "?delete=watch&renew=watch does", "?cas=watch&delete=watch&renew=watch": ""} {
		notes := strings.Join(try.Described(t, as("unscripted")+query, createOnly).Notes, "; ")
		if !strings.Contains(notes, "INFO is refused") || !strings.Contains(notes, instead) || strings.Contains(notes, "SCRIPT LOAD is refused") != (instead != "") {
			t.Errorf("%s: notes %q", query, notes)
		}
	}
	// A server that has no scripts at all.
	unscripted := answering(t, func(words []string) string {
		if words[0] == "script" {
			return "-ERR unknown command 'SCRIPT'\r\n"
		}
		return ""
	})
	try.Prepared(t, unscripted, createOnly)
	err = try.Prepare(t.Context(), t, unscripted, try.NeedsOf(1))
	try.ExpectError(t, err, "", "?cas=watch")
}

// A refusal to serve us is told by its cause, and only where nothing answered is it asked
// whether the server runs.
func TestRedisRefusalsAreToldByTheirCause(t *testing.T) {
	for text, want := range map[string]string{
		"ERR max number of clients reached":                    "maxclients",
		"LOADING Redis is loading the dataset in memory":       "wait until it has",
		"READONLY You can't write against a read only replica": "its master",
		"MASTERDOWN Link with MASTER is down":                  "name the master",
		"MOVED 3999 127.0.0.1:6381":                            "--key-prefix '{a}contend-'",
		"CLUSTERDOWN Hash slot not served":                     "CLUSTER INFO",
		"NOAUTH Authentication required.":                      "check user and password",
		"NOPERM no permissions to run the 'ping' command":      "permissions (ACL)",
		"DENIED Redis is running in protected mode":            "protected mode",
		"OOM command not allowed":                              "maxmemory",
		"MISCONF Redis is configured to save RDB snapshots":    "cannot save to disk",
		"ERR unknown command 'PING'":                           "is it a Redis",
		"ERR something of its own":                             "answers with an error",
	} {
		url := answering(t, func([]string) string { return "-" + text + "\r\n" })
		err := try.Prepare(t.Context(), t, url, try.NeedsOf(1))
		try.ExpectError(t, err, "", want, text)
		if strings.Contains(err.Error(), "is the server running") || strings.Contains(err.Error(), "cannot reach") {
			t.Errorf("%s: %v", text, err)
		}
	}
	hung := answering(t, func([]string) string { time.Sleep(time.Minute); return "" })
	web := answering(t, func([]string) string { return "HTTP/1.1 400 Bad Request\r\n\r\n" })
	for url, want := range map[string]string{hung: "no answer in time", web: "are host, port and scheme right"} {
		err := try.Prepare(try.Within(t, 300*time.Millisecond), t, url, try.NeedsOf(1))
		if try.ExpectError(t, err, "", want); strings.Contains(err.Error(), "is the server running") {
			t.Error(err)
		}
	}
}

// A server whose connections are all taken is not one that does not run.
func TestRedisOfFewConnections(t *testing.T) {
	server := servers.RedisServer(t, "--maxclients", "3")
	target := try.Prepared(t, server.URL, try.NeedsOf(1))
	for i := range 8 {
		session, err := target.Open(t.Context(), i)
		if err != nil {
			if try.ExpectError(t, err, "", "maxclients", "lower the number of contenders"); strings.Contains(err.Error(), "is the server running") {
				t.Error(err)
			}
			return
		}
		t.Cleanup(func() { session.Close() })
	}
	t.Error("eight sessions on three connections")
}

// A process that may open no more files says so, by each client.
func TestNoFileLeft(t *testing.T) {
	url, postgres := servers.Redis(t), servers.Postgres(t)
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	redis, other := try.Open(t, url), try.Open(t, postgres)
	few := limit
	few.Cur = 3
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &few); err != nil {
		t.Fatal(err)
	}
	_, errRedis := redis.Open(t.Context(), 0)
	_, errPostgres := other.Open(t.Context(), 0)
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{errRedis, errPostgres} {
		if try.ExpectError(t, err, "", "ulimit -n", "lower the number of contenders"); strings.Contains(err.Error(), "is the server running") {
			t.Error(err)
		}
	}
}

// Two nodes of a real cluster: what belongs to the other is explained, and a hash tag puts
// all keys on one.
func TestRedisCluster(t *testing.T) {
	nodes := []*servers.Server{}
	for range 2 {
		nodes = append(nodes, servers.RedisServer(t, "--cluster-enabled", "yes", "--cluster-require-full-coverage", "no"))
	}
	first, second := redisAdmin(t, nodes[0].URL), redisAdmin(t, nodes[1].URL)
	command(t, first, "cluster addslotsrange 0 8191")
	command(t, second, "cluster addslotsrange 8192 16383")
	host, port, _ := net.SplitHostPort(strings.TrimPrefix(nodes[1].URL, "redis://"))
	command(t, first, "cluster meet "+host+" "+port)
	try.Eventually(t, "the cluster", func() bool {
		info, known := first.ClusterInfo(t.Context()).Val(), second.ClusterInfo(t.Context()).Val()
		const ready = "cluster_state:ok\r\ncluster_slots_assigned:16384"
		return strings.Contains(info, ready) && strings.Contains(known, ready)
	})
	// The slot of {a} is 15495, that of {b} 3300.
	for tag, node := range map[string]int{"{a}": 1, "{b}": 0} {
		for _, strategies := range redisStrategies {
			here, there := try.SessionOn(t, nodes[node].URL+"?"+strategies), try.SessionOn(t, nodes[1-node].URL+"?"+strategies)
			key := tag + "contend-" + strategies
			try.Expect(t, here, try.Write(key, "a", try.IfAbsent), targets.OK, "")
			got := try.Expect(t, there, try.Write(key, "a", try.IfAbsent), targets.Invalid, "MOVED")
			if !strings.Contains(got.Message, "MOVED ") || !strings.Contains(got.Message, "--key-prefix '{a}contend-'") {
				t.Errorf("the message is %q", got.Message)
			}
		}
	}
	if notes := strings.Join(try.Described(t, nodes[0].URL, try.NeedsOf(1)).Notes, ";"); !strings.Contains(notes, "one node of a cluster") {
		t.Errorf("notes %q", notes)
	}
}
