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
		if err := d.writeTerminal(w, screen); err != nil {
			return err
		}
	}
	return nil
}

func (d document) writeTerminal(w io.Writer, screen Screen) error {
	if screen.ASCII {
		d = d.mapped(ASCII, ASCII, ASCII)
	}
	columns := screen.columns()
	wrap := func(text, indent string) string { return strings.Join(wrapTo(text, columns, indent), "\n") }
	var b strings.Builder
	b.WriteString(wrap(d.title, "  ") + "\n")
	for i, line := range d.lead {
		text := wrap(line, "  ")
		if i == 0 && screen.Colour {
			text = paint(text, d.status)
		}
		b.WriteString(text + "\n")
	}
	for _, block := range d.blocks {
		if block.heading != "" {
			fmt.Fprintf(&b, "\n%s\n", wrap(block.heading, ""))
		} else {
			b.WriteString("\n")
		}
		if len(block.table.rows) > 0 {
			width := columns
			if block.wide {
				width = cmp.Or(screen.Width, math.MaxInt)
			}
			if err := writeGrid(&b, block.table, width, screen.ASCII); err != nil {
				return err
			}
		} else if block.heading != "" && block.plain == "" && len(block.text) == 0 {
			b.WriteString("none\n")
		}
		b.WriteString(block.plain)
		for _, line := range block.text {
			b.WriteString(wrap(line, "  ") + "\n")
		}
	}
	if d.command != "" {
		fmt.Fprintf(&b, "\nCommand\n%s\n", d.command)
	}
	_, err := io.WriteString(w, b.String())
	return err
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
			if !t.isWhole(i) && (widest < 0 || w > widths[widest]) {
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
