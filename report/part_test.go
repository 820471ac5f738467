package report

import (
	"reflect"
	"slices"
	"testing"
	"time"
)

// mixed is a part with a column of each sort.
func mixed() part {
	return part{heading: "h", columns: []column{{head: "who", of: "at"}, {of: "code"}, {head: "took ms", figure: "took", unit: times}, {head: "share", unit: shares},
		{figure: "hidden", unit: numbers}, {of: "figure"}, {unit: signs}},
		rows: [][]any{
			{"a", "C1", 1500 * time.Microsecond, 0.25, 7, " of x", "▲"},
			{"", nil, nil, nil, nil, nil, ""},
		},
		figures: []figure{{name: "all", value: 2, unit: numbers}}, notes: []string{"n"}}
}

// People see the columns with a head and those that csv has no use for, and a dash for
// what is not known.
func TestColumnsForMachinesAreNotShown(t *testing.T) {
	b := mixed().block()
	want := table{header: []string{"who", "took ms", "share", ""}, right: []bool{false, true, true, false}, whole: make([]bool, 4),
		rows: [][]string{{"a", "1.50", "25 %", "▲"}, {"–", "–", "–", ""}}}
	if !reflect.DeepEqual(b.table, want) || b.heading != "h" || !slices.Equal(b.text, []string{"n"}) {
		t.Errorf("got  %+v\nwant %+v", b, want)
	}
}

// A figure of a row keeps what the row is of, and one that is not known stays, empty.
func TestFiguresSayWhatTheyAreOf(t *testing.T) {
	var got []string
	for _, f := range mixed().allFigures() {
		got = append(got, f.name+f.of["figure"]+"|"+f.of["at"]+"|"+f.of["code"]+"|"+csvValue(f.value)+"|"+f.unit.name)
	}
	want := []string{"all|||2|count", "took of x|a|C1|1500000|ns", "hidden of x|a|C1|7|count", "took||||ns", "hidden||||count"}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

// A fact whose only figure is not known is a dash; of several each is one. A figure
// without a name is not for csv.
func TestFactsOfWhatIsNotKnown(t *testing.T) {
	p := part{columns: factColumns}
	p.fact("a", "%s ms", "m", figure{name: "a", unit: times})
	p.fact("b", "%s of %s", "m", figure{name: "b", unit: numbers}, figure{value: 3, unit: numbers})
	p.fact("c", "%s ms", "m", figure{name: "c", value: time.Millisecond, unit: times})
	want := [][]string{{"a", "–", "m"}, {"b", "– of 3", "m"}, {"c", "1.00 ms", "m"}}
	if got := p.block().table.rows; !reflect.DeepEqual(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	var names []string
	for _, f := range p.allFigures() {
		names = append(names, f.name)
	}
	if want := []string{"a", "b", "c"}; !slices.Equal(names, want) {
		t.Errorf("figures %q, want %q", names, want)
	}
}

// Each unit has its figures for people and its name in csv, and stands to the right
// where its cells are numbers.
func TestUnits(t *testing.T) {
	for _, c := range []struct {
		unit    unit
		cell    any
		people  string
		name    string
		toRight bool
	}{
		{plain, "x", "x", "", false}, {toRight, "x", "x", "", true}, {numbers, 12345, "12345", "count", true}, {shares, 0.5, "50 %", "share", true},
		{times, 40 * time.Millisecond, "40.0", "ns", true}, {offsets, 40 * time.Millisecond, "+40.0", "ns", true},
		{instants, 40 * time.Millisecond, "40.000", "ns", true}, {shortTimes, 9260945 * time.Nanosecond, "9.261ms", "ns", true},
		{perSecond, 1234.56, "1235", "1/s", true}, {signs, "", "", "", false},
	} {
		if got := c.unit.forPeople(c.cell); got != c.people || c.unit.name != c.name || c.unit.right != c.toRight {
			t.Errorf("%v is %q for people, in %q, to the right: %v; want %+v", c.cell, got, c.unit.name, c.unit.right, c)
		}
		if got := c.unit.forPeople(nil); got != dash {
			t.Errorf("what is not known is %q in %q", got, c.name)
		}
	}
}

// What is not there is a dash for people and nothing for machines.
func TestCells(t *testing.T) {
	at := time.Date(2026, 3, 1, 2, 3, 4, 5, time.FixedZone("", 3600))
	for _, c := range []struct {
		cell             any
		people, machines string
	}{
		{nil, "–", ""}, {"", "–", ""}, {"x", "x", "x"}, {true, "yes", "true"}, {false, "no", "false"}, {0, "0", "0"}, {int64(7), "7", "7"},
		{1.0 / 3, "0.3333", "0.3333333333333333"}, {time.Time{}, "–", ""}, {at, "2026-03-01 01:03:04", "2026-03-01T01:03:04.000000005Z"},
		{1500 * time.Millisecond, "1.5s", "1500000000"},
	} {
		if got := forPeople(c.cell); got != c.people {
			t.Errorf("%v is %q for people, want %q", c.cell, got, c.people)
		}
		if got := forMachines(c.cell); got != c.machines {
			t.Errorf("%v is %q for machines, want %q", c.cell, got, c.machines)
		}
	}
	if got := forPeople(map[string]string{"b": "2", "a": "1"}); got != "a=1, b=2" {
		t.Errorf("labels are %q", got)
	}
	if known[int](nil) != nil || known(ptr(0)) != 0 || unlessZero(0) != nil || unlessZero(7) != 7 || unlessNever(forever) != nil || unlessNever(5) != time.Duration(5) ||
		unlessOpen(forever) != nil || unlessOpen(0) != time.Duration(0) {
		t.Error("a cell of what is known is not that, or there is one of what is not known")
	}
}
