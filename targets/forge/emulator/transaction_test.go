package emulator

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"
)

func values(texts ...string) []json.RawMessage {
	var all []json.RawMessage
	for _, text := range texts {
		all = append(all, raw(text))
	}
	return all
}

func plainSets(count int, value string) []TransactionItem {
	items := make([]TransactionItem, count)
	for i := range items {
		items[i] = TransactionItem{Key: fmt.Sprint("k", i), Value: raw(value)}
	}
	return items
}

// leaseCheck is a check of the lease k with one condition.
func leaseCheck(property, condition string, texts ...string) TransactionItem {
	return TransactionItem{Key: "k", EntityName: "lease",
		Conditions: &Conditions{And: []Condition{{property, condition, values(texts...)}}}}
}

const (
	failed        = "Request failed due to conditional check specified or optimistic locking"
	unprocessable = "Request cannot be processed due to one or more semantic errors"
)

// transactionCase is a transaction on a store that holds the lease k at
// version 7. Status 0 means that it lands.
type transactionCase struct {
	transaction Transaction
	status      int
	code        string
	message     string
}

func checks(items ...TransactionItem) Transaction { return Transaction{Check: items} }

func TestRefusalsOfTransactions(t *testing.T) {
	set := func(item TransactionItem) Transaction { return Transaction{Set: []TransactionItem{item}} }
	runTransactionCases(t, map[string]transactionCase{
		"empty":             {Transaction{}, 400, "INVALID_TRANSACTION_REQUEST", "Transaction request must include one of set, check or delete."},
		"25 operations":     {Transaction{Set: plainSets(25, `1`)}, 0, "", ""},
		"26 operations":     {Transaction{Set: plainSets(26, `1`)}, 422, "UNPROCESSABLE_ENTITY", unprocessable},
		"26 over two lists": {Transaction{Set: plainSets(25, `1`), Delete: []TransactionItem{{Key: "d"}}}, 422, "UNPROCESSABLE_ENTITY", unprocessable},
		"one key twice":     {Transaction{Set: plainSets(1, `1`), Delete: []TransactionItem{{Key: "k0"}}}, 400, "KEY_DUPLICATION_ERROR", "Duplicate key found in request"},
		"two name spaces": {Transaction{Set: []TransactionItem{
			{Key: "k", Value: raw(`1`)}, {Key: "k", EntityName: "lease", Value: raw(`{}`)}}}, 0, "", ""},
		"payload below 4 MiB": {Transaction{Set: plainSets(17, `"`+strings.Repeat("x", 240<<10-2)+`"`)}, 0, "", ""},
		"payload over 4 MiB":  {Transaction{Set: plainSets(18, `"`+strings.Repeat("x", 240<<10-2)+`"`)}, 400, "MAX_SIZE", ""},
		"value too large":     {Transaction{Set: plainSets(1, `"`+strings.Repeat("x", 240<<10)+`"`)}, 400, "MAX_SIZE", ""},
		"no value":            {set(TransactionItem{Key: "k"}), 400, "BAD_REQUEST", "Provided request body is invalid"},
		"bad key":             {Transaction{Delete: []TransactionItem{{Key: "?"}}}, 400, "INVALID_KEY", ""},
		"ttl 0": {set(TransactionItem{Key: "k", Value: raw(`1`), Options: &ItemOptions{TTL: &TTL{raw(`0`), "DAYS"}}}),
			400, "INVALID_TTL", "TTL value must be a positive integer, received: 0"},
		"undeclared entity":    {set(TransactionItem{Key: "k", EntityName: "lock", Value: raw(`{}`)}), 404, "SCHEMA_NOT_FOUND", "The schema provided does not exist"},
		"not an object":        {set(TransactionItem{Key: "k", EntityName: "lease", Value: raw(`1`)}), 422, "UNPROCESSABLE_ENTITY", unprocessable},
		"undeclared attribute": {set(TransactionItem{Key: "k", EntityName: "lease", Value: raw(`{"x":1}`)}), 422, "UNPROCESSABLE_ENTITY", unprocessable},
		"integer over":         {set(TransactionItem{Key: "k", EntityName: "lease", Value: raw(`{"version":2147483648}`)}), 422, "UNPROCESSABLE_ENTITY", unprocessable},
		"delete missing":       {Transaction{Delete: []TransactionItem{{Key: "missing"}}}, 0, "", ""},
	})
}

