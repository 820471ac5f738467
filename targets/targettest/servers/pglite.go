//go:build unix

package servers

import (
	"embed"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"testing"
)

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

// PGliteServer is StartPGlite for the time of a test.
func PGliteServer(tb testing.TB) *Server {
	tb.Helper()
	return ForTest(tb, StartPGlite)
}
