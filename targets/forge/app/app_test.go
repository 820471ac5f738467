package app_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"contend/targets/forge/app"
)

// What is written is every file of the app as it stands here, and nothing else.
func TestWriteTo(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "app")
	if err := app.WriteTo(dir); err != nil {
		t.Fatal(err)
	}
	want := []string{"README.md", "manifest.yml", "package-lock.json", "package.json",
		"src/clock.js", "src/index.js", "src/kvs.js", "src/raw.js", "src/request.js", "src/sql.js", "src/storage.js"}
	if got := app.Files(); !slices.Equal(got, want) {
		t.Errorf("files %q, want %q", got, want)
	}
	for _, name := range app.Files() {
		source, err := os.ReadFile(filepath.FromSlash(name))
		written, errWritten := os.ReadFile(filepath.Join(dir, filepath.FromSlash(name)))
		if err != nil || errWritten != nil || len(source) == 0 || string(source) != string(written) {
			t.Errorf("%s is not as it was: %v, %v", name, err, errWritten)
		}
	}
	if info, err := os.Stat(filepath.Join(dir, "manifest.yml")); err != nil || info.Mode().Perm()&0o200 == 0 {
		t.Errorf("the manifest must be writable, for forge register: %v, %v", info, err)
	}
}

func TestWriteToAnEmptyFolder(t *testing.T) {
	if err := app.WriteTo(t.TempDir()); err != nil {
		t.Error(err)
	}
}

func TestWriteToRefuses(t *testing.T) {
	full := t.TempDir()
	file := filepath.Join(full, "theirs.txt")
	if err := os.WriteFile(file, []byte("theirs"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := app.WriteTo(full); err == nil || !strings.Contains(err.Error(), "is not empty; name a new one") {
		t.Errorf("a folder that is not empty: %v", err)
	}
	if err := app.WriteTo(file); err == nil || !strings.Contains(err.Error(), "cannot hold the app") {
		t.Errorf("a file: %v", err)
	}
	if entries, _ := os.ReadDir(full); len(entries) != 1 {
		t.Errorf("a refused folder was written to: %v", entries)
	}
}

// The steps name what the app's files name.
func TestSteps(t *testing.T) {
	steps := app.Steps()
	for _, want := range []string{"npm ci\n", "forge register ", "forge variables set --encrypt CONTEND_FORGE_TOKEN",
		"forge deploy ", "forge install ", "forge webtrigger create -f contend-trigger ", "contend fail-if-exists -t 'forge+https://", "forge uninstall "} {
		at := strings.Index(steps, want)
		if at < 0 {
			t.Fatalf("no step %q, or not in this order, in\n%s", want, steps)
		}
		steps = steps[at:]
	}
	manifest, err := os.ReadFile("manifest.yml")
	if err != nil || !strings.Contains(string(manifest), "- key: contend-trigger\n") {
		t.Errorf("the manifest has no web trigger contend-trigger: %v", err)
	}
}

// The lock pins each package by its hash, and leaves it to npm's settings where
// packages come from.
func TestLock(t *testing.T) {
	text, err := os.ReadFile("package-lock.json")
	if err != nil {
		t.Fatal(err)
	}
	var lock struct {
		Packages map[string]struct{ Version, Resolved, Integrity string }
	}
	if err := json.Unmarshal(text, &lock); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"@forge/kvs": "1.6.5", "@forge/sql": "4.0.8"} {
		if got := lock.Packages["node_modules/"+name].Version; got != want {
			t.Errorf("%s %q, want %s", name, got, want)
		}
	}
	for path, p := range lock.Packages {
		if path != "" && (p.Resolved != "" || !strings.HasPrefix(p.Integrity, "sha512-")) {
			t.Errorf("%s: resolved %q, integrity %q", path, p.Resolved, p.Integrity)
		}
	}
}
