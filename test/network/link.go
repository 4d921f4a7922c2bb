// Package network is a TCP network for tests that can be cut, slow or silent.
//
// toxiproxy, used as a library, handles the bytes: each direction of a connection has a chain of
// toxics, which can change while in use. Its HTTP interface is never opened. Two toxics are this
// package's own. One stops everything without a loss. The other swallows answers, and then ends
// only the connections that lost one.
//
// This package accepts, opens and ends connections itself, without toxiproxy's listener. That
// listener cannot reset an existing connection: its Stop ends it in order, and reset_peer waits for
// the next bytes and only resets connections opened under it. It also leaves goroutines behind if
// the receiver of an answer leaves before the last piece (Shopify/toxiproxy 2.12: link.go, write
// returns and nothing takes what comes). Here the receiver of a stream takes everything, so that
// each chain ends.
//
// Start at [Link], which is the way to one address.
package network

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/Shopify/toxiproxy/v2"
	"github.com/Shopify/toxiproxy/v2/stream"
	"github.com/rs/zerolog"
)

// dialTimeout is for a server that hangs. The client's connection is then closed.
const dialTimeout = 5 * time.Second

// Link is a way to a server: a connection to Addr is connected to the server. Any goroutine may
// change its weather at any time.
type Link struct {
	to       string
	listener net.Listener
	server   *toxiproxy.ApiServer // does not listen
	proxy    *toxiproxy.Proxy     // has the toxics and the streams; not started
	group    sync.WaitGroup
	dialing  context.Context //nolint:containedctx // ends with the link
	stop     context.CancelFunc

	setting sync.Mutex // one change of weather at a time; locked before mu
	mu      sync.Mutex
	door    door           // guarded by mu
	waiting int            // guarded by mu
	broken  int            // guarded by mu
	conns   int            // guarded by mu; connections so far
	pairs   map[*pair]bool // guarded by mu
	closed  bool           // guarded by mu
}

// NewLink makes a link with fair weather to a server. The caller must close it.
func NewLink(to string) (*Link, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("open a link: %w", err)
	}
	server := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop())
	l := &Link{
		to: to, listener: listener, server: server,
		proxy: toxiproxy.NewProxy(server, "link", listener.Addr().String(), to), pairs: make(map[*pair]bool),
	}
	l.dialing, l.stop = context.WithCancel(context.Background())
	l.group.Go(l.accept)
	return l, nil
}

// Addr returns the address of the server by way of this link.
func (l *Link) Addr() string { return l.listener.Addr().String() }

// Set changes the weather, also for existing connections. It waits while one of them is full, so
// that nothing more can be written.
func (l *Link) Set(w Weather) {
	l.setting.Lock()
	defer l.setting.Unlock()
	l.mu.Lock()
	l.door = w.door
	closed := l.closed
	l.mu.Unlock()
	l.proxy.Toxics.ResetToxics(context.Background())
	if closed {
		return
	}
	for _, t := range w.toxics {
		if _, err := l.proxy.Toxics.AddToxicJson(bytes.NewReader(t.json())); err != nil {
			panic(err) // weather.go has something that toxiproxy does not know
		}
	}
}

// Cut resets all present connections, like a machine that loses its power and comes back. Data
// under way are lost.
func (l *Link) Cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for p := range l.pairs {
		p.cut()
	}
}

// CutOff cuts the link until Set: connections end, and new ones are refused.
func (l *Link) CutOff() {
	l.mu.Lock()
	l.door = refuse
	l.mu.Unlock()
	l.Cut() // before Set, which would let through what was held back
	l.Set(Refuse)
}

// Waiting returns how many connections have no answer because of Hold.
func (l *Link) Waiting() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.waiting
}

// Broken returns how many connections the weather has ended so far: CutShort ends them, and so does
// Swallow when it is over.
func (l *Link) Broken() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.broken
}

// Close cuts all connections. When it returns, all goroutines of the link have ended.
func (l *Link) Close() {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.stop()
	_ = l.listener.Close() // ends accept
	l.Cut()
	l.Set(Fair) // so that bytes held back reach their end
	l.group.Wait()
}

