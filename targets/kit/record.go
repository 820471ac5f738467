package kit

import (
	"encoding/json"
	"strings"

	"contend/targets"
)

// Encode gives a record as the JSON that a key holds.
func Encode(r targets.Record) ([]byte, error) {
	r.UpdatedAt = r.UpdatedAt.UTC()
	return json.Marshal(r)
}

// Hold tells the reply what a key holds: a record, or the beginning of something that is
// not one of ours.
func Hold(r *targets.Reply, stored []byte) {
	if err := json.Unmarshal(stored, &r.Record); err != nil || r.Record.Token == "" {
		r.Record, r.Stored = targets.Record{}, Sample(string(stored))
		r.Message = "the key holds something that is not a record of contend"
	}
}

// Deletes gives the ops that delete keys, one for each key.
func Deletes(keys []string) (deletes []targets.Op) {
	seen := make(map[string]bool, len(keys))
	for _, key := range keys {
		if !seen[key] {
			seen[key] = true
			deletes = append(deletes, targets.Op{Kind: targets.Delete, Key: key})
		}
	}
	return deletes
}

// Escape puts a backslash before each of the characters, and before backslashes.
func Escape(text, characters string) string {
	var b strings.Builder
	for _, c := range text {
		if c == '\\' || strings.ContainsRune(characters, c) {
			b.WriteByte('\\')
		}
		b.WriteRune(c)
	}
	return b.String()
}
