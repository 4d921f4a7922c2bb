package cache

import "time"

// alarm ends the waits of callers whose patience is over. All of them share one timer: a timer for
// each caller of an ORDER sequence would be a good part of the cost of a number. Its owner
// synchronises.
type alarm struct {
	ring  func()
	timer *time.Timer // calls ring; nil before the first wait
	at    time.Time   // when it goes off, or zero: it is not set
}

// set makes it ring at a time, unless it does so earlier.
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

// rang makes the next set count, for any time.
func (a *alarm) rang() { a.at = time.Time{} }

// stop ends it when no caller waits any more.
func (a *alarm) stop() {
	if a.timer != nil {
		a.timer.Stop()
	}
}
