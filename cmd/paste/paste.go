// Package paste writes commands that a user can paste into a shell.
package paste

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode"
)

// DefaultPrefix is what keys begin with unless --key-prefix says otherwise.
const DefaultPrefix = "contend-"

// Clean removes what a run wrote to a target, whose URL has its secrets masked.
func Clean(url, run, prefix string) string {
	command := fmt.Sprintf("contend clean -t %s --run %s", Quote(url), run)
	if prefix != DefaultPrefix {
		command += " --key-prefix " + Quote(prefix)
	}
	return command
}

var plainWord = regexp.MustCompile(`^[a-zA-Z0-9_./:@%+,=-]+$`)

// Quote gives a word as a shell reads it.
func Quote(word string) string {
	if plainWord.MatchString(word) {
		return word
	}
	if strings.ContainsFunc(word, func(r rune) bool { return !unicode.IsPrint(r) }) {
		// As bash, zsh and ksh read it, on one line.
		quoted := strconv.Quote(word)
		return "$'" + strings.NewReplacer(`\"`, `"`, "'", `\'`).Replace(quoted[1:len(quoted)-1]) + "'"
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
