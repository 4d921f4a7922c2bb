package cache

import (
	"context"
	"time"
)

// waiter is a caller that waits for n consecutive numbers. It is used again for another one when
// that has ended.
type waiter struct {
	n          uint64
	since      time.Time
	deadline   time.Time // its patience is over then
	joinTried  bool      // an exact cache has tried to complete the rest that it holds
	batch      uint64    // of an ORDER sequence: the reservation that it may have numbers of
	prev, next *waiter
	done       bool // guarded by cache.mu: number, step and err are set, and it is off the list
	number     uint64
	step       uint64
	err        error
	ready      chan struct{} // has room for one: that it is done
}

// newWaiter is a waiter that is on no list.
func (c *Cache) newWaiter(n uint64, patience time.Duration) *waiter {
	w, ok := c.waiters.Get().(*waiter)
	if !ok {
		w = &waiter{ready: make(chan struct{}, 1)}
	}
	w.n, w.since = n, time.Now()
	w.deadline = w.since.Add(patience)
	return w
}

// freeWaiter has w be used again. It is off the list, and nothing is in its channel.
func (c *Cache) freeWaiter(w *waiter) {
	*w = waiter{ready: w.ready}
	c.waiters.Put(w)
}

// wait blocks until w is served, its patience is over or ctx is done. w is nobody's any more then.
func (c *Cache) wait(ctx context.Context, w *waiter) (first, step uint64, err error) {
	defer c.freeWaiter(w)
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
	c.removeLocked(w)
	// The waiters behind this one may be satisfied with what it could not use.
	c.serveLocked()
	return 0, 0, context.Cause(ctx)
}

// alarm ends the waits of callers whose patience is over. It is one timer for all of them: a timer
// of his own for each caller of an ORDER sequence is a good part of what a number costs. The
// cache's mu guards it.
type alarm struct {
	timer *time.Timer // calls impatient; nil until somebody waits
	at    time.Time   // when it goes off, or zero: it is not set
}

// alarmLocked has impatient called at a time, unless that happens before.
func (c *Cache) alarmLocked(at time.Time) {
	if a := &c.alarm; a.at.IsZero() || at.Before(a.at) {
		a.at = at
		if a.timer == nil {
			a.timer = time.AfterFunc(time.Until(at), c.impatient)
		} else {
			a.timer.Reset(time.Until(at))
		}
	}
}

// impatient tells those whose patience is over why they get no number.
func (c *Cache) impatient() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.alarm.at = time.Time{}
	now := time.Now()
	var next time.Time // that somebody's patience is over
	var cause error
	for w := c.first; w != nil; {
		following := w.next
		switch {
		case w.deadline.After(now):
			if next.IsZero() || w.deadline.Before(next) {
				next = w.deadline
			}
		default:
			if cause == nil {
				cause = c.causeLocked()
			}
			c.finishLocked(w, 0, c.unavailableLocked(now.Sub(w.since), cause))
		}
		w = following
	}
	// Who waited behind them may be satisfied with what they could not use.
	c.serveLocked()
	if c.first == nil {
		return
	}
	if soonest := now.Add(c.all.Timing.AlarmRest); next.Before(soonest) {
		next = soonest
	}
	c.alarmLocked(next)
}

// causeLocked is why there are no numbers.
func (c *Cache) causeLocked() error {
	if c.trouble.Err != nil {
		return c.trouble.Err
	}
	_, err := c.all.Owner.WhyNot(c.Name)
	return err
}

// serveLocked gives numbers to those who wait, first come first served, as far as they go.
func (c *Cache) serveLocked() {
	for c.first != nil {
		number, ok := c.stock.take(c.first.n)
		if !ok {
			return
		}
		c.resting = false
		c.first.step = c.stock.cur.Step
		c.finishLocked(c.first, number, nil)
	}
}

// finishLocked takes w off the list and wakes it.
func (c *Cache) finishLocked(w *waiter, number uint64, err error) {
	c.removeLocked(w)
	w.done, w.number, w.err = true, number, err
	w.ready <- struct{}{}
}

func (c *Cache) pushLocked(w *waiter) {
	c.queued++
	w.prev = c.final
	if c.final != nil {
		c.final.next = w
	} else {
		c.first = w
	}
	c.final = w
	c.alarmLocked(w.deadline)
	c.arrivedLocked()
}

func (c *Cache) removeLocked(w *waiter) {
	c.queued--
	if w.prev != nil {
		w.prev.next = w.next
	} else {
		c.first = w.next
	}
	if w.next != nil {
		w.next.prev = w.prev
	} else {
		c.final = w.prev
	}
	w.prev, w.next = nil, nil
}
