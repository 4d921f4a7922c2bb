package proxy

import (
	"cmp"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"seqproxy/backend"
	"seqproxy/internal/histogram"
	"seqproxy/proxy/state"
)

// Stats is what a Server has done since it was made, and what it does at one moment. It
// is its reader's own. What a session does counts when it has answered all that its
// client has sent.
type Stats struct {
	Since       time.Time
	Connections uint64 // clients that were accepted as sessions

	Sessions [SessionStates]int // by SessionState
	Users    []Count            // sessions by user, after the login: at most MaxUsers, then OtherUsers
	Pinned   []Count            // sessions by Pin; one session may count for several

	Disconnects  []Count // by reason, all of them
	AuthFailures []Count // by reason, all of them
	Statements   []StatementCount
	// SuspectIDs is how many answers had an insert id that their statement does not explain, where columns are bound.
	SuspectIDs uint64

	// Durations are those of statements, from when the last of the bytes that the client
	// sent at a time were read to when all of them were answered.
	Durations histogram.Histogram
	// Overheads are the parts of that which the proxy itself took, of a sample: Durations
	// without what was spent waiting for a server, or for the client to read or send.
	Overheads histogram.Histogram

	// Received and Sent are bytes from and to clients, before compression and TLS.
	Received, Sent uint64
	Shards         []ShardTraffic
}

// Count is how many there are, or were, of something.
type Count struct {
	Name string
	N    uint64
}

// StatementCount is how many statements there were of a kind. Shard is "" for kinds that
// no server sees.
type StatementCount struct {
	Kind  Kind
	Shard string
	N     uint64
}

// ShardTraffic is how many bytes the sessions got from a shard's servers, and sent there.
type ShardTraffic struct {
	Shard          string
	Received, Sent uint64
}

// NodeName says which node of which shard is meant, as backend.NodeStats does.
type NodeName struct{ Shard, Node string }

// Bounds of what Stats names.
const (
	MaxUsers   = 1000
	OtherUsers = "other" // the user that stands for all beyond MaxUsers
)

// SessionState is what a session does.
type SessionState uint8

// The states of sessions.
const (
	SessionLogin SessionState = iota // it logs in, or changes its user
	SessionIdle                      // it waits for its client
	SessionBusy                      // it has a command in hand
	SessionStates
)

// String returns the state's name in metrics and tables.
func (s SessionState) String() string {
	return [SessionStates]string{"login", "idle", "busy"}[s]
}

// Pin is a reason why a session keeps its connection.
type Pin = state.Pin

// PinTransaction is the most frequent one: a transaction is open.
const PinTransaction = state.PinTransaction

// SessionInfo is what one session is at one moment. But for State and Since it is from when
// the client was last waited for.
type SessionInfo struct {
	ID         uint32 // what the client holds for its connection id
	User       string // "" before the login
	Client     string // its address
	AtAdmin    bool   // it came to the admin address
	Shards     []string
	Schema     string
	State      SessionState
	Since      time.Time // of State
	Connected  time.Time
	Statements uint64
	Pins       []state.Pin
	// Received and Sent are bytes from and to the client.
	Received, Sent uint64
}

// totals are what the sessions have counted that have ended, or were relieved of large
// numbers. Server.mu guards it.
type totals struct {
	kinds          [unsent]uint64
	shards         map[string]*shardTotals
	durations      histogram.Histogram
	received, sent uint64
}

type shardTotals struct {
	relay, rewrite uint64
	received, sent uint64
}

// counters are those that sessions count with themselves, since that is seldom.
type counters struct {
	since     time.Time
	ends      [endReasons]atomic.Uint64
	auth      [authReasons]atomic.Uint64
	overheads histogram.Shared
	suspects  atomic.Uint64
	// memoryWaits are the large statements that have waited for memory.
	memoryWaits atomic.Uint64
}

// epoch is where clock begins.
var epoch = time.Now()

// clock is the time since epoch. It costs half of what time.Now does.
func clock() time.Duration { return time.Since(epoch) }

// gathering is Stats in the making.
type gathering struct {
	stats  Stats
	sum    totals
	users  map[string]uint64
	pinned [state.PinCount]uint64
}

// gather begins with what is counted at once, whatever sessions do.
func (c *counters) gather() *gathering {
	g := &gathering{users: make(map[string]uint64)}
	g.stats = Stats{Since: c.since, Overheads: c.overheads.Read(), SuspectIDs: c.suspects.Load()}
	for r := range c.ends {
		g.stats.Disconnects = append(g.stats.Disconnects, Count{endNames[r], c.ends[r].Load()})
	}
	for r := range c.auth {
		g.stats.AuthFailures = append(g.stats.AuthFailures, Count{authNames[r], c.auth[r].Load()})
	}
	return g
}

// add adds what a session has told. user is nil before the login.
func (g *gathering) add(t *told, does SessionState, user *string) {
	g.sum.add(t)
	g.stats.Sessions[does]++
	if user != nil {
		g.users[strings.ToValidUTF8(*user, "?")]++ // a label of a metric has to be UTF-8
	}
	for p := range g.pinned {
		if t.pins.Has(state.Pin(p)) {
			g.pinned[p]++
		}
	}
}

