package cmd_test

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"contend/cmd"
)

// screen is a terminal; what is written to it can be read.
type screen struct {
	mu   sync.Mutex
	text strings.Builder
	*os.File
}

func terminal(t *testing.T) *screen {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	number, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	slave, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetWinsize(int(slave.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 40, Col: 300}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { slave.Close(); master.Close() })
	s := &screen{File: slave}
	go func() {
		b := make([]byte, 4096)
		for {
			n, err := master.Read(b)
			if err != nil {
				return
			}
			s.mu.Lock()
			s.text.Write(b[:n])
			s.mu.Unlock()
		}
	}()
	return s
}

func (s *screen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// shows waits until something is on the screen.
func (s *screen) shows(t *testing.T, what string) {
	t.Helper()
	for range 3000 {
		if strings.Contains(s.String(), what) {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("%q does not show up in %q", what, s.String())
}

// The first interrupt takes the progress away before it tells of the keys, so that
// the command to remove them is whole; the second has the run and the command in
// the last line. The target answers nothing, so that neither comes to its end.
func TestInterruptedOnATerminal(t *testing.T) {
	for name, args := range map[string][]string{
		"race":  {"fail-if-exists", "-t", "sim:?latency=1h", "--timeout", "1h"},
		"watch": {"ttl-ghost", "-t", "sim:?latency=1h", "--timeout", "1h", "--store", ""},
		"probe": {"probe", "-t", "sim:?latency=1h", "--timeout", "1h"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, interrupt := context.WithCancel(t.Context())
			halt, code := make(chan struct{}), make(chan int)
			screen := terminal(t)
			go func() {
				code <- cmd.Run(cmd.WithHalt(ctx, halt), args, strings.NewReader(""), &strings.Builder{}, screen.File)
			}()
			screen.shows(t, "[")
			interrupt()
			screen.shows(t, "contend: interrupted")
			screen.shows(t, "Interrupt again to stop at once")
			time.Sleep(500 * time.Millisecond) // the bar would be drawn three times
			_, after, _ := strings.Cut(screen.String(), "contend: interrupted")
			if rest := strings.SplitAfterN(after, "\n", 2); len(rest) != 2 || rest[1] != "" || strings.Contains(after, "\x1b") {
				t.Errorf("something is drawn after the interrupt: %q", after)
			}
			close(halt)
			if got := <-code; got != 130 {
				t.Errorf("exit %d", got)
			}
			screen.shows(t, "stopped at once")
			all := strings.Split(strings.TrimSpace(screen.String()), "\n")
			last := regexp.MustCompile(`^contend: stopped at once: run (\w{26}) is not reported, .* contend clean -t 'sim:\?latency=1h' --run (\w{26})$`)
			if m := last.FindStringSubmatch(all[len(all)-1]); m == nil || m[1] != m[2] {
				t.Errorf("the last line is %q", all[len(all)-1])
			}
		})
	}
}
