package scenarios

import (
	"contend/runner"
	"contend/targets"
)

// VersionCAS races N compare-and-sets on version 0 of a seeded record, with no
// read in front that could sort the contenders out before the guard.
type VersionCAS struct{ oneWinner }

// Info describes the scenario.
func (VersionCAS) Info() Info {
	return Info{
		Name:    "version-cas",
		Summary: "N contenders write a seeded record on condition of version 0; exactly one may win",
		Help: `Raced: a record is written at version 0; then every contender writes version 1 at the same moment, on condition
that the record is still at version 0. Nobody reads first, so nobody is sorted out before the guard.
Must hold: exactly one write is accepted, the record is its, and its version went up by exactly one;
nobody is refused before anyone could have won. That nobody wins is legal only if nobody was refused.
Inconclusive means that the guard was not put to the test: in too few rounds did the accepted write meet rivals there
(--min-contended, --min-rivals), too many were uncertain (--max-uncertain-rounds), or a control was not as expected.` + sweepHelp,
		Property: "exactly one contender replaces version 0, or none and no one was told that it is gone",
		Guard:    targets.IfVersion,
	}
}

// Needs is its guard.
func (VersionCAS) Needs() targets.Needs { return guards(targets.IfVersion) }

// Collection keeps the keys where a write on a version works.
func (VersionCAS) Collection() targets.Collection { return targets.Versioned }

// Seeds is the record at version 0.
func (s VersionCAS) Seeds(key string) []targets.Op { return seedAtZero(key) }

func seedAtZero(key string) []targets.Op {
	return []targets.Op{{Kind: targets.Write, Key: key, Collection: targets.Versioned,
		Value: targets.Record{Token: key + seedSuffix}}}
}

// Requests is the write.
func (VersionCAS) Requests() int { return 1 }

// WritesFirst tells that it does.
func (VersionCAS) WritesFirst() {}

// Contend writes version 1 on condition of version 0.
func (VersionCAS) Contend(c *runner.Contender) {
	seed := &c.Round.Seeds[0].Reply
	c.Write(1, targets.Condition{Guard: targets.IfVersion, Version: seed.Version})
}

// Twin writes without the condition.
func (VersionCAS) Twin() Contest { return blindUpdate{} }

// blindUpdate is VersionCAS without its guard.
type blindUpdate struct{ oneWinner }

func (blindUpdate) Info() Info {
	info := VersionCAS{}.Info()
	info.Property = "no two contenders replace version 0 (expected to be violated: nothing guards it)"
	info.Unguarded, info.Guard = true, targets.Unguarded
	return info
}
func (blindUpdate) Needs() targets.Needs { return guards() }

// Collection is that of VersionCAS.
func (blindUpdate) Collection() targets.Collection { return targets.Versioned }
func (blindUpdate) Seeds(key string) []targets.Op  { return seedAtZero(key) }
func (blindUpdate) Requests() int                  { return 2 }
func (blindUpdate) Twin() Contest                  { return nil }
func (blindUpdate) Sweep(func(string) bool) error  { return errWaiting("the writers") }
func (blindUpdate) Contend(c *runner.Contender) {
	seen := c.Read()
	c.Barrier("after-read")
	if seen.Outcome == targets.OK && seen.Record.Version == 0 {
		c.Write(1, targets.Condition{})
	}
}
