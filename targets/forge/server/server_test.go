package server

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"contend/targets/forge/emulator"
)

const kvs = "/kvs/api/v1/"

// entities of the tests: a lease as the article has it, with an index by holder.
func entities() map[string]emulator.Entity {
	return map[string]emulator.Entity{"lease": {
		Attributes: map[string]emulator.Type{"holder": emulator.String, "version": emulator.Integer, "expiresAt": emulator.Float},
		Indexes:    []emulator.Index{{Name: "version", Range: "version"}},
	}}
}

func newHandler(o Options) http.Handler {
	return New(emulator.New(emulator.Options{Entities: entities()}), o)
}

// request sends a request to a handler without a network, and checks what holds
// of every answer.
func request(t *testing.T, h http.Handler, r *http.Request) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	if got := w.Header().Get(Simulated); got != "true" {
		t.Errorf("%s %s: %s: %q", r.Method, r.URL, Simulated, got)
	}
	if got := w.Header().Get("x-b3-traceid"); !regexp.MustCompile(`^[0-9a-f]{32}$`).MatchString(got) {
		t.Errorf("%s %s: trace %q", r.Method, r.URL, got)
	}
	kind, empty := w.Header().Get("Content-Type"), w.Body.Len() == 0
	if empty != (w.Code == 204) || empty != (kind == "") || !empty && (kind != "application/json" || !json.Valid(w.Body.Bytes())) {
		t.Errorf("%s %s: status %d, type %q, body %q", r.Method, r.URL, w.Code, kind, w.Body)
	}
	return w
}

// post wants an answer, byte for byte.
func post(t *testing.T, h http.Handler, path, body string, status int, want string) {
	t.Helper()
	w := request(t, h, httptest.NewRequest("POST", path, strings.NewReader(body)))
	if w.Code != status || w.Body.String() != want {
		t.Errorf("%s %.200s:\ngot  %d %s\nwant %d %s", path, body, w.Code, w.Body, status, want)
	}
}

// refuses wants a refusal with this code, whatever its message.
func refuses(t *testing.T, h http.Handler, path, body string, status int, code string) {
	t.Helper()
	w := request(t, h, httptest.NewRequest("POST", path, strings.NewReader(body)))
	var refusal emulator.Error
	if err := json.Unmarshal(w.Body.Bytes(), &refusal); err != nil || w.Code != status || refusal.Code != code || refusal.Message == "" {
		t.Errorf("%s %.200s:\ngot  %d %s\nwant %d %s", path, body, w.Code, w.Body, status, code)
	}
}

