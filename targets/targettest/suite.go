// Package targettest checks that a target keeps the promises of targets.Target
// and targets.Session, and starts real servers to check them on.
package targettest

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"contend/targets"
)

const (
	raceRounds      = 50
	cancelledRounds = 20
	// answerWithin bounds how long an op whose context has ended may take.
	answerWithin = 10 * time.Second
)

// Suite checks a target of a driver against the promises of targets.Target and
// targets.Session, on keys of its own that it removes again, with
// needs.Sessions sessions (two at least) open at once. It closes the target.
//
// The error joins one error for each broken promise, which begins with the
// promise; nil means that all were kept. A condition that the store lacks
// (targets.Unsupported) is left out. A time to live is checked up to its end where
// the target has one; TTL checks what comes then. Writes on condition of a time are
// checked to the precision for which the target can be prepared.
func Suite(ctx context.Context, driver targets.Driver, t targets.Target, needs targets.Needs, options ...Option) error {
	needs.Sessions = max(needs.Sessions, 2)
	s := &suite{ctx: ctx, driver: driver, target: t, described: t.Describe(), prefix: fmt.Sprintf("contend-suite-%08x", rand.Uint32())}
	for _, option := range options {
		option(s)
	}
	s.run(needs)
	t.Close()
	s.withoutPanic("a target can be closed twice", t.Close)
	return errors.Join(s.broken...)
}

type suite struct {
	ctx       context.Context
	driver    targets.Driver
	target    targets.Target
	described targets.Description // before anything was sent
	prefix    string
	sessions  []targets.Session
	losers    map[targets.Guard][]string // the codes that refused writes may carry, where the driver lists them
	finest    time.Duration              // of the times that it compares; 0: it does not
	hasTTL    bool
	expired   Expired // "": no expiry is waited for
	broken    []error
	promises  []string // those in broken
	tokens    int
}

func (s *suite) run(needs targets.Needs) {
	if _, err := s.target.Prepare(s.ctx, needs); err != nil {
		s.breaks("prepare makes the target ready", "%w", err)
		return
	}
	server, err := s.target.Prepare(s.ctx, needs)
	s.holds("prepare can be repeated", err)
	s.finest = max(1, s.described.Finest)
	if !slices.Contains(s.described.Guards, targets.IfUnmodified) {
		s.finest = 0
	}
	if s.hasTTL = s.described.TTL.Unit > 0; !s.hasTTL && s.expired != "" {
		s.breaks("a target has a time to live", "its description has none")
	}
	s.description(server)
	if err := s.open(needs.Sessions); err != nil {
		s.breaks("open gives a session", "%w", err)
		return
	}
	s.sequential()
	s.records()
	s.unmodified()
	s.visibility()
	s.expiry()
	s.owned()
	s.races()
	s.staging()
	s.listing()
	s.close()
	s.endedContexts()
	for _, op := range s.list(s.prefix) {
		s.once(s.ctx, op)
	}
	if left := s.list(s.prefix); len(left) > 0 {
		s.breaks("the deletes of a listing empty it", "%d keys are left, such as %q", len(left), left[0].Key)
	}
}

// breaks notes a broken promise, with the first detail only.
func (s *suite) breaks(promise, format string, a ...any) {
	if !slices.Contains(s.promises, promise) {
		s.promises = append(s.promises, promise)
		s.broken = append(s.broken, fmt.Errorf(promise+": "+format, a...))
	}
}

func (s *suite) holds(promise string, err error) {
	if err != nil {
		s.breaks(promise, "%w", err)
	}
}

func (s *suite) description(server targets.Server) {
	d := s.target.Describe()
	if !reflect.DeepEqual(d, s.described) {
		s.breaks("a description stays as it is", "it was\n%+v\nand after prepare it is\n%+v", s.described, d)
	}
	if d.With(server).Server == "" {
		s.breaks("the server is told after prepare", "neither the description nor the server has a name")
	}
	if masked := s.driver.Secrets.MaskRaw(d.URL); masked != d.URL {
		s.breaks("the URL is told with its secrets masked", "Describe().URL should be %s", masked)
	}
	s.losers = map[targets.Guard][]string{}
	for guard, parameter := range map[targets.Guard]string{targets.IfAbsent: "create", targets.IfVersion: "cas", targets.IfUnmodified: "cas"} {
		strategy := d.Strategies[parameter]
		losers, listed := s.driver.Losers(parameter, strategy)
		if strategy != "" && !listed {
			s.breaks("the driver lists the chosen strategies", "no %s=%s of a driver %q", parameter, strategy, s.driver.Name)
			continue
		}
		s.losers[guard] = losers
	}
}

