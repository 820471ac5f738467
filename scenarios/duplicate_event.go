package scenarios

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"contend/runner"
	"contend/targets"
)

// DuplicateEvent delivers one event several times to a handler that repairs a page
// and comments on it once: the incident of "The duplicate Forge event that deleted
// our spam filter", 2026.
type DuplicateEvent struct {
	Saw           string        `json:"saw_violation"`
	Claim         string        `json:"claim"`
	ForceConflict bool          `json:"force_conflict"`
	Offsets       durations     `json:"offset_ns"`
	Backoff       time.Duration `json:"backoff_ns"`

	// inProcess is the flag of --saw-violation process: it lives as long as we do.
	inProcess *atomic.Bool
}

// durations are a flag's, with commas between.
type durations []time.Duration

// String writes what Set reads.
func (d *durations) String() string {
	var parts []string
	for _, each := range *d {
		parts = append(parts, each.String())
	}
	return strings.Join(parts, ",")
}

// Set reads durations with commas between.
func (d *durations) Set(text string) error {
	*d = nil
	for part := range strings.SplitSeq(text, ",") {
		if part = strings.TrimSpace(part); part == "0" {
			part = "0s"
		}
		each, err := time.ParseDuration(part)
		if err != nil || each < 0 {
			return errors.New("needs durations with commas between, such as 0s,50ms,400ms")
		}
		*d = append(*d, each)
	}
	return nil
}

// Where the flag lives that forbids a run which saw a violation to call the page
// clean, and how the marker is claimed.
const (
	sawRun     = "run"
	sawAttempt = "attempt"
	sawProcess = "process"
	sawNone    = "none"

	claimAtomic = "atomic"
	claimCheck  = "check-then-set"
	claimNone   = "none"
)

// NewDuplicateEvent gives the defaults.
func NewDuplicateEvent() *DuplicateEvent {
	return &DuplicateEvent{Saw: sawRun, Claim: claimAtomic, ForceConflict: true, Offsets: durations{0, 50 * time.Millisecond, 400 * time.Millisecond},
		Backoff: 500 * time.Millisecond, inProcess: new(atomic.Bool)}
}

// Info describes the scenario.
func (s *DuplicateEvent) Info() Info {
	info := Info{
		Name:    "duplicate-event",
		Summary: "one event delivered twice, a little apart; judged on the state of the guard, not on the symptom",
		Help: `Raced: an event is delivered to every contender (-n 2). A delivery reads the versioned page; a tampered one it repairs on
condition of the version, claims the marker and comments once; refused, it waits and reads again; a clean page clears the marker.
Must hold: the marker stays the winner's; a third delivery while it is there is silent; after a clean save, a new incident speaks.
Inconclusive means that no delivery lost the page's version to another, or that the later ones did not come about.
Only a flag that outlives the attempts and not the run (--saw-violation run) holds; an atomic claim changes none of it.
Even that has a hole: a delivery that comes when the page is repaired (--force-conflict=false --offset 400ms) sees no
violation, calls the page clean, and clears the marker: violated.` + sweepHelp,
		Property: "the marker that the winner claimed is there until a clean save clears it, and silences just the incident it is for",
		Guard:    targets.IfVersion,
	}
	if s.Saw == sawNone {
		info.Property = "the marker outlives a duplicate of its event (expected to be violated: nothing forbids the loser to clear it)"
		info.Unguarded = true
	}
	return info
}

// Crowd is how many deliveries there are, unless --contenders says otherwise.
func (*DuplicateEvent) Crowd() int { return 2 }

// Flags are the scenario's own.
func (s *DuplicateEvent) Flags(fs *flag.FlagSet) {
	fs.Var(&s.Offsets, "offset", "how long after the first each further delivery comes; of several, with commas between, each round takes the next")
	fs.StringVar(&s.Saw, "saw-violation", s.Saw, "where the flag lives that forbids a run which saw a violation to clear the marker: run, attempt, process, none")
	fs.StringVar(&s.Claim, "claim", s.Claim, "how the marker is claimed: atomic, check-then-set, none")
	fs.BoolVar(&s.ForceConflict, "force-conflict", s.ForceConflict, "hold the first write of every delivery until all have read, so that the losers collide each time")
	fs.DurationVar(&s.Backoff, "backoff", s.Backoff, "wait after the first refusal; it doubles with each")
}