func TestEveryPath(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		now := time.Now().UnixMilli()
		all := fmt.Sprintf(`"createdAt":%d,"updatedAt":%d,"expireTime":"2000-01-01T01:00:00.000Z"`, now, now)
		h := newHandler(Options{})
		for _, c := range []struct {
			path, body string
			status     int
			want       string
		}{
			{"set", `{"key":"k","value":{"a":"<&>"}}`, 204, ``},
			{"get", `{"key":"k"}`, 200, `{"key":"k","value":{"a":"<&>"}}`},
			{"set", `{"key":"k","value":2,"options":{"keyPolicy":"OVERRIDE","returnValue":"PREVIOUS"}}`, 200, `{"key":"k","value":{"a":"<&>"}}`},
			{"set", `{"key":"new","value":2,"options":{"returnValue":"PREVIOUS"}}`, 204, ``},
			{"set", `{"key":"k","value":3,"options":{"ttl":{"value":1,"unit":"HOURS"},"returnValue":"LATEST","returnMetadataFields":["CREATED_AT","UPDATED_AT","EXPIRE_TIME"]}}`,
				200, `{"key":"k","value":3,` + all + `}`},
			{"get", `{"key":"k","options":{"metadataFields":["CREATED_AT","UPDATED_AT","EXPIRE_TIME"]}}`, 200, `{"key":"k","value":3,` + all + `}`},
			{"delete", `{"key":"k"}`, 204, ``},

			{"secret/set", `{"key":"s","value":"x"}`, 204, ``},
			{"secret/set", `{"key":"s","value":"y","options":{"returnValue":"LATEST"}}`, 200, `{"key":"s","value":"y"}`},
			{"secret/get", `{"key":"s"}`, 200, `{"key":"s","value":"y"}`},
			{"secret/delete", `{"key":"s"}`, 204, ``},
			{"secret/get", `{"key":"s"}`, 404, `{"code":"KEY_NOT_FOUND","message":"Provided key does not exist"}`},

			{"entity/set", `{"entityName":"lease","key":"e1","value":{"version":1}}`, 204, ``},
			{"entity/set", `{"entityName":"lease","key":"e1","value":{"version":2},"options":{"returnValue":"PREVIOUS"}}`, 200, `{"key":"e1","value":{"version":1}}`},
			{"entity/get", `{"entityName":"lease","key":"e1"}`, 200, `{"key":"e1","value":{"version":2}}`},
			{"entity/query", `{"entityName":"lease","indexName":"version","range":{"condition":"GREATER_THAN","values":[1]},"filters":{"and":[{"property":"holder","condition":"NOT_EXISTS","values":[true]}]},"sort":"DESC","limit":5}`,
				200, `{"data":[{"key":"e1","value":{"version":2}}]}`},
			{"entity/delete", `{"entityName":"lease","key":"e1"}`, 204, ``},
			{"entity/get", `{"entityName":"lease","key":"e1"}`, 404, `{"code":"KEY_NOT_FOUND","message":"Provided key does not exist"}`},

			{"batch/set", `[{"key":"b1","value":1},{"key":"b2","value":2,"options":{"ttl":{"value":1,"unit":"HOURS"}}}]`, 200, `{"successfulKeys":[{"key":"b1"},{"key":"b2"}],"failedKeys":[]}`},
			{"batch/get", `[{"key":"b1"},{"key":"b2","options":{"metadataFields":["EXPIRE_TIME"]}},{"key":"b3","entityName":"lease"}]`, 200,
				`{"successfulKeys":[{"key":"b1","value":1},{"key":"b2","value":2,"expireTime":"2000-01-01T01:00:00.000Z"}],"failedKeys":[{"key":"b3","entityName":"lease","error":{"code":"KEY_NOT_FOUND","message":"Provided key does not exist"}}]}`},
			{"query", `{"where":[{"property":"key","condition":"BEGINS_WITH","values":["b"]}],"limit":1}`, 200, `{"data":[{"key":"b1","value":1}],"cursor":"WyJcImIxXCIiLCJiMSJd"}`},
			{"query", `{"where":[{"property":"key","condition":"BEGINS_WITH","values":["b"]}],"limit":1,"after":"WyJcImIxXCIiLCJiMSJd"}`, 200, `{"data":[{"key":"b2","value":2}]}`},
			{"batch/delete", `[{"key":"b1"},{"key":"b2"}]`, 200, `{"successfulKeys":[{"key":"b1"},{"key":"b2"}],"failedKeys":[]}`},

			{"transaction", `{"set":[{"key":"t","value":1,"options":{"ttl":{"value":1,"unit":"DAYS"}}}],"delete":[{"key":"new"}]}`, 204, ``},
			{"transaction", `{"check":[{"key":"t"}]}`, 204, ``},
			{"get", `{"key":"new"}`, 404, `{"code":"KEY_NOT_FOUND","message":"Provided key does not exist"}`},
		} {
			post(t, h, kvs+c.path, c.body, c.status, c.want)
		}
	})
}

