package cmd

import (
	"errors"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"
)

// age is a flag of a duration as people tell ages: as Go writes it, with weeks
// (w) and days (d) in front.
type age time.Duration

var agePattern = regexp.MustCompile(`(?s)^(?:(\d+(?:\.\d+)?)w)?(?:(\d+(?:\.\d+)?)d)?(.*)$`)

const day = 24 * time.Hour

// Set reads an age, which is not negative.
func (a *age) Set(text string) error {
	parts := agePattern.FindStringSubmatch(text)
	var total float64
	for i, unit := range []time.Duration{7 * day, day} {
		if parts[i+1] != "" {
			n, _ := strconv.ParseFloat(parts[i+1], 64)
			total += n * float64(unit)
		}
	}
	var rest time.Duration
	if parts[3] != "" || text == "" {
		var err error
		if rest, err = time.ParseDuration(parts[3]); err != nil {
			return errors.New("needs an age such as 36h, 400d, 2w or 1d12h")
		}
	}
	if rest < 0 {
		return errors.New("must not be negative")
	}
	if total += float64(rest); total >= math.MaxInt64 {
		return errors.New("is longer than 292 years")
	}
	*a = age(total)
	return nil
}

// String tells whole days as days, and no units of which there are none.
func (a *age) String() string {
	if d := time.Duration(*a); d > 0 && d%day == 0 {
		return strconv.FormatInt(int64(d/day), 10) + "d"
	}
	text := time.Duration(*a).String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// Type names what the flag takes.
func (a *age) Type() string { return "age" }

func ageVar(fs *pflag.FlagSet, a *time.Duration, name, usage string) { fs.Var((*age)(a), name, usage) }
