package cmd

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/spf13/cobra"

	"contend/runner"
	"contend/targets"
)

func newClean(c console) *cobra.Command {
	var target, run, prefix string
	var olderThan, timeout time.Duration
	cmd := &cobra.Command{
		Use: "clean", Short: "remove the keys that a killed run left behind", GroupID: "other", Args: cobra.NoArgs,
		Long: `clean removes from a target the keys of one run (--run ID) or of every run that began longer ago than
--older-than. Every key of contend begins with --key-prefix and holds its run; others are left alone.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			which, err := selection(run, prefix, cmd.Flags().Changed("older-than"), olderThan)
			if err != nil {
				return err
			}
			t, err := targets.Open(target)
			if err != nil {
				return err
			}
			defer t.Close()
			return clean(cmd.Context(), c, t, which, timeout)
		},
	}
	fs := cmd.Flags()
	fs.StringVarP(&target, "target", "t", defaultTarget, "the `URL` to clean")
	fs.StringVar(&run, "run", "", "the `ID` of the run whose keys are removed")
	ageVar(fs, &olderThan, "older-than", "remove the keys of every run that began longer ago, such as 36h or 2d")
	fs.StringVar(&prefix, "key-prefix", defaultPrefix, "what the keys begin with")
	fs.DurationVar(&timeout, "timeout", time.Minute, "of the whole cleaning")
	return cmd
}

func selection(run, prefix string, byAge bool, olderThan time.Duration) (targets.Selection, error) {
	if err := checkPrefix(prefix); err != nil {
		return targets.Selection{}, err
	}
	if (run != "") == byAge {
		return targets.Selection{}, errors.New("clean: needs either --run ID or --older-than D")
	}
	if run != "" {
		if _, err := ulid.ParseStrict(run); err != nil {
			return targets.Selection{}, fmt.Errorf("--run %q: is not the ID of a run; every report shows it", run)
		}
		return targets.Selection{Prefix: prefix + run + "-"}, nil
	}
	before := time.Now().Add(-olderThan)
	return targets.Selection{Prefix: prefix, Match: func(key string) bool {
		id, err := ulid.ParseStrict(runner.RunOf(prefix, key))
		return err == nil && ulid.Time(id.Time()).Before(before)
	}}, nil
}

func clean(ctx context.Context, c console, t targets.Target, which targets.Selection, timeout time.Duration) error {
	d := t.Describe()
	if d.Volatile {
		fmt.Fprintf(c.out, "%s holds nothing of earlier runs: its keys die with the process\n", d.URL)
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	removed, err := t.Clean(ctx, which)
	if err != nil {
		return preparing(fmt.Errorf("clean: after %d keys: %w", removed, err))
	}
	fmt.Fprintf(c.out, "removed %d keys that begin with %s from %s\n", removed, which.Prefix, d.URL)
	return nil
}
