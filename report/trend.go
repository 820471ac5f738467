package report

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"time"

	"contend/runner"
	"contend/scenarios"
	"contend/scenarios/stats"
	"contend/scenarios/survival"
	"contend/targets"
)

// TrendSchema is the format of a trend.
const TrendSchema = "contend.trend/1"

// TrendRun is what a trend takes of a stored run. Its JSON form reads a Result.
type TrendRun struct {
	RunHeader
	Rounds   int               `json:"rounds"`
	Outcomes []Outcome         `json:"outcomes"`
	Winners  scenarios.Winners `json:"winners"`
	Latency  []Latency         `json:"latency"`
	Verdict  TrendVerdict      `json:"verdict"`
	// Ghosts are all keys of the run, as far as they have been watched by now.
	Ghosts []*runner.Ghost `json:"-"`
	// Killed: the run left keys and no result.
	Killed bool `json:"-"`
}

// TrendVerdict is what a trend takes of a verdict.
type TrendVerdict struct {
	Status         scenarios.Status `json:"status"`
	ViolatedRounds int              `json:"violated_rounds"`
	Expected       bool             `json:"expected"`
}

// TrendReport tells, night by night, of runs that can be compared. A night is a
// day of UTC, by the start of the run.
type TrendReport struct {
	Series []TrendSeries
	// Shown is how many nights people see, up to the latest of each series; 0: all.
	// Machines see all.
	Shown int
}

// TrendSeries are the nights of one scenario on one target, with the same
// strategies and the same parameters of weight.
type TrendSeries struct {
	Scenario  string            `json:"scenario"`
	Target    string            `json:"target"`
	Simulated bool              `json:"simulated"`
	Strategy  map[string]string `json:"strategy"`
	Terms     TrendTerms        `json:"params"`
	// Nights are those with a run, in order.
	Nights []TrendNight `json:"nights"`
}

// TrendTerms are the parameters without which runs cannot be compared.
type TrendTerms struct {
	Contenders int           `json:"contenders,omitempty"`
	Unguarded  bool          `json:"unguarded,omitempty"`
	Stagger    time.Duration `json:"stagger_ns,omitempty"`
	Sweep      runner.Sweep  `json:"offset_sweep,omitzero"`
	ValueSize  int           `json:"value_size,omitempty"`
	TTL        time.Duration `json:"ttl_ns,omitempty"`
	Tolerance  time.Duration `json:"tolerance_ns,omitempty"`
	// Options are the other parameters of the scenario's own.
	Options json.RawMessage `json:"options,omitempty"`
}

// TrendNight is what the runs of a night say together: counts are added up, a
// median of latencies is the middle one of the runs', and delays are estimated
// from the keys of all.
type TrendNight struct {
	Night string   `json:"night"` // a day
	Runs  []string `json:"runs"`
	// Verdict is the worst of the runs': violated, inconclusive, held. Killed runs
	// have none.
	Verdict        scenarios.Status `json:"verdict"`
	Violated       int              `json:"violated_runs"`
	Rounds         int              `json:"rounds"`
	ViolatedRounds int              `json:"violated_rounds"`
	WinnersMin     *int             `json:"winners_min"`
	WinnersMax     *int             `json:"winners_max"`
	Won            *time.Duration   `json:"won_p50_ns"`
	Lost           *time.Duration   `json:"lost_p50_ns"`
	Throttled      int              `json:"throttled"`
	// Of keys with a time to live, the abandoned ones left out. Delays are of the
	// arm that is asked by creates.
	Keys  int                `json:"keys,omitempty"`
	Open  int                `json:"open,omitempty"` // still asked about
	Sweep *survival.Quantile `json:"sweep_median,omitempty"`
	// The longest that a key was seen to block, and when that one was free; nil: it
	// was not seen free.
	Longest     *time.Duration `json:"sweep_longest_from_ns,omitempty"`
	LongestFree *time.Duration `json:"sweep_longest_to_ns,omitempty"`

	Alarms  []string `json:"alarms,omitempty"`
	Changes []string `json:"changes,omitempty"` // since the night before that has a run
}

// Mark is an alarm or a change, and where it was seen.
type Mark struct {
	Series string // scenario, target and parameters
	Night  string
	Text   string
}

// Trend puts runs into series and nights, looks for a drift of their medians,
// and marks what changed. The order of the runs does not matter.
func Trend(runs []TrendRun) TrendReport {
	sorted := make([]*TrendRun, len(runs))
	for i := range runs {
		sorted[i] = &runs[i]
	}
	slices.SortFunc(sorted, func(a, b *TrendRun) int { return cmp.Or(a.Started.Compare(b.Started), cmp.Compare(a.Run, b.Run)) })
	var order []string                     // of the series, by their first run
	series := make(map[string][]*TrendRun) // by what runs have in common
	alike := make(map[string]string)       // the latest series of what they have in common but for strategies
	add := func(key string, r *TrendRun) {
		if series[key] == nil {
			order = append(order, key)
		}
		series[key] = append(series[key], r)
	}
	for _, r := range sorted {
		if !r.Killed {
			key := r.common() + pairs(r.Target.Strategy, ",")
			add(key, r)
			alike[r.common()] = key
		}
	}
	for _, r := range sorted {
		if r.Killed { // and did not tell its strategies
			add(cmp.Or(alike[r.common()], r.common()), r)
		}
	}
	var t TrendReport
	for _, key := range order {
		t.Series = append(t.Series, seriesOf(series[key]))
	}
	slices.SortStableFunc(t.Series, func(a, b TrendSeries) int { return cmp.Compare(a.Title(), b.Title()) })
	return t
}

