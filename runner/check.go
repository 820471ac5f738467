package runner

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"contend/targets"
)

// check looks for what no run can have written down.
func (c *Controls) check(contenders int) error {
	for _, part := range [][]Exchange{c.Sequential, c.Nonce} {
		for i := range part {
			if err := part[i].check(); err != nil {
				return fmt.Errorf("the controls: %w", err)
			}
		}
	}
	keys := make(map[string]bool)
	for i := range c.Twin {
		r := &c.Twin[i]
		if r.Number != i+1 || keys[r.Key] {
			return fmt.Errorf("round %d of the twin, on the key %q, stands where round %d belongs", r.Number, r.Key, i+1)
		}
		keys[r.Key] = true
		err := r.check(contenders)
		if err == nil && i+1 < len(c.Twin) {
			err = r.short(contenders)
		}
		if err != nil {
			return fmt.Errorf("round %d of the twin: %w", i+1, err)
		}
	}
	return nil
}

// check looks for what no run can have written down.
func (r *Round) check(contenders int) error {
	seen := make(map[int]bool)
	for _, part := range [][]Exchange{r.Seeds, r.Ops, r.Reads} {
		for i := range part {
			if err := part[i].check(); err != nil {
				return err
			}
			if key := part[i].Op.Key; key != r.Key && !strings.HasPrefix(key, r.Key+"-") {
				return fmt.Errorf("a request for the key %q of another", part[i].Op.Key)
			}
		}
	}
	tokens := make(map[string]bool)
	for i := range r.Ops {
		x := &r.Ops[i]
		follows := i > 0 && r.Ops[i-1].Contender == x.Contender
		switch {
		case !follows && seen[x.Contender]:
			return fmt.Errorf("the requests of contender %d do not stand together", x.Contender)
		case follows && x.Call < r.Ops[i-1].Return:
			return fmt.Errorf("contender %d sent a request before it had the answer to the one before", x.Contender)
		case x.Op.Kind == targets.Write && tokens[x.Op.Value.Token]:
			return fmt.Errorf("two writes with the token %q", x.Op.Value.Token)
		}
		seen[x.Contender] = true
		if x.Op.Kind == targets.Write {
			tokens[x.Op.Value.Token] = true
		}
	}
	if len(seen) > contenders {
		return fmt.Errorf("%d contenders, where the run had %d", len(seen), contenders)
	}
	return nil
}

// short tells whether there are contenders that sent nothing: those that an interrupt
// found before their first request.
func (r *Round) short(contenders int) error {
	seen := make(map[int]bool)
	for i := range r.Ops {
		seen[r.Ops[i].Contender] = true
	}
	if r.Seeded() && len(seen) < contenders {
		return fmt.Errorf("%d contenders, where the run had %d", len(seen), contenders)
	}
	return nil
}

func (e *Exchange) check() error {
	if !slices.Contains(targets.Outcomes, e.Reply.Outcome) {
		return fmt.Errorf("unknown outcome %q", e.Reply.Outcome)
	}
	guard := e.Guard
	if guard == 0 {
		guard = e.Sent
	}
	if e.Call < 0 || e.Began < e.Call || e.Sent < e.Call || guard < e.Call || e.Return < max(e.Began, e.Sent, guard) {
		return fmt.Errorf("contender %d: the times call %d, began %d, sent %d, guard %d, return %d are not in order", e.Contender, e.Call, e.Began, e.Sent, e.Guard, e.Return)
	}
	return nil
}

// answeredAt is when the last of the contenders had its answer.
func (r *Round) answeredAt() (last time.Duration) {
	for i := range r.Ops {
		last = max(last, r.Ops[i].Return)
	}
	return last
}

func (r *Round) requests() int64 {
	var n int64
	for _, part := range [][]Exchange{r.Seeds, r.Ops, r.Reads} {
		for i := range part {
			n += int64(part[i].Reply.Attempts)
		}
	}
	return n
}
