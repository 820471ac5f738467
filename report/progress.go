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

// Progress is an observer that tells how far a run is: a bar on a terminal, a
// plain line every few seconds elsewhere.
type Progress struct {
	w        io.Writer
	rounds   int           // 0: until duration is up
	duration time.Duration // 0: until the rounds are done
	start    time.Time
	told     time.Time
	bars     *mpb.Progress
	bar      *mpb.Bar
	phase    atomic.Value // string; read by the bar's own goroutine
	// Counted is how many rounds count so far; nil: so many are raced, whether they count or not.
	Counted func() int
}

// tellEvery is how often a plain line is written.
const tellEvery = 5 * time.Second

// NewProgress tells on w, which terminal says is one.
func NewProgress(w io.Writer, terminal bool, rounds int, duration time.Duration) *Progress {
	p := &Progress{w: w, rounds: rounds, duration: duration, start: time.Now(), told: time.Now()}
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

// Controls tells that the race begins.
func (p *Progress) Controls(*runner.Controls) { p.phase.Store("rounds") }

// Round tells that a round is done.
func (p *Progress) Round(r *runner.Round) {
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

// Late tells that the keys are read once more.
func (p *Progress) Late(round int, _ *runner.Exchange) {
	p.phase.Store("late reads")
	if p.bar == nil && round > 0 {
		p.tell(func() string { return fmt.Sprintf("reading every key once more: %d", round) })
	}
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

// WatchProgress is an observer that tells how far a watch is.
type WatchProgress struct {
	*Progress
	ghosts   []*runner.Ghost
	answered time.Time // when a request was last served
}

// NewWatchProgress tells on w, which terminal says is one.
func NewWatchProgress(w io.Writer, terminal bool) *WatchProgress {
	return &WatchProgress{Progress: NewProgress(w, terminal, 1, 0), answered: time.Now()}
}

// Watching takes the keys.
func (p *WatchProgress) Watching(ghosts []*runner.Ghost) {
	p.ghosts = ghosts
	p.phase.Store("keys")
	if p.bar != nil {
		p.bar.SetTotal(int64(len(ghosts)), false)
	}
}

// Asked tells how many keys are done with.
func (p *WatchProgress) Asked(_ *runner.Ghost, e *runner.Exchange) {
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

// ProbeProgress is an observer that tells how far a probe is.
type ProbeProgress struct {
	*Progress
	questions int
	begun     map[string]bool
}

// NewProbeProgress tells on w, which terminal says is one, of so many questions.
func NewProbeProgress(w io.Writer, terminal bool, questions int) *ProbeProgress {
	p := &ProbeProgress{Progress: NewProgress(w, terminal, questions, 0), questions: questions, begun: make(map[string]bool)}
	p.phase.Store("questions")
	return p
}

// Answered tells how many questions were begun.
func (p *ProbeProgress) Answered(question string, _ *runner.Exchange) {
	p.begun[question] = true
	if p.bar != nil {
		p.bar.SetCurrent(int64(len(p.begun)))
		return
	}
	p.tell(func() string {
		return fmt.Sprintf("%d of %d questions were asked after %s", len(p.begun), p.questions, time.Since(p.start).Round(time.Second))
	})
}

func (p *WatchProgress) closed() (n int64) {
	for _, g := range p.ghosts {
		if g.Closed {
			n++
		}
	}
	return n
}
