package forge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"contend/targets"
	"contend/targets/forge/emulator"
	"contend/targets/forge/wire"
	"contend/targets/kit"
)

// trigger is a web trigger whose answers to ops a test gives; it answers pings
// as the companion app does.
func trigger(t *testing.T, answer http.HandlerFunc) (target *forge, ops *atomic.Int64) {
	t.Helper()
	ops = new(atomic.Int64)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if r.Header.Get("Authorization") != "Bearer secret" {
			w.WriteHeader(401)
			return
		}
		if strings.Contains(string(body), `"ping":true`) {
			now := time.Now().UnixMilli()
			fmt.Fprintf(w, `{"schema":"contend.reply/1","received_ms":%d,"now_ms":%d,"storage":"missing","package":"@forge/kvs 1.6.5","node":"v22","simulated":true}`, now, now)
			return
		}
		ops.Add(1)
		answer(w, r)
	}))
	t.Cleanup(server.Close)
	t.Setenv(forgeToken, "secret")
	made, err := opened(Driver(), "forge+"+server.URL+"/x1/id-that-is-secret")
	if err != nil {
		t.Fatal(err)
	}
	return made.(*forge), ops
}

// openedAny is the target of a URL of either kind.
func openedAny(raw string) (targets.Target, error) {
	if strings.HasPrefix(raw, "forge+rest") {
		return opened(RESTDriver(), raw)
	}
	return opened(Driver(), raw)
}

// opened is the target of a URL.
func opened(d targets.Driver, raw string) (targets.Target, error) {
	u, err := url.Parse(raw)
	if err != nil {
		return nil, err
	}
	return d.Open(u)
}

