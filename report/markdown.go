package report

import (
	"strings"

	"github.com/olekukonko/tablewriter"
	"github.com/olekukonko/tablewriter/renderer"
	"github.com/olekukonko/tablewriter/tw"
)

// markdownEscapes keeps a text from being read as Markdown or HTML.
var markdownEscapes = strings.NewReplacer(`\`, `\\`, "|", `\|`, "\r\n", "<br>", "\n", "<br>", "\r", "<br>",
	"<", "&lt;", ">", "&gt;", "&", "&amp;", "*", `\*`, "_", `\_`, "`", "\\`", "[", `\[`, "]", `\]`, "#", `\#`, "~", `\~`)

// markdown is format markdown.
var markdown = markup{
	escape: markdownEscapes.Replace,
	title:  "## %s\n\n", verdict: "**%s**\n\n", lead: "%s\n\n", heading: "### %s\n\n", item: "- %s\n", plain: "```text\n%s\n```\n\n",
	table: func(b *strings.Builder, t table) error {
		grid := tablewriter.NewTable(b, tablewriter.WithRenderer(renderer.NewMarkdown()),
			tablewriter.WithHeaderAutoFormat(tw.Off), tablewriter.WithRowAutoWrap(tw.WrapNone),
			tablewriter.WithAlignment(alignments(t.right)), tablewriter.WithEastAsian(tw.Off))
		return fill(grid, escaped(t, markdownEscapes.Replace))
	},
}
