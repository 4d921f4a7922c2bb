package proxy

import (
	"cmp"
	"slices"

	"seqproxy/backend"
	"seqproxy/proxy/state"
	"seqproxy/proxy/stats"
)

// What Stats and SessionList tell is of package stats.
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
	g := s.counters.Gather()
	s.mu.Lock()
	g.Stats.Connections = s.serial
	g.Sum = s.totals.Clone()
	for _, sess := range s.sessions {
		sess.count(g)
	}
	s.mu.Unlock()
	return g.Done()
}

// reportEnd tells what the session has done, to the server's totals; Server.mu is held.
func (s *session) reportEnd() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reportLocked(stats.Clock())
	s.srv.totals.Add(s.tally.Report)
}

// dropTallies has the totals keep what is counted of shards that the session has done with.
func (s *session) dropTallies() {
	s.tally.Drop(func(shard *backend.Shard) bool { return s.conns[shard] == nil && !s.routes.Has(shard) }, &s.srv.mu, &s.srv.totals)
}

// BusyNodes returns how many connections to each node sessions have that are busy with a
// command at this moment.
func (s *Server) BusyNodes() map[NodeName]int {
	busy := make(map[NodeName]int)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, sess := range s.sessions {
		sess.mu.Lock()
		if sess.stateLocked() == stats.SessionBusy {
			for shard, c := range sess.conns {
				busy[NodeName{Shard: shard.Name(), Node: c.Node()}]++
			}
		}
		sess.mu.Unlock()
	}
	return busy
}

// count adds what the session has told, from outside; Server.mu is held.
func (s *session) count(g *stats.Gathering) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var user *string
	if s.introduced {
		user = &s.login.Account.Name
	}
	g.Add(s.tally.Report, s.stateLocked(), user)
}

func (o *outside) stateLocked() SessionState {
	switch {
	case !o.introduced:
		return stats.SessionLogin
	case o.busy:
		return stats.SessionBusy
	}
	return stats.SessionIdle
}

// SessionList returns the sessions that there are, in the order in which they began.
func (s *Server) SessionList() []SessionInfo {
	s.mu.Lock()
	sessions := make([]*session, 0, len(s.sessions))
	for _, sess := range s.sessions {
		sessions = append(sessions, sess)
	}
	s.mu.Unlock()
	slices.SortFunc(sessions, func(a, b *session) int { return cmp.Compare(a.serial, b.serial) })
	list := make([]SessionInfo, len(sessions))
	for i, sess := range sessions {
		list[i] = sess.info()
	}
	return list
}

// info describes the session, from outside.
func (s *session) info() SessionInfo {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := s.tally.Report.Info()
	i.ID, i.AtAdmin, i.State, i.Connected = s.id, s.login.AtAdmin, s.stateLocked(), stats.Epoch.Add(s.connected)
	if i.State == stats.SessionLogin {
		i.Client = s.client.PeerAddr().String()
		return i
	}
	i.User, i.Client = s.login.Account.Name, s.client.RemoteAddr().String()
	for shard := range s.conns {
		i.Shards = append(i.Shards, shard.Name())
	}
	s.tally.Report.SortShards(i.Shards)
	return i
}
