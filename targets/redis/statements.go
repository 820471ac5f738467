package redis

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"contend/targets"
	"contend/targets/kit"
)

// configure makes a client one connection, of which nothing is repeated.
func configure(o *redis.Options) {
	o.TLSConfig = nil // it is the connection's own
	o.Protocol = 2
	o.MaxRetries, o.DialerRetries = -1, 1
	o.PoolSize, o.PipelinePoolSize = 1, -1
	o.ConnMaxIdleTime = -1
	o.ContextTimeoutEnabled = true
	o.ReadTimeout, o.WriteTimeout = -1, -1
	o.DisableIdentity = true
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
}

// strategies are the ways in which conditions are put, and the codes of their losers.
var strategies = []targets.Parameter{
	{Name: "create", Default: "nx", Meaning: "how create-if-absent is done", Values: []targets.Value{
		{Name: "nx", Meaning: "SET with NX", Losers: []string{"nil"}},
		{Name: "watch", Meaning: "WATCH, GET, then MULTI, SET, EXEC", Losers: []string{"nil", "exists"}}}},
	{Name: "cas", Default: "lua", Meaning: "how a write on a version, or on a time of change, is done", Values: []targets.Value{
		{Name: "lua", Meaning: "a script, by EVALSHA, that compares and sets", Losers: []string{"0"}},
		{Name: "watch", Meaning: "WATCH, GET, compare, then MULTI, SET, EXEC", Losers: []string{"nil", "stale", "touched"}}}},
	{Name: "delete", Default: "lua", Meaning: "how a delete on a token or a version is done", Values: []targets.Value{
		{Name: "lua", Meaning: "a script, by EVALSHA, that compares and deletes", Losers: []string{"0"}},
		{Name: "watch", Meaning: "WATCH, GET, compare, then MULTI, DEL, EXEC", Losers: []string{"stale", "touched"}}}},
	{Name: "renew", Default: "lua", Meaning: "how a time to live is renewed on a token or a version", Values: []targets.Value{
		{Name: "lua", Meaning: "a script, by EVALSHA, that compares and sets the expiry", Losers: []string{"0"}},
		{Name: "watch", Meaning: "WATCH, GET, compare, then MULTI, PEXPIRE, EXEC", Losers: []string{"stale", "touched"}}}},
}

// withoutScripts gives the parameters that do by WATCH what the chosen strategies do by a
// script, as they stand in an address.
func withoutScripts(chosen map[string]string) string {
	var instead []string
	for _, p := range strategies {
		if chosen[p.Name] == "lua" {
			instead = append(instead, p.Name+"=watch")
		}
	}
	return strings.Join(instead, "&")
}

// script does ARGV[1] (set, delete, renew) to KEYS[1] where it holds a record of ours
// whose ARGV[2] (version, token, unmodified) is ARGV[3]: set stores ARGV[4], and set and
// renew give ARGV[5] milliseconds to live unless that is empty. Lua's numbers are doubles,
// so versions are compared exactly up to 2^53; a time is compared as its text, which is
// the same for the same time in UTC.
const script = `
local stored = redis.call('GET', KEYS[1])
if not stored then return 0 end
local decoded, record = pcall(cjson.decode, stored)
if not decoded or type(record) ~= 'table' or type(record.token) ~= 'string' then return 0 end
if ARGV[2] == 'version' then
  if record.version ~= tonumber(ARGV[3]) then return 0 end
elseif ARGV[2] == 'token' then
  if record.token ~= ARGV[3] then return 0 end
elseif record.updated_at ~= ARGV[3] then
  return 0
end
if ARGV[1] == 'delete' then
  redis.call('DEL', KEYS[1])
elseif ARGV[1] == 'renew' then
  redis.call('PEXPIRE', KEYS[1], ARGV[5])
elseif ARGV[5] == '' then
  redis.call('SET', KEYS[1], ARGV[4])
else
  redis.call('SET', KEYS[1], ARGV[4], 'PX', ARGV[5])
end
return 1`

// command is what changes a key, alone or in a transaction, and as the script does it on
// a condition.
type command struct {
	request   string // as accepted answers know it
	words     []any
	strategy  string // the parameter that says how its condition is put; "": it has none
	arguments []any  // of the script, without the key
}

func commandOf(op targets.Op) (c command, err error) {
	var value []byte
	milliseconds := ""
	if op.TTL > 0 {
		milliseconds = strconv.FormatInt(op.TTL.Milliseconds(), 10)
	}
	act := "set"
	switch op.Kind {
	case targets.Delete:
		act = "delete"
		c = command{request: "DEL", words: []any{"del", op.Key}, strategy: "delete"}
	case targets.Renew:
		act = "renew"
		c = command{request: "PEXPIRE", words: []any{"pexpire", op.Key, milliseconds}, strategy: "renew"}
	default:
		if value, err = kit.Encode(op.Value); err != nil {
			return c, err
		}
		c = command{request: "SET", words: []any{"set", op.Key, value}, strategy: "cas"}
		if milliseconds != "" {
			c.words = append(c.words, "px", milliseconds)
		}
	}
	var want any
	switch op.If.Guard {
	case targets.Unguarded:
		c.strategy = ""
		return c, nil
	case targets.IfAbsent:
		c.strategy = "create"
		return c, nil
	case targets.IfVersion:
		want = op.If.Counter
	case targets.IfToken:
		want = op.If.Token
	case targets.IfUnmodified:
		want = op.If.UpdatedAt.UTC().Format(time.RFC3339Nano)
	}
	c.arguments = []any{act, string(op.If.Guard), want, value, milliseconds}
	return c, nil
}

// exec sends a command in a transaction, as plain commands in one packet, each of
// whose replies is read: the client's own transaction leaves replies unread when
// MULTI is refused.
func (s *session) exec(ctx context.Context, op targets.Op, c command) targets.Reply {
	multi, queued, exec := redis.NewRawCmd(ctx, "multi"), redis.NewRawCmd(ctx, c.words...), redis.NewRawCmd(ctx, "exec")
	_, err := s.client.Pipelined(ctx, func(p redis.Pipeliner) error {
		return errors.Join(p.Process(ctx, multi), p.Process(ctx, queued), p.Process(ctx, exec))
	})
	if err != nil {
		return s.lost(ctx, err)
	}
	if r, applied := atOnce(c.request, string(queued.Val())); applied {
		return r
	}
	if r := s.answered(ctx, "MULTI", multi); r.Outcome != targets.OK {
		return r
	}
	if r := s.answered(ctx, c.request+" after MULTI", queued); r.Outcome != targets.OK {
		return r
	}
	r := s.answered(ctx, execOf[c.request], exec)
	if r.Code == "nil" && op.If.Guard != targets.IfAbsent && (c.request != "SET" || op.If.Guard != targets.IfVersion) {
		r.Code, r.Outcome = "touched", answers.Outcome("touched", 0)
	}
	return r
}

// execOf are the requests that the table of accepted answers knows an EXEC by.
var execOf = map[string]string{"SET": "EXEC", "DEL": "EXEC of DEL", "PEXPIRE": "EXEC of PEXPIRE"}
