package runner

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"contend/targets"
)

// listener is an observer that notes what it is shown, and waits where it wants to know.
type listener struct {
	name string
	told *[]string
}

func (l listener) Observe(e Event) { *l.told = append(*l.told, l.name+" "+kindOf(e)) }

type waiting struct{ listener }

func (w waiting) Waiting(why string, d time.Duration) {
	*w.told = append(*w.told, fmt.Sprintf("%s waits %s: %s", w.name, d, why))
}

func kindOf(e Event) string {
	switch {
	case e.Controls != nil:
		return "controls"
	case e.Ghost != nil:
		return "ghost"
	case e.Asked != nil:
		return "asked"
	case e.Round != nil:
		return "round"
	case e.Late != nil:
		return "late"
	case e.Answer != nil:
		return "answer"
	default:
		return "nothing"
	}
}

func TestObserversAreShownEverythingInTurn(t *testing.T) {
	var told []string
	all := Observers{listener{"a", &told}, waiting{listener{"b", &told}}, Observers{listener{"c", &told}, waiting{listener{"d", &told}}}}
	all.Observe(Event{Round: &Round{}})
	all.Waiting("the limit", time.Second)
	all.Observe(Event{Late: &LateRead{}})
	Observers{}.Observe(Event{})
	want := []string{"a round", "b round", "c round", "d round", "b waits 1s: the limit", "d waits 1s: the limit", "a late", "b late", "c late", "d late"}
	if !slices.Equal(told, want) {
		t.Errorf("told %q, want %q", told, want)
	}
}

// A run tells of its waits only who wants to know.
func TestWhoIsToldOfWaits(t *testing.T) {
	var told []string
	c := newCrew(t.Context(), &stand{}, &Setup{})
	c.showTo(listener{"a", &told})
	c.pause(t.Context(), "nothing", 0)
	c.showTo(waiting{listener{"b", &told}})
	c.pause(t.Context(), "nothing", 0)
	c.show(Event{Answer: &Answer{}})
	if want := []string{"b waits 0s: nothing", "b answer"}; !slices.Equal(told, want) {
		t.Errorf("told %q, want %q", told, want)
	}
}

func TestShapesOfEvents(t *testing.T) {
	for name, c := range map[string]struct {
		event Event
		of    []Shape
	}{
		"controls":            {Event{Controls: &Controls{}}, []Shape{Race, Watch, Probe}},
		"a round":             {Event{Round: &Round{}}, []Shape{Race}},
		"a late read":         {Event{Late: &LateRead{}}, []Shape{Race}},
		"a key":               {Event{Ghost: &Ghost{}}, []Shape{Watch}},
		"a reply about a key": {Event{Asked: &Asked{}}, []Shape{Watch}},
		"an answer":           {Event{Answer: &Answer{}}, []Shape{Probe}},
		"an end":              {Event{End: &End{}}, []Shape{Race, Watch, Probe}},
		"a result":            {Event{Result: json.RawMessage("1")}, []Shape{Race, Watch, Probe}},
		"of two shapes":       {Event{Round: &Round{}, Answer: &Answer{}}, nil},
		"of two others":       {Event{Late: &LateRead{}, Ghost: &Ghost{}}, nil},
	} {
		for _, s := range []Shape{Race, Watch, Probe} {
			if got := c.event.of(s); got != slices.Contains(c.of, s) {
				t.Errorf("%s in a run of shape %d: %v", name, s, got)
			}
		}
	}
}

func TestEndOfASummary(t *testing.T) {
	whole := Summary{Requests: 1, Units: 2, Rounds: 3, Elapsed: 4, Interrupted: true, Cut: "its time was up", Stopped: errors.New("it fell silent"),
		Left: &Left{Keys: []string{"k"}}}
	want := End{Requests: 1, Units: 2, Rounds: 3, Elapsed: 4, Interrupted: true, Cut: "its time was up", Stopped: "it fell silent", Left: whole.Left.Error()}
	if got := whole.End(); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got := (Summary{}).End(); got != (End{}) {
		t.Errorf("of nothing: %+v", got)
	}
}

// exchanged is an exchange in which everything is told.
func exchanged(contender int, kind targets.Kind, key string, call time.Duration) Exchange {
	return Exchange{Contender: contender, Op: targets.Op{Kind: kind, Key: key}, Reply: targets.Reply{Outcome: targets.OK, Attempts: 1},
		Call: call, Began: call + 1, Sent: call + 2, Guard: call + 3, Return: call + 4}
}

