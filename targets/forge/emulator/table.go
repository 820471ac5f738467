package emulator

import (
	"encoding/json"
	"math"
	"time"
)

// never is the sweep time of a record that is not swept.
const never = math.MaxInt64

// record is a stored value. Times are epoch milliseconds. The value is
// compacted JSON in a string, so no caller can share its bytes.
type record struct {
	value      string
	createdAt  int64
	updatedAt  int64
	expireTime int64 // 0: no TTL
	sweepTime  int64
}

// ghost reports whether the record has expired. It is still there.
func (r record) ghost(now int64) bool {
	return r.expireTime != 0 && now >= r.expireTime
}

// table is one name space of keys: the plain keys or those of one entity.
type table struct {
	typed      bool
	attributes map[string]Type
	indexes    []Index
	longTTL    error
	records    map[string]record

	lag     int64 // of queries, in milliseconds
	history map[string][]past
}

func newTable(o Options) *table {
	t := &table{records: map[string]record{}, history: map[string][]past{}, lag: o.QueryLag.Milliseconds(), longTTL: errLongTTL}
	if o.LongTTLCode != "" {
		t.longTTL = &Error{400, o.LongTTLCode, errLongTTL.Message}
	}
	return t
}

// lookup returns the record of a key, ghosts included, and drops it where its
// sweep is due.
func (t *table) lookup(key string, now int64) (record, bool) {
	r, exists := t.records[key]
	if exists && now >= r.sweepTime {
		t.note(key, r.sweepTime)
		delete(t.records, key)
		return record{}, false
	}
	return r, exists
}

// visible is lookup as writes and conditions see it.
func (s *Store) visible(t *table, key string, now int64) (record, bool) {
	r, exists := t.lookup(key, now)
	if t.typed && s.options.HideGhosts && r.ghost(now) {
		return record{}, false
	}
	return r, exists
}

// write is a checked set that is ready to land.
type write struct {
	table *table
	key   string
	value string        // compacted JSON
	ttl   time.Duration // 0: none
}

func (s *Store) put(w write, now int64) record {
	r := record{value: w.value, createdAt: now, updatedAt: now, sweepTime: never}
	if previous, exists := s.visible(w.table, w.key, now); exists {
		r.createdAt = previous.createdAt
		if s.options.OverwriteKeepsExpiry {
			r.expireTime, r.sweepTime = previous.expireTime, previous.sweepTime
		}
	}
	if w.ttl > 0 {
		r.expireTime = now + w.ttl.Milliseconds()
		if s.options.ExpireGranularity == Seconds {
			r.expireTime -= r.expireTime % 1000
		}
		r.sweepTime = s.sweepAfter(r.expireTime)
	}
	w.table.note(w.key, now)
	w.table.records[w.key] = r
	return r
}

func (s *Store) sweepAfter(expireTime int64) int64 {
	if s.options.Sweep == nil {
		return expireTime
	}
	delay := s.options.Sweep()
	if delay < 0 {
		return never
	}
	return expireTime + delay.Milliseconds()
}

func (s *Store) remove(t *table, key string, now int64) {
	r, _ := t.lookup(key, now)
	if s.options.DeleteKeepsGhost && r.ghost(now) {
		return
	}
	t.note(key, now)
	delete(t.records, key)
}

func (s *Store) item(key string, r record, fields []string) Item {
	item := Item{Key: key, Value: json.RawMessage(r.value)}
	for _, field := range fields {
		switch field {
		case metadataCreatedAt:
			item.CreatedAt = &r.createdAt
		case metadataUpdatedAt:
			item.UpdatedAt = &r.updatedAt
		case metadataExpireTime:
			item.ExpireTime = s.formatExpireTime(r.expireTime)
		}
	}
	return item
}

func (s *Store) formatExpireTime(at int64) *string {
	if at == 0 {
		return nil
	}
	layout := "2006-01-02T15:04:05.000Z"
	if s.options.ExpireGranularity == Seconds {
		layout = "2006-01-02T15:04:05Z"
	}
	text := time.UnixMilli(at).UTC().Format(layout)
	return &text
}
