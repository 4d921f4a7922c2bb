package stats

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"seqproxy/internal/histogram"
	"seqproxy/proxy/state"
)

// Stats is what a Server has done since it was made, and what it does now. Its reader owns it. What
// a session does counts once it has answered all that its client has sent.
type Stats struct {
	Since       time.Time
	Connections uint64 // clients accepted as sessions

	Sessions [SessionStates]int // by SessionState
	// Sessions by user, after the login: at most MaxUsers, then OtherUsers.
	Users  []Count
	Pinned []Count // sessions by Pin; one session may count for several

	Disconnects  []Count // by reason, all reasons
	AuthFailures []Count // by reason, all reasons
	Statements   []StatementCount
	// SuspectIDs is how many answers had an insert id that their statement does not explain, with
	// bound columns.
	SuspectIDs uint64

	// Durations are those of statements, from the end of a read of the client's bytes to the end of
	// the answers to all of them.
	Durations histogram.Histogram
	// Overheads are the proxy's own part of a sample of these: Durations without the waits for a
	// server, and for the client to read or send.
	Overheads histogram.Histogram

	// Received and Sent are bytes from and to clients, before compression and TLS.
	Received, Sent uint64
	Shards         []ShardTraffic
}

// Count is a number of things with a name.
type Count struct {
	Name string
	N    uint64
}

// StatementCount is how many statements there were of a kind. Shard is "" for kinds that no server
// sees.
type StatementCount struct {
	Kind  Kind
	Shard string
	N     uint64
}

// ShardTraffic is how many bytes sessions received from a shard's servers, and sent there.
type ShardTraffic struct {
	Shard          string
	Received, Sent uint64
}

// NodeName names a node of a shard, as backend.NodeStats does.
type NodeName struct{ Shard, Node string }

// Bounds of what Stats names.
const (
	MaxUsers   = 1000
	OtherUsers = "other" // stands for all users beyond MaxUsers
)

// Gathering is an unfinished Stats.
type Gathering struct {
	Stats  Stats
	Sum    Totals
	users  map[string]uint64
	pinned [state.PinCount]uint64
}

// Add adds the report of a session. user is nil before the login.
func (g *Gathering) Add(t *Report, does SessionState, user *string) {
	g.Sum.Add(t)
	g.Stats.Sessions[does]++
	if user != nil {
		g.users[strings.ToValidUTF8(*user, "?")]++ // labels of metrics must be UTF-8
	}
	for p := range g.pinned {
		if t.Pins.Has(state.Pin(p)) {
			g.pinned[p]++
		}
	}
}

// Done returns what was gathered.
func (g *Gathering) Done() Stats {
	st, sum := &g.Stats, &g.Sum
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
		st.Pinned = append(st.Pinned, Count{state.Pin(p).String(), n})
	}
	return *st
}

// boundedUsers returns the users with the most sessions, in the order of their names, and all
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
	if i := slices.IndexFunc(list, func(u Count) bool { return u.Name == OtherUsers }); i >= 0 {
		// there is a user of that name
		list[i].N += other.N
		return list
	}
	return append(list, other)
}
