package cmd_test

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"

	"contend/report"
	"contend/report/store"
	"contend/runner"
	"contend/targets"
	"contend/targets/all"
	"contend/targets/forge/emulator"
	"contend/targets/forge/server"
	"contend/targets/targettest/servers"
)

// send sends ops to a target, and wants them accepted.
func send(t *testing.T, url string, ops ...targets.Op) {
	t.Helper()
	target, err := all.Open(url)
	if err != nil {
		t.Fatal(err)
	}
	defer target.Close()
	if _, err := target.Prepare(t.Context(), targets.Needs{Sessions: 1}); err != nil {
		t.Fatal(err)
	}
	s, err := target.Open(t.Context(), -1)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, op := range ops {
		if r := s.Do(t.Context(), op); r.Outcome != targets.OK {
			t.Fatalf("%+v: %+v", op, r)
		}
	}
}

func put(key string) targets.Op {
	return targets.Op{Kind: targets.Write, Key: key, Value: targets.Record{Token: "t"}}
}

// raw is a statement, or the words of a command.
func raw(v any) targets.Op {
	text, _ := json.Marshal(v)
	return targets.Op{Kind: targets.Raw, Key: "k", Raw: text}
}

// runFrom gives the ID of a run that began so long ago.
func runFrom(age time.Duration) string {
	return ulid.MustNew(ulid.Timestamp(time.Now().Add(-age)), rand.Reader).String()
}

// listed gives the keys that are in a store.
func listed(t *testing.T, url string) (keys []string) {
	t.Helper()
	target, err := all.Open(url)
	if err != nil {
		t.Fatal(err)
	}
	defer target.Close()
	deletes, _, err := target.List(t.Context(), "contend-")
	if err != nil {
		t.Fatal(err)
	}
	for _, op := range deletes {
		keys = append(keys, op.Key)
	}
	return keys
}

// wantKeys wants the keys of these runs to be left, and no others.
func wantKeys(t *testing.T, url string, want map[string]int) {
	t.Helper()
	got := make(map[string]int)
	for _, key := range listed(t, url) {
		got[runner.RunOf("contend-", key)]++
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("keys by run: %v, want %v", got, want)
	}
}

