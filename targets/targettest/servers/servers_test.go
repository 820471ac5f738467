//go:build unix

package servers_test

import (
	"errors"
	"strings"
	"testing"

	"contend/targets"
	"contend/targets/all"
	"contend/targets/targettest/servers"
)

func TestServersServeUntilTheyAreEnded(t *testing.T) {
	starts := map[string]func(testing.TB) *servers.Server{
		"redis":    func(tb testing.TB) *servers.Server { return servers.RedisServer(tb) },
		"postgres": func(tb testing.TB) *servers.Server { return servers.PostgresServer(tb) },
	}
	ends := map[string]func(*servers.Server){"stopped": (*servers.Server).Stop, "killed": (*servers.Server).Kill}
	for name, start := range starts {
		for how, end := range ends {
			t.Run(name+" "+how, func(t *testing.T) {
				server := start(t)
				target, err := all.Open(server.URL)
				if err != nil {
					t.Fatal(err)
				}
				defer target.Close()
				if _, err := target.Prepare(t.Context(), targets.Needs{Sessions: 1}); err != nil {
					t.Errorf("a started server: %v", err)
				}
				end(server)
				if _, err := target.Prepare(t.Context(), targets.Needs{Sessions: 1}); err == nil {
					t.Error("the server still answers")
				}
				end(server) // once more does no harm
			})
		}
	}
}

func TestServerThatCannotStart(t *testing.T) {
	servers.Redis(t) // skips where there is none
	if _, err := servers.StartRedis(t.TempDir(), "--no-such-option", "1"); err == nil || !strings.Contains(err.Error(), "no-such-option") {
		t.Errorf("the server's own words are missing: %v", err)
	}
	t.Setenv("PATH", "")
	if _, err := servers.StartRedis(t.TempDir()); !errors.Is(err, servers.ErrNotInstalled) {
		t.Errorf("got %v", err)
	}
}
