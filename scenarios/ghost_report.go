package scenarios

import (
	"slices"
	"time"

	"contend/runner"
	"contend/scenarios/stats"
	"contend/scenarios/survival"
)

// GhostReport is what a watch found.
type GhostReport struct {
	TTL       time.Duration `json:"ttl_ns"`
	Granted   []Range       `json:"granted,omitempty"` // by the store's own word, where it told
	Tolerance time.Duration `json:"tolerance_ns"`
	Watch     time.Duration `json:"watch_ns"`
	Keys      []GhostKey    `json:"keys"`
	Arms      []GhostArm    `json:"arms"`
	// Offset is how far the store's word about the expiry is from our own clock's.
	Offset []Range `json:"store_expiry_offset,omitempty"`

	Curve     []survival.Step    `json:"blocking"`          // of the write arm: share still blocking, by age
	Median    *survival.Quantile `json:"median,omitempty"`  // of the delay
	P90       *survival.Quantile `json:"p90,omitempty"`     // of the delay
	Longest   *GhostKey          `json:"longest,omitempty"` // seen to block at the greatest age
	ReadCurve []survival.Step    `json:"visible"`           // of the read arm: share still shown
	// Once is the current-status estimate of the control arm, whose keys were asked
	// a single time each.
	Once      []survival.Step `json:"once"`
	OnceAgree *Agreement      `json:"once_agreement,omitempty"`
	// EarlyFloor is how close to its expiry every key of the early arm was seen to live
	// at least: one that goes later than that, but early, would not be seen. EarlyBound
	// is that on the rate of keys that go early, by then.
	EarlyFloor *time.Duration `json:"early_floor_ns,omitempty"`
	EarlyBound *stats.Bound   `json:"early_bound,omitempty"`
	// CleanReads counts keys that a read no longer showed and that still blocked.
	CleanReads int `json:"clean_reads_that_block"`
}

// Range is between two durations.
type Range struct {
	From time.Duration `json:"from_ns"`
	To   time.Duration `json:"to_ns"`
}

// Agreement says whether keys that are asked again and again go as those that
// are left alone.
type Agreement struct {
	P         float64 `json:"p"`
	Disagrees bool    `json:"disagrees"`
}

// GhostArm counts the keys of an arm by what is known of them.
type GhostArm struct {
	Arm    string                    `json:"arm"`
	Keys   int                       `json:"keys"`
	States map[runner.GhostState]int `json:"states"`
	Probes int                       `json:"probes"`
}

// GhostKey is what is told of a key. Ages are after its expiry, and null where
// nothing was seen.
type GhostKey struct {
	Key         string            `json:"key"`
	Arm         string            `json:"arm"`
	State       runner.GhostState `json:"state"`
	Why         string            `json:"why,omitempty"`
	Expiry      time.Time         `json:"expiry,omitzero"` // by our own clock, at the latest
	Told        time.Time         `json:"expiry_told,omitzero"`
	LastBlocked *time.Duration    `json:"last_blocked_ns"` // at least
	FirstFree   *time.Duration    `json:"first_free_ns"`   // at most
	LastShown   *time.Duration    `json:"last_shown_ns"`   // at least
	FirstGone   *time.Duration    `json:"first_gone_ns"`   // at most
	Code        string            `json:"code,omitempty"`  // of the last refusal
	Status      int               `json:"status,omitempty"`
	Probes      int               `json:"probes"`
	Unanswered  int               `json:"unanswered,omitempty"`
}

// Watched counts the keys of the write arm.
func (r *GhostReport) Watched() int {
	n := 0
	for i := range r.Keys {
		if r.Keys[i].Arm == WriteArm {
			n++
		}
	}
	return n
}

// Shown counts the keys of the read arm that a read still showed after their expiry,
// and gives the greatest age at which one was.
func (r *GhostReport) Shown() (shown, of int, longest time.Duration) {
	for i := range r.Keys {
		k := &r.Keys[i]
		if k.Arm != ReadArm {
			continue
		}
		of++
		if k.LastShown != nil && *k.LastShown > 0 {
			shown, longest = shown+1, max(longest, *k.LastShown)
		}
	}
	return shown, of, longest
}

// LastAge is the greatest age at which anything was seen of the write arm.
func (r *GhostReport) LastAge() time.Duration {
	last := time.Duration(0)
	for i := range r.Keys {
		for _, age := range []*time.Duration{r.Keys[i].LastBlocked, r.Keys[i].FirstFree} {
			if age != nil && r.Keys[i].Arm == WriteArm {
				last = max(last, *age)
			}
		}
	}
	return last
}

// report tells everything about the keys.
func (j *GhostJudge) report(readings []ghostReading) *GhostReport {
	out := &GhostReport{Keys: []GhostKey{}}
	byKey := make(map[string]*ghostReading, len(readings))
	for i := range readings {
		byKey[readings[i].Key] = &readings[i]
	}
	for _, g := range j.ghosts {
		out.TTL, out.Tolerance, out.Watch = g.Terms.TTL, g.Terms.Tolerance, g.Terms.Watch
		out.Keys = append(out.Keys, keyOf(g, byKey[g.Key]))
		out.arm(g)
	}
	if told, _, ok := j.granted(); ok {
		out.Granted = []Range{told}
	}
	out.estimate(readings)
	out.crossCheck(readings)
	return out
}

