package emulator

import (
	"encoding/json"
	"fmt"
)

// Error is a refusal. Its JSON is the body of the answer. Errors are shared
// between calls: read them, do not change them.
type Error struct {
	Status  int    `json:"-"`
	Code    string `json:"code"`
	Message string `json:"message"`
}

func (e *Error) Error() string {
	return fmt.Sprintf("%d %s: %s", e.Status, e.Code, e.Message)
}

// TTL is a time to live: a positive integer of units, at most a year. Unit is
// SECONDS, MINUTES, HOURS or DAYS.
type TTL struct {
	Value json.RawMessage `json:"value"`
	Unit  string          `json:"unit"`
}

// SetOptions are the options of a single set.
type SetOptions struct {
	TTL *TTL `json:"ttl,omitempty"`
	// KeyPolicy is OVERRIDE (as is the empty string) or FAIL_IF_EXISTS, which
	// excludes ReturnValue.
	KeyPolicy string `json:"keyPolicy,omitempty"`
	// ReturnValue is PREVIOUS, LATEST or empty for no returned item.
	ReturnValue string `json:"returnValue,omitempty"`
	// ReturnMetadataFields names metadata of the returned item: CREATED_AT,
	// UPDATED_AT, EXPIRE_TIME.
	ReturnMetadataFields []string `json:"returnMetadataFields,omitempty"`
}

// GetOptions are the options of a get. MetadataFields names the metadata to
// read: CREATED_AT, UPDATED_AT, EXPIRE_TIME.
type GetOptions struct {
	MetadataFields []string `json:"metadataFields,omitempty"`
}

// Item is a record as the wire shows it. Metadata is there only where it was
// asked for.
type Item struct {
	Key        string          `json:"key"`
	Value      json.RawMessage `json:"value"`
	CreatedAt  *int64          `json:"createdAt,omitempty"`  // epoch milliseconds
	UpdatedAt  *int64          `json:"updatedAt,omitempty"`  // epoch milliseconds
	ExpireTime *string         `json:"expireTime,omitempty"` // ISO 8601, UTC; absent without a TTL
}

// Condition compares one attribute of an entity record with values. Condition
// is one of EQUAL_TO, NOT_EQUAL_TO, EXISTS, NOT_EXISTS, GREATER_THAN,
// GREATER_THAN_EQUAL_TO, LESS_THAN, LESS_THAN_EQUAL_TO, BETWEEN (two values),
// BEGINS_WITH, CONTAINS and NOT_CONTAINS. The value of EXISTS and NOT_EXISTS
// is true.
type Condition struct {
	Property  string            `json:"property"`
	Condition string            `json:"condition"`
	Values    []json.RawMessage `json:"values"`
}

// Conditions hold where all of And hold or where one of Or holds. Exactly one
// of the two lists has members.
type Conditions struct {
	And []Condition `json:"and,omitempty"`
	Or  []Condition `json:"or,omitempty"`
}

// ItemOptions are the options of one set of a transaction. A key policy is none of
// them: there conditions are for that.
type ItemOptions struct {
	TTL *TTL `json:"ttl,omitempty"`
}

// TransactionItem is one operation of a transaction. Value and Options belong
// to a set. Conditions need an entity.
type TransactionItem struct {
	Key        string          `json:"key"`
	Value      json.RawMessage `json:"value,omitempty"`
	EntityName string          `json:"entityName,omitempty"`
	Conditions *Conditions     `json:"conditions,omitempty"`
	Options    *ItemOptions    `json:"options,omitempty"`
}

// Transaction is at most 25 operations that land together or not at all.
type Transaction struct {
	Set    []TransactionItem `json:"set,omitempty"`
	Delete []TransactionItem `json:"delete,omitempty"`
	Check  []TransactionItem `json:"check,omitempty"`
}

// Words of the wire protocol.
const (
	override           = "OVERRIDE"
	failIfExists       = "FAIL_IF_EXISTS"
	returnPrevious     = "PREVIOUS"
	returnLatest       = "LATEST"
	metadataCreatedAt  = "CREATED_AT"
	metadataUpdatedAt  = "UPDATED_AT"
	metadataExpireTime = "EXPIRE_TIME"
	sortAscending      = "ASC"
	sortDescending     = "DESC"
)

