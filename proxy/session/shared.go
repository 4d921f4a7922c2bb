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
	Settings       atomic.Pointer[Settings] // the present settings
	PausedSessions atomic.Int64             // sessions that wait for a paused shard
	Draining       atomic.Bool              // clients' sessions end when they can
	AdminEnds      atomic.Bool              // sessions at the admin address end when they can
	Stopping       chan struct{}            // closed when draining begins

	Gate     login.Gate
	Killer   *kill.Killer
	Log      *zap.Logger
	Counters stats.Counters

	// Mu guards Totals, and the Server's list of sessions. It is locked before a session's mu.
	Mu     sync.Mutex
	Totals stats.Totals

	// Address and AdminAddress are what the Server listens on; nil: none.
	Address, AdminAddress net.Addr

	texts         *statement.Cache // analysed texts of all sessions
	ownersAsked   sync.Once
	ownersUnknown string // why the owners did not come; valid after ownersAsked
	columns       columnCache
	// ReceivePeriod is receivePeriod, except in tests.
	ReceivePeriod time.Duration
}

// cachedTexts bounds the analysed texts in the cache, which take at most about 50 MiB.
const cachedTexts = 1024

// NewShared makes what the sessions of a Server share. version is the proxy's own, to send to
// servers. "" omits it.
func NewShared(killer *kill.Killer, version string, log *zap.Logger) *Shared {
	s := &Shared{
		Stopping: make(chan struct{}), Killer: killer, Log: log, Counters: stats.Counters{Since: time.Now()},
		texts: statement.NewCache(cachedTexts), ReceivePeriod: receivePeriod,
	}
	s.Gate = login.Gate{Failed: login.NewFailures(), AtAdmin: login.NewFailures(), Attributes: login.ProxyAttributes(version), Stopping: s.Stopping, Log: log}
	return s
}

// Server is what a session needs of its Server.
type Server interface {
	kill.Sessions
	// Stats returns what COM_STATISTICS shows without a server, with Sessions.
	Stats() stats.Stats
	// Sessions returns the number of connected clients.
	Sessions() int
}
