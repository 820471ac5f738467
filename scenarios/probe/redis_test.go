package probe_test

import (
	"testing"

	"contend/targets"
)

// A Redis that breaks what is documented is found.
func TestProbeOfAnotherRedis(t *testing.T) {
	ok, none := got(`"OK"`), targets.Reply{Outcome: targets.Missing, Code: "nil", Raw: []byte("null")}
	for _, c := range []struct {
		id     string
		last   targets.Reply
		before []targets.Reply
		want   string
		known  bool
	}{
		{"conditions/nx-present", targets.Reply{Outcome: targets.Conflict, Code: "nil", Raw: []byte("null")}, nil, "", true},
		{"conditions/nx-present", ok, nil, "", false},
		{"conditions/nx-get-absent", got(`"new"`), []targets.Reply{{Outcome: targets.OK, Code: "nil", Raw: []byte("null")}}, "null, then new", true},
		{"conditions/nx-get-absent", none, []targets.Reply{{Outcome: targets.OK, Code: "nil", Raw: []byte("null")}}, "null, then ", false},
		{"conditions/nx-get-present", got(`"new"`), []targets.Reply{ok, got(`"old"`)}, "old, then new", false},
		{"types/integer-max", got(`9223372036854775807`), nil, "9223372036854775807", true},
		{"types/integer-max", got(`-1`), nil, "-1", false},
		{"types/list-read", targets.Reply{Outcome: targets.Invalid, Code: "ERR"}, nil, "", false},
		{"ttl/px-0", ok, nil, "", false},
		{"ttl/expired-created", targets.Reply{Outcome: targets.Conflict, Code: "nil", Raw: []byte("null")}, nil, "", false},
		{"ttl/expired-read", got(`"v"`), nil, "", false},
		{"ttl/granularity", got(`1000`), nil, "whole seconds", false},
		{"ttl/granularity", got(`-1`), nil, "none is told", false},
		{"ttl/granularity", got(`1499`), nil, "milliseconds", true},
		{"ttl/overwritten", got(`59999`), nil, "it stays", false},
		{"ttl/kept", got(`-1`), nil, "it is cleared", false},
		{"ttl/absent", got(`-1`), nil, "-1", false},
	} {
		a := shownAs(t, "redis", c.id, c.last, c.before...)
		if a.AsKnown == nil || *a.AsKnown != c.known || a.Answer != c.want {
			t.Errorf("%s, answered %s: %q, as known: %v; want %q, %v", c.id, c.last.Raw, a.Answer, a.AsKnown != nil && *a.AsKnown, c.want, c.known)
		}
	}
}
