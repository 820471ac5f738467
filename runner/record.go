package runner

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"contend/targets"
)

// RecordSchema is the format of a record: JSON lines. The first is the header,
// with the schema and the controls; then {"round": …} for each round and
// {"late": …} for each late read (of round 0: of the nonce), or for a watch {"ghost": …} for each key and
// {"asked": …} for each reply, or for a probe {"answer": …} for each reply;
// {"end": …} once, and {"result": …} for people.
const RecordSchema = "contend.record/1"

// End is the record's line about how the run ended.
type End struct {
	Requests    int64         `json:"requests"`
	Rounds      int           `json:"rounds"`
	Elapsed     time.Duration `json:"elapsed_ns"`
	Interrupted bool          `json:"interrupted"`
	Stopped     string        `json:"stopped,omitempty"`
	Cut         string        `json:"cut,omitempty"`         // of a watch
	Units       int64         `json:"quota_units,omitempty"` // of a probe
	Left        string        `json:"left,omitempty"`        // what is told of keys that were left behind
}

// lateLine is the late read of a round's key.
type lateLine struct {
	Round int       `json:"round"`
	Read  *Exchange `json:"read"`
}

// askedLine is a reply about a watched key.
type askedLine struct {
	Key          string    `json:"key"`
	Exchange     *Exchange `json:"exchange"`
	ClockUnknown bool      `json:"clock_unknown,omitempty"` // of the key, before the reply
}

// answerLine is a reply to a step of an inquiry.
type answerLine struct {
	Question string    `json:"question"`
	Exchange *Exchange `json:"exchange"`
}

// recordLine is any line but the first.
type recordLine struct {
	Ghost  *Ghost          `json:"ghost,omitempty"`
	Asked  *askedLine      `json:"asked,omitempty"`
	Round  *Round          `json:"round,omitempty"`
	Late   *lateLine       `json:"late,omitempty"`
	Answer *answerLine     `json:"answer,omitempty"`
	End    *End            `json:"end,omitempty"`
	Result json.RawMessage `json:"result,omitempty"`
}

// Recorder is an observer that writes a record, a line at a time: what was
// measured is there even if the process dies. After the first error it writes
// no more; Err tells it.
type Recorder struct {
	header any
	w      io.Writer
	err    error
}

// NewRecorder writes to w. The header marshals to a JSON object, whose members
// become those of the first line.
func NewRecorder(w io.Writer, header any) *Recorder { return &Recorder{header: header, w: w} }

// Err is the first error of writing.
func (r *Recorder) Err() error { return r.err }

func (r *Recorder) line(v any) {
	if r.err != nil {
		return
	}
	b, err := json.Marshal(v)
	if err == nil {
		_, err = r.w.Write(append(b, '\n'))
	}
	r.err = err
}

// Controls writes the first line.
func (r *Recorder) Controls(c *Controls) {
	header, err := json.Marshal(r.header)
	if err != nil {
		r.err = err
		return
	}
	controls, err := json.Marshal(c)
	if err != nil {
		r.err = err
		return
	}
	var line bytes.Buffer
	fmt.Fprintf(&line, `{"schema":%q,`, RecordSchema)
	if members := bytes.Trim(header, "{}"); len(members) > 0 {
		line.Write(header[1 : len(header)-1])
		line.WriteByte(',')
	}
	fmt.Fprintf(&line, `"controls":%s}`, controls)
	r.line(json.RawMessage(line.Bytes()))
}

// Round writes a round.
func (r *Recorder) Round(round *Round) { r.line(recordLine{Round: round}) }

// Late writes a late read.
func (r *Recorder) Late(round int, read *Exchange) {
	r.line(recordLine{Late: &lateLine{round, read}})
}

// Watching writes the keys of a watch, as they are at its start.
func (r *Recorder) Watching(ghosts []*Ghost) {
	for _, g := range ghosts {
		r.line(recordLine{Ghost: g})
	}
}

// Asked writes a reply about a watched key.
func (r *Recorder) Asked(g *Ghost, e *Exchange) {
	r.line(recordLine{Asked: &askedLine{g.Key, e, g.ClockUnknown}})
}

// Answered writes a reply to a step of an inquiry.
func (r *Recorder) Answered(inquiry string, e *Exchange) {
	r.line(recordLine{Answer: &answerLine{inquiry, e}})
}

