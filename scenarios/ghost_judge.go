package scenarios

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"contend/runner"
	"contend/scenarios/stats"
	"contend/targets"
)

// fewestKeys is how many of the write arm must be known for held.
const fewestKeys = 5

// GhostJudge is an observer of a watch that keeps what a verdict needs.
type GhostJudge struct {
	run      string
	controls []Control
	skipped  bool
	earlier  []Violation // of the controls of earlier processes
	ghosts   []*runner.Ghost
	unmapped int
	sample   string
}

// NewGhostJudge judges the keys of one run.
func NewGhostJudge(run string) *GhostJudge { return &GhostJudge{run: run} }

// Controls judges the checks that went before.
func (j *GhostJudge) Controls(c *runner.Controls) {
	if j.skipped = c.Skipped; j.skipped || c.Key == "" {
		return
	}
	j.controls = append(sequentialControls(c), nonceControl(c.Nonce, 0))
}

// Earlier takes the violations of a run as an earlier process told it: those of
// its controls stand.
func (j *GhostJudge) Earlier(all []Violation) {
	for _, v := range all {
		if v.Control != "" {
			j.earlier = append(j.earlier, v)
		}
	}
}

// Watching takes the keys of the run.
func (j *GhostJudge) Watching(ghosts []*runner.Ghost) {
	for _, g := range ghosts {
		if g.Run == j.run {
			j.ghosts = append(j.ghosts, g)
		}
	}
}

// Asked looks for replies that the target's table has no row for.
func (j *GhostJudge) Asked(g *runner.Ghost, e *runner.Exchange) {
	if g.Run == j.run && e.Reply.Outcome == targets.Unmapped {
		if j.unmapped++; j.sample == "" {
			j.sample = replyText(&e.Reply)
		}
	}
}

// ghostReading is a key by the terms of the run: what the store granted is known
// for all of its keys if it told it of one.
type ghostReading struct {
	*runner.Ghost
	earliest, latest time.Duration // of the expiry, since the epoch
	proven           time.Duration // age of the refusal at the greatest age that is certain
}

// age of an instant is at least since, and at most upTo.
func (r *ghostReading) since(at time.Duration) time.Duration { return at - r.latest }
func (r *ghostReading) upTo(at time.Duration) time.Duration  { return at - r.earliest }

// granted gives the times to live that the store told, and how fine it tells them.
func (j *GhostJudge) granted() (told Range, fine time.Duration, ok bool) {
	for _, g := range j.ghosts {
		if g.Granted > 0 {
			if !ok {
				told, ok = Range{g.Granted, g.Granted}, true
			}
			told.From, told.To = min(told.From, g.Granted), max(told.To, g.Granted)
			fine = max(fine, g.Resolution())
		}
	}
	return told, fine, ok
}

func (j *GhostJudge) readings() []ghostReading {
	told, fine, _ := j.granted()
	var all []ghostReading
	for _, g := range j.ghosts {
		if g.Created == nil || g.State == runner.GhostAbandoned {
			continue
		}
		least, own := g.TTL()
		most := own
		if g.Granted == 0 {
			least, _ = runner.TTLBounds(g.Terms.TTL, told.From, fine)
			_, most = runner.TTLBounds(g.Terms.TTL, told.To, fine)
		}
		all = append(all, ghostReading{g, g.Created.Call + least, g.Created.Return + most, g.ProvenAge - (most - own)})
	}
	return all
}

// fate of a key under the property.
type ghostFate int

const (
	ghostKnown     ghostFate = iota // free in time
	ghostViolated                   // blocked beyond the tolerance
	ghostEarly                      // free before its expiry
	ghostUnclear                    // may have blocked beyond the tolerance
	ghostUncounted                  // tells nothing
)

