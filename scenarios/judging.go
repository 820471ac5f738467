package scenarios

import (
	"fmt"
	"time"

	"contend/runner"
	"contend/scenarios/probe"
	"contend/targets"
)

// Judging is a judge of runs of one shape: an observer that comes to a judgement.
type Judging interface {
	runner.Observer
	// Fates gives what became of the contenders, or of the single requests, whose last
	// exchange an event shows. It is asked when the event has been observed.
	Fates(e runner.Event) []Fate
	// Foreign is an error where what was shown is of another scenario.
	Foreign() error
	// Conclude says what a run shows that ended so.
	Conclude(end runner.End) Judgement
}

// Watch is a scenario that asks about keys over time.
type Watch interface {
	Parameterized
	// Needs is what its writes ask of the target.
	Needs() targets.Needs
	runner.Asking
	// Ghosts gives the keys of a run. twin adds those of the control.
	Ghosts(run, prefix, target string, epoch time.Time, seed uint64, twin bool) []*runner.Ghost
	// Most counts the requests that the keys take at most.
	Most(ghosts []*runner.Ghost) int
	// Limits gives the time to live of the keys, how long they are watched after its end,
	// and how many requests may be sent; 0: any number.
	Limits() (ttl, watch time.Duration, requests int64)
}

// Asks is a scenario of questions to a store: single requests, and no race.
type Asks interface {
	Parameterized
	// CheckFor refuses what a target of the kind cannot be asked.
	CheckFor(kind string) error
	// Compare has the answers stand beside those of an earlier probe.
	Compare(with *probe.Earlier)
	// Questions are those to a kind of target in a run.
	Questions(kind, prefix, run string) []probe.Question
	// Judge gives the judge of their answers.
	Judge(kind, prefix, run string) Judging
}

// Observe keeps what the judge needs of an event of a race.
func (j *Judge) Observe(e runner.Event) {
	switch {
	case e.Controls != nil:
		j.proceed = j.Controls(e.Controls)
	case e.Round != nil:
		j.belongs(e.Round)
		j.Round(e.Round)
	case e.Late != nil:
		j.Late(e.Late.Round, e.Late.Read)
	}
}

// Proceed tells whether there is anything to race for: a guard that the controls
// showed to be absent needs no contest.
func (j *Judge) Proceed() bool { return j.proceed }

// Fates gives what became of every contender of a round.
func (j *Judge) Fates(e runner.Event) []Fate {
	if e.Round == nil {
		return nil
	}
	return j.terms.Scenario.Fates(e.Round)
}

// Foreign is an error where the rounds are of another scenario.
func (j *Judge) Foreign() error { return j.foreign }

// belongs notes the first round that the scenario cannot have run.
func (j *Judge) belongs(r *runner.Round) {
	if j.foreign != nil {
		return
	}
	s := j.terms.Scenario
	switch want, offset := len(s.Seeds(r.Key)), j.terms.Sweep.Offset(r.Number); {
	case r.Collection != s.Collection():
		j.foreign = fmt.Errorf("%w: round %d is not of the scenario %s", runner.ErrNotARecord, r.Number, j.terms.Name)
	case len(r.Seeds) != want:
		j.foreign = fmt.Errorf("%w: round %d has %d seeds, and those of %s have %d", runner.ErrNotARecord, r.Number, len(r.Seeds), j.terms.Name, want)
	case (offset == nil) != (r.Offset == nil) || offset != nil && *offset != *r.Offset:
		j.foreign = fmt.Errorf("%w: round %d has not the offset of its place in the sweep", runner.ErrNotARecord, r.Number)
	}
}

// Observe keeps what the judge needs of an event of a watch.
func (j *GhostJudge) Observe(e runner.Event) {
	switch {
	case e.Controls != nil:
		j.Controls(e.Controls)
	case e.Ghost != nil:
		j.Watching([]*runner.Ghost{e.Ghost})
	case e.Asked != nil:
		j.Asked(e.Asked.Ghost, e.Asked.Exchange)
	}
}

// Fates gives what came of a request about a key of the run, but for its create.
func (j *GhostJudge) Fates(e runner.Event) []Fate {
	if e.Asked == nil || e.Asked.Ghost.Run != j.run || e.Asked.Exchange.Op.Value.Token == createToken(e.Asked.Ghost) {
		return nil
	}
	x := e.Asked.Exchange
	f := Fate{Outcome: string(x.Reply.Outcome), At: string(x.Op.Kind), Last: x}
	switch o := x.Reply.Outcome; {
	case o == targets.OK && x.Op.Kind == targets.Write:
		f.Outcome = "won"
	case o == targets.Conflict:
		f.Outcome = "lost"
	case o == targets.OK:
		f.Outcome = "shown"
	case o == targets.Unsupported:
		f.Outcome = string(targets.Invalid)
	}
	return []Fate{f}
}

// Foreign is nil: a key tells which run it is of.
func (*GhostJudge) Foreign() error { return nil }

// probeJudge judges the answers to a probe.
type probeJudge struct {
	*probe.Judge
	last bool // what was observed last was an answer to the last request of a question
}

// Observe takes an answer into account.
func (j *probeJudge) Observe(e runner.Event) {
	if j.last = false; e.Answer != nil {
		j.last = j.Answered(e.Answer.Question, e.Answer.Exchange)
	}
}

// Fates gives what came of a question, with its last request.
func (j *probeJudge) Fates(e runner.Event) []Fate {
	if e.Answer == nil || !j.last {
		return nil
	}
	x := e.Answer.Exchange
	return []Fate{{Outcome: string(x.Reply.Outcome), At: string(x.Op.Kind), Last: x}}
}

// Conclude tells everything. There is no verdict.
func (j *probeJudge) Conclude(runner.End) Judgement {
	return Judgement{Verdict: Verdict{Property: "none: a probe only asks", Reasons: []string{}, Violations: []Violation{}}, Detail: Detail{Probe: j.Report()}}
}