func (r *GhostReport) arm(g *runner.Ghost) {
	if n := len(r.Arms); n == 0 || r.Arms[n-1].Arm != g.Arm {
		r.Arms = append(r.Arms, GhostArm{Arm: g.Arm, States: make(map[runner.GhostState]int)})
	}
	a := &r.Arms[len(r.Arms)-1]
	a.Keys++
	a.States[g.State]++
	a.Probes += g.Probes
}

func keyOf(g *runner.Ghost, r *ghostReading) GhostKey {
	k := GhostKey{Key: g.Key, Arm: g.Arm, State: g.State, Why: g.Why, Told: g.Expires, Probes: g.Probes, Unanswered: g.Unanswered}
	if g.LastBlocked != nil {
		k.Code, k.Status = g.LastBlocked.Code, g.LastBlocked.Status
	}
	if r == nil {
		return k
	}
	k.Expiry = g.Epoch.Add(r.latest).UTC()
	k.LastBlocked, k.LastShown = r.last(g.LastBlocked), r.last(g.LastShown)
	k.FirstFree, k.FirstGone = r.first(g.FirstFree), r.first(g.FirstGone)
	return k
}

// last is the age that a key had at least when it was last seen so.
func (r *ghostReading) last(s *runner.Observation) *time.Duration {
	if s == nil || r.since(s.Call) < 0 {
		return nil
	}
	age := r.since(s.Call)
	return &age
}

// first is the age that a key had at most when it was first seen so.
func (r *ghostReading) first(s *runner.Observation) *time.Duration {
	if s == nil {
		return nil
	}
	age := r.upTo(s.Return)
	return &age
}

// delay is where the end of what was seen lies: of blocking, or of being shown.
// ok is false for a key that tells nothing.
func (r *ghostReading) delay(last, first *runner.Observation) (d survival.Delay, ok bool) {
	if r.ClockUnknown || last == nil && first == nil {
		return d, false
	}
	d.High = survival.Forever
	if last != nil {
		d.Low = max(0, r.since(last.Call))
	}
	if first != nil {
		d.High = max(d.Low+1, r.upTo(first.Return))
	}
	return d, d.Low > 0 || first != nil
}

// estimate makes the curves.
func (r *GhostReport) estimate(readings []ghostReading) {
	var write, read []survival.Delay
	var once []survival.AgeStatus
	r.CleanReads = 0
	for i := range readings {
		g := &readings[i]
		switch g.Arm {
		case WriteArm:
			if d, ok := g.delay(g.LastBlocked, g.FirstFree); ok {
				write = append(write, d)
			}
		case ReadArm:
			if d, ok := g.delay(g.LastShown, g.FirstGone); ok {
				read = append(read, d)
			}
		case OnceArm:
			if s, ok := g.status(); ok {
				once = append(once, s)
			}
		}
		if g.FirstGone != nil && g.LastBlocked != nil && g.LastBlocked.Return > g.FirstGone.Call {
			r.CleanReads++
		}
	}
	r.Curve, r.ReadCurve, r.Once = survival.Turnbull(write), survival.Turnbull(read), survival.CurrentStatus(once)
	for percentile, to := range map[float64]**survival.Quantile{50: &r.Median, 90: &r.P90} {
		if q, ok := survival.QuantileOf(r.Curve, percentile); ok && len(write) >= stats.Needed(percentile) {
			*to = &q
		}
	}
	if p, disagrees, ok := survival.Disagree(write, once); ok {
		r.OnceAgree = &Agreement{p, disagrees}
	}
	r.Longest = nil
	for i := range r.Keys {
		if k := &r.Keys[i]; k.Arm != TwinArm && k.LastBlocked != nil && (r.Longest == nil || *k.LastBlocked > *r.Longest.LastBlocked) {
			r.Longest = k
		}
	}
}

// status is what the single probe of a key showed.
func (r *ghostReading) status() (s survival.AgeStatus, ok bool) {
	switch {
	case r.ClockUnknown:
		return s, false
	case r.FirstFree != nil:
		return survival.AgeStatus{Age: max(0, r.upTo(r.FirstFree.Return)), Blocked: false}, true
	case r.LastBlocked != nil && r.since(r.LastBlocked.Call) > 0:
		return survival.AgeStatus{Age: r.since(r.LastBlocked.Call), Blocked: true}, true
	default:
		return s, false
	}
}

// crossCheck compares what the store says of the expiry with our own clock.
func (r *GhostReport) crossCheck(readings []ghostReading) {
	var offsets []time.Duration
	for i := range readings {
		if g := &readings[i]; !g.Expires.IsZero() {
			told := g.Expires.Sub(g.Epoch)
			offsets = append(offsets, told-g.latest, told-g.earliest)
		}
	}
	if len(offsets) > 0 {
		r.Offset = []Range{{slices.Min(offsets), slices.Max(offsets)}}
	}
}
