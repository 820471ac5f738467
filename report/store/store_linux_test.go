package store

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// rolesHere are those that this system can play.
func rolesHere() map[string]func(string) error {
	return map[string]func(string) error{"no room": writeWithoutRoom, "write as nobody": writeAsNobody, "read as nobody": readAsNobody,
		"guard as nobody": guardAsNobody}
}

// writeWithoutRoom writes where no file may grow above 200 kB.
func writeWithoutRoom(file string) error {
	signal.Ignore(syscall.SIGXFSZ)
	room := syscall.Rlimit{Cur: 200_000, Max: 200_000}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &room); err != nil {
		return err
	}
	s, err := Open(file)
	if err != nil {
		return err
	}
	defer s.Close()
	for n := range 1000 {
		if err := s.SaveResult(result(n)); err != nil {
			fmt.Println(n)
			return err
		}
	}
	return nil
}

func TestNoRoom(t *testing.T) {
	s, file := fresh(t)
	output, err := outcome(t, "no room", file)
	var kept int
	if _, scanErr := fmt.Sscan(output, &kept); scanErr != nil || err == nil || kept == 0 {
		t.Fatalf("the process says %s, %v", output, err)
	}
	if !strings.Contains(output, ErrFailing.Error()+": see whether its disk is full") && !strings.Contains(output, ErrFull.Error()) {
		t.Errorf("the process says %s", output)
	}
	if n := len(all(t, s.Runs(Runs{}))); n != kept {
		t.Errorf("%d runs, want %d", n, kept)
	}
	try(t, s.SaveResult(result(kept)))
	whole(t, s)
}