func (s *suite) open(n int) error {
	for i := range n {
		session, err := s.target.Open(s.ctx, i)
		if err != nil {
			s.close()
			return err
		}
		s.sessions = append(s.sessions, session)
	}
	return nil
}

func (s *suite) close() {
	for _, session := range s.sessions {
		session.Close()
		s.withoutPanic("a session can be closed twice", session.Close)
	}
}

func (s *suite) withoutPanic(promise string, do func() error) {
	defer func() {
		if p := recover(); p != nil {
			s.breaks(promise, "panic: %v", p)
		}
	}()
	do()
}

// do sends an op and checks what every reply promises.
func (s *suite) do(session int, op targets.Op) targets.Reply {
	reply := s.sessions[session].Do(s.ctx, op)
	s.check(op, reply)
	return reply
}

func (s *suite) check(op targets.Op, reply targets.Reply) {
	if reply.Attempts > 1 {
		s.breaks("a request goes out once", "%s of %s went out %d times", op.Kind, op.Key, reply.Attempts)
	}
	if reply.Outcome != targets.Conflict && reply.Outcome != targets.Aborted {
		return
	}
	guard := targets.Unguarded
	if op.Kind == targets.Write {
		guard = op.If.Guard
	}
	if listed, known := s.losers[guard]; (known || guard == targets.Unguarded) && !slices.Contains(listed, reply.Code) {
		s.breaks("a refusal carries a code that the driver lists", "%s under guard %q of %s got %s %q; listed are %q",
			op.Kind, guard, op.Key, reply.Outcome, reply.Code, listed)
	}
}

// expect sends an op and checks its outcome.
func (s *suite) expect(promise string, session int, op targets.Op, want targets.Outcome) targets.Reply {
	reply := s.do(session, op)
	if reply.Outcome != want {
		s.breaks(promise, "expected %s, got %s (%s %s)", want, reply.Outcome, reply.Code, reply.Message)
	}
	return reply
}

func (s *suite) key(name string) string { return s.prefix + "-" + name }

// write makes a write of a record that no other write has.
func (s *suite) write(key string, collection targets.Collection, cond targets.Condition) targets.Op {
	s.tokens++
	return targets.Op{Kind: targets.Write, Key: key, Collection: collection, If: cond,
		Value: targets.Record{Token: fmt.Sprintf("%s-token-%d", s.prefix, s.tokens), Version: 1}}
}

func read(key string, collection targets.Collection) targets.Op {
	return targets.Op{Kind: targets.Read, Key: key, Collection: collection}
}

func remove(key string, collection targets.Collection) targets.Op {
	return targets.Op{Kind: targets.Delete, Key: key, Collection: collection}
}

func (s *suite) sequential() {
	for _, c := range targets.CheckSequential(s.key("sequential"), s.do) {
		if !c.LeftOut && !c.Kept {
			detail := strings.TrimPrefix(strings.TrimPrefix(c.Detail, c.Promise), ": ")
			s.breaks(c.Promise, "%s", cmp.Or(detail, "not kept"))
		}
	}
}

// records checks what one session reads of what it wrote, in each collection.
func (s *suite) records() {
	for _, collection := range []targets.Collection{targets.Plain, targets.Versioned} {
		key := s.key("record-" + string(collection))
		s.expect("a read of a missing key is missing", 0, read(key, collection), targets.Missing)
		s.expect("a delete of an absent key is accepted", 0, remove(key, collection), targets.OK)
		bare := s.write(key, collection, targets.Condition{})
		full := s.write(key, collection, targets.Condition{})
		full.Value.Version = 7
		full.Value.UpdatedAt = time.Date(2026, 11, 30, 12, 34, 56, 789_000_000, time.UTC)
		full.Value.ExpiresAt = full.Value.UpdatedAt.Add(1500 * time.Millisecond)
		full.Value.Body = json.RawMessage(`{"text": "é\"", "list": [1, null, true]}`)
		for _, op := range []targets.Op{bare, full, bare} {
			s.expect("an unconditional write overwrites", 0, op, targets.OK)
			got := s.expect("what is written can be read", 0, read(key, collection), targets.OK)
			if difference := differs(op.Value, got.Record); difference != "" {
				s.breaks("what is written is read back exactly", "%s", difference)
			}
		}
		s.expect("a delete is accepted", 0, remove(key, collection), targets.OK)
		s.expect("a deleted key is missing", 0, read(key, collection), targets.Missing)
	}
}

