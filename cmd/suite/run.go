package suite

import (
	"maps"
	"math/big"
	"strings"

	"go.yaml.in/yaml/v4"
)

// multiply gives the runs that the lists make, each checked.
func (r *reader) multiply(entries []*entry) []Run {
	total, most := new(big.Int), big.NewInt(MaxRuns)
	var over *yaml.Node // the run that is too much
	for _, e := range entries {
		if e.scenario == nil {
			continue
		}
		product := big.NewInt(1)
		for _, a := range e.axes {
			product.Mul(product, big.NewInt(int64(len(a.choices))))
		}
		if total.Add(total, product).Cmp(most) > 0 && over == nil {
			over = e.node
		}
	}
	if over != nil {
		r.problem(over, "with this the suite makes more than %d runs, %s in all: shorten a list", MaxRuns, total)
	}
	differing := differences(entries)
	var runs []Run
	var from []*entry // of each run
	for _, e := range entries {
		if e.scenario == nil {
			continue
		}
		// picked has the index of the choice on each axis; the last turns fastest.
		picked := make([]int, len(e.axes))
		for more := true; more && len(runs) < MaxRuns; more = e.turn(picked) {
			runs, from = append(runs, e.run(picked, differing[e.scenario])), append(from, e)
		}
	}
	number(runs)
	for i, e := range from {
		r.ask(e, runs[i])
	}
	return runs
}

// turn picks the next choices, and tells whether there are any.
func (e *entry) turn(picked []int) bool {
	for i := len(picked) - 1; i >= 0; i-- {
		if picked[i]++; picked[i] < len(e.axes[i].choices) {
			return true
		}
		picked[i] = 0
	}
	return false
}

// run gives the run with these choices; others may have its name.
func (e *entry) run(picked []int, differing map[string]bool) Run {
	run := Run{Name: e.name, Scenario: e.scenario.Name, Labels: maps.Clone(e.labels), Line: e.node.Line, Column: e.node.Column}
	if e.name == "" {
		run.Name = e.scenario.Name
	}
	for i, a := range e.axes {
		c := a.choices[picked[i]]
		run.Arguments = append(run.Arguments, Argument{a.name, c.values, c.at.Line, c.at.Column})
		if len(a.choices) > 1 || e.name == "" && differing[a.name] {
			run.Name += " " + a.name + "=" + c.written
		}
	}
	return run
}

// ask has a run checked. What is wrong with a parameter that was refused already
// is not told again; without the right target nothing can be said.
func (r *reader) ask(e *entry, run Run) {
	if e.wrong["target"] {
		return
	}
	for _, err := range separate(r.check(run)) {
		at, name := e.node, ""
		if flag, ok := strings.CutPrefix(err.Error(), "--"); ok {
			name = flag[:len(flag)-len(strings.TrimLeft(flag, "abcdefghijklmnopqrstuvwxyz0123456789-"))]
		}
		if e.wrong[name] {
			continue
		}
		for _, a := range run.Arguments {
			if a.Name == name {
				at = &yaml.Node{Line: a.Line, Column: a.Column}
			}
		}
		if name == "label" {
			at = e.labelsAt
		}
		r.problem(at, "%s", err.Error())
	}
}

// separate gives the errors that errors.Join has put together.
func separate(err error) []error {
	if err == nil {
		return nil
	}
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{err}
	}
	var texts []string
	var all []error
	for _, e := range joined.Unwrap() {
		texts = append(texts, e.Error())
		all = append(all, separate(e)...)
	}
	if strings.Join(texts, "\n") != err.Error() {
		return []error{err}
	}
	return all
}
