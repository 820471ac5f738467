//go:build unix

package targettest

import (
	"embed"
	"fmt"
	"io/fs"
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
	program, err := findServer("pgbouncer")
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

// findServer looks for a server's program in PATH, then where only root has it there.
func findServer(name string) (string, error) {
	if path, err := exec.LookPath(name); err == nil {
		return path, nil
	}
	path, err := exec.LookPath(filepath.Join("/usr/sbin", name))
	if err != nil {
		return "", fmt.Errorf("%s: %w", name, ErrNotInstalled)
	}
	return path, nil
}

func takesConnections(address string) bool {
	conn, err := net.DialTimeout("tcp", address, time.Second)
	if err != nil {
		return false
	}
	conn.Close()
	return true
}

//go:embed pglite
var pglite embed.FS

// StartPGlite installs PGlite and its socket server from npm in dir, and starts it: a
// PostgreSQL in which all connections are on one session. The error of missing programs
// is ErrNotInstalled.
func StartPGlite(dir string) (*Server, error) {
	for _, program := range []string{"node", "npm"} {
		if _, err := exec.LookPath(program); err != nil {
			return nil, fmt.Errorf("%s: %w", program, ErrNotInstalled)
		}
	}
	project, err := fs.Sub(pglite, "pglite")
	if err != nil {
		return nil, err
	}
	if err := os.CopyFS(dir, project); err != nil {
		return nil, err
	}
	// The peers that it asks for are extensions, which nobody loads here.
	install := exec.Command("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline", "--legacy-peer-deps")
	install.Dir = dir
	if output, err := install.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%s: %w\n%s", install, err, output)
	}
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	command := exec.Command("node", "server.mjs", port)
	command.Dir = dir
	address := net.JoinHostPort("127.0.0.1", port)
	return start(command, "postgres://postgres@"+address+"/postgres?sslmode=disable", func() bool { return takesConnections(address) })
}

// PgBouncerServer is StartPgBouncer for the time of a test.
func PgBouncerServer(tb testing.TB, postgres string, settings ...string) *Server {
	tb.Helper()
	return forTest(tb, func(dir string) (*Server, error) { return StartPgBouncer(dir, postgres, settings...) })
}

// PGliteServer is StartPGlite for the time of a test.
func PGliteServer(tb testing.TB) *Server {
	tb.Helper()
	return forTest(tb, StartPGlite)
}
