// Package server puts the emulator behind HTTP. It speaks the wire protocol of
// @forge/kvs and @forge/sql, and the REST form of Forge Remotes:
//
//	POST /kvs/api/v1/…             the calls of @forge/kvs
//	POST /forge/storage/kvs/v1/…   the same calls with a bearer token
//	POST /sql/api/v1/execute       one statement of @forge/sql
//	POST /sql/api/v1/execute/ddl   the same for DDL
//	GET  /healthz                  200 once the server answers
//	POST /emulator/reset           forgets every key; 200 {"now":…}, the time of the emulator
//	POST /emulator/clock           {"forward":"15m"} lets time pass; the answer is the same
//
// The last two are for tests on this machine, and answer 403 to others.
package server

import (
	"bytes"
	"context"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"contend/targets/forge/emulator"
)

// Simulated is the header, with the value true, that marks every answer.
const Simulated = "X-Contend-Simulated"

// maxBody is the longest body that is read, in bytes. The platform's own bound
// is not known; the largest legal batch has about 6 MB.
const maxBody = 16 << 20

// Timeouts of a connection: a client that sends or takes more slowly is cut off.
const (
	headerTimeout = 10 * time.Second
	readTimeout   = 30 * time.Second
	writeTimeout  = 30 * time.Second // of the answer, once it is there
	idleTimeout   = 2 * time.Minute
	stopTimeout   = 5 * time.Second
)

// Options configures the server. The zero value has no quota, no latency, no
// database and no log, and takes every bearer token.
type Options struct {
	// Token is the one bearer token that the REST form takes; with none it takes
	// every token that is not empty. The paths of @forge/kvs need no token.
	Token string
	// Quota refuses what is over it with 429. Nil admits everything.
	Quota *emulator.Quota
	// Latency of the requests. Nil is none.
	Latency *emulator.Latency
	// Clash answers a transaction that finds one of its keys in another one under
	// way, whatever its conditions. Nil lets them happen one after the other.
	Clash *emulator.Error
	// Steerable: the listener is on loopback, so that /emulator/ may be served.
	Steerable bool
	// SQL executes the statements. Without it they answer that there is no database.
	SQL *Database
	// Log gets a line for each request and its reply; values of secrets are
	// left out.
	Log io.Writer
}

type server struct {
	store   *emulator.Store
	options Options
	flying  inFlight

	logging sync.Mutex
}

// New gives a handler that serves the store.
func New(store *emulator.Store, o Options) http.Handler {
	return &server{store: store, options: o, flying: inFlight{keys: map[name]bool{}}}
}

// Serve serves until the context ends, then lets running requests finish for
// five seconds; to be told to end is no error. It closes the listener.
func Serve(ctx context.Context, listener net.Listener, handler http.Handler) error {
	s := &http.Server{Handler: handler, ReadHeaderTimeout: headerTimeout, ReadTimeout: readTimeout, IdleTimeout: idleTimeout}
	stopped := make(chan error, 1)
	stop := context.AfterFunc(ctx, func() {
		grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
		defer cancel()
		if s.Shutdown(grace) == nil {
			stopped <- nil
			return
		}
		stopped <- s.Close() // cuts off what still runs
	})
	err := s.Serve(listener)
	if stop() {
		return err
	}
	return <-stopped
}

// reply is an answer before it is written. Without a body it has no content type.
type reply struct {
	status int
	body   []byte
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set(Simulated, "true")
	w.Header().Set("X-B3-Traceid", fmt.Sprintf("%016x%016x", rand.Uint64(), rand.Uint64()))
	conn := http.NewResponseController(w)
	_ = conn.SetWriteDeadline(time.Time{}) // of the answer before; a recorder has none
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	answer := s.answer(r, body, err)
	s.log(r, body, answer)
	if answer.body != nil {
		w.Header().Set("Content-Type", "application/json")
	}
	_ = conn.SetWriteDeadline(time.Now().Add(writeTimeout))
	w.WriteHeader(answer.status)
	_, _ = w.Write(answer.body) // a client that has left is its own affair
}

func (s *server) answer(r *http.Request, body []byte, readError error) reply {
	if r.URL.Path == "/healthz" && r.Method == http.MethodGet {
		return reply{http.StatusOK, []byte(`{"status":"ok"}`)}
	}
	do, err := s.route(r)
	switch {
	case err != nil:
		return refused(err)
	case r.Method != http.MethodPost:
		return refused(badRequest("%s takes POST, not %s", r.URL.Path, r.Method))
	case readError != nil:
		return refused(unread(readError))
	case !utf8.Valid(body):
		return refused(badRequest("Request body is not valid UTF-8"))
	}
	return do(r.Context(), body)
}

// route finds what a request is for, whatever its method.
func (s *server) route(r *http.Request) (func(context.Context, []byte) reply, error) {
	if isSQL(r.URL.Path) {
		return s.execute, nil
	}
	if strings.HasPrefix(r.URL.Path, steerPrefix) {
		return s.steering(r)
	}
	if strings.HasPrefix(r.URL.Path, restPrefix) && !s.authorized(r) {
		return nil, errUnauthorized
	}
	called, known := emulator.CallAt(callPath(r.URL.Path))
	if !known {
		return nil, badRequest("There is no path %q", r.URL.Path)
	}
	return func(ctx context.Context, body []byte) reply { return s.call(ctx, called, body) }, nil
}

// Prefixes of the paths of the key-value store.
const (
	packagePrefix = "/kvs/api/v1/"
	restPrefix    = "/forge/storage/kvs/v1/"
)

