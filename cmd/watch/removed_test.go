package watch

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"contend/runner"
	"contend/targets"
)

// Of watched keys those are closed that were removed and are gone; whether they are gone
// where nobody could look is not known.
func TestCloseRemoved(t *testing.T) {
	for name, c := range map[string]struct {
		left    error
		closed  []string
		removed bool
	}{
		"all are gone":    {nil, []string{"a", "b"}, true},
		"one is there":    {fmt.Errorf("clean: %w", &runner.Left{Keys: []string{"b", "c"}}), []string{"a"}, true},
		"nobody has seen": {&runner.Left{Unseen: errors.New("refused")}, []string{"a", "b"}, false},
	} {
		watched := map[string]*runner.Ghost{"a": {Key: "a"}, "b": {Key: "b"}, "other": {Key: "other"}}
		var keys []string
		for _, g := range CloseRemoved(watched, []targets.Op{{Key: "a"}, {Key: "b"}, {Key: "c"}}, c.left) {
			keys = append(keys, g.Key)
			if !g.Closed || g.State != runner.GhostAbandoned || g.Removed != c.removed {
				t.Errorf("%s: %+v", name, g)
			}
		}
		if !slices.Equal(keys, c.closed) || watched["other"].Closed {
			t.Errorf("%s: %v, want %v", name, keys, c.closed)
		}
	}
}

// A store tells which keys it still watches.
func TestWatched(t *testing.T) {
	s := newSite(t, "sim:")
	if err := s.kept.Intend([]*runner.Ghost{{Run: "A", Key: "a"}, {Run: "A", Key: "b", Closed: true}, {Run: "B", Key: "c"}}); err != nil {
		t.Fatal(err)
	}
	keys, err := Watched(s.kept)
	if err != nil || len(keys) != 2 || keys["a"].Run != "A" || keys["c"].Run != "B" {
		t.Errorf("%v, %v", keys, err)
	}
}