// differs compares times to the millisecond, and bodies by what their JSON means.
func differs(want, got targets.Record) string {
	switch {
	case want.Token != got.Token:
		return fmt.Sprintf("token %q became %q", want.Token, got.Token)
	case want.Version != got.Version:
		return fmt.Sprintf("version %d became %d", want.Version, got.Version)
	case !sameMillisecond(want.UpdatedAt, got.UpdatedAt):
		return fmt.Sprintf("updated_at %s became %s", want.UpdatedAt, got.UpdatedAt)
	case !sameMillisecond(want.ExpiresAt, got.ExpiresAt):
		return fmt.Sprintf("expires_at %s became %s", want.ExpiresAt, got.ExpiresAt)
	case !sameJSON(want.Body, got.Body):
		return fmt.Sprintf("body %s became %s", want.Body, got.Body)
	default:
		return ""
	}
}

func sameMillisecond(a, b time.Time) bool {
	return a.IsZero() == b.IsZero() && a.UnixMilli() == b.UnixMilli()
}

func sameJSON(a, b json.RawMessage) bool {
	if len(a) == 0 || len(b) == 0 {
		return len(a) == len(b)
	}
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && reflect.DeepEqual(x, y)
}

// visibility lets two sessions write and read in turn.
func (s *suite) visibility() {
	const promise = "two sessions see each other's writes at once"
	key, collection := s.key("visible"), targets.Plain
	for i := range 10 {
		op := s.write(key, collection, targets.Condition{})
		s.expect(promise, i%2, op, targets.OK)
		if got := s.do(1-i%2, read(key, collection)); got.Outcome != targets.OK || got.Record.Token != op.Value.Token {
			s.breaks(promise, "session %d wrote %s, session %d got %s %s", i%2, op.Value.Token, 1-i%2, got.Outcome, got.Record.Token)
		}
	}
}

func (s *suite) races() {
	for round := range raceRounds {
		if !s.race(s.key(fmt.Sprintf("race-%d", round))) {
			return
		}
	}
}

// race lets all sessions create one key at once. It tells whether the store has
// such a condition.
func (s *suite) race(key string) (supported bool) {
	const promise = "of all who create a key at once exactly one wins"
	ops := make([]targets.Op, len(s.sessions))
	for i := range ops {
		ops[i] = s.write(key, targets.Plain, targets.Condition{Guard: targets.IfAbsent})
	}
	replies := s.atOnce(ops)
	var winners []string
	for i, reply := range replies {
		switch reply.Outcome {
		case targets.Unsupported:
			return false
		case targets.OK:
			winners = append(winners, ops[i].Value.Token)
		case targets.Conflict, targets.Aborted:
		default:
			s.breaks("who does not win a race is refused or aborted", "got %s (%s %s)", reply.Outcome, reply.Code, reply.Message)
		}
	}
	if len(winners) != 1 {
		s.breaks(promise, "%d of %d won", len(winners), len(replies))
	}
	if got := s.do(0, read(key, targets.Plain)); !slices.Contains(winners, got.Record.Token) {
		s.breaks("the record of a winner is stored", "won by %q, stored is %s %q", winners, got.Outcome, got.Record.Token)
	}
	return true
}

// atOnce sends an op through each session, all at one moment, and checks what every
// reply promises.
func (s *suite) atOnce(ops []targets.Op) []targets.Reply {
	replies := make([]targets.Reply, len(s.sessions))
	start, done := make(chan struct{}), sync.WaitGroup{}
	for i, session := range s.sessions {
		done.Go(func() {
			<-start
			replies[i] = session.Do(s.ctx, ops[i])
		})
	}
	close(start)
	done.Wait()
	for i := range replies {
		s.check(ops[i], replies[i])
	}
	return replies
}