// fateOf rules a key that creates were tried on. A clock that stood still has run on
// for at least what it shows, so that a block beyond the tolerance stays proven.
func (r *ghostReading) fateOf() (fate ghostFate, why reason) {
	tolerance := r.Terms.Tolerance
	switch {
	case r.Proven != nil && r.proven > tolerance:
		return ghostViolated, reason{}
	case r.ClockUnknown:
		return ghostUncounted, reason{"were watched while our clock was set or the machine slept", ""}
	case isEarly(r.Ghost):
		return ghostEarly, reason{}
	case r.FirstFree != nil && r.upTo(r.FirstFree.Return) <= tolerance:
		return ghostKnown, reason{}
	case r.FirstFree != nil:
		return ghostUnclear, reason{"were first seen free after the tolerance, and not seen to block that long", "probe more often, or raise --tolerance"}
	case !r.Closed:
		return ghostUnclear, reason{"were still watched when the watch ended", "go on with --resume, or let it end"}
	case r.LastBlocked != nil && r.LastBlocked.Call >= r.earliest:
		return ghostUnclear, reason{"were still blocking when the watch ended, and not for certain beyond the tolerance", "make --watch longer than --tolerance"}
	default:
		return ghostUncounted, reason{"had no probe answered after the expiry", "fix what their outcomes name"}
	}
}

// ghostTally is what the fates of the keys add up to.
type ghostTally struct {
	violations []Violation
	violated   int // of the write arm: blocked too long
	early      int // of all arms: gone early
	lived      int // of the early arm: blocked before the expiry, and not gone early
	known      int // of the write arm: free in time
	unclear    int // of the write arm
	why        map[reason]int
}

// Conclude says what the watch shows.
func (j *GhostJudge) Conclude(end runner.End) Judgement {
	t := ghostTally{why: make(map[reason]int)}
	readings := j.readings()
	write := 0
	lost, prolongs := forgotten(readings), prolonged(readings)
	for i := range readings {
		t.add(&readings[i], lost, prolongs)
	}
	for _, g := range j.ghosts {
		if g.Arm == WriteArm {
			write++
			if g.Created == nil || g.State == runner.GhostAbandoned {
				t.why[reason{"were abandoned: " + firstNonEmpty(g.Why, "not created"), ""}]++
			}
		}
	}
	slices.SortFunc(t.violations, func(a, b Violation) int { return -cmp.Compare(a.age, b.age) })
	out := Judgement{Controls: append(j.controls, j.ownControls(readings)...)}
	if out.Controls == nil {
		out.Controls = []Control{}
	}
	out.Contention.ContendedRounds, out.Contention.Of = t.known+t.violated, write
	out.Contention.Uncounted = uncountedOf(t.why)
	out.Detail.Ghosts = j.report(readings)
	out.Detail.Ghosts.EarlyBound, out.Detail.Ghosts.EarlyFloor = stats.BoundOf(t.early, t.early+t.lived), earlyFloor(readings)
	out.Rounds = out.Detail.Ghosts.Watched()
	out.Verdict = j.verdict(&t, out.Controls, write, end)
	return out
}

// earlyFloor is how close to its expiry every key of the early arm was seen to live;
// nil: not all of them were.
func earlyFloor(readings []ghostReading) *time.Duration {
	var floor *time.Duration
	for i := range readings {
		r := &readings[i]
		if r.Arm != EarlyArm {
			continue
		}
		if !r.BlockedLive {
			return nil
		}
		if left := r.Created.Call + r.Terms.TTL - r.LivedUntil; floor == nil || left > *floor {
			floor = &left
		}
	}
	return floor
}

// forgotten tells whether the store lost a key that has no time to live: then one
// that is gone has not expired early.
func forgotten(readings []ghostReading) bool {
	for i := range readings {
		if readings[i].Arm == TwinArm && readings[i].FirstFree != nil {
			return true
		}
	}
	return false
}

// prolonged tells whether only keys block that were asked before their expiry too:
// then it is the refused creates that keep them.
func prolonged(readings []ghostReading) bool {
	early, free := false, false
	for i := range readings {
		r := &readings[i]
		fate, _ := r.fateOf()
		switch {
		case r.Arm == EarlyArm:
			early = early || fate == ghostViolated
		case fate == ghostViolated && r.Arm != TwinArm:
			return false
		case r.Arm == WriteArm:
			free = free || fate == ghostKnown
		}
	}
	return early && free
}

