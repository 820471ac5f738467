package scenarios

import (
	"errors"
	"flag"
	"fmt"
	"slices"
	"time"

	"contend/runner"
	"contend/scenarios/stats"
	"contend/targets"
)

// Counter lets every contender add one to a record until it has succeeded so many
// times.
type Counter struct {
	Times   int    `json:"times"`
	Backoff string `json:"backoff"`
	blind   bool   // the twin's: without the condition
}

// NewCounter gives the defaults.
func NewCounter() *Counter { return &Counter{Times: 3, Backoff: "jitter"} }

// Info describes the scenario.
func (s *Counter) Info() Info {
	info := Info{
		Name:    "counter",
		Summary: "every contender adds one to a record until it has succeeded M times; the price of the guard under contention",
		Help: `Raced: every contender reads the record and writes it back with one more, on condition of the version it read, and
tries again after a refusal, until it has succeeded --times times.
Must hold: the counter ends at what it began with plus one for each write that was accepted (an unknown one may count),
and no two accepted writes follow the same version.
Inconclusive means that the guard was not put to the test: the accepted writes met too few others there (--min-rivals).`,
		Property: "the counter has gone up by one for each accepted write, and by no more than the unknown ones beside",
		Guard:    targets.IfVersion,
	}
	if s.blind {
		info.Property = "no increment is lost (expected to be violated: nothing guards it)"
		info.Guard, info.Unguarded = targets.Unguarded, true
	}
	return info
}

// backoffs are the ways to wait before trying again.
var backoffs = [...]string{"none", "exponential", "jitter"}

// Flags are the scenario's own.
func (s *Counter) Flags(fs *flag.FlagSet) {
	fs.IntVar(&s.Times, "times", s.Times, "successes that each contender needs")
	fs.StringVar(&s.Backoff, "backoff", s.Backoff, "how a refused contender waits: none, exponential, or jitter (exponential, drawn from 0 on)")
}

// Check refuses parameters that cannot be.
func (s *Counter) Check() error {
	var wrong []error
	if s.Times < 1 || s.Times > 1000 {
		wrong = append(wrong, fmt.Errorf("--times %d: from 1 to 1000", s.Times))
	}
	if !slices.Contains(backoffs[:], s.Backoff) {
		wrong = append(wrong, fmt.Errorf("--backoff %q: there are none, exponential, jitter", s.Backoff))
	}
	return errors.Join(wrong...)
}

// Needs is its guard.
func (s *Counter) Needs() targets.Needs { return guardsUnless(s.blind, targets.IfVersion) }

// Collection keeps the keys where a write on a version works.
func (*Counter) Collection() targets.Collection { return targets.Versioned }

// Seeds is the record at version 0.
func (*Counter) Seeds(key string) []targets.Op { return seedAtZero(key) }

// Requests are a read and a write for each success.
func (s *Counter) Requests() int { return 2 * s.Times }

// Sweep is refused.
func (s *Counter) Sweep(func(string) bool) error {
	return errors.New("--offset-sweep: the contenders of a counter write until they have succeeded, so that most of their writes are not at the offset; " + sweepThese)
}

// Twin adds without the condition.
func (s *Counter) Twin() Contest {
	if s.blind {
		return nil
	}
	return &Counter{Times: 1, Backoff: "none", blind: true}
}

const (
	// triesEach is how often a contender tries for each success that it needs,
	// before it gives up.
	triesEach = 200
	// unservedTries in a row, and a contender gives up.
	unservedTries = 3
	backoffBase   = 2 * time.Millisecond
	backoffMost   = 250 * time.Millisecond
)

// Contend adds one until it has succeeded often enough.
func (s *Counter) Contend(c *runner.Contender) {
	random := c.Random()
	refused, unserved := 0, 0
	for done, tries := 0, 0; done < s.Times && tries < triesEach*s.Times && !c.Over(); tries++ {
		seen := c.Read()
		if s.blind {
			c.Barrier("after-read")
		}
		outcome := seen.Outcome
		if outcome == targets.OK {
			condition := targets.Condition{Guard: targets.IfVersion, Counter: seen.Record.Version, Version: seen.Version}
			if s.blind {
				condition = targets.Condition{}
			}
			outcome = c.Write(seen.Record.Version+1, condition).Outcome
		}
		if outcome == targets.OK {
			done, refused, unserved = done+1, 0, 0
			continue
		}
		if unserved++; outcome.Served() {
			unserved = 0
		}
		if unserved >= unservedTries {
			return
		}
		refused++
		if !c.Sleep(backoff(s.Backoff, refused, random.Float64())) {
			return
		}
	}
}

// backoff gives the wait after so many refusals in a row; chance is from 0 to 1.
func backoff(way string, refused int, chance float64) time.Duration {
	d := min(backoffBase<<min(refused-1, 20), backoffMost)
	switch way {
	case "none":
		return 0
	case "jitter":
		return time.Duration(chance * float64(d))
	default:
		return d
	}
}

