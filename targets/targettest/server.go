//go:build unix

package targettest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
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
const readyWithin, stoppedWithin = 60 * time.Second, 10 * time.Second

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

// StartRedis starts redis-server with its data in dir and waits until it
// answers. arguments are further ones of its command line, such as
// "--requirepass", "secret". The error of a missing program is ErrNotInstalled.
func StartRedis(dir string, arguments ...string) (*Server, error) {
	program, err := exec.LookPath("redis-server")
	if err != nil {
		return nil, fmt.Errorf("redis-server: %w", ErrNotInstalled)
	}
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	command := exec.Command(program, append([]string{"--bind", "127.0.0.1", "--port", port, "--save", "", "--appendonly", "no",
		"--dir", dir}, arguments...)...)
	address := net.JoinHostPort("127.0.0.1", port)
	return start(command, "redis://"+address, func() bool { return answersPing(address) })
}

// answersPing tells whether a Redis takes commands. One that wants a password,
// say, answers with an error.
func answersPing(address string) bool {
	conn, err := net.DialTimeout("tcp", address, time.Second)
	if err != nil {
		return false
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(time.Second))
	fmt.Fprint(conn, "PING\r\n")
	answer, _ := io.ReadAll(io.LimitReader(conn, 5))
	return len(answer) > 0 && string(answer) != "-LOAD"
}

// StartPostgres makes a cluster of databases in dir, starts PostgreSQL on it and
// waits until it takes connections. Who asks is trusted, and the URL names the
// superuser. settings are configuration parameters, such as "max_connections=20";
// later ones win. The error of missing programs is ErrNotInstalled.
//
// PostgreSQL refuses to run as root: there it runs as the user postgres or
// nobody, who is given dir and must be able to reach it.
func StartPostgres(dir string, settings ...string) (*Server, error) {
	initdb, postgres := findPostgres("initdb"), findPostgres("postgres")
	if initdb == "" || postgres == "" {
		return nil, fmt.Errorf("initdb and postgres: %w", ErrNotInstalled)
	}
	credential, err := ordinaryUser(dir)
	if err != nil {
		return nil, err
	}
	data := filepath.Join(dir, "data")
	as := func(command *exec.Cmd) *exec.Cmd {
		command.Dir = dir
		command.SysProcAttr = &syscall.SysProcAttr{Credential: credential}
		return command
	}
	output, err := as(exec.Command(initdb, "-A", "trust", "-U", "postgres", "-E", "UTF8", "--no-locale", "--no-sync", "-D", data)).CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("initdb: %w\n%s", err, output)
	}
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	arguments := []string{"-D", data, "-p", port}
	for _, setting := range append([]string{"listen_addresses=127.0.0.1", "max_connections=300",
		"unix_socket_directories=" + dir, "fsync=off", "dynamic_shared_memory_type=mmap"}, settings...) {
		arguments = append(arguments, "-c", setting)
	}
	return start(as(exec.Command(postgres, arguments...)), "postgres://postgres@127.0.0.1:"+port+"/postgres?sslmode=disable",
		func() bool {
			// The server itself writes its state there; pg_ctl reads it too.
			state, _ := os.ReadFile(filepath.Join(data, "postmaster.pid"))
			return strings.Contains(string(state), "\nready")
		})
}

// findPostgres looks in PATH, then where Debian puts the programs; of several
// versions there it takes the last.
func findPostgres(program string) string {
	if path, err := exec.LookPath(program); err == nil {
		return path
	}
	paths, _ := filepath.Glob("/usr/lib/postgresql/*/bin/" + program)
	if len(paths) == 0 {
		return ""
	}
	return paths[len(paths)-1]
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
	timeout, tick := time.NewTimer(readyWithin), time.NewTicker(20*time.Millisecond)
	defer timeout.Stop()
	defer tick.Stop()
	for !ready() {
		select {
		case <-s.ended:
			return nil, fmt.Errorf("%s ended before it was ready:\n%s", command.Path, s.log)
		case <-timeout.C:
			s.Kill()
			return nil, fmt.Errorf("%s was not ready within %s:\n%s", command.Path, readyWithin, s.log)
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

// Redis starts a Redis for the time of a test and gives its URL. Where none is
// installed the test is skipped, or fails if RequireServers says so.
func Redis(tb testing.TB) string {
	tb.Helper()
	return RedisServer(tb).URL
}

// Postgres is Redis's twin for PostgreSQL.
func Postgres(tb testing.TB) string {
	tb.Helper()
	return PostgresServer(tb).URL
}

// RedisServer is Redis for a test that does something to the server itself.
func RedisServer(tb testing.TB, arguments ...string) *Server {
	tb.Helper()
	return forTest(tb, func(dir string) (*Server, error) { return StartRedis(dir, arguments...) })
}

// PostgresServer is Postgres for a test that does something to the server itself.
func PostgresServer(tb testing.TB, settings ...string) *Server {
	tb.Helper()
	return forTest(tb, func(dir string) (*Server, error) { return StartPostgres(dir, settings...) })
}

func forTest[S interface{ Stop() }](tb testing.TB, start func(dir string) (S, error)) S {
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
