package probe

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"contend/runner"
	"contend/scenarios/stats"
	"contend/targets"
)

// Where it is known from how Forge KVS answers.
const (
	forgeArticle = `"Locking in Forge KVS", August 2026`
	forgeThird   = "a third party's live measurement, October 2026"
	forgeDoc     = "Forge documentation"
	forgePackage = "@forge/kvs 1.6.5"
	forgeBoth    = forgeArticle + "; " + forgeThird
)

// forgeListed tells whether one of the two pages that claim to list the codes of
// Forge's storage, that of KVS and that of custom entities, has this one.
func forgeListed(code string) bool {
	return slices.Contains([]string{
		"KEY_TOO_SHORT", "KEY_TOO_LONG", "INVALID_KEY", "NOT_FOUND", "MAX_SIZE", "MAX_DEPTH", "INVALID_FILTER_CONDITION",
		"INVALID_FILTER_VALUES", "LIST_QUERY_LIMIT_EXCEEDED", "QUERY_WHERE_INVALID", "QUERY_WHERE_FIELD_INVALID",
		"EMPTY_KEY", "ENTITY_TYPE_TOO_SHORT", "ENTITY_TYPE_TOO_LARGE", "INVALID_ENTITY_TYPE", "INVALID_ENTITY_VALUE",
		"INVALID_ENTITY_ATTRIBUTE", "INVALID_ENTITY_INDEX", "COMPLEX_QUERY_PAGE_LIMIT_NOT_IN_RANGE", "EMPTY_FILTER_OPERATOR",
		"INVALID_FILTER_OPERATORS_COMBINATION", "INSUFFICIENT_FILTER_VALUES",
	}, code)
}

// What the entity of the companion app is called, and one that no app declares.
const (
	forgeEntityName  = "contend-record"
	forgeUndeclared  = "contend-undeclared"
	forgeOperations  = 25
	forgeValueBytes  = 240 << 10
	forgeKeyLength   = 500
	ghostTTL         = 1                    // second
	ghostWait        = 3 * time.Second      // from the write of a ghost: whole seconds may have been rounded up
	publishedInstant = int64(1787116436381) // Date.now(), as the article read it back
	int32Max         = int64(1)<<31 - 1     // inclusive
	int32Min         = -(int64(1) << 31)    // the same
	longestTTLDays   = 365                  // a year
	listLimit        = 100                  // of a page
	ghostGone        = "there was no ghost: the target had swept the expired key"
)

// object is a JSON object.
type object = map[string]any

// forgeAsk makes questions to Forge KVS by its wire protocol.
type forgeAsk struct{ asking }

func forgeQuestions(base string) []Question {
	f := &forgeAsk{asking{base: base}}
	f.create()
	f.types()
	f.conditions()
	f.transactions()
	f.keys()
	f.sizes()
	f.timesToLive()
	f.metadata()
	f.batches()
	f.queries()
	f.ghosts()
	return f.all
}

// call is one of the wire protocol.
func (f *forgeAsk) call(path string, body any) targets.Op {
	raw, _ := json.Marshal(object{"path": "/api/v1/" + path, "body": body}) // maps, lists and plain values
	return targets.Op{Kind: targets.Raw, Key: f.base + "probe", Raw: raw}
}

// item is a key of the run, with a value and what else is given, as name and value
// in turn.
func (f *forgeAsk) item(key string, value any, more ...any) object {
	o := object{"key": f.base + key}
	if value != nil {
		o["value"] = value
	}
	for i := 0; i < len(more); i += 2 {
		o[more[i].(string)] = more[i+1]
	}
	return o
}

// entity is such an item of the declared entity.
func (f *forgeAsk) entity(key string, value any, more ...any) object {
	return f.item(key, value, append(more, "entityName", forgeEntityName)...)
}

func (f *forgeAsk) set(key string, value any, options object) targets.Op {
	return f.call("set", withOptions(f.item(key, value), options))
}

func (f *forgeAsk) setEntity(key string, value any, options object) targets.Op {
	return f.call("entity/set", withOptions(f.entity(key, value), options))
}

