// Package cmd is the command line: flags, wiring, exit codes.
package cmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"contend/cmd/exit"
	"contend/report"
	"contend/runner"
	"contend/scenarios"
	"contend/targets"
	"contend/targets/all"
	"contend/targets/near"
)

// console is where a command reads and writes.
type console struct {
	in       io.Reader
	out, err io.Writer
	runs     *inFlight
}

// tell writes a line on standard error.
func (c console) tell(format string, a ...any) {
	text := report.OneLine(fmt.Sprintf(format, a...))
	if !isUTF8() {
		text = report.ASCII(text)
	}
	fmt.Fprintf(c.err, "contend: %s\n", text)
}

// Tell is tell, for watches and nights.
func (c console) Tell(format string, a ...any) { c.tell(format, a...) }

// Progress shows how a watch goes, until done is called.
func (c console) Progress() (progress runner.Observer, done func()) {
	p := report.NewProgress(c.err, isTerminal(c.err), "keys", 1, 0)
	return p, p.Done
}

// plan is where a plan is written: standard output, in what its screen can show.
func (c console) plan() io.Writer {
	if isUTF8() {
		return c.out
	}
	return asciiWriter{c.out}
}

type asciiWriter struct{ io.Writer }

// Write takes whole texts.
func (w asciiWriter) Write(b []byte) (int, error) {
	_, err := io.WriteString(w.Writer, report.ASCII(string(b)))
	return len(b), err
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
		return exit.Interrupted
	}
}

func run(ctx context.Context, c console, args []string) int {
	root := newRoot(c)
	root.SetArgs(args)
	err := misnamed(root, args)
	if err == nil {
		err = root.ExecuteContext(ctx)
	}
	var status exit.Status
	var failed *exit.Failure
	switch {
	case err == nil:
		return exit.Held
	case errors.As(err, &status):
		return int(status)
	case errors.As(err, &failed):
		c.tell("%s", runner.Cut(err.Error(), 2*runner.MessageLimit))
		if ctx.Err() != nil {
			return exit.Interrupted
		}
		return exit.CannotRun
	default:
		// Several faults of a command line are a line each.
		fmt.Fprintf(c.err, "contend: %s\n", report.Lines(err.Error()))
		return exit.Usage
	}
}

func newRoot(c console) *cobra.Command {
	root := &cobra.Command{
		Use: "contend", Version: version(),
		Short: "Find out what a store does when many writers want the same key at once",
		Long: `contend lets N writers go at one moment against one key of a store, writes down every request and reply,
and says whether what the store promises was held, violated, or not put to the test.
The default target is an emulator of Atlassian Forge KVS in this process; it needs nothing installed.

` + exit.Help,
		SilenceErrors: true, SilenceUsage: true,
		PersistentPreRunE: func(cmd *cobra.Command, args []string) error {
			warnOfVariables(c, cmd, args)
			return fromEnvironment(cmd.Flags())
		},
		RunE: group, Args: cobra.ArbitraryArgs,
		CompletionOptions: cobra.CompletionOptions{HiddenDefaultCmd: true},
	}
	root.SetIn(c.in)
	root.SetOut(c.out)
	root.SetErr(c.err)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		if plain := plainly(err); plain != err {
			return plain
		}
		return fmt.Errorf("%w; `%s --help` lists the flags", err, cmd.CommandPath())
	})
	root.AddGroup(&cobra.Group{ID: "scenarios", Title: "Scenarios:"}, &cobra.Group{ID: "other", Title: "Other commands:"})
	for _, s := range scenarios.All() {
		root.AddCommand(newScenario(c, s))
	}
	root.AddCommand(newRun(c), newNightly(c), newJudge(c), newTargets(c), newClean(c), newSim(c), newForge(c), newResults(c), newSuiteSchema(c))
	root.SetHelpCommand(&cobra.Command{
		Use: "help [COMMAND]", Short: "the help of a command", GroupID: "other", Args: cobra.ArbitraryArgs,
		RunE: func(_ *cobra.Command, args []string) error {
			if err := misnamed(root, args); err != nil {
				return err
			}
			cmd, _, err := root.Find(args)
			if err != nil {
				return err
			}
			return cmd.Help()
		},
	})
	root.InitDefaultCompletionCmd()
	root.InitDefaultHelpCmd()
	addExamples(root)
	return root
}

