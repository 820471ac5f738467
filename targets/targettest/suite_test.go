package targettest_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"contend/targets"
	"contend/targets/targettest"
	"contend/targets/targettest/try"
)

// memory is a store that keeps every promise, except where one of its hooks is
// set. It goes by the name and the strategies of a driver that there is, whose
// losers' codes it uses.
type memory struct {
	mu      sync.Mutex
	records map[string]targets.Record
	expiry  map[string]time.Time
	expired targettest.Expired // what becomes of expired keys; "" is gone
	opened  int

	options  []targettest.Option // that the suite is given
	describe func(*targets.Description)
	prepare  func(needs targets.Needs) error
	// do stands in for correct where it is set, with mu held.
	do         func(s *memorySession, op targets.Op) targets.Reply
	answer     func(ctx context.Context, r targets.Reply) targets.Reply
	ignoresEnd bool          // of an op's context
	late       time.Duration // how long it takes to notice that end
	listed     func(prefix, key string) bool
	deleteOf   func(key string) targets.Op
	stage      stage // nil: sessions hold nothing back
	closedOnce bool  // a second Close panics, of the target and of a session
	closes     int
}

func newMemory() *memory {
	return &memory{records: map[string]targets.Record{}, expiry: map[string]time.Time{}}
}

func (m *memory) Describe() targets.Description {
	d := targets.Description{Kind: "redis", URL: "redis://127.0.0.1", Server: "memory 1",
		Strategies: map[string]string{"create": "nx", "cas": "lua", "delete": "lua", "renew": "lua"}, SentBy: "call",
		Guards: targets.AllGuards, TTL: targets.TTL{Unit: time.Millisecond}}
	if m.describe != nil {
		m.describe(&d)
	}
	return d
}

func (m *memory) Prepare(_ context.Context, needs targets.Needs) (targets.Server, error) {
	if m.prepare != nil {
		return targets.Server{}, m.prepare(needs)
	}
	return targets.Server{}, nil
}

func (m *memory) Open(context.Context, int) (targets.Session, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.opened++
	s := &memorySession{memory: m, number: m.opened - 1, records: map[string]targets.Record{}}
	if m.stage != nil {
		return stagingSession{s}, nil
	}
	return s, nil
}

func (m *memory) List(_ context.Context, prefix string) (deletes []targets.Op, requests int, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for key := range m.records {
		if m.listed != nil && !m.listed(prefix, key) || m.listed == nil && !strings.HasPrefix(key, prefix) {
			continue
		}
		op := targets.Op{Kind: targets.Delete, Key: key}
		if m.deleteOf != nil {
			op = m.deleteOf(key)
		}
		deletes = append(deletes, op)
	}
	return deletes, 1, nil
}

func (m *memory) Close() error {
	m.closes++
	m.countClose(m.closes)
	return nil
}

func (m *memory) countClose(times int) {
	if m.closedOnce && times > 1 {
		panic("closed already")
	}
}

type memorySession struct {
	memory  *memory
	number  int
	records map[string]targets.Record // for a store that keeps its data per session
	closes  int
}

func (s *memorySession) Close() error {
	s.closes++
	s.memory.countClose(s.closes)
	return nil
}

// A stage deals with a create that is held back.
type stage func(s *memorySession, create func() targets.Reply, how targets.Release, meet func()) targets.Reply

// stagingSession is one of a store that can hold requests back.
type stagingSession struct{ *memorySession }

func (s stagingSession) Stage(ctx context.Context, op targets.Op, how targets.Release, meet func()) targets.Reply {
	began := time.Now()
	r := s.memory.stage(s.memorySession, func() targets.Reply { return s.Do(ctx, op) }, how, meet)
	if r.Sent.IsZero() {
		r.Sent = time.Now()
	}
	if r.Began.IsZero() && how == targets.LastByte {
		r.Began = began
	}
	return r
}

func staging(stage stage) func(*memory) {
	return func(m *memory) {
		m.describe = func(d *targets.Description) { d.Releases = []targets.Release{targets.Gate, targets.LastByte} }
		m.stage = stage
	}
}

// rightly does nothing before the op is released.
func rightly(_ *memorySession, create func() targets.Reply, _ targets.Release, meet func()) targets.Reply {
	meet()
	return create()
}