func withOptions(item, options object) object {
	if options != nil {
		item["options"] = options
	}
	return item
}

func (f *forgeAsk) get(key string) targets.Op {
	return f.call("get", f.item(key, nil, "options", allMetadata()))
}

func (f *forgeAsk) getEntity(key string) targets.Op {
	return f.call("entity/get", f.entity(key, nil, "options", allMetadata()))
}

func allMetadata() object {
	return object{"metadataFields": []string{"CREATED_AT", "UPDATED_AT", "EXPIRE_TIME"}}
}

func (f *forgeAsk) transact(sets ...object) targets.Op {
	return f.call("transaction", object{"set": sets})
}

// removed are the requests that delete plain keys, and those that delete entities.
func (f *forgeAsk) removed(keys ...string) (all []targets.Op) {
	for _, key := range keys {
		all = append(all, f.call("delete", f.item(key, nil)))
	}
	return all
}

func (f *forgeAsk) removedEntities(keys ...string) (all []targets.Op) {
	for _, key := range keys {
		all = append(all, f.call("entity/delete", f.entity(key, nil)))
	}
	return all
}

// many are so many items, and the one request that deletes them again, as far as it
// may.
func (f *forgeAsk) many(name string, n int) (items []object, remove []targets.Op) {
	var deletes []object
	for i := range n {
		key := fmt.Sprintf("%s%d", name, i)
		items = append(items, f.item(key, i))
		if i < forgeOperations {
			deletes = append(deletes, f.item(key, nil))
		}
	}
	return items, []targets.Op{f.call("transaction", object{"delete": deletes})}
}

// These are what is known of an answer.
func knownOK(basis Basis, source string, status int) Known {
	return Known{Basis: basis, Source: source, Outcome: targets.OK, Status: status}
}

func knownRefusal(basis Basis, source string, status int, code, message string) Known {
	return Known{Basis: basis, Source: source, Outcome: targets.Invalid, Status: status, Code: code, Message: message}
}

func knownLoss(source string, status int, code, message string) Known {
	return Known{Basis: Measured, Source: source, Outcome: targets.Conflict, Status: status, Code: code, Message: message}
}

// What several questions are answered.
var (
	keyConflict   = knownLoss(forgeBoth, 409, "KEY_CONFLICT", "Provided key already exists and cannot be overwritten")
	checkFailed   = knownLoss(forgeBoth, 400, "CONDITIONAL_CHECK_FAILED", "Request failed due to conditional check specified or optimistic locking")
	unprocessable = knownRefusal(Measured, forgeArticle, 422, "UNPROCESSABLE_ENTITY", "Request cannot be processed due to one or more semantic errors")
	wrongInteger  = knownRefusal(Measured, forgeBoth, 400, "INCORRECT_PROPERTY_TYPE", `Data type for property "version" is defined as "integer"`)
)

func (f *forgeAsk) create() {
	absent := object{"keyPolicy": "FAIL_IF_EXISTS"}
	key := func(name string) string { return "create-" + name }
	f.ask("create/absent", "FAIL_IF_EXISTS, the key is absent", knownOK(InPackage, forgePackage, 204), f.removed(key("absent")),
		plainStep(f.set(key("absent"), 1, absent)))
	f.ask("create/present", "FAIL_IF_EXISTS, the key is present", keyConflict, f.removed(key("present")),
		mustStep(f.set(key("present"), 1, nil)), plainStep(f.set(key("present"), 2, absent)))
	f.ask("create/entity-present", "FAIL_IF_EXISTS, the key of an entity is present", notKnown(), f.removedEntities(key("entity")),
		mustStep(f.setEntity(key("entity"), object{"version": 0}, nil)), plainStep(f.setEntity(key("entity"), object{"version": 1}, absent)))
	f.ask("create/return-value", "FAIL_IF_EXISTS together with returnValue",
		knownRefusal(Documented, forgeDoc, 400, "INVALID_KEY_POLICY_RETURN_VALUE_COMBINATION", ""), f.removed(key("return")),
		plainStep(f.set(key("return"), 1, object{"keyPolicy": "FAIL_IF_EXISTS", "returnValue": "LATEST"})))
	f.ask("create/unknown-policy", "a keyPolicy that does not exist", notKnown(), f.removed(key("policy")),
		plainStep(f.set(key("policy"), 1, object{"keyPolicy": "SOMETIMES"})))
	f.ask("create/previous-none", "returnValue PREVIOUS, the key is absent", knownOK(InPackage, forgePackage, 204), f.removed(key("none")),
		plainStep(f.set(key("none"), 1, object{"keyPolicy": "OVERRIDE", "returnValue": "PREVIOUS"})))
	for _, which := range []string{"PREVIOUS", "LATEST"} {
		name := strings.ToLower(which)
		answer := map[string]string{"PREVIOUS": "the value before", "LATEST": "the value written"}[which]
		f.ask("create/"+name, "returnValue "+which+", the key is present", saying(knownOK(InPackage, forgePackage, 200), answer), f.removed(key(name)),
			mustStep(f.set(key(name), "before", nil)),
			plainStep(f.set(key(name), "written", object{"keyPolicy": "OVERRIDE", "returnValue": which}))).read = readReturned
	}
}

