package cmd

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"contend/targets"
	"contend/targets/all"
)

func newTargets(c console) *cobra.Command {
	return &cobra.Command{
		Use: "targets [KIND]", Short: "every kind of target: URL form, what it supports, an example", GroupID: "other",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return fmt.Errorf("targets: name one kind, or none for all; there are %q", args)
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			drivers := all.Drivers()
			if len(args) == 1 {
				i := slices.IndexFunc(drivers, func(d targets.Driver) bool { return d.Name == args[0] || slices.Contains(d.Schemes, args[0]) })
				if i < 0 {
					var names []string
					for _, d := range drivers {
						names = append(names, d.Name)
					}
					return fmt.Errorf("targets: unknown kind %q; there are %s", args[0], strings.Join(names, ", "))
				}
				drivers = drivers[i : i+1]
			}
			var b strings.Builder
			for i, d := range drivers {
				if i > 0 {
					b.WriteString("\n")
				}
				describeDriver(&b, d, len(args) == 1)
			}
			_, err := io.WriteString(c.out, b.String())
			return err
		},
	}
}

func describeDriver(b *strings.Builder, d targets.Driver, whole bool) {
	fmt.Fprintf(b, "%s: %s\n  form     %s\n  example  %s\n", d.Name, d.Summary, d.Form, d.Example)
	var passed []string
	for _, p := range d.Parameters {
		if p.Meaning == "" {
			passed = append(passed, p.Name)
			continue
		}
		def := ""
		if p.Default != "" {
			def = fmt.Sprintf(" (default %s)", p.Default)
		}
		fmt.Fprintf(b, "  %s=%s\n", p.Name, strings.TrimSpace(" "+p.Meaning+def))
		if !whole && len(p.Values) > 4 {
			fmt.Fprintf(b, "      `contend targets %s` lists the values\n", d.Name)
			continue
		}
		for _, v := range p.Values {
			name := v.Name
			if v.Argument != "" {
				name += "[=" + v.Argument + "]"
			}
			losers := ""
			if len(v.Losers) > 0 {
				losers = "; a loser carries " + strings.Join(v.Losers, " or ")
			}
			fmt.Fprintf(b, "      %-18s %s%s\n", name, v.Meaning, losers)
		}
	}
	if len(passed) > 0 {
		fmt.Fprintf(b, "  passed on to the driver: %s\n", strings.Join(passed, ", "))
	}
	if len(d.Releases) > 0 {
		fmt.Fprintf(b, "  release  gate; also last-byte, which is the default over TLS\n")
	}
	if whole {
		describeAnswers(b, d)
	}
}

func describeAnswers(b *strings.Builder, d targets.Driver) {
	if d.Raw != "" {
		fmt.Fprintf(b, "  raw      %s (what a probe sends)\n", d.Raw)
	}
	b.WriteString("  accepted, exactly so; every other answer that is no error below is unmapped\n")
	for _, a := range d.Accepted {
		fmt.Fprintf(b, "      %-26s %s", a.Request, a.Answer)
		if a.Code != "" {
			fmt.Fprintf(b, "; sorted by the code %s", a.Code)
		}
		b.WriteString("\n")
	}
	b.WriteString("  answers, by the first row that fits\n")
	for _, a := range d.Answers {
		status := "any status"
		if a.Status != 0 {
			status = fmt.Sprint(a.Status)
			if a.Status < 10 {
				status += "xx"
			}
		}
		code := a.Code
		if code == "" {
			code = "any code"
		}
		fmt.Fprintf(b, "      %-26s %-10s %-9s %s\n", code, status, a.Outcome, a.Source)
	}
}