// callPath gives a path of the key-value store below its version; "" for others.
func callPath(path string) string {
	for _, prefix := range []string{packagePrefix, restPrefix} {
		if below, ok := strings.CutPrefix(path, prefix); ok {
			return below
		}
	}
	return ""
}

func isSQL(path string) bool {
	return path == "/sql/api/v1/execute" || path == "/sql/api/v1/execute/ddl"
}

func (s *server) authorized(r *http.Request) bool {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if token = strings.TrimSpace(token); token == "" || !strings.EqualFold(scheme, "Bearer") {
		return false
	}
	return s.options.Token == "" || subtle.ConstantTimeCompare([]byte(token), []byte(s.options.Token)) == 1
}

// call does one call of the store. Writes are charged before they are done, for
// the size of the request; reads after, for the size of the answer.
func (s *server) call(ctx context.Context, c emulator.Call, body []byte) reply {
	if c.Effect == emulator.Write {
		if err := s.options.Quota.Admit(emulator.Write, len(body)); err != nil {
			return refused(err)
		}
	}
	if c.Transaction && s.options.Clash != nil {
		leave, ok := s.flying.enter(body)
		if !ok {
			return refused(s.options.Clash)
		}
		defer leave()
	}
	before, after := s.draw(c.Transaction)
	if !sleep(ctx, before) {
		return refused(errInternal)
	}
	answer := encoded(c.Do(s.store, body))
	if c.Effect == emulator.Read {
		if err := s.options.Quota.Admit(emulator.Read, len(answer.body)); err != nil {
			answer = refused(err)
		}
	}
	sleep(ctx, after)
	return answer
}

func (s *server) draw(transaction bool) (before, after time.Duration) {
	if s.options.Latency == nil {
		return 0, 0
	}
	return s.options.Latency.Draw(transaction)
}

// sleep reports whether the client waited so long.
func sleep(ctx context.Context, d time.Duration) bool {
	if d == 0 {
		return true
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// encoded is 204 for no result, 200 with the result as JSON, or a refusal.
func encoded(result any, err error) reply {
	switch {
	case err != nil:
		return refused(err)
	case result == nil:
		return reply{status: http.StatusNoContent}
	}
	body, err := encode(result)
	if err != nil {
		return refused(errInternal)
	}
	return reply{http.StatusOK, body}
}

// encode is json.Marshal that leaves <, > and & as they are.
func encode(value any) ([]byte, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(value)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

func refused(err error) reply {
	refusal := errInternal
	errors.As(err, &refusal)
	body, _ := encode(refusal) // two strings
	return reply{refusal.Status, body}
}

var (
	errInternal     = &emulator.Error{Status: 500, Code: "INTERNAL_SERVER_ERROR", Message: "An internal server error has occurred"}
	errUnauthorized = &emulator.Error{Status: 401, Code: "UNAUTHORIZED", Message: "Authorization needs a valid bearer token"}
)

// badRequest is an answer that the platform's own is not known of.
func badRequest(format string, a ...any) error {
	return &emulator.Error{Status: 400, Code: "BAD_REQUEST", Message: fmt.Sprintf(format, a...)}
}

func unread(err error) error {
	if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
		return badRequest("Request body is larger than %d bytes", tooLarge.Limit)
	}
	return badRequest("Request body did not arrive whole and in time")
}

// log writes a line for a request and its reply.
func (s *server) log(r *http.Request, body []byte, answer reply) {
	if s.options.Log == nil {
		return
	}
	request, response := oneLine(body), oneLine(answer.body)
	if strings.Contains(r.URL.Path, "/secret/") {
		request, response = "(secret)", "(secret)"
	}
	unknown := unknownMembers(r.URL.Path, body)
	s.logging.Lock()
	defer s.logging.Unlock()
	fmt.Fprintf(s.options.Log, "%s %s %s %s -> %d %s\n", time.Now().UTC().Format("2006-01-02T15:04:05.000Z"),
		r.Method, r.URL.EscapedPath(), request, answer.status, response)
	for _, u := range unknown[:min(len(unknown), mostWarnings)] {
		meant := ""
		if u.Meant != "" {
			meant = fmt.Sprintf("; did you mean %q?", u.Meant)
		}
		fmt.Fprintf(s.options.Log, "warning: %s has no member %.200q: it is ignored%s\n", r.URL.EscapedPath(), u.Path, meant)
	}
	if more := len(unknown) - mostWarnings; more > 0 {
		fmt.Fprintf(s.options.Log, "warning: %s: %d more members are ignored\n", r.URL.EscapedPath(), more)
	}
}

// mostWarnings is how many unknown members of one body are named.
const mostWarnings = 10

// unknownMembers gives those of the body of a path.
func unknownMembers(path string, body []byte) []emulator.Unknown {
	c, known := emulator.CallAt(callPath(path))
	switch {
	case known:
		return c.Unknown(body)
	case isSQL(path):
		unknown, _ := emulator.Decode(body, new(statement))
		return unknown
	}
	return nil
}

// oneLine shows a body in one line of at most about 1000 bytes.
func oneLine(body []byte) string {
	const most = 1000
	rest := ""
	if len(body) > most {
		rest = fmt.Sprintf("… (%d bytes)", len(body))
		body = body[:most]
	}
	text := string(body)
	if strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == utf8.RuneError }) {
		text = strconv.Quote(text)
	}
	return text + rest
}