func readReturned(replies []*runner.Exchange) string {
	switch value, _ := memberOf(lastReply(replies), "value").(string); value {
	case "before":
		return "the value before"
	case "written":
		return "the value written"
	default:
		return "no value"
	}
}

// types asks each question twice: directly, and inside a transaction.
func (f *forgeAsk) types() {
	measured := knownOK(Measured, forgeArticle, 204)
	for _, c := range []struct {
		name, text string
		value      any
		direct     Known
		within     Known
	}{
		{"integer-max", "2147483647 in an integer", object{"version": int32Max}, measured, measured},
		{"integer-above-max", "2147483648 in an integer", object{"version": int32Max + 1}, wrongInteger, unprocessable},
		{"integer-min", "-2147483648 in an integer", object{"version": int32Min}, measured, measured},
		{"integer-below-min", "-2147483649 in an integer", object{"version": int32Min - 1}, wrongInteger, unprocessable},
		{"integer-text", `the text "0" in an integer`, object{"version": "0"}, wrongInteger, notKnown()},
		{"integer-fraction", "1.5 in an integer", object{"version": 1.5}, notKnown(), notKnown()},
		{"integer-boolean", "true in an integer", object{"version": true}, notKnown(), notKnown()},
		{"integer-null", "null in an integer", object{"version": nil}, notKnown(), notKnown()},
		{"string-number", "a number in a string", object{"token": 5}, notKnown(), notKnown()},
		{"float-text", `the text "1" in a float`, object{"updatedAt": "1"}, notKnown(), notKnown()},
		{"undeclared-attribute", "an attribute that the entity does not declare", object{"version": 0, "colour": "red"}, notKnown(), notKnown()},
		{"no-object", "a value of an entity that is no object", "text", notKnown(), notKnown()},
	} {
		key := "types-" + c.name
		f.ask("types/"+c.name+"/direct", c.text, c.direct, f.removedEntities(key+"-d"), plainStep(f.setEntity(key+"-d", c.value, nil)))
		f.ask("types/"+c.name+"/transaction", c.text, c.within, f.removedEntities(key+"-t"), plainStep(f.transact(f.entity(key+"-t", c.value))))
	}
	now := object{"updatedAt": publishedInstant}
	exact := saying(knownOK(Measured, forgeArticle, 200), "exact")
	const text = "a float of Date.now(), 1787116436381, read back"
	f.ask("types/float-now/direct", text, exact, f.removedEntities("types-float-d"),
		mustStep(f.setEntity("types-float-d", now, nil)), plainStep(f.getEntity("types-float-d"))).read = readInstant
	f.ask("types/float-now/transaction", text, exact, f.removedEntities("types-float-t"),
		mustStep(f.transact(f.entity("types-float-t", now))), plainStep(f.getEntity("types-float-t"))).read = readInstant
}

func readInstant(replies []*runner.Exchange) string {
	value, _ := memberOf(lastReply(replies), "value").(object)
	if got := fmt.Sprint(value["updatedAt"]); got != fmt.Sprint(publishedInstant) {
		return "not exact: " + got
	}
	return "exact"
}

