package runner

import (
	"time"

	"contend/targets"
)

// Ghost is a key with a time to live that a watch asks about after its expiry,
// and what was seen of it. Every time is since Epoch, on our own clock.
type Ghost struct {
	Run    string `json:"run"`
	Target string `json:"target"` // URL, with secrets masked
	Key    string `json:"key"`
	Arm    string `json:"arm"`    // what is asked of it; the scenario's
	Number int    `json:"number"` // within its arm, from 0
	// Epoch is the wall clock at the start of the run that made the key.
	Epoch time.Time `json:"epoch"`
	// Terms are the run's, by which the scenario asks and judges.
	Terms GhostTerms `json:"terms"`

	// What was seen; the scenario keeps it as replies come.
	State   GhostState    `json:"state"`
	Closed  bool          `json:"closed"` // nothing more is asked of it
	Why     string        `json:"why,omitempty"`
	Created *Observation  `json:"created,omitempty"` // nil: not acknowledged
	Tried   *Observation  `json:"tried,omitempty"`   // a write whose meaning a read will settle
	Granted time.Duration `json:"granted_ns,omitempty"`
	Expires time.Time     `json:"expires,omitzero"` // as the store told it, by its clock
	// BlockedLive: a create was refused before the expiry, as it must be.
	BlockedLive bool `json:"blocked_live,omitempty"`
	// LivedUntil is the call of the last of those: so long the key lived at least.
	LivedUntil  time.Duration `json:"lived_until_ns,omitempty"`
	LastBlocked *Observation  `json:"last_blocked,omitempty"`
	// Proven is the refusal at the greatest age that is certain, ProvenAge.
	Proven     *Observation  `json:"proven,omitempty"`
	ProvenAge  time.Duration `json:"proven_age_ns,omitempty"`
	FirstFree  *Observation  `json:"first_free,omitempty"`
	LastShown  *Observation  `json:"last_shown,omitempty"` // by a read
	FirstGone  *Observation  `json:"first_gone,omitempty"`
	Probes     int           `json:"probes"`     // answered or not, the create and controls left out
	Unanswered int           `json:"unanswered"` // of those: told nothing
	// Asked is the call of the last request on the schedule.
	Asked time.Duration `json:"asked_ns,omitempty"`
	// Doubt: a write of ours may have been applied without our knowing, so that a
	// refusal may be our own doing until a read shows the first record.
	Doubt   bool          `json:"doubt,omitempty"`
	DoubtAt time.Duration `json:"doubt_at_ns,omitempty"` // when that write was last in flight
	// Resumed is when the present process took the key up; 0: it made it. Between
	// two processes there is only the wall clock.
	Resumed time.Duration `json:"resumed_ns,omitempty"`
	Creates int           `json:"creates,omitempty"` // that certainly had no effect
	Final   bool          `json:"final,omitempty"`   // of a key that is read: the create at its end was sent
	Removed bool          `json:"removed,omitempty"` // from the store
	// ClockUnknown: our clock was set, or stood still, while the key was watched.
	ClockUnknown bool          `json:"clock_unknown,omitempty"`
	NotBefore    time.Duration `json:"not_before_ns,omitempty"` // as a throttling target asked
	Due          time.Duration `json:"due_ns"`                  // when it is next asked about
}

// GhostTerms are the parameters of a watch that its keys carry with them.
type GhostTerms struct {
	TTL       time.Duration `json:"ttl_ns"`
	Watch     time.Duration `json:"watch_ns"` // after the expiry
	Tolerance time.Duration `json:"tolerance_ns"`
	First     time.Duration `json:"first_ns"`
	Factor    float64       `json:"factor"`
	Cap       time.Duration `json:"cap_ns"`
	Keys      int           `json:"keys"` // of its arm
	Seed      uint64        `json:"seed,string"`
	Offset    time.Duration `json:"offset_ns"` // of the create, after the epoch
}

// TTLBounds gives the least and the most that a time to live can be: what was asked,
// unless the store told that it granted another. What it tells is only as fine as
// the resolution of its expiry.
func TTLBounds(asked, granted, resolution time.Duration) (least, most time.Duration) {
	switch {
	case granted == 0:
		return asked, asked
	case (granted - asked).Abs() <= resolution:
		return asked, max(asked, granted+resolution)
	default:
		return granted - resolution, max(asked, granted+resolution)
	}
}

// Resolution is how far the expiry that the store told may be off: one of whole
// seconds by one.
func (g *Ghost) Resolution() time.Duration {
	if !g.Expires.IsZero() && g.Expires.Nanosecond() == 0 {
		return time.Second
	}
	return 0
}

// TTL bounds the key's time to live.
func (g *Ghost) TTL() (least, most time.Duration) {
	return TTLBounds(g.Terms.TTL, g.Granted, g.Resolution())
}

// Expiry is when the key expires at the earliest and at the latest, by our own
// clock: between call and return of its create, and the time to live. A key that
// was not created yet expires as if it were created when it is due.
func (g *Ghost) Expiry() (earliest, latest time.Duration) {
	least, most := g.TTL()
	if g.Created == nil {
		return g.Terms.Offset + least, g.Terms.Offset + most
	}
	return g.Created.Call + least, g.Created.Return + most
}

// End is when the watch of the key ends: what is asked then is the last. Limits and
// a busy machine may delay that.
func (g *Ghost) End() time.Duration {
	_, latest := g.Expiry()
	return latest + g.Terms.Watch
}

// GhostState is what is known of an expired key.
type GhostState string

const (
	GhostPending   GhostState = "pending"   // not created yet, or not expired yet
	GhostBlocked   GhostState = "blocked"   // refused create-if-absent when last asked
	GhostVisible   GhostState = "visible"   // is still read; no create was refused
	GhostFree      GhostState = "free"      // a create was accepted after the expiry
	GhostEarly     GhostState = "early"     // a create was accepted before the expiry
	GhostAbandoned GhostState = "abandoned" // its store died, or nobody knows when it was created
)

// Observation is one reply that tells something of a ghost.
type Observation struct {
	Call    time.Duration   `json:"call_ns"`
	Return  time.Duration   `json:"return_ns"`
	Outcome targets.Outcome `json:"outcome"`
	Code    string          `json:"code,omitempty"`
	Status  int             `json:"status,omitempty"`
	Message string          `json:"message,omitempty"`
	Trace   string          `json:"trace,omitempty"`
}

// Journal keeps what must not be lost. Its methods return when what they were
// given is on disk.
type Journal interface {
	// Intend is told of the keys of a run before the first is created.
	Intend(ghosts []*Ghost) error
	// Note is told of every reply before the next request goes out for the key.
	// The ghost is as the reply left it.
	Note(ghost *Ghost, e *Exchange) error
}
