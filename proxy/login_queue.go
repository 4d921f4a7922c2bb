package proxy

import (
	"time"

	"github.com/go-mysql-org/go-mysql/mysql"
)

// loginQueue bounds how many clients log in at the same time: the others wait, in the
// order in which they came, before they are greeted. So neither their TLS handshakes nor
// the checks of their passwords take the processor from those that are ahead, and from
// the sessions that run. It is nil where there is no bound.
type loginQueue chan struct{}

func newLoginQueue(size int) loginQueue {
	if size <= 0 {
		return nil
	}
	return make(loginQueue, size)
}

// enterLogin waits until the session may log in, until a time. After an error it may not,
// and the client has not been answered. leaveLogin has to follow.
func (s *session) enterLogin(until time.Time) error {
	q := s.set.logins
	if q == nil || s.atAdmin {
		return nil
	}
	select {
	case q <- struct{}{}:
		s.queue = q
		return nil
	default:
	}
	timer := time.NewTimer(time.Until(until))
	defer timer.Stop()
	select {
	case q <- struct{}{}:
		s.queue = q
		return nil
	case <-timer.C:
		return errTooManyLogins
	case <-s.srv.stopping:
		return errShutdown
	case <-s.ctx.Done():
		return errClientGone
	}
}

// leaveLogin lets the next client log in, if this session is among those that do.
func (s *session) leaveLogin() {
	if s.queue != nil {
		<-s.queue
		s.queue = nil
	}
}

// errTooManyLogins is for a client whose turn to log in did not come in time.
var errTooManyLogins = &loginRefused{sqlError(mysql.ER_CON_COUNT_ERROR, "08004", "Too many connections (seqproxy: max_logins of them are logging in)")}