// condition is a list of one, in a transaction.
func condition(property, name string, values ...any) object {
	return object{"and": []object{{"property": property, "condition": name, "values": values}}}
}

func (f *forgeAsk) conditions() {
	first, next := object{"token": "first", "version": 0}, object{"token": "next", "version": 1}
	// seeded asks a transaction that sets a record on a condition.
	seeded := func(name, text string, known Known, conditions object, more ...runner.Step) *Question {
		key := "conditions-" + name
		steps := append([]runner.Step{mustStep(f.setEntity(key, first, nil)), plainStep(f.transact(f.entity(key, next, "conditions", conditions)))}, more...)
		return f.ask("conditions/"+name, text, known, f.removedEntities(key), steps...)
	}
	works := knownOK(Measured, forgeArticle, 204)
	seeded("true", "a condition that holds", works, condition("version", "EQUAL_TO", 0))
	seeded("false", "a condition that does not hold", checkFailed, condition("version", "EQUAL_TO", 1))
	other := "conditions-lands-other"
	lands := f.ask("conditions/lands", "a transaction of two sets, of which one condition does not hold: what lands",
		Known{Basis: Measured, Source: forgeBoth, Answer: "nothing"}, f.removedEntities("conditions-lands", other),
		mustStep(f.setEntity("conditions-lands", first, nil)),
		plainStep(f.transact(f.entity(other, next), f.entity("conditions-lands", next, "conditions", condition("version", "EQUAL_TO", 1)))),
		plainStep(f.getEntity(other)))
	lands.read = func(replies []*runner.Exchange) string {
		if lastReply(replies).Outcome == targets.Missing {
			return "nothing"
		}
		return "the other set"
	}
	seeded("wrong-type", `a condition that compares an integer with the text "0"`, unprocessable, condition("version", "EQUAL_TO", "0"))
	checkMissing := checkFailed
	checkMissing.Source = forgeThird
	f.ask("conditions/check-absent", "a check of an absent record", checkMissing, nil,
		plainStep(f.call("transaction", object{"check": []object{f.entity("conditions-check", nil, "conditions", condition("version", "EQUAL_TO", 0))}})))
	f.ask("conditions/not-exists-absent", "does NOT_EXISTS hold on an absent record", notKnown(), f.removedEntities("conditions-absent"),
		plainStep(f.transact(f.entity("conditions-absent", first, "conditions", condition("version", "NOT_EXISTS", true))))).read = readYes("it holds", "it does not hold")
	seeded("unindexed", "a condition on an attribute that is not indexed", works, condition("token", "EQUAL_TO", "first"))
	seeded("undeclared-attribute", "a condition on an attribute that the entity does not declare", notKnown(), condition("colour", "EQUAL_TO", "red"))
	seeded("unknown-operator", "a condition that does not exist", notKnown(), condition("version", "EQUALS", 0))
	seeded("empty", "conditions without any", notKnown(), object{})
	f.ask("conditions/plain-key", "a condition on a plain key", notKnown(), f.removed("conditions-plain"),
		mustStep(f.set("conditions-plain", object{"version": 0}, nil)),
		plainStep(f.transact(f.item("conditions-plain", object{"version": 1}, "conditions", condition("version", "EQUAL_TO", 0)))))
}

func (f *forgeAsk) transactions() {
	sets, remove := f.many("transactions-full", forgeOperations)
	f.ask("transactions/operations-25", "25 operations", knownOK(Documented, forgeDoc, 204), remove, plainStep(f.transact(sets...)))
	sets, remove = f.many("transactions-over", forgeOperations+1)
	tooMany := unprocessable
	tooMany.Source = forgeThird
	f.ask("transactions/operations-26", "26 operations", tooMany, remove, plainStep(f.transact(sets...)))
	f.ask("transactions/key-twice", "one key twice", knownRefusal(Measured, forgeThird, 400, "KEY_DUPLICATION_ERROR", "Duplicate key found in request"),
		f.removed("transactions-twice"), plainStep(f.transact(f.item("transactions-twice", 1), f.item("transactions-twice", 2))))
	f.ask("transactions/empty", "no operation", knownRefusal(Documented, forgeDoc, 400, "INVALID_TRANSACTION_REQUEST",
		"Transaction request must include one of set, check or delete."), nil, plainStep(f.call("transaction", object{})))
	f.ask("transactions/undeclared-entity", "a set of an entity that is not declared", notKnown(), nil,
		plainStep(f.transact(f.item("transactions-undeclared", object{"version": 0}, "entityName", forgeUndeclared))))
	f.ask("transactions/delete-absent", "a delete of an absent key", notKnown(), nil,
		plainStep(f.call("transaction", object{"delete": []object{f.item("transactions-absent", nil)}})))
}

