package scenarios

import (
	"fmt"
	"time"

	"contend/runner"
	"contend/targets"
)

// Violation is a broken rule with the requests that break it.
type Violation struct {
	Kind    string    `json:"kind"`
	Round   int       `json:"round,omitempty"`
	Key     string    `json:"key,omitempty"`     // of a watch
	Control string    `json:"control,omitempty"` // the control that it was seen in
	Detail  string    `json:"detail"`
	Witness []Witness `json:"witness"`
	age     time.Duration
}

// Witness is one request of a violation. Times are since the start of the run.
type Witness struct {
	Who     string          `json:"who"`
	Request string          `json:"request"`
	Call    time.Duration   `json:"call_ns"`
	Return  time.Duration   `json:"return_ns"`
	Outcome targets.Outcome `json:"outcome"`
	Code    string          `json:"code,omitempty"`
	Status  int             `json:"status,omitempty"`
	Token   string          `json:"token,omitempty"` // that was written, or read
	Version int64           `json:"version"`
	Trace   string          `json:"trace,omitempty"`
}

// violation words an anomaly.
func violation(round int, b *anomaly) *Violation {
	v := &Violation{Kind: b.kind, Round: round}
	for _, a := range []*operation{b.a, b.b} {
		if a != nil {
			v.Witness = append(v.Witness, a.witness())
		}
	}
	v.say(anomalyText[b.kind])
	return v
}

// say puts the violation into words, and why there is one request only where that is
// so.
func (v *Violation) say(text string) {
	if v.Detail = text; len(v.Witness) < 2 {
		v.Detail += " (" + aloneText(v.Kind) + ")"
	}
}

// aloneText says why an anomaly of this kind may have a single request for its witness.
func aloneText(kind string) string {
	switch kind {
	case "owner-never-wrote", "version-without-writer":
		return "one request shows it: there is no other that could have written what it shows"
	case "no-winner":
		return "one request shows it: there is no other that could have won before it"
	case "early-takeover", "early-expiry":
		return "one request shows it: it was answered before the term was over"
	default:
		return "one request shows it, against all the others of the round together"
	}
}

// anomalyText says what each kind of violation is.
var anomalyText = map[string]string{
	"several-winners":         "two writes were accepted where only one may win",
	"two-owners":              "two reads name two different winners",
	"wrong-owner":             "the record is not the accepted write's but another contender's",
	"owner-never-wrote":       "the record names a contender that was not told it wrote",
	"no-winner":               "a contender was refused although nobody had won",
	"refused-before-winner":   "a contender was refused before any winner had sent its write",
	"read-before-write":       "a read showed the new record before its writer had sent it",
	"lost-write":              "an accepted write was not there when it was read back",
	"old-state-after-refusal": "a read showed the old state after a contender had been refused",
	"state-went-back":         "a read showed the old state after another had shown the new one",
	"early-takeover":          "the key was taken over before the record before it had run out",
	"stale-fence-accepted":    "a former holder's write was accepted after a later holder's",
	"early-expiry":            "the key was free before its time to live was over",
	"ghost":                   "the lease had expired, and nobody could take it",
	"lost-update":             "the counter is behind the writes that were accepted",
	"over-count":              "the counter is ahead of all writes that may have been applied",
	"refused-but-applied":     "a write that was told it failed is what the store holds: the store applied what it refused, or a proxy or client sends requests again",
	"misplaced-record":        "the key holds a record that was written to another key of this run: the store mixes keys up, or cuts them short",
	"changed-value":           "a record came back other than it was written: its value is not what the key holds",
	"record-vanished":         "the seeded record is gone although nobody deletes",
	"version-jump":            fmt.Sprintf("the stored version is not the %d that was written", newVersion),
	"refused-while-absent":    "a create was refused although the record had been seen gone and nobody had created another",
	"accepted-too-early":      "a write was accepted before the version that it was conditional on can have been there",
	"version-without-writer":  "a version was built upon that nobody can have written",
	"wrong-version":           "a record shows another version than its writer stored",
	"stale-read-after-write":  "a read that was sent after a write had been accepted still showed the state before",
	"second-create-accepted":  "a second create of one key was accepted, with nothing running beside it",
	"stale-write-accepted":    "a write on a stale version was accepted, with nothing running beside it",
}

func (a *operation) witness() Witness {
	w := Witness{Call: a.call, Return: a.ret, Outcome: a.outcome, Code: a.code, Status: int(a.status),
		Token: a.token, Version: a.version, Trace: a.trace, Who: fmt.Sprintf("contender %d", a.who), Request: "write"}
	if a.kind >= sawOld {
		w.Request = "read"
	}
	switch {
	case a.late:
		w.Who = "late read"
	case a.who == runner.ByRunner:
		w.Who = "read-back"
	}
	return w
}
