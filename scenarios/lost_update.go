package scenarios

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"contend/runner"
	"contend/targets"
)

// LostUpdate lets editors of one checklist each tick an item of their own and
// write the whole checklist back.
type LostUpdate struct {
	Guard      string `json:"guard"`
	Precision  string `json:"precision"` // of the times that the guard timestamp compares
	OnConflict string `json:"on_conflict"`
	Attempts   int    `json:"attempts"`
}

// The values of the flags.
const (
	byVersion   = "version"
	byTimestamp = "timestamp"
	byNothing   = "none"

	giveUp = "give-up"
	reload = "reload"
	merge  = "merge"
)

// NewLostUpdate gives the defaults.
func NewLostUpdate() *LostUpdate {
	return &LostUpdate{Guard: byVersion, Precision: "s", OnConflict: giveUp, Attempts: 20}
}

// Info describes the scenario.
func (s *LostUpdate) Info() Info {
	info := Info{
		Name:    "lost-update",
		Summary: "editors read a document, change their own item, write it back under a guard; no acknowledged item may be lost",
		Help: `Raced: every editor reads one checklist, waits until all have read it, ticks an item of its own and writes the whole
checklist back under --guard: on the version it read, on the time it bears, or none (whoever saves last wins).
Must hold: the final checklist contains every edit that was acknowledged, none that was refused and none that nobody
made; with --guard version the version went up by exactly one for each. A time in whole seconds is no guard: violated.
Inconclusive means that the guard was not put to the test: the accepted edits met too few others there, or too slowly for its tick.`,
		Property: "every acknowledged edit is in the final document, and none that was refused",
		Guard:    targets.IfVersion,
	}
	switch s.Guard {
	case byTimestamp:
		info.Guard = targets.IfUnmodified
	case byNothing:
		info.Property = "no acknowledged edit is lost (expected to be violated: nothing guards it)"
		info.Guard, info.Unguarded = targets.Unguarded, true
	}
	return info
}

// Flags are the scenario's own.
func (s *LostUpdate) Flags(fs *flag.FlagSet) {
	fs.StringVar(&s.Guard, "guard", s.Guard, "what a write is on condition of: version, timestamp, or none")
	fs.StringVar(&s.Precision, "precision", s.Precision, "of --guard timestamp: s, ms, or us; a round begins with a tick of it")
	fs.StringVar(&s.OnConflict, "on-conflict", s.OnConflict, "what a refused editor does: give-up; reload (read again, tick its item again, after a wait); "+
		"or merge (into what it reads anew, at once)")
	fs.IntVar(&s.Attempts, "attempts", s.Attempts, "writes of an editor at most; one that the store aborted is tried again in any case")
}

// precisions are the values of --precision; tickOf gives how long one is.
var precisions = [...]string{"s", "ms", "us"}

func tickOf(precision string) time.Duration {
	switch precision {
	case "us":
		return time.Microsecond
	case "ms":
		return time.Millisecond
	default:
		return time.Second
	}
}

// Check refuses parameters that cannot be.
func (s *LostUpdate) Check() error {
	wrong := []error{
		oneOf("guard", s.Guard, byVersion, byTimestamp, byNothing),
		oneOf("precision", s.Precision, precisions[:]...),
		oneOf("on-conflict", s.OnConflict, giveUp, reload, merge),
	}
	if s.Precision != "s" && s.Guard != byTimestamp {
		wrong = append(wrong, fmt.Errorf("--precision %s: goes with --guard timestamp", s.Precision))
	}
	if s.Attempts < 1 || s.Attempts > 1000 {
		wrong = append(wrong, fmt.Errorf("--attempts %d: from 1 to 1000", s.Attempts))
	}
	return errors.Join(wrong...)
}

// oneOf gives what is wrong with the value of a flag.
func oneOf(flag, value string, values ...string) error {
	if slices.Contains(values, value) {
		return nil
	}
	return fmt.Errorf("--%s %q: there are %s", flag, value, strings.Join(values, ", "))
}

// Needs is the guard, and the precision of the times that it compares.
func (s *LostUpdate) Needs() targets.Needs {
	switch s.Guard {
	case byVersion:
		return guards(targets.IfVersion)
	case byTimestamp:
		needs := guards(targets.IfUnmodified)
		needs.Precision = s.stamps()
		return needs
	default:
		return guards()
	}
}

// stamps is the precision of the times that the guard compares; 0: it compares none.
func (s *LostUpdate) stamps() time.Duration {
	if s.Guard != byTimestamp {
		return 0
	}
	return tickOf(s.Precision)
}

// Begin lets a round whose guard is a time begin with a tick of it, so that all
// edits fall into that one where the tick is long enough.
func (s *LostUpdate) Begin(now time.Time) time.Time {
	if tick := s.stamps(); tick > 0 {
		return now.Truncate(tick).Add(tick)
	}
	return now
}

