package watch

import (
	"path/filepath"
	"testing"
	"time"

	"contend/report/store"
	"contend/runner"
	"contend/targets/all"
)

// A watch of a simulated target dies with its process. The keys of one that another
// process may still be watching are left alone, however slow it is.
func TestOnlyTheDeadAreClosed(t *testing.T) {
	t.Parallel()
	const longAgo = 100 * time.Hour
	for name, c := range map[string]struct {
		change func(*runner.Ghost)
		held   bool // a process asks about the keys of the run
		closed bool
	}{
		"over":                 {func(g *runner.Ghost) {}, false, true},
		"over, and held":       {func(g *runner.Ghost) {}, true, false},
		"granted more":         {func(g *runner.Ghost) { g.Granted = longAgo }, false, false},
		"a create that lasted": {func(g *runner.Ghost) { g.Created.Return = longAgo }, false, false},
		"created late":         {func(g *runner.Ghost) { g.Created, g.Terms.Offset = nil, longAgo }, false, false},
		"a day of watching":    {func(g *runner.Ghost) { g.Terms.Watch = longAgo }, false, false},
		"of another store":     {func(g *runner.Ghost) { g.Target = "redis://127.0.0.1:1" }, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			kept, err := store.Open(filepath.Join(t.TempDir(), "ghosts.db"))
			if err != nil {
				t.Fatal(err)
			}
			defer kept.Close()
			const run = "01M8P4QDXB77DTFBJ75KQR8WX4"
			g := &runner.Ghost{Run: run, Key: "contend-" + run + "-write0", Target: "sim:", Epoch: time.Now().Add(-time.Hour), State: runner.GhostPending,
				Created: &runner.Observation{Call: time.Second, Return: 2 * time.Second},
				Terms:   runner.GhostTerms{TTL: time.Second, Watch: 10 * time.Second, Tolerance: time.Second}}
			c.change(g)
			if err := kept.Intend([]*runner.Ghost{g}); err != nil {
				t.Fatal(err)
			}
			if c.held {
				release, err := guard(kept, run)
				if err != nil {
					t.Fatal(err)
				}
				defer release()
			}
			open, err := kept.OpenGhosts("")
			if err != nil {
				t.Fatal(err)
			}
			CloseDead(kept, all.Open, open)
			if open, err = kept.OpenGhosts(""); err != nil || (len(open) == 0) != c.closed {
				t.Errorf("%d keys are open, %v; closed: want %v", len(open), err, c.closed)
			}
		})
	}
}
