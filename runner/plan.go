package runner

import (
	"encoding/json"
	"math/rand/v2"
	"strings"
	"time"

	"contend/targets"
)

// Setup is what the plan of a run of any shape has.
type Setup struct {
	Run       string        // unique; part of every key and token
	Prefix    string        // what every key begins with
	Timeout   time.Duration // of one request
	Limits    []targets.Limit
	Seed      uint64 // of what is drawn
	ValueSize int    // bytes of body in each write
	// SkipControls leaves out what goes before, to show that a violation would be seen.
	SkipControls bool
}

// key names what a run works on.
func (s *Setup) key(label string) string { return s.Prefix + s.Run + "-" + label }

// Plan says what a race does. Its seed is of the order of release, too.
type Plan struct {
	Setup
	Contenders int
	Rounds     int             // that are to count; 0: until Duration is up
	MaxRounds  int             // raced at most, where fewer count; 0: no more than Rounds
	Duration   time.Duration   // 0: until Rounds count
	Settle     time.Duration   // waited before the read-back of a round with an unknown outcome; so long a missing or old state is doubted
	Late       time.Duration   // at least so long after the last answer on a key it is read once more
	Stagger    time.Duration   // between one contender's release and the next
	Sweep      Sweep           // of the release of the second of two contenders, in the race
	Release    targets.Release // "": the gate

	Race          Contest
	Twin          Contest // nil: none
	ControlRounds int     // rounds of the twin
	Unguarded     bool    // the race has no guard: leave the sequential checks of guards out
}

// Steering is asked on the way. A nil one races, and doubts nothing.
type Steering interface {
	// Proceed decides, after the observer was shown the controls, whether to
	// race.
	Proceed() bool
	// Doubtful names the rounds whose judgement waits for a late read; an
	// interrupted run reads those first.
	Doubtful() []int
	// Counted is how many rounds count so far.
	Counted() int
	// Undecided names the rounds whose keys showed a missing or old state, where
	// another late read may show that the reads were stale, or confirm it.
	Undecided() []int
}

// body is a JSON string of size bytes, quotes included where they fit.
func body(random *rand.Rand, size int) json.RawMessage {
	if size < 2 {
		return nil
	}
	const letters = "abcdefghijklmnopqrstuvwxyz"
	var b strings.Builder
	b.WriteByte('"')
	for range size - 2 {
		b.WriteByte(letters[random.IntN(len(letters))])
	}
	b.WriteByte('"')
	return json.RawMessage(b.String())
}
