package runner

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"contend/targets"
)

// The most characters of what a store tells, whatever it sends: in a report a
// code stands in a cell, a message in a line.
const (
	CodeLimit    = 120
	MessageLimit = 1000
)

// mark begins what is written where a text was cut.
const mark = "… (cut: it has "

// Cut shortens a text to so many characters, and says so where it was cut. What
// was cut before stays as it is.
func Cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	n := 0
	for at := range text {
		if n == most {
			if rest := text[at:]; strings.HasPrefix(rest, mark) && len(rest) < 2*len(mark) {
				return text
			}
			return fmt.Sprintf("%s%s%d characters)", text[:at], mark, utf8.RuneCountInString(text))
		}
		n++
	}
	return text
}

// limit cuts the texts of a reply that are for people and in no judgement.
func limit(r *targets.Reply) {
	r.Code, r.Trace, r.Message = Cut(r.Code, CodeLimit), Cut(r.Trace, CodeLimit), Cut(r.Message, MessageLimit)
	for i := range r.Parts {
		limit(&r.Parts[i])
	}
}
