//go:build unix

package targettest_test

import (
	"errors"
	"strings"
	"testing"

	"contend/targets/all"
	"contend/targets/targettest"
)

func TestServersServeUntilTheyAreEnded(t *testing.T) {
	starts := map[string]func(testing.TB) *targettest.Server{
		"redis":    func(tb testing.TB) *targettest.Server { return targettest.RedisServer(tb) },
		"postgres": func(tb testing.TB) *targettest.Server { return targettest.PostgresServer(tb) },
	}
	ends := map[string]func(*targettest.Server){"stopped": (*targettest.Server).Stop, "killed": (*targettest.Server).Kill}
	for name, start := range starts {
		for how, end := range ends {
			t.Run(name+" "+how, func(t *testing.T) {
				server := start(t)
				target, err := all.Open(server.URL)
				if err != nil {
					t.Fatal(err)
				}
				defer target.Close()
				if _, err := target.Prepare(t.Context(), needs); err != nil {
					t.Errorf("a started server: %v", err)
				}
				end(server)
				if _, err := target.Prepare(t.Context(), needs); err == nil {
					t.Error("the server still answers")
				}
				end(server) // once more does no harm
			})
		}
	}
}

func TestServerThatCannotStart(t *testing.T) {
	targettest.Redis(t) // skips where there is none
	if _, err := targettest.StartRedis(t.TempDir(), "--no-such-option", "1"); err == nil || !strings.Contains(err.Error(), "no-such-option") {
		t.Errorf("the server's own words are missing: %v", err)
	}
	t.Setenv("PATH", "")
	if _, err := targettest.StartRedis(t.TempDir()); !errors.Is(err, targettest.ErrNotInstalled) {
		t.Errorf("got %v", err)
	}
}
