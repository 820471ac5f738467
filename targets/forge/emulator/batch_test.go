package emulator

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

func TestBatchesAreBestEffort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newLeases()
		result, err := s.BatchSet([]BatchItem{
			{Key: "a", Value: raw(`1`), Options: BatchOptions{TTL: halfMinute}},
			{Key: "b", EntityName: "lease", Value: raw(`{"version":"1"}`)},
			{Key: "", Value: raw(`1`)},
			{Key: "c", EntityName: "lock", Value: raw(`{}`)},
			{Key: "a", EntityName: "lease", Value: raw(`{}`)},
		})
		noError(t, err)
		wantJSON(t, result, `{"successfulKeys":[{"key":"a"},{"key":"a","entityName":"lease"}],"failedKeys":[`+
			`{"key":"b","entityName":"lease","error":{"code":"INCORRECT_PROPERTY_TYPE","message":"Data type for property \"version\" is defined as \"integer\""}},`+
			`{"key":"","error":{"code":"KEY_TOO_SHORT","message":"Provided key must have at least one character"}},`+
			`{"key":"c","entityName":"lock","error":{"code":"SCHEMA_NOT_FOUND","message":"The schema provided does not exist"}}]}`)
		result, err = s.BatchGet([]BatchItem{
			{Key: "a", Options: BatchOptions{MetadataFields: []string{"CREATED_AT", "UPDATED_AT", "EXPIRE_TIME"}}},
			{Key: "b"}, {Key: "a", EntityName: "lease"}})
		noError(t, err)
		now := time.Now().UnixMilli()
		wantJSON(t, result, fmt.Sprintf(`{"successfulKeys":[{"key":"a","value":1,"createdAt":%d,"updatedAt":%d,"expireTime":"2000-01-01T00:00:30.000Z"},`+
			`{"key":"a","entityName":"lease","value":{}}],"failedKeys":[`+
			`{"key":"b","error":{"code":"KEY_NOT_FOUND","message":"Provided key does not exist"}}]}`, now, now))
		result, err = s.BatchDelete([]BatchItem{{Key: "a"}, {Key: "gone"}, {Key: "?"}})
		noError(t, err)
		wantJSON(t, result, `{"successfulKeys":[{"key":"a"},{"key":"gone"}],"failedKeys":[`+
			`{"key":"?","error":{"code":"INVALID_KEY","message":"Provided key has characters that are not allowed"}}]}`)
		wantValue(t, s, "", "a", "")
		wantValue(t, s, "lease", "a", `{}`)
	})
}

func TestBatchHas25Items(t *testing.T) {
	s := New(Options{})
	items := func(n int) []BatchItem {
		all := make([]BatchItem, n)
		for i := range all {
			all[i] = BatchItem{Key: fmt.Sprint("k", i), Value: raw(`1`)}
		}
		return all
	}
	for verb, batch := range map[string]func([]BatchItem) (BatchResult, error){
		"set": s.BatchSet, "delete": s.BatchDelete, "get": s.BatchGet,
	} {
		_, err := batch(items(26))
		wantError(t, err, 400, "TOO_MANY_BATCH_ENTITIES",
			"Number of entities to "+verb+" was 26, but you can only "+verb+" a maximum of 25 entities at a time.")
		_, err = batch(nil)
		wantError(t, err, 400, "BAD_REQUEST", "")
	}
	wantValue(t, s, "", "k0", "")
	result, err := s.BatchSet(items(25))
	noError(t, err)
	if len(result.SuccessfulKeys) != 25 || len(result.FailedKeys) != 0 {
		t.Fatalf("got %+v", result)
	}
}

func TestSecretsHaveTheirOwnNameSpace(t *testing.T) {
	s := New(Options{})
	item, err := s.SecretSet("k", raw(`"secret"`), SetOptions{KeyPolicy: "FAIL_IF_EXISTS"})
	if item != nil || err != nil {
		t.Fatalf("got %v, %v", item, err)
	}
	_, err = s.SecretSet("k", raw(`"other"`), SetOptions{KeyPolicy: "FAIL_IF_EXISTS"})
	wantError(t, err, 409, "KEY_CONFLICT", "")
	wantValue(t, s, "", "k", "")
	read, err := s.SecretGet("k", GetOptions{})
	noError(t, err)
	wantJSON(t, read, `{"key":"k","value":"secret"}`)
	noError(t, s.Delete("k"))
	noError(t, s.SecretDelete("k"))
	_, err = s.SecretGet("k", GetOptions{})
	wantError(t, err, 404, "KEY_NOT_FOUND", "")
}