// wrongly makes a store that deals so with one release.
func wrongly(how targets.Release, wrong func(create func() targets.Reply, meet func()) targets.Reply) func(*memory) {
	return staging(func(s *memorySession, create func() targets.Reply, asked targets.Release, meet func()) targets.Reply {
		if asked != how {
			return rightly(s, create, asked, meet)
		}
		return wrong(create, meet)
	})
}

// locksWhileHeld makes a store in which the second session waits for a request of
// another that has begun.
func locksWhileHeld(m *memory) {
	lock := make(chan struct{}, 1)
	wrongly(targets.LastByte, func(create func() targets.Reply, meet func()) targets.Reply {
		lock <- struct{}{}
		meet()
		<-lock
		return create()
	})(m)
	m.do = func(s *memorySession, op targets.Op) targets.Reply {
		if s.number == 1 {
			m.mu.Unlock()
			lock <- struct{}{}
			<-lock
			m.mu.Lock()
		}
		return s.correct(op)
	}
}

func TestSuitePassesOnAStoreThatHoldsRequestsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newMemory()
		staging(rightly)(store)
		if err := try.Suite(t.Context(), store, needs); err != nil {
			t.Error(err)
		}
		store = newMemory()
		staging(func(s *memorySession, create func() targets.Reply, how targets.Release, meet func()) targets.Reply {
			if how == targets.LastByte {
				t.Error("a last byte is held back that the target does not declare")
			}
			return rightly(s, create, how, meet)
		})(store)
		store.describe = nil
		if err := try.Suite(t.Context(), store, needs); err != nil {
			t.Error(err)
		}
	})
}

func (s *memorySession) Do(ctx context.Context, op targets.Op) targets.Reply {
	m := s.memory
	if ctx.Err() != nil && !m.ignoresEnd {
		time.Sleep(m.late)
		return targets.Reply{Outcome: targets.NotSent, Code: "cancelled"}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	do := m.do
	if do == nil {
		do = (*memorySession).correct
	}
	reply := do(s, op)
	if reply.Outcome != targets.Unsupported {
		reply.Attempts = max(reply.Attempts, 1)
	}
	if m.answer != nil {
		reply = m.answer(ctx, reply)
	}
	return reply
}

func (s *memorySession) correct(op targets.Op) targets.Reply {
	m := s.memory
	freed := m.expired != targettest.Blocked && (m.expired != targettest.Shown || op.If.Guard == targets.IfAbsent)
	if freed && m.hasExpired(op.Key) {
		delete(m.records, op.Key)
	}
	reply := perform(m.records, op)
	if (op.Kind == targets.Write || op.Kind == targets.Renew) && reply.Outcome == targets.OK {
		delete(m.expiry, op.Key)
		if op.TTL > 0 {
			m.expiry[op.Key] = time.Now().Add(op.TTL)
		}
	}
	return reply
}

func (m *memory) hasExpired(key string) bool {
	end, lives := m.expiry[key]
	return lives && !time.Now().Before(end)
}

func perform(records map[string]targets.Record, op targets.Op) targets.Reply {
	stored, exists := records[op.Key]
	switch {
	case op.Kind == targets.Read && !exists:
		return targets.Reply{Outcome: targets.Missing}
	case op.Kind == targets.Read:
		return targets.Reply{Outcome: targets.OK, Record: stored}
	case op.If.Guard == targets.IfAbsent && exists:
		return targets.Reply{Outcome: targets.Conflict, Code: "nil"}
	case op.If.Guard != targets.IfAbsent && op.If.Guard != targets.Unguarded && (!exists || !op.If.Holds(stored)):
		return targets.Reply{Outcome: targets.Conflict, Code: "0"}
	case op.Kind == targets.Delete:
		delete(records, op.Key)
	case op.Kind == targets.Write:
		records[op.Key] = op.Value
	}
	return targets.Reply{Outcome: targets.OK}
}

var needs = targets.Needs{Guards: []targets.Guard{targets.IfAbsent, targets.IfVersion}, Sessions: 4, Timeout: 10 * time.Second}

func TestSuitePassesOnACorrectStore(t *testing.T) {
	for _, expired := range []targettest.Expired{"", targettest.Gone, targettest.Shown, targettest.Blocked} {
		synctest.Test(t, func(t *testing.T) {
			store := newMemory()
			expiring(expired, expired)(store)
			if err := try.Suite(t.Context(), store, needs, store.options...); err != nil {
				t.Errorf("expired keys are %q: %v", expired, err)
			}
			if len(store.records) != 0 {
				t.Errorf("the suite left %d keys behind", len(store.records))
			}
		})
	}
}

// expiring makes a store in which expired keys are one thing, of which the suite is
// told another.
func expiring(are, told targettest.Expired) func(*memory) {
	return func(m *memory) {
		m.expired = are
		if told != "" {
			m.options = append(m.options, targettest.TTL(told))
		}
	}
}

// A store may grant more than it is asked for.
func TestSuiteAllowsALongerTimeToLive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newMemory()
		store.do = func(s *memorySession, op targets.Op) targets.Reply {
			op.TTL *= 2
			reply := s.correct(op)
			reply.Granted = op.TTL
			return reply
		}
		if err := try.Suite(t.Context(), store, needs, targettest.TTL(targettest.Gone)); err != nil {
			t.Error(err)
		}
	})
}

