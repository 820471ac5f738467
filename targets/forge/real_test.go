//go:build unix

package forge_test

import (
	"strings"
	"testing"
	"time"

	"contend/targets"
	"contend/targets/all"
	"contend/targets/forge/apptest"
	"contend/targets/targettest"
	"contend/targets/targettest/try"
)

// The promises of a target, kept by the companion app and by the REST form, with
// every strategy, on the emulator as a server.
func TestForgeKeepsThePromises(t *testing.T) {
	url, token := apptest.Host(t)
	t.Setenv("CONTEND_FORGE_TOKEN", token)
	for _, base := range []string{"forge+" + url, "forge+rest+" + apptest.Sim(t)} {
		for _, create := range []string{"kvs", "entity", "transact"} {
			target, err := all.Open(base + "?create=" + create)
			if err != nil {
				t.Fatal(err)
			}
			needs := targets.Needs{Guards: []targets.Guard{targets.IfAbsent, targets.IfVersion}, Sessions: 4, Timeout: 10 * time.Second}
			if err := try.Suite(t.Context(), target, needs, targettest.TTL(targettest.Blocked)); err != nil {
				t.Errorf("%s?create=%s: %v", base, create, err)
			}
			d := try.Described(t, base+"?create="+create, needs)
			if !d.Simulated || strings.Contains(d.URL, "/x1/contend") {
				t.Errorf("%s: simulated %v, URL %s", base, d.Simulated, d.URL)
			}
		}
	}
}

// The same with the records in Forge SQL, on a real database.
func TestForgeSQLKeepsThePromises(t *testing.T) {
	url, token := apptest.Host(t, "--sql", targettest.MariaDB(t))
	t.Setenv("CONTEND_FORGE_TOKEN", token)
	target, err := all.Open("forge+" + url + "?create=sql&cas=sql")
	if err != nil {
		t.Fatal(err)
	}
	if err := try.Suite(t.Context(), target, targets.Needs{Guards: []targets.Guard{targets.IfAbsent, targets.IfVersion}, Sessions: 4, Timeout: 10 * time.Second}); err != nil {
		t.Error(err)
	}
	if d := try.Described(t, "forge+"+url+"?create=sql&cas=sql", targets.Needs{Sessions: 1}); !d.Simulated || !strings.Contains(d.Server, "@forge/sql") {
		t.Errorf("simulated %v, server %q", d.Simulated, d.Server)
	}
}

// An app without a database is not contended for.
func TestForgeSQLWithoutADatabase(t *testing.T) {
	url, token := apptest.Host(t)
	t.Setenv("CONTEND_FORGE_TOKEN", token)
	target, err := all.Open("forge+" + url + "?create=sql&cas=sql")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := target.Prepare(t.Context(), targets.Needs{}); err == nil || !strings.Contains(err.Error(), "is sql in the app's manifest") {
		t.Error(err)
	}
}
