package targets

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"time"

	"contend/targets/forge/emulator"
)

// forgeRESTPath is where the platform has the REST form of KVS.
const forgeRESTPath = "/forge/storage/kvs/v1"

func forgeRESTDriver() Driver {
	return Driver{
		Name: "forge-rest", Schemes: []string{"forge+rest", "forge+rest+http"},
		Form:    "forge+rest://HOST[" + forgeRESTPath + "] (forge+rest+http on loopback only); the bearer token is in " + forgeToken,
		Example: "forge+rest://api.atlassian.com" + forgeRESTPath,
		Summary: "Forge KVS by its REST form, for those who run a Forge Remote; also contend sim serve.",
		Parameters: []Parameter{
			{Name: "create", Default: "kvs", Meaning: "how create-if-absent is done", Values: []Value{
				{Name: "kvs", Meaning: "set of a plain key with keyPolicy FAIL_IF_EXISTS", Losers: []string{"KEY_CONFLICT"}},
				{Name: "entity", Meaning: "set of an entity with keyPolicy FAIL_IF_EXISTS", Losers: []string{"KEY_CONFLICT"}},
				{Name: "transact", Meaning: "a transaction on condition that the entity has no version", Losers: []string{"CONDITIONAL_CHECK_FAILED"}}}},
			casParameter(),
			{Name: "http", Default: "1", Meaning: "the protocol", Values: []Value{
				{Name: "1", Meaning: "HTTP/1.1, a connection for each contender"},
				{Name: "2", Meaning: fmt.Sprintf("HTTP/2, a connection for every %d: by --release last-byte all their last bytes are one packet", mostStreams)}}},
		},
		Releases: []Release{LastByte, Gate},
		Accepted: forgeAccepted,
		Answers:  append(append([]Answer{}, forgeAnswers...), restAnswers...),
		open:     openForgeREST,
	}
}

// restAnswers are what stands between us and the store.
var restAnswers = []Answer{
	{Status: 202, Outcome: Unknown, Source: "accepted is not done"},
	{Status: 3, Outcome: Invalid, Source: "redirects are not followed"},
	{Status: 401, Outcome: Invalid, Source: "the bearer token is wrong or has run out"},
	{Status: 403, Outcome: Invalid, Source: "the token lacks the scope storage:app"},
	{Status: 405, Outcome: Invalid, Source: "RFC 9110"},
	{Status: 412, Outcome: Conflict, Source: "RFC 9110"},
	{Status: 413, Outcome: Invalid, Source: "RFC 9110"},
	{Status: 415, Outcome: Invalid, Source: "RFC 9110"},
	{Status: 424, Outcome: Invalid, Source: "Forge documentation: the app was uninstalled"},
	{Status: 408, Outcome: Unknown, Source: "the store may have been asked"},
	{Status: 5, Outcome: Unknown, Source: "the store may have been asked"},
}

// forgeREST is Forge KVS by its wire protocol.
type forgeREST struct {
	url       *url.URL
	base      *url.URL
	token     string
	create    string
	http2     bool
	simulated bool // known after Prepare
	shared    sharedHTTP2
}

func openForgeREST(u *url.URL) (Target, error) {
	base, token, err := forgeEndpoint(u, "forge+rest+")
	if err != nil {
		return nil, err
	}
	if u.Scheme == "forge+rest" {
		base.Scheme = "https"
	}
	if base.Path = strings.TrimSuffix(base.Path, "/"); base.Path == "" {
		base.Path = forgeRESTPath
	}
	d := forgeRESTDriver()
	if d.param(u, "http") == "2" && base.Scheme != "https" {
		return nil, usagef("target %q: http=2 goes over TLS only; leave it out here", Redact(u.String()))
	}
	return &forgeREST{url: u, base: base, token: token, create: d.param(u, "create"), http2: d.param(u, "http") == "2", shared: sharedHTTP2{base: base}}, nil
}

