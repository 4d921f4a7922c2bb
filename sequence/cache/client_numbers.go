package cache

import (
	"errors"

	"seqproxy/sequence/define"
	"seqproxy/sequence/stats"
	"seqproxy/sequence/store"
)

// This file handles numbers that a client has chosen itself.

// Spent returns up to where no server gives a number any more, except those in its memory.
func (c *Cache) Spent() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.counter.spent
}

// Highest returns the highest number that the sequence may give.
func (c *Cache) Highest() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.counter.max
}

// TakeOut removes numbers from the cache, and returns the highest that is spent. In steps the
// numbers are useful only together, so all are discarded.
func (c *Cache) TakeOut(numbers []uint64, inSteps bool) (spent uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, n := range numbers {
		switch {
		case !c.stock.has(n):
		case inSteps:
			c.stock.discard(stats.UnusedChosen)
		default:
			c.stock.cut(n)
		}
	}
	return c.counter.spent
}

// Move is a move of the counter that is about to be made.
type Move struct {
	Floor, End uint64 // it goes to Floor, or to End if that is lower
	generation uint64
}

// ToMoveAbove returns where the counter goes if it is to be n or above: a segment further. Where
// none is kept in memory, it goes to the end of the step that n is in: an application may make the
// keys between two numbers itself, and bring them one by one.
func (c *Cache) ToMoveAbove(n uint64) (m Move, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	m = Move{Floor: n, End: c.counter.max, generation: c.generation}
	if c.sizes.exact == 0 {
		m.Floor += c.counter.room(n, c.sizes.size)
	} else if next, ok := c.counter.after(n); ok {
		m.Floor = next - 1
	}
	return m, c.end
}

// Moved records where the counter stands after a move, or why it was not made. With
// OutcomeRestarted the sequence may have begun again meanwhile, and the counter may be lower.
func (c *Cache) Moved(m Move, at uint64, err error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case errors.Is(err, define.ErrUnknown):
		c.goneLocked(err)
		return err
	case err != nil:
		return err
	case c.generation != m.generation:
		return store.OutcomeRestarted
	}
	c.counter.moved(at)
	return nil
}
