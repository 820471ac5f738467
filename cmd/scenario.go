package cmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"contend/cmd/exit"
	"contend/cmd/paste"
	"contend/cmd/watch"
	"contend/report"
	"contend/report/store"
	"contend/scenarios"
	"contend/targets"
	"contend/targets/all"
)

// launch is a scenario on its way from flags to a result.
type launch interface {
	common() *commonFlags
	info() scenarios.Info
	register(*pflag.FlagSet)
	// check refuses what can be refused by the flags alone.
	check(*pflag.FlagSet) error
	// ready opens the target and plans; nothing is sent. kept is where results
	// are kept, nil: nowhere.
	ready(kept *store.Store, command string) error
	printPlan(io.Writer) error
	run(context.Context, console, watch.Equipment) (report.Result, error)
	close()
}

// newLaunch gives the launch of a scenario with its flags at their defaults.
func newLaunch(s scenarios.Scenario) launch {
	switch s := s.(type) {
	case scenarios.Contest:
		return &contestLaunch{scenario: s}
	case scenarios.Watch:
		return &watchLaunch{scenario: s}
	case scenarios.Asks:
		return &probeLaunch{scenario: s}
	default:
		panic(fmt.Sprintf("the scenario %s is neither a contest nor a watch nor a probe", s.Info().Name))
	}
}

// newScenario is the command of a scenario.
func newScenario(c console, s scenarios.Scenario) *cobra.Command {
	info, l := s.Info(), newLaunch(s)
	cmd := &cobra.Command{
		Use: info.Name, Aliases: info.Aliases, Short: info.Summary, GroupID: "scenarios", Args: noArguments,
		Long: info.Help + "\n\n" + exit.Help,
		RunE: func(cmd *cobra.Command, _ []string) error {
			wrong := []error{l.check(cmd.Flags()), checkTarget(l)}
			contest, isContest := l.(*contestLaunch)
			if isContest {
				wrong = append(wrong, contest.idle(cmd.Flags())...)
			}
			if err := errors.Join(wrong...); err != nil {
				return err
			}
			if isContest && len(contest.several) > 0 {
				return startSeveral(cmd.Context(), c, contest, cmd.Flags())
			}
			return start(cmd.Context(), c, l, cmd.Flags())
		},
	}
	l.register(cmd.Flags())
	return cmd
}

// checkTarget gives what is wrong with the target, of which nothing is asked.
func checkTarget(l launch) error {
	t, err := all.Open(l.common().target)
	if err == nil {
		t.Close()
	}
	return err
}

// start checks the rest of the command line, runs and reports.
func start(ctx context.Context, c console, l launch, fs *pflag.FlagSet) error {
	flags, command := l.common(), commandLine(l.info().Name, fs)
	outputs, err := outputsOf(flags.outputs, flags.quiet, append(inputs(l), flags.kept(), named{"--record", flags.record, writes})...)
	if err != nil {
		return err
	}
	// A store that is there may have what is to be gone on with; a new one is made when
	// all else is right.
	kept, err := openStore(c, flags, false)
	if err != nil {
		return err
	}
	defer func() {
		if kept != nil {
			kept.Close()
		}
	}()
	if err := l.ready(kept, command); err != nil {
		return err
	}
	defer l.close()
	record, err := openRecord(flags.record)
	if err != nil {
		return err
	}
	defer record.close()
	if flags.dryRun {
		if err := checkDry(c, fs, outputs); err != nil {
			return err
		}
		return l.printPlan(c.plan())
	}
	if kept == nil {
		if kept, err = openStore(c, flags, true); err != nil {
			return err
		}
	}
	with := watch.Equipment{Console: c, Kept: kept, Silent: flags.quiet || flags.noProgress}
	if flags.record != "" {
		with.Record = record
	}
	r, err := l.run(ctx, c, with)
	if err != nil {
		return err
	}
	// A result that cannot be written is still printed where it can.
	err = report.WriteAll(outputs, r, c.out, screenOf(c.out, flags.noColour))
	if err == nil && record.err != nil {
		err = fmt.Errorf("--record %s: the record is not whole: %w; run again with a file that can hold it", flags.record, record.err)
	}
	if kept != nil {
		if keepErr := kept.SaveResult(r); keepErr != nil && err == nil {
			err = fmt.Errorf("the result could not be kept: %w", keepErr)
		}
	}
	return conclude(c, r, err)
}

