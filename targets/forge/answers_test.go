package forge

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"contend/targets"
	"contend/targets/kit"
)

// rest is a REST form of Forge KVS that answers one path, and a get of what contend asks
// first, as the test says; all others as one that holds nothing.
func rest(t *testing.T, path string, status int, body string) *forgeREST {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasSuffix(r.URL.Path, path):
			w.WriteHeader(status)
			fmt.Fprint(w, body)
		case strings.HasSuffix(r.URL.Path, "/get"):
			w.WriteHeader(404)
			fmt.Fprint(w, `{"code":"KEY_NOT_FOUND","message":"Key not found"}`)
		default:
			w.WriteHeader(204)
		}
	}))
	t.Cleanup(server.Close)
	t.Setenv(forgeToken, "secret")
	target, err := opened(RESTDriver(), "forge+rest+"+server.URL)
	if err != nil {
		t.Fatal(err)
	}
	return target.(*forgeREST)
}

// A success that has another shape than the request's is targets.Unmapped, with a sample; so is an
// error that is none of the platform's.
func TestForgeRESTAcceptsNothingElse(t *testing.T) {
	const page = "<html>\r\n\x1b[31mLog in</html>"
	set, read := targets.Op{Kind: targets.Write, Key: "k", If: targets.Condition{Guard: targets.IfAbsent}}, targets.Op{Kind: targets.Read, Key: "k", Collection: targets.Versioned}
	remove := targets.Op{Kind: targets.Delete, Key: "k"}
	transact := targets.Op{Kind: targets.Write, Key: "k", Collection: targets.Versioned, If: targets.Condition{Guard: targets.IfVersion}}
	rawSet := targets.Op{Kind: targets.Raw, Key: "k", Raw: []byte(`{"path":"/api/v1/batch/set","body":[]}`)}
	for _, c := range []struct {
		op     targets.Op
		path   string
		status int
		body   string
		want   targets.Outcome
		code   string
	}{
		{set, "/set", 200, page, targets.Unmapped, kit.UnexpectedCode},
		{set, "/set", 200, "", targets.Unmapped, kit.UnexpectedCode},
		{set, "/set", 200, `{"key":"k","value":1}`, targets.Unmapped, kit.UnexpectedCode},
		{set, "/set", 201, `{}`, targets.Unmapped, kit.UnexpectedCode},
		{set, "/set", 203, page, targets.Unmapped, kit.UnexpectedCode},
		{set, "/set", 202, "", targets.Unknown, ""},
		{set, "/set", 409, page, targets.Unmapped, "UNKNOWN_ERROR"},
		{set, "/set", 409, `{"code":"KEY_CONFLICT"}`, targets.Unmapped, "UNKNOWN_ERROR"},
		{set, "/set", 409, `{"code":"A|` + strings.Repeat("x", 4000) + `","message":"m"}`, targets.Unmapped, "UNKNOWN_ERROR"},
		{set, "/set", 409, `{"code":"KEY_CONFLICT","message":"Provided key already exists"}`, targets.Conflict, "KEY_CONFLICT"},
		{set, "/set", 204, "", targets.OK, ""},
		{remove, "/delete", 200, page, targets.Unmapped, kit.UnexpectedCode},
		{remove, "/delete", 204, "", targets.OK, ""},
		{transact, "/transaction", 200, `{}`, targets.Unmapped, kit.UnexpectedCode},
		{transact, "/transaction", 204, "", targets.OK, ""},
		{read, "/entity/get", 200, page, targets.Unmapped, kit.UnexpectedCode},
		{read, "/entity/get", 200, `{}`, targets.Unmapped, kit.UnexpectedCode},
		{read, "/entity/get", 200, `null`, targets.Unmapped, kit.UnexpectedCode},
		{read, "/entity/get", 200, `{"key":"k"}`, targets.Unmapped, kit.UnexpectedCode},
		{read, "/entity/get", 204, "", targets.Unmapped, kit.UnexpectedCode},
		{read, "/entity/get", 200, `{"key":"k","value":{"token":"a","version":1}}`, targets.OK, ""},
		{rawSet, "/batch/set", 200, page, targets.Unmapped, kit.UnexpectedCode},
		{rawSet, "/batch/set", 200, `{"successfulKeys":[]}`, targets.OK, ""},
	} {
		s, err := rest(t, c.path, c.status, c.body).Open(t.Context(), 0)
		if err != nil {
			t.Fatal(err)
		}
		r := s.Do(t.Context(), c.op)
		if r.Outcome != c.want || r.Code != c.code || r.Attempts != 1 || r.Sent.IsZero() {
			t.Errorf("%s %d %q: got %+v, want %s %q", c.path, c.status, c.body, r, c.want, c.code)
		}
		if r.Outcome == targets.Unmapped && c.body != "" && r.Message == "" || len(r.Message) > 210 || strings.ContainsAny(r.Message, "\x1b\n\r") {
			t.Errorf("%s %d %q: the sample is %q", c.path, c.status, c.body, r.Message)
		}
		s.Close()
	}
}

