package targets

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// forgeToken is the variable in the environment that holds the secret shared
// with the companion app, or the bearer token of a Forge Remote.
const forgeToken = "CONTEND_FORGE_TOKEN"

// Documented limits of an installation: invocations of web triggers, and writes
// of KVS, of which every request is counted as one.
var (
	webTriggerLimits = []Limit{{Requests: 300, Per: time.Second}, {Requests: 4000, Per: time.Minute, Units: true}}
	forgeRESTLimits  = []Limit{{Requests: 1000, Per: time.Second}, {Requests: 4000, Per: time.Minute, Units: true}}
	forgeSQLLimits   = []Limit{{Requests: 150, Per: time.Second}} // statements
)

// inSQL is the strategy, and the collection in a listing, of records in Forge SQL.
const inSQL = "sql"

func forgeDriver() Driver {
	cas := casParameter()
	cas.Values = append(cas.Values, Value{Name: inSQL, Losers: []string{"0 rows"},
		Meaning: "UPDATE with the comparison in its WHERE, in Forge SQL; goes with create=sql"})
	return Driver{
		Name: "forge", Schemes: []string{"forge+https", "forge+http"},
		Form:    "forge+https://HOST/x1/ID (forge+http on loopback only); the token is in " + forgeToken,
		Example: "forge+https://example.hello.atlassian-dev.net/x1/ID?create=entity",
		Summary: "A Forge site, through the web trigger of the companion app (contend forge init).",
		Parameters: []Parameter{
			{Name: "create", Default: "kvs", Meaning: "how create-if-absent is done", Values: []Value{
				{Name: "kvs", Meaning: "set of a plain key with keyPolicy FAIL_IF_EXISTS", Losers: []string{"KEY_CONFLICT"}},
				{Name: "entity", Meaning: "set of an entity with keyPolicy FAIL_IF_EXISTS", Losers: []string{"KEY_CONFLICT"}},
				{Name: "transact", Meaning: "a transaction on condition that the entity has no version", Losers: []string{"CONDITIONAL_CHECK_FAILED"}},
				{Name: inSQL, Meaning: "INSERT IGNORE, in Forge SQL; needs sql in the app's manifest, and goes with cas=sql", Losers: []string{"0 rows"}}}},
			cas,
		},
		Accepted: []Accepted{
			{Request: "read", Answer: "200 and " + replySchema + " with the outcome ok or missing"},
			{Request: "write", Answer: "200 and " + replySchema + " with the outcome ok, conflict or aborted"},
			{Request: "delete", Answer: "200 and " + replySchema + " with the outcome ok"},
			{Request: "sequence", Answer: "200 and " + replySchema + " with such a reply for each op"},
		},
		Answers: slices.Concat(webTriggerAnswers, forgeSQLAnswers, forgeAnswers),
		open:    openForge,
	}
}

func casParameter() Parameter {
	return Parameter{Name: "cas", Default: "transact", Meaning: "how a write on a version, or on a time of change, is done", Values: []Value{
		{Name: "transact", Meaning: "a transaction with a condition on an attribute of an entity", Losers: []string{"CONDITIONAL_CHECK_FAILED"}}}}
}

// webTrigger is the code of answers that are the web trigger's own, not the
// store's.
const webTrigger = "WEB_TRIGGER"

const webTriggerFacts = "Forge web trigger documentation"

var webTriggerAnswers = []Answer{
	{Code: webTrigger, Status: 429, Outcome: Throttled, Source: webTriggerFacts},
	{Code: webTrigger, Status: 200, Outcome: Unmapped, Source: "not the companion app's answer: a login page, say"},
	{Code: webTrigger, Status: 202, Outcome: Unknown, Source: "accepted is not done"},
	{Code: webTrigger, Status: 3, Outcome: Invalid, Source: "redirects are not followed"},
	{Code: webTrigger, Status: 400, Outcome: Invalid, Source: "the companion app: not an op"},
	{Code: webTrigger, Status: 401, Outcome: Invalid, Source: "the companion app: the token is wrong"},
	{Code: webTrigger, Status: 403, Outcome: Invalid, Source: webTriggerFacts},
	{Code: webTrigger, Status: 404, Outcome: Invalid, Source: webTriggerFacts + ": no such trigger"},
	{Code: webTrigger, Status: 405, Outcome: Invalid, Source: webTriggerFacts},
	{Code: webTrigger, Status: 413, Outcome: Invalid, Source: webTriggerFacts + ": payload over 5 MB"},
	{Code: webTrigger, Status: 424, Outcome: Invalid, Source: webTriggerFacts + ": the app was uninstalled"},
	{Code: webTrigger, Status: 408, Outcome: Unknown, Source: "the function may have run"},
	{Code: webTrigger, Status: 5, Outcome: Unknown, Source: "the function may have run"},
}

