package cmd_test

import (
	"bytes"
	"strings"
	"testing"

	"contend/cmd"
)

// An argument that a shell has cut off a target is not printed: it may be its password.
func TestStrayArgumentsTellNoSecret(t *testing.T) {
	for _, args := range [][]string{
		{"fail-if-exists", "-t", "host=db", "password=geheim"},
		{"fail-if-exists", "Server=db;Password=geheim"},
		{"fail-if-exists", "redis://user:geheim@db"},
		{"clean", "user:geheim@db"},
	} {
		var out, err bytes.Buffer
		if code := cmd.Run(t.Context(), args, strings.NewReader(""), &out, &err); code != 2 || strings.Contains(out.String()+err.String(), "geheim") || err.Len() == 0 {
			t.Errorf("%q: exit %d, %s%s", args, code, out.String(), err.String())
		}
	}
}