func (f *forgeAsk) keys() {
	notFound := Known{Basis: InPackage, Source: forgePackage + ", its tests", Outcome: targets.Missing, Status: 404, Code: "KEY_NOT_FOUND", Message: "Provided key does not exist"}
	f.ask("keys/absent", "a get of an absent key", notFound, nil, plainStep(f.get("keys-absent")))
	f.ask("keys/delete-absent", "a delete of an absent key", notKnown(), nil, plainStep(f.call("delete", f.item("keys-absent", nil))))
	listed := func(code string) Known { return knownRefusal(Documented, forgeDoc, 0, code, "") }
	f.ask("keys/empty", "an empty key", listed("KEY_TOO_SHORT"), nil, plainStep(f.call("set", object{"key": "", "value": 1})))
	f.ask("keys/empty-entity", "an empty key of an entity", listed("EMPTY_KEY"), nil,
		plainStep(f.call("entity/set", object{"key": "", "entityName": forgeEntityName, "value": object{"version": 0}})))
	f.ask("keys/white-space", "a key of white space alone", notKnown(), nil, plainStep(f.call("set", object{"key": " ", "value": 1})))
	long := func(n int) string { return "keys-long" + strings.Repeat("x", n-len(f.base)-len("keys-long")) }
	f.ask("keys/length-500", "a key of 500 characters", knownOK(Documented, forgeDoc, 204), f.removed(long(forgeKeyLength)),
		plainStep(f.set(long(forgeKeyLength), 1, nil)))
	f.ask("keys/length-501", "a key of 501 characters", listed("KEY_TOO_LONG"), f.removed(long(forgeKeyLength+1)),
		plainStep(f.set(long(forgeKeyLength+1), 1, nil)))
	f.ask("keys/characters", "a key with a slash", listed("INVALID_KEY"), f.removed("keys/slash"), plainStep(f.set("keys/slash", 1, nil)))
	f.ask("keys/undeclared-entity", "an entity that is not declared", knownRefusal(Measured, forgeThird, 404, "SCHEMA_NOT_FOUND", "The schema provided does not exist"), nil,
		plainStep(f.call("entity/set", f.item("keys-undeclared", object{"version": 0}, "entityName", forgeUndeclared))))
}

func (f *forgeAsk) sizes() {
	fits := knownOK(Documented, forgeDoc, 204)
	listed := func(code string) Known { return knownRefusal(Documented, forgeDoc, 0, code, "") }
	ask := func(name, text string, known Known, value any) {
		f.ask("sizes/"+name, text, known, f.removed("sizes-"+name), plainStep(f.set("sizes-"+name, value, nil)))
	}
	const quotes = 2
	ask("value-240-kib", "a value of 240 KiB, as JSON", fits, strings.Repeat("x", forgeValueBytes-quotes))
	ask("value-over-240-kib", "a value of 240 KiB and a byte", listed("MAX_SIZE"), strings.Repeat("x", forgeValueBytes-quotes+1))
	ask("depth-31", "a value of 31 levels", fits, nested(31))
	ask("depth-32", "a value of 32 levels: one page allows 31, another 32", notKnown(), nested(32))
	ask("depth-33", "a value of 33 levels", listed("MAX_DEPTH"), nested(33))
}

// nested is so many objects in each other.
func nested(levels int) any {
	if levels == 0 {
		return 1
	}
	return object{"a": nested(levels - 1)}
}

