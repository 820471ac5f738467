package cmd_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"contend/report/store"
)

// paths gives ways to one file: by its name, beside itself, by a folder that is a
// link, by a symbolic and by a hard link.
func paths(t *testing.T, file string) map[string]string {
	t.Helper()
	folder := filepath.Dir(file)
	at := func(name string) string { return filepath.Join(t.TempDir(), name) }
	soft, hard, linked := at("soft"), filepath.Join(folder, "hard-"+filepath.Base(file)), at("folder")
	for _, err := range []error{os.Symlink(file, soft), os.Link(file, hard), os.Symlink(folder, linked)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return map[string]string{"name": file, "detour": filepath.Dir(file) + "/../" + filepath.Base(folder) + "/" + filepath.Base(file),
		"linked folder": filepath.Join(linked, filepath.Base(file)), "symbolic link": soft, "hard link": hard}
}

// Whatever a command reads or keeps results in is not written over, by whatever
// path, and nor is what it has nothing to do with but looks like the user's.
func TestNothingOfTheUsersIsWrittenOver(t *testing.T) {
	const oneRun = "runs:\n  - scenario: fail-if-exists\n    target: sim:?latency=5ms\n    contenders: 2\n    rounds: 1\n    min-contended: 1\n"
	at := filepath.Join(t.TempDir(), "real")
	if err := os.Mkdir(at, 0o700); err != nil {
		t.Fatal(err)
	}
	suite, record, kept, probed := filepath.Join(at, "s.yaml"), filepath.Join(at, "run.jsonl"), filepath.Join(at, "nights.db"), filepath.Join(at, "probe.json")
	write(t, suite, oneRun, 0o600)
	for _, args := range [][]string{
		{"fail-if-exists", "-t", "sim:?latency=5ms", "-n", "2", "-r", "1", "--min-contended", "1", "-q", "--record", record, "--store", kept},
		{"probe", "--only", "create", "-q", "-o", "json=" + probed},
	} {
		if code, _, stderr := contend(t, args...); code != 0 {
			t.Fatalf("%v: exit %d: %s", args, code, stderr)
		}
	}
	race := []string{"fail-if-exists", "-n", "2", "-r", "1", "-t", "sim:?latency=5ms"}
	for _, c := range []struct {
		file string
		args []string // the path is put in the place of FILE
	}{
		{kept, []string{"results", "list", "--store", kept, "-o", "csv=FILE"}},
		{kept, []string{"results", "show", "01", "--store", kept, "-o", "json=FILE"}},
		{kept, []string{"results", "ghosts", "--store", kept, "-o", "markdown=FILE"}},
		{kept, []string{"results", "trend", "--store", kept, "-o", "jira=FILE"}},
		{kept, append(race, "--store", kept, "-o", "json=FILE")},
		{kept, append(race, "--store", kept, "--record", "FILE")},
		{kept, append(race, "-o", "json=FILE")}, // a store that the command has nothing to do with
		{kept, append(race, "--record", "FILE")},
		{kept, append(race, "-n", "2,3", "--store", kept, "-o", "quiet=FILE")},
		{kept, []string{"run", suite, "--store", kept, "-o", "table=FILE"}},
		{kept, []string{"nightly", suite, "--store", kept, "-o", "table=FILE"}},
		{kept, []string{"judge", record, "-o", "csv=FILE"}},
		{record, []string{"judge", record, "-o", "json=FILE"}},
		{record, append(race, "-o", "csv=FILE")},
		{record, append(race, "--record", record, "-o", "csv=FILE")},
		{suite, []string{"run", suite, "-o", "json=FILE"}},
		{suite, []string{"run", suite, "--dry-run", "-o", "json=FILE"}},
		{suite, []string{"run", suite, "--store", "FILE"}},
		{suite, []string{"nightly", suite, "--store", kept, "-o", "json=FILE"}},
		{suite, append(race, "-o", "json=FILE")},
		{suite, append(race, "--record", "FILE")},
		{probed, []string{"probe", "--since", probed, "-o", "json=FILE"}},
		{probed, []string{"probe", "--since", probed, "--record", "FILE"}},
		{probed, []string{"probe", "--since", probed, "--store", "FILE"}},
	} {
		before, err := os.ReadFile(c.file)
		if err != nil {
			t.Fatal(err)
		}
		for how, path := range paths(t, c.file) {
			var args []string
			for _, a := range c.args {
				args = append(args, strings.ReplaceAll(a, "FILE", path))
			}
			code, _, stderr := contend(t, args...)
			after, err := os.ReadFile(c.file)
			if err != nil || !bytes.Equal(before, after) {
				t.Fatalf("%s: %v: the file was changed: %v", how, args, err)
			}
			if code != 2 || !strings.Contains(stderr, "is the file of ") && !strings.Contains(stderr, "which would be lost; name another file") {
				t.Errorf("%s: %v: exit %d: %s", how, args, code, stderr)
			}
		}
		os.Remove(filepath.Join(filepath.Dir(c.file), "hard-"+filepath.Base(c.file)))
	}
}

// Two outputs are not written into one file, nor one into what SQLite keeps beside
// a store, and a path whose link leads nowhere yet is followed too.
func TestOutputsAreApart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	there, link := filepath.Join(dir, "out"), filepath.Join(dir, "link")
	if err := os.Symlink("out", link); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{"-o", "json=" + there, "-o", "csv=" + there}, "is the file of --output json"},
		{[]string{"-o", "json=" + there, "-o", "csv=" + link}, "is the file of --output json"},
		{[]string{"-o", "json=" + there, "-o", "csv=" + dir + "/../" + filepath.Base(dir) + "/out"}, "is the file of --output json"},
		{[]string{"-o", "json=" + link, "--record", there}, "is the file of --record"},
		{[]string{"--store", there, "--record", link}, `--record "` + link + `": is the file of --store`},
		{[]string{"--store", there, "-o", "csv=" + there + "-wal"}, "is the file of --store"},
		{[]string{"--store", there, "--record", there + "-journal"}, "is the file of --store"},
	} {
		code, _, stderr := contend(t, append([]string{"fail-if-exists", "-n", "2", "-r", "1"}, c.args...)...)
		if code != 2 || !strings.Contains(stderr, c.says) {
			t.Errorf("%v: exit %d: %s", c.args, code, stderr)
		}
		if _, err := os.Stat(there); !os.IsNotExist(err) {
			t.Fatalf("%v: a file was made", c.args)
		}
	}
	// What is another file is written: an earlier output, an earlier record.
	for range 2 {
		if code, _, stderr := contend(t, "fail-if-exists", "-t", "sim:?latency=5ms", "-n", "2", "-r", "1", "--min-contended", "1", "-q",
			"-o", "json="+there, "--record", there+".jsonl"); code != 0 {
			t.Errorf("exit %d: %s", code, stderr)
		}
	}
}

