package report

import (
	"fmt"
	"io"
	"strings"
)

// jiraEscapes keeps a text from being read as Jira wiki markup. A bar cannot be
// escaped inside a cell; a broken bar stands in for it.
var jiraEscapes = strings.NewReplacer(`\`, `\\`, "|", "¦", "\r\n", " ", "\n", " ", "\r", " ", "{", `\{`, "}", `\}`,
	"[", `\[`, "]", `\]`, "*", `\*`, "!", `\!`, "~", `\~`, "^", `\^`)

// writeJira writes format jira: wiki markup. Its tables are plain enough to be
// written line by line.
func writeJira(w io.Writer, r Result) error {
	d := r.document()
	var b strings.Builder
	fmt.Fprintf(&b, "h3. %s\n\n", jiraEscapes.Replace(d.title))
	for i, line := range d.lead {
		text := jiraEscapes.Replace(line)
		if i == 0 {
			text = "*" + text + "*"
		}
		fmt.Fprintf(&b, "%s\n\n", text)
	}
	for _, block := range d.blocks {
		if block.heading != "" {
			fmt.Fprintf(&b, "h4. %s\n\n", jiraEscapes.Replace(block.heading))
		}
		t := escaped(block.table, jiraCell)
		if len(t.rows) > 0 {
			fmt.Fprintf(&b, "||%s||\n", strings.Join(t.header, "||"))
		}
		for _, row := range t.rows {
			fmt.Fprintf(&b, "|%s|\n", strings.Join(row, "|"))
		}
		if len(t.rows) > 0 {
			b.WriteString("\n")
		}
		for _, line := range block.text {
			fmt.Fprintf(&b, "* %s\n", jiraEscapes.Replace(line))
		}
		if len(block.text) > 0 {
			b.WriteString("\n")
		}
	}
	_, err := io.WriteString(w, strings.TrimRight(b.String(), "\n")+"\n")
	return err
}

// jiraCell escapes a cell; an empty one needs a space, else it is read as the
// mark of a header.
func jiraCell(text string) string {
	if text = jiraEscapes.Replace(text); text == "" {
		return " "
	}
	return text
}
