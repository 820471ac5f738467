package secret

import (
	"fmt"
	"net/url"
	"strconv"
	"testing"
)

func TestMask(t *testing.T) {
	for _, c := range []struct{ text, secret, want string }{
		{"Duplicate entry 'p' for key 'PRIMARY'", "p", "Duplicate entry 'xxxxx' for key 'PRIMARY'"},
		{"mysql://root:p@host:3306/app", "p", "mysql://root:xxxxx@host:3306/app"},
		{"p", "p", "xxxxx"},
		{"password=p host=h", "p", "password=xxxxx host=h"},
		{"pp p.p p_p", "p", "pp xxxxx.xxxxx xxxxx_xxxxx"},
		{"host=Duplicate?password=p&x=pp", "p", "host=Duplicate?password=xxxxx&x=pp"},
		{"Access denied for user root (using password: YES)", "root", "Access denied for user xxxxx (using password: YES)"},
		{"table stable tables Table", "table", "xxxxx stable tables Table"},
		{"x1x 1 11 1", "1", "x1x xxxxx 11 xxxxx"},
		// What begins or ends with a sign is no part of a word.
		{"a#b# x#b#y", "#b#", "axxxxx xxxxxxy"},
		// A telling one is masked wherever it stands.
		{"xcorrecthorsex", "correcthorse", "xxxxxxx"},
		{"a#b/c a%23b%2Fc", "a#b/c", "xxxxx xxxxx"},
		{`said "a\"b"`, `a"b`, `said "xxxxx"`},
		{"äpä p ä", "p", "äpä xxxxx ä"},
		{"\xffp\xff", "p", "\xffxxxxx\xff"},
		{"nothing", "", "nothing"},
		{"", "p", ""},
	} {
		if got := Mask(c.text, c.secret); got != c.want {
			t.Errorf("%q of %q: got %q, want %q", c.secret, c.text, got, c.want)
		}
	}
	if got := Mask("ab-cd and ab", "ab", "ab-cd"); got != "xxxxx and xxxxx" {
		t.Errorf("one within another: %q", got)
	}
}

// Wherever a value can stand in a message of a driver, the secret is not left.
func FuzzMask(f *testing.F) {
	for _, s := range []string{"p", "hunter2", "a b", "%41", `"`, "ä", "xxxxx", "x", "correct horse", "'", "\\"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if s == "" {
			return
		}
		quoted := strconv.Quote(s)
		for _, form := range []string{s, url.QueryEscape(s), url.PathEscape(s), quoted[1 : len(quoted)-1]} {
			for _, place := range []string{"://:%s@:", "=%s", "'%s'", "(%s)", " %s ", "%s", "[%s]:", "<%s>"} {
				text := fmt.Sprintf(place, form)
				if got := Mask(text, s); got == text && form != Masked {
					t.Errorf("%q is left in %q", s, got)
				}
			}
		}
	})
}
