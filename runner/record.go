package runner

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
)

// RecordSchema is the format of a record: JSON lines. The first is the header,
// with the schema and the controls; then {"round": …} for each round and
// {"late": …} for each late read (of round 0: of the nonce), or for a watch {"ghost": …} for each key and
// {"asked": …} for each reply, or for a probe {"answer": …} for each reply;
// {"end": …} once, and {"result": …} for people.
const RecordSchema = "contend.record/1"

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

// Observe writes an event.
func (r *Recorder) Observe(e Event) {
	if e.Controls != nil {
		r.first(e.Controls)
		return
	}
	r.line(e)
}

// first writes the first line.
func (r *Recorder) first(c *Controls) {
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

// Finish writes how the run ended and the result, which only people read.
func (r *Recorder) Finish(end End, result any) error {
	b, err := json.Marshal(result)
	if err != nil {
		return err
	}
	r.line(Event{End: &end})
	r.line(Event{Result: b})
	return r.err
}
