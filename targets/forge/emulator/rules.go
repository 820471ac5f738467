package emulator

// Rule is one behaviour of the engine or of the server before it. Source names
// one or more of Sources, with commas.
type Rule struct {
	ID     string `json:"id"`
	Text   string `json:"text"`
	Source string `json:"source"`
}

// Source is where behaviours were seen.
type Source struct{ Name, Meaning string }

const assumption = "assumption"

// Sources returns what the sources of rules mean.
func Sources() []Source {
	return []Source{
		{"P", "read in the client package of the platform, @forge/kvs 1.6.5 or @forge/sql 4.0.8"},
		{"RUN", "observed by running that package"},
		{"DOC", "the documentation of the platform"},
		{"A", `"Locking in Forge KVS", August 2026, measured live`},
		{"L", "a live measurement by a third party, October 2026"},
		{assumption, "not known; the emulator had to choose"},
	}
}

// Rules returns every behaviour of the engine with its source.
func Rules() []Rule {
	var all []Rule
	for _, group := range [][]Rule{keyRules, valueRules, ghostRules, entityRules, transactionRules, conditionRules,
		queryRules, batchRules, quotaRules, serverRules, sqlRules} {
		all = append(all, group...)
	}
	return all
}

var keyRules = []Rule{
	{"key-missing", "Getting a missing key answers 404 KEY_NOT_FOUND.", "P"},
	{"key-present", "FAIL_IF_EXISTS on a present key answers 409 KEY_CONFLICT; of many concurrent writers one wins.", "A, L"},
	{"key-atomic", "Each call is atomic; of two writes to one key the last wins.", "DOC"},
	{"key-characters", "A key has 1 to 500 characters of a-z A-Z 0-9 : . _ - # and white space, and not only white space.", "DOC"},
	{"key-codes", "A bad key answers 400 with KEY_TOO_LONG, INVALID_KEY, or, where empty, KEY_TOO_SHORT (plain) or EMPTY_KEY (entity).", "DOC"},
	{"key-messages", "The messages of the bad key codes.", assumption},
	{"key-white-space", "White space is what Unicode calls so.", assumption},
	{"key-name-spaces", "Plain keys, secrets and the keys of each entity are separate name spaces.", assumption},
	{"secret", "Secrets have paths of their own, with the requests and answers of plain keys.", "P"},
	{"delete-missing", "Deleting a missing key succeeds.", assumption},
	{"options-invalid", "An unknown metadata field answers 400 BAD_REQUEST.", "P"},
	{"options-unknown", "An unknown key policy, return value or TTL unit answers 400 BAD_REQUEST.", assumption},
	{"options-order", "Of several faults in one request the first of key, value, TTL, schema and other options is answered.", assumption},
	{"policy-combination", "FAIL_IF_EXISTS with a return value answers 400 INVALID_KEY_POLICY_RETURN_VALUE_COMBINATION.", "DOC"},
	{"policy-combination-message", "The message of that code.", assumption},
	{"return-value", "PREVIOUS and LATEST return the item before and after the write; PREVIOUS with none returns nothing.", "P, RUN"},
	{"return-metadata-alone", "Metadata fields without a return value are checked and otherwise ignored.", assumption},
	{"metadata", "Creation and update are epoch milliseconds, expiry is ISO 8601; each is returned only where asked for.", "P, RUN"},
	{"metadata-no-ttl", "A record without TTL has no expireTime.", "P"},
	{"metadata-created", "createdAt survives overwriting; a key deleted or swept and set again gets a new one.", assumption},
}

var valueRules = []Rule{
	{"value-size", "A value has at most 240 KiB, else 400 MAX_SIZE.", "DOC"},
	{"value-size-measure", "The size counts the value as compacted JSON in UTF-8.", assumption},
	{"value-depth", "A value nests at most 31 deep, else 400 MAX_DEPTH.", "DOC"},
	{"value-depth-measure", "Each object and array counts one level, the outermost included.", assumption},
	{"value-messages", "The messages of MAX_SIZE and MAX_DEPTH.", assumption},
	{"value-invalid", "A missing value or invalid JSON answers 400 BAD_REQUEST.", assumption},
	{"value-null", "null is a value.", assumption},
	{"value-compact", "A value is stored without white space; its text is otherwise kept, numbers digit by digit.", assumption},
	{"ttl-positive", "A TTL that is not a positive integer answers 400 INVALID_TTL with the value received.", "L"},
	{"ttl-year", "A TTL ends at most one year ahead.", "DOC"},
	{"ttl-year-code", "A longer TTL answers 400 INVALID_TTL, or Options.LongTTLCode; a year has 365 days.", assumption},
	{"ttl-json", "So does a value that is no number: text such as \"5\", a fraction, null, true, a list or an object.", assumption},
	{"ttl-incomplete", "A TTL without value or without unit, and one that is no object, answers 400 BAD_REQUEST.", assumption},
}

