package stores

import (
	"errors"
	"math"
	"net"
	"time"

	"github.com/tidwall/redcon"
)

// redisFaults change a server that would be right without them.
var redisFaults = []struct {
	name, says string
	plant      func(*redis, Options)
}{
	{"loser-ok", "a SET NX that is refused is answered OK", refusal(redcon.SimpleString("OK"))},
	{"loser-zero", "a SET NX that is refused is answered with the number 0 instead of nil", refusal(redcon.SimpleInt(0))},
	{"loser-empty", "a SET NX that is refused is answered with an empty text instead of nil", refusal("")},
	{"winner-one", "a SET NX that is accepted is answered with the number 1 instead of OK",
		func(s *redis, _ Options) { s.accepted = redcon.SimpleInt(1) }},
	{"loser-stored", "a SET NX that is refused is stored nevertheless (GETSET, whose reply the client compares)",
		func(s *redis, _ Options) {
			s.refused = func(key string, _, asked value) any { s.store(key, asked); return nil }
		}},
	{"loser-stored-ttl", "the same with keys that have a time to live only: a lock that is taken over by GETSET", func(s *redis, _ Options) {
		s.refused = func(key string, holder, asked value) any {
			if !holder.expires.IsZero() {
				s.store(key, asked)
			}
			return nil
		}
	}},
	{"loser-stored-late", "a SET NX that is refused is stored -delay later (20ms)", func(s *redis, o Options) {
		s.refused = func(key string, _, asked value) any {
			s.later(o.delay(20*time.Millisecond), func() { s.store(key, asked) })
			return nil
		}
	}},
	{"loser-stored-cas", "a compare-and-set that is refused is stored nevertheless",
		func(s *redis, _ Options) { s.scriptRefused = s.store }},
	{"loser-extends", "a SET NX that is refused gives the holder's key its own time to live (SET NX, then EXPIRE without a look at the reply)",
		func(s *redis, _ Options) {
			s.refused = s.reschedule(func(holder, asked value) time.Time {
				if asked.expires.IsZero() {
					return holder.expires
				}
				return asked.expires
			})
		}},
	{"loser-persists", "a SET NX that is refused takes away the holder's time to live (GETSET clears it)",
		func(s *redis, _ Options) {
			s.refused = s.reschedule(func(value, value) time.Time { return time.Time{} })
		}},
	{"void-condition", "a compare-and-set compares nothing", func(s *redis, _ Options) {
		s.compares = func(string, string, string) bool { return true }
	}},
	{"void-watch", "EXEC takes -delay (20ms) and does not look at what was watched", func(s *redis, o Options) {
		s.execAlways, s.execTakes = true, o.delay(20*time.Millisecond)
	}},
	{"lost-write", "a write on a condition is accepted and not stored", func(s *redis, _ Options) {
		s.guard = func(check func() bool, _ func()) bool { return s.inOneStep(check, func() {}) }
	}},
	{"cuts-values", "what is stored is cut to 60 bytes", func(s *redis, _ Options) {
		s.stored = func(_ string, v value) (value, bool) { v.text = v.text[:min(len(v.text), 60)]; return v, false }
	}},
	{"cuts-keys", "keys are cut to 36 bytes, so that those of several rounds are one",
		func(s *redis, _ Options) { s.place = func(key string) string { return key[:min(len(key), 36)] } }},

	{"no-ttl", "the time to live is dropped", ttl(func(time.Duration) time.Duration { return 0 })},
	{"ttl-as-milliseconds", "a time to live in seconds is taken as milliseconds", ttl(func(d time.Duration) time.Duration { return d / 1000 })},
	{"ttl-as-seconds", "a time to live in milliseconds is taken as seconds", ttl(func(d time.Duration) time.Duration { return d * 1000 })},
	{"short-ttl", "a key lives a tenth of its time", ttl(func(d time.Duration) time.Duration { return d / 10 })},
	{"ghost", "an expired key stays, for creates and reads", lingering(forever, true, true)},
	{"ghost-create", "an expired key refuses creates for ever, though no read shows it", lingering(forever, true, false)},
	{"ghost-read", "reads show an expired key for -delay (4s), though it can be created again", func(s *redis, o Options) {
		lingering(o.delay(4*time.Second), false, true)(s, o)
	}},
	{"ghost-error", "a SET NX on an expired key is answered with -text (ERR Unknown error)", func(s *redis, o Options) {
		lingering(forever, true, false)(s, o)
		s.refused = func(_ string, holder, _ value) any {
			if holder.expired() {
				return errors.New(o.text("ERR Unknown error"))
			}
			return nil
		}
	}},

	{"stale-reads", "reads show what was there before the last write, for -delay (50ms)",
		func(s *redis, o Options) { s.readsLate = o.delay(50 * time.Millisecond) }},
	{"evicts", "every key is removed -delay after it was written (2ms)", evicting(func(value) bool { return true })},
	{"evicts-without-ttl", "every key without a time to live is removed -delay after it was written (2ms)",
		evicting(func(v value) bool { return v.expires.IsZero() })},

	{"resends", "a write on a condition is sent again, and the second reply is the answer: a proxy or a client that tries again",
		func(s *redis, _ Options) {
			s.guard = func(check func() bool, set func()) bool {
				s.inOneStep(check, set)
				return s.inOneStep(check, set)
			}
		}},
	{"void-delete", "DEL counts keys and removes none", func(s *redis, _ Options) { s.keepsOnDelete = true }},
	{"no-delete", "DEL is refused", refusing("del", "NOPERM this user has no permissions to run the 'del' command")},
	{"no-info", "INFO is no command", refusing("info", "ERR unknown command 'INFO'")},
	{"no-version", "INFO does not tell a version", func(s *redis, _ Options) { s.answers["info"] = "# Server\r\nserver_name:other\r\n" }},
	{"no-script", "SCRIPT is no command", refusing("script", "ERR unknown command 'SCRIPT'")},
	{"refuses", "every write is answered with the error -text (READONLY …)", func(s *redis, o Options) {
		reply := errors.New(o.text("READONLY You can't write against a read only replica."))
		for _, command := range []string{"set", "evalsha", "del"} {
			s.answers[command] = reply
		}
	}},
}

