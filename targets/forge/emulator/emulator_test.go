package emulator

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

var lease = map[string]Entity{"lease": {
	Attributes: map[string]Type{
		"version": Integer, "expiresAt": Float, "holder": String, "held": Boolean, "note": Any,
	},
	Indexes: []Index{{Name: "version", Range: "version"}},
}}

func raw(text string) json.RawMessage { return json.RawMessage(text) }

func newLeases() *Store { return New(Options{Entities: lease}) }

// wantError checks status, code and message of a refusal; an empty message is
// not compared.
func wantError(t *testing.T, err error, status int, code, message string) {
	t.Helper()
	var refusal *Error
	if !errors.As(err, &refusal) {
		t.Fatalf("got error %v, want %d %s", err, status, code)
	}
	if refusal.Status != status || refusal.Code != code || message != "" && refusal.Message != message {
		t.Fatalf("got %v, want %d %s: %s", refusal, status, code, message)
	}
	if refusal.Message == "" {
		t.Fatalf("%s has no message", code)
	}
}

func noError(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantValue(t *testing.T, s *Store, entity, key, value string) {
	t.Helper()
	var item Item
	var err error
	if entity == "" {
		item, err = s.Get(key, GetOptions{})
	} else {
		item, err = s.EntityGet(entity, key, GetOptions{})
	}
	if value == "" {
		wantError(t, err, 404, "KEY_NOT_FOUND", "")
		return
	}
	noError(t, err)
	if string(item.Value) != value {
		t.Fatalf("%s %s: got %s, want %s", entity, key, item.Value, value)
	}
}

func TestConflictBodyHas89Bytes(t *testing.T) {
	body, err := json.Marshal(errKeyConflict)
	noError(t, err)
	want := `{"code":"KEY_CONFLICT","message":"Provided key already exists and cannot be overwritten"}`
	if string(body) != want || len(body) != 89 {
		t.Fatalf("got %d bytes %s", len(body), body)
	}
}

func TestOverwriteKeepsCreationAndMovesUpdate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Options{})
		all := []string{"CREATED_AT", "UPDATED_AT", "EXPIRE_TIME"}
		start := time.Now().UnixMilli()
		item, err := s.Set("k", raw(` { "a" : 1 } `), SetOptions{ReturnValue: "PREVIOUS"})
		if item != nil || err != nil {
			t.Fatalf("PREVIOUS of a new key: got %v, %v", item, err)
		}
		time.Sleep(time.Second)
		item, err = s.Set("k", raw(`2`), SetOptions{
			ReturnValue: "PREVIOUS", ReturnMetadataFields: all, TTL: &TTL{raw(`1`), "MINUTES"},
		})
		noError(t, err)
		wantJSON(t, item, fmt.Sprintf(`{"key":"k","value":{"a":1},"createdAt":%d,"updatedAt":%d}`, start, start))
		time.Sleep(time.Second)
		item, err = s.Set("k", raw(`3`), SetOptions{
			KeyPolicy: "OVERRIDE", ReturnValue: "LATEST", ReturnMetadataFields: all, TTL: &TTL{raw(`1`), "HOURS"},
		})
		noError(t, err)
		wantJSON(t, item, fmt.Sprintf(
			`{"key":"k","value":3,"createdAt":%d,"updatedAt":%d,"expireTime":"2000-01-01T01:00:02.000Z"}`, start, start+2000))
		read, err := s.Get("k", GetOptions{MetadataFields: []string{"UPDATED_AT"}})
		noError(t, err)
		wantJSON(t, read, fmt.Sprintf(`{"key":"k","value":3,"updatedAt":%d}`, start+2000))

		noError(t, s.Delete("k"))
		wantValue(t, s, "", "k", "")
		noError(t, s.Delete("k"))
		item, err = s.Set("k", raw(`4`), SetOptions{ReturnValue: "LATEST", ReturnMetadataFields: all})
		noError(t, err)
		wantJSON(t, item, fmt.Sprintf(`{"key":"k","value":4,"createdAt":%d,"updatedAt":%d}`, start+2000, start+2000))
	})
}

func wantJSON(t *testing.T, got any, want string) {
	t.Helper()
	text, err := json.Marshal(got)
	noError(t, err)
	if string(text) != want {
		t.Fatalf("got  %s\nwant %s", text, want)
	}
}

