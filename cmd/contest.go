package cmd

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"contend/cmd/exit"
	"contend/cmd/quota"
	"contend/cmd/watch"
	"contend/report"
	"contend/report/store"
	"contend/runner"
	"contend/scenarios"
	"contend/targets"
)

// contestLaunch runs a race.
type contestLaunch struct {
	contestFlags
	scenario scenarios.Contest
	target   targets.Target
	plan     runner.Plan
	command  string
}

func (l *contestLaunch) common() *commonFlags { return &l.commonFlags }

func (l *contestLaunch) info() scenarios.Info { return l.scenario.Info() }

func (l *contestLaunch) register(fs *pflag.FlagSet) {
	if few, ok := l.scenario.(interface{ Crowd() int }); ok {
		l.contenders = few.Crowd()
	}
	l.contestFlags.register(fs, ownFlags(l.scenario))
}

// ownFlags are those that only this scenario has; nil: none.
func ownFlags(s scenarios.Scenario) *flag.FlagSet {
	own, ok := s.(scenarios.Parameterized)
	if !ok {
		return nil
	}
	fs := flag.NewFlagSet("", flag.ContinueOnError)
	own.Flags(fs)
	return fs
}

func (l *contestLaunch) check(fs *pflag.FlagSet) error {
	err := l.contestFlags.check(fs)
	if l.sweep.Steps > 0 {
		err = errors.Join(err, l.scenario.Sweep(fs.Changed))
	}
	if own, ok := l.scenario.(scenarios.Parameterized); ok {
		err = errors.Join(own.Check(), err)
	}
	return err
}

func (l *contestLaunch) ready(_ *store.Store, command string) error {
	l.command = command
	var err error
	if l.target, err = openTarget(l.commonFlags.target, l.keyPrefix); err != nil {
		return err
	}
	if err = supported(l.target, l.scenario.Needs()); err == nil {
		l.plan, err = l.contestFlags.plan(l.scenario, l.target.Describe())
	}
	if err == nil {
		// Made once before anything is sent, for its errors.
		_, err = report.NewCollector(l.header())
	}
	if err != nil {
		l.target.Close()
	}
	return err
}

func (l *contestLaunch) header() report.RunHeader {
	header := l.contestFlags.header(l.scenario, l.plan, l.target.Describe(), l.command)
	if own, ok := l.scenario.(scenarios.Parameterized); ok {
		header.Params.SetOptions(own)
	}
	return header
}

func (l *contestLaunch) close() { l.target.Close() }

func (l *contestLaunch) run(ctx context.Context, c console, with watch.Equipment) (report.Result, error) {
	if cannot := l.cannotHold(); cannot != "" && l.sweep.Steps == 0 {
		fmt.Fprintf(c.err, "contend: warning: %s\n", cannot)
	}
	d := l.target.Describe()
	least, free := l.plan.Takes(d), l.plan
	if free.Limits = nil; least <= free.Takes(d) {
		least = 0
	}
	l.warnOfLimits(c.err, d, l.plan.Limits, least)
	run, err := runner.Open(ctx, l.target, l.plan)
	if err != nil {
		return report.Result{}, exit.Connecting(err)
	}
	defer run.Close()
	header := l.header()
	header.Target.Told(run.Server())
	if with.Within <= 0 {
		return measure(ctx, c, run, l.plan, header, with)
	}
	limited, cancel := context.WithTimeout(ctx, with.Within)
	defer cancel()
	r, err := measure(limited, c, run, l.plan, header, with)
	if r.Interrupted && ctx.Err() == nil {
		r.Interrupted, r.Cut = false, fmt.Sprintf("the time was up after %d rounds", r.Rounds)
	}
	return r, err
}

// cannotHold says why the verdict cannot be held, where that is the flags' doing; "":
// it can be, or held is not what is expected.
func (l *contestLaunch) cannotHold() string {
	switch {
	case l.sweep.Steps > 0:
		return "violated or inconclusive: a sweep maps the window, it is never held"
	case l.plan.Rounds == 0 || l.plan.Rounds >= l.minContended || l.expectVerdict == "violated" || l.header().Unguarded():
		return ""
	}
	return fmt.Sprintf("--rounds %d is below --min-contended %d: the verdict cannot be held", l.plan.Rounds, l.minContended)
}

