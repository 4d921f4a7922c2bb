package link

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"net"
	"sync/atomic"

	"github.com/go-sql-driver/mysql"

	"seqproxy/internal/await"
	"seqproxy/internal/tlsfiles"
)

// Account opens connections to a sequence server.
type Account struct {
	User     string
	Password string
	Security *tlsfiles.Client // nil: plain
}

// Login has the account in use of a server, and of all servers with the same login. It is safe for
// concurrent use.
type Login struct{ now atomic.Pointer[Account] }

// NewLogin returns a Login that uses an account.
func NewLogin(a Account) *Login {
	l := new(Login)
	l.now.Store(&a)
	return l
}

// Account returns the account in use. The caller does not change it.
func (l *Login) Account() *Account { return l.now.Load() }

// Use makes new connections use another account; see [Link.Renew].
func (l *Login) Use(a *Account) { l.now.Store(a) }

// way is how a node is reached with an account.
type way struct {
	account *Account
	target  *tlsfiles.Target
}

// way returns the way with the account in use.
func (n *Node) way() *way {
	account := n.login.Account()
	if w := n.last.Load(); w != nil && w.account == account {
		return w
	}
	// Two callers may do this at once. The TLS sessions of one are then lost.
	w := &way{account, account.Security.To(n.Addr)}
	n.last.Store(w)
	return w
}

// IsUnreached reports whether there was no answer, rather than a refusal.
func IsUnreached(err error) bool {
	var dial *net.OpError
	var waited net.Error
	return errors.As(err, &dial) && dial.Op == "dial" || errors.As(err, &waited) && waited.Timeout() || errors.Is(err, await.ErrPatience) ||
		errors.Is(err, context.DeadlineExceeded) || errors.Is(err, driver.ErrBadConn) || errors.Is(err, mysql.ErrInvalidConn)
}

// Renew closes idle connections, and forgets that the old account was refused.
func (l *Link) Renew() {
	l.mu.Lock()
	l.failed = nil
	l.mu.Unlock()
	if db := l.Pool(); db != nil {
		db.SetMaxIdleConns(0)
		db.SetMaxIdleConns(l.opts.MaxConns)
	}
	if !l.Grouped() {
		return
	}
	for _, n := range l.nodes.all {
		if db := n.Pool(); db != nil {
			db.SetMaxIdleConns(0)
			db.SetMaxIdleConns(idleLookers)
		}
	}
}

// Try connects as for a reservation, and to all nodes of a group. The error names the nodes that
// refuse; allowed checks whether the account has its rights.
func (l *Link) Try(ctx context.Context, allowed func(ctx context.Context, c Raw) error) error {
	if l.Grouped() {
		var unreached []error
		for _, s := range l.Survey(ctx) {
			switch {
			case s.Err == nil:
			case IsUnreached(s.Err):
				unreached = append(unreached, fmt.Errorf("node %s: %w", s.node.Addr, s.Err))
			default:
				return fmt.Errorf("node %s: %w", s.node.Addr, s.Err)
			}
		}
		if len(unreached) == len(l.nodes.all) {
			return errors.Join(unreached...)
		}
	}
	raw, err := l.reach(ctx)
	if err != nil {
		return err
	}
	err = allowed(ctx, Raw{raw})
	return errors.Join(err, raw.Close())
}
