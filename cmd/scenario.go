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
	flags.register(cmd.Flags(), s.Twin() != nil)
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
	record := &recordFile{name: flags.record}
	if err := record.check(); err != nil {
		return err
	}
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
	if err := report.WriteAll(outputs, r, c.out, wantsColour(c.out, flags.noColour)); err != nil {
		return &cannotRun{err}
	}
	if record.err != nil {
		return &cannotRun{fmt.Errorf("--record %s: the record is not whole: %w", flags.record, record.err)}
	}
	return statusOf(r)
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
	if least := runner.Duration(p.Limits, p.Cost(d.Volatile).Total()); least > 0 {
		fmt.Fprintf(w, "contend: the limit of %s makes this run take %s at least\n", limitText(p.Limits), least.Round(time.Second))
	}
}

func limitText(limits []targets.Limit) string {
	var texts []string
	for _, l := range limits {
		texts = append(texts, fmt.Sprintf("%g requests in %s", l.Requests, l.Per))
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
		defer record.close()
	}
	progress := (*report.Progress)(nil)
	if !silent {
		progress = report.NewProgress(c.err, isTerminal(c.err), plan.Rounds, plan.Duration)
		observers = append(observers, progress)
	}
	summary := run.Run(ctx, observers, maker)
	if progress != nil {
		progress.Done()
	}
	end := runner.End{Requests: summary.Requests, Rounds: summary.Rounds, Elapsed: summary.Elapsed, Interrupted: summary.Interrupted}
	if summary.Stopped != nil {
		end.Stopped = summary.Stopped.Error()
		fmt.Fprintf(c.err, "contend: stopped: %v\n", summary.Stopped)
	}
	if summary.Left != nil {
		fmt.Fprintf(c.err, "contend: keys were left behind (%v); remove them with: contend clean -t %s --run %s%s\n",
			summary.Left, shellQuote(front.Target.URL), plan.Run, prefixFlag(plan.Prefix))
	}
	r := maker.Make(end)
	if recorder != nil {
		if err := recorder.Finish(end, r); err != nil && record.err == nil {
			record.err = err
		}
	}
	return r, nil
}

func prefixFlag(prefix string) string {
	if prefix == defaultPrefix {
		return ""
	}
	return " --key-prefix " + shellQuote(prefix)
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

// recordFile is made at its first write, so that a run that cannot start leaves
// an earlier record alone.
type recordFile struct {
	name string
	file *os.File
	err  error
}

func (f *recordFile) check() error {
	if f.name == "" {
		return nil
	}
	if info, err := os.Stat(f.name); err == nil && info.IsDir() {
		return fmt.Errorf("--record %q: is a folder; name a file in it", f.name)
	}
	if info, err := os.Stat(filepath.Dir(f.name)); err != nil || !info.IsDir() {
		return fmt.Errorf("--record %q: there is no folder %q", f.name, filepath.Dir(f.name))
	}
	return nil
}

func (f *recordFile) Write(b []byte) (int, error) {
	if f.file == nil && f.err == nil {
		f.file, f.err = os.Create(f.name)
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
	if f.file != nil {
		if err := f.file.Close(); err != nil && f.err == nil {
			f.err = err
		}
	}
}

// printPlan is --dry-run.
func printPlan(w io.Writer, s scenarios.Scenario, p runner.Plan, d targets.Description) error {
	cost := p.Cost(d.Volatile)
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
		line("requests", "%d for the controls, then %d a round and %d a round at the end", cost.Controls, cost.EachRound, 1+min(1, cost.Clean))
	} else {
		line("rounds", "%d", p.Rounds)
		line("requests", "%d: controls %d, rounds %d of %d each, late reads %d, removing keys %d", total, cost.Controls,
			p.Rounds, cost.EachRound, cost.Late, cost.Clean)
		line("keys", "%d, all beginning with %s%s-", cost.Keys, p.Prefix, p.Run)
	}
	line("quota units", "– (none are documented for this target)")
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
