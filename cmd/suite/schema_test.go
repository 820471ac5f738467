package suite_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v4"
	"pgregory.net/rapid"

	"contend/cmd/suite"
)

const (
	draft2020 = "https://json-schema.org/draft/2020-12/schema"
	draft7    = "http://json-schema.org/draft-07/schema#"
)

// editors gives the schema as new editors read it, and as those do that know
// draft 7 alone.
func editors(t *testing.T, scenarios []suite.Scenario) map[string]*jsonschema.Schema {
	t.Helper()
	text, err := suite.Schema(scenarios)
	if err != nil {
		t.Fatal(err)
	}
	compiled := make(map[string]*jsonschema.Schema)
	for _, draft := range []string{draft2020, draft7} {
		document, err := jsonschema.UnmarshalJSON(bytes.NewReader(bytes.Replace(text, []byte(draft2020), []byte(draft), 1)))
		if err != nil {
			t.Fatal(err)
		}
		compiler := jsonschema.NewCompiler()
		if err := compiler.AddResource("suite.schema.json", document); err != nil {
			t.Fatal(err)
		}
		if compiled[draft], err = compiler.Compile("suite.schema.json"); err != nil {
			t.Fatal(err)
		}
	}
	return compiled
}

// asJSON gives what an editor sees of a file, which goes by YAML 1.2.
func asJSON(text string) (any, error) {
	var document yaml.Node
	if err := yaml.Unmarshal([]byte(text), &document); err != nil {
		return nil, err
	}
	var value func(n *yaml.Node) (any, error)
	value = func(n *yaml.Node) (any, error) {
		switch n.Kind {
		case yaml.MappingNode:
			m := make(map[string]any)
			for i := 0; i < len(n.Content); i += 2 {
				v, err := value(n.Content[i+1])
				if err != nil {
					return nil, err
				}
				m[n.Content[i].Value] = v
			}
			return m, nil
		case yaml.SequenceNode:
			all := []any{}
			for _, item := range n.Content {
				v, err := value(item)
				if err != nil {
					return nil, err
				}
				all = append(all, v)
			}
			return all, nil
		case yaml.AliasNode:
			return nil, errors.New("an alias")
		}
		switch n.ShortTag() {
		case "!!null":
			return nil, nil
		case "!!bool":
			return strconv.ParseBool(n.Value)
		case "!!int", "!!float":
			if json.Valid([]byte(n.Value)) {
				return json.Number(n.Value), nil
			}
			if f, err := strconv.ParseFloat(n.Value, 64); err == nil && f-f == 0 {
				return f, nil
			}
		}
		return n.Value, nil
	}
	if len(document.Content) == 0 {
		return nil, nil
	}
	return value(document.Content[0])
}

func TestSchemaTakesWhatReadTakes(t *testing.T) {
	schemas := editors(t, sample())
	try := func(t rapid.TB, text string) {
		document, err := asJSON(text)
		if err != nil {
			t.Fatal(err)
		}
		for draft, schema := range schemas {
			if err := schema.Validate(document); err != nil {
				t.Errorf("%s: %#v\n%s", draft, err, text)
			}
		}
	}
	for _, test := range good {
		t.Run(test.name, func(t *testing.T) { try(t, test.text) })
	}
	for _, name := range []string{"suite.yaml", "night.yaml"} {
		t.Run(name, func(t *testing.T) {
			text, err := os.ReadFile("../../examples/" + name)
			if err != nil {
				t.Fatal(err)
			}
			try(t, string(text))
		})
	}
	taken := 0
	t.Run("drawn", rapid.MakeCheck(func(t *rapid.T) {
		text := drawSuite(t)
		if _, err := read(text); err != nil {
			return
		}
		taken++
		try(t, text)
	}))
	if taken == 0 {
		t.Error("no suite was taken: nothing was tested")
	}
}

