package watch

import (
	"context"
	"errors"
	"time"

	"contend/report/store"
	"contend/runner"
)

// journal waits for others who write to the store: a watch of days does not end
// because of a moment.
type journal struct {
	ctx  context.Context // once it ends, nobody is waited for
	kept runner.Journal
}

// A store that is in use is tried so often, with such a pause in between, beside the
// store's own wait.
const (
	tries = 20
	pause = time.Second
)

func (j journal) retry(write func() error) error {
	for n := 1; ; n++ {
		err := write()
		if n == tries || !errors.Is(err, store.ErrLocked) || j.ctx.Err() != nil {
			return err
		}
		select {
		case <-time.After(pause):
		case <-j.ctx.Done():
		}
	}
}

// Intend implements runner.Journal.
func (j journal) Intend(ghosts []*runner.Ghost) error {
	return j.retry(func() error { return j.kept.Intend(ghosts) })
}

// Note implements runner.Journal.
func (j journal) Note(g *runner.Ghost, e *runner.Exchange) error {
	return j.retry(func() error { return j.kept.Note(g, e) })
}
