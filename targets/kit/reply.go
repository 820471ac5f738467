// Package kit is what stores share: one dialled connection with its clock, sessions over
// it, what to say where a server cannot be reached, answers made into replies, the
// record as JSON, and HTTP.
package kit

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"
	"unicode"

	"contend/targets"
)

// UnexpectedCode is the code of an answer that its protocol does not have there.
const UnexpectedCode = "unexpected"

// Unexpected is the reply to a request that was answered with something else than what
// is accepted.
func Unexpected(request, answer string) targets.Reply {
	return targets.Reply{Outcome: targets.Unmapped, Code: UnexpectedCode, Message: Sample(request + " was answered with " + answer), Attempts: 1}
}

// UnexpectedError is Unexpected where an error quotes the answer.
func UnexpectedError(err error) targets.Reply {
	return targets.Reply{Outcome: targets.Unmapped, Code: UnexpectedCode, Message: Sample(err.Error()), Attempts: 1}
}

// Unsupported is the reply to an op that the store does not have.
func Unsupported(format string, a ...any) targets.Reply {
	return targets.Reply{Outcome: targets.Unsupported, Message: fmt.Sprintf(format, a...)}
}

// NotEncoded is the reply to an op that cannot be written down.
func NotEncoded(err error) targets.Reply {
	return targets.Reply{Outcome: targets.Invalid, Code: "encoding", Message: err.Error()}
}

// Sample keeps what a server sent to what a table can hold: one line without control
// characters, cut off after 200 characters.
func Sample(text string) string {
	const most = 200
	text = strings.Join(strings.Fields(strings.Map(func(r rune) rune {
		if !unicode.IsGraphic(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "?"))), " ")
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return text
}

// Lost is the reply for a request that got no answer: certainly not applied
// where the whole request never left us, else perhaps applied.
func Lost(err error, sent time.Time) targets.Reply {
	r := targets.Reply{Outcome: targets.Unknown, Code: errorCode(err), Message: Sample(err.Error()), Attempts: 1, Sent: sent}
	if sent.IsZero() {
		r.Outcome, r.Attempts = targets.NotSent, 0
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

// Sleep waits, unless ctx ends before.
func Sleep(ctx context.Context, d time.Duration) error {
	if d == 0 {
		return nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
