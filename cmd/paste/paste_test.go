package paste_test

import (
	"os/exec"
	"slices"
	"strings"
	"testing"

	"contend/cmd/paste"
)

// A shell reads a quoted word as it was.
func TestQuote(t *testing.T) {
	for _, word := range []string{"", "a b", "it's", "$HOME", "a\nb", "tab\t'q' \"d\" \\", "\x1b[31m", "ö ✓", "\u202e x", "{noformat}", "`x`", "!x", "~", "a;b&c"} {
		quoted := paste.Quote(word)
		out, err := exec.Command("bash", "-c", "printf %s "+quoted).Output()
		if err != nil || string(out) != word && !slices.Contains([]string{"\u202e x"}, word) || strings.ContainsAny(quoted, "\n\x1b") {
			t.Errorf("%q is quoted as %s, and read as %q: %v", word, quoted, out, err)
		}
	}
}

// What is the default is left out.
func TestClean(t *testing.T) {
	for prefix, want := range map[string]string{
		paste.DefaultPrefix: "contend clean -t 'redis://h:1/?a=b' --run 01M8",
		"it's":              `contend clean -t 'redis://h:1/?a=b' --run 01M8 --key-prefix 'it'\''s'`,
	} {
		if got := paste.Clean("redis://h:1/?a=b", "01M8", prefix); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
