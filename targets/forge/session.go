package forge

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"contend/targets"
	"contend/targets/forge/wire"
	"contend/targets/kit"
)

// pinged is what a ping told, and how long it took.
type pinged struct {
	forgePing
	took time.Duration
}

// ping asks the app about itself, with one read of a missing key behind it,
// and notes its clock.
func (f *forge) ping(ctx context.Context, s *forgeSession) (told pinged, err error) {
	call := time.Now()
	a, err := s.post(ctx, forgeEnvelope{Schema: opSchema, Ping: true, Create: f.create})
	told.took = time.Since(call)
	if err != nil {
		return told, kit.Unreachable(f.address, "host and port", err)
	}
	if a.Status != 200 || json.Unmarshal(a.Body, &told.forgePing) != nil || told.Schema != replySchema {
		return told, f.explain(a)
	}
	if told.Storage == targets.Throttled {
		return told, fmt.Errorf("%s: the quota of the installation is spent: its storage refused a read; wait until it is there again, or lower --rate", f.address.Masked())
	}
	if told.Storage != targets.Missing {
		hint := ""
		if f.create == inSQL {
			hint = "is sql in the app's manifest, and "
		}
		return told, fmt.Errorf("%s cannot reach its storage: a read was answered with %q; %ssee `forge logs`", f.address.Masked(), told.Storage, hint)
	}
	told.Simulated = told.Simulated || isSimulated(a)
	f.renews.Store(slices.Contains(told.Kinds, targets.Renew))
	f.mu.Lock()
	defer f.mu.Unlock()
	f.clocks.note(told.Isolate, call, call.Add(told.took), told.Received, told.Now)
	return told, nil
}

type forgeSession struct {
	target *forge
	conn   kit.HTTPConn
}

func (s *forgeSession) Close() error { return s.conn.Close() }

// forgeEnvelope is what the web trigger is sent.
type forgeEnvelope struct {
	Schema string      `json:"schema"`
	Ping   bool        `json:"ping,omitempty"`
	Create string      `json:"create,omitempty"`
	Cas    string      `json:"cas,omitempty"`
	Prefix string      `json:"prefix,omitempty"`
	Op     *targets.Op `json:"op,omitempty"`
	List   *forgeList  `json:"list,omitempty"`
}

// forgeList asks for a page of keys.
type forgeList struct {
	Collection targets.Collection `json:"home"`
	Prefix     string             `json:"prefix"`
	Cursor     string             `json:"cursor,omitempty"`
}

func (s *forgeSession) Do(ctx context.Context, op targets.Op) targets.Reply {
	if err := ctx.Err(); err != nil {
		return kit.Lost(err, time.Time{})
	}
	if s.target.create != "kvs" {
		// A condition and a key policy of an entity need the record to be one; in
		// SQL there is one table for all.
		op.Collection = targets.Versioned
	}
	if refused := op.If.TooFine(wire.Finest); refused != nil {
		return *refused
	}
	if op.Kind == targets.Transact {
		return kit.Unsupported("the companion app has no op %q", op.Kind)
	}
	if (op.Kind == targets.Renew || op.If.Guard == targets.IfToken || op.Kind == targets.Delete && op.If.Guard != targets.Unguarded) && !s.target.renews.Load() {
		return kit.Unsupported("this companion app is an older one, which looks at no condition of a %s: deploy the one that `contend forge init` writes", op.Kind)
	}
	if !op.NotBefore.IsZero() {
		op.NotBefore = s.target.there(op.NotBefore)
	}
	envelope := forgeEnvelope{Schema: opSchema, Create: s.target.create, Cas: s.target.cas, Prefix: keyPrefixOf(op.Key), Op: &op}
	body, err := json.Marshal(envelope)
	if err != nil {
		return kit.NotEncoded(err)
	}
	a, err := s.conn.Send(ctx, kit.JSON("", s.target.token, body))
	if err != nil {
		return a.Lost(s.target.address.Mask(err))
	}
	return s.reply(op, a)
}

func (s *forgeSession) post(ctx context.Context, envelope forgeEnvelope) (kit.Answer, error) {
	body, err := json.Marshal(envelope)
	if err != nil {
		return kit.Answer{}, err
	}
	return s.conn.Send(ctx, kit.JSON("", s.target.token, body))
}

