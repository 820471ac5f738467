package cmd_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// What forge init prints as the next steps stands in the README that it writes,
// and names only commands and flags of contend that there are.
func TestForgeInitStepsAreOfTheReadme(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "app")
	code, stdout, stderr := contend(t, "forge", "init", dir)
	if code != 0 || stderr != "" {
		t.Fatalf("exit %d: %s", code, stderr)
	}
	readme, err := os.ReadFile(filepath.Join(dir, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(readme), "```sh\n")
	block, _, _ := strings.Cut(rest, "```")
	_, steps, found := strings.Cut(stdout, "    cd "+dir+"\n")
	if !found || len(block) == 0 || strings.ReplaceAll("\n"+steps, "\n    ", "\n") != "\n"+block {
		t.Errorf("printed\n%s\nthe README has\n%s", stdout, block)
	}
	for _, m := range regexp.MustCompile("contend ([a-z-]+)( -t '|`)").FindAllStringSubmatch(string(readme), -1) {
		if code, _, stderr := contend(t, m[1], "--help"); code != 0 {
			t.Errorf("the README names contend %s: %s", m[1], stderr)
		}
	}
}
