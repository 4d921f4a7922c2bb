package cache

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
func (c *Cache) overtakeLocked(why stats.Unused) {
	c.generation++
	c.overtaken = why
}

// Void gives up all that is held, as a new epoch has begun.
func (c *Cache) Void(why stats.Unused) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.voidLocked(why)
	c.counter.top = 0 // the next reservation tells
}

func (c *Cache) voidLocked(why stats.Unused) {
	c.stock.discard(why)
	c.overtakeLocked(why)
	c.counter.spent = 0 // the row may be lower now
}

// Flush gives up all that is held, as somebody asked for it. The row stays where it is, unless
// [Cache.WentBack] says something else, so that it is still known how near the sequence is to its
// end.
func (c *Cache) Flush() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.voidLocked(stats.UnusedFlush)
}

// FlushUnused is flush, but for the segment at the upper end, which it returns as unused does. It
// is one step: in between a number of that segment would be held by nobody, and spent.
func (c *Cache) FlushUnused() segment.Segment {
	c.mu.Lock()
	defer c.mu.Unlock()
	seg := c.stock.release()
	c.voidLocked(stats.UnusedFlush)
	return seg
}

// WentBack takes note that numbers above at were given back in a flush.
func (c *Cache) WentBack(at uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.counter.top = min(c.counter.top, at)
}

// Unlearn has what is read of the options next count as news, since what is known may be of changes
// that are lost.
func (c *Cache) Unlearn() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.version = 0
}

// Revise brings the cache in line with the options as they are now, and gives up the numbers that
// do not conform. It reports whether numbers are passed over that were not before.
func (c *Cache) Revise(r *store.Row) (passed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.end != nil || r.Version <= c.version {
		return false
	}
	c.version = r.Version
	c.dry, c.counter.cycle = false, r.Def.Cycle
	if now := r.Common(); !now.Same(c.counter.rule) {
		c.overtakeLocked(stats.UnusedAlter)
		if now.Max = c.counter.rule.Max; !now.Same(c.counter.rule) {
			c.stock.discard(stats.UnusedAlter)
		}
		c.counter.rule = r.Common()
	}
	c.orderLocked(r.Def.Order)
	c.exhaustion.limits = LimitsOf(r)
	c.sizes.cover = define.CoverOf(&r.Def)
	passed = c.passLocked(r.Past)
	c.counter.past, c.counter.max, c.sizes.exact = r.Past, r.Max, r.Exact
	if c.counter.max < c.stock.highest() {
		c.stock.dropAbove(c.counter.max)
	}
	if c.sizes.exact > 0 {
		c.stock.trim(c.sizes.exact)
	}
	c.replan(time.Now())
	if c.stock.given == 0 && c.stock.cached == 0 {
		c.sizes.low = 0 // as in New
	}
	return passed
}

// Pass gives up the numbers up to n, and those that a reservation in flight brings. It reports
// whether that is news.
func (c *Cache) Pass(n uint64) (passed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.passLocked(n)
}

func (c *Cache) passLocked(n uint64) (passed bool) {
	if !c.counter.pass(n) {
		return false
	}
	c.overtakeLocked(stats.UnusedRestart)
	c.stock.dropUpTo(n)
	return true
}
