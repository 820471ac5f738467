package report

import (
	"fmt"
	"io"
	"strings"

	"github.com/olekukonko/tablewriter"
	"github.com/olekukonko/tablewriter/renderer"
	"github.com/olekukonko/tablewriter/tw"
)

// markdownEscapes keeps a text from being read as Markdown or HTML.
var markdownEscapes = strings.NewReplacer(`\`, `\\`, "|", `\|`, "\r\n", "<br>", "\n", "<br>", "\r", "<br>",
	"<", "&lt;", ">", "&gt;", "&", "&amp;", "*", `\*`, "_", `\_`, "`", "\\`", "[", `\[`, "]", `\]`, "#", `\#`, "~", `\~`)

// writeMarkdown writes format markdown.
func writeMarkdown(w io.Writer, r Result) error {
	d := r.document()
	var b strings.Builder
	fmt.Fprintf(&b, "## %s\n\n", markdownEscapes.Replace(d.title))
	for i, line := range d.lead {
		text := markdownEscapes.Replace(line)
		if i == 0 {
			text = "**" + text + "**"
		}
		fmt.Fprintf(&b, "%s\n\n", text)
	}
	for _, block := range d.blocks {
		if block.heading != "" {
			fmt.Fprintf(&b, "### %s\n\n", markdownEscapes.Replace(block.heading))
		}
		if len(block.table.rows) > 0 {
			grid := tablewriter.NewTable(&b, tablewriter.WithRenderer(renderer.NewMarkdown()),
				tablewriter.WithHeaderAutoFormat(tw.Off), tablewriter.WithRowAutoWrap(tw.WrapNone),
				tablewriter.WithAlignment(alignments(block.table.right)), tablewriter.WithEastAsian(tw.Off))
			if err := fill(grid, escaped(block.table, markdownEscapes.Replace)); err != nil {
				return err
			}
			b.WriteString("\n")
		}
		for _, line := range block.text {
			fmt.Fprintf(&b, "- %s\n", markdownEscapes.Replace(line))
		}
		if len(block.text) > 0 {
			b.WriteString("\n")
		}
	}
	_, err := io.WriteString(w, strings.TrimRight(b.String(), "\n")+"\n")
	return err
}

// escaped gives the table with every cell passed through escape.
func escaped(t table, escape func(string) string) table {
	out := table{right: t.right}
	for _, h := range t.header {
		out.header = append(out.header, escape(h))
	}
	for _, row := range t.rows {
		var cells []string
		for _, cell := range row {
			cells = append(cells, escape(cell))
		}
		out.rows = append(out.rows, cells)
	}
	return out
}
