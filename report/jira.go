package report

import (
	"fmt"
	"strings"
	"unicode"
)

// jiraEscapes keeps a text from being read as Jira wiki markup. A bar cannot be
// escaped inside a cell; a broken bar stands in for it.
var jiraEscapes = strings.NewReplacer(`\`, `\\`, "|", "¦", "\r\n", " ", "\n", " ", "\r", " ", "{", `\{`, "}", `\}`,
	"[", `\[`, "]", `\]`, "*", `\*`, "!", `\!`, "~", `\~`, "^", `\^`)

// jira is format jira: wiki markup. Its tables are plain enough to be written
// line by line.
var jira = markup{
	escape: jiraText,
	// What ends the block is broken in two; a shell joins the parts again.
	code: func(line string) string {
		return "{noformat}\n" + strings.ReplaceAll(line, "{noformat", "{no''format") + "\n{noformat}\n"
	},
	title: "h3. %s\n\n", verdict: "*%s*\n\n", lead: "%s\n\n", heading: "h4. %s\n\n", item: "* %s\n", plain: "{noformat}\n%s\n{noformat}\n\n",
	table: func(b *strings.Builder, t table) error {
		t = escaped(t, jiraCell)
		fmt.Fprintf(b, "||%s||\n", strings.Join(t.header, "||"))
		for _, row := range t.rows {
			fmt.Fprintf(b, "|%s|\n", strings.Join(row, "|"))
		}
		return nil
	},
}

// jiraText escapes a text. What marks a phrase only beside a word's end, such as
// _x_ and -x-, is left alone inside words.
func jiraText(text string) string {
	runes := []rune(text)
	inWord := func(i int) bool {
		return i >= 0 && i < len(runes) && (unicode.IsLetter(runes[i]) || unicode.IsDigit(runes[i]))
	}
	var b strings.Builder
	for i, r := range runes {
		cited := r == '?' && (i > 0 && runes[i-1] == '?' || i+1 < len(runes) && runes[i+1] == '?')
		if cited || strings.ContainsRune("_-+", r) && !(inWord(i-1) && inWord(i+1)) {
			b.WriteString(`\` + string(r))
		} else {
			b.WriteString(jiraEscapes.Replace(string(r)))
		}
	}
	return b.String()
}

// jiraCell escapes a cell; an empty one needs a space, else it is read as the
// mark of a header.
func jiraCell(text string) string {
	if text = jiraText(text); text == "" {
		return " "
	}
	return text
}
