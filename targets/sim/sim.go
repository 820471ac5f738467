// Package sim is Forge KVS, emulated in this process, as a target.
package sim

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	"contend/targets"
	"contend/targets/fault"
	"contend/targets/forge/emulator"
	"contend/targets/forge/wire"
	"contend/targets/kit"
)

// Driver is the kind of target.
func Driver() targets.Driver {
	transact := []targets.Value{{Name: "transact", Meaning: "a transaction with a condition on an attribute of an entity", Losers: []string{"CONDITIONAL_CHECK_FAILED"}}}
	return targets.Driver{
		Name: "sim", Schemes: []string{"sim"},
		Form:    "sim:[?PARAMETERS]",
		Example: "sim:?latency=0&fault=two-winners",
		Summary: "Forge KVS, emulated in this process: needs nothing installed, and its keys die with the process.",
		Parameters: []targets.Parameter{
			{Name: "create", Default: "kvs", Meaning: "how create-if-absent is done", Values: []targets.Value{
				{Name: "kvs", Meaning: "set with keyPolicy FAIL_IF_EXISTS", Losers: []string{"KEY_CONFLICT"}}}},
			{Name: "cas", Default: "transact", Meaning: "how a write on a version, or on a time of change, is done", Values: transact},
			{Name: "delete", Default: "transact", Meaning: "how a delete on a token or a version is done", Values: transact},
			{Name: "renew", Default: "transact", Meaning: "how a time to live is renewed on a token or a version", Values: transact},
			{Name: "latency", Default: "published", Meaning: "of each request: a duration, a range A..B, or published: " +
				"37–93 ms for a set and, as an assumption, for a read and a delete; 212–319 ms for a transaction"},
			{Name: "sweep", Default: emulator.PublishedSweep, Meaning: "how long after its expiry a key is swept: a duration, a range A..B, or never; " +
				"the default is the one published observation, and that it is uniform is an assumption"},
			{Name: "seed", Default: "random", Meaning: "of the latencies and sweeps, a whole number"},
			fault.Parameter(),
		},
		Accepted: wire.Accepted, Answers: wire.Answers, Raw: wire.RawForm,
		Secrets: targets.Secrets{LoneUser: true}, Make: open,
	}
}

type target struct {
	address targets.Address
	store   *emulator.Store
	latency *emulator.Latency
	fault   *fault.Fault // nil: none
}

func open(a targets.Address) (targets.Target, error) {
	if a.User != nil || a.Host != "" || a.Path != "" || a.Opaque != "" {
		return nil, a.Usagef("nothing can stand between sim: and ?; the form is %s", a.Driver.Form)
	}
	s := &target{address: a}
	param := a.Param
	seed, err := rand.Uint64(), error(nil)
	if text := param("seed"); text != "random" {
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			return nil, a.Usagef("seed=%q is not a whole number", text)
		}
	}
	if s.latency, err = emulator.NewLatency(param("latency"), seed); err != nil {
		return nil, a.Usagef("latency=%q: %v", param("latency"), err)
	}
	sweep, err := emulator.Sweeper(param("sweep"), seed)
	if err != nil {
		return nil, a.Usagef("sweep=%q: %v", param("sweep"), err)
	}
	s.store = emulator.New(emulator.Options{
		Entities: map[string]emulator.Entity{wire.EntityName: {Attributes: map[string]emulator.Type{
			"token": emulator.String, "version": emulator.Integer, "updatedAt": emulator.Float,
			"expiresAt": emulator.Float, "body": emulator.Any}}},
		Sweep: sweep,
	})
	if s.fault, err = fault.Parse(param("fault"), replies); err != nil {
		return nil, a.Usagef("%v", err)
	}
	return s, nil
}

// replies are what planted faults answer, in the words of the store.
var replies = fault.Replies{
	Exists:    targets.Reply{Outcome: targets.Conflict, Code: "KEY_CONFLICT", Status: 409, Message: "Provided key already exists and cannot be overwritten"},
	Stale:     targets.Reply{Outcome: targets.Conflict, Code: "CONDITIONAL_CHECK_FAILED", Status: 400, Message: "Request failed due to conditional check specified or optimistic locking"},
	Missing:   targets.Reply{Outcome: targets.Missing, Code: "KEY_NOT_FOUND", Status: 404, Message: "Provided key does not exist"},
	Failed:    targets.Reply{Outcome: targets.Unknown, Code: "INTERNAL_SERVER_ERROR", Status: 500, Message: "An internal server error has occurred"},
	Throttled: targets.Reply{Outcome: targets.Throttled, Code: "RATE_LIMIT_EXCEEDED", Status: 429},
	Read:      targets.Reply{Outcome: targets.OK, Status: 200},
	Unmapped:  targets.Reply{Outcome: wire.Answers.Outcome("OUT_OF_CHEESE", 418), Code: "OUT_OF_CHEESE", Status: 418},
}

