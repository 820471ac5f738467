package probe_test

import (
	"testing"

	"contend/targets"
)

// A PostgreSQL that breaks what is documented is found.
func TestProbeOfAnotherPostgres(t *testing.T) {
	state := func(outcome targets.Outcome, code string) targets.Reply {
		return targets.Reply{Outcome: outcome, Code: code}
	}
	for _, c := range []struct {
		id     string
		last   targets.Reply
		before []targets.Reply
		want   string
		known  bool
	}{
		{"conditions/insert-present", state(targets.Conflict, "23505"), nil, "", true},
		{"conditions/insert-present", state(targets.Conflict, "0 rows"), nil, "", false},
		{"conditions/update-stale", got(`{"command":"UPDATE 1"}`), nil, "", false},
		{"conditions/update-same", state(targets.Conflict, "0 rows"), nil, "", false}, // as MySQL counts
		{"conditions/update-same", got(`{"command":"UPDATE 1"}`), nil, "UPDATE 1", true},
		{"types/integer-above-max", got(`{"command":"SELECT 1","rows":[["9223372036854775808"]]}`), nil, "", false},
		{"types/integer-fraction", got(`{"command":"SELECT 1","rows":[["1"]]}`), nil, "1", false},
		{"types/integer-max", got(`{"command":"SELECT 0"}`), nil, "", false},
		{"types/timestamp-precision", got(`{"command":"SELECT 1","rows":[["0.123"]]}`), nil, "0.123", false},
		{"types/timestamp-precision", got(`{"command":"SELECT 1","rows":[["0.123457"]]}`), nil, "0.123457", true},
		{"transactions/after-error", got(`{"command":"ROLLBACK"}`), []targets.Reply{{Outcome: targets.OK}, state(targets.Invalid, "22P02"), state(targets.Invalid, "25P02")}, "25P02, then ROLLBACK", true},
		{"transactions/after-error", got(`{"command":"COMMIT"}`), nil, ", then COMMIT", false},
	} {
		a := shownAs(t, "postgres", c.id, c.last, c.before...)
		if a.AsKnown == nil || *a.AsKnown != c.known || a.Answer != c.want {
			t.Errorf("%s, answered %s %s: %q, as known: %v; want %q, %v", c.id, c.last.Code, c.last.Raw, a.Answer, a.AsKnown != nil && *a.AsKnown, c.want, c.known)
		}
	}
}
