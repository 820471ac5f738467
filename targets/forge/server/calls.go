package server

import (
	"encoding/json"

	"contend/targets/forge/emulator"
)

// call is one path of the key-value store.
type call struct {
	effect      emulator.Effect
	transaction bool // takes as long as a transaction
	do          func(*emulator.Store, []byte) (any, error)
}

// getRequest is the body of a get; a delete has the key and the entity alone.
type getRequest struct {
	Key        string              `json:"key"`
	EntityName string              `json:"entityName"`
	Options    emulator.GetOptions `json:"options"`
}

type setRequest struct {
	Key        string              `json:"key"`
	EntityName string              `json:"entityName"`
	Value      json.RawMessage     `json:"value"`
	Options    emulator.SetOptions `json:"options"`
}

// calls by path, below the version.
var calls = map[string]call{
	"get": read(func(s *emulator.Store, r getRequest) (any, error) { return s.Get(r.Key, r.Options) }),
	"set": write(func(s *emulator.Store, r setRequest) (any, error) {
		return returned(s.Set(r.Key, r.Value, r.Options))
	}),
	"delete": write(func(s *emulator.Store, r getRequest) (any, error) { return nil, s.Delete(r.Key) }),

	"secret/get": read(func(s *emulator.Store, r getRequest) (any, error) { return s.SecretGet(r.Key, r.Options) }),
	"secret/set": write(func(s *emulator.Store, r setRequest) (any, error) {
		return returned(s.SecretSet(r.Key, r.Value, r.Options))
	}),
	"secret/delete": write(func(s *emulator.Store, r getRequest) (any, error) { return nil, s.SecretDelete(r.Key) }),

	"entity/get": read(func(s *emulator.Store, r getRequest) (any, error) {
		return s.EntityGet(r.EntityName, r.Key, r.Options)
	}),
	"entity/set": write(func(s *emulator.Store, r setRequest) (any, error) {
		return returned(s.EntitySet(r.EntityName, r.Key, r.Value, r.Options))
	}),
	"entity/delete": write(func(s *emulator.Store, r getRequest) (any, error) {
		return nil, s.EntityDelete(r.EntityName, r.Key)
	}),

	"batch/set":    write(func(s *emulator.Store, r []emulator.BatchItem) (any, error) { return s.BatchSet(r) }),
	"batch/delete": write(func(s *emulator.Store, r []emulator.BatchItem) (any, error) { return s.BatchDelete(r) }),
	"batch/get":    read(func(s *emulator.Store, r []emulator.BatchItem) (any, error) { return s.BatchGet(r) }),

	"query":        read(func(s *emulator.Store, r emulator.Query) (any, error) { return s.Query(r) }),
	"entity/query": read(func(s *emulator.Store, r emulator.EntityQuery) (any, error) { return s.EntityQuery(r) }),

	"transaction": {emulator.Write, true, decoded(func(s *emulator.Store, r emulator.Transaction) (any, error) {
		return nil, s.Transact(r)
	})},
}

func read[T any](do func(*emulator.Store, T) (any, error)) call {
	return call{effect: emulator.Read, do: decoded(do)}
}

func write[T any](do func(*emulator.Store, T) (any, error)) call {
	return call{effect: emulator.Write, do: decoded(do)}
}

// decoded reads the body of a request. Members that it does not know are
// ignored.
func decoded[T any](do func(*emulator.Store, T) (any, error)) func(*emulator.Store, []byte) (any, error) {
	return func(s *emulator.Store, body []byte) (any, error) {
		var request T
		if json.Unmarshal(body, &request) != nil {
			return nil, errInvalidBody
		}
		return do(s, request)
	}
}

// returned is nil, and no nil pointer in an interface, where no item is returned.
func returned(item *emulator.Item, err error) (any, error) {
	if item == nil {
		return nil, err
	}
	return item, err
}
