package emulator

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

// whole has a body for each path, with every member that its call knows.
var whole = map[string]string{
	"get":           `{"key":"k","entityName":"e","options":{"metadataFields":["CREATED_AT"]}}`,
	"set":           `{"key":"k","entityName":"e","value":{"Key":1,"keypolicy":2},"options":{"ttl":{"value":1,"unit":"DAYS"},"keyPolicy":"OVERRIDE","returnValue":"LATEST","returnMetadataFields":["CREATED_AT"]}}`,
	"batch/set":     `[{"key":"k","entityName":"e","value":{"TTL":1},"options":{"ttl":{"value":1,"unit":"DAYS"},"metadataFields":[]}}]`,
	"query":         `{"where":[{"property":"key","condition":"BEGINS_WITH","values":["k"]}],"limit":3,"after":"x","options":{"metadataFields":[]}}`,
	"entity/query":  `{"entityName":"e","indexName":"by-key","partition":[],"range":{"property":"p","condition":"EQUAL_TO","values":["k"]},"filters":{"and":[{"property":"p","condition":"EXISTS","values":[true]}],"or":[{"property":"p","condition":"EXISTS","values":[true]}]},"sort":"ASC","limit":3,"cursor":"x","options":{"metadataFields":[]}}`,
	"transaction":   `{"set":[` + wholeItem + `],"delete":[` + wholeItem + `],"check":[` + wholeItem + `]}`,
	"delete":        "get",
	"batch/get":     "batch/set",
	"batch/delete":  "batch/set",
	"secret/get":    "get",
	"secret/set":    "set",
	"secret/delete": "get",
	"entity/get":    "get",
	"entity/set":    "set",
	"entity/delete": "get",
}

const wholeItem = `{"key":"k","value":{"Conditions":1},"entityName":"e","conditions":{"and":[{"property":"p","condition":"EXISTS","values":[true]}],"or":[]},"options":{"ttl":{"value":1,"unit":"DAYS"}}}`

// members calls with the path of every member below a JSON value, those of records'
// values left out, and with how to rename it.
func members(value any, path string, each func(path, name string, in map[string]any)) {
	switch value := value.(type) {
	case []any:
		for _, item := range value {
			members(item, path+"[]", each)
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(value)) {
			each(below(path, name), name, value)
			if _, ttl := value["unit"]; name != "value" || ttl {
				members(value[name], below(path, name), each)
			}
		}
	}
}

// A name in another case of letters is not the name, in every call and at every
// depth; the warning names the right one.
func TestNamesAreMatchedExactly(t *testing.T) {
	renamed := 0
	for _, path := range CallPaths() {
		body := whole[path]
		if body == "" {
			t.Errorf("%s: there is no body", path)
			continue
		}
		if same, ok := whole[body]; ok {
			body = same
		}
		call, _ := CallAt(path)
		if unknown := call.Unknown([]byte(body)); len(unknown) > 0 {
			t.Errorf("%s: unknown %v in %s", path, unknown, body)
		}
		var value any
		noError(t, json.Unmarshal([]byte(body), &value))
		var all []string
		members(value, "", func(path, _ string, _ map[string]any) { all = append(all, path) })
		for i, want := range all {
			var copied any
			noError(t, json.Unmarshal([]byte(body), &copied))
			n, wrong := 0, ""
			members(copied, "", func(at, name string, in map[string]any) {
				if n == i {
					wrong = strings.ToUpper(name)
					in[wrong] = in[name]
					delete(in, name)
				}
				n++
			})
			text, err := json.Marshal(copied)
			noError(t, err)
			shown := want[:len(want)-len(wrong)] + wrong
			if got := call.Unknown(text); len(got) != 1 || got[0] != (Unknown{shown, want}) {
				t.Errorf("%s %s: got %v, want %s for %s", path, text, got, shown, want)
			}
			renamed++
		}
	}
	if renamed < 100 {
		t.Errorf("%d members were renamed", renamed)
	}
}

