package emulator

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"slices"
)

// Results of one page of a query.
const (
	defaultLimit = 10
	maxLimit     = 100
)

// byKey is the index that every entity has; it ranges over the keys.
const byKey = "by-key"

// Query selects plain keys in the order of their bytes. Where is empty or one
// BEGINS_WITH on the property key. Limit is from 1 to 100; 10 without one.
// After is the cursor of the page before.
type Query struct {
	Where   []Condition `json:"where,omitempty"`
	Limit   *int        `json:"limit,omitempty"`
	After   string      `json:"after,omitempty"`
	Options GetOptions  `json:"options"`
}

// EntityQuery selects the records of an index, ordered by its range attribute
// and then by key. Partition has a value for each attribute of the index's
// partition. Range is a condition on the range attribute, without a property:
// EQUAL_TO, BETWEEN, BEGINS_WITH or one of the four comparisons. Filters take
// all conditions on any attribute. Sort is ASC, as is the empty string, or DESC.
type EntityQuery struct {
	EntityName string            `json:"entityName"`
	IndexName  string            `json:"indexName"`
	Partition  []json.RawMessage `json:"partition,omitempty"`
	Range      *Condition        `json:"range,omitempty"`
	Filters    *Conditions       `json:"filters,omitempty"`
	Sort       string            `json:"sort,omitempty"`
	Limit      *int              `json:"limit,omitempty"`
	Cursor     string            `json:"cursor,omitempty"`
	Options    GetOptions        `json:"options"`
}

// Page is one page of the answer to a query. Cursor is empty on the last page;
// else it leads to the next one, in a query that is otherwise the same.
type Page struct {
	Data   []Item `json:"data"`
	Cursor string `json:"cursor,omitempty"`
}

// selection is a query whose conditions are checked.
type selection struct {
	table  *table
	index  Index
	tests  []test // of the partition; without a property, of the range
	filter guard
	sort   string
	limit  *int
	cursor string
	fields []string // of metadata
}

// row is a record at its place in an index.
type row struct {
	key    string
	ranged string // the value of the range attribute, compacted JSON
	record record
}

// Query reads one page of the plain keys.
func (s *Store) Query(q Query) (Page, error) {
	prefix, err := keyPrefix(q.Where)
	if err != nil {
		return Page{}, err
	}
	if q.Limit != nil && (*q.Limit < 1 || *q.Limit > maxLimit) {
		return Page{}, errListLimit
	}
	return s.page(selection{table: s.plain, tests: prefix, limit: q.Limit, cursor: q.After, fields: q.Options.MetadataFields})
}

// keyPrefix gives the test of a where clause, if it has one.
func keyPrefix(where []Condition) ([]test, error) {
	switch {
	case len(where) == 0:
		return nil, nil
	case len(where) > 1, where[0].Condition != conditionBeginsWith:
		return nil, errWhere
	case where[0].Property != "key":
		return nil, errWhereField
	}
	checked, err := newTest(Condition{"", conditionBeginsWith, where[0].Values}, String)
	return []test{checked}, err
}

// EntityQuery reads one page of an index of an entity.
func (s *Store) EntityQuery(q EntityQuery) (Page, error) {
	t, err := s.entity(q.EntityName)
	if err != nil {
		return Page{}, err
	}
	index, declared, err := t.index(q.IndexName)
	if err != nil {
		return Page{}, err
	}
	if q.Limit != nil && (*q.Limit < 1 || *q.Limit > maxLimit) {
		return Page{}, errPageLimit
	}
	tests, err := t.ranges(q, index, declared)
	if err != nil {
		return Page{}, err
	}
	var filter guard // without tests it holds
	if q.Filters != nil {
		if filter, err = t.guard(*q.Filters); err != nil {
			return Page{}, err
		}
	}
	return s.page(selection{t, index, tests, filter, q.Sort, q.Limit, q.Cursor, q.Options.MetadataFields})
}

// index finds an index of the entity, and the type of what it ranges over.
func (t *table) index(name string) (Index, Type, error) {
	if name == byKey {
		return Index{}, String, nil // without a range attribute: the key
	}
	i := slices.IndexFunc(t.indexes, func(index Index) bool { return index.Name == name })
	if i < 0 {
		return Index{}, "", errEntityIndex
	}
	return t.indexes[i], t.attributes[t.indexes[i].Range], nil
}