const forgeSQLFacts = "Forge SQL documentation: error handling"

// forgeSQLAnswers: a number is the database's own, which the app finds in a
// SQL_EXECUTION_ERROR.
var forgeSQLAnswers = []Answer{
	{Code: "0 rows", Status: 200, Outcome: Conflict, Source: "affectedRows 0: @forge/sql 4.0.8; an article on optimistic locking in Forge SQL"},
	{Code: "9007", Outcome: Aborted, Source: "TiDB error codes: write conflict; that it is shown is an assumption"},
	{Code: "1213", Outcome: Aborted, Source: "MySQL and TiDB error codes: deadlock, rolled back"},
	{Code: "SQL_EXECUTION_ERROR", Outcome: Invalid, Source: forgeSQLFacts},
	{Code: "QUERY_TIMED_OUT", Outcome: Unknown, Source: forgeSQLFacts + ": the database goes on with it"},
	{Code: "INVALID_SQL_QUERY", Outcome: Invalid, Source: forgeSQLFacts},
	{Code: "APP_NOT_ENABLED", Outcome: Invalid, Source: "@forge/sql 4.0.8: the app has no database"},
	{Code: "out-of-range", Outcome: Invalid, Source: "the companion app: INSERT IGNORE would cut it to fit"},
	{Code: "SQL_POLICY_VIOLATION", Outcome: Invalid, Source: "the platform's code, by its name"},
}

// forge is a Forge site behind the companion app's web trigger.
type forge struct {
	url    *url.URL
	base   *url.URL // http or https
	token  string
	create string
	cas    string

	mu        sync.Mutex
	ping      forgePing // of Prepare
	clocks    clocks
	warm      []time.Duration // round trips of the warm-up, on isolates that had been there
	cold      []time.Duration // on new ones
	simulated bool
}

// forgePing is what the app tells of itself with every answer.
type forgePing struct {
	Schema    string  `json:"schema"`
	Isolate   string  `json:"isolate"`     // drawn once by each
	Received  float64 `json:"received_ms"` // start of the invocation
	Now       float64 `json:"now_ms"`      // of the answer
	Storage   Outcome `json:"storage"`     // of the read that a ping makes
	Package   string  `json:"package"`
	Node      string  `json:"node"`
	Simulated bool    `json:"simulated"`
	Cold      bool    `json:"cold"`
}

// forgeReply is the app's answer to an op.
type forgeReply struct {
	forgePing
	Reply *Reply `json:"reply"`
}

// Schemas of the web trigger.
const (
	opSchema    = "contend.op/1"
	replySchema = "contend.reply/1"
)

func openForge(u *url.URL) (Target, error) {
	base, token, err := forgeEndpoint(u, "forge+")
	if err != nil {
		return nil, err
	}
	if strings.Trim(base.Path, "/") == "" {
		return nil, usagef("target %q: the path of the web trigger is missing; `forge webtrigger create` prints the whole URL", Redact(u.String()))
	}
	create, cas := forgeDriver().param(u, "create"), forgeDriver().param(u, "cas")
	// All records of a run are in one place: what is left out follows.
	switch {
	case create == inSQL && !u.Query().Has("cas"):
		cas = inSQL
	case cas == inSQL && !u.Query().Has("create"):
		create = inSQL
	}
	if (create == inSQL) != (cas == inSQL) {
		return nil, usagef("target %q: create=%s and cas=%s put the records of a run into two places; create=sql and cas=sql go together",
			Redact(u.String()), create, cas)
	}
	return &forge{clocks: make(clocks), url: u, base: base, token: token, create: create, cas: cas}, nil
}