// The lines of a record are a promise, to the byte: others read them, and records of
// earlier versions are judged again.
func TestLinesOfARecord(t *testing.T) {
	x := exchanged(1, targets.Read, "k-r1", 10)
	const exchange = `{"contender":1,"op":{"kind":"read","key":"k-r1"},"reply":{"outcome":"ok","attempts":1},"call_ns":10,"return_ns":14,"began_ns":11,"sent_ns":12,"guard_ns":13}`
	offset := -time.Millisecond
	ghost := &Ghost{Run: "01R", Target: "sim:", Key: "k-01R-write0", Arm: "write", Epoch: time.Unix(1, 0).UTC(), State: GhostPending, Terms: GhostTerms{TTL: 1, Keys: 2, Seed: 3}}
	const ghostLine = `{"ghost":{"run":"01R","target":"sim:","key":"k-01R-write0","arm":"write","number":0,"epoch":"1970-01-01T00:00:01Z",` +
		`"terms":{"ttl_ns":1,"watch_ns":0,"tolerance_ns":0,"first_ns":0,"factor":0,"cap_ns":0,"keys":2,"seed":"3","offset_ns":0},` +
		`"state":"pending","closed":false,"probes":0,"unanswered":0,"due_ns":0}}`
	for name, c := range map[string]struct {
		event Event
		line  string
	}{
		"controls": {Event{Controls: &Controls{Key: "k-s", Nonce: []Exchange{x}}}, `{"schema":"contend.record/1","run":"01R","controls":{"key":"k-s","nonce":[` + exchange + `]}}`},
		"a round": {Event{Round: &Round{Number: 1, Key: "k-r1", Collection: targets.Plain, Ops: []Exchange{x}, Reads: []Exchange{}, Done: 99, Offset: &offset, Relayed: &Relayed{Uncertainty: 5}}},
			`{"round":{"round":1,"key":"k-r1","home":"` + string(targets.Plain) + `","ops":[` + exchange + `],"reads":[],"done_ns":99,"offset_ns":-1000000,"relayed":{"uncertainty_ns":5}}}`},
		"a late read":                    {Event{Late: &LateRead{7, &x}}, `{"late":{"round":7,"read":` + exchange + `}}`},
		"a key":                          {Event{Ghost: ghost}, ghostLine},
		"a reply":                        {Event{Asked: &Asked{ghost, "k", &x, false}}, `{"asked":{"key":"k","exchange":` + exchange + `}}`},
		"a reply by a clock that jumped": {Event{Asked: &Asked{ghost, "k", &x, true}}, `{"asked":{"key":"k","exchange":` + exchange + `,"clock_unknown":true}}`},
		"an answer":                      {Event{Answer: &Answer{"types/number", &x}}, `{"answer":{"question":"types/number","exchange":` + exchange + `}}`},
	} {
		var b bytes.Buffer
		NewRecorder(&b, map[string]string{"run": "01R"}).Observe(c.event)
		if got := b.String(); got != c.line+"\n" {
			t.Errorf("%s:\n%swant\n%s", name, got, c.line)
		}
	}
	var b bytes.Buffer
	if err := NewRecorder(&b, struct{}{}).Finish(End{Requests: 1, Rounds: 2, Elapsed: 3, Stopped: "silent", Cut: "cut", Units: 4, Left: "left"}, []int{1}); err != nil {
		t.Fatal(err)
	}
	want := `{"end":{"requests":1,"rounds":2,"elapsed_ns":3,"interrupted":false,"stopped":"silent","cut":"cut","quota_units":4,"left":"left"}}` + "\n" + `{"result":[1]}` + "\n"
	if b.String() != want {
		t.Errorf("the end:\n%swant\n%s", b.String(), want)
	}
	b.Reset()
	if NewRecorder(&b, struct{}{}).Observe(Event{Controls: &Controls{Skipped: true}}); b.String() != `{"schema":"contend.record/1","controls":{"skipped":true}}`+"\n" {
		t.Errorf("with an empty header: %s", b.String())
	}
}

// What cannot be a header, or a result, ends the record with its error.
func TestRecordOfWhatHasNoJSON(t *testing.T) {
	var b bytes.Buffer
	r := NewRecorder(&b, func() {})
	r.Observe(Event{Controls: &Controls{}})
	r.Observe(Event{Round: &Round{}})
	if r.Err() == nil || b.Len() > 0 {
		t.Errorf("%v, %q", r.Err(), b.String())
	}
	if err := NewRecorder(&b, struct{}{}).Finish(End{}, make(chan int)); err == nil {
		t.Error("a result that has no JSON was written")
	}
}

// replayed gives what a record of these lines shows, and its end.
func replayed(shape Shape, asking Asking, lines ...string) (told []string, end End, err error) {
	header := fmt.Sprintf(`{"schema":%q,"params":{"contenders":2},"controls":{"nonce":[{"contender":-1,"op":{"kind":"write","key":"k-n"},"reply":{"outcome":"ok","attempts":3}}]}}`, RecordSchema)
	end, err = Replay(strings.NewReader(header+"\n"+strings.Join(lines, "\n")+"\n"), func(json.RawMessage) (Shown, error) {
		return Shown{Shape: shape, Observer: listener{"x", &told}, Asking: asking}, nil
	})
	return told, end, err
}

