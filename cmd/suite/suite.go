// Package suite reads suite files: several scenarios, targets and lists of
// parameters in one YAML file.
//
//	defaults:                        # parameters of every run whose scenario has them
//	  target: "sim:"
//	runs:
//	  - scenario: fail-if-exists
//	    name: create race            # optional
//	    labels: {site: "${SITE}"}    # optional; beside the defaults' labels
//	    contenders: [2, 12, 50]      # a list multiplies the run
//	    expect: ["throttled==0"]     # a repeatable parameter takes a list as it is
//
// Every other key of a run is a long flag of its scenario, without its dashes.
// A run's own key goes before the default of that name, and before the default of
// a parameter that excludes it. Several lists multiply each other; they vary as
// written, defaults first, the last one fastest.
//
// ${NAME} is replaced from the environment in target and in the values of labels,
// and nowhere else; $${ writes ${. What NAME holds is put in as it is, so a
// password in it must be percent-encoded where it becomes a part of a URL. A
// secret in the file itself is refused, and no error shows one.
//
// Aliases, anchors, merge keys and tags of YAML are refused: what they would do,
// defaults and lists do here.
package suite

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// MaxRuns is how many runs a suite may make.
const MaxRuns = 1000

// GivenToRun names the flags that no suite file sets, since they are for all of
// its runs: they are given to `contend run` itself.
const GivenToRun = "dry-run help no-color no-progress output quiet record resume run store"

// Scenario is what a suite can run.
type Scenario struct {
	Name       string
	Aliases    []string
	Summary    string
	Parameters []Parameter // its long flags
	// Removed are flags that it had before, and what a user of them is told.
	Removed map[string]string
}

// Parameter is a long flag of a scenario.
type Parameter struct {
	Name    string
	Type    string // as pflag names it; one that ends in Array or Slice is repeatable
	Usage   string
	Default string
	Values  []string // all that it can be; nil: whatever its type allows
	// Excludes names parameters that cannot be given together with this one.
	Excludes []string
}

// Suite is what a file asks for.
type Suite struct {
	File string
	Runs []Run // at least one
}

// Run is one scenario with one set of parameters, after lists were multiplied out.
type Run struct {
	// Name is unique in the suite. Where the file gives none, it is the scenario's
	// and the parameters in which its unnamed runs differ, so that another run in
	// the file may change it.
	Name      string
	Scenario  string // its name, also where the file has an alias
	Arguments []Argument
	Labels    map[string]string // the run's own; never nil
	Line      int               // of the run in the file
	Column    int
}

// Argument is a parameter that is given.
type Argument struct {
	Name   string
	Values []string // one, or several of a repeatable parameter; texts as flags take them
	Line   int      // of the value
	Column int
}

// Problem is something wrong at a place of a file, both counted from 1.
type Problem struct {
	Line, Column int
	Text         string
}

// Problems are all that is wrong with a file, in the file's order.
type Problems struct {
	File string
	List []Problem
}

func (p *Problems) Error() string {
	var lines []string
	for _, problem := range p.List {
		lines = append(lines, fmt.Sprintf("%s:%d:%d: %s", p.File, problem.Line, problem.Column, problem.Text))
	}
	return strings.Join(lines, "\n")
}

// Read reads a suite file. check is asked about each run; it gives what is wrong
// with it, several things joined by [errors.Join], and shows no secret. A text
// that begins with "--NAME" is told at the place of that parameter, others at the
// place of the run. The error is a [*Problems] with everything that is wrong.
func Read(file string, text []byte, scenarios []Scenario, getenv func(string) (string, bool), check func(Run) error) (*Suite, error) {
	r := reader{scenarios: scenarios, getenv: getenv, check: check}
	runs := r.suite(text)
	if len(r.problems) == 0 {
		return &Suite{File: file, Runs: runs}, nil
	}
	told := make(map[Problem]bool)
	problems := slices.DeleteFunc(r.problems, func(p Problem) bool {
		twice := told[p]
		told[p] = true
		return twice
	})
	slices.SortStableFunc(problems, func(a, b Problem) int { return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column)) })
	return nil, &Problems{File: file, List: problems}
}