func ttl(value any, unit string) object { return object{"ttl": object{"value": value, "unit": unit}} }

func (f *forgeAsk) timesToLive() {
	ask := func(name, text string, known Known, options object) {
		f.ask("ttl/"+name, text, known, f.removed("ttl-"+name), plainStep(f.set("ttl-"+name, 1, options)))
	}
	ask("zero", "a ttl of 0", knownRefusal(Measured, forgeThird, 400, "INVALID_TTL", "TTL value must be a positive integer, received: 0"), ttl(0, "SECONDS"))
	ask("negative", "a ttl of -1", notKnown(), ttl(-1, "SECONDS"))
	ask("fraction", "a ttl of 1.5", notKnown(), ttl(1.5, "SECONDS"))
	ask("unknown-unit", "a ttl in WEEKS", notKnown(), ttl(1, "WEEKS"))
	ask("year", "a ttl of 365 days", knownOK(Documented, forgeDoc, 204), ttl(longestTTLDays, "DAYS"))
	ask("over-year", "a ttl of 366 days", notKnown(), ttl(longestTTLDays+1, "DAYS"))
	hour := ttl(1, "HOURS")
	expires := func(basis Basis, source, answer string) Known { return saying(knownOK(basis, source, 200), answer) }
	f.ask("ttl/transaction", "a ttl in a transaction: does the key expire", expires(InPackage, forgePackage, "it expires"), f.removed("ttl-transaction"),
		mustStep(f.transact(f.item("ttl-transaction", 1, "options", hour))), plainStep(f.get("ttl-transaction"))).read = readExpires("it expires", "it does not")
	f.ask("ttl/batch", "a ttl in a batch: does the key expire", expires(InPackage, forgePackage, "it expires"), f.removed("ttl-batch"),
		mustStep(f.call("batch/set", []object{f.item("ttl-batch", 1, "options", hour)})), plainStep(f.get("ttl-batch"))).read = readExpires("it expires", "it does not")
	f.ask("ttl/overwritten", "a set without ttl over a key with one: what becomes of the old expiry", notKnown(), f.removed("ttl-overwritten"),
		mustStep(f.set("ttl-overwritten", 1, hour)), mustStep(f.set("ttl-overwritten", 2, nil)), plainStep(f.get("ttl-overwritten"))).read = readExpires("it stays", "it is cleared")
	var steps []runner.Step
	keys := []string{"ttl-fine1", "ttl-fine2", "ttl-fine3"}
	for _, key := range keys {
		// Not all of them at one fraction of a second.
		steps = append(steps, lateStep(137*time.Millisecond, mustStep(f.set(key, 1, hour))), mustStep(f.get(key)))
	}
	steps[len(steps)-1].Must = false
	f.ask("ttl/granularity", "how fine is expireTime", notKnown(), f.removed(keys...), steps...).read = readGranularity
}

// readExpires answers by whether the last item that was read has an expiry.
func readExpires(yes, no string) func([]*runner.Exchange) string {
	return func(replies []*runner.Exchange) string {
		if expiryOf(lastReply(replies)).IsZero() {
			return no
		}
		return yes
	}
}

// readGranularity looks at every expiry that was read: one alone may be whole by
// chance.
func readGranularity(replies []*runner.Exchange) string {
	finest := "whole seconds"
	for i := 1; i < len(replies); i += 2 {
		at := expiryOf(&replies[i].Reply)
		switch {
		case at.IsZero():
			return "it is not told"
		case at.Nanosecond()%int(time.Millisecond) != 0:
			return "finer than milliseconds"
		case at.Nanosecond() != 0:
			finest = "milliseconds"
		}
	}
	return finest
}

func (f *forgeAsk) metadata() {
	f.ask("metadata/unknown-field", "a metadata field that does not exist", knownRefusal(InPackage, forgePackage+", its tests", 400, "BAD_REQUEST", "Provided request body is invalid"),
		nil, plainStep(f.call("get", f.item("metadata-field", nil, "options", object{"metadataFields": []string{"COLOUR"}}))))
	f.ask("metadata/no-ttl", "expireTime of a key without ttl", saying(knownOK(InPackage, forgePackage, 200), "there is none"), f.removed("metadata-none"),
		mustStep(f.set("metadata-none", 1, nil)), plainStep(f.get("metadata-none"))).read = readExpires("there is one", "there is none")
}

