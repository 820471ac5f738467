package scenarios

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"contend/runner"
	"contend/scenarios/probe"
	"contend/targets"
)

// Winners counts the winners of a round, over rounds whose final state is known
// to be the run's own.
type Winners struct {
	Min     int `json:"min"`
	Max     int `json:"max"`
	None    int `json:"none"`
	One     int `json:"one"`
	Several int `json:"several"`
}

// Control is what one control showed.
type Control struct {
	Name       string `json:"name"`
	AsExpected bool   `json:"as_expected"`
	Rounds     int    `json:"rounds,omitempty"`
	Detail     string `json:"detail,omitempty"`   // what was not as expected
	LeftOut    string `json:"left_out,omitempty"` // why it was not made
	violations []Violation
	lag        bool // it failed since a reader did not see what had been written
}

// Thresholds say what counts as a contest. They are choices; a result tells them.
type Thresholds struct {
	Rivals          int           `json:"min_rivals"`             // that the winner must have met; 0: half of the others, five at most
	Uncertain       float64       `json:"max_uncertain"`          // share of a round's contenders throttled, invalid, not sent, or not applied as far as was seen
	UncertainRounds float64       `json:"max_uncertain_rounds"`   // share of the raced rounds, for held
	Reach           time.Duration `json:"max_reach_ns,omitempty"` // only rounds with so short a reach count; 0: all
}

// DefaultThresholds are those of a run that asks for no others.
var DefaultThresholds = Thresholds{Uncertain: 0.1, UncertainRounds: 0.05}

// DefaultMinContended is how many counted rounds held needs.
const DefaultMinContended = 10

// Terms are what a judgement depends on beside the history.
type Terms struct {
	Name          string  // of the scenario that the command was
	Scenario      Contest // as raced: the twin, where the run was unguarded
	Twin          Contest // of the control; nil: none
	Contenders    int
	MinContended  int
	ControlRounds int
	OneCopy       bool          // as targets.Description has it
	SentBy        string        // the same
	Relayed       bool          // times of sending are those next to the store
	Settle        time.Duration // so long after the last answer on a key, reads of an old state are believed
	Stagger       time.Duration
	Sweep         runner.Sweep
	Thresholds    Thresholds
}

// Judge is an observer that keeps what a verdict needs of what it is shown.
type Judge struct {
	terms    Terms
	controls []Control
	findings []Finding
	skipped  bool
	unmapped string
	// disagreed lists rounds on which the general checker rules otherwise.
	disagreed []int
	// unmappedReplies counts answers that the table has no row for.
	unmappedReplies int
	// readersLag: a control failed since a reader did not see what had been written.
	readersLag bool
	// nonceGone counts the late reads that show no nonce, which nobody deletes.
	nonceGone int
	// counted is how many rounds count, as far as is known without late reads.
	counted int
	proceed bool  // as the controls have it
	foreign error // a round of another scenario
	// refusal is the first reply that says that the target did not serve a request.
	refusal *Refusal
}

// Refusal is the first request that the target did not serve.
type Refusal struct {
	Request string          `json:"request"` // seed, read, write, delete
	Outcome targets.Outcome `json:"outcome"`
	Code    string          `json:"code,omitempty"`
	Status  int             `json:"status,omitempty"`
	Message string          `json:"message,omitempty"`
}

// Text tells it in one line.
func (r *Refusal) Text() string {
	reply := targets.Reply{Outcome: r.Outcome, Code: r.Code, Status: r.Status, Message: r.Message}
	return reply.Text()
}

// noteRefusal keeps the first.
func (j *Judge) noteRefusal(request string, reply *targets.Reply) {
	if j.refusal == nil && runner.Refusing(reply.Outcome) {
		j.refusal = &Refusal{request, reply.Outcome, reply.Code, reply.Status, reply.Message}
	}
}

// NewJudge judges by the given terms.
func NewJudge(terms Terms) *Judge { return &Judge{terms: terms} }

