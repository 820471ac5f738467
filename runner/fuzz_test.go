package runner

import (
	"bytes"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"contend/targets"
)

// unseen is an observer that looks at nothing.
type unseen struct{}

func (unseen) Observe(Event) {}

// What is no record of the shape that its reader wants is told as such, and
// nothing is shown that cannot have been measured.
func FuzzReplay(f *testing.F) {
	const header = `{"schema":"contend.record/1","params":{"contenders":2},"controls":{}}` + "\n"
	const write = `{"contender":0,"op":{"kind":"write","key":"k-r1-","value":{"token":"t"}},"reply":{"outcome":"ok","attempts":1},"call_ns":1,"sent_ns":2,"return_ns":3}`
	for _, text := range []string{
		"", "{}", header,
		header + `{"round":{"round":1,"key":"k-r1-","ops":[` + write + `,` + write + `],"reads":[],"done_ns":9}}` + "\n",
		header + `{"late":{"round":1,"read":` + write + `}}` + "\n" + `{"end":{"rounds":1}}`,
		header + `{"ghost":{"key":"k"}}` + "\n" + `{"asked":{"key":"k","exchange":` + write + `}}`,
		header + `{"answer":{"question":"q","exchange":` + write + `}}` + "\n" + `{"end":{}}` + "\n" + `{"result":{}}`,
	} {
		for shape := range byte(3) {
			f.Add([]byte(text), shape)
		}
	}
	f.Fuzz(func(t *testing.T, record []byte, shape byte) {
		end, err := Replay(bytes.NewReader(record), func(json.RawMessage) (Shown, error) {
			return Shown{Shape: Shape(shape % 3), Observer: unseen{}, Asking: unasked{}}, nil
		})
		if err != nil && !errors.Is(err, ErrNotARecord) {
			t.Errorf("error %v", err)
		}
		if err == nil && (end.Rounds < 0 || end.Elapsed < 0 || end.Requests < 0) {
			t.Errorf("%+v", end)
		}
	})
}

// unasked has nothing to ask.
type unasked struct{}

func (unasked) Next(*Ghost) (op targets.Op, due time.Duration, ok bool) { return op, 0, false }
func (unasked) Observe(*Ghost, *Exchange)                               {}
