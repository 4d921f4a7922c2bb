package login

import (
	"context"
	"time"

	"github.com/go-mysql-org/go-mysql/mysql"

	"seqproxy/protocol"
)

// enter waits until the client may log in, until a time. After an error it may not, and has no
// answer yet.
func (l *Login) enter(ctx context.Context, until time.Time) error {
	if l.AtAdmin {
		return nil
	}
	addr := l.client.RemoteAddr()
	network, exempt := l.policy.Failures.Source(addr)
	all := exempt || !network.IsValid() || l.policy.fromBalancer(addr)
	err := l.entry.Enter(l.policy.Queue, network, all, until, l.gate.Stopping, ctx.Done())
	if err == ErrNoPlace {
		return errTooMany
	}
	return err
}

// errTooMany is for a client that got no place in time.
var errTooMany = &LimitError{protocol.Errorf(mysql.ER_CON_COUNT_ERROR, "08004", "Too many connections (seqproxy: max_logins of them are logging in)")}
