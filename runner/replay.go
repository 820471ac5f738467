package runner

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"contend/targets"
)

// ErrNotARecord is in the chain of every error of Replay about its input.
var ErrNotARecord = errors.New("not a record that contend can judge")

// Shown is what a record of a run of the shape is shown to.
type Shown struct {
	Shape    Shape
	Observer Observer
	Asking   Asking // of a watch
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
	if to.Shape == Watch {
		replay.requests(header.Controls)
	}
	to.Observer.Observe(Event{Controls: header.Controls})
	err = replay.lines(in)
	return replay.end, err
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
	byKey      map[string]*Ghost
	asking     bool            // the first reply was shown: no key follows
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
		var line Event
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

func (p *replay) show(line *Event) error {
	switch {
	case p.ended && line.Result == nil:
		return errors.New("a line after the end of the run")
	case !line.of(p.Shape):
		return errors.New("a line that does not belong to the scenario of the header")
	case line.Ghost != nil:
		return p.ghost(line.Ghost)
	case line.Asked != nil && line.Asked.Exchange != nil:
		return p.asked(line.Asked)
	case line.Answer != nil && line.Answer.Exchange != nil:
		return p.answer(line.Answer)
	case line.Round != nil:
		return p.round(line.Round)
	case line.Late != nil && line.Late.Read != nil:
		return p.late(line.Late)
	case line.End != nil:
		return p.finish(line.End)
	case line.Result == nil:
		return errors.New("neither a round, a late read, an end nor a result")
	}
	return nil
}

// round shows a round.
func (p *replay) round(r *Round) error {
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
	p.Observer.Observe(Event{Round: r})
	return nil
}

// late shows a late read, of what the run has a key for.
func (p *replay) late(late *LateRead) error {
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
	if err := late.Read.check(); err != nil {
		return err
	}
	p.Observer.Observe(Event{Late: late})
	return nil
}

// finish takes the line about the end.
func (p *replay) finish(end *End) error {
	if end.Rounds != p.end.Rounds {
		return fmt.Errorf("the run had %d rounds, the record holds %d", end.Rounds, p.end.Rounds)
	}
	if p.short != nil && !end.Interrupted {
		return p.short
	}
	p.end, p.ended = *end, true
	return nil
}

// ghost shows a key of a watch.
func (p *replay) ghost(g *Ghost) error {
	if p.asking {
		return errors.New("a key after the first reply")
	}
	if p.byKey == nil {
		p.byKey = make(map[string]*Ghost)
	}
	if p.byKey[g.Key] != nil {
		return fmt.Errorf("the key %q once more", g.Key)
	}
	p.byKey[g.Key] = g
	p.Observer.Observe(Event{Ghost: g})
	return nil
}

// asked shows a reply about a watched key.
func (p *replay) asked(a *Asked) error {
	p.asking = true
	g := p.byKey[a.Key]
	if g == nil || a.Exchange.Op.Key != a.Key {
		return fmt.Errorf("a reply about the key %q, which is not watched", a.Exchange.Op.Key)
	}
	if err := a.Exchange.check(); err != nil {
		return err
	}
	if g.Closed {
		return fmt.Errorf("a reply about the key %q, which is closed", a.Key)
	}
	g.ClockUnknown = g.ClockUnknown || a.ClockUnknown
	p.Asking.Observe(g, a.Exchange)
	a.Ghost = g
	p.Observer.Observe(Event{Asked: a})
	p.count(a.Exchange)
	return nil
}

// answer shows a reply to a step of an inquiry.
func (p *replay) answer(a *Answer) error {
	if err := a.Exchange.check(); err != nil {
		return err
	}
	p.Observer.Observe(Event{Answer: a})
	p.count(a.Exchange)
	return nil
}

// count adds a single exchange to what the run came to.
func (p *replay) count(e *Exchange) {
	p.end.Requests += int64(e.Reply.Attempts)
	p.end.Elapsed = max(p.end.Elapsed, e.Return)
}