func (l *Link) accept() {
	for {
		near, err := l.listener.Accept()
		if err != nil {
			return // closed
		}
		l.group.Go(func() { l.serve(near) })
	}
}

func (l *Link) serve(near net.Conn) {
	p := &pair{near: near}
	name, door := l.enter(p)
	defer l.leave(p)
	switch door {
	case refuse:
		p.close()
		return
	case hold:
		_, _ = io.Copy(io.Discard, near) // until its client or Cut ends it
		p.close()
		l.mu.Lock()
		l.waiting--
		l.mu.Unlock()
		return
	}
	far, err := (&net.Dialer{Timeout: dialTimeout}).DialContext(l.dialing, "tcp", l.to)
	if err != nil || !p.reaches(far) {
		p.close() // the server is down, or the link was cut
		return
	}
	var ended sync.WaitGroup
	for _, way := range []struct {
		from, to  net.Conn
		direction stream.Direction
	}{{near, far, stream.Upstream}, {far, near, stream.Downstream}} {
		ended.Add(2)
		in := &source{conn: way.from, done: ended.Done}
		l.proxy.Toxics.StartLink(l.server, name+way.direction.String(), in, &sink{link: l, pair: p, conn: way.to, source: in, done: ended.Done}, way.direction)
	}
	ended.Wait()
	p.close()
}

// enter says what to do with a new connection, and registers it for Cut. Its name is unique.
func (l *Link) enter(p *pair) (name string, d door) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return "", refuse
	}
	l.pairs[p] = true
	l.conns++
	if l.door == hold {
		l.waiting++
	}
	return strconv.Itoa(l.conns), l.door
}

func (l *Link) leave(p *pair) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.pairs, p)
}

// pair is one connection through a link.
type pair struct {
	mu        sync.Mutex
	near, far net.Conn // far is guarded by mu, and nil while it is opened
	gone      bool     // guarded by mu
}

// reaches sets the connection to the server. It returns false if the pair is gone.
func (p *pair) reaches(far net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.gone {
		_ = far.Close()
		return false
	}
	p.far = far
	return true
}

func (p *pair) cut()   { p.end(true) }
func (p *pair) close() { p.end(false) }

func (p *pair) end(reset bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.gone {
		return
	}
	p.gone = true
	for _, c := range []net.Conn{p.near, p.far} {
		if c == nil {
			continue
		}
		if tcp, ok := c.(*net.TCPConn); ok && reset {
			_ = tcp.SetLinger(0) // fails only on a closed connection
		}
		_ = c.Close()
	}
}

// source is the start of a stream. It notes how the stream ended.
type source struct {
	conn net.Conn
	end  atomic.Pointer[error]
	done func()
}

func (s *source) Read(b []byte) (int, error) {
	n, err := s.conn.Read(b)
	if err != nil {
		s.end.Store(&err)
		s.done() // nobody asks it again
	}
	return n, err
}

// sink is the end of a stream.
type sink struct {
	link   *Link
	pair   *pair
	conn   net.Conn
	source *source
	deaf   bool
	done   func()
}

// Write never fails: otherwise toxiproxy would leave a goroutine behind.
func (s *sink) Write(b []byte) (int, error) {
	if !s.deaf {
		_, err := s.conn.Write(b)
		s.deaf = err != nil
	}
	return len(b), nil
}

// Close passes on the end of the stream as it was. If the stream has not ended, a toxic wants the
// connection to break.
func (s *sink) Close() error {
	defer s.done()
	switch err := s.source.end.Load(); {
	case err == nil:
		s.link.mu.Lock()
		s.link.broken++
		s.link.mu.Unlock()
		s.pair.cut()
	case errors.Is(*err, io.EOF):
		if half, ok := s.conn.(*net.TCPConn); ok {
			_ = half.CloseWrite() // the other direction may still have data
		}
	default:
		s.pair.cut()
	}
	return nil
}