var ghostRules = []Rule{
	{"ghost-blocks", "An expired key blocks FAIL_IF_EXISTS until it is swept.", "A, L"},
	{"ghost-read", "Reads show an expired key until it is swept.", "A, DOC"},
	{"ghost-sweep", "The sweep comes some time after expiry; a swept key is gone and setting it is a create.", "A"},
	{"ghost-sweep-delay", "The delay is drawn once for each write that sets a TTL.", assumption},
	{"ghost-visible", "Transaction conditions and entity writes see ghosts; Options.HideGhosts changes it.", assumption},
	{"ghost-previous", "PREVIOUS returns a ghost and overwriting one keeps its createdAt.", assumption},
	{"ghost-delete", "Deleting a ghost frees its key at once; Options.DeleteKeepsGhost changes it.", assumption},
	{"ghost-overwrite", "Overwriting without TTL clears the old expiry; Options.OverwriteKeepsExpiry changes it.", assumption},
	{"ghost-granularity", "Expiry is cut down to milliseconds; Options.ExpireGranularity changes it.", assumption},
}

var entityRules = []Rule{
	{"entity-undeclared", "An undeclared entity answers 404 SCHEMA_NOT_FOUND.", "L"},
	{"entity-undeclared-transaction", "An undeclared entity answers the same inside a transaction.", assumption},
	{"entity-type", "An attribute that does not fit its type answers 400 INCORRECT_PROPERTY_TYPE naming it.", "A, L"},
	{"entity-type-order", "Of several such attributes the first in byte order is named.", assumption},
	{"entity-type-transaction", "Inside a transaction it answers 422 UNPROCESSABLE_ENTITY.", "A"},
	{"entity-integer", "An integer has 32 bits with a sign, both bounds included.", "A, DOC"},
	{"entity-integer-literal", "A number written with a fraction or an exponent is no integer.", assumption},
	{"entity-float", "A float keeps 38 significant digits.", "A, DOC"},
	{"entity-float-range", "A float is 0 or has a magnitude from 1e-130 up to below 1e126; beyond it or 38 digits it is a wrong type.", assumption},
	{"entity-null", "null fits an attribute of type any alone.", assumption},
	{"entity-any", "An attribute of type any takes every JSON value.", assumption},
	{"entity-partial", "A value may lack declared attributes; it replaces the stored value as a whole.", assumption},
	{"entity-object", "A value that is no object answers 400 INVALID_ENTITY_VALUE, inside a transaction 422.", assumption},
	{"entity-attribute", "An undeclared attribute answers 400 INVALID_ENTITY_ATTRIBUTE, inside a transaction 422.", assumption},
	{"entity-options", "Set options, FAIL_IF_EXISTS included, mean the same on an entity as on a plain key.", "P"},
}

var transactionRules = []Rule{
	{"transaction-atomic", "A transaction lands as a whole or not at all.", "DOC, A"},
	{"transaction-empty", "A transaction without operation answers 400 INVALID_TRANSACTION_REQUEST.", "DOC"},
	{"transaction-operations", "More than 25 operations answer 422 UNPROCESSABLE_ENTITY.", "L"},
	{"transaction-operations-measure", "Sets, deletes and checks all count.", assumption},
	{"transaction-duplicate", "One key twice answers 400 KEY_DUPLICATION_ERROR.", "L"},
	{"transaction-duplicate-scope", "One key in two name spaces is not twice; one key in two lists is.", assumption},
	{"transaction-payload", "A transaction has at most 4 MB.", "DOC"},
	{"transaction-payload-measure", "The payload is the bytes of names, keys, values and condition values; over 4 MiB it answers 400 MAX_SIZE.", assumption},
	{"transaction-ttl", "Of the options of an item the TTL alone counts.", "P"},
	{"transaction-codes", "Faults of key, size, depth and TTL answer the same inside a transaction.", assumption},
	{"transaction-order", "Faults that do not depend on stored data are answered before any condition is evaluated.", assumption},
	{"transaction-check-missing", "A check on a missing key fails with 400 CONDITIONAL_CHECK_FAILED.", "L"},
	{"transaction-check-bare", "A check without conditions holds where the record exists, on a plain key too.", assumption},
	{"transaction-delete-missing", "Deleting a missing key lets a transaction land.", assumption},
}

