package mysqltest

import (
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Link is one way to a server that can be cut while the server lives, as a network is: connections end, and new ones are refused.
type Link struct {
	target   string
	listener net.Listener
	tasks    sync.WaitGroup
	delay    atomic.Int64 // of what is passed on, each way

	mu    sync.Mutex
	cut   bool                  // guarded by mu
	hold  bool                  // guarded by mu
	held  int                   // guarded by mu
	conns map[net.Conn]struct{} // guarded by mu
}

// NewLink makes a link that lives until the end of the test.
func NewLink(t testing.TB, target string) *Link {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := &Link{target: target, listener: listener, conns: make(map[net.Conn]struct{})}
	l.tasks.Go(l.serve)
	t.Cleanup(func() {
		_ = listener.Close()
		l.Cut()
		l.tasks.Wait()
	})
	return l
}

// Addr is where the server is reached by this link.
func (l *Link) Addr() string { return l.listener.Addr().String() }

// Cut cuts the link until Mend.
func (l *Link) Cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut = true
	for c := range l.conns {
		_ = c.Close()
	}
}

// Delay makes what comes next, in either direction, arrive later by d, as if the server were far away.
func (l *Link) Delay(d time.Duration) { l.delay.Store(int64(d)) }

// Hold has the link take new connections and say nothing there, as a server that stands still does, until Mend.
func (l *Link) Hold() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.hold = true
}

// Held is how many connections wait for the server to say something.
func (l *Link) Held() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.held
}

// Mend lets new connections through again.
func (l *Link) Mend() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut, l.hold = false, false
}

// await holds a connection until its client or Cut ends it, if the link is to.
func (l *Link) await(c net.Conn) (held bool) {
	count := func(n int) bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		if n < 0 || l.hold {
			l.held += n
			return true
		}
		return false
	}
	if !count(1) {
		return false
	}
	defer count(-1)
	_, _ = io.Copy(io.Discard, c)
	return true
}

func (l *Link) serve() {
	for {
		c, err := l.listener.Accept()
		if err != nil {
			return // closed
		}
		l.tasks.Go(func() { l.pass(c) })
	}
}

// pass copies both ways until one side ends.
func (l *Link) pass(client net.Conn) {
	defer func() { _ = client.Close() }()
	if !l.enter(client) {
		return
	}
	defer l.leave(client)
	if l.await(client) {
		return
	}
	server, err := net.Dial("tcp", l.target)
	if err != nil {
		return
	}
	defer func() { _ = server.Close() }()
	if !l.enter(server) {
		return
	}
	defer l.leave(server)
	l.tasks.Go(func() {
		l.copy(server, client)
		_ = server.Close()
	})
	l.copy(client, server)
}

// copy is one way of a connection.
func (l *Link) copy(to io.Writer, from io.Reader) {
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 {
			time.Sleep(time.Duration(l.delay.Load()))
			if _, err := to.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

func (l *Link) enter(c net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.cut {
		l.conns[c] = struct{}{}
	}
	return !l.cut
}

func (l *Link) leave(c net.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.conns, c)
}
