package report

import (
	"cmp"
	"slices"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"contend/runner"
	"contend/scenarios"
	"contend/scenarios/stats"
	"contend/targets"
)

// counts gathers what became of the contenders, and how long it took.
type counts struct {
	contenders int
	byFate     map[fateKey]*Outcome
	samples    map[sampleKey]*samples
}

type fateKey struct {
	outcome, at, code string
	status            int
}

type sampleKey struct{ outcome, at, where string }

func newCounts() *counts {
	return &counts{byFate: make(map[fateKey]*Outcome), samples: make(map[sampleKey]*samples)}
}

func (c *counts) add(fates []scenarios.Fate) {
	for _, f := range fates {
		c.addFate(f.Outcome, f.At, f.Last)
	}
}

// addFate counts what came of a contender, or a request, at a read or a write.
func (c *counts) addFate(outcome, at string, e *runner.Exchange) {
	c.contenders++
	reply := &e.Reply
	key := fateKey{outcome, at, reply.Code, reply.Status}
	o := c.byFate[key]
	if o == nil {
		o = &Outcome{Outcome: outcome, At: at, Code: reply.Code, Status: reply.Status, Message: reply.Message}
		c.byFate[key] = o
	}
	o.Count++
	c.sample(sampleKey{outcome, at, ""}, e.Return-e.Call)
	if span := reply.Server; span.Ended > 0 {
		c.sample(sampleKey{outcome, at, "server"}, time.Duration((span.Ended-span.Began)*float64(time.Millisecond)))
	}
}

func (c *counts) sample(key sampleKey, d time.Duration) {
	s := c.samples[key]
	if s == nil {
		s = &samples{}
		c.samples[key] = s
	}
	s.add(d)
}

// outcomeOrder is the order that outcomes are told in.
var outcomeOrder = []string{"won", "lost", "ok", "conflict", "shown", "missing", "aborted", "unknown", "throttled", "invalid", "not-sent", "unmapped"}

func byOutcome(a, b string) int {
	return cmp.Compare(slices.Index(outcomeOrder, a), slices.Index(outcomeOrder, b))
}

func (c *counts) outcomes() []Outcome {
	rows := []Outcome{}
	for _, o := range c.byFate {
		rows = append(rows, *o)
	}
	slices.SortFunc(rows, func(a, b Outcome) int {
		return cmp.Or(byOutcome(a.Outcome, b.Outcome), -cmp.Compare(a.At, b.At), -cmp.Compare(a.Count, b.Count),
			cmp.Compare(a.Code, b.Code), cmp.Compare(a.Status, b.Status))
	})
	return rows
}

func (c *counts) latencies() []Latency {
	rows := []Latency{}
	for key, s := range c.samples {
		// A request that never left has no latency.
		if key.outcome == string(targets.NotSent) {
			continue
		}
		rows = append(rows, s.latency(key))
	}
	slices.SortFunc(rows, func(a, b Latency) int {
		return cmp.Or(byOutcome(a.Outcome, b.Outcome), -cmp.Compare(a.At, b.At), cmp.Compare(a.Where, b.Where))
	})
	return rows
}

// of gives the samples of an outcome as we saw it, at a read or a write.
func (c *counts) of(outcome string) *samples {
	all := &samples{}
	for key, s := range c.samples {
		if key.outcome == outcome && key.where == "" {
			all.merge(s)
		}
	}
	return all
}

// count gives how many contenders met an outcome.
func (c *counts) count(outcome string) int {
	n := 0
	for key, o := range c.byFate {
		if key.outcome == outcome {
			n += o.Count
		}
	}
	return n
}

const (
	// exactSamples are kept as they are; beyond, a histogram is smaller.
	exactSamples = 30_000
	// histogram range: a nanosecond to ten minutes, three digits.
	histogramTop    = int64(10 * time.Minute)
	histogramDigits = 3
)

// samples is a distribution of latencies: exact while it is small.
type samples struct {
	n         int
	min, max  time.Duration
	exact     []time.Duration
	histogram *hdrhistogram.Histogram
}

func (s *samples) add(d time.Duration) {
	if s.n == 0 || d < s.min {
		s.min = d
	}
	s.max = max(s.max, d)
	s.n++
	if s.histogram == nil && len(s.exact) < exactSamples {
		s.exact = append(s.exact, d)
		return
	}
	s.toHistogram()
	s.record(d)
}

// record clamps to the histogram's range; the extremes are kept exactly.
func (s *samples) record(d time.Duration) {
	_ = s.histogram.RecordValue(max(1, min(int64(d), histogramTop)))
}

func (s *samples) toHistogram() {
	if s.histogram != nil {
		return
	}
	s.histogram = hdrhistogram.New(1, histogramTop, histogramDigits)
	for _, d := range s.exact {
		s.record(d)
	}
	s.exact = nil
}

func (s *samples) merge(other *samples) {
	if other.histogram == nil {
		for _, d := range other.exact {
			s.add(d)
		}
		return
	}
	s.toHistogram()
	if s.n == 0 || other.min < s.min {
		s.min = other.min
	}
	s.max = max(s.max, other.max)
	s.n += other.n
	s.histogram.Merge(other.histogram)
}

// percentile is the nearest rank; ok is false where there are too few samples.
func (s *samples) percentile(p float64) (d time.Duration, ok bool) {
	if s.histogram == nil {
		slices.Sort(s.exact)
		return stats.Percentile(s.exact, p)
	}
	if s.n < stats.Needed(p) {
		return 0, false
	}
	// The library rounds the rank of a percentile; that of an exact rank it hits.
	rank := stats.NearestRank(s.n, p)
	at := s.histogram.ValueAtPercentile(100 * float64(rank) / float64(s.n))
	return min(max(time.Duration(at), s.min), s.max), true
}

func (s *samples) latency(key sampleKey) Latency {
	l := Latency{Outcome: key.outcome, At: key.at, Where: key.where, N: s.n, Method: "exact", Min: &s.min, Max: &s.max}
	if s.histogram != nil {
		l.Method = "hdr"
	}
	for _, p := range []struct {
		percentile float64
		to         **time.Duration
	}{{50, &l.P50}, {90, &l.P90}, {95, &l.P95}, {99, &l.P99}} {
		if d, ok := s.percentile(p.percentile); ok {
			*p.to = &d
		}
	}
	return l
}
