package scenarios

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"contend/runner"
	"contend/targets"
)

// step is a contender's read and write in a made-up round of versions: what it read,
// as version and token, and what became of the write that it based on that.
type step struct {
	who     int
	saw     string // "1 c0": version 1 by contender 0; "0": the seed; "": nothing
	outcome targets.Outcome
	at      time.Duration
}

const chainKey = "contend-01TEST-r1"

// versionRead is a read of what state says.
func versionRead(who int, state string, at time.Duration) runner.Exchange {
	x := runner.Exchange{Contender: who, Call: at, Began: at, Sent: at, Return: at + ms, Op: targets.Op{Kind: targets.Read, Key: chainKey}}
	x.Reply = targets.Reply{Outcome: targets.Missing}
	if state == "" {
		return x
	}
	var version int64
	token := "seed"
	fmt.Sscan(state, &version, &token)
	record := targets.Record{Version: version, Token: chainKey + seedSuffix}
	if _, writer, ok := strings.Cut(state, " c"); ok {
		record.Token = chainKey + "-c" + writer + "-a1"
	}
	x.Reply = targets.Reply{Outcome: targets.OK, Record: record}
	switch state {
	case "cut":
		x.Reply.Record, x.Reply.Stored = targets.Record{}, `{"token":"`+chainKey+`-c0-`
	case "other":
		x.Reply.Record.Token = "contend-01TEST-r9-c0-a1"
	case "body":
		x.Reply.Record.Body = json.RawMessage(`"other"`)
	}
	return x
}

// chainRound makes a round of the counter; back is what its read-back shows.
func chainRound(back string, steps ...step) *runner.Round {
	r := &runner.Round{Number: 1, Key: chainKey, Collection: targets.Versioned, Seeds: []runner.Exchange{{Contender: runner.ByRunner,
		Op:    targets.Op{Kind: targets.Write, Key: chainKey, Value: targets.Record{Token: chainKey + seedSuffix}},
		Reply: targets.Reply{Outcome: targets.OK}}}}
	for _, s := range steps {
		read := versionRead(s.who, s.saw, s.at)
		write := runner.Exchange{Contender: s.who, Call: s.at + 2*ms, Began: s.at + 2*ms, Sent: s.at + 2*ms, Guard: s.at + 2*ms, Return: s.at + 8*ms,
			Op: targets.Op{Kind: targets.Write, Key: chainKey, If: targets.Condition{Guard: targets.IfVersion, Counter: read.Reply.Record.Version},
				Value: targets.Record{Token: runner.Token(chainKey, s.who, 1), Version: read.Reply.Record.Version + 1}},
			Reply: targets.Reply{Outcome: s.outcome, Attempts: 1}}
		r.Ops = append(r.Ops, read, write)
	}
	r.Reads = []runner.Exchange{versionRead(runner.ByRunner, back, 100*ms)}
	return r
}

// The chain is ruled by all that was done and read: contenders' reads, every read-back
// and the late reads, with their tokens.
func TestChainIsRuledByAllReads(t *testing.T) {
	ok, no, unknown := targets.OK, targets.Conflict, targets.Unknown
	first, loser := step{0, "0", ok, 0}, step{1, "0", no, 0}
	for _, c := range []struct {
		name   string
		round  *runner.Round
		lates  []string // through sessions 0, 1, 0, …
		status Status
		kind   string
	}{
		{"as it should be", chainRound("1 c0", first, loser), []string{"1 c0"}, Held, ""},
		{"a refused contender's token, later", chainRound("1 c0", first, loser), []string{"1 c1", "1 c1"}, Violated, "refused-but-applied"},
		{"a refused contender's token, at once", chainRound("1 c1", first, loser), []string{"1 c1"}, Violated, "refused-but-applied"},
		{"built upon by another", chainRound("2 c2", first, loser, step{2, "1 c1", ok, 20 * ms}), []string{"2 c2"}, Violated, "refused-but-applied"},
		{"the accepted one is gone later", chainRound("1 c0", first, loser), []string{"0", "0"}, Violated, "lost-write"},
		{"it is gone for one session alone", chainRound("1 c0", first, loser), []string{"0", "1 c0"}, Inconclusive, ""},
		{"the record is gone later", chainRound("1 c0", first, loser), []string{"", ""}, Violated, "record-vanished"},
		{"an unknown one was read, and is gone", chainRound("2 c1", first, step{1, "1 c0", unknown, 20 * ms}), []string{"1 c0", "1 c0"}, Violated, "state-went-back"},
		{"a contender sees no record", chainRound("1 c0", first, step{1, "", no, 0}, step{2, "0", no, 0}), []string{"1 c0"}, Inconclusive, ""},
		{"an old read shows a refused contender's token", chainRound("2 c2", first, loser, step{2, "1 c0", ok, 20 * ms}, step{3, "1 c1", no, 40 * ms}), []string{"2 c2"}, Violated, "refused-but-applied"},
		{"an old read shows another version than was written", chainRound("2 c2", first, step{2, "1 c0", ok, 20 * ms}, step{3, "1 c2", no, 40 * ms}), []string{"2 c2"}, Violated, "wrong-version"},
		{"a record cut short is read once", chainRound("2 c2", first, step{2, "1 c0", ok, 20 * ms}, step{3, "cut", no, 40 * ms}), []string{"2 c2"}, Violated, "changed-value"},
		{"another key's record is read once", chainRound("2 c2", first, step{2, "1 c0", ok, 20 * ms}, step{3, "other", no, 40 * ms}), []string{"2 c2"}, Violated, "misplaced-record"},
		{"an old read shows another body than the seed's", chainRound("2 c2", first, step{2, "1 c0", ok, 20 * ms}, step{3, "body", no, 40 * ms}), []string{"2 c2"}, Violated, "changed-value"},
		{"the version jumps later", chainRound("1 c0", first, loser), []string{"2 c0", "2 c0"}, Violated, "wrong-version"},
	} {
		j := NewJudge(Terms{Scenario: NewCounter(), Contenders: 2, MinContended: 1, Settle: 500 * ms, Thresholds: DefaultThresholds})
		j.Round(c.round)
		for i, state := range c.lates {
			late := versionRead(i%2, state, time.Second+time.Duration(i)*100*ms)
			j.Late(1, &late)
		}
		v := j.Conclude(runner.End{}).Verdict
		kind := ""
		if len(v.Violations) > 0 {
			kind = v.Violations[0].Kind
			if n := len(v.Violations[0].Witness); n != 2 {
				t.Errorf("%s: a witness of %d requests", c.name, n)
			}
		}
		if v.Status != c.status || kind != c.kind {
			t.Errorf("%s: %s %q, want %s %q: %v", c.name, v.Status, kind, c.status, c.kind, v.Reasons)
		}
	}
}