// listing keeps keys apart that differ from the prefix in a character that is a
// wildcard in SQL, and lists those of every collection.
func (s *suite) listing() {
	const promise = "list gives the keys with the prefix and no others, whatever their collection"
	if s.target.Describe().Volatile {
		return // its keys die with the process; there may be nothing to list
	}
	prefix := s.key("list_")
	collections := map[string]targets.Collection{prefix + "a": targets.Plain, prefix + "b": targets.Versioned, prefix + "c": targets.Plain}
	for _, key := range append(slices.Collect(maps.Keys(collections)), s.key("listXa"), s.key("list")) {
		s.expect("an unconditional write overwrites", 0, s.write(key, collections[key], targets.Condition{}), targets.OK)
	}
	deletes := s.list(prefix)
	var keys []string
	for _, op := range deletes {
		keys = append(keys, op.Key)
	}
	slices.Sort(keys)
	if want := slices.Sorted(maps.Keys(collections)); !slices.Equal(keys, want) {
		s.breaks(promise, "listed %q, want %q", keys, want)
		return
	}
	for _, op := range deletes {
		s.expect("what a listing gives deletes the key", 0, op, targets.OK)
		s.expect("what a listing gives deletes the key", 1, read(op.Key, collections[op.Key]), targets.Missing)
	}
	s.expect("what a listing gives deletes the key and no other", 1, read(s.key("list"), targets.Plain), targets.OK)
	if left := s.list(prefix); len(left) > 0 {
		s.breaks(promise, "%q was deleted and is listed", left[0].Key)
	}
}

func (s *suite) list(prefix string) []targets.Op {
	deletes, requests, err := s.target.List(s.ctx, prefix)
	s.holds("list works", err)
	if least := s.target.Describe().Lists; requests < least {
		s.breaks("a listing takes as many requests as the description says at least", "it took %d, want %d", requests, least)
	}
	return deletes
}

// endedContexts gives ops a context that has ended, or ends while they run. A
// session may be broken by that, so each gets its own.
func (s *suite) endedContexts() {
	ended, cancel := context.WithCancel(s.ctx)
	cancel()
	key := s.key("ended")
	create := s.write(key, targets.Plain, targets.Condition{Guard: targets.IfAbsent})
	for _, op := range []targets.Op{create, read(key, targets.Plain), remove(key, targets.Plain)} {
		reply, _ := s.once(ended, op)
		switch reply.Outcome {
		case targets.NotSent, targets.Unknown, targets.Unsupported:
		default:
			s.breaks("an op whose context has ended is not sent or unknown", "%s got %s (%s)", op.Kind, reply.Outcome, reply.Code)
		}
	}
	for i := range cancelledRounds {
		key := s.key(fmt.Sprintf("cut-%d", i))
		create := s.write(key, targets.Plain, targets.Condition{Guard: targets.IfAbsent})
		ctx, cancel := context.WithTimeout(s.ctx, time.Duration(i)*50*time.Microsecond)
		reply, answered := s.once(ctx, create)
		cancel()
		s.check(create, reply)
		switch reply.Outcome {
		case targets.OK, targets.NotSent, targets.Unknown, targets.Unsupported:
		default:
			s.breaks("an op that its context ended is never refused", "the only contender got %s (%s)", reply.Outcome, reply.Code)
		}
		stored, _ := s.once(s.ctx, read(key, targets.Plain))
		if applied := stored.Outcome == targets.OK; answered && (reply.Outcome == targets.OK && !applied || reply.Outcome == targets.NotSent && applied) {
			s.breaks("an op that its context ended tells whether it was applied", "got %s, then a read was %s", reply.Outcome, stored.Outcome)
		}
	}
}

// once sends an op through a session of its own; answered tells whether a reply
// came within bounds.
func (s *suite) once(ctx context.Context, op targets.Op) (reply targets.Reply, answered bool) {
	session, err := s.target.Open(s.ctx, -1)
	if err != nil {
		s.breaks("open gives a session", "%w", err)
		return targets.Reply{Outcome: targets.NotSent}, false
	}
	replies := make(chan targets.Reply, 1)
	go func() {
		defer session.Close()
		replies <- session.Do(ctx, op)
	}()
	timer := time.NewTimer(answerWithin)
	defer timer.Stop()
	select {
	case reply := <-replies:
		return reply, true
	case <-timer.C:
		s.breaks("an op whose context has ended is answered soon", "%s got no reply within %s", op.Kind, answerWithin)
		return targets.Reply{Outcome: targets.Unknown}, false
	}
}
