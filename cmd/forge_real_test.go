package cmd_test

import (
	"slices"
	"strings"
	"testing"

	"contend/report"
	"contend/scenarios"
	"contend/targets/forge/apptest"
	"contend/targets/targettest"
)

// Through the whole way: contend, a host that stands in for the web trigger, the
// unmodified companion app, the real @forge/kvs or @forge/sql, the shim, the emulator
// with a database behind it. Every scenario, by every strategy, with the published
// latency.
func TestThroughTheCompanionApp(t *testing.T) {
	url, token := apptest.Host(t, "--latency=published", "--sql", targettest.MariaDB(t))
	t.Setenv("CONTEND_FORGE_TOKEN", token)
	target := "forge+" + url
	for query, server := range map[string]string{"?create=kvs": "@forge/kvs 1.6.5", "?create=entity": "@forge/kvs 1.6.5",
		"?create=transact": "@forge/kvs 1.6.5", "?create=sql&cas=sql": "@forge/sql 4.0.8"} {
		for _, s := range scenarios.All() {
			code, r := resultOf(t, s.Info().Name, "-t", target+query, "-r", "3", "-n", "6", "--control-rounds", "1", "--rate", "1000")
			where := s.Info().Name + query
			if !r.Target.Simulated || !r.Target.Relayed || !strings.Contains(r.Target.Server, server) {
				t.Errorf("%s: simulated %v, relayed %v, server %q", where, r.Target.Simulated, r.Target.Relayed, r.Target.Server)
			}
			if strings.Contains(r.Command+r.Target.URL, strings.TrimPrefix(url, "http://")+"?") {
				t.Errorf("%s: the address of the web trigger is shown: %s", where, r.Command)
			}
			if !slices.ContainsFunc(r.Latency, func(l report.Latency) bool { return l.Where == "server" && l.N > 0 }) {
				t.Errorf("%s: no latency next to the store: %+v", where, r.Latency)
			}
			if s.Info().Unguarded {
				if code != 1 || r.Verdict.ViolatedRounds != 3 {
					t.Errorf("%s: exit %d, violated in %d of 3 rounds: %v", where, code, r.Verdict.ViolatedRounds, r.Verdict.Reasons)
				}
				continue
			}
			if code != 0 && code != 3 || len(r.Verdict.Violations) > 0 || r.Winners.One != 3 {
				t.Errorf("%s: exit %d: %v %v %+v", where, code, r.Verdict.Reasons, r.Verdict.Violations, r.Winners)
			}
			t.Log(r.VerdictLine())
		}
	}
}
