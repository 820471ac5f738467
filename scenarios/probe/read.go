package probe

import (
	"encoding/json"
	"strings"

	"contend/runner"
	"contend/targets"
)

func lastReply(replies []*runner.Exchange) *targets.Reply { return &replies[len(replies)-1].Reply }

// memberOf is one of the JSON object that was answered, numbers as they came; nil
// where there is none.
func memberOf(r *targets.Reply, name string) any {
	var o object
	d := json.NewDecoder(strings.NewReader(string(r.Raw)))
	d.UseNumber()
	if d.Decode(&o) != nil {
		return nil
	}
	return o[name]
}

// readYes answers a question by whether the last request was accepted.
func readYes(yes, no string) func([]*runner.Exchange) string {
	return func(replies []*runner.Exchange) string {
		switch lastReply(replies).Outcome {
		case targets.OK:
			return yes
		case targets.Conflict:
			return no
		default:
			return "" // the refusal tells
		}
	}
}
