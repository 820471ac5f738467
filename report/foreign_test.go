package report

import (
	"errors"
	"testing"

	"contend/runner"
	"contend/scenarios"
	"contend/targets"
)

// A round that the scenario of the header cannot have run is no part of its record.
func TestRoundOfAnotherScenario(t *testing.T) {
	seed := runner.Exchange{Contender: runner.ByRunner, Op: targets.Op{Kind: targets.Write, Key: "k"}, Reply: targets.Reply{Outcome: targets.OK}}
	for name, c := range map[string]struct {
		scenario string
		round    runner.Round
		foreign  bool
	}{
		"a seeded round of version-cas":    {"version-cas", runner.Round{Number: 1, Key: "k", Collection: targets.Versioned, Seeds: []runner.Exchange{seed}}, false},
		"one without its seed":             {"version-cas", runner.Round{Number: 1, Key: "k", Collection: targets.Versioned}, true},
		"one with two":                     {"version-cas", runner.Round{Number: 1, Key: "k", Collection: targets.Versioned, Seeds: []runner.Exchange{seed, seed}}, true},
		"a seeded round of fail-if-exists": {"fail-if-exists", runner.Round{Number: 1, Key: "k", Collection: targets.Plain, Seeds: []runner.Exchange{seed}}, true},
		"one of another collection":        {"fail-if-exists", runner.Round{Number: 1, Key: "k", Collection: targets.Versioned}, true},
	} {
		m, err := NewCollector(RunHeader{Scenario: c.scenario, Params: Params{Contenders: 2, MinContended: 1, Thresholds: scenarios.DefaultThresholds}})
		if err != nil {
			t.Fatal(err)
		}
		m.Observe(runner.Event{Round: &c.round})
		if err := m.Foreign(); errors.Is(err, runner.ErrNotARecord) != c.foreign {
			t.Errorf("%s: %v", name, err)
		}
	}
}
