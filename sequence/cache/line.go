package cache

import (
	"sync"
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
	done       bool // guarded by cache.mu: number, step and err are set, and it is off the line
	number     uint64
	step       uint64
	err        error
	ready      chan struct{} // has room for one: that it is done
}

// waiterPool has the waiters that nobody uses.
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

// put has w be used again. It is in no line, and nothing is in its channel.
func (p *waiterPool) put(w *waiter) {
	*w = waiter{ready: w.ready}
	p.unused.Put(w)
}

// line is the callers without a number, in the order they came. Its owner synchronises.
type line struct {
	first, last *waiter
	length      int
}

// push puts w behind all others.
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

// remove takes w out, who wants no number any more.
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

// refuseAll refuses everybody.
func (l *line) refuseAll(err error) {
	for l.first != nil {
		l.refuse(l.first, err)
	}
}

// refuseLate refuses those whose patience is over, each with what err makes of how long it has
// waited. It returns when the patience of the next one is over, or zero.
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

// needs is how many numbers the first one wants, or 0.
func (l *line) needs() uint64 {
	if l.first == nil {
		return 0
	}
	return l.first.n
}

// wanted is how many numbers those want together who wait: a crowd that comes at one moment waits
// for one reservation.
func (l *line) wanted() (n uint64) {
	for w := l.first; w != nil && n < maxBatch; w = w.next {
		n += min(w.n, maxBatch)
	}
	return n
}

// alarm ends the waits of callers whose patience is over. It is one timer for all of them: a timer
// of his own for each caller of an ORDER sequence is a good part of what a number costs. Its owner
// synchronises.
type alarm struct {
	ring  func()
	timer *time.Timer // calls ring; nil until somebody waits
	at    time.Time   // when it goes off, or zero: it is not set
}

// set has it ring at a time, unless it does before.
func (a *alarm) set(at time.Time) {
	if !a.at.IsZero() && !at.Before(a.at) {
		return
	}
	a.at = at
	if a.timer == nil {
		a.timer = time.AfterFunc(time.Until(at), a.ring)
	} else {
		a.timer.Reset(time.Until(at))
	}
}

// rang has the next set count, whenever that is.
func (a *alarm) rang() { a.at = time.Time{} }

// stop ends it, as nobody waits any more.
func (a *alarm) stop() {
	if a.timer != nil {
		a.timer.Stop()
	}
}
