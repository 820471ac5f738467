package probe

import (
	"bytes"
	"encoding/json"
	"fmt"
	"unicode/utf8"

	"contend/targets"
)

const (
	briefText  = 60 // characters of a text in a request that is shown
	briefItems = 3
	briefDepth = 6
	briefBytes = 2000
)

// brief is a request with its long values cut, as a report shows it.
func brief(op targets.Op) targets.Op {
	op.Raw = briefJSON(op.Raw)
	return op
}

// briefRaw cuts an answer that is long.
func briefRaw(raw json.RawMessage) json.RawMessage {
	if len(raw) <= briefBytes {
		return raw
	}
	return briefJSON(raw)
}

func briefJSON(raw json.RawMessage) json.RawMessage {
	var v any
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if d.Decode(&v) != nil {
		return nil
	}
	short, _ := json.Marshal(briefValue(v, 0)) // what came from JSON goes back
	return short
}

func briefValue(v any, depth int) any {
	switch v := v.(type) {
	case string:
		if n := utf8.RuneCountInString(v); n > briefText {
			return fmt.Sprintf("%s… (%d characters)", string([]rune(v)[:briefText/2]), n)
		}
	case []any:
		if depth >= briefDepth {
			return "…"
		}
		short := []any{}
		for i, item := range v {
			if i == briefItems && len(v) > briefItems+1 {
				short = append(short, fmt.Sprintf("… (%d items)", len(v)))
				break
			}
			short = append(short, briefValue(item, depth+1))
		}
		return short
	case map[string]any:
		if depth >= briefDepth {
			return "…"
		}
		short := make(map[string]any, len(v))
		for name, member := range v {
			short[name] = briefValue(member, depth+1)
		}
		return short
	}
	return v
}
