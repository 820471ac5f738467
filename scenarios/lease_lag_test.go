package scenarios

import (
	"encoding/json"
	"testing"
	"time"

	"contend/runner"
	"contend/targets"
)

// leaseRound makes up a round of leases by time to live, of requests in the order of
// their contenders.
type leaseRound struct{ *runner.Round }

func (r leaseRound) add(who int, kind targets.Kind, call, ret time.Duration, period int, reply targets.Reply) leaseRound {
	op := targets.Op{Kind: kind, Key: r.Key, Collection: targets.Plain}
	if kind == targets.Write {
		op.If, op.TTL = targets.Condition{Guard: targets.IfAbsent}, time.Second
		op.Value = targets.Record{Token: runner.Token(r.Key, who, len(r.Ops)), Version: int64(period)}
		op.Value.Body, _ = json.Marshal(leaseBody{Period: period})
	}
	reply.Attempts = 1
	r.Ops = append(r.Ops, runner.Exchange{Contender: who, Op: op, Reply: reply, Call: call, Began: call, Sent: call, Guard: call, Return: ret})
	return r
}

func (r leaseRound) write(who, period int, call, ret time.Duration, o targets.Outcome) leaseRound {
	return r.add(who, targets.Write, call, ret, period, targets.Reply{Outcome: o})
}

// read shows what the write of that number among the requests stored; -1: nothing.
func (r leaseRound) read(who int, call time.Duration, of int) leaseRound {
	reply := targets.Reply{Outcome: targets.Missing}
	if of >= 0 {
		reply = targets.Reply{Outcome: targets.OK, Record: r.Ops[of].Op.Value}
	}
	return r.add(who, targets.Read, call, call+ms, 0, reply)
}

// By time to live a slow reply says little of when a term began, and a reader may lag:
// neither is a second holder.
func TestLeaseByTTLAndSlowReplies(t *testing.T) {
	ok, no := targets.OK, targets.Conflict
	s := &Lease{Periods: 3, Expiry: byTTL, Term: time.Second, Tolerance: time.Second}
	begin := func() leaseRound {
		return leaseRound{&runner.Round{Number: 1, Key: chainKey, Collection: targets.Plain}}
	}
	for _, c := range []struct {
		name  string
		round leaseRound
		kind  string
		doubt bool
		stale bool
	}{
		{"a second one is accepted inside the term", begin().write(0, 1, 0, 100*ms, ok).write(1, 1, 50*ms, 60*ms, no).write(1, 1, 500*ms, 510*ms, ok), "early-takeover", false, false},
		{"a second one is accepted beside the first", begin().write(0, 1, 0, 600*ms, ok).write(1, 1, 50*ms, 60*ms, no).write(1, 1, 500*ms, 510*ms, ok), "several-winners", false, false},
		{"one is accepted late, and the holder's reply came later still", begin().write(0, 1, 0, 1200*ms, ok).write(1, 1, 50*ms, 60*ms, no).write(1, 1, 900*ms, 1100*ms, ok), "", true, false},
		{"one is accepted, has expired, and the other is accepted", begin().write(0, 1, 0, 1700*ms, ok).write(1, 1, 500*ms, 510*ms, ok), "", true, false},
		{"a read lags, and the holder's reply is slow", begin().write(0, 1, 0, 300*ms, ok).write(1, 1, 5*ms, 6*ms, no).read(1, 100*ms, -1).write(1, 1, 110*ms, 120*ms, no), "", false, true},
		{"a read lags behind another that showed the lease gone",
			begin().write(0, 1, 0, ms, ok).write(0, 2, 1050*ms, 1051*ms, no).read(0, 1060*ms, -1).write(0, 2, 1200*ms, 1210*ms, ok).
				write(1, 1, 0, ms, no).write(1, 2, 1050*ms, 1051*ms, no).read(1, 1100*ms, 0), "", false, true},
		{"a read shows the holder before the last",
			begin().write(0, 1, 0, ms, ok).write(0, 2, 1050*ms, 1060*ms, ok).write(0, 3, 2150*ms, 2160*ms, no).read(0, 2170*ms, 0).
				write(1, 1, 0, ms, no).write(1, 2, 1050*ms, 1060*ms, no).write(1, 3, 2150*ms, 2160*ms, ok), "", false, true},
		{"a refused contender's token is read late in the term",
			begin().write(0, 1, 0, ms, ok).write(1, 1, 0, ms, no).read(1, 500*ms, 1), "refused-but-applied", false, false},
	} {
		f := s.Judge(c.round.Round, false)
		f.Common().readOnce = true
		r := f.Rule()
		kind := ""
		if r.Violation != nil {
			kind = r.Violation.Kind
		}
		if kind != c.kind || r.Unsettled > 0 != c.doubt || r.StaleRead != c.stale {
			t.Errorf("%s: violation %q, in doubt %v, stale %v", c.name, kind, r.Unsettled > 0, r.StaleRead)
		}
	}
}

// A late read tells little of a lease that has expired since, but a refused contender's
// token can be in none.
func TestLeaseByTTLReadLate(t *testing.T) {
	s := &Lease{Periods: 2, Expiry: byTTL, Term: time.Second, Tolerance: time.Second}
	for late, want := range map[int]string{-1: "", 0: "", 1: "refused-but-applied", 2: "foreign", 3: "changed-value"} {
		r := leaseRound{&runner.Round{Number: 1, Key: chainKey, Collection: targets.Plain}}.write(0, 1, 0, ms, targets.OK).write(1, 1, 0, ms, targets.Conflict)
		f := s.Judge(r.Round, false)
		read := r.read(7, 2*time.Second, min(late, 1)).Ops[2]
		switch late {
		case 2:
			read.Reply.Record.Token = "somebody-else"
		case 3:
			read.Reply.Record = r.Ops[0].Op.Value
			read.Reply.Record.Body = json.RawMessage(`1`)
		}
		f.ReadLate(&read)
		got := f.Rule()
		kind := ""
		if got.Violation != nil {
			kind = got.Violation.Kind
		} else if got.Void {
			kind = "foreign"
		}
		if kind != want {
			t.Errorf("late read %d: %q, want %q", late, kind, want)
		}
	}
}
