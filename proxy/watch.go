package proxy

import (
	"errors"
	"fmt"
	"time"

	"seqproxy/backend"
	"seqproxy/protocol"
	"seqproxy/proxy/kill"
)

// Watched returns the session with a serial number; ok is false if it has ended.
func (s *Server) Watched(serial uint64) (w kill.Watched, ok bool) {
	sess := s.byConnectionID(s.instance.ID(serial))
	return sess, sess != nil && sess.serial == serial
}

// WatchedBy puts the session's connections under watch, from outside.
func (s *session) WatchedBy(on *kill.Watcher) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watcher = on
	// What fails here was closed a moment ago.
	_ = on.Add(s.client.Conn, kill.ClientToken(s.serial))
	for _, c := range s.conns {
		s.watchLocked(c)
	}
}

// watchLocked puts a backend connection under watch if the session is.
func (s *session) watchLocked(c *backend.Conn) {
	if s.watcher != nil {
		// a connection that is closed is noticed when it is used
		_ = s.watcher.Add(c.Conn, kill.BackendToken(s.serial))
	}
}

// ClientHungUp ends the session, from outside, if its client has hung up: what it waits for
// fails, and a statement that is being answered is ended on its server.
func (s *session) ClientHungUp() {
	if kill.HungUp(s.client.Conn) {
		s.doom.Set(kill.Vanished)
		s.Cut()
	}
}

// BackendHungUp says, from outside, that a server may have closed a connection of the
// session. One that waits for a command looks now, one that is busy when it is done.
func (s *session) BackendHungUp() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.backendClosed = true
	if !s.busy {
		_ = s.client.SetReadDeadline(time.Unix(1, 0)) // fails only on a closed connection
	}
}

// errBackendClosed is the end of a session with that of its idle backend connection.
var errBackendClosed = errors.New("server closed the idle connection")

// missBackends finds the connections that their servers have closed. Without that of
// the current shard the session has lost what it held there, and ends as that
// connection did; another one is only dropped if nothing was left on it.
func (s *session) missBackends() error {
	for _, c := range s.conns {
		switch {
		case !kill.HungUp(c.Conn):
		case c == s.cur:
			return s.followBackend(c)
		case !s.needs(c):
			c.Close()
			s.forget(c)
		}
	}
	return nil
}

// needs says whether the session has left something on a connection to another shard
// than the current one.
func (s *session) needs(c *backend.Conn) bool {
	return s.state.Needs(idOfConn(c)) || s.prepared.anyOn(c)
}

// followBackend ends a session with its idle backend connection. What the server has
// said before it closed is the client's to know.
func (s *session) followBackend(c *backend.Conn) error {
	err := fmt.Errorf("%w: shard %s, node %s", errBackendClosed, c.Shard().Name(), c.Node())
	// it has all come; for TLS, which may want to write
	_ = c.SetReadDeadline(time.Now().Add(time.Second))
	for len(c.Buffered()) < protocol.BufferSize && c.Fill() == nil {
	}
	if b := c.Buffered(); len(b) > 0 {
		_, _ = s.client.Write(b) // the session ends either way
		c.Discard(len(b))
	}
	c.Close()
	s.forget(c)
	return err
}
