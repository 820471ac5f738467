package emulator

import (
	"encoding/json"
	"errors"
	"fmt"
)

// BatchItem is one operation of a batch. Value and Options.TTL belong to a set,
// Options.MetadataFields to a get.
type BatchItem struct {
	Key        string          `json:"key"`
	EntityName string          `json:"entityName,omitempty"`
	Value      json.RawMessage `json:"value,omitempty"`
	Options    BatchOptions    `json:"options"`
}

// BatchOptions are the options of one item of a batch.
type BatchOptions struct {
	TTL            *TTL     `json:"ttl,omitempty"`
	MetadataFields []string `json:"metadataFields,omitempty"`
}

// BatchResult tells what became of each item of a batch, in the order of the
// request.
type BatchResult struct {
	SuccessfulKeys []BatchSuccess `json:"successfulKeys"`
	FailedKeys     []BatchFailure `json:"failedKeys"`
}

// BatchSuccess is an item that was done. Only a get has a value and metadata.
type BatchSuccess struct {
	Key        string          `json:"key"`
	EntityName string          `json:"entityName,omitempty"`
	Value      json.RawMessage `json:"value,omitempty"`
	CreatedAt  *int64          `json:"createdAt,omitempty"`  // epoch milliseconds
	UpdatedAt  *int64          `json:"updatedAt,omitempty"`  // epoch milliseconds
	ExpireTime *string         `json:"expireTime,omitempty"` // ISO 8601, UTC
}

// BatchFailure is an item that was refused, with the error of its single twin.
type BatchFailure struct {
	Key        string `json:"key"`
	EntityName string `json:"entityName,omitempty"`
	Error      *Error `json:"error"`
}

// BatchSet writes at most 25 items, one by one: a refused item lets the others
// land. More answer 400 TOO_MANY_BATCH_ENTITIES and nothing lands.
func (s *Store) BatchSet(items []BatchItem) (BatchResult, error) {
	return s.batch("set", items, func(t *table, item BatchItem) (Item, error) {
		_, err := s.set(t, item.Key, item.Value, SetOptions{TTL: item.Options.TTL})
		return Item{}, err
	})
}

// BatchDelete is BatchSet for deletes; a missing key succeeds.
func (s *Store) BatchDelete(items []BatchItem) (BatchResult, error) {
	return s.batch("delete", items, func(t *table, item BatchItem) (Item, error) {
		return Item{}, s.delete(t, item.Key)
	})
}

// BatchGet reads at most 25 items. A missing key is among the failed ones, with
// KEY_NOT_FOUND.
func (s *Store) BatchGet(items []BatchItem) (BatchResult, error) {
	return s.batch("get", items, func(t *table, item BatchItem) (Item, error) {
		return s.get(t, item.Key, GetOptions{MetadataFields: item.Options.MetadataFields})
	})
}

func (s *Store) batch(verb string, items []BatchItem, do func(*table, BatchItem) (Item, error)) (BatchResult, error) {
	switch {
	case len(items) == 0:
		return BatchResult{}, errInvalidBody
	case len(items) > maxOperations:
		return BatchResult{}, tooManyBatchEntities(verb, len(items))
	}
	result := BatchResult{SuccessfulKeys: []BatchSuccess{}, FailedKeys: []BatchFailure{}}
	for _, item := range items {
		t, err := s.table(item.EntityName)
		var read Item
		if err == nil {
			read, err = do(t, item)
		}
		if refusal := (*Error)(nil); errors.As(err, &refusal) {
			result.FailedKeys = append(result.FailedKeys, BatchFailure{item.Key, item.EntityName, refusal})
			continue
		}
		result.SuccessfulKeys = append(result.SuccessfulKeys, BatchSuccess{
			item.Key, item.EntityName, read.Value, read.CreatedAt, read.UpdatedAt, read.ExpireTime})
	}
	return result, nil
}

// tooManyBatchEntities has its message from a batch of sets; for the others the
// verb is an assumption.
func tooManyBatchEntities(verb string, count int) error {
	return &Error{400, "TOO_MANY_BATCH_ENTITIES", fmt.Sprintf(
		"Number of entities to %s was %d, but you can only %s a maximum of %d entities at a time.", verb, count, verb, maxOperations)}
}