// dial connects a session; contender is as in Open.
func (f *forgeREST) dial(ctx context.Context, contender int) (line httpLine, err error) {
	switch {
	case f.http2 && contender >= 0:
		line, err = f.shared.dial(ctx, contender)
	case f.http2:
		line, err = dialHTTP2(ctx, f.base)
	default:
		line, err = dialHTTP(ctx, f.base)
	}
	if err != nil {
		return nil, unreachable(Redact(f.url.String()), "host and port", err)
	}
	return line, nil
}

func (f *forgeREST) Describe() Description {
	d := Description{Kind: "forge-rest", URL: Redact(f.url.String()), Server: "Forge KVS, REST", SentBy: "kernel-write", TTLUnit: time.Second,
		Strategies: map[string]string{"create": f.create, "cas": "transact"}, Limits: forgeRESTLimits,
		Releases:  []Release{Gate, LastByte},
		QuotaUnit: forgeQuotaUnit, WarmUp: 1, Lists: len(bothCollections), Simulated: f.simulated}
	if f.base.Scheme == "https" {
		d.Releases = []Release{LastByte, Gate}
	}
	if f.simulated {
		d.Notes = append(d.Notes, "simulated: the emulator answers, not the live platform")
	}
	return d
}

// Prepare asks once, for a key that is not there.
func (f *forgeREST) Prepare(ctx context.Context, needs Needs) error {
	if err := needs.compares(Redact(f.url.String()), forgeFinest); err != nil {
		return err
	}
	conn, err := f.dial(ctx, -1)
	if err != nil {
		return err
	}
	s := &forgeRESTSession{target: f, conn: conn}
	defer s.Close()
	a, err := s.post(ctx, "/get", map[string]string{"key": "contend-prepare"})
	if err != nil {
		return unreachable(Redact(f.url.String()), "host and port", err)
	}
	if of, ok := conn.(*http2Conn); ok {
		f.shared.learn(of)
	}
	f.simulated = isSimulated(a)
	r := s.reply("get", a, isItem)
	if r.Outcome == Missing || r.Outcome == OK {
		return nil
	}
	return f.explain(r)
}

// explain says what to do about an answer to a read that was not served.
func (f *forgeREST) explain(r Reply) error {
	where := Redact(f.url.String())
	answer := strings.Join(strings.Fields(fmt.Sprintf("status %d %s %s", r.Status, r.Code, r.Message)), " ")
	switch {
	case r.Status == 401, r.Status == 403:
		return fmt.Errorf("%s refuses the token (%d): %s must hold the token of the x-forge-oauth-system header, with the scopes "+
			"storage:app and read:app-system-token", where, r.Status, forgeToken)
	case r.Outcome == Throttled:
		return fmt.Errorf("%s: the quota of the installation is spent (%s): wait until it is there again, or lower --rate", where, answer)
	case r.Status >= 500:
		return fmt.Errorf("%s fails with %s: see the platform's status, and try again", where, answer)
	default:
		return fmt.Errorf("%s answers a read with %s: is it the address of Forge's storage", where, answer)
	}
}

func (f *forgeREST) Open(ctx context.Context, contender int) (Session, error) {
	conn, err := f.dial(ctx, contender)
	if err != nil {
		return nil, err
	}
	s := &forgeRESTSession{target: f, conn: conn}
	if r := s.Do(ctx, Op{Kind: Read, Key: "contend-warm-up"}); r.Outcome != Missing && r.Outcome != OK {
		conn.close()
		return nil, f.explain(r)
	}
	return s, nil
}

func (f *forgeREST) Close() error { return nil }

// List asks for the keys of both collections.
func (f *forgeREST) List(ctx context.Context, prefix string) (deletes []Op, requests int, err error) {
	conn, err := f.dial(ctx, -1)
	if err != nil {
		return nil, 0, err
	}
	s := &forgeRESTSession{target: f, conn: conn}
	defer s.Close()
	return listCollections(ctx, s, bothCollections, prefix)
}