// Check refuses parameters that cannot be.
func (s *DuplicateEvent) Check() error {
	var wrong []error
	if !slices.Contains([]string{sawRun, sawAttempt, sawProcess, sawNone}, s.Saw) {
		wrong = append(wrong, fmt.Errorf("--saw-violation %q: there are run, attempt, process, none", s.Saw))
	}
	if !slices.Contains([]string{claimAtomic, claimCheck, claimNone}, s.Claim) {
		wrong = append(wrong, fmt.Errorf("--claim %q: there are atomic, check-then-set, none", s.Claim))
	}
	if len(s.Offsets) == 0 {
		wrong = append(wrong, errors.New("--offset: name at least one"))
	}
	if s.Backoff < 0 {
		wrong = append(wrong, fmt.Errorf("--backoff %s: must not be negative", s.Backoff))
	}
	return errors.Join(wrong...)
}

// Needs are the guards of the page and, where it is claimed so, of the marker.
func (s *DuplicateEvent) Needs() targets.Needs {
	if s.Claim == claimAtomic {
		return guards(targets.IfVersion, targets.IfAbsent)
	}
	return guards(targets.IfVersion)
}

// Collection keeps the pages where a write on a version works.
func (*DuplicateEvent) Collection() targets.Collection { return targets.Versioned }

const (
	markerSuffix  = "-marker"
	commentSuffix = "-comment"
)

// Others are the marker and the last comment.
func (*DuplicateEvent) Others(key string) []runner.Key {
	return []runner.Key{{Name: key + markerSuffix, Collection: targets.Plain}, {Name: key + commentSuffix, Collection: targets.Plain}}
}

// pageBody is what a page says beside its version.
type pageBody struct {
	Tampered bool `json:"tampered"`
	Editor   bool `json:"editor,omitempty"` // written by a person, not by the handler
}

func pageOf(r *targets.Record) (p pageBody) {
	_ = json.Unmarshal(r.Body, &p)
	return p
}

// delivered is what a marker or a comment says of the delivery that wrote it.
type delivered struct {
	Delivery int `json:"delivery"` // from 1; the duplicates first
}

// Seeds is the tampered page.
func (*DuplicateEvent) Seeds(key string) []targets.Op {
	seeds := seedAtZero(key)
	seeds[0].Value.Body, _ = json.Marshal(pageBody{Tampered: true, Editor: true})
	return seeds
}

// Requests are those of a delivery that loses and comes back; the first contender
// sends the later events too.
func (*DuplicateEvent) Requests() int { return 16 }

// Sweep puts the offsets of the sweep in the place of the scenario's own, and lets the
// conflict come or not.
func (s *DuplicateEvent) Sweep(given func(flag string) bool) error {
	switch {
	case given("offset"):
		return errors.New("--offset: the offsets are those of --offset-sweep; leave one of the two out")
	case given("force-conflict") && s.ForceConflict:
		return errors.New("--force-conflict: it holds both deliveries until they have read, so that no offset is left; leave it out with --offset-sweep")
	}
	s.Offsets, s.ForceConflict = durations{0}, false
	return nil
}

// Twin lets a run that saw a violation clear the marker; the conflict stays forced.
func (s *DuplicateEvent) Twin() Contest {
	if s.Saw == sawNone {
		return nil
	}
	twin := *s
	twin.Saw, twin.ForceConflict = sawNone, true
	return &twin
}

// mostAttempts of a delivery, as in the incident.
const mostAttempts = 3

// handler is one delivery on its way.
type handler struct {
	*runner.Contender
	scenario *DuplicateEvent
	delivery int
	saw      bool // this run has seen a violation
}

