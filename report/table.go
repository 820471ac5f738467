package report

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"
)

// Table is a list, for people in some formats and for machines in others.
type Table struct {
	Name    string // of the rows, in JSON
	Title   string
	Columns []Column
	// Rows have a cell for each column: a text, a number, a truth, a time, a
	// duration, labels (a map), or nil for what is not known.
	Rows  [][]any
	Whole []string // names of columns whose cells people copy: they are not broken
	Notes []string // for people, at the end
	// Also are members of the JSON object beside the rows.
	Also map[string]any
}

// Column is a column of a Table.
type Column struct {
	Head string // for people; empty: for machines only
	Name string // for machines; empty: for people only
}

func (t Table) documents() []document {
	return []document{{title: t.Title, parts: []part{t.part()}}}
}

// lines are the first column alone.
func (t Table) lines() []string {
	var lines []string
	for _, row := range t.Rows {
		lines = append(lines, forPeople(row[0]))
	}
	return lines
}

// part gives what people see of the rows. Numbers stand to the right.
func (t Table) part() part {
	p := part{wide: true, rows: make([][]any, len(t.Rows)), notes: t.Notes}
	for i, c := range t.Columns {
		if c.Head == "" {
			continue
		}
		unit := toRight
		for at, row := range t.Rows {
			p.rows[at] = append(p.rows[at], row[i])
			switch row[i].(type) {
			case int, int64, float64, time.Duration, nil:
			default:
				unit = plain
			}
		}
		p.columns = append(p.columns, column{head: c.Head, unit: unit, whole: slices.Contains(t.Whole, c.Name)})
	}
	return p
}

// pairs writes labels, in order.
func pairs(labels map[string]string, between string) string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		all = append(all, name+"="+labels[name])
	}
	return strings.Join(all, between)
}

// MarshalIndent gives one object, the rows as objects in it; durations are in
// nanoseconds.
func (t Table) MarshalIndent() ([]byte, error) {
	rows := make([]json.RawMessage, 0, len(t.Rows))
	for _, row := range t.Rows {
		var b strings.Builder
		for i, c := range t.Columns {
			if c.Name == "" {
				continue
			}
			value, err := json.Marshal(forJSON(row[i]))
			if err != nil {
				return nil, err
			}
			name, _ := json.Marshal(c.Name)
			fmt.Fprintf(&b, ",%s:%s", name, value)
		}
		rows = append(rows, json.RawMessage("{"+strings.TrimPrefix(b.String(), ",")+"}"))
	}
	all := map[string]any{t.Name: rows}
	maps.Copy(all, t.Also)
	return marshalIndent(all)
}

func forJSON(cell any) any {
	if t, ok := cell.(time.Time); ok {
		if t.IsZero() {
			return nil
		}
		return t.UTC()
	}
	return cell
}

func (t Table) writeCSV(w io.Writer) error {
	return StreamCSV(w, t.Columns, func(yield func([]any, error) bool) {
		for _, row := range t.Rows {
			if !yield(row, nil) {
				return
			}
		}
	})
}

func machineHeader(columns []Column) []string {
	var header []string
	for _, c := range columns {
		if c.Name != "" {
			header = append(header, c.Name)
		}
	}
	return header
}

func machineRow(columns []Column, row []any) []string {
	var cells []string
	for i, c := range columns {
		if c.Name == "" {
			continue
		}
		switch cell := row[i].(type) {
		case map[string]string:
			cells = append(cells, csvLabels(cell))
		case string:
			cells = append(cells, csvText(cell))
		default:
			cells = append(cells, forMachines(cell))
		}
	}
	return cells
}

// StreamCSV writes rows as CSV as they come.
func StreamCSV(w io.Writer, columns []Column, rows iter.Seq2[[]any, error]) error {
	out := csv.NewWriter(w)
	_ = out.Write(machineHeader(columns))
	for row, err := range rows {
		if err != nil {
			out.Flush()
			return err
		}
		if err := out.Write(machineRow(columns, row)); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}
