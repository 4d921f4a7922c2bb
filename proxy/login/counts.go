package login

import (
	"fmt"
	"sync"

	"github.com/go-mysql-org/go-mysql/mysql"

	"seqproxy/protocol"
)

// Counts is how many sessions each user has. The zero value has none. A user without sessions has
// no entry.
type Counts struct {
	mu sync.Mutex
	by map[string]int // guarded by mu
}

// Count takes one of the user's connections, and returns the previous user's after a change. In
// this order, which is MySQL's, a user at its limit cannot change to itself. In the other,
// MariaDB's, it can. The error is for the client.
func (l *Login) Count(likeMariaDB bool) error {
	if l.AtAdmin {
		return nil
	}
	n, name := &l.gate.Counts, l.Account.Name
	n.mu.Lock()
	defer n.mu.Unlock()
	if likeMariaDB {
		n.uncountLocked(l)
	}
	if err := l.policy.exceeded(l.Account, n.by[name]+1); err != nil {
		return err
	}
	if n.by == nil {
		n.by = make(map[string]int)
	}
	n.by[name]++
	n.uncountLocked(l)
	l.countedAs = l.Account
	return nil
}

// Uncount returns the connection of the user that the session counts for. Any goroutine may call it
// once no other uses the login.
func (l *Login) Uncount() {
	n := &l.gate.Counts
	n.mu.Lock()
	defer n.mu.Unlock()
	n.uncountLocked(l)
}

func (n *Counts) uncountLocked(l *Login) {
	if l.countedAs == nil {
		return
	}
	name := l.countedAs.Name
	l.countedAs = nil
	if n.by[name]--; n.by[name] <= 0 {
		delete(n.by, name)
	}
}

// exceeded returns an error if a user may not have n connections, in the servers' words: an
// account's own limit has another error than the common one.
func (p *Policy) exceeded(a *Account, n int) error {
	switch {
	case a.MaxConnections > 0 && n > a.MaxConnections:
		return &LimitError{protocol.Errorf(mysql.ER_USER_LIMIT_REACHED, "42000",
			"User '%.64s' has exceeded the 'max_user_connections' resource (current value: %d)", a.Name, a.MaxConnections)}
	case a.MaxConnections == 0 && p.MaxUserConnections > 0 && n > p.MaxUserConnections:
		return &LimitError{protocol.Errorf(mysql.ER_TOO_MANY_USER_CONNECTIONS, "42000",
			"User %.64s already has more than 'max_user_connections' active connections", a.Name)}
	}
	return nil
}

// LimitError is a login that a limit of the proxy refuses.
type LimitError struct{ answer *protocol.ServerError }

func (e *LimitError) Error() string {
	return fmt.Sprintf("login refused by a limit (%d): %s", e.answer.Code, e.answer.Message)
}

func (e *LimitError) Unwrap() error { return e.answer }