// openStore opens what --store names, or the user's own where it is the default;
// nil where results are not kept, or nothing will be sent.
// create tells whether to make one that is not there.
func openStore(c console, flags *commonFlags, create bool) (*store.Store, error) {
	file := flags.store
	if flags.storeByDefault && !flags.storeGiven {
		var err error
		if file, err = store.DefaultFile(); err != nil {
			return nil, err
		}
		if !flags.dryRun && !flags.quiet && (create || exists(file)) {
			c.tell("results are kept in %s", file)
		}
	}
	if file == "" || !create && !exists(file) {
		return nil, nil
	}
	kept, err := store.Open(file)
	if err != nil && flags.storeByDefault && !flags.storeGiven && isVolatile(flags.target) {
		// Its keys die with the process: nothing need be gone on with.
		c.tell("the result is not kept: %v", err)
		return nil, nil
	}
	if errors.Is(err, store.ErrLocked) || errors.Is(err, store.ErrFull) || errors.Is(err, store.ErrFailing) {
		err = exit.Failed(err)
	}
	return kept, err
}

// exists tells whether there is a store; an empty file is one to be.
func exists(file string) bool {
	info, err := os.Stat(file)
	return err == nil && info.Size() > 0
}

// conclude gives the exit status; a report that could not be written is told, and
// does not hide a violation.
func conclude(c console, r report.Result, writing error) error {
	status := exit.Of(r)
	if writing == nil {
		return exit.OrNil(status)
	}
	if status == exit.Violated {
		c.tell("%v", writing)
		return exit.OrNil(status)
	}
	return exit.Failed(writing)
}

// supported refuses a target that lacks what a run needs, before anything is sent.
func supported(t targets.Target, needs targets.Needs) error {
	if err := t.Describe().Check(needs); err != nil {
		return exit.Connecting(err)
	}
	return nil
}

// cleanCommand removes what the run wrote.
func cleanCommand(f report.RunHeader) string {
	return paste.Clean(f.Target.URL, f.Run, f.Params.KeyPrefix)
}

// tellLeft tells on standard error of keys that were left behind.
func tellLeft(c console, left error, header report.RunHeader) {
	if left != nil {
		fmt.Fprintf(c.err, "contend: %v; remove them with: %s\n", left, cleanCommand(header))
	}
}

// recordFile is opened before anything is sent, and emptied at its first write,
// so that a run that cannot start leaves an earlier record alone.
type recordFile struct {
	name    string
	file    *os.File
	made    bool // by us
	written bool
	err     error
}

// openRecord opens the file of --record; an empty name gives one that takes
// nothing.
func openRecord(name string) (*recordFile, error) {
	f := &recordFile{name: name}
	if name == "" {
		return f, nil
	}
	if name == "-" {
		return nil, errors.New(`--record "-": the report goes to standard output; name a file`)
	}
	_, statErr := os.Stat(name)
	f.made = os.IsNotExist(statErr)
	var err error
	if f.file, err = os.OpenFile(name, os.O_WRONLY|os.O_CREATE, 0o644); err != nil {
		return nil, fmt.Errorf("--record: %w; name a file that can be written", err)
	}
	return f, nil
}

func (f *recordFile) Write(b []byte) (int, error) {
	if !f.written {
		f.written = true
		if info, err := f.file.Stat(); err == nil && info.Mode().IsRegular() {
			f.err = f.file.Truncate(0)
		}
	}
	if f.err != nil {
		return 0, f.err
	}
	n, err := f.file.Write(b)
	if err != nil {
		f.err = err
	}
	return n, err
}

// Fail notes why the record is not whole.
func (f *recordFile) Fail(err error) { f.err = cmp.Or(f.err, err) }

func (f *recordFile) close() {
	if f.file == nil {
		return
	}
	if err := f.file.Close(); err != nil && f.err == nil {
		f.err = err
	}
	if f.made && !f.written {
		os.Remove(f.name)
	}
	f.file = nil
}
