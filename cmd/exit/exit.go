// Package exit has the exit statuses of commands, which are promises to scripts.
package exit

import (
	"errors"
	"fmt"
	"slices"

	"contend/report"
	"contend/scenarios"
	"contend/targets"
)

// The statuses.
const (
	Held         = 0
	Violated     = 1
	Usage        = 2
	Inconclusive = 3
	CannotRun    = 4
	Threshold    = 5
	Interrupted  = 130
)

// Help lists them.
const Help = `Exit status:
  0    held
  1    violated
  2    the command line or a file is wrong; nothing was sent
  3    inconclusive
  4    could not run: target unreachable, refused, unsupported, quota spent
  5    held, but a threshold (--expect) was missed
  130  interrupted; what was measured is reported`

// Status is a verdict on its way to the exit code; it has been reported.
type Status int

func (s Status) Error() string { return fmt.Sprintf("exit status %d", int(s)) }

// OrNil gives the status as an error; nil for held.
func OrNil(status int) error {
	if status == Held {
		return nil
	}
	return Status(status)
}

// Failure marks an error that came after the command line was found right.
type Failure struct{ Cause error }

func (f *Failure) Error() string { return f.Cause.Error() }
func (f *Failure) Unwrap() error { return f.Cause }

// Failed marks err so.
func Failed(err error) error { return &Failure{err} }

// Connecting sorts an error of connecting: what the URL got wrong is usage.
func Connecting(err error) error {
	if _, usage := errors.AsType[*targets.UsageError](err); usage {
		return err
	}
	return Failed(err)
}

// Of is the status of a result, as its command alone has it.
func Of(r report.Result) int {
	if r.Detail.Probe != nil {
		return ofProbe(r)
	}
	expected := scenarios.Held
	if r.Params.ExpectVerdict == "violated" {
		expected = scenarios.Violated
	}
	status := r.Verdict.Status
	switch {
	case status == scenarios.Violated && expected != scenarios.Violated:
		return Violated
	case r.Interrupted:
		return Interrupted
	case r.Stopped != "":
		return CannotRun
	case status == scenarios.Inconclusive:
		return Inconclusive
	case status != expected:
		return Violated
	case !met(r):
		return Threshold
	default:
		return Held
	}
}

// ofProbe is held where every question was answered that the target has.
func ofProbe(r report.Result) int {
	p := r.Detail.Probe
	switch {
	case r.Interrupted:
		return Interrupted
	case r.Stopped != "", p.Answered+p.Unanswered == 0:
		return CannotRun
	case r.Changed() > 0, !met(r):
		return Threshold
	case p.Unanswered > 0:
		return Inconclusive
	default:
		return Held
	}
}

// met tells whether all thresholds were.
func met(r report.Result) bool {
	return !slices.ContainsFunc(r.Expectations, func(e report.Expectation) bool { return !e.Met })
}

// Worst is the status of several runs: the first of these that any of them has.
func Worst(statuses []int) int {
	for _, status := range [...]int{Violated, Interrupted, CannotRun, Threshold, Inconclusive} {
		if slices.Contains(statuses, status) {
			return status
		}
	}
	return Held
}
