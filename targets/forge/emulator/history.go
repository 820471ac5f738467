package emulator

import "slices"

// past is what a key held up to a moment.
type past struct {
	until  int64
	record record
	exists bool
}

// note keeps what a key holds, which is about to change, for queries that lag.
func (t *table) note(key string, until int64) {
	if t.lag == 0 {
		return
	}
	r, exists := t.records[key]
	kept := slices.DeleteFunc(t.history[key], func(p past) bool { return p.until <= until-t.lag })
	t.history[key] = append(kept, past{until, r, exists})
}

// lagging gives the records as they were a query lag ago, ghosts included.
func (s *Store) lagging(t *table) map[string]record {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	then := s.now() - t.lag
	all := make(map[string]record, len(t.records))
	for key, r := range t.records {
		all[key] = r
	}
	for key, pasts := range t.history {
		i := slices.IndexFunc(pasts, func(p past) bool { return p.until > then })
		if i < 0 {
			delete(t.history, key)
			continue
		}
		delete(all, key)
		if pasts[i].exists {
			all[key] = pasts[i].record
		}
	}
	for key, r := range all {
		if then >= r.sweepTime {
			delete(all, key)
		}
	}
	return all
}
