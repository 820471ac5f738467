package forge

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"contend/targets"
	"contend/targets/forge/emulator"
	"contend/targets/forge/wire"
	"contend/targets/kit"
)

// forgeRESTPath is where the platform has the REST form of KVS.
const forgeRESTPath = "/forge/storage/kvs/v1"

// RESTDriver is the kind of target that is the REST form of Forge KVS.
func RESTDriver() targets.Driver {
	return targets.Driver{
		Name: "forge-rest", Schemes: []string{"forge+rest", "forge+rest+http"},
		Form:    "forge+rest://HOST[" + forgeRESTPath + "] (forge+rest+http on loopback only); the bearer token is in " + forgeToken,
		Example: "forge+rest://api.atlassian.com" + forgeRESTPath,
		Summary: "Forge KVS by its REST form, for those who run a Forge Remote; also contend sim serve.",
		Parameters: []targets.Parameter{
			{Name: "create", Default: "kvs", Meaning: "how create-if-absent is done", Values: []targets.Value{
				{Name: "kvs", Meaning: "set of a plain key with keyPolicy FAIL_IF_EXISTS", Losers: []string{"KEY_CONFLICT"}},
				{Name: "entity", Meaning: "set of an entity with keyPolicy FAIL_IF_EXISTS", Losers: []string{"KEY_CONFLICT"}},
				{Name: "transact", Meaning: "a transaction on condition that the entity has no version", Losers: []string{"CONDITIONAL_CHECK_FAILED"}}}},
			casParameter(),
			conditionalParameter("delete", "how a delete on a token or a version is done"),
			conditionalParameter("renew", "how a time to live is renewed on a token or a version"),
			{Name: "http", Default: "1", Meaning: "the protocol", Values: []targets.Value{
				{Name: "1", Meaning: "HTTP/1.1, a connection for each contender"},
				{Name: "2", Meaning: fmt.Sprintf("HTTP/2, a connection for every %d: by --release last-byte all their last bytes are one packet", kit.MostStreams)}}},
		},
		Releases: []targets.Release{targets.LastByte, targets.Gate},
		Accepted: wire.Accepted,
		Answers:  slices.Concat(wire.Answers, restAnswers),
		Raw:      wire.RawForm,
		Secrets:  targets.Secrets{LoneUser: true},
		Make:     openForgeREST,
	}
}

// restAnswers are what stands between us and the store.
var restAnswers = targets.Answers{
	{Status: 202, Outcome: targets.Unknown, Source: "accepted is not done"},
	{Status: 3, Outcome: targets.Invalid, Source: "redirects are not followed"},
	{Status: 401, Outcome: targets.Invalid, Source: "the bearer token is wrong or has run out"},
	{Status: 403, Outcome: targets.Invalid, Source: "the token lacks the scope storage:app"},
	{Status: 405, Outcome: targets.Invalid, Source: "RFC 9110"},
	{Status: 412, Outcome: targets.Conflict, Source: "RFC 9110"},
	{Status: 413, Outcome: targets.Invalid, Source: "RFC 9110"},
	{Status: 415, Outcome: targets.Invalid, Source: "RFC 9110"},
	{Status: 424, Outcome: targets.Invalid, Source: "Forge documentation: the app was uninstalled"},
	{Status: 408, Outcome: targets.Unknown, Source: "the store may have been asked"},
	{Status: 5, Outcome: targets.Unknown, Source: "the store may have been asked"},
}

// forgeREST is Forge KVS by its wire protocol.
type forgeREST struct {
	address targets.Address
	server  kit.HTTPServer
	token   string
	create  string
	http2   bool
	shared  kit.SharedHTTP2
}

func openForgeREST(a targets.Address) (targets.Target, error) {
	server, token, err := endpoint(a, "forge+rest+")
	if err != nil {
		return nil, err
	}
	if server.Base.Path = strings.TrimSuffix(server.Base.Path, "/"); server.Base.Path == "" {
		server.Base.Path = forgeRESTPath
	}
	http2 := a.Param("http") == "2"
	if http2 && server.Base.Scheme != "https" {
		return nil, a.Usagef("http=2 goes over TLS only; leave it out here")
	}
	return &forgeREST{address: a, server: server, token: token, create: a.Param("create"), http2: http2, shared: kit.SharedHTTP2{Server: server}}, nil
}

