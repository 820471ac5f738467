package report

import (
	"encoding/json"
	"fmt"

	"contend/scenarios/probe"
)

// Earlier reads the JSON result of a probe, for a later one to compare with.
func Earlier(text []byte) (*probe.Earlier, error) {
	var r Result
	if err := json.Unmarshal(text, &r); err != nil {
		return nil, fmt.Errorf("it is no JSON result: %w", err)
	}
	if r.Schema != ResultSchema || r.Detail.Probe == nil {
		return nil, fmt.Errorf("it is no JSON result of contend probe (-o json=FILE writes one)")
	}
	return &probe.Earlier{Run: r.Run, Family: probe.Family(r.Target.Kind), Target: r.Target.URL, Started: r.Started, Answers: r.Detail.Probe.Kept()}, nil
}
