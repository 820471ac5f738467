package scenarios

import (
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"contend/runner"
	"contend/targets"
)

// mostProbes of a key.
const mostProbes = 10_000

// probes is about how many probes of a key the schedule makes.
func (s *TTLGhost) probes() float64 {
	first, limit, watch := float64(s.First), float64(s.Cap), float64(s.Watch)
	if s.Factor == 1 {
		return watch / first
	}
	// The gaps grow up to the cap, in a time that is the sum of a geometric series.
	growing := math.Log(limit/first) / math.Log(s.Factor)
	grown := (limit*s.Factor - first) / (s.Factor - 1)
	if grown >= watch {
		return math.Log1p(watch*(s.Factor-1)/first) / math.Log(s.Factor)
	}
	return growing + (watch-grown)/limit
}

// earlyShares of the time to live are those at which a key is asked about before its
// expiry, the closer to it the more often.
var earlyShares = []float64{0.25, 0.50, 0.75, 0.90, 0.95, 0.98, 0.99}

// justBefore its expiry a key with a long time to live is asked once more: a store
// that counts in whole seconds may end it up to one early.
const justBefore = 250 * time.Millisecond

const (
	toleranceShare = 0.8  // of the tolerance: the age of a probe that is always made
	twinShare      = 1.25 // of the tolerance: the age at which the twin is asked
	jitter         = 0.2  // of the time between two probes, each way
)

// ages gives those at which the key is asked about, after its latest expiry, in
// order; before it they are negative.
func ages(g *runner.Ghost) []time.Duration {
	t := g.Terms
	random := rand.New(rand.NewPCG(t.Seed, 2))
	switch g.Arm {
	case OnceArm:
		// One stratum a key, on a logarithmic scale, so that young and old ages are met alike.
		low, high := math.Log(float64(min(t.First, t.Watch))), math.Log(float64(t.Watch))
		share := (float64(g.Number) + random.Float64()) / float64(t.Keys)
		return []time.Duration{time.Duration(math.Exp(low + share*(high-low)))}
	case EarlyArm:
		var all []time.Duration
		for _, share := range earlyShares {
			all = append(all, -time.Duration((1-share)*float64(t.TTL)))
		}
		if last := all[len(all)-1]; last < -justBefore {
			all = append(all, -justBefore)
		}
		return append(all, probeAges(t, random)...)
	case TwinArm:
		return []time.Duration{twinAge(t)}
	case ReadArm:
		// At once: what it shows of the expiry as granted.
		return append([]time.Duration{-t.TTL}, probeAges(t, random)...)
	}
	return probeAges(t, random)
}

// twinAge is the age at which the twin is asked.
func twinAge(t runner.GhostTerms) time.Duration {
	return time.Duration(twinShare * float64(t.Tolerance))
}

// probeAges gives the ages at which a key is asked until the watch ends, at growing
// distances.
func probeAges(t runner.GhostTerms, random *rand.Rand) []time.Duration {
	tolerable := time.Duration(toleranceShare * float64(t.Tolerance))
	var all []time.Duration
	gap := float64(t.First)
	for age := time.Duration(0); ; gap = min(gap*t.Factor, float64(t.Cap)) {
		age += max(1, time.Duration(gap*(1+jitter*(2*random.Float64()-1))))
		if age >= t.Watch {
			break
		}
		all = append(all, age)
	}
	if tolerable < t.Watch {
		all = append(all, tolerable)
	}
	all = append(all, t.Watch)
	slices.Sort(all)
	return all
}

// Most counts the requests that the keys take if each blocks, and is shown, to
// the end.
func (s *TTLGhost) Most(ghosts []*runner.Ghost) int {
	n := 0
	for _, g := range ghosts {
		g, now := *g, time.Duration(0)
		for {
			op, due, ok := s.Next(&g)
			if !ok {
				break
			}
			n++
			now = max(now, due)
			e := runner.Exchange{Op: op, Call: now, Return: now, Reply: targets.Reply{Outcome: targets.Conflict, Attempts: 1}}
			switch {
			case g.Created == nil:
				e.Reply.Outcome = targets.OK
			case op.Kind == targets.Read:
				e.Reply.Outcome, e.Reply.Record.Token = targets.OK, createToken(&g)
			}
			s.Observe(&g, &e)
		}
	}
	return n
}
