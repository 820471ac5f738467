package scenarios

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"contend/runner"
	"contend/targets"
)

// Probe asks a store single requests, to see how it answers.
type Probe struct {
	Only  Groups   `json:"only,omitempty"`  // none: all
	Since *Earlier `json:"since,omitempty"` // what an earlier probe was answered; nil: nothing to compare with
}

// Groups are the names of groups of questions; as a flag, repeatable.
type Groups []string

// Set adds one.
func (g *Groups) Set(name string) error { *g = append(*g, name); return nil }

// String is the list with commas.
func (g *Groups) String() string { return strings.Join(*g, ",") }

// Type makes it repeatable on the command line and in suite files.
func (g *Groups) Type() string { return "stringArray" }

// GetSlice, Append and Replace are those of a list on the command line.
func (g *Groups) GetSlice() []string { return *g }

// Append adds one.
func (g *Groups) Append(name string) error { return g.Set(name) }

// Replace takes others in their place.
func (g *Groups) Replace(names []string) error { *g = names; return nil }

// Info describes the scenario.
func (*Probe) Info() Info {
	return Info{
		Name:    "probe",
		Summary: "single requests, no race: how a store answers wrong types, bounds, sizes, times to live; its error objects",
		Help: `Asked: single requests, one after the other, in a store's own language: types and bounds, direct and in a transaction,
limits, times to live, lost conditions, and what no documentation tells. Each answer stands beside what is known of it,
with the source; codes that the documentation does not list are marked.
Nothing must hold: there is no verdict. Exit 0 means that every question was answered, 3 that some were not, and 5 that
an answer differs from the one in --since FILE, a JSON result of an earlier probe.`,
	}
}

// Flags are the scenario's own.
func (p *Probe) Flags(fs *flag.FlagSet) {
	fs.Var(&p.Only, "only", "only the questions of this `GROUP`; repeatable")
}

// Check refuses groups that no target has.
func (p *Probe) Check() error {
	all := groupsOf(strategyQuestions("-"))
	for _, family := range families() {
		all = append(all, groupsOf(family.questions("-"))...)
	}
	slices.Sort(all)
	return p.check(slices.Compact(all))
}

// Compare has the answers stand beside those of an earlier probe.
func (p *Probe) Compare(with *Earlier) { p.Since = with }

// Judge gives the judge of the answers.
func (p *Probe) Judge(kind, prefix, run string) Judging { return NewProbeJudge(p, kind, prefix, run) }

// CheckFor refuses groups that a target of the kind does not have, and an earlier
// probe of another kind of store.
func (p *Probe) CheckFor(kind string) error {
	if p.Since != nil && p.Since.Family != Family(kind) {
		return fmt.Errorf("--since: it holds answers of %s, and %s is another kind of store", p.Since.Target, kind)
	}
	return p.check(groupsOf(allQuestions(kind, "-")))
}

func (p *Probe) check(groups []string) error {
	for _, name := range p.Only {
		if !slices.Contains(groups, name) {
			return fmt.Errorf("--only %q: the groups are %s", name, strings.Join(groups, ", "))
		}
	}
	return nil
}

func groupsOf(questions []Question) []string {
	var groups []string
	for i := range questions {
		if g := questions[i].Group(); !slices.Contains(groups, g) {
			groups = append(groups, g)
		}
	}
	return groups
}

// Basis says where it is known from how a store answers.
type Basis string

const (
	Documented Basis = "documented"
	Measured   Basis = "measured" // published
	InPackage  Basis = "package"  // read in the vendor's client package
	NotKnown   Basis = "unknown"
)

// Known is what is known of an answer before it is asked for. What is zero is not
// known, or told by another field.
type Known struct {
	Basis   Basis           `json:"basis"`
	Source  string          `json:"source,omitempty"`
	Outcome targets.Outcome `json:"outcome,omitempty"`
	Code    string          `json:"code,omitempty"`
	Status  int             `json:"status,omitempty"`
	Message string          `json:"message,omitempty"`
	Answer  string          `json:"answer,omitempty"`
}

// agrees tells whether an answer is as known. A relay does not tell the status of
// what its client package makes no error of, nor the message.
func (k *Known) agrees(a *ProbeAnswer) bool {
	return (k.Outcome == "" || k.Outcome == a.Outcome) && (k.Code == "" || k.Code == a.Code) &&
		(k.Status == 0 || a.Status == 0 || k.Status == a.Status) &&
		(k.Message == "" || k.Message == a.Message || a.Message == "" && a.Status == 0) && (k.Answer == "" || k.Answer == a.Answer)
}

