package sequence

import (
	"context"
	"database/sql/driver"
	"errors"
	"net"
	"seqproxy/internal/await"
	"seqproxy/internal/tlsfiles"
	"sync/atomic"

	"github.com/go-sql-driver/mysql"
)

// Account is what connections to a sequence server are opened with.
type Account struct {
	User     string
	Password string
	Security *tlsfiles.Client // nil: plain
}

// login is the account in use of a server, and of all that are reached like it. Copies of its
// ServerOptions share it.
type login struct{ now atomic.Pointer[Account] }

func newLogin(a Account) *login {
	l := new(login)
	l.now.Store(&a)
	return l
}

// loginInUse is the login, which stands there once defaults are set.
func (o *ServerOptions) loginInUse() *login {
	if o.login == nil {
		o.login = newLogin(Account{o.User, o.Password, o.Security})
	}
	return o.login
}

// way is how a node is reached with an account.
type way struct {
	account *Account
	target  *tlsfiles.Target
}

// way is that of the account in use.
func (n *node) way() *way {
	account := n.login.now.Load()
	if w := n.last.Load(); w != nil && w.account == account {
		return w
	}
	// Two may do this at once, and one's cache of TLS sessions is then lost.
	w := &way{account, account.Security.To(n.addr)}
	n.last.Store(w)
	return w
}

// isUnreached reports whether nobody has answered, in place of refusing.
func isUnreached(err error) bool {
	var dial *net.OpError
	var waited net.Error
	return errors.As(err, &dial) && dial.Op == "dial" || errors.As(err, &waited) && waited.Timeout() || errors.Is(err, await.ErrPatience) ||
		errors.Is(err, context.DeadlineExceeded) || errors.Is(err, driver.ErrBadConn) || errors.Is(err, mysql.ErrInvalidConn)
}

// renew closes idle connections, and forgets that the old account was refused.
func (l *link) renew() {
	l.mu.Lock()
	l.failed = nil
	l.mu.Unlock()
	if db := l.pool(); db != nil {
		db.SetMaxIdleConns(0)
		db.SetMaxIdleConns(l.opts.MaxConns)
	}
	if !l.grouped() {
		return
	}
	for _, n := range l.nodes.all {
		if db := n.pool(); db != nil {
			db.SetMaxIdleConns(0)
			db.SetMaxIdleConns(idleLookers)
		}
	}
}
