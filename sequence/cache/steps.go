package cache

import (
	"context"
	"time"

	"seqproxy/sequence/store"
)

// InSteps makes a cache that takes n numbers at once out of the same counter.
func (c *Cache) InSteps(n uint64) *Cache {
	made := New(c.all, wholeSteps{c.reserver, n}, store.Row{Name: c.Name})
	made.Reserving = c.Reserving
	c.mu.Lock()
	made.counter = c.counter
	made.counter.spent = 0
	made.sizes.exact, made.sizes.cover = c.sizes.exact, c.sizes.cover
	made.version = c.version
	made.exhaustion.limits = c.exhaustion.limits
	made.order = c.order
	made.exhaustion.warned = len(warnAt) // marks that are crossed already are no news
	c.mu.Unlock()
	made.replan(time.Now())
	made.sizes.low = 0
	return made
}

// wholeSteps reserves multiples of n.
type wholeSteps struct {
	Reserver
	n uint64
}

// Reserve implements [Reserver].
func (r wholeSteps) Reserve(ctx context.Context, name string, want, need uint64) (store.Grant, error) {
	return r.Reserver.Reserve(ctx, name, r.whole(want), r.whole(need))
}

// whole rounds up; the numbers asked for are far from the end of 64 bits.
func (r wholeSteps) whole(numbers uint64) uint64 { return (numbers + r.n - 1) / r.n * r.n }