func TestSchemaRefuses(t *testing.T) {
	schemas := editors(t, sample())
	refused := func(t *testing.T, text string) {
		t.Helper()
		document, err := asJSON(text)
		if err != nil {
			t.Fatal(err)
		}
		for draft, schema := range schemas {
			if schema.Validate(document) == nil {
				t.Errorf("%s takes it", draft)
			}
		}
	}
	for _, test := range bad {
		if test.bySchema {
			t.Run(test.name, func(t *testing.T) { refused(t, test.text) })
		}
	}
	for _, text := range []string{
		"runs: [{scenario: version-cas}]\nrounds: 3", "runs: [{contenders: 2}]", "runs: [{}]", "runs: [text]", "runs: [{scenario: version-cas}]\ndefaults: 3", "defaults: {}",
	} {
		t.Run(text, func(t *testing.T) { refused(t, text) })
		if _, err := read(text); err == nil {
			t.Errorf("Read takes %q", text)
		}
	}
	// One thing wrong at a time: Read and the schema agree.
	for _, line := range []string{
		"scenario: nope", "scenario: [fail-if-exists]", "contender: 2", "keys: 2", "label: a=b", "output: json", "quiet: true", "record: f", "no-color: true", "no-progress: true", "dry-run: true",
		"contenders: ten", `contenders: "2"`, "contenders: 2.5", "contenders: []", "contenders: [2, x]", "contenders: [[2]]", "contenders:", "contenders: true", "contenders: {a: 1}",
		"timeout: 10", `timeout: "10"`, `timeout: "0"`, "timeout: 10x", "timeout: [1s, 2]", "timeout: 1_0s", `timeout: ""`, "rate: x", `rate: "1"`, "unguarded: yes", `unguarded: "true"`, "unguarded: 1",
		"release: gat", "release: [auto, gat]", "expect-verdict: broken", "expect: []", "expect: [{}]", "expect: ~", "seed: ~", "seed: [[]]", "seed: '${NAME}'", "key-prefix: ['${NAME}']", "expect: ['${NAME}']",
		"name: ''", "name: '  '", "name: []", "name: ~", "name: '${NAME}'", "labels: a", "labels: []", "labels: {a: ~}", "labels: {a: []}", "labels: {'': a}", "labels: {'a=b': c}", "labels: {'${NAME}': c}",
		"target: ~", "target: []", "target: {}",
	} {
		for _, text := range []string{
			"runs:\n- scenario: create-if-absent\n  " + line,
			"runs: [{scenario: ttl-ghost}]\ndefaults:\n  " + line,
		} {
			if strings.HasPrefix(line, "scenario") {
				text = "runs:\n- " + line
			}
			if strings.HasPrefix(text, "runs: [") && line == "keys: 2" {
				continue // is one of ttl-ghost's
			}
			if _, err := read(text); err == nil {
				t.Errorf("Read takes %q", text)
			}
			t.Run(line, func(t *testing.T) { refused(t, text) })
		}
	}
	for _, line := range []string{"budget: -1", "budget: 1.5", "page-token: a", "contenders: 2", "fencing-token: a"} {
		t.Run(line, func(t *testing.T) { refused(t, "runs:\n- scenario: ttl-ghost\n  "+line) })
	}
}

func TestSchemaIsReadable(t *testing.T) {
	text, err := suite.Schema(sample())
	if err != nil {
		t.Fatal(err)
	}
	if again, err := suite.Schema(sample()); err != nil || !bytes.Equal(text, again) {
		t.Errorf("made again it is another: %v", err)
	}
	var schema struct {
		Definitions map[string]struct {
			Description string
			Default     any
		} `json:"$defs"`
		Properties struct {
			Runs struct {
				Items struct {
					Properties struct {
						Scenario struct {
							Enum        []string
							Description string
						}
					}
				}
			}
		}
	}
	if err := json.Unmarshal(text, &schema); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]struct {
		description string
		value       any
	}{
		"--target":         {"the URL to run against; contend targets lists the kinds; a list makes a run for each value", "sim:"},
		"--contenders":     {"how many are released at once; a list makes a run for each value", 12.0},
		"--cap":            {"the longest time between two probes; a list makes a run for each value", "10m0s"},
		"--factor":         {"by which the time between two probes grows; a list makes a run for each value", 1.5},
		"--expect-verdict": {"held, or violated; a list makes a run for each value", "held"},
		"--rate":           {"requests a second at most; a list makes a run for each value", nil},
		"--duration":       {"run rounds until the time is up, instead of --rounds; a list makes a run for each value", nil},
		"--unguarded":      {"run only the negative control, the unguarded twin; a list makes a run for each value", nil},
		"--expect":         {"threshold such as 'p90(won)<250ms'; repeatable; a list gives several", nil},
	} {
		if got := schema.Definitions[name]; got.Description != want.description || got.Default != want.value {
			t.Errorf("%s: %+v", name, got)
		}
	}
	for _, name := range append(strings.Fields(suite.GivenToRun), "label", "page-token") {
		if _, there := schema.Definitions["--"+name]; there {
			t.Errorf("%s is there, which no suite may have", name)
		}
	}
	if _, twice := schema.Definitions["--target-2"]; twice {
		t.Error("scenarios that agree on a parameter have two definitions of it")
	}
	scenario := schema.Properties.Runs.Items.Properties.Scenario
	if got := strings.Join(scenario.Enum, " "); got != "fail-if-exists create-if-absent version-cas check-then-set ttl-ghost" {
		t.Errorf("scenarios are %s", got)
	}
	if !strings.HasPrefix(scenario.Description, "fail-if-exists: N contenders create one absent key\nversion-cas: ") {
		t.Errorf("scenarios are described as %q", scenario.Description)
	}
	if !strings.HasSuffix(string(text), "}\n") || strings.Contains(string(text), `\u003c`) {
		t.Error("not as an editor would write it")
	}
}

