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

// outside is the part of a session that other goroutines use.
type outside struct {
	id        uint32          // the connection id that the client sees
	serial    uint64          // number among all sessions of the Server, never used again
	connected time.Duration   // time by stats.Clock
	ctx       context.Context // ends when the session is cut
	cancel    context.CancelFunc

	// mu guards the fields below, tally.Report, and changes of conns, which others read.
	mu          sync.Mutex
	resting     bool // the session waits for a command; false in the login
	transacting bool // a transaction is open; valid while resting
	busy        bool // the session handles a command; false in the login
	// backendClosed says that a server may have closed one of conns while it was idle.
	backendClosed bool
	// introduced says that the account is fixed, and may be read under mu.
	introduced bool
	// poller watches client and conns; nil in a young session.
	poller *hangup.Poller
	conns  map[*backend.Shard]*backend.Conn // one for each shard that the session has needed
}

// Begin gives the session its connection id and serial number, before Serve.
func (o *outside) Begin(id uint32, serial uint64) { o.id, o.serial = id, serial }

// ID returns the connection id that the client sees.
func (o *outside) ID() uint32 { return o.id }

// Serial returns the number of the session among all of the Server's. It is never used again.
func (o *outside) Serial() uint64 { return o.serial }

// introduce records whether other goroutines may read the account.
func (o *outside) introduce(is bool) {
	o.mu.Lock()
	o.introduced = is
	o.mu.Unlock()
}

// connBy returns the connection that the session's state calls id, or nil for 0.
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

// Drop ends a session that was not served.
func (s *Session) Drop() {
	s.cancel()
	s.client.Close()
}

// Ended adds the counts of a session that was served to the totals. The caller has locked
// Shared.Mu.
func (s *Session) Ended() {
	s.mu.Lock()
	s.tally.ReportLocked(stats.Clock(), s.client.Conn, s.tally.Report.Standing, &s.shared.Counters.Overheads)
	s.shared.Totals.Add(s.tally.Report)
	s.mu.Unlock()
	s.login.Uncount()
}

// Uses reports whether the session has a statement or a transaction on one of the shards.
func (a *attachment) Uses(shards *backend.ShardSet) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.engaged.Load().Meets(shards) && (!a.resting || a.transacting)
}

// AddBusy counts the connections to each node that the session has, if it handles a command.
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

// CountedShards returns the number of shards that the session counts separately. Any goroutine may
// call it.
func (b *backends) CountedShards() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.tally.Report.CountedShards()
}

// Count adds what the session has reported. The caller has locked Shared.Mu.
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

// Info describes the session. Any goroutine may call it.
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

// Drain ends the wait for the next command. Any goroutine may call it. A busy session sees the
// shutdown when it has done its work.
func (b *backends) Drain() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.busy {
		_ = b.client.SetReadDeadline(time.Unix(1, 0)) // it fails only on a closed connection
	}
}

// Cut ends the session: everything that it waits for fails. Any goroutine may call it.
func (b *backends) Cut() {
	b.client.Abort()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.cancel()
	for _, c := range b.conns {
		c.Abort()
	}
}

// AddTo puts the session's connections under watch. Any goroutine may call it.
func (b *backends) AddTo(p *hangup.Poller) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.poller = p
	// An error means that the connection was closed a moment ago.
	_ = p.Add(b.client.Conn, hangup.ClientToken(b.serial))
	for _, c := range b.conns {
		b.watchLocked(c)
	}
}

// watchLocked puts a backend connection under watch if the session is.
func (b *backends) watchLocked(c *backend.Conn) {
	if b.poller != nil {
		// A closed connection shows at its next use.
		_ = b.poller.Add(c.Conn, hangup.BackendToken(b.serial))
	}
}

// ClientHungUp ends the session if its client has hung up: what it waits for fails, and its server
// ends the statement that runs. Any goroutine may call it.
func (b *backends) ClientHungUp() {
	if hangup.Seen(b.client.Conn) {
		b.doom.Set(kill.Vanished)
		b.Cut()
	}
}

// BackendHungUp records that a server may have closed a connection of the session. A resting
// session looks now, a busy one when it is done. Any goroutine may call it.
func (b *backends) BackendHungUp() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.backendClosed = true
	if !b.busy {
		_ = b.client.SetReadDeadline(time.Unix(1, 0)) // it fails only on a closed connection
	}
}

// KillsAs returns the user whose rights a KILL needs.
func (s *Session) KillsAs() kill.Account {
	return kill.Account{Name: s.login.Account.Name, Admin: s.login.Account.Admin}
}

// ConnAt returns the connection to a shard, or nil.
func (o *outside) ConnAt(shard *backend.Shard) *backend.Conn { return o.conns[shard] }

// Places returns the session's connections to servers, and by which right the account may kill
// them. Any goroutine may call it.
func (b *backends) Places(by kill.Account) (places []kill.Place, right kill.Right) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.introduced && b.login.Account.Name == by.Name:
		right = kill.OfSame
	case by.Admin:
		right = kill.OfAny
	}
	if !b.introduced || right == kill.Denied { // the session has no user yet
		return nil, right
	}
	account := b.account() // its user changes only while the session is not introduced
	for shard, c := range b.conns {
		creds, ok := account.Credentials(shard)
		places = append(places, kill.Place{
			Place: c.Place(), User: account.Name, Creds: creds, HasCreds: ok,
			ViaSession: account.PasswordUnknown() && (account.Name == by.Name || !ok),
		})
	}
	return places, right
}

// Interrupt ends what the session waits for in the proxy itself. Any goroutine may call it.
func (s *Session) Interrupt() { s.numbers.Patience.Interrupt() }

// Doomed returns why another goroutine ends the session.
func (s *Session) Doomed() *kill.Doom { return &s.doom }
