package cmd_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"contend/cmd"
	"contend/targets/forge/emulator"
)

// serve runs "contend sim serve" for the time of a test; stop ends it and gives
// its exit code and what it wrote on standard error.
func serve(t *testing.T, flags ...string) (url string, stop func() (code int, stderr string)) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	out, in := io.Pipe()
	var stderr bytes.Buffer
	ended := make(chan int, 1)
	go func() {
		ended <- cmd.Run(ctx, append([]string{"sim", "serve", "--listen", "127.0.0.1:0"}, flags...), strings.NewReader(""), in, &stderr)
		in.Close()
	}()
	line, err := bufio.NewReader(out).ReadString('\n')
	url, found := strings.CutPrefix(strings.TrimSpace(line), "listening on ")
	if err != nil || !found {
		t.Fatalf("got %q, %v; exit %d: %s", line, err, <-ended, &stderr)
	}
	return url, func() (int, string) {
		cancel()
		return <-ended, stderr.String()
	}
}

// ask posts a body and gives the status and what came back.
func ask(t *testing.T, url, body string) (int, string) {
	t.Helper()
	r, err := http.Post(url, "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return r.StatusCode, string(text)
}

func TestSimServe(t *testing.T) {
	t.Parallel()
	url, stop := serve(t, "--log")
	for _, c := range []struct {
		path, body string
		status     int
		want       string
	}{
		{"/kvs/api/v1/set", `{"key":"k","value":1}`, 204, ""},
		{"/kvs/api/v1/set", `{"key":"k","value":1,"options":{"keyPolicy":"FAIL_IF_EXISTS"}}`, 409,
			`{"code":"KEY_CONFLICT","message":"Provided key already exists and cannot be overwritten"}`},
		{"/kvs/api/v1/entity/set", `{"entityName":"contend-record","key":"k","value":{"version":1}}`, 204, ""},
	} {
		if status, got := ask(t, url+c.path, c.body); status != c.status || got != c.want {
			t.Errorf("%s: got %d %s", c.path, status, got)
		}
	}
	code, stderr := stop()
	if code != 0 || strings.Count(stderr, "\n") != 3 || !strings.Contains(stderr, `POST /kvs/api/v1/set {"key":"k","value":1} -> 204`) {
		t.Errorf("exit %d, log:\n%s", code, stderr)
	}
	if _, err := http.Get(url + "/healthz"); err == nil {
		t.Error("it still answers")
	}
}

func TestSimServeReadsTheManifest(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "manifest.yml")
	if err := os.WriteFile(file, []byte("app: {storage: {entities: [{name: book, attributes: {year: {type: integer}}, indexes: [year]}]}}"), 0o600); err != nil {
		t.Fatal(err)
	}
	url, _ := serve(t, "--manifest", file)
	if status, got := ask(t, url+"/kvs/api/v1/entity/set", `{"entityName":"book","key":"k","value":{"year":1}}`); status != 204 {
		t.Errorf("got %d %s", status, got)
	}
	if status, got := ask(t, url+"/kvs/api/v1/entity/query", `{"entityName":"book","indexName":"year"}`); status != 200 || got != `{"data":[{"key":"k","value":{"year":1}}]}` {
		t.Errorf("got %d %s", status, got)
	}
	if status, got := ask(t, url+"/kvs/api/v1/entity/get", `{"entityName":"contend-record","key":"k"}`); status != 404 {
		t.Errorf("got %d %s", status, got)
	}
}

