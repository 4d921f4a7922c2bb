package proxy

import (
	"context"
	"sync"

	"go.uber.org/zap"

	"seqproxy/backend"
	"seqproxy/internal/logfield"
	"seqproxy/proxy/kill"
	"seqproxy/proxy/login"
	"seqproxy/proxy/state"
	"seqproxy/proxy/stats"
)

// backends are the connections of a session to servers. It asks there what the proxy itself has to
// know, and ends with the session if one that is needed breaks.
type backends struct {
	outside
	cur    *backend.Conn // the current shard's
	effect state.Effect  // of the statement that was sent last

	// Of the session, for which they are.
	client   *client
	login    *login.Login
	state    *state.State
	tally    *stats.Tally
	prepared *preparedSet
	doom     *kill.Doom
	shared   *shared
}

// outside is what other goroutines see of a session, and tell it.
type outside struct {
	id     uint32          // what the client holds for its connection id
	serial uint64          // of all the server's sessions, never given again
	ctx    context.Context // ends when the session is cut
	cancel context.CancelFunc

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
	watcher *kill.Watcher
	conns   map[*backend.Shard]*backend.Conn // one for each shard that was needed
}

// log returns the logger of the session's events, made when there is one to log.
func (b *backends) log() *zap.Logger {
	return b.shared.log.With(logfield.Conn(b.id), logfield.Client(b.client.RemoteAddr()), logfield.User(b.login.Account.Name))
}
