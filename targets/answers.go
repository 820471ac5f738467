package targets

import (
	"context"
	"errors"
	"net"
	"strings"
	"time"
	"unicode"
)

// Accepted is what the answer to a request must be to count: its status and body,
// its type, its command tag, and nothing like it. Any other that is no error of the
// table is Unmapped, under the code "unexpected", with a sample of it as the message.
type Accepted struct {
	Request string
	Answer  string // in the words of the protocol
	Code    string // which Answers sort; "": OK
}

// unexpected is the code of an answer that its protocol does not have there.
const unexpected = "unexpected"

// unexpectedReply tells what a request was answered with instead of what is accepted.
func unexpectedReply(request, answer string, sent time.Time) Reply {
	return Reply{Outcome: Unmapped, Code: unexpected, Message: sample(request + " was answered with " + answer), Attempts: 1, Sent: sent}
}

// sample keeps what a server sent to what a table can hold: one line without control
// characters, cut off after 200 characters.
func sample(text string) string {
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
	r := Reply{Outcome: Unknown, Code: errorCode(err), Message: sample(err.Error()), Attempts: 1, Sent: sent}
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
