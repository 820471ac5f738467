package targets

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"contend/targets/forge/emulator"
)

const forgeFacts = "Locking in Forge KVS, August 2026"

// forgeAccepted are the answers of success, of which the status alone is not enough.
var forgeAccepted = []Accepted{
	{Request: "get", Answer: "200 and a JSON object with key and value"},
	{Request: "set", Answer: "204 and an empty body"},
	{Request: "delete", Answer: "204 and an empty body"},
	{Request: "transaction", Answer: "204 and an empty body"},
	{Request: "query", Answer: "200 and a JSON object with data"},
	{Request: "raw", Answer: "200 and a JSON object, or 204 and an empty body"},
}

func isEmpty(a httpAnswer) bool { return a.status == 204 && len(a.body) == 0 }

func isObject(a httpAnswer) bool {
	var object map[string]json.RawMessage
	return a.status == 200 && json.Unmarshal(a.body, &object) == nil && object != nil
}

func isItem(a httpAnswer) bool {
	var item struct {
		Key   *string
		Value json.RawMessage
	}
	return a.status == 200 && json.Unmarshal(a.body, &item) == nil && item.Key != nil && item.Value != nil
}

// codePattern is that of a code of an error object; anything else that stands there is
// text.
var codePattern = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,64}$`)

var forgeAnswers = []Answer{
	{Status: 200, Outcome: OK, Source: "@forge/kvs 1.6.5"},
	{Status: 204, Outcome: OK, Source: "@forge/kvs 1.6.5"},
	{Code: "KEY_NOT_FOUND", Status: 404, Outcome: Missing, Source: "@forge/kvs 1.6.5"},
	{Code: "KEY_CONFLICT", Status: 409, Outcome: Conflict, Source: forgeFacts},
	{Code: "CONDITIONAL_CHECK_FAILED", Status: 400, Outcome: Conflict, Source: forgeFacts},
	{Status: 429, Outcome: Throttled, Source: "Forge quota documentation"},
	{Status: 500, Outcome: Unknown, Source: "@forge/kvs 1.6.5; a server error says nothing of the write"},
	{Status: 400, Outcome: Invalid, Source: forgeFacts},
	{Status: 404, Outcome: Invalid, Source: forgeFacts},
	{Status: 422, Outcome: Invalid, Source: forgeFacts},
}

// entityName is the custom entity that records under a version live in.
const entityName = "contend-record"

// forgeFinest is how fine the times of an entity are: a float of milliseconds.
const forgeFinest = time.Millisecond

// forgeQuotaUnit is the bytes that one unit of the quotas of KVS covers.
const forgeQuotaUnit = 10 << 10

// withExpiry is how every read asks.
var withExpiry = emulator.GetOptions{MetadataFields: []string{"EXPIRE_TIME", "UPDATED_AT"}}

// plainKeyHasNoCondition answers a version condition on a plain key: the builder
// of @forge/kvs takes conditions for entities alone.
var plainKeyHasNoCondition = Reply{Outcome: Unsupported, Message: "a plain key of Forge KVS cannot carry a condition; an entity can"}

// forgeWrite is a Write in the terms of Forge KVS.
type forgeWrite struct {
	entity      bool
	value       json.RawMessage
	options     emulator.SetOptions
	transaction *emulator.Transaction // set instead of a single write
	refused     *Reply                // to a write that the store has no request for
}

// forgeWriteOf translates. create is the strategy of create-if-absent: kvs (a set
// with a key policy, of a plain key or of an entity where that is the key's
// collection) or transact (a transaction on condition that there is no version).
func forgeWriteOf(op Op, create string) (forgeWrite, error) {
	w := forgeWrite{entity: op.Collection == Versioned}
	var content any = op.Value
	if w.entity {
		content = entityOf(op.Value)
	}
	var err error
	if w.value, err = json.Marshal(content); err != nil {
		return w, err
	}
	if op.TTL > 0 {
		// The platform counts whole seconds; a part of one is rounded up.
		seconds := (op.TTL + time.Second - 1) / time.Second
		w.options.TTL = &emulator.TTL{Value: json.RawMessage(strconv.FormatInt(int64(seconds), 10)), Unit: "SECONDS"}
	}
	switch {
	case op.comparesAndSets() && !w.entity:
		refused := plainKeyHasNoCondition
		w.refused = &refused
	case op.If.Guard == IfVersion:
		w.transact(op.Key, equalTo("version", op.If.Counter))
	case op.If.Guard == IfUnmodified:
		if w.refused = op.If.finer(forgeFinest); w.refused == nil {
			w.transact(op.Key, equalTo("updatedAt", milliseconds(op.If.UpdatedAt)))
		}
	case op.If.Guard == IfAbsent && create == "transact":
		w.transact(op.Key, emulator.Condition{Property: "version", Condition: "NOT_EXISTS", Values: []json.RawMessage{json.RawMessage("true")}})
	case op.If.Guard == IfAbsent:
		w.options.KeyPolicy = "FAIL_IF_EXISTS"
	}
	return w, nil
}

func equalTo(property string, n int64) emulator.Condition {
	return emulator.Condition{Property: property, Condition: "EQUAL_TO", Values: []json.RawMessage{json.RawMessage(strconv.FormatInt(n, 10))}}
}

func (w *forgeWrite) transact(key string, c emulator.Condition) {
	w.transaction = &emulator.Transaction{Set: []emulator.TransactionItem{{Key: key, Value: w.value, EntityName: entityName,
		Options: &emulator.ItemOptions{TTL: w.options.TTL}, Conditions: &emulator.Conditions{And: []emulator.Condition{c}}}}}
}

// forgeEntity is Record with the attribute types that Forge has: an integer is 32
// bits wide, so times are floats of milliseconds.
type forgeEntity struct {
	Token     string          `json:"token"`
	Version   int64           `json:"version"`
	UpdatedAt int64           `json:"updatedAt,omitempty"`
	ExpiresAt int64           `json:"expiresAt,omitempty"`
	Body      json.RawMessage `json:"body,omitempty"`
}

func entityOf(r Record) forgeEntity {
	return forgeEntity{r.Token, r.Version, milliseconds(r.UpdatedAt), milliseconds(r.ExpiresAt), r.Body}
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

// readReply leaves the Record empty where the value is none of ours.
func readReply(item emulator.Item, entity bool) Reply {
	r := Reply{Outcome: OK, Status: 200}
	if item.ExpireTime != nil {
		r.Expires, _ = time.Parse(time.RFC3339, *item.ExpireTime)
		r.Granted = grantedUntil(r.Expires, item.UpdatedAt)
	}
	if !entity {
		if json.Unmarshal(item.Value, &r.Record) != nil {
			r.Record = Record{}
		}
		return r
	}
	var e forgeEntity
	if json.Unmarshal(item.Value, &e) == nil {
		r.Record = Record{e.Token, e.Version, timeOf(e.UpdatedAt), timeOf(e.ExpiresAt), e.Body}
	}
	return r
}

// wireVersion is what the paths of the wire protocol begin with.
const wireVersion = "/api/v1/"

// forgeRaw is the Raw of an op on Forge KVS.
type forgeRaw struct {
	Path string          `json:"path"`
	Body json.RawMessage `json:"body"`
}

// wireCall is a Raw op as a call of the wire protocol.
type wireCall struct {
	emulator.Call
	path string // below the version
	body json.RawMessage
}

// wireCallOf reads a Raw op; refused is the reply to one that is no call, which is
// not sent.
func wireCallOf(op Op) (c wireCall, refused *Reply) {
	var raw forgeRaw
	err := json.Unmarshal(op.Raw, &raw)
	path, versioned := strings.CutPrefix(raw.Path, wireVersion)
	call, known := emulator.CallAt(path)
	if err != nil || !versioned || !known {
		return c, &Reply{Outcome: Unsupported, Message: fmt.Sprintf("the wire protocol of Forge KVS has no path %q", raw.Path)}
	}
	return wireCall{call, path, raw.Body}, nil
}
