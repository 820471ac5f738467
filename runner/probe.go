package runner

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"contend/targets"
)

// Inquiry is one question to a store: single requests, one after the other.
type Inquiry struct {
	ID    string
	Steps []Step
	// Remove takes away what the steps may have left.
	Remove []targets.Op
}

// Step is one request of an inquiry.
type Step struct {
	Op    targets.Op
	After time.Duration // from the return of the step before, at least
	Must  bool          // be OK: otherwise the inquiry ends with it
}

// ProbePlan says what a probe asks, in this order; an inquiry that waits goes on
// when the others have been begun.
type ProbePlan struct {
	Setup
	Inquiries []Inquiry
}

// Prober is one probe, with its session open.
type Prober struct {
	crew
	plan    ProbePlan
	silent  int    // requests since the last that was answered
	refusal string // the first of those
}

// OpenProbe connects to the target and opens the session. Nothing is asked yet.
// Close ends it.
func OpenProbe(ctx context.Context, target targets.Target, plan ProbePlan) (*Prober, error) {
	p := &Prober{crew: newCrew(ctx, target, &plan.Setup), plan: plan}
	// What the target has no condition for is asked too, and is then its answer.
	needs := targets.Needs{Sessions: 1}
	for _, guard := range []targets.Guard{targets.IfAbsent, targets.IfVersion} {
		if slices.Contains(target.Describe().Guards, guard) {
			needs.Guards = append(needs.Guards, guard)
		}
	}
	if err := p.open(ctx, needs, ByRunner); err != nil {
		return nil, err
	}
	p.summary.Units = p.summary.Requests * int64(target.Describe().Units(0))
	return p, nil
}

// Close ends the session.
func (p *Prober) Close() { p.close() }

// Answered tells whether a reply is the store's word on a request: it is not where
// no answer came, or one that put the request off.
func Answered(r *targets.Reply) bool {
	switch r.Outcome {
	case targets.NotSent, targets.Throttled, targets.Unsupported:
		return false
	case targets.Unknown:
		return r.Status != 0
	default:
		return true
	}
}

// pursuit is how far an inquiry is.
type pursuit struct {
	*Inquiry
	next int           // step
	due  time.Duration // of that step, since the start; 0: at once
	left bool          // something may be there that Remove takes away
}

// Run asks everything and removes what it wrote. When ctx ends it asks no more.
func (p *Prober) Run(ctx context.Context, observer Observer) Summary {
	p.showTo(observer)
	p.show(Event{Controls: &Controls{Skipped: true}})
	all := make([]*pursuit, len(p.plan.Inquiries))
	for i := range all {
		all[i] = &pursuit{Inquiry: &p.plan.Inquiries[i]}
	}
	for waiting := slices.Clone(all); len(waiting) > 0; {
		next := slices.MinFunc(waiting, func(a, b *pursuit) int { return cmp.Compare(a.due, b.due) })
		if !p.pursue(ctx, next) {
			waiting = slices.DeleteFunc(waiting, func(each *pursuit) bool { return each == next })
		}
	}
	p.summary.Interrupted = ctx.Err() != nil
	p.summary.Left = p.clean(all)
	return p.end()
}

// pursue takes the steps up to the next that has to wait, and tells whether there is
// such a one.
func (p *Prober) pursue(ctx context.Context, each *pursuit) bool {
	for began := each.next; each.next < len(each.Steps); each.next++ {
		step := &each.Steps[each.next]
		if step.After > 0 && each.next > began {
			return true
		}
		wait(ctx, each.due-time.Since(p.start))
		if p.summary.Stopped != nil || ctx.Err() != nil || p.spend(ctx, p.cost(step.Op)) != nil {
			return false
		}
		e := p.ask(step.Op)
		p.show(Event{Answer: &Answer{each.ID, &e}})
		each.left = each.left || mayHaveWritten(&e)
		if p.silent >= unservedRounds {
			p.summary.Stopped = unserved(fmt.Errorf("the target answered none of the last %d requests", p.silent), p.refusal)
		}
		if step.Must && e.Reply.Outcome != targets.OK {
			return false
		}
		if each.next+1 < len(each.Steps) {
			each.due = e.Return + each.Steps[each.next+1].After
		}
	}
	return false
}