const forever = time.Duration(math.MaxInt64)

func (o Options) text(usual string) string {
	if o.Text != "" {
		return o.Text
	}
	return usual
}

func redisStores() []Store {
	var all []Store
	for _, f := range redisFaults {
		all = append(all, Store{Name: f.name, Says: f.says, URL: redisURL, serve: func(l net.Listener, o Options) func() {
			s := newRedis()
			f.plant(s, o)
			return s.serve(l)
		}})
	}
	return all
}

// later does something to the store after a while. What comes after the server was
// stopped does no harm.
func (s *redis) later(delay time.Duration, do func()) {
	time.AfterFunc(delay, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		do()
	})
}

func refusal(reply any) func(*redis, Options) {
	return func(s *redis, _ Options) { s.refused = func(string, value, value) any { return reply } }
}

func refusing(command, reply string) func(*redis, Options) {
	return func(s *redis, _ Options) { s.answers[command] = errors.New(reply) }
}

func ttl(granted func(time.Duration) time.Duration) func(*redis, Options) {
	return func(s *redis, _ Options) { s.granted = granted }
}

func lingering(lingers time.Duration, blocksCreates, read bool) func(*redis, Options) {
	return func(s *redis, _ Options) { s.lingers, s.blocksCreates, s.read = lingers, blocksCreates, read }
}

// reschedule gives the holder another expiry when a create is refused.
func (s *redis) reschedule(expiry func(holder, asked value) time.Time) func(key string, holder, asked value) any {
	return func(key string, holder, asked value) any {
		holder.expires = expiry(holder, asked)
		s.keys[s.place(key)] = holder
		return nil
	}
}

func evicting(which func(value) bool) func(*redis, Options) {
	return func(s *redis, o Options) {
		s.wrote = func(key string, v value) {
			if which(v) {
				s.later(o.delay(2*time.Millisecond), func() { s.remove(key) })
			}
		}
	}
}
