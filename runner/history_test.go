package runner

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"contend/targets"
)

func op(kind targets.Kind, o targets.Outcome) Exchange {
	return Exchange{Op: targets.Op{Kind: kind}, Reply: targets.Reply{Outcome: o, Attempts: 1}}
}

// A round is decided where the store decided on a write, or where nobody wrote, answered a
// read.
func TestDecided(t *testing.T) {
	read, write := targets.Read, targets.Write
	for name, c := range map[string]struct {
		ops  []Exchange
		want bool
	}{
		"nothing":                     {nil, false},
		"accepted":                    {[]Exchange{op(write, targets.OK)}, true},
		"refused":                     {[]Exchange{op(write, targets.Conflict)}, true},
		"aborted":                     {[]Exchange{op(write, targets.Aborted)}, true},
		"throttled":                   {[]Exchange{op(write, targets.Throttled)}, false},
		"unknown":                     {[]Exchange{op(write, targets.Unknown)}, false},
		"one of many":                 {[]Exchange{op(write, targets.Unknown), op(write, targets.Invalid), op(write, targets.OK)}, true},
		"read":                        {[]Exchange{op(read, targets.OK)}, true},
		"read, and missing":           {[]Exchange{op(read, targets.Missing)}, true},
		"read, and not served":        {[]Exchange{op(read, targets.Throttled)}, false},
		"read, and then no write":     {[]Exchange{op(read, targets.OK), op(write, targets.Throttled)}, false},
		"a write that was not served": {[]Exchange{op(write, targets.Throttled), op(read, targets.OK)}, false},
	} {
		if got := (&Round{Ops: c.ops}).Decided(); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestUnsettledAndAnswered(t *testing.T) {
	again := op(targets.Write, targets.Conflict)
	again.Reply.Attempts = 2
	failed := op(targets.Write, targets.Unknown)
	failed.Reply.Status = 503
	for name, c := range map[string]struct {
		e                   Exchange
		unsettled, answered bool
	}{
		"accepted":             {op(targets.Write, targets.OK), false, true},
		"refused":              {op(targets.Write, targets.Conflict), false, true},
		"unknown":              {op(targets.Write, targets.Unknown), true, false},
		"unmapped":             {op(targets.Write, targets.Unmapped), true, true},
		"an error":             {failed, true, true},
		"sent more than once":  {again, true, false},
		"certainly never sent": {op(targets.Write, targets.NotSent), false, true},
	} {
		r := Round{Ops: []Exchange{op(targets.Write, targets.OK), c.e}}
		if r.Unsettled() != c.unsettled || r.answered() != c.answered {
			t.Errorf("%s: unsettled %v, answered %v", name, r.Unsettled(), r.answered())
		}
	}
}

func TestSeededAndRefusal(t *testing.T) {
	no := op(targets.Write, targets.Throttled)
	no.Reply.Code = "SLOW_DOWN"
	never := op(targets.Write, targets.Invalid)
	never.Reply.Code = "NEVER"
	for name, c := range map[string]struct {
		r       Round
		seeded  bool
		refusal string
	}{
		"nothing to seed":      {Round{}, true, ""},
		"seeded":               {Round{Seeds: []Exchange{op(targets.Write, targets.OK)}}, true, ""},
		"a seed refused":       {Round{Seeds: []Exchange{op(targets.Write, targets.OK), no}, Ops: []Exchange{never}}, false, "SLOW_DOWN"},
		"a contender":          {Round{Ops: []Exchange{op(targets.Write, targets.Conflict), never, no}}, true, "NEVER"},
		"refused by the guard": {Round{Ops: []Exchange{op(targets.Write, targets.Conflict)}}, true, ""},
	} {
		if got := c.r.refusal(); c.r.Seeded() != c.seeded || !strings.Contains(got, c.refusal) || (got == "") != (c.refusal == "") {
			t.Errorf("%s: seeded %v, refusal %q", name, c.r.Seeded(), got)
		}
	}
	if err := unserved(ErrUnserved, ""); err != ErrUnserved {
		t.Error(err)
	}
	if err := unserved(ErrUnserved, "no"); !errors.Is(err, ErrUnserved) || !strings.HasSuffix(err.Error(), "; the first refusal: no") {
		t.Error(err)
	}
}

// What may have had an effect is removed, and what certainly had none need not be.
func TestMayHaveWritten(t *testing.T) {
	again := op(targets.Write, targets.Conflict)
	again.Reply.Attempts = 2
	part := op(targets.Sequence, targets.Invalid)
	part.Reply.Parts = []targets.Reply{{Outcome: targets.Conflict}, {Outcome: targets.OK}}
	for name, c := range map[string]struct {
		e    Exchange
		want bool
	}{
		"accepted":              {op(targets.Write, targets.OK), true},
		"unknown":               {op(targets.Write, targets.Unknown), true},
		"unmapped":              {op(targets.Write, targets.Unmapped), true},
		"refused":               {op(targets.Write, targets.Conflict), false},
		"refused at the second": {again, true},
		"a part was accepted":   {part, true},
		"a read":                {op(targets.Read, targets.OK), false},
		"a delete":              {op(targets.Delete, targets.OK), false},
		"in the store's words":  {op(targets.Raw, targets.OK), true},
	} {
		if got := mayHaveWritten(&c.e); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// Where the clock is too coarse, an exchange is moved after the one before, and its times
// stay in order.
func TestFollow(t *testing.T) {
	for _, c := range []struct {
		e     Exchange
		after time.Duration
		want  Exchange
	}{
		{Exchange{Call: 9, Began: 9, Sent: 9, Guard: 9, Return: 9}, 5, Exchange{Call: 9, Began: 9, Sent: 9, Guard: 9, Return: 9}},
		{Exchange{Call: 5, Began: 5, Sent: 5, Guard: 5, Return: 5}, 5, Exchange{Call: 6, Began: 6, Sent: 6, Guard: 6, Return: 6}},
		{Exchange{Call: 5, Began: 5, Sent: 5, Return: 5}, 5, Exchange{Call: 6, Began: 6, Sent: 6, Return: 6}},
		{Exchange{Call: 5, Began: 5, Sent: 7, Guard: 8, Return: 9}, 5, Exchange{Call: 6, Began: 6, Sent: 7, Guard: 8, Return: 9}},
	} {
		if c.e.follow(c.after); c.e.Call != c.want.Call || c.e.Began != c.want.Began || c.e.Sent != c.want.Sent || c.e.Guard != c.want.Guard || c.e.Return != c.want.Return {
			t.Errorf("%+v, want %+v", c.e, c.want)
		}
	}
	e := Exchange{Call: 1, Began: 2, Sent: 3, Guard: 4, Return: 5}
	if e.shift(10); e.Call != 11 || e.Began != 12 || e.Sent != 13 || e.Guard != 14 || e.Return != 15 {
		t.Errorf("moved: %+v", e)
	}
	none := Exchange{}
	if none.shift(10); none.Guard != 0 {
		t.Errorf("a guard that there was not is at %s", none.Guard)
	}
}

// The times that a driver tells are kept within the call; what it does not tell is the
// call, and the guarded request is none where the op ended before.
func TestTimesOfAnExchange(t *testing.T) {
	c := newConnection(t.Context(), &stand{}, time.Second, nil)
	at := func(d time.Duration) time.Time { return c.start.Add(d) }
	for name, k := range map[string]struct {
		kind               targets.Kind
		r                  targets.Reply
		began, sent, guard time.Duration
	}{
		"nothing told":           {targets.Write, targets.Reply{}, 10, 10, 10},
		"all told":               {targets.Write, targets.Reply{Began: at(11), Sent: at(12), Guarded: at(13)}, 11, 12, 13},
		"one request":            {targets.Write, targets.Reply{Began: at(11), Sent: at(12)}, 11, 12, 12},
		"before the call":        {targets.Write, targets.Reply{Began: at(1), Sent: at(2), Guarded: at(3)}, 10, 10, 10},
		"after the return":       {targets.Write, targets.Reply{Began: at(91), Sent: at(92), Guarded: at(93)}, 20, 20, 20},
		"a read":                 {targets.Read, targets.Reply{Began: at(11), Sent: at(12)}, 11, 12, 0},
		"refused by what it saw": {targets.Write, targets.Reply{Began: at(11), Sent: at(12), ByRead: true}, 11, 12, 0},
		"never sent":             {targets.Write, targets.Reply{Outcome: targets.NotSent}, 10, 10, 0},
		"no such thing":          {targets.Write, targets.Reply{Outcome: targets.Unsupported}, 10, 10, 0},
	} {
		e := Exchange{Op: targets.Op{Kind: k.kind}, Reply: k.r, Call: 10, Return: 20}
		if c.tell(&e); e.Began != k.began || e.Sent != k.sent || e.Guard != k.guard {
			t.Errorf("%s: began %d, sent %d, guard %d", name, e.Began, e.Sent, e.Guard)
		}
	}
}

// The time of a staged request is stopped while it waits for the others, and begins anew.
func TestTimeOfAStagedRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newStageContext(t.Context(), time.Second)
		c.timer.Stop()
		time.Sleep(time.Hour)
		if c.Err() != nil {
			t.Errorf("while it is stopped: %v", c.Err())
		}
		c.timer.Reset(time.Second)
		began := time.Now()
		<-c.Done()
		if !errors.Is(c.Err(), context.DeadlineExceeded) || time.Since(began) != time.Second {
			t.Errorf("%v after %s", c.Err(), time.Since(began))
		}
		other := newStageContext(t.Context(), time.Second)
		if other.cancel(nil); !errors.Is(other.Err(), context.Canceled) {
			t.Errorf("cancelled: %v", other.Err())
		}
		other.timer.Stop()
	})
}

// After a quota was refused some time is waited, as the target asks, no longer than its
// limits renew; in the end it is given up.
func TestBackOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newConnection(t.Context(), &stand{}, time.Second, []targets.Limit{{Requests: 1, Per: time.Second}, {Requests: 9, Per: time.Minute}})
		began := time.Now()
		if !c.backOff(t.Context(), 1, &targets.Reply{RetryAfter: 7 * time.Second}) || time.Since(began) < 7*time.Second {
			t.Errorf("asked again after %s", time.Since(began))
		}
		began = time.Now()
		n := 1
		for c.backOff(t.Context(), n, &targets.Reply{}) {
			n++
		}
		if n < 3 || n > 20 || time.Since(began) > 10*time.Minute {
			t.Errorf("given up after %d refusals, %s", n, time.Since(began))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		began = time.Now()
		if c.backOff(ctx, 1, &targets.Reply{RetryAfter: time.Hour}) || time.Since(began) != time.Millisecond {
			t.Errorf("a cancel is heard after %s", time.Since(began))
		}
	})
}