// mayHaveWritten tells whether a request may have had an effect, by its reply.
func mayHaveWritten(e *Exchange) bool {
	if e.Op.Kind == targets.Read || e.Op.Kind == targets.Delete {
		return false
	}
	for _, part := range e.Reply.Parts {
		if mayHaveWritten(&Exchange{Reply: part}) {
			return true
		}
	}
	switch e.Reply.Outcome {
	case targets.OK, targets.Unknown, targets.Unmapped:
		return true
	default:
		return e.Reply.Attempts > 1
	}
}

// ask sends one request and counts it.
func (p *Prober) ask(op targets.Op) Exchange {
	e := Exchange{Contender: ByRunner, Op: op}
	p.exchange(p.members[0].session, &e)
	p.summary.Requests += int64(e.Reply.Attempts)
	p.summary.Units += int64(e.Reply.Attempts * p.target.Describe().Units(sizeOf(op)))
	switch {
	case Answered(&e.Reply):
		p.silent, p.refusal = 0, ""
	case e.Reply.Outcome != targets.Unsupported:
		p.silent, p.refusal = p.silent+1, firstNonEmpty(p.refusal, e.Reply.Text())
	}
	if broken(&e) {
		p.reopen(&p.members[0])
	}
	return e
}

func sizeOf(op targets.Op) int { return len(op.Raw) + len(op.Value.Body) }

// cost is what a request counts of a limit: its units, where the store has any.
func (p *Prober) cost(op targets.Op) int { return max(1, p.target.Describe().Units(sizeOf(op))) }

// clean removes what the inquiries left and looks whether it is gone; a volatile target
// forgets it by itself.
func (p *Prober) clean(all []*pursuit) error {
	if p.target.Describe().Volatile {
		return nil
	}
	left := &Left{}
	written := slices.DeleteFunc(slices.Clone(all), func(each *pursuit) bool { return !each.left })
	p.remove(left, written)
	before := p.summary.Requests
	keys, err := p.look(p.plan.key(""), func(string) bool { return true })
	p.summary.Units += (p.summary.Requests - before) * int64(p.target.Describe().Units(0))
	if left.Keys = keys; len(written) > 0 {
		left.Unseen = err
	}
	return left.orNil()
}

// remove sends the deletes, until one is not answered.
func (p *Prober) remove(left *Left, written []*pursuit) {
	for _, each := range written {
		for _, op := range each.Remove {
			r := p.removeOne(op)
			left.refuse(&r)
			if !Answered(&r) {
				return
			}
		}
	}
}

// removeOne sends a request that removes something, again where a quota refuses it.
func (p *Prober) removeOne(op targets.Op) targets.Reply {
	for refusals := 1; ; refusals++ {
		_ = p.spend(p.requests, p.cost(op))
		r := p.ask(op).Reply
		if r.Outcome != targets.Throttled || !p.backOff(p.requests, refusals, &r) {
			return r
		}
	}
}

// Takes is how long a probe takes by its limits alone, where nothing has to be
// waited for between its steps.
func (p ProbePlan) Takes(d targets.Description) time.Duration {
	c := newCourse(p.Limits)
	c.spend(warmUp(d.WarmUp, 1))
	spend := func(op targets.Op) { c.spend(max(1, d.Units(sizeOf(op)))) }
	for i := range p.Inquiries {
		for _, step := range p.Inquiries[i].Steps {
			spend(step.Op)
		}
	}
	for i := range p.Inquiries {
		for _, op := range p.Inquiries[i].Remove {
			if !d.Volatile {
				spend(op)
			}
		}
	}
	return c.took()
}

// Cost is how many requests a probe sends at most, and of how many units; 0 where
// the store counts requests.
func (p ProbePlan) Cost(d targets.Description) (requests, units int) {
	requests = warmUp(d.WarmUp, 1)
	units = requests * d.Units(0)
	add := func(op targets.Op) { requests, units = requests+1, units+d.Units(sizeOf(op)) }
	for i := range p.Inquiries {
		for _, step := range p.Inquiries[i].Steps {
			add(step.Op)
		}
		if !d.Volatile {
			for _, op := range p.Inquiries[i].Remove {
				add(op)
			}
		}
	}
	if !d.Volatile {
		requests, units = requests+d.Lists, units+d.Lists*d.Units(0)
	}
	return requests, units
}