func forgeDo(t *testing.T, f *forge, op targets.Op) targets.Reply {
	t.Helper()
	s, err := f.Open(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	return s.Do(t.Context(), op)
}

var forgeCreate = targets.Op{Kind: targets.Write, Key: "contend-01TEST-r1", If: targets.Condition{Guard: targets.IfAbsent}}

// Every answer that is not the app's is sorted by its status; none is sent again
// or followed.
func TestWebTriggerAnswers(t *testing.T) {
	for _, c := range []struct {
		name   string
		answer http.HandlerFunc
		want   targets.Outcome
	}{
		{"wrong token", status(401), targets.Invalid},
		{"no trigger", status(404), targets.Invalid},
		{"uninstalled", status(424), targets.Invalid},
		{"over the quota", status(429), targets.Throttled},
		{"server error", status(500), targets.Unknown},
		{"gateway timeout", status(504), targets.Unknown},
		{"accepted", status(202), targets.Unknown},
		{"a status that nobody knows", status(418), targets.Unmapped},
		{"a redirect", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
		}, targets.Invalid},
		{"a page", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>") }, targets.Unmapped},
		{"JSON of another kind", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"ok":true}`) }, targets.Unmapped},
		{"an outcome that nobody knows", func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, `{"schema":"contend.reply/1","reply":{"outcome":"splendid"}}`)
		}, targets.Unmapped},
		{"an outcome that a write cannot have", func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, `{"schema":"contend.reply/1","reply":{"outcome":"missing"}}`)
		}, targets.Unmapped},
		{"the app's own words", func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, `{"schema":"contend.reply/1","reply":{"outcome":"conflict","code":"KEY_CONFLICT","status":409,"attempts":1,"server":{"began_ms":5,"ended_ms":6.5}}}`)
		}, targets.Conflict},
		{"the connection ends", func(w http.ResponseWriter, _ *http.Request) {
			conn, _, _ := w.(http.Hijacker).Hijack()
			conn.Close()
		}, targets.Unknown},
	} {
		f, ops := trigger(t, c.answer)
		r := forgeDo(t, f, forgeCreate)
		if r.Outcome != c.want || r.Attempts != 1 || r.Sent.IsZero() || ops.Load() != 1 {
			t.Errorf("%s: %s after %d attempts, asked %d times; want %s, once: %+v", c.name, r.Outcome, r.Attempts, ops.Load(), c.want, r)
		}
		if strings.Contains(r.Message, "id-that-is-secret") || strings.Contains(r.Message, "Bearer") {
			t.Errorf("%s: the message tells a secret: %s", c.name, r.Message)
		}
	}
}

func status(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
}

func TestWebTriggerQuotaReset(t *testing.T) {
	f, _ := trigger(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Ratelimit-Reset", "17")
		w.WriteHeader(429)
	})
	if r := forgeDo(t, f, forgeCreate); r.RetryAfter != 17*time.Second {
		t.Errorf("retry after %s, want 17s", r.RetryAfter)
	}
}

// What cannot work is refused with what to do, before a contender is let go.
func TestWebTriggerThatCannotBeUsed(t *testing.T) {
	for code, want := range map[int]string{401: "refuses the token", 404: "no such web trigger", 424: "not installed", 429: "quota", 200: "not as the companion app", 500: "forge logs"} {
		server := httptest.NewServer(status(code))
		defer server.Close()
		t.Setenv(forgeToken, "secret")
		target, err := opened(Driver(), "forge+"+server.URL+"/x1/id-that-is-secret")
		if err != nil {
			t.Fatal(err)
		}
		_, err = target.Prepare(t.Context(), targets.Needs{})
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "id-that-is-secret") {
			t.Errorf("%d: %v, want %q", code, err, want)
		}
	}
}

func TestForgeURLs(t *testing.T) {
	for raw, want := range map[string]string{
		"forge+http://example.com/x1/id":          "only a loopback address",
		"forge+https://me:pw@example.com/x1/id":   "no token or password belongs into the URL",
		"forge+https://example.com":               "path of the web trigger is missing",
		"forge+https:///x1/id":                    "host is missing",
		"forge+rest+http://example.com/":          "only a loopback address",
		"forge+https://example.com/x1/id?cas=lua": "is not one of transact",

		"forge+https://example.com/x1/id?create=sql&cas=transact": "create=sql and cas=sql go together",
		"forge+https://example.com/x1/id?create=kvs&cas=sql":      "create=sql and cas=sql go together",
		"forge+rest://example.com?create=sql":                     "is not one of kvs, entity, transact",
	} {
		t.Setenv(forgeToken, "secret")
		if _, err := openedAny(raw); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", raw, err, want)
		}
	}
	t.Setenv(forgeToken, "")
	if _, err := openedAny("forge+https://example.com/x1/id"); err == nil || !strings.Contains(err.Error(), forgeToken+" is not set") {
		t.Errorf("without a token: %v", err)
	}
	if got := Driver().Secrets.MaskRaw("forge+https://example.com/x1/id?create=kvs"); got != "forge+https://example.com/x1/xxxxx?create=kvs" {
		t.Errorf("the address of a web trigger is shown: %s", got)
	}
}

// Each strategy is told to the app, with pings too, and to the reader; sql for one is
// sql for the other.
func TestForgeStrategiesAreTold(t *testing.T) {
	var told forgeEnvelope
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		told = forgeEnvelope{}
		if err := json.NewDecoder(r.Body).Decode(&told); err != nil {
			t.Error(err)
		}
		fmt.Fprint(w, `{"schema":"contend.reply/1","storage":"missing","reply":{"outcome":"ok"},"keys":["contend-a"]}`)
	}))
	defer server.Close()
	t.Setenv(forgeToken, "secret")
	for _, c := range []struct {
		query, create, cas string
		limit              targets.Limit
	}{
		{"", "kvs", "transact", webTriggerLimits[0]},
		{"?create=entity", "entity", "transact", webTriggerLimits[0]},
		{"?create=sql&cas=sql", "sql", "sql", forgeSQLLimits[0]},
		{"?create=sql", "sql", "sql", forgeSQLLimits[0]},
		{"?cas=sql", "sql", "sql", forgeSQLLimits[0]},
	} {
		target, err := opened(Driver(), "forge+"+server.URL+"/x1/id"+c.query)
		if err != nil {
			t.Fatal(err)
		}
		d := target.Describe()
		if d.Strategies["create"] != c.create || d.Strategies["cas"] != c.cas || d.Limits[0] != c.limit {
			t.Errorf("%q: %v, limits %v", c.query, d.Strategies, d.Limits)
		}
		if _, err := target.Prepare(t.Context(), targets.Needs{}); err != nil || !told.Ping || told.Create != c.create {
			t.Errorf("%q: the ping tells %+v: %v", c.query, told, err)
		}
		forgeDo(t, target.(*forge), forgeCreate)
		if told.Op == nil || told.Create != c.create || told.Cas != c.cas {
			t.Errorf("%q: the op tells %+v", c.query, told)
		}
	}
}

// Records in Forge SQL have no time to live, which is said before anything is
// sent; all others have one.
func TestForgeTimeToLive(t *testing.T) {
	f, _ := trigger(t, nil)
	for create, has := range map[string]bool{"kvs": true, "entity": true, "transact": true, inSQL: false} {
		f.create = create
		err := f.Describe().Check(targets.Needs{Shortest: time.Minute, Longest: time.Minute})
		if errors.Is(err, targets.ErrUnsupported) == has {
			t.Errorf("create=%s: %v", create, err)
		}
		if !has && (!strings.Contains(err.Error(), "choose create=kvs") || strings.Contains(err.Error(), "id-that-is-secret")) {
			t.Error(err)
		}
		if _, err := f.Prepare(t.Context(), targets.Needs{}); err != nil {
			t.Errorf("create=%s, without a time to live: %v", create, err)
		}
	}
}

// The time to live that was granted is told by the store's own clock, from the
// last write on; where a second is the finest that an expiry tells, to that.
func TestForgeTellsTheTimeToLive(t *testing.T) {
	updated := time.Date(2026, 8, 19, 10, 0, 36, 381_000_000, time.UTC).UnixMilli()
	for _, c := range []struct {
		item    string
		expires string
		granted time.Duration
	}{
		{`{"key":"k","value":{},"expireTime":"2026-08-19T10:01:06.381Z","updatedAt":%d}`, "2026-08-19T10:01:06.381Z", 30 * time.Second},
		{`{"key":"k","value":{},"expireTime":"2026-08-19T10:01:06Z","updatedAt":%d}`, "2026-08-19T10:01:06Z", 30*time.Second - 381*time.Millisecond},
		{`{"key":"k","value":{},"expireTime":"2026-08-19T10:00:06.381Z","updatedAt":%d}`, "2026-08-19T10:00:06.381Z", 0}, // overwritten after it
		{`{"key":"k","value":{},"updatedAt":%d}`, "", 0},
		{`{"key":"k","value":{},"expireTime":"2026-08-19T10:01:06.381Z","createdAt":%d}`, "2026-08-19T10:01:06.381Z", 0},
		{`{"key":"k","value":{},"expireTime":"soon","updatedAt":%d}`, "", 0},
	} {
		var item emulator.Item
		if err := json.Unmarshal(fmt.Appendf(nil, c.item, updated), &item); err != nil {
			t.Fatal(err)
		}
		for _, entity := range []bool{false, true} {
			r := wire.ReadReply(item, entity)
			if expires := r.Expires.Format(time.RFC3339Nano); r.Granted != c.granted || r.Expires.IsZero() != (c.expires == "") || c.expires != "" && expires != c.expires {
				t.Errorf("%s: expires %s, granted %s; want %s, %s", c.item, expires, r.Granted, c.expires, c.granted)
			}
		}
	}
}

// Keys are listed where a run may have left them, a probe too: by the index that every
// record is in, and deleted where they are, whatever the strategies.
func TestForgeListsWhereItWrote(t *testing.T) {
	const plain, entity = `{"path":"/api/v1/delete","body":{"key":"contend-a"}}`, `{"path":"/api/v1/entity/delete","body":{"entityName":"contend-record","key":"contend-a"}}`
	for query, want := range map[string]struct{ collections, deletes string }{
		"?create=kvs":         {"absent version", "raw " + plain + " raw " + entity},
		"?create=entity":      {"absent version", "raw " + plain + " raw " + entity},
		"?create=sql&cas=sql": {"sql absent version", "delete  raw " + plain + " raw " + entity},
	} {
		var listed []string
		throttle := true
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			var told forgeEnvelope
			if err := json.NewDecoder(r.Body).Decode(&told); err != nil || told.List == nil {
				t.Errorf("not a listing: %v", err)
				return
			}
			// A page that the quota puts off is asked for again.
			if throttle {
				throttle = false
				w.WriteHeader(429)
				return
			}
			listed = append(listed, string(told.List.Collection))
			fmt.Fprint(w, `{"schema":"contend.reply/1","keys":["contend-a","other-b"]}`)
		}))
		defer server.Close()
		t.Setenv(forgeToken, "secret")
		target, err := opened(Driver(), "forge+"+server.URL+"/x1/id"+query)
		if err != nil {
			t.Fatal(err)
		}
		deletes, requests, err := target.List(t.Context(), "contend-")
		var told []string
		for _, op := range deletes {
			told = append(told, fmt.Sprintf("%s %s", op.Kind, op.Raw))
		}
		if err != nil || strings.Join(listed, " ") != want.collections || strings.Join(told, " ") != want.deletes || requests != len(listed)+1 {
			t.Errorf("%s: listed %v in %d requests, gave %q: %v", query, listed, requests, told, err)
		}
	}
}

// The instant that contenders wait for is told in the clock of the app.
func TestNotBeforeIsTold(t *testing.T) {
	told := make(chan targets.Op, 1)
	f, _ := trigger(t, nil)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var envelope forgeEnvelope
		if err := json.NewDecoder(r.Body).Decode(&envelope); err == nil && envelope.Op != nil {
			told <- *envelope.Op
		}
		fmt.Fprint(w, `{"schema":"contend.reply/1","reply":{"outcome":"ok"}}`)
	}))
	defer server.Close()
	base, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	f.clocks = clocks{"one": {offset: time.Hour}}
	op := forgeCreate
	op.NotBefore = time.Now().Add(time.Second)
	(&forgeSession{target: f, conn: dialFor(t, base)}).Do(t.Context(), op)
	if got := <-told; !got.NotBefore.Equal(op.NotBefore.Add(time.Hour).Round(0)) {
		t.Errorf("told %s for our %s; their clock is an hour ahead", got.NotBefore, op.NotBefore)
	}
}

func dialFor(t *testing.T, base *url.URL) kit.HTTPConn {
	t.Helper()
	conn, err := kit.DialHTTP(context.Background(), kit.HTTPServer{Base: base})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// The clocks are as far apart as the fastest answers of their isolates show; what
// every way there has in common does not count.
func TestClocks(t *testing.T) {
	at := time.UnixMilli(1_000_000)
	c := make(clocks)
	note := func(isolate string, there, back, ahead time.Duration) {
		began := float64(at.Add(there+ahead).UnixMicro()) / 1000
		ended := float64(at.Add(there+ahead+50*time.Millisecond).UnixMicro()) / 1000
		c.note(isolate, at, at.Add(there+50*time.Millisecond+back), began, ended)
	}
	note("one", 4*time.Second, 100*time.Millisecond, 5*time.Second) // a cold start
	note("one", 300*time.Millisecond, 100*time.Millisecond, 5*time.Second)
	if c.offset() != 5100*time.Millisecond || c.uncertainty() != leastUncertainty {
		t.Errorf("one isolate: offset %s ± %s", c.offset(), c.uncertainty())
	}
	note("two", 300*time.Millisecond, 100*time.Millisecond, 5*time.Second)
	if c.uncertainty() != leastUncertainty {
		t.Errorf("two isolates of one clock, by the same way: ± %s", c.uncertainty())
	}
	note("three", 300*time.Millisecond, 100*time.Millisecond, 5099*time.Millisecond)
	if c.uncertainty() != 99*time.Millisecond {
		t.Errorf("isolates 99 ms apart: ± %s", c.uncertainty())
	}
}

// An app whose storage fails is not contended for.
func TestWebTriggerWithoutStorage(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"schema":"contend.reply/1","storage":"unknown"}`)
	}))
	defer server.Close()
	t.Setenv(forgeToken, "secret")
	target, err := opened(Driver(), "forge+"+server.URL+"/x1/id")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := target.Prepare(t.Context(), targets.Needs{}); err == nil || !strings.Contains(err.Error(), "cannot reach its storage") {
		t.Error(err)
	}
}