// unless makes a store that does as it likes with conditional ops of a kind.
func unless(kind targets.Kind, do func(s *memorySession, op targets.Op) targets.Reply) func(s *memorySession, op targets.Op) targets.Reply {
	return func(s *memorySession, op targets.Op) targets.Reply {
		if op.Kind == kind && op.If.Guard != targets.Unguarded {
			return do(s, op)
		}
		return s.correct(op)
	}
}

// withoutTTL makes a store that has no time to live.
func withoutTTL(m *memory) {
	m.describe = func(d *targets.Description) { d.TTL = targets.TTL{} }
	m.do = func(s *memorySession, op targets.Op) targets.Reply {
		if op.TTL > 0 {
			return targets.Reply{Outcome: targets.Unsupported}
		}
		return s.correct(op)
	}
}

func TestSuitePassesOnAStoreWithoutATimeToLive(t *testing.T) {
	store := newMemory()
	withoutTTL(store)
	if err := try.Suite(t.Context(), store, needs); err != nil {
		t.Error(err)
	}
}

// withoutTimes makes a store that compares no times finer than finest, or none at
// all, 0.
func withoutTimes(finest time.Duration) func(*memory) {
	return func(m *memory) {
		m.describe = func(d *targets.Description) {
			if d.Finest = finest; finest == 0 {
				d.Guards = []targets.Guard{targets.IfAbsent, targets.IfVersion}
			}
		}
		m.do = func(s *memorySession, op targets.Op) targets.Reply {
			if op.If.Guard == targets.IfUnmodified && (finest == 0 || op.If.UpdatedAt.Nanosecond()%int(finest) != 0) {
				return targets.Reply{Outcome: targets.Unsupported}
			}
			return s.correct(op)
		}
	}
}

func TestSuitePassesOnAStoreThatComparesFewTimes(t *testing.T) {
	for _, finest := range []time.Duration{0, time.Millisecond, time.Second} {
		store := newMemory()
		withoutTimes(finest)(store)
		if err := try.Suite(t.Context(), store, needs); err != nil {
			t.Errorf("to %s: %v", finest, err)
		}
	}
}

// onTime makes a store that does as it likes with writes on condition of a time.
func onTime(do func(s *memorySession, op targets.Op) targets.Reply) func(*memory) {
	return func(m *memory) {
		m.do = func(s *memorySession, op targets.Op) targets.Reply {
			if op.If.Guard == targets.IfUnmodified {
				return do(s, op)
			}
			return s.correct(op)
		}
	}
}

func TestSuiteLeavesOutWhatTheStoreLacks(t *testing.T) {
	store := newMemory()
	store.do = func(s *memorySession, op targets.Op) targets.Reply {
		if op.If.Guard == targets.IfVersion {
			return targets.Reply{Outcome: targets.Unsupported}
		}
		return s.correct(op)
	}
	if err := try.Suite(t.Context(), store, needs); err != nil {
		t.Error(err)
	}
}