// Every row of the table of live answers.
func TestLiveAnswers(t *testing.T) {
	h := newHandler(Options{})
	items := func(n int) string {
		var all []string
		for i := range n {
			all = append(all, fmt.Sprintf(`{"key":"i%d","value":1}`, i))
		}
		return "[" + strings.Join(all, ",") + "]"
	}
	guarded := func(condition, value string) string {
		return `{"set":[{"key":"e","entityName":"lease","value":{"version":1},"conditions":{"and":[{"property":"version","condition":"` + condition + `","values":[` + value + `]}]}}]}`
	}
	const (
		failed   = `{"code":"CONDITIONAL_CHECK_FAILED","message":"Request failed due to conditional check specified or optimistic locking"}`
		semantic = `{"code":"UNPROCESSABLE_ENTITY","message":"Request cannot be processed due to one or more semantic errors"}`
		badType  = `{"code":"INCORRECT_PROPERTY_TYPE","message":"Data type for property \"version\" is defined as \"integer\""}`
		invalid  = `{"code":"BAD_REQUEST","message":"Provided request body is invalid"}`
	)
	post(t, h, kvs+"set", `{"key":"k","value":1}`, 204, "")
	post(t, h, kvs+"entity/set", `{"entityName":"lease","key":"e","value":{"version":7}}`, 204, "")
	for _, c := range []struct {
		path, body string
		status     int
		want       string
	}{
		{"set", `{"key":"k","value":2,"options":{"keyPolicy":"FAIL_IF_EXISTS"}}`, 409, `{"code":"KEY_CONFLICT","message":"Provided key already exists and cannot be overwritten"}`},
		{"transaction", guarded("EQUAL_TO", "8"), 400, failed},
		{"transaction", `{"check":[{"key":"missing","entityName":"lease","conditions":{"and":[{"property":"version","condition":"EQUAL_TO","values":[0]}]}}]}`, 400, failed},
		{"transaction", guarded("EQUAL_TO", `"0"`), 422, semantic},
		{"transaction", `{"set":[{"key":"e","entityName":"lease","value":{"version":2147483648}}]}`, 422, semantic},
		{"transaction", `{"set":` + items(26) + `}`, 422, semantic},
		{"transaction", `{"set":[{"key":"k","value":1}],"delete":[{"key":"k"}]}`, 400, `{"code":"KEY_DUPLICATION_ERROR","message":"Duplicate key found in request"}`},
		{"transaction", `{}`, 400, `{"code":"INVALID_TRANSACTION_REQUEST","message":"Transaction request must include one of set, check or delete."}`},
		{"entity/set", `{"entityName":"lease","key":"e","value":{"version":2147483648}}`, 400, badType},
		{"entity/set", `{"entityName":"lease","key":"e","value":{"version":"5"}}`, 400, badType},
		{"entity/get", `{"entityName":"lock","key":"e"}`, 404, `{"code":"SCHEMA_NOT_FOUND","message":"The schema provided does not exist"}`},
		{"set", `{"key":"k","value":2,"options":{"ttl":{"value":0,"unit":"SECONDS"}}}`, 400, `{"code":"INVALID_TTL","message":"TTL value must be a positive integer, received: 0"}`},
		{"batch/set", items(26), 400, `{"code":"TOO_MANY_BATCH_ENTITIES","message":"Number of entities to set was 26, but you can only set a maximum of 25 entities at a time."}`},
		{"batch/get", `[{"key":"missing"}]`, 200, `{"successfulKeys":[],"failedKeys":[{"key":"missing","error":{"code":"KEY_NOT_FOUND","message":"Provided key does not exist"}}]}`},
		{"get", `{"key":"missing"}`, 404, `{"code":"KEY_NOT_FOUND","message":"Provided key does not exist"}`},
		{"get", `{"key":"k","options":{"metadataFields":["SIZE"]}}`, 400, invalid},
	} {
		post(t, h, kvs+c.path, c.body, c.status, c.want)
	}
	refuses(t, h, kvs+"set", `{"key":"k","value":2,"options":{"keyPolicy":"FAIL_IF_EXISTS","returnValue":"LATEST"}}`, 400, "INVALID_KEY_POLICY_RETURN_VALUE_COMBINATION")
	post(t, h, kvs+"get", `{"key":"k"}`, 200, `{"key":"k","value":1}`)
	post(t, h, kvs+"entity/get", `{"entityName":"lease","key":"e"}`, 200, `{"key":"e","value":{"version":7}}`)
}

func TestServerError(t *testing.T) {
	if got := encoded(make(chan int), nil); got.status != 500 ||
		string(got.body) != `{"code":"INTERNAL_SERVER_ERROR","message":"An internal server error has occurred"}` {
		t.Errorf("got %d %s", got.status, got.body)
	}
}

func TestBadInput(t *testing.T) {
	h := newHandler(Options{})
	const invalid = `{"code":"BAD_REQUEST","message":"Provided request body is invalid"}`
	for _, body := range []string{``, `{`, `[]`, `"k"`, `{"key":1}`, `{"key":"k","value":1}{}`, `{"key":"k"}`, `null`, `{"key":"k","value":1,"options":null}`, `{"key":"k","value":1,"options":{"ttl":{"value":1}}}`,
		strings.Repeat(`[`, 100_000)} {
		post(t, h, kvs+"set", body, 400, invalid)
	}
	refuses(t, h, kvs+"set", "{\"key\":\"k\",\"value\":\"\xff\"}", 400, "BAD_REQUEST")
	refuses(t, h, kvs+"set", `{"key":"k","value":"`+strings.Repeat("x", maxBody)+`"}`, 400, "BAD_REQUEST")
	refuses(t, h, kvs+"set", `{"key":"k","value":1,"options":{"ttl":{"value":true,"unit":"DAYS"}}}`, 400, "INVALID_TTL")
	for _, path := range []string{"/", "/kvs/api/v1/", "/kvs/api/v1/set/", "/kvs/api/v2/set", "/kvs/api/v1/../v1/set", "/sql/api/v1/", "/sql/api/v1/execute/x", "/api/v1/set", "/healthz"} {
		refuses(t, h, path, `{"key":"k","value":1}`, 400, "BAD_REQUEST")
	}
	for _, method := range []string{"GET", "PUT", "DELETE", "PATCH", "OPTIONS"} {
		for _, path := range []string{"/kvs/api/v1/set", "/sql/api/v1/execute"} {
			w := request(t, h, httptest.NewRequest(method, path, strings.NewReader(`{"key":"k","value":1}`)))
			if w.Code != 400 || !strings.Contains(w.Body.String(), "takes POST, not "+method) {
				t.Errorf("%s %s: %d %s", method, path, w.Code, w.Body)
			}
		}
	}
	post(t, h, kvs+"get", `{"key":"k"}`, 404, `{"code":"KEY_NOT_FOUND","message":"Provided key does not exist"}`)
	post(t, h, kvs+"set", `{"key":"k","value":1,"unknown":{}}`, 204, "")
}

