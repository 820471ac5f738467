package store

import (
	"errors"
	"fmt"
	"io/fs"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// What can be wrong with a store, as its Error says it after the name; each is
// in the chain of an *Error.
var (
	ErrMissing = errors.New("is not there")
	ErrForeign = errors.New("is no store of contend")
	ErrNewer   = errors.New("is of a newer contend")
	ErrDamaged = errors.New("is damaged")
	ErrLocked  = errors.New("is locked")
	ErrFull    = errors.New("has no room")
	ErrDenied  = errors.New("is not open to this user")
	ErrFailing = errors.New("cannot be read or written")
	ErrReading = errors.New("was opened for reading only")
	ErrHeld    = errors.New("is in use")
	ErrNoRun   = errors.New("has no such run")
)

// Error is a store that does not do what it was asked. What was stored before
// is as it was.
type Error struct {
	File   string
	Is     error  // one of the Err…
	Advice string // what is so, and what to do
	Cause  error  // may be nil
}

func (e *Error) Error() string {
	text := fmt.Sprintf("store %q %v: %s", e.File, e.Is, e.Advice)
	if e.Cause != nil {
		text += fmt.Sprintf(" (%v)", e.Cause)
	}
	return text
}

func (e *Error) Unwrap() []error {
	if e.Cause == nil {
		return []error{e.Is}
	}
	return []error{e.Is, e.Cause}
}

// The primary codes of SQLite that mean something to a user.
const (
	busy         = sqlite3.SQLITE_BUSY
	locked       = sqlite3.SQLITE_LOCKED
	denied       = sqlite3.SQLITE_PERM
	readOnly     = sqlite3.SQLITE_READONLY
	failing      = sqlite3.SQLITE_IOERR
	corrupt      = sqlite3.SQLITE_CORRUPT
	full         = sqlite3.SQLITE_FULL
	cannotOpen   = sqlite3.SQLITE_CANTOPEN
	notADatabase = sqlite3.SQLITE_NOTADB
)

// codeOf gives the primary code of an error of SQLite; 0: it is none.
func codeOf(err error) int {
	var e *sqlite.Error
	if !errors.As(err, &e) {
		return 0
	}
	return e.Code() & 0xff
}

// named makes an error about the file of one that came from below. An *Error
// only gets the name that the user gave.
func named(file string, err error) error {
	if err == nil {
		return nil
	}
	var own *Error
	if errors.As(err, &own) {
		return &Error{file, own.Is, own.Advice, own.Cause}
	}
	const forbidden = "give yourself the permission for the file and its folder, or name another file"
	is, advice := ErrFailing, "see whether its disk is full or gone"
	switch codeOf(err) {
	case busy, locked:
		is, advice = ErrLocked, "another process holds it: try again, or end that one"
	case full:
		is, advice = ErrFull, "make room on its disk; `contend results prune` gives some back"
	case corrupt, notADatabase:
		is, advice = ErrDamaged, "nothing was changed: put a copy in its place, or move it away and a new one is made"
	case readOnly, denied, cannotOpen:
		is, advice = ErrDenied, forbidden
	case 0:
		if errors.Is(err, fs.ErrPermission) {
			is, advice = ErrDenied, forbidden
		}
	}
	return &Error{file, is, advice, err}
}

func (s *Store) problem(err error) error { return named(s.name, err) }

func newer(file string, version, newest int) error {
	return &Error{file, ErrNewer, fmt.Sprintf("its format is version %d and this contend knows up to %d: upgrade contend, "+
		"or name another file", version, newest), nil}
}
