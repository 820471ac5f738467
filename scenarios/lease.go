package scenarios

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"time"

	"contend/runner"
	"contend/targets"
)

// Lease is a lock as an application takes it: read, leave if someone holds it,
// else write under a condition.
type Lease struct {
	Periods     int           `json:"periods"`
	ReadBarrier bool          `json:"read_barrier"`
	Expiry      string        `json:"expiry"` // record, or ttl
	Term        time.Duration `json:"term_ns"`
	blind       bool          // the twin's: without the condition
}

// NewLease gives the defaults.
func NewLease() *Lease {
	return &Lease{Periods: 1, ReadBarrier: true, Expiry: byRecord, Term: 2 * time.Second}
}

// The ways in which a lease runs out.
const (
	byRecord = "record" // its expiry is in the record, and the contenders keep to it
	byTTL    = "ttl"    // the store's own time to live
)

// Info describes the scenario.
func (s *Lease) Info() Info {
	info := Info{
		Name:    "lease",
		Summary: "read, then conditional write, as an application takes a lease; losers are told apart: lost at the read, lost at the write",
		Help: `Raced: every contender reads the lease, leaves if someone holds it, else writes the next version on condition of the one
it read (--expiry ttl: creates the key with a TTL). With --periods the holder's time runs out and they contend again.
Must hold: one holder a period, versions that go up by one, no takeover before the expiry, and a holder whose time is
over is refused by the record that the holders write to. With --expiry ttl: an expired lease can be taken again.
Inconclusive means that the guard was not put to the test, as where all but one lost at the read.`,
		Property: "one contender holds the lease at a time, and a former holder's fencing token is refused",
		Guard:    targets.IfVersion,
	}
	if s.Expiry == byTTL {
		info.Guard = targets.IfAbsent
		info.Property = "one contender holds the lease at a time, and it can be taken again once it has expired"
	}
	if s.blind {
		info.Property = "no two contenders hold the lease (expected to be violated: nothing guards it)"
		info.Guard, info.Unguarded = targets.Unguarded, true
	}
	return info
}

// Flags are the scenario's own.
func (s *Lease) Flags(fs *flag.FlagSet) {
	fs.IntVar(&s.Periods, "periods", s.Periods, "how often the lease is contended for in a round; with --expiry ttl at least 2")
	fs.BoolVar(&s.ReadBarrier, "read-barrier", s.ReadBarrier, "hold all writers until all have read; without it most lose at the read, as in a natural test")
	fs.StringVar(&s.Expiry, "expiry", s.Expiry, "what ends a lease: record (its expiry is in the record, kept by the contenders' clocks) or ttl (the store's)")
	fs.DurationVar(&s.Term, "term", s.Term, "how long a lease is held")
}

// Check refuses parameters that cannot be.
func (s *Lease) Check() error {
	var wrong []error
	if s.Periods < 1 || s.Periods > 100 {
		wrong = append(wrong, fmt.Errorf("--periods %d: from 1 to 100", s.Periods))
	}
	if s.Expiry != byRecord && s.Expiry != byTTL {
		wrong = append(wrong, fmt.Errorf("--expiry %q: there are record, ttl", s.Expiry))
	}
	if s.Term <= 0 {
		wrong = append(wrong, fmt.Errorf("--term %s: must be longer than 0", s.Term))
	}
	return errors.Join(wrong...)
}

func (s *Lease) periods() int {
	if s.Expiry == byTTL {
		return max(s.Periods, 2)
	}
	return s.Periods
}

// Home keeps the lease where its condition works.
func (s *Lease) Home() targets.Guard {
	if s.Expiry == byTTL {
		return targets.IfAbsent
	}
	return targets.IfVersion
}

// Expires tells whether the store ends a lease.
func (s *Lease) Expires() bool { return s.Expiry == byTTL }

// workSuffix names the record that the holders write to, under their fencing
// token: the version of the lease.
const workSuffix = "-work"