func TestRefusalsOfConditions(t *testing.T) {
	version := Condition{"version", "EQUAL_TO", values(`7`)}
	conditions := func(c Conditions) Transaction {
		return checks(TransactionItem{Key: "k", EntityName: "lease", Conditions: &c})
	}
	missing := leaseCheck("version", "EQUAL_TO", `7`)
	missing.Key = "missing"
	plain := leaseCheck("version", "EQUAL_TO", `7`)
	plain.EntityName = ""
	runTransactionCases(t, map[string]transactionCase{
		"condition true":      {checks(leaseCheck("version", "EQUAL_TO", ` 7 `)), 0, "", ""},
		"condition false":     {checks(leaseCheck("version", "EQUAL_TO", `8`)), 400, "CONDITIONAL_CHECK_FAILED", failed},
		"condition type":      {checks(leaseCheck("version", "EQUAL_TO", `"0"`)), 422, "UNPROCESSABLE_ENTITY", unprocessable},
		"condition int32":     {checks(leaseCheck("version", "LESS_THAN", `2147483648`)), 422, "UNPROCESSABLE_ENTITY", unprocessable},
		"any takes scalars":   {checks(leaseCheck("note", "EQUAL_TO", `[1]`)), 422, "UNPROCESSABLE_ENTITY", unprocessable},
		"any takes bounded":   {checks(leaseCheck("note", "EQUAL_TO", `1e999999999`)), 422, "UNPROCESSABLE_ENTITY", unprocessable},
		"order of booleans":   {checks(leaseCheck("held", "LESS_THAN", `true`)), 422, "UNPROCESSABLE_ENTITY", unprocessable},
		"prefix of integer":   {checks(leaseCheck("version", "BEGINS_WITH", `"7"`)), 422, "UNPROCESSABLE_ENTITY", unprocessable},
		"exists false":        {checks(leaseCheck("version", "EXISTS", `false`)), 422, "UNPROCESSABLE_ENTITY", unprocessable},
		"undeclared property": {checks(leaseCheck("owner", "EXISTS", `true`)), 422, "UNPROCESSABLE_ENTITY", unprocessable},
		"unknown condition":   {checks(leaseCheck("version", "equalsTo", `7`)), 400, "INVALID_FILTER_CONDITION", ""},
		"too few values":      {checks(leaseCheck("version", "BETWEEN", `7`)), 400, "INSUFFICIENT_FILTER_VALUES", ""},
		"too many values":     {checks(leaseCheck("version", "EQUAL_TO", `7`, `8`)), 400, "INVALID_FILTER_VALUES", ""},
		"no json value":       {checks(leaseCheck("version", "EQUAL_TO", ``)), 400, "BAD_REQUEST", ""},
		"no conditions":       {conditions(Conditions{}), 400, "EMPTY_FILTER_OPERATOR", ""},
		"and with or":         {conditions(Conditions{And: []Condition{version}, Or: []Condition{version}}), 400, "INVALID_FILTER_OPERATORS_COMBINATION", ""},
		"plain condition":     {checks(plain), 422, "UNPROCESSABLE_ENTITY", unprocessable},
		"check missing":       {checks(missing), 400, "CONDITIONAL_CHECK_FAILED", failed},
		"bare check missing":  {checks(TransactionItem{Key: "missing", EntityName: "lease"}), 400, "CONDITIONAL_CHECK_FAILED", failed},
		"bare check present":  {checks(TransactionItem{Key: "k", EntityName: "lease"}), 0, "", ""},
	})
}

func runTransactionCases(t *testing.T, cases map[string]transactionCase) {
	t.Helper()
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			s := newLeases()
			_, err := s.EntitySet("lease", "k", raw(`{"version":7}`), SetOptions{})
			noError(t, err)
			before := contents(s)
			err = s.Transact(c.transaction)
			if c.status == 0 {
				noError(t, err)
				return
			}
			wantError(t, err, c.status, c.code, c.message)
			if after := contents(s); !maps.Equal(before, after) {
				t.Fatalf("a refused transaction changed %v to %v", before, after)
			}
		})
	}
}

// contents maps entity and key to the value of everything stored.
func contents(s *Store) map[[2]string]string {
	all := map[[2]string]string{}
	collect := func(entity string, t *table) {
		for key, r := range t.records {
			all[[2]string{entity, key}] = r.value
		}
	}
	collect("", s.plain)
	for name, t := range s.entities {
		collect(name, t)
	}
	return all
}

