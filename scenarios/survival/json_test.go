package survival

import (
	"encoding/json"
	"testing"
	"time"
)

// What is stored is read as it was, also where it has no end.
func TestSurvivalIsReadAsWritten(t *testing.T) {
	steps := []Step{{From: 1, To: 2, Mass: 0.25, Survival: 0.75, Low: 0.5, High: 0.9}, {From: 3, To: Forever, Mass: 0.75}}
	quantiles := []Quantile{{From: 1, To: 2, Low: 0, High: 3 * time.Hour}, {From: 5, To: Forever, Low: 4, High: Forever}}
	var gotSteps []Step
	var gotQuantiles []Quantile
	for written, read := range map[any]any{&steps: &gotSteps, &quantiles: &gotQuantiles} {
		b, err := json.Marshal(written)
		if err == nil {
			err = json.Unmarshal(b, read)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for i := range steps {
		if gotSteps[i] != steps[i] || gotQuantiles[i] != quantiles[i] {
			t.Errorf("%+v and %+v were read as %+v and %+v", steps[i], quantiles[i], gotSteps[i], gotQuantiles[i])
		}
	}
}
