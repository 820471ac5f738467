package scenarios

import (
	"contend/runner"
	"contend/targets"
)

// CheckThenSet is the claim without a guard: read, wait until all have read,
// write blindly.
type CheckThenSet struct{ oneWinner }

// Info describes the scenario.
func (CheckThenSet) Info() Info {
	return Info{
		Name:    "check-then-set",
		Summary: "the unguarded claim: read, wait until all have read, write blindly; counts double claims",
		Help: `Raced: every contender reads the absent key, waits until all have read it, then writes it without a condition.
Looked for: two contenders that both believe they claimed it. It is expected to be violated (exit 1): that is how a
lock without an atomic guard fails, and how contend shows that it would see such a failure.
It is never held: a claim without a guard that happened not to collide proves nothing.
Inconclusive means that no double claim was seen: the contenders did not all reach the write.`,
		Property:  "no two contenders claim the key (expected to be violated: nothing guards it)",
		Unguarded: true,
	}
}

// Needs is its guard.
func (CheckThenSet) Needs() targets.Needs { return guards() }

// Collection keeps the keys where creates work.
func (CheckThenSet) Collection() targets.Collection { return targets.Plain }

// Seeds are none: the key is absent.
func (CheckThenSet) Seeds(string) []targets.Op { return nil }

// Requests are the read and the write.
func (CheckThenSet) Requests() int { return 2 }

// Contend claims the key if it was absent when it was read.
func (CheckThenSet) Contend(c *runner.Contender) {
	seen := c.Read()
	c.Barrier("after-read")
	if seen.Outcome == targets.Missing {
		c.Write(1, targets.Condition{})
	}
}

// Sweep is refused.
func (CheckThenSet) Sweep(func(string) bool) error { return errWaiting("the claimants") }

// Twin is none: nothing is left to take away.
func (CheckThenSet) Twin() Contest { return nil }
