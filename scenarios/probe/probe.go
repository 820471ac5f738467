// Package probe has the questions that stores are asked by single requests, and
// makes a report of what they answer.
package probe

import (
	"slices"
	"strings"
	"time"

	"contend/runner"
	"contend/targets"
)

// Basis says where it is known from how a store answers.
type Basis string

const (
	Documented Basis = "documented"
	Measured   Basis = "measured" // published
	InPackage  Basis = "package"  // read in the vendor's client package
	NotKnown   Basis = "unknown"
)

// Known is what is known of an answer before it is asked for. What is zero is not
// known, or told by another field.
type Known struct {
	Basis   Basis           `json:"basis"`
	Source  string          `json:"source,omitempty"`
	Outcome targets.Outcome `json:"outcome,omitempty"`
	Code    string          `json:"code,omitempty"`
	Status  int             `json:"status,omitempty"`
	Message string          `json:"message,omitempty"`
	Answer  string          `json:"answer,omitempty"`
}

// agrees tells whether an answer is as known. A relay does not tell the status of
// what its client package makes no error of, nor the message.
func (k *Known) agrees(a *Answer) bool {
	return (k.Outcome == "" || k.Outcome == a.Outcome) && (k.Code == "" || k.Code == a.Code) &&
		(k.Status == 0 || a.Status == 0 || k.Status == a.Status) &&
		(k.Message == "" || k.Message == a.Message || a.Message == "" && a.Status == 0) && (k.Answer == "" || k.Answer == a.Answer)
}

func notKnown() Known { return Known{Basis: NotKnown} }

func saying(k Known, answer string) Known { k.Answer = answer; return k }

// Question is one thing that a store is asked.
type Question struct {
	runner.Inquiry        // its ID, group/name or group/name/way, stays the same over versions of contend
	Text           string // in words
	Known          Known
	// read gives the answer in words where the last reply alone does not tell it;
	// nil: it does. It is given the replies to all steps.
	read func(replies []*runner.Exchange) string
	// figure is what was measured beside that, and differs from time to time; nil: nothing.
	figure func(replies []*runner.Exchange) string
	// gone tells what it means that a step which must be OK found nothing: the
	// question is then not asked. "": it means a failure.
	gone string
}

// Group is the first part of the ID.
func (q *Question) Group() string {
	group, _, _ := strings.Cut(q.ID, "/")
	return group
}

// Way is the last part of the ID where a question is asked in several ways, such as
// direct and transaction; else "".
func (q *Question) Way() string {
	if parts := strings.Split(q.ID, "/"); len(parts) == 3 {
		return parts[2]
	}
	return ""
}

// family is a kind of store that has questions of its own.
type family struct {
	name      string
	kinds     []string // of targets
	questions func(base string) []Question
	// listed tells whether the documentation lists a code; nil: it has no such list.
	listed func(code string) bool
}

// families lists the stores that have questions of their own.
func families() []family {
	return []family{
		{"forge", []string{"sim", "forge", "forge-rest"}, forgeQuestions, forgeListed},
		{"redis", []string{"redis"}, redisQuestions, nil},
		{"postgres", []string{"postgres"}, postgresQuestions, nil},
	}
}

// Family is the kind of store behind a kind of target: answers of one family can be
// compared.
func Family(kind string) string { return familyOf(kind).name }

func familyOf(kind string) family {
	for _, f := range families() {
		if slices.Contains(f.kinds, kind) {
			return f
		}
	}
	return family{name: kind, questions: func(string) []Question { return nil }}
}

// Questions are those to a kind of target; every key begins with base.
func Questions(kind, base string) []Question {
	return append(familyOf(kind).questions(base), strategyQuestions(base)...)
}

// Groups are those of the questions to a kind of target.
func Groups(kind string) []string { return groupsOf(Questions(kind, "-")) }

// AllGroups are those of the questions to any target, sorted.
func AllGroups() []string {
	all := groupsOf(strategyQuestions("-"))
	for _, family := range families() {
		all = append(all, groupsOf(family.questions("-"))...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func groupsOf(questions []Question) []string {
	var groups []string
	for i := range questions {
		if g := questions[i].Group(); !slices.Contains(groups, g) {
			groups = append(groups, g)
		}
	}
	return groups
}

// Inquiries are the questions as a plan has them.
func Inquiries(questions []Question) []runner.Inquiry {
	all := make([]runner.Inquiry, len(questions))
	for i := range questions {
		all[i] = questions[i].Inquiry
	}
	return all
}

// asking gathers questions.
type asking struct {
	base string // what every key begins with
	all  []Question
}

// ask adds one.
func (a *asking) ask(id, text string, known Known, remove []targets.Op, steps ...runner.Step) *Question {
	a.all = append(a.all, Question{Inquiry: runner.Inquiry{ID: id, Steps: steps, Remove: remove}, Text: text, Known: known})
	return &a.all[len(a.all)-1]
}

// inTurn are the steps of requests that make ready what the last asks about.
func inTurn(ops []targets.Op) []runner.Step {
	steps := make([]runner.Step, len(ops))
	for i, op := range ops {
		steps[i] = runner.Step{Op: op, Must: i < len(ops)-1}
	}
	return steps
}

func plainStep(op targets.Op) runner.Step { return runner.Step{Op: op} }

// mustStep is a step that makes ready what the next asks about.
func mustStep(op targets.Op) runner.Step { return runner.Step{Op: op, Must: true} }

// lateStep lets a step wait since the one before.
func lateStep(d time.Duration, s runner.Step) runner.Step { s.After = d; return s }
