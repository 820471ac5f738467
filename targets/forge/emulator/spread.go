package emulator

import (
	"errors"
	"math/rand/v2"
	"strings"
	"sync"
	"time"
)

// Spread is a distribution of durations: half of them lie between Fastest and
// Median, half between Median and Slowest, evenly.
type Spread struct{ Fastest, Median, Slowest time.Duration }

// Published figures of the live platform ("Locking in Forge KVS", August 2026),
// 12 contenders: fastest, median, slowest. That each half is even is an
// assumption, as is that a read takes as long as a set.
var (
	publishedSet         = Spread{37 * time.Millisecond, 52 * time.Millisecond, 93 * time.Millisecond}
	publishedTransaction = Spread{212 * time.Millisecond, 239 * time.Millisecond, 319 * time.Millisecond}
)

// PublishedSweep brackets the one published observation of an expired key: still
// blocking at 8m35s past its expiry, gone at 18m37s. That the delay is uniform
// in it is an assumption.
const PublishedSweep = "8m35s..18m37s"

// At gives the duration at a quantile from 0 to 1.
func (s Spread) At(quantile float64) time.Duration {
	if quantile < 0.5 {
		return s.Fastest + time.Duration(2*quantile*float64(s.Median-s.Fastest))
	}
	return s.Median + time.Duration((2*quantile-1)*float64(s.Slowest-s.Median))
}

// ParseSpread reads a duration, or a range such as 40ms..90ms in which all
// durations are equally likely.
func ParseSpread(text string) (Spread, error) {
	low, high, ranged := strings.Cut(text, "..")
	if !ranged {
		high = low
	}
	a, errA := time.ParseDuration(low)
	b, errB := time.ParseDuration(high)
	if errA != nil || errB != nil || a < 0 || b < a {
		return Spread{}, errors.New("needs a duration such as 50ms or 0, or a range such as 40ms..90ms")
	}
	return Spread{a, a + (b-a)/2, b}, nil
}

// Sweeper reads a spread, or never, and draws from it by the seed: the form of
// Options.Sweep.
func Sweeper(text string, seed uint64) (func() time.Duration, error) {
	if text == "never" {
		return func() time.Duration { return -1 }, nil
	}
	spread, err := ParseSpread(text)
	if err != nil {
		return nil, errors.New(err.Error() + ", or never")
	}
	random := rand.New(rand.NewPCG(seed, 2))
	return func() time.Duration { return spread.At(random.Float64()) }, nil
}

// Latency draws how long requests take. It is safe for concurrent use.
type Latency struct {
	set, transaction Spread

	mutex  sync.Mutex // guards random
	random *rand.Rand
}

// NewLatency reads a spread for every request, or published for the figures of
// the live platform, to be drawn by the seed.
func NewLatency(text string, seed uint64) (*Latency, error) {
	l := &Latency{set: publishedSet, transaction: publishedTransaction, random: rand.New(rand.NewPCG(seed, 1))}
	if text == "published" {
		return l, nil
	}
	spread, err := ParseSpread(text)
	if err != nil {
		return nil, errors.New(err.Error() + ", or published")
	}
	l.set, l.transaction = spread, spread
	return l, nil
}

// Draw gives the latency of one request, as what passes before the store acts
// and after it.
func (l *Latency) Draw(transaction bool) (before, after time.Duration) {
	of := l.set
	if transaction {
		of = l.transaction
	}
	if of.Slowest == 0 {
		return 0, 0
	}
	l.mutex.Lock()
	total, share := of.At(l.random.Float64()), l.random.Float64()
	l.mutex.Unlock()
	before = time.Duration(share * float64(total))
	return before, total - before
}