// forgeEndpoint gives the http or https URL behind a target's, and the token.
func forgeEndpoint(u *url.URL, prefix string) (base *url.URL, token string, err error) {
	if u.User != nil {
		return nil, "", usagef("target %q: no token or password belongs into the URL; put it into %s", Redact(u.String()), forgeToken)
	}
	if u.Host == "" {
		return nil, "", usagef("target %q: the host is missing", Redact(u.String()))
	}
	scheme := strings.TrimPrefix(u.Scheme, prefix)
	if scheme == "rest" {
		scheme = "https"
	}
	if scheme == "http" && !isLoopback(u.Hostname()) {
		return nil, "", usagef("target %q: without TLS only a loopback address is allowed; use https", Redact(u.String()))
	}
	if token = os.Getenv(forgeToken); token == "" {
		return nil, "", usagef("target %q: %s is not set; it holds the token that the app was given", Redact(u.String()), forgeToken)
	}
	return &url.URL{Scheme: scheme, Host: u.Host, Path: u.Path}, token, nil
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

func (f *forge) Describe() Description {
	f.mu.Lock()
	defer f.mu.Unlock()
	d := Description{Kind: "forge", URL: Redact(f.url.String()), Server: "Forge web trigger", SentBy: "kernel-write", TTLUnit: time.Second,
		Strategies: map[string]string{"create": f.create, "cas": f.cas}, Limits: webTriggerLimits, QuotaUnit: forgeQuotaUnit, WarmUp: pings,
		Simulated: f.simulated, Uncertainty: f.clocks.uncertainty(), Lead: f.lead(), Lists: len(collectionsOf(f.create))}
	if f.create == inSQL {
		d.Limits, d.QuotaUnit = forgeSQLLimits, 0 // stricter than the web trigger's
	}
	if f.ping.Package != "" {
		d.Server = fmt.Sprintf("Forge web trigger, %s, Node %s", f.ping.Package, f.ping.Node)
	}
	if f.simulated {
		d.Notes = append(d.Notes, "simulated: the app talks to the emulator, not to the live platform")
	}
	if len(f.warm) > 0 {
		d.Notes = append(d.Notes, fmt.Sprintf("warm-up: round trip of %s (median of %d); %s", medianOf(f.warm).Round(time.Millisecond),
			len(f.warm), coldText(f.cold)))
		d.Notes = append(d.Notes, fmt.Sprintf("all contenders of a round are given one instant, %s ahead, and wait for it inside the app; "+
			"the clocks there are told to ± %s", d.Lead.Round(time.Millisecond), d.Uncertainty.Round(10*time.Microsecond)))
	}
	return d
}

func coldText(cold []time.Duration) string {
	if len(cold) == 0 {
		return "no cold start"
	}
	return fmt.Sprintf("cold starts before it: %d, the slowest %s", len(cold), slices.Max(cold).Round(time.Millisecond))
}

func medianOf(d []time.Duration) time.Duration {
	sorted := slices.Sorted(slices.Values(d))
	return sorted[len(sorted)/2]
}

// Bounds of the lead. The app refuses an instant that is further ahead.
const (
	leastLead = 250 * time.Millisecond
	mostLead  = 10 * time.Second
)

// lead is twice the slowest warm round trip, so that a slow invocation has begun
// as well.
func (f *forge) lead() time.Duration {
	if len(f.warm) == 0 {
		return leastLead
	}
	return min(max(2*slices.Max(f.warm), leastLead), mostLead)
}

// Prepare asks the app once whether it is there and takes the token.
func (f *forge) Prepare(ctx context.Context, needs Needs) error {
	if needs.TTL && f.create == inSQL {
		return fmt.Errorf("%s: Forge SQL has no time to live of its own: choose create=kvs, create=entity or create=transact, or another target: %w",
			Redact(f.url.String()), ErrUnsupported)
	}
	if err := needs.compares(Redact(f.url.String()), forgeFinest); err != nil {
		return err
	}
	conn, err := dialHTTP(ctx, f.base)
	if err != nil {
		return unreachable(Redact(f.url.String()), "host and port", f.mask(err))
	}
	defer conn.close()
	_, err = f.pingOver(ctx, conn)
	return err
}

// pingOver asks the app about itself, with one read of a missing key behind it,
// and notes its clock and how long it took.
func (f *forge) pingOver(ctx context.Context, conn *httpConn) (forgePing, error) {
	body, err := json.Marshal(forgeEnvelope{Schema: opSchema, Ping: true, Create: f.create})
	if err != nil {
		return forgePing{}, err
	}
	call := time.Now()
	a, err := conn.post(ctx, "", f.token, body)
	took := time.Since(call)
	if err != nil {
		return forgePing{}, unreachable(Redact(f.url.String()), "host and port", f.mask(err))
	}
	var ping forgePing
	if a.status != 200 || json.Unmarshal(a.body, &ping) != nil || ping.Schema != replySchema {
		return forgePing{}, f.explain(a)
	}
	if ping.Storage == Throttled {
		return forgePing{}, fmt.Errorf("%s: the quota of the installation is spent: its storage refused a read; wait until it is there again, or lower --rate", Redact(f.url.String()))
	}
	if ping.Storage != Missing {
		hint := ""
		if f.create == inSQL {
			hint = "is sql in the app's manifest, and "
		}
		return forgePing{}, fmt.Errorf("%s cannot reach its storage: a read was answered with %q; %ssee `forge logs`", Redact(f.url.String()), ping.Storage, hint)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ping = ping
	f.simulated = f.simulated || ping.Simulated || isSimulated(a)
	f.clocks.note(ping.Isolate, call, call.Add(took), ping.Received, ping.Now)
	if ping.Cold {
		f.cold = append(f.cold, took)
	} else {
		f.warm = append(f.warm, took)
	}
	return ping, nil
}

// pings warm a session.
const pings = 2

func isSimulated(a httpAnswer) bool { return a.header.Get("X-Contend-Simulated") == "true" }

// explain says what to do about an answer that is not the app's.
func (f *forge) explain(a httpAnswer) error {
	where := Redact(f.url.String())
	switch a.status {
	case 401:
		return fmt.Errorf("%s refuses the token: %s must hold what the app was given with `forge variables set`", where, forgeToken)
	case 404:
		return fmt.Errorf("%s: there is no such web trigger (404): is the URL that of `forge webtrigger create`", where)
	case 424:
		return fmt.Errorf("%s: the app is not installed there any more (424): install it, or ask for a new URL", where)
	case 429:
		return fmt.Errorf("%s: the quota of the installation is spent (429); wait for %s", where, resetText(a))
	case 200:
		return fmt.Errorf("%s answers, but not as the companion app: deploy the one that `contend forge init` writes", where)
	default:
		return fmt.Errorf("%s answers with status %d: see `forge logs`", where, a.status)
	}
}

func resetText(a httpAnswer) string {
	if reset := a.header.Get("X-Ratelimit-Reset"); reset != "" {
		return "its reset: " + reset
	}
	return "its reset"
}

// mask keeps the address of the web trigger, which is a secret, out of errors.
func (f *forge) mask(err error) error {
	return redactError(err, f.url)
}

func (f *forge) Open(ctx context.Context, _ int) (Session, error) {
	conn, err := dialHTTP(ctx, f.base)
	if err != nil {
		return nil, unreachable(Redact(f.url.String()), "host and port", f.mask(err))
	}
	s := &forgeSession{target: f, conn: conn}
	// The first may meet a cold start; the second shows how long a warm one takes.
	for range pings {
		if _, err := f.pingOver(ctx, conn); err != nil {
			conn.close()
			return nil, err
		}
	}
	return s, nil
}

func (f *forge) Close() error { return nil }

// List asks the app for the keys of both collections, and of the table in Forge SQL where
// the strategies have it.
func (f *forge) List(ctx context.Context, prefix string) (deletes []Op, requests int, err error) {
	conn, err := dialHTTP(ctx, f.base)
	if err != nil {
		return nil, 0, unreachable(Redact(f.url.String()), "host and port", f.mask(err))
	}
	s := &forgeSession{target: f, conn: conn}
	defer s.Close()
	return listCollections(ctx, s, collectionsOf(f.create), prefix)
}

type forgeSession struct {
	target *forge
	conn   *httpConn
}

func (s *forgeSession) Close() error { return s.conn.close() }

// forgeEnvelope is what the web trigger is sent.
type forgeEnvelope struct {
	Schema string     `json:"schema"`
	Ping   bool       `json:"ping,omitempty"`
	Create string     `json:"create,omitempty"`
	Cas    string     `json:"cas,omitempty"`
	Prefix string     `json:"prefix,omitempty"`
	Op     *Op        `json:"op,omitempty"`
	List   *forgeList `json:"list,omitempty"`
}

// forgeList asks for a page of keys.
type forgeList struct {
	Collection Collection `json:"home"`
	Prefix     string     `json:"prefix"`
	Cursor     string     `json:"cursor,omitempty"`
}

func (s *forgeSession) Do(ctx context.Context, op Op) Reply {
	if err := ctx.Err(); err != nil {
		return lost(err, time.Time{})
	}
	if s.target.create != "kvs" {
		// A condition and a key policy of an entity need the record to be one; in
		// SQL there is one table for all.
		op.Collection = Versioned
	}
	if refused := op.If.finer(forgeFinest); refused != nil {
		return *refused
	}
	if !op.NotBefore.IsZero() {
		op.NotBefore = s.target.there(op.NotBefore)
	}
	body, err := json.Marshal(forgeEnvelope{Schema: opSchema, Create: s.target.create, Cas: s.target.cas, Prefix: keyPrefixOf(op.Key), Op: &op})
	if err != nil {
		return Reply{Outcome: Invalid, Code: "encoding", Message: err.Error()}
	}
	a, err := s.post(ctx, body)
	if err != nil {
		return lost(s.target.mask(err), a.sent)
	}
	return s.reply(op, a)
}

func (s *forgeSession) post(ctx context.Context, body []byte) (httpAnswer, error) {
	return s.conn.post(ctx, "", s.target.token, body)
}

// keyPrefixOf gives the app the part of a key that every key of the run has; it
// touches no other.
func keyPrefixOf(key string) string {
	if i := strings.LastIndexByte(key, '-'); i > 0 {
		return key[:i+1]
	}
	return key
}

// reply reads the app's answer; one that is not the app's is the web trigger's
// own, and is sorted by its status.
func (s *forgeSession) reply(op Op, a httpAnswer) Reply {
	var answer forgeReply
	if a.status == 200 && json.Unmarshal(a.body, &answer) == nil && answer.Schema == replySchema && answer.Reply != nil {
		r := *answer.Reply
		r.Began, r.Sent, r.Attempts = a.began, a.sent, max(r.Attempts, 1)
		if r.Outcome == Unsupported {
			r.Attempts = 0
		}
		r.accept(op)
		return r
	}
	r := Reply{Outcome: outcomeOf(webTriggerAnswers, webTrigger, a.status), Code: webTrigger, Status: a.status,
		Message: sample(string(a.body)), Attempts: 1, Began: a.began, Sent: a.sent, RetryAfter: retryAfter(a)}
	return r
}

// accept makes Unmapped what the app cannot have meant: an outcome that nobody knows,
// or that an op of this kind does not have.
func (r *Reply) accept(op Op) {
	r.Message, r.Trace = sample(r.Message), sample(r.Trace)
	if r.Code != "" && r.Code != "0 rows" && !codePattern.MatchString(r.Code) {
		r.Code, r.Message = "UNKNOWN_ERROR", sample(r.Code+" "+r.Message)
	}
	told, served := r.Outcome, servedOutcomes[op.Kind]
	switch {
	case slices.Contains(otherOutcomes, told):
	case op.Kind == Sequence && len(r.Parts) == len(op.Ops):
		for i := range r.Parts {
			r.Parts[i].accept(op.Ops[i])
			r.Outcome = r.Parts[i].Outcome // the last one's
		}
	case !slices.Contains(served, told):
		r.Outcome, r.Code, r.Message = Unmapped, unexpected, sample(fmt.Sprintf("a %s was answered with the outcome %q: %s", op.Kind, told, r.Message))
	}
}

// servedOutcomes are those of an op that the store dealt with; otherOutcomes can come
// of any.
var (
	servedOutcomes = map[Kind][]Outcome{Read: {OK, Missing}, Write: {OK, Conflict, Aborted}, Delete: {OK, Aborted}, Raw: {OK, Missing, Conflict, Aborted}}
	otherOutcomes  = []Outcome{Throttled, Invalid, Unknown, Unsupported, Unmapped}
)

// retryAfter reads the reset of a quota, in seconds; 0: none was told.
func retryAfter(a httpAnswer) time.Duration {
	for _, name := range []string{"Retry-After", "X-Ratelimit-Reset"} {
		if seconds, err := strconv.ParseFloat(a.header.Get(name), 64); err == nil && seconds > 0 && seconds < 1e6 {
			return time.Duration(seconds * float64(time.Second))
		}
	}
	return 0
}

// list asks the app for a page of the keys that begin with prefix.
func (s *forgeSession) list(ctx context.Context, collection Collection, prefix, cursor string) (keys []string, next string, err error) {
	body, err := json.Marshal(forgeEnvelope{Schema: opSchema, Prefix: prefix, List: &forgeList{collection, prefix, cursor}})
	if err != nil {
		return nil, "", err
	}
	a, err := s.post(ctx, body)
	if err != nil {
		return nil, "", s.target.mask(err)
	}
	var page struct {
		Schema string   `json:"schema"`
		Reply  *Reply   `json:"reply"`
		Keys   []string `json:"keys"`
		Cursor string   `json:"cursor"`
	}
	read := json.Unmarshal(a.body, &page) == nil && page.Schema == replySchema
	if read && page.Reply != nil {
		return nil, "", unlisted(*page.Reply)
	}
	if a.status != 200 || !read {
		if r := s.reply(Op{}, a); r.Outcome == Throttled {
			return nil, "", throttled{r.RetryAfter, s.target.explain(a)}
		}
		return nil, "", s.target.explain(a)
	}
	return page.Keys, page.Cursor, nil
}

// there translates an instant of our clock into one of the clocks there.
func (f *forge) there(t time.Time) time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return t.Add(f.clocks.offset()).Round(0).UTC()
}

// clocks compares the clocks next to the store with ours, one for each isolate of
// the app. An answer shows their clock minus ours up to what the way there and
// back took; the fastest answer of an isolate shows it best.
type clocks map[string]clockReading

// clockReading is what the fastest answer of an isolate shows.
type clockReading struct {
	way    time.Duration // there and back, without the invocation
	offset time.Duration // their clock minus ours, if both ways took the same
}

// note takes an answer into account; began and ended are of the invocation, in
// milliseconds since 1970, by its clock.
func (c clocks) note(isolate string, call, ret time.Time, began, ended float64) {
	at := func(ms float64) time.Time { return time.UnixMicro(int64(ms * 1000)) }
	there, back := at(began).Sub(call.Round(0)), at(ended).Sub(ret.Round(0))
	r := clockReading{way: there - back, offset: (there + back) / 2}
	if held, known := c[isolate]; !known || r.way < held.way {
		c[isolate] = r
	}
}

// offset is their clock minus ours: that of the fastest answer.
func (c clocks) offset() time.Duration {
	var best clockReading
	first := true
	for _, r := range c {
		if first || r.way < best.way {
			best, first = r, false
		}
	}
	return best.offset
}

// leastUncertainty is the fineness of the clocks themselves.
const leastUncertainty = time.Millisecond

// uncertainty estimates how far two of them are apart, by the spread of their
// offsets: what is the same for all ways there does not matter to it, what
// differs from way to way makes it larger.
func (c clocks) uncertainty() time.Duration {
	if len(c) == 0 {
		return 0
	}
	low, high := time.Duration(math.MaxInt64), time.Duration(math.MinInt64)
	for _, r := range c {
		low, high = min(low, r.offset), max(high, r.offset)
	}
	return max(high-low, leastUncertainty)
}
