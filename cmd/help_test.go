package cmd

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"contend/targets"
	"contend/targets/all"
)

// words reads a command line as a shell does, with ' as the only quote, up to
// what is not its arguments.
func words(line string) (all []string) {
	line, _, _ = strings.Cut(line, " > ")
	line, _, _ = strings.Cut(line, " # ")
	for i, part := range strings.Split(line, "'") {
		if i%2 == 1 {
			all = append(all, part)
			continue
		}
		all = append(all, strings.Fields(part)...)
	}
	return all
}

// wrongExamples gives what is wrong with the examples of a command and of those
// below it: too few, too many, or one that it would not take.
func wrongExamples(cmd *cobra.Command) (wrong []string) {
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() && sub.Name() != "completion" {
			wrong = append(wrong, wrongExamples(sub)...)
		}
	}
	lines := strings.Split(strings.TrimSpace(cmd.Example), "\n")
	if cmd.Example == "" || len(lines) < 2 || len(lines) > 3 {
		return append(wrong, cmd.CommandPath()+": two or three examples are wanted")
	}
	for _, line := range lines {
		args := words(line)[1:]
		root := newRoot(console{runs: &inFlight{}})
		found, rest, err := root.Find(args)
		if err == nil && misnamed(root, args) == nil {
			err = found.ParseFlags(rest)
		}
		if err == nil {
			err = found.ValidateArgs(found.Flags().Args())
		}
		if f := found.Flags().Lookup("target"); err == nil && f != nil && f.Value.String() != "" {
			var t targets.Target
			if t, err = all.Open(f.Value.String()); err == nil {
				t.Close()
			}
		}
		switch {
		case strings.Contains(line, "--help"):
		case err != nil:
			wrong = append(wrong, line+": "+err.Error())
		case found.CommandPath() != cmd.CommandPath() && !cmd.HasSubCommands() && cmd.Name() != "help":
			wrong = append(wrong, line+": is an example of another command, "+found.CommandPath())
		}
	}
	return wrong
}

// Each command has two or three examples, which it takes.
func TestEveryCommandHasExamples(t *testing.T) {
	t.Parallel()
	for _, wrong := range wrongExamples(newRoot(console{runs: &inFlight{}})) {
		t.Error(wrong)
	}
	planted := newRoot(console{runs: &inFlight{}})
	for _, cmd := range planted.Commands() {
		switch cmd.Name() {
		case "lease":
			cmd.Example = ""
		case "judge":
			cmd.Example = "contend judge\ncontend judge a"
		case "counter":
			cmd.Example = "contend counter --nope\ncontend counter -t nosql:\ncontend lease"
		}
	}
	if wrong := wrongExamples(planted); len(wrong) != 5 {
		t.Errorf("%d faults are seen of 5 that were planted: %q", len(wrong), wrong)
	}
	// None is of a command that there is not.
	for path := range examples {
		cmd, rest, err := planted.Find(strings.Fields(path))
		if err != nil || len(rest) > 0 {
			t.Errorf("examples of %q, found %s: %v", path, cmd.CommandPath(), err)
		}
	}
}
