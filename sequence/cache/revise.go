package cache

import (
	"time"

	"seqproxy/sequence/define"
	"seqproxy/sequence/segment"
	"seqproxy/sequence/stats"
	"seqproxy/sequence/store"
)

// This file has what happens to cached numbers when the sequence is changed. A reservation in
// flight may be older than the change, so its numbers are not used: generation shows it.

// overtakeLocked makes the numbers of a reservation in flight void.
func (c *Cache) overtakeLocked(why stats.Unused) {
	c.generation++
	c.overtaken = why
}

// Void discards all cached numbers, because a new epoch has begun.
func (c *Cache) Void(why stats.Unused) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.voidLocked(why)
	c.counter.top = 0 // the next reservation sets it
}

func (c *Cache) voidLocked(why stats.Unused) {
	c.stock.discard(why)
	c.overtakeLocked(why)
	c.counter.spent = 0 // the row may be lower now
}

// Flush discards all cached numbers. The row stays where it is, unless [Cache.Returned] follows, so
// that the distance to the end remains known.
func (c *Cache) Flush() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.voidLocked(stats.UnusedFlush)
}

// FlushUnused is Flush, except for the segment at the upper end, which it returns as Unused does.
// It is one step: in between a number of that segment would be in no cache, and spent.
func (c *Cache) FlushUnused() segment.Segment {
	c.mu.Lock()
	defer c.mu.Unlock()
	seg := c.stock.release()
	c.voidLocked(stats.UnusedFlush)
	return seg
}

// Returned records that numbers above at were returned to the table in a flush.
func (c *Cache) Returned(at uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.counter.top = min(c.counter.top, at)
}

// Unlearn makes the next options that are read count as news, because the known ones may be of
// changes that are lost.
func (c *Cache) Unlearn() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.version = 0
}

// Revise applies the present options to the cache, and discards the numbers that do not conform. It
// reports whether numbers are passed over that were not before.
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

// Pass discards the numbers up to n, and those of a reservation in flight. It reports whether that
// is news.
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
