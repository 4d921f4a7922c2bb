package cache

import (
	"errors"

	"seqproxy/sequence/define"
	"seqproxy/sequence/segment"
	"seqproxy/sequence/stats"
	"seqproxy/sequence/store"
)

// This file is what happens where somebody uses numbers that he has chosen himself.

// Spent is up to where no server gives a number any more, but to who has it in memory.
func (c *Cache) Spent() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.spent
}

// Highest is the highest number that the sequence may give.
func (c *Cache) Highest() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.max
}

// TakeOut takes numbers out of what is held, and returns the highest that is spent.
// In steps the numbers are good together only, so all are given up.
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
	return c.spent
}

// Move is a move of the counter that is about to be made.
type Move struct {
	Floor, End uint64 // it goes to Floor, or to End if that is lower
	generation uint64
}

// ToMoveAbove says where the counter goes if it is to be n or above: a segment further.
func (c *Cache) ToMoveAbove(n uint64) (m Move, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	m = Move{Floor: n, End: c.max, generation: c.generation}
	if step := max(c.rule.Step, 1); c.exact == 0 {
		// near the end of the sequence less than a segment
		m.Floor += min(c.size, (m.End-min(n, m.End))/segment.CeilingShare/step) * step
	}
	return m, c.end
}

// Moved takes note of where the counter stands after a move, or why it was not made. OutcomeRestarted:
// the sequence may have begun again meanwhile, and the counter may be below.
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
	c.top, c.spent = max(c.top, at), max(c.spent, at)
	return nil
}
