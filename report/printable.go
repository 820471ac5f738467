package report

import (
	"regexp"
	"strconv"
	"strings"
	"unicode"
)

// shown is the document in words. Every text is made fit to be shown: what came from a
// store, a label or somebody's record may hold anything.
func (d document) shown() page {
	p := page{status: d.status, title: d.title, lead: d.lead, command: d.command}
	for _, part := range d.parts {
		p.blocks = append(p.blocks, part.block())
	}
	return p.mapped(sentence, OneLine)
}

// mapped has every text of the page passed through line, and those of cells through cell.
func (p page) mapped(line, cell func(string) string) page {
	lines := func(texts []string) []string {
		var all []string
		for _, text := range texts {
			all = append(all, line(text))
		}
		return all
	}
	out := page{status: p.status, title: line(p.title), lead: lines(p.lead), command: cell(p.command)}
	for _, b := range p.blocks {
		b.heading, b.table, b.text = line(b.heading), escaped(b.table, cell), lines(b.text)
		out.blocks = append(out.blocks, b)
	}
	return out
}

// asciiSigns are the signs of reports without UTF-8. Those of timelines and plots
// are as wide as what they stand for.
var asciiSigns = strings.NewReplacer("–", "-", "—", "-", "·", ".", "…", "...", "✓", "+", "✗", "x", "█", "#", "▓", "=", "░", "-", "†", "*", "±", "+-", "µ", "u",
	"μ", "u", "≥", ">=", "≤", "<=", "×", "x", "│", "|", "─", "-", "┼", "+", "┤", "|", "├", "|", "╭", "/", "╮", "\\", "╰", "\\", "╯", "/", "╴", "-", "╶", "-", "└", "`", "┬", "+",
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

// ones are numbers of one with the plural that a sentence has for all others.
var ones = regexp.MustCompile(`(^|[^-0-9.,:])1 (?:more )?(round|request|contender|edit|editor|winner|key|run|night|question|probe)s\b( (?:are|were|have|count)\b)?`)

// verbs are those of one thing.
var verbs = strings.NewReplacer(" are", " is", " were", " was", " have", " has", " count", " counts")

// sentence is [OneLine] of a text of ours, in which one thing is no plural.
func sentence(text string) string {
	text = OneLine(text)
	var b strings.Builder
	end := 0
	for _, at := range ones.FindAllStringSubmatchIndex(text, -1) {
		b.WriteString(text[end:at[5]]) // without the s
		if end = at[1]; at[6] >= 0 {
			b.WriteString(verbs.Replace(text[at[6]:at[7]]))
		}
	}
	return b.String() + text[end:]
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
