package scenarios

import (
	"contend/runner"
	"contend/targets"
)

// FailIfExists races N creates of one absent key.
type FailIfExists struct{ oneWinner }

// Info describes the scenario.
func (FailIfExists) Info() Info {
	return Info{
		Name: "fail-if-exists", Aliases: []string{"create-if-absent"},
		Summary: "N contenders create one absent key; exactly one may win",
		Help: `Raced: every contender writes the same absent key at the same moment, on condition that it does not exist.
Must hold: exactly one create is accepted and its value is what the key holds afterwards; nobody is told that
the key exists before anyone could have created it. That nobody wins is legal only if nobody was told that it exists.
Inconclusive means that it was not put to the test: in too few rounds did the accepted create meet rivals at the guard
(--min-contended, --min-rivals), too many were uncertain (--max-uncertain-rounds), or a control was not as expected.` + sweepHelp,
		Property: "exactly one contender creates the key, or none and no one was told that it exists",
		Guard:    targets.IfAbsent,
	}
}

// Needs is its guard.
func (FailIfExists) Needs() targets.Needs { return guards(targets.IfAbsent) }

// Collection keeps the keys where creates work.
func (FailIfExists) Collection() targets.Collection { return targets.Plain }

// Seeds are none: the key is absent.
func (FailIfExists) Seeds(string) []targets.Op { return nil }

// Requests is the create.
func (FailIfExists) Requests() int { return 1 }

// WritesFirst tells that it does.
func (FailIfExists) WritesFirst() {}

// Contend creates the key.
func (FailIfExists) Contend(c *runner.Contender) {
	c.Write(1, targets.Condition{Guard: targets.IfAbsent})
}

// Twin claims the key without a guard.
func (FailIfExists) Twin() Contest { return CheckThenSet{} }
