package targets

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

func redisDriver() Driver {
	return Driver{
		Name: "redis", Schemes: []string{"redis", "rediss"},
		Form:    "redis://[user:password@]host[:6379][/db]",
		Example: "redis://127.0.0.1:6379/0?create=nx&cas=lua",
		Summary: "Redis or Valkey, one server of it; rediss is the same over TLS. A key holds the record as JSON.",
		Parameters: []Parameter{
			{Name: "create", Default: "nx", Meaning: "how create-if-absent is done", Values: []Value{
				{Name: "nx", Meaning: "SET with NX", Losers: []string{"nil"}},
				{Name: "watch", Meaning: "WATCH, GET, then MULTI, SET, EXEC", Losers: []string{"nil", "exists"}}}},
			{Name: "cas", Default: "lua", Meaning: "how a write on a version, or on a time of change, is done", Values: []Value{
				{Name: "lua", Meaning: "a script, by EVALSHA, that compares and sets", Losers: []string{"0"}},
				{Name: "watch", Meaning: "WATCH, GET, compare, then MULTI, SET, EXEC", Losers: []string{"nil", "stale", "touched"}}}},
		},
		Accepted: redisAccepted,
		Answers:  redisAnswers,
		open:     openRedis,
	}
}

const (
	redisMeasured = "measured on Redis 7.0.15"
	redisSource   = "error replies in Redis 7.0, server.c"
	redisCluster  = "Redis cluster specification"
)

// redisAnswers: a code is the first word of an error reply, or the name of what
// refused a write: "nil" (a nil reply to SET NX or EXEC), "0" (the script),
// "exists" and "stale" (what GET showed under WATCH), "touched" (a nil reply to EXEC,
// where a time was compared: the key was written, which need not have changed it). No error reply leaves a
// trace of the write; they differ in whether to ask again helps (Throttled) or
// the request or the server must be mended (Invalid).
var redisAnswers = []Answer{
	{Code: "nil", Outcome: Conflict, Source: redisMeasured},
	{Code: "0", Outcome: Conflict, Source: redisMeasured},
	{Code: "exists", Outcome: Conflict, Source: redisMeasured},
	{Code: "stale", Outcome: Conflict, Source: redisMeasured},
	{Code: "touched", Outcome: Aborted, Source: redisMeasured},
	{Code: "OOM", Outcome: Throttled, Source: redisMeasured + ": the memory quota, maxmemory, is spent"},
	{Code: "LOADING", Outcome: Throttled, Source: redisSource},
	{Code: "BUSY", Outcome: Throttled, Source: redisSource + ": another script runs"},
	{Code: "NOREPLICAS", Outcome: Throttled, Source: redisSource + ": min-replicas-to-write is not met"},
	{Code: "CLUSTERDOWN", Outcome: Throttled, Source: redisCluster},
	{Code: "TRYAGAIN", Outcome: Throttled, Source: redisCluster},
	{Code: "NOAUTH", Outcome: Invalid, Source: redisMeasured},
	{Code: "WRONGPASS", Outcome: Invalid, Source: redisMeasured},
	{Code: "NOPERM", Outcome: Invalid, Source: redisMeasured},
	{Code: "WRONGTYPE", Outcome: Invalid, Source: redisMeasured},
	{Code: "NOSCRIPT", Outcome: Invalid, Source: redisMeasured + ": the scripts were flushed after the session was opened"},
	{Code: "READONLY", Outcome: Invalid, Source: redisMeasured + ": a replica"},
	{Code: "MASTERDOWN", Outcome: Invalid, Source: redisMeasured + ": a replica without its master"},
	{Code: "MISCONF", Outcome: Invalid, Source: redisSource + ": writes stopped since saving to disk fails"},
	{Code: "EXECABORT", Outcome: Invalid, Source: redisSource},
	{Code: "DENIED", Outcome: Invalid, Source: "protected mode in Redis 7.0, networking.c"},
	{Code: "MOVED", Outcome: Invalid, Source: redisCluster + ": the key is at another node"},
	{Code: "ASK", Outcome: Invalid, Source: redisCluster + ": the key is at another node"},
	{Code: "CROSSSLOT", Outcome: Invalid, Source: redisCluster},
	{Code: "ERR", Outcome: Invalid, Source: redisMeasured + ": a syntax error, too many clients, and others"},
}

