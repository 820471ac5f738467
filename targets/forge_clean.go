package targets

import (
	"context"
	"fmt"
	"strings"
)

// bothHomes are where Forge KVS keeps keys: plain, and as entities.
var bothHomes = []Guard{IfAbsent, IfVersion}

// lister is a session that can list keys, a page at a time; an empty next ends
// the listing.
type lister interface {
	list(ctx context.Context, home Guard, prefix, cursor string) (keys []string, next string, err error)
}

// cleanListed deletes the selected keys of each home. A home is listed whole
// before anything is deleted from it, so that no page moves.
func cleanListed(ctx context.Context, t Target, homes []Guard, which Selection) (removed int, err error) {
	s, err := t.Open(ctx, -1)
	if err != nil {
		return 0, err
	}
	defer s.Close()
	for _, home := range homes {
		var all []string
		for cursor := ""; ; {
			keys, next, err := s.(lister).list(ctx, home, which.Prefix, cursor)
			if err != nil {
				return removed, err
			}
			all = append(all, keys...)
			if cursor = next; cursor == "" {
				break
			}
		}
		for _, key := range all {
			if !strings.HasPrefix(key, which.Prefix) || !which.Selected(key) {
				continue
			}
			if r := s.Do(ctx, Op{Kind: Delete, Key: key, Home: home}); r.Outcome != OK {
				return removed, fmt.Errorf("deleting %s: %s %s", key, r.Code, r.Message)
			}
			removed++
		}
	}
	return removed, nil
}
