//go:build unix

package targettest

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"contend/targets/targettest/servers"
	"contend/targets/targettest/wrong/stores"
)

// A WrongStore is a store with a fault that has a name.
type WrongStore struct {
	Name, Says string // its fault in one line
	// Backends are what it stands in front of; "" for one that stands alone.
	Backends string
	Real     bool // a real server, whose program has to be installed
	start    func(w *WrongServer, o stores.Options) (url string, err error)
}

// WrongStores are all that StartWrong knows, in the order in which they are listed.
func WrongStores() []WrongStore {
	var all []WrongStore
	for _, s := range stores.All() {
		all = append(all, WrongStore{Name: s.Name, Says: s.Says, Backends: s.Backends, start: func(w *WrongServer, o stores.Options) (string, error) {
			if err := w.provide(s, &o); err != nil {
				return "", err
			}
			return w.store(s, o)
		}})
	}
	for _, s := range wrongServers {
		s.Real = true
		all = append(all, s)
	}
	return all
}

// StartWrong starts the wrong store that a command line names: NAME [flags]. What it
// needs beside programs that are installed is in dir. The error of a missing program
// is servers.ErrNotInstalled, and flag.ErrHelp that of a command line that asks for help.
func StartWrong(dir string, arguments ...string) (*WrongServer, error) {
	if len(arguments) == 0 {
		return nil, errors.New("the name of a wrong store is missing")
	}
	i := slices.IndexFunc(WrongStores(), func(s WrongStore) bool { return s.Name == arguments[0] })
	if i < 0 {
		return nil, fmt.Errorf("there is no wrong store %q", arguments[0])
	}
	s := WrongStores()[i]
	o, err := wrongOptions(s, arguments[1:])
	if err != nil {
		return nil, err
	}
	started := &WrongServer{dir: dir}
	if started.URL, err = s.start(started, o); err != nil {
		started.Stop()
		return nil, fmt.Errorf("%s: %w", s.Name, err)
	}
	return started, nil
}

// WrongFlags tells the flags of every wrong store.
func WrongFlags() string {
	var text strings.Builder
	flags, _, _ := wrongFlags()
	flags.SetOutput(&text)
	flags.PrintDefaults()
	return text.String()
}

func wrongFlags() (*flag.FlagSet, *stores.Options, *string) {
	var o stores.Options
	flags := flag.NewFlagSet("", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.StringVar(&o.Listen, "l", "", "the `HOST:PORT` to listen on (default: a free port of the loopback interface, which is printed)")
	backends := flags.String("b", "", "what a proxy stands in front of: `HOST:PORT`, or several with commas in between (default: servers of its own)")
	flags.DurationVar(&o.Delay, "delay", 0, "how late what is late comes (default: in the list)")
	flags.DurationVar(&o.Window, "window", 0, "between the check and the set (default: in the list)")
	flags.StringVar(&o.Text, "text", "", "of the error reply (default: in the list)")
	return flags, &o, backends
}

func wrongOptions(s WrongStore, arguments []string) (stores.Options, error) {
	flags, o, backends := wrongFlags()
	if err := flags.Parse(arguments); err != nil {
		return *o, err
	}
	if *backends != "" {
		o.Backends = strings.Split(*backends, ",")
	}
	want := len(strings.Split(s.Backends, ","))
	switch {
	case flags.NArg() > 0:
		return *o, fmt.Errorf("%s takes no further word, and there is %q", s.Name, flags.Arg(0))
	case s.Real && len(arguments) > 0:
		return *o, fmt.Errorf("%s takes no flags: it starts real servers, on free ports", s.Name)
	case s.Backends == "" && *backends != "":
		return *o, fmt.Errorf("-b %q: %s stands in front of nothing", *backends, s.Name)
	case *backends != "" && len(o.Backends) != want:
		return *o, fmt.Errorf("-b %q: %s stands in front of %s", *backends, s.Name, s.Backends)
	case o.Delay < 0 || o.Window < 0:
		return *o, errors.New("-delay and -window must not be negative")
	}
	return *o, nil
}

// WrongServer is a wrong store that was started, with all that it needs.
type WrongServer struct {
	URL   string // a target's
	dir   string
	stops []func()
}

// Stop ends what was started, the last first.
func (w *WrongServer) Stop() {
	for _, stop := range slices.Backward(w.stops) {
		stop()
	}
	w.stops = nil
}

func (w *WrongServer) store(s stores.Store, o stores.Options) (string, error) {
	server, err := s.Start(o)
	if err != nil {
		return "", err
	}
	w.stops = append(w.stops, server.Stop)
	return server.URL, nil
}

// server starts a real server in a directory of its own.
func (w *WrongServer) server(start func(dir string) (*servers.Server, error)) (*servers.Server, error) {
	dir := filepath.Join(w.dir, fmt.Sprint(len(w.stops)))
	// PostgreSQL's user has to pass through.
	if err := errors.Join(os.Chmod(w.dir, 0o711), os.Mkdir(dir, 0o755)); err != nil {
		return nil, err
	}
	server, err := start(dir)
	if err != nil {
		return nil, err
	}
	w.stops = append(w.stops, server.Stop)
	return server, nil
}

func (w *WrongServer) redis(arguments ...string) (*servers.Server, error) {
	return w.server(func(dir string) (*servers.Server, error) { return servers.StartRedis(dir, arguments...) })
}

// hostPort is the address in the URL of a server of ours.
func hostPort(target string) string {
	u, err := url.Parse(target)
	if err != nil {
		panic(err)
	}
	return u.Host
}

// provide starts the servers that a proxy stands in front of, where none are named.
func (w *WrongServer) provide(s stores.Store, o *stores.Options) error {
	if s.Backends == "" || len(o.Backends) > 0 {
		return nil
	}
	add := func(server *servers.Server, err error) error {
		if err == nil {
			o.Backends = append(o.Backends, hostPort(server.URL))
		}
		return err
	}
	switch s.Backends {
	case "A,B":
		return errors.Join(add(w.redis()), add(w.redis()))
	case "SERVER":
		return add(w.redis())
	case "PRIMARY,REPLICA":
		if err := add(w.redis()); err != nil {
			return err
		}
		return add(w.replica(o.Backends[0], *o))
	case "POSTGRESQL":
		return add(w.postgres())
	}
	return fmt.Errorf("-b is missing: %s stands in front of %s", s.Name, s.Backends)
}

// replica starts a replica of a Redis, behind it by o.Delay.
func (w *WrongServer) replica(primary string, o stores.Options) (*servers.Server, error) {
	i := slices.IndexFunc(stores.All(), func(s stores.Store) bool { return s.Name == "slow-link" })
	link, err := w.store(stores.All()[i], stores.Options{Backends: []string{primary}, Delay: o.Delay})
	if err != nil {
		return nil, err
	}
	host, port, _ := strings.Cut(hostPort(link), ":")
	return w.redis("--replicaof", host+" "+port, "--repl-diskless-sync-delay", "0")
}

// Wrong starts a wrong store for the time of a test, as StartWrong does, and gives its
// URL. Where a program is not installed the test is skipped, or fails if
// servers.RequireServers says so.
func Wrong(tb testing.TB, arguments ...string) string {
	tb.Helper()
	return servers.ForTest(tb, func(dir string) (*WrongServer, error) { return StartWrong(dir, arguments...) }).URL
}
