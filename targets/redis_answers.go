package targets

import (
	"strings"
)

// What the table of accepted answers calls those that are not one text.
const (
	redisNil  = "nil" // of RESP 2: $-1 or *-1
	redisBulk = "a bulk string"
)

// redisAccepted: the answers are as they come over the wire, in RESP 2, with blanks for
// the ends of lines. A nil to GET is Missing.
var redisAccepted = []Accepted{
	{Request: "SET", Answer: "+OK"},
	{Request: "SET NX", Answer: "+OK"},
	{Request: "SET NX", Answer: redisNil, Code: "nil"},
	{Request: "GET", Answer: redisBulk},
	{Request: "GET", Answer: redisNil, Code: "nil"},
	{Request: "DEL", Answer: ":1"},
	{Request: "DEL", Answer: ":0"},
	{Request: "EVALSHA", Answer: ":1"},
	{Request: "EVALSHA", Answer: ":0", Code: "0"},
	{Request: "WATCH", Answer: "+OK"},
	{Request: "MULTI", Answer: "+OK"},
	{Request: "SET after MULTI", Answer: "+QUEUED"},
	{Request: "EXEC", Answer: "*1 +OK"},
	{Request: "EXEC", Answer: redisNil, Code: "nil"},
}

// redisFits gives the code of the row that the answer to a request fits.
func redisFits(request, wire string) (code string, fits bool) {
	for _, row := range redisAccepted {
		if row.Request == request && redisIs(row.Answer, wire) {
			return row.Code, true
		}
	}
	return "", false
}

func redisIs(answer, wire string) bool {
	switch answer {
	case redisNil:
		return wire == "$-1\r\n" || wire == "*-1\r\n"
	case redisBulk:
		return strings.HasPrefix(wire, "$") && wire != "$-1\r\n"
	default:
		return wire == strings.ReplaceAll(answer, " ", "\r\n")+"\r\n"
	}
}

// redisRefusal gives the text of an error reply, also of the one that EXEC holds.
func redisRefusal(wire string) (text string, refused bool) {
	if text, refused = strings.CutPrefix(wire, "-"); !refused {
		text, refused = strings.CutPrefix(wire, "*1\r\n-")
	}
	return strings.TrimSuffix(text, "\r\n"), refused
}

// redisCode is the first word of an error reply where that is in capitals, as
// those of Redis are; a proxy's free text has no code.
func redisCode(text string) string {
	word, _, _ := strings.Cut(text, " ")
	if word == "" || len(word) > 20 || strings.Trim(word, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") != "" {
		return "without-code"
	}
	return word
}

const oneNode = "contend speaks to one node of a cluster: name that node in the URL, and put all keys of a run on it by a hash tag, --key-prefix '{a}contend-'"

// redisHint says what to do about an error reply, by its cause.
func redisHint(text string) string {
	switch code := redisCode(text); {
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

// redisServer reads name and version out of the answer to INFO server; "": it tells
// neither. Others tell a redis_version too: the one that they are compatible with.
func redisServer(info string) string {
	fields := map[string]string{}
	for line := range strings.Lines(info) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		fields[name] = sample(value)
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
