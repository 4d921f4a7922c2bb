package sequence

import (
	"context"
	"time"
)

// waiter is a caller that waits for n consecutive numbers. It is used again for another one when that has ended.
type waiter struct {
	n          uint64
	joinTried  bool   // an exact cache has tried to complete the rest that it holds
	batch      uint64 // of an ORDER sequence: the reservation that it may have numbers of
	prev, next *waiter
	done       bool // guarded by cache.mu: number, step and err are set, and it is off the list
	number     uint64
	step       uint64
	err        error
	ready      chan struct{} // has room for one: that it is done
	patience   *time.Timer   // runs while it waits
}

// newWaiter is a waiter that is on no list.
func (c *cache) newWaiter(n uint64) *waiter {
	w, ok := c.waiters.Get().(*waiter)
	if !ok {
		w = &waiter{ready: make(chan struct{}, 1), patience: time.NewTimer(time.Hour)}
	}
	w.n = n
	return w
}

// freeWaiter has w be used again. It is off the list, and nothing is in its channel.
func (c *cache) freeWaiter(w *waiter) {
	w.patience.Stop() // from go 1.23 on, nothing of it arrives after that
	*w = waiter{ready: w.ready, patience: w.patience}
	c.waiters.Put(w)
}

// wait blocks until w is served, ctx is done or patience has run out. w is nobody's any more then.
func (c *cache) wait(ctx context.Context, w *waiter, patience time.Duration) (first, step uint64, err error) {
	defer c.freeWaiter(w)
	begin := time.Now()
	w.patience.Reset(patience)
	var cause error
	select {
	case <-w.ready:
		return w.number, w.step, w.err
	case <-ctx.Done():
		cause = context.Cause(ctx)
	case <-w.patience.C:
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
	if cause == nil {
		if cause = c.lastErr; cause == nil {
			cause = c.owner.whyNot()
		}
		return 0, 0, c.unavailableLocked(time.Since(begin), cause)
	}
	return 0, 0, cause
}

// serveLocked gives numbers to those who wait, first come first served, as far as they go.
func (c *cache) serveLocked() {
	for c.first != nil {
		number, ok := c.takeLocked(c.first.n)
		if !ok {
			return
		}
		c.first.step = c.cur.step
		c.finishLocked(c.first, number, nil)
	}
}

// finishLocked takes w off the list and wakes it.
func (c *cache) finishLocked(w *waiter, number uint64, err error) {
	c.removeLocked(w)
	w.done, w.number, w.err = true, number, err
	w.ready <- struct{}{}
}

func (c *cache) pushLocked(w *waiter) {
	c.queued++
	w.prev = c.final
	if c.final != nil {
		c.final.next = w
	} else {
		c.first = w
	}
	c.final = w
	c.arrivedLocked()
}

func (c *cache) removeLocked(w *waiter) {
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
