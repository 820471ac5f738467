//go:build unix

// Package apptest runs the companion app for tests, unmodified and with the real
// @forge/kvs and @forge/sql, in a small Node.js host that stands in for the platform's web
// trigger, against the emulator of "contend sim serve".
package apptest

import (
	"bufio"
	"cmp"
	"crypto/rand"
	"embed"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"contend/targets/forge/app"
	"contend/targets/forge/shim"
	"contend/targets/targettest/servers"
)

//go:embed host.mjs
var files embed.FS

// How long a server may take to start and, before it is killed, to stop.
const startedWithin, stoppedWithin = 60 * time.Second, 10 * time.Second

// Host starts an emulator without quotas and the app in front of it, and gives the
// URL of its web trigger and the token that it wants, which is CONTEND_FORGE_TOKEN where
// the test has one. Both end with the test.
// simFlags are further flags of "contend sim serve"; a later one wins. Where
// Node.js or npm is missing the test is skipped, or fails if
// servers.RequireServers says so.
func Host(tb testing.TB, simFlags ...string) (url, token string) {
	tb.Helper()
	needNode(tb)
	token = cmp.Or(os.Getenv("CONTEND_FORGE_TOKEN"), rand.Text())
	return startApp(tb, token, installApp(tb), startSim(tb, simFlags...)), token
}

// Token is what HostWithToken wants.
const Token = "a-token-for-tests"

// HostWithToken is Host with a token that is known before, for tests side by side.
func HostWithToken(tb testing.TB, simFlags ...string) (url string) {
	tb.Helper()
	needNode(tb)
	return startApp(tb, Token, installApp(tb), startSim(tb, simFlags...))
}

// startSim starts the emulator and gives its URL.
func startSim(tb testing.TB, flags ...string) string {
	tb.Helper()
	dir := tb.TempDir()
	contend := filepath.Join(dir, "contend")
	run(tb, "", "go", "build", "-buildvcs=false", "-o", contend, "contend")
	command := exec.Command(contend, append([]string{"sim", "serve", "--listen", "127.0.0.1:0", "--quota=false"}, flags...)...)
	command.Dir = dir
	return start(tb, command)
}

// startApp starts the app that is installed in a folder against a storage server.
func startApp(tb testing.TB, token, dir, storage string) (url string) {
	tb.Helper()
	return startHost(tb, dir, "CONTEND_SIM_URL="+storage, "CONTEND_FORGE_TOKEN="+token) + "/x1/contend"
}

// startHost starts the host for the app in a folder, with further variables in its
// environment.
func startHost(tb testing.TB, dir string, environment ...string) string {
	tb.Helper()
	command := exec.Command("node", "--require", "./forge-shim.cjs", "host.mjs", "src/index.js")
	command.Dir = dir
	command.Env = append(os.Environ(), environment...)
	return start(tb, command)
}

// installApp writes the app, as a user would get it, to a folder, with the host
// and the shim beside it, and installs its packages.
func installApp(tb testing.TB) (dir string) {
	tb.Helper()
	dir = tb.TempDir()
	if err := app.WriteTo(dir); err != nil {
		tb.Fatal(err)
	}
	if err := os.CopyFS(dir, files); err != nil {
		tb.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "forge-shim.cjs"), []byte(shim.Source()), 0o600); err != nil {
		tb.Fatal(err)
	}
	npmInstall(tb, dir)
	return dir
}

// npmInstall installs what the lock in a folder names, and runs no script of it.
func npmInstall(tb testing.TB, dir string) {
	tb.Helper()
	run(tb, dir, "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline")
}

func needNode(tb testing.TB) {
	tb.Helper()
	for _, program := range []string{"node", "npm"} {
		if _, err := exec.LookPath(program); err == nil {
			continue
		}
		if os.Getenv(servers.RequireServers) == "1" {
			tb.Fatalf("%s is not installed", program)
		}
		tb.Skipf("%s is not installed; %s=1 makes this a failure", program, servers.RequireServers)
	}
}

// run runs a program to its end and gives what it printed.
func run(tb testing.TB, dir, program string, arguments ...string) string {
	tb.Helper()
	command := exec.Command(program, arguments...)
	command.Dir = dir
	var errors strings.Builder
	command.Stderr = &errors
	output, err := command.Output()
	if err != nil {
		tb.Fatalf("%s %s: %v\n%s%s", program, strings.Join(arguments, " "), err, output, &errors)
	}
	return string(output)
}

// start starts a server, waits until it prints where it listens, and gives that
// URL. The server ends with the test.
func start(tb testing.TB, command *exec.Cmd) string {
	tb.Helper()
	log, err := os.Create(filepath.Join(tb.TempDir(), "log"))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { log.Close() })
	command.Stderr = log
	output, err := command.StdoutPipe()
	if err != nil {
		tb.Fatal(err)
	}
	if err := command.Start(); err != nil {
		tb.Fatalf("%s: %v", command.Path, err)
	}
	printed, ended := make(chan string, 1), make(chan struct{})
	go func() {
		defer close(ended)
		line, _ := bufio.NewReader(output).ReadString('\n')
		printed <- line
		io.Copy(io.Discard, output)
		command.Wait()
	}()
	tb.Cleanup(func() { stop(command.Process, ended) })
	what := strings.Join(command.Args, " ")
	select {
	case line := <-printed:
		if url, ok := strings.CutPrefix(strings.TrimSpace(line), "listening on "); ok {
			return url
		}
		<-ended
		wrote, _ := os.ReadFile(log.Name())
		tb.Fatalf("%s does not listen; it printed %q and\n%s", what, line, wrote)
	case <-time.After(startedWithin):
		tb.Fatalf("%s does not listen after %s", what, startedWithin)
	}
	return ""
}

func stop(process *os.Process, ended <-chan struct{}) {
	process.Signal(os.Interrupt)
	select {
	case <-ended:
	case <-time.After(stoppedWithin):
		process.Kill()
		<-ended
	}
}

// Sim starts an emulator without quotas and gives its URL; it ends with the test.
func Sim(tb testing.TB, flags ...string) string {
	tb.Helper()
	return startSim(tb, flags...)
}
