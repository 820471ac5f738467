package report

import (
	"fmt"
	"strings"
)

// jiraEscapes keeps a text from being read as Jira wiki markup. A bar cannot be
// escaped inside a cell; a broken bar stands in for it.
var jiraEscapes = strings.NewReplacer(`\`, `\\`, "|", "¦", "\r\n", " ", "\n", " ", "\r", " ", "{", `\{`, "}", `\}`,
	"[", `\[`, "]", `\]`, "*", `\*`, "!", `\!`, "~", `\~`, "^", `\^`)

// jira is format jira: wiki markup. Its tables are plain enough to be written
// line by line.
var jira = markup{
	escape: jiraEscapes.Replace,
	title:  "h3. %s\n\n", verdict: "*%s*\n\n", lead: "%s\n\n", heading: "h4. %s\n\n", item: "* %s\n", plain: "{noformat}\n%s\n{noformat}\n\n",
	table: func(b *strings.Builder, t table) error {
		t = escaped(t, jiraCell)
		fmt.Fprintf(b, "||%s||\n", strings.Join(t.header, "||"))
		for _, row := range t.rows {
			fmt.Fprintf(b, "|%s|\n", strings.Join(row, "|"))
		}
		return nil
	},
}

// jiraCell escapes a cell; an empty one needs a space, else it is read as the
// mark of a header.
func jiraCell(text string) string {
	if text = jiraEscapes.Replace(text); text == "" {
		return " "
	}
	return text
}
