package targets_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"contend/targets"
)

// What a target lacks is refused by one sentence, whatever it lacks, before anything is
// sent; a value that it does not take is the user's to change.
func TestCheckRefusesWhatATargetLacks(t *testing.T) {
	store := targets.Description{URL: "store:", Guards: []targets.Guard{targets.IfAbsent}, Finest: time.Millisecond,
		TTL: targets.TTL{Unit: time.Second, Min: 2 * time.Second, Max: time.Hour}}
	lasting := store
	lasting.TTL = targets.TTL{Instead: "choose ?ttl=column"}
	live := func(d time.Duration) targets.Needs { return targets.Needs{Shortest: d, Longest: d} }
	for _, c := range []struct {
		of    targets.Description
		needs targets.Needs
		want  string // "": it is taken
		usage bool
	}{
		{store, targets.Needs{}, "", false},
		{store, targets.Needs{Guards: []targets.Guard{targets.Unguarded, targets.IfAbsent}}, "", false},
		{store, targets.Needs{Guards: []targets.Guard{targets.IfAbsent, targets.IfVersion}}, "has no write on condition of a version (compare-and-set): choose another", false},
		{store, targets.Needs{Guards: []targets.Guard{targets.IfToken}}, "on condition of the token", false},
		{store, targets.Needs{Precision: time.Millisecond}, "", false},
		{store, targets.Needs{Precision: time.Microsecond}, "has no time as fine as 1µs: it keeps them to 1ms", false},
		{lasting, targets.Needs{Precision: time.Second}, "", false},
		{lasting, live(time.Second), "has no time to live of its own: choose ?ttl=column", false},
		{targets.Description{URL: "store:"}, live(time.Second), "has no time to live of its own: choose another target", false},
		{store, live(3 * time.Second), "", false},
		{store, live(2500 * time.Millisecond), "multiples of 1s, 2s at least, 1h0m0s at most, and not 2.5s", true},
		{store, live(time.Second), "and not 1s", true},
		{store, targets.Needs{Shortest: 2 * time.Second, Longest: 2 * time.Hour}, "and not 2h0m0s", true},
	} {
		err := c.of.Check(c.needs)
		if c.want == "" {
			if err != nil {
				t.Errorf("%+v is refused: %v", c.needs, err)
			}
			continue
		}
		usage, isUsage := errors.AsType[*targets.UsageError](err)
		if err == nil || !strings.Contains(err.Error(), "store:: this target ") || !strings.Contains(err.Error(), c.want) ||
			isUsage != c.usage || errors.Is(err, targets.ErrUnsupported) == c.usage {
			t.Errorf("%+v: got %v (%v), want %q", c.needs, err, usage, c.want)
		}
	}
}

// A description is the same for ever; with what the server tells it is another.
func TestDescriptionsAreNotChanged(t *testing.T) {
	d := targets.Description{Server: "a store", Notes: make([]string, 1, 8)}
	with := d.With(targets.Server{Name: "Store 2", Simulated: true, Notes: []string{"b"}})
	if with.Server != "Store 2" || !with.Simulated || len(with.Notes) != 2 || d.Server != "a store" || d.Simulated || d.Notes[:2][1] != "" {
		t.Errorf("got %+v from %+v", with, d)
	}
	if got := d.With(targets.Server{}).Server; got != "a store" {
		t.Errorf("a server that does not tell is %q", got)
	}
	if got := (targets.Description{}).With(targets.Server{}).Server; got != "version not reported" {
		t.Errorf("one that nobody knows is %q", got)
	}
}
