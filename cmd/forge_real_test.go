package cmd_test

import (
	"encoding/pem"
	"fmt"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"contend/report"
	"contend/scenarios"
	"contend/targets"
	"contend/targets/forge/apptest"
	"contend/targets/targettest/servers"
)

// Through the whole way: contend, a host that stands in for the web trigger, the
// unmodified companion app, the real @forge/kvs or @forge/sql, the shim, the emulator
// with a database behind it. Every scenario, by every strategy, with the published
// latency.
func TestThroughTheCompanionApp(t *testing.T) {
	t.Parallel()
	url, _ := apptest.Host(t, "--latency=published", "--sql", servers.MariaDB(t))
	target := "forge+" + url
	for query, server := range map[string]string{"?create=kvs": "@forge/kvs 1.6.5", "?create=entity": "@forge/kvs 1.6.5",
		"?create=transact": "@forge/kvs 1.6.5", "?create=sql&cas=sql": "@forge/sql"} {
		t.Run(query, func(t *testing.T) {
			t.Parallel()
			for _, s := range scenarios.Contests() {
				args := []string{s.Info().Name, "-t", target + query, "-r", "3", "--min-contended", "1", "-n", "6", "--rate", "1000"}
				if !s.Info().Unguarded {
					args = append(args, "--control-rounds", "1")
				}
				// How a version is compared does not depend on how a key is created.
				if s.Collection() == targets.Versioned && query != "?create=kvs" && query != "?create=sql&cas=sql" {
					continue
				}
				if _, apart := briefly[s.Info().Name]; apart {
					if s.Info().Name == "duplicate-event" {
						args = append(args, "--backoff", "20ms", "--offset", "0", "-n", "2")
					}
				}
				code, r := resultOf(t, args...)
				where := s.Info().Name + query
				if !r.Target.Simulated || !r.Target.Relayed || !strings.Contains(r.Target.Server, server) {
					t.Errorf("%s: simulated %v, relayed %v, server %q", where, r.Target.Simulated, r.Target.Relayed, r.Target.Server)
				}
				if strings.Contains(r.Command+r.Target.URL, strings.TrimPrefix(url, "http://")+"?") {
					t.Errorf("%s: the address of the web trigger is shown: %s", where, r.Command)
				}
				if !slices.ContainsFunc(r.Latency, func(l report.Latency) bool { return l.Where == "server" && l.N > 0 }) {
					t.Errorf("%s: no latency next to the store: %+v", where, r.Latency)
				}
				if s.Info().Unguarded {
					if code != 1 || r.Verdict.ViolatedRounds != 3 {
						t.Errorf("%s: exit %d, violated in %d of 3 rounds: %v", where, code, r.Verdict.ViolatedRounds, r.Verdict.Reasons)
					}
					continue
				}
				if code != 0 && code != 3 || len(r.Verdict.Violations) > 0 || r.Winners.One != 3 && r.Detail.Counter == nil {
					t.Errorf("%s: exit %d: %v %v %+v", where, code, r.Verdict.Reasons, r.Verdict.Violations, r.Winners)
				}
				if code == 3 && !strings.Contains(fmt.Sprint(r.Verdict.Reasons), "rounds count as contended, and held needs 1") {
					t.Errorf("%s is inconclusive for another reason than a lack of contest: %v", where, r.Verdict.Reasons)
				}
				t.Log(r.VerdictLine())
			}
		})
	}
}

// Over TLS, as a live site is reached: a proxy with a certificate stands before
// the host, and the program trusts it by SSL_CERT_FILE, which Go reads on Linux.
func TestForgeOverTLS(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("the certificate cannot be trusted for one process here")
	}
	address, token := apptest.Host(t, "--latency=1ms..9ms")
	behind, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httptest.NewTLSServer(httputil.NewSingleHostReverseProxy(&url.URL{Scheme: behind.Scheme, Host: behind.Host}))
	defer proxy.Close()
	certificate := filepath.Join(t.TempDir(), "proxy.pem")
	block := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: proxy.Certificate().Raw})
	if err := os.WriteFile(certificate, block, 0o600); err != nil {
		t.Fatal(err)
	}
	program, err := built()
	if err != nil {
		t.Fatal(err)
	}
	target := "forge+" + proxy.URL + behind.Path
	run := func(environment ...string) (string, int) {
		command := exec.Command(program, "fail-if-exists", "-t", target, "-r", "2", "-n", "4", "-q")
		command.Env = append(append(os.Environ(), "CONTEND_FORGE_TOKEN="+token), environment...)
		out, _ := command.CombinedOutput()
		return string(out), command.ProcessState.ExitCode()
	}
	if out, code := run("SSL_CERT_FILE=" + certificate); code != 0 && code != 3 || !strings.Contains(out, "(simulated)") {
		t.Errorf("exit %d: %s", code, out)
	}
	// A certificate that nobody trusts is told, and nothing is contended for.
	if out, code := run("SSL_CERT_FILE=/dev/null", "SSL_CERT_DIR=/dev/null"); code != 4 || !strings.Contains(out, "certificate") || strings.Contains(out, behind.Path) {
		t.Errorf("untrusted: exit %d: %s", code, out)
	}
}