// Question is one thing that a store is asked.
type Question struct {
	runner.Inquiry        // its ID, group/name or group/name/way, stays the same over versions of contend
	Text           string // in words
	Known          Known
	// read gives the answer in words where the last reply alone does not tell it;
	// nil: it does. It is given the replies to all steps.
	read func(replies []*runner.Exchange) string
	// figure is what was measured beside that, and differs from time to time; nil: nothing.
	figure func(replies []*runner.Exchange) string
	// gone tells what it means that a step which must be OK found nothing: the
	// question is then not asked. "": it means a failure.
	gone string
}

// Group is the first part of the ID.
func (q *Question) Group() string {
	group, _, _ := strings.Cut(q.ID, "/")
	return group
}

// Way is the last part of the ID where a question is asked in several ways, such as
// direct and transaction; else "".
func (q *Question) Way() string {
	if parts := strings.Split(q.ID, "/"); len(parts) == 3 {
		return parts[2]
	}
	return ""
}

// family is a kind of store that has questions of its own.
type family struct {
	name      string
	kinds     []string // of targets
	questions func(base string) []Question
	// listed tells whether the documentation lists a code; nil: it has no such list.
	listed func(code string) bool
}

// families lists the stores that have questions of their own.
func families() []family {
	return []family{
		{"forge", []string{"sim", "forge", "forge-rest"}, forgeQuestions, forgeListed},
		{"redis", []string{"redis"}, redisQuestions, nil},
		{"postgres", []string{"postgres"}, postgresQuestions, nil},
	}
}

// Family is the kind of store behind a kind of target: answers of one family can be
// compared.
func Family(kind string) string { return familyOf(kind).name }

func familyOf(kind string) family {
	for _, f := range families() {
		if slices.Contains(f.kinds, kind) {
			return f
		}
	}
	return family{name: kind, questions: func(string) []Question { return nil }}
}

// allQuestions are those to a kind of target; every key begins with base.
func allQuestions(kind, base string) []Question {
	return append(familyOf(kind).questions(base), strategyQuestions(base)...)
}

// Questions are those that are asked of a kind of target in a run.
func (p *Probe) Questions(kind, prefix, run string) []Question {
	return slices.DeleteFunc(allQuestions(kind, prefix+run+"-"), func(q Question) bool {
		return len(p.Only) > 0 && !slices.Contains(p.Only, q.Group())
	})
}

// Inquiries are the questions as a plan has them.
func Inquiries(questions []Question) []runner.Inquiry {
	all := make([]runner.Inquiry, len(questions))
	for i := range questions {
		all[i] = questions[i].Inquiry
	}
	return all
}

// strategyQuestions are asked of every target, by the ways of its URL.
func strategyQuestions(base string) []Question {
	const table = "contend targets: the target's table of answers"
	key := func(name string) string { return base + "strategy-" + name }
	op := func(kind targets.Kind, name string, collection targets.Collection) targets.Op {
		o := targets.Op{Kind: kind, Key: key(name), Collection: collection}
		if kind == targets.Write {
			o.Value = targets.Record{Token: key(name)}
		}
		return o
	}
	guarded := func(o targets.Op, c targets.Condition) targets.Op { o.If = c; return o }
	create := guarded(op(targets.Write, "create", targets.Plain), targets.Condition{Guard: targets.IfAbsent})
	seed := op(targets.Write, "version", targets.Versioned)
	stale := guarded(seed, targets.Condition{Guard: targets.IfVersion, Counter: 7, Version: "stale"})
	brief := op(targets.Write, "ttl", targets.Plain)
	brief.TTL = 1500 * time.Millisecond
	ttl := Question{Inquiry: runner.Inquiry{ID: "strategy/ttl", Steps: []runner.Step{mustStep(brief), plainStep(op(targets.Read, "ttl", targets.Plain))},
		Remove: []targets.Op{op(targets.Delete, "ttl", targets.Plain)}}, Text: "a time to live of 1.5 s: is it told what is granted",
		Known: notKnown(), read: readGranted, figure: grantedFigure}
	ask := func(id, text string, outcome targets.Outcome, remove []targets.Op, steps ...runner.Step) Question {
		return Question{Inquiry: runner.Inquiry{ID: "strategy/" + id, Steps: steps, Remove: remove}, Text: text,
			Known: Known{Basis: Documented, Source: table, Outcome: outcome}}
	}
	return []Question{
		ask("create-present", "a create-if-absent of a key that is there", targets.Conflict, []targets.Op{op(targets.Delete, "create", targets.Plain)},
			mustStep(create), plainStep(create)),
		ask("version-stale", "a write on a version that is not the record's", targets.Conflict, []targets.Op{op(targets.Delete, "version", targets.Versioned)},
			mustStep(seed), plainStep(stale)),
		ask("version-absent", "a write on a version of a key that is not there", targets.Conflict, nil,
			plainStep(guarded(op(targets.Write, "absent", targets.Versioned), targets.Condition{Guard: targets.IfVersion, Counter: 7, Version: "stale"}))),
		ask("read-absent", "a read of a key that is not there", targets.Missing, nil, plainStep(op(targets.Read, "absent", targets.Plain))),
		ask("delete-absent", "a delete of a key that is not there", targets.OK, nil, plainStep(op(targets.Delete, "absent", targets.Plain))),
		ttl,
	}
}

