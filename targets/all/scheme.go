package all

import (
	"fmt"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"contend/targets"
	"contend/targets/kit"
	"contend/targets/postgres"
	"contend/targets/redis"
)

// hasScheme tells whether a target is a URL, of a kind that there is or of another; a
// host with its port, and the settings of other clients, are none.
func hasScheme(raw string) bool {
	scheme := targets.Scheme(raw)
	return scheme != "" && (strings.HasPrefix(raw[len(scheme):], "//") || slices.Contains(schemes(), strings.TrimSuffix(scheme, ":")))
}

// meant gives the form of URL that a target without a scheme may stand for. Of the target
// itself it repeats a loopback address and its port alone: anything else may be a secret.
func meant(raw string) string {
	lower := strings.ToLower(raw)
	has := func(words ...string) bool {
		return slices.ContainsFunc(words, func(word string) bool { return strings.Contains(lower, word) })
	}
	socket := strings.HasPrefix(raw, "/") || strings.HasPrefix(raw, ".") || has("unix:")
	switch port := knownPort(lower); {
	case socket && has("pgsql", "postgres"):
		return "postgres://USER@/DATABASE?host=DIRECTORY (the socket's)"
	case socket:
		return redis.Driver().Form + " (there is no form for its sockets), or postgres://USER@/DATABASE?host=DIRECTORY"
	case port == "6379":
		return loopbackOr(raw, "redis://%s", redis.Driver().Form)
	case port == "5432" && !has("="):
		return loopbackOr(raw, "postgres://USER@%s/DATABASE", postgres.Driver().Form)
	case port == "5432", has("host=", "server=", "data source=", "dbname=", "database=", "user id="):
		return postgres.Driver().Form + " (the password may be in PGPASSWORD)"
	default:
		var forms []string
		for _, d := range Drivers() {
			form, _, _ := strings.Cut(d.Form, " ")
			forms = append(forms, form)
		}
		return strings.Join(forms, ", or ")
	}
}

// loopbackOr writes a loopback address with its port into the form that is given, or
// gives the other.
func loopbackOr(raw, form, other string) string {
	if host, port, err := net.SplitHostPort(raw); err == nil && kit.IsLoopback(host) && (port == "6379" || port == "5432") {
		return fmt.Sprintf(form, raw)
	}
	return other
}

var portPattern = regexp.MustCompile(`(?:[:,]|port\s*=\s*)(\d+)`)

// knownPort gives the first port in a text that is some server's own; "": there is none.
func knownPort(text string) string {
	for _, match := range portPattern.FindAllStringSubmatch(text, -1) {
		if match[1] == "6379" || match[1] == "5432" {
			return match[1]
		}
	}
	return ""
}

// portOf reads the port of a host; one beyond all numbers is -1.
func portOf(host string) (port int, given bool) {
	i := strings.LastIndexByte(host, ':')
	if i < 0 || i < strings.LastIndexByte(host, ']') || host[i+1:] == "" {
		return 0, false
	}
	port, err := strconv.Atoi(host[i+1:])
	if err != nil {
		return -1, true
	}
	return port, true
}