// What may be going on is left alone, and told with a command that removes it; keys
// that are of no run are never touched.
func TestCleanLeavesYoungRunsAlone(t *testing.T) {
	t.Parallel()
	url := servers.RedisServer(t).URL
	old, young, fresh := runFrom(3*time.Hour), runFrom(20*time.Minute), runFrom(0)
	fill := func() {
		t.Helper()
		for _, run := range []string{old, young, fresh} {
			send(t, url, put("contend-"+run+"-r1"), put("contend-"+run+"-r2"))
		}
		send(t, url, put("contend-mine"), put("contend-"+strings.Repeat("X", 26)+"-r1"))
	}
	others := map[string]int{"": 1, strings.Repeat("X", 26): 1}
	with := func(runs ...string) map[string]int {
		all := map[string]int{"": 1, strings.Repeat("X", 26): 1}
		for _, run := range runs {
			all[run] = 2
		}
		return all
	}
	for _, c := range []struct {
		args []string
		out  string // a pattern
		left map[string]int
	}{
		{[]string{"--dry-run"}, `(?s)3 runs with keys that begin with contend- on .*nothing was removed.*` + old + ` │ 3h +│ +2 │ +0 │ +2\n.*` + young +
			` │ 20m(\ds)? +│ +2 │ +0 │ +0\n.*Run ` + fresh + ` is left alone: it is younger than an hour`, with(old, young, fresh)},
		{[]string{"--older-than", "2h", "--dry-run"}, `Run ` + young + ` is left alone: it is not older than 2h`, with(old, young, fresh)},
		{[]string{"--older-than", "0s"}, `(?s)^removed 2 keys that begin with contend- from .*left alone: 2 keys of run ` + young + `: it is younger than an hour`, with(young, fresh)},
		{[]string{"--older-than", "4h"}, `^removed 0 keys [^\n]*\n$`, with(old, young, fresh)},
		{[]string{"--older-than", "10m"}, `(?s)^removed 2 keys .*left alone: 2 keys of run ` + young, with(young, fresh)},
		{[]string{"--older-than", "10m", "--force"}, `^removed 4 keys `, with(fresh)},
		{[]string{"--older-than", "0s", "--force"}, `^removed 6 keys `, others},
		{[]string{"--run", fresh}, `^removed 2 keys that begin with contend-` + fresh + `-`, with(old, young)},
		{[]string{"--run", strings.ToLower(young)}, `^removed 2 keys `, with(old, fresh)},
		{[]string{"--run", young, "--dry-run"}, `1 run with keys`, with(old, young, fresh)},
	} {
		fill()
		code, stdout, stderr := contend(t, append([]string{"clean", "-t", url, "--store", ""}, c.args...)...)
		if code != 0 || !regexp.MustCompile(c.out).MatchString(stdout) {
			t.Errorf("%q: exit %d: %s%s", c.args, code, stdout, stderr)
		}
		wantKeys(t, url, c.left)
	}
	// The command that is told does it.
	fill()
	_, stdout, _ := contend(t, "clean", "-t", url, "--store", "", "--older-than", "0s")
	told := regexp.MustCompile(`remove them with: contend (.*)`).FindStringSubmatch(stdout)
	if told == nil {
		t.Fatalf("no command: %s", stdout)
	}
	if code, stdout, stderr := contend(t, strings.Fields(told[1])...); code != 0 || !strings.HasPrefix(stdout, "removed 2 keys") {
		t.Errorf("%q: exit %d: %s%s", told[1], code, stdout, stderr)
	}
}

// What a store of results still watches is left alone; where it is named, the store
// is told that it is gone.
func TestCleanLeavesWatchedKeysAlone(t *testing.T) {
	t.Parallel()
	url := servers.RedisServer(t).URL
	file := filepath.Join(t.TempDir(), "results.db")
	run := runFrom(3 * time.Hour)
	key := func(name string) string { return "contend-" + run + "-" + name }
	ghost := func(name string, closed bool) *runner.Ghost {
		return &runner.Ghost{Run: run, Target: url, Key: key(name), Arm: "write", State: runner.GhostBlocked, Closed: closed, Epoch: time.Now().Add(-3 * time.Hour)}
	}
	results, err := store.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := results.Intend([]*runner.Ghost{ghost("write0", false), ghost("write1", true)}); err != nil {
		t.Fatal(err)
	}
	results.Close()
	send(t, url, put(key("write0")), put(key("write1")), put(key("n")))
	clean := func(want string, args ...string) {
		t.Helper()
		code, stdout, stderr := contend(t, append([]string{"clean", "-t", url, "--store", file}, args...)...)
		if code != 0 || !strings.Contains(strings.Join(strings.Fields(stdout), " "), want) {
			t.Errorf("%q: exit %d: %s%s; want %q", args, code, stdout, stderr, want)
		}
	}
	clean("left alone: 1 key of run "+run+": "+file+" still watches them", "--older-than", "1h")
	wantKeys(t, url, map[string]int{run: 1})
	clean("still watches them.", "--dry-run")
	clean("closed in "+file+": the watch of 1 key", "--older-than", "1h", "--force")
	wantKeys(t, url, map[string]int{})
	open, closed := 0, 0
	ghosts, _ := kept(t, file)
	for _, g := range ghosts {
		if !g.Closed {
			open++
		}
		if g.State == runner.GhostAbandoned && g.Removed && strings.Contains(g.Why, "contend clean") {
			closed++
		}
	}
	if open != 0 || closed != 1 {
		t.Errorf("%d keys are still watched, %d were closed", open, closed)
	}
	send(t, url, put(key("write1")))
	clean("removed 1 key ", "--run", run)
	if code, _, stderr := contend(t, "clean", "-t", url, "--store", file+"x", "--run", run); code != 2 || exists(file+"x") {
		t.Errorf("a store that is not there: exit %d: %s", code, stderr)
	}
}

