package proxy

import (
	"context"

	"seqproxy/backend"
	"seqproxy/proxy/hangup"
	"seqproxy/proxy/kill"
	"seqproxy/proxy/session"
	"seqproxy/proxy/stats"
)

// Target returns the session that an id was given to; ok is false if it has ended.
func (s *Server) Target(id uint32) (t kill.Target, ok bool) {
	sess := s.byConnectionID(id)
	return sess, sess != nil
}

// BySerial returns the session with a serial number; ok is false if it has ended.
func (s *Server) BySerial(serial uint64) (_ hangup.Session, ok bool) {
	sess := s.byConnectionID(s.instance.ID(serial))
	return sess, sess != nil && sess.Serial() == serial
}

// countRefused counts a connection that became no session.
func (s *Server) countRefused(atAdmin bool) {
	reason := stats.EndLimit
	if s.closedTo(atAdmin) {
		reason = stats.EndDrain
	}
	s.shared.Counters.Ends[reason].Add(1)
}

// Numbered looks, with the accounts of the configuration, which bound columns have AUTO_INCREMENT
// on more than one shard. An error is of servers that could not be asked.
func (s *Server) Numbered(ctx context.Context) ([]Numbered, error) {
	set := s.shared.Settings.Load()
	return set.Numbered(ctx, func(shard *backend.Shard) ([]backend.Credentials, error) { return set.Routes.Lookers(shard), nil })
}

// register gives a session its connection id. It fails when there are too many
// sessions, or the server is shutting down.
func (s *Server) register(sess *session.Session) bool {
	s.shared.Mu.Lock()
	defer s.shared.Mu.Unlock()
	if s.closedTo(sess.AtAdmin()) || s.fullLocked(sess) {
		return false
	}
	if sess.AtAdmin() {
		s.atAdmin++
	}
	for {
		s.serial++
		id := s.instance.ID(s.serial)
		if _, taken := s.sessions[id]; !taken {
			sess.Begin(id, s.serial)
			s.sessions[id] = sess
			s.wg.Add(1) // here: Shutdown, once it has seen the sessions, waits for all of them
			if !sess.AtAdmin() {
				s.shared.Gate.Clients.Add(1)
				s.clients.Add(1)
			}
			break
		}
	}
	s.watch.Began(s.serial)
	return true
}

// fullLocked reports whether there is no room for a further session.
func (s *Server) fullLocked(sess *session.Session) bool {
	if sess.AtAdmin() {
		return s.atAdmin >= maxAtAdmin
	}
	return int(s.shared.Gate.Clients.Load()) >= s.options.Load().MaxConnections
}

// byConnectionID returns the session that an id was given to, nil if it has ended.
func (s *Server) byConnectionID(id uint32) *session.Session {
	s.shared.Mu.Lock()
	defer s.shared.Mu.Unlock()
	return s.sessions[id]
}

func (s *Server) unregister(sess *session.Session) {
	s.shared.Mu.Lock()
	defer s.shared.Mu.Unlock()
	sess.Ended()
	delete(s.sessions, sess.ID())
	if sess.AtAdmin() {
		s.atAdmin--
	} else {
		s.shared.Gate.Clients.Add(-1)
		s.clients.Done()
	}
	s.wg.Done()
}

// eachAt calls f with every session at the admin address, or with every other.
func (s *Server) eachAt(admin bool, f func(*session.Session)) {
	s.shared.Mu.Lock()
	defer s.shared.Mu.Unlock()
	for _, sess := range s.sessions {
		if sess.AtAdmin() == admin {
			f(sess)
		}
	}
}

// Sessions returns how many sessions there are, with those at the admin address.
func (s *Server) Sessions() int {
	s.shared.Mu.Lock()
	defer s.shared.Mu.Unlock()
	return len(s.sessions)
}
