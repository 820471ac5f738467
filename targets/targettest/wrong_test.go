//go:build unix

package targettest_test

import (
	"errors"
	"flag"
	"net"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"contend/targets/targettest"
	"contend/targets/targettest/servers"
)

// alone are the wrong stores that need no program that is installed.
func alone() []targettest.WrongStore {
	return slices.DeleteFunc(targettest.WrongStores(), func(s targettest.WrongStore) bool { return s.Backends != "" || s.Real })
}

// answers tells whether somebody listens at the address of a URL.
func answers(t *testing.T, target string) bool {
	t.Helper()
	u, err := url.Parse(target)
	if err != nil {
		t.Fatal(err)
	}
	c, err := net.DialTimeout("tcp", u.Host, time.Second)
	if err == nil {
		c.Close()
	}
	return err == nil
}

func TestWrongStoresServeUntilTheyAreStopped(t *testing.T) {
	names := map[string]bool{}
	for _, s := range targettest.WrongStores() {
		if names[s.Name] || s.Says == "" || strings.Contains(s.Says, "\n") {
			t.Errorf("%q is there twice, or says nothing, or more than a line", s.Name)
		}
		names[s.Name] = true
	}
	stores := alone()
	if len(stores) < 30 {
		t.Fatalf("there are %d only", len(stores))
	}
	for _, s := range stores {
		server, err := targettest.StartWrong(t.TempDir(), s.Name)
		if err != nil {
			t.Fatal(err)
		}
		if !answers(t, server.URL) {
			t.Errorf("%s does not listen", s.Name)
		}
		open, err := net.Dial("tcp", strings.TrimPrefix(server.URL, "redis://"))
		if err != nil {
			t.Fatal(err)
		}
		server.Stop()
		open.SetDeadline(time.Now().Add(10 * time.Second))
		if n, err := open.Read(make([]byte, 1)); n > 0 || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%s leaves a connection open", s.Name)
		}
		if answers(t, server.URL) {
			t.Errorf("%s listens after it was stopped", s.Name)
		}
		server.Stop() // once more does no harm
		open.Close()
	}
}

// A proxy starts the servers that it stands in front of, unless they are named.
func TestWrongStoreWithServersOfItsOwn(t *testing.T) {
	redis := servers.Redis(t)
	for name, backends := range map[string]int{"slow-link": 1, "two-masters": 2, "lagging-replica": 2} {
		if target := targettest.Wrong(t, name); !answers(t, target) {
			t.Errorf("%s does not listen", name)
		}
		named := strings.TrimSuffix(strings.Repeat(strings.TrimPrefix(redis, "redis://")+",", backends), ",")
		if target := targettest.Wrong(t, name, "-b", named, "-l", "127.0.0.1:0"); !answers(t, target) {
			t.Errorf("%s -b %s does not listen", name, named)
		}
	}
}

func TestWrongRealServers(t *testing.T) {
	for _, s := range targettest.WrongStores() {
		if !s.Real {
			continue
		}
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			if target := targettest.Wrong(t, s.Name); !answers(t, target) {
				t.Errorf("nobody listens at %s", target)
			}
		})
	}
}

func TestWrongCommandLines(t *testing.T) {
	for arguments, want := range map[string]string{
		"":                                  "the name of a wrong store is missing",
		"nope":                              `there is no wrong store "nope"`,
		"window more":                       `"more"`,
		"window -nope":                      "-nope",
		"window -window -1s":                "must not be negative",
		"window -window 1":                  "-window",
		"window -l nowhere":                 `-l "nowhere"`,
		"window -b 127.0.0.1:1":             "stands in front of nothing",
		"two-masters -b 127.0.0.1:1":        "stands in front of A,B",
		"slow-link -b 127.0.0.1:1,[::1]:2":  "stands in front of SERVER",
		"forge-login-page":                  "-b is missing: forge-login-page stands in front of EMULATOR",
		"two-masters -b 127.0.0.1:1 -delay": "-delay",
		"redis-full -l 127.0.0.1:1":         "redis-full takes no flags",
	} {
		server, err := targettest.StartWrong(t.TempDir(), strings.Fields(arguments)...)
		if err == nil {
			server.Stop()
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("wrong %s: got %v, want %q", arguments, err, want)
		}
	}
	if _, err := targettest.StartWrong(t.TempDir(), "window", "-h"); !errors.Is(err, flag.ErrHelp) {
		t.Errorf("-h: %v", err)
	}
	if flags := targettest.WrongFlags(); !strings.Contains(flags, "-window") {
		t.Errorf("the flags are\n%s", flags)
	}
}
