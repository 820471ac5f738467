package cmd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"contend/report"
)

type haltKey struct{}

// WithHalt gives a context whose command is given up when halt is closed: the
// last that it tells is what it may have left behind.
func WithHalt(ctx context.Context, halt <-chan struct{}) context.Context {
	return context.WithValue(ctx, haltKey{}, halt)
}

// halted gives up the command of ctx when it is closed; nil: it never is.
func halted(ctx context.Context) <-chan struct{} {
	halt, _ := ctx.Value(haltKey{}).(<-chan struct{})
	return halt
}

// inFlight are the runs that may have keys on their targets.
type inFlight struct {
	mu   sync.Mutex
	runs []report.RunHeader
}

// Begin notes a run that may have keys on its target until end is called.
func (c console) Begin(run report.RunHeader) (end func()) {
	f := c.runs
	f.mu.Lock()
	defer f.mu.Unlock()
	f.runs = append(f.runs, run)
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.runs = slices.DeleteFunc(f.runs, func(other report.RunHeader) bool { return other.Run == run.Run })
	}
}

// giveUp tells what a command leaves behind that is stopped at once.
func (c console) giveUp() {
	c.runs.mu.Lock()
	defer c.runs.mu.Unlock()
	if len(c.runs.runs) == 0 {
		c.tell("stopped at once")
	}
	for _, run := range c.runs.runs {
		c.tell("stopped at once: run %s is not reported, and its keys may be left; remove them with: %s", run.Run, cleanCommand(run))
	}
}

// OnInterrupt has say called once ctx ends, after done has taken the progress away.
// What it returns ends that: it waits for a call that has begun, and takes the
// progress away itself otherwise.
func (c console) OnInterrupt(ctx context.Context, done, say func()) (over func()) {
	told := make(chan struct{})
	callOff := context.AfterFunc(ctx, func() {
		defer close(told)
		done()
		if isTerminal(c.err) && errors.Is(ctx.Err(), context.Canceled) {
			fmt.Fprintln(c.err) // the terminal shows ^C where it stands
		}
		say()
	})
	return func() {
		if callOff() {
			done()
			return
		}
		<-told
	}
}