func TestAllOrNothing(t *testing.T) {
	operations := func(version string) Transaction {
		return Transaction{
			Set: []TransactionItem{
				{Key: "new", Value: raw(`1`)},
				{Key: "other", EntityName: "lease", Value: raw(`{"holder":"a"}`)},
			},
			Delete: []TransactionItem{{Key: "old"}},
			Check:  []TransactionItem{leaseCheck("version", "EQUAL_TO", version)},
		}
	}
	s := newLeases()
	_, err := s.Set("old", raw(`0`), SetOptions{})
	noError(t, err)
	_, err = s.EntitySet("lease", "k", raw(`{"version":7}`), SetOptions{})
	noError(t, err)

	wantError(t, s.Transact(operations(`8`)), 400, "CONDITIONAL_CHECK_FAILED", "")
	wantValue(t, s, "", "new", "")
	wantValue(t, s, "lease", "other", "")
	wantValue(t, s, "", "old", `0`)

	noError(t, s.Transact(operations(`7`)))
	wantValue(t, s, "", "new", `1`)
	wantValue(t, s, "lease", "other", `{"holder":"a"}`)
	wantValue(t, s, "", "old", "")
	wantValue(t, s, "lease", "k", `{"version":7}`)
}

func TestConditionGuardsSetsAndDeletes(t *testing.T) {
	s := newLeases()
	item := leaseCheck("version", "NOT_EXISTS", `true`)
	item.Value = raw(`{"version":1}`)
	noError(t, s.Transact(Transaction{Set: []TransactionItem{item}}))
	wantError(t, s.Transact(Transaction{Set: []TransactionItem{item}}), 400, "CONDITIONAL_CHECK_FAILED", "")
	wantError(t, s.Transact(Transaction{Delete: []TransactionItem{item}}), 400, "CONDITIONAL_CHECK_FAILED", "")
	wantValue(t, s, "lease", "k", `{"version":1}`)
	noError(t, s.Transact(Transaction{Delete: []TransactionItem{leaseCheck("version", "EQUAL_TO", `1`)}}))
	wantValue(t, s, "lease", "k", "")
}

func TestConditionOperators(t *testing.T) {
	for _, c := range []struct {
		property, condition string
		holds, fails        []string
	}{
		{"version", "EQUAL_TO", []string{`5`}, []string{`6`}},
		{"version", "NOT_EQUAL_TO", []string{`6`}, []string{`5`}},
		{"version", "GREATER_THAN", []string{`4`}, []string{`5`}},
		{"version", "GREATER_THAN_EQUAL_TO", []string{`5`}, []string{`6`}},
		{"version", "LESS_THAN", []string{`10`}, []string{`5`}},
		{"version", "LESS_THAN_EQUAL_TO", []string{`5`}, []string{`4`}},
		{"version", "BETWEEN", []string{`5`, `10`}, []string{`6`, `10`}},
		{"version", "BETWEEN", []string{`-10`, `5`}, []string{`10`, `1`}},

		{"expiresAt", "EQUAL_TO", []string{`1787116436381.250`}, []string{`1787116436381.2500000001`}},
		{"expiresAt", "EQUAL_TO", []string{`178711643638125e-2`}, []string{`-1787116436381.25`}},
		{"expiresAt", "NOT_EQUAL_TO", []string{`0`}, []string{`1.78711643638125E+12`}},
		{"expiresAt", "GREATER_THAN", []string{`1787116436381.2`}, []string{`1787116436381.25`}},
		{"expiresAt", "GREATER_THAN_EQUAL_TO", []string{`1787116436381.25`}, []string{`1787116436382`}},
		{"expiresAt", "LESS_THAN", []string{`1e13`}, []string{`-1e13`}},
		{"expiresAt", "LESS_THAN_EQUAL_TO", []string{`1787116436381.25`}, []string{`1787116436381.24`}},
		{"expiresAt", "BETWEEN", []string{`0`, `1e125`}, []string{`1e-130`, `1`}},

		{"holder", "EQUAL_TO", []string{`"n\u006fde-1"`}, []string{`"node"`}},
		{"holder", "NOT_EQUAL_TO", []string{`"Node-1"`}, []string{`"node-1"`}},
		{"holder", "GREATER_THAN", []string{`"node-0"`}, []string{`"node-1"`}},
		{"holder", "GREATER_THAN_EQUAL_TO", []string{`"node-1"`}, []string{`"node-2"`}},
		{"holder", "LESS_THAN", []string{`"node-10"`}, []string{`"node-1"`}},
		{"holder", "LESS_THAN_EQUAL_TO", []string{`"node-1"`}, []string{`"node"`}},
		{"holder", "BETWEEN", []string{`"a"`, `"node-1"`}, []string{`"o"`, `"z"`}},
		{"holder", "BEGINS_WITH", []string{`"node"`}, []string{`"ode"`}},
		{"holder", "CONTAINS", []string{`"ode-"`}, []string{`"x"`}},
		{"holder", "NOT_CONTAINS", []string{`"x"`}, []string{`"ode-"`}},

		{"held", "EQUAL_TO", []string{`true`}, []string{`false`}},
		{"held", "NOT_EQUAL_TO", []string{`false`}, []string{`true`}},
	} {
		t.Run(c.property+" "+c.condition, func(t *testing.T) {
			testOperator(t, c.property, c.condition, c.holds, c.fails)
			if c.property != "held" { // the attribute any holds one kind at a time
				testOperatorOnAny(t, c.property, c.condition, c.holds, c.fails)
			}
		})
	}
}

