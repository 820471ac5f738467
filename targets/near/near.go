// Package near finds the name that was probably meant.
package near

import "strings"

// Name gives the candidate that is nearly the name, whatever the case of the
// letters and with _ for -; "" where none is near.
func Name(name string, candidates []string) string {
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