// warnOfLimits tells when a rate is above what the target allows, and how long a run
// takes for its limits; 0: no longer than without.
func (f *commonFlags) warnOfLimits(w io.Writer, d targets.Description, limits []targets.Limit, least time.Duration) {
	if above := quota.Above(d, f.rate); above != "" {
		fmt.Fprintf(w, "contend: warning: %s\n", above)
	}
	if least > 0 {
		fmt.Fprintf(w, "contend: the limit of %s makes this run take %s at least\n", quota.Text(limits), roughly(least))
	}
}

// roughly rounds to seconds what has more than one.
func roughly(d time.Duration) time.Duration {
	if d < time.Second {
		return d.Round(time.Millisecond)
	}
	return d.Round(time.Second)
}

// measure runs the plan and makes the result.
func measure(ctx context.Context, c console, run *runner.Runner, plan runner.Plan, header report.RunHeader,
	with watch.Equipment,
) (report.Result, error) {
	collector, err := report.NewCollector(header)
	if err != nil {
		return report.Result{}, err
	}
	observers := runner.Observers{collector}
	var recorder *runner.Recorder
	if with.Record != nil {
		recorder = runner.NewRecorder(with.Record, header)
		observers = append(observers, recorder)
	}
	done := func() {}
	if !with.Silent {
		progress := report.NewProgress(c.err, isTerminal(c.err), "rounds", plan.Rounds, plan.Duration)
		if plan.Sweep.Steps == 0 {
			progress.Counted = collector.Counted
		}
		observers, done = append(observers, progress), progress.Done
	}
	defer c.Begin(header)()
	over := c.OnInterrupt(ctx, done, func() {
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			c.tell("the time is up: no more rounds; the last is settled and the keys are removed")
			return
		}
		c.tell("interrupted: no more rounds; the last is settled and the keys are removed. Interrupt again to stop at once, "+
			"then remove them with: %s", cleanCommand(header))
	})
	summary := run.Run(ctx, observers, collector)
	over()
	end := summary.End()
	if end.Stopped != "" {
		c.tell("stopped: %s", end.Stopped)
	}
	tellLeft(c, summary.Left, header)
	r := collector.Make(end)
	if recorder != nil {
		if err := recorder.Finish(end, r); err != nil {
			with.Record.Fail(err)
		}
	}
	return r, nil
}

// printPlan is --dry-run.
func (l *contestLaunch) printPlan(w io.Writer) error {
	s, p, d := l.scenario, l.plan, l.target.Describe()
	cost := p.Cost(d)
	var b strings.Builder
	line := func(name, format string, a ...any) {
		fmt.Fprintf(&b, "  %-12s %s\n", name, fmt.Sprintf(format, a...))
	}
	fmt.Fprintf(&b, "Plan of contend %s; nothing was sent\n", s.Info().Name)
	line("target", "%s%s", d.URL, map[bool]string{true: " (simulated)"}[d.Simulated])
	line("contenders", "%d", p.Contenders)
	if p.Release == targets.LastByte {
		line("release", "at the last byte: all of a request is sent before but that")
	}
	total := cost.Total()
	if p.Rounds == 0 {
		line("rounds", "as many as fit in %s", p.Duration)
		line("requests", "%d to connect and for the controls, then %d a round and %d a round at the end", cost.WarmUp+cost.Controls, cost.EachRound, 1+min(1, cost.Clean))
	} else {
		which := fmt.Sprintf(" where all of the first %d count", p.Rounds)
		if p.Sweep.Steps > 0 {
			line("rounds", "%d: %d at each of %d offsets from -%s to %s", p.Rounds, l.rounds, p.Sweep.Steps, p.Sweep.Most, p.Sweep.Most)
			which = ""
		} else {
			line("rounds", "%d that count; at most %d are raced", p.Rounds, max(p.Rounds, p.MaxRounds))
		}
		if why := l.cannotHold(); why != "" {
			line("warning", "%s", why)
		}
		line("requests", "%d%s: connecting %d, controls %d, rounds %d of %d each, late reads %d, removing keys %d", total, which, cost.WarmUp, cost.Controls,
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
		line("duration", "at least %s, at %s", roughly(p.Takes(d)), quota.Text(p.Limits))
	default:
		line("duration", "as long as the target takes: no limit is set")
	}
	if above := quota.Above(d, l.rate); above != "" {
		line("warning", "%s", above)
	}
	_, err := io.WriteString(w, b.String())
	return err
}
