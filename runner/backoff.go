package runner

import (
	"fmt"
	"time"

	"contend/targets"
)

// mostRefusals in a row for a quota, and nobody asks any more: after some three
// minutes where a quota is renewed each minute.
const mostRefusals = 8

// backOffFor tells how long to wait after the n-th refusal in a row for a quota, counted
// from 1: at first a second, then twice as long each time up to the longest window of
// the quota, and no less than the target asks for, up to two such windows. again is
// false where it has been refused too often.
func backOffFor(n int, longest time.Duration, r *targets.Reply) (d time.Duration, again bool) {
	return max(min(time.Second<<min(n-1, 30), longest), min(r.RetryAfter, 2*longest)), n <= mostRefusals
}

// quotaSpent says what a run waits for after such a refusal.
func quotaSpent(r *targets.Reply) string {
	return fmt.Sprintf("the target's quota is spent (%d %s)", r.Status, r.Code)
}
