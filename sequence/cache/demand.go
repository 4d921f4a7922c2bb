package cache

import (
	"time"

	"seqproxy/sequence/segment"
	"seqproxy/sequence/stats"
)

// demandLocked returns how many numbers to reserve now: want ideally, need at least; want 0 means
// none.
func (c *Cache) demandLocked(now time.Time) (want, need uint64) {
	c.replan(now)
	ahead := !c.dry && !c.resting
	switch {
	case c.order:
		// Nothing is fetched ahead; board decides how much.
		return c.line.needs(), c.line.needs()
	case c.sizes.exact > 0:
		want, need, giveUp := c.sizes.demandExact(c.stock.cached, c.line.first, ahead)
		if giveUp {
			c.stock.discard(stats.UnusedRun)
		}
		return want, need
	}
	want, need = c.sizes.demand(c.stock.cached, &c.line, c.counter.remaining(), ahead && !c.stock.full())
	if want == 0 {
		c.sizes.idle = false
	}
	return want, need
}

// replan brings the sizes up to date. mu is locked, or c is not shared yet.
func (c *Cache) replan(now time.Time) {
	c.sizes.choose(now, c.all.Owner.Sizing(), c.stock.given, &c.counter)
}

// KeepUp fetches more where the rate has risen since the last reservation, and where a sequence was
// used and is idle now.
func (c *Cache) KeepUp(now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.end != nil || c.sizes.exact > 0 || c.order || c.stock.cached == 0 {
		return
	}
	if c.stock.given == c.sizes.measured {
		if now.Sub(c.sizes.usedAt) >= c.all.Timing.Idle && c.stock.cached < c.sizes.whole() && !c.flying && !c.dry && !c.resting {
			c.sizes.idle = true
			c.flyLocked()
		}
		return
	}
	if c.replan(now); c.stock.cached < c.sizes.low && !c.flying && !c.dry && !c.resting {
		c.flyLocked()
	}
}

// Cover returns how long the cached numbers should last.
func (c *Cache) Cover() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.sizes.covers(c.all.Owner.Sizing())
}

// Pace returns how fast numbers are taken.
func (c *Cache) Pace() segment.Pace {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.sizes.pace
}

// Expect fetches numbers for a sequence without any, as for clients that take them at a pace.
func (c *Cache) Expect(pace segment.Pace) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.end != nil || c.stock.given > 0 || c.stock.reserved > 0 {
		return
	}
	c.sizes.pace = pace
	if c.replan(time.Now()); c.sizes.low > 0 && !c.flying {
		c.flyLocked()
	}
}