// Finish writes how the run ended and the result, which only people read.
func (r *Recorder) Finish(end End, result any) error {
	b, err := json.Marshal(result)
	if err != nil {
		return err
	}
	r.line(recordLine{End: &end})
	r.line(recordLine{Result: b})
	return r.err
}

// ErrNotARecord is in the chain of every error of Replay about its input.
var ErrNotARecord = errors.New("not a record that contend can judge")

// Shown is what a record is shown to: one of a race, or one of a watch with what
// it asks, or one of a probe.
type Shown struct {
	Observer Observer
	Watch    WatchObserver
	Asking   Asking
	Probe    ProbeObserver
}

// Replay reads a record. begin is given the first line and says what the rest is
// shown to, as it was shown the run. A last line that was cut off is left out; a
// run that has no end line was interrupted where the record ends.
func Replay(r io.Reader, begin func(header json.RawMessage) (Shown, error)) (End, error) {
	in := bufio.NewReaderSize(r, 1<<20)
	first, err := in.ReadBytes('\n')
	if err != nil && (err != io.EOF || len(first) == 0) {
		return End{}, fmt.Errorf("%w: it is empty: %w", ErrNotARecord, err)
	}
	var header struct {
		Schema   string                   `json:"schema"`
		Params   struct{ Contenders int } `json:"params"`
		Controls *Controls                `json:"controls"`
	}
	if err := json.Unmarshal(first, &header); err != nil || header.Schema != RecordSchema || header.Controls == nil {
		return End{}, fmt.Errorf("%w: line 1 is not a header with schema %q", ErrNotARecord, RecordSchema)
	}
	if err := header.Controls.check(header.Params.Contenders); err != nil {
		return End{}, fmt.Errorf("%w: line 1: %w", ErrNotARecord, err)
	}
	to, err := begin(first)
	if err != nil {
		return End{}, err
	}
	replay := replay{Shown: to, contenders: header.Params.Contenders, nonce: header.Controls.Nonce, end: End{Interrupted: true}}
	if n := len(header.Controls.Twin); n > 0 {
		replay.short = header.Controls.Twin[n-1].short(replay.contenders)
	}
	switch {
	case to.Watch != nil:
		to.Watch.Controls(header.Controls)
		replay.requests(header.Controls)
	case to.Observer != nil:
		to.Observer.Controls(header.Controls)
	}
	err = replay.lines(in)
	replay.watching()
	return replay.end, err
}

// check looks for what no run can have written down.
func (c *Controls) check(contenders int) error {
	for _, part := range [][]Exchange{c.Sequential, c.Nonce} {
		for i := range part {
			if err := part[i].check(); err != nil {
				return fmt.Errorf("the controls: %w", err)
			}
		}
	}
	keys := make(map[string]bool)
	for i := range c.Twin {
		r := &c.Twin[i]
		if r.Number != i+1 || keys[r.Key] {
			return fmt.Errorf("round %d of the twin, on the key %q, stands where round %d belongs", r.Number, r.Key, i+1)
		}
		keys[r.Key] = true
		err := r.check(contenders)
		if err == nil && i+1 < len(c.Twin) {
			err = r.short(contenders)
		}
		if err != nil {
			return fmt.Errorf("round %d of the twin: %w", i+1, err)
		}
	}
	return nil
}

// requests counts those of the checks that went before a watch.
func (p *replay) requests(c *Controls) {
	for _, part := range [][]Exchange{c.Sequential, c.Nonce} {
		for i := range part {
			p.end.Requests += int64(part[i].Reply.Attempts)
		}
	}
}

// replay checks a record while it shows it.
type replay struct {
	Shown
	contenders int
	nonce      []Exchange // of the controls
	ghosts     []*Ghost
	byKey      map[string]*Ghost
	watched    bool            // the ghosts were shown
	answered   []time.Duration // by round: the last answer to a contender
	short      error           // the last round lacks contenders: nothing but an interrupt explains it
	end        End
	ended      bool
}

