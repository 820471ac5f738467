package targets

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"strconv"
	"time"

	"contend/targets/forge/emulator"
)

func simDriver() Driver {
	return Driver{
		Name: "sim", Schemes: []string{"sim"},
		Form:    "sim:[?PARAMETERS]",
		Example: "sim:?latency=0&fault=two-winners",
		Summary: "Forge KVS, emulated in this process: needs nothing installed, and its keys die with the process.",
		Parameters: []Parameter{
			{Name: "create", Default: "kvs", Meaning: "how create-if-absent is done", Values: []Value{
				{Name: "kvs", Meaning: "set with keyPolicy FAIL_IF_EXISTS", Losers: []string{"KEY_CONFLICT"}}}},
			{Name: "cas", Default: "transact", Meaning: "how a write on a version, or on a time of change, is done", Values: []Value{
				{Name: "transact", Meaning: "a transaction with a condition on an attribute of an entity", Losers: []string{"CONDITIONAL_CHECK_FAILED"}}}},
			{Name: "latency", Default: "published", Meaning: "of each request: a duration, a range A..B, or published: " +
				"37–93 ms for a set and, as an assumption, for a read and a delete; 212–319 ms for a transaction"},
			{Name: "sweep", Default: emulator.PublishedSweep, Meaning: "how long after its expiry a key is swept: a duration, a range A..B, or never; " +
				"the default is the one published observation, and that it is uniform is an assumption"},
			{Name: "seed", Default: "random", Meaning: "of the latencies and sweeps, a whole number"},
			{Name: "fault", Default: "", Meaning: "a fault planted in the store, to see that contend sees it", Values: faultValues()},
		},
		Accepted: forgeAccepted,
		Answers:  forgeAnswers,
		open:     openSim,
	}
}

type sim struct {
	url     string
	store   *emulator.Store
	latency *emulator.Latency
	fault   *fault
}

func openSim(u *url.URL) (Target, error) {
	if u.User != nil || u.Host != "" || u.Path != "" || u.Opaque != "" {
		return nil, usagef("target %q: nothing can stand between sim: and ?; the form is %s", Redact(u.String()), simDriver().Form)
	}
	s := &sim{url: u.String()}
	param := func(name string) string { return simDriver().param(u, name) }
	seed, err := rand.Uint64(), error(nil)
	if text := param("seed"); text != "random" {
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			return nil, usagef("target %q: seed=%q is not a whole number", u, text)
		}
	}
	if s.latency, err = emulator.NewLatency(param("latency"), seed); err != nil {
		return nil, usagef("target %q: latency=%q: %v", u, param("latency"), err)
	}
	sweep, err := emulator.Sweeper(param("sweep"), seed)
	if err != nil {
		return nil, usagef("target %q: sweep=%q: %v", u, param("sweep"), err)
	}
	s.store = emulator.New(emulator.Options{
		Entities: map[string]emulator.Entity{entityName: {Attributes: map[string]emulator.Type{
			"token": emulator.String, "version": emulator.Integer, "updatedAt": emulator.Float,
			"expiresAt": emulator.Float, "body": emulator.Any}}},
		Sweep: sweep,
	})
	if s.fault, err = parseFault(param("fault")); err != nil {
		return nil, usagef("target %q: %v", u, err)
	}
	return s, nil
}

func (s *sim) Describe() Description {
	d := Description{Kind: "sim", URL: s.url, Server: "Forge KVS emulator", Simulated: true, Volatile: true, OneCopy: true,
		Strategies: map[string]string{"create": "kvs", "cas": "transact"}, SentBy: "call", TTLUnit: time.Second,
		Notes: []string{"simulated by contend in its own process, after published measurements; not the live platform"}}
	if s.fault != nil {
		d.Notes = append(d.Notes, "a fault is planted on purpose: "+s.fault.name)
	}
	return d
}