// Others is that record.
func (s *Lease) Others(key string) []runner.Place {
	if s.Expiry == byTTL || s.blind {
		return nil
	}
	return []runner.Place{{Key: key + workSuffix, Home: targets.IfVersion}}
}

// Seeds are the free lease at version 0, and the record of the holders.
func (s *Lease) Seeds(key string) []targets.Op {
	if s.Expiry == byTTL {
		return nil
	}
	seeds := seedAtZero(key)
	for _, at := range s.Others(key) {
		seeds = append(seeds, seedAtZero(at.Key)...)
	}
	return seeds
}

// Requests are a read and a write a period, of a holder one more, and the waiting
// for the end of a term.
func (s *Lease) Requests() int { return 4*s.periods() - 1 }

// Twin takes the lease without the condition.
func (s *Lease) Twin() Contest {
	if s.blind {
		return nil
	}
	return &Lease{Periods: 1, ReadBarrier: true, Expiry: s.Expiry, Term: s.Term, blind: true}
}

// leaseBody is what a lease's record says beside its version.
type leaseBody struct {
	Period  int           `json:"period"`
	Expires time.Duration `json:"expires_ns"` // since the start of the run, on the contenders' clock
}

func bodyOf(r *targets.Record) (b leaseBody) {
	_ = json.Unmarshal(r.Body, &b)
	return b
}

// Contend takes part in every period.
func (s *Lease) Contend(c *runner.Contender) {
	held := int64(0) // the fencing token of a former term of ours
	for period := 1; period <= s.periods() && !c.Over(); period++ {
		if s.Expiry == byTTL {
			if !s.claim(c, period) {
				return
			}
			continue
		}
		if period > 1 {
			if !awaitEnd(c) {
				return
			}
			c.Barrier(fmt.Sprintf("period %d", period))
		}
		won := s.take(c, period)
		if won > 0 {
			s.work(c, won)
		}
		c.Barrier(fmt.Sprintf("fenced %d", period))
		if held > 0 && won == 0 && c.Sleep(oversleep) {
			s.work(c, held)
		}
		held = won
	}
}

// oversleep is how long a former holder comes too late, so that its write certainly
// follows the new holder's.
const oversleep = time.Millisecond

// awaitEnd waits until the lease has run out, by its record.
func awaitEnd(c *runner.Contender) bool {
	seen := c.Read()
	return c.Sleep(max(0, bodyOf(&seen.Record).Expires-c.Elapsed()))
}

// take contends for the lease, and gives its version where it was won.
func (s *Lease) take(c *runner.Contender, period int) int64 {
	seen := c.Read()
	free := seen.Outcome == targets.OK && bodyOf(&seen.Record).Expires <= c.Elapsed()
	if s.ReadBarrier {
		c.Barrier(fmt.Sprintf("after-read %d", period))
	}
	if !free {
		return 0
	}
	next := seen.Record.Version + 1
	condition := targets.Condition{Guard: targets.IfVersion, Counter: seen.Record.Version, Version: seen.Version}
	if s.blind {
		condition = targets.Condition{}
	}
	if s.write(c, period, next, condition, 0).Outcome != targets.OK {
		return 0
	}
	return next
}

func (s *Lease) write(c *runner.Contender, period int, version int64, condition targets.Condition, ttl time.Duration) *targets.Reply {
	record := c.Record()
	record.Version, record.ExpiresAt = version, time.Now().UTC().Add(s.Term)
	record.Body, _ = json.Marshal(leaseBody{period, c.Elapsed() + s.Term})
	if ttl > 0 {
		record.ExpiresAt = time.Time{}
	}
	return c.Do(targets.Op{Kind: targets.Write, Key: c.Round.Key, Home: c.Round.Home, If: condition, Value: record, TTL: ttl})
}

