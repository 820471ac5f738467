package survival

import (
	"encoding/json"
	"time"
)

// jsonStep is the JSON form of a step. A time that is Forever is null.
type jsonStep struct {
	From     *time.Duration `json:"from_ns"`
	To       *time.Duration `json:"to_ns"`
	Mass     float64        `json:"mass"`
	Survival float64        `json:"survival"`
	Low      float64        `json:"low"`
	High     float64        `json:"high"`
}

// jsonQuantile is the JSON form of a quantile. A time that is Forever is null.
type jsonQuantile struct {
	From *time.Duration `json:"from_ns"`
	To   *time.Duration `json:"to_ns"`
	Low  *time.Duration `json:"low_ns"`
	High *time.Duration `json:"high_ns"`
}

// MarshalJSON writes a time that is Forever as null.
func (s Step) MarshalJSON() ([]byte, error) {
	return json.Marshal(jsonStep{unlessForever(s.From), unlessForever(s.To), s.Mass, s.Survival, s.Low, s.High})
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (s *Step) UnmarshalJSON(b []byte) error {
	var j jsonStep
	if err := json.Unmarshal(b, &j); err != nil {
		return err
	}
	*s = Step{orForever(j.From), orForever(j.To), j.Mass, j.Survival, j.Low, j.High}
	return nil
}

// MarshalJSON writes a time that is Forever as null.
func (q Quantile) MarshalJSON() ([]byte, error) {
	return json.Marshal(jsonQuantile{unlessForever(q.From), unlessForever(q.To), unlessForever(q.Low), unlessForever(q.High)})
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (q *Quantile) UnmarshalJSON(b []byte) error {
	var j jsonQuantile
	if err := json.Unmarshal(b, &j); err != nil {
		return err
	}
	*q = Quantile{orForever(j.From), orForever(j.To), orForever(j.Low), orForever(j.High)}
	return nil
}

func unlessForever(d time.Duration) *time.Duration {
	if d == Forever {
		return nil
	}
	return &d
}

func orForever(d *time.Duration) time.Duration {
	if d == nil {
		return Forever
	}
	return *d
}
