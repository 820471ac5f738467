package stores

import (
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/tidwall/redcon"
)

const redisURL = "redis://%s"

// redis is a small server that speaks as much of Redis as contend asks for. As it
// is made it is right; a fault is a change to one of its first fields.
type redis struct {
	// guard takes a write on a condition through its check and its set.
	guard func(check func() bool, set func()) bool
	// refused is what happens beside the refusal of a SET NX, and its reply.
	refused func(key string, holder, asked value) any
	// accepted is the reply to a SET NX that was accepted.
	accepted any
	// scriptRefused is what happens beside the refusal of a compare-and-set.
	scriptRefused func(key string, asked value)
	// compares tells whether a stored record is the one that a compare-and-set names.
	compares func(stored, guard, want string) bool
	// stored changes what a write stores, and may drop it.
	stored func(key string, asked value) (kept value, drop bool)
	// granted is the time to live that is kept of the one that was asked for.
	granted func(time.Duration) time.Duration
	// wrote is told of each write.
	wrote func(key string, v value)
	// place is where a key is kept.
	place func(key string) string
	// What has expired stays for so long, shown to creates or to reads.
	lingers             time.Duration
	blocksCreates, read bool
	readsLate           time.Duration  // so long reads show what was before
	answers             map[string]any // replies to whole commands
	keepsOnDelete       bool           // DEL counts and removes nothing
	execAlways          bool           // EXEC does not look at what was watched
	execTakes           time.Duration

	mu      sync.Mutex
	keys    map[string]value
	changes map[string]int // how often each was changed, for WATCH
}

type value struct {
	text    string
	expires time.Time // zero: never
	written time.Time
	before  *value // what it was written over
}

func (v value) expired() bool { return !v.expires.IsZero() && !time.Now().Before(v.expires) }

func newRedis() *redis {
	s := &redis{keys: make(map[string]value), changes: make(map[string]int), accepted: redcon.SimpleString("OK")}
	s.guard = s.inOneStep
	s.refused = func(string, value, value) any { return nil }
	s.scriptRefused = func(string, value) {}
	s.compares = sameRecord
	s.stored = func(_ string, asked value) (value, bool) { return asked, false }
	s.granted = func(ttl time.Duration) time.Duration { return ttl }
	s.wrote = func(string, value) {}
	s.place = func(key string) string { return key }
	s.answers = map[string]any{
		"ping": redcon.SimpleString("PONG"), "select": redcon.SimpleString("OK"), "client": redcon.SimpleString("OK"),
		"info": "# Server\r\nredis_version:7.0.0\r\n", "script": strings.Repeat("0", 40),
	}
	return s
}

// inOneStep is the guard of a store that is right.
func (s *redis) inOneStep(check func() bool, set func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	met := check()
	if met {
		set()
	}
	return met
}

// connection is what a client has said between MULTI and EXEC, and what it watches.
type connection struct {
	gathers bool
	queue   [][]string
	watched map[string]int
}

func (s *redis) serve(l net.Listener) (stop func()) {
	server := redcon.NewServerNetwork("tcp", "", func(c redcon.Conn, command redcon.Command) {
		words := make([]string, len(command.Args))
		for i, word := range command.Args {
			words[i] = string(word)
		}
		words[0] = strings.ToLower(words[0])
		c.WriteAny(s.answer(c.Context().(*connection), words))
	}, func(c redcon.Conn) bool {
		c.SetContext(&connection{watched: make(map[string]int)})
		return true
	}, nil)
	ended := make(chan struct{})
	go func() {
		server.Serve(l)
		close(ended)
	}()
	return func() {
		l.Close()
		<-ended
	}
}

func (s *redis) answer(c *connection, words []string) any {
	switch words[0] {
	case "multi":
		c.gathers = true
		return redcon.SimpleString("OK")
	case "exec":
		return s.exec(c)
	case "unwatch":
		clear(c.watched)
		return redcon.SimpleString("OK")
	}
	if c.gathers {
		c.queue = append(c.queue, words)
		return redcon.SimpleString("QUEUED")
	}
	if words[0] == "watch" {
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, key := range words[1:] {
			s.find(s.place(key))
			c.watched[key] = s.changes[s.place(key)]
		}
		return redcon.SimpleString("OK")
	}
	return s.command(words)
}

// exec is true to Redis but for one thing: others' commands may come between those
// of the queue, of which contend has one only.
func (s *redis) exec(c *connection) any {
	time.Sleep(s.execTakes)
	changed := false
	s.mu.Lock()
	for key, changes := range c.watched {
		s.find(s.place(key))
		changed = changed || s.changes[s.place(key)] != changes
	}
	queue := c.queue
	c.gathers, c.queue = false, nil
	clear(c.watched)
	if changed && !s.execAlways {
		s.mu.Unlock()
		return nil
	}
	var sets []any
	for _, words := range queue {
		if words[0] == "set" && !slices.ContainsFunc(words, func(w string) bool { return strings.EqualFold(w, "nx") }) {
			s.store(words[1], s.asked(words))
			sets = append(sets, redcon.SimpleString("OK"))
		}
	}
	s.mu.Unlock()
	if len(sets) == len(queue) {
		return sets
	}
	return fmt.Errorf("ERR only SET is known between MULTI and EXEC")
}

