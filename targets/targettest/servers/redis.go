//go:build unix

package servers

import (
	"fmt"
	"io"
	"net"
	"os/exec"
	"testing"
	"time"
)

// StartRedis starts redis-server with its data in dir and waits until it
// answers. arguments are further ones of its command line, such as
// "--requirepass", "secret". The error of a missing program is ErrNotInstalled.
func StartRedis(dir string, arguments ...string) (*Server, error) {
	program, err := find("redis-server")
	if err != nil {
		return nil, err
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

// Redis starts a Redis for the time of a test and gives its URL. Where none is
// installed the test is skipped, or fails if RequireServers says so.
func Redis(tb testing.TB) string {
	tb.Helper()
	return RedisServer(tb).URL
}

// RedisServer is Redis for a test that does something to the server itself.
func RedisServer(tb testing.TB, arguments ...string) *Server {
	tb.Helper()
	return ForTest(tb, func(dir string) (*Server, error) { return StartRedis(dir, arguments...) })
}
