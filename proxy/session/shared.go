package session

import (
	"net"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"seqproxy/proxy/kill"
	"seqproxy/proxy/login"
	"seqproxy/proxy/stats"
	"seqproxy/statement"
)

// Shared is what the sessions of one Server share.
type Shared struct {
	Settings       atomic.Pointer[Settings] // those of now
	PausedSessions atomic.Int64             // sessions that wait for a paused shard
	Draining       atomic.Bool              // sessions of clients end when they can
	AdminEnds      atomic.Bool              // the same at the admin address
	Stopping       chan struct{}            // closed when draining begins

	Gate     login.Gate
	Killer   *kill.Killer
	Log      *zap.Logger
	Counters stats.Counters

	// Mu guards Totals, and what the Server knows of its sessions. It is taken before that of a
	// session.
	Mu     sync.Mutex
	Totals stats.Totals

	// Address and AdminAddress are what the Server listens on; nil: there is none.
	Address, AdminAddress net.Addr

	texts         *statement.Cache // of all sessions
	ownersAsked   sync.Once
	ownersUnknown string // why the answer did not come then; for those who have passed ownersAsked
	columns       columnCache
	// ReceivePeriod is the constant of that name, but in tests.
	ReceivePeriod time.Duration
}

// cachedTexts is how many texts are remembered with what they ask: 8 KiB each at most.
const cachedTexts = 1024

// NewShared makes what the sessions of a Server share. version is the proxy's own, for servers; ""
// leaves it out.
func NewShared(killer *kill.Killer, version string, log *zap.Logger) *Shared {
	s := &Shared{
		Stopping: make(chan struct{}), Killer: killer, Log: log, Counters: stats.Counters{Since: time.Now()},
		texts: statement.NewCache(cachedTexts), ReceivePeriod: receivePeriod,
	}
	s.Gate = login.Gate{Failed: login.NewFailures(), Attributes: login.ProxyAttributes(version), Stopping: s.Stopping, Log: log}
	return s
}

// Server is what a session needs of the Server that it is of.
type Server interface {
	kill.Sessions
	// Stats is what COM_STATISTICS shows where no server answers it, with Sessions.
	Stats() stats.Stats
	// Sessions is how many clients are connected.
	Sessions() int
}
