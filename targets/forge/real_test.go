//go:build unix

package forge_test

import (
	"strings"
	"testing"

	"contend/targets"
	"contend/targets/all"
	"contend/targets/forge/apptest"
	"contend/targets/targettest/servers"
	"contend/targets/targettest/try"
)

// With its records in Forge SQL the app tells what it asks.
func TestForgeSQLDescribesItself(t *testing.T) {
	url, token := apptest.Host(t, "--sql", servers.MariaDB(t))
	t.Setenv("CONTEND_FORGE_TOKEN", token)
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
