package cmd_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"contend/targets/targettest"
)

// heldOr3 stands for held, or inconclusive for no other reason than a lack of contest, or
// of keys that were asked in time, which depend on the machine.
const heldOr3 = -1

// wrongCase is a wrong store, and what contend must say of it.
type wrongCase struct {
	store   string // as on the command line of targettest/wrong; EMULATOR is the address of one
	query   string // parameters of the target
	command string // of contend, without -t
	code    int
	says    string // in the output
	not     string // not in the output
}

const (
	watch = " --keys 5 --ttl 500ms --watch 3s"
	lease = "lease --expiry ttl --periods 2 --term 400ms -n 4 -r 3"
)

var wrongCases = []wrongCase{
	{store: "window -window 20ms", command: "fail-if-exists -r 10", code: 1, says: "two writes were accepted where only one may win"},
	{store: "window -window 20ms", command: "version-cas -r 10", code: 1, says: "two writes were accepted where only one may win"},
	{store: "window-cpu -window 20ms", command: "fail-if-exists -r 10", code: 1, says: "two writes were accepted where only one may win"},
	{store: "window-loop -window 20ms", command: "fail-if-exists -r 10", code: 1, says: "two writes were accepted where only one may win"},
	{store: "window-loop -window 20ms", command: "version-cas -r 10", code: 1, says: "two writes were accepted where only one may win"},
	{store: "window-none", command: "fail-if-exists -r 12", code: heldOr3},
	{store: "window-none", command: "version-cas -r 12", code: heldOr3},
	{store: "window-none", query: "create=watch", command: "fail-if-exists -r 12", code: heldOr3},
	{store: "window-none", query: "cas=watch", command: "version-cas -r 12", code: heldOr3},
	{store: "window-none", command: "ttl-ghost" + watch, code: heldOr3},

	{store: "loser-ok", command: "fail-if-exists -r 10", code: 1, says: "a second create of one key was accepted"},
	{store: "loser-zero", command: "fail-if-exists -r 10", code: 3, says: "unmapped"},
	{store: "loser-empty", command: "fail-if-exists -r 10", code: 3, says: "unmapped"},
	{store: "winner-one", command: "fail-if-exists -r 10", code: 3, says: "unmapped"},
	{store: "lost-write", command: "fail-if-exists -r 10", code: 1, says: "a second create of one key was accepted"},
	{store: "loser-stored", command: "fail-if-exists -r 10", code: 1, says: "a write that was told it failed is what the store holds"},
	{store: "loser-stored-cas", command: "version-cas -r 10", code: 1, says: "a write that was told it failed is what the store holds"},
	{store: "loser-stored-late", command: "fail-if-exists -r 12", code: 1, says: "a write that was told it failed is what the store holds"},
	{store: "loser-stored-ttl", command: lease, code: 1, says: "a write that was told it failed"},
	{store: "void-condition", command: "version-cas -r 10", code: 1, says: "a write on a stale version was accepted"},
	{store: "void-watch", query: "cas=watch", command: "version-cas -r 10", code: 1, says: "two writes were accepted where only one may win"},
	{store: "void-watch", query: "create=watch", command: "fail-if-exists -r 10", code: 1, says: "two writes were accepted where only one may win"},
	{store: "cuts-values", command: "fail-if-exists -r 10", code: 1, not: "someone else writes"},
	{store: "cuts-keys", command: "fail-if-exists -r 10", code: 1, not: "someone else writes"},
	{store: "resends", command: "fail-if-exists -r 10", code: 1, says: "a proxy or client sends requests again"},

	{store: "no-ttl", command: "ttl-ghost" + watch, code: 1, says: "create-if-absent was refused with nil"},
	{store: "no-ttl", command: lease, code: 1, says: "the lease had expired, and nobody could take it"},
	{store: "ttl-as-seconds", command: "ttl-ghost" + watch, code: 1, says: "create-if-absent was refused with nil"},
	{store: "ttl-as-milliseconds", command: "ttl-ghost" + watch, code: 1, says: "before the key expired"},
	{store: "short-ttl", command: "ttl-ghost" + watch, code: 1, says: "before the key expired"},
	{store: "short-ttl", command: lease, code: 1, says: "early"},
	{store: "ghost", command: "ttl-ghost" + watch, code: 1, says: "create-if-absent was refused with nil"},
	{store: "ghost-create", command: "ttl-ghost" + watch, code: 1, says: "create-if-absent was refused with nil"},
	{store: "ghost-read -delay 1s", command: "ttl-ghost" + watch, code: heldOr3, says: "reads still showed"},
	{store: "ghost-error", command: "ttl-ghost" + watch, code: 3, says: "Unknown error"},
	{store: "loser-extends", command: "ttl-ghost" + watch, code: 1, says: "refused creates prolong the life of the key"},
	{store: "loser-persists", command: "ttl-ghost" + watch, code: 1, says: "refused creates prolong the life of the key"},
	{store: "loser-extends", command: lease, code: 1},
	{store: "loser-persists", command: lease, code: 1},
	{store: "miniredis", command: "ttl-ghost" + watch, code: 1, says: "create-if-absent was refused with nil"},

	{store: "stale-reads -delay 500ms", command: "fail-if-exists -r 10", code: 3, says: "stale"},
	{store: "lagging-replica -delay 300ms", command: "fail-if-exists -r 10", code: 3, says: "stale"},
	{store: "slow-link -delay 5ms", command: "fail-if-exists -r 12", code: heldOr3},
	{store: "two-masters", command: "fail-if-exists -r 10", code: 1, says: "nonce ✗"},
	{store: "evicts -delay 1ms", command: "fail-if-exists -r 10 --settle 2s", code: 1},
	{store: "evicts", command: "fail-if-exists -r 10 --settle 2s", code: 1, says: "removed from outside"},
	{store: "evicts-without-ttl", command: "ttl-ghost" + watch, code: 1},

	{store: "void-delete", command: "fail-if-exists -r 10", code: 3, says: "a create after a delete wins: expected ok, got conflict"},
	{store: "void-delete", command: "fail-if-exists -r 10", code: 3, says: "keys were left behind"},
	{store: "no-delete", command: "fail-if-exists -r 10", code: 3, says: "NOPERM"},
	{store: "no-info", command: "fail-if-exists -r 12", code: heldOr3},
	{store: "no-version", command: "fail-if-exists -r 12", code: heldOr3},
	{store: "no-script", command: "fail-if-exists -r 12", code: heldOr3},
	{store: "refuses", command: "fail-if-exists -r 10", code: 4, says: "READONLY You can't write against a read only replica"},
	{store: "refuses -text=NOAUTH", command: "version-cas -r 10", code: 4, says: "NOAUTH"},

	{store: "counts-refused", command: "fail-if-exists -r 10", code: 1, says: "a second create of one key was accepted"},
	{store: "counts-refused", query: "create=unique-violation", command: "fail-if-exists -r 12", code: heldOr3},
	{store: "counts-refused-update", command: "version-cas -r 10", code: 1, says: "a write on a stale version was accepted"},

	{store: "forge-login-page -b EMULATOR", command: "fail-if-exists -r 10", code: 4, says: "unmapped"},
	{store: "forge-bad-gateway -b EMULATOR", command: "fail-if-exists -r 10 --settle 10ms", code: 3, says: "502"},
	{store: "forge-policy-ignored -b EMULATOR", command: "fail-if-exists -r 10", code: 1, says: "a second create of one key was accepted"},
	{store: "forge-conflict-as-500 -b EMULATOR", command: "fail-if-exists -r 10 --settle 10ms", code: 3, says: "INTERNAL_SERVER_ERROR"},
	{store: "forge-other-code -b EMULATOR", command: "fail-if-exists -r 10 --settle 10ms", code: 3, says: "CONFLICT"},

	{store: "redis-replica", command: "fail-if-exists -r 10", code: 4, says: "READONLY You can't write against a read only replica"},
	{store: "redis-full", command: "fail-if-exists -r 10", code: 4, says: "max number of clients reached"},
	{store: "redis-evicting", command: "fail-if-exists -r 20 --settle 2s", code: 1, says: "removed from outside"},
	{store: "redis-restricted", command: "fail-if-exists -r 12", code: heldOr3},
	{store: "row-level-security", command: "fail-if-exists -r 10", code: 3, says: "keys were left behind"},
	{store: "delete-trigger", command: "fail-if-exists -r 10", code: 3, says: "keys were left behind"},
	{store: "pgbouncer-transaction", command: "fail-if-exists -r 10", code: 4, says: "a pooler in transaction mode is in between"},
	{store: "pgbouncer-full", command: "fail-if-exists -r 10 --timeout 1s", code: 4, says: "session", not: "is the server running"},
	{store: "pglite", command: "fail-if-exists -r 10", code: 4, says: "session", not: "or drop it"},
}