// dial connects a session; contender is as in Open.
func (f *forgeREST) dial(ctx context.Context, contender int) (s *forgeRESTSession, err error) {
	var conn kit.HTTPConn
	switch {
	case f.http2 && contender >= 0:
		conn, err = f.shared.Dial(ctx, contender)
	case f.http2:
		conn, err = f.shared.DialOwn(ctx)
	default:
		conn, err = kit.DialHTTP(ctx, f.server)
	}
	if err != nil {
		return nil, kit.Unreachable(f.address, "host and port", err)
	}
	return &forgeRESTSession{target: f, conn: conn}, nil
}

func (f *forgeREST) Describe() targets.Description {
	d := targets.Description{Kind: "forge-rest", URL: f.address.Masked(), Server: "Forge KVS, REST", SentBy: "kernel-write", TTL: targets.TTL{Unit: time.Second},
		Strategies: f.address.Strategies(), Guards: targets.AllGuards, Finest: wire.Finest, Limits: forgeRESTLimits,
		Releases:  []targets.Release{targets.Gate, targets.LastByte},
		QuotaUnit: wire.QuotaUnit, WarmUp: 1, Lists: len(bothCollections)}
	if f.server.Base.Scheme == "https" {
		d.Releases = []targets.Release{targets.LastByte, targets.Gate}
	}
	return d
}

// Prepare asks once, for a key that is not there.
func (f *forgeREST) Prepare(ctx context.Context, _ targets.Needs) (told targets.Server, err error) {
	s, err := f.dial(ctx, -1)
	if err != nil {
		return told, err
	}
	defer s.Close()
	a, err := s.post(ctx, "/get", map[string]string{"key": "contend-prepare"})
	if err != nil {
		return told, kit.Unreachable(f.address, "host and port", err)
	}
	if told.Simulated = isSimulated(a); told.Simulated {
		told.Notes = append(told.Notes, "simulated: the emulator answers, not the live platform")
	}
	if r := s.reply("get", a, wire.IsItem); r.Outcome != targets.Missing && r.Outcome != targets.OK {
		return told, f.explain(r)
	}
	return told, nil
}

// explain says what to do about an answer to a read that was not served.
func (f *forgeREST) explain(r targets.Reply) error {
	where := f.address.Masked()
	answer := strings.Join(strings.Fields(fmt.Sprintf("status %d %s %s", r.Status, r.Code, r.Message)), " ")
	switch {
	case r.Status == 401, r.Status == 403:
		return fmt.Errorf("%s refuses the token (%d): %s must hold the token of the x-forge-oauth-system header, with the scopes "+
			"storage:app and read:app-system-token", where, r.Status, forgeToken)
	case r.Outcome == targets.Throttled:
		return fmt.Errorf("%s: the quota of the installation is spent (%s): wait until it is there again, or lower --rate", where, answer)
	case r.Status >= 500:
		return fmt.Errorf("%s fails with %s: see the platform's status, and try again", where, answer)
	default:
		return fmt.Errorf("%s answers a read with %s: is it the address of Forge's storage", where, answer)
	}
}

func (f *forgeREST) Open(ctx context.Context, contender int) (targets.Session, error) {
	s, err := f.dial(ctx, contender)
	if err != nil {
		return nil, err
	}
	if r := s.Do(ctx, targets.Op{Kind: targets.Read, Key: "contend-warm-up"}); r.Outcome != targets.Missing && r.Outcome != targets.OK {
		s.Close()
		return nil, f.explain(r)
	}
	return s, nil
}

func (f *forgeREST) Close() error { return nil }

// List asks for the keys of both collections.
func (f *forgeREST) List(ctx context.Context, prefix string) (deletes []targets.Op, requests int, err error) {
	s, err := f.dial(ctx, -1)
	if err != nil {
		return nil, 0, err
	}
	defer s.Close()
	return listCollections(ctx, s, bothCollections, prefix)
}

