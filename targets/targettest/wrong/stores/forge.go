package stores

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
)

// forgeFaults stand in front of "contend sim serve". A write is told apart by its
// path; before changes a request on its way in and may answer it, after changes the
// answer on its way out.
var forgeFaults = []struct {
	name, says string
	before     func(w http.ResponseWriter, r *forgeRequest) (answered bool)
	after      func(r *http.Response, body []byte) []byte
}{
	{name: "forge-login-page", says: "each write is answered with status 200 and a page to log in at", before: func(w http.ResponseWriter, r *forgeRequest) bool {
		return r.write && answer(w, http.StatusOK, "text/html", "<html><title>Log in</title></html>")
	}},
	{name: "forge-bad-gateway", says: "of the writes every seventh is answered with a page of status 502, which would steer a terminal", before: func(w http.ResponseWriter, r *forgeRequest) bool {
		return r.write && r.number%7 == 0 && answer(w, http.StatusBadGateway, "text/html", "<html><title>502 | Bad</title>\x1b[31m\n</html>")
	}},
	{name: "forge-throttled", says: "from the twenty-first write on, each is answered 429 with the advice to come back in a day", before: func(w http.ResponseWriter, r *forgeRequest) bool {
		if !r.write || r.number <= 20 {
			return false
		}
		w.Header().Set("Retry-After", "86400")
		return answer(w, http.StatusTooManyRequests, "application/json", `{"code":"RATE_LIMIT_EXCEEDED","message":"slow down"}`)
	}},
	{name: "forge-hangs-up", says: "of the writes every fifth gets no answer: the connection is closed", before: func(w http.ResponseWriter, r *forgeRequest) bool {
		if r.write && r.number%5 == 0 {
			panic(http.ErrAbortHandler)
		}
		return false
	}},
	{name: "forge-policy-ignored", says: "FAIL_IF_EXISTS is dropped, so that each create overwrites", before: func(_ http.ResponseWriter, r *forgeRequest) bool {
		r.body = bytes.ReplaceAll(r.body, []byte(`"keyPolicy":"FAIL_IF_EXISTS"`), []byte(`"unknown":true`))
		return false
	}},
	{name: "forge-conflict-as-500", says: "a conflict is answered with status 500", after: conflict(func(r *http.Response, body []byte) []byte {
		r.StatusCode, r.Status = http.StatusInternalServerError, ""
		return []byte(`{"code":"INTERNAL_SERVER_ERROR","message":"An internal server error has occurred"}`)
	})},
	{name: "forge-other-code", says: "a conflict has a code that nothing documents", after: conflict(func(_ *http.Response, body []byte) []byte {
		return bytes.ReplaceAll(body, []byte("KEY_CONFLICT"), []byte("CONFLICT"))
	})},
	{name: "forge-formula-code", says: "a conflict has a code that a spreadsheet would compute", after: conflict(func(*http.Response, []byte) []byte {
		return []byte(`{"code":"=HYPERLINK(\"http://127.0.0.1/\"&A1)","message":"m"}`)
	})},
	{name: "forge-long-code", says: "a conflict has a code of thousands of characters, among them such as would steer a terminal", after: conflict(func(*http.Response, []byte) []byte {
		return []byte(`{"code":"` + strings.Repeat(`A|\u202e\u001b[31m`, 200) + `","message":"m"}`)
	})},
	{name: "forge-hostile-trace", says: "the trace ID in the header of each answer would steer a terminal, a table and a spreadsheet", after: func(r *http.Response, body []byte) []byte {
		r.Header.Set("X-B3-Traceid", "\t|=1+1|@"+strings.Repeat("A", 3000))
		return body
	}},
}

// forgeRequest is a request with its body.
type forgeRequest struct {
	write  bool
	number int64 // of this write, from 1
	body   []byte
}

func answer(w http.ResponseWriter, status int, kind, body string) bool {
	w.Header().Set("Content-Type", kind)
	w.WriteHeader(status)
	io.WriteString(w, body)
	return true
}

// conflict applies a change to answers of status 409.
func conflict(change func(*http.Response, []byte) []byte) func(*http.Response, []byte) []byte {
	return func(r *http.Response, body []byte) []byte {
		if r.StatusCode != http.StatusConflict {
			return body
		}
		return change(r, body)
	}
}

func forgeStores() []Store {
	var all []Store
	for _, f := range forgeFaults {
		all = append(all, Store{Name: f.name, Says: f.says, Backends: "EMULATOR", URL: "forge+rest+http://%s", serve: func(l net.Listener, o Options) func() {
			proxy := &httputil.ReverseProxy{
				Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(&url.URL{Scheme: "http", Host: o.Backends[0]}) },
				ModifyResponse: func(r *http.Response) error {
					if f.after == nil {
						return nil
					}
					return replaceBody(r, f.after)
				},
			}
			var writes atomic.Int64
			server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				request := forgeRequest{write: strings.HasSuffix(r.URL.Path, "/set") || strings.HasSuffix(r.URL.Path, "/transaction")}
				if request.write {
					request.number = writes.Add(1)
				}
				request.body, _ = io.ReadAll(r.Body)
				if f.before != nil && f.before(w, &request) {
					return
				}
				r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(request.body)), int64(len(request.body))
				proxy.ServeHTTP(w, r)
			})}
			go server.Serve(l)
			return func() { server.Close() }
		}})
	}
	return all
}

func replaceBody(r *http.Response, change func(*http.Response, []byte) []byte) error {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return err
	}
	r.Body.Close()
	body = change(r, body)
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	r.Header.Del("Content-Length")
	return nil
}