type forgeRESTSession struct {
	target *forgeREST
	conn   httpLine
}

func (s *forgeRESTSession) Close() error { return s.conn.close() }

// restRequest is what the wire protocol takes for a key.
type restRequest struct {
	EntityName string          `json:"entityName,omitempty"`
	Key        string          `json:"key"`
	Value      json.RawMessage `json:"value,omitempty"`
	Options    any             `json:"options,omitempty"`
}

func (s *forgeRESTSession) Do(ctx context.Context, op Op) Reply {
	if err := ctx.Err(); err != nil {
		return lost(err, time.Time{})
	}
	if op.Kind == Raw {
		return s.raw(ctx, op)
	}
	return s.send(op, func(path string, body []byte) (httpAnswer, error) {
		return s.conn.post(ctx, path, s.target.token, body)
	})
}

// Stage holds a Write back at the last byte of its body.
func (s *forgeRESTSession) Stage(ctx context.Context, op Op, how Release, meet func()) Reply {
	if how != LastByte || op.Kind != Write {
		meet()
		return s.Do(ctx, op)
	}
	return s.send(op, func(path string, body []byte) (httpAnswer, error) {
		return s.conn.stage(ctx, path, s.target.token, body, meet)
	})
}

// send translates an op, and sorts what it is answered with when it was posted.
func (s *forgeRESTSession) send(op Op, post func(path string, body []byte) (httpAnswer, error)) Reply {
	if s.target.create != "kvs" {
		op.Collection = Versioned
	}
	path, body, refused := s.request(op)
	if refused != nil {
		return *refused
	}
	encoded, err := json.Marshal(body)
	if err != nil {
		return Reply{Outcome: Invalid, Code: "encoding", Message: err.Error()}
	}
	a, err := post(path, encoded)
	if err != nil {
		return lost(err, a.sent)
	}
	fits := isEmpty
	if op.Kind == Read {
		fits = isItem
	}
	r := s.reply(strings.TrimPrefix(path, "/"), a, fits)
	if op.Kind == Read && r.Outcome == OK {
		var item emulator.Item
		if err := json.Unmarshal(a.body, &item); err != nil {
			return unexpectedReply(path, string(a.body), a.sent)
		}
		r = readReply(item, op.Collection == Versioned)
		r.Attempts, r.Began, r.Sent = 1, a.began, a.sent
	}
	switch {
	case op.Kind == Delete && r.Outcome == Missing:
		r.Outcome = OK
	case a.early:
		r.Outcome, r.Early = Unknown, true
	}
	return r
}

// raw sends a call of the wire protocol as it is.
func (s *forgeRESTSession) raw(ctx context.Context, op Op) Reply {
	call, refused := wireCallOf(op)
	if refused != nil {
		return *refused
	}
	a, err := s.conn.post(ctx, "/"+call.path, s.target.token, call.body)
	if err != nil {
		return lost(err, a.sent)
	}
	r := s.reply(call.path, a, func(a httpAnswer) bool { return isEmpty(a) || isObject(a) })
	if r.Raw == nil && json.Valid(a.body) {
		r.Raw = a.body
	}
	return r
}

// request translates an op; refused is the reply to one that the store has no
// request for.
func (s *forgeRESTSession) request(op Op) (path string, body any, refused *Reply) {
	request := restRequest{Key: op.Key}
	entity := ""
	if op.Collection == Versioned {
		entity, request.EntityName = "/entity", entityName
	}
	switch op.Kind {
	case Read:
		request.Options = withExpiry
		return entity + "/get", request, nil
	case Delete:
		return entity + "/delete", request, nil
	case Write:
		w, err := forgeWriteOf(op, s.target.create)
		switch {
		case err != nil:
			return "", nil, &Reply{Outcome: Invalid, Code: "encoding", Message: err.Error()}
		case w.refused != nil:
			return "", nil, w.refused
		case w.transaction != nil:
			return "/transaction", w.transaction, nil
		}
		request.Value, request.Options = w.value, w.options
		return entity + "/set", request, nil
	default:
		return "", nil, &Reply{Outcome: Unsupported, Message: "the REST form has no request of kind " + string(op.Kind)}
	}
}

