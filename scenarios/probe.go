package scenarios

import (
	"flag"
	"fmt"
	"slices"
	"strings"

	"contend/scenarios/probe"
)

// Probe asks a store single requests, to see how it answers.
type Probe struct {
	Only  Groups         `json:"only,omitempty"`  // none: all
	Since *probe.Earlier `json:"since,omitempty"` // what an earlier probe was answered; nil: nothing to compare with
}

// Groups are the names of groups of questions; as a flag, repeatable.
type Groups []string

// Set adds one.
func (g *Groups) Set(name string) error { *g = append(*g, name); return nil }

// String is the list with commas.
func (g *Groups) String() string { return strings.Join(*g, ",") }

// Type makes it repeatable on the command line and in suite files.
func (g *Groups) Type() string { return "stringArray" }

// GetSlice, Append and Replace are those of a list on the command line.
func (g *Groups) GetSlice() []string { return *g }

// Append adds one.
func (g *Groups) Append(name string) error { return g.Set(name) }

// Replace takes others in their place.
func (g *Groups) Replace(names []string) error { *g = names; return nil }

// Info describes the scenario.
func (*Probe) Info() Info {
	return Info{
		Name:    "probe",
		Summary: "single requests, no race: how a store answers wrong types, bounds, sizes, times to live; its error objects",
		Help: `Asked: single requests, one after the other, in a store's own language: types and bounds, direct and in a transaction,
limits, times to live, lost conditions, and what no documentation tells. Each answer stands beside what is known of it,
with the source; codes that the documentation does not list are marked.
Nothing must hold: there is no verdict. Exit 0 means that every question was answered, 3 that some were not, and 5 that
an answer differs from the one in --since FILE, a JSON result of an earlier probe.`,
	}
}

// Flags are the scenario's own.
func (p *Probe) Flags(fs *flag.FlagSet) {
	fs.Var(&p.Only, "only", "only the questions of this `GROUP`; repeatable")
}

// Check refuses groups that no target has.
func (p *Probe) Check() error {
	return p.check(probe.AllGroups())
}

// Compare has the answers stand beside those of an earlier probe.
func (p *Probe) Compare(with *probe.Earlier) { p.Since = with }

// CheckFor refuses groups that a target of the kind does not have, and an earlier
// probe of another kind of store.
func (p *Probe) CheckFor(kind string) error {
	if p.Since != nil && p.Since.Family != probe.Family(kind) {
		return fmt.Errorf("--since: it holds answers of %s, and %s is another kind of store", p.Since.Target, kind)
	}
	return p.check(probe.Groups(kind))
}

func (p *Probe) check(groups []string) error {
	for _, name := range p.Only {
		if !slices.Contains(groups, name) {
			return fmt.Errorf("--only %q: the groups are %s", name, strings.Join(groups, ", "))
		}
	}
	return nil
}

// Questions are those that are asked of a kind of target in a run.
func (p *Probe) Questions(kind, prefix, run string) []probe.Question {
	return slices.DeleteFunc(probe.Questions(kind, prefix+run+"-"), func(q probe.Question) bool {
		return len(p.Only) > 0 && !slices.Contains(p.Only, q.Group())
	})
}

// Judge gives the judge of the replies to them.
func (p *Probe) Judge(kind, prefix, run string) Judging {
	return &probeJudge{Judge: probe.NewJudge(kind, p.Questions(kind, prefix, run), p.Since)}
}
