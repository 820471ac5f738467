package suite

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

type reader struct {
	scenarios []Scenario
	getenv    func(string) (string, bool)
	check     func(Run) error
	problems  []Problem
}

// problem notes what is wrong at a node; a text is one line.
func (r *reader) problem(at *yaml.Node, format string, a ...any) {
	text := strings.Join(strings.FieldsFunc(fmt.Sprintf(format, a...), func(c rune) bool { return c == '\n' || c == '\r' }), "; ")
	r.problems = append(r.problems, Problem{at.Line, at.Column, text})
}

// defaults are what the file says of all runs.
type defaults struct {
	parameters []field
	labels     map[string]string
}

// entry is a run as it is written, with its lists.
type entry struct {
	node     *yaml.Node
	scenario *Scenario
	name     string // empty: none is given
	axes     []axis
	labels   map[string]string // never nil
	labelsAt *yaml.Node
	// wrong has the parameters whose values were refused.
	wrong map[string]bool
}

// axis is a parameter with the values that it takes in turn.
type axis struct {
	name    string
	choices []choice
}

type choice struct {
	values  []string
	written string // as the file has it, without secrets
	at      *yaml.Node
}

// suite reads the whole file.
func (r *reader) suite(text []byte) []Run {
	top := r.parse(text)
	if top == nil {
		return nil
	}
	r.walk(top)
	if top.Kind != yaml.MappingNode {
		if !told(top) {
			r.problem(top, "a suite is a mapping with runs, and with defaults if need be; there is %s", describe(top))
		}
		return nil
	}
	var shared defaults
	var runs *yaml.Node
	for _, f := range fields(top) {
		switch f.name {
		case "defaults":
			shared = r.defaults(f.value)
		case "runs":
			runs = f.value
		default:
			otherwise := ": a suite has defaults and runs"
			if slices.ContainsFunc(r.scenarios, func(s Scenario) bool { return s.has(f.name) }) {
				otherwise = ": a parameter goes under defaults or under a run"
			}
			r.problem(f.key, "unknown key %s%s", shown(f.name), suggestion(f.name, []string{"defaults", "runs"}, otherwise))
		}
	}
	switch {
	case runs == nil:
		r.problem(top, "runs is missing: a suite needs a list of at least one run")
	case told(runs):
	case runs.Kind != yaml.SequenceNode || len(runs.Content) == 0:
		r.problem(runs, "runs wants a list with at least one run; there is %s", describe(runs))
	default:
		var entries []*entry
		for _, n := range runs.Content {
			if e := r.entry(n, shared); e != nil {
				entries = append(entries, e)
			}
		}
		r.unused(shared, entries)
		return r.multiply(entries)
	}
	r.unused(shared, nil)
	return nil
}

// defaults reads the keys; a value is read as each scenario has the parameter.
func (r *reader) defaults(n *yaml.Node) defaults {
	var d defaults
	if told(n) {
		return d
	}
	if n.Kind != yaml.MappingNode {
		r.problem(n, "defaults wants a mapping of parameters; there is %s", describe(n))
		return d
	}
	for _, f := range fields(n) {
		switch f.name {
		case "labels":
			d.labels = r.labels(f.value)
		case "name", "scenario":
			r.problem(f.key, "%s belongs to a run, not to defaults", f.name)
		default:
			if r.isParameter(f, nil, "labels") {
				d.parameters = append(d.parameters, f)
			}
		}
	}
	return d
}

// unused reads the defaults that no run's scenario has, for what is wrong with them.
func (r *reader) unused(d defaults, entries []*entry) {
	for _, f := range d.parameters {
		if !slices.ContainsFunc(entries, func(e *entry) bool { return e.scenario != nil && e.scenario.has(f.name) }) {
			for _, s := range r.scenarios {
				if p, ok := s.parameter(f.name); ok {
					r.choices(p, f.value)
					break
				}
			}
		}
	}
}

// entry reads a run; nil where nothing of it can be read.
func (r *reader) entry(n *yaml.Node, shared defaults) *entry {
	if told(n) {
		return nil
	}
	if n.Kind != yaml.MappingNode {
		r.problem(n, "a run is a mapping with a scenario; there is %s", describe(n))
		return nil
	}
	e := &entry{node: n, labelsAt: n, labels: make(map[string]string), wrong: make(map[string]bool)}
	maps.Copy(e.labels, shared.labels)
	own := fields(n)
	at := slices.IndexFunc(own, func(f field) bool { return f.name == "scenario" })
	if at < 0 {
		r.problem(n, "scenario is missing: a run needs one of %s", r.scenarioNames())
	} else {
		e.scenario = r.scenario(own[at].value)
	}
	if e.scenario != nil {
		for _, f := range shared.parameters {
			p, ok := e.scenario.parameter(f.name)
			if !ok {
				continue
			}
			choices := r.choices(p, f.value)
			if !slices.ContainsFunc(own, func(f field) bool { return f.name == p.Name || e.scenario.exclude(p, f.name) }) {
				e.take(p, choices)
			}
		}
	}
	for _, f := range own {
		switch f.name {
		case "scenario":
		case "name":
			e.name, _ = r.text("name", f.value)
			if strings.TrimSpace(e.name) == "" && e.name != "" || strings.ContainsFunc(e.name, isControl) {
				r.problem(f.value, "name wants one line of text")
			}
		case "labels":
			e.labelsAt = f.value
			maps.Copy(e.labels, r.labels(f.value))
		default:
			if r.isParameter(f, e.scenario, "name", "scenario", "labels") && e.scenario != nil {
				p, _ := e.scenario.parameter(f.name)
				e.take(p, r.choices(p, f.value))
			}
		}
	}
	return e
}

