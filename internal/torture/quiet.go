package torture

import (
	"slices"
	"sync"
	"time"
)

// quiet is what faults did to numbers, beside what is in the history.
type quiet struct {
	mu   sync.Mutex
	ops  []op      // guarded by mu; numbers that were taken
	rows []rowMove // guarded by mu; rows that were set
}

// rowMove is a move of a sequence's row on the first sequence server.
type rowMove struct {
	sequence string
	move
}

func (q *quiet) took(o op) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.ops = append(q.ops, o)
}

// set notes that a row was changed as fits says.
func (q *quiet) set(what, sequence string, fits func(*change) bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.rows = append(q.rows, rowMove{sequence, move{what: what, sure: true, at: time.Now(), fits: fits}})
}

func (q *quiet) all() []op {
	q.mu.Lock()
	defer q.mu.Unlock()
	return slices.Clone(q.ops)
}

func (q *quiet) moves() []rowMove {
	q.mu.Lock()
	defer q.mu.Unlock()
	return slices.Clone(q.rows)
}
