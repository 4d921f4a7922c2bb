package login

import (
	"errors"
	"net/netip"
	"time"
)

// Entry is the place of one login in a queue. The zero value has none.
type Entry struct {
	queue *Queue
	place *place
}

// In reports whether the login has a place.
func (e *Entry) In() bool { return e.queue != nil }

// Enter waits for a place in a queue, until the given time, or until the proxy stops or the client
// has gone. A nil queue has no bound, and room is as in [Queue.Enter]. After an error the login has
// no place. Otherwise the caller must call Leave.
func (e *Entry) Enter(q *Queue, network netip.Prefix, all bool, room int, until time.Time, stopping, gone <-chan struct{}) error {
	if q == nil {
		return nil
	}
	p := q.Enter(network, all, room)
	if p == nil {
		return ErrNoPlace
	}
	e.queue, e.place = q, p
	if p.given == nil {
		return nil
	}
	timer := time.NewTimer(time.Until(until))
	defer timer.Stop()
	var err error
	select {
	case <-p.given:
		return nil
	case <-timer.C:
		err = ErrNoPlace
	case <-stopping:
		err = ErrStopping
	case <-gone:
		err = ErrGone
	}
	e.Leave()
	return err
}

// Leave frees the place, if the login has one.
func (e *Entry) Leave() {
	if e.queue != nil {
		e.queue.leave(e.place)
		e.queue, e.place = nil, nil
	}
}

// ErrNoPlace says that a login got no place in time, or none to wait.
var ErrNoPlace = errors.New("the turn to log in did not come in time")
