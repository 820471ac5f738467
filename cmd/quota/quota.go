// Package quota keeps runs to what their targets allow.
package quota

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"contend/targets"
)

// share is that of a documented limit that a run takes by itself: the app it shares
// the quota with, and the two ends' different clocks, have the rest.
const share = 0.9

// Limits gives those of a run on a target that describes itself so, for writes of
// valueSize bytes. rate is of requests a second; 0: none was asked for.
func Limits(d targets.Description, rate float64, valueSize int) []targets.Limit {
	limits := slices.Clone(d.Limits)
	for i := range limits {
		limits[i].Requests *= share
		if limits[i].Units {
			limits[i].Requests /= float64(d.Units(valueSize))
		}
	}
	if rate > 0 {
		// It stands for what the target allows in a second; longer limits hold beside it.
		limits = append(slices.DeleteFunc(limits, ofASecond), targets.Limit{Requests: rate, Per: time.Second})
	}
	return limits
}

// ofASecond tells whether a rate stands in for a limit.
func ofASecond(l targets.Limit) bool { return l.Per <= time.Second }

// Above says what is wrong with a rate that the target does not allow; "" where it
// does, or where nothing is documented.
func Above(d targets.Description, rate float64) string {
	for _, l := range d.Limits {
		if allowed := l.Requests / l.Per.Seconds(); ofASecond(l) && rate > allowed {
			return fmt.Sprintf("--rate %g is above the documented quota of %g requests a second; what is over it is refused, and counts as throttled", rate, allowed)
		}
	}
	return ""
}

// Text lists limits.
func Text(limits []targets.Limit) string {
	var texts []string
	for _, l := range limits {
		texts = append(texts, fmt.Sprintf("%.4g requests in %s", l.Requests, l.Per))
	}
	return strings.Join(texts, " and ")
}
