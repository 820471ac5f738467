package stats

import "time"

// Coarse rounds a duration to what is worth telling.
func Coarse(d time.Duration) time.Duration {
	switch {
	case d.Abs() >= time.Hour:
		return d.Round(time.Minute)
	case d.Abs() >= time.Minute:
		return d.Round(time.Second)
	case d.Abs() >= time.Second:
		return d.Round(10 * time.Millisecond)
	default:
		return d.Round(100 * time.Microsecond)
	}
}
