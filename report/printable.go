package report

import (
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// printable makes every text of the document fit to be shown: what came from a
// store, a label or somebody's record may hold anything.
func (d document) printable() document { return d.mapped(OneLine, Lines) }

// mapped has every text of the document passed through line, and those of several
// lines through lines.
func (d document) mapped(line, lines func(string) string) document {
	out := document{status: d.status, title: line(d.title), command: line(d.command)}
	for _, text := range d.lead {
		out.lead = append(out.lead, line(text))
	}
	for _, b := range d.blocks {
		b.heading, b.table, b.plain = line(b.heading), escaped(b.table, line), lines(b.plain)
		b.text = slices.Clone(b.text)
		for i := range b.text {
			b.text[i] = line(b.text[i])
		}
		out.blocks = append(out.blocks, b)
	}
	return out
}

// asciiSigns are the signs of reports without UTF-8. Those of timelines and plots
// are as wide as what they stand for.
var asciiSigns = strings.NewReplacer("–", "-", "—", "-", "·", ".", "…", "...", "✓", "+", "✗", "x", "█", "#", "▓", "=", "░", "-", "†", "*", "±", "+-", "µ", "u",
	"μ", "u", "≥", ">=", "≤", "<=", "×", "x", "│", "|", "─", "-", "┼", "+", "┤", "|", "├", "|", "╭", "/", "╮", "\\", "╰", "\\", "╯", "/", "╴", "-", "╶", "-",
	"▲", "^", "▼", "v", "●", "o", "○", "o", "→", "->", "’", "'")

// ASCII is a text for a screen that shows nothing else: with other signs, and the
// letters that are left written as Go does in a string.
func ASCII(text string) string {
	var b strings.Builder
	for _, r := range asciiSigns.Replace(text) {
		if r < unicode.MaxASCII {
			b.WriteRune(r)
		} else {
			b.WriteString(strings.Trim(strconv.QuoteRuneToASCII(r), "'"))
		}
	}
	return b.String()
}

// OneLine is a text as [Lines] writes it, with spaces for its breaks.
func OneLine(text string) string {
	return Lines(strings.Join(strings.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == '\r' }), " "))
}

// Lines makes a text fit for a terminal and a file that people read: control
// characters, but for the ends of lines, and those that turn the direction of
// text or have no width are written as Go does in a string; broken UTF-8 becomes
// U+FFFD.
func Lines(text string) string {
	var b strings.Builder
	for _, r := range strings.ToValidUTF8(text, "\ufffd") {
		if r == '\n' || unicode.IsPrint(r) {
			b.WriteRune(r)
		} else {
			b.WriteString(strings.Trim(strconv.QuoteRune(r), "'"))
		}
	}
	return b.String()
}