// stamp is the time that a record written now bears.
func (s *LostUpdate) stamp(now time.Time) time.Time { return now.UTC().Truncate(max(1, s.stamps())) }

// Collection keeps the keys where a write on a version works.
func (*LostUpdate) Collection() targets.Collection { return targets.Versioned }

// Seeds is a checklist in which nothing is ticked, at version 0.
func (s *LostUpdate) Seeds(key string) []targets.Op {
	return []targets.Op{{Kind: targets.Write, Key: key, Collection: targets.Versioned,
		Value: targets.Record{Token: key + seedSuffix, UpdatedAt: s.stamp(time.Now()), Body: checklist{Items: map[string]bool{}, Edits: []string{}}.body()}}}
}

// Requests are the read and the write.
func (*LostUpdate) Requests() int { return 2 }

// Sweep is refused.
func (s *LostUpdate) Sweep(func(string) bool) error { return errWaiting("the editors") }

// Twin edits without a guard.
func (s *LostUpdate) Twin() Contest {
	if s.Guard == byNothing {
		return nil
	}
	return &LostUpdate{Guard: byNothing, Precision: "s", OnConflict: giveUp, Attempts: s.Attempts}
}

// checklist is the document, the body of the record.
type checklist struct {
	Text  json.RawMessage `json:"text,omitempty"` // what --value-size asks for
	Items map[string]bool `json:"items"`          // those that are ticked
	Edits []string        `json:"edits"`          // tokens of the writes that it comes of, in their order
}

func checklistOf(body json.RawMessage) (c checklist, ok bool) {
	err := json.Unmarshal(body, &c)
	return c, err == nil && c.Edits != nil
}

func (c checklist) body() json.RawMessage {
	b, _ := json.Marshal(c)
	return b
}

func itemOf(editor int) string { return fmt.Sprintf("item %d", editor) }

// ticked is the checklist with an item ticked.
func (c checklist) ticked(item string) checklist {
	c.Items = maps.Clone(c.Items)
	if c.Items == nil {
		c.Items = make(map[string]bool)
	}
	c.Items[item] = true
	return c
}

// merged gives what others made of base, with what mine changed in it.
func (c checklist) merged(base, mine checklist) checklist {
	for item, ticked := range mine.Items {
		if base.Items[item] != ticked {
			c = c.ticked(item)
			c.Items[item] = ticked
		}
	}
	return c
}

// Contend ticks the editor's item.
func (s *LostUpdate) Contend(c *runner.Contender) {
	random := c.Random()
	seen := *c.Read()
	c.Barrier("after-read")
	base, ok := checklistOf(seen.Record.Body)
	if seen.Outcome != targets.OK || !ok {
		return
	}
	mine := base.ticked(itemOf(c.Number))
	for attempt, next := 1, mine; ; attempt++ {
		outcome := s.save(c, &seen, next)
		refused := outcome == targets.Conflict
		if attempt >= s.Attempts || outcome != targets.Aborted && (!refused || s.OnConflict == giveUp) {
			return
		}
		if refused && s.OnConflict == merge {
			if c.Over() {
				return
			}
		} else if !c.Sleep(backoff("jitter", attempt, random.Float64())) {
			return
		}
		if !refused {
			continue // aborted: nobody has told that the document is another
		}
		seen = *c.Read()
		theirs, ok := checklistOf(seen.Record.Body)
		if seen.Outcome != targets.OK || !ok {
			return
		}
		if next = theirs.ticked(itemOf(c.Number)); s.OnConflict == merge {
			next = theirs.merged(base, mine)
		}
	}
}

// save writes the checklist over what was read.
func (s *LostUpdate) save(c *runner.Contender, seen *targets.Reply, next checklist) targets.Outcome {
	record := c.Record()
	record.Version = seen.Record.Version + 1
	record.UpdatedAt = s.stamp(record.UpdatedAt)
	next.Text = record.Body
	next.Edits = append(slices.Clip(next.Edits), record.Token)
	record.Body = next.body()
	condition := targets.Condition{}
	switch s.Guard {
	case byVersion:
		condition = targets.Condition{Guard: targets.IfVersion, Counter: seen.Record.Version, Version: seen.Version}
	case byTimestamp:
		condition = targets.Condition{Guard: targets.IfUnmodified, UpdatedAt: seen.Record.UpdatedAt}
	}
	return c.Do(targets.Op{Kind: targets.Write, Key: c.Round.Key, Collection: c.Round.Collection, If: condition, Value: record}).Outcome
}

// Fates gives what became of every editor, by its last request.
func (*LostUpdate) Fates(r *runner.Round) []Fate { return lastFates(r) }
