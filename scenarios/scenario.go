// Package scenarios holds the contests, one file each, and the pure functions
// that judge what the runner wrote down of them.
package scenarios

import (
	"flag"
	"time"

	"contend/runner"
	"contend/targets"
)

// Info is what the command line and a report say of a scenario.
type Info struct {
	Name     string
	Aliases  []string
	Summary  string // one line
	Help     string // what is raced, what must hold, what inconclusive would mean
	Property string // what held means; of an unguarded contest, what is violated
	Guard    targets.Guard
	// Unguarded contests are there to be violated: they are never held.
	Unguarded bool
}

// Scenario is a Contest, a Watch, or one that Asks.
type Scenario interface {
	Info() Info
}

// Parameterized scenarios have parameters of their own, which are also the
// fields of their JSON form.
type Parameterized interface {
	Scenario
	// Flags registers the parameters, with their present values as defaults.
	Flags(*flag.FlagSet)
	// Check gives what is wrong with them; each text begins with the flag's name.
	Check() error
}

// Contest is a race and its judge.
type Contest interface {
	Scenario
	runner.Contest
	// Twin is the same contest without the guard; nil for one that has none.
	Twin() Contest
	// Sweep readies the contest for two contenders of which the second is released at
	// an offset from the first; given tells which flags were. An error says why the
	// offset would not be that of their writes.
	Sweep(given func(flag string) bool) error
	// Judge keeps of a round what its ruling needs. oneCopy: the target checks its
	// guards on one copy of a key.
	Judge(r *runner.Round, oneCopy bool) Finding
	// Fates gives what became of every contender of a round, in order.
	Fates(r *runner.Round) []Fate
	// Detail tells what only this scenario has, of what it kept.
	Detail(all []Finding) Detail
}

// Finding is what a scenario keeps of a round: a type of its own. Its methods depend on
// nothing else but their arguments.
type Finding interface {
	// Common is what every scenario keeps.
	Common() *Shared
	// Rule says what the round means, with its late reads so far.
	Rule() Ruling
	// ReadLate adds a read at the end of the run.
	ReadLate(e *runner.Exchange)
	// Contested says why the round, which is certain, is no evidence of a contest, and
	// what would fix that; "" where it is.
	Contested(r *Ruling, t *Terms) (why, fix string)
	// Forget keeps of a quiet round with so many winners only what late reads are
	// compared with, so that a long run keeps little of each.
	Forget(winners int)
}

// All lists the scenarios: each gets its subcommand, its flags and its place in
// the tests from its line here.
func All() []Scenario {
	return []Scenario{
		FailIfExists{},
		VersionCAS{},
		CheckThenSet{},
		NewLostUpdate(),
		NewLease(),
		NewCounter(),
		NewDuplicateEvent(),
		NewTTLGhost(),
		&Probe{},
	}
}

// Contests lists those that are races.
func Contests() []Contest {
	var all []Contest
	for _, s := range All() {
		if c, ok := s.(Contest); ok {
			all = append(all, c)
		}
	}
	return all
}

// Find gives the scenario of that name; nil: there is none.
func Find(name string) Scenario {
	for _, s := range All() {
		if s.Info().Name == name {
			return s
		}
	}
	return nil
}

// Shared is what every scenario keeps of a round.
type Shared struct {
	Round      int
	Unseeded   bool // the start state could not be written; nobody was released
	Evidence   Evidence
	operations []operation
	won        int // OK writes, of which operations holds two at most
	state      startState
	lates      []operation // reads at the end of the run, in order, but for those that show what the read-back did
	readOnce   bool        // a late read was answered
	plain      bool        // of operations, only the winner is left
	// answered is when the contenders had their last answer.
	answered time.Duration
	// believedFrom is when two reads that agree on an old state are believed;
	// readersLag: never, since the controls showed readers that lag.
	believedFrom time.Duration
	readersLag   bool
	// swept is of a round of a sweep; nil: it is of none.
	swept *swept
	// refusal is why an unseeded round is: the seed's reply.
	refusal string
}

// Ruling is what became of a round.
type Ruling struct {
	Violation *Violation
	Void      bool // the key holds a token that nobody of this run wrote
	StaleRead bool // a read showed a missing or old state that no later read confirms
	StaleAge  time.Duration
	Undecided bool // the last read showed such a state still: another may decide
	Unread    bool // the final state could not be read
	// Indefinite: a rule is broken, but by a request that went out more than once.
	Indefinite bool
	Winners    int // writes that were applied, as far as was seen
	// Settled counts unknown outcomes that the read-back showed to be applied,
	// Unsettled those that may have been applied unseen.
	Settled, Unsettled int
	legal              bool        // by the round rule alone
	history            []operation // that the round rule was applied to; nil: it was not
}

// quiet tells whether all is as it should be: nothing is unknown, in doubt, or
// against the rules.
func (r *Ruling) quiet() bool {
	return r.Violation == nil && !r.Void && !r.StaleRead && !r.Unread && !r.Indefinite && r.Settled == 0 && r.Unsettled == 0
}

// Common is the finding itself, in whatever a scenario keeps.
func (f *Shared) Common() *Shared { return f }

// Forget keeps of a round with one winner its write.
func (f *Shared) Forget(winners int) {
	for i := range f.operations {
		if f.operations[i].kind == wrote && winners == 1 {
			f.operations, f.plain = []operation{f.operations[i]}, true
			return
		}
	}
}

// Fate is what became of one contender, by its last request.
type Fate struct {
	Outcome string // won, lost, aborted, unknown, throttled, invalid, not-sent, unmapped
	At      string // read or write
	Last    *runner.Exchange
}

// lastFates gives the fate of every contender by its last request.
func lastFates(r *runner.Round) []Fate {
	var fates []Fate
	for i := range r.Ops {
		if i < len(r.Ops)-1 && r.Ops[i+1].Contender == r.Ops[i].Contender {
			continue
		}
		fates = append(fates, fateOf(&r.Ops[i]))
	}
	return fates
}

// fateOf is what an exchange made of its contender, if it was the last.
func fateOf(last *runner.Exchange) Fate {
	f := Fate{Outcome: string(last.Reply.Outcome), At: string(last.Op.Kind), Last: last}
	if last.Reply.ByRead {
		f.At = string(targets.Read)
	}
	switch {
	case last.Op.Kind == targets.Write && last.Reply.Outcome == targets.OK:
		f.Outcome = "won"
	case last.Reply.Outcome == targets.Conflict, last.Op.Kind == targets.Read && last.Reply.Outcome == targets.OK,
		last.Op.Kind == targets.Read && last.Reply.Outcome == targets.Missing:
		f.Outcome = "lost"
	case last.Reply.Outcome == targets.Unsupported, last.Reply.Outcome == targets.Missing:
		f.Outcome = string(targets.Invalid)
	}
	return f
}

// guards are the needs of writes under these conditions.
func guards(all ...targets.Guard) targets.Needs { return targets.Needs{Guards: all} }

// guardsUnless are none where the writes are blind.
func guardsUnless(blind bool, all ...targets.Guard) targets.Needs {
	if blind {
		return guards()
	}
	return guards(all...)
}
