package probe

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"contend/runner"
	"contend/targets"
)

// Judge is an observer that makes a report of the replies that it is shown.
type Judge struct {
	questions []Question
	listed    func(string) bool
	since     *Earlier
	replies   map[string][]*runner.Exchange
	foreign   error
}

// NewJudge judges the replies of a kind of target to questions, and compares them with
// those to an earlier probe; nil: with nothing.
func NewJudge(kind string, questions []Question, since *Earlier) *Judge {
	return &Judge{questions: questions, listed: familyOf(kind).listed, since: since, replies: make(map[string][]*runner.Exchange)}
}

// Answered takes a reply into account, and tells whether it is to the last request
// of its question.
func (j *Judge) Answered(id string, e *runner.Exchange) (last bool) {
	i := slices.IndexFunc(j.questions, func(q Question) bool { return q.ID == id })
	n := len(j.replies[id])
	if i < 0 || n >= len(j.questions[i].Steps) || !sameOp(j.questions[i].Steps[n].Op, e.Op) {
		if j.foreign == nil {
			j.foreign = fmt.Errorf("%w: this contend does not ask the question %q in this way", runner.ErrNotARecord, id)
		}
		return false
	}
	kept := *e
	j.replies[id] = append(j.replies[id], &kept)
	return n == len(j.questions[i].Steps)-1
}

func sameOp(a, b targets.Op) bool {
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && bytes.Equal(x, y)
}

// Foreign is an error where a reply is to no question of this probe.
func (j *Judge) Foreign() error { return j.foreign }

// Report tells everything.
func (j *Judge) Report() *Report {
	report := &Report{Answers: []Answer{}}
	if j.since != nil {
		report.Since = &Since{Run: j.since.Run, Target: j.since.Target, Started: j.since.Started}
	}
	for i := range j.questions {
		a := j.answer(&j.questions[i])
		j.compare(&a, report.Since)
		report.count(&a)
		report.Answers = append(report.Answers, a)
	}
	return report
}

func (r *Report) count(a *Answer) {
	switch a.State {
	case Answered:
		r.Answered++
	case Unanswered:
		r.Unanswered++
	default:
		r.NotAsked++
	}
	if a.AsKnown != nil && *a.AsKnown {
		r.AsKnown++
	} else if a.AsKnown != nil {
		r.NotAsKnown++
	}
	if a.Listed != nil && !*a.Listed {
		r.NotListed++
	}
}

// answer tells what became of a question.
func (j *Judge) answer(q *Question) Answer {
	a := Answer{ID: q.ID, Group: q.Group(), Way: q.Way(), Question: q.Text, Known: q.Known}
	for _, s := range q.Steps {
		a.Requests = append(a.Requests, brief(s.Op))
	}
	replies := j.replies[q.ID]
	if len(replies) == 0 {
		a.State, a.Why = Unanswered, "the probe ended before it"
		return a
	}
	last := replies[len(replies)-1]
	r, must := &last.Reply, q.Steps[len(replies)-1].Must
	a.State, a.Why = stateOf(q, replies)
	if a.State == NotAsked || must {
		return a
	}
	a.Outcome, a.Code, a.Status, a.Message, a.Trace, a.Raw = r.Outcome, r.Code, r.Status, r.Message, r.Trace, briefRaw(r.Raw)
	a.Took = last.Return - last.Call
	if a.State != Answered {
		return a
	}
	if q.read != nil {
		a.Answer = q.read(replies)
	}
	if q.figure != nil {
		a.Figure = q.figure(replies)
	}
	if a.Code != "" && j.listed != nil && last.Op.Kind == targets.Raw {
		listed := j.listed(a.Code)
		a.Listed = &listed
	}
	if q.Known.Basis != NotKnown {
		agrees := q.Known.agrees(&a)
		a.AsKnown = &agrees
	}
	return a
}

// stateOf tells what became of a question that has got these replies, and why
// it was not answered.
func stateOf(q *Question, replies []*runner.Exchange) (State, string) {
	n := len(replies)
	r, must := &replies[n-1].Reply, q.Steps[n-1].Must
	word := strings.TrimSpace(fmt.Sprintf("%s %s", r.Outcome, r.Code))
	switch {
	case r.Outcome == targets.Unsupported:
		return NotAsked, r.Message
	case must && r.Outcome == targets.Missing && q.gone != "":
		return NotAsked, q.gone
	case must && r.Outcome != targets.OK:
		return Unanswered, "what it rests on was answered with " + word
	case n < len(q.Steps):
		return Unanswered, "the probe ended in its middle"
	case !runner.Answered(r):
		return Unanswered, word
	default:
		return Answered, ""
	}
}

// compare notes how an earlier probe was answered, if otherwise.
func (j *Judge) compare(a *Answer, since *Since) {
	if j.since == nil || a.State != Answered {
		return
	}
	for _, was := range j.since.Answers {
		if was.ID != a.ID {
			continue
		}
		since.Compared++
		if !was.same(a.Kept()) {
			since.Changed++
			a.Was = &was
		}
	}
}
