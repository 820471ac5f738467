package redis

import (
	"errors"
	"strings"

	"github.com/redis/go-redis/v9"

	"contend/targets"
	"contend/targets/kit"
)

const (
	measured             = "measured on Redis 7.0.15"
	sourceCode           = "error replies in Redis 7.0, server.c"
	clusterSpecification = "Redis cluster specification"
)

// answers: a code is the first word of an error reply, or the name of what
// refused a write: "nil" (a nil reply to SET NX or EXEC), "0" (the script),
// "exists" and "stale" (what GET showed under WATCH), "touched" (a nil reply to EXEC,
// where a time was compared: the key was written, which need not have changed it). No error reply leaves a
// trace of the write; they differ in whether to ask again helps (Throttled) or
// the request or the server must be fixed (Invalid).
var answers = targets.Answers{
	{Code: "nil", Outcome: targets.Conflict, Source: measured},
	{Code: "0", Outcome: targets.Conflict, Source: measured},
	{Code: "exists", Outcome: targets.Conflict, Source: measured},
	{Code: "stale", Outcome: targets.Conflict, Source: measured},
	{Code: "touched", Outcome: targets.Aborted, Source: measured},
	{Code: "OOM", Outcome: targets.Throttled, Source: measured + ": the memory quota, maxmemory, is spent"},
	{Code: "LOADING", Outcome: targets.Throttled, Source: sourceCode},
	{Code: "BUSY", Outcome: targets.Throttled, Source: sourceCode + ": another script runs"},
	{Code: "NOREPLICAS", Outcome: targets.Throttled, Source: sourceCode + ": min-replicas-to-write is not met"},
	{Code: "CLUSTERDOWN", Outcome: targets.Throttled, Source: clusterSpecification},
	{Code: "TRYAGAIN", Outcome: targets.Throttled, Source: clusterSpecification},
	{Code: "NOAUTH", Outcome: targets.Invalid, Source: measured},
	{Code: "WRONGPASS", Outcome: targets.Invalid, Source: measured},
	{Code: "NOPERM", Outcome: targets.Invalid, Source: measured},
	{Code: "WRONGTYPE", Outcome: targets.Invalid, Source: measured},
	{Code: "NOSCRIPT", Outcome: targets.Invalid, Source: measured + ": the scripts were flushed after the session was opened"},
	{Code: "READONLY", Outcome: targets.Invalid, Source: measured + ": a replica"},
	{Code: "MASTERDOWN", Outcome: targets.Invalid, Source: measured + ": a replica without its master"},
	{Code: "MISCONF", Outcome: targets.Invalid, Source: sourceCode + ": writes stopped since saving to disk fails"},
	{Code: "EXECABORT", Outcome: targets.Invalid, Source: sourceCode},
	{Code: "DENIED", Outcome: targets.Invalid, Source: "protected mode in Redis 7.0, networking.c"},
	{Code: "MOVED", Outcome: targets.Invalid, Source: clusterSpecification + ": the key is at another node"},
	{Code: "ASK", Outcome: targets.Invalid, Source: clusterSpecification + ": the key is at another node"},
	{Code: "CROSSSLOT", Outcome: targets.Invalid, Source: clusterSpecification},
	{Code: "ERR", Outcome: targets.Invalid, Source: measured + ": a syntax error, too many clients, and others"},
}

// What the table of accepted answers calls those that are not one text.
const (
	nilAnswer  = "nil" // of RESP 2: $-1 or *-1
	bulkAnswer = "a bulk string"
)

// accepted: the answers are as they come over the wire, in RESP 2, with blanks for
// the ends of lines. A nil to GET is Missing.
var accepted = []targets.Accepted{
	{Request: "SET", Answer: "+OK"},
	{Request: "SET NX", Answer: "+OK"},
	{Request: "SET NX", Answer: nilAnswer, Code: "nil"},
	{Request: "GET", Answer: bulkAnswer},
	{Request: "GET", Answer: nilAnswer, Code: "nil"},
	{Request: "DEL", Answer: ":1"},
	{Request: "DEL", Answer: ":0"},
	{Request: "EVALSHA", Answer: ":1"},
	{Request: "EVALSHA", Answer: ":0", Code: "0"},
	{Request: "WATCH", Answer: "+OK"},
	{Request: "MULTI", Answer: "+OK"},
	{Request: "SET after MULTI", Answer: "+QUEUED"},
	{Request: "DEL after MULTI", Answer: "+QUEUED"},
	{Request: "PEXPIRE after MULTI", Answer: "+QUEUED"},
	{Request: "EXEC", Answer: "*1 +OK"},
	{Request: "EXEC", Answer: nilAnswer, Code: "nil"},
	{Request: "EXEC of DEL", Answer: "*1 :1"},
	{Request: "EXEC of DEL", Answer: nilAnswer, Code: "nil"},
	{Request: "EXEC of PEXPIRE", Answer: "*1 :1"},
	{Request: "EXEC of PEXPIRE", Answer: nilAnswer, Code: "nil"},
}

// replyTo sorts what a request was answered with, as it came.
func replyTo(a targets.Address, request, wire string) targets.Reply {
	if text, refused := refusal(wire); refused {
		return refusedBy(a, text)
	}
	code, fits := fits(request, wire)
	if !fits {
		return kit.Unexpected(request, wire)
	}
	r := targets.Reply{Outcome: targets.OK, Code: code, Attempts: 1}
	if code != "" {
		r.Outcome = answers.Outcome(code, 0)
	}
	return r
}

