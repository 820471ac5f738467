package scenarios_test

import (
	"strings"
	"testing"

	"contend/scenarios"
	"contend/scenarios/probe"
)

func TestProbeRefusesWhatCannotBe(t *testing.T) {
	for _, c := range []struct {
		scenario scenarios.Probe
		kind     string
		want     string // ""; it can be
	}{
		{scenarios.Probe{Only: scenarios.Groups{"types", "strategy"}}, "sim", ""},
		{scenarios.Probe{Only: scenarios.Groups{"nope"}}, "sim", `--only "nope": the groups are`},
		{scenarios.Probe{Only: scenarios.Groups{"ghosts"}}, "elsewhere", `--only "ghosts": the groups are strategy`},
		{scenarios.Probe{Since: &probe.Earlier{Family: "forge"}}, "forge-rest", ""},
		{scenarios.Probe{Since: &probe.Earlier{Family: "forge"}}, "elsewhere", "--since: it holds answers of"},
	} {
		err := c.scenario.CheckFor(c.kind)
		if (err == nil) != (c.want == "") || err != nil && !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%+v for %s: %v", c.scenario, c.kind, err)
		}
	}
	if err := (&scenarios.Probe{Only: scenarios.Groups{"ghosts", "strategy"}}).Check(); err != nil {
		t.Error(err)
	}
	if err := (&scenarios.Probe{Only: scenarios.Groups{"nope"}}).Check(); err == nil {
		t.Error("a group that no target has was taken")
	}
}
