package report

import (
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// printable makes every text of the document fit to be shown: what came from a
// store, a label or somebody's record may hold anything.
func (d document) printable() document {
	out := document{status: d.status, title: OneLine(d.title), command: OneLine(d.command)}
	for _, line := range d.lead {
		out.lead = append(out.lead, OneLine(line))
	}
	for _, b := range d.blocks {
		b.heading, b.table, b.plain = OneLine(b.heading), escaped(b.table, OneLine), Lines(b.plain)
		b.text = slices.Clone(b.text)
		for i := range b.text {
			b.text[i] = OneLine(b.text[i])
		}
		out.blocks = append(out.blocks, b)
	}
	return out
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