func exists(file string) bool {
	found, err := filepath.Glob(file)
	return err == nil && len(found) > 0
}

func TestCleanCommandLine(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"":                                 "needs either --run ID or --older-than D; --dry-run lists what is there",
		"--run 01 --older-than 1h":         "needs either",
		"--run nonsense":                   `--run "NONSENSE": is not the ID of a run`,
		"--run " + runFrom(0) + " --force": "--force: goes with --older-than",
		"--older-than 1h --timeout 0s":     "--timeout 0s: must be more",
		"--older-than 1h --key-prefix ":    "--key-prefix",
	} {
		fields := strings.Fields(args)
		if strings.HasSuffix(args, " ") {
			fields = append(fields, "")
		}
		if code, stdout, stderr := contend(t, append([]string{"clean", "-t", "redis://127.0.0.1:1"}, fields...)...); code != 2 || !strings.Contains(stderr, want) {
			t.Errorf("%q: exit %d: %s%s", args, code, stdout, stderr)
		}
	}
	if code, _, stderr := contend(t, "clean", "-t", "redis://127.0.0.1:1", "--older-than", "1h", "--store", ""); code != 4 || !strings.Contains(stderr, "cannot reach") {
		t.Errorf("nobody there: exit %d: %s", code, stderr)
	}
}

// denyingDeletes is a proxy in front of a Redis that answers DEL and does nothing.
func denyingDeletes(t *testing.T, url string) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	address := strings.TrimPrefix(url, "redis://")
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer client.Close()
				inner, err := net.Dial("tcp", address)
				if err != nil {
					return
				}
				defer inner.Close()
				go io.Copy(client, inner)
				// A session sends a command and waits: what is read at once is one.
				for b := make([]byte, 1<<16); ; {
					n, err := client.Read(b)
					if err != nil {
						return
					}
					if bytes.Contains(bytes.ToLower(b[:n]), []byte("\r\ndel\r\n")) {
						client.Write([]byte(":1\r\n"))
					} else {
						inner.Write(b[:n])
					}
				}
			}()
		}
	}()
	return "redis://" + listener.Addr().String()
}

// keepingForge is a Forge that answers every delete with 204 and does nothing.
func keepingForge(t *testing.T) string {
	t.Helper()
	inner := server.New(emulator.New(emulator.Options{Entities: server.DefaultEntities()}), server.Options{})
	outer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/delete") {
			w.WriteHeader(204)
			return
		}
		inner.ServeHTTP(w, r)
	}))
	t.Cleanup(outer.Close)
	return "forge+rest+http" + strings.TrimPrefix(outer.URL, "http") + "/kvs/api/v1"
}