func (s *forgeRESTSession) post(ctx context.Context, path string, body any) (httpAnswer, error) {
	b, err := json.Marshal(body)
	if err != nil {
		return httpAnswer{}, err
	}
	return s.conn.post(ctx, path, s.target.token, b)
}

// reply sorts an answer by its code and status; fits tells whether one of success has
// the shape that the request's has.
func (s *forgeRESTSession) reply(request string, a httpAnswer, fits func(httpAnswer) bool) Reply {
	r := Reply{Status: a.status, Attempts: 1, Began: a.began, Sent: a.sent, Trace: traceOf(a)}
	if a.status >= 300 {
		var problem struct{ Code, Message *string }
		if json.Unmarshal(a.body, &problem) == nil && problem.Code != nil && problem.Message != nil && codePattern.MatchString(*problem.Code) {
			r.Code, r.Message, r.Raw = *problem.Code, sample(*problem.Message), a.body
		} else {
			r.Code, r.Message = "UNKNOWN_ERROR", sample(string(a.body))
		}
		r.RetryAfter = retryAfter(a)
	}
	if r.Outcome = outcomeOf(forgeAnswers, r.Code, a.status); r.Outcome == Unmapped {
		r.Outcome = outcomeOf(restAnswers, r.Code, a.status)
	}
	if a.status < 300 && (r.Outcome == Unmapped || r.Outcome == OK && !fits(a)) {
		shown := unexpectedReply(request, fmt.Sprintf("status %d: %s", a.status, a.body), a.sent)
		r.Outcome, r.Code, r.Message = shown.Outcome, shown.Code, shown.Message
	}
	return r
}

func traceOf(a httpAnswer) string {
	if trace := a.header.Get("X-B3-Traceid"); trace != "" {
		return sample(trace)
	}
	return sample(a.header.Get("X-Trace-Id"))
}

// byKey is the index that every entity has. An index on an attribute leaves out the
// records without it.
const byKey = "by-key"

// noEntity is what an app answers that does not declare the entity: it has no
// records there.
const noEntity = "SCHEMA_NOT_FOUND"

// list asks for a page of the keys that begin with prefix.
func (s *forgeRESTSession) list(ctx context.Context, collection Collection, prefix, cursor string) (keys []string, next string, err error) {
	const page = 100
	begins := map[string]any{"condition": "BEGINS_WITH", "values": []string{prefix}}
	path, body, from := "/entity/query", map[string]any{"limit": page, "entityName": entityName, "indexName": byKey, "range": begins}, "cursor"
	if collection == Plain {
		begins["property"] = "key"
		path, body, from = "/query", map[string]any{"limit": page, "where": []any{begins}}, "after"
	}
	if cursor != "" {
		body[from] = cursor
	}
	a, err := s.post(ctx, path, body)
	if err != nil {
		return nil, "", err
	}
	var answer struct {
		Data   *[]struct{ Key string }
		Cursor string
	}
	switch r := s.reply("query", a, isObject); {
	case a.status == 200:
	case a.status == 401 || a.status == 403:
		return nil, "", s.target.explain(r)
	case collection == Versioned && r.Code == noEntity:
		return nil, "", nil
	default:
		return nil, "", unlisted(r)
	}
	if err := json.Unmarshal(a.body, &answer); err != nil {
		return nil, "", fmt.Errorf("listing the keys: %w", err)
	}
	if answer.Data == nil {
		return nil, "", fmt.Errorf("listing the keys: the answer has no data: %s", sample(string(a.body)))
	}
	for _, item := range *answer.Data {
		keys = append(keys, item.Key)
	}
	return keys, answer.Cursor, nil
}