// Judgement is everything that is derived from a history by judging.
type Judgement struct {
	Verdict    Verdict
	Contention Contention
	Winners    Winners
	Controls   []Control
	Rounds     int // that were raced; of a watch, keys
	Settled    int // unknown outcomes that turned out to be applied
	Refusal    *Refusal
	Detail     Detail
}

// Detail is what only one scenario has.
type Detail struct {
	WinnerRank *WinnerRank      `json:"winner_rank,omitempty"`
	Edits      *EditReport      `json:"edits,omitempty"`
	Ghosts     *GhostReport     `json:"ghosts,omitempty"`
	Probe      *probe.Report    `json:"probe,omitempty"`
	Counter    *CounterPrice    `json:"counter,omitempty"`
	Lease      *LeaseLosers     `json:"lease,omitempty"`
	Deliveries []DeliveryBranch `json:"deliveries,omitempty"`
	OffsetMap  *OffsetMap       `json:"offset_map,omitempty"`
}

// Round keeps what the judge needs of a round.
func (j *Judge) Round(r *runner.Round) {
	kept := j.terms.Scenario.Judge(r, j.terms.OneCopy)
	f := kept.Common()
	f.believedFrom, f.readersLag = f.answered+j.terms.Settle, j.readersLag
	f.swept = sweptOf(r)
	first := kept.Rule()
	j.disagreed = append(j.disagreed, disagreement(f, &first)...)
	if first.quiet() {
		kept.Forget(first.Winners)
	}
	if doubtOf(f, &first, j.terms, false) == (reason{}) && uncountedFor(kept, &first, &j.terms) == (reason{}) {
		j.counted++
	}
	j.findings = append(j.findings, kept)
	for i := range r.Seeds {
		j.noteReply("seed", &r.Seeds[i].Reply)
	}
	for _, all := range [][]runner.Exchange{r.Ops, r.Reads} {
		for i := range all {
			j.noteReply(string(all[i].Op.Kind), &all[i].Reply)
		}
	}
}

func (j *Judge) noteReply(request string, reply *targets.Reply) {
	j.noteUnmapped(reply)
	j.noteRefusal(request, reply)
}

// noteUnmapped counts a reply that is unmapped, and keeps the first sample.
func (j *Judge) noteUnmapped(reply *targets.Reply) {
	if reply.Outcome != targets.Unmapped {
		return
	}
	if j.unmapped == "" {
		j.unmapped = sample(reply)
	}
	j.unmappedReplies++
}

func sample(r *targets.Reply) string {
	text := strings.TrimSpace(r.Code + statusText(r.Status))
	if r.Message != "" {
		text += fmt.Sprintf(" (%s)", r.Message)
	}
	return text
}

func statusText(status int) string {
	if status == 0 {
		return ""
	}
	return fmt.Sprintf(" %d", status)
}

// Late adds a late read to its round's finding; of round 0, the nonce, it keeps
// whether two sessions find it gone.
func (j *Judge) Late(round int, read *runner.Exchange) {
	if round == 0 && read.Reply.Outcome == targets.Missing {
		if j.nonceGone++; j.removedFromOutside() {
			// Two sessions agree, long after it was written: that is no lag.
			j.readersLag = false
			for _, kept := range j.findings {
				kept.Common().readersLag = false
			}
		}
	}
	if i, ok := slices.BinarySearchFunc(j.findings, round, func(k Finding, n int) int { return k.Common().Round - n }); ok {
		j.findings[i].ReadLate(read)
	}
	j.noteUnmapped(&read.Reply)
}

// Counted is how many rounds count so far.
func (j *Judge) Counted() int { return j.counted }

// Doubtful names the rounds whose ruling waits for a late read.
func (j *Judge) Doubtful() []int {
	return j.roundsThat(func(r *Ruling) bool { return r.Violation != nil || r.StaleRead || r.Unread || r.Unsettled > 0 })
}

// Undecided names the rounds that another late read may decide.
func (j *Judge) Undecided() []int { return j.roundsThat(func(r *Ruling) bool { return r.Undecided }) }

func (j *Judge) roundsThat(hold func(*Ruling) bool) []int {
	var rounds []int
	for _, kept := range j.findings {
		if r := kept.Rule(); hold(&r) {
			rounds = append(rounds, kept.Common().Round)
		}
	}
	return rounds
}