func (t *ghostTally) add(r *ghostReading, lost, prolongs bool) {
	if r.Arm == TwinArm {
		return
	}
	fate, why := r.fateOf()
	if fate == ghostEarly && lost {
		fate, why = ghostUncounted, reason{"were gone when the store had lost keys without a TTL too", ""}
	}
	switch fate {
	case ghostViolated:
		v := r.ghost()
		if prolongs {
			v.Kind = "refusal-prolongs"
			v.Detail = "refused creates prolong the life of the key: " + v.Detail + "; keys that nobody had asked before their expiry were free in time"
		}
		t.violations = append(t.violations, v)
	case ghostEarly:
		t.violations = append(t.violations, r.goneEarly())
		t.early++
	default:
		if r.Arm == EarlyArm && r.BlockedLive {
			t.lived++
		}
	}
	if r.Arm != WriteArm {
		return
	}
	switch fate {
	case ghostViolated:
		t.violated++
	case ghostKnown:
		t.known++
	case ghostUnclear:
		t.unclear++
		t.why[why]++
	case ghostUncounted:
		t.why[why]++
	}
}

// ghost words a block beyond the tolerance.
func (r *ghostReading) ghost() Violation {
	age := r.proven
	return Violation{Kind: "ghost", Key: r.Key, age: age,
		Detail: fmt.Sprintf("%s was refused with %s at least %s after the key had expired (tolerance %s)", "create-if-absent",
			observationText(r.Proven), stats.Coarse(age), stats.Coarse(r.Terms.Tolerance)),
		Witness: []Witness{r.witness("create with a TTL of "+r.Terms.TTL.String(), r.Created), r.witness("create if absent, after the expiry", r.Proven)}}
}

// goneEarly words a key that went before its expiry.
func (r *ghostReading) goneEarly() Violation {
	left := r.Created.Call + r.Terms.TTL - r.FirstFree.Return
	return Violation{Kind: "early-expiry", Key: r.Key, age: forever,
		Detail:  fmt.Sprintf("create-if-absent was accepted at least %s before the key expired", stats.Coarse(left)),
		Witness: []Witness{r.witness("create with a TTL of "+r.Terms.TTL.String(), r.Created), r.witness("create if absent, before the expiry", r.FirstFree)}}
}

func observationText(s *runner.Observation) string {
	return replyText(&targets.Reply{Outcome: s.Outcome, Code: s.Code, Status: s.Status})
}

// replyText tells a reply by its code and status, or its outcome where it has
// neither.
func replyText(r *targets.Reply) string {
	var parts []string
	if r.Code != "" {
		parts = append(parts, r.Code)
	}
	if r.Status != 0 {
		parts = append(parts, fmt.Sprint(r.Status))
	}
	if len(parts) == 0 {
		return string(r.Outcome)
	}
	return strings.Join(parts, " ")
}

func (r *ghostReading) witness(request string, s *runner.Observation) Witness {
	return Witness{Who: r.Arm + " " + fmt.Sprint(r.Number), Request: request, Call: s.Call, Return: s.Return, Outcome: s.Outcome,
		Code: s.Code, Status: s.Status, Trace: s.Trace}
}

