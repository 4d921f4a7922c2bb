package proxy

import (
	"errors"
	"fmt"
	"os"
	"time"

	"seqproxy/backend"
	"seqproxy/internal/logfield"
	"seqproxy/protocol"
	"seqproxy/proxy/kill"
)

// A session reads one side at a time: while it waits for a server it does not see that
// the client has gone, and while it waits for the client not that the server has. The
// watcher sees both. Putting a connection under watch costs a system call, so young
// sessions are not: most statements and many sessions are over before that is worth it.
const (
	// sweepEvery is how often sessions are looked for that are old enough: between one
	// and two of it.
	sweepEvery = 100 * time.Millisecond
	// clientGrace is how long a statement may go on without its client. A client that
	// wants no answer, or has only closed its sending side, gets that of a short one done.
	clientGrace = 400 * time.Millisecond
)

// A token of the watcher is a session's serial number, which never comes again, and
// whose end it is.
const (
	clientEnd  = 0
	backendEnd = 1
)

// watch is the server's part in watching: guarded by Server.mu, but for the
// watcher itself.
type watch struct {
	on       *kill.Watcher // nil while no session is watched
	failed   bool          // there is none to be had: that was logged
	sweeping bool          // a sweep goes on
	swept    uint64        // serial up to which sessions are watched
	settled  uint64        // serial up to which they were there at the last sweep
}

// sweep puts sessions under watch as they come of age, until there is none that is
// younger. register starts it.
func (s *Server) sweep() {
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-s.stopping:
			return
		}
		on, due, more := s.due()
		for _, sess := range due {
			sess.watched(on)
		}
		if !more {
			return
		}
	}
}

// due returns the sessions that have come of age, and whether there are younger ones.
func (s *Server) due() (on *kill.Watcher, due []*session, more bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for serial := s.watch.swept + 1; serial <= s.watch.settled; serial++ {
		if sess := s.bySerialLocked(serial); sess != nil {
			due = append(due, sess)
		}
	}
	s.watch.swept, s.watch.settled = s.watch.settled, s.serial
	more = s.watch.swept < s.watch.settled
	s.watch.sweeping = more
	if len(due) > 0 && s.watch.on == nil && !s.watch.failed {
		s.watchLocked()
	}
	if s.watch.on == nil {
		due = nil
	}
	return s.watch.on, due, more
}

// watchLocked makes the watcher.
func (s *Server) watchLocked() {
	on, err := kill.NewWatcher()
	if err != nil {
		s.watch.failed = true
		s.log.Warn("lost clients not noticed", logfield.Err(err))
		return
	}
	s.watch.on = on
	s.background.Go(func() { s.observe(on) })
}

// bySerialLocked returns a session if it still lives.
func (s *Server) bySerialLocked(serial uint64) *session {
	if sess := s.sessions[s.connectionID(serial)]; sess != nil && sess.serial == serial {
		return sess
	}
	return nil
}

func (s *Server) bySerial(serial uint64) *session {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.bySerialLocked(serial)
}

// departure is a client that has hung up.
type departure struct {
	serial uint64
	until  time.Time // when its statement is ended
}

// observe hands what the watcher sees to the sessions, until the watcher is closed.
func (s *Server) observe(on *kill.Watcher) {
	var tokens []uint64
	var gone []departure // in the order of their times
	for {
		var until time.Time
		if len(gone) > 0 {
			until = gone[0].until
		}
		var err error
		if tokens, err = on.Wait(tokens[:0], until); err != nil {
			if !errors.Is(err, os.ErrClosed) {
				s.log.Error("lost clients not noticed any more", logfield.Err(err))
			}
			return
		}
		for _, token := range tokens {
			serial := token >> 1
			if token&1 == clientEnd {
				gone = append(gone, departure{serial, time.Now().Add(clientGrace)})
			} else if sess := s.bySerial(serial); sess != nil {
				sess.backendHungUp()
			}
		}
		for len(gone) > 0 && !time.Now().Before(gone[0].until) {
			if sess := s.bySerial(gone[0].serial); sess != nil && kill.HungUp(sess.client) {
				sess.vanish()
			}
			gone = gone[1:]
		}
	}
}

// watched puts the session's connections under watch, from outside.
func (s *session) watched(on *kill.Watcher) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watcher = on
	// What fails here was closed a moment ago.
	_ = on.Add(s.client, s.serial<<1|clientEnd)
	for _, c := range s.conns {
		s.watchLocked(c)
	}
}

// watchLocked puts a backend connection under watch if the session is.
func (s *session) watchLocked(c *backend.Conn) {
	if s.watcher != nil {
		_ = s.watcher.Add(c.Conn, s.serial<<1|backendEnd) // a connection that is closed is noticed when it is used
	}
}

// vanish ends a session, from outside, whose client has hung up: what it waits for
// fails, and a statement that is being answered is ended on its server.
func (s *session) vanish() {
	s.doom.CompareAndSwap(notDoomed, doomVanished)
	s.cut()
}

// backendHungUp says, from outside, that a server may have closed a connection of the
// session. One that waits for a command looks now, one that is busy when it is done.
func (s *session) backendHungUp() {
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
	_ = c.SetReadDeadline(time.Now().Add(time.Second)) // it has all come; for TLS, which may want to write
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
