package session

import (
	"errors"
	"fmt"
	"time"

	"seqproxy/backend"
	"seqproxy/protocol"
	"seqproxy/proxy/kill"
)

// WatchedBy puts the session's connections under watch, from outside.
func (b *backends) WatchedBy(on *kill.Watcher) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.watcher = on
	// What fails here was closed a moment ago.
	_ = on.Add(b.client.Conn, kill.ClientToken(b.serial))
	for _, c := range b.conns {
		b.watchLocked(c)
	}
}

// watchLocked puts a backend connection under watch if the session is.
func (b *backends) watchLocked(c *backend.Conn) {
	if b.watcher != nil {
		// a connection that is closed is noticed when it is used
		_ = b.watcher.Add(c.Conn, kill.BackendToken(b.serial))
	}
}

// ClientHungUp ends the session, from outside, if its client has hung up: what it waits for
// fails, and a statement that is being answered is ended on its server.
func (b *backends) ClientHungUp() {
	if kill.HungUp(b.client.Conn) {
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

// errBackendClosed is the end of a session with that of its idle backend connection.
var errBackendClosed = errors.New("server closed the idle connection")

// missBackends finds the connections that their servers have closed. Without that of
// the current shard the session has lost what it held there, and ends as that
// connection did; another one is only dropped if nothing was left on it.
func (b *backends) missBackends() error {
	for _, c := range b.conns {
		switch {
		case !kill.HungUp(c.Conn):
		case c == b.cur:
			return b.followBackend(c)
		case !b.needs(c):
			c.Close()
			b.forget(c)
		}
	}
	return nil
}

// needs says whether the session has left something on a connection to another shard
// than the current one.
func (b *backends) needs(c *backend.Conn) bool {
	return b.state.Needs(idOfConn(c)) || b.prepared.anyOn(c)
}

// followBackend ends a session with its idle backend connection. What the server has
// said before it closed is the client's to know.
func (b *backends) followBackend(c *backend.Conn) error {
	err := fmt.Errorf("%w: shard %s, node %s", errBackendClosed, c.Shard().Name(), c.Node())
	// it has all come; for TLS, which may want to write
	_ = c.SetReadDeadline(time.Now().Add(time.Second))
	for len(c.Buffered()) < protocol.BufferSize && c.Fill() == nil {
	}
	if last := c.Buffered(); len(last) > 0 {
		_, _ = b.client.Write(last) // the session ends either way
		c.Discard(len(last))
	}
	c.Close()
	b.forget(c)
	return err
}
