// Package forge is a Forge site as a target: through the web trigger of the companion app,
// or by the REST form of its key-value store.
package forge

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"contend/targets"
	"contend/targets/forge/wire"
	"contend/targets/kit"
)

// forgeToken is the variable in the environment that holds the secret shared
// with the companion app, or the bearer token of a Forge Remote.
const forgeToken = "CONTEND_FORGE_TOKEN"

// Documented limits of an installation: invocations of web triggers, and writes
// of KVS, of which every request is counted as one.
var (
	webTriggerLimits = []targets.Limit{{Requests: 300, Per: time.Second}, {Requests: 4000, Per: time.Minute, Units: true}}
	forgeRESTLimits  = []targets.Limit{{Requests: 1000, Per: time.Second}, {Requests: 4000, Per: time.Minute, Units: true}}
	forgeSQLLimits   = []targets.Limit{{Requests: 150, Per: time.Second}} // statements
)

// inSQL is the strategy, and the collection in a listing, of records in Forge SQL.
const inSQL = "sql"

// Driver is the kind of target that is the web trigger of the companion app.
func Driver() targets.Driver {
	cas := casParameter()
	cas.Values = append(cas.Values, targets.Value{Name: inSQL, Losers: []string{"0 rows"},
		Meaning: "UPDATE with the comparison in its WHERE, in Forge SQL; goes with create=sql"})
	return targets.Driver{
		Name: "forge", Schemes: []string{"forge+https", "forge+http"},
		Form:    "forge+https://HOST/x1/ID (forge+http on loopback only); the token is in " + forgeToken,
		Example: "forge+https://example.hello.atlassian-dev.net/x1/ID?create=entity",
		Summary: "A Forge site, through the web trigger of the companion app (contend forge init).",
		Parameters: []targets.Parameter{
			{Name: "create", Default: "kvs", Meaning: "how create-if-absent is done", Values: []targets.Value{
				{Name: "kvs", Meaning: "set of a plain key with keyPolicy FAIL_IF_EXISTS", Losers: []string{"KEY_CONFLICT"}},
				{Name: "entity", Meaning: "set of an entity with keyPolicy FAIL_IF_EXISTS", Losers: []string{"KEY_CONFLICT"}},
				{Name: "transact", Meaning: "a transaction on condition that the entity has no version", Losers: []string{"CONDITIONAL_CHECK_FAILED"}},
				{Name: inSQL, Meaning: "INSERT IGNORE, in Forge SQL; needs sql in the app's manifest, and goes with cas=sql", Losers: []string{"0 rows"}}}},
			cas,
			conditionalParameter("delete", "how a delete on a token or a version is done; not in Forge SQL"),
			conditionalParameter("renew", "how a time to live is renewed on a token or a version; not in Forge SQL"),
		},
		Accepted: []targets.Accepted{
			{Request: "read", Answer: "200 and " + replySchema + " with the outcome ok or missing"},
			{Request: "write", Answer: "200 and " + replySchema + " with the outcome ok, conflict or aborted"},
			{Request: "delete", Answer: "200 and " + replySchema + " with the outcome ok; on a condition also conflict or aborted"},
			{Request: "renew", Answer: "200 and " + replySchema + " with the outcome ok, conflict or aborted"},
			{Request: "sequence", Answer: "200 and " + replySchema + " with such a reply for each op"},
		},
		Answers: slices.Concat(webTriggerAnswers, forgeSQLAnswers, wire.Answers),
		Raw:     wire.RawForm,
		Secrets: targets.Secrets{LoneUser: true, PathEnd: true},
		Make:    openForge,
	}
}

// conditionalParameter is a strategy that needs an entity.
func conditionalParameter(name, meaning string) targets.Parameter {
	p := casParameter()
	p.Name, p.Meaning = name, meaning
	return p
}

func casParameter() targets.Parameter {
	return targets.Parameter{Name: "cas", Default: "transact", Meaning: "how a write on a version, or on a time of change, is done", Values: []targets.Value{
		{Name: "transact", Meaning: "a transaction with a condition on an attribute of an entity", Losers: []string{"CONDITIONAL_CHECK_FAILED"}}}}
}

// forge is a Forge site behind the companion app's web trigger.
type forge struct {
	address targets.Address
	server  kit.HTTPServer
	token   string
	create  string
	cas     string

	renews atomic.Bool // the app knows renewals, and conditions of deletes
	mu     sync.Mutex
	clocks clocks
	spare  []*forgeSession // opened by Prepare, and not yet given to anybody
}