// A removal that the store accepts and does not do is told, by the run and by clean,
// and nothing is said to be removed that was not.
func TestRemovalThatDoesNothing(t *testing.T) {
	t.Parallel()
	statements := func(t *testing.T, statements ...string) string {
		s := servers.PostgresServer(t)
		for _, each := range append([]string{"select 1"}, statements...) {
			send(t, s.URL, raw(each))
		}
		return s.URL
	}
	for name, start := range map[string]func(*testing.T) string{
		"row-level security": func(t *testing.T) string {
			return strings.Replace(statements(t, "alter table contend_records enable row level security", "alter table contend_records force row level security",
				"create policy see on contend_records for select using (true)", "create policy add on contend_records for insert with check (true)",
				"create policy change on contend_records for update using (true)", "create user plain",
				"grant select, insert, update, delete on contend_records to plain"), "postgres@", "plain@", 1)
		},
		"a trigger": func(t *testing.T) string {
			return statements(t, "create function keep() returns trigger language plpgsql as 'begin return null; end'",
				"create trigger keep before delete on contend_records for each row execute function keep()")
		},
		"a soft delete": func(t *testing.T) string {
			return statements(t, "create function keep() returns trigger language plpgsql as "+
				"'begin update contend_records set token = old.token where key = old.key; return null; end'",
				"create trigger keep before delete on contend_records for each row execute function keep()")
		},
		"DEL answers 1": func(t *testing.T) string { return denyingDeletes(t, servers.RedisServer(t).URL) },
		"204":           keepingForge,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := start(t)
			code, stdout, stderr := contend(t, "fail-if-exists", "-t", url, "-n", "3", "-r", "1", "--control-rounds", "1", "-o", "json", "--no-progress")
			var r report.Result
			if err := json.Unmarshal([]byte(stdout), &r); err != nil {
				t.Fatalf("%v: exit %d: %s%s", err, code, stdout, stderr)
			}
			const want = "still there, such as contend-"
			if !strings.Contains(stderr, want) || !strings.Contains(stderr, "contend clean -t ") || !strings.Contains(r.Left, want) {
				t.Errorf("the run told %q, and in its result %q", stderr, r.Left)
			}
			code, stdout, stderr = contend(t, "clean", "-t", url, "--run", r.Run, "--store", "")
			if code != 4 || !strings.HasPrefix(stdout, "removed 0 keys") || !strings.Contains(stderr, want) || !strings.Contains(stderr, "had accepted their removal") {
				t.Errorf("clean: exit %d: %s%s", code, stdout, stderr)
			}
			if len(listed(t, url)) == 0 {
				t.Error("the store has removed them after all")
			}
		})
	}
}

// A watch and a probe look as well.
func TestRemovalThatDoesNothingAfterAWatchOrProbe(t *testing.T) {
	t.Parallel()
	url := denyingDeletes(t, servers.RedisServer(t).URL)
	for _, args := range [][]string{
		{"ttl-ghost", "--keys", "2", "--ttl", "100ms", "--watch", "300ms", "--tolerance", "200ms", "--store", ""},
		{"probe", "--only", "types"},
	} {
		_, stdout, stderr := contend(t, append(args, "-t", url, "-o", "json", "--no-progress")...)
		var r report.Result
		if err := json.Unmarshal([]byte(stdout), &r); err != nil {
			t.Fatalf("%q: %v: %s%s", args, err, stdout, stderr)
		}
		const want = "still there, such as contend-"
		if !strings.Contains(stderr, want) || !strings.Contains(r.Left, want) {
			t.Errorf("%q told %q, and in its result %q", args, stderr, r.Left)
		}
	}
}

// A run whose writes were all refused leaves nothing behind, and does not say so.
func TestRefusedRunLeavesNothing(t *testing.T) {
	t.Parallel()
	for name, rules := range map[string][]string{
		"reads alone":        {"+@read", "+@connection", "+info"},
		"not even a listing": {"+get", "+@connection", "+info"},
		"nothing but a ping": {"+ping", "+hello", "+client", "+info", "+select"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := servers.RedisServer(t).URL
			send(t, url, raw(append([]string{"acl", "setuser", "poor", "on", ">secret", "~*", "&*", "-@all"}, rules...)))
			code, stdout, stderr := contend(t, "fail-if-exists", "-t", strings.Replace(url, "redis://", "redis://poor:secret@", 1)+"?cas=watch",
				"-n", "3", "-r", "2", "--settle", "10ms", "--no-progress")
			if code != 3 && code != 4 || !strings.Contains(stdout+stderr, "NOPERM") {
				t.Errorf("exit %d: %s%s", code, stdout, stderr)
			}
			if strings.Contains(stdout+stderr, "left behind") {
				t.Errorf("nothing was written: %s%s", stdout, stderr)
			}
		})
	}
}