func (p *replay) lines(in *bufio.Reader) error {
	for n := 2; ; n++ {
		text, readErr := in.ReadBytes('\n')
		if readErr != nil && readErr != io.EOF {
			return readErr
		}
		if len(bytes.TrimSpace(text)) == 0 && readErr == io.EOF {
			return nil
		}
		var line recordLine
		err := json.Unmarshal(text, &line)
		if err != nil && readErr == io.EOF {
			// A last line that was cut off.
			return nil
		}
		if err == nil {
			err = p.show(&line)
		}
		if err != nil {
			return fmt.Errorf("%w: line %d: %w", ErrNotARecord, n, err)
		}
		if readErr == io.EOF {
			return nil
		}
	}
}

func (p *replay) show(line *recordLine) error {
	switch {
	case p.ended && line.Result == nil:
		return errors.New("a line after the end of the run")
	case p.foreign(line):
		return errors.New("a line that does not belong to the scenario of the header")
	case line.Ghost != nil:
		return p.ghost(line.Ghost)
	case line.Asked != nil && line.Asked.Exchange != nil:
		return p.asked(line.Asked)
	case line.Answer != nil && line.Answer.Exchange != nil:
		return p.answer(line.Answer)
	case line.Round != nil:
		r := line.Round
		if r.Number != p.end.Rounds+1 {
			return fmt.Errorf("round %d follows round %d", r.Number, p.end.Rounds)
		}
		if p.short != nil {
			return p.short
		}
		if err := r.check(p.contenders); err != nil {
			return fmt.Errorf("round %d: %w", r.Number, err)
		}
		if err := r.short(p.contenders); err != nil {
			p.short = fmt.Errorf("round %d: %w", r.Number, err)
		}
		p.end.Rounds, p.end.Elapsed = r.Number, r.Done
		p.answered = append(p.answered, r.answeredAt())
		p.end.Requests += r.requests()
		p.Observer.Round(r)
	case line.Late != nil && line.Late.Read != nil:
		if err := p.checkLate(line.Late); err != nil {
			return err
		}
		p.Observer.Late(line.Late.Round, line.Late.Read)
	case line.End != nil:
		if line.End.Rounds != p.end.Rounds {
			return fmt.Errorf("the run had %d rounds, the record holds %d", line.End.Rounds, p.end.Rounds)
		}
		if p.short != nil && !line.End.Interrupted {
			return p.short
		}
		p.end, p.ended = *line.End, true
	case line.Result == nil:
		return errors.New("neither a round, a late read, an end nor a result")
	}
	return nil
}

// checkLate looks for late reads of what the run has no key for.
func (p *replay) checkLate(late *lateLine) error {
	if late.Round < 0 || late.Round > p.end.Rounds {
		return fmt.Errorf("a late read of round %d, which is not there", late.Round)
	}
	op := late.Read.Op
	right := strings.Contains(op.Key+"-", fmt.Sprintf("-r%d-", late.Round))
	if late.Round == 0 {
		right = len(p.nonce) > 0 && op.Key == p.nonce[0].Op.Key
	}
	if op.Kind != targets.Read || !right {
		return fmt.Errorf("a late read of round %d that is a %s of %q", late.Round, op.Kind, op.Key)
	}
	if late.Round > 0 && late.Read.Call < p.answered[late.Round-1] {
		return fmt.Errorf("a late read of round %d that was made before its contenders had their answers", late.Round)
	}
	return late.Read.check()
}

// foreign tells whether a line is of a scenario of another shape.
func (p *replay) foreign(line *recordLine) bool {
	switch {
	case line.Round != nil || line.Late != nil:
		return p.Observer == nil
	case line.Ghost != nil || line.Asked != nil:
		return p.Watch == nil
	default:
		return line.Answer != nil && p.Probe == nil
	}
}

// ghost takes a key of a watch.
func (p *replay) ghost(g *Ghost) error {
	if p.watched {
		return errors.New("a key after the first reply")
	}
	if p.byKey == nil {
		p.byKey = make(map[string]*Ghost)
	}
	if p.byKey[g.Key] != nil {
		return fmt.Errorf("the key %q once more", g.Key)
	}
	p.byKey[g.Key], p.ghosts = g, append(p.ghosts, g)
	return nil
}

// watching shows the keys of a watch once they are all there.
func (p *replay) watching() {
	if p.Watch != nil && !p.watched {
		p.watched = true
		p.Watch.Watching(p.ghosts)
	}
}

