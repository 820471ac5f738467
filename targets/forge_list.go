package targets

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
)

// bothHomes are where Forge KVS keeps keys: plain, and as entities.
var bothHomes = []Guard{IfAbsent, IfVersion}

// lister is a session that can list keys, a page at a time; an empty next ends
// the listing.
type lister interface {
	list(ctx context.Context, home Guard, prefix, cursor string) (keys []string, next string, err error)
}

// throttled is the refusal of a page for a quota.
type throttled struct {
	after time.Duration
	error
}

// leastBreath is waited where a store does not tell when its quota is free again.
const leastBreath = time.Second

// listHomes gives the deletes of the keys of each home. A page that a quota puts off
// is asked for again until ctx ends.
func listHomes(ctx context.Context, s lister, homes []Guard, prefix string) (deletes []Op, requests int, err error) {
	for _, home := range homes {
		for cursor, more := "", true; more; {
			keys, next, err := s.list(ctx, home, prefix, cursor)
			requests++
			var busy throttled
			if errors.As(err, &busy) && sleep(ctx, max(busy.after, leastBreath)) == nil {
				continue
			}
			if err != nil {
				return deletes, requests, err
			}
			for _, key := range keys {
				if strings.HasPrefix(key, prefix) {
					deletes = append(deletes, forgeDelete(home, key))
				}
			}
			cursor, more = next, next != ""
		}
	}
	return deletes, requests, nil
}

// forgeDelete deletes a key from a home, whatever the strategies of the target: an
// op without a path of its own goes where these keep records.
func forgeDelete(home Guard, key string) Op {
	if home == inSQL {
		return Op{Kind: Delete, Key: key}
	}
	request := restRequest{Key: key}
	path := "delete"
	if home == IfVersion {
		path, request.EntityName = "entity/delete", entityName
	}
	body, _ := json.Marshal(request) // two texts
	raw, _ := json.Marshal(forgeRaw{wireVersion + path, body})
	return Op{Kind: Raw, Key: key, Raw: raw}
}

// homesOf are where a target with this strategy of create-if-absent may have keys: a
// probe asks KVS whatever the strategy.
func homesOf(create string) []Guard {
	if create == inSQL {
		return append([]Guard{inSQL}, bothHomes...)
	}
	return bothHomes
}

// unlisted tells why a page could not be had.
func unlisted(r Reply) error {
	err := fmt.Errorf("listing the keys: status %d %s %s", r.Status, r.Code, r.Message)
	if r.Outcome == Throttled {
		return throttled{r.RetryAfter, err}
	}
	return err
}
