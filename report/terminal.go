package report

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/olekukonko/tablewriter"
	"github.com/olekukonko/tablewriter/renderer"
	"github.com/olekukonko/tablewriter/tw"

	"contend/scenarios"
)

// widest and least columns that a table keeps to; off a terminal it is the widest.
const (
	widestScreen = 100
	leastScreen  = 60
)

// Screen is what a table can use of where it is written to.
type Screen struct {
	Colour bool
	Width  int  // columns; 0: not known
	ASCII  bool // it shows nothing else
}

func (s Screen) columns() int {
	if s.Width == 0 {
		return widestScreen
	}
	return min(max(s.Width, leastScreen), widestScreen)
}

// writeTerminal writes format table. Colour marks the verdict alone.
func writeTerminal(w io.Writer, r Printable, screen Screen) error {
	for i, d := range r.documents() {
		if i > 0 {
			fmt.Fprintln(w)
		}
		if err := d.shown().writeTerminal(w, screen); err != nil {
			return err
		}
	}
	return nil
}

func (p page) writeTerminal(w io.Writer, screen Screen) error {
	if screen.ASCII {
		p = p.mapped(ASCII, ASCII)
	}
	wrap := func(text, indent string) string {
		return strings.Join(wrapTo(text, screen.columns(), indent), "\n") + "\n"
	}
	var b strings.Builder
	b.WriteString(wrap(p.title, "  "))
	for i, line := range p.lead {
		text := wrap(line, "  ")
		if i == 0 && screen.Colour {
			text = paint(strings.TrimSuffix(text, "\n"), p.status) + "\n"
		}
		b.WriteString(text)
	}
	for _, block := range p.blocks {
		b.WriteString("\n")
		if block.heading != "" {
			b.WriteString(wrap(block.heading, ""))
		}
		if err := block.writeTerminal(&b, screen); err != nil {
			return err
		}
		for _, line := range block.text {
			b.WriteString(wrap(line, "  "))
		}
	}
	if p.command != "" {
		fmt.Fprintf(&b, "\nCommand\n%s\n", p.command)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// writeTerminal writes what stands between the heading and the texts.
func (b block) writeTerminal(w *strings.Builder, screen Screen) error {
	picture := draw(b.plot)
	if screen.ASCII {
		picture = ASCII(picture)
	}
	if len(b.table.rows) == 0 {
		if b.heading != "" && picture == "" && len(b.text) == 0 {
			picture = "none\n"
		}
		w.WriteString(picture)
		return nil
	}
	width := screen.columns()
	if b.wide {
		width = cmp.Or(screen.Width, math.MaxInt)
	}
	if err := writeGrid(w, b.table, width, screen.ASCII); err != nil {
		return err
	}
	w.WriteString(picture)
	return nil
}

func paint(text string, status scenarios.Status) string {
	code := map[string]string{"held": "32", "violated": "31"}[string(status)]
	if code == "" {
		code = "33"
	}
	return "\x1b[1;" + code + "m" + text + "\x1b[0m"
}

// wrapTo breaks text at spaces, and words that are wider than a line anywhere.
func wrapTo(text string, width int, indent string) []string {
	var lines []string
	line, empty := "", true
	for _, word := range words(text) {
		for {
			joined := word
			if !empty {
				joined = line + " " + word
			} else if len(lines) > 0 {
				joined = indent + word
			}
			if len([]rune(joined)) <= width {
				line, empty = joined, false
				break
			}
			if !empty {
				lines, line, empty = append(lines, line), "", true
				continue
			}
			whole := []rune(joined)
			lines, word = append(lines, string(whole[:width])), string(whole[width:])
		}
	}
	return append(lines, line)
}

// separator is what a table puts between two columns, and outside of them.
const separator = len(" | ")

// words splits a text where a line may break: a sign of per cent stays with its number.
func words(text string) []string {
	var all []string
	for _, word := range strings.Fields(text) {
		if n := len(all); n > 0 && strings.HasPrefix(word, "%") {
			all[n-1] += " " + word
		} else {
			all = append(all, word)
		}
	}
	return all
}

// narrowest is the least that a column is squeezed to.
const narrowest = 6

// fit wraps the cells so that the table keeps to the columns of the screen: the
// widest columns give way.
func fit(t table, columns int) table {
	widths := make([]int, len(t.header))
	for _, row := range append([][]string{t.header}, t.rows...) {
		for i, cell := range row {
			widths[i] = max(widths[i], len([]rune(cell)))
		}
	}
	for {
		total, widest := separator*len(widths)-1, -1
		for i, w := range widths {
			total += w
			if !t.whole[i] && (widest < 0 || w > widths[widest]) {
				widest = i
			}
		}
		if total <= columns || widest < 0 || widths[widest] <= narrowest {
			break
		}
		widths[widest]--
	}
	out := table{right: t.right, whole: t.whole}
	wrapRow := func(row []string) []string {
		cells := make([]string, len(row))
		for i, cell := range row {
			cells[i] = strings.Join(wrapTo(cell, widths[i], ""), "\n")
		}
		return cells
	}
	out.header = wrapRow(t.header)
	for _, row := range t.rows {
		out.rows = append(out.rows, wrapRow(row))
	}
	return out
}

func writeGrid(w io.Writer, t table, columns int, ascii bool) error {
	var b strings.Builder
	style := tw.StyleLight
	if ascii {
		style = tw.StyleASCII
	}
	grid := tablewriter.NewTable(&b,
		tablewriter.WithRenderer(renderer.NewBlueprint(tw.Rendition{
			Borders: tw.Border{Left: tw.Off, Right: tw.Off, Top: tw.Off, Bottom: tw.Off},
			Symbols: tw.NewSymbols(style),
		})),
		tablewriter.WithHeaderAutoFormat(tw.Off),
		tablewriter.WithHeaderAlignment(tw.AlignLeft),
		tablewriter.WithAlignment(alignments(t.right)),
		tablewriter.WithRowAutoWrap(tw.WrapNone),
		tablewriter.WithHeaderAutoWrap(tw.WrapNone),
		tablewriter.WithEastAsian(tw.Off),
	)
	if err := fill(grid, fit(t, columns)); err != nil {
		return err
	}
	for line := range strings.Lines(b.String()) {
		if _, err := fmt.Fprintln(w, strings.TrimRight(line, " \n")); err != nil {
			return err
		}
	}
	return nil
}

func alignments(right []bool) tw.Alignment {
	a := make(tw.Alignment, len(right))
	for i, r := range right {
		a[i] = tw.AlignLeft
		if r {
			a[i] = tw.AlignRight
		}
	}
	return a
}

func fill(grid *tablewriter.Table, t table) error {
	header := make([]any, len(t.header))
	for i, h := range t.header {
		header[i] = h
	}
	grid.Header(header...)
	for _, row := range t.rows {
		if err := grid.Append(row); err != nil {
			return err
		}
	}
	return grid.Render()
}
