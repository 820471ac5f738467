package targets

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"contend/targets/forge/emulator"
)

// Published figures of the live platform, 12 contenders: fastest, median,
// slowest ("Locking in Forge KVS", August 2026). That a read takes as long as a
// set is an assumption.
var (
	publishedSet         = spread{37 * time.Millisecond, 52 * time.Millisecond, 93 * time.Millisecond}
	publishedTransaction = spread{212 * time.Millisecond, 239 * time.Millisecond, 319 * time.Millisecond}
)

// publishedSweep brackets the one published observation of an expired key: still
// blocking at 8m35s past its expiry, gone at 18m37s. That the delay is uniform
// in it is an assumption.
const publishedSweep = "8m35s..18m37s"

func simDriver() Driver {
	return Driver{
		Name: "sim", Schemes: []string{"sim"},
		Form:    "sim:[?PARAMETERS]",
		Example: "sim:?latency=0&fault=two-winners",
		Summary: "Forge KVS, emulated in this process: needs nothing installed, and its keys die with the process.",
		Parameters: []Parameter{
			{Name: "create", Default: "kvs", Meaning: "how create-if-absent is done", Values: []Value{
				{Name: "kvs", Meaning: "set with keyPolicy FAIL_IF_EXISTS", Losers: []string{"KEY_CONFLICT"}}}},
			{Name: "cas", Default: "transact", Meaning: "how a write on a version is done", Values: []Value{
				{Name: "transact", Meaning: "a transaction with a condition on an entity's version", Losers: []string{"CONDITIONAL_CHECK_FAILED"}}}},
			{Name: "latency", Default: "published", Meaning: "of each request: a duration, a range A..B, or published: " +
				"37–93 ms for a set and, as an assumption, for a read and a delete; 212–319 ms for a transaction"},
			{Name: "sweep", Default: publishedSweep, Meaning: "how long after its expiry a key is swept: a duration, a range A..B, or never; " +
				"the default is the one published observation, and that it is uniform is an assumption"},
			{Name: "seed", Default: "random", Meaning: "of the latencies and sweeps, a whole number"},
			{Name: "fault", Default: "", Meaning: "a fault planted in the store, to see that contend sees it", Values: faultValues()},
		},
		Answers: forgeAnswers,
		open:    openSim,
	}
}

type sim struct {
	url      string
	store    *emulator.Store
	set      spread
	transact spread
	fault    *fault

	mu     sync.Mutex
	random *rand.Rand
}

func openSim(u *url.URL) (Target, error) {
	if u.Host != "" || u.Path != "" || u.Opaque != "" {
		return nil, usagef("target %q: nothing can stand between sim: and ?; the form is %s", u, simDriver().Form)
	}
	s := &sim{url: u.String(), set: publishedSet, transact: publishedTransaction}
	param := func(name string) string { return simDriver().param(u, name) }
	if text := param("latency"); text != "published" {
		latency, err := parseSpread(text)
		if err != nil {
			return nil, usagef("target %q: latency=%q: %v, or published", u, text, err)
		}
		s.set, s.transact = latency, latency
	}
	sweep := spread{-1, -1, -1}
	if text := param("sweep"); text != "never" {
		var err error
		if sweep, err = parseSpread(text); err != nil {
			return nil, usagef("target %q: sweep=%q: %v, or never", u, text, err)
		}
	}
	seed := rand.Uint64()
	if text := param("seed"); text != "random" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			return nil, usagef("target %q: seed=%q is not a whole number", u, text)
		}
	}
	s.random = rand.New(rand.NewPCG(seed, 1))
	sweeps := rand.New(rand.NewPCG(seed, 2))
	s.store = emulator.New(emulator.Options{
		Entities: map[string]emulator.Entity{entityName: {Attributes: map[string]emulator.Type{
			"token": emulator.String, "version": emulator.Integer, "updatedAt": emulator.Float,
			"expiresAt": emulator.Float, "body": emulator.Any}}},
		Sweep: func() time.Duration { return sweep.at(sweeps.Float64()) },
	})
	var err error
	if s.fault, err = parseFault(param("fault")); err != nil {
		return nil, usagef("target %q: %v", u, err)
	}
	return s, nil
}

// spread is a distribution of durations: half of them lie between fastest and
// median, half between median and slowest, evenly.
type spread struct{ fastest, median, slowest time.Duration }

func (s spread) at(quantile float64) time.Duration {
	if quantile < 0.5 {
		return s.fastest + time.Duration(2*quantile*float64(s.median-s.fastest))
	}
	return s.median + time.Duration((2*quantile-1)*float64(s.slowest-s.median))
}

func parseSpread(text string) (spread, error) {
	low, high, ranged := strings.Cut(text, "..")
	if !ranged {
		high = low
	}
	a, errA := time.ParseDuration(low)
	b, errB := time.ParseDuration(high)
	if errA != nil || errB != nil || a < 0 || b < a {
		return spread{}, errors.New("needs a duration such as 50ms or 0, or a range such as 40ms..90ms")
	}
	return spread{a, a + (b-a)/2, b}, nil
}

func (s *sim) Describe() Description {
	d := Description{Kind: "sim", URL: s.url, Server: "Forge KVS emulator", Simulated: true, Volatile: true,
		Strategies: map[string]string{"create": "kvs", "cas": "transact"}, SentBy: "call",
		Notes: []string{"simulated by contend in its own process, after published measurements; not the live platform"}}
	if s.fault != nil {
		d.Notes = append(d.Notes, "a fault is planted on purpose: "+s.fault.name)
	}
	return d
}

func (s *sim) Prepare(context.Context, Needs) error { return nil }

func (s *sim) Open(_ context.Context, contender int) (Session, error) {
	session := &simSession{sim: s}
	if s.fault == nil {
		return session, nil
	}
	return &faultySession{inner: session, fault: s.fault, contender: contender}, nil
}

// Clean has nothing to do: the keys of an earlier run died with its process.
func (s *sim) Clean(context.Context, Selection) (int, error) { return 0, nil }

func (s *sim) Close() error { return nil }

// draw gives the latency of one request and the share of it that passes before
// the store acts.
func (s *sim) draw(of spread) (before, after time.Duration) {
	if of.slowest == 0 {
		return 0, 0
	}
	s.mu.Lock()
	total, share := of.at(s.random.Float64()), s.random.Float64()
	s.mu.Unlock()
	before = time.Duration(share * float64(total))
	return before, total - before
}

type simSession struct{ sim *sim }

func (s *simSession) Close() error { return nil }

func (s *simSession) Do(ctx context.Context, op Op) Reply {
	of := s.sim.set
	if op.If.Guard == IfVersion {
		of = s.sim.transact
	}
	sent := time.Now()
	if err := ctx.Err(); err != nil {
		return lost(err, time.Time{})
	}
	before, after := s.sim.draw(of)
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
	store, entity := s.sim.store, op.Home == IfVersion
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
	default:
		return s.write(op)
	}
}

func (s *simSession) write(op Op) Reply {
	w, err := forgeWriteOf(op, "kvs")
	switch {
	case err != nil:
		return Reply{Outcome: Invalid, Code: "encoding", Message: err.Error()}
	case w.unsupported:
		return plainKeyHasNoCondition
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
