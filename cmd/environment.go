package cmd

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"contend/targets/near"
)

// variable is the twin of a flag in the environment.
func variable(flag string) string {
	return variables + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// variables begin with this.
const variables = "CONTEND_"

// secretVariables hold what no flag takes.
var secretVariables = []string{simTokenVariable, "CONTEND_FORGE_TOKEN"}

// fromVariable marks a flag whose value came from the environment.
const fromVariable = "environment"

// fromEnvironment gives every flag that was not set its twin in the environment:
// CONTEND_ and the flag's name in capitals; repeatable ones hold a value a line.
// Those in except are left alone.
func fromEnvironment(flags *pflag.FlagSet, except ...string) error {
	var wrong []error
	given := make(map[string]bool)
	flags.Visit(func(f *pflag.Flag) { given[f.Name] = true })
	flags.VisitAll(func(f *pflag.Flag) {
		value, set := os.LookupEnv(variable(f.Name))
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
				wrong = append(wrong, fmt.Errorf("%s in the environment: %w", variable(f.Name), plainly(err)))
			}
		}
		_ = flags.SetAnnotation(f.Name, fromVariable, nil)
	})
	return errors.Join(wrong...)
}

// typed tells whether a flag was given where it is used, and not for whatever is
// run in this environment.
func typed(flags *pflag.FlagSet, name string) bool {
	f := flags.Lookup(name)
	if f == nil || !f.Changed {
		return false
	}
	_, from := f.Annotations[fromVariable]
	return !from
}

// warnOfVariables tells which names in the environment nothing reads. A suite may
// have any, which it names itself.
func warnOfVariables(c console, cmd *cobra.Command, args []string) {
	known := slices.Clone(secretVariables)
	var add func(*cobra.Command)
	add = func(cmd *cobra.Command) {
		for _, fs := range []*pflag.FlagSet{cmd.LocalFlags(), cmd.InheritedFlags()} {
			fs.VisitAll(func(f *pflag.Flag) { known = append(known, variable(f.Name)) })
		}
		for _, sub := range cmd.Commands() {
			add(sub)
		}
	}
	add(cmd.Root())
	var ends []string
	for _, name := range known {
		ends = append(ends, strings.TrimPrefix(name, variables))
	}
	text := ""
	if name := cmd.Name(); len(args) == 1 && (name == "run" || name == "nightly") {
		b, _ := os.ReadFile(args[0]) // who reads the suite tells what is wrong with it
		text = string(b)
	}
	for _, pair := range os.Environ() {
		name, _, _ := strings.Cut(pair, "=")
		if !strings.HasPrefix(name, variables) || slices.Contains(known, name) || strings.Contains(text, "${"+name+"}") {
			continue
		}
		hint := ""
		if meant := near.Name(strings.TrimPrefix(name, variables), ends); meant != "" {
			hint = ": did you mean " + variables + meant + "?"
		}
		c.tell("warning: nothing reads %s in the environment%s", name, hint)
	}
}

var bareNumber = regexp.MustCompile(`^[-+]?[0-9]+(\.[0-9]+)?$`)

// plainly says what a flag takes whose value cannot be read; other errors stay as
// they are.
func plainly(err error) error {
	invalid, ok := errors.AsType[*pflag.InvalidValueError](err)
	if !ok {
		return err
	}
	f, value := invalid.GetFlag(), invalid.GetValue()
	kind, base := "", f.Value.Type()
	switch strings.TrimRight(base, "0123456789") {
	case "int":
		kind = "needs a whole number, such as 20"
	case "uint", "count":
		kind = "needs a whole number from 0 on, such as 20"
	case "float":
		kind = "needs a number, such as 0.5 or 20"
	case "bool":
		kind = "needs true or false"
	case "duration":
		kind = "needs a duration, such as 250ms, 10s or 1m30s"
		if bareNumber.MatchString(value) {
			kind += fmt.Sprintf("; did you mean %ss?", value)
		}
	default:
		kind = invalid.Unwrap().Error()
	}
	if f.Name == "contenders" {
		kind = invalid.Unwrap().Error()
	}
	return fmt.Errorf("--%s %q: %s", f.Name, value, kind)
}
