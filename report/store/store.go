// Package store keeps results and ghosts in a file of SQLite, which many
// processes may read and write at once.
//
// A commit is synced to the disk (synchronous=FULL): what a method has returned
// for survives a killed process and a power cut. With NORMAL a power cut could
// take back a ghost whose key was created, and nobody would look for it again;
// the sync costs a quarter of a millisecond on a fast disk, which a probe over
// a network does not feel.
//
// The file needs a local file system. Only SQLite may open it: any other
// descriptor, when it is closed, takes the process's locks on it away.
package store

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"modernc.org/sqlite"
)

// applicationID marks a file of SQLite as ours, in its header: "ctnd".
const applicationID = 0x63746e64

//go:embed migrations/*.sql
var migrations embed.FS

// Store is an open file. It may be used from many goroutines.
type Store struct {
	name   string  // as the user gave it
	file   string  // absolute, without symbolic links
	reader *sql.DB // a connection for each who reads
	writer *sql.DB // one connection, for which writers queue; nil: only for reading
}

// settings are what tests choose otherwise.
type settings struct {
	wait       time.Duration // for another process that writes
	maxPages   int           // of the file; 0: as many as the disk takes
	migrations []string      // each from one version of the format to the next
}

func usual() (settings, error) {
	s := settings{wait: 5 * time.Second}
	for {
		text, err := migrations.ReadFile(fmt.Sprintf("migrations/%d.sql", len(s.migrations)+1))
		if errors.Is(err, fs.ErrNotExist) {
			return s, nil
		}
		if err != nil {
			return s, err
		}
		s.migrations = append(s.migrations, string(text))
	}
}

// Open opens a store to write and read, and makes it where there is none: the
// file, never its folder, but for that of DefaultFile.
func Open(file string) (*Store, error) {
	with, err := usual()
	if err != nil {
		return nil, err
	}
	return open(file, with)
}

// OpenToChange opens a store that is there, to write and read.
func OpenToChange(file string) (*Store, error) {
	with, err := usual()
	if err != nil {
		return nil, err
	}
	if _, err := present(file); err != nil {
		return nil, err
	}
	return open(file, with)
}

// OpenToRead opens a store that is there. It can be one that may not be written.
func OpenToRead(file string) (*Store, error) {
	with, err := usual()
	if err != nil {
		return nil, err
	}
	return openToRead(file, with)
}

func open(file string, with settings) (*Store, error) {
	path, err := place(file)
	if err != nil {
		return nil, err
	}
	if err := identify(path); err != nil {
		return nil, named(file, err)
	}
	s := &Store{name: file, file: path}
	if s.writer, err = connect(path, with, "mode=rw", "_txlock=immediate", "_pragma=synchronous(FULL)"); err != nil {
		return nil, named(file, err)
	}
	s.writer.SetMaxOpenConns(1)
	if s.reader, err = connect(path, with, "mode=rw", "_query_only=1"); err == nil {
		err = s.prepare(with)
	}
	if err != nil {
		s.Close()
		return nil, named(file, err)
	}
	return s, nil
}

// place makes the file, empty, where there is none, and tells where it is.
func place(file string) (string, error) {
	if file == "" {
		return "", errors.New(`store "": name a file`)
	}
	path, err := filepath.Abs(file)
	if err != nil {
		return "", err
	}
	folder := filepath.Dir(path)
	if usual, err := DefaultFile(); err == nil && path == usual {
		if err := os.MkdirAll(folder, 0o700); err != nil {
			return "", named(file, err)
		}
	}
	if info, err := os.Stat(folder); err != nil || !info.IsDir() {
		return "", &Error{file, ErrMissing, fmt.Sprintf("its folder %q is not there: make it, or name another file", folder), nil}
	}
	// A store holds what a site answers: it is the user's alone.
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err == nil {
		err = f.Close()
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return "", named(file, err)
	}
	return filepath.EvalSymlinks(path)
}