// Idle connections that the server closed are opened anew, and nothing is sent
// twice.
func TestIdleConnectionIsOpenedAnew(t *testing.T) {
	f, ops := trigger(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Connection", "close")
		fmt.Fprint(w, `{"schema":"contend.reply/1","reply":{"outcome":"ok","attempts":1}}`)
	})
	s, err := f.Open(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for i := range 3 {
		if r := s.Do(t.Context(), forgeCreate); r.Outcome != targets.OK || ops.Load() != int64(i+1) {
			t.Errorf("request %d: %+v, asked %d times", i+1, r, ops.Load())
		}
	}
}

// An app that does not tell of renewals would not look at the condition of a delete: it is
// sent none.
func TestOlderAppDeletesNothingUnconditionally(t *testing.T) {
	f, ops := trigger(t, status(200))
	condition := targets.Condition{Guard: targets.IfToken, Token: "t"}
	for _, op := range []targets.Op{
		{Kind: targets.Delete, Key: "contend-01TEST-r1", Collection: targets.Versioned, If: condition},
		{Kind: targets.Renew, Key: "contend-01TEST-r1", Collection: targets.Versioned, If: condition, TTL: time.Second},
		{Kind: targets.Transact, Key: "contend-01TEST-r1"},
	} {
		if r := forgeDo(t, f, op); r.Outcome != targets.Unsupported || r.Attempts != 0 || ops.Load() != 0 {
			t.Errorf("%s: %+v, asked %d times", op.Kind, r, ops.Load())
		}
	}
}
