// Package nodetest lets the real npm packages of Forge, unmodified, talk to
// "contend sim serve" through the shim. The tests are the .test.js files here.
package nodetest

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"contend/targets/forge/shim"
	"contend/targets/targettest/servers"
)

// How long the server may take to start and to stop, and another program to end.
const readyWithin, stoppedWithin, doneWithin = 30 * time.Second, 10 * time.Second, 5 * time.Minute

// usual is the variable that the shim takes the server's URL from.
const usual = "CONTEND_SIM_URL"

// flagsOf gives the servers of a file, as their flags by the variable that their
// URL is in. A file that is not here has one without quota.
func flagsOf(t *testing.T, file string) map[string][]string {
	switch file {
	case "ghosts.test.js":
		return map[string][]string{
			usual:               {"--quota=false", "--sweep=never"},
			"CONTEND_SWEPT_URL": {"--quota=false", "--sweep=1s"},
		}
	case "measurements.test.js":
		return map[string][]string{usual: {"--quota=false", "--latency=1ms..9ms"}}
	case "quota.test.js":
		return map[string][]string{usual: {"--quota"}}
	case "sql.test.js":
		return map[string][]string{usual: {"--quota=false", "--sql=" + servers.MariaDB(t)}}
	}
	return map[string][]string{usual: {"--quota=false"}}
}

func TestRealPackages(t *testing.T) {
	project := install(t)
	program := filepath.Join(t.TempDir(), "contend")
	if output, err := run(t, "", nil, "go", "build", "-buildvcs=false", "-o", program, "contend"); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	// node runs a file against its servers, which get further flags.
	node := func(t *testing.T, file string, more ...string) (string, error) {
		var environment []string
		for variable, flags := range flagsOf(t, file) {
			environment = append(environment, variable+"="+serve(t, program, append(flags, more...)...))
		}
		return run(t, project, environment, "node", "--require", "./forge-shim.cjs", "--test", "--test-reporter=tap", file)
	}
	files, err := filepath.Glob("*.test.js")
	if err != nil || len(files) == 0 {
		t.Fatalf("no tests: %v", err)
	}
	var ran atomic.Int64
	t.Run("files", func(t *testing.T) {
		for _, file := range files {
			t.Run(file, func(t *testing.T) {
				t.Parallel()
				output, err := node(t, file)
				n, notPassed := passed(output)
				if err := errors.Join(err, notPassed); err != nil {
					t.Fatalf("%v\n%s", err, output)
				}
				ran.Add(int64(n))
			})
		}
		// A server that answers otherwise is found out.
		for _, planted := range []struct{ flag, file, fails string }{
			{"--sweep=0s", "ghosts.test.js", "still conflicts"},
			{"--hide-ghosts", "ghosts.test.js", "a ghost in an entity"},
			{"--not-exists-needs-record", "protocol.test.js", "notExists holds where the record is absent"},
			{"--query-lag=1h", "protocol.test.js", "begins with"},
		} {
			t.Run(planted.file+planted.flag, func(t *testing.T) {
				t.Parallel()
				output, err := node(t, planted.file, planted.flag)
				failed := regexp.MustCompile(`(?m)^ *not ok \d+ - .*` + planted.fails)
				if _, notPassed := passed(output); err == nil || notPassed == nil || !failed.MatchString(output) {
					t.Errorf("got %v, %v; want that %q fails\n%s", err, notPassed, planted.fails, output)
				}
			})
		}
	})
	t.Logf("%d node tests ran, of %d files", ran.Load(), len(files))
}

// install gives a folder with the tests, their packages and the shim.
func install(t *testing.T) string {
	t.Helper()
	for _, program := range []string{"node", "npm"} {
		if _, err := exec.LookPath(program); err != nil {
			lack(t, fmt.Sprintf("%s is not installed", program))
		}
	}
	project := t.TempDir()
	if err := os.CopyFS(project, os.DirFS(".")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(project, "forge-shim.cjs"), []byte(shim.Source()), 0o600); err != nil {
		t.Fatal(err)
	}
	if output, err := run(t, project, nil, "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline"); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	return project
}

// lack skips a test for something that is not there, or fails it.
func lack(t *testing.T, what string) {
	t.Helper()
	if os.Getenv(servers.RequireServers) == "1" {
		t.Fatal(what)
	}
	t.Skipf("%s; %s=1 makes this a failure", what, servers.RequireServers)
}

// serve starts a server for the time of a test and gives its URL.
func serve(t *testing.T, program string, flags ...string) string {
	t.Helper()
	command := exec.Command(program, append([]string{"sim", "serve", "--listen=127.0.0.1:0", "--manifest=manifest.yml"}, flags...)...)
	var stderr bytes.Buffer
	command.Stderr = &stderr
	stdout, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	kill := time.AfterFunc(readyWithin, func() { command.Process.Kill() })
	line, _ := bufio.NewReader(stdout).ReadString('\n')
	kill.Stop()
	t.Cleanup(func() {
		command.Process.Signal(os.Interrupt)
		time.AfterFunc(stoppedWithin, func() { command.Process.Kill() })
		command.Wait()
		if t.Failed() {
			t.Logf("contend sim serve %s:\n%s", strings.Join(flags, " "), &stderr)
		}
	})
	url, ok := strings.CutPrefix(strings.TrimSpace(line), "listening on ")
	if !ok {
		t.Fatalf("contend sim serve %s wrote %q", strings.Join(flags, " "), line)
	}
	return url
}

// run runs a program to its end and gives what it wrote.
func run(t *testing.T, dir string, environment []string, program string, arguments ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), doneWithin)
	defer cancel()
	command := exec.CommandContext(ctx, program, arguments...)
	command.Dir = dir
	command.WaitDelay = time.Second // for children that keep its output open
	command.Env = append(os.Environ(), environment...)
	output, err := command.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%s: %w", command, err)
	}
	return string(output), err
}

// passed gives how many tests of a report in TAP passed: all that there are, and
// at least one.
func passed(report string) (int, error) {
	counts := map[string]int{}
	for _, match := range regexp.MustCompile(`(?m)^# (tests|pass) (\d+)$`).FindAllStringSubmatch(report, -1) {
		counts[match[1]], _ = strconv.Atoi(match[2])
	}
	switch {
	case counts["tests"] == 0:
		return 0, errors.New("no test ran")
	case counts["pass"] != counts["tests"]:
		return 0, fmt.Errorf("%d of %d tests passed", counts["pass"], counts["tests"])
	}
	return counts["tests"], nil
}

func TestPassed(t *testing.T) {
	for report, want := range map[string]int{
		"TAP version 13\n# tests 3\n# pass 3\n# fail 0\n":              3,
		"TAP version 13\n# tests 3\n# pass 2\n# fail 0\n# skipped 1\n": 0,
		"TAP version 13\n# tests 0\n# pass 0\n":                        0,
		"":                                                             0,
	} {
		got, err := passed(report)
		if got != want || (err == nil) != (want > 0) {
			t.Errorf("%q: got %d, %v; want %d", report, got, err, want)
		}
	}
}
