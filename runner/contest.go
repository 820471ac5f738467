package runner

import (
	"strings"
	"time"

	"contend/targets"
)

// Contest is what the contenders of one round do.
type Contest interface {
	// Needs are the conditions that its writes carry, the times to live that its keys are
	// given and the precision of the times that it compares.
	Needs() targets.Needs
	// Collection is where the round's key is kept.
	Collection() targets.Collection
	// Seeds are the ops that bring a fresh key to the state the round starts
	// from.
	Seeds(key string) []targets.Op
	// Contend is run by every contender at once. What comes before its first op, Sleep,
	// Barrier or Elapsed is done ahead of the release.
	Contend(c *Contender)
	// Requests is how many requests a contender sends, where it need not try again;
	// what it sends beyond is paid for before the next round.
	Requests() int
}

// Key is a key, and where it is kept.
type Key struct {
	Name       string
	Collection targets.Collection
}

// ManyKeyed contests work on more keys than the round's own.
type ManyKeyed interface {
	// Others gives the other keys of a round; each begins with the round's own and
	// a hyphen.
	Others(key string) []Key
}

// Timed contests begin their rounds at instants of their choice.
type Timed interface {
	// Begin gives the instant, from now on, at which a round is to be seeded.
	Begin(now time.Time) time.Time
}

// Immediate contests have every contender begin with a write, which can be made ready
// before it is released.
type Immediate interface{ WritesFirst() }

// keysOf gives all keys of a round of the contest, its own first.
func keysOf(contest Contest, key string) []Key {
	all := []Key{{key, contest.Collection()}}
	if many, ok := contest.(ManyKeyed); ok {
		all = append(all, many.Others(key)...)
	}
	return all
}

// RunOf gives the run that a key belongs to; "" where the key is of no run.
func RunOf(prefix, key string) string {
	rest, ok := strings.CutPrefix(key, prefix)
	if !ok {
		return ""
	}
	run, _, ok := strings.Cut(rest, "-")
	if !ok {
		return ""
	}
	return run
}