func (f *forgeAsk) batches() {
	items, remove := f.many("batches-full", forgeOperations)
	f.ask("batches/items-25", "25 items to set", knownOK(Documented, forgeDoc, 200), remove, plainStep(f.call("batch/set", items)))
	items, remove = f.many("batches-over", forgeOperations+1)
	f.ask("batches/items-26", "26 items to set", knownRefusal(Measured, forgeThird, 400, "TOO_MANY_BATCH_ENTITIES",
		"Number of entities to set was 26, but you can only set a maximum of 25 entities at a time."), remove, plainStep(f.call("batch/set", items)))
	f.ask("batches/get-absent", "a batch that gets an absent key", saying(knownOK(Measured, forgeThird, 200), "failed: KEY_NOT_FOUND, Provided key does not exist"), nil,
		plainStep(f.call("batch/get", []object{f.item("batches-absent", nil)}))).read = readBatch
	f.ask("batches/partly-wrong", "a batch of which one item is wrong (a ttl of 0)", notKnown(), f.removed("batches-good", "batches-wrong"),
		plainStep(f.call("batch/set", []object{f.item("batches-good", 1), f.item("batches-wrong", 1, "options", ttl(0, "SECONDS"))}))).read = readBatch
}

// readBatch tells what became of the items.
func readBatch(replies []*runner.Exchange) string {
	done, _ := memberOf(lastReply(replies), "successfulKeys").([]any)
	failed, _ := memberOf(lastReply(replies), "failedKeys").([]any)
	var parts []string
	if len(done) > 0 {
		parts = append(parts, fmt.Sprintf("%d done", len(done)))
	}
	for _, item := range failed {
		item, _ := item.(object)
		problem, _ := item["error"].(object)
		parts = append(parts, fmt.Sprintf("failed: %v, %v", problem["code"], problem["message"]))
	}
	return strings.Join(parts, "; ")
}

func (f *forgeAsk) queries() {
	where := func(property, condition, value string) []object {
		return []object{{"property": property, "condition": condition, "values": []string{value}}}
	}
	ours := func(limit int) targets.Op {
		return f.call("query", object{"limit": limit, "where": where("key", "BEGINS_WITH", f.base)})
	}
	listed := func(code string) Known { return knownRefusal(Documented, forgeDoc, 0, code, "") }
	f.ask("queries/limit-100", "a page of 100", knownOK(Documented, forgeDoc, 200), nil, plainStep(ours(listLimit)))
	f.ask("queries/limit-101", "a page of 101", listed("LIST_QUERY_LIMIT_EXCEEDED"), nil, plainStep(ours(listLimit+1)))
	byIndex := func(index string, limit int) targets.Op {
		return f.call("entity/query", object{"entityName": forgeEntityName, "indexName": index, "limit": limit})
	}
	f.ask("queries/entity-limit-101", "a page of 101 entities", listed("COMPLEX_QUERY_PAGE_LIMIT_NOT_IN_RANGE"), nil, plainStep(byIndex("by-key", listLimit+1)))
	f.ask("queries/unknown-index", "an index that is not declared", notKnown(), nil, plainStep(byIndex("colour", 1)))
	f.ask("queries/where-field", "a condition on another property than key", notKnown(), nil,
		plainStep(f.call("query", object{"limit": 1, "where": where("value", "BEGINS_WITH", f.base)})))
	f.ask("queries/where-condition", "another condition than BEGINS_WITH", notKnown(), nil,
		plainStep(f.call("query", object{"limit": 1, "where": where("key", "CONTAINS", f.base)})))
	look := plainStep(f.call("query", object{"limit": 1, "where": where("key", "BEGINS_WITH", f.base+"queries-lag")}))
	lag := f.ask("queries/lag", "how far is a query behind a write", notKnown(), f.removed("queries-lag"),
		mustStep(f.set("queries-lag", 1, nil)), look, lateStep(250*time.Millisecond, look), lateStep(time.Second, look), lateStep(2*time.Second, look))
	lag.read, lag.figure = readLag, lagFigure
}

