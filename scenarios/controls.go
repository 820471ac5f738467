package scenarios

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"contend/runner"
	"contend/scenarios/stats"
	"contend/targets"
)

// Controls judges what was done before the race. It tells whether to race: a
// guard that was seen to be absent needs no contest.
func (j *Judge) Controls(c *runner.Controls) bool {
	for _, part := range [][]runner.Exchange{c.Sequential, c.Nonce} {
		for i := range part {
			j.noteRefusal(string(part[i].Op.Kind), &part[i].Reply)
		}
	}
	if j.skipped = c.Skipped; j.skipped {
		return true
	}
	if c.Key != "" {
		j.controls = append(j.controls, sequentialControls(c)...)
	} else if j.terms.Twin != nil {
		j.controls = append(j.controls, Control{Name: "sequential", Detail: "the checks with nothing running beside them were not made"})
	}
	nonce := nonceControl(c.Nonce, j.terms.Contenders)
	j.controls = append(j.controls, nonce)
	for _, control := range j.controls {
		j.readersLag = j.readersLag || control.lag
	}
	if j.terms.Twin != nil {
		j.controls = append(j.controls, j.twinControl(c.Twin))
	}
	for _, control := range j.controls {
		if len(control.violations) > 0 {
			return false
		}
	}
	return true
}

// errRecordEnds ends a replay whose recording has no reply left.
var errRecordEnds = errors.New("the recorded exchanges end before the checks do")

// sequentialControls makes the sequential checks again from what was recorded.
func sequentialControls(c *runner.Controls) []Control {
	next, short := 0, false
	checks := targets.CheckSequential(c.Key, func(_ int, op targets.Op) targets.Reply {
		if next >= len(c.Sequential) || c.Sequential[next].Op.Kind != op.Kind || c.Sequential[next].Op.Key != op.Key {
			short = true
			return targets.Reply{Outcome: targets.Unknown, Message: errRecordEnds.Error()}
		}
		next++
		return c.Sequential[next-1].Reply
	})
	var controls []Control
	for _, name := range []string{"sequential", "stale"} {
		control := Control{Name: name, AsExpected: true}
		for i := range checks {
			if checks[i].Control == name {
				control.note(&checks[i], c.Sequential)
			}
		}
		if short && control.AsExpected {
			control.AsExpected, control.Detail = false, errRecordEnds.Error()
		}
		controls = append(controls, control)
	}
	return controls
}

// note takes one check into account; the first that failed is told.
func (c *Control) note(check *targets.SequentialCheck, exchanges []runner.Exchange) {
	switch {
	case check.LeftOut:
		c.LeftOut = "the target has no such condition: " + firstNonEmpty(check.Reply.Message, check.Promise)
		c.AsExpected = false
		return
	case check.Kept || !c.AsExpected:
		return
	}
	c.AsExpected, c.Detail = false, check.Detail
	c.lag = check.Behind
	if check.Violation == "" {
		return
	}
	v := Violation{Kind: check.Violation, Control: c.Name, Detail: anomalyText[check.Violation]}
	for i := range exchanges {
		x := &exchanges[i]
		if x.Op.Kind != targets.Write || x.Op.Key != check.Op.Key {
			continue
		}
		a, _ := startState{}.operationOf(x)
		w := a.witness()
		w.Who = fmt.Sprintf("session %d", x.Contender)
		w.Request = conditionText(x.Op.If)
		v.Witness = append(v.Witness, w)
		if x.Op.Value.Token == check.Op.Value.Token {
			break
		}
	}
	// The accepted write that should have lost, and the one before it.
	if n := len(v.Witness); n > 2 {
		v.Witness = v.Witness[n-2:]
	}
	c.violations = append(c.violations, v)
}

func firstNonEmpty(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

func conditionText(c targets.Condition) string {
	switch c.Guard {
	case targets.IfAbsent:
		return "write if absent"
	case targets.IfVersion:
		return fmt.Sprintf("write if version %d", c.Counter)
	case targets.IfUnmodified:
		return "write if updated at " + c.UpdatedAt.Format(time.RFC3339Nano)
	default:
		return "write"
	}
}

// nonceControl wants every contender to read what was just written. One that does
// not is asked again until it does, or the settling time is over.
func nonceControl(exchanges []runner.Exchange, contenders int) Control {
	c := Control{Name: "nonce", AsExpected: true}
	if len(exchanges) == 0 || exchanges[0].Reply.Outcome != targets.OK {
		c.AsExpected, c.Detail = false, "the run's first record could not be written"
		if len(exchanges) > 0 {
			c.Detail += ": " + exchanges[0].Reply.Text()
		}
		return c
	}
	written := &exchanges[0]
	unseen := make(map[int]*runner.Exchange) // the last read of each that has not seen it
	asked := make(map[int]bool)
	var late time.Duration
	for i := range exchanges[1:] {
		x := &exchanges[i+1]
		asked[x.Contender] = true
		if x.Reply.Outcome == targets.OK && x.Reply.Record.Token == written.Op.Value.Token {
			if before := unseen[x.Contender]; before != nil {
				late = max(late, before.Call-written.Return)
				delete(unseen, x.Contender)
			}
			continue
		}
		unseen[x.Contender] = x
	}
	if least := max(1, contenders); len(asked) < least {
		c.AsExpected, c.Detail = false, fmt.Sprintf("%d of %d sessions read the run's first record", len(asked), least)
		return c
	}
	if len(unseen) > 0 {
		contender := slices.Min(slices.Collect(maps.Keys(unseen)))
		x := unseen[contender]
		c.AsExpected = false
		switch o := x.Reply.Outcome; {
		case o == targets.Missing:
			c.lag = true
			c.Detail = fmt.Sprintf("contender %d did not see what the run has written, %s after it was acknowledged: its reads lag, or go elsewhere",
				contender, stats.Coarse(x.Call-written.Return))
		case o == targets.OK:
			c.Detail = fmt.Sprintf("contender %d reads another record than the run has just written: %q", contender, x.Reply.Record.Token)
		default:
			c.Detail = fmt.Sprintf("contender %d could not read what the run has just written: %s", contender, x.Reply.Text())
		}
		return c
	}
	if late > 0 {
		c.AsExpected, c.lag = false, true
		c.Detail = fmt.Sprintf("a contender did not see what the run has written until more than %s after it was acknowledged: its reads lag", stats.Coarse(late))
	}
	return c
}

// twinControl wants every round of the unguarded twin violated.
func (j *Judge) twinControl(rounds []runner.Round) Control {
	c := Control{Name: "twin", AsExpected: true, Rounds: len(rounds)}
	if len(rounds) < j.terms.ControlRounds || len(rounds) == 0 {
		c.AsExpected = false
		c.Detail = fmt.Sprintf("the negative control (the unguarded twin) ran %d of its %d rounds", len(rounds), j.terms.ControlRounds)
		return c
	}
	missed := 0
	for i := range rounds {
		if r := j.terms.Twin.Judge(&rounds[i], j.terms.OneCopy).Rule(); r.Violation == nil {
			missed++
		}
	}
	if missed > 0 {
		c.AsExpected = false
		c.Detail = fmt.Sprintf("the negative control (the unguarded twin) was not seen to fail in %d of %d rounds, so a broken guard might not be seen either", missed, len(rounds))
	}
	return c
}