// ownControls are the keys that show that a block would be seen: unexpired ones
// must block, and so must those without a time to live, which nobody sweeps.
func (j *GhostJudge) ownControls(readings []ghostReading) []Control {
	if j.skipped {
		return nil
	}
	live, twin := Control{Name: "live", AsExpected: true}, Control{Name: "twin", AsExpected: true}
	judge := func(c *Control, answered, ok bool, missed string) {
		if !answered {
			return
		}
		if c.Rounds++; !ok {
			c.AsExpected, c.Detail = false, missed
		}
	}
	for i := range readings {
		r := &readings[i]
		switch r.Arm {
		case EarlyArm:
			judge(&live, r.BlockedLive || r.FirstFree != nil || r.LastBlocked != nil, r.BlockedLive || isEarly(r.Ghost),
				"a key was not seen to block before it expired, so a ghost might not be seen either")
		case TwinArm:
			if r.FirstFree != nil && len(twin.violations) == 0 {
				twin.violations = append(twin.violations, Violation{Kind: "second-create-accepted", Control: "twin", Key: r.Key,
					Detail:  "a second create was accepted on a key that has no TTL: keys are lost, or given a TTL of their own, or creates are not guarded",
					Witness: []Witness{r.witness("create without a TTL", r.Created), r.witness("create if absent", r.FirstFree)}})
			}
			judge(&twin, r.FirstFree != nil || r.LastBlocked != nil, r.LastBlocked != nil && r.FirstFree == nil,
				"a key without a TTL did not block, so a ghost might not be seen either: the store loses keys, or gives them a TTL of its own")
		}
	}
	for _, c := range []*Control{&live, &twin} {
		if c.Rounds == 0 {
			c.AsExpected, c.Detail = false, "none of its keys was answered"
		}
	}
	return []Control{live, twin}
}

// alone counts the keys that are left alone until they are asked once, beyond the
// tolerance, and those of them that were answered.
func (j *GhostJudge) alone() (planned, answered int) {
	for _, g := range j.ghosts {
		if g.Arm == OnceArm && ages(g)[0] > g.Terms.Tolerance {
			if planned++; g.FirstFree != nil || g.LastBlocked != nil {
				answered++
			}
		}
	}
	return planned, answered
}

func (j *GhostJudge) verdict(t *ghostTally, controls []Control, write int, end runner.End) Verdict {
	v := Verdict{Status: Inconclusive, Property: NewTTLGhost().Info().Property, Reasons: []string{}, Violations: []Violation{}, ViolatedRounds: t.violated}
	v.Violations = append(v.Violations, j.earlier...)
	for _, c := range controls {
		v.Violations = append(v.Violations, c.violations...)
	}
	v.Violations = append(v.Violations, t.violations...)
	if len(v.Violations) > 0 {
		v.Status = Violated
	} else if v.Reasons = append(v.Reasons, j.doubts(t, controls, write, end)...); len(v.Reasons) == 0 {
		v.Status = Held
	}
	if v.Status != Violated || t.violated > 0 {
		// A key of which it is not clear may have blocked too.
		v.Bound = stats.BoundOf(t.violated, t.known+t.violated+t.unclear)
	}
	return v
}

// doubts are the reasons against holding.
func (j *GhostJudge) doubts(t *ghostTally, controls []Control, write int, end runner.End) []string {
	var doubts []string
	add := func(format string, a ...any) { doubts = append(doubts, fmt.Sprintf(format, a...)) }
	if end.Stopped != "" {
		add("%s", end.Stopped)
	}
	if end.Cut != "" {
		add("the watch was cut: %s", end.Cut)
	}
	if end.Interrupted {
		add("the watch was interrupted before all of its keys were done")
	}
	if j.skipped {
		add(skippedText, "ghost")
	}
	doubts = append(doubts, harnessDoubts(controls, j.unmapped, j.sample)...)
	if planned, answered := j.alone(); planned == 0 {
		add("no key that is asked a single time was to be asked beyond the tolerance, so asking may be what frees them (make --watch longer than --tolerance)")
	} else if 2*answered < planned {
		add("%d of the %d keys that are asked a single time, beyond the tolerance, were answered, so asking may be what frees them", answered, planned)
	}
	switch {
	case t.unclear > 0 || 2*t.known < write:
		add("%d of %d keys were seen to be free in time, and %d may not have been: %s", t.known, write, t.unclear, UncountedText(uncountedOf(t.why)))
	case t.known < fewestKeys:
		add("%d keys are known, and %d are needed (raise --keys)", t.known, fewestKeys)
	}
	return doubts
}
