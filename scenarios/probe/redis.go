package probe

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"contend/runner"
	"contend/targets"
)

const redisDoc = "Redis documentation"

// redisAsk makes questions to Redis, a command each.
type redisAsk struct{ asking }

func redisQuestions(base string) []Question {
	r := &redisAsk{asking{base: base}}
	r.conditions()
	r.types()
	r.timesToLive()
	r.errors()
	return r.all
}

// command is one, with the key of the run in the place of KEY.
func (r *redisAsk) command(key, text string) targets.Op {
	words := strings.Fields(text)
	for i := range words {
		words[i] = strings.ReplaceAll(words[i], "KEY", r.base+key)
	}
	raw, _ := json.Marshal(words)
	return targets.Op{Kind: targets.Raw, Key: r.base + "probe", Raw: raw}
}

// ask adds a question on a key of its own: commands that make ready, and the last,
// which asks.
func (r *redisAsk) ask(id, text string, known Known, commands ...string) *Question {
	key := strings.ReplaceAll(id, "/", "-")
	var ops []targets.Op
	for _, each := range commands {
		ops = append(ops, r.command(key, each))
	}
	return r.asking.ask(id, text, known, []targets.Op{r.command(key, "DEL KEY")}, inTurn(ops)...)
}

// What is documented of an answer: that it is accepted, with these words; nil, for a
// refusal or for nothing; or an error that begins with a code.
func redisOK(answer string) Known {
	return Known{Basis: Documented, Source: redisDoc, Outcome: targets.OK, Answer: answer}
}

func redisNil(outcome targets.Outcome) Known {
	return Known{Basis: Documented, Source: redisDoc, Outcome: outcome, Code: "nil"}
}

func redisError(code string) Known {
	return Known{Basis: Documented, Source: redisDoc, Outcome: targets.Invalid, Code: code}
}

// readReply gives an answer as it came.
func readReply(replies []*runner.Exchange) string {
	r := lastReply(replies)
	if r.Outcome != targets.OK {
		return ""
	}
	var text string
	if json.Unmarshal(r.Raw, &text) == nil && len(r.Raw) > 0 && r.Raw[0] == '"' {
		return text
	}
	return string(r.Raw)
}

func (r *redisAsk) conditions() {
	r.ask("conditions/nx-absent", "SET NX, the key is absent", redisOK("OK"), "SET KEY new NX").read = readReply
	r.ask("conditions/nx-present", "SET NX, the key is present", redisNil(targets.Conflict), "SET KEY old", "SET KEY new NX")
	r.ask("conditions/xx-absent", "SET XX, the key is absent", redisNil(targets.Conflict), "SET KEY new XX")
	r.ask("conditions/xx-present", "SET XX, the key is present", redisOK("OK"), "SET KEY old", "SET KEY new XX").read = readReply
	// With GET the answer is what was there before: nil means that it was written.
	r.ask("conditions/nx-get-absent", "SET NX GET, the key is absent: the answer, and what is stored then", redisOK("null, then new"),
		"SET KEY new NX GET", "GET KEY").read = readTwo
	r.ask("conditions/nx-get-present", "SET NX GET, the key is present: the answer, and what is stored then", redisOK("old, then old"),
		"SET KEY old", "SET KEY new NX GET", "GET KEY").read = readTwo
	r.ask("conditions/ifeq", "SET IFEQ, which compares the value: does this version have it", notKnown(), "SET KEY old", "SET KEY new IFEQ old").read =
		readYes("it has", "it has, and refuses")
}

// readTwo gives the last two answers.
func readTwo(replies []*runner.Exchange) string {
	return readReply(replies[:len(replies)-1]) + ", then " + readReply(replies)
}