func TestRefusalsOfPlainKeys(t *testing.T) {
	nested := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	sized := func(n int) string { return `"` + strings.Repeat("x", n-2) + `"` }
	ttl := func(value, unit string) SetOptions { return SetOptions{TTL: &TTL{raw(value), unit}} }
	invalidBody := "Provided request body is invalid"
	for name, c := range map[string]struct {
		key, value string
		options    SetOptions
		status     int // 0: accepted
		code       string
		message    string
	}{
		"present":              {"old", `1`, SetOptions{KeyPolicy: "FAIL_IF_EXISTS"}, 409, "KEY_CONFLICT", "Provided key already exists and cannot be overwritten"},
		"absent":               {"new", `1`, SetOptions{KeyPolicy: "FAIL_IF_EXISTS"}, 0, "", ""},
		"override":             {"old", `1`, SetOptions{KeyPolicy: "OVERRIDE"}, 0, "", ""},
		"policy and return":    {"k", `1`, SetOptions{KeyPolicy: "FAIL_IF_EXISTS", ReturnValue: "LATEST"}, 400, "INVALID_KEY_POLICY_RETURN_VALUE_COMBINATION", ""},
		"unknown policy":       {"k", `1`, SetOptions{KeyPolicy: "fail"}, 400, "BAD_REQUEST", invalidBody},
		"unknown return":       {"k", `1`, SetOptions{ReturnValue: "BOTH"}, 400, "BAD_REQUEST", invalidBody},
		"unknown metadata":     {"k", `1`, SetOptions{ReturnValue: "LATEST", ReturnMetadataFields: []string{"OWNER"}}, 400, "BAD_REQUEST", invalidBody},
		"no value":             {"k", ``, SetOptions{}, 400, "BAD_REQUEST", invalidBody},
		"no json":              {"k", `{"a"`, SetOptions{}, 400, "BAD_REQUEST", invalidBody},
		"null":                 {"k", `null`, SetOptions{}, 0, "", ""},
		"ttl 0":                {"k", `1`, ttl("0", "SECONDS"), 400, "INVALID_TTL", "TTL value must be a positive integer, received: 0"},
		"ttl negative":         {"k", `1`, ttl("-5", "SECONDS"), 400, "INVALID_TTL", "TTL value must be a positive integer, received: -5"},
		"ttl fraction":         {"k", `1`, ttl("1.5", "SECONDS"), 400, "INVALID_TTL", "TTL value must be a positive integer, received: 1.5"},
		"ttl a year":           {"k", `1`, ttl("365", "DAYS"), 0, "", ""},
		"ttl a year and a day": {"k", `1`, ttl("366", "DAYS"), 400, "INVALID_TTL", ""},
		"ttl a year, seconds":  {"k", `1`, ttl("31536000", "SECONDS"), 0, "", ""},
		"ttl over, seconds":    {"k", `1`, ttl("31536001", "SECONDS"), 400, "INVALID_TTL", "TTL must end within one year"},
		"ttl huge":             {"k", `1`, ttl("99999999999999999999", "DAYS"), 400, "INVALID_TTL", "TTL must end within one year"},
		"ttl without value":    {"k", `1`, ttl("", "DAYS"), 400, "BAD_REQUEST", invalidBody},
		"ttl unit":             {"k", `1`, ttl("1", "WEEKS"), 400, "BAD_REQUEST", invalidBody},
		"key empty":            {"", `1`, SetOptions{}, 400, "KEY_TOO_SHORT", ""},
		"key 500":              {strings.Repeat("k", 500), `1`, SetOptions{}, 0, "", ""},
		"key 501":              {strings.Repeat("k", 501), `1`, SetOptions{}, 400, "KEY_TOO_LONG", ""},
		"key characters":       {"aZ09:._ -#\t", `1`, SetOptions{}, 0, "", ""},
		"key slash":            {"a/b", `1`, SetOptions{}, 400, "INVALID_KEY", ""},
		"key not ascii":        {"ä", `1`, SetOptions{}, 400, "INVALID_KEY", ""},
		"key blank":            {" \t", `1`, SetOptions{}, 400, "INVALID_KEY", ""},
		"value 240 KiB":        {"k", sized(240 << 10), SetOptions{}, 0, "", ""},
		"value larger":         {"k", sized(240<<10 + 1), SetOptions{}, 400, "MAX_SIZE", ""},
		"white space is free":  {"k", `1` + strings.Repeat(" ", 240<<10), SetOptions{}, 0, "", ""},
		"depth 31":             {"k", nested(31), SetOptions{}, 0, "", ""},
		"depth 32":             {"k", nested(32), SetOptions{}, 400, "MAX_DEPTH", ""},
		"brackets in strings":  {"k", `"\"` + strings.Repeat("[", 40) + `"`, SetOptions{}, 0, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := New(Options{})
			_, err := s.Set("old", raw(`0`), SetOptions{})
			noError(t, err)
			_, err = s.Set(c.key, raw(c.value), c.options)
			if c.status != 0 {
				wantError(t, err, c.status, c.code, c.message)
				wantValue(t, s, "", "old", `0`)
				return
			}
			noError(t, err)
			wantValue(t, s, "", c.key, strings.TrimSpace(c.value))
		})
	}
}

