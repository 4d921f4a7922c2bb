package proxy

import (
	"fmt"

	"github.com/go-mysql-org/go-mysql/mysql"

	"seqproxy/protocol"
)

// userCounts is how many sessions each user has. It has no entry for a user without any.
// Server.mu guards it.
type userCounts map[string]int

// countUser takes one of the connections that the session's user may have, and gives
// back that of the user before it, if it has changed: in this order, as MySQL does, so
// that at the limit a user cannot change to itself; in the other, as MariaDB does. The
// error is the one that the user gets.
func (s *Server) countUser(sess *session) error {
	if sess.atAdmin {
		return nil
	}
	name := sess.user.Name
	s.mu.Lock()
	defer s.mu.Unlock()
	if sess.likeMariaDB() {
		s.uncountLocked(sess)
	}
	if err := sess.set.exceeded(sess.user, s.perUser[name]+1); err != nil {
		return err
	}
	s.perUser[name]++
	s.uncountLocked(sess)
	sess.countedAs = sess.user
	return nil
}

// uncountLocked gives back the connection of the user that the session is counted as.
func (s *Server) uncountLocked(sess *session) {
	if sess.countedAs == nil {
		return
	}
	name := sess.countedAs.Name
	sess.countedAs = nil
	if s.perUser[name]--; s.perUser[name] <= 0 {
		delete(s.perUser, name)
	}
}

// exceeded is not nil if a user may not have n connections. The words are the servers':
// an account's own limit has another error than the one for all.
func (o *Options) exceeded(u *User, n int) *loginRefused {
	switch {
	case u.MaxConnections > 0 && n > u.MaxConnections:
		return &loginRefused{sqlError(mysql.ER_USER_LIMIT_REACHED, "42000",
			"User '%.64s' has exceeded the 'max_user_connections' resource (current value: %d)", u.Name, u.MaxConnections)}
	case u.MaxConnections == 0 && o.MaxUserConnections > 0 && n > o.MaxUserConnections:
		return &loginRefused{sqlError(mysql.ER_TOO_MANY_USER_CONNECTIONS, "42000",
			"User %.64s already has more than 'max_user_connections' active connections", u.Name)}
	}
	return nil
}

// loginRefused is a login that a limit of the proxy's does not let in.
type loginRefused struct{ told *protocol.ServerError }

func (e *loginRefused) Error() string {
	return fmt.Sprintf("login refused by a limit (%d): %s", e.told.Code, e.told.Message)
}

func (e *loginRefused) Unwrap() error { return e.told }