func TestHealth(t *testing.T) {
	w := request(t, newHandler(Options{}), httptest.NewRequest("GET", "/healthz", nil))
	if w.Code != 200 {
		t.Errorf("got %d", w.Code)
	}
}

func TestRESTNeedsAToken(t *testing.T) {
	ask := func(h http.Handler, authorization string) *httptest.ResponseRecorder {
		r := httptest.NewRequest("POST", "/forge/storage/kvs/v1/set", strings.NewReader(`{"key":"k","value":1}`))
		if authorization != "" {
			r.Header.Set("Authorization", authorization)
		}
		return request(t, h, r)
	}
	for _, token := range []string{"", "right"} {
		for authorization, passes := range map[string]bool{
			"": false, "Bearer": false, "Bearer ": false, "Basic right": false, "right": false,
			"Bearer right": true, "bearer right": true, "Bearer wrong": token == "",
		} {
			w := ask(newHandler(Options{Token: token}), authorization)
			if passes && w.Code != 204 || !passes && (w.Code != 401 || !strings.Contains(w.Body.String(), `"UNAUTHORIZED"`)) {
				t.Errorf("token %q, authorization %q: %d %s", token, authorization, w.Code, w.Body)
			}
			if strings.Contains(w.Body.String(), "right") {
				t.Errorf("the answer shows the token: %s", w.Body)
			}
		}
	}
	for _, path := range emulator.CallPaths() {
		w := request(t, newHandler(Options{}), httptest.NewRequest("POST", "/forge/storage/kvs/v1/"+path, strings.NewReader(`{}`)))
		if w.Code != 401 {
			t.Errorf("%s without a token: %d", path, w.Code)
		}
	}
	post(t, newHandler(Options{Token: "right"}), kvs+"set", `{"key":"k","value":1}`, 204, "")
}

func TestQuotaIsAskedForEachRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const over = `{"code":"REQUEST_THROTTLED","message":"Request exceeds the quota of the installation"}`
		h := newHandler(Options{Quota: emulator.NewQuota("REQUEST_THROTTLED")})
		many := func(n int, path, body string, status int) {
			t.Helper()
			for i := range n {
				if i%1000 == 0 {
					time.Sleep(time.Second)
				}
				w := httptest.NewRecorder()
				h.ServeHTTP(w, httptest.NewRequest("POST", path, strings.NewReader(body)))
				if w.Code != status {
					t.Fatalf("request %d of %d: %d %s", i+1, n, w.Code, w.Body)
				}
			}
		}
		large := `{"key":"k","value":"` + strings.Repeat("x", 15_000) + `"}`
		post(t, h, kvs+"set", large, 204, "") // 2 units
		many(3997, kvs+"delete", `{"key":"other"}`, 204)
		post(t, h, kvs+"set", large, 429, over)
		post(t, h, kvs+"batch/set", "["+large+"]", 429, over)
		post(t, h, kvs+"transaction", `{"set":[`+large+`]}`, 429, over)
		post(t, h, kvs+"delete", `{"key":"other"}`, 204, "")
		post(t, h, kvs+"delete", `{"key":"other"}`, 429, over)

		many(2000, kvs+"get", `{"key":"k"}`, 200) // of 2 units each
		post(t, h, kvs+"get", `{"key":"other"}`, 429, over)
		time.Sleep(time.Minute)
		many(1000, kvs+"get", `{"key":"k"}`, 200)
		post(t, h, kvs+"get", `{"key":"k"}`, 429, over)
	})
}