// What does not serve a read is told by its cause.
func TestForgeRESTRefusalsAreToldByTheirCause(t *testing.T) {
	for status, want := range map[int]string{200: "is it the address of Forge's storage", 401: "refuses the token", 429: "quota of the installation is spent",
		500: "try again", 404: "is it the address"} {
		target := rest(t, "/get", status, "<html>Log in</html>")
		_, prepared := target.Prepare(t.Context(), targets.Needs{})
		for _, err := range []error{prepared, func() error { _, err := target.Open(t.Context(), 0); return err }()} {
			if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "running") {
				t.Errorf("%d: %v, want %q", status, err, want)
			}
		}
	}
	nobody := rest(t, "/get", 200, "")
	nobody.server.Base.Host = "127.0.0.1:1"
	if _, err := nobody.Prepare(t.Context(), targets.Needs{}); err == nil || !strings.Contains(err.Error(), "is the server running") {
		t.Error(err)
	}
	if _, _, err := listing(t, rest(t, "/query", 200, "<html>")); err == nil {
		t.Error("a page is a listing")
	}
	if _, _, err := listing(t, rest(t, "/query", 200, "{}")); err == nil || !strings.Contains(err.Error(), "no data") {
		t.Errorf("an object without data is a listing: %v", err)
	}
}

func listing(t *testing.T, target *forgeREST) (keys []string, next string, err error) {
	t.Helper()
	s, err := target.Open(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	return s.(lister).list(t.Context(), targets.Plain, "contend-", "")
}

// Replies inside a sequence are held to what their ops can have.
func TestWebTriggerSequences(t *testing.T) {
	sequence := targets.Op{Kind: targets.Sequence, Key: "contend-01TEST-r1", Ops: []targets.Op{{Kind: targets.Read}, {Kind: targets.Write}}}
	for parts, want := range map[string][]targets.Outcome{
		`[{"outcome":"missing"},{"outcome":"ok"}]`:       {targets.OK, targets.Missing, targets.OK},
		`[{"outcome":"missing"},{"outcome":"missing"}]`:  {targets.Unmapped, targets.Missing, targets.Unmapped},
		`[{"outcome":"conflict"},{"outcome":"aborted"}]`: {targets.Aborted, targets.Unmapped, targets.Aborted},
		`[{"outcome":"ok"}]`:                             {targets.Unmapped, targets.OK},
	} {
		f, _ := trigger(t, func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprintf(w, `{"schema":"contend.reply/1","reply":{"outcome":"ok","parts":%s}}`, parts)
		})
		r := forgeDo(t, f, sequence)
		got := []targets.Outcome{r.Outcome}
		for _, part := range r.Parts {
			got = append(got, part.Outcome)
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: got %v, want %v", parts, got, want)
		}
	}
}
