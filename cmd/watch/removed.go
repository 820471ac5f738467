package watch

import (
	"errors"

	"contend/report/store"
	"contend/runner"
	"contend/scenarios"
	"contend/targets"
)

// Watched gives the keys that the store still watches, by their name.
func Watched(kept *store.Store) (map[string]*runner.Ghost, error) {
	keys := make(map[string]*runner.Ghost)
	for g, err := range kept.Ghosts(store.Ghosts{Open: true}) {
		if err != nil {
			return nil, err
		}
		keys[g.Key] = g
	}
	return keys, nil
}

// CloseRemoved closes those of the watched keys that were removed from their target, and
// gives them: a watch that goes on would take them for expired keys that are free. left
// is what the removal left behind; nil: nothing.
func CloseRemoved(watched map[string]*runner.Ghost, deletes []targets.Op, left error) (closed []*runner.Ghost) {
	behind := &runner.Left{}
	errors.As(left, &behind)
	there := make(map[string]bool)
	for _, key := range behind.Keys {
		there[key] = true
	}
	for _, op := range deletes {
		if g := watched[op.Key]; g != nil && !there[op.Key] {
			scenarios.Abandon(g, "its key was removed by contend clean")
			g.Removed = behind.Unseen == nil
			closed = append(closed, g)
		}
	}
	return closed
}
