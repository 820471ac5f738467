// Package night makes the runs of a suite: one after the other, or as a night with a
// time to end and keys of earlier nights to ask about.
package night

import (
	"context"
	"time"

	"contend/cmd/exit"
	"contend/cmd/watch"
	"contend/report"
)

// Run is one that is checked and can be made.
type Run struct {
	Name   string
	Target string // its URL, with its secrets
	Watch  bool   // of expired keys
	Make   func(context.Context, watch.Equipment) (report.Result, error)
}

// Do makes the run, and keeps its result.
func (r Run) Do(ctx context.Context, with watch.Equipment) report.SuiteRun {
	result, err := r.Make(ctx, with)
	if err != nil {
		out := report.SuiteRun{Name: r.Name, Exit: exit.CannotRun, Error: err.Error()}
		if ctx.Err() != nil {
			out.Exit = exit.Interrupted
		}
		return out
	}
	out := report.SuiteRun{Name: r.Name, Exit: exit.Of(result), Result: &result}
	if with.Kept != nil {
		if err := with.Kept.SaveResult(result); err != nil {
			with.Console.Tell("the result of %s could not be kept: %v", r.Name, err)
			out.Exit = exit.Worst([]int{out.Exit, exit.CannotRun})
		}
	}
	return out
}

// All makes runs one after the other, until ctx ends; told is told of each as it ends.
func All(ctx context.Context, runs []Run, s *report.Suite, with watch.Equipment, told func(*report.SuiteRun)) {
	for _, r := range runs {
		if ctx.Err() != nil {
			break
		}
		s.Runs = append(s.Runs, r.Do(ctx, with))
		told(&s.Runs[len(s.Runs)-1])
	}
}

// Conclude says how a suite or a night ended whose runs are made.
func Conclude(ctx context.Context, s *report.Suite) {
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
}
