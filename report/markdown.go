package report

import (
	"regexp"
	"strings"

	"github.com/olekukonko/tablewriter"
	"github.com/olekukonko/tablewriter/renderer"
	"github.com/olekukonko/tablewriter/tw"
)

// markdownEscapes keeps a text from being read as Markdown or HTML.
var markdownEscapes = strings.NewReplacer(`\`, `\\`, "|", `\|`, "\r\n", "<br>", "\n", "<br>", "\r", "<br>",
	"<", "&lt;", ">", "&gt;", "&", "&amp;", "*", `\*`, "_", `\_`, "`", "\\`", "[", `\[`, "]", `\]`, "#", `\#`, "~", `\~`)

// gitHubLinks are what GitHub makes a link of: the name of somebody, who would be
// told of it, and the number of an issue. No escape keeps it from that, but it
// leaves code alone.
var gitHubLinks = regexp.MustCompile(`(^|[^0-9A-Za-z_])(@[0-9A-Za-z][-/0-9A-Za-z_]*|#[0-9]+|(?i:gh-)[0-9]+)|[-./0-9A-Za-z_]+#[0-9]+`)

// markdownText escapes a text.
func markdownText(text string) string {
	var b strings.Builder
	for {
		at := gitHubLinks.FindStringSubmatchIndex(text)
		if at == nil {
			b.WriteString(markdownEscapes.Replace(text))
			return b.String()
		}
		begin, end := at[0], at[1]
		if at[4] >= 0 {
			begin = at[4]
		}
		b.WriteString(markdownEscapes.Replace(text[:begin]) + "`" + text[begin:end] + "`")
		text = text[end:]
	}
}

// fence is a line of code, with more marks around it than are in it.
func fence(line string) string {
	marks := "```"
	for strings.Contains(line, marks) {
		marks += "`"
	}
	return marks + "sh\n" + line + "\n" + marks + "\n"
}

// markdown is format markdown.
var markdown = markup{
	escape: markdownText, code: fence,
	title: "## %s\n\n", verdict: "**%s**\n\n", lead: "%s\n\n", heading: "### %s\n\n", item: "- %s\n", plain: "```text\n%s\n```\n\n",
	table: func(b *strings.Builder, t table) error {
		grid := tablewriter.NewTable(b, tablewriter.WithRenderer(renderer.NewMarkdown()),
			tablewriter.WithHeaderAutoFormat(tw.Off), tablewriter.WithRowAutoWrap(tw.WrapNone),
			tablewriter.WithAlignment(alignments(t.right)), tablewriter.WithEastAsian(tw.Off))
		return fill(grid, escaped(t, markdownText))
	},
}