// common is the same for runs that can be compared, but for their strategies.
func (r *TrendRun) common() string {
	return fmt.Sprintf("%s\n%s\n%+v\n", r.Scenario, r.Target.URL, r.terms())
}

func (r *TrendRun) terms() TrendTerms {
	var own struct {
		TTL       time.Duration `json:"ttl_ns"`
		Tolerance time.Duration `json:"tolerance_ns"`
	}
	if len(r.Ghosts) > 0 {
		own.TTL, own.Tolerance = r.Ghosts[0].Terms.TTL, r.Ghosts[0].Terms.Tolerance
	} else if len(r.Params.Options) > 0 {
		_ = json.Unmarshal(r.Params.Options, &own) // those of other scenarios have no such fields
	}
	if own.TTL > 0 {
		return TrendTerms{TTL: own.TTL, Tolerance: own.Tolerance}
	}
	p := r.Params
	return TrendTerms{Contenders: p.Contenders, Unguarded: p.Unguarded, Stagger: p.Stagger, Sweep: p.Sweep, ValueSize: p.ValueSize, Options: p.Options}
}

// seriesOf makes one of runs that are in order.
func seriesOf(runs []*TrendRun) TrendSeries {
	slices.SortStableFunc(runs, func(a, b *TrendRun) int { return a.Started.Compare(b.Started) })
	r := runs[0]
	s := TrendSeries{Scenario: r.Scenario, Target: r.Target.URL, Simulated: r.Target.Simulated, Strategy: r.Target.Strategy, Terms: r.terms()}
	var before *TrendRun
	for len(runs) > 0 {
		night := runs[0].night()
		n := slices.IndexFunc(runs, func(r *TrendRun) bool { return r.night() != night })
		if n < 0 {
			n = len(runs)
		}
		s.Nights = append(s.Nights, nightOf(night, runs[:n]))
		for _, r := range runs[:n] {
			if !r.Killed {
				last := &s.Nights[len(s.Nights)-1]
				last.Changes = append(last.Changes, changes(before, r)...)
				before = r
			}
		}
		runs = runs[n:]
	}
	for _, m := range trendMedians {
		s.drift(m)
	}
	return s
}

const dayFormat = "2006-01-02"

func (r *TrendRun) night() string { return r.Started.UTC().Format(dayFormat) }

// nightOf puts the runs of a night together.
func nightOf(night string, runs []*TrendRun) TrendNight {
	n := TrendNight{Night: night}
	var won, lost []time.Duration
	var ghosts []*runner.Ghost
	worst := map[scenarios.Status]int{scenarios.Violated: 3, scenarios.Inconclusive: 2, scenarios.Held: 1}
	for _, r := range runs {
		n.Runs = append(n.Runs, r.Run)
		ghosts = append(ghosts, r.Ghosts...)
		if worst[r.Verdict.Status] > worst[n.Verdict] {
			n.Verdict = r.Verdict.Status
		}
		n.Rounds += r.Rounds
		n.ViolatedRounds += r.Verdict.ViolatedRounds
		n.Throttled += counted(r.Outcomes, targets.Throttled)
		if r.Verdict.Status == scenarios.Violated {
			n.Violated++
			if !r.Verdict.Expected && r.Params.ExpectVerdict != string(scenarios.Violated) {
				n.Alarms = append(n.Alarms, fmt.Sprintf("violated in %d of %d %s (run %s)", r.Verdict.ViolatedRounds, r.Rounds, r.unit(), r.Run))
			}
		}
		if w := r.Winners; w.None+w.One+w.Several > 0 {
			if n.WinnersMin == nil {
				n.WinnersMin, n.WinnersMax = &w.Min, &w.Max
			}
			low, high := min(*n.WinnersMin, w.Min), max(*n.WinnersMax, w.Max)
			n.WinnersMin, n.WinnersMax = &low, &high
		}
		if d := medianOf(r.Latency, "won"); d != nil {
			won = append(won, *d)
		}
		if d := medianOf(r.Latency, "lost"); d != nil {
			lost = append(lost, *d)
		}
	}
	n.Won, n.Lost = middle(won), middle(lost)
	n.watched(ghosts)
	return n
}

func (r *TrendRun) unit() string {
	if r.terms().TTL > 0 {
		return "keys"
	}
	return "rounds"
}

// middle is the lower one where there are two.
func middle(d []time.Duration) *time.Duration {
	if len(d) == 0 {
		return nil
	}
	slices.Sort(d)
	return &d[(len(d)-1)/2]
}