func TestLatencyPasses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		latency, err := emulator.NewLatency("published", 1)
		if err != nil {
			t.Fatal(err)
		}
		h := newHandler(Options{Latency: latency})
		took := func(path, body string, status int) time.Duration {
			began := time.Now()
			post(t, h, path, body, status, "")
			return time.Since(began)
		}
		if d := took(kvs+"set", `{"key":"k","value":1}`, 204); d < 37*time.Millisecond || d > 93*time.Millisecond {
			t.Errorf("a set took %s", d)
		}
		if d := took(kvs+"transaction", `{"set":[{"key":"k","value":1}]}`, 204); d < 212*time.Millisecond || d > 319*time.Millisecond {
			t.Errorf("a transaction took %s", d)
		}
	})
}

func TestClash(t *testing.T) {
	const body = `{"set":[{"key":"k","value":1}]}`
	for name, clash := range map[string]*emulator.Error{"wait": nil, "conflict": {Status: 400, Code: "CONDITIONAL_CHECK_FAILED", Message: "m"}} {
		synctest.Test(t, func(t *testing.T) {
			latency, err := emulator.NewLatency("100ms", 1)
			if err != nil {
				t.Fatal(err)
			}
			h := newHandler(Options{Latency: latency, Clash: clash})
			first := make(chan int, 1)
			go func() {
				w := httptest.NewRecorder()
				h.ServeHTTP(w, httptest.NewRequest("POST", kvs+"transaction", strings.NewReader(body)))
				first <- w.Code
			}()
			time.Sleep(50 * time.Millisecond)
			post(t, h, kvs+"transaction", `{"set":[{"key":"other","value":1}]}`, 204, "")
			if got := <-first; got != 204 {
				t.Errorf("%s: the first got %d", name, got)
			}
			go h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("POST", kvs+"transaction", strings.NewReader(body)))
			time.Sleep(50 * time.Millisecond)
			if clash == nil {
				post(t, h, kvs+"transaction", body, 204, "")
			} else {
				post(t, h, kvs+"transaction", body, 400, `{"code":"CONDITIONAL_CHECK_FAILED","message":"m"}`)
			}
			time.Sleep(time.Second)
			post(t, h, kvs+"transaction", body, 204, "")
		})
	}
}

func TestLogHasALineForEachRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		h := newHandler(Options{Log: &log, Token: "hunter2"})
		post(t, h, kvs+"set", `{"key":"k","value":1}`, 204, "")
		refuses(t, h, kvs+"get", "{\n\"key\":\x00}", 400, "BAD_REQUEST")
		post(t, h, kvs+"secret/set", `{"key":"s","value":"hunter2"}`, 204, "")
		post(t, h, kvs+"secret/get", `{"key":"s"}`, 200, `{"key":"s","value":"hunter2"}`)
		refuses(t, h, "/line%0Abreak", strings.Repeat("x", 2000), 400, "BAD_REQUEST")
		r := httptest.NewRequest("POST", "/forge/storage/kvs/v1/delete", strings.NewReader(`{"key":"k"}`))
		r.Header.Set("Authorization", "Bearer hunter2")
		request(t, h, r)
		const at = "2000-01-01T00:00:00.000Z POST "
		want := at + `/kvs/api/v1/set {"key":"k","value":1} -> 204 ` + "\n" +
			at + `/kvs/api/v1/get "{\n\"key\":\x00}" -> 400 {"code":"BAD_REQUEST","message":"Provided request body is invalid"}` + "\n" +
			at + `/kvs/api/v1/secret/set (secret) -> 204 (secret)` + "\n" +
			at + `/kvs/api/v1/secret/get (secret) -> 200 (secret)` + "\n" +
			at + `/line%0Abreak ` + strings.Repeat("x", 1000) + `… (2000 bytes) -> 400 {"code":"BAD_REQUEST","message":"There is no path \"/line\\nbreak\""}` + "\n" +
			at + `/forge/storage/kvs/v1/delete {"key":"k"} -> 204 ` + "\n"
		if got := log.String(); got != want {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
	})
}

