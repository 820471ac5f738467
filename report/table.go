package report

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"maps"
	"slices"
	"strconv"
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
	Plain string   // for people, after the rows, in a fixed width
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
	b := block{table: t.grid(), wide: true, plain: t.Plain, text: t.Notes}
	return []document{document{title: t.Title, blocks: []block{b}}.printable()}
}

// lines are the first column alone.
func (t Table) lines() []string {
	var lines []string
	for _, row := range t.Rows {
		lines = append(lines, forPeople(row[0]))
	}
	return lines
}

// grid gives what people see of the rows.
func (t Table) grid() table {
	var g table
	for i, c := range t.Columns {
		if c.Head == "" {
			continue
		}
		g.header, g.whole = append(g.header, c.Head), append(g.whole, slices.Contains(t.Whole, c.Name))
		right := len(t.Rows) > 0
		for _, row := range t.Rows {
			switch row[i].(type) {
			case int, int64, float64, time.Duration, nil:
			default:
				right = false
			}
		}
		g.right = append(g.right, right)
	}
	for _, row := range t.Rows {
		var cells []string
		for i, c := range t.Columns {
			if c.Head != "" {
				cells = append(cells, forPeople(row[i]))
			}
		}
		g.rows = append(g.rows, cells)
	}
	return g
}

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
			value, err := json.Marshal(forMachines(row[i]))
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
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	err := e.Encode(all)
	return b.Bytes(), err
}

func forMachines(cell any) any {
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
		cell := ""
		switch v := forMachines(row[i]).(type) {
		case nil:
		case time.Time:
			cell = v.Format(time.RFC3339Nano)
		case time.Duration:
			cell = strconv.FormatInt(int64(v), 10)
		case map[string]string:
			cell = csvLabels(v)
		case bool, int, int64, float64:
			cell = fmt.Sprint(v)
		default:
			cell = csvText(fmt.Sprint(v))
		}
		cells = append(cells, cell)
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
