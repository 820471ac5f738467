package server

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"contend/targets/forge/emulator"
)

func TestParseManifest(t *testing.T) {
	got, err := ParseManifest([]byte(`
app:
  id: ari:cloud:ecosystem::app/x
  storage:
    entities:
      - name: book
        attributes: {author: &s {type: string}, year: {type: integer}, price: {type: float}, lent: {type: boolean}, note: {type: any}, title: *s}
        indexes:
          - year
          - name: by-author
            range: [year]
            partition:
              - author
              - title
      - name: bare
        attributes:
          token:
            type: string
modules: {}
`))
	want := map[string]emulator.Entity{
		"book": {
			Attributes: map[string]emulator.Type{"author": emulator.String, "year": emulator.Integer, "price": emulator.Float,
				"lent": emulator.Boolean, "note": emulator.Any, "title": emulator.String},
			Indexes: []emulator.Index{{Name: "year", Range: "year"},
				{Name: "by-author", Range: "year", Partition: []string{"author", "title"}}}},
		"bare": {Attributes: map[string]emulator.Type{"token": emulator.String}},
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
	for _, text := range []string{"", "app: {id: x}", "app: {storage: {entities: []}}"} {
		if got, err := ParseManifest([]byte(text)); len(got) != 0 || err != nil {
			t.Errorf("%q: got %v, %v", text, got, err)
		}
	}
}

func TestWrongManifestsTellTheLine(t *testing.T) {
	// Line 1 is the head, line 2 what is named.
	entity := func(text string) string { return "app: {storage: {entities: [\n" + text + "]}}" }
	for text, want := range map[string]string{
		"app:\n\tx: 1":                     "line 2",
		"- app":                            "line 1",
		entity(`{attributes: {}}`):         "line 2: an entity needs a name",
		entity(`{name: [x]}`):              "line 2",
		entity(`{name: e}`):                `line 2: entity "e" needs attributes`,
		entity(`{name: e, attributes: 1}`): "line 2",
		entity(`{name: e, attributes: {a: {type: string}}}, {name: e, attributes: {a: {type: string}}}`):    `line 2: entity "e" is there twice`,
		entity(`{name: e, attributes: {a: {type: text}}}`):                                                  `line 2: type "text" of attribute "a" is not one of`,
		entity(`{name: e, attributes: {a: {}}}`):                                                            `entity "e": attribute "a" needs a type`,
		entity(`{name: e, attributes: {a: {type: any}}, indexes: [b]}`):                                     `line 2: index "b" names the attribute "b"`,
		entity(`{name: e, attributes: {a: {type: any}}, indexes: [a, a]}`):                                  `line 2: index "a" is there twice`,
		entity(`{name: e, attributes: {a: {type: any}}, indexes: [{range: [a]}]}`):                          "line 2: an index needs a name",
		entity(`{name: e, attributes: {a: {type: any}}, indexes: [{name: by-key, range: [a]}]}`):            "line 2: the index by-key",
		entity(`{name: e, attributes: {a: {type: any}}, indexes: [{name: i}]}`):                             `line 2: the range of index "i" needs one`,
		entity(`{name: e, attributes: {a: {type: any}}, indexes: [{name: i, range: [a, a]}]}`):              `line 2: the range of index "i" needs one`,
		entity(`{name: e, attributes: {a: {type: any}}, indexes: [{name: i, range: [a], partition: [b]}]}`): `line 2: index "i" names the attribute "b"`,
		entity(`{name: e, attributes: {a: {type: any}}, indexes: [[a]]}`):                                   "line 2",
	} {
		if got, err := ParseManifest([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\ngot %v, %v; want %s", text, got, err, want)
		}
	}
}

// The companion app declares what is served without a manifest.
func TestDefaultEntitiesAreTheApps(t *testing.T) {
	text, err := os.ReadFile("../app/manifest.yml")
	if err != nil {
		t.Fatal(err)
	}
	got, err := ParseManifest(text)
	if diff := cmp.Diff(got, DefaultEntities()); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
}
