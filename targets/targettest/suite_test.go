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
)

// memory is a store that keeps every promise, except where one of its hooks is
// set. It goes by the name and the strategies of a driver that there is, whose
// losers' codes it uses.
type memory struct {
	mu      sync.Mutex
	records map[string]targets.Record
	opened  int

	describe func(*targets.Description)
	prepare  func() error
	// do stands in for correct where it is set, with mu held.
	do         func(s *memorySession, op targets.Op) targets.Reply
	answer     func(ctx context.Context, r targets.Reply) targets.Reply
	ignoresEnd bool          // of an op's context
	late       time.Duration // how long it takes to notice that end
	selected   func(which targets.Selection, key string) bool
	miscounts  int
	closedOnce bool // a second Close panics, of the target and of a session
	closes     int
}

func newMemory() *memory { return &memory{records: map[string]targets.Record{}} }

func (m *memory) Describe() targets.Description {
	d := targets.Description{Kind: "redis", URL: "redis://127.0.0.1", Server: "memory 1",
		Strategies: map[string]string{"create": "nx", "cas": "lua"}, SentBy: "call"}
	if m.describe != nil {
		m.describe(&d)
	}
	return d
}

func (m *memory) Prepare(context.Context, targets.Needs) error {
	if m.prepare != nil {
		return m.prepare()
	}
	return nil
}

func (m *memory) Open(context.Context, int) (targets.Session, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.opened++
	return &memorySession{memory: m, number: m.opened - 1, records: map[string]targets.Record{}}, nil
}

func (m *memory) Clean(_ context.Context, which targets.Selection) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	before := len(m.records)
	for key := range m.records {
		if m.selected != nil && m.selected(which, key) || m.selected == nil && strings.HasPrefix(key, which.Prefix) && which.Selected(key) {
			delete(m.records, key)
		}
	}
	return before - len(m.records) + m.miscounts, nil
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
	reply.Attempts = max(reply.Attempts, 1)
	if m.answer != nil {
		reply = m.answer(ctx, reply)
	}
	return reply
}

func (s *memorySession) correct(op targets.Op) targets.Reply {
	return perform(s.memory.records, op)
}

func perform(records map[string]targets.Record, op targets.Op) targets.Reply {
	stored, exists := records[op.Key]
	switch {
	case op.Kind == targets.Read && !exists:
		return targets.Reply{Outcome: targets.Missing}
	case op.Kind == targets.Read:
		return targets.Reply{Outcome: targets.OK, Record: stored}
	case op.Kind == targets.Delete:
		delete(records, op.Key)
		return targets.Reply{Outcome: targets.OK}
	case op.If.Guard == targets.IfAbsent && exists:
		return targets.Reply{Outcome: targets.Conflict, Code: "nil"}
	case op.If.Guard == targets.IfVersion && (!exists || stored.Version != op.If.Counter):
		return targets.Reply{Outcome: targets.Conflict, Code: "0"}
	}
	records[op.Key] = op.Value
	return targets.Reply{Outcome: targets.OK}
}

var needs = targets.Needs{Guards: []targets.Guard{targets.IfAbsent, targets.IfVersion}, Sessions: 4, Timeout: 10 * time.Second}

func TestSuitePassesOnACorrectStore(t *testing.T) {
	store := newMemory()
	if err := targettest.Suite(t.Context(), store, needs); err != nil {
		t.Error(err)
	}
	if len(store.records) != 0 {
		t.Errorf("the suite left %d keys behind", len(store.records))
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
	if err := targettest.Suite(t.Context(), store, needs); err != nil {
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
	{"does not tell the server", "the server is told after prepare", func(m *memory) {
		m.describe = func(d *targets.Description) { d.Server = "" }
	}},
	{"shows the password", "the URL is told with its secrets masked", func(m *memory) {
		m.describe = func(d *targets.Description) { d.URL = "redis://user:secret@127.0.0.1" }
	}},
	{"has an unlisted strategy", "the driver lists the chosen strategies", func(m *memory) {
		m.describe = func(d *targets.Description) { d.Strategies["create"] = "hope" }
	}},
	{"prepares once only", "prepare can be repeated", func(m *memory) {
		prepared := false
		m.prepare = func() error {
			if prepared {
				return context.Canceled
			}
			prepared = true
			return nil
		}
	}},
	{"cleans what is not selected", "clean removes the selected keys and no others", func(m *memory) {
		m.selected = func(which targets.Selection, key string) bool { return strings.HasPrefix(key, which.Prefix) }
	}},
	{"cleans by a wildcard", "clean removes the selected keys and no others", func(m *memory) {
		m.selected = func(which targets.Selection, key string) bool {
			prefix := strings.TrimRight(which.Prefix, "_")
			return strings.HasPrefix(key, prefix) && len(key) > len(prefix) && which.Selected(key)
		}
	}},
	{"cleans nothing", "clean removes the selected keys and no others", func(m *memory) {
		m.selected = func(targets.Selection, string) bool { return false }
	}},
	{"miscounts what it cleans", "clean tells how many keys it removed", func(m *memory) { m.miscounts = 1 }},
	{"answers late when the context has ended", "an op whose context has ended is answered soon", func(m *memory) { m.late = time.Minute }},
	{"cannot be closed twice", "a target can be closed twice", func(m *memory) { m.closedOnce = true }},
	{"has sessions that cannot be closed twice", "a session can be closed twice", func(m *memory) { m.closedOnce = true }},
}

func TestSuiteFailsOnWrongStores(t *testing.T) {
	for _, w := range wrong {
		t.Run(w.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := newMemory()
				w.plant(store)
				err := targettest.Suite(t.Context(), store, needs)
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
	store.prepare = func() error { return context.DeadlineExceeded }
	if err := targettest.Suite(t.Context(), store, needs); err == nil || !strings.Contains(err.Error(), context.DeadlineExceeded.Error()) {
		t.Errorf("got %v", err)
	}
}
