package server

import (
	"slices"
	"sync"

	"contend/targets/forge/emulator"
)

// inFlight are the keys of the transactions that are in flight, which is for as
// long as their latency.
type inFlight struct {
	mutex sync.Mutex
	keys  map[name]bool
}

type name struct{ entity, key string }

// enter takes the keys of a transaction and gives what frees them, or false where
// one of them is taken. A body that is no transaction takes nothing.
func (f *inFlight) enter(body []byte) (leave func(), ok bool) {
	var t emulator.Transaction
	_, _ = emulator.Decode(body, &t) // answered where the body is read for good
	var names []name
	for _, item := range slices.Concat(t.Set, t.Delete, t.Check) {
		names = append(names, name{item.EntityName, item.Key})
	}
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if slices.ContainsFunc(names, func(n name) bool { return f.keys[n] }) {
		return nil, false
	}
	for _, n := range names {
		f.keys[n] = true
	}
	return func() {
		f.mutex.Lock()
		defer f.mutex.Unlock()
		for _, n := range names {
			delete(f.keys, n)
		}
	}, true
}