var stored = map[string]string{
	"version": `5`, "expiresAt": `1787116436381.25`, "holder": `"node-1"`, "held": `true`,
}

func testOperator(t *testing.T, property, condition string, holds, fails []string) {
	t.Helper()
	s := newLeases()
	_, err := s.EntitySet("lease", "k", raw(`{"`+property+`":`+stored[property]+`}`), SetOptions{})
	noError(t, err)
	noError(t, s.Transact(checks(leaseCheck(property, condition, holds...))))
	wantError(t, s.Transact(checks(leaseCheck(property, condition, fails...))),
		400, "CONDITIONAL_CHECK_FAILED", "")
	noError(t, s.EntityDelete("lease", "k"))
	wantError(t, s.Transact(checks(leaseCheck(property, condition, holds...))),
		400, "CONDITIONAL_CHECK_FAILED", "")
}

// testOperatorOnAny repeats a case with the value in an attribute of type any.
func testOperatorOnAny(t *testing.T, property, condition string, holds, fails []string) {
	t.Helper()
	s := newLeases()
	_, err := s.EntitySet("lease", "k", raw(`{"note":`+stored[property]+`}`), SetOptions{})
	noError(t, err)
	noError(t, s.Transact(checks(leaseCheck("note", condition, holds...))))
	wantError(t, s.Transact(checks(leaseCheck("note", condition, fails...))),
		400, "CONDITIONAL_CHECK_FAILED", "")
}

func TestPresenceOperators(t *testing.T) {
	s := newLeases()
	_, err := s.EntitySet("lease", "present", raw(`{"version":0,"expiresAt":0,"holder":"","held":false,"note":null}`), SetOptions{})
	noError(t, err)
	_, err = s.EntitySet("lease", "bare", raw(`{}`), SetOptions{})
	noError(t, err)
	for property := range lease["lease"].Attributes {
		for _, c := range []struct {
			key, condition string
			holds          bool
		}{
			{"present", "EXISTS", true}, {"present", "NOT_EXISTS", false},
			{"bare", "EXISTS", false}, {"bare", "NOT_EXISTS", true},
			{"missing", "EXISTS", false}, {"missing", "NOT_EXISTS", true},
		} {
			item := leaseCheck(property, c.condition, `true`)
			item.Key = c.key
			err := s.Transact(Transaction{Check: []TransactionItem{item}})
			if c.holds && err != nil {
				t.Errorf("%s %s of %s: %v", c.condition, property, c.key, err)
			}
			if !c.holds {
				wantError(t, err, 400, "CONDITIONAL_CHECK_FAILED", "")
			}
		}
	}
}

func TestNotExistsNeedsRecord(t *testing.T) {
	s := New(Options{Entities: lease, NotExistsNeedsRecord: true})
	transaction := checks(leaseCheck("version", "NOT_EXISTS", `true`))
	wantError(t, s.Transact(transaction), 400, "CONDITIONAL_CHECK_FAILED", "")
	_, err := s.EntitySet("lease", "k", raw(`{}`), SetOptions{})
	noError(t, err)
	noError(t, s.Transact(transaction))
}