// withReply makes a store whose every reply is changed.
func withReply(change func(r *targets.Reply)) func(*memory) {
	return func(m *memory) {
		m.answer = func(_ context.Context, r targets.Reply) targets.Reply {
			change(&r)
			return r
		}
	}
}

// withRecord makes a store that changes each record that it is given.
func withRecord(change func(r *targets.Record)) func(*memory) {
	return func(m *memory) {
		m.do = func(s *memorySession, op targets.Op) targets.Reply {
			change(&op.Value)
			return s.correct(op)
		}
	}
}

// Stores that are wrong on purpose, each with the promise that it breaks.
var wrong = []struct {
	name, promise string
	plant         func(m *memory)
}{
	{"ignores conditions", "a second create loses", func(m *memory) {
		m.do = func(s *memorySession, op targets.Op) targets.Reply {
			op.If = targets.Condition{}
			return s.correct(op)
		}
	}},
	{"ignores versions", "a write on a stale version loses", func(m *memory) {
		m.do = func(s *memorySession, op targets.Op) targets.Reply {
			if op.If.Guard == targets.IfVersion {
				op.If = targets.Condition{}
			}
			return s.correct(op)
		}
	}},
	{"ignores times", "a write on another time than the record's loses", onTime(func(s *memorySession, op targets.Op) targets.Reply {
		op.If = targets.Condition{}
		return s.correct(op)
	})},
	{"cuts times to the second", "a write on another time than the record's loses", onTime(func(s *memorySession, op targets.Op) targets.Reply {
		op.If.UpdatedAt = op.If.UpdatedAt.Truncate(time.Second)
		return s.correct(op)
	})},
	{"takes an absent record for one of any time", "a write on the time of an absent record loses", onTime(func(s *memorySession, op targets.Op) targets.Reply {
		if _, exists := s.memory.records[op.Key]; !exists {
			op.If = targets.Condition{}
		}
		return s.correct(op)
	})},
	{"compares times as texts", "a write on the record's time wins", onTime(func(s *memorySession, op targets.Op) targets.Reply {
		if s.memory.records[op.Key].UpdatedAt.String() != op.If.UpdatedAt.String() {
			return targets.Reply{Outcome: targets.Conflict, Code: "0"}
		}
		return s.correct(op)
	})},
	{"moves a time that was left the same", "a write on the record's time wins, also where a write before it left the same", onTime(func(s *memorySession, op targets.Op) targets.Reply {
		reply := s.correct(op)
		if stored := s.memory.records[op.Key]; reply.Outcome == targets.OK && stored.UpdatedAt.Equal(op.If.UpdatedAt) {
			stored.UpdatedAt = stored.UpdatedAt.Add(time.Nanosecond)
			s.memory.records[op.Key] = stored
		}
		return reply
	})},
	{"stores what it refuses on a time", "a write on another time than the record's leaves it alone", onTime(func(s *memorySession, op targets.Op) targets.Reply {
		reply := s.correct(op)
		if _, exists := s.memory.records[op.Key]; exists {
			s.memory.records[op.Key] = op.Value
		}
		return reply
	})},
	{"acknowledges on a time, and does not store", "a write on the record's time is stored", onTime(func(s *memorySession, op targets.Op) targets.Reply {
		was := s.memory.records[op.Key]
		reply := s.correct(op)
		if reply.Outcome == targets.OK {
			s.memory.records[op.Key] = was
		}
		return reply
	})},
	{"compares a time, then sets", "of all who write at once on a time, each leaving another, exactly one wins", onTime(func(s *memorySession, op targets.Op) targets.Reply {
		if s.number > 1 {
			op.If = targets.Condition{}
		}
		return s.correct(op)
	})},
	{"compares no times after all", "a condition on a time that the target cannot compare is unsupported, and nothing is asked of the store", func(m *memory) {
		withoutTimes(0)(m)
		m.do = nil
	}},
	{"cuts a finer time without a word", "a condition on a finer time than the target keeps is unsupported, and nothing is asked of the store", func(m *memory) {
		withoutTimes(time.Millisecond)(m)
		m.do = nil
	}},
	// Sessions 0 and 1, through which the sequential checks go, are guarded: only
	// a race of more finds it out, and whatever its timing two others win.
	{"checks, then sets", "of all who create a key at once exactly one wins", func(m *memory) {
		m.do = func(s *memorySession, op targets.Op) targets.Reply {
			if s.number > 1 {
				op.If = targets.Condition{}
			}
			return s.correct(op)
		}
	}},
	{"lets nobody win a race", "of all who create a key at once exactly one wins", func(m *memory) {
		m.do = func(s *memorySession, op targets.Op) targets.Reply {
			if strings.Contains(op.Key, "race") && op.If.Guard == targets.IfAbsent {
				return targets.Reply{Outcome: targets.Conflict, Code: "nil"}
			}
			return s.correct(op)
		}
	}},
	{"stores a loser's record", "the record of a winner is stored", func(m *memory) {
		m.do = func(s *memorySession, op targets.Op) targets.Reply {
			reply := s.correct(op)
			if strings.Contains(op.Key, "race") && reply.Outcome == targets.Conflict {
				s.memory.records[op.Key] = op.Value
			}
			return reply
		}
	}},
	{"throttles losers", "who does not win a race is refused or aborted", func(m *memory) {
		m.do = func(s *memorySession, op targets.Op) targets.Reply {
			reply := s.correct(op)
			if strings.Contains(op.Key, "race") && reply.Outcome == targets.Conflict {
				reply.Outcome = targets.Throttled
			}
			return reply
		}
	}},
	{"keeps data per session", "two sessions see each other's writes at once", func(m *memory) {
		m.do = func(s *memorySession, op targets.Op) targets.Reply { return perform(s.records, op) }
	}},
	{"loses writes", "what is written can be read", func(m *memory) {
		m.do = func(s *memorySession, op targets.Op) targets.Reply {
			if op.Kind == targets.Write && op.If.Guard == targets.Unguarded {
				return targets.Reply{Outcome: targets.OK}
			}
			return s.correct(op)
		}
	}},
	{"refuses to overwrite", "an unconditional write overwrites", func(m *memory) {
		m.do = func(s *memorySession, op targets.Op) targets.Reply {
			if op.Kind == targets.Write && op.If.Guard == targets.Unguarded {
				op.If.Guard = targets.IfAbsent
			}
			return s.correct(op)
		}
	}},
	{"reads a stale record", "two sessions see each other's writes at once", func(m *memory) {
		before := map[string]targets.Record{}
		m.do = func(s *memorySession, op targets.Op) targets.Reply {
			if old, exists := before[op.Key]; op.Kind == targets.Read && exists {
				return targets.Reply{Outcome: targets.OK, Record: old}
			}
			if stored, exists := s.memory.records[op.Key]; op.Kind == targets.Write && exists {
				before[op.Key] = stored
			}
			return s.correct(op)
		}
	}},
	{"reads a missing key as an empty record", "a read of a missing key is missing", withReply(func(r *targets.Reply) {
		if r.Outcome == targets.Missing {
			r.Outcome = targets.OK
		}
	})},
	{"cannot delete an absent key", "a delete of an absent key is accepted", func(m *memory) {
		m.do = func(s *memorySession, op targets.Op) targets.Reply {
			if _, exists := s.memory.records[op.Key]; op.Kind == targets.Delete && !exists {
				return targets.Reply{Outcome: targets.Missing}
			}
			return s.correct(op)
		}
	}},
	{"does not delete", "a deleted key is missing", func(m *memory) {
		m.do = func(s *memorySession, op targets.Op) targets.Reply {
			if op.Kind == targets.Delete {
				return targets.Reply{Outcome: targets.OK}
			}
			return s.correct(op)
		}
	}},
	{"drops the body", "what is written is read back exactly", withRecord(func(r *targets.Record) { r.Body = nil })},
	{"has one version only", "what is written is read back exactly", withRecord(func(r *targets.Record) { r.Version = min(r.Version, 1) })},
	{"keeps whole seconds", "what is written is read back exactly", withRecord(func(r *targets.Record) { r.UpdatedAt = r.UpdatedAt.Truncate(time.Second) })},
	{"forgets the expiry", "what is written is read back exactly", withRecord(func(r *targets.Record) { r.ExpiresAt = time.Time{} })},
	{"sends twice", "a request goes out once", withReply(func(r *targets.Reply) { r.Attempts = 2 })},
	{"has a code of its own for losers", "a refusal carries a code that the driver lists", withReply(func(r *targets.Reply) {
		if r.Outcome == targets.Conflict {
			r.Code = "EXISTS"
		}
	})},
	{"refuses without a condition", "a refusal carries a code that the driver lists", withReply(func(r *targets.Reply) {
		if r.Outcome == targets.Missing {
			r.Outcome, r.Code = targets.Conflict, "nil"
		}
	})},
	{"acts when the context has ended", "an op whose context has ended is not sent or unknown", func(m *memory) { m.ignoresEnd = true }},
	{"refuses when the context ends", "an op that its context ended is never refused", func(m *memory) {
		m.ignoresEnd = true
		m.answer = func(ctx context.Context, r targets.Reply) targets.Reply {
			if _, bounded := ctx.Deadline(); bounded {
				r.Outcome, r.Code = targets.Conflict, "nil"
			}
			return r
		}
	}},
	{"applies what it says was not sent", "an op that its context ended tells whether it was applied", func(m *memory) {
		m.ignoresEnd = true
		m.answer = func(ctx context.Context, r targets.Reply) targets.Reply {
			if _, bounded := ctx.Deadline(); bounded {
				r.Outcome = targets.NotSent
			}
			return r
		}
	}},
	{"shows the password", "the URL is told with its secrets masked", func(m *memory) {
		m.describe = func(d *targets.Description) { d.URL = "redis://user:secret@127.0.0.1" }
	}},
	{"has an unlisted strategy", "the driver lists the chosen strategies", func(m *memory) {
		m.describe = func(d *targets.Description) { d.Strategies["create"] = "hope" }
	}},
	{"prepares once only", "prepare can be repeated", func(m *memory) {
		prepared := false
		m.prepare = func(targets.Needs) error {
			if prepared {
				return context.Canceled
			}
			prepared = true
			return nil
		}
	}},
	{"lists what does not begin with the prefix", "list gives the keys with the prefix and no others, whatever their collection", func(m *memory) {
		m.listed = func(string, string) bool { return true }
	}},
	{"lists by a wildcard", "list gives the keys with the prefix and no others, whatever their collection", func(m *memory) {
		m.listed = func(prefix, key string) bool {
			prefix = strings.TrimRight(prefix, "_")
			return strings.HasPrefix(key, prefix) && len(key) > len(prefix)
		}
	}},
	{"lists nothing", "list gives the keys with the prefix and no others, whatever their collection", func(m *memory) {
		m.listed = func(string, string) bool { return false }
	}},
	{"leaves a key out", "list gives the keys with the prefix and no others, whatever their collection", func(m *memory) {
		m.listed = func(prefix, key string) bool { return strings.HasPrefix(key, prefix) && !strings.HasSuffix(key, "b") }
	}},
	{"gives deletes of other keys", "what a listing gives deletes the key", func(m *memory) {
		m.deleteOf = func(key string) targets.Op { return targets.Op{Kind: targets.Read, Key: key} }
	}},
	{"lists in fewer requests than it says", "a listing takes as many requests as the description says at least", func(m *memory) {
		m.describe = func(d *targets.Description) { d.Lists = 2 }
	}},
	{"answers late when the context has ended", "an op whose context has ended is answered soon", func(m *memory) { m.late = time.Minute }},
	{"cannot be closed twice", "a target can be closed twice", func(m *memory) { m.closedOnce = true }},
	{"has sessions that cannot be closed twice", "a session can be closed twice", func(m *memory) { m.closedOnce = true }},
	{"takes no time to live after all", "a write with a time to live is accepted", func(m *memory) {
		withoutTTL(m)
		m.describe = nil
	}},
	{"deletes whatever the condition", "a delete or a renewal on condition of another record is refused", func(m *memory) {
		m.do = unless(targets.Delete, func(s *memorySession, op targets.Op) targets.Reply {
			op.If = targets.Condition{}
			return s.correct(op)
		})
	}},
	{"renews whatever the condition", "a delete or a renewal on condition of another record is refused", func(m *memory) {
		m.do = unless(targets.Renew, func(s *memorySession, op targets.Op) targets.Reply {
			op.If = targets.Condition{}
			return s.correct(op)
		})
	}},
	{"deletes what it refuses to delete", "a refused delete or renewal leaves the record alone", func(m *memory) {
		m.do = unless(targets.Delete, func(s *memorySession, op targets.Op) targets.Reply {
			reply := s.correct(op)
			delete(m.records, op.Key)
			return reply
		})
	}},
	{"acknowledges a delete and keeps the record", "an accepted delete removes the record, and a renewal leaves it", func(m *memory) {
		m.do = unless(targets.Delete, func(s *memorySession, op targets.Op) targets.Reply {
			op.Kind = targets.Renew
			return s.correct(op)
		})
	}},
	{"renews what is not there", "a delete or a renewal of what is not there is refused", func(m *memory) {
		m.do = unless(targets.Renew, func(s *memorySession, op targets.Op) targets.Reply {
			if _, there := m.records[op.Key]; !there {
				return targets.Reply{Outcome: targets.OK}
			}
			return s.correct(op)
		})
	}},
	{"forgets a renewal", "a renewed key outlives the time to live that it was written with", func(m *memory) {
		m.options = []targettest.Option{targettest.TTL(targettest.Gone)}
		m.do = unless(targets.Renew, func(s *memorySession, op targets.Op) targets.Reply {
			op.Kind = targets.Read
			if reply := s.correct(op); reply.Outcome != targets.OK || !op.If.Holds(reply.Record) {
				return targets.Reply{Outcome: targets.Conflict, Code: "0"}
			}
			return targets.Reply{Outcome: targets.OK}
		})
	}},
	{"deletes for several at once", "of all who delete one record at once exactly one is accepted", func(m *memory) {
		deleted := map[string]bool{}
		m.do = unless(targets.Delete, func(s *memorySession, op targets.Op) targets.Reply {
			reply := s.correct(op)
			if strings.HasSuffix(op.Key, "owned-race") {
				if reply.Outcome == targets.OK {
					deleted[op.If.Token] = true
				} else if deleted[op.If.Token] {
					reply = targets.Reply{Outcome: targets.OK}
				}
			}
			return reply
		})
	}},
	{"drops the condition of a delete that it has not", "a delete or a renewal on a condition that the target has not is unsupported, and nothing is asked of the store", func(m *memory) {
		m.describe = func(d *targets.Description) { delete(d.Strategies, "delete") }
		m.do = unless(targets.Delete, func(s *memorySession, op targets.Op) targets.Reply {
			op.If = targets.Condition{}
			return s.correct(op)
		})
	}},
	{"describes itself anew when it is prepared", "a description stays as it is", func(m *memory) {
		m.prepare = func(targets.Needs) error {
			m.describe = func(d *targets.Description) { d.Server = "memory 2" }
			return nil
		}
	}},
	{"has no time to live where one is needed", "a target has a time to live", func(m *memory) {
		withoutTTL(m)
		m.options = []targettest.Option{targettest.TTL(targettest.Gone)}
	}},
	{"drops the time to live that it has not", "a time to live that the target has not is unsupported, and nothing is asked of the store", func(m *memory) {
		withoutTTL(m)
		m.do = nil
	}},
	{"lets creates have what lives", "a key refuses creates until its time to live ends", func(m *memory) {
		m.do = func(s *memorySession, op targets.Op) targets.Reply {
			if _, lives := m.expiry[op.Key]; lives && op.If.Guard == targets.IfAbsent {
				op.If = targets.Condition{}
			}
			return s.correct(op)
		}
	}},
	{"hides what lives", "a key is read until its time to live ends", func(m *memory) {
		m.do = func(s *memorySession, op targets.Op) targets.Reply {
			if _, lives := m.expiry[op.Key]; lives && op.Kind == targets.Read {
				return targets.Reply{Outcome: targets.Missing}
			}
			return s.correct(op)
		}
	}},
	{"grants a thousandth", "the time to live that is told is not shorter than was asked for", withReply(func(r *targets.Reply) {
		r.Granted = time.Hour / 1000
	})},
	{"expires at half the time", "a key lives for its whole time to live", func(m *memory) {
		expiring(targettest.Gone, targettest.Gone)(m)
		m.do = func(s *memorySession, op targets.Op) targets.Reply {
			op.TTL /= 2
			return s.correct(op)
		}
	}},
	{"executes before the last byte", "a create that is held back has no effect", wrongly(targets.LastByte, func(create func() targets.Reply, meet func()) targets.Reply {
		r := create()
		meet()
		return r
	})},
	{"executes at the gate what is only prepared", "a key whose create is held back can be created", wrongly(targets.Gate, func(create func() targets.Reply, meet func()) targets.Reply {
		r := create()
		meet()
		return r
	})},
	{"answers before the last byte", "a staged op waits to be released", wrongly(targets.LastByte, func(create func() targets.Reply, _ func()) targets.Reply {
		return create()
	})},
	{"answers before the last byte, and says so", "a store waits for the last byte of a request", wrongly(targets.LastByte, func(create func() targets.Reply, meet func()) targets.Reply {
		meet()
		r := create()
		r.Early = true
		return r
	})},
	{"locks while a request is held back", "nobody waits for a create that is held back", locksWhileHeld},
	{"decides when it has the headers", "a staged create is decided on when it is released", wrongly(targets.LastByte, func(create func() targets.Reply, meet func()) targets.Reply {
		meet()
		create()
		return targets.Reply{Outcome: targets.OK}
	})},
	{"sends before the gate", "before the gate nothing is sent", wrongly(targets.Gate, func(create func() targets.Reply, meet func()) targets.Reply {
		began := time.Now()
		meet()
		r := create()
		r.Began = began
		return r
	})},
	{"says that it began at the last byte", "what is held back began with its first byte", wrongly(targets.LastByte, func(create func() targets.Reply, meet func()) targets.Reply {
		meet()
		r := create()
		r.Began = time.Now()
		return r
	})},
	{"counts as sent by its first byte", "what is held back counts as sent by its last byte", wrongly(targets.LastByte, func(create func() targets.Reply, meet func()) targets.Reply {
		began := time.Now()
		meet()
		r := create()
		r.Sent = began
		return r
	})},
	{"promises to hold back and cannot", "who can hold requests back at their last byte stages them", func(m *memory) {
		staging(nil)(m)
	}},
	{"never expires", "an expired key accepts a create", expiring(targettest.Blocked, targettest.Gone)},
	{"shows what has expired", "an expired key is not read", expiring(targettest.Shown, targettest.Gone)},
	{"hides what has expired", "an expired key is read until it is taken over", expiring(targettest.Gone, targettest.Shown)},
	{"cannot be taken over", "an expired key accepts a create", expiring(targettest.Blocked, targettest.Shown)},
	{"sweeps at once", "an expired key refuses creates", expiring(targettest.Gone, targettest.Blocked)},
	{"can be taken over", "an expired key refuses creates", expiring(targettest.Shown, targettest.Blocked)},
	{"blocks, but hides", "an expired key is read", func(m *memory) {
		expiring(targettest.Blocked, targettest.Blocked)(m)
		m.do = func(s *memorySession, op targets.Op) targets.Reply {
			if op.Kind == targets.Read && m.hasExpired(op.Key) {
				return targets.Reply{Outcome: targets.Missing}
			}
			return s.correct(op)
		}
	}},
}

func TestSuiteFailsOnWrongStores(t *testing.T) {
	for _, w := range wrong {
		t.Run(w.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := newMemory()
				w.plant(store)
				err := try.Suite(t.Context(), store, needs, store.options...)
				time.Sleep(2 * store.late) // until what is late has come
				if err == nil {
					t.Fatal("the suite passes")
				}
				if !strings.Contains("\n"+err.Error(), "\n"+w.promise+": ") {
					t.Errorf("the suite does not name the broken promise %q, but\n%v", w.promise, err)
				}
			})
		})
	}
}

func TestSuiteTellsWhyPrepareFailed(t *testing.T) {
	store := newMemory()
	store.prepare = func(targets.Needs) error { return context.DeadlineExceeded }
	if err := try.Suite(t.Context(), store, needs); err == nil || !strings.Contains(err.Error(), context.DeadlineExceeded.Error()) {
		t.Errorf("got %v", err)
	}
}
