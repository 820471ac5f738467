package runner

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"contend/targets"
)

func TestCut(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", ""}, {"abc", "abc"}, {"äöü", "äöü"},
		{"abcd", "abc… (cut: it has 4 characters)"}, {"äöüß", "äöü… (cut: it has 4 characters)"},
		{"\xff\xfe\xfd\xfc\xfb", "\xff\xfe\xfd… (cut: it has 5 characters)"},
	} {
		if got := Cut(c.text, 3); got != c.want {
			t.Errorf("%q is cut to %q, want %q", c.text, got, c.want)
		}
	}
}

// talkative answers everything at length.
type talkative struct{ targets.Session }

func (talkative) Do(context.Context, targets.Op) targets.Reply {
	long := targets.Reply{Outcome: targets.Conflict, Code: strings.Repeat("C", 5000), Trace: strings.Repeat("T", 5000), Message: strings.Repeat("M", 5000)}
	whole := long
	whole.Parts = []targets.Reply{long}
	return whole
}

// A store that tells too much is cut short, in the run and when its record is read,
// and the words say where.
func TestRepliesHaveALimit(t *testing.T) {
	e := &Exchange{}
	(&connection{requests: t.Context(), timeout: time.Second, start: time.Now()}).exchange(talkative{}, e)
	short := func(how string, r targets.Reply) {
		t.Helper()
		for _, text := range []string{r.Code, r.Trace, r.Message} {
			if len(text) > MessageLimit+50 || !strings.HasSuffix(text, "… (cut: it has 5000 characters)") {
				t.Errorf("%s: %d bytes: %.60s", how, len(text), text)
			}
		}
		if len(r.Code) > CodeLimit+50 {
			t.Errorf("%s: a code of %d bytes", how, len(r.Code))
		}
	}
	short("sent", e.Reply)
	short("a part", e.Reply.Parts[0])
	written, err := json.Marshal(Exchange{Reply: talkative{}.Do(t.Context(), targets.Op{})})
	if err != nil {
		t.Fatal(err)
	}
	var read Exchange
	if err := json.Unmarshal(written, &read); err != nil {
		t.Fatal(err)
	}
	short("of a record", read.Reply)
	once := read.Reply.Message
	if limit(&read.Reply); read.Reply.Message != once {
		t.Errorf("cut twice: %s", read.Reply.Message)
	}
}