// shownViolations is how many violations a verdict lists; all are counted.
const shownViolations = 10

// tally is what the rulings of all rounds add up to.
type tally struct {
	violations []Violation
	violated   int
	void       int
	stale      int
	staleAge   time.Duration // the greatest at which a read still showed an old state
	undecided  int           // of those: no later read confirms or refutes it
	indefinite int
	unreadLate int // seeded rounds whose late read was not answered
	counted    int
	// either counts rounds that count, or are violated.
	either    int
	uncertain int
	reaches   []time.Duration // of the counted rounds, where they are known
	why       map[reason]int  // why rounds do not count
	unsure    map[reason]int  // why rounds are uncertain
}

// Conclude rules every round and says what the run shows.
func (j *Judge) Conclude(end runner.End) Judgement {
	t := tally{why: make(map[reason]int), unsure: make(map[reason]int)}
	out := Judgement{Controls: j.controls, Rounds: end.Rounds}
	var sweep []swept
	for _, kept := range j.findings {
		f, r := kept.Common(), kept.Rule()
		t.add(kept, &r, &j.terms)
		if s := f.swept; s != nil {
			s.violated, s.uncertain = r.Violation != nil, doubtOf(f, &r, j.terms, true) != reason{}
			sweep = append(sweep, *s)
		}
		if len(f.lates) > 0 {
			j.disagreed = append(j.disagreed, disagreement(f, &r)...)
		}
		out.Settled += r.Settled
		if !r.Void && !f.Unseeded {
			out.Winners.add(r.Winners)
		}
	}
	out.Contention = j.contention()
	out.Contention.ContendedRounds, out.Contention.UncertainRounds = t.counted, t.uncertain
	out.Contention.Uncounted, out.Contention.Uncertain = uncountedOf(t.why), uncountedOf(t.unsure)
	out.Contention.Reach = j.reach(&t)
	out.Detail = j.terms.Scenario.Detail(j.findings)
	if len(sweep) > 0 && j.terms.Sweep.Steps > 0 {
		out.Detail.OffsetMap = sweepMap(j.terms.Sweep, sweep)
	}
	out.Verdict = j.verdict(&t, end.Stopped)
	out.Refusal = j.refusal
	return out
}

// disagreement gives the round if the general checker rules otherwise.
func disagreement(f *Shared, r *Ruling) []int {
	if r.history == nil {
		return nil
	}
	if legal, known := secondOpinion(fewIndeterminate(reduce(r.history))); known && legal != r.legal {
		return []int{f.Round}
	}
	return nil
}

func (w *Winners) add(n int) {
	if w.None+w.One+w.Several == 0 {
		w.Min = n
	}
	w.Min, w.Max = min(w.Min, n), max(w.Max, n)
	switch n {
	case 0:
		w.None++
	case 1:
		w.One++
	default:
		w.Several++
	}
}

func (t *tally) add(kept Finding, r *Ruling, terms *Terms) {
	f := kept.Common()
	if r.Void {
		t.void++
	}
	if r.StaleRead {
		t.stale++
		t.staleAge = max(t.staleAge, r.StaleAge)
		if r.Undecided {
			t.undecided++
		}
	}
	if r.Indefinite {
		t.indefinite++
	}
	if !f.readOnce && !f.Unseeded {
		t.unreadLate++
	}
	if r.Violation != nil {
		t.violated++
		if len(t.violations) < shownViolations {
			t.violations = append(t.violations, *r.Violation)
		}
	}
	switch doubt, why := doubtOf(f, r, *terms, true), uncountedFor(kept, r, terms); {
	case doubt != reason{}:
		t.uncertain++
		t.unsure[doubt]++
	case why != reason{}:
		t.why[why]++
	default:
		t.counted++
		if r.Violation == nil {
			t.either++
		}
		if f.Evidence.Reach >= 0 {
			t.reaches = append(t.reaches, f.Evidence.Reach)
		}
	}
	if r.Violation != nil {
		t.either++
	}
}
