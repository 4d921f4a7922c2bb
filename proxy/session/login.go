package session

import (
	"errors"
	"fmt"
	"time"

	"seqproxy/backend"
	"seqproxy/internal/logfield"
	"seqproxy/protocol"
	"seqproxy/proxy/login"
)

// User is an account that clients log in with.
type User = login.User

// logIn checks the client's login and answers it.
func (s *Session) logIn() error {
	s.state.Reset()
	defer s.login.End()
	attempt, err := s.login.Receive(s.ctx, s.id, &s.set.Login)
	if err != nil {
		return loginEnd(err)
	}
	if err := s.identify(attempt); err != nil {
		return err
	}
	if s.login.Old {
		return loginEnd(s.login.ServeOld())
	}
	return s.begin()
}

// loginEnd turns an error of the login into the session's.
func loginEnd(err error) error {
	switch {
	case errors.Is(err, login.ErrStopping):
		return errShutdown
	case errors.Is(err, login.ErrGone):
		return fmt.Errorf("%w: %w", errClientGone, err)
	case errors.Is(err, login.ErrQuit):
		return errQuit
	}
	return err
}

// identify gives the session the user that the client proves to be.
func (s *Session) identify(attempt *protocol.Attempt) error {
	s.state.SetCollation(attempt.Hello.Collation)
	c, err := s.login.Identify(s.ctx, attempt, s.state.Charset)
	if err != nil {
		return loginEnd(err)
	}
	s.client.packetNum = s.client.PacketNum()
	s.numbers.As(s.login.Account.Rights, s.login.Account.Admin)
	if c != nil {
		s.setCurrent(c)
	}
	return nil
}

// SetDeadline bounds how long a client that logs in may take. The zero time removes the bound.
func (s *Session) SetDeadline(t time.Time) error { return s.client.until(t) }

// EnterDefault makes the login wait while the default shard is paused. It returns the routes after
// that.
func (a *attachment) EnterDefault() (*backend.Routes, error) {
	_, err := a.enterFor("")
	return a.routes, err
}

// begin starts a session of a user that has proved who it is, and answers the login. Only the
// server can check the schema. If it cannot be reached, the session begins all the same and gets
// keys.
func (s *Session) begin() error {
	if err := s.login.Count(s.likeMariaDB()); err != nil {
		s.RefuseLogin(err)
		return err
	}
	s.client.attributed = s.login.Capabilities.Has(protocol.QueryAttributes)
	s.login.Leave() // its shard may hang, and other logins need not wait for that
	s.introduce(true)
	s.state.Schema = s.login.Schema()
	s.state.SetCollation(s.login.Collation)
	if s.state.Charset != "" && s.expectsState() {
		_, _ = s.Attach() // an error comes again when a statement needs the server
	} else if (s.state.Schema != "" || s.state.Charset == "") && s.routes.Default != nil {
		_, err := s.Attach()
		var unreachable *backend.UnreachableError
		switch {
		case errors.As(err, &unreachable):
			s.log().Warn("login without its shard", logfield.Err(err))
		case err != nil:
			s.RefuseLogin(err)
			return fmt.Errorf("%w: %w", login.ErrRefused, err)
		}
	}
	proof := s.login.Proof()
	if c := s.cur; c != nil && c.LoginOK != nil {
		// The server describes the session that it has begun.
		ok := c.LoginOK
		if proof != "" {
			ok = protocol.WithText(ok, proof)
		}
		s.client.out, _ = protocol.AppendPacket(s.client.out, ok, s.client.packetNum)
		c.LoginOK = nil
	} else {
		s.reply(protocol.OK{Info: proof})
	}
	if err := s.client.flush(); err != nil {
		return err
	}
	if !s.login.Changed {
		if err := s.client.StartCompression(s.login.Compression); err != nil {
			return err
		}
	}
	// A shutdown may have set the deadline. The session notices the shutdown before its wait.
	return s.client.until(time.Time{})
}

// expectsState reports whether the client expects in the login's OK what only the server has,
// although it names no schema.
func (s *Session) expectsState() bool {
	if s.state.Schema != "" || !s.login.Capabilities.Has(protocol.SessionTrack) {
		return false
	}
	shard := s.routes.Default
	if shard == nil {
		return false
	}
	hello, _ := shard.Hello()
	return hello.DescribesSession
}

// RefuseLogin answers the login with an error, and the session ends. A server's error in place of
// its greeting (1040, 1129, 1130) goes on without an SQLSTATE, so clients treat it as on a direct
// connection. An old client gets no SQLSTATE either.
func (s *Session) RefuseLogin(err error) {
	s.client.packetNum = s.client.PacketNum()
	var refused *protocol.ServerError
	switch {
	case s.login.Old:
		e := forClient(err)
		s.client.out = protocol.AppendERR(s.client.out, s.client.packetNum, e.Code, "", e.Message)
	case errors.As(err, &refused) && refused.State == "":
		s.client.out = protocol.AppendERR(s.client.out, s.client.packetNum, refused.Code, "", refused.Message)
	default:
		s.refuse(err)
	}
	_ = s.client.flush() // the session ends either way
}