var tooLittle = regexp.MustCompile("rounds count as contended|keys were seen to be free in time")

func (c wrongCase) String() string { return strings.Join([]string{c.store, c.query, c.command}, " ") }

// mistake is what is not as it must be, with the output; "" if all is.
func (c wrongCase) mistake(t *testing.T) string {
	t.Helper()
	words := strings.Fields(c.store)
	for i, word := range words {
		if word == "EMULATOR" {
			url, _ := serve(t, "--quota=false", "--latency", "5ms")
			words[i] = strings.TrimPrefix(url, "http://")
		}
	}
	target := targettest.Wrong(t, words...)
	switch {
	case c.query == "":
	case strings.Contains(target, "?"):
		target += "&" + c.query
	default:
		target += "?" + c.query
	}
	arguments := append(strings.Fields(c.command), "-t", target, "--no-progress")
	if strings.HasPrefix(c.command, "ttl-ghost") {
		arguments = append(arguments, "--store", "")
	}
	code, stdout, stderr := contend(t, arguments...)
	said := strings.Join(strings.Fields(stdout+stderr), " ") // lines are broken anywhere
	var wrong []string
	switch {
	case c.code != heldOr3 && code != c.code:
		wrong = append(wrong, fmt.Sprintf("exit %d, want %d", code, c.code))
	case c.code == heldOr3 && code != 0 && (code != 3 || !tooLittle.MatchString(said) || strings.Contains(said, "control ")):
		wrong = append(wrong, fmt.Sprintf("exit %d, want held", code))
	}
	if !strings.Contains(strings.ToLower(said), strings.ToLower(c.says)) {
		wrong = append(wrong, fmt.Sprintf("%q is not said", c.says))
	}
	if c.not != "" && strings.Contains(strings.ToLower(said), c.not) {
		wrong = append(wrong, fmt.Sprintf("%q is said", c.not))
	}
	if wrong == nil {
		return ""
	}
	return strings.Join(wrong, "; ") + "\n" + stdout + stderr
}

// Of each wrong store contend says what it does.
func TestWrongStores(t *testing.T) {
	t.Parallel()
	for _, c := range wrongCases {
		t.Run(c.String(), func(t *testing.T) {
			t.Parallel()
			if mistake := c.mistake(t); mistake != "" {
				t.Error(mistake)
			}
		})
	}
}

// Each wrong store has a case.
func TestEachWrongStoreIsJudged(t *testing.T) {
	judged := map[string]bool{
		// What these send must be shown harmlessly; that has tests of its own.
		"forge-throttled": true, "forge-hangs-up": true, "forge-formula-code": true, "forge-long-code": true, "forge-hostile-trace": true,
	}
	for _, c := range wrongCases {
		judged[strings.Fields(c.store)[0]] = true
	}
	for _, s := range targettest.WrongStores() {
		if !judged[s.Name] {
			t.Errorf("nothing says what contend must say of %s", s.Name)
		}
	}
}
