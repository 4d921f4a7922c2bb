package proxy

import (
	"cmp"
	"slices"

	"seqproxy/proxy/session"
	"seqproxy/proxy/state"
	"seqproxy/proxy/stats"
)

// The types of Stats and SessionList are of package stats.
type (
	Stats        = stats.Stats
	SessionInfo  = stats.SessionInfo
	SessionState = stats.SessionState
	NodeName     = stats.NodeName
	Count        = stats.Count
	Kind         = stats.Kind
)

// Those that others ask for by name.
const (
	SessionLogin = stats.SessionLogin
	SessionIdle  = stats.SessionIdle
	SessionBusy  = stats.SessionBusy
	KindRelay    = stats.KindRelay
)

// Pin is a reason why a session keeps its connection.
type Pin = state.Pin

// PinTransaction is the most frequent one: a transaction is open.
const PinTransaction = state.PinTransaction

// Stats returns what the server has done, and does.
func (s *Server) Stats() Stats {
	g := s.shared.Counters.Gather()
	s.shared.Mu.Lock()
	g.Stats.Connections = s.serial
	g.Sum = s.shared.Totals.Clone()
	for _, sess := range s.sessions {
		sess.Count(g)
	}
	s.shared.Mu.Unlock()
	return g.Done()
}

// BusyNodes returns how many connections to each node sessions have that are busy with a
// command at this moment.
func (s *Server) BusyNodes() map[NodeName]int {
	busy := make(map[NodeName]int)
	s.shared.Mu.Lock()
	defer s.shared.Mu.Unlock()
	for _, sess := range s.sessions {
		sess.AddBusy(busy)
	}
	return busy
}

// SessionList returns the sessions that there are, in the order in which they began.
func (s *Server) SessionList() []SessionInfo {
	s.shared.Mu.Lock()
	sessions := make([]*session.Session, 0, len(s.sessions))
	for _, sess := range s.sessions {
		sessions = append(sessions, sess)
	}
	s.shared.Mu.Unlock()
	slices.SortFunc(sessions, func(a, b *session.Session) int { return cmp.Compare(a.Serial(), b.Serial()) })
	list := make([]SessionInfo, len(sessions))
	for i, sess := range sessions {
		list[i] = sess.Info()
	}
	return list
}