// done returns what was gathered.
func (g *gathering) done() Stats {
	st, sum := &g.stats, &g.sum
	st.Durations, st.Received, st.Sent = sum.durations, sum.received, sum.sent
	for k := KindRefused; k < unsent; k++ {
		st.Statements = append(st.Statements, StatementCount{k, "", sum.kinds[k]})
	}
	for name, t := range sum.shards {
		st.Statements = append(st.Statements, StatementCount{KindRelay, name, t.relay}, StatementCount{KindRewrite, name, t.rewrite})
		st.Shards = append(st.Shards, ShardTraffic{name, t.received, t.sent})
	}
	slices.SortFunc(st.Statements, func(a, b StatementCount) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Shard, b.Shard))
	})
	slices.SortFunc(st.Shards, func(a, b ShardTraffic) int { return cmp.Compare(a.Shard, b.Shard) })
	st.Users = boundedUsers(g.users)
	for p, n := range g.pinned {
		st.Pinned = append(st.Pinned, Count{Pin(p).String(), n})
	}
	return *st
}

// Stats returns what the server has done, and does.
func (s *Server) Stats() Stats {
	g := s.counters.gather()
	s.mu.Lock()
	g.stats.Connections = s.serial
	g.sum = s.totals.clone()
	for _, sess := range s.sessions {
		sess.count(g)
	}
	s.mu.Unlock()
	return g.done()
}

// BusyNodes returns how many connections to each node sessions have that are busy with a
// command at this moment.
func (s *Server) BusyNodes() map[NodeName]int {
	busy := make(map[NodeName]int)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, sess := range s.sessions {
		sess.mu.Lock()
		if sess.stateLocked() == SessionBusy {
			for shard, c := range sess.conns {
				busy[NodeName{shard.Name(), c.Node()}]++
			}
		}
		sess.mu.Unlock()
	}
	return busy
}

// boundedUsers are the users with the most sessions, in the order of their names, and all
// others as one.
func boundedUsers(users map[string]uint64) []Count {
	list := make([]Count, 0, len(users))
	for name, n := range users {
		list = append(list, Count{name, n})
	}
	byName := func(a, b Count) int { return cmp.Compare(a.Name, b.Name) }
	other := Count{Name: OtherUsers}
	if len(list) > MaxUsers {
		slices.SortFunc(list, func(a, b Count) int { return cmp.Or(cmp.Compare(b.N, a.N), byName(a, b)) })
		for _, u := range list[MaxUsers:] {
			other.N += u.N
		}
		list = list[:MaxUsers]
	}
	slices.SortFunc(list, byName)
	if other.N == 0 {
		return list
	}
	if i := slices.IndexFunc(list, func(u Count) bool { return u.Name == OtherUsers }); i >= 0 { // a user of that name
		list[i].N += other.N
		return list
	}
	return append(list, other)
}

// count adds what the session has told, from outside; Server.mu is held.
func (s *session) count(g *gathering) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var user *string
	if s.introduced {
		user = &s.user.Name
	}
	g.add(s.tally.told, s.stateLocked(), user)
}

func (s *session) stateLocked() SessionState {
	switch {
	case !s.introduced:
		return SessionLogin
	case s.busy:
		return SessionBusy
	}
	return SessionIdle
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
	i := s.tally.told.info()
	i.ID, i.AtAdmin, i.State, i.Connected = s.id, s.atAdmin, s.stateLocked(), epoch.Add(s.connected)
	if i.State == SessionLogin {
		i.Client = s.client.PeerAddr().String()
		return i
	}
	i.User, i.Client = s.user.Name, s.client.RemoteAddr().String()
	for shard := range s.conns {
		i.Shards = append(i.Shards, shard.Name())
	}
	s.tally.told.sortShards(i.Shards)
	return i
}

// info is what the session has told of itself.
func (t *told) info() SessionInfo {
	return SessionInfo{
		Since: epoch.Add(t.since), Statements: t.statements, Schema: t.schema, Pins: t.pins.List(), Received: t.received, Sent: t.sent,
	}
}

// sortShards puts the current one first, and the others in the order of their names.
func (t *told) sortShards(names []string) {
	current := ""
	if t.standing.shard != nil {
		current = t.standing.shard.Name()
	}
	slices.SortFunc(names, func(a, b string) int {
		if (a == current) != (b == current) {
			if a == current {
				return -1
			}
			return 1
		}
		return cmp.Compare(a, b)
	})
}

// clone returns a copy that may be added to.
func (t *totals) clone() totals {
	c := *t
	c.shards = make(map[string]*shardTotals, len(t.shards))
	for name, shard := range t.shards {
		of := *shard
		c.shards[name] = &of
	}
	return c
}

// add adds all that a session has told and not settled.
func (t *totals) add(told *told) {
	t.addCounters(told)
	t.received += told.received
	t.sent += told.sent
	for i := range told.shards {
		of := &told.shards[i]
		to := t.of(of.shard)
		to.received += of.received
		to.sent += of.sent
	}
}

// addCounters is add for what a session settles in the course of its life.
func (t *totals) addCounters(told *told) {
	for k, n := range told.kinds {
		t.kinds[k] += uint64(n)
	}
	for i, n := range told.durations {
		t.durations.Counts[i] += uint64(n)
	}
	t.durations.Sum += told.durationSum
	for i := range told.shards {
		of := &told.shards[i]
		to := t.of(of.shard)
		to.relay += uint64(of.relay)
		to.rewrite += uint64(of.rewrite)
	}
}

func (t *totals) of(shard *backend.Shard) *shardTotals {
	if t.shards == nil {
		t.shards = make(map[string]*shardTotals)
	}
	to := t.shards[shard.Name()]
	if to == nil {
		to = &shardTotals{}
		t.shards[shard.Name()] = to
	}
	return to
}
