package near

import "testing"

func TestName(t *testing.T) {
	candidates := []string{"key", "keyPolicy", "ttl", "returnValue", "entity-name"}
	for name, want := range map[string]string{
		"keypolicy":    "keyPolicy", // the case of letters alone
		"TTL":          "ttl",
		"keyPolcy":     "keyPolicy",
		"tll":          "ttl", // two swapped
		"entity_name":  "entity-name",
		"--returnValu": "returnValue",
		"policy":       "", // too far
		"":             "",
		"xyz":          "",
	} {
		if got := Name(name, candidates); got != want {
			t.Errorf("%q: got %q, want %q", name, got, want)
		}
	}
}
