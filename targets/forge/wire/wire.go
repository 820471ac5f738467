// Package wire is the protocol of Forge KVS as ops and replies: the table of answers,
// and what an op is in the terms of the platform.
package wire

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"contend/targets"
	"contend/targets/forge/emulator"
	"contend/targets/kit"
)

const Facts = "Locking in Forge KVS, August 2026"

// Accepted are the answers of success, of which the status alone is not enough.
var Accepted = []targets.Accepted{
	{Request: "get", Answer: "200 and a JSON object with key and value"},
	{Request: "set", Answer: "204 and an empty body"},
	{Request: "delete", Answer: "204 and an empty body"},
	{Request: "transaction", Answer: "204 and an empty body"},
	{Request: "query", Answer: "200 and a JSON object with data"},
	{Request: "raw", Answer: "200 and a JSON object, or 204 and an empty body"},
}

func IsEmpty(a kit.Answer) bool { return a.Status == 204 && len(a.Body) == 0 }

func IsObject(a kit.Answer) bool {
	var object map[string]json.RawMessage
	return a.Status == 200 && json.Unmarshal(a.Body, &object) == nil && object != nil
}

func IsItem(a kit.Answer) bool {
	var item struct {
		Key   *string
		Value json.RawMessage
	}
	return a.Status == 200 && json.Unmarshal(a.Body, &item) == nil && item.Key != nil && item.Value != nil
}

