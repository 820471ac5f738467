//go:build unix

package servers

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// StartPostgres makes a cluster of databases in dir, starts PostgreSQL on it and
// waits until it takes connections. Who asks is trusted, and the URL names the
// superuser. settings are configuration parameters, such as "max_connections=20";
// later ones win. The error of missing programs is ErrNotInstalled.
//
// PostgreSQL refuses to run as root: there it runs as the user postgres or
// nobody, who is given dir and must be able to reach it.
func StartPostgres(dir string, settings ...string) (*Server, error) {
	initdb, errInit := find("initdb")
	postgres, errServer := find("postgres")
	if err := errors.Join(errInit, errServer); err != nil {
		return nil, err
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

// Postgres is Redis's twin for PostgreSQL.
func Postgres(tb testing.TB) string {
	tb.Helper()
	return PostgresServer(tb).URL
}

// PostgresServer is Postgres for a test that does something to the server itself.
func PostgresServer(tb testing.TB, settings ...string) *Server {
	tb.Helper()
	return ForTest(tb, func(dir string) (*Server, error) { return StartPostgres(dir, settings...) })
}
