package all_test

import (
	"strings"
	"testing"

	"contend/targets/all"
)

// A target is opened or refused, and neither the error nor what describes it shows
// the password, wherever a URL has one.
func FuzzOpen(f *testing.F) {
	for _, c := range [][3]string{
		{"redis", "", "127.0.0.1:6379/0?cas=watch"}, {"postgres", "#1", "localhost/x?sslmode=disable"}, {"forge+https", "", "example.com/x1/abc"},
		{"sim", "", "?fault=two-winners&latency=5ms..9ms"}, {"rediss", "%", "[::1]:99999"}, {"nosql", "/", "x#y"}, {"", "?", "127.0.0.1:6379"},
		{"host=a user", " ", "dbname=x"}, {"postgresql", "&", "/x?host=/tmp"}, {"forge+rest+http", ";", "127.0.0.1:7077"},
		{"a", "0", ":@"}, {"redis", "", "1/&"}, {"postgres", "", "0/0?sslmode=+0"}, {"postgres", " 0@", "1"}, {"a0", "", "&"}, {"sim", "", "?fault=two-winners\"0"},
	} {
		f.Add(c[0], c[1], c[2])
	}
	// No parameter of a target has such a part.
	const secret = "s3cr3tPaSsw0rd"
	f.Fuzz(func(t *testing.T, scheme, odd, rest string) {
		scheme = strings.ToLower(scheme)
		inUser := scheme + "://" + secret + odd + "@" + rest
		if strings.HasPrefix(scheme, "postgres") || strings.Contains(odd, ":") {
			inUser = "" // it is the name of a user, which is none
		}
		for _, raw := range []string{
			scheme + "://user:" + secret + odd + "@" + rest, inUser, scheme + "://:" + odd + secret + "@" + rest,
			scheme + "://" + rest + "?password=" + secret + odd, scheme + "://" + rest + "&password=" + secret,
			scheme + ":" + secret + odd + "@" + rest,
		} {
			shown := all.Redact(raw)
			target, err := all.Open(raw)
			if err != nil {
				shown += "\n" + err.Error()
			} else {
				shown += "\n" + target.Describe().URL
				target.Close()
			}
			if strings.Contains(shown, secret) {
				t.Errorf("%q shows its secret:\n%s", raw, shown)
			}
		}
	})
}
