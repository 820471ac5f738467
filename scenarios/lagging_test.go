package scenarios_test

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"contend/runner"
	"contend/scenarios"
	"contend/targets"
)

// replica shows every key of the race as it was a while ago.
type replica struct {
	mu      sync.Mutex
	lag     time.Duration
	only    string // keys that end so; "": all
	history map[string][]state
}

type state struct {
	since time.Time
	shown targets.Reply
}

type lagging struct {
	targets.Session
	replica *replica
}

func (s lagging) Do(ctx context.Context, op targets.Op) targets.Reply {
	reply := s.Session.Do(ctx, op)
	if op.Kind != targets.Read {
		if reply.Outcome == targets.OK {
			now := s.Session.Do(ctx, targets.Op{Kind: targets.Read, Key: op.Key, Collection: op.Collection})
			s.replica.mu.Lock()
			all := s.replica.history[op.Key]
			if n := len(all); n == 0 || now.Outcome != targets.OK || now.Record.Version >= all[n-1].shown.Record.Version {
				s.replica.history[op.Key] = append(all, state{time.Now(), now})
			}
			s.replica.mu.Unlock()
		}
		return reply
	}
	s.replica.mu.Lock()
	history := slices.Clone(s.replica.history[op.Key])
	s.replica.mu.Unlock()
	if len(history) == 0 || !strings.Contains(op.Key, "-r") || !strings.HasSuffix(op.Key, s.replica.only) {
		return reply
	}
	if time.Since(history[len(history)-1].since) >= s.replica.lag {
		return reply
	}
	old := targets.Reply{Outcome: targets.Missing, Attempts: 1}
	for _, h := range history {
		if time.Since(h.since) >= s.replica.lag {
			old = h.shown
		}
	}
	return old
}

var toldAge = regexp.MustCompile(`old state (\S+) after`)

// A right store whose readers lag is accused of nothing in any scenario, however long
// the lag is, and the age that is told is no longer than that.
func TestReadersThatLag(t *testing.T) {
	check := scenarios.NewDuplicateEvent()
	check.Claim = "check-then-set"
	times, versions := scenarios.NewLostUpdate(), scenarios.NewLostUpdate()
	times.Guard, times.Precision, times.OnConflict, times.Attempts = "timestamp", "ms", "reload", 5
	versions.OnConflict, versions.Attempts = "merge", 5
	for _, c := range []struct {
		name string
		s    scenarios.Contest
		only string
	}{
		{"fail-if-exists", scenarios.FailIfExists{}, ""},
		{"version-cas", scenarios.VersionCAS{}, ""},
		{"counter", scenarios.NewCounter(), ""},
		{"lost-update", versions, ""},
		{"lost-update by time", times, ""},
		{"lease", lease(func(s *scenarios.Lease) { s.Term, s.Periods = time.Second, 4 }), ""},
		{"lease by ttl", lease(func(s *scenarios.Lease) { s.Expiry, s.Term, s.Periods = "ttl", time.Second, 4 }), ""},
		{"duplicate-event", scenarios.NewDuplicateEvent(), ""},
		{"duplicate-event, its marker", check, "-marker"},
	} {
		for _, lag := range []time.Duration{60 * time.Millisecond, 300 * time.Millisecond, 1500 * time.Millisecond, 3 * time.Second} {
			t.Run(fmt.Sprintf("%s/%s", c.name, lag), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					behind := &replica{lag: lag, only: c.only, history: make(map[string][]state)}
					got := raceOn(t, c.s, "sim:?latency=10ms..30ms&sweep=200ms", func(s targets.Session) targets.Session { return lagging{s, behind} },
						func(p *runner.Plan) {
							p.Contenders, p.Settle, p.SkipControls = 6, 4*time.Second, true
							if strings.HasPrefix(c.name, "duplicate") {
								p.Contenders = 2
							}
						})
					v := got.Verdict
					if v.Status != scenarios.Inconclusive {
						t.Errorf("%s by %v", v.Status, kindsOf(v))
					}
					for _, told := range toldAge.FindAllStringSubmatch(fmt.Sprint(v.Reasons), -1) {
						if age, err := time.ParseDuration(told[1]); err != nil || age > lag+100*time.Millisecond {
							t.Errorf("reads lag by %s, told is %s: %v", lag, told[1], v.Reasons)
						}
					}
				})
			})
		}
	}
}
