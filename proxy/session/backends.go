package session

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.uber.org/zap"

	"seqproxy/backend"
	"seqproxy/internal/logfield"
	"seqproxy/protocol"
	"seqproxy/proxy/kill"
	"seqproxy/proxy/login"
	"seqproxy/proxy/state"
	"seqproxy/proxy/stats"
	"seqproxy/statement/lex"
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
	shared   *Shared
}

// outside is what other goroutines see of a session, and tell it.
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
	watcher *kill.Watcher
	conns   map[*backend.Shard]*backend.Conn // one for each shard that was needed
}

// log returns the logger of the session's events, made when there is one to log.
func (b *backends) log() *zap.Logger {
	return b.shared.Log.With(logfield.Conn(b.id), logfield.Client(b.client.RemoteAddr()), logfield.User(b.login.Account.Name))
}

// current makes a connection the one that statements run on.
func (b *backends) current(c *backend.Conn) {
	first, hello := b.cur == nil, c.Hello()
	if b.cur != c {
		b.state.StartMode(serverOf(hello), b.login.Collation)
	}
	b.cur = c
	b.state.Observe(c.Answer.Status, hello.MariaDB)
	if first {
		b.state.TrustStatus(hello.MariaDB)
		b.state.EscapesUnknown = hello.InitConnect
	}
}

// likeMariaDB says whether the session's server is MariaDB: the current shard's, or
// before there is one the greeting's.
func (b *backends) likeMariaDB() bool {
	if b.cur != nil {
		return b.cur.Hello().MariaDB
	}
	return !b.login.LikeMySQL
}

// serverOf is what the session's state has to know of a server.
func serverOf(h *backend.Hello) state.Server {
	reads := lex.MySQL(h.Number())
	if h.MariaDB {
		reads = lex.MariaDB(h.Number())
	}
	major, _ := h.Numbers()
	return state.Server{
		Reads: reads, MariaDB: h.MariaDB, Major: major, SQLMode: h.SQLMode, InitConnect: h.InitConnect, IgnoresCollation: h.IgnoresCollation,
	}
}

// release gives a connection back after the answer to a command, of which it takes
// note of what the answer said.
func (b *backends) release(c *backend.Conn) {
	c.Release()
	c.Used = true
	b.tally.Counted(c)
	if c == b.cur {
		b.state.Observe(c.Answer.Status, c.Hello().MariaDB)
	}
	if !b.effect.Expected {
		return
	}
	code := c.Answer.ErrCode
	if c.Answer.Rows || c.Answer.Results > 0 {
		code = 0
	}
	b.state.Apply(b.effect, code)
}

// expects says what the statement that is about to be sent may leave.
func (b *backends) expects(e state.Effect) {
	e.Expected = true
	b.effect = e
}

// noteRefusal looks at an error that ends an answer for what its code does not tell. whole says
// that answer is all of it.
func (b *backends) noteRefusal(c *backend.Conn, answer []byte, whole bool) {
	if !b.effect.Expected || !whole || len(answer) < protocol.HeaderSize {
		return
	}
	var refused *protocol.ServerError
	if errors.As(protocol.ParseServerError(answer[protocol.HeaderSize:]), &refused) {
		b.effect.Refused(refused)
	}
}

// idOfConn is what the session's state calls a connection.
func idOfConn(c *backend.Conn) state.ConnID { return state.ConnID(c.Tag) }

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

// forget drops a connection that was closed.
func (b *backends) forget(c *backend.Conn) {
	b.mu.Lock()
	delete(b.conns, c.Shard())
	b.mu.Unlock()
	b.state.Forget(idOfConn(c))
	if b.cur == c {
		b.cur = nil
	}
	b.prepared.forget(c)
	b.tally.Counted(c)
}

// closeBackends ends every backend connection of the session.
func (b *backends) closeBackends() {
	b.mu.Lock()
	conns := b.conns
	b.conns = nil
	b.mu.Unlock()
	for _, c := range conns {
		c.Quit()
		b.state.Forget(idOfConn(c))
		b.tally.Counted(c)
	}
	b.cur = nil
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

// closeOn closes a statement that is prepared on c.
func (b *backends) closeOn(c *backend.Conn, id uint32) error {
	c.SetPacketNum(0)
	if err := c.WritePacket(binary.LittleEndian.AppendUint32([]byte{byte(protocol.ComStmtClose)}, id)); err != nil {
		return b.lost(c, err, false)
	}
	return nil
}

// lost ends a session whose backend connection broke: what it held (transaction,
// variables, locks) is gone, as after a lost connection to the server itself. The client
// gets no error, but the end of its connection, as from a server that is gone: drivers and
// their pools know that, and make another one. The log says why.
func (b *backends) lost(c *backend.Conn, cause error, midAnswer bool) error {
	c.Close()
	b.forget(c)
	switch b.doom.Why() {
	case kill.Vanished:
		return b.abandon(c, errClientGone)
	case kill.Killed: // a server says nothing either
		return errKilled
	}
	if !b.doom.Is() {
		c.CountLost(cause)
	}
	err := fmt.Errorf("%w: shard %s, node %s: %w", errBackendGone, c.Shard().Name(), c.Node(), cause)
	if !midAnswer {
		_ = b.client.flush() // answers to commands before; the session ends either way
	}
	return err
}

// abandon has the server end what it does on c, if err is that the client has gone
// before the answer. It returns err.
func (b *backends) abandon(c *backend.Conn, err error) error {
	if creds, ok := b.login.Account.Credentials(c.Shard()); ok && errors.Is(err, errClientGone) {
		b.shared.Killer.Abandon(c.Place(), creds)
	}
	return err
}