// connect gives a pool of connections to the file; the first is made by the
// first use.
func connect(path string, with settings, parameters ...string) (*sql.DB, error) {
	at := filepath.ToSlash(path)
	if runtime.GOOS == "windows" {
		at = "/" + at
	}
	if with.maxPages > 0 {
		parameters = append(parameters, fmt.Sprintf("_pragma=max_page_count(%d)", with.maxPages))
	}
	parameters = append(parameters, fmt.Sprintf("_busy_timeout=%d", with.wait.Milliseconds()), "_error_rc=1")
	connector, err := sqlite.NewConnector((&url.URL{Scheme: "file", Path: at}).String() + "?" + strings.Join(parameters, "&"))
	if err != nil {
		return nil, err
	}
	return sql.OpenDB(connector), nil
}

// identify refuses a file that is not ours, by its header alone and without
// touching it. The header tells, whatever is in the write-ahead log: a store
// is made before it has one.
func identify(path string) error {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return &Error{path, ErrForeign, "it is no regular file: name another", nil}
	case info.Size() == 0:
		return nil // ours to make
	}
	db, err := connect(path, settings{}, "mode=ro", "immutable=1")
	if err != nil {
		return err
	}
	defer db.Close()
	var id, pages int
	err = db.QueryRow("SELECT application_id, page_count FROM pragma_application_id, pragma_page_count").Scan(&id, &pages)
	switch {
	case err == nil && id == applicationID:
		return nil
	case err == nil && pages > 0:
		return &Error{path, ErrForeign, "it is a file of SQLite that another program made, and was left as it is: name another file", nil}
	case err == nil || codeOf(err) == notADatabase: // SQLite takes less than a page for nothing
		return &Error{path, ErrForeign, "it is no file of SQLite, and was left as it is: name another file", nil}
	case codeOf(err) == corrupt:
		// Or only looks so, as it is being written. Who opens it with locks will know.
		return nil
	default:
		return err
	}
}

// prepare brings the file to the newest version of the format. Where several do
// it at once SQLite refuses some without a wait, or they would wait for each other.
func (s *Store) prepare(with settings) error {
	for late := time.Now().Add(with.wait); ; {
		err := s.prepareOnce(with)
		if code := codeOf(err); code != busy && code != locked || time.Now().After(late) {
			return err
		}
		time.Sleep(5*time.Millisecond + rand.N(20*time.Millisecond))
	}
}

