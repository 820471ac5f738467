package redis

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"contend/targets"
	"contend/targets/kit"
)

// rawForm is the form of raw requests.
const rawForm = `the words of one command, ["SET", …]`

// raw sends one command.
func (s *session) raw(ctx context.Context, op targets.Op) targets.Reply {
	var words []string
	if err := json.Unmarshal(op.Raw, &words); err != nil || len(words) == 0 {
		return kit.Unsupported("a raw op on Redis is a list of the words of one command")
	}
	arguments := make([]any, len(words))
	for i, word := range words {
		arguments[i] = word
	}
	answer, err := s.client.Do(ctx, arguments...).Result()
	r := s.reply(ctx, err)
	switch {
	case r.Code == "nil":
		r.Outcome = nilOutcome(words)
	case r.Outcome == targets.OK && isSet(words) && !hasWord(words, "get") && answer != "OK":
		r = kit.Unexpected("SET", fmt.Sprintf("%#v", answer))
	case r.Message != "":
		answer = r.Message
	}
	if r.Outcome != targets.Unknown && r.Outcome != targets.NotSent {
		r.Raw, _ = json.Marshal(answer) // texts, whole numbers and lists of them
	}
	return r
}

// nilOutcome is what a nil reply means: a refusal of SET, unless SET was to give what
// was there before; for other commands, that there is nothing.
func nilOutcome(words []string) targets.Outcome {
	switch {
	case !isSet(words):
		return targets.Missing
	case hasWord(words, "get"):
		return targets.OK
	default:
		return targets.Conflict
	}
}

func isSet(words []string) bool { return strings.EqualFold(words[0], "set") }

func hasWord(words []string, option string) bool {
	return slices.ContainsFunc(words[1:], func(word string) bool { return strings.EqualFold(word, option) })
}

// reply sorts the answer to a raw op, by the client's error.
func (s *session) reply(ctx context.Context, err error) targets.Reply {
	var answer redis.Error
	switch {
	case err == nil:
		return targets.Reply{Outcome: targets.OK, Attempts: 1}
	case errors.Is(err, redis.Nil):
		return targets.Reply{Outcome: answers.Outcome("nil", 0), Code: "nil", Attempts: 1}
	case errors.As(err, &answer):
		return refusedBy(s.target.address, answer.Error())
	default:
		return s.lost(ctx, err)
	}
}