func TestAnyOfDifferentKinds(t *testing.T) {
	s := newLeases()
	_, err := s.EntitySet("lease", "k", raw(`{"note":["a"]}`), SetOptions{})
	noError(t, err)
	for _, condition := range []string{"NOT_EQUAL_TO", "NOT_CONTAINS"} {
		noError(t, s.Transact(checks(leaseCheck("note", condition, `"a"`))))
	}
	for _, condition := range []string{"EQUAL_TO", "GREATER_THAN", "LESS_THAN_EQUAL_TO", "BEGINS_WITH", "CONTAINS"} {
		err := s.Transact(checks(leaseCheck("note", condition, `"a"`)))
		wantError(t, err, 400, "CONDITIONAL_CHECK_FAILED", "")
	}
}

func TestAndOr(t *testing.T) {
	s := newLeases()
	_, err := s.EntitySet("lease", "k", raw(`{"version":1}`), SetOptions{})
	noError(t, err)
	right := Condition{"version", "EQUAL_TO", values(`1`)}
	wrong := Condition{"version", "EQUAL_TO", values(`2`)}
	for _, c := range []struct {
		conditions Conditions
		holds      bool
	}{
		{Conditions{And: []Condition{right, right}}, true},
		{Conditions{And: []Condition{right, wrong}}, false},
		{Conditions{Or: []Condition{wrong, right}}, true},
		{Conditions{Or: []Condition{wrong, wrong}}, false},
	} {
		err := s.Transact(Transaction{Check: []TransactionItem{{Key: "k", EntityName: "lease", Conditions: &c.conditions}}})
		if c.holds {
			noError(t, err)
		} else {
			wantError(t, err, 400, "CONDITIONAL_CHECK_FAILED", "")
		}
	}
}

func TestOneOfTwelveTransactionsWins(t *testing.T) {
	s := newLeases()
	_, err := s.EntitySet("lease", "k", raw(`{"version":0}`), SetOptions{})
	noError(t, err)
	results := make([]error, 12)
	var group sync.WaitGroup
	for i := range results {
		group.Go(func() {
			item := leaseCheck("version", "EQUAL_TO", `0`)
			item.Value = raw(fmt.Sprintf(`{"version":1,"expiresAt":%d}`, i))
			results[i] = s.Transact(Transaction{Set: []TransactionItem{item}})
		})
	}
	group.Wait()
	won := 0
	for i, err := range results {
		if err == nil {
			won++
			wantValue(t, s, "lease", "k", fmt.Sprintf(`{"version":1,"expiresAt":%d}`, i))
			continue
		}
		wantError(t, err, 400, "CONDITIONAL_CHECK_FAILED", "")
	}
	if won != 1 {
		t.Fatalf("%d transactions won", won)
	}
}

func FuzzTransact(f *testing.F) {
	f.Add(`{"set":[{"key":"k","entityName":"lease","value":{"version":1},"conditions":{"and":[{"property":"version","condition":"EQUAL_TO","values":[0]}]},"options":{"ttl":{"value":1,"unit":"DAYS"}}}]}`)
	f.Add(`{"set":[{"key":"k","value":1e999}],"delete":[{"key":"p"}],"check":[{"key":"k","entityName":"lease","conditions":{"or":[{"property":"note","condition":"BETWEEN","values":["a",1]}]}}]}`)
	f.Add(`{"check":[{"key":"k","entityName":"lease","conditions":{"and":[{"property":"expiresAt","condition":"LESS_THAN","values":[-0.0e-99999]}]}}]}`)
	f.Fuzz(func(t *testing.T, body string) {
		var transaction Transaction
		if json.Unmarshal([]byte(body), &transaction) != nil {
			return
		}
		s := newLeases()
		_, err := s.Set("p", raw(`0`), SetOptions{})
		noError(t, err)
		_, err = s.EntitySet("lease", "k", raw(`{"version":0,"expiresAt":1.5,"holder":"h","note":"a"}`), SetOptions{})
		noError(t, err)
		before := contents(s)
		if err := s.Transact(transaction); err != nil {
			var refusal *Error
			if !errors.As(err, &refusal) || refusal.Status < 400 || refusal.Code == "" || refusal.Message == "" {
				t.Fatalf("incomplete refusal %v", err)
			}
			if !maps.Equal(before, contents(s)) {
				t.Fatalf("a refused transaction changed the store: %v", err)
			}
			return
		}
		for _, item := range transaction.Set {
			value, err := compact(item.Value)
			noError(t, err)
			wantValue(t, s, item.EntityName, item.Key, value)
		}
		for _, item := range transaction.Delete {
			wantValue(t, s, item.EntityName, item.Key, "")
		}
	})
}
