package suite

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// differences gives, for each scenario, the parameters in which its runs without a
// name differ.
func differences(entries []*entry) map[*Scenario]map[string]bool {
	differing := make(map[*Scenario]map[string]bool)
	first := make(map[*Scenario]*entry)
	for _, e := range entries {
		if e.name != "" || e.scenario == nil {
			continue
		}
		other := first[e.scenario]
		if other == nil {
			first[e.scenario], differing[e.scenario] = e, make(map[string]bool)
			continue
		}
		for _, a := range slices.Concat(e.axes, other.axes) {
			if e.written(a.name) != other.written(a.name) {
				differing[e.scenario][a.name] = true
			}
		}
	}
	return differing
}

// written gives all that is written of a parameter.
func (e *entry) written(name string) string {
	var all []string
	for _, a := range e.axes {
		if a.name == name {
			for _, c := range a.choices {
				all = append(all, c.written)
			}
		}
	}
	return strings.Join(all, " ")
}

// inName gives a value as a part of a name.
func inName(value string) string {
	if value == "" || strings.ContainsFunc(value, func(c rune) bool { return unicode.IsSpace(c) || isControl(c) || c == '"' }) {
		return strconv.Quote(value)
	}
	return value
}

func isControl(c rune) bool { return unicode.IsControl(c) || c == '\u2028' || c == '\u2029' }

// number makes names unique: the second of a name becomes "name #2".
func number(runs []Run) {
	taken := make(map[string]bool)
	for _, run := range runs {
		taken[run.Name] = true
	}
	seen := make(map[string]bool)
	next := make(map[string]int)
	for i := range runs {
		name := runs[i].Name
		if !seen[name] {
			seen[name], next[name] = true, 2
			continue
		}
		for taken[runs[i].Name] {
			runs[i].Name = fmt.Sprintf("%s #%d", name, next[name])
			next[name]++
		}
	}
}

// suggestion gives ": did you mean X?" for the candidate that is nearly the name,
// otherwise what is given.
func suggestion(name string, candidates []string, otherwise string) string {
	if best := Nearest(name, candidates); best != "" {
		return ": did you mean " + best + "?"
	}
	return otherwise
}

// Nearest gives the candidate that a mistyped name was meant to be, "": none.
func Nearest(name string, candidates []string) string {
	plain := func(s string) []rune {
		return []rune(strings.ToLower(strings.ReplaceAll(strings.TrimLeft(s, "-"), "_", "-")))
	}
	typed := plain(name)
	best, least := "", 3
	for _, c := range candidates {
		meant := plain(c)
		limit := min(2, max(1, min(len(typed), len(meant))/3))
		if d := distance(typed, meant, limit); d <= limit && d < least {
			best, least = c, d
		}
	}
	return best
}

// distance counts the letters to insert, drop, change or swap with the next that
// make b of a; where it is over limit, it is only known to be.
func distance(a, b []rune, limit int) int {
	if max(len(a), len(b))-min(len(a), len(b)) > limit {
		return limit + 1
	}
	// rows[i][j] is the distance of the first i letters of a and the first j of b.
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		for j := range rows[i] {
			switch {
			case i == 0 || j == 0:
				rows[i][j] = i + j
			default:
				change := rows[i-1][j-1]
				if a[i-1] != b[j-1] {
					change++
				}
				rows[i][j] = min(change, rows[i-1][j]+1, rows[i][j-1]+1)
				if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
					rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
				}
			}
		}
	}
	return rows[len(a)][len(b)]
}