// forgePing is what the app tells of itself with every answer.
type forgePing struct {
	Schema   string          `json:"schema"`
	Isolate  string          `json:"isolate"`     // drawn once by each
	Received float64         `json:"received_ms"` // start of the invocation
	Now      float64         `json:"now_ms"`      // of the answer
	Storage  targets.Outcome `json:"storage"`     // of the read that a ping makes
	Package  string          `json:"package"`
	Node     string          `json:"node"`
	// Kinds are those of the ops that the app knows; one that tells none does not look at
	// the condition of a delete.
	Kinds     []targets.Kind `json:"kinds"`
	Simulated bool           `json:"simulated"`
	Cold      bool           `json:"cold"`
}

// forgeReply is the app's answer to an op.
type forgeReply struct {
	forgePing
	Reply *targets.Reply `json:"reply"`
}

// Schemas of the web trigger.
const (
	opSchema    = "contend.op/1"
	replySchema = "contend.reply/1"
)

func openForge(a targets.Address) (targets.Target, error) {
	server, token, err := endpoint(a, "forge+")
	if err != nil {
		return nil, err
	}
	if strings.Trim(server.Base.Path, "/") == "" {
		return nil, a.Usagef("the path of the web trigger is missing; `forge webtrigger create` prints the whole URL")
	}
	create, cas := a.Param("create"), a.Param("cas")
	// All records of a run are in one place: what is left out follows.
	switch {
	case create == inSQL && !a.Query().Has("cas"):
		cas = inSQL
	case cas == inSQL && !a.Query().Has("create"):
		create = inSQL
	}
	if (create == inSQL) != (cas == inSQL) {
		return nil, a.Usagef("create=%s and cas=%s put the records of a run into two places; create=sql and cas=sql go together", create, cas)
	}
	return &forge{clocks: make(clocks), address: a, server: server, token: token, create: create, cas: cas}, nil
}

// httpTLS is what TLS connections are made with.
var httpTLS = &tls.Config{}

// endpoint gives the http or https server behind a target's URL, and the token.
func endpoint(a targets.Address, prefix string) (server kit.HTTPServer, token string, err error) {
	if a.User != nil {
		return server, "", a.Usagef("no token or password belongs into the URL; put it into %s", forgeToken)
	}
	if a.Host == "" {
		return server, "", a.Usagef("the host is missing")
	}
	scheme := strings.TrimPrefix(a.Scheme, prefix)
	if scheme == "rest" || scheme == "forge+rest" {
		scheme = "https"
	}
	if scheme == "http" && !kit.IsLoopback(a.Hostname()) {
		return server, "", a.Usagef("without TLS only a loopback address is allowed; use https")
	}
	if token = os.Getenv(forgeToken); token == "" {
		return server, "", a.Usagef("%s is not set; it holds the token that the app was given", forgeToken)
	}
	return kit.HTTPServer{Base: &url.URL{Scheme: scheme, Host: a.Host, Path: a.Path}, TLS: httpTLS}, token, nil
}

