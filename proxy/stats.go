package proxy

import (
	"cmp"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"seqproxy/backend"
	"seqproxy/internal/histogram"
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
	Pins       []Pin
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

// Stats returns what the server has done, and does.
func (s *Server) Stats() Stats {
	st := Stats{Since: s.counters.since, Overheads: s.counters.overheads.Read(), SuspectIDs: s.counters.suspects.Load()}
	for r := range s.counters.ends {
		st.Disconnects = append(st.Disconnects, Count{endNames[r], s.counters.ends[r].Load()})
	}
	for r := range s.counters.auth {
		st.AuthFailures = append(st.AuthFailures, Count{authNames[r], s.counters.auth[r].Load()})
	}
	var pinned [pinCount]uint64
	users := make(map[string]uint64)

	s.mu.Lock()
	st.Connections = s.serial
	sum := s.totals.clone()
	for _, sess := range s.sessions {
		sess.count(&st, &sum, users, &pinned)
	}
	s.mu.Unlock()

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
	st.Users = boundedUsers(users)
	for p, n := range pinned {
		st.Pinned = append(st.Pinned, Count{Pin(p).String(), n})
	}
	return st
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
func (s *session) count(st *Stats, sum *totals, users map[string]uint64, pinned *[pinCount]uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sum.add(s.told)
	state := s.stateLocked()
	st.Sessions[state]++
	if s.introduced {
		users[strings.ToValidUTF8(s.user.Name, "?")]++ // a label of a metric has to be UTF-8
	}
	for p := range pinned {
		if s.told.pins.has(Pin(p)) {
			pinned[p]++
		}
	}
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
	i := SessionInfo{
		ID: s.id, AtAdmin: s.atAdmin, State: s.stateLocked(), Since: epoch.Add(s.told.since), Connected: epoch.Add(s.connected),
		Statements: s.told.statements, Schema: s.told.schema, Pins: s.told.pins.list(), Received: s.told.received, Sent: s.told.sent,
	}
	if i.State == SessionLogin {
		i.Client = s.client.PeerAddr().String()
		return i
	}
	i.User, i.Client = s.user.Name, s.client.RemoteAddr().String()
	for shard := range s.conns {
		i.Shards = append(i.Shards, shard.Name())
	}
	current := ""
	if s.told.shard != nil {
		current = s.told.shard.Name()
	}
	slices.SortFunc(i.Shards, func(a, b string) int {
		if (a == current) != (b == current) {
			if a == current {
				return -1
			}
			return 1
		}
		return cmp.Compare(a, b)
	})
	return i
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
