//go:build unix

package targettest_test

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"contend/targets"
	"contend/targets/all"
	"contend/targets/forge/apptest"
	"contend/targets/targettest"
	"contend/targets/targettest/try"
)

func TestMain(m *testing.M) {
	// Tests side by side cannot set it for themselves.
	os.Setenv("CONTEND_FORGE_TOKEN", apptest.Token)
	os.Exit(m.Run())
}

// Every kind of target keeps the promises on a real server, with every strategy, and has
// what its row says. Different kinds are tested side by side.
func TestCasesKeepThePromises(t *testing.T) {
	for _, c := range targettest.Cases() {
		t.Run(c.Kind, func(t *testing.T) {
			t.Parallel()
			server := c.Start(t)
			for _, v := range c.Variants {
				url := c.URL(server, v.Query)
				t.Run(v.Query, func(t *testing.T) { keepsThePromises(t, c, url, v) })
			}
		})
	}
}

func keepsThePromises(t *testing.T, c targettest.Case, url string, v targettest.Variant) {
	needs := targets.Needs{Guards: []targets.Guard{targets.IfAbsent, targets.IfVersion}, Sessions: 8, Timeout: time.Minute}
	if v.Few {
		needs.Sessions = 4
	}
	var options []targettest.Option
	if v.Expired != "" {
		options = append(options, targettest.TTL(v.Expired))
	}
	if err := try.Suite(t.Context(), try.Open(t, url), needs, options...); err != nil {
		t.Error(err)
	}
	d := try.Described(t, url, needs)
	for _, guard := range targets.AllGuards {
		if has, lacks := slices.Contains(d.Guards, guard), slices.Contains(v.Lacks, guard); has == lacks {
			t.Errorf("the target says %v of the condition %s, its row that it lacks it: %v", has, guard, lacks)
		}
	}
	if (d.TTL.Unit > 0) != (v.Expired != "") {
		t.Errorf("the target takes times to live %+v, its row says %q of an expired key", d.TTL, v.Expired)
	}
	if d.Simulated == c.Real || d.Server == "" || strings.Contains(d.URL, "/x1/contend") {
		t.Errorf("simulated %v, server %q, URL %s", d.Simulated, d.Server, d.URL)
	}
}

// Every kind of target has a row, and every strategy a variant.
func TestEveryStrategyHasACase(t *testing.T) {
	for _, d := range all.Drivers() {
		var queries []string
		for _, c := range targettest.Cases() {
			if c.Kind == d.Name {
				for _, v := range c.Variants {
					queries = append(queries, strings.Split(v.Query, "&")...)
				}
			}
		}
		if len(queries) == 0 {
			t.Errorf("the target %s has no row in Cases", d.Name)
		}
		for _, p := range d.Parameters {
			for _, v := range p.Values {
				if len(v.Losers) > 0 && v.Name != p.Default && !slices.Contains(queries, p.Name+"="+v.Name) {
					t.Errorf("%s: no variant has %s=%s", d.Name, p.Name, v.Name)
				}
			}
		}
	}
}
