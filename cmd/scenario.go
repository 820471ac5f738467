package cmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"contend/report"
	"contend/runner"
	"contend/scenarios"
	"contend/targets"
)

// newScenario is the command of a scenario.
func newScenario(c console, s scenarios.Scenario) *cobra.Command {
	info := s.Info()
	var flags scenarioFlags
	cmd := &cobra.Command{
		Use: info.Name, Aliases: info.Aliases, Short: info.Summary, GroupID: "scenarios", Args: cobra.NoArgs,
		Long: info.Help + "\n\n" + exitHelp,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := flags.check(cmd.Flags()); err != nil {
				return err
			}
			return runScenario(cmd.Context(), c, s, &flags, commandLine(info.Name, cmd.Flags()))
		},
	}
	flags.register(cmd.Flags())
	return cmd
}

// runScenario checks the rest of the command line, runs and reports.
func runScenario(ctx context.Context, c console, s scenarios.Scenario, flags *scenarioFlags, command string) error {
	outputs, err := outputsOf(flags.outputs, flags.quiet)
	if err != nil {
		return err
	}
	target, err := targets.Open(flags.target)
	if err != nil {
		return err
	}
	defer target.Close()
	plan, err := flags.plan(s, target.Describe())
	if err != nil {
		return err
	}
	// Made once before anything is sent, for its errors.
	if _, err := report.NewMaker(flags.front(s, plan, target.Describe(), command)); err != nil {
		return err
	}
	record, err := openRecord(flags.record, outputs)
	if err != nil {
		return err
	}
	defer record.close()
	if flags.dryRun {
		return printPlan(c.out, s, plan, target.Describe())
	}
	warnOfDuration(c.err, plan, target.Describe())
	run, err := runner.Open(ctx, target, plan)
	if err != nil {
		return preparing(err)
	}
	defer run.Close()
	front := flags.front(s, plan, target.Describe(), command)
	r, err := measure(ctx, c, run, plan, front, record, flags.quiet || flags.noProgress)
	if err != nil {
		return err
	}
	// A result that cannot be written is still printed where it can.
	err = report.WriteAll(outputs, r, c.out, screenOf(c.out, flags.noColour))
	if err == nil && record.err != nil {
		err = fmt.Errorf("--record %s: the record is not whole: %w; run again with a file that can hold it", flags.record, record.err)
	}
	return conclude(c, r, err)
}

// conclude gives the exit status; a report that could not be written is told, and
// does not hide a violation.
func conclude(c console, r report.Result, writing error) error {
	status := statusOf(r)
	if writing == nil {
		return status
	}
	if status == exitStatus(exitViolated) {
		fmt.Fprintf(c.err, "contend: %v\n", writing)
		return status
	}
	return &cannotRun{writing}
}

// preparing sorts an error of connecting: what the URL got wrong is usage.
func preparing(err error) error {
	var usage *targets.UsageError
	if errors.As(err, &usage) {
		return err
	}
	return &cannotRun{err}
}

// warnOfDuration tells when a target's limits make a run long.
func warnOfDuration(w io.Writer, p runner.Plan, d targets.Description) {
	if least := runner.Duration(p.Limits, p.Cost(d).Total()); least > 0 {
		fmt.Fprintf(w, "contend: the limit of %s makes this run take %s at least\n", limitText(p.Limits), least.Round(time.Second))
	}
}

func limitText(limits []targets.Limit) string {
	var texts []string
	for _, l := range limits {
		texts = append(texts, fmt.Sprintf("%.4g requests in %s", l.Requests, l.Per))
	}
	return strings.Join(texts, " and ")
}

// measure runs the plan and makes the result.
func measure(ctx context.Context, c console, run *runner.Runner, plan runner.Plan, front report.Front,
	record *recordFile, silent bool,
) (report.Result, error) {
	maker, err := report.NewMaker(front)
	if err != nil {
		return report.Result{}, err
	}
	observers := runner.Observers{maker}
	var recorder *runner.Recorder
	if record.name != "" {
		recorder = runner.NewRecorder(record, front)
		observers = append(observers, recorder)
	}
	progress := (*report.Progress)(nil)
	if !silent {
		progress = report.NewProgress(c.err, isTerminal(c.err), plan.Rounds, plan.Duration)
		observers = append(observers, progress)
	}
	told := make(chan struct{})
	callOff := context.AfterFunc(ctx, func() {
		defer close(told)
		fmt.Fprintf(c.err, "\ncontend: interrupted: no more rounds; the last is settled and the keys are removed. Interrupt again to stop at once, "+
			"then remove them with: %s\n", cleanCommand(front))
	})
	summary := run.Run(ctx, observers, maker)
	if !callOff() {
		<-told
	}
	if progress != nil {
		progress.Done()
	}
	end := runner.End{Requests: summary.Requests, Rounds: summary.Rounds, Elapsed: summary.Elapsed, Interrupted: summary.Interrupted}
	if summary.Stopped != nil {
		end.Stopped = summary.Stopped.Error()
		fmt.Fprintf(c.err, "contend: stopped: %v\n", summary.Stopped)
	}
	if summary.Left != nil {
		fmt.Fprintf(c.err, "contend: keys were left behind (%v); remove them with: %s\n", summary.Left, cleanCommand(front))
	}
	r := maker.Make(end)
	if recorder != nil {
		if err := recorder.Finish(end, r); err != nil && record.err == nil {
			record.err = err
		}
	}
	return r, nil
}

