//go:build unix

package servers

import (
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// StartPgBouncer starts PgBouncer, with its files in dir, in front of the PostgreSQL
// of a URL, whose user needs no password, and waits until it takes connections. settings
// are lines of its section of the same name, such as "pool_mode = transaction"; later ones
// win. Its URL is that of the PostgreSQL, through it. The error of a missing program is
// ErrNotInstalled.
//
// PgBouncer too refuses to run as root: see StartPostgres.
func StartPgBouncer(dir, postgres string, settings ...string) (*Server, error) {
	program, err := find("pgbouncer")
	if err != nil {
		return nil, err
	}
	behind, err := url.Parse(postgres)
	if err != nil {
		return nil, err
	}
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	lines := append([]string{"[databases]", fmt.Sprintf("* = host=%s port=%s", behind.Hostname(), behind.Port()),
		"[pgbouncer]", "listen_addr = 127.0.0.1", "listen_port = " + port, "unix_socket_dir =", "auth_type = trust", "auth_file = users",
		"admin_users = " + behind.User.Username()}, settings...)
	for name, content := range map[string]string{"pgbouncer.ini": strings.Join(lines, "\n") + "\n", "users": fmt.Sprintf("%q \"\"\n", behind.User.Username())} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			return nil, err
		}
	}
	credential, err := ordinaryUser(dir)
	if err != nil {
		return nil, err
	}
	command := exec.Command(program, "pgbouncer.ini")
	command.Dir = dir
	command.SysProcAttr = &syscall.SysProcAttr{Credential: credential}
	through := *behind
	through.Host = net.JoinHostPort("127.0.0.1", port)
	return start(command, through.String(), func() bool { return takesConnections(through.Host) })
}

func takesConnections(address string) bool {
	conn, err := net.DialTimeout("tcp", address, time.Second)
	if err != nil {
		return false
	}
	conn.Close()
	return true
}

// PgBouncerServer is StartPgBouncer for the time of a test.
func PgBouncerServer(tb testing.TB, postgres string, settings ...string) *Server {
	tb.Helper()
	return ForTest(tb, func(dir string) (*Server, error) { return StartPgBouncer(dir, postgres, settings...) })
}