// CodePattern is that of a code of an error object; anything else that stands there is
// text.
var CodePattern = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,64}$`)

var Answers = targets.Answers{
	{Status: 200, Outcome: targets.OK, Source: "@forge/kvs 1.6.5"},
	{Status: 204, Outcome: targets.OK, Source: "@forge/kvs 1.6.5"},
	{Code: "KEY_NOT_FOUND", Status: 404, Outcome: targets.Missing, Source: "@forge/kvs 1.6.5"},
	{Code: "KEY_CONFLICT", Status: 409, Outcome: targets.Conflict, Source: Facts},
	{Code: "CONDITIONAL_CHECK_FAILED", Status: 400, Outcome: targets.Conflict, Source: Facts},
	{Status: 429, Outcome: targets.Throttled, Source: "Forge quota documentation"},
	{Status: 500, Outcome: targets.Unknown, Source: "@forge/kvs 1.6.5; a server error says nothing of the write"},
	{Status: 400, Outcome: targets.Invalid, Source: Facts},
	{Status: 404, Outcome: targets.Invalid, Source: Facts},
	{Status: 422, Outcome: targets.Invalid, Source: Facts},
}

// EntityName is the custom entity that records under a version live in.
const EntityName = "contend-record"

// Finest is how fine the times of an entity are: a float of milliseconds.
const Finest = time.Millisecond

// QuotaUnit is the bytes that one unit of the quotas of KVS covers.
const QuotaUnit = 10 << 10

// WithExpiry is how every read asks.
var WithExpiry = emulator.GetOptions{MetadataFields: []string{"EXPIRE_TIME", "UPDATED_AT"}}

// plainKeyHasNoCondition answers a version condition on a plain key: the builder
// of @forge/kvs takes conditions for entities alone.
var plainKeyHasNoCondition = targets.Reply{Outcome: targets.Unsupported, Message: "a plain key of Forge KVS cannot carry a condition; an entity can"}

// Write is a Write, a Renew or a Delete in the terms of Forge KVS.
type Write struct {
	Entity      bool
	Value       json.RawMessage // nil: the key is deleted
	Options     emulator.SetOptions
	Transaction *emulator.Transaction // instead of a single write
	Refused     *targets.Reply        // to one that the store has no request for
}

// WriteOf translates. create is the strategy of create-if-absent: kvs (a set
// with a key policy, of a plain key or of an entity where that is the key's
// collection) or transact (a transaction on condition that there is no version).
func WriteOf(op targets.Op, create string) (Write, error) {
	w := Write{Entity: op.Collection == targets.Versioned}
	if op.TTL > 0 {
		// The platform counts whole seconds; a part of one is rounded up.
		seconds := (op.TTL + time.Second - 1) / time.Second
		w.Options.TTL = &emulator.TTL{Value: json.RawMessage(strconv.FormatInt(int64(seconds), 10)), Unit: "SECONDS"}
	}
	if op.Kind != targets.Delete {
		var content any = op.Value
		if w.Entity {
			content = entityOf(op.Value)
		}
		var err error
		if w.Value, err = json.Marshal(content); err != nil {
			return w, err
		}
	}
	switch g := op.If.Guard; {
	case g == targets.Unguarded:
	case g == targets.IfAbsent && create == "transact":
		w.transact(op.Key, emulator.Condition{Property: "version", Condition: "NOT_EXISTS", Values: []json.RawMessage{json.RawMessage("true")}})
	case g == targets.IfAbsent:
		w.Options.KeyPolicy = "FAIL_IF_EXISTS"
	case !w.Entity:
		refused := plainKeyHasNoCondition
		w.Refused = &refused
	case g == targets.IfVersion:
		w.transact(op.Key, equalTo("version", op.If.Counter))
	case g == targets.IfToken:
		w.transact(op.Key, equalTo("token", op.If.Token))
	case g == targets.IfUnmodified:
		if w.Refused = op.If.TooFine(Finest); w.Refused == nil {
			w.transact(op.Key, equalTo("updatedAt", milliseconds(op.If.UpdatedAt)))
		}
	}
	return w, nil
}

func equalTo(property string, value any) emulator.Condition {
	b, _ := json.Marshal(value) // a number or a text
	return emulator.Condition{Property: property, Condition: "EQUAL_TO", Values: []json.RawMessage{b}}
}

func (w *Write) transact(key string, c emulator.Condition) {
	item := emulator.TransactionItem{Key: key, EntityName: EntityName, Conditions: &emulator.Conditions{And: []emulator.Condition{c}}}
	if w.Value == nil {
		w.Transaction = &emulator.Transaction{Delete: []emulator.TransactionItem{item}}
		return
	}
	item.Value, item.Options = w.Value, &emulator.ItemOptions{TTL: w.Options.TTL}
	w.Transaction = &emulator.Transaction{Set: []emulator.TransactionItem{item}}
}

// entityRecord is targets.Record with the attribute types that Forge has: an integer is 32
// bits wide, so times are floats of milliseconds.
type entityRecord struct {
	Token     string          `json:"token"`
	Version   int64           `json:"version"`
	UpdatedAt int64           `json:"updatedAt,omitempty"`
	ExpiresAt int64           `json:"expiresAt,omitempty"`
	Body      json.RawMessage `json:"body,omitempty"`
}

func entityOf(r targets.Record) entityRecord {
	return entityRecord{r.Token, r.Version, milliseconds(r.UpdatedAt), milliseconds(r.ExpiresAt), r.Body}
}

func milliseconds(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

func timeOf(milliseconds int64) time.Time {
	if milliseconds == 0 {
		return time.Time{}
	}
	return time.UnixMilli(milliseconds).UTC()
}

// grantedUntil gives the time to live by the store's own clock, from the last
// write to the expiry. updatedAt is in milliseconds, but the expiry may have
// whole seconds only (published read-outs show no more): then this is up to a
// second less than was granted if the expiry was cut down, more if rounded up.
func grantedUntil(expires time.Time, updatedAt *int64) time.Duration {
	if expires.IsZero() || updatedAt == nil {
		return 0
	}
	return max(0, expires.Sub(time.UnixMilli(*updatedAt)))
}

// ReadReply leaves the targets.Record empty where the value is none of ours.
func ReadReply(item emulator.Item, entity bool) targets.Reply {
	r := targets.Reply{Outcome: targets.OK, Status: 200}
	if item.ExpireTime != nil {
		r.Expires, _ = time.Parse(time.RFC3339, *item.ExpireTime)
		r.Granted = grantedUntil(r.Expires, item.UpdatedAt)
	}
	if !entity {
		if json.Unmarshal(item.Value, &r.Record) != nil {
			r.Record = targets.Record{}
		}
		return r
	}
	var e entityRecord
	if json.Unmarshal(item.Value, &e) == nil {
		r.Record = targets.Record{Token: e.Token, Version: e.Version, UpdatedAt: timeOf(e.UpdatedAt), ExpiresAt: timeOf(e.ExpiresAt), Body: e.Body}
	}
	return r
}

// Version is what the paths of the wire protocol begin with.
const Version = "/api/v1/"

// RawOp is the Raw of an op on Forge KVS.
type RawOp struct {
	Path string          `json:"path"`
	Body json.RawMessage `json:"body"`
}

// Call is a Raw op as a call of the wire protocol.
type Call struct {
	emulator.Call
	Path string // below the version
	Body json.RawMessage
}

// CallOf reads a Raw op; refused is the reply to one that is no call, which is
// not sent.
func CallOf(op targets.Op) (c Call, refused *targets.Reply) {
	var raw RawOp
	err := json.Unmarshal(op.Raw, &raw)
	path, versioned := strings.CutPrefix(raw.Path, Version)
	call, known := emulator.CallAt(path)
	if err != nil || !versioned || !known {
		return c, &targets.Reply{Outcome: targets.Unsupported, Message: fmt.Sprintf("the wire protocol of Forge KVS has no path %q", raw.Path)}
	}
	return Call{call, path, raw.Body}, nil
}

// RawForm is the form of raw requests.
const RawForm = `{"path": "/api/v1/…", "body": …} of the wire protocol of Forge KVS`