func (s *sim) Prepare(_ context.Context, needs Needs) error {
	return needs.compares(s.url, forgeFinest)
}

func (s *sim) Open(_ context.Context, contender int) (Session, error) {
	session := &simSession{sim: s}
	if s.fault == nil {
		return session, nil
	}
	return &faultySession{inner: session, fault: s.fault, contender: contender}, nil
}

// List gives none: the keys of an earlier run died with its process.
func (s *sim) List(context.Context, string) ([]Op, int, error) { return nil, 0, nil }

func (s *sim) Close() error { return nil }

type simSession struct{ sim *sim }

func (s *simSession) Close() error { return nil }

func (s *simSession) Do(ctx context.Context, op Op) Reply {
	sent := time.Now()
	if err := ctx.Err(); err != nil {
		return lost(err, time.Time{})
	}
	transaction := op.comparesAndSets()
	if op.Kind == Raw {
		call, _ := wireCallOf(op)
		transaction = call.Transaction
	}
	before, after := s.sim.latency.Draw(transaction)
	if err := sleep(ctx, before); err != nil {
		return lost(err, sent)
	}
	reply := s.apply(op)
	if err := sleep(ctx, after); err != nil {
		return lost(err, sent)
	}
	if reply.Outcome != Unsupported {
		reply.Attempts = 1
	}
	return reply
}

func sleep(ctx context.Context, d time.Duration) error {
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

func (s *simSession) apply(op Op) Reply {
	store, entity := s.sim.store, op.Collection == Versioned
	switch op.Kind {
	case Read:
		var item emulator.Item
		var err error
		if entity {
			item, err = store.EntityGet(entityName, op.Key, withExpiry)
		} else {
			item, err = store.Get(op.Key, withExpiry)
		}
		if err != nil {
			return s.failed(err)
		}
		return readReply(item, entity)
	case Delete:
		if entity {
			return s.written(store.EntityDelete(entityName, op.Key))
		}
		return s.written(store.Delete(op.Key))
	case Write:
		return s.write(op)
	case Raw:
		return s.raw(op)
	default:
		return Reply{Outcome: Unsupported, Message: "the emulator has no request of kind " + string(op.Kind)}
	}
}

// raw answers as the emulator's server does over HTTP.
func (s *simSession) raw(op Op) Reply {
	call, refused := wireCallOf(op)
	if refused != nil {
		return *refused
	}
	result, err := call.Do(s.sim.store, call.body)
	var r Reply
	switch {
	case err != nil:
		r, result = s.failed(err), err
	case result == nil:
		return s.written(nil)
	default:
		r = Reply{Outcome: OK, Status: 200}
	}
	if r.Raw, err = json.Marshal(result); err != nil {
		return Reply{Outcome: Unmapped, Code: "encoding", Message: err.Error()}
	}
	return r
}

func (s *simSession) write(op Op) Reply {
	w, err := forgeWriteOf(op, "kvs")
	switch {
	case err != nil:
		return Reply{Outcome: Invalid, Code: "encoding", Message: err.Error()}
	case w.refused != nil:
		return *w.refused
	case w.transaction != nil:
		return s.written(s.sim.store.Transact(*w.transaction))
	case w.entity:
		_, err = s.sim.store.EntitySet(entityName, op.Key, w.value, w.options)
	default:
		_, err = s.sim.store.Set(op.Key, w.value, w.options)
	}
	return s.written(err)
}

func (s *simSession) written(err error) Reply {
	if err != nil {
		return s.failed(err)
	}
	return Reply{Outcome: OK, Status: 204}
}

func (s *simSession) failed(err error) Reply {
	var e *emulator.Error
	if !errors.As(err, &e) {
		return Reply{Outcome: Unmapped, Code: fmt.Sprintf("%T", err), Message: err.Error()}
	}
	return Reply{Outcome: outcomeOf(forgeAnswers, e.Code, e.Status), Code: e.Code, Status: e.Status, Message: e.Message}
}
