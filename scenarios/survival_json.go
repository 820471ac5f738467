package scenarios

import (
	"encoding/json"
	"time"
)

// orForever reads what unlessForever wrote.
func orForever(d *time.Duration) time.Duration {
	if d == nil {
		return forever
	}
	return *d
}

// UnmarshalJSON reads a step of a stored result.
func (s *Step) UnmarshalJSON(b []byte) error {
	var j struct {
		From     *time.Duration `json:"from_ns"`
		To       *time.Duration `json:"to_ns"`
		Mass     float64        `json:"mass"`
		Survival float64        `json:"survival"`
		Low      float64        `json:"low"`
		High     float64        `json:"high"`
	}
	if err := json.Unmarshal(b, &j); err != nil {
		return err
	}
	*s = Step{From: orForever(j.From), To: orForever(j.To), Mass: j.Mass, Survival: j.Survival, Low: j.Low, High: j.High}
	return nil
}

// UnmarshalJSON reads a quantile of a stored result.
func (q *Quantile) UnmarshalJSON(b []byte) error {
	var j struct {
		From *time.Duration `json:"from_ns"`
		To   *time.Duration `json:"to_ns"`
		Low  *time.Duration `json:"low_ns"`
		High *time.Duration `json:"high_ns"`
	}
	if err := json.Unmarshal(b, &j); err != nil {
		return err
	}
	*q = Quantile{From: orForever(j.From), To: orForever(j.To), Low: orForever(j.Low), High: orForever(j.High)}
	return nil
}
