package runner

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

// quietHeap keeps the garbage collector out of the releases: it is off while a
// round runs and is called between rounds, when enough has gathered.
type quietHeap struct {
	percent int
	limit   int64
	last    uint64
	heap    []metrics.Sample
}

const (
	// collectAfter bytes of new heap are worth a collection between rounds.
	collectAfter = 24 << 20
	// collectAnyway bytes in all, and the collector runs whenever it wants: a
	// round that large is not worth dying for.
	collectAnyway = 2 << 30
)

func newQuietHeap() *quietHeap {
	q := &quietHeap{heap: []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}}
	runtime.GC()
	q.percent = debug.SetGCPercent(-1)
	q.limit = debug.SetMemoryLimit(collectAnyway)
	q.last = q.read()
	return q
}

func (q *quietHeap) read() uint64 {
	metrics.Read(q.heap)
	return q.heap[0].Value.Uint64()
}

// betweenRounds collects if it is worth it.
func (q *quietHeap) betweenRounds() {
	if q.read() > q.last+collectAfter {
		runtime.GC()
		q.last = q.read()
	}
}

func (q *quietHeap) restore() {
	debug.SetGCPercent(q.percent)
	debug.SetMemoryLimit(q.limit)
}
