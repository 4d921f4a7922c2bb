package login

import (
	"errors"
	"net/netip"
	"time"
)

// Entry is how one login gets in. The zero value has no place.
type Entry struct {
	queue *Queue
	place *place
}

// In says whether the login has a place.
func (e *Entry) In() bool { return e.queue != nil }

// Enter waits for a place in a queue, nil if there is none to wait in, until a time, or until the
// proxy stops or the client has gone. After an error the login has no place; else leave has to
// follow.
func (e *Entry) Enter(q *Queue, network netip.Prefix, all bool, until time.Time, stopping, gone <-chan struct{}) error {
	if q == nil {
		return nil
	}
	e.queue, e.place = q, q.Enter(network, all)
	if e.place.given == nil {
		return nil
	}
	timer := time.NewTimer(time.Until(until))
	defer timer.Stop()
	var err error
	select {
	case <-e.place.given:
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

// Leave lets the next client log in, if this one has a place.
func (e *Entry) Leave() {
	if e.queue != nil {
		e.queue.leave(e.place)
		e.queue, e.place = nil, nil
	}
}

// ErrNoPlace is why a login has got no place in time.
var ErrNoPlace = errors.New("the turn to log in did not come in time")