// counted is what is kept of a round of the counter.
type counted struct {
	Shared
	versions
	tries    []int // of each success: how many writes it took
	requests int
	wasted   int           // requests that led to no success
	took     time.Duration // first call to last return of the contenders
	shares   []int         // successes of each contender until the first was done
}

// Judge keeps of a round what its ruling needs.
func (s *Counter) Judge(r *runner.Round, oneCopy bool) Finding {
	k := &counted{Shared: findingOf(r, true)}
	k.Evidence = evidenceOf(firstWrites(r))
	k.Evidence.ofAll(meetingsOf(r, oneCopy))
	k.versions = versionsOf(&k.Shared, r)
	k.price(r, s.Times)
	return k
}

// ReadLate takes a late read into account.
func (k *counted) ReadLate(e *runner.Exchange) { k.readLate(&k.Shared, e) }

// Rule says what the round, with its late reads, means.
func (k *counted) Rule() Ruling { return k.rule(&k.Shared) }

// Forget keeps what a late read is compared with.
func (k *counted) Forget(int) { k.forget() }

// price tells what the successes cost.
func (k *counted) price(r *runner.Round, times int) {
	if len(r.Ops) == 0 {
		return
	}
	first, last := r.Ops[0].Call, r.Ops[0].Return
	type progress struct{ writes, done int }
	by := make(map[int]*progress)
	var finished time.Duration = forever // when the first contender was done
	for i := range r.Ops {
		x := &r.Ops[i]
		first, last = min(first, x.Call), max(last, x.Return)
		p := by[x.Contender]
		if p == nil {
			p = &progress{}
			by[x.Contender] = p
		}
		if x.Op.Kind != targets.Write {
			continue
		}
		p.writes++
		if x.Reply.Outcome == targets.OK {
			k.tries = append(k.tries, p.writes)
			p.writes = 0
			if p.done++; p.done == times {
				finished = min(finished, x.Return)
			}
		}
	}
	k.took, k.requests = last-first, len(r.Ops)
	k.wasted = k.requests - 2*len(k.tries)
	k.shares = make([]int, len(by))
	for i := range r.Ops {
		if x := &r.Ops[i]; x.Op.Kind == targets.Write && x.Reply.Outcome == targets.OK && x.Return <= finished && x.Contender < len(k.shares) {
			k.shares[x.Contender]++
		}
	}
}

// Fates gives what became of every write, and of reads that failed.
func (*Counter) Fates(r *runner.Round) []Fate {
	var fates []Fate
	for i := range r.Ops {
		x := &r.Ops[i]
		if x.Op.Kind == targets.Write || x.Reply.Outcome != targets.OK {
			fates = append(fates, fateOf(x))
		}
	}
	return fates
}

// Contested wants rivals of the accepted writes at the guard.
func (k *counted) Contested(_ *Ruling, t *Terms) (why, fix string) {
	if k.wrote == 0 {
		return "had no accepted write", ""
	}
	return t.enoughRivals(&k.Evidence)
}

// CounterPrice is what the guard costs under contention.
type CounterPrice struct {
	Contenders  int             `json:"contenders"`
	Times       int             `json:"times"`
	Successes   int             `json:"successes"`
	PerSecond   float64         `json:"successes_per_second"` // while the contenders ran
	TriesMedian *int            `json:"tries_p50"`            // writes that a success took
	TriesP99    *int            `json:"tries_p99"`
	TriesMax    int             `json:"tries_max"`
	Wasted      float64         `json:"wasted"` // share of the requests that led to no success
	Elapsed     time.Duration   `json:"elapsed_ns"`
	Fairness    *stats.Fairness `json:"fairness,omitempty"`
}

// Detail tells what the successes of all rounds cost.
func (s *Counter) Detail(all []Finding) Detail {
	p := CounterPrice{Times: s.Times}
	var tries []time.Duration
	var shares [][]int
	requests, wasted := 0, 0
	for _, kept := range all {
		k := kept.(*counted)
		p.Contenders = max(p.Contenders, k.Evidence.Contenders)
		p.Successes += len(k.tries)
		p.Elapsed += k.took
		requests, wasted = requests+k.requests, wasted+k.wasted
		for _, n := range k.tries {
			tries = append(tries, time.Duration(n))
			p.TriesMax = max(p.TriesMax, n)
		}
		shares = append(shares, k.shares)
	}
	if p.Successes == 0 {
		return Detail{}
	}
	if p.Elapsed > 0 {
		p.PerSecond = float64(p.Successes) / p.Elapsed.Seconds()
	}
	if requests > 0 {
		p.Wasted = float64(wasted) / float64(requests)
	}
	slices.Sort(tries)
	for percentile, to := range map[float64]**int{50: &p.TriesMedian, 99: &p.TriesP99} {
		if d, ok := stats.Percentile(tries, percentile); ok {
			n := int(d)
			*to = &n
		}
	}
	p.Fairness = stats.FairnessOf(shares)
	return Detail{Counter: &p}
}
