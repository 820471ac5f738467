package cmd_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"contend/targets/forge/app"
	"contend/targets/forge/apptest"
	"contend/targets/targettest/servers"
)

// block is a fenced block of a page: its language, the name of the file that it
// is the content of, its text.
type block struct{ language, name, text string }

func blocksOf(t *testing.T, page string) []block {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "docs", page))
	if err != nil {
		t.Fatal(err)
	}
	var blocks []block
	inside := false
	for line := range strings.Lines(string(text)) {
		mark, fence := strings.CutPrefix(line, "```")
		switch {
		case fence && !inside:
			language, name, _ := strings.Cut(strings.TrimSpace(mark), " ")
			blocks = append(blocks, block{language: language, name: name})
			inside = true
		case fence:
			inside = false
		case inside:
			blocks[len(blocks)-1].text += line
		}
	}
	return blocks
}

// reader follows a page in a folder of its own.
type reader struct {
	dir     string
	program string
	environ []string
	stand   *strings.Replacer // what the page names, and what stands in for it here
}

func newReader(t *testing.T, stand ...string) *reader {
	t.Helper()
	program, err := built()
	if err != nil {
		t.Fatal(err)
	}
	r := &reader{dir: t.TempDir(), program: program, stand: strings.NewReplacer(stand...)}
	bin := t.TempDir()
	if err := os.Symlink(program, filepath.Join(bin, "contend")); err != nil {
		t.Fatal(err)
	}
	r.environ = append(os.Environ(), "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	return r
}

// shell runs a line and gives what it wrote to standard output.
func (r *reader) shell(t *testing.T, line string) string {
	t.Helper()
	command := exec.Command("sh", "-c", r.stand.Replace(line))
	command.Dir, command.Env = r.dir, r.environ
	out, err := command.Output()
	if err != nil {
		var stderr []byte
		if exit, ok := err.(*exec.ExitError); ok {
			stderr = exit.Stderr
		}
		t.Errorf("$ %s\n%v\n%s%s", line, err, out, stderr)
	}
	return string(out)
}

// serve starts a command that goes on, and gives the first line that it prints.
func (r *reader) serve(t *testing.T, line string) string {
	t.Helper()
	words := strings.Fields(line)
	for i, word := range words {
		if strings.HasPrefix(word, "127.0.0.1:") {
			words[i] = "127.0.0.1:0"
		}
	}
	command := exec.Command(r.program, words[1:]...)
	command.Dir, command.Env = r.dir, r.environ
	out, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = command.Process.Signal(os.Interrupt)
		_ = command.Wait()
	})
	first, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("$ %s: %v", line, err)
	}
	return first
}

// needNode skips where the packages cannot be had, or fails where they must be.
func needNode(t *testing.T) {
	t.Helper()
	for _, program := range []string{"node", "npm"} {
		if _, err := exec.LookPath(program); err != nil {
			if os.Getenv(servers.RequireServers) == "1" {
				t.Fatal(err)
			}
			t.Skip(err)
		}
	}
}

// The page about one's own lock is followed step by step; the packages come from
// a lock file, all of them at the first installation.
func TestDocsTestYourLockLocally(t *testing.T) {
	t.Parallel()
	needNode(t)
	r := newReader(t)
	ran := 0
	var ports []string
	for _, b := range blocksOf(t, "test-your-lock-locally.md") {
		if b.name != "" {
			if err := os.WriteFile(filepath.Join(r.dir, b.name), []byte(b.text), 0o600); err != nil {
				t.Fatal(err)
			}
			continue
		}
		for _, s := range samplesOf("```console\n" + b.text + "```\n") {
			ran++
			got := ""
			switch {
			case strings.HasPrefix(s.command, "contend sim serve"):
				got = r.serve(t, s.command)
				port := regexp.MustCompile(`127\.0\.0\.1:\d+`)
				ports = append(ports, port.FindString(s.command), port.FindString(got))
				r.stand = strings.NewReplacer(ports...)
				r.environ = append(r.environ, "CONTEND_SIM_URL=http://"+ports[1])
			case strings.HasPrefix(s.command, "npm install --save-dev"):
			case strings.HasPrefix(s.command, "npm install"):
				if err := os.CopyFS(r.dir, os.DirFS(filepath.Join("testdata", "node"))); err != nil {
					t.Fatal(err)
				}
				r.shell(t, "npm ci --ignore-scripts --no-audit --no-fund --prefer-offline")
			case strings.HasPrefix(s.command, "npx vitest"):
				got = r.shell(t, s.command)
				r.misspell(t, "lease.test.mjs", "keyPolicy", "keypolicy", s.command)
			default:
				got = r.shell(t, s.command)
			}
			want := s.output
			if !strings.HasPrefix(s.command, "node") {
				got, want = upToNumbers(got), upToNumbers(want)
			}
			if got != want {
				t.Errorf("$ %s\nprints\n%s\nthe page says\n%s", s.command, got, want)
			}
		}
	}
	if ran != 11 {
		t.Errorf("%d commands ran, want 11", ran)
	}
}

// misspell wants a command to fail, in every test, for a word of a file that is
// written otherwise.
func (r *reader) misspell(t *testing.T, file, word, wrong, line string) {
	t.Helper()
	file = filepath.Join(r.dir, file)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(strings.ReplaceAll(string(text), word, wrong)), 0o600); err != nil {
		t.Fatal(err)
	}
	command := exec.Command("sh", "-c", line)
	command.Dir, command.Env = r.dir, r.environ
	out, err := command.Output()
	if err == nil || strings.Count(string(out), "\nnot ok ") != 2 {
		t.Errorf("with %s for %s: $ %s\n%v\n%s", wrong, word, line, err, out)
	}
}

// The page about one's site is followed as far as that goes offline: a host
// stands in for the site's web trigger, and the steps of the Forge CLI are those
// of the app.
func TestDocsMeasureYourSite(t *testing.T) {
	t.Parallel()
	needNode(t)
	url, token := apptest.Host(t, "--latency=1ms..9ms")
	r := newReader(t, "forge+https://TRIGGER", "forge+"+url)
	r.environ = append(r.environ, "CONTEND_FORGE_TOKEN="+token)
	steps := strings.Fields(fmt.Sprint(app.Steps()))
	ran := 0
	for _, b := range blocksOf(t, "measure-your-site.md") {
		for line := range strings.Lines(b.text) {
			line = strings.TrimSpace(line)
			command, isCommand := strings.CutPrefix(line, "$ ")
			switch {
			case b.language == "console" && isCommand:
				ran++
				if out := r.shell(t, command); out == "" {
					t.Errorf("$ %s prints nothing", command)
				}
			case b.language == "sh" && line != "cd contend-app":
				if words := strings.Fields(line); !contains(steps, words) {
					t.Errorf("%q is none of the app's own steps", line)
				}
			}
		}
	}
	if ran != 7 {
		t.Errorf("%d commands ran, want 7", ran)
	}
}

// contains tells whether the words stand together in the text.
func contains(text, words []string) bool {
	for i := range text {
		if len(text)-i >= len(words) && slices.Equal(text[i:i+len(words)], words) {
			return true
		}
	}
	return false
}
