package report

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// formats lists the output formats.
var formats = []string{"table", "json", "markdown", "jira", "csv", "quiet"}

// Output is one -o FORMAT[=FILE].
type Output struct {
	Format string
	File   string // "": standard output
}

// OutputError is an output that cannot be; its text says what can.
type OutputError struct{ Text string }

func (e *OutputError) Error() string { return e.Text }

// ParseOutputs reads the values of -o. The table is printed as well, unless
// another format goes to standard output.
func ParseOutputs(values []string) ([]Output, error) {
	var outputs []Output
	standard := ""
	for _, value := range values {
		format, file, named := strings.Cut(value, "=")
		if !slices.Contains(formats, format) {
			return nil, &OutputError{fmt.Sprintf("--output %q: unknown format %q; there are %s", value, format, strings.Join(formats, ", "))}
		}
		if named && file == "" {
			return nil, &OutputError{fmt.Sprintf("--output %q: the file name is missing; leave out %q for standard output", value, "=")}
		}
		if file == "" {
			if standard != "" {
				return nil, &OutputError{fmt.Sprintf("--output %s and %s both go to standard output; write one to a file, as %s=FILE", standard, format, format)}
			}
			standard = format
		} else if err := writable(file); err != nil {
			return nil, &OutputError{fmt.Sprintf("--output %q: %v", value, err)}
		}
		outputs = append(outputs, Output{format, file})
	}
	if standard == "" {
		outputs = append([]Output{{Format: "table"}}, outputs...)
	}
	return outputs, nil
}

// writable checks, before anything is measured, that a file can be made.
func writable(file string) error {
	if info, err := os.Stat(file); err == nil && info.IsDir() {
		return fmt.Errorf("%s is a folder; name a file in it", file)
	}
	if info, err := os.Stat(filepath.Dir(file)); err != nil || !info.IsDir() {
		return fmt.Errorf("there is no folder %s", filepath.Dir(file))
	}
	probe, err := os.CreateTemp(filepath.Dir(file), ".contend-*")
	if err != nil {
		return fmt.Errorf("cannot write in the folder %s: %w", filepath.Dir(file), errors.Unwrap(err))
	}
	probe.Close()
	return os.Remove(probe.Name())
}

// Printable is what can be written in every format: a Result, for instance.
type Printable interface {
	// documents are what people read.
	documents() []document
	// MarshalIndent gives it as format json writes it.
	MarshalIndent() ([]byte, error)
	writeCSV(io.Writer) error
	// lines are format quiet.
	lines() []string
}

// WriteAll writes in every format asked for. It tries them all and gives the
// first error.
func WriteAll(outputs []Output, r Printable, stdout io.Writer, screen Screen) error {
	var first error
	if i := slices.IndexFunc(outputs, func(o Output) bool { return o.Format == "json" }); i >= 0 {
		r = besideJSON(r, cmp.Or(outputs[i].File, "the json output"))
	}
	for _, o := range outputs {
		err := o.write(r, stdout, screen)
		if err != nil && first == nil {
			first = fmt.Errorf("writing the %s output: %w", o.Format, err)
		}
	}
	return first
}

// besideJSON lets the other formats name where the json output is.
func besideJSON(r Printable, where string) Printable {
	switch r := r.(type) {
	case Result:
		r.JSONTo = where
		return r
	case *Suite:
		s := *r
		s.Runs = slices.Clone(s.Runs)
		for i, run := range s.Runs {
			if run.Result != nil {
				result := *run.Result
				result.JSONTo = where
				s.Runs[i].Result = &result
			}
		}
		return &s
	}
	return r
}

func (o Output) write(r Printable, stdout io.Writer, screen Screen) error {
	if o.File == "" {
		return o.render(stdout, r, screen)
	}
	return ReplaceFile(o.File, func(w io.Writer) error { return o.render(w, r, Screen{}) })
}

func (o Output) render(w io.Writer, r Printable, screen Screen) error {
	switch o.Format {
	case "json":
		b, err := r.MarshalIndent()
		if err != nil {
			return err
		}
		_, err = w.Write(b)
		return err
	case "markdown":
		return markdown.write(w, r)
	case "jira":
		return jira.write(w, r)
	case "csv":
		return r.writeCSV(w)
	case "quiet":
		for _, line := range r.lines() {
			if screen.ASCII {
				line = ASCII(line)
			}
			if _, err := fmt.Fprintln(w, sentence(line)); err != nil {
				return err
			}
		}
		return nil
	default:
		return writeTerminal(w, r, screen)
	}
}

// ReplaceFile writes a file beside the named one and puts it in its place: what
// was there is replaced whole or not at all.
func ReplaceFile(name string, write func(io.Writer) error) (err error) {
	// A device or a pipe cannot be replaced and need not be.
	if info, statErr := os.Stat(name); statErr == nil && !info.Mode().IsRegular() {
		f, err := os.OpenFile(name, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		defer f.Close()
		return write(f)
	}
	f, err := os.CreateTemp(filepath.Dir(name), ".contend-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			os.Remove(f.Name())
		}
	}()
	if err = write(f); err == nil {
		err = f.Chmod(0o644)
	}
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		err = os.Rename(f.Name(), name)
	}
	return err
}
