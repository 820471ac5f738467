package all_test

import (
	"errors"
	"strings"
	"testing"

	"contend/targets"
	"contend/targets/all"
)

// What is no URL is told which it may stand for, and nothing of it that may be a secret.
func TestTargetWithoutAScheme(t *testing.T) {
	const redis, postgres = "redis://[user:password@]host[:6379][/db]", "postgres://[user:password@]host[:5432]/database"
	for raw, want := range map[string]string{
		"127.0.0.1:6379":                                   "redis://127.0.0.1:6379?",
		"[::1]:6379":                                       "redis://[::1]:6379?",
		"localhost:5432":                                   "postgres://USER@localhost:5432/DATABASE?",
		"hunter2:6379":                                     redis,
		"user:hunter2@localhost:6379":                      redis,
		":hunter2@127.0.0.1:6379/0":                        redis,
		"localhost:6379,password=hunter2,ssl=true":         redis,
		"user:hunter2@localhost:5432":                      postgres,
		"host=localhost port=5432 password=hunter2":        postgres,
		"host=localhost port = 6379 password=hunter2":      redis,
		"dbname=hunter2":                                   postgres,
		"host='a' password='x://hunter2'":                  postgres,
		"Server=db;Database=d;User Id=me;Password=hunter2": postgres,
		"Data Source=db:5432;Password=hunter2":             postgres,
		"hunter2":                                          "sim:[?PARAMETERS], or forge+https://HOST/x1/ID, or ",
		"hunter2.example.com":                              redis + ", or " + postgres,
		"127.0.0.1:99999":                                  redis + ", or " + postgres,
		"jdbc:postgresql://hunter2/d":                      redis + ", or " + postgres,
		"":                                                 redis + ", or " + postgres,
		"/run/hunter2/redis.sock":                          "there is no form for its sockets",
		"unix:///run/hunter2/redis.sock?db=0":              "unknown scheme",
		"./hunter2/.s.PGSQL.5432":                          "postgres://USER@/DATABASE?host=DIRECTORY",
	} {
		_, err := all.Open(raw)
		var usage *targets.UsageError
		if !errors.As(err, &usage) {
			t.Errorf("%s: got %v, want a usage error", raw, err)
			continue
		}
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want %q", raw, err, want)
		}
		scheme := strings.HasPrefix(raw, "unix://")
		if (strings.Contains(err.Error(), "hunter2") || strings.Contains(all.Redact(raw), "hunter2")) && !scheme {
			t.Errorf("a secret is told: %v; %s", err, all.Redact(raw))
		}
	}
}

// A port that does not exist is refused before anything is sent.
func TestPortThatDoesNotExist(t *testing.T) {
	t.Setenv("CONTEND_FORGE_TOKEN", "secret")
	for _, url := range []string{"redis://127.0.0.1:99999", "rediss://me:hunter2@127.0.0.1:65536/0", "redis://[::1]:0", "postgres://me@h:70000/d",
		"postgres://me:hunter2@a:5432,b:99999/d", "postgres:///d?host=h&port=99999&password=hunter2", "redis://h:99999999999999999999",
		"forge+https://h:99999/x1/id", "forge+rest://h:65536"} {
		_, err := all.Open(url)
		var usage *targets.UsageError
		if !errors.As(err, &usage) || !strings.Contains(err.Error(), "port") || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", url, err)
		}
	}
	for _, url := range []string{"redis://h", "redis://h:", "redis://[::1]", "redis://[::1]:65535", "postgres://me@a:1,b:2/d"} {
		if _, err := all.Open(url); err != nil {
			t.Errorf("%s: %v", url, err)
		}
	}
}