// A record of a watch shows its keys before the replies, each reply with its key as the
// scenario leaves it, and counts what was sent; one that no watch writes is refused.
func TestReplayOfAWatch(t *testing.T) {
	ghost := func(key string, closed bool) string {
		return fmt.Sprintf(`{"ghost":{"run":"01R","key":%q,"closed":%v}}`, key, closed)
	}
	asked := func(key, of string, ret int) string {
		return fmt.Sprintf(`{"asked":{"key":%q,"exchange":{"contender":0,"op":{"kind":"read","key":%q},"reply":{"outcome":"missing","attempts":1},"call_ns":1,"sent_ns":1,"return_ns":%d}}}`, key, of, ret)
	}
	closing := observing(func(g *Ghost, e *Exchange) { g.Probes, g.Closed = g.Probes+1, g.Probes == 1 })
	told, end, err := replayed(Watch, closing, ghost("a", false), ghost("b", false), asked("a", "a", 5), asked("b", "b", 9), asked("a", "a", 7))
	if err != nil || !slices.Equal(told, []string{"x controls", "x ghost", "x ghost", "x asked", "x asked", "x asked"}) {
		t.Errorf("told %q, %v", told, err)
	}
	if !end.Interrupted || end.Requests != 3+3 || end.Elapsed != 9 {
		t.Errorf("%+v", end)
	}
	for name, c := range map[string]struct {
		lines []string
		why   string
	}{
		"a key twice":            {[]string{ghost("a", false), ghost("a", false)}, `line 3: the key "a" once more`},
		"a key that comes late":  {[]string{ghost("a", false), asked("a", "a", 5), ghost("b", false)}, "line 4: a key after the first reply"},
		"an unknown key":         {[]string{ghost("a", false), asked("b", "b", 5)}, `line 3: a reply about the key "b", which is not watched`},
		"a reply of another key": {[]string{ghost("a", false), ghost("b", false), asked("a", "b", 5)}, `line 4: a reply about the key "b", which is not watched`},
		"a closed key":           {[]string{ghost("a", true), asked("a", "a", 5)}, `line 3: a reply about the key "a", which is`},
		"closed by a reply":      {[]string{ghost("a", false), asked("a", "a", 5), asked("a", "a", 6), asked("a", "a", 7)}, `line 5: a reply about the key "a", which is`},
		"times out of order":     {[]string{ghost("a", false), asked("a", "a", 0)}, "line 3: contender 0: the times"},
		"a round":                {[]string{`{"round":{"round":1}}`}, "line 2: a line that does not belong to the scenario"},
		"more after the end":     {[]string{ghost("a", false), `{"end":{}}`, asked("a", "a", 5)}, "line 4: a line after the end"},
	} {
		if _, _, err := replayed(Watch, closing, c.lines...); !errors.Is(err, ErrNotARecord) || !strings.Contains(err.Error(), c.why) {
			t.Errorf("%s: %v, want %s", name, err, c.why)
		}
	}
}

// observing is what a watch asks nothing by.
type observing func(*Ghost, *Exchange)

func (observing) Next(*Ghost) (op targets.Op, due time.Duration, ok bool) { return op, 0, false }
func (o observing) Observe(g *Ghost, e *Exchange)                         { o(g, e) }

// The clock of a key that was set while it was watched is known to have been, from that
// reply on.
func TestReplayKeepsWhichClocksJumped(t *testing.T) {
	var unknown []bool
	closing := observing(func(g *Ghost, _ *Exchange) { unknown = append(unknown, g.ClockUnknown) })
	asked := func(jumped string) string {
		return `{"asked":{"key":"a","exchange":{"contender":0,"op":{"kind":"read","key":"a"},"reply":{"outcome":"ok"}}` + jumped + `}}`
	}
	if _, _, err := replayed(Watch, closing, `{"ghost":{"key":"a"}}`, asked(""), asked(`,"clock_unknown":true`), asked("")); err != nil || !slices.Equal(unknown, []bool{false, true, true}) {
		t.Errorf("%v, %v", unknown, err)
	}
}

// The requests of the checks count for a watch, which tells no others of its keys; a race
// counts those of its rounds.
func TestWhatAReplayCounts(t *testing.T) {
	const op = `{"contender":%d,"op":{"kind":"write","key":"k-r1","value":{"token":"t%d","version":1}},"reply":{"outcome":"ok","attempts":2},"call_ns":1,"sent_ns":2,"return_ns":3}`
	round := `{"round":{"round":1,"key":"k-r1","ops":[` + fmt.Sprintf(op, 0, 0) + `,` + fmt.Sprintf(op, 1, 1) + `],"reads":[],"done_ns":50}}`
	late := `{"late":{"round":1,"read":{"contender":0,"op":{"kind":"read","key":"k-r1"},"reply":{"outcome":"ok"},"call_ns":60,"sent_ns":61,"return_ns":62}}}`
	told, end, err := replayed(Race, nil, round, late)
	if err != nil || !slices.Equal(told, []string{"x controls", "x round", "x late"}) || end.Requests != 4 || end.Rounds != 1 || end.Elapsed != 50 {
		t.Errorf("%q, %+v, %v", told, end, err)
	}
	told, end, err = replayed(Probe, nil, `{"answer":{"question":"q","exchange":`+fmt.Sprintf(op, 0, 0)+`}}`, `{"end":{"requests":9,"quota_units":8}}`, `{"result":1}`)
	if err != nil || !slices.Equal(told, []string{"x controls", "x answer"}) || end != (End{Requests: 9, Units: 8}) {
		t.Errorf("%q, %+v, %v", told, end, err)
	}
}
