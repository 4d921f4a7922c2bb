package proxy

import (
	"strings"
	"time"

	"seqproxy/backend"
	"seqproxy/internal/logfield"
	"seqproxy/protocol"
	"seqproxy/statement"
)

// Reload puts other options to use, with the routes that belong to them. Shards, Sequences,
// Admin, RSA, Version and Logger stay those of New. Clients that connect from then on meet
// the new ones; a session that runs goes by them from its next command outside a
// transaction on, but its login, its user and how it talks to its client stay. One reload
// at a time may run.
func (s *Server) Reload(opts Options, routes *backend.Routes) {
	s.pausing.Lock()
	defer s.pausing.Unlock()
	before := s.settings.Load()
	opts.Shards, opts.Sequences, opts.Admin = before.Shards, before.Sequences, before.Admin
	opts.RSA, opts.Version, opts.Logger = before.RSA, before.Version, before.Logger
	s.settings.Store(newSettings(opts, routes, before))
	for _, shard := range before.routes.Named("") {
		if len(routes.Named(shard.Name())) == 0 {
			shard.Resume() // else what waits for it would, as its name is known no more
		}
	}
}

// renew has the session go by the server's settings of now, before a command, if it can.
// payload is that of the command, nil if it is not held whole. An error is the end of the
// session.
func (s *session) renew(payload []byte) error {
	s.batch.payload = payload
	now := s.srv.settings.Load()
	if s.set == now && s.routes == now.routesFor(s.login.AtAdmin) || s.batch.size > 0 || s.state.InTransaction() || s.state.NextTransaction {
		return nil
	}
	s.set = now
	s.numbers.From(now.Sequences, now.Sequences)
	routes := s.set.routesFor(s.login.AtAdmin)
	if s.routes == routes || s.cur != nil && (paused(s.cur.Shard()) || paused(routes.ForSchema(s.state.Schema))) {
		return nil // the command may need no server; else see rejoin
	}
	return s.follow(routes)
}

func paused(shard *backend.Shard) bool { return shard != nil && shard.Paused() != nil }

// outwait has a command that needs the current shard, if any, wait now while that is
// paused: to which shard it belongs is decided afterwards.
func (s *session) outwait() error {
	if !paused(s.routes.ForSchema(s.state.Schema)) {
		return nil
	}
	_, err := s.Attach()
	return err
}

// rejoin has a session that waited for a shard which was paused go where the routes of now
// lead: nodes are changed during a pause. Nothing of the command being handled was sent.
func (s *session) rejoin() error {
	s.waited = false
	routes := s.srv.settings.Load().routesFor(s.login.AtAdmin)
	if s.routes == routes || s.batch.size > 0 || s.state.InTransaction() || s.state.NextTransaction {
		return nil
	}
	return s.follow(routes)
}

// enterFor is enter for the shard that a schema is on, which it returns; nil if there is none.
func (s *session) enterFor(schema string) (*backend.Shard, error) {
	for {
		shard := s.routes.ForSchema(schema)
		if shard == nil {
			return nil, nil
		}
		if err := s.enter(shard); err != nil || !s.waited {
			return shard, err
		}
		if err := s.rejoin(); err != nil {
			return nil, err
		}
	}
}

// moveAgain is how long a session waits that could not move, before it tries again.
const moveAgain = 5 * time.Second

// follow brings the session where routes send it. What keeps it on a connection keeps it on
// all that it has, until that is over or the session ends: half of its statements must not
// go to one server, and half to that which took its place.
func (s *session) follow(routes *backend.Routes) error {
	if s.isAt(routes) {
		s.routes = routes
		s.dropTallies()
		return nil
	}
	if s.state.Pins != 0 || len(s.prepared.byID) > 0 {
		s.logKept(routes)
		return nil
	}
	if s.readsBehind() || time.Now().Before(s.moveAfter) {
		return nil
	}
	before := s.routes
	s.routes = routes
	err := s.move()
	if err == nil {
		s.dropTallies()
		return nil
	}
	if ends(err) {
		return err
	}
	s.unreached = false // the command goes where it did
	s.routes, s.moveAfter = before, time.Now().Add(moveAgain)
	s.log().Warn("session not moved", logfield.Err(err))
	return nil
}

// logKept logs, once for the routes, what keeps the session from them.
func (s *session) logKept(routes *backend.Routes) {
	if s.keptFrom == routes {
		return
	}
	s.keptFrom = routes
	var names []string
	for _, p := range s.state.Pins.List() {
		names = append(names, p.String())
	}
	if len(s.prepared.byID) > 0 {
		names = append(names, "prepared_statement")
	}
	s.log().Info("session kept where it is", logfield.Pin(strings.Join(names, ", ")))
}

// isAt says whether routes lead to the connections that the session has.
func (s *session) isAt(routes *backend.Routes) bool {
	if s.cur != nil && routes.ForSchema(s.state.Schema) != s.cur.Shard() {
		return false
	}
	for shard := range s.conns {
		if !routes.Has(shard) {
			return false
		}
	}
	return true
}

// readsBehind says whether the command being handled may look at what the statement before
// it has left on its connection: it has to run there.
func (s *session) readsBehind() bool {
	if len(s.batch.payload) == 0 {
		return true
	}
	sql, ok := textOf(s.batch.payload, s.login.Capabilities.Has(protocol.QueryAttributes))
	if !ok {
		return true
	}
	var st statement.Statement
	st.Analyze(sql, s.state.Mode)
	return st.MayReadLastStatement()
}

// textOf returns the text in a command, if it is one that has a text; attributes may be before it.
func textOf(payload []byte, attributes bool) (sql []byte, ok bool) {
	switch command := protocol.Command(payload[0]); {
	case command == protocol.ComStmtPrepare, command == protocol.ComQuery && !attributes:
		return payload[1:], true
	case command != protocol.ComQuery:
		return nil, false
	}
	n, ok := protocol.CutAttributes(payload[1:])
	if !ok {
		return nil, false
	}
	return payload[1+n:], true
}

// move opens a connection where the current schema is now, brings along what the session
// has set, and closes those to servers that are not there any more. After an error nothing
// has changed. It may wait for a shard that is paused, and sets waited then.
func (s *session) move() error {
	if s.cur != nil {
		shard := s.routes.ForSchema(s.state.Schema)
		if shard == nil {
			return errKeysOnly
		}
		if err := s.enterBoth(s.cur.Shard(), shard); err != nil {
			return err
		}
		c := s.conns[shard]
		opened := c == nil
		if opened {
			var err error
			if c, err = s.open(shard, s.state.Schema); err != nil {
				return err
			}
		} else if s.state.Schema != "" {
			if err := s.runCommand(c, protocol.ComInitDB, s.state.Schema); err != nil {
				return err
			}
		}
		if err := s.bringAll(c); err != nil {
			if opened {
				s.forget(c)
				c.Quit()
			}
			return err
		}
		s.current(c)
	}
	for shard, c := range s.conns {
		if !s.routes.Has(shard) {
			s.forget(c)
			c.Quit()
		}
	}
	return nil
}

// bringAll makes c what the current connection is to the session.
func (s *session) bringAll(c *backend.Conn) error {
	if err := s.carryVariables(c); err != nil {
		return err
	}
	if s.state.LastID.Pending { // nowhere yet
		return nil
	}
	return s.BringLastID(c, false)
}
