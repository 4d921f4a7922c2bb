package torture

import (
	"slices"
	"sync"
)

// quiet are the numbers that faults took, besides those in the history.
type quiet struct {
	mu  sync.Mutex
	ops []op // guarded by mu
}

func (q *quiet) took(o op) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.ops = append(q.ops, o)
}

func (q *quiet) all() []op {
	q.mu.Lock()
	defer q.mu.Unlock()
	return slices.Clone(q.ops)
}
