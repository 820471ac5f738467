package targets

import (
	"context"
	"errors"
	"net"
	"time"
)

// Answer is one row of a target's table of replies.
type Answer struct {
	Code    string // "": any code
	Status  int    // 0: any status; below 10: any of that hundred, 5 for 500 to 599
	Outcome Outcome
	Source  string // where the meaning was read or measured
}

// outcomeOf sorts a reply by the first row that fits; without one it is
// Unmapped.
func outcomeOf(rows []Answer, code string, status int) Outcome {
	for _, row := range rows {
		if (row.Code == "" || row.Code == code) && (row.Status == 0 || row.Status == status || row.Status == status/100) {
			return row.Outcome
		}
	}
	return Unmapped
}

// lost is the reply for a request that got no answer: certainly not applied
// where the whole request never left us, else perhaps applied.
func lost(err error, sent time.Time) Reply {
	r := Reply{Outcome: Unknown, Code: errorCode(err), Message: err.Error(), Attempts: 1, Sent: sent}
	if sent.IsZero() {
		r.Outcome, r.Attempts = NotSent, 0
	}
	return r
}

// errorCode names a transport error by a word from a fixed set.
func errorCode(err error) string {
	var timeout net.Error
	switch {
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return "timeout"
	case errors.Is(err, context.Canceled):
		return "cancelled"
	default:
		return "connection"
	}
}