// Contend delivers the event; when all duplicates are through, the first contender
// sends what comes later.
func (s *DuplicateEvent) Contend(c *runner.Contender) {
	offset := s.Offsets[(c.Round.Number-1)%len(s.Offsets)]
	if !c.Sleep(time.Duration(c.Number) * offset) {
		return
	}
	s.deliver(c, c.Number+1, s.ForceConflict)
	c.Barrier("delivered")
	if c.Number != 0 || c.Over() {
		return
	}
	// The stale draft is saved once more: the same incident, which is to be silent.
	const later = 1_000_000
	if !s.edit(c) {
		return
	}
	s.deliver(c, later+1, false)
	// A clean save: nothing is wrong with the page, and the marker may go.
	s.deliver(c, later+2, false)
	// Tampered with again: a new incident, which is to speak.
	if s.edit(c) {
		s.deliver(c, later+3, false)
	}
}

// edit saves a tampered page, as a person would.
func (s *DuplicateEvent) edit(c *runner.Contender) bool {
	seen := c.Read()
	if seen.Outcome != targets.OK {
		return false
	}
	record := c.Record()
	record.Version = seen.Record.Version + 1
	record.Body, _ = json.Marshal(pageBody{Tampered: true, Editor: true})
	return c.Do(targets.Op{Kind: targets.Write, Key: c.Round.Key, Collection: targets.Versioned, Value: record,
		If: targets.Condition{Guard: targets.IfVersion, Counter: seen.Record.Version, Version: seen.Version}}).Outcome == targets.OK
}

// deliver runs the handler.
func (s *DuplicateEvent) deliver(c *runner.Contender, delivery int, hold bool) {
	h := handler{c, s, delivery, false}
	// In a forced conflict the loser comes back when the winner has commented, as in
	// the incident, however slow the store.
	settled := !hold
	settle := func() {
		if !settled {
			settled = true
			c.Barrier("settled")
		}
	}
	defer settle()
	for attempt := range mostAttempts {
		if s.Saw == sawAttempt {
			// The flag is made inside of the retry loop, and is new on the attempt that matters.
			h.saw = false
		}
		// Both deliveries read the page, and it is tampered with.
		page := c.Read()
		if hold && attempt == 0 {
			c.Barrier("after-read")
		}
		if page.Outcome != targets.OK {
			return
		}
		if !pageOf(&page.Record).Tampered {
			h.clean()
			return
		}
		h.saw = true
		s.inProcess.Store(true)
		if h.repair(page) {
			h.comment()
			return
		}
		// The 409: back off, and read again a page that the other has fixed.
		if !c.Sleep(s.Backoff << attempt) {
			return
		}
		settle()
	}
}

// repair restores the page on condition of its version.
func (h *handler) repair(page *targets.Reply) bool {
	record := h.Record()
	record.Version = page.Record.Version + 1
	record.Body, _ = json.Marshal(pageBody{})
	return h.Do(targets.Op{Kind: targets.Write, Key: h.Round.Key, Collection: targets.Versioned, Value: record,
		If: targets.Condition{Guard: targets.IfVersion, Counter: page.Record.Version, Version: page.Version}}).Outcome == targets.OK
}

// comment claims the marker of the incident, and comments if it was not there.
func (h *handler) comment() {
	key := h.Round.Key + markerSuffix
	condition := targets.Condition{}
	switch h.scenario.Claim {
	case claimAtomic:
		condition.Guard = targets.IfAbsent
	case claimCheck:
		if h.Do(targets.Op{Kind: targets.Read, Key: key, Collection: targets.Plain}).Outcome != targets.Missing {
			return
		}
	}
	if h.write(key, condition).Outcome == targets.OK {
		h.write(h.Round.Key+commentSuffix, targets.Condition{})
	}
}

func (h *handler) write(key string, condition targets.Condition) *targets.Reply {
	record := h.Record()
	record.Version = 1
	record.Body, _ = json.Marshal(delivered{h.delivery})
	return h.Do(targets.Op{Kind: targets.Write, Key: key, Collection: targets.Plain, Value: record, If: condition})
}

// clean is the branch of a page without violations: it clears the marker, unless
// this run has seen one.
func (h *handler) clean() {
	saw := h.saw
	switch h.scenario.Saw {
	case sawNone:
		saw = false
	case sawProcess:
		saw = h.scenario.inProcess.Load()
	}
	if !saw {
		h.Do(targets.Op{Kind: targets.Delete, Key: h.Round.Key + markerSuffix, Collection: targets.Plain})
	}
}
