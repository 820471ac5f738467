package scenarios

import (
	"fmt"
	"time"

	"contend/runner"
	"contend/targets"
)

const (
	// afterTerm is how long after the end of a term those contend who keep it by the
	// store's time to live.
	afterTerm = 50 * time.Millisecond
	// insideShare of a term is what the tries of the losers are spread over: the last
	// is answered before the term is over.
	insideShare = 0.9
)

// contendByTTL creates the lease with a time to live, period by period. Losers read
// it and try again inside the term, each at a moment of its own.
func (s *Lease) contendByTTL(c *runner.Contender) {
	var over time.Duration // the end of the term
	for period := 1; period <= s.periods() && !c.Over(); period++ {
		free := true
		if period == 1 {
			free = c.Read().Outcome == targets.Missing
		} else if !c.Sleep(over + afterTerm - c.Elapsed()) {
			return
		}
		if s.ReadBarrier || period > 1 {
			c.Barrier(fmt.Sprintf("after-read %d", period))
		}
		expired := over
		won := free && s.create(c, period)
		if period > 1 && !won {
			s.insist(c, period, expired)
		}
		begun := c.Elapsed()
		over = begun + s.Term
		if period == s.periods() || !won && !s.insideTerm(c, period, begun) {
			return
		}
	}
}

func (s *Lease) create(c *runner.Contender, period int) (won bool) {
	condition := targets.Condition{Guard: targets.IfAbsent}
	if s.blind {
		condition = targets.Condition{}
	}
	return s.write(c, period, int64(period), condition, s.Term).Outcome == targets.OK
}

// insideTerm reads the lease and tries to create it at the contender's own moment
// of the term.
func (s *Lease) insideTerm(c *runner.Contender, period int, begun time.Duration) bool {
	share := insideShare * (float64(c.Number) + 0.5) / float64(c.Contenders())
	if !c.Sleep(begun + time.Duration(share*float64(s.Term)) - c.Elapsed()) {
		return false
	}
	c.Read()
	s.create(c, period)
	return true
}

// insist tries to take an expired lease until somebody has, or it has blocked for
// longer than may be. The tries come so close together that a store on which a
// refused create prolongs the lease never lets one in.
func (s *Lease) insist(c *runner.Contender, period int, expired time.Duration) {
	for gap := afterTerm; c.Elapsed() <= expired+2*s.Tolerance; gap *= 2 {
		seen := c.Read()
		if seen.Outcome == targets.OK && bodyOf(&seen.Record).Period == period || !c.Sleep(min(gap, s.Tolerance/2, s.Term/2)) {
			return
		}
		if outcome := s.write(c, period, int64(period), targets.Condition{Guard: targets.IfAbsent}, s.Term).Outcome; outcome != targets.Conflict {
			return
		}
	}
}

// term is a request about a lease, and the period it was made in.
type term struct {
	operation
	leaseBody
	granted time.Duration // the time to live, as the store told it
}

// tenure is what a round of leases by time to live shows.
type tenure struct {
	operations []operation // of all periods
	won        int
	tried      int // creates inside a term that were answered
	// stale counts reads that showed no lease where a create that followed was refused.
	staleAge time.Duration
	stale    bool
	doubt    bool // nobody knows who holds the lease from some period on
	anomaly  *anomaly
	periods  []leasePeriod
	former   map[string]bool // tokens of the holders before the last
}

// leasePeriod is one contest for the lease.
type leasePeriod struct {
	terms []term
	won   *term
}

// tenureOf judges leases that end by the store's time to live: one holder a period,
// none before the expiry of the one before, what is read is what was accepted, and
// an expired lease can be taken again.
func (s *Lease) tenureOf(f *Shared, r *runner.Round) *tenure {
	t := &tenure{operations: f.state.operationsOf(r), periods: make([]leasePeriod, s.periods()+1), former: make(map[string]bool)}
	t.sort(f.state, r)
	if t.anomaly = t.shown(f.state); t.anomaly != nil {
		return t
	}
	var holder *term
	for period := 1; period <= s.periods() && t.anomaly == nil && !t.doubt; period++ {
		p := &t.periods[period]
		if len(p.terms) == 0 {
			break
		}
		t.anomaly = s.rulePeriod(t, p, holder)
		if p.won != nil {
			if holder != nil {
				t.former[holder.token] = true
			}
			holder = p.won
		}
	}
	return t
}

// forget keeps the writes that may have been applied, for the late read.
func (t *tenure) forget() {
	t.periods, t.former = nil, nil
	var possible []operation
	for i := range t.operations {
		if a := &t.operations[i]; a.kind == wrote || a.kind == indeterminate {
			possible = append(possible, *a)
		}
	}
	t.operations = possible
}

// readLate looks at what a late read shows: by then the lease may have expired, or one
// that was unknown may be there, but not a refused one.
func (t *tenure) readLate(f *Shared, e *runner.Exchange) {
	read, ok := f.state.operationOf(e)
	if !ok {
		return
	}
	read.late, f.readOnce = true, true
	if read.kind == sawForeign {
		f.operations = append(f.operations[:0], read)
	}
	if t.anomaly != nil {
		return
	}
	if t.anomaly = f.state.changed(t.operations, &read); t.anomaly != nil || read.kind != sawNew {
		return
	}
	t.anomaly = notWritten(t.operations, &read)
	if b := t.anomaly; b != nil && b.kind == "owner-never-wrote" {
		// The refused writes are not kept any more.
		b.kind = "refused-but-applied"
		if partner := f.state.partner(t.operations); partner != nil {
			b.a, b.b = partner, &read
		}
	}
}

