package cache

import (
	"math"
	"time"

	"seqproxy/sequence/segment"
	"seqproxy/sequence/stats"
)

// demandLocked says how many numbers to reserve now: want ideally, need at least; want 0 means
// none.
func (c *Cache) demandLocked(now time.Time) (want, need uint64) {
	c.replan(now)
	if c.order {
		// nothing is fetched ahead; board says how much
		return c.line.needs(), c.line.needs()
	}
	if c.exact > 0 {
		return c.demandExactLocked()
	}
	switch {
	case c.line.first != nil:
		return max(c.size, c.line.first.n, min(c.line.wanted(), c.leftLocked()/segment.CeilingShare)), c.line.first.n
	case (c.stock.cached < c.low || c.idle && c.stock.cached < c.wholeLocked()) && !c.dry && !c.resting && !c.stock.full():
		return c.size, 1
	}
	c.idle = false
	return 0, 0
}

// wholeLocked is how many numbers an idle sequence holds at least: the configured cache, where so
// many are reserved at a time. One in use may have half of that left before more is fetched, so
// that it is not reserved for twice.
func (c *Cache) wholeLocked() uint64 { return min(c.pace.Base, c.size) }

// demandExactLocked is the demand under a typed CACHE n: never are more than n unused numbers in
// memory, apart from a run that somebody waits for and that is longer than n by itself.
func (c *Cache) demandExactLocked() (want, need uint64) {
	w := c.line.first
	switch {
	case w == nil:
		if c.stock.cached < c.low && !c.dry && !c.resting {
			return c.exact - c.stock.cached, 1
		}
		return 0, 0
	case w.n > c.exact:
		return w.n, w.n
	case c.stock.cached > 0 && c.stock.cached < c.exact && !w.joinTried:
		// What is missing to n may adjoin the rest and complete the run.
		return c.exact - c.stock.cached, 1
	}
	c.stock.discard(stats.UnusedRun)
	return c.exact, w.n
}

// replan brings the measured rate, the size and the low-water mark up to date. mu is held, or c is
// not shared yet.
func (c *Cache) replan(now time.Time) {
	z := c.all.Owner.Sizing()
	c.pace.Base, c.pace.Cover = z.Least, z.Cover
	if c.cover > 0 {
		c.pace.Cover = c.cover
	}
	c.pace.Observe(now, c.stock.given-c.measured)
	if c.stock.given != c.measured || c.usedAt.IsZero() {
		c.usedAt = now
	}
	c.measured = c.stock.given
	if c.exact > 0 {
		c.size, c.low = c.exact, c.exact/2+1
		if c.exact == 1 {
			// whoever types CACHE 1 wants numbers in the order of time: none is fetched ahead
			c.low = 0
		}
		return
	}
	c.size, c.low = c.pace.Sizes(c.leftLocked())
	c.size = z.Share.By(c.rule).Sized(c.size)
}

// KeepUp fetches more where the rate has risen since the last reservation, and where a sequence was
// used and is idle now.
func (c *Cache) KeepUp(now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.end != nil || c.exact > 0 || c.order || c.stock.cached == 0 {
		return
	}
	if c.stock.given == c.measured {
		if now.Sub(c.usedAt) >= c.all.Timing.Idle && c.stock.cached < c.wholeLocked() && !c.flying && !c.dry && !c.resting {
			c.idle = true
			c.flyLocked()
		}
		return
	}
	if c.replan(now); c.stock.cached < c.low && !c.flying && !c.dry && !c.resting {
		c.flyLocked()
	}
}

// leftLocked is how many numbers remain to the sequence's maximum.
func (c *Cache) leftLocked() uint64 {
	if c.max == 0 {
		return math.MaxUint64
	}
	return (c.max - min(c.top, c.max)) / max(c.rule.Step, 1)
}

// Cover is for how long what is held is to last.
func (c *Cache) Cover() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cover > 0 {
		return c.cover
	}
	return c.all.Owner.Sizing().Cover
}

// TopUp fetches what is missing to the low-water mark, of a sequence in use, and reports whether
// that goes on.
func (c *Cache) TopUp(now time.Time) (filling bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.end != nil || c.stock.given == 0 || c.dry || c.resting || c.trouble.Err != nil {
		return false
	}
	if c.replan(now); c.stock.cached < c.low && !c.flying {
		c.flyLocked()
	}
	return c.stock.cached < c.low
}

// Pace is how fast numbers are taken.
func (c *Cache) Pace() segment.Pace {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.pace
}

// Expect fetches numbers as for those who take them at a pace.
func (c *Cache) Expect(pace segment.Pace) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.end != nil {
		return
	}
	c.pace = pace
	if c.replan(time.Now()); c.low > 0 && !c.flying {
		c.flyLocked()
	}
}
