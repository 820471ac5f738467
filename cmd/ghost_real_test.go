package cmd_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"contend/report"
	"contend/runner"
	"contend/scenarios"
	"contend/targets/forge/apptest"
	"contend/targets/targettest/servers"
)

// watchReal watches a real server, and gives the result and the keys as kept.
func watchReal(t *testing.T, args ...string) (code int, r report.Result, ghosts []*runner.Ghost) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "ghosts.db")
	code, r = resultOf(t, append([]string{"ttl-ghost", "--store", file}, args...)...)
	if r.Target.Server == "" || len(r.Detail.Ghosts.Keys) == 0 {
		t.Errorf("server %q, %d keys", r.Target.Server, len(r.Detail.Ghosts.Keys))
	}
	for _, c := range r.Controls {
		// Whether a key is asked before its expiry depends on the machine.
		if !c.AsExpected && c.Name != "live" {
			t.Errorf("control %s: %s", c.Name, c.Detail)
		}
	}
	ghosts, _ = kept(t, file)
	if openOf(ghosts) > 0 {
		t.Errorf("%d keys are open", openOf(ghosts))
	}
	return code, r, ghosts
}

// neverAccused wants a store that lets go of a key in time not to be violated, and
// held where every key was seen free in time, which depends on the machine.
func neverAccused(t *testing.T, code int, r report.Result) {
	t.Helper()
	inTime := !slices.ContainsFunc(r.Controls, func(c scenarios.Control) bool { return !c.AsExpected })
	for i := range r.Detail.Ghosts.Keys {
		k := &r.Detail.Ghosts.Keys[i]
		inTime = inTime && (k.Arm != scenarios.WriteArm || k.FirstFree != nil && *k.FirstFree <= r.Detail.Ghosts.Tolerance)
	}
	if code != 0 && (code != 3 || inTime) || len(r.Verdict.Violations) > 0 {
		t.Errorf("exit %d, all free in time: %v: %s", code, inTime, r.VerdictLine())
	}
	t.Log(r.VerdictLine())
}

// No honest store is accused, and the platform as it is known is.
func TestRealGhosts(t *testing.T) {
	t.Parallel()
	sideBySide(t, map[string]func(*testing.T){"redis": realRedisHasNoGhosts, "postgres": realPostgresHasGhostsForReadersOnly, "forge": realForgeHasGhosts})
}

// Redis lets go of a key at its expiry, for creates as for reads; one from which
// somebody takes its expiry is a ghost.
func realRedisHasNoGhosts(t *testing.T) {
	url := servers.Redis(t)
	sideBySide(t, map[string]func(*testing.T){
		"as it is": func(t *testing.T) {
			code, r, ghosts := watchReal(t, "-t", url, "--keys", "8", "--watch", "3s", "--tolerance", "1500ms")
			neverAccused(t, code, r)
			for _, g := range ghosts {
				if (g.Arm == scenarios.WriteArm || g.Arm == scenarios.ReadArm) && g.State != runner.GhostFree {
					t.Errorf("%s is %s", g.Key, g.State)
				}
			}
		},
		"without its expiries": func(t *testing.T) {
			ended := make(chan struct{})
			persisted := make(chan int, 1)
			go func() { persisted <- persist(t, url, "ghostly-*-write*", ended) }()
			code, r, _ := watchReal(t, "-t", url, "--keys", "5", "--ttl", "2s", "--watch", "1s", "--tolerance", "500ms", "--key-prefix", "ghostly-")
			close(ended)
			never := 0
			for i := range r.Detail.Ghosts.Keys {
				if k := &r.Detail.Ghosts.Keys[i]; k.Arm == scenarios.WriteArm && k.FirstFree == nil {
					never++
				}
			}
			if n := <-persisted; n == 0 || never == 0 || code != 1 || r.Verdict.ViolatedRounds != never || r.Verdict.Violations[0].Kind != "ghost" {
				t.Errorf("%d expiries were taken, %d keys were never free, exit %d: %s", n, never, code, r.VerdictLine())
			}
		},
	})
	if n := keys(t, url); n != 0 {
		t.Errorf("%d keys were left behind", n)
	}
}

// persist takes their expiry from the keys of Redis that match, as they come, and
// gives how many there were.
func persist(t *testing.T, url, pattern string, ended <-chan struct{}) (n int) {
	conn, err := net.Dial("tcp", strings.TrimPrefix(url, "redis://"))
	if err != nil {
		t.Error(err)
		return 0
	}
	defer conn.Close()
	in := bufio.NewReader(conn)
	for {
		select {
		case <-ended:
			return n
		case <-time.After(20 * time.Millisecond):
		}
		fmt.Fprintf(conn, "EVAL \"local n = 0 for _, k in ipairs(redis.call('keys', '%s')) do n = n + redis.call('persist', k) end return n\" 0\r\n", pattern)
		var more int
		if _, err := fmt.Fscanf(in, ":%d\r\n", &more); err != nil {
			t.Error(err)
			return n
		}
		n += more
	}
}