// Answers whose code and message are known. Rules names their sources.
var (
	errKeyNotFound       = &Error{404, "KEY_NOT_FOUND", "Provided key does not exist"}
	errKeyConflict       = &Error{409, "KEY_CONFLICT", "Provided key already exists and cannot be overwritten"}
	errConditionFailed   = &Error{400, "CONDITIONAL_CHECK_FAILED", "Request failed due to conditional check specified or optimistic locking"}
	errUnprocessable     = &Error{422, "UNPROCESSABLE_ENTITY", "Request cannot be processed due to one or more semantic errors"}
	errDuplicateKey      = &Error{400, "KEY_DUPLICATION_ERROR", "Duplicate key found in request"}
	errEmptyTransaction  = &Error{400, "INVALID_TRANSACTION_REQUEST", "Transaction request must include one of set, check or delete."}
	errSchemaNotFound    = &Error{404, "SCHEMA_NOT_FOUND", "The schema provided does not exist"}
	errInvalidBody       = &Error{400, "BAD_REQUEST", "Provided request body is invalid"}
	errPolicyCombination = &Error{400, "INVALID_KEY_POLICY_RETURN_VALUE_COMBINATION", "Key policy FAIL_IF_EXISTS cannot be combined with a return value"}
)

// Answers whose code is listed by the platform and whose message is an
// assumption.
var (
	errKeyTooShort        = &Error{400, "KEY_TOO_SHORT", "Provided key must have at least one character"}
	errEmptyKey           = &Error{400, "EMPTY_KEY", "Provided key cannot be empty"}
	errKeyTooLong         = &Error{400, "KEY_TOO_LONG", "Provided key has more than 500 characters"}
	errInvalidKey         = &Error{400, "INVALID_KEY", "Provided key has characters that are not allowed"}
	errMaxSize            = &Error{400, "MAX_SIZE", "Provided value is larger than the maximum size"}
	errMaxDepth           = &Error{400, "MAX_DEPTH", "Provided value is deeper than the maximum depth"}
	errLongTTL            = &Error{400, "INVALID_TTL", "TTL must end within one year"}
	errEntityValue        = &Error{400, "INVALID_ENTITY_VALUE", "Value of an entity must be an object"}
	errListLimit          = &Error{400, "LIST_QUERY_LIMIT_EXCEEDED", "The limit of a query must be between 1 and 100"}
	errWhere              = &Error{400, "QUERY_WHERE_INVALID", "A query takes one condition, BEGINS_WITH"}
	errWhereField         = &Error{400, "QUERY_WHERE_FIELD_INVALID", "A condition of a query must be on key"}
	errPageLimit          = &Error{400, "COMPLEX_QUERY_PAGE_LIMIT_NOT_IN_RANGE", "The page limit must be set between 1 and 100."}
	errEntityIndex        = &Error{400, "INVALID_ENTITY_INDEX", "Provided index does not exist"}
	errFilterEmpty        = &Error{400, "EMPTY_FILTER_OPERATOR", "Conditions must include one of and, or"}
	errFilterCombination  = &Error{400, "INVALID_FILTER_OPERATORS_COMBINATION", "Conditions must not combine and with or"}
	errFilterCondition    = &Error{400, "INVALID_FILTER_CONDITION", "Provided condition does not exist"}
	errFilterValues       = &Error{400, "INVALID_FILTER_VALUES", "Condition has too many values"}
	errInsufficientValues = &Error{400, "INSUFFICIENT_FILTER_VALUES", "Condition has too few values"}
)

// invalidTTL has its message from the number 0; of anything else, shown as JSON and
// cut where it is long, it is an assumption.
func invalidTTL(value json.RawMessage) error {
	return &Error{400, "INVALID_TTL", fmt.Sprintf("TTL value must be a positive integer, received: %.100s", value)}
}

func incorrectPropertyType(name string, declared Type) error {
	return &Error{400, "INCORRECT_PROPERTY_TYPE", fmt.Sprintf("Data type for property %q is defined as %q", name, declared)}
}

// undeclaredAttribute has a listed code and an assumed message.
func undeclaredAttribute(name string) error {
	return &Error{400, "INVALID_ENTITY_ATTRIBUTE", fmt.Sprintf("Property %q is not defined", name)}
}