// On a disk that is full in truth.
func TestFullDisk(t *testing.T) {
	disk := t.TempDir()
	if err := syscall.Mount("tmpfs", disk, "tmpfs", 0, "size=300k"); err != nil {
		t.Skipf("a small disk needs root: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(disk, 0) })
	s, err := Open(filepath.Join(disk, "results.db"))
	try(t, err)
	defer s.Close()
	kept := 0
	for ; err == nil && kept < 1000; kept++ {
		err = s.SaveResult(result(kept))
	}
	if !errors.Is(err, ErrFull) {
		t.Errorf("%v", err)
	}
	if n := len(all(t, s.Runs(Runs{}))); n != kept-1 {
		t.Errorf("%d runs, want %d", n, kept-1)
	}
	// Not even a new one can be made.
	for _, name := range []string{"filler", "second.db"} {
		if name == "filler" {
			_ = os.WriteFile(filepath.Join(disk, name), make([]byte, 400_000), 0o600)
			continue
		}
		if _, err := Open(filepath.Join(disk, name)); !errors.Is(err, ErrFull) {
			t.Errorf("a new one: %v", err)
		}
	}
	// What is there can be read all the same.
	try(t, s.Close())
	try(t, os.WriteFile(filepath.Join(disk, "filler2"), nil, 0o600))
	fill(filepath.Join(disk, "filler2"))
	reading, err := OpenToRead(filepath.Join(disk, "results.db"))
	try(t, err)
	if n := len(all(t, reading.Runs(Runs{}))); n != kept-1 {
		t.Errorf("%d runs, want %d", n, kept-1)
	}
	whole(t, reading)
	try(t, reading.Close())
	try(t, os.Remove(filepath.Join(disk, "filler")))
	s, err = Open(filepath.Join(disk, "results.db"))
	try(t, err)
	defer s.Close()
	whole(t, s)
}

// fill takes all the room that is left.
func fill(name string) {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return
	}
	defer f.Close()
	for chunk := 4096; chunk > 0; {
		if _, err := f.Write(make([]byte, chunk)); err != nil {
			chunk /= 2
		}
	}
}

const nobody = 65534

func becomeNobody() error {
	if err := syscall.Setgid(nobody); err != nil {
		return err
	}
	return syscall.Setuid(nobody)
}

func writeAsNobody(file string) error {
	if err := becomeNobody(); err != nil {
		return err
	}
	s, err := Open(file)
	if err != nil {
		return err
	}
	defer s.Close()
	return s.SaveResult(result(0))
}

func readAsNobody(file string) error {
	if err := becomeNobody(); err != nil {
		return err
	}
	s, err := OpenToRead(file)
	if err != nil {
		return err
	}
	defer s.Close()
	n := 0
	for _, err := range s.Results(Runs{}) {
		if err != nil {
			return err
		}
		n++
	}
	fmt.Println(n, "runs")
	return nil
}

func TestPermissions(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can become another user")
	}
	for _, c := range []struct {
		name           string
		file, folder   os.FileMode
		closed         bool
		writing, again string
	}{
		{"not even readable", 0o600, 0o755, true, ErrDenied.Error() + ": give yourself the permission", ErrDenied.Error() + ": give yourself the permission"},
		{"read-only file", 0o644, 0o755, true, ErrDenied.Error(), "3 runs"},
		{"read-only file in a folder of all", 0o644, 0o777, true, ErrDenied.Error(), "3 runs"},
		{"read-only while it is open", 0o644, 0o755, false, ErrDenied.Error(), "3 runs"},
		{"file of all in a read-only folder", 0o666, 0o755, true, ErrDenied.Error(), "3 runs"},
	} {
		t.Run(c.name, func(t *testing.T) {
			folder := passable(t)
			file := filepath.Join(folder, "results.db")
			s, err := Open(file)
			try(t, err)
			defer s.Close()
			for n := range 3 {
				try(t, s.SaveResult(result(n)))
			}
			if c.closed {
				try(t, s.Close())
			}
			matches, err := filepath.Glob(file + "*")
			try(t, err)
			for _, name := range matches {
				try(t, os.Chmod(name, c.file))
			}
			try(t, os.Chmod(folder, c.folder))
			if output, err := outcome(t, "write as nobody", file); err == nil || !strings.Contains(output, c.writing) {
				t.Errorf("writing: %s, %v", output, err)
			}
			if output, _ := outcome(t, "read as nobody", file); !strings.Contains(output, c.again) {
				t.Errorf("reading: %s", output)
			}
		})
	}
	t.Run("no new file", func(t *testing.T) {
		file := filepath.Join(passable(t), "results.db")
		if output, err := outcome(t, "write as nobody", file); err == nil || !strings.Contains(output, "give yourself the permission") {
			t.Errorf("%s, %v", output, err)
		}
	})
	t.Run("a log that cannot be read without its index", func(t *testing.T) {
		folder := passable(t)
		file := filepath.Join(folder, "results.db")
		s, err := Open(file)
		try(t, err)
		defer s.Close()
		try(t, s.SaveResult(result(0)))
		copied := filepath.Join(folder, "copy.db")
		for _, suffix := range []string{"", "-wal"} {
			content, err := os.ReadFile(file + suffix)
			try(t, err)
			try(t, os.WriteFile(copied+suffix, content, 0o644))
		}
		if output, err := outcome(t, "read as nobody", copied); err == nil || !strings.Contains(output, "copy it and copy.db-wal to another folder") {
			t.Errorf("%s, %v", output, err)
		}
	})
}

// passable gives a folder that every user can come to.
func passable(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	for at := folder; at != os.TempDir() && at != "/"; at = filepath.Dir(at) {
		try(t, os.Chmod(at, 0o755))
	}
	return folder
}

// guardAsNobody has a lock whose file only root may write.
func guardAsNobody(file string) error {
	if err := becomeNobody(); err != nil {
		return err
	}
	s, err := Open(file)
	if err != nil {
		return err
	}
	defer s.Close()
	guard, err := s.Guard("nightly")
	if err == nil {
		err = guard.Close()
	}
	return err
}

// A lock file that may not be written locks nothing, and is told.
func TestGuardThatCannotLock(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can become somebody else")
	}
	folder, err := os.MkdirTemp("", "contend-guard-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(folder)
	file := filepath.Join(folder, "results.db")
	s, err := Open(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	lock := file + "-nightly.lock"
	for _, mode := range []os.FileMode{0o666, 0o644} {
		if err := os.WriteFile(lock, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		for name, mode := range map[string]os.FileMode{folder: 0o777, file: 0o666, lock: mode} {
			if err := os.Chmod(name, mode); err != nil {
				t.Fatal(err)
			}
		}
		if output, err := outcome(t, "guard as nobody", file); (err == nil) != (mode == 0o666) {
			t.Errorf("%o: %v: %s", mode, err, output)
		}
	}
}
