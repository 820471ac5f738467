package cmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"contend/cmd/exit"
	"contend/cmd/paste"
	"contend/cmd/suite"
	"contend/cmd/suite/night"
	"contend/cmd/watch"
	"contend/report"
	"contend/report/store"
	"contend/scenarios"
	"contend/targets"
)

// suiteFlags are those of run and nightly.
type suiteFlags struct {
	outputs    []string
	quiet      bool
	noColour   bool
	noProgress bool
	dryRun     bool
	store      string
	storeGiven bool
	set        *pflag.FlagSet // that these are in
}

func (f *suiteFlags) register(fs *pflag.FlagSet) {
	f.set, fs.SortFlags = fs, false
	fs.BoolVar(&f.dryRun, "dry-run", false, "print the plan of every run and send nothing")
	fs.StringVar(&f.store, "store", "", "keep the results in this `FILE` (SQLite)")
	fs.BoolVar(&f.noProgress, "no-progress", false, "report nothing on standard error while running")
	registerOutputs(fs, &f.outputs, &f.quiet, &f.noColour)
}

func (f *suiteFlags) silent() bool { return f.quiet || f.noProgress }

func newRun(c console) *cobra.Command {
	var flags suiteFlags
	cmd := &cobra.Command{
		Use: "run FILE", Short: "run a suite file: several scenarios, targets and lists of parameters", GroupID: "other",
		Args: oneFile("run", "name one suite file"),
		Long: `run runs what a suite file asks for, one after the other, and tells each verdict as it comes, then all in a table;
the report of a run that did not go as expected stands below it in full. Everything that is wrong with the file is told
at once, with its line and column, and nothing is sent. examples/suite.yaml is one to begin with.

` + exit.Help + `
Of several runs the worst counts: violated, could not run, threshold, inconclusive, held.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return runSuite(cmd.Context(), c, args[0], &flags, commandLine("run "+paste.Quote(args[0]), cmd.Flags()))
		},
	}
	flags.register(cmd.Flags())
	return cmd
}

// oneFile wants exactly one argument.
func oneFile(name, advice string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) != 1 {
			return fmt.Errorf("%s: %s", name, advice)
		}
		return nil
	}
}

// planned is a run of a suite, checked.
type planned struct {
	name    string
	launch  launch
	command string
	// overruled are parameters of the suite for which the environment has others.
	overruled []string
}

// suiteScenarios are what a suite can run: the scenarios and their flags.
func suiteScenarios() []suite.Scenario {
	var all []suite.Scenario
	for _, s := range scenarios.All() {
		info := s.Info()
		fs := pflag.NewFlagSet("", pflag.ContinueOnError)
		newLaunch(s).register(fs)
		one := suite.Scenario{Name: info.Name, Aliases: info.Aliases, Summary: info.Summary, Removed: make(map[string]string)}
		fs.VisitAll(func(f *pflag.Flag) {
			if removed, ok := f.Value.(removedFlag); ok {
				one.Removed[f.Name] = removed.by
			}
			if f.Hidden {
				return
			}
			p := suite.Parameter{Name: f.Name, Type: f.Value.Type(), Usage: f.Usage, Default: f.DefValue}
			switch f.Name {
			case "expect-verdict":
				p.Values = []string{string(scenarios.Held), string(scenarios.Violated)}
			case "release":
				p.Values = releases
			case "rounds":
				p.Excludes = []string{"duration"}
			case "duration":
				p.Excludes = []string{"rounds"}
			}
			one.Parameters = append(one.Parameters, p)
		})
		all = append(all, one)
	}
	return all
}

// plan sets a scenario's flags as the suite has them, and checks them; it is what
// could be made of them where it fails too.
func plan(run suite.Run) (planned, error) {
	l := newLaunch(scenarios.Find(run.Scenario))
	fs := pflag.NewFlagSet("", pflag.ContinueOnError)
	l.register(fs)
	p := planned{name: run.Name, launch: l}
	// The environment goes before the file, for what a file can set.
	wrong := []error{fromEnvironment(fs, append(strings.Fields(suite.GivenToRun), "label")...)}
	for _, a := range run.Arguments {
		if fs.Changed(a.Name) {
			p.overruled = append(p.overruled, a.Name)
			continue
		}
		for _, value := range a.Values {
			if err := fs.Set(a.Name, value); err != nil {
				wrong = append(wrong, plainly(err))
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(run.Labels)) {
		wrong = append(wrong, fs.Set("label", name+"="+run.Labels[name]))
	}
	p.command = commandLine(run.Scenario, fs)
	return p, errors.Join(append(wrong, l.check(fs))...)
}

// check plans a run and opens its target, which sends nothing; what is wrong with
// either is told.
func check(run suite.Run) error {
	p, err := plan(run)
	if err != nil {
		targetErr := checkTarget(p.launch)
		if targetErr != nil {
			targetErr = fmt.Errorf("--target: %w", targetErr)
		}
		return errors.Join(err, targetErr)
	}
	if err = p.launch.ready(nil, p.command); err == nil {
		p.launch.close()
	}
	if _, usage := errors.AsType[*targets.UsageError](err); usage {
		return fmt.Errorf("--target: %w", err)
	}
	return err
}

// tellOverruled tells which parameters of a suite the environment goes before.
func tellOverruled(c console, runs []planned) {
	in := make(map[string]int)
	for _, p := range runs {
		for _, name := range p.overruled {
			in[name]++
		}
	}
	for _, name := range slices.Sorted(maps.Keys(in)) {
		c.tell("note: %s in the environment goes before the %s of %s in the suite", variable(name), name, count(in[name], "run"))
	}
}

// readSuite reads a suite file; everything that is wrong with it is told.
func readSuite(file string) ([]planned, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("%w; name a suite file", err)
	}
	s, err := suite.Read(file, text, suiteScenarios(), os.LookupEnv, check)
	if err != nil {
		return nil, err
	}
	var all []planned
	for _, run := range s.Runs {
		p, err := plan(run)
		if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	return all, nil
}

// readyToRun reads a suite file and the outputs, and prints the plans where that is all that
// was asked for. kept is where results will be kept.
func readyToRun(c console, file string, flags *suiteFlags, kept named) ([]planned, []report.Output, error) {
	runs, err := readSuite(file)
	if err != nil {
		return nil, nil, err
	}
	outputs, err := outputsOf(flags.outputs, flags.quiet, append(suiteFiles(file, runs), kept)...)
	if err != nil {
		return nil, nil, err
	}
	tellOverruled(c, runs)
	if flags.dryRun {
		return nil, nil, dryRun(c, flags.set, runs, outputs)
	}
	return runs, outputs, nil
}

// dryRun prints the plans of several runs.
func dryRun(c console, fs *pflag.FlagSet, runs []planned, outputs []report.Output) error {
	if err := checkDry(c, fs, outputs); err != nil {
		return err
	}
	return printPlans(c.plan(), runs)
}

// runSuite runs a suite file and reports.
func runSuite(ctx context.Context, c console, file string, flags *suiteFlags, command string) error {
	keeping := named{}
	if flags.store != "" {
		keeping = storeOf(flags.store)
	}
	runs, outputs, err := readyToRun(c, file, flags, keeping)
	if err != nil || flags.dryRun {
		return err
	}
	var kept *store.Store
	if flags.store != "" {
		if kept, err = store.Open(flags.store); err != nil {
			return err
		}
		defer kept.Close()
	}
	return runAll(ctx, c, runs, report.Suite{Command: command, File: file}, outputs,
		watch.Equipment{Console: c, Kept: kept, Silent: flags.silent()}, flags.noColour)
}

// runAll makes the runs one after the other and reports.
func runAll(ctx context.Context, c console, runs []planned, s report.Suite, outputs []report.Output, with watch.Equipment, noColour bool) error {
	s.Schema, s.Tool, s.Started = report.SuiteSchema, tool(), time.Now().UTC()
	night.All(ctx, makeable(c, runs), &s, with, func(r *report.SuiteRun) { tellRun(c, outputs, r) })
	return concludeSuite(ctx, c, &s, outputs, noColour)
}

// makeable gives runs as they are made.
func makeable(c console, runs []planned) (all []night.Run) {
	for _, p := range runs {
		_, isWatch := p.launch.(*watchLaunch)
		all = append(all, night.Run{Name: p.name, Target: p.launch.common().target, Watch: isWatch,
			Make: func(ctx context.Context, with watch.Equipment) (report.Result, error) {
				if err := p.launch.ready(with.Kept, p.command); err != nil {
					return report.Result{}, err
				}
				defer p.launch.close()
				return p.launch.run(ctx, c, with)
			}})
	}
	return all
}

// startSeveral makes a run for each number of contenders.
func startSeveral(ctx context.Context, c console, l *contestLaunch, given *pflag.FlagSet) error {
	name := l.scenario.Info().Name
	outputs, err := outputsOf(l.outputs, l.quiet, l.kept())
	if err != nil {
		return err
	}
	if l.record != "" {
		return errors.New("--record: holds one run; give --contenders one number")
	}
	var runs []planned
	for _, n := range l.several {
		each := newLaunch(scenarios.Find(name))
		fs := pflag.NewFlagSet("", pflag.ContinueOnError)
		each.register(fs)
		given.Visit(func(f *pflag.Flag) {
			values := []string{f.Value.String()}
			if list, ok := f.Value.(pflag.SliceValue); ok {
				values = list.GetSlice()
			}
			for _, v := range values {
				err = errors.Join(err, fs.Set(f.Name, v))
			}
		})
		err = errors.Join(err, fs.Set("contenders", fmt.Sprint(n)), each.check(fs))
		if err != nil {
			return err
		}
		p := planned{name: fmt.Sprintf("%s -n %d", name, n), launch: each, command: commandLine(name, fs)}
		if err := each.ready(nil, p.command); err != nil {
			return err
		}
		each.close()
		runs = append(runs, p)
	}
	if l.dryRun {
		return dryRun(c, given, runs, outputs)
	}
	kept, err := openStore(c, &l.commonFlags, true)
	if err != nil {
		return err
	}
	if kept != nil {
		defer kept.Close()
	}
	return runAll(ctx, c, runs, report.Suite{Command: commandLine(name, given), File: name}, outputs,
		watch.Equipment{Console: c, Kept: kept, Silent: l.quiet || l.noProgress}, l.noColour)
}

// printPlans is --dry-run.
func printPlans(w io.Writer, runs []planned) error {
	for i, p := range runs {
		if i > 0 {
			fmt.Fprintln(w)
		}
		fmt.Fprintf(w, "%s\n", p.name)
		if err := p.launch.ready(nil, p.command); err != nil {
			return err
		}
		err := p.launch.printPlan(w)
		p.launch.close()
		if err != nil {
			return err
		}
	}
	return nil
}

// tellRun prints the verdict of a run as it ends, where standard output is left
// to people.
func tellRun(c console, outputs []report.Output, r *report.SuiteRun) {
	w := c.err
	for _, o := range outputs {
		if o.File == "" && o.Format == "table" {
			w = c.plan()
		}
		if o.File == "" && o.Format == "quiet" {
			return
		}
	}
	fmt.Fprintln(w, r.Line())
}

// concludeSuite reports a suite and gives its exit status.
func concludeSuite(ctx context.Context, c console, s *report.Suite, outputs []report.Output, noColour bool) error {
	night.Conclude(ctx, s)
	for _, o := range outputs {
		if o.File == "" && o.Format == "table" {
			fmt.Fprintln(c.out)
		}
	}
	err := report.WriteAll(outputs, s, c.out, screenOf(c.out, noColour))
	if err != nil && s.Exit != exit.Violated {
		return exit.Failed(err)
	}
	if err != nil {
		c.tell("%v", err)
	}
	return exit.OrNil(s.Exit)
}