// cleanCommand removes what the run wrote.
func cleanCommand(f report.Front) string {
	command := fmt.Sprintf("contend clean -t %s --run %s", shellQuote(f.Target.URL), f.Run)
	if f.Params.KeyPrefix != defaultPrefix {
		command += " --key-prefix " + shellQuote(f.Params.KeyPrefix)
	}
	return command
}

// statusOf gives nil for held.
func statusOf(r report.Result) error {
	expected := scenarios.Held
	if r.Params.ExpectVerdict == "violated" {
		expected = scenarios.Violated
	}
	met := true
	for _, e := range r.Expectations {
		met = met && e.Met
	}
	status := r.Verdict.Status
	switch {
	case status == scenarios.Violated && expected != scenarios.Violated:
		return exitStatus(exitViolated)
	case r.Interrupted:
		return exitStatus(exitInterrupted)
	case r.Stopped != "":
		return exitStatus(exitCannotRun)
	case status != expected && expected == scenarios.Violated:
		return exitStatus(exitViolated)
	case status == scenarios.Inconclusive:
		return exitStatus(exitInconclusive)
	case !met:
		return exitStatus(exitThreshold)
	default:
		return nil
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
func openRecord(name string, outputs []report.Output) (*recordFile, error) {
	f := &recordFile{name: name}
	if name == "" {
		return f, nil
	}
	if name == "-" {
		return nil, errors.New(`--record "-": the report goes to standard output; name a file`)
	}
	for _, o := range outputs {
		if o.File != "" && filepath.Clean(o.File) == filepath.Clean(name) {
			return nil, fmt.Errorf("--record %q: the %s output goes to the same file", name, o.Format)
		}
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

// printPlan is --dry-run.
func printPlan(w io.Writer, s scenarios.Scenario, p runner.Plan, d targets.Description) error {
	cost := p.Cost(d)
	var b strings.Builder
	line := func(name, format string, a ...any) {
		fmt.Fprintf(&b, "  %-12s %s\n", name, fmt.Sprintf(format, a...))
	}
	fmt.Fprintf(&b, "Plan of contend %s; nothing was sent\n", s.Info().Name)
	line("target", "%s%s", d.URL, map[bool]string{true: " (simulated)"}[d.Simulated])
	line("contenders", "%d", p.Contenders)
	total := cost.Total()
	if p.Rounds == 0 {
		line("rounds", "as many as fit in %s", p.Duration)
		line("requests", "%d to connect and for the controls, then %d a round and %d a round at the end", cost.WarmUp+cost.Controls, cost.EachRound, 1+min(1, cost.Clean))
	} else {
		line("rounds", "%d", p.Rounds)
		line("requests", "%d: connecting %d, controls %d, rounds %d of %d each, late reads %d, removing keys %d", total, cost.WarmUp, cost.Controls,
			p.Rounds, cost.EachRound, cost.Late, cost.Clean)
		line("keys", "%d, all beginning with %s%s-", cost.Keys, p.Prefix, p.Run)
	}
	switch each := d.Units(p.ValueSize); {
	case each == 0:
		line("quota units", "– (none are documented for this target)")
	case p.Rounds == 0:
		line("quota units", "%d a request", each)
	default:
		line("quota units", "about %d, %d a request", each*total, each)
	}
	switch {
	case p.Duration > 0:
		line("duration", "%s, and the controls and late reads", p.Duration)
	case len(p.Limits) > 0:
		line("duration", "at least %s, at %s", runner.Duration(p.Limits, total).Round(time.Second), limitText(p.Limits))
	default:
		line("duration", "as long as the target takes: no limit is set")
	}
	_, err := io.WriteString(w, b.String())
	return err
}
