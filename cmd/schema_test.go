package cmd_test

import (
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v4"
)

// The schema is that of the flags that there are; `go generate ./cmd` makes it. It
// takes the examples, and sees a typo.
func TestSuiteSchema(t *testing.T) {
	text := example(t, "suite.schema.json")
	if code, stdout, stderr := contend(t, "suite-schema"); code != 0 || stdout != text {
		t.Errorf("exit %d: examples/suite.schema.json is out of date, run go generate ./cmd\n%s", code, stderr)
	}
	document, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource("suite.schema.json", document); err != nil {
		t.Fatal(err)
	}
	schema, err := compiler.Compile("suite.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"suite.yaml", "night.yaml"} {
		text := example(t, name)
		if !strings.HasPrefix(text, "# yaml-language-server: $schema=suite.schema.json\n") {
			t.Errorf("%s does not name the schema to editors", name)
		}
		for _, c := range []struct {
			text string
			good bool
		}{{text, true}, {strings.Replace(text, "    contenders: ", "    contender: ", 1), false}, {strings.Replace(text, "    keys: ", "    rounds: ", 1), false}} {
			var value any
			if err := yaml.Unmarshal([]byte(c.text), &value); err != nil {
				t.Fatal(err)
			}
			if err := schema.Validate(value); (err == nil) != c.good {
				t.Errorf("%s: %v\n%s", name, err, c.text)
			}
		}
	}
}
