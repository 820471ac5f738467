package emulator

import (
	"testing"
	"time"
)

func TestParseSpread(t *testing.T) {
	for text, want := range map[string]Spread{
		"0":          {},
		"50ms":       {50 * time.Millisecond, 50 * time.Millisecond, 50 * time.Millisecond},
		"40ms..90ms": {40 * time.Millisecond, 65 * time.Millisecond, 90 * time.Millisecond},
	} {
		if got, err := ParseSpread(text); got != want || err != nil {
			t.Errorf("%s: got %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "5", "-1s", "9ms..2ms", "1s..", "..1s", "1s..2s..3s"} {
		if got, err := ParseSpread(text); err == nil {
			t.Errorf("%q: got %v", text, got)
		}
	}
}

func TestSpreadAt(t *testing.T) {
	s := Spread{10, 20, 100}
	for quantile, want := range map[float64]time.Duration{0: 10, 0.25: 15, 0.5: 20, 0.75: 60, 1: 100} {
		if got := s.At(quantile); got != want {
			t.Errorf("at %g: got %d, want %d", quantile, got, want)
		}
	}
}

func TestLatencyIsThePublished(t *testing.T) {
	l, err := NewLatency("published", 1)
	noError(t, err)
	for transaction, bounds := range map[bool]Spread{
		false: {Fastest: 37 * time.Millisecond, Slowest: 93 * time.Millisecond},
		true:  {Fastest: 212 * time.Millisecond, Slowest: 319 * time.Millisecond},
	} {
		seen := map[time.Duration]bool{}
		for range 100 {
			before, after := l.Draw(transaction)
			if total := before + after; before < 0 || after < 0 || total < bounds.Fastest || total > bounds.Slowest {
				t.Fatalf("transaction %t: %s and %s", transaction, before, after)
			}
			seen[before+after] = true
		}
		if len(seen) < 50 {
			t.Errorf("transaction %t: only %d different latencies of 100", transaction, len(seen))
		}
	}
}

func TestDrawsFollowTheSeed(t *testing.T) {
	draws := func(seed uint64) (all [20]time.Duration) {
		l, err := NewLatency("1ms..1h", seed)
		noError(t, err)
		sweep, err := Sweeper(PublishedSweep, seed)
		noError(t, err)
		for i := range 10 {
			all[2*i], _ = l.Draw(false)
			all[2*i+1] = sweep()
			if all[2*i+1] < 515*time.Second || all[2*i+1] > 1117*time.Second {
				t.Fatalf("a sweep after %s", all[2*i+1])
			}
		}
		return all
	}
	first, again, other := draws(7), draws(7), draws(8)
	if first != again {
		t.Error("one seed gives different draws")
	}
	if first == other {
		t.Error("two seeds give the same draws")
	}
}

func TestSweeper(t *testing.T) {
	never, err := Sweeper("never", 0)
	noError(t, err)
	if d := never(); d >= 0 {
		t.Errorf("never is %s", d)
	}
	for _, text := range []string{"often", "-1s", "2s..1s"} {
		if _, err := Sweeper(text, 0); err == nil {
			t.Errorf("%q is accepted", text)
		}
		if _, err := NewLatency(text, 0); err == nil {
			t.Errorf("%q is accepted", text)
		}
	}
}
