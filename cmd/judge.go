package cmd

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"contend/cmd/exit"
	"contend/report"
	"contend/runner"
	"contend/scenarios"
)

func newJudge(c console) *cobra.Command {
	var outputs []string
	var quiet, noColour bool
	cmd := &cobra.Command{
		Use: "judge FILE", Short: "judge a recorded run again", GroupID: "other",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return errors.New("judge: name one file that --record wrote")
			}
			return nil
		},
		Long: `judge reads a record that --record wrote and derives the verdict and the report anew from the requests and
replies in it alone; what the run itself concluded is not looked at. A record that was cut off is judged as far as it goes.

` + exit.Help,
		RunE: func(_ *cobra.Command, args []string) error {
			to, err := outputsOf(outputs, quiet, named{"the record that is judged", args[0], reads})
			if err != nil {
				return err
			}
			r, err := judgeFile(args[0])
			if err != nil {
				return err
			}
			return conclude(c, r, report.WriteAll(to, r, c.out, screenOf(c.out, noColour)))
		},
	}
	registerOutputs(cmd.Flags(), &outputs, &quiet, &noColour)
	return cmd
}

func judgeFile(name string) (report.Result, error) {
	f, err := os.Open(name)
	if err != nil {
		return report.Result{}, fmt.Errorf("judge: %w; name a file that --record wrote", err)
	}
	defer f.Close()
	return judgeRecord(name, f)
}

// judgeRecord judges what is read, which errors name.
func judgeRecord(name string, record io.Reader) (report.Result, error) {
	var collector *report.Collector
	end, err := runner.Replay(record, func(line json.RawMessage) (to runner.Shown, err error) {
		var header report.RunHeader
		if err := json.Unmarshal(line, &header); err != nil {
			return to, fmt.Errorf("%w: its header: %w", runner.ErrNotARecord, err)
		}
		switch scenarios.Find(header.Scenario).(type) {
		case scenarios.Watch, scenarios.Asks:
		default:
			if p := header.Params; p.Contenders < 1 || p.MinContended < 1 || p.Thresholds == (scenarios.Thresholds{}) {
				return to, fmt.Errorf("%w: its header lacks contenders, min_contended or thresholds", runner.ErrNotARecord)
			}
		}
		if collector, err = report.NewCollector(header); err != nil {
			return to, err
		}
		return collector.Shown(), nil
	})
	if err == nil {
		err = collector.Foreign()
	}
	var unknown *report.UnknownScenarioError
	if errors.As(err, &unknown) {
		return report.Result{}, fmt.Errorf("judge %s: this contend has no scenario %q; a newer one may have", name, unknown.Name)
	}
	if err != nil {
		return report.Result{}, fmt.Errorf("judge %s: %w", name, err)
	}
	return collector.Make(end), nil
}
