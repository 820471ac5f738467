package server

import (
	"slices"
	"strings"
	"unicode"
)

// returningRows are the verbs of statements that answer with rows.
var returningRows = []string{"SELECT", "SHOW", "DESCRIBE", "DESC", "EXPLAIN", "ANALYZE", "CHECK", "TABLE", "VALUES"}

// verb gives the keyword, in capitals, that says what a statement does: its
// first, or the one that follows the tables of a WITH.
func verb(query string) string {
	depth, with := 0, false
	for query != "" {
		query = skipBlank(query)
		switch {
		case query == "":
		case query[0] == '(':
			depth++
			query = query[1:]
		case query[0] == ')':
			depth--
			query = query[1:]
		case strings.ContainsRune("'\"`", rune(query[0])):
			query = skipQuoted(query)
		default:
			end := strings.IndexFunc(query, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '_' })
			if end < 0 {
				end = len(query)
			}
			word := strings.ToUpper(query[:end])
			query = query[max(1, end):]
			switch {
			case word == "WITH":
				with, depth = true, 0
			case word != "" && !with, depth == 0 && slices.Contains([]string{"SELECT", "UPDATE", "DELETE", "INSERT", "REPLACE"}, word):
				return word
			}
		}
	}
	return ""
}

// skipBlank skips white space and comments.
func skipBlank(query string) string {
	for {
		query = strings.TrimLeftFunc(query, unicode.IsSpace)
		end := ""
		switch {
		case strings.HasPrefix(query, "#"), strings.HasPrefix(query, "-- "), strings.HasPrefix(query, "--\n"):
			end = "\n"
		case strings.HasPrefix(query, "/*"):
			end = "*/"
		default:
			return query
		}
		_, query, _ = strings.Cut(query, end)
	}
}

// skipQuoted skips a quoted text or name; a doubled quote is two of them.
func skipQuoted(query string) string {
	for i := 1; i < len(query); i++ {
		switch query[i] {
		case '\\':
			i++
		case query[0]:
			return query[i+1:]
		}
	}
	return ""
}
