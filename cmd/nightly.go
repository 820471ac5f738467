package cmd

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"contend/cmd/exit"
	"contend/cmd/paste"
	"contend/cmd/suite/night"
	"contend/cmd/watch"
	"contend/report"
	"contend/targets/all"
)

func newNightly(c console) *cobra.Command {
	var flags suiteFlags
	var within time.Duration
	cmd := &cobra.Command{
		Use: "nightly FILE", Short: "a suite for a schedule: races, new and outstanding ghosts, one report, trend against earlier nights", GroupID: "other",
		Args: oneFile("nightly", "name one suite file"),
		Long: `nightly runs a suite file from cron, systemd or a CI schedule: its races one after the other; then its watches, side by
side, each with the keys of earlier nights that were not seen free yet; then one report with what has changed since the
nights before. Everything is kept in --store. What is known to be broken is written expect-verdict: violated in the
suite, so that a night is green until something changes. A watch that has not ended when --within is over is cut, and
its keys are asked about again in the next night.

` + exit.Help + `
Of several runs the worst counts: violated, could not run, threshold, inconclusive, held. An alarm of the trend exits 5.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if within <= 0 {
				return fmt.Errorf("--within %s: must be longer than 0", within)
			}
			deadline := time.Now().Add(within)
			flags.storeGiven = cmd.Flags().Changed("store")
			return runNight(cmd.Context(), c, args[0], &flags, within, deadline, commandLine("nightly "+paste.Quote(args[0]), cmd.Flags()))
		},
	}
	flags.register(cmd.Flags())
	cmd.Flags().Lookup("store").Usage = "the results of all nights, a `FILE` (SQLite; default: in your state folder, which is printed)"
	cmd.Flags().DurationVar(&within, "within", 2*time.Hour, "what is not done then is cut, settled and reported")
	return cmd
}

// runNight makes a night of a suite file and reports.
func runNight(ctx context.Context, c console, file string, flags *suiteFlags, within time.Duration, deadline time.Time, command string) error {
	runs, outputs, err := readyToRun(c, file, flags, storeOf(flags.store))
	if err != nil || flags.dryRun {
		return err
	}
	kept, err := openStore(c, &commonFlags{store: flags.store, storeByDefault: true, storeGiven: flags.storeGiven, quiet: flags.quiet}, true)
	if err != nil {
		return err
	}
	if kept == nil {
		return errors.New("--store \"\": the nights need a store; name a file")
	}
	defer kept.Close()
	guard, err := kept.Guard("nightly")
	if err != nil {
		return exit.Failed(err)
	}
	defer guard.Close()
	s := report.Suite{Schema: report.SuiteSchema, Command: command, Tool: tool(), File: file, Started: time.Now().UTC()}
	n := night.Night{Runs: makeable(c, runs), Deadline: deadline, Open: all.Open, Told: func(r *report.SuiteRun) { tellRun(c, outputs, r) },
		With: watch.Equipment{Console: c, Kept: kept, Silent: flags.silent(), Within: within}}
	n.Run(ctx, &s)
	return concludeSuite(ctx, c, &s, outputs, flags.noColour)
}