// Scenarios may have parameters of one name and of several types.
func TestSchemaOfVariants(t *testing.T) {
	scenarios := []suite.Scenario{
		{Name: "a", Parameters: []suite.Parameter{{Name: "x", Type: "int", Default: "1"}, {Name: "level", Type: "int", Values: []string{"1", "2"}}}},
		{Name: "b", Parameters: []suite.Parameter{{Name: "x", Type: "duration", Default: "1s"}, {Name: "level", Type: "string", Values: []string{"1", "off"}}}},
		{Name: "c", Parameters: []suite.Parameter{{Name: "x", Type: "int", Default: "1"}, {Name: "v", Type: "count"}, {Name: "list", Type: "intSlice"}, {Name: "token-mode", Type: "string", Values: []string{"off", "full"}}}},
	}
	schemas := editors(t, scenarios)
	for text, want := range map[string]bool{
		"runs: [{scenario: a, x: 1}]":                           true,
		"runs: [{scenario: a, x: 1s}]":                          false,
		"runs: [{scenario: b, x: 1s}]":                          true,
		"runs: [{scenario: b, x: 1}]":                           false,
		"runs: [{scenario: c, x: 1, v: 3, list: [1, 2]}]":       true,
		"runs: [{scenario: c, v: -3}]":                          false,
		"runs: [{scenario: c, token-mode: full}]":               true,
		"runs: [{scenario: c, list: [1, x]}]":                   false,
		"defaults: {x: 1}\nruns: [{scenario: a}]":               true,
		"defaults: {x: 1s}\nruns: [{scenario: b}]":              true,
		"defaults: {x: true}\nruns: [{scenario: b}]":            false,
		"defaults: {x: 1}\nruns: [{scenario: c}]":               true,
		"runs: [{scenario: a, level: 2}]":                       true,
		"runs: [{scenario: a, level: 3}]":                       false,
		"runs: [{scenario: a, level: '2'}]":                     false,
		"runs: [{scenario: b, level: [1, '1', off]}]":           true,
		"runs: [{scenario: b, level: 2}]":                       false,
		"defaults: {x: 1, v: 2}\nruns: [{scenario: c, x: [3]}]": true,
	} {
		document, err := asJSON(text)
		if err != nil {
			t.Fatal(err)
		}
		for draft, schema := range schemas {
			if err := schema.Validate(document); (err == nil) != want {
				t.Errorf("%s: %s: %v", text, draft, err)
			}
		}
		if _, err := suite.Read("s", []byte(text), scenarios, getenv, func(suite.Run) error { return nil }); (err == nil) != want {
			t.Errorf("Read: %s: %v", text, err)
		}
	}
	if _, err := suite.Schema([]suite.Scenario{{Name: "a", Parameters: []suite.Parameter{{Name: "x", Type: "int", Default: "many"}}}}); err == nil ||
		err.Error() != `schema of a: --x: default "many" is not a whole number` {
		t.Errorf("a default that is none: %v", err)
	}
}
