package suite

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"contend/targets/near"
)

// differences gives, for each scenario, the parameters in which its runs without a
// name differ.
func differences(entries []*entry) map[*Scenario]map[string]bool {
	differing := make(map[*Scenario]map[string]bool)
	first := make(map[*Scenario]*entry)
	for _, e := range entries {
		if e.name != "" || e.scenario == nil {
			continue
		}
		other := first[e.scenario]
		if other == nil {
			first[e.scenario], differing[e.scenario] = e, make(map[string]bool)
			continue
		}
		for _, a := range slices.Concat(e.axes, other.axes) {
			if e.written(a.name) != other.written(a.name) {
				differing[e.scenario][a.name] = true
			}
		}
	}
	return differing
}

// written gives all that is written of a parameter.
func (e *entry) written(name string) string {
	var all []string
	for _, a := range e.axes {
		if a.name == name {
			for _, c := range a.choices {
				all = append(all, c.written)
			}
		}
	}
	return strings.Join(all, " ")
}

// inName gives a value as a part of a name.
func inName(value string) string {
	if value == "" || strings.ContainsFunc(value, func(c rune) bool { return unicode.IsSpace(c) || isControl(c) || c == '"' }) {
		return strconv.Quote(value)
	}
	return value
}

func isControl(c rune) bool { return unicode.IsControl(c) || c == '\u2028' || c == '\u2029' }

// number makes names unique: the second of a name becomes "name #2".
func number(runs []Run) {
	taken := make(map[string]bool)
	for _, run := range runs {
		taken[run.Name] = true
	}
	seen := make(map[string]bool)
	next := make(map[string]int)
	for i := range runs {
		name := runs[i].Name
		if !seen[name] {
			seen[name], next[name] = true, 2
			continue
		}
		for taken[runs[i].Name] {
			runs[i].Name = fmt.Sprintf("%s #%d", name, next[name])
			next[name]++
		}
	}
}

// suggestion gives ": did you mean X?" for the candidate that is nearly the name,
// otherwise what is given.
func suggestion(name string, candidates []string, otherwise string) string {
	best := near.Name(name, candidates)
	if best == "" {
		return otherwise
	}
	return ": did you mean " + best + "?"
}
