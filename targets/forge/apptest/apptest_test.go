//go:build unix

package apptest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"contend/targets"
)

// answer is the body of the app's answers.
type answer struct {
	Schema     string         `json:"schema"`
	Reply      *targets.Reply `json:"reply"`
	Storage    string         `json:"storage"`
	Kinds      []string       `json:"kinds"`
	Isolate    string         `json:"isolate"`
	ReceivedMS float64        `json:"received_ms"`
	NowMS      float64        `json:"now_ms"`
	Package    string         `json:"package"`
	Node       string         `json:"node"`
	Simulated  bool           `json:"simulated"`
	Cold       bool           `json:"cold"`
	Error      string         `json:"error"`
}

// trigger is the app's web trigger.
type trigger struct{ url, token string }

// post gives the status and the body of an answer.
func (a trigger) post(t *testing.T, authorization, body string) (int, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, a.url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if authorization != "" {
		request.Header.Set("Authorization", authorization)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(text)
}

// ask posts a body with the right token and reads the answer, which must be of the
// contract.
func (a trigger) ask(t *testing.T, body string) (int, answer) {
	t.Helper()
	status, text := a.post(t, "Bearer "+a.token, body)
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.DisallowUnknownFields()
	var got answer
	if err := decoder.Decode(&got); err != nil || got.Schema != "contend.reply/1" {
		t.Fatalf("%s\nis answered with %d and\n%s\n%v", body, status, text, err)
	}
	return status, got
}

// do does an op and gives its reply.
func (a trigger) do(t *testing.T, create string, op targets.Op) targets.Reply {
	t.Helper()
	status, got := a.ask(t, opBody(t, create, "contend-", op))
	if status != http.StatusOK || got.Reply == nil {
		t.Fatalf("%+v: %d %+v", op, status, got)
	}
	return *got.Reply
}

func opBody(t *testing.T, create, prefix string, op targets.Op) string {
	t.Helper()
	body, err := json.Marshal(map[string]any{"schema": "contend.op/1", "create": create, "cas": "transact", "prefix": prefix, "op": op})
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

func write(key string, home targets.Collection, token string, version int64, condition targets.Condition) targets.Op {
	return targets.Op{Kind: targets.Write, Key: key, Collection: home, If: condition, Value: targets.Record{Token: token, Version: version,
		UpdatedAt: time.UnixMilli(1787116436381).UTC(), ExpiresAt: time.UnixMilli(1787116466381).UTC(), Body: json.RawMessage(`{"pad":"ä"}`)}}
}

var (
	ifAbsent    = targets.Condition{Guard: targets.IfAbsent}
	unguarded   = targets.Condition{}
	clashOfKeys = want{targets.Conflict, "KEY_CONFLICT", 409}
	clashOfData = want{targets.Conflict, "CONDITIONAL_CHECK_FAILED", 400}
	applied     = want{targets.OK, "", 0}
	missing     = want{targets.Missing, "KEY_NOT_FOUND", 0}
)

func ifVersion(counter int64) targets.Condition {
	return targets.Condition{Guard: targets.IfVersion, Counter: counter}
}

func ifUnmodified(since time.Time) targets.Condition {
	return targets.Condition{Guard: targets.IfUnmodified, UpdatedAt: since.UTC()}
}

type want struct {
	outcome targets.Outcome
	code    string
	status  int
}

func (w want) check(t *testing.T, op targets.Op, r targets.Reply) {
	t.Helper()
	if got := (want{r.Outcome, r.Code, r.Status}); got != w {
		t.Errorf("%s %s if %q: %+v, want %+v (%s)", op.Kind, op.Key, op.If.Guard, got, w, r.Message)
	}
	if r.Attempts != 1 || r.Server.Began == 0 || r.Server.Ended < r.Server.Began {
		t.Errorf("%s %s: %d attempts, %+v", op.Kind, op.Key, r.Attempts, r.Server)
	}
}

func TestApp(t *testing.T) {
	t.Parallel()
	url, token := Host(t, "--sweep=never")
	a := trigger{url, token}
	t.Run("the first request is cold", a.testCold)
	for _, create := range []string{"kvs", "entity", "transact"} {
		for _, home := range []targets.Collection{"", targets.Plain, targets.Versioned} {
			t.Run(fmt.Sprintf("create=%s home=%s", create, home), func(t *testing.T) { a.testOps(t, create, home) })
		}
	}
	t.Run("invalid", a.testInvalid)
	t.Run("ghost", a.testGhost)
	t.Run("sequence", a.testSequence)
	t.Run("not_before", a.testNotBefore)
	t.Run("refused", a.testRefused)
	t.Run("without the token", a.testUnauthorized)
}

func (a trigger) testCold(t *testing.T) {
	for i := range 3 {
		status, got := a.ask(t, `{"schema":"contend.op/1","ping":true}`)
		if status != http.StatusOK || got.Reply != nil || got.Storage != "missing" || got.Cold != (i == 0) {
			t.Errorf("ping %d: %d %+v", i, status, got)
		}
		if got.Package != "@forge/kvs 1.6.5" || !strings.HasPrefix(got.Node, "v") || !got.Simulated {
			t.Errorf("ping %d: %+v", i, got)
		}
		if got.ReceivedMS == 0 || got.NowMS < got.ReceivedMS {
			t.Errorf("ping %d: answered at %f, received at %f", i, got.NowMS, got.ReceivedMS)
		}
	}
}

// A key's life under each strategy.
func (a trigger) testOps(t *testing.T, create string, home targets.Collection) {
	key := fmt.Sprintf("contend-ops-%s-%s", create, home)
	inEntity := home == targets.Versioned || create != "kvs"
	clash, path := clashOfKeys, "/api/v1/set"
	switch {
	case create == "transact":
		clash, path = clashOfData, "/api/v1/transaction"
	case inEntity:
		path = "/api/v1/entity/set"
	}
	do := func(op targets.Op, w want) targets.Reply {
		t.Helper()
		op.Key, op.Collection = key, home
		r := a.do(t, create, op)
		w.check(t, op, r)
		return r
	}
	holds := func(token string, version int64) {
		t.Helper()
		r := do(targets.Op{Kind: targets.Read}, applied)
		expected := write(key, home, token, version, unguarded).Value
		if got, want := fmt.Sprintf("%+v", r.Record), fmt.Sprintf("%+v", expected); got != want {
			t.Errorf("read %s, want %s", got, want)
		}
	}
	do(targets.Op{Kind: targets.Read}, missing)
	do(write("", "", "first", 1, ifAbsent), applied)
	lost := do(write("", "", "second", 1, ifAbsent), clash)
	var raw struct {
		Name, Message, Code string
		ResponseDetails     struct {
			Status            int
			TraceID, HTTPPath string
		}
		Context json.RawMessage
	}
	if err := json.Unmarshal(lost.Raw, &raw); err != nil || raw.Name != "ForgeKvsError" || raw.Code != clash.code || raw.Message != lost.Message ||
		raw.ResponseDetails.Status != clash.status || raw.ResponseDetails.HTTPPath != path || raw.Context == nil {
		t.Errorf("raw %s, %v; want a request to %s", lost.Raw, err, path)
	}
	if len(lost.Trace) != 32 || raw.ResponseDetails.TraceID != lost.Trace {
		t.Errorf("trace %q", lost.Trace)
	}
	holds("first", 1)
	do(write("", "", "third", 7, unguarded), applied)
	holds("third", 7)
	if inEntity {
		do(write("", "", "fourth", 8, ifVersion(7)), applied)
		do(write("", "", "fifth", 8, ifVersion(7)), clashOfData)
		holds("fourth", 8)
		written := write("", "", "", 0, unguarded).Value.UpdatedAt
		do(write("", "", "fifth", 8, ifUnmodified(written.Add(time.Millisecond))), clashOfData)
		do(write("", "", "sixth", 9, ifUnmodified(written)), applied)
		holds("sixth", 9)
	} else {
		for _, condition := range []targets.Condition{ifVersion(7), ifUnmodified(time.UnixMilli(1787116436381))} {
			r := a.do(t, create, write(key, home, "fourth", 8, condition))
			if r.Outcome != targets.Unsupported || r.Attempts != 0 || r.Server != (targets.Span{}) || r.Message == "" {
				t.Errorf("a plain key with a condition on what it holds: %+v", r)
			}
		}
		holds("third", 7)
	}
	do(targets.Op{Kind: targets.Delete}, applied)
	do(targets.Op{Kind: targets.Delete}, applied)
	do(targets.Op{Kind: targets.Read}, missing)
}

// What the platform finds wrong is told in its words.
func (a trigger) testInvalid(t *testing.T) {
	const tooLarge = 1 << 31
	for _, c := range []struct {
		op   targets.Op
		want want
	}{
		{write("contend-int32", targets.Versioned, "x", tooLarge, unguarded), want{targets.Invalid, "INCORRECT_PROPERTY_TYPE", 400}},
		{write("contend-int32", targets.Versioned, "x", tooLarge, ifVersion(0)), want{targets.Invalid, "UNPROCESSABLE_ENTITY", 422}},
		{write("contend-"+strings.Repeat("x", 500), "", "x", 1, unguarded), want{targets.Invalid, "KEY_TOO_LONG", 400}},
	} {
		c.want.check(t, c.op, a.do(t, "kvs", c.op))
	}
}

// A key that has expired and is not swept still blocks, and still shows its expiry.
func (a trigger) testGhost(t *testing.T) {
	for _, create := range []string{"kvs", "entity", "transact"} {
		op := write("contend-ghost-"+create, "", "first", 1, ifAbsent)
		op.TTL = 300 * time.Millisecond
		created := a.do(t, create, op)
		applied.check(t, op, created)
		time.Sleep(1200 * time.Millisecond)
		if r := a.do(t, create, op); r.Outcome != targets.Conflict {
			t.Errorf("%s on a ghost: %+v", create, r)
		}
		r := a.do(t, create, targets.Op{Kind: targets.Read, Key: op.Key})
		left := float64(r.Expires.UnixMilli()) - created.Server.Began
		if r.Outcome != targets.OK || r.Record.Token != "first" || r.Expires.IsZero() || left < 0 || r.Granted != time.Second {
			t.Errorf("%s: the ghost reads as %+v", create, r)
		}
	}
}

func (a trigger) testSequence(t *testing.T) {
	const key = "contend-sequence"
	read := targets.Op{Kind: targets.Read, Key: key, Collection: targets.Versioned}
	ops := []targets.Op{read, write(key, targets.Versioned, "a", 1, ifAbsent), write(key, targets.Versioned, "b", 2, ifVersion(1)),
		read, write(key, targets.Versioned, "c", 2, ifVersion(1))}
	r := a.do(t, "kvs", targets.Op{Kind: targets.Sequence, Ops: ops})
	if len(r.Parts) != len(ops) || r.Outcome != targets.Conflict || r.Attempts != 1 {
		t.Fatalf("%+v", r)
	}
	for i, w := range []want{missing, applied, applied, applied, clashOfData} {
		w.check(t, ops[i], r.Parts[i])
		if i > 0 && r.Parts[i].Server.Began < r.Parts[i-1].Server.Ended {
			t.Errorf("op %d began at %f, before the one ahead of it ended at %f", i, r.Parts[i].Server.Began, r.Parts[i-1].Server.Ended)
		}
	}
	if r.Parts[3].Record.Token != "b" || r.Server.Began != r.Parts[0].Server.Began || r.Server.Ended != r.Parts[4].Server.Ended {
		t.Errorf("%+v", r)
	}
	plain := write(key, "", "d", 1, ifVersion(1))
	if r := a.do(t, "kvs", targets.Op{Kind: targets.Sequence, Ops: []targets.Op{plain}}); r.Outcome != targets.Unsupported || r.Attempts != 0 || len(r.Parts) != 1 {
		t.Errorf("a sequence that asks nothing: %+v", r)
	}
	foreign := targets.Op{Kind: targets.Sequence, Ops: []targets.Op{{Kind: targets.Delete, Key: key, Collection: targets.Versioned}, {Kind: targets.Delete, Key: "theirs"}}}
	if status, got := a.ask(t, opBody(t, "kvs", "contend-", foreign)); status != http.StatusBadRequest || !strings.Contains(got.Error, "outside the prefix") {
		t.Errorf("a foreign key in a sequence: %d %+v", status, got)
	}
	if r := a.do(t, "kvs", read); r.Outcome != targets.OK {
		t.Errorf("a refused sequence was begun: %+v", r)
	}
}

// No storage call begins before the instant that its request names.
func (a trigger) testNotBefore(t *testing.T) {
	instant := time.Now().Add(400 * time.Millisecond).Truncate(time.Millisecond).Add(123456 * time.Nanosecond)
	earliest := float64(instant.UnixMicro()) / 1000
	var wg sync.WaitGroup
	for i := range 12 {
		wg.Go(func() {
			op := write(fmt.Sprintf("contend-wait-%d", i), "", "x", 1, ifAbsent)
			if i%2 == 1 {
				op = targets.Op{Kind: targets.Sequence, Ops: []targets.Op{op}}
			}
			op.NotBefore = instant
			if r := a.do(t, "kvs", op); r.Outcome != targets.OK || r.Server.Began < earliest {
				t.Errorf("began at %f, before %f: %+v", r.Server.Began, earliest, r)
			}
		})
	}
	wg.Wait()
	read := targets.Op{Kind: targets.Read, Key: "contend-wait-0", NotBefore: time.Now().Add(-time.Hour)}
	if r := a.do(t, "kvs", read); r.Outcome != targets.OK {
		t.Errorf("an instant that has passed: %+v", r)
	}
	parts := targets.Op{Kind: targets.Sequence, Ops: []targets.Op{{Kind: targets.Read, Key: "contend-wait-0"}, {Kind: targets.Read, Key: "contend-wait-0"}}}
	second := time.Now().Add(200 * time.Millisecond).Truncate(time.Millisecond)
	parts.Ops[1].NotBefore = second
	if r := a.do(t, "kvs", parts); r.Parts[1].Server.Began < float64(second.UnixMilli()) {
		t.Errorf("the second op of a sequence began at %f, before %d", r.Parts[1].Server.Began, second.UnixMilli())
	}
}

func (a trigger) testRefused(t *testing.T) {
	envelope := func(op string) string {
		return `{"schema":"contend.op/1","create":"kvs","cas":"transact","prefix":"contend-","op":` + op + `}`
	}
	far := time.Now().Add(time.Minute).Format(time.RFC3339Nano)
	for _, c := range []struct{ body, reason string }{
		{``, "not JSON"},
		{`{"schema":`, "not JSON"},
		{"\xff\xfe", "not JSON"},
		{`null`, "the body must be an object"},
		{`[]`, "the body must be an object"},
		{`{}`, "schema must be contend.op/1"},
		{`{"schema":"contend.op/2","ping":true}`, "schema must be contend.op/1"},
		{`{"schema":"contend.op/1","ping":1}`, "create must be one of"},
		{`{"schema":"contend.op/1","create":"magic","cas":"transact","prefix":"contend-"}`, "create must be one of"},
		{`{"schema":"contend.op/1","create":"kvs","prefix":"contend-"}`, "cas must be one of"},
		{`{"schema":"contend.op/1","create":"sql","cas":"transact","prefix":"contend-"}`, "go together"},
		{`{"schema":"contend.op/1","create":"kvs","cas":"sql","prefix":"contend-"}`, "go together"},
		{`{"schema":"contend.op/1","ping":true,"create":"magic"}`, "create must be one of"},
		{`{"schema":"contend.op/1","create":"kvs","cas":"transact"}`, "prefix must begin with contend-"},
		{`{"schema":"contend.op/1","create":"kvs","cas":"transact","prefix":"","op":{"kind":"read","key":"theirs"}}`, "prefix must begin with contend-"},
		{`{"schema":"contend.op/1","create":"kvs","cas":"transact","prefix":"theirs-","op":{"kind":"read","key":"theirs-1"}}`, "prefix must begin with contend-"},
		{`{"schema":"contend.op/1","create":"kvs","cas":"transact","prefix":"contend-mine-","op":{"kind":"read","key":"contend-1"}}`, "outside the prefix"},
		{envelope(`null`), "op must be an object"},
		{envelope(`{"kind":"check","key":"contend-1"}`), "kind must be one of"},
		{envelope(`{"kind":["read"],"key":"contend-1"}`), "kind must be one of"},
		{envelope(`{"kind":"read"}`), "outside the prefix"},
		{envelope(`{"kind":"read","key":7}`), "outside the prefix"},
		{envelope(`{"kind":"delete","key":"theirs"}`), "outside the prefix"},
		{envelope(`{"kind":"read","key":"contend-1","home":"entity"}`), "home must be one of"},
		{envelope(`{"kind":"write","key":"contend-1"}`), "value must be an object"},
		{envelope(`{"kind":"write","key":"contend-1","value":{"version":1}}`), "token must be a string"},
		{envelope(`{"kind":"write","key":"contend-1","value":{"token":"x","version":"1"}}`), "version must be a whole number"},
		{envelope(`{"kind":"write","key":"contend-1","value":{"token":"x","version":1,"updated_at":"today"}}`), "must be a time in RFC 3339"},
		{envelope(`{"kind":"write","key":"contend-1","value":{"token":"x","version":1},"ttl_ms":-1}`), "ttl_ms must not be negative"},
		{envelope(`{"kind":"write","key":"contend-1","value":{"token":"x","version":1},"ttl_ms":1.5}`), "ttl_ms must be a whole number"},
		{envelope(`{"kind":"write","key":"contend-1","value":{"token":"x","version":1},"if":{"guard":"luck"}}`), "guard must be one of"},
		{envelope(`{"kind":"write","key":"contend-1","home":"version","value":{"token":"x","version":1},"if":{"guard":"version","counter":"0"}}`), "counter must be a whole number"},
		{envelope(`{"kind":"write","key":"contend-1","home":"version","value":{"token":"x","version":1},"if":{"guard":"unmodified"}}`), "updated_at must be a time"},
		{envelope(`{"kind":"write","key":"contend-1","home":"version","value":{"token":"x","version":1},"if":{"guard":"unmodified","updated_at":"2026-11-30T10:00:00.0001Z"}}`), "updated_at must be in whole milliseconds"},
		{envelope(`{"kind":"read","key":"contend-1","not_before":1787116436381}`), "not_before must be a time"},
		{envelope(`{"kind":"read","key":"contend-1","not_before":"` + far + `"}`), "more than 20 s ahead"},
		{envelope(`{"kind":"sequence"}`), "a sequence needs ops"},
		{envelope(`{"kind":"sequence","ops":[]}`), "a sequence needs ops"},
		{envelope(`{"kind":"sequence","ops":[null]}`), "op must be an object"},
		{envelope(`{"kind":"sequence","ops":[{"kind":"sequence","ops":[{"kind":"read","key":"contend-1"}]}]}`), "kind must be one of"},
		{envelope(`{"kind":"sequence","ops":[{"kind":"read","key":"contend-1","not_before":"` + far + `"}]}`), "more than 20 s ahead"},
	} {
		if status, got := a.ask(t, c.body); status != http.StatusBadRequest || !strings.Contains(got.Error, c.reason) || got.Reply != nil {
			t.Errorf("%s\nis answered with %d %+v, want 400 %q", c.body, status, got, c.reason)
		}
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, a.url, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+a.token)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if response.StatusCode != http.StatusBadRequest {
		t.Errorf("a GET is answered with %d", response.StatusCode)
	}
}

// Whoever has no token learns nothing, whatever is asked.
func (a trigger) testUnauthorized(t *testing.T) {
	for _, authorization := range []string{"", "Bearer", "Bearer " + a.token[1:], "Bearer " + a.token + "x", "Basic " + a.token, a.token, "bearer " + a.token} {
		for _, body := range []string{`{"schema":"contend.op/1","ping":true}`, `{`} {
			if status, text := a.post(t, authorization, body); status != http.StatusUnauthorized || text != "" {
				t.Errorf("%q: %d %q", authorization, status, text)
			}
		}
	}
}

// The app's own tests of what it sends and how it sorts answers.
func TestAppAlone(t *testing.T) {
	t.Parallel()
	needNode(t)
	dir := installApp(t)
	tests, err := os.ReadFile("app.test.mjs")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "app.test.mjs")
	if err := os.WriteFile(file, tests, 0o600); err != nil {
		t.Fatal(err)
	}
	if out := run(t, dir, "node", "--test", "--test-reporter=tap", file); !strings.Contains(out, "# fail 0\n") || strings.Contains(out, "# pass 0\n") {
		t.Error(out)
	}
}

// The host hands over the documented request, and takes the documented response
// only.
func TestHost(t *testing.T) {
	t.Parallel()
	needNode(t)
	dir := t.TempDir()
	for name, text := range map[string]string{"package.json": `{"type": "module"}`, "forge-shim.cjs": "", "src/index.js": `
const results = {
  '/x1/id/echo': (request) => ({ statusCode: 201, headers: { 'X-A': ['1', '2'] }, body: JSON.stringify(request) }),
  '/x1/id/bare': () => ({ statusCode: 204 }),
  '/x1/id/nothing': () => undefined,
  '/x1/id/status': () => ({ statusCode: '200' }),
  '/x1/id/body': () => ({ statusCode: 200, body: {} }),
  '/x1/id/headers': () => ({ statusCode: 200, headers: { 'X-A': '1' } }),
  '/x1/id/throws': () => { throw new Error('planted'); },
};
export const run = async (request) => results[request.path](request);
`} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.CopyFS(dir, files); err != nil {
		t.Fatal(err)
	}
	url := startHost(t, dir)
	response, err := http.Post(url+"/x1/id/echo?q=1&q=2", "text/plain", strings.NewReader("böd\x00y"))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var got struct {
		Method, Path, UserPath, Body, Marker string
		Headers, QueryParameters             map[string][]string
	}
	if err := json.NewDecoder(response.Body).Decode(&got); err != nil {
		t.Fatal(err)
	}
	if got.Method != "POST" || got.Path != "/x1/id/echo" || got.UserPath != "/echo" || got.Body != "böd\x00y" || got.Marker == "" ||
		fmt.Sprint(got.QueryParameters) != "map[q:[1 2]]" || fmt.Sprint(got.Headers["Content-Type"]) != "[text/plain]" {
		t.Errorf("%+v", got)
	}
	if response.StatusCode != http.StatusCreated || fmt.Sprint(response.Header["X-A"]) != "[1 2]" {
		t.Errorf("%d %v", response.StatusCode, response.Header)
	}
	for path, want := range map[string]int{"bare": 204, "nothing": 500, "status": 500, "body": 500, "headers": 500, "throws": 500} {
		response, err := http.Get(url + "/x1/id/" + path)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(response.Body)
		response.Body.Close()
		if response.StatusCode != want || len(body) > 0 {
			t.Errorf("%s: %d %q, want %d", path, response.StatusCode, body, want)
		}
	}
}

// The manifest passes the platform's own validation, with Forge SQL as well, and
// the check sees faults.
func TestManifest(t *testing.T) {
	t.Parallel()
	needNode(t)
	dir := t.TempDir()
	for _, name := range []string{"manifest.cjs", "package.json", "package-lock.json"} {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	npmInstall(t, dir)
	manifest, err := os.ReadFile("../app/manifest.yml")
	if err != nil {
		t.Fatal(err)
	}
	sql := strings.NewReplacer("# sql:", "sql:", "#   - key: contend-sql", "  - key: contend-sql", "#     engine:", "    engine:")
	for _, c := range []struct {
		name     string
		change   *strings.Replacer
		finding  string // "": none
		manifest string // what the changed manifest holds
	}{
		{"as it is", strings.NewReplacer(), "", "storage:app"},
		{"with Forge SQL", sql, "", "\n  sql:\n    - key: contend-sql\n      engine: mysql\n"},
		{"a bad scope", strings.NewReplacer("storage:app", "storage:everything"), "storage:everything", "storage:everything"},
		{"a wrong runtime", strings.NewReplacer("nodejs22.x", "nodejs12.x"), "runtime", "nodejs12.x"},
		{"no such function", strings.NewReplacer("function: contend-op", "function: other"), "other", "function: other"},
		{"no such handler file", strings.NewReplacer("index.run", "main.run"), "main", "main.run"},
		{"an unknown attribute type", strings.NewReplacer("type: float", "type: double"), "updatedAt", "type: double"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			changed := c.change.Replace(string(manifest))
			if !strings.Contains(changed, c.manifest) {
				t.Fatalf("the manifest is not changed:\n%s", changed)
			}
			app := t.TempDir()
			if err := os.CopyFS(app, os.DirFS("../app")); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(app, "manifest.yml"), []byte(changed), 0o600); err != nil {
				t.Fatal(err)
			}
			var findings []struct{ Level, Message string }
			out := run(t, dir, "node", "manifest.cjs", app)
			if err := json.Unmarshal([]byte(out), &findings); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			if c.finding == "" && len(findings) > 0 || c.finding != "" && !strings.Contains(fmt.Sprint(findings), c.finding) {
				t.Errorf("findings %v, want one of %q", findings, c.finding)
			}
		})
	}
}

// No file names a registry, or a place that is of one machine only.
func TestFilesAreNeutral(t *testing.T) {
	for _, folder := range []string{".", "../app", "../app/src"} {
		entries, err := os.ReadDir(folder)
		if err != nil || len(entries) == 0 {
			t.Fatal(folder, err)
		}
		for _, entry := range entries {
			if !entry.Type().IsRegular() || strings.HasSuffix(entry.Name(), ".go") {
				continue
			}
			text, err := os.ReadFile(filepath.Join(folder, entry.Name()))
			if err != nil {
				t.Fatal(err)
			}
			for _, word := range []string{"registry", "\"resolved\"", "/root/", "/home/"} {
				if bytes.Contains(text, []byte(word)) {
					t.Errorf("%s/%s has %q", folder, entry.Name(), word)
				}
			}
		}
	}
}