// readGranted tells whether the write, or a read after it, tells a time to live.
func readGranted(replies []*runner.Exchange) string {
	if grantedFigure(replies) == "" {
		return "it is not told"
	}
	return "it is told"
}

func grantedFigure(replies []*runner.Exchange) string {
	if d := max(replies[0].Reply.Granted, lastReply(replies).Granted); d > 0 {
		return d.String()
	}
	return ""
}

func plainStep(op targets.Op) runner.Step { return runner.Step{Op: op} }

// mustStep is a step that makes ready what the next asks about.
func mustStep(op targets.Op) runner.Step { return runner.Step{Op: op, Must: true} }

// lateStep lets a step wait since the one before.
func lateStep(d time.Duration, s runner.Step) runner.Step { s.After = d; return s }

// ProbeState is what became of a question.
type ProbeState string

const (
	ProbeAnswered   ProbeState = "answered"
	ProbeUnanswered ProbeState = "unanswered" // no answer came, or not to what it rests on
	ProbeNotAsked   ProbeState = "not-asked"  // the target has no such request, or there was nothing to ask about
)

// ProbeAnswer is a question with what was answered to its last request.
type ProbeAnswer struct {
	ID       string          `json:"id"`
	Group    string          `json:"group"`
	Way      string          `json:"way,omitempty"`
	Question string          `json:"question"`
	Requests []targets.Op    `json:"requests"` // long values cut
	Known    Known           `json:"known"`
	State    ProbeState      `json:"state"`
	Why      string          `json:"why,omitempty"` // it was not answered
	Outcome  targets.Outcome `json:"outcome,omitempty"`
	Code     string          `json:"code,omitempty"`
	Status   int             `json:"status,omitempty"`
	Message  string          `json:"message,omitempty"`
	Answer   string          `json:"answer,omitempty"` // in words, where the reply alone does not tell it
	Figure   string          `json:"figure,omitempty"` // measured, not compared with an earlier one
	Raw      json.RawMessage `json:"raw,omitempty"`    // the answer as it came, of what was refused the error object
	Trace    string          `json:"trace,omitempty"`
	Took     time.Duration   `json:"took_ns,omitempty"`
	// Listed: the documentation's lists contain the code; null: there is no code, no
	// list, or it is an answer to no raw request.
	Listed *bool `json:"listed"`
	// AsKnown: the answer is the known one; null: there is none, or nothing is known.
	AsKnown *bool `json:"as_known"`
	// Was is how the earlier probe was answered, where that differs.
	Was *EarlierAnswer `json:"was,omitempty"`
}

// ProbeReport is everything that a probe tells.
type ProbeReport struct {
	Answers    []ProbeAnswer `json:"answers"`
	Answered   int           `json:"answered"`
	Unanswered int           `json:"unanswered"`
	NotAsked   int           `json:"not_asked"`
	AsKnown    int           `json:"as_known"`     // of those answered
	NotAsKnown int           `json:"not_as_known"` // the same
	NotListed  int           `json:"not_listed"`   // codes that the documentation's lists do not contain
	Since      *ProbeSince   `json:"since,omitempty"`
}

