package cmd

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"

	"contend/report"
	"contend/report/store"
	"contend/runner"
)

// named is a file of a command line.
type named struct {
	by   string // what names it: a flag, or what it is
	file string
	use  use
}

// use is what a command does to a file.
type use int

const (
	reads  use = iota
	keeps      // a store: read, and added to
	writes     // over whatever was there
)

// apart refuses a command line that would write over a file that it reads or
// keeps results in, or write two things into one file, whatever the paths to
// it; and one that would write over a store, a record or a suite that it has
// nothing to do with. Files without a name are left out.
func apart(files ...named) error {
	var wrong refusals
	files = slices.DeleteFunc(slices.Clone(files), func(n named) bool { return n.file == "" })
	slices.SortStableFunc(files, func(a, b named) int { return cmp.Compare(a.use, b.use) })
	for i, n := range files {
		if n.use == reads {
			continue
		}
		met := slices.IndexFunc(files[:i], n.hits)
		if met >= 0 {
			wrong.refuse(true, "%s %q: is the file of %s; name another", n.by, n.file, files[met].by)
		} else if what := n.holds(); n.use == writes && what != "" {
			wrong.refuse(true, "%s %q: holds %s, which would be lost; name another file", n.by, n.file, what)
		}
	}
	return errors.Join(wrong...)
}

// paths are those of the file, and of what SQLite makes beside a store.
func (n named) paths() []string {
	if n.use != keeps {
		return []string{n.file}
	}
	return []string{n.file, n.file + "-wal", n.file + "-shm", n.file + "-journal"}
}

// hits tells whether the two would meet in one file.
func (n named) hits(other named) bool {
	return slices.ContainsFunc(n.paths(), func(path string) bool {
		return slices.ContainsFunc(other.paths(), func(of string) bool { return sameFile(path, of) })
	})
}

// sameFile tells whether two paths lead to one file, whether or not it is there.
func sameFile(a, b string) bool {
	if infoA, err := os.Stat(a); err == nil {
		if infoB, err := os.Stat(b); err == nil {
			return os.SameFile(infoA, infoB)
		}
	}
	return landing(a) == landing(b)
}

// landing is where a file would be made that is written by that path: without
// symbolic links, as far as there is anything.
func landing(path string) string {
	if whole, err := filepath.Abs(path); err == nil {
		path = whole
	}
	for range 40 { // as many links as Linux follows
		folder, err := filepath.EvalSymlinks(filepath.Dir(path))
		if err != nil {
			return filepath.Clean(path)
		}
		path = filepath.Join(folder, filepath.Base(path))
		target, err := os.Readlink(path)
		if err != nil {
			return path
		}
		if !filepath.IsAbs(target) {
			target = filepath.Join(folder, target)
		}
		path = target
	}
	return path
}

// looked is how much of a file tells what it holds.
const looked = 64 << 10

var (
	suiteText  = regexp.MustCompile(`(?m)^runs:\s*(#.*)?$`)
	recordText = regexp.MustCompile(`^\s*\{"schema":"` + regexp.QuoteMeta(runner.RecordSchema) + `"`)
)

// holds tells what a file holds that no report may take the place of; "": nothing
// that is known. A record takes the place of an earlier one.
func (n named) holds() string {
	info, err := os.Stat(n.file)
	if err != nil || !info.Mode().IsRegular() {
		return ""
	}
	file, err := os.Open(n.file)
	if err != nil {
		return ""
	}
	defer file.Close()
	head, _ := io.ReadAll(io.LimitReader(file, looked))
	switch {
	case bytes.HasPrefix(head, []byte("SQLite format 3\x00")):
		return "a store"
	case recordText.Match(head) && n.by != "--record":
		return "a record"
	case suiteText.Match(head) && !bytes.HasPrefix(bytes.TrimSpace(head), []byte("{")):
		return "a suite"
	}
	return ""
}

// outputsOf reads -o and -q together, and refuses to write into one of the files
// that the command line names beside them.
func outputsOf(values []string, quiet bool, files ...named) ([]report.Output, error) {
	if quiet {
		values = append([]string{"quiet"}, values...)
	}
	outputs, err := report.ParseOutputs(values)
	if err != nil {
		return nil, err
	}
	for _, o := range outputs {
		files = append(files, named{"--output " + o.Format, o.File, writes})
	}
	return outputs, apart(files...)
}

// inputs are the files that a scenario reads.
func inputs(l launch) []named {
	if probe, ok := l.(*probeLaunch); ok {
		return []named{{"--since", probe.since, reads}}
	}
	return nil
}

// suiteFiles are the files that a suite reads: its own, and those of its runs.
func suiteFiles(file string, runs []planned) []named {
	files := []named{{"the suite", file, reads}}
	for _, p := range runs {
		files = append(files, inputs(p.launch)...)
	}
	return files
}

// storeOf is the store that a flag names, or the user's own.
func storeOf(file string) named {
	if file == "" {
		usual, _ := store.DefaultFile() // who opens it tells why there is none
		return named{"the store of results", usual, keeps}
	}
	return named{"--store", file, keeps}
}

// kept is where the result is kept, without a name: nowhere.
func (f *commonFlags) kept() named {
	if f.store == "" && (f.storeGiven || !f.storeByDefault) {
		return named{}
	}
	return storeOf(f.store)
}
