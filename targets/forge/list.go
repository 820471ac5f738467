package forge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"contend/targets"
	"contend/targets/forge/wire"
	"contend/targets/kit"
)

// bothCollections are where Forge KVS keeps keys: plain, and as entities.
var bothCollections = []targets.Collection{targets.Plain, targets.Versioned}

// lister is a session that can list keys, a page at a time; an empty next ends
// the listing.
type lister interface {
	list(ctx context.Context, collection targets.Collection, prefix, cursor string) (keys []string, next string, err error)
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
func listCollections(ctx context.Context, s lister, collections []targets.Collection, prefix string) (deletes []targets.Op, requests int, err error) {
	for _, collection := range collections {
		for cursor, more := "", true; more; {
			keys, next, err := s.list(ctx, collection, prefix, cursor)
			requests++
			var busy throttled
			if errors.As(err, &busy) && kit.Sleep(ctx, max(busy.after, leastBreath)) == nil {
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
func forgeDelete(collection targets.Collection, key string) targets.Op {
	if collection == inSQL {
		return targets.Op{Kind: targets.Delete, Key: key}
	}
	request := restRequest{Key: key}
	path := "delete"
	if collection == targets.Versioned {
		path, request.EntityName = "entity/delete", wire.EntityName
	}
	body, _ := json.Marshal(request) // two texts
	raw, _ := json.Marshal(wire.RawOp{Path: wire.Version + path, Body: body})
	return targets.Op{Kind: targets.Raw, Key: key, Raw: raw}
}

// collectionsOf are where a target with this strategy of create-if-absent may have keys: a
// probe asks KVS whatever the strategy.
func collectionsOf(create string) []targets.Collection {
	if create == inSQL {
		return append([]targets.Collection{inSQL}, bothCollections...)
	}
	return bothCollections
}

// unlisted tells why a page could not be had.
func unlisted(r targets.Reply) error {
	err := fmt.Errorf("listing the keys: status %d %s %s", r.Status, r.Code, r.Message)
	if r.Outcome == targets.Throttled {
		return throttled{r.RetryAfter, err}
	}
	return err
}
