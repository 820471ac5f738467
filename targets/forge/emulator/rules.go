package emulator

// Rule is one behaviour of the engine. Source says where it was seen:
//
//	P           read in the client package of the platform
//	RUN         observed by running that package
//	DOC         the documentation of the platform
//	A           "Locking in Forge KVS", measured live
//	L           a live measurement by a third party
//	assumption  not known; the engine had to choose
type Rule struct {
	ID     string
	Text   string
	Source string
}

const assumption = "assumption"

// Rules returns every behaviour of the engine with its source.
func Rules() []Rule {
	var all []Rule
	for _, group := range [][]Rule{keyRules, valueRules, ghostRules, entityRules, transactionRules, conditionRules} {
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
	{"key-name-spaces", "Plain keys and the keys of each entity are separate name spaces.", assumption},
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
	{"ttl-year-code", "A longer TTL answers 400 INVALID_TTL; a year has 365 days.", assumption},
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