func TestLogWarnsOfUnknownMembers(t *testing.T) {
	var log bytes.Buffer
	h := newHandler(Options{Log: &log})
	post(t, h, kvs+"set", `{"key":"k","value":{"KEY":1},"options":{"keypolicy":"FAIL_IF_EXISTS"}}`, 204, "")
	post(t, h, kvs+"secret/set", `{"key":"k","value":1,"Options":{"a":"hunter2"}}`, 204, "")
	request(t, h, httptest.NewRequest("POST", "/sql/api/v1/execute", strings.NewReader(`{"query":"SELECT 1","Params":[null],"x\ny":1}`)))
	item := `{"key":"k%d","value":1,"entityname":"lease"}`
	post(t, h, kvs+"transaction", `{"set":[`+fmt.Sprintf(item, 1)+`,`+fmt.Sprintf(item, 2)+`]}`, 204, "")
	var many []string
	for i := range 13 {
		many = append(many, fmt.Sprintf(`"unknown %d":1`, i))
	}
	post(t, h, kvs+"delete", `{"key":"k",`+strings.Join(many, ",")+`}`, 204, "")
	var got []string
	for line := range strings.Lines(log.String()) {
		if warning, ok := strings.CutPrefix(line, "warning: "); ok {
			got = append(got, strings.TrimSpace(warning))
		}
	}
	want := []string{
		`/kvs/api/v1/set has no member "options.keypolicy": it is ignored; did you mean "options.keyPolicy"?`,
		`/kvs/api/v1/secret/set has no member "Options": it is ignored; did you mean "options"?`,
		`/sql/api/v1/execute has no member "Params": it is ignored; did you mean "params"?`,
		`/sql/api/v1/execute has no member "x\ny": it is ignored`,
		`/kvs/api/v1/transaction has no member "set[].entityname": it is ignored; did you mean "set[].entityName"?`,
	}
	if len(got) != len(want)+11 || !slices.Equal(got[:len(want)], want) || got[len(got)-1] != "/kvs/api/v1/delete: 3 more members are ignored" {
		t.Errorf("got\n%s", strings.Join(got, "\n"))
	}
	if strings.Contains(log.String(), "hunter2") {
		t.Errorf("the secret is in\n%s", &log)
	}
}

// halfBody sends part of a body and then fails.
type halfBody struct{ io.Reader }

func (halfBody) Read(p []byte) (int, error) { return copy(p, `{"key"`), io.ErrUnexpectedEOF }

func TestBodyCutOff(t *testing.T) {
	w := request(t, newHandler(Options{}), httptest.NewRequest("POST", kvs+"set", halfBody{}))
	if w.Code != 400 || !strings.Contains(w.Body.String(), "did not arrive whole") {
		t.Errorf("got %d %s", w.Code, w.Body)
	}
}

func FuzzRequest(f *testing.F) {
	for _, path := range emulator.CallPaths() {
		f.Add(kvs+path, []byte(`{"key":"k","entityName":"lease","value":{"version":1},"options":{"ttl":{"value":1,"unit":"DAYS"}},"where":[{"property":"key","condition":"BEGINS_WITH","values":["k"]}],"indexName":"by-key"}`))
		f.Add(kvs+path, []byte(`[{"key":"k","value":1,"options":{"metadataFields":["CREATED_AT"]}}]`))
	}
	f.Add(kvs+"entity/query", []byte(`{"entityName":"lease","indexName":"version","range":{"condition":"BETWEEN","values":[-1,1e9]},"filters":{"or":[{"property":"holder","condition":"CONTAINS","values":["\ud800"]}]},"sort":"DESC","limit":1,"cursor":"WyIxIiwiayJd"}`))
	f.Add("/sql/api/v1/execute", []byte(`{"query":"SELECT 1","params":[1]}`))
	f.Add("/forge/storage/kvs/v1/get", []byte("\xff"))
	f.Fuzz(func(t *testing.T, path string, body []byte) {
		h := newHandler(Options{Log: io.Discard})
		for _, seed := range []string{`{"key":"k","value":1}`, `{"key":"k","entityName":"lease","value":{"version":1,"holder":"a"}}`} {
			post(t, h, kvs+"transaction", `{"set":[`+seed+`]}`, 204, "")
		}
		r := httptest.NewRequest("POST", "/", bytes.NewReader(body))
		r.URL.Path = path
		w := request(t, h, r)
		var refusal emulator.Error
		if w.Code >= 400 && (json.Unmarshal(w.Body.Bytes(), &refusal) != nil || refusal.Code == "" || refusal.Message == "") {
			t.Errorf("incomplete refusal %d %s", w.Code, w.Body)
		}
		if w.Code == 500 && !strings.HasPrefix(path, "/sql/") {
			t.Errorf("server error on %s %q", path, body)
		}
	})
}
