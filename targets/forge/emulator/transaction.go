package emulator

const (
	maxOperations   = 25
	maxPayloadBytes = 4 << 20
)

// action is what an operation of a transaction does.
type action int

const (
	actionSet action = iota
	actionDelete
	actionCheck
)

// operation is a checked transaction item.
type operation struct {
	action action
	write  write // without a set only the table and the key
	guard  guard // without tests: no conditions
}

// Transact applies all operations of a transaction, or none. A false condition
// answers 400 CONDITIONAL_CHECK_FAILED; a value or condition that does not fit
// its entity answers 422 UNPROCESSABLE_ENTITY, which names no attribute. A
// check without conditions holds where the record exists.
func (s *Store) Transact(t Transaction) error {
	operations, err := s.plan(t)
	if err != nil {
		return err
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	now := s.now()
	for _, o := range operations {
		if !s.permits(o, now) {
			return errConditionFailed
		}
	}
	for _, o := range operations {
		switch o.action {
		case actionSet:
			s.put(o.write, now)
		case actionDelete:
			s.remove(o.write.table, o.write.key, now)
		}
	}
	return nil
}

// plan checks everything that does not depend on what is stored.
func (s *Store) plan(t Transaction) ([]operation, error) {
	count := len(t.Set) + len(t.Delete) + len(t.Check)
	if count == 0 {
		return nil, errEmptyTransaction
	}
	if count > maxOperations {
		return nil, errUnprocessable
	}
	type name struct{ entity, key string }
	named := make(map[name]bool, count)
	operations := make([]operation, 0, count)
	payload := 0
	for index, items := range [...][]TransactionItem{actionSet: t.Set, actionDelete: t.Delete, actionCheck: t.Check} {
		for _, item := range items {
			n := name{item.EntityName, item.Key}
			if named[n] {
				return nil, errDuplicateKey
			}
			named[n] = true
			o, err := s.operation(action(index), item)
			if err != nil {
				return nil, err
			}
			payload += len(item.EntityName) + o.size()
			operations = append(operations, o)
		}
	}
	if payload > maxPayloadBytes {
		return nil, errMaxSize
	}
	return operations, nil
}

func (s *Store) operation(a action, item TransactionItem) (operation, error) {
	t, err := s.table(item.EntityName)
	if err != nil {
		return operation{}, err
	}
	o := operation{action: a, write: write{table: t, key: item.Key}}
	if a == actionSet {
		o.write, err = prepareItem(t, item)
	} else {
		err = t.checkKey(item.Key)
	}
	if err == nil && item.Conditions != nil {
		o.guard, err = t.guard(*item.Conditions)
	}
	return o, err
}

func prepareItem(t *table, item TransactionItem) (write, error) {
	var ttl *TTL
	if item.Options != nil {
		ttl = item.Options.TTL
	}
	w, err := prepare(t, item.Key, item.Value, ttl)
	if err == nil && t.checkSchema(w.value) != nil {
		err = errUnprocessable
	}
	return w, err
}

// size is the part of the payload the operation accounts for, in bytes.
func (o operation) size() int {
	size := len(o.write.key) + len(o.write.value)
	for _, t := range o.guard.tests {
		for _, value := range t.values {
			size += len(value)
		}
	}
	return size
}

// permits reports whether what is stored lets the operation land.
func (s *Store) permits(o operation, now int64) bool {
	unconditional := len(o.guard.tests) == 0
	if unconditional && o.action != actionCheck {
		return true
	}
	r, exists := s.visible(o.write.table, o.write.key, now)
	if exists {
		return o.guard.holds(r.value)
	}
	return !unconditional && !s.options.NotExistsNeedsRecord && o.guard.holds("{}")
}
