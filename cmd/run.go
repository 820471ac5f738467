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
	set        *pflag.FlagSet // that these are in
}

func (f *suiteFlags) register(fs *pflag.FlagSet) {
	f.set, fs.SortFlags = fs, false
	fs.BoolVar(&f.dryRun, "dry-run", false, "print the plan of every run and send nothing")
	fs.StringVar(&f.store, "store", "", "keep the results in this `FILE` (SQLite)")
	fs.BoolVar(&f.noProgress, "no-progress", false, "tell nothing on standard error while running")
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

// runSuite runs a suite file and reports.
func runSuite(ctx context.Context, c console, file string, flags *suiteFlags, command string) error {
	runs, err := readSuite(file)
	if err != nil {
		return err
	}
	files := suiteFiles(file, runs)
	if flags.store != "" {
		files = append(files, storeOf(flags.store))
	}
	outputs, err := outputsOf(flags.outputs, flags.quiet, files...)
	if err != nil {
		return err
	}
	tellOverruled(c, runs)
	if flags.dryRun {
		if err := checkDry(c, flags.set, outputs); err != nil {
			return err
		}
		return printPlans(c.plan(), runs)
	}
	var kept *store.Store
	if flags.store != "" {
		if kept, err = store.Open(flags.store); err != nil {
			return err
		}
		defer kept.Close()
	}
	return runAll(ctx, c, runs, report.Suite{Command: command, File: file}, outputs, equipment{kept: kept, silent: flags.silent()}, flags.noColour)
}

// runAll makes the runs one after the other and reports.
func runAll(ctx context.Context, c console, runs []planned, s report.Suite, outputs []report.Output, with equipment, noColour bool) error {
	s.Schema, s.Tool, s.Started = report.SuiteSchema, tool(), time.Now().UTC()
	for _, p := range runs {
		if ctx.Err() != nil {
			break
		}
		s.Runs = append(s.Runs, p.run(ctx, c, with))
		tellRun(c, outputs, &s.Runs[len(s.Runs)-1])
	}
	return concludeSuite(ctx, c, &s, outputs, noColour)
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
		if err := checkDry(c, given, outputs); err != nil {
			return err
		}
		return printPlans(c.plan(), runs)
	}
	kept, err := openStore(c, &l.commonFlags, true)
	if err != nil {
		return err
	}
	if kept != nil {
		defer kept.Close()
	}
	return runAll(ctx, c, runs, report.Suite{Command: commandLine(name, given), File: name}, outputs,
		equipment{kept: kept, silent: l.quiet || l.noProgress}, l.noColour)
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

// run makes one run, and keeps its result.
func (p planned) run(ctx context.Context, c console, with equipment) report.SuiteRun {
	out := report.SuiteRun{Name: p.name, Exit: exit.CannotRun}
	fail := func(err error) report.SuiteRun {
		out.Error = err.Error()
		if ctx.Err() != nil {
			out.Exit = exit.Interrupted
		}
		return out
	}
	if err := p.launch.ready(with.kept, p.command); err != nil {
		return fail(err)
	}
	defer p.launch.close()
	if with.record == nil {
		with.record = &recordFile{}
	}
	r, err := p.launch.run(ctx, c, with)
	if err != nil {
		return fail(err)
	}
	out.Result = &r
	out.Exit = exit.Of(r)
	if with.kept != nil {
		if err := with.kept.SaveResult(r); err != nil {
			c.tell("the result of %s could not be kept: %v", p.name, err)
			out.Exit = exit.Worst([]int{out.Exit, exit.CannotRun})
		}
	}
	return out
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
	s.Elapsed, s.Interrupted = time.Since(s.Started), ctx.Err() != nil
	var statuses []int
	for _, r := range s.Runs {
		statuses = append(statuses, r.Exit)
	}
	if s.Interrupted {
		statuses = append(statuses, exit.Interrupted)
	}
	if s.Night != nil && len(s.Night.Alarms) > 0 {
		statuses = append(statuses, exit.Threshold)
	}
	s.Exit = exit.Worst(statuses)
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
