package cache

import (
	"math"
	"time"

	"seqproxy/sequence/define"
	"seqproxy/sequence/stats"
	"seqproxy/sequence/store"
)

// Never is a time that is too far off to show.
const Never = time.Duration(math.MaxInt64)

// InSeconds returns n/rate.
func InSeconds(n, rate float64) time.Duration {
	if rate > 0 && n/rate < Never.Seconds() {
		return time.Duration(n / rate * float64(time.Second))
	}
	return Never
}

// State describes the numbers of a sequence.
type State struct {
	Next   uint64 // the number of the next take from memory; 0 if unknown
	Cached uint64 // numbers in memory
	Size   uint64 // how many are reserved at once now; 0 for an ORDER sequence
	Order  bool
	Exact  bool // Size was typed as CACHE n
	Cycle  bool // they begin again at the end

	Last      uint64 // the highest number in memory, or 0
	Waiting   int    // callers without a number
	Reserving bool   // a reservation is in flight

	End       uint64  // the last number; a warning comes before it
	Used      float64 // how much of the numbers up to End was reserved, in percent
	Rate      float64 // numbers per second that are taken here now
	ToEnd     time.Duration
	CachedFor time.Duration // how long Cached lasts at Rate
	Skew      time.Duration // how far from the order of time they may be
	Reserved  time.Time     // when some were last reserved here; zero: never
}

// State returns the state of the numbers, as far as it is known here. It changes nothing.
func (c *Cache) State(now time.Time) State {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stateLocked(now, c.sizes.rate(now, c.stock.given), c.counter.top)
}

// Look is State with what its row says, nil if it was not read. Next is what a take gives if no
// other proxy reserves first.
func (c *Cache) Look(r *store.Row) State {
	c.mu.Lock()
	defer c.mu.Unlock()
	low, now := c.sizes.low, time.Now()
	c.replan(now)
	if c.stock.given == 0 {
		c.sizes.low = low // a query must not make an unused sequence fetch
	}
	if r == nil {
		return c.stateLocked(now, c.sizes.pace.Rate(), c.counter.top)
	}
	highest := r.Position()
	if !c.counter.cycle {
		highest = max(highest, c.counter.top)
	}
	c.exhaustion.progress.observe(now, highest)
	st := c.stateLocked(now, c.sizes.pace.Rate(), highest)
	if st.Next == 0 {
		if next, ok := c.counter.rule.Next(highest, c.counter.max); ok {
			st.Next = next
		}
	}
	return st
}

func (c *Cache) stateLocked(now time.Time, rate float64, highest uint64) State {
	st := State{
		Next: c.stock.next(), Last: c.stock.highest(), Waiting: c.line.length, Reserving: c.flying, Cached: c.stock.cached, Size: c.sizes.size, Order: c.order, Exact: c.sizes.exact > 0, Cycle: c.counter.cycle,
		End: c.exhaustion.limits.End, Used: c.exhaustion.limits.Used(highest), Rate: rate, ToEnd: Never, Reserved: c.reservedAt,
	}
	if c.order {
		st.Size = 0
	}
	if seconds := c.exhaustion.seconds(now, c.counter.top, c.counter.rise(rate)); seconds < Never.Seconds() {
		st.ToEnd = time.Duration(seconds * float64(time.Second))
	}
	st.CachedFor = InSeconds(float64(st.Cached), rate)
	st.Skew = InSeconds(float64(st.Size), rate)
	return st
}

// Tally returns the counts.
func (c *Cache) Tally() stats.Tally {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.tallyLocked()
}

func (c *Cache) tallyLocked() stats.Tally {
	return stats.Tally{Reserved: c.stock.reserved, Cached: c.stock.cached + c.stock.leaving, Given: c.stock.given, Waits: c.waits, Unused: c.stock.gaps}
}

// GivesNow reports whether numbers are in memory, and if not, the known reason why none can be
// reserved.
func (c *Cache) GivesNow() (cached bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.end != nil:
		return false, c.end
	case c.stock.cached > 0:
		return true, nil
	case c.flying && c.trouble.Err != nil:
		// It is being tried again; a failure without a further attempt says nothing of now.
		return false, c.unavailableLocked(0, c.trouble.Err)
	}
	if _, ok := c.counter.next(); !ok && !c.counter.cycle {
		return false, &define.NameError{Name: define.ShownName(c.Name), Err: define.ErrExhausted}
	}
	return false, nil
}