// group runs a command that has others below it.
func group(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return unknown(cmd, args[0])
	}
	return cmd.Help()
}

// misnamed refuses a word that stands where a command has to, also before --help.
func misnamed(root *cobra.Command, args []string) error {
	cmd, rest, err := root.Find(args)
	if err == nil && cmd.HasAvailableSubCommands() && len(rest) > 0 && !strings.HasPrefix(rest[0], "-") && !hidden(rest[0]) {
		return unknown(cmd, rest[0])
	}
	return nil
}

// hidden tells whether a word is a command that is added as the program starts.
func hidden(word string) bool {
	return slices.Contains([]string{"help", cobra.ShellCompRequestCmd, cobra.ShellCompNoDescRequestCmd}, word)
}

// unknown refuses a word that is none of the commands below one.
func unknown(cmd *cobra.Command, word string) error {
	var names []string
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() {
			names = append(names, sub.Name())
		}
	}
	if isTarget(word) {
		return fmt.Errorf("%q is a target: name a command first, and the target with -t; there are %s", all.Redact(word), strings.Join(names, ", "))
	}
	meant := ""
	if name := near.Name(word, names); name != "" {
		meant = "did you mean " + name + "? "
	}
	verb := "are"
	if len(names) == 1 {
		verb = "is"
	}
	return fmt.Errorf("%sunknown command %q; %sthere %s %s", prefixOf(cmd), word, meant, verb, strings.Join(names, ", "))
}

// prefixOf begins the errors of a command below the program's own.
func prefixOf(cmd *cobra.Command) string {
	if !cmd.HasParent() {
		return ""
	}
	_, path, _ := strings.Cut(cmd.CommandPath(), " ")
	return path + ": "
}

// isTarget tells whether a word looks like the URL of a target.
func isTarget(word string) bool {
	scheme, _, ok := strings.Cut(word, ":")
	return ok && (strings.Contains(word, "://") || slices.ContainsFunc(all.Drivers(), func(d targets.Driver) bool { return slices.Contains(d.Schemes, scheme) }))
}

// noArguments refuses words beside the flags, with a word on targets.
func noArguments(cmd *cobra.Command, args []string) error {
	switch {
	case len(args) == 0:
		return nil
	case isTarget(args[0]) && cmd.Flags().Lookup("target") != nil:
		return fmt.Errorf("%s%q: a target is given with -t: %s -t URL", prefixOf(cmd), all.Redact(args[0]), cmd.CommandPath())
	case !plainArgument.MatchString(args[0]):
		// It may be a part of a target, with its password.
		return fmt.Errorf("%sone argument too many: takes flags only; put quotes round a value with blanks; `%s --help` lists them", prefixOf(cmd), cmd.CommandPath())
	default:
		return fmt.Errorf("%s%q: takes flags only; `%s --help` lists them", prefixOf(cmd), args[0], cmd.CommandPath())
	}
}

// plainArgument is one that holds no secret.
var plainArgument = regexp.MustCompile(`^[a-z0-9-]{1,30}$`)

// isTerminal tells whether w is a terminal that can be painted on.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd())) && os.Getenv("TERM") != "dumb"
}

// screenOf tells what a table can use of w.
func screenOf(w io.Writer, noColour bool) report.Screen {
	screen := report.Screen{Colour: !noColour && os.Getenv("NO_COLOR") == "" && isTerminal(w), ASCII: !isUTF8()}
	if f, ok := w.(*os.File); ok {
		if width, _, err := term.GetSize(int(f.Fd())); err == nil {
			screen.Width = width
		}
	}
	return screen
}

// isUTF8 tells whether the environment asks for no other encoding. The first
// variable that is set decides, as for every program; where none is, a terminal of
// today is taken for one of UTF-8.
func isUTF8() bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if value := strings.ToLower(os.Getenv(name)); value != "" {
			return strings.Contains(value, "utf-8") || strings.Contains(value, "utf8")
		}
	}
	return true
}