type forgeRESTSession struct {
	target *forgeREST
	conn   kit.HTTPConn
}

func (s *forgeRESTSession) Close() error { return s.conn.Close() }

// restRequest is what the wire protocol takes for a key.
type restRequest struct {
	EntityName string          `json:"entityName,omitempty"`
	Key        string          `json:"key"`
	Value      json.RawMessage `json:"value,omitempty"`
	Options    any             `json:"options,omitempty"`
}

func (s *forgeRESTSession) Do(ctx context.Context, op targets.Op) targets.Reply {
	if err := ctx.Err(); err != nil {
		return kit.Lost(err, time.Time{})
	}
	if op.Kind == targets.Raw {
		return s.raw(ctx, op)
	}
	return s.send(op, func(path string, body []byte) (kit.Answer, error) {
		return s.conn.Send(ctx, kit.JSON(path, s.target.token, body))
	})
}

// Stage holds a Write back at the last byte of its body.
func (s *forgeRESTSession) Stage(ctx context.Context, op targets.Op, how targets.Release, meet func()) targets.Reply {
	if how != targets.LastByte || op.Kind != targets.Write {
		meet()
		return s.Do(ctx, op)
	}
	return s.send(op, func(path string, body []byte) (kit.Answer, error) {
		return s.conn.Stage(ctx, kit.JSON(path, s.target.token, body), meet)
	})
}

// send translates an op, and sorts what it is answered with when it was posted.
func (s *forgeRESTSession) send(op targets.Op, post func(path string, body []byte) (kit.Answer, error)) targets.Reply {
	if s.target.create != "kvs" {
		op.Collection = targets.Versioned
	}
	path, body, refused := s.request(op)
	if refused != nil {
		return *refused
	}
	encoded, err := json.Marshal(body)
	if err != nil {
		return kit.NotEncoded(err)
	}
	a, err := post(path, encoded)
	if err != nil {
		return a.Lost(err)
	}
	fits := wire.IsEmpty
	if op.Kind == targets.Read {
		fits = wire.IsItem
	}
	r := s.reply(strings.TrimPrefix(path, "/"), a, fits)
	if op.Kind == targets.Read && r.Outcome == targets.OK {
		var item emulator.Item
		if err := json.Unmarshal(a.Body, &item); err != nil {
			return kit.Unexpected(path, string(a.Body))
		}
		r = wire.ReadReply(item, op.Collection == targets.Versioned)
		a.Stamp(&r)
	}
	switch {
	case op.Kind == targets.Delete && r.Outcome == targets.Missing:
		r.Outcome = targets.OK
	case a.Early:
		r.Outcome, r.Early = targets.Unknown, true
	}
	return r
}

// raw sends a call of the wire protocol as it is.
func (s *forgeRESTSession) raw(ctx context.Context, op targets.Op) targets.Reply {
	call, refused := wire.CallOf(op)
	if refused != nil {
		return *refused
	}
	a, err := s.conn.Send(ctx, kit.JSON("/"+call.Path, s.target.token, call.Body))
	if err != nil {
		return a.Lost(err)
	}
	r := s.reply(call.Path, a, func(a kit.Answer) bool { return wire.IsEmpty(a) || wire.IsObject(a) })
	if r.Raw == nil && json.Valid(a.Body) {
		r.Raw = a.Body
	}
	return r
}

