package kit

import "contend/targets"

// The codes of a write that was refused by what the session read before it.
const (
	Exists = "exists"
	Stale  = "stale"
)

// RefusedBy compares what was read with a condition, for stores whose guard is that
// nothing changes between the read and the write. It gives the code of the refusal; "":
// there is none. held is nil where there is no key.
func RefusedBy(c targets.Condition, held *targets.Record) string {
	switch {
	case c.Guard == targets.IfAbsent && held != nil:
		return Exists
	case c.Guard == targets.IfAbsent, c.Guard == targets.Unguarded:
		return ""
	case held == nil || !c.Holds(*held):
		return Stale
	default:
		return ""
	}
}

// Steps are those of a write whose condition the session compares itself, and whose
// guard is that nothing changes between its read and its write: a transaction.
type Steps struct {
	Begin func() targets.Reply
	Read  func() targets.Reply // of the key: OK with the record, or Missing
	Write func(read targets.Reply) targets.Reply
	// Abort takes back what Begin has begun, where nothing was written or the write was
	// not accepted. The reply stands, whatever becomes of it.
	Abort func()
}

// ReadThenWrite takes the steps. A refusal by what was read is ByRead, and sorted by the
// target's answers.
func (s *Session) ReadThenWrite(c targets.Condition, answers targets.Answers, steps Steps) targets.Reply {
	s.Clock.BeginSeveral()
	if r := steps.Begin(); r.Outcome != targets.OK {
		return r
	}
	r := steps.Read()
	if r.Outcome != targets.OK && r.Outcome != targets.Missing {
		steps.Abort()
		return r
	}
	held := &r.Record
	if r.Outcome == targets.Missing {
		held = nil
	}
	if refused := RefusedBy(c, held); refused != "" {
		r.Code, r.Outcome, r.ByRead = refused, answers.Outcome(refused, 0), true
		steps.Abort()
		return r
	}
	s.Clock.GuardNext()
	if r = steps.Write(r); r.Outcome != targets.OK {
		steps.Abort()
	}
	return r
}