// work writes to the record of the holders under a fencing token, which goes up
// by one from term to term.
func (s *Lease) work(c *runner.Contender, token int64) {
	if s.blind {
		return
	}
	key := c.Round.Key + workSuffix
	condition := targets.Condition{Guard: targets.IfVersion, Counter: token - 1}
	if at := &c.Round.Seeds[len(c.Round.Seeds)-1].Reply; at.Version != "" {
		seen := c.Do(targets.Op{Kind: targets.Read, Key: key, Home: targets.IfVersion})
		if seen.Record.Version != token-1 {
			return
		}
		condition.Version = seen.Version
	}
	record := c.Record()
	record.Version = token
	c.Do(targets.Op{Kind: targets.Write, Key: key, Home: targets.IfVersion, If: condition, Value: record})
}

// afterTerm is how long after the end of a term those contend who keep it by the
// store's time to live.
const afterTerm = 50 * time.Millisecond

// claim creates the lease with a time to live. Later periods do not ask whether it
// is still shown: by their own clock it has expired.
func (s *Lease) claim(c *runner.Contender, period int) bool {
	free := true
	if period == 1 {
		free = c.Read().Outcome == targets.Missing
	} else if !c.Sleep(s.Term + afterTerm) {
		return false
	}
	if s.ReadBarrier || period > 1 {
		c.Barrier(fmt.Sprintf("after-read %d", period))
	}
	if !free {
		return true
	}
	condition := targets.Condition{Guard: targets.IfAbsent}
	if s.blind {
		condition = targets.Condition{}
	}
	s.write(c, period, int64(period), condition, s.Term)
	return true
}

// leased is what is kept of a round of leases.
type leased struct {
	versions
	own         *breach // of a rule of the lease's own
	lostAtRead  int     // contenders that left at the read, over the periods
	lostAtWrite int
}

// term is an accepted or refused write of the lease.
type term struct {
	act
	leaseBody
}

// Judge keeps of a round what its ruling needs.
func (s *Lease) Judge(r *runner.Round) Finding {
	f := Finding{Round: r.Number, Unseeded: !r.Seeded(), Evidence: evidenceOf(firstWrites(r)), state: startState{key: r.Key}}
	if s.Expiry != byTTL {
		f.state.seed = r.Key + seedSuffix
	}
	k := &leased{}
	f.own = k
	var terms []term
	for i := range r.Ops {
		x := &r.Ops[i]
		if x.Op.Key != r.Key || x.Op.Kind != targets.Write {
			continue
		}
		if a, ok := f.state.actOf(x); ok {
			terms = append(terms, term{a, bodyOf(&x.Op.Value)})
			if a.kind == refused {
				k.lostAtWrite++
			}
		}
	}
	k.lostAtRead = f.Evidence.Contenders*s.periods() - len(terms)
	if s.Expiry == byTTL {
		f.won = 0
		k.own = takeovers(&f, terms, s.Term)
		return f
	}
	k.versions = versionsOf(&f, r)
	if k.own = earlyTakeover(terms); k.own == nil {
		k.own = staleFence(r)
	}
	return f
}

// earlyTakeover finds a lease that was taken before the one before it had run out.
func earlyTakeover(terms []term) *breach {
	by := make(map[int64]*term)
	for i := range terms {
		if t := &terms[i]; t.kind == wrote {
			by[t.version] = t
		}
	}
	for _, t := range by {
		if before := by[t.version-1]; before != nil && t.ret < before.Expires {
			return &breach{"early-takeover", &before.act, &t.act}
		}
	}
	return nil
}

// staleFence finds a write under a fencing token that was accepted after one under
// a higher token had been.
func staleFence(r *runner.Round) *breach {
	var accepted []act
	work := startState{key: r.Key + workSuffix, seed: r.Key + workSuffix + seedSuffix}
	for i := range r.Ops {
		if x := &r.Ops[i]; x.Op.Key == work.key && x.Op.Kind == targets.Write {
			if a, _ := work.actOf(x); a.kind == wrote {
				accepted = append(accepted, a)
			}
		}
	}
	for i := range accepted {
		for j := range accepted {
			if late, high := &accepted[i], &accepted[j]; late.version < high.version && late.call > high.ret {
				return &breach{"stale-fence-accepted", high, late}
			}
		}
	}
	return nil
}

