// Package emulator is an in-process engine that answers like the key-value
// store of Atlassian Forge: plain keys, typed entities, transactions, and
// expired keys that stay until they are swept.
//
// The types are the JSON bodies of the wire protocol, and every refusal is an
// *Error with the status, code and message of the platform. Rules lists each
// behaviour with its source; what the platform leaves unknown is marked there
// as an assumption.
package emulator

import (
	"encoding/json"
	"maps"
	"sync"
	"time"
)

// Type is the declared type of an entity attribute.
type Type string

// The attribute types of the app manifest.
const (
	Integer Type = "integer" // signed 32 bits, both bounds included
	Float   Type = "float"   // decimal number of at most 38 significant digits
	String  Type = "string"
	Boolean Type = "boolean"
	Any     Type = "any" // every JSON value
)

// Entity declares one custom entity. Indexes has no effect on the operations
// of this package: a condition may name any attribute, indexed or not.
type Entity struct {
	Attributes map[string]Type
	Indexes    []string
}

// Granularity is the precision of an expiry time.
type Granularity int

// Expiry times are cut down to the granularity.
const (
	Milliseconds Granularity = iota
	Seconds
)

// Options configures a Store. The zero value is a store without entities that
// sweeps a key at the moment it expires.
type Options struct {
	// Entities by name.
	Entities map[string]Entity

	// Sweep returns how long after its expiry a key is swept, in whole
	// milliseconds; a negative delay means never. It is drawn once for each
	// write that sets a TTL, with the lock of the store held, so it must not
	// call the store. Nil sweeps at expiry.
	Sweep func() time.Duration

	// HideGhosts hides expired, unswept entity records from the conditions
	// and checks of a transaction and from entity writes, FAIL_IF_EXISTS
	// included. Reads and plain keys are not affected. Assumption: false.
	HideGhosts bool

	// DeleteKeepsGhost makes deleting an expired, unswept key succeed without
	// freeing the key before its sweep. Assumption: false.
	DeleteKeepsGhost bool

	// OverwriteKeepsExpiry makes a write without TTL keep the expiry and the
	// sweep of the record it overwrites. Assumption: false.
	OverwriteKeepsExpiry bool

	// ExpireGranularity is the precision of expiry. Assumption: Milliseconds.
	ExpireGranularity Granularity

	// NotExistsNeedsRecord makes NOT_EXISTS false where the record itself is
	// absent. Assumption: false.
	NotExistsNeedsRecord bool
}

// Store is an emulated store. It is safe for concurrent use and each call is
// atomic.
type Store struct {
	options  Options
	plain    *table
	entities map[string]*table

	mutex sync.Mutex // guards the records of every table
}

// New returns an empty store.
func New(options Options) *Store {
	s := &Store{
		options:  options,
		plain:    &table{records: map[string]record{}},
		entities: map[string]*table{},
	}
	for name, entity := range options.Entities {
		s.entities[name] = &table{
			typed:      true,
			attributes: maps.Clone(entity.Attributes),
			records:    map[string]record{},
		}
	}
	return s
}

// Get reads a plain key. A missing key answers 404 KEY_NOT_FOUND.
func (s *Store) Get(key string, o GetOptions) (Item, error) {
	return s.get(s.plain, key, o)
}

// Set writes a plain key. The item is nil (204 on the wire) unless a return
// value was asked for and there is one. FAIL_IF_EXISTS on a present key,
// expired or not, answers 409 KEY_CONFLICT.
func (s *Store) Set(key string, value json.RawMessage, o SetOptions) (*Item, error) {
	return s.set(s.plain, key, value, o)
}

// Delete removes a plain key. Deleting a missing key succeeds.
func (s *Store) Delete(key string) error {
	return s.delete(s.plain, key)
}

// EntityGet is Get for a key of an entity; an undeclared entity answers 404
// SCHEMA_NOT_FOUND.
func (s *Store) EntityGet(entity, key string, o GetOptions) (Item, error) {
	t, err := s.entity(entity)
	if err != nil {
		return Item{}, err
	}
	return s.get(t, key, o)
}

// EntitySet is Set for a key of an entity. The value is an object; an
// attribute that does not fit its declared type answers 400
// INCORRECT_PROPERTY_TYPE.
func (s *Store) EntitySet(entity, key string, value json.RawMessage, o SetOptions) (*Item, error) {
	t, err := s.entity(entity)
	if err != nil {
		return nil, err
	}
	return s.set(t, key, value, o)
}

// EntityDelete is Delete for a key of an entity.
func (s *Store) EntityDelete(entity, key string) error {
	t, err := s.entity(entity)
	if err != nil {
		return err
	}
	return s.delete(t, key)
}

func (s *Store) entity(name string) (*table, error) {
	t, declared := s.entities[name]
	if !declared {
		return nil, errSchemaNotFound
	}
	return t, nil
}

func (s *Store) get(t *table, key string, o GetOptions) (Item, error) {
	if err := t.checkKey(key); err != nil {
		return Item{}, err
	}
	if err := checkMetadataFields(o.MetadataFields); err != nil {
		return Item{}, err
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	r, exists := t.lookup(key, milliseconds())
	if !exists {
		return Item{}, errKeyNotFound
	}
	return s.item(key, r, o.MetadataFields), nil
}

func (s *Store) set(t *table, key string, value json.RawMessage, o SetOptions) (*Item, error) {
	w, err := prepare(t, key, value, o.TTL)
	if err != nil {
		return nil, err
	}
	if err := t.checkSchema(w.value); err != nil {
		return nil, err
	}
	if err := o.check(); err != nil {
		return nil, err
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	now := milliseconds()
	previous, exists := s.visible(t, key, now)
	if exists && o.KeyPolicy == failIfExists {
		return nil, errKeyConflict
	}
	returned := s.put(w, now)
	switch {
	case o.ReturnValue == "", o.ReturnValue == returnPrevious && !exists:
		return nil, nil
	case o.ReturnValue == returnPrevious:
		returned = previous
	}
	item := s.item(key, returned, o.ReturnMetadataFields)
	return &item, nil
}

func (s *Store) delete(t *table, key string) error {
	if err := t.checkKey(key); err != nil {
		return err
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.remove(t, key, milliseconds())
	return nil
}