// Each flag reaches the emulator.
func TestSimServeFlags(t *testing.T) {
	t.Parallel()
	const (
		set       = "/kvs/api/v1/set"
		ghost     = `{"entityName":"contend-record","key":"g","value":{"version":1},"options":{"ttl":{"value":1,"unit":"DAYS"}}}`
		longTTL   = `{"key":"k","value":1,"options":{"ttl":{"value":366,"unit":"DAYS"}}}`
		again     = `{"entityName":"contend-record","key":"g","value":{"version":2},"options":{"returnValue":"LATEST","returnMetadataFields":["EXPIRE_TIME"]}}`
		latest    = `{"key":"k","value":1,"options":{"ttl":{"value":1,"unit":"DAYS"},"returnValue":"LATEST","returnMetadataFields":["EXPIRE_TIME"]}}`
		notExists = `{"check":[{"key":"absent","entityName":"contend-record","conditions":{"and":[{"property":"version","condition":"NOT_EXISTS","values":[true]}]}}]}`
	)
	for _, c := range []struct {
		flag, path, body string
		status           int
		matches          string
	}{
		{"--long-ttl-code=BAD_REQUEST", set, longTTL, 400, `"BAD_REQUEST"`},
		{"--expire-granularity=ms", set, latest, 200, `:\d\d\.\d{3}Z"`},
		{"--expire-granularity=s", set, latest, 200, `:\d\dZ"`},
		{"--overwrite-keeps-expiry", "/kvs/api/v1/entity/set", again, 200, `expireTime`},
		{"--overwrite-keeps-expiry=false", "/kvs/api/v1/entity/set", again, 200, `"value":{"version":2}}$`},
		{"--not-exists-needs-record", "/kvs/api/v1/transaction", notExists, 400, "CONDITIONAL_CHECK_FAILED"},
		{"--not-exists-needs-record=false", "/kvs/api/v1/transaction", notExists, 204, "^$"},
		{"--query-lag=1h", "/kvs/api/v1/entity/query", `{"entityName":"contend-record","indexName":"version"}`, 200, `{"data":\[]}`},
		{"--query-lag=0", "/kvs/api/v1/entity/query", `{"entityName":"contend-record","indexName":"version"}`, 200, `"key":"g"`},
		{"--sql=mysql://me:pw@127.0.0.1:1/x", "/sql/api/v1/execute", `{"query":"SELECT 1"}`, 500, "127.0.0.1:1"},
		{"--seed=1", "/sql/api/v1/execute", `{"query":"SELECT 1"}`, 500, "No database was given"},
	} {
		url, _ := serve(t, c.flag, "--sweep=never")
		if status, got := ask(t, url+"/kvs/api/v1/entity/set", ghost); status != 204 {
			t.Fatalf("%s: got %d %s", c.flag, status, got)
		}
		if status, got := ask(t, url+c.path, c.body); status != c.status || !regexp.MustCompile(c.matches).MatchString(got) {
			t.Errorf("%s: got %d %s, want %d %s", c.flag, status, got, c.status, c.matches)
		}
	}
}

// Of expired keys that are not swept.
func TestSimServeGhostFlags(t *testing.T) {
	t.Parallel()
	const api = "/kvs/api/v1/"
	put := func(more string) string {
		return `{"entityName":"contend-record","key":"k","value":{"version":1},"options":{` + more + `}}`
	}
	ttl := `"ttl":{"value":1,"unit":"SECONDS"},"returnValue":"LATEST","returnMetadataFields":["EXPIRE_TIME"]`
	for _, c := range []struct {
		flags              []string
		claimed, remaining int
	}{
		{[]string{"--sweep=never"}, 409, 404},
		{[]string{"--sweep=never", "--hide-ghosts", "--delete-keeps-ghost"}, 204, 200},
		{[]string{"--sweep=0"}, 204, 404},
	} {
		url, _ := serve(t, c.flags...)
		ask(t, url+api+"set", put(ttl))
		_, text := ask(t, url+api+"entity/set", put(ttl))
		var item struct{ ExpireTime time.Time }
		if err := json.Unmarshal([]byte(text), &item); err != nil || item.ExpireTime.IsZero() {
			t.Fatalf("%v: %s, %v", c.flags, text, err)
		}
		for time.Now().Before(item.ExpireTime) {
			time.Sleep(time.Until(item.ExpireTime))
		}
		if status, got := ask(t, url+api+"entity/set", put(`"keyPolicy":"FAIL_IF_EXISTS"`)); status != c.claimed {
			t.Errorf("%v: the claim got %d %s", c.flags, status, got)
		}
		ask(t, url+api+"delete", `{"key":"k"}`)
		if status, got := ask(t, url+api+"get", `{"key":"k"}`); status != c.remaining {
			t.Errorf("%v: after the delete got %d %s", c.flags, status, got)
		}
	}
}