// takeovers judges leases that end by the store's time to live: one holder a
// period, none before the expiry of the one before, and one at all where a
// contender was refused.
func takeovers(f *Finding, terms []term, ttl time.Duration) *breach {
	var holder *term // of the latest period that had one
	for period := 1; ; period++ {
		var won, lost *term
		var acts []act
		some, doubt := false, false
		for i := range terms {
			t := &terms[i]
			if t.Period != period {
				continue
			}
			some, acts = true, append(acts, t.act)
			switch {
			case t.kind == wrote:
				f.won++
				won = t
			case t.kind == uncertain:
				doubt = true
			case t.kind == refused && (lost == nil || t.call > lost.call):
				lost = t
			}
		}
		if !some {
			return nil
		}
		var b *breach
		if period == 1 {
			b = checkRound(acts)
		} else if holder != nil {
			_, b = checkTakeover(acts, holder.call+ttl)
		}
		switch {
		case b != nil:
			return b
		case won == nil && lost != nil && !doubt && holder != nil && lost.call > holder.ret+ttl:
			return &breach{"ghost", &holder.act, &lost.act}
		}
		if doubt {
			// Who holds it from here on is not known.
			return nil
		}
		if won != nil {
			holder = won
		}
	}
}

func (s *Lease) readLate(f *Finding, e *runner.Exchange) {
	if s.Expiry == byTTL {
		f.readOnce = true
		return
	}
	f.own.(*leased).readLate(f, e)
}

// Rule says what a finding, with its late reads, means.
func (s *Lease) Rule(f *Finding) Ruling {
	k := f.own.(*leased)
	if s.Expiry == byTTL {
		r := Ruling{Winners: f.won}
		r.accuse(f.Round, k.own)
		return r
	}
	r := k.rule(f)
	if !r.Void {
		r.accuse(f.Round, k.own)
	}
	return r
}

// Fates gives what became of every contender, by its last request about the lease.
func (s *Lease) Fates(r *runner.Round) []Fate {
	lease := *r
	lease.Ops = nil
	for i := range r.Ops {
		if r.Ops[i].Op.Key == r.Key {
			lease.Ops = append(lease.Ops, r.Ops[i])
		}
	}
	return lastFates(&lease)
}

func (s *Lease) contested(f *Finding, r *Ruling, t Terms) reason {
	why := oneWinner{}.contested(f, r, t)
	if k := f.own.(*leased); why != (reason{}) && k.lostAtRead > k.lostAtWrite && !s.ReadBarrier {
		return reason{"had most contenders lost at the read, where no guard is", "leave --read-barrier on"}
	}
	return why
}

// LeaseLosers tells where the losers lost, over all periods.
type LeaseLosers struct {
	AtRead      int     `json:"lost_at_read"`
	AtWrite     int     `json:"lost_at_write"`
	ReadShare   float64 `json:"lost_at_read_share"` // of those that lost
	Periods     int     `json:"periods"`
	ReadBarrier bool    `json:"read_barrier"`
}

func (s *Lease) detail(findings []*Finding) Detail {
	d := LeaseLosers{Periods: s.periods(), ReadBarrier: s.ReadBarrier}
	for _, f := range findings {
		k := f.own.(*leased)
		d.AtRead, d.AtWrite = d.AtRead+k.lostAtRead, d.AtWrite+k.lostAtWrite
	}
	if lost := d.AtRead + d.AtWrite; lost > 0 {
		d.ReadShare = float64(d.AtRead) / float64(lost)
	}
	out := oneWinner{}.detail(findings)
	out.Lease = &d
	return out
}