// ranges checks the partition and the range of a query. The tests of the
// partition name its attributes, the one of the range has no property.
func (t *table) ranges(q EntityQuery, index Index, declared Type) ([]test, error) {
	if len(q.Partition) != len(index.Partition) {
		return nil, errUnprocessable
	}
	var all []test
	for i, property := range index.Partition {
		equals := Condition{property, conditionEqualTo, []json.RawMessage{q.Partition[i]}}
		checked, err := newTest(equals, t.attributes[property])
		if err != nil {
			return nil, err
		}
		all = append(all, checked)
	}
	if q.Range == nil {
		return all, nil
	}
	if !slices.Contains(rangeConditions, q.Range.Condition) {
		return nil, errFilterCondition
	}
	checked, err := newTest(Condition{"", q.Range.Condition, q.Range.Values}, declared)
	return append(all, checked), err
}

// page reads one page of an index.
func (s *Store) page(q selection) (Page, error) {
	if err := checkMetadataFields(q.fields); err != nil {
		return Page{}, err
	}
	if !slices.Contains([]string{"", sortAscending, sortDescending}, q.sort) {
		return Page{}, errInvalidBody
	}
	after, err := parseCursor(q.cursor)
	if err != nil {
		return Page{}, err
	}
	order := compareRows
	if q.sort == sortDescending {
		order = func(a, b row) int { return compareRows(b, a) }
	}
	var rows []row
	for key, r := range s.lagging(q.table) {
		if found, ok := q.row(key, r); ok && (after == nil || order(found, *after) > 0) {
			rows = append(rows, found)
		}
	}
	slices.SortFunc(rows, order)
	count := defaultLimit
	if q.limit != nil {
		count = *q.limit
	}
	page := Page{Data: []Item{}}
	if len(rows) > count {
		rows = rows[:count]
		page.Cursor = rows[count-1].cursor()
	}
	for _, r := range rows {
		page.Data = append(page.Data, s.item(r.key, r.record, q.fields))
	}
	return page, nil
}

// row gives the place of a record in the index, and false where it has none or
// is not selected.
func (q selection) row(key string, r record) (row, bool) {
	found := row{key: key, ranged: quote(key), record: r}
	var attributes map[string]json.RawMessage
	if q.index.Range != "" {
		attributes = parseObject(r.value)
		found.ranged = string(attributes[q.index.Range])
	}
	if !sortable(found.ranged) {
		return row{}, false
	}
	for _, t := range q.tests {
		value := found.ranged
		if t.property != "" {
			value = string(attributes[t.property])
		}
		if value == "" || !t.operator.holds(value, t.values) {
			return row{}, false
		}
	}
	return found, len(q.filter.tests) == 0 || q.filter.holds(r.value)
}

// sortable reports whether a value has a place in an index: a scalar in bounds.
func sortable(value string) bool {
	if value == "" {
		return false
	}
	if kindOf(value) == kindNumber {
		_, bounded := decimal(value)
		return bounded
	}
	return slices.Contains(scalars, kindOf(value))
}

func compareRows(a, b row) int {
	order := cmp.Compare(kindOf(a.ranged), kindOf(b.ranged))
	if order == 0 {
		order, _ = compare(a.ranged, b.ranged)
	}
	return cmp.Or(order, cmp.Compare(a.key, b.key))
}

// cursor is the place of the last row of a page.
func (r row) cursor() string {
	place, _ := json.Marshal([]string{r.ranged, r.key}) // strings
	return base64.RawURLEncoding.EncodeToString(place)
}

func parseCursor(cursor string) (*row, error) {
	if cursor == "" {
		return nil, nil
	}
	text, err := base64.RawURLEncoding.DecodeString(cursor)
	var place []string
	if err != nil || json.Unmarshal(text, &place) != nil || len(place) != 2 ||
		!json.Valid([]byte(place[0])) || !sortable(place[0]) {
		return nil, errInvalidBody
	}
	return &row{ranged: place[0], key: place[1]}, nil
}

// quote is a key as compacted JSON.
func quote(key string) string {
	text, _ := json.Marshal(key) // a string
	return string(text)
}