func TestSimServeQuota(t *testing.T) {
	long := `{"key":"k","value":1}` + strings.Repeat(" ", 15<<20) // 1537 units
	for flag, want := range map[string]string{"--quota": "RATE_LIMIT_EXCEEDED", "--throttle-code=TOO_MANY_REQUESTS": "TOO_MANY_REQUESTS", "--quota=false": ""} {
		url, _ := serve(t, flag)
		for range 2 {
			if status, got := ask(t, url+"/kvs/api/v1/set", long); status != 204 {
				t.Errorf("%s: got %d %s", flag, status, got)
			}
		}
		status, got := ask(t, url+"/kvs/api/v1/set", long)
		if over := want != ""; over != (status == 429) || !strings.Contains(got, want) {
			t.Errorf("%s: got %d %s, want %q", flag, status, got, want)
		}
	}
}

// The emulator is steered on loopback alone.
func TestSimServeSteering(t *testing.T) {
	t.Parallel()
	url, _ := serve(t, "--sweep=0s")
	ask(t, url+"/kvs/api/v1/set", `{"key":"k","value":1,"options":{"ttl":{"value":1,"unit":"HOURS"}}}`)
	if status, got := ask(t, url+"/emulator/clock", `{"forward":"1h"}`); status != 200 {
		t.Errorf("got %d %s", status, got)
	}
	if status, got := ask(t, url+"/kvs/api/v1/get", `{"key":"k"}`); status != 404 {
		t.Errorf("an hour later: %d %s", status, got)
	}
	url, _ = serve(t, "--listen=0.0.0.0:0")
	port := url[strings.LastIndex(url, ":")+1:]
	for _, path := range []string{"/emulator/reset", "/emulator/clock"} {
		if status, got := ask(t, "http://127.0.0.1:"+port+path, `{"forward":"1h"}`); status != 403 || !strings.Contains(got, "--listen 127.0.0.1:PORT") {
			t.Errorf("%s: %d %s", path, status, got)
		}
	}
}

func TestSimServeToken(t *testing.T) {
	t.Setenv("CONTEND_SIM_TOKEN", "right")
	url, stop := serve(t, "--log")
	for token, want := range map[string]int{"right": 204, "wrong": 401} {
		r, err := http.NewRequestWithContext(t.Context(), "POST", url+"/forge/storage/kvs/v1/delete", strings.NewReader(`{"key":"k"}`))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+token)
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if answer.StatusCode != want {
			t.Errorf("%s: got %d", token, answer.StatusCode)
		}
	}
	if _, stderr := stop(); strings.Contains(stderr, "right") {
		t.Errorf("the log shows the token: %s", stderr)
	}
}

func TestSimServeWarnsOfOtherAddresses(t *testing.T) {
	for address, warns := range map[string]bool{"0.0.0.0:0": true, "127.0.0.1:0": false, "localhost:0": false} {
		url, stop := serve(t, "--listen", address)
		code, stderr := stop()
		if code != 0 || !strings.HasPrefix(url, "http://") || warns != strings.Contains(stderr, "is not a loopback address") {
			t.Errorf("%s: %s, exit %d: %s", address, url, code, stderr)
		}
	}
}

func TestSimServeOnAPortInUse(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	address := taken.Addr().String()
	if code, stdout, stderr := contend(t, "sim", "serve", "--listen", address); code != 4 || stdout != "" || !strings.Contains(stderr, "--listen "+address) {
		t.Errorf("exit %d, %q: %s", code, stdout, stderr)
	}
}

func TestSimRulesNamesEveryRule(t *testing.T) {
	code, stdout, stderr := contend(t, "sim", "rules")
	if code != 0 {
		t.Fatalf("exit %d: %s", code, stderr)
	}
	var rules []emulator.Rule
	_, text, _ := contend(t, "sim", "rules", "-o", "json")
	if err := json.Unmarshal([]byte(text), &rules); err != nil || len(rules) != len(emulator.Rules()) {
		t.Fatalf("%d rules, %v", len(rules), err)
	}
	for _, r := range rules {
		if !strings.Contains(stdout, r.ID+" ") || !strings.Contains(stdout, r.Text) {
			t.Errorf("rule %s is missing", r.ID)
		}
	}
}