// request translates an op; refused is the reply to one that the store has no
// request for.
func (s *forgeRESTSession) request(op targets.Op) (path string, body any, refused *targets.Reply) {
	request := restRequest{Key: op.Key}
	entity := ""
	if op.Collection == targets.Versioned {
		entity, request.EntityName = "/entity", wire.EntityName
	}
	switch {
	case op.Kind == targets.Read:
		request.Options = wire.WithExpiry
		return entity + "/get", request, nil
	case op.Kind == targets.Delete && op.If.Guard == targets.Unguarded:
		return entity + "/delete", request, nil
	case op.Kind == targets.Write, op.Kind == targets.Delete, op.Kind == targets.Renew:
		w, err := wire.WriteOf(op, s.target.create)
		switch {
		case err != nil:
			return "", nil, new(kit.NotEncoded(err))
		case w.Refused != nil:
			return "", nil, w.Refused
		case w.Transaction != nil:
			return "/transaction", w.Transaction, nil
		}
		request.Value, request.Options = w.Value, w.Options
		return entity + "/set", request, nil
	default:
		return "", nil, &targets.Reply{Outcome: targets.Unsupported, Message: "the REST form has no request of kind " + string(op.Kind)}
	}
}

func (s *forgeRESTSession) post(ctx context.Context, path string, body any) (kit.Answer, error) {
	b, err := json.Marshal(body)
	if err != nil {
		return kit.Answer{}, err
	}
	return s.conn.Send(ctx, kit.JSON(path, s.target.token, b))
}

// reply sorts an answer by its code and status; fits tells whether one of success has
// the shape that the request's has.
func (s *forgeRESTSession) reply(request string, a kit.Answer, fits func(kit.Answer) bool) targets.Reply {
	r := targets.Reply{Status: a.Status, Trace: traceOf(a)}
	a.Stamp(&r)
	if a.Status >= 300 {
		var problem struct{ Code, Message *string }
		if json.Unmarshal(a.Body, &problem) == nil && problem.Code != nil && problem.Message != nil && wire.CodePattern.MatchString(*problem.Code) {
			r.Code, r.Message, r.Raw = *problem.Code, kit.Sample(*problem.Message), a.Body
		} else {
			r.Code, r.Message = "UNKNOWN_ERROR", kit.Sample(string(a.Body))
		}
		r.RetryAfter = retryAfter(a)
	}
	if r.Outcome = wire.Answers.Outcome(r.Code, a.Status); r.Outcome == targets.Unmapped {
		r.Outcome = restAnswers.Outcome(r.Code, a.Status)
	}
	if a.Status < 300 && (r.Outcome == targets.Unmapped || r.Outcome == targets.OK && !fits(a)) {
		shown := kit.Unexpected(request, fmt.Sprintf("status %d: %s", a.Status, a.Body))
		r.Outcome, r.Code, r.Message = shown.Outcome, shown.Code, shown.Message
	}
	return r
}

func traceOf(a kit.Answer) string {
	if trace := a.Header.Get("X-B3-Traceid"); trace != "" {
		return kit.Sample(trace)
	}
	return kit.Sample(a.Header.Get("X-Trace-Id"))
}

// byKey is the index that every entity has. An index on an attribute leaves out the
// records without it.
const byKey = "by-key"

// noEntity is what an app answers that does not declare the entity: it has no
// records there.
const noEntity = "SCHEMA_NOT_FOUND"

// list asks for a page of the keys that begin with prefix.
func (s *forgeRESTSession) list(ctx context.Context, collection targets.Collection, prefix, cursor string) (keys []string, next string, err error) {
	const page = 100
	begins := map[string]any{"condition": "BEGINS_WITH", "values": []string{prefix}}
	path, body, from := "/entity/query", map[string]any{"limit": page, "entityName": wire.EntityName, "indexName": byKey, "range": begins}, "cursor"
	if collection == targets.Plain {
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
	switch r := s.reply("query", a, wire.IsObject); {
	case a.Status == 200:
	case a.Status == 401 || a.Status == 403:
		return nil, "", s.target.explain(r)
	case collection == targets.Versioned && r.Code == noEntity:
		return nil, "", nil
	default:
		return nil, "", unlisted(r)
	}
	if err := json.Unmarshal(a.Body, &answer); err != nil {
		return nil, "", fmt.Errorf("listing the keys: %w", err)
	}
	if answer.Data == nil {
		return nil, "", fmt.Errorf("listing the keys: the answer has no data: %s", kit.Sample(string(a.Body)))
	}
	for _, item := range *answer.Data {
		keys = append(keys, item.Key)
	}
	return keys, answer.Cursor, nil
}