func (r *redisAsk) types() {
	const most = "9223372036854775807"
	r.ask("types/list-read", "GET of a list", redisError("WRONGTYPE"), "RPUSH KEY a", "GET KEY")
	r.ask("types/list-overwritten", "SET over a list", redisOK("OK"), "RPUSH KEY a", "SET KEY new").read = readReply
	r.ask("types/list-nx", "SET NX, the key holds a list", redisNil(targets.Conflict), "RPUSH KEY a", "SET KEY new NX")
	r.ask("types/text-incremented", "INCR of a text", redisError("ERR"), "SET KEY text", "INCR KEY")
	r.ask("types/integer-max", "INCR to 9223372036854775807", redisOK(most), "SET KEY 9223372036854775806", "INCR KEY").read = readReply
	r.ask("types/integer-above-max", "INCR above it", redisError("ERR"), "SET KEY "+most, "INCR KEY")
}

func (r *redisAsk) timesToLive() {
	r.ask("ttl/px-1", "PX 1, one millisecond", redisOK("OK"), "SET KEY v PX 1").read = readReply
	for _, c := range []struct{ name, option, text string }{
		{"px-0", "PX 0", "PX 0"}, {"ex-0", "EX 0", "EX 0"}, {"px-negative", "PX -1", "PX -1"}, {"px-fraction", "PX 1.5", "PX 1.5"},
		{"px-over", "PX 9223372036854775807", "PX 9223372036854775807"},
	} {
		r.ask("ttl/"+c.name, c.text, redisError("ERR"), "SET KEY v "+c.option)
	}
	// Nothing blocks a thousandth of a second: an expired key is gone when it is asked for.
	gone := r.ask("ttl/expired-read", "GET of a key that has expired", redisNil(targets.Missing), "SET KEY v PX 1", "GET KEY")
	gone.Steps[1].After = redisWait
	free := r.ask("ttl/expired-created", "SET NX over a key that has expired", redisOK("OK"), "SET KEY v PX 1", "SET KEY new NX")
	free.Steps[1].After, free.read = redisWait, readReply
	r.ask("ttl/granularity", "how fine is a time to live (PTTL after PX 1500)", redisOK("milliseconds"), "SET KEY v PX 1500", "PTTL KEY").read =
		func(replies []*runner.Exchange) string {
			left := wholeReply(replies)
			switch {
			case left <= 0:
				return "none is told"
			case left%1000 == 0:
				return "whole seconds"
			default:
				return "milliseconds"
			}
		}
	r.ask("ttl/overwritten", "SET over a key with a time to live: what becomes of that", redisOK("it is cleared"), "SET KEY v PX 60000", "SET KEY w", "PTTL KEY").read = readStays
	r.ask("ttl/kept", "the same with KEEPTTL", redisOK("it stays"), "SET KEY v PX 60000", "SET KEY w KEEPTTL", "PTTL KEY").read = readStays
	r.ask("ttl/none", "PTTL of a key without one", redisOK("-1"), "SET KEY v", "PTTL KEY").read = readReply
	r.ask("ttl/absent", "PTTL of an absent key", redisOK("-2"), "PTTL KEY").read = readReply
	r.ask("ttl/expire-negative", "PEXPIRE with -1: what is left of the key", redisNil(targets.Missing), "SET KEY v", "PEXPIRE KEY -1", "GET KEY")
}

// redisWait is when a key with PX 1 has expired for certain.
const redisWait = 20 * time.Millisecond

// readStays answers by the time to live that is left.
func readStays(replies []*runner.Exchange) string {
	if wholeReply(replies) > 0 {
		return "it stays"
	}
	return "it is cleared"
}

// wholeReply is the last answer as a whole number; 0 where it is none.
func wholeReply(replies []*runner.Exchange) int64 {
	n, _ := strconv.ParseInt(string(lastReply(replies).Raw), 10, 64)
	return n
}

func (r *redisAsk) errors() {
	r.ask("errors/unknown-command", "a command that does not exist", redisError("ERR"), "CONTEND KEY")
	r.ask("errors/arguments", "GET without a key", redisError("ERR"), "GET")
	r.ask("errors/syntax", "SET with NX and XX", redisError("ERR"), "SET KEY v NX XX")
}
