package cmd

import (
	"fmt"

	"github.com/spf13/cobra"

	"contend/cmd/exit"
	"contend/report"
	"contend/report/store"
)

func newResultsTrend(c console, file *string) *cobra.Command {
	var filter runFilter
	var nights int
	var outputs []string
	var quiet, noColour, failOnAlarm bool
	cmd := &cobra.Command{
		Use: "trend", Short: "night by night: winners, violations, medians, what drifted and what changed", Args: noArguments,
		Long: `trend compares the runs of a scenario on a target, with the same strategies and parameters, night by night. A night is a
day of UTC, by the start of the run; several runs of a night are put together. A key counts for the night that made it, whenever
its watch ended.
It alarms on a night that was violated, unless --expect-verdict violated said so, and on one by which a median has drifted: two
cumulative sums of its logarithm (CUSUM) against the first 40 nights, with an allowance of 0.5 and a threshold of 10 standard
deviations. It marks the night on which another server, package or contend is first seen.

Exit status:
  0    the trend is written, whatever it tells
  2    the command line or the store is wrong
  5    with --fail-on-alarm: an alarm on the latest night`,
		RunE: func(*cobra.Command, []string) error {
			to, err := outputsOf(outputs, quiet, storeOf(*file))
			if err != nil {
				return err
			}
			if nights < 0 {
				return fmt.Errorf("--nights %d: must not be negative; 0 shows all", nights)
			}
			which, _, err := filter.runs()
			if err != nil {
				return err
			}
			return withStore(*file, store.OpenToRead, func(s *store.Store) error {
				runs, err := s.TrendRuns(which)
				if err != nil {
					return err
				}
				t := report.Trend(runs)
				t.Shown = nights
				if err := report.WriteAll(to, t, c.out, screenOf(c.out, noColour)); err != nil {
					return exit.Failed(err)
				}
				if failOnAlarm && len(t.Alarms(t.Latest())) > 0 {
					return exit.Status(exit.Threshold)
				}
				return nil
			})
		},
	}
	filter.register(cmd.Flags())
	cmd.Flags().IntVar(&nights, "nights", 30, "how many are shown, up to the latest (0: all); all are compared")
	cmd.Flags().BoolVar(&failOnAlarm, "fail-on-alarm", false, "exit with status 5 where the latest night has an alarm")
	registerOutputs(cmd.Flags(), &outputs, &quiet, &noColour)
	return cmd
}