func (s *target) Describe() targets.Description {
	d := targets.Description{Kind: "sim", URL: s.address.Masked(), Server: "Forge KVS emulator", Simulated: true, Volatile: true, OneCopy: true,
		Strategies: s.address.Strategies(), Guards: targets.AllGuards, Finest: wire.Finest, SentBy: "call", TTL: targets.TTL{Unit: time.Second},
		Notes: []string{"simulated by contend in its own process, after published measurements; not the live platform"}}
	if s.fault != nil {
		d.Notes = append(d.Notes, s.fault.Note())
	}
	return d
}

// Prepare has nothing to prepare.
func (s *target) Prepare(context.Context, targets.Needs) (targets.Server, error) {
	return targets.Server{}, nil
}

func (s *target) Open(_ context.Context, contender int) (targets.Session, error) {
	return s.fault.Wrap(&session{s}, contender), nil
}

// List gives none: the keys of an earlier run died with its process.
func (s *target) List(context.Context, string) ([]targets.Op, int, error) { return nil, 0, nil }

func (s *target) Close() error { return nil }

type session struct{ sim *target }

func (s *session) Close() error { return nil }

func (s *session) Do(ctx context.Context, op targets.Op) targets.Reply {
	sent := time.Now()
	if err := ctx.Err(); err != nil {
		return kit.Lost(err, time.Time{})
	}
	transaction := op.If.Guard != targets.Unguarded && op.If.Guard != targets.IfAbsent
	if op.Kind == targets.Raw {
		call, _ := wire.CallOf(op)
		transaction = call.Transaction
	}
	before, after := s.sim.latency.Draw(transaction)
	if err := kit.Sleep(ctx, before); err != nil {
		return kit.Lost(err, sent)
	}
	reply := s.Apply(op)
	if err := kit.Sleep(ctx, after); err != nil {
		return kit.Lost(err, sent)
	}
	if reply.Outcome != targets.Unsupported {
		reply.Attempts, reply.RoundTrips = 1, 1
	}
	return reply
}

// Apply implements fault.Instant: it takes no time.
func (s *session) Apply(op targets.Op) targets.Reply {
	store, entity := s.sim.store, op.Collection == targets.Versioned
	switch op.Kind {
	case targets.Read:
		var item emulator.Item
		var err error
		if entity {
			item, err = store.EntityGet(wire.EntityName, op.Key, wire.WithExpiry)
		} else {
			item, err = store.Get(op.Key, wire.WithExpiry)
		}
		if err != nil {
			return s.failed(err)
		}
		return wire.ReadReply(item, entity)
	case targets.Delete:
		if op.If.Guard != targets.Unguarded {
			return s.write(op)
		}
		if entity {
			return s.written(store.EntityDelete(wire.EntityName, op.Key))
		}
		return s.written(store.Delete(op.Key))
	case targets.Write, targets.Renew:
		return s.write(op)
	case targets.Raw:
		return s.raw(op)
	default:
		return kit.Unsupported("the emulator has no request of kind %s", op.Kind)
	}
}

// raw answers as the emulator's server does over HTTP.
func (s *session) raw(op targets.Op) targets.Reply {
	call, refused := wire.CallOf(op)
	if refused != nil {
		return *refused
	}
	result, err := call.Do(s.sim.store, call.Body)
	var r targets.Reply
	switch {
	case err != nil:
		r, result = s.failed(err), err
	case result == nil:
		return s.written(nil)
	default:
		r = targets.Reply{Outcome: targets.OK, Status: 200}
	}
	if r.Raw, err = json.Marshal(result); err != nil {
		return targets.Reply{Outcome: targets.Unmapped, Code: "encoding", Message: err.Error()}
	}
	return r
}

func (s *session) write(op targets.Op) targets.Reply {
	w, err := wire.WriteOf(op, "kvs")
	switch {
	case err != nil:
		return kit.NotEncoded(err)
	case w.Refused != nil:
		return *w.Refused
	case w.Transaction != nil:
		return s.written(s.sim.store.Transact(*w.Transaction))
	case w.Entity:
		_, err = s.sim.store.EntitySet(wire.EntityName, op.Key, w.Value, w.Options)
	default:
		_, err = s.sim.store.Set(op.Key, w.Value, w.Options)
	}
	return s.written(err)
}

func (s *session) written(err error) targets.Reply {
	if err != nil {
		return s.failed(err)
	}
	return targets.Reply{Outcome: targets.OK, Status: 204}
}

func (s *session) failed(err error) targets.Reply {
	var e *emulator.Error
	if !errors.As(err, &e) {
		return targets.Reply{Outcome: targets.Unmapped, Code: fmt.Sprintf("%T", err), Message: err.Error()}
	}
	return targets.Reply{Outcome: wire.Answers.Outcome(e.Code, e.Status), Code: e.Code, Status: e.Status, Message: e.Message}
}
