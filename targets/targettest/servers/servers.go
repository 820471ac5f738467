//go:build unix

// Package servers starts real servers for tests, each on a free port of the loopback
// interface, from the programs that this machine has.
package servers

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"
)

// ErrNotInstalled is in the chain of the error for a server whose program is
// not on this machine.
var ErrNotInstalled = errors.New("not installed")

// RequireServers is the variable of the environment that, set to 1, makes a
// test fail rather than be skipped where a server is not installed.
const RequireServers = "REQUIRE_SERVERS"

// How long a server may take to start and, before it is killed, to stop.
const ReadyWithin, stoppedWithin = 60 * time.Second, 10 * time.Second

// Server is a server of its own for a test, on a free port of the loopback
// interface.
type Server struct {
	URL     string // a target's URL, without parameters that choose a strategy
	process *os.Process
	ended   chan struct{} // closed when the process is gone
	log     *bytes.Buffer // what it wrote; to be read after ended only
}

// Stop ends the server in its orderly way and waits until it is gone.
func (s *Server) Stop() {
	s.process.Signal(os.Interrupt)
	select {
	case <-s.ended:
	case <-time.After(stoppedWithin):
		s.Kill()
	}
}

// Kill ends the server at once, as a crash would, and waits until it is gone.
func (s *Server) Kill() {
	s.process.Kill()
	<-s.ended
}

// ordinaryUser gives dir to the user that a server is run as by root; for
// others it is nil, which means the present user.
func ordinaryUser(dir string) (*syscall.Credential, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	account, err := user.Lookup("postgres")
	if err != nil {
		if account, err = user.Lookup("nobody"); err != nil {
			return nil, fmt.Errorf("no user to run PostgreSQL as: run the tests as an ordinary user, or add a user postgres: %w", err)
		}
	}
	uid, errUser := strconv.ParseUint(account.Uid, 10, 32)
	gid, errGroup := strconv.ParseUint(account.Gid, 10, 32)
	if err := errors.Join(errUser, errGroup, os.Chown(dir, int(uid), int(gid))); err != nil {
		return nil, err
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
}

// start runs a server and waits until it is ready, or has ended on its own.
func start(command *exec.Cmd, url string, ready func() bool) (*Server, error) {
	s := &Server{URL: url, ended: make(chan struct{}), log: &bytes.Buffer{}}
	command.Stdout, command.Stderr = s.log, s.log
	// Children of a killed server may outlive it and keep its output open.
	command.WaitDelay = time.Second
	if err := command.Start(); err != nil {
		return nil, fmt.Errorf("%s: %w", command.Path, err)
	}
	s.process = command.Process
	go func() {
		command.Wait()
		close(s.ended)
	}()
	timeout, tick := time.NewTimer(ReadyWithin), time.NewTicker(20*time.Millisecond)
	defer timeout.Stop()
	defer tick.Stop()
	for !ready() {
		select {
		case <-s.ended:
			return nil, fmt.Errorf("%s ended before it was ready:\n%s", command.Path, s.log)
		case <-timeout.C:
			s.Kill()
			return nil, fmt.Errorf("%s was not ready within %s:\n%s", command.Path, ReadyWithin, s.log)
		case <-tick.C:
		}
	}
	return s, nil
}

// freePort gives a port of the loopback interface that was free a moment ago.
func freePort() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer listener.Close()
	_, port, err := net.SplitHostPort(listener.Addr().String())
	return port, err
}

// ForTest starts a server for the time of a test. Where it is not installed the test is
// skipped, or fails if RequireServers says so.
func ForTest[S interface{ Stop() }](tb testing.TB, start func(dir string) (S, error)) S {
	tb.Helper()
	// Not tb.TempDir: another user cannot enter the directory that it is in.
	dir, err := os.MkdirTemp("", "contend-server-")
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { os.RemoveAll(dir) })
	server, err := start(dir)
	switch {
	case errors.Is(err, ErrNotInstalled) && os.Getenv(RequireServers) != "1":
		tb.Skipf("%v; %s=1 makes this a failure", err, RequireServers)
	case err != nil:
		tb.Fatal(err)
	}
	tb.Cleanup(server.Stop)
	return server
}

// Kind is what tests need of this machine.
type Kind struct {
	Name     string
	Title    string // what is not tested without it, and the programs
	Debian   []string
	Programs []string // all of which are needed
}

// Kinds lists what the tests need beside Go and a compiler.
func Kinds() []Kind {
	return []Kind{
		{"redis", "Redis (redis-server)", []string{"redis-server"}, []string{"redis-server"}},
		{"postgres", "PostgreSQL (initdb, postgres)", []string{"postgresql"}, []string{"initdb", "postgres"}},
		{"pgbouncer", "PgBouncer (pgbouncer)", []string{"pgbouncer"}, []string{"pgbouncer"}},
		{"mariadb", "Forge SQL on MariaDB (mariadbd, mariadb-install-db)", []string{"mariadb-server"}, []string{"mariadbd", "mariadb-install-db"}},
		{"node", "the real @forge packages and the companion app, and PGlite (node, npm)", []string{"nodejs", "npm"}, []string{"node", "npm"}},
	}
}

// Installed tells whether this machine has all programs of a kind.
func (k Kind) Installed() bool {
	for _, program := range k.Programs {
		if _, err := find(program); err != nil {
			return false
		}
	}
	return true
}

// find looks for a server's program in PATH, then where only root has it there, then
// where Debian puts those of PostgreSQL; of several versions there it takes the last.
func find(program string) (string, error) {
	paths, _ := filepath.Glob("/usr/lib/postgresql/*/bin/" + program)
	for _, place := range append([]string{program, filepath.Join("/usr/sbin", program), filepath.Join("/usr/local/sbin", program)}, lastOf(paths)...) {
		if path, err := exec.LookPath(place); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("%s: %w", program, ErrNotInstalled)
}

func lastOf(paths []string) []string { return paths[max(0, len(paths)-1):] }
