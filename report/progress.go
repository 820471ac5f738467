package report

import (
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"

	"contend/runner"
)

// Progress is an observer that tells how far a run of any shape is: a bar on a terminal,
// a plain line every few seconds elsewhere.
type Progress struct {
	w        io.Writer
	unit     string        // what the run is made of
	rounds   int           // or questions; 0: until duration is up, or not known yet
	duration time.Duration // 0: until the rounds are done
	start    time.Time
	told     time.Time
	bars     *mpb.Progress
	bar      *mpb.Bar
	phase    atomic.Value // string; read by the bar's own goroutine
	ghosts   []*runner.Ghost
	answered time.Time       // when a request of a watch was last served
	begun    map[string]bool // questions
	// Counted is how many rounds count so far; nil: so many are raced, whether they count or not.
	Counted func() int
}

// tellEvery is how often a plain line is written.
const tellEvery = 5 * time.Second

// NewProgress tells on w, which terminal says is one, of a run of so many rounds, keys or
// questions.
func NewProgress(w io.Writer, terminal bool, unit string, rounds int, duration time.Duration) *Progress {
	p := &Progress{w: w, unit: unit, rounds: rounds, duration: duration, start: time.Now(), told: time.Now(), answered: time.Now(), begun: make(map[string]bool)}
	p.phase.Store("controls")
	if terminal {
		p.bars = mpb.New(mpb.WithOutput(w), mpb.WithWidth(40))
		p.bar = p.bars.AddBar(int64(max(rounds, int(duration/time.Millisecond))),
			mpb.PrependDecorators(decor.Any(func(decor.Statistics) string { return p.phase.Load().(string) + " " })),
			mpb.AppendDecorators(decor.Any(func(decor.Statistics) string {
				return fmt.Sprintf(" %s", time.Since(p.start).Round(time.Second))
			})),
			mpb.BarRemoveOnComplete())
	}
	return p
}

// Observe tells of an event.
func (p *Progress) Observe(e runner.Event) {
	switch {
	case e.Controls != nil:
		p.phase.Store(p.unit)
	case e.Round != nil:
		p.round(e.Round)
	case e.Late != nil:
		p.late(e.Late.Round)
	case e.Ghost != nil:
		p.ghosts = append(p.ghosts, e.Ghost)
		if p.bar != nil {
			p.bar.SetTotal(int64(len(p.ghosts)), false)
		}
	case e.Asked != nil:
		p.asked(e.Asked.Exchange)
	case e.Answer != nil:
		p.answer(e.Answer.Question)
	}
}

// round tells that a round is done.
func (p *Progress) round(r *runner.Round) {
	counted := r.Number
	if p.Counted != nil {
		counted = p.Counted()
	}
	if p.bar != nil {
		done := int64(counted)
		if p.rounds == 0 {
			done = int64(time.Since(p.start) / time.Millisecond)
		}
		p.bar.SetCurrent(done)
		if text := fmt.Sprintf("round %d", r.Number); p.Counted == nil {
			p.phase.Store(text)
		} else {
			p.phase.Store(fmt.Sprintf("%s, %d count", text, counted))
		}
		return
	}
	p.tell(func() string {
		if p.Counted == nil {
			return fmt.Sprintf("%d of %d rounds raced, after %s", r.Number, p.rounds, time.Since(p.start).Round(time.Second))
		}
		if p.rounds == 0 {
			return fmt.Sprintf("%d rounds raced, %d count, %s of %s", r.Number, counted, time.Since(p.start).Round(time.Second), p.duration)
		}
		return fmt.Sprintf("%d rounds raced, %d of %d count, after %s", r.Number, counted, p.rounds, time.Since(p.start).Round(time.Second))
	})
}

// late tells that the keys are read once more.
func (p *Progress) late(round int) {
	p.phase.Store("late reads")
	if p.bar == nil && round > 0 {
		p.tell(func() string { return fmt.Sprintf("reading every key once more: %d", round) })
	}
}

// asked tells how many keys are done with.
func (p *Progress) asked(e *runner.Exchange) {
	if e.Reply.Outcome.Served() {
		p.answered = time.Now()
	}
	if p.bar != nil {
		p.bar.SetCurrent(p.closed())
		return
	}
	p.tell(func() string {
		text := fmt.Sprintf("%d of %d keys are done after %s", p.closed(), len(p.ghosts), time.Since(p.start).Round(time.Second))
		if silence := time.Since(p.answered); silence > tellEvery {
			text += fmt.Sprintf("; nothing was answered for %s", silence.Round(time.Second))
		}
		return text
	})
}

func (p *Progress) closed() (n int64) {
	for _, g := range p.ghosts {
		if g.Closed {
			n++
		}
	}
	return n
}

// answer tells how many questions were begun.
func (p *Progress) answer(question string) {
	p.begun[question] = true
	if p.bar != nil {
		p.bar.SetCurrent(int64(len(p.begun)))
		return
	}
	p.tell(func() string {
		return fmt.Sprintf("%d of %d questions were asked after %s", len(p.begun), p.rounds, time.Since(p.start).Round(time.Second))
	})
}

// Waiting tells what the run waits for, where that takes a while.
func (p *Progress) Waiting(why string, d time.Duration) {
	text := fmt.Sprintf("waiting %s: %s", d.Round(10*time.Millisecond), why)
	p.phase.Store(text)
	if p.bar != nil {
		return
	}
	if d >= tellEvery {
		p.told = time.Time{} // or a user would see nothing for so long
	}
	p.tell(func() string { return text })
}

func (p *Progress) tell(text func() string) {
	if time.Since(p.told) >= tellEvery {
		p.told = time.Now()
		fmt.Fprintf(p.w, "contend: %s\n", text())
	}
}

// Done takes the bar away; no other is drawn. It may be called at any time, and
// more than once.
func (p *Progress) Done() {
	if p.bar != nil {
		p.bar.Abort(true)
		p.bars.Wait()
	}
}
