package suite

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Schema gives a JSON Schema of suite files, for editors. It is made of the flags
// themselves, which are the one source of what a suite can have, and not of Go
// structs; so a library that reflects on these would have nothing to read.
//
// What depends on the environment, on secrets or on two parameters together is
// left to [Read]: the schema takes everything that Read takes, and more. It keeps
// to what is in draft 7 too, which is all that many editors know: so a run has its
// properties listed again under its scenario, instead of unevaluatedProperties.
func Schema(scenarios []Scenario) ([]byte, error) {
	d := definitions{variants: make(map[string][]string), schemas: object{
		"labels": object{
			"type": "object", "description": "texts that go into every output; ${NAME} is replaced from the environment",
			"propertyNames":        object{"pattern": `^[^=]+$`, "not": object{"pattern": substituted}},
			"additionalProperties": object{"type": scalars},
		},
	}}
	var names, summaries []string
	var conditions []any
	for _, s := range scenarios {
		properties := object{"scenario": true, "name": true, "labels": true}
		for _, p := range s.settable() {
			r, err := d.of(p)
			if err != nil {
				return nil, fmt.Errorf("schema of %s: --%s: %w", s.Name, p.Name, err)
			}
			properties[p.Name] = r
		}
		called := append([]string{s.Name}, s.Aliases...)
		names = append(names, called...)
		summaries = append(summaries, s.Name+": "+plainUsage(s.Summary))
		conditions = append(conditions, object{
			"if":   object{"properties": object{"scenario": object{"enum": called}}, "required": []string{"scenario"}},
			"then": object{"properties": properties, "additionalProperties": false},
		})
	}
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	err := encoder.Encode(document(d, names, summaries, conditions))
	return b.Bytes(), err
}

// document is the schema as a whole.
func document(d definitions, names, summaries []string, conditions []any) object {
	return object{
		"$schema":     "https://json-schema.org/draft/2020-12/schema",
		"title":       "contend suite",
		"description": "several scenarios, targets and lists of parameters, for `contend run`",
		"$defs":       d.schemas,
		"type":        "object", "required": []string{"runs"}, "additionalProperties": false,
		"properties": object{
			"defaults": object{
				"type": "object", "description": "parameters of every run whose scenario has them; a run's own go first",
				"properties": d.shared(), "additionalProperties": false,
			},
			"runs": object{"type": "array", "minItems": 1, "items": object{
				"type": "object", "required": []string{"scenario"},
				"properties": object{
					"scenario": object{"enum": names, "description": strings.Join(summaries, "\n")},
					"name": object{
						"type": scalars, "pattern": `\S`, "not": unreplaced,
						"description": "of the run in reports; default: the scenario and the parameters that differ",
					},
					"labels": object{"$ref": "#/$defs/labels"},
				},
				"allOf": conditions,
			}},
		},
	}
}

// definitions are the schemas of parameters: one for all scenarios that agree on it.
type definitions struct {
	variants map[string][]string // of a parameter, as JSON
	schemas  object              // by their name
}

// of gives a reference to the schema of a parameter, which it defines where need be.
func (d definitions) of(p Parameter) (object, error) {
	schema, err := p.schema()
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(schema)
	if err != nil {
		return nil, err
	}
	i := slices.Index(d.variants[p.Name], string(text))
	if i < 0 {
		i = len(d.variants[p.Name])
		d.variants[p.Name] = append(d.variants[p.Name], string(text))
		d.schemas[definitionName(p.Name, i)] = schema
	}
	return referTo(p.Name, i), nil
}

// shared refers to all parameters, which may be of any variant.
func (d definitions) shared() object {
	all := object{"labels": object{"$ref": "#/$defs/labels"}}
	for name, variants := range d.variants {
		var any []object
		for i := range variants {
			any = append(any, referTo(name, i))
		}
		all[name] = any[0]
		if len(any) > 1 {
			all[name] = object{"anyOf": any}
		}
	}
	return all
}

func referTo(parameter string, variant int) object {
	return object{"$ref": "#/$defs/" + definitionName(parameter, variant)}
}

type object = map[string]any

// substituted is the pattern of what is replaced in target and in labels only.
const substituted = `\$\{`

var (
	// scalars are the types that a text may look like.
	scalars    = []string{"string", "number", "boolean"}
	unreplaced = object{"type": "string", "pattern": substituted}
)

func definitionName(parameter string, variant int) string {
	if variant == 0 {
		return "--" + parameter
	}
	return fmt.Sprintf("--%s-%d", parameter, variant+1)
}

// plainUsage is a usage without the quotes that pflag takes a name from.
func plainUsage(usage string) string { return strings.ReplaceAll(usage, "`", "") }

// schema gives what a parameter may be: one value, or a list of them.
func (p Parameter) schema() (object, error) {
	k, repeatable := p.kind()
	one := object{}
	switch k {
	case aText:
		one["type"] = scalars
		if p.Name != "target" {
			one["not"] = unreplaced
		}
	case aWhole:
		one["type"] = "integer"
	case aNatural:
		one["type"], one["minimum"] = "integer", 0
	case aNumber:
		one["type"] = "number"
	case aBool:
		one["type"] = "boolean"
	case aDuration:
		one["type"], one["pattern"] = "string", durationPattern
	}
	if p.Values != nil {
		var values []any
		for _, v := range p.Values {
			if k == aText {
				values = append(values, v)
			}
			if json.Valid([]byte(v)) { // written without quotes
				values = append(values, json.RawMessage(v))
			}
		}
		one = object{"enum": values}
	}
	description := plainUsage(p.Usage)
	many := "a list makes a run for each value"
	if repeatable {
		many = "a list gives several"
	}
	whole := object{"description": description + "; " + many, "anyOf": []object{one, {"type": "array", "minItems": 1, "items": one}}}
	switch {
	case repeatable || slices.Contains([]string{"", "0", "0s", "false"}, p.Default): // as pflag, which does not tell these
	case k == aText || k == aDuration:
		whole["default"] = p.Default
	case json.Valid([]byte(p.Default)):
		whole["default"] = json.RawMessage(p.Default)
	default:
		return nil, fmt.Errorf("default %q is not %s", p.Default, k)
	}
	return whole, nil
}
