package session

import (
	"seqproxy/backend"
	"seqproxy/proxy/stats"
)

// This file is what the Server sees of a session, and has it do, from outside.

// Begin gives the session its connection id, and its number among all sessions, before it is served.
func (o *outside) Begin(id uint32, serial uint64) { o.id, o.serial = id, serial }

// ID is what the client holds for its connection id.
func (o *outside) ID() uint32 { return o.id }

// Serial is the number of the session among all of the Server's, never given again.
func (o *outside) Serial() uint64 { return o.serial }

// AtAdmin says whether the client came to the admin address.
func (s *Session) AtAdmin() bool { return s.login.AtAdmin }

// Drop ends a session that is not served.
func (s *Session) Drop() {
	s.cancel()
	s.client.Close()
}

// Ended adds what the session has done to the totals, once it has been served; Shared.Mu is held.
func (s *Session) Ended() {
	s.mu.Lock()
	s.reportLocked(stats.Clock())
	s.shared.Totals.Add(s.tally.Report)
	s.mu.Unlock()
	s.login.Uncount()
}

// Uses says whether the session has a statement or a transaction on some shards.
func (a *attachment) Uses(shards *backend.ShardSet) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.engaged.Load().Meets(shards) && (!a.resting || a.transacting)
}

// AddBusy counts the connections to each node that the session has, if it is busy with a command.
func (o *outside) AddBusy(busy map[stats.NodeName]int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.stateLocked() != stats.SessionBusy {
		return
	}
	for shard, c := range o.conns {
		busy[stats.NodeName{Shard: shard.Name(), Node: c.Node()}]++
	}
}

// CountedShards is of how many shards is counted apart what the session does there.
func (s *Session) CountedShards() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tally.Report.CountedShards()
}

// Count adds what the session has told, from outside; Shared.Mu is held.
func (s *Session) Count(g *stats.Gathering) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var user *string
	if s.introduced {
		user = &s.login.Account.Name
	}
	g.Add(s.tally.Report, s.stateLocked(), user)
}

func (o *outside) stateLocked() stats.SessionState {
	switch {
	case !o.introduced:
		return stats.SessionLogin
	case o.busy:
		return stats.SessionBusy
	}
	return stats.SessionIdle
}

// Info describes the session, from outside.
func (s *Session) Info() stats.SessionInfo {
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