func TestRefusalsOfReads(t *testing.T) {
	s := newLeases()
	_, err := s.Get("k", GetOptions{})
	wantError(t, err, 404, "KEY_NOT_FOUND", "Provided key does not exist")
	_, err = s.EntityGet("lease", "k", GetOptions{})
	wantError(t, err, 404, "KEY_NOT_FOUND", "Provided key does not exist")
	_, err = s.Get("k", GetOptions{MetadataFields: []string{"created"}})
	wantError(t, err, 400, "BAD_REQUEST", "Provided request body is invalid")
	_, err = s.Get("?", GetOptions{})
	wantError(t, err, 400, "INVALID_KEY", "")
	wantError(t, s.Delete(""), 400, "KEY_TOO_SHORT", "")
	wantError(t, s.EntityDelete("lease", ""), 400, "EMPTY_KEY", "")
}

func TestNameSpacesAreSeparate(t *testing.T) {
	s := New(Options{Entities: map[string]Entity{"a": {}, "b": {}}})
	_, err := s.Set("k", raw(`1`), SetOptions{})
	noError(t, err)
	_, err = s.EntitySet("a", "k", raw(`{}`), SetOptions{KeyPolicy: "FAIL_IF_EXISTS"})
	noError(t, err)
	wantValue(t, s, "b", "k", "")
	noError(t, s.EntityDelete("a", "k"))
	wantValue(t, s, "a", "k", "")
	wantValue(t, s, "", "k", `1`)
}

func TestValuesAreNotShared(t *testing.T) {
	s := New(Options{})
	value := raw(`"abc"`)
	_, err := s.Set("k", value, SetOptions{})
	noError(t, err)
	value[1] = 'X'
	wantValue(t, s, "", "k", `"abc"`)
	item, err := s.Get("k", GetOptions{})
	noError(t, err)
	item.Value[1] = 'X'
	wantValue(t, s, "", "k", `"abc"`)
}

func TestOneOfTwelveWritersWins(t *testing.T) {
	s := New(Options{})
	results := make([]error, 12)
	var group sync.WaitGroup
	for i := range results {
		group.Go(func() {
			_, results[i] = s.Set("k", raw(fmt.Sprint(i)), SetOptions{KeyPolicy: "FAIL_IF_EXISTS"})
		})
	}
	group.Wait()
	winner := -1
	for i, err := range results {
		if err != nil {
			wantError(t, err, 409, "KEY_CONFLICT", "")
			continue
		}
		if winner >= 0 {
			t.Fatalf("writers %d and %d both won", winner, i)
		}
		winner = i
	}
	wantValue(t, s, "", "k", fmt.Sprint(winner))
}

