package report

import (
	"fmt"
	"slices"
	"strconv"
	"time"
)

// part is a part of a result as data. Every look renders the same rows, and format
// csv has the figures in them.
type part struct {
	heading string
	columns []column
	// rows have a cell for each column: a text, a number, a truth, a time, a duration,
	// what has a String method, or nil for what is not known.
	rows  [][]any
	wide  bool // a row keeps to a line off a terminal
	plot  *plot
	notes []string
	// figures are those of the part that are in no row.
	figures []figure
}

// column is a column of a part. One that only format csv uses has no head.
type column struct {
	head   string
	unit   unit
	whole  bool   // its cells are not broken
	figure string // what format csv calls the cells; "": they are no figures there
	// of is the column of format csv that has the cells, to say what the row's figures
	// are of: outcome, at, where, code, status, or figure, where they end the name.
	of string
}

func (c column) forPeople() bool { return c.head != "" || c.figure == "" && c.of == "" }

// figure is a number with its name: a row of format csv. One without a name is for
// people only.
type figure struct {
	name  string
	value any
	unit  unit
	of    map[string]string // as the of of a column
}

// unit says how people see the cells of a column.
type unit struct {
	name  string // in format csv
	right bool
	write func(cell any) string // of a cell that is known; nil: as any list has it
}

var (
	plain      = unit{}
	toRight    = unit{right: true}
	numbers    = unit{name: "count", right: true}
	shares     = unit{"share", true, func(cell any) string { return percent(cell.(float64)) }}
	times      = unit{"ns", true, func(cell any) string { return milliseconds(cell.(time.Duration)) }}
	offsets    = unit{"ns", true, func(cell any) string { return signedMilliseconds(cell.(time.Duration)) }}
	instants   = unit{"ns", true, func(cell any) string { return fmt.Sprintf("%.3f", float64(cell.(time.Duration))/1e6) }}
	shortTimes = unit{"ns", true, func(cell any) string { return short(cell.(time.Duration)).String() }}
	perSecond  = unit{"1/s", true, func(cell any) string { return fmt.Sprintf("%.4g", cell) }}
	signs      = unit{write: func(cell any) string { return cell.(string) }}
)

func (u unit) forPeople(cell any) string {
	if cell == nil || u.write == nil {
		return forPeople(cell)
	}
	return u.write(cell)
}

// plainColumns are columns of texts.
func plainColumns(heads ...string) []column {
	columns := make([]column, len(heads))
	for i, head := range heads {
		columns[i].head = head
	}
	return columns
}

// factColumns are those of a part whose rows are facts.
var factColumns = plainColumns("figure", "value", "meaning")

// fact adds a row for one thing or a few that belong together. The format takes the
// figures as people see them; an only figure that is not known is a dash.
func (p *part) fact(name, format, meaning string, figures ...figure) {
	texts := make([]any, len(figures))
	for i, f := range figures {
		texts[i] = f.unit.forPeople(f.value)
		if f.name != "" {
			p.figures = append(p.figures, f)
		}
	}
	value := dash
	if len(figures) != 1 || figures[0].value != nil {
		value = fmt.Sprintf(format, texts...)
	}
	p.rows = append(p.rows, []any{name, value, meaning})
}

// allFigures are those of the part and those in its rows.
func (p part) allFigures() []figure {
	all := slices.Clone(p.figures)
	for _, row := range p.rows {
		of := make(map[string]string)
		for i, c := range p.columns {
			if c.of != "" {
				of[c.of] = forMachines(row[i])
			}
		}
		for i, c := range p.columns {
			if c.figure != "" {
				all = append(all, figure{c.figure, row[i], c.unit, of})
			}
		}
	}
	return all
}

// block is the part as people see it.
func (p part) block() block {
	b := block{heading: p.heading, wide: p.wide, plot: p.plot, text: p.notes}
	for _, c := range p.columns {
		if c.forPeople() {
			b.table.header = append(b.table.header, c.head)
			b.table.right = append(b.table.right, c.unit.right)
			b.table.whole = append(b.table.whole, c.whole)
		}
	}
	for _, row := range p.rows {
		var cells []string
		for i, c := range p.columns {
			if c.forPeople() {
				cells = append(cells, c.unit.forPeople(row[i]))
			}
		}
		b.table.rows = append(b.table.rows, cells)
	}
	return b
}

// known is a cell of what may not be known.
func known[T any](v *T) any {
	if v == nil {
		return nil
	}
	return *v
}

// unlessZero is a cell of a number that is not there where it is 0.
func unlessZero(n int) any {
	if n == 0 {
		return nil
	}
	return n
}

// forPeople writes a cell of any list.
func forPeople(cell any) string {
	switch cell := cell.(type) {
	case nil:
		return dash
	case bool:
		if cell {
			return "yes"
		}
		return "no"
	case float64:
		return strconv.FormatFloat(cell, 'g', 4, 64)
	case time.Time:
		if cell.IsZero() {
			return dash
		}
		return cell.UTC().Format("2006-01-02 15:04:05")
	case map[string]string:
		return orDash(pairs(cell, ", "))
	default:
		return orDash(fmt.Sprint(cell))
	}
}

// forMachines writes a cell: durations in nanoseconds, times as RFC 3339 has them,
// and what is not known as nothing. A text is as it is.
func forMachines(cell any) string {
	switch cell := cell.(type) {
	case nil:
		return ""
	case time.Time:
		if cell.IsZero() {
			return ""
		}
		return cell.UTC().Format(time.RFC3339Nano)
	case time.Duration:
		return strconv.FormatInt(int64(cell), 10)
	default:
		return fmt.Sprint(cell)
	}
}