// refusedBy sorts an error reply.
func refusedBy(a targets.Address, text string) targets.Reply {
	r := targets.Reply{Code: codeOf(text), Message: kit.Sample(a.Mask(errors.New(text)).Error()), Attempts: 1}
	switch r.Code {
	case "MOVED", "ASK", "CROSSSLOT":
		r.Message += " (" + oneNode + ")"
	}
	r.Outcome = answers.Outcome(r.Code, 0)
	return r
}

// atOnce is the reply where a command was applied without its transaction, which is to
// queue it.
func atOnce(request, wire string) (r targets.Reply, applied bool) {
	if _, applied = fits(request, wire); applied {
		r = kit.Unexpected(request+" after MULTI", strings.TrimSpace(wire))
	}
	return r, applied
}

// firstRefusal gives the error reply that a server began with, if it did.
func firstRefusal(first []byte) (text string, refused bool) {
	line, _, _ := strings.Cut(string(first), "\r\n")
	text, refused = refusal(line)
	return text, refused && !strings.Contains(text, "unknown command") // the client asks in a newer way first
}

// fits gives the code of the row that the answer to a request fits.
func fits(request, wire string) (code string, fits bool) {
	for _, row := range accepted {
		if row.Request == request && isAnswer(row.Answer, wire) {
			return row.Code, true
		}
	}
	return "", false
}

func isAnswer(answer, wire string) bool {
	switch answer {
	case nilAnswer:
		return wire == "$-1\r\n" || wire == "*-1\r\n"
	case bulkAnswer:
		return strings.HasPrefix(wire, "$") && wire != "$-1\r\n"
	default:
		return wire == strings.ReplaceAll(answer, " ", "\r\n")+"\r\n"
	}
}

// refusal gives the text of an error reply, also of the one that EXEC holds.
func refusal(wire string) (text string, refused bool) {
	if text, refused = strings.CutPrefix(wire, "-"); !refused {
		text, refused = strings.CutPrefix(wire, "*1\r\n-")
	}
	return strings.TrimSuffix(text, "\r\n"), refused
}

// codeOf is the first word of an error reply where that is in capitals, as
// those of Redis are; a proxy's free text has no code.
func codeOf(text string) string {
	word, _, _ := strings.Cut(text, " ")
	if word == "" || len(word) > 20 || strings.Trim(word, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") != "" {
		return "without-code"
	}
	return word
}

const oneNode = "contend speaks to one node of a cluster: name that node in the URL, and put all keys of a run on it by a hash tag, --key-prefix '{a}contend-'"

// hintOf is hint of an error of the client; refused is false where the server sent none.
func hintOf(err error) (text string, refused bool) {
	answer, refused := errors.AsType[redis.Error](err)
	if !refused {
		return "", false
	}
	return hint(answer.Error()), true
}

// hint says what to do about an error reply, by its cause.
func hint(text string) string {
	switch code := codeOf(text); {
	case code == "NOAUTH", code == "WRONGPASS":
		return "check user and password in the URL"
	case code == "NOPERM":
		return "the user's permissions (ACL) forbid a command that is needed here: allow it, or use another user"
	case strings.Contains(text, "max number of clients"):
		return "the server's limit on connections (maxclients) is reached: raise it, close other clients, or lower the number of contenders"
	case code == "MOVED", code == "ASK", code == "CROSSSLOT":
		return oneNode
	case code == "CLUSTERDOWN":
		return "the cluster serves no keys now: see CLUSTER INFO on the node"
	case code == "READONLY":
		return "it is a replica: name its master in the URL"
	case code == "MASTERDOWN":
		return "it is a replica that has lost its master: name the master in the URL"
	case code == "LOADING":
		return "it is still loading its data: wait until it has"
	case code == "OOM":
		return "its memory (maxmemory) is full: give it more, or remove keys"
	case code == "MISCONF":
		return "it refuses writes since it cannot save to disk: see its log"
	case code == "DENIED":
		return "it is in protected mode: set a password or a bind address there"
	case strings.Contains(text, "DB index"):
		return "the URL's database does not exist there: choose a lower number"
	case strings.HasPrefix(text, "ERR unknown command"):
		return "it does not know this command: is it a Redis, or compatible with it"
	default:
		return "it answers with an error"
	}
}

// serverOf reads name and version out of the answer to INFO server; "": it tells
// neither. Others tell a redis_version too: the one that they are compatible with.
func serverOf(info string) string {
	fields := map[string]string{}
	for line := range strings.Lines(info) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		fields[name] = kit.Sample(value)
	}
	for _, name := range []string{"Valkey", "Dragonfly", "KeyDB", "Kvrocks", "Garnet"} {
		if version := fields[strings.ToLower(name)+"_version"]; version != "" {
			return name + " " + version
		}
	}
	compatible := fields["redis_version"]
	switch name := fields["server_name"]; {
	case name == "", name == "redis":
	case fields[name+"_version"] != "":
		return name + " " + fields[name+"_version"]
	case compatible != "":
		return name + ", compatible with Redis " + compatible
	default:
		return name
	}
	if compatible == "" {
		return ""
	}
	return "Redis " + compatible
}
