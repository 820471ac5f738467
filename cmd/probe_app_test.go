//go:build unix

package cmd_test

import (
	"slices"
	"strings"
	"testing"

	"contend/scenarios/probe"
	"contend/targets/forge/apptest"
)

// Through the companion app and the real @forge/kvs the emulator answers the same, as
// far as these can ask; what they cannot is told as not asked, with the reason. Nothing
// is left behind.
func TestProbeThroughTheCompanionApp(t *testing.T) {
	t.Parallel()
	url, _ := apptest.Host(t, "--sweep=never")
	_, sim := resultOf(t, "probe", "-t", "sim:?latency=0")
	inProcess := answers(sim)
	for _, query := range []string{"", "?create=transact"} {
		target := "forge+" + url + query
		code, r := resultOf(t, "probe", "-t", target)
		if code != 0 || r.Detail.Probe.NotAsKnown != 0 || r.Detail.Probe.Unanswered != 0 || !r.Target.Simulated || r.QuotaUnits == nil {
			t.Errorf("%s: exit %d: %s", target, code, r.VerdictLine())
		}
		var notAsked []string
		for id, a := range answers(r) {
			b := inProcess[id]
			switch {
			case a.State == probe.NotAsked:
				notAsked = append(notAsked, id)
				if !strings.Contains(a.Why, "@forge/kvs") && !strings.Contains(a.Why, "touches no key") {
					t.Errorf("%s: not asked: %q", id, a.Why)
				}
			case a.Group == "strategy" && query != "":
			// The package tells no status of what it makes no error of.
			case a.Outcome != b.Outcome || a.Code != b.Code || a.Answer != b.Answer || a.Status != b.Status && a.Status != 0 || a.Message != b.Message && a.Message != "":
				t.Errorf("%s: through the app %+v\nin the process %+v", id, a, b)
			case a.Status == 0 && a.Outcome != "ok" && a.Outcome != "missing":
				t.Errorf("%s: %s without a status", id, a.Outcome)
			}
		}
		slices.Sort(notAsked)
		if got := strings.Join(notAsked, " "); got != "conditions/empty keys/empty keys/empty-entity keys/white-space" {
			t.Errorf("not asked: %s", got)
		}
		if n := keys(t, target); n != 0 {
			t.Errorf("%d keys were left behind", n)
		}
	}
}