func (e *entry) take(p Parameter, choices []choice) {
	if len(choices) == 0 {
		e.wrong[p.Name] = true
		return
	}
	e.axes = append(e.axes, axis{p.Name, choices})
}

// scenario finds the scenario that is named.
func (r *reader) scenario(n *yaml.Node) *Scenario {
	name, ok := r.text("scenario", n)
	if !ok {
		return nil
	}
	var names []string
	for i, s := range r.scenarios {
		if s.Name == name || slices.Contains(s.Aliases, name) {
			return &r.scenarios[i]
		}
		names = append(append(names, s.Name), s.Aliases...)
	}
	r.problem(n, "unknown scenario %s; there are %s%s", shown(name), r.scenarioNames(), suggestion(name, names, ""))
	return nil
}

func (r *reader) scenarioNames() string {
	var names []string
	for _, s := range r.scenarios {
		names = append(names, s.Name)
	}
	return strings.Join(names, ", ")
}

func (s Scenario) parameter(name string) (Parameter, bool) {
	for _, p := range s.Parameters {
		if p.Name == name {
			return p, true
		}
	}
	return Parameter{}, false
}

func (s Scenario) has(name string) bool {
	_, ok := s.parameter(name)
	return ok
}

// exclude tells whether p and the other cannot be given together.
func (s Scenario) exclude(p Parameter, other string) bool {
	o, ok := s.parameter(other)
	return ok && (slices.Contains(p.Excludes, other) || slices.Contains(o.Excludes, p.Name))
}

// isParameter tells whether a key is a parameter of the scenario, or of any where
// that is nil; if it is not, or is none that a file may have, it says so. others
// are keys that may have been meant.
func (r *reader) isParameter(f field, s *Scenario, others ...string) bool {
	if reason := refusal(f.name); reason != "" {
		r.problem(f.key, "%s is not for a suite file: %s", f.name, reason)
		return false
	}
	candidates, having := others, []string(nil)
	for i := range r.scenarios {
		other := &r.scenarios[i]
		if told := other.Removed[f.name]; told != "" && (s == nil || s == other) {
			r.problem(f.key, "%s %s", f.name, told)
			return false
		}
		p, ok := other.parameter(f.name)
		if ok && (s == nil || s == other) {
			if p.secret() {
				r.problem(f.key, secretKey, f.name)
			}
			return !p.secret()
		}
		if ok {
			having = append(having, other.Name)
		}
		if s == nil || s == other {
			for _, p := range other.settable() {
				candidates = append(candidates, p.Name)
			}
		}
	}
	otherwise := ": no scenario has such a parameter"
	if s != nil {
		otherwise = ": `contend " + s.Name + " --help` lists the parameters"
	}
	switch {
	case len(having) > 0:
		r.problem(f.key, "unknown key %q: %s has no such parameter; %s has", f.name, s.Name, strings.Join(having, ", "))
	case hintsSecret(f.name):
		r.problem(f.key, secretKey, shown(f.name))
	default:
		r.problem(f.key, "unknown key %s%s", shown(f.name), suggestion(f.name, candidates, otherwise))
	}
	return false
}

// settable gives the parameters that a suite file can have.
func (s Scenario) settable() []Parameter {
	return slices.DeleteFunc(slices.Clone(s.Parameters), func(p Parameter) bool { return refusal(p.Name) != "" || p.secret() })
}

// refusal gives why no suite has this flag of a scenario, or "".
func refusal(name string) string {
	switch {
	case name == "label":
		return "write labels, a mapping such as labels: {site: test}"
	case name == "record":
		return "a record holds one run; give --record to the command of the scenario"
	case name == "resume":
		return "`contend nightly` goes on with the keys of earlier nights, and `contend ttl-ghost --resume` with a watch"
	case name == "help", name == "run":
		return "it is no parameter of a scenario"
	case slices.Contains(strings.Fields(GivenToRun), name):
		return "it is for all runs; give it to `contend run` itself"
	}
	return ""
}

// labels reads a mapping of names to texts.
func (r *reader) labels(n *yaml.Node) map[string]string {
	if told(n) {
		return nil
	}
	if n.Kind != yaml.MappingNode {
		r.problem(n, "labels wants a mapping of names to texts, such as {site: test}; there is %s", describe(n))
		return nil
	}
	labels := make(map[string]string)
	for _, f := range fields(n) {
		if f.name == "" || strings.Contains(f.name, "=") || strings.Contains(f.name, opening) {
			r.problem(f.key, "label %s: a name has at least one character, and neither = nor ${", shown(f.name))
			continue
		}
		if raw, ok := r.scalar("label "+f.name, "a text", f.value); ok {
			if value, ok := r.fromEnvironment(f.value, raw, true); ok && leaks(value) {
				r.problem(f.value, "label %s would carry a secret into every report", f.name)
			} else if ok {
				labels[f.name] = value
			}
		}
	}
	return labels
}
