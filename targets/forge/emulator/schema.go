package emulator

import (
	"encoding/json"
	"maps"
	"math/big"
	"slices"
	"strconv"
	"strings"
)

// checkSchema checks a compacted value against the attributes of an entity.
// Plain keys take every value. Of several faults it reports the one whose
// attribute sorts first.
func (t *table) checkSchema(value string) error {
	if !t.typed {
		return nil
	}
	if kindOf(value) != kindObject {
		return errEntityValue
	}
	attributes := parseObject(value)
	for _, name := range slices.Sorted(maps.Keys(attributes)) {
		declared, known := t.attributes[name]
		if !known {
			return undeclaredAttribute(name)
		}
		if !declared.accepts(string(attributes[name])) {
			return incorrectPropertyType(name, declared)
		}
	}
	return nil
}

// parseObject returns the members of a compacted JSON object, or nil for any
// other value.
func parseObject(value string) map[string]json.RawMessage {
	var members map[string]json.RawMessage
	if json.Unmarshal([]byte(value), &members) != nil {
		return nil
	}
	return members
}

// accepts reports whether a compacted JSON value fits the type.
func (t Type) accepts(value string) bool {
	switch t {
	case Integer:
		_, err := strconv.ParseInt(value, 10, 32)
		return err == nil
	case Float:
		_, ok := decimal(value)
		return ok
	case String:
		return kindOf(value) == kindString
	case Boolean:
		return kindOf(value) == kindBoolean
	}
	return t == Any
}

// kind is the JSON kind of a value.
type kind int

const (
	kindNull kind = iota
	kindBoolean
	kindNumber
	kindString
	kindArray
	kindObject
)

// kindOf returns the kind of a compacted JSON value.
func kindOf(value string) kind {
	switch value[0] {
	case 'n':
		return kindNull
	case 't', 'f':
		return kindBoolean
	case '"':
		return kindString
	case '[':
		return kindArray
	case '{':
		return kindObject
	}
	return kindNumber
}

// Bounds of a decimal number: significant digits, and the power of ten of the
// leading one.
const (
	maxDigits = 38
	minPower  = -130
	maxPower  = 125
)

// decimal returns the exact value of a JSON number, and false for any other
// value and for a number out of bounds. The bounds also keep a literal such as
// 1e999999999 from being expanded.
func decimal(literal string) (*big.Rat, bool) {
	if kindOf(literal) != kindNumber {
		return nil, false
	}
	unsigned, negative := strings.CutPrefix(literal, "-")
	mantissa, exponent, scaled := strings.Cut(strings.ToLower(unsigned), "e")
	whole, fraction, _ := strings.Cut(mantissa, ".")
	digits := strings.TrimLeft(whole+fraction, "0")
	if digits == "" {
		return new(big.Rat), true
	}
	power := 0
	if scaled {
		var err error
		if power, err = strconv.Atoi(exponent); err != nil {
			return nil, false
		}
	}
	power -= len(fraction) - len(digits) + 1
	digits = strings.TrimRight(digits, "0")
	if len(digits) > maxDigits || power < minPower || power > maxPower {
		return nil, false
	}
	scale := strconv.Itoa(power - len(digits) + 1)
	if negative {
		digits = "-" + digits
	}
	return new(big.Rat).SetString(digits + "e" + scale)
}