// asked shows a reply about a watched key.
func (p *replay) asked(a *askedLine) error {
	p.watching()
	g := p.byKey[a.Key]
	if g == nil || a.Exchange.Op.Key != a.Key {
		return fmt.Errorf("a reply about the key %q, which is not watched", a.Exchange.Op.Key)
	}
	if err := a.Exchange.check(); err != nil {
		return err
	}
	if g.Closed {
		return fmt.Errorf("a reply about the key %q, which is done with", a.Key)
	}
	g.ClockUnknown = g.ClockUnknown || a.ClockUnknown
	p.Asking.Observe(g, a.Exchange)
	p.Watch.Asked(g, a.Exchange)
	p.end.Requests += int64(a.Exchange.Reply.Attempts)
	p.end.Elapsed = max(p.end.Elapsed, a.Exchange.Return)
	return nil
}

// answer shows a reply to a step of an inquiry.
func (p *replay) answer(a *answerLine) error {
	if err := a.Exchange.check(); err != nil {
		return err
	}
	p.Probe.Answered(a.Question, a.Exchange)
	p.end.Requests += int64(a.Exchange.Reply.Attempts)
	p.end.Elapsed = max(p.end.Elapsed, a.Exchange.Return)
	return nil
}

// check looks for what no run can have written down.
func (r *Round) check(contenders int) error {
	seen := make(map[int]bool)
	for _, part := range [][]Exchange{r.Seeds, r.Ops, r.Reads} {
		for i := range part {
			if err := part[i].check(); err != nil {
				return err
			}
			if key := part[i].Op.Key; key != r.Key && !strings.HasPrefix(key, r.Key+"-") {
				return fmt.Errorf("a request for the key %q of another", part[i].Op.Key)
			}
		}
	}
	tokens := make(map[string]bool)
	for i := range r.Ops {
		x := &r.Ops[i]
		follows := i > 0 && r.Ops[i-1].Contender == x.Contender
		switch {
		case !follows && seen[x.Contender]:
			return fmt.Errorf("the requests of contender %d do not stand together", x.Contender)
		case follows && x.Call < r.Ops[i-1].Return:
			return fmt.Errorf("contender %d sent a request before it had the answer to the one before", x.Contender)
		case x.Op.Kind == targets.Write && tokens[x.Op.Value.Token]:
			return fmt.Errorf("two writes with the token %q", x.Op.Value.Token)
		}
		seen[x.Contender] = true
		if x.Op.Kind == targets.Write {
			tokens[x.Op.Value.Token] = true
		}
	}
	if len(seen) > contenders {
		return fmt.Errorf("%d contenders, where the run had %d", len(seen), contenders)
	}
	return nil
}

// short tells whether there are contenders that sent nothing: those that an interrupt
// found before their first request.
func (r *Round) short(contenders int) error {
	seen := make(map[int]bool)
	for i := range r.Ops {
		seen[r.Ops[i].Contender] = true
	}
	if r.Seeded() && len(seen) < contenders {
		return fmt.Errorf("%d contenders, where the run had %d", len(seen), contenders)
	}
	return nil
}

func (e *Exchange) check() error {
	if !slices.Contains(targets.Outcomes, e.Reply.Outcome) {
		return fmt.Errorf("unknown outcome %q", e.Reply.Outcome)
	}
	guard := e.Guard
	if guard == 0 {
		guard = e.Sent
	}
	if e.Call < 0 || e.Began < e.Call || e.Sent < e.Call || guard < e.Call || e.Return < max(e.Began, e.Sent, guard) {
		return fmt.Errorf("contender %d: the times call %d, began %d, sent %d, guard %d, return %d are not in order", e.Contender, e.Call, e.Began, e.Sent, e.Guard, e.Return)
	}
	return nil
}

// answeredAt is when the last of the contenders had its answer.
func (r *Round) answeredAt() (last time.Duration) {
	for i := range r.Ops {
		last = max(last, r.Ops[i].Return)
	}
	return last
}

func (r *Round) requests() int64 {
	var n int64
	for _, part := range [][]Exchange{r.Seeds, r.Ops, r.Reads} {
		for i := range part {
			n += int64(part[i].Reply.Attempts)
		}
	}
	return n
}
