package cache

import (
	"errors"
	"slices"

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
		case !c.holdsLocked(n):
		case inSteps:
			c.discardLocked(stats.UnusedChosen)
		default:
			c.cutLocked(n)
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

func (c *Cache) holdsLocked(n uint64) bool {
	return c.cur.Has(n) || slices.ContainsFunc(c.queue, func(s segment.Segment) bool { return s.Has(n) })
}

// cutLocked takes n, which is held, out of what is held. Where that would leave too many pieces,
// the numbers of its segment that lie before it are given up.
func (c *Cache) cutLocked(n uint64) {
	at := slices.IndexFunc(c.queue, func(s segment.Segment) bool { return s.Has(n) })
	whole := &c.cur
	if at >= 0 {
		whole = &c.queue[at]
	}
	before, behind := whole.Around(n)
	lost := uint64(1)
	if before.Remaining() > 0 && behind.Remaining() > 0 && len(c.queue) >= maxQueued {
		lost += before.Remaining()
		before = segment.Segment{}
	}
	c.cached -= lost
	c.gaps[stats.UnusedChosen] += lost
	if *whole = before; before.Remaining() == 0 {
		*whole = behind
	} else if behind.Remaining() > 0 {
		c.queue = slices.Insert(c.queue, at+1, behind)
	}
	c.queue = slices.DeleteFunc(c.queue, func(s segment.Segment) bool { return s.Remaining() == 0 })
	if c.cur.Remaining() == 0 {
		c.advanceLocked(1)
	}
}
