package proxy

import (
	"errors"
	"time"

	"github.com/go-mysql-org/go-mysql/mysql"
	"go.uber.org/zap"

	"seqproxy/protocol"
)

// backOff makes a login wait that was received and not yet judged, if its address has
// failed too often. An error is the end of the session, and the client has its answer.
func (s *session) backOff() error {
	f, rules := s.srv.failed, &s.set.failures
	if !f.Any() {
		return nil
	}
	p := rules.Network(s.client.RemoteAddr())
	if !p.IsValid() {
		return nil
	}
	wait, done, refused := f.Delay(rules, p, time.Now())
	if refused {
		s.packetNum = s.client.PacketNum()
		err := &loginRefused{sqlError(mysql.ER_HOST_IS_BLOCKED, "HY000",
			"Host '%.64s' is blocked because of many connection errors (seqproxy: failed logins; try again later)", protocol.HostOf(s.client.RemoteAddr()))}
		s.refuseLogin(err)
		return err
	}
	if wait == 0 {
		return nil
	}
	defer done()
	queued := s.entry.In()
	s.entry.Leave() // others need not wait for this one
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-s.srv.stopping:
		return errShutdown
	case <-s.ctx.Done():
		return errClientGone
	}
	until := time.Now().Add(s.set.LoginTimeout)
	if queued {
		if err := s.enterLogin(until); err != nil {
			s.packetNum = s.client.PacketNum()
			s.refuseLogin(err)
			return err
		}
	}
	return s.setDeadline(until)
}

// judged takes note of how a login was judged.
func (s *session) judged(err error) {
	f, rules := s.srv.failed, &s.set.failures
	if err == nil && !f.Any() {
		return
	}
	if err != nil && !isFailure(err) {
		return
	}
	p := rules.Network(s.client.RemoteAddr())
	switch {
	case !p.IsValid():
	case err == nil:
		f.Succeeded(p)
	case f.Failed(rules, p, time.Now()):
		s.srv.log.Warn("logins delayed", zap.Stringer("network", p))
	}
}

// isFailure says whether a login failed by what the client has done: a password that was
// refused, or a dialogue with the server that the client has not gone through with.
func isFailure(err error) bool {
	var auth *protocol.AuthError
	var relayed *protocol.RelayError
	return errors.As(err, &auth) || errors.As(err, &relayed) && !relayed.Unsupported
}
