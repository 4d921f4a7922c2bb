package session

import (
	"context"
	"sync"
	"time"

	"seqproxy/backend"
	"seqproxy/proxy/hangup"
	"seqproxy/proxy/kill"
	"seqproxy/proxy/state"
	"seqproxy/proxy/stats"
)

// outside is what other goroutines see of a session, and say to it.
type outside struct {
	id        uint32          // what the client holds for its connection id
	serial    uint64          // of all the server's sessions, never given again
	connected time.Duration   // when, by clock
	ctx       context.Context // ends when the session is cut
	cancel    context.CancelFunc

	// guards what follows, tally.Report, and changes of conns, which others read
	mu          sync.Mutex
	resting     bool // it waits for a command; false in the login
	transacting bool // it has a transaction open; valid while resting
	busy        bool // it is with a command; false in the login
	// a server may have closed one of conns while it was idle
	backendClosed bool
	// its account does not change, and may be read under mu
	introduced bool
	// has client and conns under watch; nil in a young session
	poller *hangup.Poller
	conns  map[*backend.Shard]*backend.Conn // one for each shard that was needed
}

// Begin gives the session its connection id, and its number among all sessions, before it is served.
func (o *outside) Begin(id uint32, serial uint64) { o.id, o.serial = id, serial }

// ID is what the client holds for its connection id.
func (o *outside) ID() uint32 { return o.id }

// Serial is the number of the session among all of the Server's, never given again.
func (o *outside) Serial() uint64 { return o.serial }

// introduce says that the user is known, for others to read, or that it changes.
func (o *outside) introduce(is bool) {
	o.mu.Lock()
	o.introduced = is
	o.mu.Unlock()
}

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

// AtAdmin reports whether the client came to the admin address.
func (b *backends) AtAdmin() bool { return b.login.AtAdmin }

// Drop ends a session that is not served.
func (s *Session) Drop() {
	s.cancel()
	s.client.Close()
}

// Ended adds what the session has done to the totals, once it has been served. The caller has
// locked Shared.Mu.
func (s *Session) Ended() {
	s.mu.Lock()
	s.reportLocked(stats.Clock())
	s.shared.Totals.Add(s.tally.Report)
	s.mu.Unlock()
	s.login.Uncount()
}

// Uses reports whether the session has a statement or a transaction on some shards.
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

// Count adds what the session has reported, from outside. The caller has locked Shared.Mu.
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

// Drain ends the wait for the next command, from outside. A session that is busy
// sees the shutdown when it has done its work.
func (b *backends) Drain() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.busy {
		_ = b.client.SetReadDeadline(time.Unix(1, 0)) // fails only on a closed connection
	}
}

// Cut ends the session from outside: everything it may wait for fails.
func (b *backends) Cut() {
	b.client.Abort()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.cancel()
	for _, c := range b.conns {
		c.Abort()
	}
}

// AddTo puts the session's connections under watch, from outside.
func (b *backends) AddTo(p *hangup.Poller) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.poller = p
	// What fails here was closed a moment ago.
	_ = p.Add(b.client.Conn, hangup.ClientToken(b.serial))
	for _, c := range b.conns {
		b.watchLocked(c)
	}
}

// watchLocked puts a backend connection under watch if the session is.
func (b *backends) watchLocked(c *backend.Conn) {
	if b.poller != nil {
		// a connection that is closed is noticed when it is used
		_ = b.poller.Add(c.Conn, hangup.BackendToken(b.serial))
	}
}

// ClientHungUp ends the session, from outside, if its client has hung up: what it waits for
// fails, and a statement that is being answered is ended on its server.
func (b *backends) ClientHungUp() {
	if hangup.Seen(b.client.Conn) {
		b.doom.Set(kill.Vanished)
		b.Cut()
	}
}

// BackendHungUp says, from outside, that a server may have closed a connection of the
// session. One that waits for a command looks now, one that is busy when it is done.
func (b *backends) BackendHungUp() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.backendClosed = true
	if !b.busy {
		_ = b.client.SetReadDeadline(time.Unix(1, 0)) // fails only on a closed connection
	}
}

// KillsAs is the user.
func (s *Session) KillsAs() kill.Account {
	return kill.Account{Name: s.login.Account.Name, Admin: s.login.Account.Admin}
}

// ConnAt returns the connection to a shard, nil if there is none.
func (o *outside) ConnAt(shard *backend.Shard) *backend.Conn { return o.conns[shard] }

// Places returns the session's connections to servers, from outside, and by which
// right somebody may kill them.
func (b *backends) Places(by kill.Account) (places []kill.Place, right kill.Right) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.introduced && b.login.Account.Name == by.Name:
		right = kill.OfSame
	case by.Admin:
		right = kill.OfAny
	}
	if !b.introduced || right == kill.Denied { // it is nobody's yet
		return nil, right
	}
	account := b.login.Account // which changes only while it is not introduced
	for shard, c := range b.conns {
		creds, ok := account.Credentials(shard)
		places = append(places, kill.Place{
			Place: c.Place(), User: account.Name, Creds: creds, HasCreds: ok,
			ViaSession: account.PasswordUnknown() && (account.Name == by.Name || !ok),
		})
	}
	return places, right
}

// Interrupt ends, from outside, what the session waits for in the proxy itself.
func (s *Session) Interrupt() { s.numbers.Patience.Interrupt() }

// Doomed is why the session is being ended from outside.
func (s *Session) Doomed() *kill.Doom { return &s.doom }