// PostgreSQL has no time to live; as a column, whoever creates takes over, and
// whoever reads still sees the row.
func realPostgresHasGhostsForReadersOnly(t *testing.T) {
	url := servers.Postgres(t)
	file := filepath.Join(t.TempDir(), "ghosts.db")
	code, stdout, stderr := contend(t, "ttl-ghost", "-t", url, "--store", file)
	if code != 4 || stdout != "" || !strings.Contains(stderr, "this target has no time to live of its own: choose ?ttl=expires-column") {
		t.Errorf("exit %d: %.500s%s", code, stdout, stderr)
	}
	if ghosts, _ := kept(t, file); len(ghosts) > 0 {
		t.Errorf("%d keys are on disk", len(ghosts))
	}
	separator := "?"
	if strings.Contains(url, "?") {
		separator = "&"
	}
	all := make(map[string]func(*testing.T))
	for _, create := range []string{"on-conflict", "serializable"} {
		all[create] = func(t *testing.T) {
			code, r, ghosts := watchReal(t, "-t", url+separator+"ttl=expires-column&create="+create, "--keys", "6", "--watch", "2500ms", "--tolerance", "1s")
			neverAccused(t, code, r)
			for _, g := range ghosts {
				want := map[string]runner.GhostState{scenarios.WriteArm: runner.GhostFree, scenarios.ReadArm: runner.GhostVisible}[g.Arm]
				// One that a transaction was aborted for may tell nothing.
				if want != "" && g.State != want && g.Unanswered == 0 && g.State != runner.GhostAbandoned {
					t.Errorf("%s is %s, want %s", g.Key, g.State, want)
				}
			}
		}
	}
	sideBySide(t, all)
	if n := keys(t, url); n != 0 {
		t.Errorf("%d keys were left behind", n)
	}
}

// The platform as it is known: through the companion app, and by the REST form.
// What a tool may tell of a web trigger it does, and its address it does not.
func realForgeHasGhosts(t *testing.T) {
	url, token := apptest.Host(t, "--sweep=1h", "--latency=1ms..9ms")
	// By processes, since a variable of this one would be that of other tests.
	watch := func(args ...string) *process {
		p := command(t, args...)
		p.Env = append(p.Env, "CONTEND_FORGE_TOKEN="+token)
		return p
	}
	all := make(map[string]func(*testing.T))
	for name, target := range map[string]string{"app": "forge+" + url, "rest": newForgeSite(t, time.Hour, "1ms..9ms").url} {
		all[name] = func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "ghosts.db")
			p := watch("ttl-ghost", "-t", target, "--store", file, "--keys", "5", "--watch", "1200ms", "--tolerance", "500ms", "-o", "json", "--no-progress")
			<-p.begin(t)
			var r report.Result
			if err := json.Unmarshal(p.stdout.Bytes(), &r); err != nil {
				t.Fatalf("exit %d: %v: %.500s%s", p.ProcessState.ExitCode(), err, p.stdout.String(), p.stderr.String())
			}
			if code := p.ProcessState.ExitCode(); code != 1 || r.Verdict.ViolatedRounds != 5 || r.Verdict.Violations[0].Kind != "ghost" || !r.Target.Simulated {
				t.Errorf("exit %d: %s", code, r.VerdictLine())
			}
			for i := range r.Detail.Ghosts.Keys {
				k := &r.Detail.Ghosts.Keys[i]
				if k.Arm == scenarios.WriteArm && (k.State != runner.GhostBlocked || k.Code != "KEY_CONFLICT" || k.FirstFree != nil) ||
					k.Arm == scenarios.ReadArm && (k.LastShown == nil || k.FirstGone != nil) {
					t.Errorf("%+v", k)
				}
			}
			clean := watch("clean", "-t", target, "--run", r.Run)
			<-clean.begin(t)
			if out := clean.stdout.String(); !strings.HasPrefix(out, "removed 0 keys") {
				t.Errorf("keys were left behind: %s%s", out, clean.stderr.String())
			}
		}
	}
	// The address of the web trigger is a secret, which the store does not have.
	all["secret"] = func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "ghosts.db")
		p := watch("ttl-ghost", "-t", "forge+"+url, "--store", file, "--keys", "1", "--watch", "2h", "--tolerance", "1h", "-q")
		ended := p.begin(t)
		until(t, p, ended, func() bool { return blockedFor(t, file, 0) })
		if code := interrupt(t, p, ended); code != 130 {
			t.Errorf("exit %d: %s", code, p.stderr.String())
		}
		secret := strings.TrimPrefix(url, "http://")
		secret = secret[strings.Index(secret, "/"):]
		again := watch("ttl-ghost", "--resume", "--store", file)
		<-again.begin(t)
		if errs := again.stderr.String(); again.ProcessState.ExitCode() != 2 || !strings.Contains(errs, "are not in the store; give the target with --target or CONTEND_TARGET") {
			t.Errorf("exit %d: %s", again.ProcessState.ExitCode(), errs)
		}
		again = watch("ttl-ghost", "--resume", "--store", file, "-q")
		again.Env = append(again.Env, "CONTEND_TARGET=forge+"+url)
		ended = again.begin(t)
		_, before := kept(t, file)
		until(t, again, ended, func() bool {
			_, probes := kept(t, file)
			for key := range probes {
				if len(probes[key]) > len(before[key]) {
					return true
				}
			}
			return false
		})
		if code := interrupt(t, again, ended); code != 130 {
			t.Errorf("exit %d: %s", code, again.stderr.String())
		}
		for _, said := range []string{p.stdout.String() + p.stderr.String() + again.stdout.String() + again.stderr.String(), fileText(t, file)} {
			if strings.Contains(said, secret) {
				t.Error("the address of the web trigger is told")
			}
		}
		clean := watch("clean", "-t", "forge+"+url, "--run", newest(first(kept(t, file))))
		<-clean.begin(t)
		if out := clean.stdout.String(); !strings.HasPrefix(out, "removed ") || strings.HasPrefix(out, "removed 0") {
			t.Errorf("cleaning: %s%s", out, clean.stderr.String())
		}
	}
	sideBySide(t, all)
}

func first[A, B any](a A, _ B) A { return a }

func fileText(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
