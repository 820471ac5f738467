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
	Tolerance   time.Duration `json:"tolerance_ns"` // after the expiry, where the store ends a lease
	blind       bool          // the twin's: without the condition
}

// NewLease gives the defaults.
func NewLease() *Lease {
	return &Lease{Periods: 1, ReadBarrier: true, Expiry: byRecord, Term: 2 * time.Second, Tolerance: time.Second}
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
		Summary: "read, then conditional write, as an application takes a lease; losers are counted apart: lost at the read, lost at the write",
		Help: `Raced: every contender reads the lease, leaves if someone holds it, else writes the next version on condition of the one
it read (--expiry ttl: creates the key with a TTL). With --periods the holder's time runs out and they contend again.
Must hold: one holder a period, versions that go up by one, no takeover before the expiry, and a holder whose time is
over is refused by the record that the holders write to. With --expiry ttl the losers read and try again at moments
spread over the term: none may get in, and within --tolerance of the expiry the lease can be taken again.
Inconclusive means that the guard was not put to the test, as where all but one lost at the read.` + sweepHelp,
		Property: "one contender holds the lease at a time, and a former holder's fencing token is refused",
		Guard:    targets.IfVersion,
	}
	if s.Expiry == byTTL {
		info.Guard = targets.IfAbsent
		info.Property = "one contender holds the lease at a time, nobody takes it during a term, and it can be taken again once it has expired"
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
	fs.DurationVar(&s.Tolerance, "tolerance", s.Tolerance, "of --expiry ttl: how long after its expiry a lease may block a create")
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
	if s.Tolerance <= 0 {
		wrong = append(wrong, fmt.Errorf("--tolerance %s: must be longer than 0", s.Tolerance))
	}
	return errors.Join(wrong...)
}

func (s *Lease) periods() int {
	if s.Expiry == byTTL && !s.blind {
		return max(s.Periods, 2)
	}
	return s.Periods
}

// Collection keeps the lease where its condition works.
func (s *Lease) Collection() targets.Collection {
	if s.Expiry == byTTL {
		return targets.Plain
	}
	return targets.Versioned
}

// Needs is the guard that a lease is taken by, and its term where the store ends it.
func (s *Lease) Needs() targets.Needs {
	if s.Expiry != byTTL {
		return guardsUnless(s.blind, targets.IfVersion)
	}
	needs := guardsUnless(s.blind, targets.IfAbsent)
	needs.Shortest, needs.Longest = s.Term, s.Term
	return needs
}

// workSuffix names the record that the holders write to, under their fencing
// token: the version of the lease.
const workSuffix = "-work"

// Others is that record.
func (s *Lease) Others(key string) []runner.Key {
	if s.Expiry == byTTL || s.blind {
		return nil
	}
	return []runner.Key{{Name: key + workSuffix, Collection: targets.Versioned}}
}

// Seeds are the free lease at version 0, and the record of the holders.
func (s *Lease) Seeds(key string) []targets.Op {
	if s.Expiry == byTTL {
		return nil
	}
	seeds := seedAtZero(key)
	for _, at := range s.Others(key) {
		seeds = append(seeds, seedAtZero(at.Name)...)
	}
	return seeds
}

// Requests are a read and a write a period, of a holder one more, and the waiting
// for the end of a term; with a time to live the tries inside the term.
func (s *Lease) Requests() int { return 4*s.periods() - 1 }

// Sweep lets the barrier after the read go; a later period would begin together.
func (s *Lease) Sweep(given func(flag string) bool) error {
	switch {
	case given("read-barrier") && s.ReadBarrier:
		return errors.New("--read-barrier: it holds both contenders until they have read, so that no offset is left; leave it out with --offset-sweep")
	case s.periods() > 1:
		return fmt.Errorf("--offset-sweep: goes with one period and --expiry record: the contenders of the later of %d begin together", s.periods())
	}
	s.ReadBarrier = false
	return nil
}

// Twin takes the lease without the condition.
func (s *Lease) Twin() Contest {
	if s.blind {
		return nil
	}
	return &Lease{Periods: 1, ReadBarrier: true, Expiry: s.Expiry, Term: s.Term, Tolerance: s.Tolerance, blind: true}
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
	if s.Expiry == byTTL {
		s.contendByTTL(c)
		return
	}
	held := int64(0) // the fencing token of a former term of ours
	for period := 1; period <= s.periods() && !c.Over(); period++ {
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
	return c.Do(targets.Op{Kind: targets.Write, Key: c.Round.Key, Collection: c.Round.Collection, If: condition, Value: record, TTL: ttl})
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
		seen := c.Do(targets.Op{Kind: targets.Read, Key: key, Collection: targets.Versioned})
		if seen.Record.Version != token-1 {
			return
		}
		condition.Version = seen.Version
	}
	record := c.Record()
	record.Version = token
	c.Do(targets.Op{Kind: targets.Write, Key: key, Collection: targets.Versioned, If: condition, Value: record})
}

// LeaseLosers tells where the losers lost, over all periods.
type LeaseLosers struct {
	AtRead      int     `json:"lost_at_read"`
	AtWrite     int     `json:"lost_at_write"`
	ReadShare   float64 `json:"lost_at_read_share"` // of those that lost
	Periods     int     `json:"periods"`
	ReadBarrier bool    `json:"read_barrier"`
}

// Detail tells where the losers lost.
func (s *Lease) Detail(all []Finding) Detail {
	d := LeaseLosers{Periods: s.periods(), ReadBarrier: s.ReadBarrier}
	for _, kept := range all {
		k := kept.(*leased)
		d.AtRead, d.AtWrite = d.AtRead+k.lostAtRead, d.AtWrite+k.lostAtWrite
	}
	if lost := d.AtRead + d.AtWrite; lost > 0 {
		d.ReadShare = float64(d.AtRead) / float64(lost)
	}
	out := oneWinner{}.Detail(all)
	out.Lease = &d
	return out
}