func (s *Store) prepareOnce(with settings) error {
	version, err := s.version()
	if err != nil {
		return err
	}
	newest := len(with.migrations)
	if version > newest {
		return newer(s.file, version, newest)
	}
	if version < newest {
		if err := s.migrate(with.migrations); err != nil {
			return err
		}
	}
	var mode string
	if err := s.writer.QueryRow("PRAGMA journal_mode").Scan(&mode); err != nil {
		return err
	}
	if mode != "wal" {
		if err := s.writer.QueryRow("PRAGMA journal_mode = WAL").Scan(&mode); err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) version() (int, error) {
	var version int
	err := s.reader.QueryRow("PRAGMA user_version").Scan(&version)
	return version, err
}

// migrate makes all the steps or none.
func (s *Store) migrate(migrations []string) error {
	ctx := context.Background()
	c, err := s.writer.Conn(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	// So that Prune can give room back. It has to come before there is a table,
	// and takes the lock to write; to be in one transaction with the rest, that
	// one cannot begin as the others do.
	if _, err = c.ExecContext(ctx, "BEGIN; PRAGMA auto_vacuum = INCREMENTAL"); err == nil {
		err = steps(ctx, c, migrations)
	}
	if err == nil {
		_, err = c.ExecContext(ctx, "COMMIT")
	}
	if err != nil {
		_, _ = c.ExecContext(ctx, "ROLLBACK")
	}
	return err
}

func steps(ctx context.Context, c *sql.Conn, migrations []string) error {
	// Another process may have been faster.
	var version int
	if err := c.QueryRowContext(ctx, "PRAGMA user_version").Scan(&version); err != nil {
		return err
	}
	for ; version < len(migrations); version++ {
		if _, err := c.ExecContext(ctx, migrations[version]); err != nil {
			return fmt.Errorf("step %d of the format: %w", version+1, err)
		}
	}
	_, err := c.ExecContext(ctx, fmt.Sprintf("PRAGMA application_id = %d; PRAGMA user_version = %d", applicationID, version))
	return err
}

// present tells where a store is that somebody made.
func present(file string) (string, error) {
	path, err := filepath.Abs(file)
	if err == nil {
		path, err = filepath.EvalSymlinks(path)
	}
	var info fs.FileInfo
	if err == nil {
		info, err = os.Stat(path)
	}
	if errors.Is(err, fs.ErrNotExist) || err == nil && info.Mode().IsRegular() && info.Size() == 0 {
		return "", &Error{file, ErrMissing, "a run with --store makes it", nil}
	}
	if err == nil {
		err = identify(path)
	}
	if err != nil {
		return "", named(file, err)
	}
	return path, nil
}

func openToRead(file string, with settings) (*Store, error) {
	path, err := present(file)
	if err != nil {
		return nil, err
	}
	s := &Store{name: file, file: path}
	version, err := s.read(with)
	newest := len(with.migrations)
	switch {
	case err != nil:
	case version > newest:
		err = newer(path, version, newest)
	case version < newest:
		s.Close()
		return open(file, with)
	}
	if err != nil {
		s.Close()
		return nil, named(file, err)
	}
	return s, nil
}

// read connects for reading and gives the version of the format.
func (s *Store) read(with settings) (version int, err error) {
	// SQLite makes do with reading where a file may not be written; where it may,
	// the last to close tidies up.
	if s.reader, err = connect(s.file, with, "mode=rw", "_query_only=1"); err != nil {
		return 0, err
	}
	if version, err = s.version(); err == nil || codeOf(err) != cannotOpen && codeOf(err) != readOnly {
		return version, err
	}
	// The write-ahead log needs files beside the store, which may not be made
	// here. Without one there is nobody who writes.
	if info, statErr := os.Stat(s.file + "-wal"); statErr == nil && info.Size() > 0 {
		return 0, &Error{s.file, ErrDenied, fmt.Sprintf("it was not closed by who wrote it last, and its folder may not be written: "+
			"copy it and %s-wal to another folder", filepath.Base(s.file)), err}
	}
	s.reader.Close()
	if s.reader, err = connect(s.file, with, "mode=ro", "immutable=1"); err != nil {
		return 0, err
	}
	return s.version()
}

// Close closes the file. What was written is on disk before.
func (s *Store) Close() error {
	var errs []error
	if s.reader != nil {
		errs = append(errs, s.reader.Close())
	}
	if s.writer != nil {
		errs = append(errs, s.writer.Close())
	}
	return errors.Join(errs...)
}

// File tells where the store is.
func (s *Store) File() string { return s.file }

// write does all that change does, or nothing.
func (s *Store) write(change func(*sql.Tx) error) error {
	if s.writer == nil {
		return &Error{s.name, ErrReading, "open it to write", nil}
	}
	tx, err := s.writer.Begin()
	if err != nil {
		return s.problem(err)
	}
	if err := change(tx); err != nil {
		_ = tx.Rollback()
		return s.problem(err)
	}
	return s.problem(tx.Commit())
}

// DefaultFile is the store in the user's state directory. It need not be there.
func DefaultFile() (string, error) {
	var folder string
	switch home, err := os.UserHomeDir(); {
	case runtime.GOOS == "windows":
		folder = os.Getenv("LocalAppData")
	case runtime.GOOS == "darwin" && err == nil:
		folder = filepath.Join(home, "Library", "Application Support")
	case filepath.IsAbs(os.Getenv("XDG_STATE_HOME")):
		folder = os.Getenv("XDG_STATE_HOME")
	case err == nil:
		folder = filepath.Join(home, ".local", "state")
	}
	if folder == "" {
		return "", errors.New("this user has no home directory to keep results in: name a file with --store")
	}
	return filepath.Join(folder, "contend", "results.db"), nil
}
