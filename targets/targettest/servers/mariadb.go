//go:build unix

package servers

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// StartMariaDB makes a database named contend in dir, starts MariaDB on it and
// waits until it takes connections. The URL names a user, with a password, who
// may do all. options are further ones of the command line, such as
// "--max-connections=20". The error of missing programs is ErrNotInstalled.
//
// It runs as the same user as PostgreSQL does.
func StartMariaDB(dir string, options ...string) (*Server, error) {
	install, errInstall := find("mariadb-install-db")
	mariadbd, errServer := find("mariadbd")
	if err := errors.Join(errInstall, errServer); err != nil {
		return nil, err
	}
	const accounts = `CREATE DATABASE IF NOT EXISTS contend;
CREATE USER IF NOT EXISTS contend IDENTIFIED BY 'contend-password';
GRANT ALL ON *.* TO contend;
`
	script := filepath.Join(dir, "start.sql")
	if err := os.WriteFile(script, []byte(accounts), 0o644); err != nil {
		return nil, err
	}
	credential, err := ordinaryUser(dir)
	if err != nil {
		return nil, err
	}
	data := filepath.Join(dir, "data")
	as := func(command *exec.Cmd) *exec.Cmd {
		command.Dir = dir
		// Its own, since the test's may be closed to this user.
		command.Env = append(os.Environ(), "TMPDIR="+dir)
		command.SysProcAttr = &syscall.SysProcAttr{Credential: credential}
		return command
	}
	output, err := as(exec.Command(install, "--no-defaults", "--datadir="+data, "--skip-test-db", "--skip-name-resolve")).CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("mariadb-install-db: %w\n%s", err, output)
	}
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	address := net.JoinHostPort("127.0.0.1", port)
	// --debug-gdb lets it end on an interrupt, too.
	arguments := append([]string{"--no-defaults", "--datadir=" + data, "--socket=" + filepath.Join(dir, "socket"), "--pid-file=" + filepath.Join(dir, "pid"),
		"--bind-address=127.0.0.1", "--port=" + port, "--skip-name-resolve", "--skip-log-bin", "--debug-gdb", "--init-file=" + script,
		"--max-connections=300", "--innodb-flush-log-at-trx-commit=0"}, options...)
	return start(as(exec.Command(mariadbd, arguments...)), "mysql://contend:contend-password@"+address+"/contend",
		func() bool { return greets(address) })
}

// greets tells whether a MySQL or MariaDB sends the first packet of a connection,
// version 10 of the protocol.
func greets(address string) bool {
	conn, err := net.DialTimeout("tcp", address, time.Second)
	if err != nil {
		return false
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(time.Second))
	packet := make([]byte, 5)
	_, err = io.ReadFull(conn, packet)
	return err == nil && packet[4] == 10
}

// MariaDB is Redis's twin for MariaDB.
func MariaDB(tb testing.TB) string {
	tb.Helper()
	return MariaDBServer(tb).URL
}

// MariaDBServer is MariaDB for a test that does something to the server itself.
func MariaDBServer(tb testing.TB, options ...string) *Server {
	tb.Helper()
	return ForTest(tb, func(dir string) (*Server, error) { return StartMariaDB(dir, options...) })
}
