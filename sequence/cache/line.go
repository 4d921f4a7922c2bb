package cache

import (
	"sync"
	"time"
)

// waiter is a caller that waits for n consecutive numbers. When it has ended it is used again.
type waiter struct {
	n          uint64
	since      time.Time
	deadline   time.Time // end of its patience
	joinTried  bool      // an exact cache has tried to complete its rest
	batch      uint64    // for an ORDER sequence: the reservation whose numbers it may get
	prev, next *waiter
	done       bool // guarded by cache.mu: number, step and err are set, and it is out of the line
	number     uint64
	step       uint64
	err        error
	ready      chan struct{} // signals done; has room for one
}

// waiterPool has the unused waiters.
type waiterPool struct{ unused sync.Pool }

// get returns a waiter that is in no line.
func (p *waiterPool) get(n uint64, patience time.Duration) *waiter {
	w, ok := p.unused.Get().(*waiter)
	if !ok {
		w = &waiter{ready: make(chan struct{}, 1)}
	}
	w.n, w.since = n, time.Now()
	w.deadline = w.since.Add(patience)
	return w
}

// put keeps w for another use. It is in no line, and its channel is empty.
func (p *waiterPool) put(w *waiter) {
	*w = waiter{ready: w.ready}
	p.unused.Put(w)
}

// line has the callers without a number, in the order they came. Its owner synchronises.
type line struct {
	first, last *waiter
	length      int
}

// push adds w at the end.
func (l *line) push(w *waiter) {
	l.length++
	w.prev = l.last
	if l.last != nil {
		l.last.next = w
	} else {
		l.first = w
	}
	l.last = w
}

// remove takes out w, which wants no number any more.
func (l *line) remove(w *waiter) {
	l.length--
	if w.prev != nil {
		w.prev.next = w.next
	} else {
		l.first = w.next
	}
	if w.next != nil {
		w.next.prev = w.prev
	} else {
		l.last = w.prev
	}
	w.prev, w.next = nil, nil
}

// serve takes w out with its numbers, step apart, and wakes it.
func (l *line) serve(w *waiter, number, step uint64) {
	l.remove(w)
	w.done, w.number, w.step = true, number, step
	w.ready <- struct{}{}
}

// refuse takes w out with an error, and wakes it.
func (l *line) refuse(w *waiter, err error) {
	l.remove(w)
	w.done, w.err = true, err
	w.ready <- struct{}{}
}

// refuseAll refuses all.
func (l *line) refuseAll(err error) {
	for l.first != nil {
		l.refuse(l.first, err)
	}
}

// refuseLate refuses those whose patience is over, with an error that err makes of their wait. It
// returns when the next patience ends, or zero.
func (l *line) refuseLate(now time.Time, err func(waited time.Duration) error) (next time.Time) {
	for w := l.first; w != nil; {
		following := w.next
		switch {
		case !w.deadline.After(now):
			l.refuse(w, err(now.Sub(w.since)))
		case next.IsZero() || w.deadline.Before(next):
			next = w.deadline
		}
		w = following
	}
	return next
}

// needs returns how many numbers the first one wants, or 0.
func (l *line) needs() uint64 {
	if l.first == nil {
		return 0
	}
	return l.first.n
}

// wanted returns how many numbers all waiting callers want together: a crowd that comes at one
// moment waits for one reservation.
func (l *line) wanted() (n uint64) {
	for w := l.first; w != nil && n < maxBatch; w = w.next {
		n += min(w.n, maxBatch)
	}
	return n
}