// casScript sets KEYS[1] to ARGV[2] where it holds a record of ours at version
// ARGV[1], or updated at the time ARGV[4] where that is not empty, for ARGV[3]
// milliseconds unless that is empty. Lua's numbers are doubles, so versions are
// compared exactly up to 2^53; a time is compared as its text, which is the same
// for the same time in UTC.
const casScript = `
local stored = redis.call('GET', KEYS[1])
if not stored then return 0 end
local decoded, record = pcall(cjson.decode, stored)
if not decoded or type(record) ~= 'table' or type(record.token) ~= 'string' then return 0 end
if ARGV[4] ~= '' then
  if record.updated_at ~= ARGV[4] then return 0 end
elseif record.version ~= tonumber(ARGV[1]) then
  return 0
end
if ARGV[3] == '' then
  redis.call('SET', KEYS[1], ARGV[2])
else
  redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
end
return 1`

type redisTarget struct {
	url         *url.URL
	options     redis.Options // of every connection; Dialer is the connection's own
	tls         *tls.Config   // nil: plain TCP
	create, cas string
	server      string
	notes       []string // that Prepare adds
	compares    bool     // the run has writes that compare and set; known after Prepare
}

func openRedis(u *url.URL) (Target, error) {
	bare := *u
	bare.RawQuery = ""
	options, err := redis.ParseURL(bare.String())
	switch {
	case u.Opaque != "" || u.Host == "":
		return nil, usagef("target %q names no host; the form is %s", Redact(u.String()), redisDriver().Form)
	case err != nil:
		return nil, usagef("target %q: %v; the form is %s", Redact(u.String()), redactError(err, u), redisDriver().Form)
	case options.DB < 0:
		return nil, usagef("target %q: database %d is not a number from 0 on", Redact(u.String()), options.DB)
	}
	t := &redisTarget{url: u, options: *options, tls: options.TLSConfig,
		create: redisDriver().param(u, "create"), cas: redisDriver().param(u, "cas")}
	t.options.TLSConfig = nil
	t.options.Protocol = 2
	t.options.MaxRetries, t.options.DialerRetries = -1, 1
	t.options.PoolSize, t.options.PipelinePoolSize = 1, -1
	t.options.ConnMaxIdleTime = -1
	t.options.ContextTimeoutEnabled = true
	t.options.ReadTimeout, t.options.WriteTimeout = -1, -1
	t.options.DisableIdentity = true
	t.options.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	return t, nil
}

func (t *redisTarget) Describe() Description {
	return Description{Kind: "redis", URL: Redact(t.url.String()), Server: t.server,
		Strategies: map[string]string{"create": t.create, "cas": t.cas}, OneCopy: true, SentBy: "kernel-write", HashTags: true, TTLUnit: time.Millisecond, Lists: 1, Notes: t.notes}
}

