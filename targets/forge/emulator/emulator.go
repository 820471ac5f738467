// Package emulator is an in-process engine that answers like the key-value
// store of Atlassian Forge: plain keys, secrets, typed entities with indexes,
// queries, batches, transactions, and expired keys that stay until they are
// swept.
//
// The types are the JSON bodies of the wire protocol, and every refusal is an
// *Error with the status, code and message of the platform. Rules lists each
// behaviour with its source; what the platform leaves unknown is marked there
// as an assumption.
package emulator

import (
	"encoding/json"
	"maps"
	"slices"
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

// Entity declares one custom entity. Every entity also has the index by-key. A
// condition may name any attribute, indexed or not.
type Entity struct {
	Attributes map[string]Type
	Indexes    []Index
}

// Index orders the records of an entity by the attribute Range, apart for each
// combination of values of the attributes of Partition.
type Index struct {
	Name      string
	Range     string
	Partition []string
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

	// QueryLag is how far queries are behind what is stored, in whole
	// milliseconds. Assumption: 0.
	QueryLag time.Duration

	// LongTTLCode is the code that answers a TTL of more than a year.
	// Assumption: INVALID_TTL.
	LongTTLCode string
}

// Store is an emulated store. It is safe for concurrent use and each call is
// atomic.
type Store struct {
	options  Options
	plain    *table
	secrets  *table
	entities map[string]*table

	mutex sync.Mutex // guards the records of every table, and the clock
	ahead int64      // how far the clock is put forward, in milliseconds
}

// New returns an empty store.
func New(options Options) *Store {
	s := &Store{
		options:  options,
		plain:    newTable(options),
		secrets:  newTable(options),
		entities: map[string]*table{},
	}
	for name, entity := range options.Entities {
		t := newTable(options)
		t.typed = true
		t.attributes = maps.Clone(entity.Attributes)
		t.indexes = slices.Clone(entity.Indexes)
		s.entities[name] = t
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

// SecretGet is Get for a secret; secrets have a name space of their own.
func (s *Store) SecretGet(key string, o GetOptions) (Item, error) {
	return s.get(s.secrets, key, o)
}

// SecretSet is Set for a secret.
func (s *Store) SecretSet(key string, value json.RawMessage, o SetOptions) (*Item, error) {
	return s.set(s.secrets, key, value, o)
}

// SecretDelete is Delete for a secret.
func (s *Store) SecretDelete(key string) error {
	return s.delete(s.secrets, key)
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

// table gives the table of an entity, and of the plain keys for no name.
func (s *Store) table(entity string) (*table, error) {
	if entity == "" {
		return s.plain, nil
	}
	return s.entity(entity)
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
	r, exists := t.lookup(key, s.now())
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
	now := s.now()
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
	s.remove(t, key, s.now())
	return nil
}