// Only a run makes a store: what reads one, or takes from one, does not.
func TestNoReadingCommandMakesAStore(t *testing.T) {
	dir := t.TempDir()
	missing, empty := filepath.Join(dir, "typo.db"), filepath.Join(dir, "empty.db")
	write(t, empty, "", 0o600)
	t.Setenv("XDG_STATE_HOME", filepath.Join(dir, "state"))
	for _, args := range [][]string{
		{"results", "list"}, {"results", "show", "01"}, {"results", "ghosts"}, {"results", "trend"}, {"results", "export"},
		{"results", "prune", "--keep", "1d"}, {"results", "prune", "--keep", "1d", "--dry-run"}, {"ttl-ghost", "--resume"},
		{"clean", "-t", "redis://127.0.0.1:1", "--older-than", "2d"},
	} {
		for _, file := range []string{missing, empty, ""} {
			with := args
			if file != "" {
				with = append(append([]string{}, args...), "--store", file)
			}
			code, _, stderr := contend(t, with...)
			if code != 2 && (args[0] != "clean" || code != 4) || stderr == "" {
				t.Errorf("%v: exit %d: %s", with, code, stderr)
			}
		}
	}
	for _, args := range [][]string{{"fail-if-exists", "--dry-run"}, {"ttl-ghost", "--dry-run"}, {"fail-if-exists", "-n", "2,3", "--dry-run"}} {
		if code, _, stderr := contend(t, append(args, "--store", missing)...); code != 0 {
			t.Errorf("%v: exit %d: %s", args, code, stderr)
		}
	}
	entries, err := os.ReadDir(dir)
	if info, statErr := os.Stat(empty); err != nil || len(entries) != 1 || statErr != nil || info.Size() != 0 {
		t.Errorf("%v %v: there are %v", err, statErr, entries)
	}
	if _, err := store.OpenToChange(missing); err == nil {
		t.Error("a store that is not there was opened")
	}
}
