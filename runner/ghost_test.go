package runner

import (
	"testing"
	"time"
)

// The end of a watch knows all that a store and the way to it may have delayed.
func TestEndOfAWatch(t *testing.T) {
	const half = 500 * time.Millisecond
	for name, c := range map[string]struct {
		created *Observation
		granted time.Duration
		expires time.Time
		want    time.Duration
	}{
		"not created":             {nil, 0, time.Time{}, 30*time.Second + half},
		"created":                 {&Observation{Call: time.Second, Return: 2 * time.Second}, 30 * time.Second, time.Time{}, 32 * time.Second},
		"granted more":            {&Observation{Call: time.Second, Return: 2 * time.Second}, time.Minute, time.Time{}, 62 * time.Second},
		"granted less":            {&Observation{Call: time.Second, Return: 2 * time.Second}, 10 * time.Second, time.Time{}, 32 * time.Second},
		"granted nothing":         {&Observation{Return: 2 * time.Second}, 0, time.Time{}, 32 * time.Second},
		"granted more or less":    {&Observation{Return: 2 * time.Second}, 30 * time.Second, time.Unix(1, 0), 33 * time.Second},
		"granted more, to the ms": {&Observation{Return: 2 * time.Second}, time.Minute, time.Unix(1, 1e6), 62 * time.Second},
	} {
		g := &Ghost{Created: c.created, Granted: c.granted, Expires: c.expires,
			Terms: GhostTerms{TTL: 30 * time.Second, Watch: 48 * time.Hour, Offset: half}}
		if got := g.End() - 48*time.Hour; got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
		if _, latest := g.Expiry(); latest != c.want {
			t.Errorf("%s: expires by %s, want %s", name, latest, c.want)
		}
	}
}
