package cache

import (
	"context"
	"time"
)

// wait blocks until w is served, its patience is over or ctx is done. w is then free for another
// use.
func (c *Cache) wait(ctx context.Context, w *waiter) (first, step uint64, err error) {
	defer c.waiters.put(w)
	select {
	case <-w.ready:
		return w.number, w.step, w.err
	case <-ctx.Done():
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if w.done { // served at the same moment: the numbers must not be lost
		<-w.ready
		return w.number, w.step, w.err
	}
	c.line.remove(w)
	// A later waiter may use what this one could not.
	c.serveLocked()
	return 0, 0, context.Cause(ctx)
}

// impatient refuses those whose patience is over.
func (c *Cache) impatient() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.alarm.rang()
	now := time.Now()
	cause := c.trouble.Err
	next := c.line.refuseLate(now, func(waited time.Duration) error {
		if cause == nil {
			_, cause = c.all.Owner.WhyNot(c.Name)
		}
		return c.unavailableLocked(waited, cause)
	})
	// A later waiter may use what they could not.
	c.serveLocked()
	if c.line.first == nil {
		return
	}
	if soonest := now.Add(c.all.Timing.AlarmRest); next.Before(soonest) {
		next = soonest
	}
	c.alarm.set(next)
}

// serveLocked gives numbers to waiting callers, first come first served, as far as they go.
func (c *Cache) serveLocked() {
	for c.line.first != nil {
		number, ok := c.stock.take(c.line.first.n)
		if !ok {
			return
		}
		c.resting = false
		c.line.serve(c.line.first, number, c.stock.cur.Step)
	}
}
