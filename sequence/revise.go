package sequence

import (
	"time"

	"seqproxy/sequence/define"
	"seqproxy/sequence/segment"
	"seqproxy/sequence/stats"
	"seqproxy/sequence/store"
)

// This file is what happens to numbers in memory when the sequence is changed. A reservation in
// flight may have been made before the change, so what it brings is not used: generation tells it.

// overtakeLocked makes what a reservation in flight brings void.
func (c *cache) overtakeLocked(why stats.Unused) {
	c.generation++
	c.overtaken = why
}

// void gives up all that is held, as a new epoch has begun.
func (c *cache) void(why stats.Unused) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.voidLocked(why)
	c.top = 0 // the next reservation tells
}

func (c *cache) voidLocked(why stats.Unused) {
	c.discardLocked(why)
	c.overtakeLocked(why)
	c.spent = 0 // the row may be lower now
}

// flush gives up all that is held, as somebody asked for it. The row stays where it is, unless
// [cache.wentBack] says something else, so that it is still known how near the sequence is to its
// end.
func (c *cache) flush() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.voidLocked(stats.UnusedFlush)
}

// flushUnused is flush, but for the segment at the upper end, which it returns as unused does. It
// is one step: in between a number of that segment would be held by nobody, and spent.
func (c *cache) flushUnused() segment.Segment {
	c.mu.Lock()
	defer c.mu.Unlock()
	seg := c.unusedLocked()
	c.voidLocked(stats.UnusedFlush)
	return seg
}

// wentBack takes note that numbers above at were given back in a flush.
func (c *cache) wentBack(at uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.top = min(c.top, at)
}

// unlearn has what is read of the options next count as news, since what is known may be of changes
// that are lost.
func (c *cache) unlearn() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.version = 0
}

// revise brings the cache in line with the options as they are now, and gives up the numbers that
// do not conform.
func (c *cache) revise(r *store.Row) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.end != nil || r.Version <= c.version {
		return
	}
	c.version = r.Version
	c.dry, c.cycle = false, r.Def.Cycle
	if now := r.Common(); !now.Same(c.rule) {
		c.overtakeLocked(stats.UnusedAlter)
		if now.Max = c.rule.Max; !now.Same(c.rule) {
			c.discardLocked(stats.UnusedAlter)
		}
		c.rule = r.Common()
	}
	c.orderLocked(r.Def.Order)
	c.limits = limitsOf(r)
	c.cover = define.CoverOf(&r.Def)
	c.passLocked(r.Past)
	c.past, c.max, c.exact = r.Past, r.Max, r.Exact
	if c.max < c.highestLocked() {
		c.dropAboveLocked(c.max)
	}
	if c.exact > 0 {
		c.trimLocked(c.exact)
	}
	c.replan(time.Now())
	if c.given == 0 && c.cached == 0 {
		c.low = 0 // as in newCache
	}
}

// pass gives up the numbers up to n, and those that a reservation in flight brings.
func (c *cache) pass(n uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.passLocked(n)
}

func (c *cache) passLocked(n uint64) {
	if n > c.past {
		c.past = n
		if c.clocked != nil {
			c.clocked.PassOver(n)
		}
		c.overtakeLocked(stats.UnusedRestart)
		c.dropUpToLocked(n)
	}
}

// dropUpToLocked gives up the numbers up to n.
func (c *cache) dropUpToLocked(n uint64) {
	c.sweepLocked(stats.UnusedRestart, func(s *segment.Segment) uint64 {
		cut := s.UpTo(n)
		s.Drop(cut)
		return cut
	})
}

// dropAboveLocked gives up the numbers above n.
func (c *cache) dropAboveLocked(n uint64) {
	c.sweepLocked(stats.UnusedAlter, func(s *segment.Segment) uint64 { return s.Trim(s.UpTo(n)) })
}

// sweepLocked applies cut, which takes numbers out of a segment and says how many, to all that is
// held.
func (c *cache) sweepLocked(why stats.Unused, cut func(*segment.Segment) uint64) {
	gone := cut(&c.cur)
	kept := c.queue[:0]
	for _, s := range c.queue {
		gone += cut(&s)
		if s.Remaining() > 0 {
			kept = append(kept, s)
		}
	}
	c.queue = kept
	c.cached -= gone
	c.gaps[why] += gone
	if c.cur.Remaining() == 0 {
		c.advanceLocked(1)
	}
}

// highestLocked is the highest number that is held, or 0.
func (c *cache) highestLocked() uint64 {
	if n := len(c.queue); n > 0 {
		return max(c.cur.Last(), c.queue[n-1].Last())
	}
	return c.cur.Last()
}
