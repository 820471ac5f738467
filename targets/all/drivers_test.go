package all_test

import (
	"testing"

	"contend/targets"
	"contend/targets/all"
)

// Every driver says what it accepts, as its own code reads it.
func TestDriversTellWhatTheyAccept(t *testing.T) {
	for _, d := range all.Drivers() {
		if len(d.Accepted) == 0 {
			t.Errorf("%s accepts nothing", d.Name)
		}
		for _, a := range d.Accepted {
			if a.Code != "" && d.Answers.Outcome(a.Code, 0) == targets.Unmapped {
				t.Errorf("%s: the code %s of %s has no row among the answers", d.Name, a.Code, a.Request)
			}
		}
	}
}