var conditionRules = []Rule{
	{"condition-false", "A false condition answers 400 CONDITIONAL_CHECK_FAILED and nothing lands.", "A, L"},
	{"condition-type", "A condition value that does not fit the attribute answers 422 UNPROCESSABLE_ENTITY.", "A"},
	{"condition-unindexed", "A condition may name an attribute that is not indexed.", "A"},
	{"condition-presence", "EXISTS and NOT_EXISTS come with the value true.", "P"},
	{"condition-presence-value", "EXISTS and NOT_EXISTS with another value answer 422.", assumption},
	{"condition-absent-record", "NOT_EXISTS holds on an absent record; Options.NotExistsNeedsRecord changes it.", assumption},
	{"condition-absent-attribute", "An absent attribute satisfies NOT_EXISTS and no other condition; null is present.", assumption},
	{"condition-undeclared", "A condition on an undeclared attribute answers 422.", assumption},
	{"condition-plain", "Conditions on a plain key answer 422.", assumption},
	{"condition-order", "Greater, less and BETWEEN take integers, floats and strings, else 422; strings compare by their UTF-8 bytes.", assumption},
	{"condition-between", "BETWEEN includes both bounds.", assumption},
	{"condition-text", "BEGINS_WITH, CONTAINS and NOT_CONTAINS take strings, else 422.", assumption},
	{"condition-any", "A condition on an attribute of type any takes a scalar; of values of different kinds only NOT_EQUAL_TO and NOT_CONTAINS hold.", assumption},
	{"condition-unknown", "An unknown condition answers 400 INVALID_FILTER_CONDITION.", assumption},
	{"condition-values", "Too few values answer 400 INSUFFICIENT_FILTER_VALUES, too many 400 INVALID_FILTER_VALUES.", assumption},
	{"condition-empty", "Conditions without and and or answer 400 EMPTY_FILTER_OPERATOR.", assumption},
	{"condition-both", "Conditions with and and or answer 400 INVALID_FILTER_OPERATORS_COMBINATION.", assumption},
}

var queryRules = []Rule{
	{"query-where", "A query takes one condition, BEGINS_WITH on key; without one it gives every plain key.", "P, DOC"},
	{"query-where-codes", "Other conditions answer 400 QUERY_WHERE_INVALID, another property 400 QUERY_WHERE_FIELD_INVALID.", assumption},
	{"query-order", "A query gives keys in the order of their bytes.", "DOC"},
	{"query-limit", "A page has 10 results, or as many as asked for from 1 to 100.", "DOC"},
	{"query-limit-codes", "Another limit answers 400 LIST_QUERY_LIMIT_EXCEEDED, of an entity 400 COMPLEX_QUERY_PAGE_LIMIT_NOT_IN_RANGE.", "DOC"},
	{"query-limit-below", "A limit below 1 answers LIST_QUERY_LIMIT_EXCEEDED too, and the messages of both codes.", assumption},
	{"query-cursor", "The cursor of a page leads to the next one; the last page has none.", "P, DOC"},
	{"query-cursor-place", "A cursor is a place in the order: it stays good when its record is deleted, and other parameters are not noticed.", assumption},
	{"query-cursor-bad", "A cursor that is none answers 400 BAD_REQUEST.", assumption},
	{"query-lag", "Queries are eventually consistent.", "DOC"},
	{"query-lag-time", "Queries see what is stored at once; Options.QueryLag lets them lag.", assumption},
	{"query-ghost", "Queries show an expired record until it is swept.", "DOC"},
	{"query-metadata", "Results have the metadata that options.metadataFields names.", "P"},
	{"index-name", "An index in the form of an attribute's name has this name and ranges over the attribute.", "DOC"},
	{"index-by-key", "Every entity has the index by-key, which ranges over the keys.", "P, DOC"},
	{"index-unknown", "An undeclared index answers 400 INVALID_ENTITY_INDEX.", assumption},
	{"index-partition", "A query needs a value for each attribute of the index's partition, in their order.", "DOC"},
	{"index-partition-codes", "Too few, too many or ill-typed partition values answer 422 UNPROCESSABLE_ENTITY.", assumption},
	{"index-sparse", "A record without the range or a partition attribute is not in the index, nor with one that is no scalar.", assumption},
	{"index-range", "A range is EQUAL_TO, BETWEEN, BEGINS_WITH or one of the four comparisons.", "P"},
	{"index-range-codes", "Another condition answers 400 INVALID_FILTER_CONDITION, an ill-typed value 422 UNPROCESSABLE_ENTITY.", assumption},
	{"index-sort", "Sort is ASC or DESC.", "P"},
	{"index-order", "Results are in the order of the range attribute, then of the key; ascending without sort; DESC turns both.", assumption},
	{"index-sort-bad", "Another sort answers 400 BAD_REQUEST.", assumption},
	{"filters", "Filters take all twelve conditions, with and or with or, on any attribute.", "P"},
	{"filters-first", "Filters are applied before the limit: a page is full while results remain.", assumption},
	{"filters-codes", "Wrong filters answer as wrong conditions of a transaction do.", assumption},
}

