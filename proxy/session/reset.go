package session

import (
	"time"

	"seqproxy/backend"
	"seqproxy/protocol"
	"seqproxy/proxy/state"
)

// resetConnection makes the session like a new one of the same user. The current server resets its
// connection. The others are closed.
func (s *Session) resetConnection() error {
	if s.cur != nil {
		if _, err := s.Attach(); err != nil {
			return err
		}
	}
	cur := s.cur
	s.prepared.clear()
	for _, c := range s.conns {
		if c != cur && !s.resetInPlace(c) {
			s.forget(c)
			c.Quit()
		}
	}
	if cur == nil {
		s.resetState()
		s.reply(protocol.OK{})
		return nil
	}
	s.enqueue(cur, protocol.ShapeOne)
	if err := s.settle(); err != nil {
		return err
	}
	if cur.Answer.ErrCode == 0 {
		if err := s.set.setStep(cur); err != nil {
			return s.lost(cur, err, true) // the client has its answer
		}
		s.resetState()
		hello := cur.Hello
		s.state.SetCollation(s.login.Collation)
		s.state.StartMode(serverOf(hello), s.login.Collation)
		if !hello.MariaDB { // the character set is the server's default now
			s.state.AskMode()
			s.state.SetNames()
		}
		s.state.Synced(idOfConn(cur), s.state.Version)
		s.release(cur)
		s.state.TrustStatus(hello.MariaDB)
		s.state.EscapesUnknown = false
	}
	return nil
}

// resetState forgets what the client has set.
func (s *Session) resetState() {
	s.state.Reset()
	s.named, s.unseen = nil, insertsInto{}
	s.numbers.Forget()
}

// resetInPlace resets a connection that could not be opened again, because the proxy has no
// password for it.
func (s *Session) resetInPlace(c *backend.Conn) bool {
	return !s.reopens(c) && s.runCommand(c, protocol.ComResetConn, "") == nil && s.set.setStep(c) == nil
}

// changeUser checks the new user as a login does. The session then starts anew.
func (s *Session) changeUser(payload []byte) error {
	if err := s.settle(); err != nil {
		return err
	}
	if err := s.client.flush(); err != nil {
		return err
	}
	// The dialogue reads packets into the same buffer.
	command := append([]byte(nil), payload...)
	s.batch.drop()
	if err := s.client.until(time.Now().Add(s.set.Login.Timeout)); err != nil {
		return err
	}
	s.client.SetPacketNum(s.client.packetNum)
	s.use(s.shared.Settings.Load())
	defer s.login.End()
	several := s.severalAgreed() // COM_SET_OPTION holds on: the new connections begin with it
	if s.login.Capabilities &^= protocol.MultiStatements; several {
		s.login.Capabilities |= protocol.MultiStatements
	}
	attempt, err := s.login.ReceiveChange(command, &s.set.Login)
	if err != nil {
		return err
	}
	// The old session is over, whatever the result.
	s.closeBackends()
	s.routes = s.set.routesFor(s.login.AtAdmin)
	s.dropTallies()
	s.prepared.clear()
	s.introduce(false)
	s.login.Changed = true
	s.state = state.State{}
	s.resetState()
	if err := s.identify(attempt); err != nil {
		return err
	}
	return s.begin()
}
