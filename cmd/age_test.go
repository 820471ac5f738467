package cmd

import (
	"testing"
	"time"
)

func TestAge(t *testing.T) {
	for text, want := range map[string]struct {
		age  time.Duration
		says string
	}{
		"36h": {36 * time.Hour, "36h"}, "400d": {400 * day, "400d"}, "2w": {14 * day, "14d"}, "1w1d12h30m": {204*time.Hour + 30*time.Minute, "204h30m"},
		"0.5d": {12 * time.Hour, "12h"}, "90s": {90 * time.Second, "1m30s"}, "0d": {0, "0s"}, "0": {0, "0s"}, "1h0m5s": {time.Hour + 5*time.Second, "1h0m5s"},
		"10m": {10 * time.Minute, "10m"},
	} {
		var a age
		if err := a.Set(text); err != nil || time.Duration(a) != want.age || a.String() != want.says {
			t.Errorf("%q is %s (%s), %v, want %s", text, time.Duration(a), a.String(), err, want.says)
		}
	}
	for _, text := range []string{"", "400", "d", "1d2w", "-1d", "-1h", "1d-1h", "110000d", "1y", "1 d"} {
		a := age(7)
		if err := a.Set(text); err == nil || a != 7 {
			t.Errorf("%q is %s, %v", text, a.String(), err)
		}
	}
}
