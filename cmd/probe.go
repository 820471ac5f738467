package cmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/oklog/ulid/v2"
	"github.com/spf13/pflag"

	"contend/cmd/exit"
	"contend/cmd/quota"
	"contend/cmd/watch"
	"contend/report"
	"contend/report/store"
	"contend/runner"
	"contend/scenarios"
	"contend/scenarios/probe"
	"contend/targets"
)

// probeLaunch runs a probe.
type probeLaunch struct {
	commonFlags
	scenario scenarios.Asks
	since    string // a file
	target   targets.Target
	command  string
	id       string // of the run
}

func (l *probeLaunch) common() *commonFlags { return &l.commonFlags }

func (l *probeLaunch) info() scenarios.Info { return l.scenario.Info() }

func (l *probeLaunch) register(fs *pflag.FlagSet) {
	l.unjudged = true
	l.registerTarget(fs, defaultTarget)
	fs.AddGoFlagSet(ownFlags(l.scenario))
	fs.StringVar(&l.since, "since", "", "compare with an earlier probe, whose JSON result is this `FILE`; exit 5 if an answer has changed")
	l.registerRest(fs)
}

func (l *probeLaunch) check(fs *pflag.FlagSet) error {
	wrong := append([]error{l.scenario.Check()}, l.commonFlags.check(fs)...)
	if l.since != "" {
		text, err := os.ReadFile(l.since)
		var earlier *probe.Earlier
		if err == nil {
			earlier, err = report.Earlier(text)
		}
		if err != nil {
			wrong = append(wrong, fmt.Errorf("--since %s: %w", l.since, err))
		}
		l.scenario.Compare(earlier)
	}
	return errors.Join(wrong...)
}

func (l *probeLaunch) ready(_ *store.Store, command string) error {
	l.command, l.id = command, ulid.Make().String()
	var err error
	if l.target, err = openTarget(l.commonFlags.target, l.keyPrefix); err != nil {
		return err
	}
	if err = l.scenario.CheckFor(l.target.Describe().Kind); err == nil {
		// Made once before anything is sent, for its errors.
		_, err = report.NewCollector(l.header())
	}
	if err != nil {
		l.target.Close()
	}
	return err
}

func (l *probeLaunch) close() { l.target.Close() }

func (l *probeLaunch) header() report.RunHeader {
	d := l.target.Describe()
	header := l.commonFlags.header(l.scenario, l.id, d, l.command, 0, quota.Limits(d, l.rate, l.valueSize))
	header.Params.Seed = ""
	header.Params.SetOptions(l.scenario)
	return header
}

func (l *probeLaunch) plan() runner.ProbePlan {
	d := l.target.Describe()
	return runner.ProbePlan{Setup: l.setup(l.id, 0, d), Inquiries: probe.Inquiries(l.scenario.Questions(d.Kind, l.keyPrefix, l.id))}
}

func (l *probeLaunch) run(ctx context.Context, c console, with watch.Equipment) (report.Result, error) {
	plan, d := l.plan(), l.target.Describe()
	l.warnOfLimits(c.err, d, plan.Limits, plan.Takes(d))
	probe, err := runner.OpenProbe(ctx, l.target, plan)
	if err != nil {
		return report.Result{}, exit.Connecting(err)
	}
	defer probe.Close()
	header := l.header()
	header.Target.Told(probe.Server())
	collector, err := report.NewCollector(header)
	if err != nil {
		return report.Result{}, err
	}
	limited := ctx
	if with.Within > 0 {
		var cancel context.CancelFunc
		limited, cancel = context.WithTimeout(ctx, with.Within)
		defer cancel()
	}
	observers := runner.Observers{collector}
	var recorder *runner.Recorder
	if with.Record != nil {
		recorder = runner.NewRecorder(with.Record, header)
		observers = append(observers, recorder)
	}
	done := func() {}
	if !with.Silent {
		progress := report.NewProgress(c.err, isTerminal(c.err), "questions", len(plan.Inquiries), 0)
		observers, done = append(observers, progress), progress.Done
	}
	defer c.Begin(header)()
	over := c.OnInterrupt(ctx, done, func() {
		c.tell("interrupted: nothing more is asked, and the keys are removed. Interrupt again to stop at once, then remove them with: %s", cleanCommand(header))
	})
	summary := probe.Run(limited, observers)
	over()
	end := summary.End()
	if end.Interrupted && ctx.Err() == nil {
		end.Interrupted, end.Cut = false, fmt.Sprintf("its time of %s was up", with.Within)
	}
	tellEnd(c, end, summary.Left, header)
	r := collector.Make(end)
	if recorder != nil {
		if err := recorder.Finish(end, r); err != nil {
			with.Record.Fail(err)
		}
	}
	return r, nil
}

// tellEnd tells on standard error why a probe ended early, and which keys it left.
func tellEnd(c console, end runner.End, left error, header report.RunHeader) {
	switch {
	case end.Stopped != "":
		c.tell("stopped: %s", end.Stopped)
	case end.Cut != "":
		c.tell("the probe was cut: %s", end.Cut)
	}
	tellLeft(c, left, header)
}

// printPlan is --dry-run.
func (l *probeLaunch) printPlan(w io.Writer) error {
	d, plan := l.target.Describe(), l.plan()
	requests, units := plan.Cost(d)
	var b strings.Builder
	line := func(name, format string, a ...any) {
		fmt.Fprintf(&b, "  %-12s %s\n", name, fmt.Sprintf(format, a...))
	}
	fmt.Fprintf(&b, "Plan of contend %s; nothing was sent\n", l.scenario.Info().Name)
	line("target", "%s%s", d.URL, map[bool]string{true: " (simulated)"}[d.Simulated])
	line("questions", "%d", len(plan.Inquiries))
	line("requests", "at most %d, one after the other", requests)
	line("keys", "all begin with %s%s-", l.keyPrefix, l.id)
	if units == 0 {
		line("quota units", "– (none are documented for this target)")
	} else {
		line("quota units", "at most about %d", units)
	}
	if len(plan.Limits) > 0 {
		line("duration", "at least %s, at %s", roughly(plan.Takes(d)), quota.Text(plan.Limits))
	} else {
		line("duration", "as long as the target takes: no limit is set")
	}
	if above := quota.Above(d, l.rate); above != "" {
		line("warning", "%s", above)
	}
	_, err := io.WriteString(w, b.String())
	return err
}
