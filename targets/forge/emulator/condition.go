package emulator

import (
	"encoding/json"
	"slices"
	"strings"
)

const (
	conditionExists     = "EXISTS"
	conditionNotExists  = "NOT_EXISTS"
	conditionEqualTo    = "EQUAL_TO"
	conditionBetween    = "BETWEEN"
	conditionBeginsWith = "BEGINS_WITH"
)

// rangeConditions are those that an index can serve.
var rangeConditions = []string{conditionEqualTo, conditionBetween, conditionBeginsWith,
	"GREATER_THAN", "GREATER_THAN_EQUAL_TO", "LESS_THAN", "LESS_THAN_EQUAL_TO"}

// operator is one of the twelve conditions.
type operator struct {
	count int    // of values
	takes []kind // kinds a value may have; nil: the value is true
	holds func(attribute string, values []string) bool
}

var (
	scalars = []kind{kindBoolean, kindNumber, kindString}
	ordered = []kind{kindNumber, kindString}
	texts   = []kind{kindString}
)

var operators = map[string]operator{
	conditionExists:         {1, nil, func(string, []string) bool { return true }},
	conditionNotExists:      {1, nil, func(string, []string) bool { return false }},
	conditionEqualTo:        {1, scalars, equal},
	"NOT_EQUAL_TO":          {1, scalars, not(equal)},
	"GREATER_THAN":          {1, ordered, compared(func(order int) bool { return order > 0 })},
	"GREATER_THAN_EQUAL_TO": {1, ordered, compared(func(order int) bool { return order >= 0 })},
	"LESS_THAN":             {1, ordered, compared(func(order int) bool { return order < 0 })},
	"LESS_THAN_EQUAL_TO":    {1, ordered, compared(func(order int) bool { return order <= 0 })},
	conditionBetween:        {2, ordered, between},
	conditionBeginsWith:     {1, texts, matched(strings.HasPrefix)},
	"CONTAINS":              {1, texts, matched(strings.Contains)},
	"NOT_CONTAINS":          {1, texts, not(matched(strings.Contains))},
}

var equal = compared(func(order int) bool { return order == 0 })

func not(holds func(string, []string) bool) func(string, []string) bool {
	return func(attribute string, values []string) bool { return !holds(attribute, values) }
}

func compared(wanted func(order int) bool) func(string, []string) bool {
	return func(attribute string, values []string) bool {
		order, comparable := compare(attribute, values[0])
		return comparable && wanted(order)
	}
}

func matched(match func(attribute, value string) bool) func(string, []string) bool {
	return func(attribute string, values []string) bool {
		return kindOf(attribute) == kindString && match(unquote(attribute), unquote(values[0]))
	}
}

func between(attribute string, values []string) bool {
	low, lowComparable := compare(attribute, values[0])
	high, highComparable := compare(attribute, values[1])
	return lowComparable && highComparable && low >= 0 && high <= 0
}

// compare orders an attribute against a scalar. Values of different kinds are
// not comparable.
func compare(attribute, value string) (order int, comparable bool) {
	if kindOf(attribute) != kindOf(value) {
		return 0, false
	}
	switch kindOf(value) {
	case kindString:
		return strings.Compare(unquote(attribute), unquote(value)), true
	case kindNumber:
		x, xBounded := decimal(attribute)
		y, yBounded := decimal(value)
		if !xBounded || !yBounded {
			return 0, false
		}
		return x.Cmp(y), true
	}
	return strings.Compare(attribute, value), true
}

// unquote decodes a valid JSON string.
func unquote(value string) string {
	var decoded string
	_ = json.Unmarshal([]byte(value), &decoded)
	return decoded
}

// test is a checked condition.
type test struct {
	property string
	name     string
	operator operator
	values   []string // compacted JSON
}

// guard is the checked conditions of one operation.
type guard struct {
	tests []test
	any   bool // one test is enough
}

func (t *table) guard(conditions Conditions) (guard, error) {
	switch {
	case !t.typed:
		return guard{}, errUnprocessable
	case len(conditions.And) > 0 && len(conditions.Or) > 0:
		return guard{}, errFilterCombination
	case len(conditions.And) == 0 && len(conditions.Or) == 0:
		return guard{}, errFilterEmpty
	}
	g := guard{any: len(conditions.Or) > 0}
	for _, condition := range slices.Concat(conditions.And, conditions.Or) {
		checked, err := t.test(condition)
		if err != nil {
			return guard{}, err
		}
		g.tests = append(g.tests, checked)
	}
	return g, nil
}

func (t *table) test(condition Condition) (test, error) {
	return newTest(condition, t.attributes[condition.Property])
}

// newTest checks a condition on an attribute of the declared type, which is
// empty where the attribute is not declared.
func newTest(condition Condition, declared Type) (test, error) {
	o, known := operators[condition.Condition]
	switch {
	case !known:
		return test{}, errFilterCondition
	case len(condition.Values) < o.count:
		return test{}, errInsufficientValues
	case len(condition.Values) > o.count:
		return test{}, errFilterValues
	}
	if declared == "" {
		return test{}, errUnprocessable
	}
	checked := test{property: condition.Property, name: condition.Condition, operator: o}
	for _, raw := range condition.Values {
		value, err := compact(raw)
		if err != nil {
			return test{}, err
		}
		if !checked.takes(declared, value) {
			return test{}, errUnprocessable
		}
		checked.values = append(checked.values, value)
	}
	return checked, nil
}

// takes reports whether the value suits the condition on an attribute of the
// declared type.
func (t test) takes(declared Type, value string) bool {
	if t.operator.takes == nil {
		return value == "true"
	}
	if kindOf(value) == kindNumber {
		if _, bounded := decimal(value); !bounded {
			return false
		}
	}
	return slices.Contains(t.operator.takes, kindOf(value)) && declared.accepts(value)
}

// holds evaluates the conditions on an object. An absent attribute satisfies
// NOT_EXISTS alone.
func (g guard) holds(value string) bool {
	attributes := parseObject(value)
	holds := func(t test) bool {
		attribute, present := attributes[t.property]
		if !present {
			return t.name == conditionNotExists
		}
		return t.operator.holds(string(attribute), t.values)
	}
	if g.any {
		return slices.ContainsFunc(g.tests, holds)
	}
	return !slices.ContainsFunc(g.tests, func(t test) bool { return !holds(t) })
}
