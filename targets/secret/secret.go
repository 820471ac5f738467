// Package secret keeps passwords and tokens out of texts.
package secret

import (
	"cmp"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Masked stands where a secret was.
const Masked = "xxxxx"

// telling is how many characters a secret has that is in no text by chance: it is
// masked wherever it stands.
const telling = 8

// Mask takes secrets out of a text, as they are, percent-encoded and quoted. A short
// one, such as the password p, is masked as a value: not within a word, where it is
// part of Duplicate, but between any other characters, as in user:p@host, password=p
// or "p". An empty one is none.
func Mask(text string, secrets ...string) string {
	var forms []string
	for _, s := range secrets {
		quoted := strconv.Quote(s)
		forms = append(forms, s, url.QueryEscape(s), url.PathEscape(s), quoted[1:len(quoted)-1])
	}
	// The longest first: one may be a part of another.
	slices.SortStableFunc(forms, func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	for _, form := range slices.Compact(forms) {
		text = mask(text, form)
	}
	return text
}

func mask(text, secret string) string {
	if secret == "" {
		return text
	}
	var b strings.Builder
	anywhere := utf8.RuneCountInString(secret) >= telling
	for rest := text; ; {
		i := strings.Index(rest, secret)
		if i < 0 {
			b.WriteString(rest)
			return b.String()
		}
		end := i + len(secret)
		before := text[:len(text)-len(rest)+i]
		if anywhere || !joined(before, secret) && !joined(secret, rest[end:]) {
			b.WriteString(rest[:i] + Masked)
			rest = rest[end:]
			continue
		}
		_, size := utf8.DecodeRuneInString(rest[i:])
		b.WriteString(rest[:i+size])
		rest = rest[i+size:]
	}
}

// joined tells whether a word goes on from the end of one text to the beginning of
// the other.
func joined(a, b string) bool {
	last, _ := utf8.DecodeLastRuneInString(a)
	first, _ := utf8.DecodeRuneInString(b)
	return inWord(last) && inWord(first)
}

func inWord(r rune) bool { return r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsDigit(r)) }