func (s *redis) command(words []string) any {
	if reply, ok := s.answers[words[0]]; ok {
		return reply
	}
	switch {
	case words[0] == "get" && len(words) == 2:
		return s.get(s.place(words[1]))
	case words[0] == "set" && len(words) >= 3:
		return s.set(words)
	case words[0] == "del" && len(words) >= 2:
		return s.del(words[1:])
	case words[0] == "evalsha" && len(words) >= 9 && words[4] == "set":
		return s.compareAndSet(words[3], words[5], words[6], value{text: words[7], expires: s.expiry(words[8])})
	case words[0] == "scan" && len(words) >= 4:
		return s.scan(strings.ReplaceAll(strings.TrimSuffix(words[3], "*"), `\`, ""))
	}
	return fmt.Errorf("ERR unknown command '%s', or one with other arguments than this server knows", words[0])
}

// find gives what creates see of a key, and removes what is gone.
func (s *redis) find(key string) (value, bool) {
	v, ok := s.keys[key]
	switch {
	case !ok || !v.expired():
		return v, ok
	case time.Now().Before(v.expires.Add(s.lingers)):
		return v, s.blocksCreates
	}
	s.remove(key)
	return value{}, false
}

func (s *redis) remove(key string) {
	delete(s.keys, key)
	s.changes[key]++
}

func (s *redis) get(key string) any {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, exists := s.find(key)
	v, lingers := s.keys[key]
	if lingers && v.expired() {
		exists = s.read
	}
	if exists && time.Since(v.written) < s.readsLate {
		if v.before == nil {
			return nil
		}
		v = *v.before
	}
	if !exists {
		return nil
	}
	return v.text
}

// asked reads what a SET is to store.
func (s *redis) asked(words []string) value {
	v := value{text: words[2]}
	for i, word := range words {
		if strings.EqualFold(word, "px") && i+1 < len(words) {
			v.expires = s.expiry(words[i+1])
		}
	}
	return v
}

func (s *redis) expiry(milliseconds string) time.Time {
	ms, err := strconv.ParseInt(milliseconds, 10, 64)
	ttl := s.granted(time.Duration(ms) * time.Millisecond)
	if err != nil || ttl <= 0 {
		return time.Time{}
	}
	return time.Now().Add(ttl)
}

// store puts a value at a key.
func (s *redis) store(key string, v value) {
	key = s.place(key)
	v, drop := s.stored(key, v)
	if drop {
		return
	}
	if old, ok := s.keys[key]; ok {
		old.before = nil
		v.before = &old
	}
	v.written = time.Now()
	s.keys[key] = v
	s.changes[key]++
	s.wrote(key, v)
}

func (s *redis) set(words []string) any {
	key, v := words[1], s.asked(words)
	if !slices.ContainsFunc(words[3:], func(w string) bool { return strings.EqualFold(w, "nx") }) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.store(key, v)
		return redcon.SimpleString("OK")
	}
	var reply any
	created := s.guard(func() bool {
		holder, exists := s.find(s.place(key))
		if exists {
			reply = s.refused(key, holder, v)
		}
		return !exists
	}, func() { s.store(key, v) })
	if created {
		return s.accepted
	}
	return reply
}

// compareAndSet is what contend's script does.
func (s *redis) compareAndSet(key, guard, want string, v value) any {
	set := s.guard(func() bool {
		stored, exists := s.find(s.place(key))
		met := exists && s.compares(stored.text, guard, want)
		if !met {
			s.scriptRefused(key, v)
		}
		return met
	}, func() { s.store(key, v) })
	if set {
		return redcon.SimpleInt(1)
	}
	return redcon.SimpleInt(0)
}

func sameRecord(stored, guard, want string) bool {
	var record struct {
		Version   json.Number `json:"version"`
		Token     string      `json:"token"`
		UpdatedAt string      `json:"updated_at"`
	}
	if json.Unmarshal([]byte(stored), &record) != nil || record.Token == "" {
		return false
	}
	switch guard {
	case "unmodified":
		return record.UpdatedAt == want
	case "token":
		return record.Token == want
	default:
		return record.Version.String() == want || record.Version == "" && want == "0"
	}
}

func (s *redis) del(keys []string) any {
	s.mu.Lock()
	defer s.mu.Unlock()
	removed := 0
	for _, key := range keys {
		if _, exists := s.find(s.place(key)); !exists {
			continue
		}
		removed++
		if !s.keepsOnDelete {
			s.remove(s.place(key))
		}
	}
	return redcon.SimpleInt(removed)
}

func (s *redis) scan(prefix string) any {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := []any{}
	for _, key := range slices.Sorted(maps.Keys(s.keys)) {
		if _, exists := s.find(key); exists && strings.HasPrefix(key, prefix) {
			found = append(found, key)
		}
	}
	return []any{"0", found}
}
