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
func (b *backends) AtAdmin() bool { return b.login.AtAdmin }

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
func (b *backends) CountedShards() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.tally.Report.CountedShards()
}

// Count adds what the session has told, from outside; Shared.Mu is held.
func (b *backends) Count(g *stats.Gathering) {
	b.mu.Lock()
	defer b.mu.Unlock()
	var user *string
	if b.introduced {
		user = &b.login.Account.Name
	}
	g.Add(b.tally.Report, b.stateLocked(), user)
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
func (b *backends) Info() stats.SessionInfo {
	b.mu.Lock()
	defer b.mu.Unlock()
	i := b.tally.Report.Info()
	i.ID, i.AtAdmin, i.State, i.Connected = b.id, b.login.AtAdmin, b.stateLocked(), stats.Epoch.Add(b.connected)
	if i.State == stats.SessionLogin {
		i.Client = b.client.PeerAddr().String()
		return i
	}
	i.User, i.Client = b.login.Account.Name, b.client.RemoteAddr().String()
	for shard := range b.conns {
		i.Shards = append(i.Shards, shard.Name())
	}
	b.tally.Report.SortShards(i.Shards)
	return i
}
