package cmd

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"contend/cmd/paste"
	"contend/targets/forge/app"
)

func newForge(c console) *cobra.Command {
	cmd := &cobra.Command{
		Use: "forge", Short: "the companion app, through which a live Forge site is measured", GroupID: "other",
		RunE: group,
		Args: cobra.ArbitraryArgs,
	}
	cmd.AddCommand(newForgeInit(c))
	return cmd
}

func newForgeInit(c console) *cobra.Command {
	return &cobra.Command{
		Use: "init DIR", Short: "write the companion app to a folder, and say how to deploy it", Args: oneFile("forge init", "name one folder, a new or empty one"),
		Long: `init writes the companion app to DIR, a new or empty folder, and prints the commands that deploy it, run
contend through it and remove it again. The app is a Forge app with one web trigger, which does the
requests of contend next to the storage; its README tells what it takes and who may call it.`,
		RunE: func(_ *cobra.Command, args []string) error {
			if err := app.WriteTo(args[0]); err != nil {
				return fmt.Errorf("forge init: %w", err)
			}
			_, err := fmt.Fprintf(c.out, "wrote the companion app to %s: %s\n\nThe next steps, with your site and product; README.md there says more:\n\n%s",
				args[0], strings.Join(app.Files(), ", "), indent("cd "+paste.Quote(args[0])+"\n"+app.Steps()))
			return err
		},
	}
}

// indent sets off the lines of a text.
func indent(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString("    " + line)
	}
	return b.String()
}
