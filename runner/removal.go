package runner

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"contend/targets"
)

// Left tells of keys that are still there after their removal, or may be.
type Left struct {
	Keys    []string // that were seen
	Refused string   // what the first delete that failed was answered; "": all were accepted
	Unseen  error    // why nobody could look; nil: somebody did
}

func (l *Left) Error() string {
	if len(l.Keys) == 0 {
		return fmt.Sprintf("keys may have been left behind: whether they are gone could not be seen: %v", l.Unseen)
	}
	why := "had accepted their removal"
	if l.Refused != "" {
		why = "answered: " + l.Refused
	}
	return fmt.Sprintf("keys were left behind: %d still there, such as %s; the store %s", len(l.Keys), l.Keys[0], why)
}

// orNil is an error only where something is left.
func (l *Left) orNil() error {
	if len(l.Keys) == 0 && l.Unseen == nil {
		return nil
	}
	return l
}

// refuse keeps the answer to the first delete that failed.
func (l *Left) refuse(r *targets.Reply) {
	if l.Refused == "" && !gone(r) {
		l.Refused = firstNonEmpty(r.Message, r.Code, string(r.Outcome))
	}
}

// gone tells whether a delete was accepted, or there was nothing to delete.
func gone(r *targets.Reply) bool {
	return r.Outcome == targets.OK || r.Outcome == targets.Missing || r.Outcome == targets.Unsupported
}

// lookAgain is how long is waited before each look for what should be gone: a store
// may list what was deleted a moment ago.
var lookAgain = []time.Duration{0, 100 * time.Millisecond, time.Second}

// look lists what begins with the prefix and should be gone. It gives the keys that
// every listing showed.
func (c *crew) look(prefix string, should func(key string) bool) (keys []string, err error) {
	for _, d := range lookAgain {
		wait(c.requests, d)
		_ = c.spend(c.requests, 1)
		deletes, n, err := c.list(prefix)
		c.summary.Requests += int64(n)
		c.budget.book(time.Now(), 1, max(n-1, 0), 0)
		if err != nil {
			return nil, err
		}
		keys = nil
		for i := range deletes {
			if should(deletes[i].Key) {
				keys = append(keys, deletes[i].Key)
			}
		}
		if len(keys) == 0 {
			break
		}
	}
	return keys, nil
}

// list gives up where it takes longer than anybody would wait.
func (c *crew) list(prefix string) (deletes []targets.Op, requests int, err error) {
	ctx, cancel := context.WithTimeout(c.requests, c.patience())
	defer cancel()
	return c.target.List(ctx, prefix)
}

// removeAll sends deletes over all sessions, side by side, and hands over what came of
// each, from one goroutine. It gives up on a target that serves none of them.
func (c *crew) removeAll(deletes []targets.Op, got func(i int, r *targets.Reply)) {
	// The budget is not safe for several: it is spent here.
	next, answers := make(chan int), make(chan removed)
	var group errgroup.Group
	for s := range c.members {
		group.Go(func() error {
			for i := range next {
				answers <- removed{i, c.remove(&c.members[s], deletes[i])}
			}
			return nil
		})
	}
	var todo []int // what a quota refuses is sent again, after the others
	for i := range deletes {
		todo = append(todo, i)
	}
	sent, unserved, refusals := 0, 0, 0
	var refusal *targets.Reply // not waited for yet
	take := func(a removed) {
		sent--
		if a.reply.Outcome == targets.Throttled {
			todo, refusal = append(todo, a.i), &a.reply
		} else {
			refusals = 0
		}
		if unserved++; a.reply.Outcome.Served() || a.reply.Outcome == targets.Throttled {
			unserved = 0
		}
		got(a.i, &a.reply)
	}
	for (len(todo) > 0 || sent > 0) && unserved < len(c.members) {
		if refusal != nil {
			refusals++
			if !c.backOff(c.requests, refusals, refusal) {
				break
			}
			refusal = nil
		}
		if len(todo) == 0 {
			take(<-answers)
			continue
		}
		_ = c.spend(c.requests, 1)
		for offered := false; !offered; {
			select {
			case next <- todo[0]:
				sent, todo, offered = sent+1, todo[1:], true
			case a := <-answers:
				take(a)
			}
		}
	}
	close(next)
	for sent > 0 {
		take(<-answers)
	}
	_ = group.Wait()
}

// removed is what came of one of the deletes.
type removed struct {
	i     int
	reply targets.Reply
}

// remove sends a delete.
func (c *crew) remove(m *member, op targets.Op) targets.Reply {
	e := Exchange{Contender: ByRunner, Op: op}
	c.exchange(m.session, &e)
	if broken(&e) {
		c.reopen(m)
	}
	return e.Reply
}

// Removal is what Remove came to.
type Removal struct {
	Removed int   // keys that are not listed any more
	Left    error // a *Left, where keys are still there or may be; nil otherwise
}

// removalSessions are how many remove side by side.
const removalSessions = 8

// Remove sends the deletes that a listing of the prefix gave, and lists it again to
// see what came of them; told, unless it is nil, is told of waits. Nothing is sent when ctx has ended.
func Remove(ctx context.Context, target targets.Target, prefix string, deletes []targets.Op, timeout time.Duration, limits []targets.Limit, told Waiter) (Removal, error) {
	if len(deletes) == 0 {
		return Removal{}, nil
	}
	c := newCrew(ctx, target, &Setup{Timeout: timeout, Limits: limits})
	c.requests, c.told = ctx, told
	var numbers []int
	for i := range min(removalSessions, len(deletes)) {
		numbers = append(numbers, -1-i)
	}
	if err := c.openSome(ctx, targets.Needs{Sessions: 1}, numbers...); err != nil {
		return Removal{}, err
	}
	defer c.close()
	left := &Left{}
	should := make(map[string]bool, len(deletes))
	for i := range deletes {
		should[deletes[i].Key] = true
	}
	c.removeAll(deletes, func(_ int, r *targets.Reply) { left.refuse(r) })
	if ctx.Err() != nil {
		return Removal{}, ctx.Err()
	}
	left.Keys, left.Unseen = c.look(prefix, func(key string) bool { return should[key] })
	if left.Unseen != nil {
		return Removal{Left: left}, nil
	}
	return Removal{len(should) - len(left.Keys), left.orNil()}, nil
}
