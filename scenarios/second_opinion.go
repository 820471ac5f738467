package scenarios

import (
	"math"
	"time"

	"github.com/anishathalye/porcupine"
)

// secondOpinionTimeout is ample for a reduced history of some ten acts.
const secondOpinionTimeout = 2 * time.Second

// registerInput is an act as porcupine's model sees it.
type registerInput struct {
	kind  actKind
	token string
}

// oneWrite is a register that takes the first write and refuses all others. Its
// state is the token it holds, "" at first. A write that may have been applied
// has no return time: if it never was, it comes last.
var oneWrite = porcupine.Model{
	Init: func() any { return "" },
	Step: func(state, input, _ any) (bool, any) {
		held, in := state.(string), input.(registerInput)
		switch in.kind {
		case wrote:
			return held == "", in.token
		case refused:
			return held != "", held
		case uncertain:
			if held == "" {
				return true, in.token
			}
			return true, held
		case sawOld:
			return held == "", held
		case sawNew:
			return held == in.token, held
		default:
			return true, held
		}
	},
}

// fewUncertain leaves of the uncertain writes those whose token was read and
// the one that was called first: the others cannot change the ruling.
func fewUncertain(acts []act) []act {
	read := make(map[string]bool)
	var first *act
	for i := range acts {
		if acts[i].kind == sawNew {
			read[acts[i].token] = true
		}
		if acts[i].kind == uncertain && (first == nil || acts[i].call < first.call) {
			first = &acts[i]
		}
	}
	var kept []act
	for i := range acts {
		if a := &acts[i]; a.kind != uncertain || a == first || read[a.token] {
			kept = append(kept, *a)
		}
	}
	return kept
}

// secondOpinion asks a general linearizability checker about reduced acts. It
// gives false for known where the checker could not decide in time.
func secondOpinion(acts []act) (legal, known bool) {
	ops := make([]porcupine.Operation, 0, len(acts))
	for i := range acts {
		a := &acts[i]
		ret := int64(a.ret)
		if a.ret == forever {
			ret = math.MaxInt64
		}
		ops = append(ops, porcupine.Operation{ClientId: i, Input: registerInput{a.kind, a.token},
			Output: struct{}{}, Call: int64(a.call), Return: ret})
	}
	switch porcupine.CheckOperationsTimeout(oneWrite, ops, secondOpinionTimeout) {
	case porcupine.Ok:
		return true, true
	case porcupine.Illegal:
		return false, true
	default:
		return false, false
	}
}