func (f *forge) Describe() targets.Description {
	d := targets.Description{Kind: "forge", URL: f.address.Masked(), Server: "Forge web trigger", SentBy: "kernel-write", TTL: targets.TTL{Unit: time.Second},
		Guards: targets.AllGuards, Finest: wire.Finest, Relays: true,
		Strategies: map[string]string{"create": f.create, "cas": f.cas, "delete": "transact", "renew": "transact"}, Limits: webTriggerLimits, QuotaUnit: wire.QuotaUnit, WarmUp: pings,
		Lists: len(collectionsOf(f.create))}
	if f.create == inSQL {
		d.Limits, d.QuotaUnit = forgeSQLLimits, 0 // stricter than the web trigger's
		d.Guards = []targets.Guard{targets.IfAbsent, targets.IfVersion, targets.IfUnmodified}
		delete(d.Strategies, "delete")
		delete(d.Strategies, "renew")
		d.TTL = targets.TTL{Instead: "choose create=kvs, create=entity or create=transact, or another target"}
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
func lead(warm []time.Duration) time.Duration {
	if len(warm) == 0 {
		return leastLead
	}
	return min(max(2*slices.Max(warm), leastLead), mostLead)
}

// Prepare asks the app once whether it is there and takes the token; then it opens the
// run's sessions, whose warm-up shows the clocks there and how long a round trip takes.
func (f *forge) Prepare(ctx context.Context, needs targets.Needs) (told targets.Server, err error) {
	f.closeSpare()
	asking, err := f.dial(ctx)
	if err != nil {
		return told, err
	}
	defer asking.Close()
	first, err := f.ping(ctx, asking)
	if err != nil {
		return told, err
	}
	warmed, err := f.warm(ctx, needs.Sessions)
	if err != nil {
		return told, err
	}
	var cold, warm []time.Duration
	for _, p := range append(warmed, first) {
		told.Simulated = told.Simulated || p.Simulated
		if p.Cold {
			cold = append(cold, p.took)
		} else {
			warm = append(warm, p.took)
		}
	}
	if first.Package != "" {
		told.Name = fmt.Sprintf("Forge web trigger, %s, Node %s", first.Package, first.Node)
	}
	if told.Simulated {
		told.Notes = append(told.Notes, "simulated: the app talks to the emulator, not to the live platform")
	}
	told.Lead = lead(warm)
	f.mu.Lock()
	told.Uncertainty = f.clocks.uncertainty()
	f.mu.Unlock()
	if len(warm) > 0 {
		told.Notes = append(told.Notes, fmt.Sprintf("warm-up: round trip of %s (median of %d); %s", medianOf(warm).Round(time.Millisecond),
			len(warm), coldText(cold)), fmt.Sprintf("all contenders of a round are given one instant, %s ahead, and wait for it inside the app; "+
			"the clocks there are known to ± %s", told.Lead.Round(time.Millisecond), told.Uncertainty.Round(10*time.Microsecond)))
	}
	return told, nil
}

// openAtOnce sessions are opened side by side.
const openAtOnce = 16

// warm opens sessions, which wait to be given by Open, and gives what their warm-up told.
func (f *forge) warm(ctx context.Context, sessions int) (told []pinged, err error) {
	var wait sync.WaitGroup
	places := make(chan struct{}, openAtOnce)
	for range sessions {
		wait.Go(func() {
			places <- struct{}{}
			defer func() { <-places }()
			s, pings, failed := f.connect(ctx)
			f.mu.Lock()
			defer f.mu.Unlock()
			if told = append(told, pings...); failed == nil {
				f.spare = append(f.spare, s)
			} else if err == nil {
				err = failed
			}
		})
	}
	wait.Wait()
	if err != nil {
		f.closeSpare()
	}
	return told, err
}

// connect opens a session and warms it: the first ping may meet a cold start; the second
// shows how long a warm one takes.
func (f *forge) connect(ctx context.Context) (s *forgeSession, told []pinged, err error) {
	if s, err = f.dial(ctx); err != nil {
		return nil, nil, err
	}
	for range pings {
		p, err := f.ping(ctx, s)
		if err != nil {
			s.Close()
			return nil, told, err
		}
		told = append(told, p)
	}
	return s, told, nil
}

func (f *forge) dial(ctx context.Context) (*forgeSession, error) {
	conn, err := kit.DialHTTP(ctx, f.server)
	if err != nil {
		return nil, kit.Unreachable(f.address, "host and port", err)
	}
	return &forgeSession{target: f, conn: conn}, nil
}

func (f *forge) closeSpare() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, s := range f.spare {
		s.Close()
	}
	f.spare = nil
}

// pings warm a session.
const pings = 2

func isSimulated(a kit.Answer) bool { return a.Header.Get("X-Contend-Simulated") == "true" }

// explain says what to do about an answer that is not the app's.
func (f *forge) explain(a kit.Answer) error {
	where := f.address.Masked()
	switch a.Status {
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
		return fmt.Errorf("%s answers with status %d: see `forge logs`", where, a.Status)
	}
}

func resetText(a kit.Answer) string {
	if reset := a.Header.Get("X-Ratelimit-Reset"); reset != "" {
		return "its reset: " + reset
	}
	return "its reset"
}

func (f *forge) Open(ctx context.Context, _ int) (targets.Session, error) {
	f.mu.Lock()
	if n := len(f.spare); n > 0 {
		defer f.mu.Unlock()
		s := f.spare[n-1]
		f.spare = f.spare[:n-1]
		return s, nil
	}
	f.mu.Unlock()
	s, _, err := f.connect(ctx)
	if err != nil {
		return nil, err
	}
	return s, nil
}

func (f *forge) Close() error {
	f.closeSpare()
	return nil
}

// List asks the app for the keys of both collections, and of the table in Forge SQL where
// the strategies have it.
func (f *forge) List(ctx context.Context, prefix string) (deletes []targets.Op, requests int, err error) {
	s, err := f.dial(ctx)
	if err != nil {
		return nil, 0, err
	}
	defer s.Close()
	return listCollections(ctx, s, collectionsOf(f.create), prefix)
}

// there translates an instant of our clock into one of the clocks there.
func (f *forge) there(t time.Time) time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return t.Add(f.clocks.offset()).Round(0).UTC()
}
