package fault_test

import (
	"context"
	"testing"

	"contend/targets"
	"contend/targets/fault"
)

// store is a session on a store with codes of its own, that applies what it is asked.
type store struct{ held map[string]targets.Record }

func (s *store) Close() error { return nil }

func (s *store) Do(_ context.Context, op targets.Op) targets.Reply {
	held, there := s.held[op.Key]
	switch {
	case op.Kind == targets.Read && !there:
		return targets.Reply{Outcome: targets.Missing}
	case op.Kind == targets.Read:
		return targets.Reply{Outcome: targets.OK, Record: held}
	case op.If.Guard == targets.IfAbsent && there:
		return targets.Reply{Outcome: targets.Conflict, Code: "there"}
	case op.If.Guard == targets.IfVersion && !op.If.Holds(held):
		return targets.Reply{Outcome: targets.Conflict, Code: "old"}
	case op.Kind == targets.Delete:
		delete(s.held, op.Key)
	default:
		s.held[op.Key] = op.Value
	}
	return targets.Reply{Outcome: targets.OK}
}

var replies = fault.Replies{
	Exists: targets.Reply{Outcome: targets.Conflict, Code: "there"}, Stale: targets.Reply{Outcome: targets.Conflict, Code: "old"},
	Missing: targets.Reply{Outcome: targets.Missing, Code: "none"}, Read: targets.Reply{Outcome: targets.OK, Code: "read"},
	Failed: targets.Reply{Outcome: targets.Unknown, Code: "failed"}, Throttled: targets.Reply{Outcome: targets.Throttled, Code: "slow"},
	Unmapped: targets.Reply{Outcome: targets.Unmapped, Code: "odd"},
}

// Faults strike any store, and answer in its own codes.
func TestFaultsStrikeAnyStore(t *testing.T) {
	create := func(token string) targets.Op {
		return targets.Op{Kind: targets.Write, Key: "k", If: targets.Condition{Guard: targets.IfAbsent}, Value: targets.Record{Token: token}}
	}
	type result struct{ first, second, stored string }
	for name, want := range map[string]result{
		"":                  {"ok", "conflict there", "a"},
		"two-winners":       {"ok", "ok", "b"},
		"loser-stored":      {"ok", "conflict there", "b"},
		"no-winner":         {"conflict there", "conflict there", ""},
		"condition-ignored": {"ok", "ok", "b"},
		"error-after":       {"unknown failed", "conflict there", "a"},
		"error-before":      {"unknown failed", "unknown failed", ""},
		"throttle":          {"throttled slow", "throttled slow", ""},
		"unmapped":          {"ok", "unmapped odd", "a"},
		"version-jump":      {"ok", "conflict there", "a"},
		"foreign-writer":    {"ok", "conflict there", "somebody-else"},
		"gap=1ms":           {"ok", "conflict there", "a"},
		"lost-write":        {"ok", "conflict there", "a"},
	} {
		f, err := fault.Parse(name, replies)
		if err != nil {
			t.Fatal(err)
		}
		inner := &store{map[string]targets.Record{}}
		told := func(r targets.Reply) string {
			if r.Code == "" {
				return string(r.Outcome)
			}
			return string(r.Outcome) + " " + r.Code
		}
		got := result{told(f.Wrap(inner, 0).Do(t.Context(), create("a"))), told(f.Wrap(inner, 1).Do(t.Context(), create("b"))), inner.held["k"].Token}
		if got != want {
			t.Errorf("%q: got %+v, want %+v", name, got, want)
		}
		if name == "lost-write" {
			if read := f.Wrap(inner, -1).Do(t.Context(), targets.Op{Kind: targets.Read, Key: "k"}); read.Outcome != targets.Missing {
				t.Errorf("a lost write is read: %+v", read)
			}
		}
	}
	for _, wrong := range []string{"gap=soon", "stale-read=0", "throttle=2"} {
		if _, err := fault.Parse(wrong, replies); err == nil {
			t.Errorf("the fault %q is taken", wrong)
		}
	}
}

// A stale read is answered as the store answers, with the state before.
func TestStaleReads(t *testing.T) {
	f, err := fault.Parse("stale-read=1", replies)
	if err != nil {
		t.Fatal(err)
	}
	inner := &store{map[string]targets.Record{}}
	runner, contender := f.Wrap(inner, -1), f.Wrap(inner, 0)
	read := targets.Op{Kind: targets.Read, Key: "k"}
	contender.Do(t.Context(), targets.Op{Kind: targets.Write, Key: "k", If: targets.Condition{Guard: targets.IfAbsent}, Value: targets.Record{Token: "new"}})
	if got := runner.Do(t.Context(), read); got.Code != "none" {
		t.Errorf("the first read after a create: %+v", got)
	}
	if got := runner.Do(t.Context(), read); got.Record.Token != "new" {
		t.Errorf("the second: %+v", got)
	}
	runner.Do(t.Context(), targets.Op{Kind: targets.Write, Key: "s", Value: targets.Record{Token: "seed"}})
	contender.Do(t.Context(), targets.Op{Kind: targets.Write, Key: "s", If: targets.Condition{Guard: targets.IfVersion}, Value: targets.Record{Token: "new", Version: 1}})
	if got := runner.Do(t.Context(), targets.Op{Kind: targets.Read, Key: "s"}); got.Code != "read" || got.Record.Token != "seed" {
		t.Errorf("the first read of a seeded key: %+v", got)
	}
}
