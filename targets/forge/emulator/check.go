package emulator

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Limits of the platform.
const (
	maxKeyCharacters = 500
	maxValueBytes    = 240 << 10
	maxDepth         = 31
	maxTTL           = 365 * 24 * time.Hour
)

var units = map[string]time.Duration{
	"SECONDS": time.Second,
	"MINUTES": time.Minute,
	"HOURS":   time.Hour,
	"DAYS":    24 * time.Hour,
}

func (t *table) checkKey(key string) error {
	switch {
	case key == "" && t.typed:
		return errEmptyKey
	case key == "":
		return errKeyTooShort
	case utf8.RuneCountInString(key) > maxKeyCharacters:
		return errKeyTooLong
	case strings.TrimSpace(key) == "", strings.ContainsFunc(key, forbiddenInKey):
		return errInvalidKey
	}
	return nil
}

func forbiddenInKey(r rune) bool {
	switch {
	case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9':
		return false
	}
	return !strings.ContainsRune(":._-#", r) && !unicode.IsSpace(r)
}

// prepare checks all of a set that does not depend on the schema.
func prepare(t *table, key string, value json.RawMessage, ttl *TTL) (write, error) {
	if err := t.checkKey(key); err != nil {
		return write{}, err
	}
	text, err := compact(value)
	if err != nil {
		return write{}, err
	}
	if len(text) > maxValueBytes {
		return write{}, errMaxSize
	}
	if depth(text) > maxDepth {
		return write{}, errMaxDepth
	}
	duration, err := ttl.duration(t.longTTL)
	if err != nil {
		return write{}, err
	}
	return write{table: t, key: key, value: text, ttl: duration}, nil
}

// compact returns a copy of a JSON value without its white space.
func compact(value json.RawMessage) (string, error) {
	var buffer bytes.Buffer
	if json.Compact(&buffer, value) != nil {
		return "", errInvalidBody
	}
	return buffer.String(), nil
}

// depth counts how deep the objects and arrays of compacted JSON nest; a
// scalar has depth 0.
func depth(text string) int {
	current, deepest := 0, 0
	inString, escaped := false, false
	for _, b := range []byte(text) {
		switch {
		case escaped:
			escaped = false
		case inString && b == '\\':
			escaped = true
		case b == '"':
			inString = !inString
		case inString:
		case b == '{', b == '[':
			current++
			deepest = max(deepest, current)
		case b == '}', b == ']':
			current--
		}
	}
	return deepest
}

func (t *TTL) duration(tooLong error) (time.Duration, error) {
	if t == nil {
		return 0, nil
	}
	unit, known := units[t.Unit]
	if !known || len(t.Value) == 0 {
		return 0, errInvalidBody
	}
	// Out of range still yields the nearest bound, which the limits refuse.
	value, err := strconv.ParseInt(string(t.Value), 10, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) || value <= 0 {
		return 0, invalidTTL(t.Value)
	}
	if value > int64(maxTTL/unit) {
		return 0, tooLong
	}
	return time.Duration(value) * unit, nil
}

func (o SetOptions) check() error {
	if !slices.Contains([]string{"", override, failIfExists}, o.KeyPolicy) ||
		!slices.Contains([]string{"", returnPrevious, returnLatest}, o.ReturnValue) {
		return errInvalidBody
	}
	if o.KeyPolicy == failIfExists && o.ReturnValue != "" {
		return errPolicyCombination
	}
	return checkMetadataFields(o.ReturnMetadataFields)
}

func checkMetadataFields(fields []string) error {
	for _, field := range fields {
		if field != metadataCreatedAt && field != metadataUpdatedAt && field != metadataExpireTime {
			return errInvalidBody
		}
	}
	return nil
}
