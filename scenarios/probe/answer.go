package probe

import (
	"encoding/json"
	"time"

	"contend/targets"
)

// State is what became of a question.
type State string

const (
	Answered   State = "answered"
	Unanswered State = "unanswered" // no answer came, or not to what it rests on
	NotAsked   State = "not-asked"  // the target has no such request, or there was nothing to ask about
)

// Answer is a question with what was answered to its last request.
type Answer struct {
	ID       string          `json:"id"`
	Group    string          `json:"group"`
	Way      string          `json:"way,omitempty"`
	Question string          `json:"question"`
	Requests []targets.Op    `json:"requests"` // long values cut
	Known    Known           `json:"known"`
	State    State           `json:"state"`
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

// Report is everything that a probe tells.
type Report struct {
	Answers    []Answer `json:"answers"`
	Answered   int      `json:"answered"`
	Unanswered int      `json:"unanswered"`
	NotAsked   int      `json:"not_asked"`
	AsKnown    int      `json:"as_known"`     // of those answered
	NotAsKnown int      `json:"not_as_known"` // the same
	NotListed  int      `json:"not_listed"`   // codes that the documentation's lists do not contain
	Since      *Since   `json:"since,omitempty"`
}

// Since is the earlier probe that the answers were compared with.
type Since struct {
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
func (r *Report) Kept() []EarlierAnswer {
	kept := []EarlierAnswer{}
	for i := range r.Answers {
		if a := &r.Answers[i]; a.State == Answered {
			kept = append(kept, a.Kept())
		}
	}
	return kept
}

// Kept is what is compared of it later.
func (a *Answer) Kept() EarlierAnswer {
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