// keyPrefixOf gives the app the part of a key that every key of the run has; it
// touches no other.
func keyPrefixOf(key string) string {
	if i := strings.LastIndexByte(key, '-'); i > 0 {
		return key[:i+1]
	}
	return key
}

// reply reads the app's answer; one that is not the app's is the web trigger's
// own, and is sorted by its status.
func (s *forgeSession) reply(op targets.Op, a kit.Answer) targets.Reply {
	var answer forgeReply
	if a.Status == 200 && json.Unmarshal(a.Body, &answer) == nil && answer.Schema == replySchema && answer.Reply != nil {
		r := *answer.Reply
		attempts := r.Attempts
		a.Stamp(&r)
		r.Attempts = max(attempts, 1)
		if r.Outcome == targets.Unsupported {
			r.Attempts = 0
		}
		accept(&r, op)
		return r
	}
	r := targets.Reply{Outcome: webTriggerAnswers.Outcome(webTrigger, a.Status), Code: webTrigger, Status: a.Status,
		Message: kit.Sample(string(a.Body)), RetryAfter: retryAfter(a)}
	a.Stamp(&r)
	return r
}

// accept makes Unmapped what the app cannot have meant: an outcome that nobody knows,
// or that an op of this kind does not have.
func accept(r *targets.Reply, op targets.Op) {
	r.Message, r.Trace = kit.Sample(r.Message), kit.Sample(r.Trace)
	if r.Code != "" && r.Code != "0 rows" && !wire.CodePattern.MatchString(r.Code) {
		r.Code, r.Message = "UNKNOWN_ERROR", kit.Sample(r.Code+" "+r.Message)
	}
	told, served := r.Outcome, servedOutcomes[op.Kind]
	switch {
	case slices.Contains(otherOutcomes, told):
	case op.Kind == targets.Sequence && len(r.Parts) == len(op.Ops):
		for i := range r.Parts {
			accept(&r.Parts[i], op.Ops[i])
			r.Outcome = r.Parts[i].Outcome // the last one's
		}
	case !slices.Contains(served, told):
		r.Outcome, r.Code, r.Message = targets.Unmapped, kit.UnexpectedCode, kit.Sample(fmt.Sprintf("a %s was answered with the outcome %q: %s", op.Kind, told, r.Message))
	}
}

// servedOutcomes are those of an op that the store dealt with; otherOutcomes can come
// of any.
var (
	servedOutcomes = map[targets.Kind][]targets.Outcome{targets.Read: {targets.OK, targets.Missing}, targets.Write: {targets.OK, targets.Conflict, targets.Aborted},
		targets.Delete: {targets.OK, targets.Conflict, targets.Aborted}, targets.Renew: {targets.OK, targets.Conflict, targets.Aborted}, targets.Raw: {targets.OK, targets.Missing, targets.Conflict, targets.Aborted}}
	otherOutcomes = []targets.Outcome{targets.Throttled, targets.Invalid, targets.Unknown, targets.Unsupported, targets.Unmapped}
)

// retryAfter is how long a throttled client is to wait, as Forge tells it.
func retryAfter(a kit.Answer) time.Duration { return a.RetryAfter("X-Ratelimit-Reset") }

// list asks the app for a page of the keys that begin with prefix.
func (s *forgeSession) list(ctx context.Context, collection targets.Collection, prefix, cursor string) (keys []string, next string, err error) {
	a, err := s.post(ctx, forgeEnvelope{Schema: opSchema, Prefix: prefix, List: &forgeList{collection, prefix, cursor}})
	if err != nil {
		return nil, "", s.target.address.Mask(err)
	}
	var page struct {
		Schema string         `json:"schema"`
		Reply  *targets.Reply `json:"reply"`
		Keys   []string       `json:"keys"`
		Cursor string         `json:"cursor"`
	}
	read := json.Unmarshal(a.Body, &page) == nil && page.Schema == replySchema
	if read && page.Reply != nil {
		return nil, "", unlisted(*page.Reply)
	}
	if a.Status != 200 || !read {
		if r := s.reply(targets.Op{}, a); r.Outcome == targets.Throttled {
			return nil, "", throttled{r.RetryAfter, s.target.explain(a)}
		}
		return nil, "", s.target.explain(a)
	}
	return page.Keys, page.Cursor, nil
}