// Prepare asks for no more than the run needs: a user who may not ask for the server's
// name, or load a script that the run does without, goes on.
func (t *redisTarget) Prepare(ctx context.Context, needs Needs) error {
	s, err := t.connect(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	defer s.closeAtEndOf(ctx)()
	t.notes = nil
	if err := t.identify(ctx, s); err != nil {
		return err
	}
	t.compares = needs.Precision > 0 || slices.ContainsFunc(needs.Guards, func(g Guard) bool { return g == IfVersion || g == IfUnmodified })
	if t.cas != "lua" {
		return nil
	}
	refused, err := t.load(ctx, s)
	if refused != nil && err == nil {
		t.notes = append(t.notes, fmt.Sprintf("SCRIPT LOAD is refused (%s): writes on a version are left out; ?cas=watch does without scripts",
			sample(redactError(refused, t.url).Error())))
	}
	return err
}

// identify asks what the server is, which it need not tell.
func (t *redisTarget) identify(ctx context.Context, s *redisSession) error {
	info, err := s.client.Info(ctx, "server").Result()
	var refused redis.Error
	switch {
	case errors.As(err, &refused):
		t.notes = append(t.notes, fmt.Sprintf("the server's name and version are unknown: INFO is refused (%s)", sample(redactError(err, t.url).Error())))
	case err != nil:
		return t.explain(ctx, err)
	default:
		t.server = redisServer(info)
		if strings.Contains(info, "redis_mode:cluster") {
			t.notes = append(t.notes, oneNode)
		}
		if t.server == "" {
			t.notes = append(t.notes, "the server's name and version are unknown: INFO tells neither")
		}
	}
	if t.server == "" {
		t.server = "unknown, speaks as Redis"
	}
	return nil
}

// load loads the script, if the server lets us: refused says why it does not, which is
// an error where the run compares and sets.
func (t *redisTarget) load(ctx context.Context, s *redisSession) (refused redis.Error, err error) {
	s.script, err = s.client.ScriptLoad(ctx, casScript).Result()
	switch {
	case err == nil:
		return nil, nil
	case !errors.As(err, &refused):
		return nil, t.explain(ctx, err)
	case t.compares:
		return refused, fmt.Errorf("%s lets us load no script, and cas=lua needs one: choose ?cas=watch: %w", Redact(t.url.String()), redactError(err, t.url))
	}
	s.script = ""
	return refused, nil
}

func (t *redisTarget) Open(ctx context.Context, _ int) (Session, error) {
	s, err := t.connect(ctx)
	if err != nil {
		return nil, err
	}
	if t.cas == "lua" {
		defer s.closeAtEndOf(ctx)()
		if _, err := t.load(ctx, s); err != nil {
			s.Close()
			return nil, err
		}
	}
	return s, nil
}

// connectWithin bounds how long a connection may take: who dials the port of
// something else may wait for ever.
const connectWithin = 30 * time.Second

// connect dials, authenticates and makes one round trip.
func (t *redisTarget) connect(ctx context.Context) (*redisSession, error) {
	ctx, cancel := context.WithTimeout(ctx, connectWithin)
	defer cancel()
	s := &redisSession{target: t}
	conn, err := s.clock.dial(ctx, "tcp", t.options.Addr)
	if err != nil {
		return nil, t.explain(ctx, err)
	}
	if t.tls != nil {
		secured := tls.Client(conn, t.tls)
		if err := secured.HandshakeContext(ctx); err != nil {
			conn.Close()
			return nil, t.explain(ctx, err)
		}
		conn = secured
	}
	s.conn = &redisConn{Conn: conn}
	options := t.options
	options.Dialer = s.conn.dial
	s.client = redis.NewClient(&options)
	defer s.closeAtEndOf(ctx)()
	answer, err := s.client.Ping(ctx).Result()
	if err != nil {
		s.Close()
		if text, refused := s.conn.firstRefusal(); refused && ctx.Err() == nil && noAnswer(err) {
			return nil, t.refuses(text, errors.New(text))
		}
		return nil, t.explain(ctx, err)
	}
	if answer != "PONG" {
		s.Close()
		return nil, fmt.Errorf("%s answers PING with %q: is it a Redis", Redact(t.url.String()), sample(answer))
	}
	return s, nil
}

// explain says what to do about an error outside of Do.
func (t *redisTarget) explain(ctx context.Context, err error) error {
	var answer redis.Error
	name, err := Redact(t.url.String()), redactError(err, t.url)
	if !errors.As(err, &answer) {
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return unreachable(name, "host, port and scheme", err)
	}
	return t.refuses(answer.Error(), err)
}

// refuses says what to do about an error reply.
func (t *redisTarget) refuses(text string, err error) error {
	return fmt.Errorf("%s refuses us: %s: %w", Redact(t.url.String()), redisHint(text), redactError(err, t.url))
}

func (t *redisTarget) List(ctx context.Context, prefix string) (deletes []Op, requests int, err error) {
	s, err := t.connect(ctx)
	if err != nil {
		return nil, 0, err
	}
	defer s.Close()
	defer s.closeAtEndOf(ctx)()
	// SCAN may show a key twice.
	seen := make(map[string]bool)
	for cursor, more := uint64(0), true; more; more = cursor != 0 {
		var keys []string
		keys, cursor, err = s.client.Scan(ctx, cursor, globEscape(prefix)+"*", 1000).Result()
		requests++
		if err != nil {
			return nil, requests, t.explain(ctx, err)
		}
		for _, key := range keys {
			if !seen[key] {
				seen[key] = true
				deletes = append(deletes, Op{Kind: Delete, Key: key})
			}
		}
	}
	return deletes, requests, nil
}

func globEscape(text string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(text)
}

func (t *redisTarget) Close() error { return nil }

// redisConn is the one connection of a session. The client, which would dial
// another in the middle of a race, gets this one and then none.
type redisConn struct {
	net.Conn
	handedOut, closed atomic.Bool
	first             []byte // what the server said first
}

// Read keeps what came first: the client passes over a refusal that comes before it has
// asked anything, and then finds the connection closed.
func (c *redisConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if c.first == nil && n > 0 {
		c.first = bytes.Clone(b[:n])
	}
	return n, err
}

// firstRefusal gives the error reply that the server began with, if it did.
func (c *redisConn) firstRefusal() (text string, refused bool) {
	line, _, _ := strings.Cut(string(c.first), "\r\n")
	text, refused = redisRefusal(line)
	return text, refused && !strings.Contains(text, "unknown command") // the client asks in a newer way first
}

var errSessionClosed = errors.New("the session's connection is closed")

func (c *redisConn) dial(context.Context, string, string) (net.Conn, error) {
	if c.handedOut.Swap(true) {
		return nil, errSessionClosed
	}
	return c, nil
}

func (c *redisConn) Close() error {
	c.closed.Store(true)
	return c.Conn.Close()
}

// redisSession is a client with a pool of one connection: all commands of a
// session, those between WATCH and EXEC too, go over it.
type redisSession struct {
	target *redisTarget
	clock  sentClock
	conn   *redisConn
	client *redis.Client
	script string // what EVALSHA names casScript by
}

func (s *redisSession) Close() error {
	s.client.Close()
	s.conn.Close()
	return nil
}

// closeAtEndOf ends what waits on the connection when ctx is cancelled: the
// client itself heeds a deadline only. The function it gives calls that off.
func (s *redisSession) closeAtEndOf(ctx context.Context) (callOff func() bool) {
	return context.AfterFunc(ctx, func() { s.conn.Close() })
}

func (s *redisSession) Do(ctx context.Context, op Op) Reply {
	if err := ctx.Err(); err != nil {
		return lost(err, time.Time{})
	}
	if s.conn.closed.Load() {
		return lost(errSessionClosed, time.Time{})
	}
	defer s.closeAtEndOf(ctx)()
	s.clock.begin()
	r := s.do(ctx, op)
	s.clock.stamp(&r)
	return r
}

// Stage has the client encode the first command of the op before meet.
func (s *redisSession) Stage(ctx context.Context, op Op, _ Release, meet func()) Reply {
	return s.clock.stage(ctx, meet, func() Reply { return s.Do(ctx, op) })
}

func (s *redisSession) do(ctx context.Context, op Op) Reply {
	switch op.Kind {
	case Read:
		return s.read(ctx, op.Key)
	case Delete:
		return s.ask(ctx, "DEL", "del", op.Key)
	case Write:
		return s.write(ctx, op)
	case Raw:
		return s.raw(ctx, op.Raw)
	default:
		return Reply{Outcome: Unsupported, Message: fmt.Sprintf("redis has no op %q", op.Kind)}
	}
}

// raw sends one command.
func (s *redisSession) raw(ctx context.Context, command json.RawMessage) Reply {
	var words []string
	if err := json.Unmarshal(command, &words); err != nil || len(words) == 0 {
		return Reply{Outcome: Unsupported, Message: "a raw op on Redis is a list of the words of one command"}
	}
	arguments := make([]any, len(words))
	for i, word := range words {
		arguments[i] = word
	}
	answer, err := s.client.Do(ctx, arguments...).Result()
	r := s.reply(ctx, err)
	switch {
	case r.Code == "nil":
		r.Outcome = nilOutcome(words)
	case r.Outcome == OK && isSet(words) && !hasWord(words, "get") && answer != "OK":
		r = unexpectedReply("SET", fmt.Sprintf("%#v", answer), r.Sent)
	case r.Message != "":
		answer = r.Message
	}
	if r.Outcome != Unknown && r.Outcome != NotSent {
		r.Raw, _ = json.Marshal(answer) // texts, whole numbers and lists of them
	}
	return r
}

// nilOutcome is what a nil reply means: a refusal of SET, unless SET was to give what
// was there before; for other commands, that there is nothing.
func nilOutcome(words []string) Outcome {
	switch {
	case !isSet(words):
		return Missing
	case hasWord(words, "get"):
		return OK
	default:
		return Conflict
	}
}

func isSet(words []string) bool { return strings.EqualFold(words[0], "set") }

func hasWord(words []string, option string) bool {
	return slices.ContainsFunc(words[1:], func(word string) bool { return strings.EqualFold(word, option) })
}

func (s *redisSession) read(ctx context.Context, key string) Reply {
	r, stored := s.get(ctx, key)
	switch {
	case r.Code == "nil":
		return Reply{Outcome: Missing, Attempts: 1, Sent: r.Sent}
	case r.Outcome == OK:
		r.hold(stored)
	}
	return r
}

// get gives what a key holds; the reply's code is nil where it holds nothing.
func (s *redisSession) get(ctx context.Context, key string) (r Reply, stored []byte) {
	command := s.client.DoRaw(ctx, "get", key)
	if r = s.answered(ctx, "GET", command); r.Outcome == OK {
		_, stored, _ = bytes.Cut(bytes.TrimSuffix(command.Val(), []byte("\r\n")), []byte("\r\n"))
	}
	return r, stored
}

// hold takes what a key holds: a record, or the beginning of something that is not
// one of ours.
func (r *Reply) hold(stored []byte) {
	if err := json.Unmarshal(stored, &r.Record); err != nil || r.Record.Token == "" {
		r.Record, r.Stored = Record{}, sample(string(stored))
		r.Message = "the key holds something that is not a record of contend"
	}
}

func (s *redisSession) write(ctx context.Context, op Op) Reply {
	op.Value.UpdatedAt = op.Value.UpdatedAt.UTC()
	value, err := json.Marshal(op.Value)
	if err != nil {
		return Reply{Outcome: Invalid, Code: "encoding", Message: err.Error()}
	}
	set, milliseconds := []any{"set", op.Key, value}, ""
	if op.TTL > 0 {
		milliseconds = strconv.FormatInt(op.TTL.Milliseconds(), 10)
		set = append(set, "px", milliseconds)
	}
	switch {
	case op.If.Guard == Unguarded:
		return s.ask(ctx, "SET", set...)
	case op.If.Guard == IfAbsent && s.target.create == "nx":
		return s.ask(ctx, "SET NX", append(set, "nx")...)
	case op.comparesAndSets() && s.target.cas == "lua":
		unmodified := ""
		if op.If.Guard == IfUnmodified {
			unmodified = op.If.UpdatedAt.UTC().Format(time.RFC3339Nano)
		}
		if s.script == "" {
			return Reply{Outcome: Unsupported, Message: "SCRIPT LOAD is refused here; choose ?cas=watch"}
		}
		return s.ask(ctx, "EVALSHA", "evalsha", s.script, 1, op.Key, op.If.Counter, value, milliseconds, unmodified)
	case op.If.Guard == IfAbsent, op.comparesAndSets():
		return s.writeWatched(ctx, op, set)
	default:
		return Reply{Outcome: Unsupported, Message: fmt.Sprintf("redis has no guard %q", op.If.Guard)}
	}
}

func (s *redisSession) writeWatched(ctx context.Context, op Op, set []any) Reply {
	s.clock.beginSeveral()
	if r := s.ask(ctx, "WATCH", "watch", op.Key); r.Outcome != OK {
		return r
	}
	r, stored := s.get(ctx, op.Key)
	absent := r.Code == "nil"
	if absent || r.Outcome == OK {
		if !absent {
			r.hold(stored)
		}
		refused := ""
		if op.If.Guard == IfAbsent && !absent {
			refused = "exists"
		} else if op.If.Guard == IfVersion && (r.Record.Token == "" || r.Record.Version != op.If.Counter) || op.If.Guard == IfUnmodified && !op.If.unmodified(r.Record) {
			refused = "stale"
		}
		if refused == "" {
			s.clock.guardNext()
			return s.exec(ctx, op, set)
		}
		r.Code, r.Outcome, r.ByRead = refused, outcomeOf(redisAnswers, refused, 0), true
	}
	if !s.conn.closed.Load() {
		s.client.Do(ctx, "unwatch") // where this fails the client closes the connection
	}
	return r
}

// exec sends a write in a transaction, as plain commands in one packet, each of
// whose replies is read: the client's own transaction leaves replies unread when
// MULTI is refused.
func (s *redisSession) exec(ctx context.Context, op Op, set []any) Reply {
	multi, queued, exec := redis.NewRawCmd(ctx, "multi"), redis.NewRawCmd(ctx, set...), redis.NewRawCmd(ctx, "exec")
	_, err := s.client.Pipelined(ctx, func(p redis.Pipeliner) error {
		return errors.Join(p.Process(ctx, multi), p.Process(ctx, queued), p.Process(ctx, exec))
	})
	if err != nil {
		return s.lost(ctx, err)
	}
	if string(queued.Val()) == "+OK\r\n" {
		// Without the transaction it was applied at once.
		return unexpectedReply("SET after MULTI", "+OK", s.clock.at())
	}
	for _, part := range []struct {
		request string
		command *redis.RawCmd
	}{{"MULTI", multi}, {"SET after MULTI", queued}} {
		if r := s.answered(ctx, part.request, part.command); r.Outcome != OK {
			return r
		}
	}
	r := s.answered(ctx, "EXEC", exec)
	if r.Code == "nil" && op.If.Guard == IfUnmodified {
		r.Code, r.Outcome = "touched", outcomeOf(redisAnswers, "touched", 0)
	}
	return r
}

// ask sends one command, which the table of accepted answers knows as the request.
func (s *redisSession) ask(ctx context.Context, request string, words ...any) Reply {
	return s.answered(ctx, request, s.client.DoRaw(ctx, words...))
}

// answered sorts what a command was answered with, as it came.
func (s *redisSession) answered(ctx context.Context, request string, command *redis.RawCmd) Reply {
	answer, err := command.Result()
	wire := string(answer)
	text, refused := redisRefusal(wire)
	code, fits := redisFits(request, wire)
	switch {
	case err != nil:
		return s.lost(ctx, err)
	case refused:
		return s.refused(text)
	case !fits:
		return unexpectedReply(request, wire, s.clock.at())
	}
	r := Reply{Outcome: OK, Code: code, Attempts: 1, Sent: s.clock.at()}
	if code != "" {
		r.Outcome = outcomeOf(redisAnswers, code, 0)
	}
	return r
}

// refused sorts an error reply.
func (s *redisSession) refused(text string) Reply {
	r := Reply{Code: redisCode(text), Message: sample(redactError(errors.New(text), s.target.url).Error()), Attempts: 1, Sent: s.clock.at()}
	switch r.Code {
	case "MOVED", "ASK", "CROSSSLOT":
		r.Message += " (" + oneNode + ")"
	}
	r.Outcome = outcomeOf(redisAnswers, r.Code, 0)
	return r
}

// lost is the reply where the client has no answer: there was none, or it could make
// nothing of what came, which it quotes.
func (s *redisSession) lost(ctx context.Context, err error) Reply {
	s.conn.Close()
	switch {
	case ctx.Err() != nil:
		err = ctx.Err()
	case noAnswer(err), errors.Is(err, errSessionClosed), errors.Is(err, redis.ErrClosed), errors.Is(err, redis.ErrPoolTimeout):
	default:
		return unexpectedReply("the request", redactError(err, s.target.url).Error(), s.clock.at())
	}
	return lost(redactError(err, s.target.url), s.clock.at())
}

// reply sorts the answer to a raw op, by the client's error.
func (s *redisSession) reply(ctx context.Context, err error) Reply {
	var answer redis.Error
	switch {
	case err == nil:
		return Reply{Outcome: OK, Attempts: 1, Sent: s.clock.at()}
	case errors.Is(err, redis.Nil):
		return Reply{Outcome: outcomeOf(redisAnswers, "nil", 0), Code: "nil", Attempts: 1, Sent: s.clock.at()}
	case errors.As(err, &answer):
		return s.refused(answer.Error())
	default:
		return s.lost(ctx, err)
	}
}
