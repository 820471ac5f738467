package scenarios

import (
	"strings"
	"time"

	"contend/runner"
	"contend/targets"
)

// seedSuffix ends the token of a seed, after the key.
const seedSuffix = "-seed"

// startState is what a round starts from.
type startState struct {
	key   string
	seed  string     // token of the seeded record; "": the key was absent
	wrote *operation // the seed
}

// startOf tells what a round whose key is seeded, or not, starts from.
func startOf(r *runner.Round, seeded bool) startState {
	s := startState{key: r.Key}
	if !seeded {
		return s
	}
	s.seed = r.Key + seedSuffix
	for i := range r.Seeds {
		if r.Seeds[i].Op.Key == r.Key {
			a, _ := s.operationOf(&r.Seeds[i])
			s.wrote = &a
		}
	}
	return s
}

// since is when the start state was acknowledged; 0 of an absent key.
func (s startState) since() time.Duration {
	if s.wrote == nil {
		return 0
	}
	return s.wrote.ret
}

// operationsOf reduces what was done to the round's own key, and the reads of it when all
// had returned.
func (s startState) operationsOf(r *runner.Round) []operation {
	operations := make([]operation, 0, len(r.Ops)+len(r.Reads))
	for i := range r.Ops {
		if a, ok := s.operationOf(&r.Ops[i]); ok && r.Ops[i].Op.Key == r.Key {
			operations = append(operations, a)
		}
	}
	ops := len(operations)
	for i := range r.Reads {
		if a, ok := s.operationOf(&r.Reads[i]); ok && r.Reads[i].Op.Key == r.Key {
			a.token = sameText(operations[:ops], a.token)
			operations = append(operations, a)
		}
	}
	return operations
}

// sameText gives the writer's copy of a token that was read, so that a run of any
// length keeps each but once.
func sameText(writes []operation, token string) string {
	for i := range writes {
		if writes[i].token == token {
			return writes[i].token
		}
	}
	return token
}

// operationOf reduces an exchange; a read that failed tells nothing.
func (s startState) operationOf(e *runner.Exchange) (operation, bool) {
	a := operation{call: e.Call, ret: e.Return, who: int32(e.Contender), retried: e.Reply.Attempts > 1, outcome: e.Reply.Outcome,
		code: e.Reply.Code, status: int32(e.Reply.Status), trace: e.Reply.Trace}
	if e.Op.Kind == targets.Read {
		a.token, a.version, a.body = e.Reply.Record.Token, e.Reply.Record.Version, e.Reply.Record.Body
		a.kind = s.seen(&e.Reply)
		return a, e.Reply.Outcome == targets.OK || e.Reply.Outcome == targets.Missing
	}
	if e.Reply.ByRead {
		// It is what it read that refused it.
		seen := e.Reply
		if seen.Outcome = targets.OK; seen.Record.Token == "" && seen.Stored == "" {
			seen.Outcome = targets.Missing
		}
		a.token, a.version, a.body, a.kind = seen.Record.Token, seen.Record.Version, seen.Record.Body, s.seen(&seen)
		return a, true
	}
	a.token, a.version, a.body = e.Op.Value.Token, e.Op.Value.Version, e.Op.Value.Body
	switch o := e.Reply.Outcome; {
	case o == targets.OK:
		a.kind = wrote
	case o == targets.Unknown, o == targets.Unmapped, a.retried:
		// After more than one attempt a refusal may be the writer's own doing.
		a.kind, a.ret = indeterminate, forever
	case o == targets.Conflict:
		a.kind = refused
	default:
		a.kind = noEffect
	}
	return a, e.Op.Kind == targets.Write
}

// seen tells which state a read showed.
func (s startState) seen(reply *targets.Reply) operationKind {
	token := reply.Record.Token
	switch {
	case reply.Outcome == targets.Missing && s.seed != "":
		return sawNothing
	case reply.Outcome == targets.Missing, token == s.seed && s.seed != "":
		return sawOld
	case strings.HasPrefix(token, s.key+"-c"):
		return sawNew
	case strings.HasPrefix(token, s.run()):
		return sawMisplaced
	case token == "" && strings.Contains(reply.Stored, s.run()):
		return sawDamaged
	default:
		return sawForeign
	}
}

// run begins every token of the run: what stands before the label of the round.
func (s startState) run() string { return s.key[:strings.LastIndexByte(s.key, '-')+1] }

// changed finds a read of what was not written so: a record of another key, one cut
// short, another body than its writer's, the seed at another version.
func (s startState) changed(operations []operation, read *operation) *anomaly {
	switch read.kind {
	case sawMisplaced:
		return &anomaly{"misplaced-record", s.partner(operations), read}
	case sawDamaged:
		return &anomaly{"changed-value", s.partner(operations), read}
	case sawOld:
		if seed := s.wrote; read.token != "" && seed != nil && (read.version != seed.version || !sameBody(read.body, seed.body)) {
			return &anomaly{"changed-value", seed, read}
		}
	case sawNew:
		for i := range operations {
			if w := &operations[i]; !w.isRead() && w.token == read.token && !sameBody(w.body, read.body) {
				return &anomaly{"changed-value", w, read}
			}
		}
	}
	return nil
}

// partner is the write that stands beside a read as its witness: the accepted one,
// else one that may have been applied, else the seed.
func (s startState) partner(operations []operation) *operation {
	best := s.wrote
	for i := range operations {
		switch a := &operations[i]; {
		case a.kind == wrote:
			return a
		case a.kind == indeterminate:
			best = a
		}
	}
	return best
}