// readLag tells whether a query right after a write shows it.
func readLag(replies []*runner.Exchange) string {
	if shows(replies[1]) {
		return "not at all"
	}
	return "it is behind"
}

// lagFigure brackets by how much: between the last query that did not show the write
// and the first that did.
func lagFigure(replies []*runner.Exchange) string {
	written, behind := replies[0].Return, time.Duration(0)
	for _, e := range replies[1:] {
		if shows(e) {
			return fmt.Sprintf("%s to %s", stats.Coarse(behind), stats.Coarse(e.Return-written))
		}
		behind = max(behind, e.Call-written)
	}
	return fmt.Sprintf("more than %s", stats.Coarse(behind))
}

// shows tells whether a query has a result.
func shows(e *runner.Exchange) bool {
	found, _ := memberOf(&e.Reply, "data").([]any)
	return len(found) > 0
}

// ghosts asks about keys that have expired and were not swept. The one request
// between says whether there is a ghost to ask about.
func (f *forgeAsk) ghosts() {
	brief, absent := ttl(ghostTTL, "SECONDS"), object{"keyPolicy": "FAIL_IF_EXISTS"}
	value := object{"token": "ghost", "version": 0}
	plain := func(name, text string, known Known, then ...runner.Step) *Question {
		key := "ghosts-" + name
		q := f.ask("ghosts/"+name, text, known, f.removed(key), append([]runner.Step{mustStep(f.set(key, 1, brief)), lateStep(ghostWait, mustStep(f.get(key)))}, then...)...)
		q.gone = ghostGone
		return q
	}
	entity := func(name, text string, then ...runner.Step) *Question {
		key := "ghosts-" + name
		q := f.ask("ghosts/"+name, text, notKnown(), f.removedEntities(key),
			append([]runner.Step{mustStep(f.setEntity(key, value, brief)), lateStep(ghostWait, mustStep(f.getEntity(key)))}, then...)...)
		q.gone = ghostGone
		return q
	}
	shown := saying(knownOK(Measured, forgeArticle, 200), "it is shown")
	plain("read", "does a get show a ghost", shown, plainStep(f.get("ghosts-read"))).read = func([]*runner.Exchange) string { return "it is shown" }
	plain("create", "FAIL_IF_EXISTS over a ghost", keyConflict, plainStep(f.set("ghosts-create", 2, absent)))
	plain("query", "does a query show a ghost", notKnown(),
		plainStep(f.call("query", object{"limit": 1, "where": []object{{"property": "key", "condition": "BEGINS_WITH", "values": []string{f.base + "ghosts-query"}}}}))).read =
		func(replies []*runner.Exchange) string {
			if shows(replies[len(replies)-1]) {
				return "it is shown"
			}
			return "it is not"
		}
	plain("delete", "does deleting a ghost free its key", notKnown(), mustStep(f.call("delete", f.item("ghosts-delete", nil))),
		plainStep(f.set("ghosts-delete", 2, absent))).read = readYes("the key is free", "the key still blocks")
	plain("overwrite", "a set without ttl over a ghost: what becomes of the old expiry", notKnown(), mustStep(f.set("ghosts-overwrite", 2, nil)),
		plainStep(f.get("ghosts-overwrite"))).read = readExpires("it stays", "it is cleared")
	entity("condition", "does a transaction's condition see a ghost",
		plainStep(f.call("transaction", object{"check": []object{f.entity("ghosts-condition", nil, "conditions", condition("version", "EXISTS", true))}}))).read =
		readYes("it does", "it does not")
	entity("entity-create", "does FAIL_IF_EXISTS on an entity see a ghost", plainStep(f.setEntity("ghosts-entity-create", value, absent))).read =
		readYes("it does not", "it does")
}

// expiryOf is the expireTime of an item; zero where there is none.
func expiryOf(r *targets.Reply) time.Time {
	text, _ := memberOf(r, "expireTime").(string)
	at, _ := time.Parse(time.RFC3339, text)
	return at
}
