package proxy

import (
	"time"

	"github.com/go-mysql-org/go-mysql/mysql"

	"seqproxy/proxy/login"
)

// enterLogin waits until the session may log in, until a time. After an error it may not,
// and the client has not been answered. The entry has to be left then.
func (s *session) enterLogin(until time.Time) error {
	if s.atAdmin {
		return nil
	}
	addr := s.client.RemoteAddr()
	network, exempt := s.set.failures.Source(addr)
	err := s.entry.Enter(s.set.logins, network, exempt || !network.IsValid() || s.set.fromBalancer(addr), until, s.srv.stopping, s.ctx.Done())
	switch err {
	case login.ErrNoPlace:
		return errTooManyLogins
	case login.ErrStopping:
		return errShutdown
	case login.ErrGone:
		return errClientGone
	}
	return err
}

// errTooManyLogins is for a client whose turn to log in did not come in time.
var errTooManyLogins = &loginRefused{sqlError(mysql.ER_CON_COUNT_ERROR, "08004", "Too many connections (seqproxy: max_logins of them are logging in)")}