// watched takes the keys of a night. Those that were probed once only are a
// control of the others.
func (n *TrendNight) watched(ghosts []*runner.Ghost) {
	const all = "" // keys of several runs are judged as of one
	judge := scenarios.NewGhostJudge(all)
	var taken []*runner.Ghost
	for _, g := range ghosts {
		if g.Arm == scenarios.OnceArm || g.Arm == scenarios.TwinArm {
			continue
		}
		if g.Arm == scenarios.WriteArm && g.State != runner.GhostAbandoned {
			n.Keys++
			if !g.Closed {
				n.Open++
			}
		}
		one := *g
		one.Run = all
		taken = append(taken, &one)
	}
	if n.Keys == 0 {
		return
	}
	judge.Watching(taken)
	report := judge.Conclude(runner.End{}).Detail.Ghosts
	n.Sweep = report.Median
	for i := range report.Keys {
		if k := &report.Keys[i]; k.Arm == scenarios.WriteArm && k.LastBlocked != nil && (n.Longest == nil || *k.LastBlocked > *n.Longest) {
			n.Longest, n.LongestFree = k.LastBlocked, k.FirstFree
		}
	}
}

// changes tells what is not as it was in the run before.
func changes(before, now *TrendRun) []string {
	if before == nil {
		return nil
	}
	var all []string
	for _, c := range []struct{ what, before, now string }{
		{"kind of target", before.Target.Kind, now.Target.Kind},
		{"server", before.Target.Server, now.Target.Server},
		{"contend", before.Tool.Version, now.Tool.Version},
		{"Go", before.Tool.Go, now.Tool.Go},
	} {
		if c.before != c.now {
			all = append(all, fmt.Sprintf("%s: %s → %s", c.what, orDash(c.before), orDash(c.now)))
		}
	}
	return all
}

// trendMedian is a figure of each night that may drift.
type trendMedian struct {
	name  string
	of    func(*TrendNight) float64 // nanoseconds; NaN: none
	write func(float64) string
}

var trendMedians = []trendMedian{
	{"median latency of won", func(n *TrendNight) float64 { return orNaN(n.Won) }, inMilliseconds},
	{"median latency of lost", func(n *TrendNight) float64 { return orNaN(n.Lost) }, inMilliseconds},
	{"median delay until expired keys are free", func(n *TrendNight) float64 { return n.sweep() },
		func(v float64) string { return stats.Coarse(time.Duration(v)).String() }},
}

func orNaN(d *time.Duration) float64 {
	if d == nil {
		return math.NaN()
	}
	return float64(*d)
}

func inMilliseconds(v float64) string {
	return milliseconds(time.Duration(v)) + " ms"
}

// sweep is the middle of the interval of the median delay; where no end of it was
// observed, its beginning, so that keys which are not freed any more drift up.
func (n *TrendNight) sweep() float64 {
	switch {
	case n.Sweep == nil || n.Sweep.From == survival.Forever:
		return math.NaN()
	case n.Sweep.To == survival.Forever:
		return float64(n.Sweep.From)
	default:
		return float64(n.Sweep.From+n.Sweep.To) / 2
	}
}

// drift marks the nights on which a median has drifted.
func (s *TrendSeries) drift(m trendMedian) {
	values := make([]float64, len(s.Nights))
	for i := range s.Nights {
		values[i] = m.of(&s.Nights[i])
	}
	for i, chart := range stats.Drift(values) {
		if chart.Alarm == "" {
			continue
		}
		before := slices.DeleteFunc(slices.Clone(values[:i]), math.IsNaN)
		slices.Sort(before)
		s.Nights[i].Alarms = append(s.Nights[i].Alarms, fmt.Sprintf("%s has drifted %s: %s; the middle one of %d nights before: %s",
			m.name, chart.Alarm, m.write(values[i]), len(before), m.write(before[(len(before)-1)/2])))
	}
}

// Latest is the last night of any series; zero where there is none.
func (t TrendReport) Latest() time.Time {
	var latest time.Time
	for _, s := range t.Series {
		if at := s.Nights[len(s.Nights)-1].at(); at.After(latest) {
			latest = at
		}
	}
	return latest
}

func (n *TrendNight) at() time.Time {
	at, _ := time.Parse(dayFormat, n.Night)
	return at
}

// Alarms gives those of the night of a time and of all after it.
func (t TrendReport) Alarms(from time.Time) []Mark {
	return t.marks(from, func(n *TrendNight) []string { return n.Alarms })
}

// Changes gives those of the night of a time and of all after it.
func (t TrendReport) Changes(from time.Time) []Mark {
	return t.marks(from, func(n *TrendNight) []string { return n.Changes })
}

func (t TrendReport) marks(from time.Time, of func(*TrendNight) []string) []Mark {
	first := from.UTC().Format(dayFormat)
	var marks []Mark
	for i := range t.Series {
		s := &t.Series[i]
		for j := range s.Nights {
			if n := &s.Nights[j]; n.Night >= first {
				for _, text := range of(n) {
					marks = append(marks, Mark{s.Title(), n.Night, text})
				}
			}
		}
	}
	return marks
}
