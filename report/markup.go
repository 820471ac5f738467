package report

import (
	"fmt"
	"io"
	"strings"
)

// markup is how a language writes the parts of a page. The formats take one
// escaped text each; plain takes a picture as it is.
type markup struct {
	escape                                     func(string) string
	code                                       func(string) string // a line to be pasted
	title, verdict, lead, heading, item, plain string
	table                                      func(b *strings.Builder, t table) error
}

// write writes in the language.
func (m markup) write(w io.Writer, r Printable) error {
	for i, d := range r.documents() {
		if i > 0 {
			fmt.Fprintln(w)
		}
		if err := m.page(w, d.shown()); err != nil {
			return err
		}
	}
	return nil
}

func (m markup) page(w io.Writer, p page) error {
	var b strings.Builder
	put := func(format, text string) { fmt.Fprintf(&b, format, m.escape(text)) }
	put(m.title, p.title)
	for i, line := range p.lead {
		if i == 0 {
			put(m.verdict, line)
		} else {
			put(m.lead, line)
		}
	}
	for _, block := range p.blocks {
		if block.heading != "" {
			put(m.heading, block.heading)
		}
		if len(block.table.rows) > 0 {
			if err := m.table(&b, block.table); err != nil {
				return err
			}
			b.WriteString("\n")
		}
		if block.plot != nil {
			fmt.Fprintf(&b, m.plain, strings.TrimRight(draw(block.plot), "\n"))
		}
		for _, line := range block.text {
			put(m.item, line)
		}
		if len(block.text) > 0 {
			b.WriteString("\n")
		}
	}
	if p.command != "" {
		put(m.heading, "Command")
		b.WriteString(m.code(p.command))
	}
	_, err := io.WriteString(w, strings.TrimRight(b.String(), "\n")+"\n")
	return err
}

// escaped gives the table with every cell passed through escape.
func escaped(t table, escape func(string) string) table {
	out := table{right: t.right, whole: t.whole}
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
