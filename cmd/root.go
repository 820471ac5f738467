// Package cmd is the command line: flags, wiring, exit codes.
package cmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"contend/report"
	"contend/runner"
	"contend/scenarios"
)

// Exit codes: promises to scripts.
const (
	exitHeld         = 0
	exitViolated     = 1
	exitUsage        = 2
	exitInconclusive = 3
	exitCannotRun    = 4
	exitThreshold    = 5
	exitInterrupted  = 130
)

const exitHelp = `Exit status:
  0    held
  1    violated
  2    the command line or a file is wrong; nothing was sent
  3    inconclusive
  4    could not run: target unreachable, refused, unsupported, quota spent
  5    held, but a threshold (--expect) was missed
  130  interrupted; what was measured is reported`

// exitStatus is a verdict on its way to the exit code; it has been reported.
type exitStatus int

func (e exitStatus) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

// cannotRun marks an error that came after the command line was found right.
type cannotRun struct{ cause error }

func (e *cannotRun) Error() string { return e.cause.Error() }
func (e *cannotRun) Unwrap() error { return e.cause }

// console is where a command reads and writes.
type console struct {
	in       io.Reader
	out, err io.Writer
	runs     *inFlight
}

// tell writes a line on standard error.
func (c console) tell(format string, a ...any) {
	fmt.Fprintf(c.err, "contend: %s\n", report.OneLine(fmt.Sprintf(format, a...)))
}

// Run runs one command line and gives its exit code. When ctx ends, a run stops
// releasing, settles and reports; see also [WithHalt].
func Run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	c := console{stdin, stdout, stderr, &inFlight{}}
	halt := halted(ctx)
	if halt == nil {
		return run(ctx, c, args)
	}
	status := make(chan int, 1)
	go func() { status <- run(ctx, c, args) }()
	select {
	case s := <-status:
		return s
	case <-halt:
		c.giveUp()
		return exitInterrupted
	}
}

func run(ctx context.Context, c console, args []string) int {
	root := newRoot(c)
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	var status exitStatus
	var failed *cannotRun
	switch {
	case err == nil:
		return exitHeld
	case errors.As(err, &status):
		return int(status)
	case errors.As(err, &failed):
		c.tell("%s", runner.Cut(err.Error(), 2*runner.MessageLimit))
		if ctx.Err() != nil {
			return exitInterrupted
		}
		return exitCannotRun
	default:
		// Several faults of a command line are a line each.
		fmt.Fprintf(c.err, "contend: %s\n", report.Lines(err.Error()))
		return exitUsage
	}
}

func newRoot(c console) *cobra.Command {
	root := &cobra.Command{
		Use: "contend", Version: version(),
		Short: "Find out what a store does when many writers want the same key at once",
		Long: `contend lets N writers go at one moment against one key of a store, writes down every request and reply,
and says whether what the store promises was held, violated, or not put to the test.
The default target is an emulator of Atlassian Forge KVS in this process; it needs nothing installed.

` + exitHelp,
		SilenceErrors: true, SilenceUsage: true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error { return fromEnvironment(cmd.Flags()) },
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				var names []string
				for _, sub := range cmd.Commands() {
					if sub.IsAvailableCommand() {
						names = append(names, sub.Name())
					}
				}
				return fmt.Errorf("unknown command %q; there are %s", args[0], strings.Join(names, ", "))
			}
			return cmd.Help()
		},
		Args:              cobra.ArbitraryArgs,
		CompletionOptions: cobra.CompletionOptions{HiddenDefaultCmd: true},
	}
	root.SetIn(c.in)
	root.SetOut(c.out)
	root.SetErr(c.err)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return fmt.Errorf("%w; `%s --help` lists the flags", err, cmd.CommandPath())
	})
	root.AddGroup(&cobra.Group{ID: "scenarios", Title: "Scenarios:"}, &cobra.Group{ID: "other", Title: "Other commands:"})
	for _, s := range scenarios.All() {
		root.AddCommand(newScenario(c, s))
	}
	root.AddCommand(newRun(c), newNightly(c), newJudge(c), newTargets(c), newClean(c), newSim(c), newForge(c), newResults(c), newSuiteSchema(c))
	root.SetHelpCommandGroupID("other")
	return root
}

// fromEnvironment gives every flag that was not set its twin in the environment:
// CONTEND_ and the flag's name in capitals; repeatable ones hold a value a line.
// Those in except are left alone.
func fromEnvironment(flags *pflag.FlagSet, except ...string) error {
	var wrong []error
	given := make(map[string]bool)
	flags.Visit(func(f *pflag.Flag) { given[f.Name] = true })
	flags.VisitAll(func(f *pflag.Flag) {
		name := "CONTEND_" + strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_"))
		value, set := os.LookupEnv(name)
		// A flag goes before the environment, also where another flag excludes it.
		excluded := f.Name == "output" && given["quiet"] || f.Name == "quiet" && given["output"] ||
			f.Name == "rounds" && given["duration"] || f.Name == "duration" && given["rounds"]
		if f.Changed || !set || f.Name == "help" || excluded || slices.Contains(except, f.Name) {
			return
		}
		values := []string{value}
		if f.Value.Type() == "stringArray" {
			values = strings.FieldsFunc(value, func(r rune) bool { return r == '\n' })
		}
		for _, v := range values {
			if err := flags.Set(f.Name, v); err != nil {
				wrong = append(wrong, fmt.Errorf("%s in the environment: %w", name, err))
			}
		}
	})
	return errors.Join(wrong...)
}

// isTerminal tells whether w is a terminal that can be painted on.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd())) && os.Getenv("TERM") != "dumb"
}

// screenOf tells what a table can use of w.
func screenOf(w io.Writer, noColour bool) report.Screen {
	screen := report.Screen{Colour: !noColour && os.Getenv("NO_COLOR") == "" && isTerminal(w)}
	if f, ok := w.(*os.File); ok {
		if width, _, err := term.GetSize(int(f.Fd())); err == nil {
			screen.Width = width
		}
	}
	return screen
}
