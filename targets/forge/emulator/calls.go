package emulator

import (
	"encoding/json"
	"maps"
	"slices"
)

// Call is one path of the wire protocol.
type Call struct {
	Effect      Effect
	Transaction bool // takes as long as a transaction
	do          func(*Store, []byte) (any, error)
	unknown     func([]byte) []Unknown
}

// CallAt gives the call of a path below the version, such as entity/set.
func CallAt(path string) (c Call, known bool) {
	c, known = calls[path]
	return c, known
}

// CallPaths lists the paths of all calls, in order.
func CallPaths() []string { return slices.Sorted(maps.Keys(calls)) }

// Do makes the call with the JSON body of a request, of which members that it does
// not know are ignored. A nil result is an answer without a body: 204.
func (c Call) Do(s *Store, body []byte) (result any, err error) { return c.do(s, body) }

// Unknown gives the members of a body that Do ignores, as far as the body can be read.
func (c Call) Unknown(body []byte) []Unknown { return c.unknown(body) }

// getRequest is the body of a get; a delete has the key and the entity alone.
type getRequest struct {
	Key        string     `json:"key"`
	EntityName string     `json:"entityName"`
	Options    GetOptions `json:"options"`
}

type setRequest struct {
	Key        string          `json:"key"`
	EntityName string          `json:"entityName"`
	Value      json.RawMessage `json:"value"`
	Options    SetOptions      `json:"options"`
}

var calls = map[string]Call{
	"get": reading(func(s *Store, r getRequest) (any, error) { return s.Get(r.Key, r.Options) }),
	"set": writing(func(s *Store, r setRequest) (any, error) {
		return returned(s.Set(r.Key, r.Value, r.Options))
	}),
	"delete": writing(func(s *Store, r getRequest) (any, error) { return nil, s.Delete(r.Key) }),

	"secret/get": reading(func(s *Store, r getRequest) (any, error) { return s.SecretGet(r.Key, r.Options) }),
	"secret/set": writing(func(s *Store, r setRequest) (any, error) {
		return returned(s.SecretSet(r.Key, r.Value, r.Options))
	}),
	"secret/delete": writing(func(s *Store, r getRequest) (any, error) { return nil, s.SecretDelete(r.Key) }),

	"entity/get": reading(func(s *Store, r getRequest) (any, error) {
		return s.EntityGet(r.EntityName, r.Key, r.Options)
	}),
	"entity/set": writing(func(s *Store, r setRequest) (any, error) {
		return returned(s.EntitySet(r.EntityName, r.Key, r.Value, r.Options))
	}),
	"entity/delete": writing(func(s *Store, r getRequest) (any, error) {
		return nil, s.EntityDelete(r.EntityName, r.Key)
	}),

	"batch/set":    writing(func(s *Store, r []BatchItem) (any, error) { return s.BatchSet(r) }),
	"batch/delete": writing(func(s *Store, r []BatchItem) (any, error) { return s.BatchDelete(r) }),
	"batch/get":    reading(func(s *Store, r []BatchItem) (any, error) { return s.BatchGet(r) }),

	"query":        reading(func(s *Store, r Query) (any, error) { return s.Query(r) }),
	"entity/query": reading(func(s *Store, r EntityQuery) (any, error) { return s.EntityQuery(r) }),

	"transaction": called(Write, true, func(s *Store, r Transaction) (any, error) { return nil, s.Transact(r) }),
}

func reading[T any](do func(*Store, T) (any, error)) Call { return called(Read, false, do) }

func writing[T any](do func(*Store, T) (any, error)) Call { return called(Write, false, do) }

// called makes a call of what is done with a request of the type T.
func called[T any](effect Effect, transaction bool, do func(*Store, T) (any, error)) Call {
	return Call{
		Effect: effect, Transaction: transaction,
		do: func(s *Store, body []byte) (any, error) {
			var request T
			if _, err := Decode(body, &request); err != nil {
				return nil, err
			}
			return do(s, request)
		},
		unknown: func(body []byte) []Unknown {
			unknown, _ := Decode(body, new(T))
			return unknown
		},
	}
}

// returned is nil, and no nil pointer in an interface, where no item is returned.
func returned(item *Item, err error) (any, error) {
	if item == nil {
		return nil, err
	}
	return item, err
}
