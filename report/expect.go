package report

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Expectation is a threshold that was checked.
type Expectation struct {
	Expr   string `json:"expr"`
	Met    bool   `json:"met"`
	Figure string `json:"figure"` // as measured, or why there is none
}

// expectation is FIGURE OP VALUE.
type expectation struct {
	text     string
	function string // p50 … n; "": the outcome's count or share
	outcome  string
	operator string
	unit     string // "", "%", "duration"
	value    float64
}

const expectationForm = "FIGURE OP VALUE, such as 'p90(won)<250ms', 'throttled==0' or 'lost>=90%'"

var expectationPattern = regexp.MustCompile(`^\s*(?:(\w+)\(([\w-]+)\)|([\w-]+))\s*(<=|>=|==|<|>)\s*(\S+)\s*$`)

// ExpectationError is an expectation that cannot be read; its text says what
// can.
type ExpectationError struct{ Text string }

func (e *ExpectationError) Error() string { return e.Text }

// CheckExpectations gives what is wrong with each that cannot be read.
func CheckExpectations(texts []string) error {
	var wrong []error
	for _, text := range texts {
		if _, err := parseExpectations([]string{text}); err != nil {
			wrong = append(wrong, err)
		}
	}
	return errors.Join(wrong...)
}

func parseExpectations(texts []string) ([]expectation, error) {
	var all []expectation
	for _, text := range texts {
		e, err := parseExpectation(text)
		if err != nil {
			return nil, &ExpectationError{fmt.Sprintf("--expect %q: %v", text, err)}
		}
		all = append(all, e)
	}
	return all, nil
}

var percentiles = map[string]float64{"p50": 50, "p90": 90, "p95": 95, "p99": 99}

func parseExpectation(text string) (expectation, error) {
	m := expectationPattern.FindStringSubmatch(text)
	if m == nil {
		return expectation{}, fmt.Errorf("needs the form %s", expectationForm)
	}
	e := expectation{text: text, function: m[1], outcome: m[2] + m[3], operator: m[4]}
	if !slices.Contains(outcomeOrder, e.outcome) {
		return e, fmt.Errorf("unknown outcome %q; there are %s", e.outcome, strings.Join(outcomeOrder, ", "))
	}
	_, isPercentile := percentiles[e.function]
	isLatency := isPercentile || e.function == "min" || e.function == "max"
	if !isLatency && e.function != "n" && e.function != "" {
		return e, fmt.Errorf("unknown figure %q; there are p50, p90, p95, p99, min, max, n", e.function)
	}
	var err error
	switch share, isShare := strings.CutSuffix(m[5], "%"); {
	case isLatency:
		var d time.Duration
		if d, err = time.ParseDuration(m[5]); err != nil {
			return e, fmt.Errorf("%s(%s) is compared with a duration such as 250ms, not %q", e.function, e.outcome, m[5])
		}
		e.unit, e.value = "duration", float64(d)
	case isShare && e.function == "":
		e.unit = "%"
		e.value, err = strconv.ParseFloat(share, 64)
	default:
		e.value, err = strconv.ParseFloat(m[5], 64)
	}
	if err != nil || math.IsNaN(e.value) {
		return e, fmt.Errorf("%q is not a number or percentage", m[5])
	}
	return e, nil
}

// check compares with what was counted. A figure that is missing or has too few
// samples is not met.
func (e expectation) check(c *counts) Expectation {
	out := Expectation{Expr: e.text}
	var figure float64
	switch {
	case e.unit == "duration":
		d, missing := e.latency(c.of(e.outcome))
		if missing != "" {
			out.Figure = missing
			return out
		}
		figure, out.Figure = float64(d), short(d).String()
	case e.unit == "%":
		if c.contenders == 0 {
			out.Figure = "no contender ran"
			return out
		}
		figure = 100 * float64(c.count(e.outcome)) / float64(c.contenders)
		out.Figure = fmt.Sprintf("%.4g%%", figure)
	default:
		if c.contenders == 0 {
			out.Figure = "no contender ran"
			return out
		}
		figure = float64(c.count(e.outcome))
		out.Figure = fmt.Sprint(c.count(e.outcome))
	}
	switch e.operator {
	case "<":
		out.Met = figure < e.value
	case "<=":
		out.Met = figure <= e.value
	case "==":
		out.Met = figure == e.value
	case ">=":
		out.Met = figure >= e.value
	case ">":
		out.Met = figure > e.value
	}
	return out
}

func (e expectation) latency(s *samples) (d time.Duration, missing string) {
	if s.n == 0 {
		return 0, "no sample"
	}
	switch e.function {
	case "min":
		return s.min, ""
	case "max":
		return s.max, ""
	}
	d, ok := s.percentile(percentiles[e.function])
	if !ok {
		return 0, fmt.Sprintf("too few samples: %d", s.n)
	}
	return d, ""
}
