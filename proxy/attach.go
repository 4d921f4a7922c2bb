package proxy

import (
	"seqproxy/backend"
	"seqproxy/protocol"
	"seqproxy/proxy/state"
	"seqproxy/statement/lex"
)

// Attach returns the connection that the next command of the session runs on: that
// of the current schema's shard, opened when it is first needed. Commands give it
// back with release. In pool mode "session" the session keeps it until its end.
func (s *session) Attach() (*backend.Conn, error) {
	for s.cur != nil {
		if err := s.enter(s.cur.Shard()); err != nil || !s.waited {
			return s.cur, err
		}
		if err := s.rejoin(); err != nil { // there may be another connection now
			return nil, err
		}
	}
	shard, err := s.enterFor(s.state.Schema)
	if err != nil {
		return nil, err
	}
	if shard == nil {
		return nil, s.noServer()
	}
	c, err := s.open(shard, s.state.Schema)
	if err != nil {
		return nil, err
	}
	s.current(c)
	return c, nil
}

// current makes a connection the one that statements run on.
func (s *session) current(c *backend.Conn) {
	first, hello := s.cur == nil, c.Hello()
	if s.cur != c {
		s.state.StartMode(serverOf(hello), s.login.Collation)
	}
	s.cur = c
	s.state.Observe(c.Answer.Status, hello.MariaDB)
	if first {
		s.state.TrustStatus(hello.MariaDB)
		s.state.EscapesUnknown = hello.InitConnect
	}
}

// serverOf is what the session's state has to know of a server.
func serverOf(h *backend.Hello) state.Server {
	reads := lex.MySQL(h.Number())
	if h.MariaDB {
		reads = lex.MariaDB(h.Number())
	}
	major, _ := h.Numbers()
	return state.Server{
		Reads: reads, MariaDB: h.MariaDB, Major: major, SQLMode: h.SQLMode, InitConnect: h.InitConnect, OwnCollation: h.OwnCollation,
	}
}

// release gives a connection back after the answer to a command, of which it takes
// note of what the answer said.
func (s *session) release(c *backend.Conn) {
	c.Release()
	c.Used = true
	s.tally.Counted(c)
	if c == s.cur {
		s.state.Observe(c.Answer.Status, c.Hello().MariaDB)
	}
	s.noteEffect(c)
}

// open opens the session's connection to a shard, with the client's own framing.
func (s *session) open(shard *backend.Shard, schema string) (*backend.Conn, error) {
	account := s.login.Account
	itself, err := account.AsItself(shard, s.routes.Default())
	if err != nil {
		return nil, err
	}
	with := s.login.ToServer(schema)
	with.Password, with.OtherPassword, with.Own = account.Password, account.OldPassword, itself
	return s.Dial(shard, with)
}

// Dial opens a connection that is the session's from then on.
func (s *session) Dial(shard *backend.Shard, with backend.Login) (*backend.Conn, error) {
	if err := s.enter(shard); err != nil {
		return nil, err
	}
	begun := s.tally.Waits()
	c, err := s.routes.Dial(s.ctx, shard, with)
	s.tally.Waited(begun)
	if err != nil {
		s.unreached = true
		return nil, err
	}
	if err := s.set.setStep(c); err != nil {
		s.unreached = true
		c.Close()
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ctx.Err() != nil {
		c.Close()
		return nil, errShutdown
	}
	if s.conns == nil {
		s.conns = make(map[*backend.Shard]*backend.Conn, 1)
	}
	s.conns[shard] = c
	s.lastTag++
	c.Tag = s.lastTag
	s.watchLocked(c)
	s.state.Knows(idOfConn(c), s.state.Version)
	if s.cur != nil { // what was set before must hold here too
		s.state.Knows(idOfConn(c), 0)
	}
	return c, nil
}

// idOfConn is what the session's state calls a connection.
func idOfConn(c *backend.Conn) state.ConnID { return state.ConnID(c.Tag) }

// connBy is the connection that the session's state calls so; nil for 0.
func (o *outside) connBy(id state.ConnID) *backend.Conn {
	if id == 0 {
		return nil
	}
	for _, c := range o.conns {
		if idOfConn(c) == id {
			return c
		}
	}
	return nil
}

// forget drops a connection that was closed.
func (s *session) forget(c *backend.Conn) {
	s.mu.Lock()
	delete(s.conns, c.Shard())
	s.mu.Unlock()
	s.state.Forget(idOfConn(c))
	if s.cur == c {
		s.cur = nil
	}
	s.prepared.forget(c)
	s.tally.Counted(c)
}

// closeBackends ends every backend connection of the session.
func (s *session) closeBackends() {
	s.mu.Lock()
	conns := s.conns
	s.conns = nil
	s.mu.Unlock()
	for _, c := range conns {
		c.Quit()
		s.state.Forget(idOfConn(c))
		s.tally.Counted(c)
	}
	s.cur = nil
}

// connForSchema returns the session's connection to the shard that a schema is on: the
// current one, or one as of connTo. If it waits for a shard that is paused, that is where
// the schema is then.
func (s *session) connForSchema(schema string) (*backend.Conn, error) {
	for {
		c, err := s.Attach()
		if err != nil {
			return nil, err
		}
		shard := s.routes.ForSchema(schema)
		if shard == c.Shard() {
			return c, nil
		}
		if err := s.mayLeaveFor(shard); err != nil {
			return nil, err
		}
		if err := s.enterBoth(c.Shard(), shard); err != nil {
			return nil, err
		}
		if !s.waited {
			return s.connReady(shard)
		}
		if err := s.rejoin(); err != nil {
			return nil, err
		}
	}
}

// connTo returns the session's connection to a shard other than the current one,
// with everything that the session has set. It is an error, and nothing changes,
// when something cannot be brought along.
func (s *session) connTo(shard *backend.Shard) (*backend.Conn, error) {
	if err := s.mayLeaveFor(shard); err != nil {
		return nil, err
	}
	if err := s.enterBoth(s.cur.Shard(), shard); err != nil {
		return nil, err
	}
	return s.connReady(shard)
}

// connReady is connTo once the session may leave, and has entered both shards.
func (s *session) connReady(shard *backend.Shard) (*backend.Conn, error) {
	c := s.conns[shard]
	if c == nil {
		var err error
		if c, err = s.open(shard, ""); err != nil {
			return nil, err
		}
	}
	if err := s.carryVariables(c); err != nil {
		return nil, err
	}
	return c, nil
}

// mayLeaveFor says why the session cannot go to another shard than the current one, nil if
// it can.
func (s *session) mayLeaveFor(shard *backend.Shard) error {
	switch {
	case s.state.InTransaction():
		return protocol.NotSupported("the session cannot go to shard %s inside a transaction on shard %s: COMMIT or ROLLBACK first",
			shard.Name(), s.cur.Shard().Name())
	case s.state.NextTransaction:
		return protocol.NotSupported("the session cannot go to shard %s between SET TRANSACTION and its transaction", shard.Name())
	case s.state.Pins != 0:
		return protocol.NotSupported("the session cannot go from shard %s to shard %s and keep its state: %s (use another connection)",
			s.cur.Shard().Name(), shard.Name(), s.state.Pins.Words())
	}
	return nil
}
