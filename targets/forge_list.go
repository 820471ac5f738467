package targets

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
)

// bothCollections are where Forge KVS keeps keys: plain, and as entities.
var bothCollections = []Collection{Plain, Versioned}

// lister is a session that can list keys, a page at a time; an empty next ends
// the listing.
type lister interface {
	list(ctx context.Context, collection Collection, prefix, cursor string) (keys []string, next string, err error)
}

// throttled is the refusal of a page for a quota.
type throttled struct {
	after time.Duration
	error
}

// leastBreath is waited where a store does not tell when its quota is free again.
const leastBreath = time.Second

// listCollections gives the deletes of the keys of each collection. A page that a quota puts off
// is asked for again until ctx ends.
func listCollections(ctx context.Context, s lister, collections []Collection, prefix string) (deletes []Op, requests int, err error) {
	for _, collection := range collections {
		for cursor, more := "", true; more; {
			keys, next, err := s.list(ctx, collection, prefix, cursor)
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
					deletes = append(deletes, forgeDelete(collection, key))
				}
			}
			cursor, more = next, next != ""
		}
	}
	return deletes, requests, nil
}

// forgeDelete deletes a key from a collection, whatever the strategies of the target: an
// op without a path of its own goes where these keep records.
func forgeDelete(collection Collection, key string) Op {
	if collection == inSQL {
		return Op{Kind: Delete, Key: key}
	}
	request := restRequest{Key: key}
	path := "delete"
	if collection == Versioned {
		path, request.EntityName = "entity/delete", entityName
	}
	body, _ := json.Marshal(request) // two texts
	raw, _ := json.Marshal(forgeRaw{wireVersion + path, body})
	return Op{Kind: Raw, Key: key, Raw: raw}
}

// collectionsOf are where a target with this strategy of create-if-absent may have keys: a
// probe asks KVS whatever the strategy.
func collectionsOf(create string) []Collection {
	if create == inSQL {
		return append([]Collection{inSQL}, bothCollections...)
	}
	return bothCollections
}

// unlisted tells why a page could not be had.
func unlisted(r Reply) error {
	err := fmt.Errorf("listing the keys: status %d %s %s", r.Status, r.Code, r.Message)
	if r.Outcome == Throttled {
		return throttled{r.RetryAfter, err}
	}
	return err
}