func TestEntityTypes(t *testing.T) {
	digits := strings.Repeat("9", 38)
	for name, c := range map[string]struct {
		value, property string // property: the refused one
		declared        Type
	}{
		"integer max":       {`{"version":2147483647}`, "", ""},
		"integer min":       {`{"version":-2147483648}`, "", ""},
		"integer over":      {`{"version":2147483648}`, "version", Integer},
		"integer under":     {`{"version":-2147483649}`, "version", Integer},
		"integer string":    {`{"version":"0"}`, "version", Integer},
		"integer fraction":  {`{"version":1.5}`, "version", Integer},
		"integer null":      {`{"version":null}`, "version", Integer},
		"float epoch":       {`{"expiresAt":1787116436381}`, "", ""},
		"float 38 digits":   {`{"expiresAt":` + digits + `}`, "", ""},
		"float 39 digits":   {`{"expiresAt":` + digits + `.9}`, "expiresAt", Float},
		"float largest":     {`{"expiresAt":-9.9E+125}`, "", ""},
		"float too large":   {`{"expiresAt":1e126}`, "expiresAt", Float},
		"float smallest":    {`{"expiresAt":0.1e-129}`, "", ""},
		"float too small":   {`{"expiresAt":0.1e-130}`, "expiresAt", Float},
		"float absurd":      {`{"expiresAt":1e999999999}`, "expiresAt", Float},
		"float zero":        {`{"expiresAt":-0.0e9999}`, "", ""},
		"float string":      {`{"expiresAt":"1"}`, "expiresAt", Float},
		"string":            {`{"holder":""}`, "", ""},
		"string number":     {`{"holder":1}`, "holder", String},
		"boolean":           {`{"held":false}`, "", ""},
		"boolean string":    {`{"held":"true"}`, "held", Boolean},
		"any":               {`{"note":[null,{"a":1e999}]}`, "", ""},
		"partial":           {`{}`, "", ""},
		"first of two":      {`{"version":"x","held":1}`, "held", Boolean},
		"duplicate members": {`{"version":"x","version":1}`, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := newLeases()
			_, direct := s.EntitySet("lease", "direct", raw(c.value), SetOptions{})
			inside := s.Transact(Transaction{Set: []TransactionItem{{Key: "inside", EntityName: "lease", Value: raw(c.value)}}})
			if c.property != "" {
				wantError(t, direct, 400, "INCORRECT_PROPERTY_TYPE",
					`Data type for property "`+c.property+`" is defined as "`+string(c.declared)+`"`)
				wantError(t, inside, 422, "UNPROCESSABLE_ENTITY", "Request cannot be processed due to one or more semantic errors")
				return
			}
			noError(t, direct)
			noError(t, inside)
			wantValue(t, s, "lease", "direct", c.value)
			wantValue(t, s, "lease", "inside", c.value)
		})
	}
}

func TestRefusalsOfEntities(t *testing.T) {
	s := newLeases()
	_, err := s.EntitySet("lock", "k", raw(`{}`), SetOptions{})
	wantError(t, err, 404, "SCHEMA_NOT_FOUND", "The schema provided does not exist")
	_, err = s.EntityGet("", "k", GetOptions{})
	wantError(t, err, 404, "SCHEMA_NOT_FOUND", "The schema provided does not exist")
	wantError(t, s.EntityDelete("lock", "k"), 404, "SCHEMA_NOT_FOUND", "")
	_, err = s.EntitySet("lease", "k", raw(`[1]`), SetOptions{})
	wantError(t, err, 400, "INVALID_ENTITY_VALUE", "")
	_, err = s.EntitySet("lease", "k", raw(`{"owner":1}`), SetOptions{})
	wantError(t, err, 400, "INVALID_ENTITY_ATTRIBUTE", "")
	_, err = s.EntitySet("lease", "", raw(`{}`), SetOptions{})
	wantError(t, err, 400, "EMPTY_KEY", "")
	_, err = s.EntitySet("lease", "k", raw(`{}`), SetOptions{})
	noError(t, err)
	_, err = s.EntitySet("lease", "k", raw(`{}`), SetOptions{KeyPolicy: "FAIL_IF_EXISTS"})
	wantError(t, err, 409, "KEY_CONFLICT", "")
}

func TestRulesAreDistinctAndSourced(t *testing.T) {
	known := map[string]bool{}
	for _, source := range Sources() {
		known[source.Name] = source.Meaning != ""
	}
	seen := map[string]bool{}
	for _, rule := range Rules() {
		if rule.ID == "" || rule.Text == "" || seen[rule.ID] {
			t.Errorf("rule %+v is incomplete or repeated", rule)
		}
		seen[rule.ID] = true
		for source := range strings.SplitSeq(rule.Source, ", ") {
			if !known[source] {
				t.Errorf("rule %s has the unknown source %q", rule.ID, source)
			}
		}
	}
	if len(seen) == 0 {
		t.Error("no rules")
	}
}