// ProbeSince is the earlier probe that the answers were compared with.
type ProbeSince struct {
	Run      string    `json:"run"`
	Target   string    `json:"target"`
	Started  time.Time `json:"started"`
	Compared int       `json:"compared"` // answered both times
	Changed  int       `json:"changed"`
}

// Earlier is what is kept of a probe for later ones to compare with.
type Earlier struct {
	Run     string          `json:"run"`
	Family  string          `json:"family"`
	Target  string          `json:"target"`
	Started time.Time       `json:"started"`
	Answers []EarlierAnswer `json:"answers"`
}

// EarlierAnswer is what is compared of an answer.
type EarlierAnswer struct {
	ID      string          `json:"id"`
	Outcome targets.Outcome `json:"outcome"`
	Code    string          `json:"code,omitempty"`
	Status  int             `json:"status,omitempty"`
	Answer  string          `json:"answer,omitempty"`
}

// Kept gives what is compared later: what was answered.
func (r *ProbeReport) Kept() []EarlierAnswer {
	kept := []EarlierAnswer{}
	for i := range r.Answers {
		if a := &r.Answers[i]; a.State == ProbeAnswered {
			kept = append(kept, a.Kept())
		}
	}
	return kept
}

// Kept is what is compared of it later.
func (a *ProbeAnswer) Kept() EarlierAnswer {
	return EarlierAnswer{a.ID, a.Outcome, a.Code, a.Status, a.Answer}
}

// same tells whether two answers are; one without a status is of a relay that does
// not tell it.
func (e EarlierAnswer) same(now EarlierAnswer) bool {
	if e.Status == 0 || now.Status == 0 {
		e.Status, now.Status = 0, 0
	}
	return e == now
}

// ProbeJudge is an observer that makes a report of the replies that it is shown.
type ProbeJudge struct {
	questions []Question
	listed    func(string) bool
	since     *Earlier
	replies   map[string][]*runner.Exchange
	last      bool // what was observed last was an answer to the last request of a question
	foreign   error
}

// NewProbeJudge judges a probe of a kind of target.
func NewProbeJudge(p *Probe, kind, prefix, run string) *ProbeJudge {
	return &ProbeJudge{questions: p.Questions(kind, prefix, run), listed: familyOf(kind).listed, since: p.Since,
		replies: make(map[string][]*runner.Exchange)}
}

// Answered takes a reply into account, and tells whether it is to the last request
// of its question.
func (j *ProbeJudge) Answered(id string, e *runner.Exchange) (last bool) {
	i := slices.IndexFunc(j.questions, func(q Question) bool { return q.ID == id })
	n := len(j.replies[id])
	if i < 0 || n >= len(j.questions[i].Steps) || !sameOp(j.questions[i].Steps[n].Op, e.Op) {
		if j.foreign == nil {
			j.foreign = fmt.Errorf("%w: this contend does not ask the question %q in this way", runner.ErrNotARecord, id)
		}
		return false
	}
	kept := *e
	j.replies[id] = append(j.replies[id], &kept)
	return n == len(j.questions[i].Steps)-1
}

func sameOp(a, b targets.Op) bool {
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && bytes.Equal(x, y)
}

// Conclude tells everything. There is no verdict.
func (j *ProbeJudge) Conclude(runner.End) Judgement {
	return Judgement{Verdict: Verdict{Property: "none: a probe only asks", Reasons: []string{}, Violations: []Violation{}}, Detail: Detail{Probe: j.report()}}
}

func (j *ProbeJudge) report() *ProbeReport {
	report := &ProbeReport{Answers: []ProbeAnswer{}}
	if j.since != nil {
		report.Since = &ProbeSince{Run: j.since.Run, Target: j.since.Target, Started: j.since.Started}
	}
	for i := range j.questions {
		a := j.answer(&j.questions[i])
		j.compare(&a, report.Since)
		report.count(&a)
		report.Answers = append(report.Answers, a)
	}
	return report
}

func (r *ProbeReport) count(a *ProbeAnswer) {
	switch a.State {
	case ProbeAnswered:
		r.Answered++
	case ProbeUnanswered:
		r.Unanswered++
	default:
		r.NotAsked++
	}
	if a.AsKnown != nil && *a.AsKnown {
		r.AsKnown++
	} else if a.AsKnown != nil {
		r.NotAsKnown++
	}
	if a.Listed != nil && !*a.Listed {
		r.NotListed++
	}
}