// sort puts every request into the period that it was made in: that of the last
// write of its contender.
func (t *tenure) sort(state startState, r *runner.Round) {
	period, contender := 1, runner.ByRunner
	for i := range r.Ops {
		x := &r.Ops[i]
		if x.Contender != contender {
			contender, period = x.Contender, 1
		}
		a, ok := state.operationOf(x)
		if !ok {
			continue
		}
		body := bodyOf(&x.Op.Value)
		if x.Op.Kind == targets.Write {
			period = min(max(body.Period, 1), len(t.periods)-1)
		}
		t.periods[period].terms = append(t.periods[period].terms, term{a, body, x.Reply.Granted})
	}
}

// shown looks at what reads show: a lease that a refused contender holds, or one
// that came back other than it was written.
func (t *tenure) shown(state startState) *anomaly {
	for i := range t.operations {
		read := &t.operations[i]
		if b := state.changed(t.operations, read); b != nil {
			return b
		}
		if read.kind == sawNew {
			if b := notWritten(t.operations, read); b != nil {
				return b
			}
		}
	}
	return nil
}

// rulePeriod rules one contest; holder is the one before, nil: there was none.
func (s *Lease) rulePeriod(t *tenure, p *leasePeriod, holder *term) *anomaly {
	if b := s.secondHolder(t, p); b != nil || t.doubt {
		return b
	}
	operations := t.contest(p, holder)
	fresh, age := withoutOld(operations)
	check := func(operations []operation) (sweepTime, *anomaly) {
		if holder == nil {
			return sweepTime{}, checkRound(operations)
		}
		return checkTakeover(operations, holder.call+s.Term)
	}
	_, b := check(operations)
	if b != nil && len(fresh) < len(operations) {
		if _, without := check(fresh); without == nil {
			t.stale, t.staleAge, b = true, max(t.staleAge, age), nil
		}
	}
	if b != nil && b.b == nil && holder != nil {
		b = &anomaly{b.kind, &holder.operation, b.a}
	}
	if b == nil && holder != nil {
		b = s.ghost(p, holder)
	}
	return b
}

// secondHolder finds the holder of the period, and one that took the lease while its
// term ran.
func (s *Lease) secondHolder(t *tenure, p *leasePeriod) *anomaly {
	for i := range p.terms {
		x := &p.terms[i]
		switch {
		case x.kind == indeterminate:
			// Who holds it from here on is not known.
			t.doubt = true
		case x.kind == wrote && (p.won == nil || x.call < p.won.call):
			p.won = x
		}
	}
	if p.won == nil {
		return nil
	}
	for i := range p.terms {
		x := &p.terms[i]
		if x.kind == wrote {
			t.won++
		}
		if x.call > p.won.ret && (x.kind == wrote || x.kind == refused) {
			t.tried++
		}
		switch {
		case x.kind != wrote || x == p.won:
		case x.ret >= p.won.call+s.Term || p.won.ret >= x.call+s.Term:
			// It came so late that the term of the other may have been over.
			t.doubt = true
		case x.call <= p.won.ret:
			return &anomaly{"several-winners", &p.won.operation, &x.operation}
		default:
			return &anomaly{"early-takeover", &p.won.operation, &x.operation}
		}
	}
	return nil
}

// contest gives the requests that decide who holds the lease next. Of the record of
// the holder before, reads show the old state. A read of the record of one before
// that is stale, and left out.
func (t *tenure) contest(p *leasePeriod, holder *term) []operation {
	var operations []operation
	for i := range p.terms {
		a := p.terms[i].operation
		switch {
		case a.kind == sawNew && t.former[a.token]:
			t.stale, t.staleAge = true, max(t.staleAge, a.call-holder.ret)
			continue
		case holder != nil && a.kind == sawOld:
			a.kind = sawNothing
		case holder != nil && a.kind == sawNew && a.token == holder.token:
			a.kind = sawOld
		}
		operations = append(operations, a)
	}
	return operations
}

// withoutOld leaves out the reads of an old state, or of none, that a reader which lags
// may have made: those that were called after the accepted write was, or when another
// read had shown the old record gone. It gives the greatest age.
func withoutOld(operations []operation) (fresh []operation, age time.Duration) {
	taken, accepted, gone := forever, forever, forever
	for i := range operations {
		switch a := &operations[i]; a.kind {
		case wrote:
			taken, accepted = min(taken, a.call), min(accepted, a.ret)
		case sawNew:
			taken, accepted = min(taken, a.ret), min(accepted, a.ret)
		case sawNothing:
			gone = min(gone, a.ret)
		}
	}
	for i := range operations {
		a := &operations[i]
		if a.kind == sawOld && a.call > min(taken, gone) || a.kind == sawNothing && a.call > taken {
			age = max(age, a.call-accepted)
			continue
		}
		fresh = append(fresh, *a)
	}
	return fresh, age
}

// ghost finds a create that was refused beyond the tolerance after the lease had
// expired, when nobody had taken it.
func (s *Lease) ghost(p *leasePeriod, holder *term) *anomaly {
	expired := holder.ret + max(s.Term, holder.granted)
	for i := range p.terms {
		x := &p.terms[i]
		free := p.won == nil || x.ret < p.won.call
		if x.kind == refused && free && x.call > expired+s.Tolerance {
			return &anomaly{"ghost", &holder.operation, &x.operation}
		}
	}
	return nil
}
