package scenarios

import (
	"math"
	"time"

	"github.com/anishathalye/porcupine"
)

// secondOpinionTimeout is ample for a reduced history of some ten operations.
const secondOpinionTimeout = 2 * time.Second

// registerInput is an operation as porcupine's model sees it.
type registerInput struct {
	kind  operationKind
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
		case indeterminate:
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

// fewIndeterminate leaves of the indeterminate writes those whose token was read and
// the one that was called first: the others cannot change the ruling.
func fewIndeterminate(operations []operation) []operation {
	read := make(map[string]bool)
	var first *operation
	for i := range operations {
		if operations[i].kind == sawNew {
			read[operations[i].token] = true
		}
		if operations[i].kind == indeterminate && (first == nil || operations[i].call < first.call) {
			first = &operations[i]
		}
	}
	var kept []operation
	for i := range operations {
		if a := &operations[i]; a.kind != indeterminate || a == first || read[a.token] {
			kept = append(kept, *a)
		}
	}
	return kept
}

// secondOpinion asks a general linearizability checker about reduced operations. It
// gives false for known where the checker could not decide in time.
func secondOpinion(operations []operation) (legal, known bool) {
	ops := make([]porcupine.Operation, 0, len(operations))
	for i := range operations {
		a := &operations[i]
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