// A misspelt guard does not guard, and a misspelt time to live is none.
func TestMisspeltMembersHaveNoEffect(t *testing.T) {
	for _, c := range []struct{ path, body, want string }{
		{"set", `{"key":"k","value":2,"options":{"keypolicy":"FAIL_IF_EXISTS"}}`, "options.keypolicy options.keyPolicy"},
		{"set", `{"key":"k","value":2,"options":{"KeyPolicy":"FAIL_IF_EXISTS"}}`, "options.KeyPolicy options.keyPolicy"},
		{"set", `{"key":"k","value":2,"keyPolicy":"FAIL_IF_EXISTS"}`, "keyPolicy options.keyPolicy"},
		{"set", `{"key":"k","value":2,"Options":{"keyPolicy":"FAIL_IF_EXISTS"}}`, "Options options"},
		{"set", `{"key":"k","value":2,"options":{"TTL":{"value":0,"unit":"DAYS"}}}`, "options.TTL options.ttl"},
		{"set", `{"key":"k","value":2,"ttl":{"value":0,"unit":"DAYS"}}`, "ttl options.ttl"},
		{"set", `{"key":"k","value":2,"somethingElse":1}`, "somethingElse "},
		{"batch/set", `[{"key":"k","value":2,"options":{"keyPolicy":"FAIL_IF_EXISTS"}}]`, "[].options.keyPolicy "},
		{"transaction", `{"set":[{"key":"k","value":2,"options":{"keyPolicy":"FAIL_IF_EXISTS"}}]}`, "set[].options.keyPolicy "},
		{"transaction", `{"set":[{"key":"k","value":2,"options":{"keyPolicy":"x","returnValue":1}}]}`, "set[].options.keyPolicy set[].options.returnValue "},
		{"transaction", `{"set":[{"key":"k","value":2,"condition":{"and":[]}}]}`, "set[].condition set[].conditions"},
	} {
		s := New(Options{})
		_, err := s.Set("k", raw(`1`), SetOptions{})
		noError(t, err)
		call, _ := CallAt(c.path)
		_, err = call.Do(s, []byte(c.body))
		noError(t, err)
		wantValue(t, s, "", "k", `2`)
		got := ""
		for _, u := range call.Unknown([]byte(c.body)) {
			got += fmt.Sprint(u.Path, " ", u.Meant)
		}
		if got != c.want {
			t.Errorf("%s: got %q, want %q", c.body, got, c.want)
		}
	}
	// An entity that is not named is a plain key.
	s := New(Options{})
	call, _ := CallAt("transaction")
	_, err := call.Do(s, []byte(`{"set":[{"key":"k","value":{},"entityname":"e"}]}`))
	noError(t, err)
	wantValue(t, s, "", "k", `{}`)
}

func TestBodiesOfAnotherShape(t *testing.T) {
	invalid := "400 BAD_REQUEST"
	received := func(text string) string {
		return "400 INVALID_TTL: TTL value must be a positive integer, received: " + text
	}
	set := func(options string) string { return `{"key":"k","value":1,"options":` + options + `}` }
	ttl := func(value string) string { return set(`{"ttl":{"value":` + value + `,"unit":"SECONDS"}}`) }
	for _, c := range []struct{ path, body, want string }{
		{"set", ttl(`"5"`), received(`"5"`)},
		{"set", ttl(`""`), received(`""`)},
		{"set", ttl(`1.5`), received(`1.5`)},
		{"set", ttl(`5.0`), received(`5.0`)},
		{"set", ttl(`1e3`), received(`1e3`)},
		{"set", ttl(`-1`), received(`-1`)},
		{"set", ttl(`null`), received(`null`)},
		{"set", ttl(`true`), received(`true`)},
		{"set", ttl(`[5]`), received(`[5]`)},
		{"set", ttl(`{"value":5}`), received(`{"value":5}`)},
		{"set", ttl(`"` + strings.Repeat("x", 5000) + `"`), received(`"` + strings.Repeat("x", 99))},
		{"batch/set", `[{"key":"k","value":1,"options":{"ttl":{"value":"5","unit":"SECONDS"}}}]`, "" /* of the item */},
		{"transaction", `{"set":[{"key":"k","value":1,"options":{"ttl":{"value":"5","unit":"SECONDS"}}}]}`, received(`"5"`)},
		{"set", set(`{"ttl":{"unit":"SECONDS"}}`), invalid},
		{"set", set(`{"ttl":{"value":5}}`), invalid},
		{"set", set(`{"ttl":{"value":5,"unit":"seconds"}}`), invalid},
		{"set", set(`{"ttl":{"value":5,"unit":null}}`), invalid},
		{"set", set(`{"ttl":{"Value":5,"unit":"SECONDS"}}`), invalid},
		{"set", set(`{"ttl":5}`), invalid},
		{"set", set(`{"ttl":null}`), invalid},
		{"set", set(`{"keyPolicy":null}`), invalid},
		{"set", set(`null`), invalid},
		{"set", `{"key":null,"value":1}`, invalid},
		{"set", `null`, invalid},
		{"set", `[]`, invalid},
		{"set", `{} {}`, invalid},
		{"batch/get", `null`, invalid},
		{"batch/get", `[null]`, invalid},
		{"transaction", `{"set":null}`, invalid},
		{"query", `{"limit":"10"}`, invalid},
		{"query", `{"limit":1.5}`, invalid},
		{"set", `{"key":"k","value":null}`, ""},
	} {
		call, _ := CallAt(c.path)
		result, err := call.Do(New(Options{}), []byte(c.body))
		got := ""
		if err != nil {
			got = err.Error()
		}
		if (c.want == "") != (got == "") || !strings.HasPrefix(got, c.want) || len(got) > 300 {
			t.Errorf("%s %.200s: got %q, want %q", c.path, c.body, got, c.want)
		}
		if batch, ok := result.(BatchResult); ok && (len(batch.FailedKeys) != 1 || batch.FailedKeys[0].Error.Code != "INVALID_TTL") {
			t.Errorf("%s: got %+v", c.body, batch)
		}
	}
}

func FuzzDecode(f *testing.F) {
	for _, body := range whole {
		f.Add([]byte(body))
	}
	f.Add([]byte(`{"key":"k","KEY":{},"key":"l"}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, path := range CallPaths() {
			call, _ := CallAt(path)
			call.Unknown(body)
			if _, err := call.Do(New(Options{}), body); err == nil && !json.Valid(body) {
				t.Errorf("%s took what is no JSON: %q", path, body)
			}
		}
	})
}
