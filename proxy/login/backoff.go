package login

import (
	"context"
	"errors"
	"time"

	"github.com/go-mysql-org/go-mysql/mysql"
	"go.uber.org/zap"

	"seqproxy/protocol"
)

// failures are those of the address that the client came to.
func (l *Login) failures() *Failures {
	if l.AtAdmin {
		return l.gate.AtAdmin
	}
	return l.gate.Failed
}

// backOff delays the judgement of a user's login if its address has failed too often. An error ends
// the session, and the client has its answer.
func (l *Login) backOff(ctx context.Context, user string) error {
	f, rules := l.failures(), &l.policy.Failures
	if !f.Any() {
		return nil
	}
	p := rules.Network(l.client.RemoteAddr())
	if !p.IsValid() {
		return nil
	}
	wait, done, refused := f.Delay(rules, p, user, time.Now())
	if refused {
		err := &LimitError{protocol.Errorf(mysql.ER_HOST_IS_BLOCKED, "HY000",
			"Host '%.64s' is blocked because of many connection errors (seqproxy: failed logins; try again later)", protocol.HostOf(l.client.RemoteAddr()))}
		l.session.RefuseLogin(err)
		return err
	}
	if wait == 0 {
		return nil
	}
	defer done()
	queued := l.entry.In()
	l.entry.Leave() // other logins need not wait for this one
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-l.gate.Stopping:
		return ErrStopping
	case <-ctx.Done():
		return ErrGone
	}
	until := time.Now().Add(l.policy.Timeout)
	if queued {
		if err := l.enter(ctx, until); err != nil {
			l.session.RefuseLogin(err)
			return err
		}
	}
	return l.session.SetDeadline(until)
}

// judged notes the result of a user's login.
func (l *Login) judged(user string, err error) {
	f, rules := l.failures(), &l.policy.Failures
	if err == nil && !f.Any() {
		return
	}
	if err != nil && !isFailure(err) {
		return
	}
	p := rules.Network(l.client.RemoteAddr())
	switch {
	case !p.IsValid():
	case err == nil:
		f.Succeeded(p, user)
	case f.Failed(rules, p, user, time.Now()):
		l.gate.Log.Warn("logins delayed", zap.Stringer("network", p))
	}
}

// isFailure reports whether a login failed through the client: a refused password, or a dialogue
// with the server that the client broke off. A login that the server did not judge in time is none:
// the server may be too busy to judge any.
func isFailure(err error) bool {
	var auth *protocol.AuthError
	var relayed *protocol.RelayError
	return errors.As(err, &auth) || errors.As(err, &relayed) && !relayed.Unsupported
}