var batchRules = []Rule{
	{"batch-single", "A batch does its items one by one; a refused one leaves the others.", "DOC"},
	{"batch-shape", "A batch answers 200 with successfulKeys and failedKeys; a failed key has the code and message of its error.", "P, L"},
	{"batch-missing", "Getting a missing key in a batch fails with KEY_NOT_FOUND.", "L"},
	{"batch-error", "A failed item has the error of the single call.", assumption},
	{"batch-order", "Both lists are in the order of the request; a key may be there twice.", assumption},
	{"batch-many", "More than 25 items answer 400 TOO_MANY_BATCH_ENTITIES and nothing lands.", "L"},
	{"batch-many-verb", "For a delete and a get the message has their verb.", assumption},
	{"batch-empty", "A batch without items answers 400 BAD_REQUEST.", assumption},
	{"batch-options", "Items take a ttl; those of a get take metadata fields.", "P"},
}

var quotaRules = []Rule{
	{"quota-limits", "An installation has 1000 requests a second, and 4000 reads and 4000 writes a minute.", "DOC"},
	{"quota-units", "A request counts 1 for each begun 10 KB; a batch and a transaction are one request of their total size.", "DOC"},
	{"quota-answer", "Over a quota the answer is 429.", "DOC"},
	{"quota-code", "The code is RATE_LIMIT_EXCEEDED for every quota, of the three documented; the message.", assumption},
	{"quota-window", "A second and a minute begin with the first request after the last has ended.", assumption},
	{"quota-size", "A write has the size of its request's body, a read that of its answer's; 10 KB are 10240 bytes.", assumption},
	{"quota-effect", "A transaction is a write, even of checks alone; a query is a read.", assumption},
	{"quota-refused", "A refused request is not counted; one that fails for another reason is.", assumption},
	{"quota-key", "The limits of one key, 1 MB/s of writes and 12 MB/s of reads, are not emulated.", assumption},
}

var serverRules = []Rule{
	{"http-paths", "The paths, bodies and statuses of the calls; a set answers 204, or 200 where a value is returned.", "P, RUN"},
	{"http-rest", "Forge Remotes have the same bodies below /forge/storage/kvs/v1/, with a bearer token.", "DOC"},
	{"http-unauthorized", "Without a valid token the answer is 401 UNAUTHORIZED.", assumption},
	{"http-trace", "Every answer has an x-b3-traceid.", "P"},
	{"http-body", "A body that is not the JSON of its path answers 400 BAD_REQUEST.", "P"},
	{"http-members", "Unknown members of a body are ignored; names are matched exactly, letter case included. sim serve --log warns of each.", assumption},
	{"http-null", "null for a member that has another type answers 400 BAD_REQUEST.", assumption},
	{"http-bad", "An unknown path, a wrong method, a body above 16 MiB, cut off or not UTF-8 answers 400 BAD_REQUEST.", assumption},
	{"http-latency", "Requests take no time; published latencies are A's, and that a read takes as long as a set.", assumption},
	{"transaction-clash", "Transactions on one key happen one after the other; sim serve --clash changes it.", assumption},
}

var sqlRules = []Rule{
	{"sql-shapes", "A statement answers rows, or affectedRows, fieldCount, info, insertId, serverStatus and warningStatus.", "P, DOC"},
	{"sql-lost-update", "An update that matches no row is 200 with affectedRows 0.", "DOC"},
	{"sql-one", "One statement a call, on a connection of its own: no transaction lasts longer.", "DOC"},
	{"sql-timeout", "A statement has 10 s, else QUERY_TIMED_OUT.", "DOC"},
	{"sql-timeout-all", "That holds for SELECT and DDL too.", assumption},
	{"sql-codes", "A syntax error is INVALID_SQL_QUERY, another error of the database SQL_EXECUTION_ERROR.", assumption},
	{"sql-status", "Errors have status 400, and 500 where there is no database; debug has the database's number and state.", assumption},
	{"sql-fixed", "info is empty, serverStatus 2 and warningStatus 0 for every statement.", assumption},
	{"sql-values", "DECIMAL, dates and times are text, JSON is JSON where the database has such a type, bytes are base 64.", assumption},
	{"sql-quota", "The quotas of Forge SQL are not emulated.", assumption},
}
