package cmd

import (
	"fmt"

	"github.com/spf13/pflag"

	"contend/report"
)

// idle refuses flags that were typed and change nothing. Those of the environment
// and of a suite are meant for whatever has a use for them.
func (l *contestLaunch) idle(fs *pflag.FlagSet) []error {
	name, wrong := l.scenario.Info().Name, refusals{}
	_, twin := report.Raced(l.scenario, l.unguarded)
	unguarded := l.scenario.Twin() == nil
	wrong.refuse(unguarded && typed(fs, "unguarded"), "--unguarded: %s has no guard to leave out; leave out the flag", name)
	if typed(fs, "control-rounds") {
		const what = "--control-rounds %d: has no effect, since %s; leave it out"
		switch {
		case unguarded:
			wrong.refuse(true, what, l.controlRounds, name+" has no guard, and so no unguarded twin")
		case l.skipControls:
			wrong.refuse(true, what, l.controlRounds, "--skip-controls makes none")
		case twin == nil:
			wrong.refuse(true, what, l.controlRounds, "--unguarded races the twin itself")
		}
	}
	// What makes its rounds a contest is no winner among rivals.
	wrong.refuse(name == "duplicate-event" && typed(fs, "min-rivals"), "--min-rivals: has no effect on %s, whose rounds count by what the deliveries met; leave it out", name)
	return wrong
}

// checkDry refuses a format that --dry-run does not write, and tells of files that
// it does not.
func checkDry(c console, fs *pflag.FlagSet, outputs []report.Output) error {
	if !typed(fs, "output") {
		return nil
	}
	for _, o := range outputs {
		switch {
		case o.File != "":
			c.tell("--dry-run: nothing is written to %s", o.File)
		case o.Format != "table" && o.Format != "quiet":
			return fmt.Errorf("--output %s: --dry-run prints its plan for people only; leave one of them out", o.Format)
		}
	}
	return nil
}
