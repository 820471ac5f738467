package runner

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
)

// RecordSchema is the format of a record: JSON lines. The first is the header,
// with the schema and the controls; then {"round": …} for each round,
// {"late": …} for each late read, {"end": …} once, and {"result": …} for people.
const RecordSchema = "contend.record/1"

// End is the record's line about how the run ended.
type End struct {
	Requests    int64         `json:"requests"`
	Rounds      int           `json:"rounds"`
	Elapsed     time.Duration `json:"elapsed_ns"`
	Interrupted bool          `json:"interrupted"`
	Stopped     string        `json:"stopped,omitempty"`
}

// lateLine is the late read of a round's key.
type lateLine struct {
	Round int       `json:"round"`
	Read  *Exchange `json:"read"`
}

// recordLine is any line but the first.
type recordLine struct {
	Round  *Round          `json:"round,omitempty"`
	Late   *lateLine       `json:"late,omitempty"`
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

// Replay reads a record. begin is given the first line and returns the observer
// that is shown the rest as it was shown the run. A last line that was cut off
// is left out; a run that has no end line was interrupted where the record ends.
func Replay(r io.Reader, begin func(header json.RawMessage) (Observer, error)) (End, error) {
	in := bufio.NewReaderSize(r, 1<<20)
	first, err := in.ReadBytes('\n')
	if err != nil && (err != io.EOF || len(first) == 0) {
		return End{}, fmt.Errorf("%w: it is empty: %w", ErrNotARecord, err)
	}
	var header struct {
		Schema   string    `json:"schema"`
		Controls *Controls `json:"controls"`
	}
	if err := json.Unmarshal(first, &header); err != nil || header.Schema != RecordSchema || header.Controls == nil {
		return End{}, fmt.Errorf("%w: line 1 is not a header with schema %q", ErrNotARecord, RecordSchema)
	}
	observer, err := begin(first)
	if err != nil {
		return End{}, err
	}
	observer.Controls(header.Controls)
	return replayLines(in, observer)
}

func replayLines(in *bufio.Reader, observer Observer) (End, error) {
	end := End{Interrupted: true}
	for n := 2; ; n++ {
		text, readErr := in.ReadBytes('\n')
		if readErr != nil && readErr != io.EOF {
			return end, readErr
		}
		if len(bytes.TrimSpace(text)) == 0 && readErr == io.EOF {
			return end, nil
		}
		var line recordLine
		if err := json.Unmarshal(text, &line); err != nil {
			if readErr == io.EOF {
				return end, nil
			}
			return end, fmt.Errorf("%w: line %d: %w", ErrNotARecord, n, err)
		}
		switch {
		case line.Round != nil:
			observer.Round(line.Round)
			end.Rounds = line.Round.Number
			end.Elapsed = line.Round.Done
			end.Requests += line.Round.requests()
		case line.Late != nil && line.Late.Read != nil:
			observer.Late(line.Late.Round, line.Late.Read)
		case line.End != nil:
			end = *line.End
		}
		if readErr == io.EOF {
			return end, nil
		}
	}
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