// answer tells what became of a question.
func (j *ProbeJudge) answer(q *Question) ProbeAnswer {
	a := ProbeAnswer{ID: q.ID, Group: q.Group(), Way: q.Way(), Question: q.Text, Known: q.Known}
	for _, s := range q.Steps {
		a.Requests = append(a.Requests, brief(s.Op))
	}
	replies := j.replies[q.ID]
	if len(replies) == 0 {
		a.State, a.Why = ProbeUnanswered, "the probe ended before it"
		return a
	}
	last := replies[len(replies)-1]
	r, must := &last.Reply, q.Steps[len(replies)-1].Must
	a.State, a.Why = stateOfProbe(q, replies)
	if a.State == ProbeNotAsked || must {
		return a
	}
	a.Outcome, a.Code, a.Status, a.Message, a.Trace, a.Raw = r.Outcome, r.Code, r.Status, r.Message, r.Trace, briefRaw(r.Raw)
	a.Took = last.Return - last.Call
	if a.State != ProbeAnswered {
		return a
	}
	if q.read != nil {
		a.Answer = q.read(replies)
	}
	if q.figure != nil {
		a.Figure = q.figure(replies)
	}
	if a.Code != "" && j.listed != nil && last.Op.Kind == targets.Raw {
		listed := j.listed(a.Code)
		a.Listed = &listed
	}
	if q.Known.Basis != NotKnown {
		agrees := q.Known.agrees(&a)
		a.AsKnown = &agrees
	}
	return a
}

// stateOfProbe tells what became of a question that has got these replies, and why
// it was not answered.
func stateOfProbe(q *Question, replies []*runner.Exchange) (ProbeState, string) {
	n := len(replies)
	r, must := &replies[n-1].Reply, q.Steps[n-1].Must
	word := strings.TrimSpace(fmt.Sprintf("%s %s", r.Outcome, r.Code))
	switch {
	case r.Outcome == targets.Unsupported:
		return ProbeNotAsked, r.Message
	case must && r.Outcome == targets.Missing && q.gone != "":
		return ProbeNotAsked, q.gone
	case must && r.Outcome != targets.OK:
		return ProbeUnanswered, "what it rests on was answered with " + word
	case n < len(q.Steps):
		return ProbeUnanswered, "the probe ended in its middle"
	case !runner.Answered(r):
		return ProbeUnanswered, word
	default:
		return ProbeAnswered, ""
	}
}

// compare notes how an earlier probe was answered, if otherwise.
func (j *ProbeJudge) compare(a *ProbeAnswer, since *ProbeSince) {
	if j.since == nil || a.State != ProbeAnswered {
		return
	}
	for _, was := range j.since.Answers {
		if was.ID != a.ID {
			continue
		}
		since.Compared++
		if !was.same(a.Kept()) {
			since.Changed++
			a.Was = &was
		}
	}
}

const (
	briefText  = 60 // characters of a text in a request that is shown
	briefItems = 3
	briefDepth = 6
	briefBytes = 2000
)

// brief is a request with its long values cut, as a report shows it.
func brief(op targets.Op) targets.Op {
	op.Raw = briefJSON(op.Raw)
	return op
}

// briefRaw cuts an answer that is long.
func briefRaw(raw json.RawMessage) json.RawMessage {
	if len(raw) <= briefBytes {
		return raw
	}
	return briefJSON(raw)
}

func briefJSON(raw json.RawMessage) json.RawMessage {
	var v any
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if d.Decode(&v) != nil {
		return nil
	}
	short, _ := json.Marshal(briefValue(v, 0)) // what came from JSON goes back
	return short
}

func briefValue(v any, depth int) any {
	switch v := v.(type) {
	case string:
		if n := utf8.RuneCountInString(v); n > briefText {
			return fmt.Sprintf("%s… (%d characters)", string([]rune(v)[:briefText/2]), n)
		}
	case []any:
		if depth >= briefDepth {
			return "…"
		}
		short := []any{}
		for i, item := range v {
			if i == briefItems && len(v) > briefItems+1 {
				short = append(short, fmt.Sprintf("… (%d items)", len(v)))
				break
			}
			short = append(short, briefValue(item, depth+1))
		}
		return short
	case map[string]any:
		if depth >= briefDepth {
			return "…"
		}
		short := make(map[string]any, len(v))
		for name, member := range v {
			short[name] = briefValue(member, depth+1)
		}
		return short
	}
	return v
}
