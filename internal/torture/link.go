package torture

import (
	"context"
	"fmt"
	"net"
	"sync"
	"time"
)

// weather is what a link does to the bytes that pass.
type weather int

const (
	fair    weather = iota
	refuse          // new connections are closed at once
	silent          // nothing passes in either direction, and nobody is told
	swallow         // requests pass, answers do not: what was asked for is done, and nobody hears of it
	slow            // each piece is late
)

// link is the network between one proxy and one server: a TCP relay whose weather can be changed. All goroutines end with close.
type link struct {
	listener net.Listener
	to       string
	group    sync.WaitGroup

	mu      sync.Mutex
	weather weather
	late    time.Duration // of slow
	changed chan struct{} // closed when the weather changes
	pairs   map[*pair]bool
	closed  bool
}

// pair is one connection through a link.
type pair struct {
	near, far net.Conn
	once      sync.Once
	gone      chan struct{}
}

// cut ends a connection as a machine does that has lost its power and comes back: with a reset.
func (p *pair) cut() {
	p.once.Do(func() {
		close(p.gone)
		for _, c := range []net.Conn{p.near, p.far} {
			if tcp, ok := c.(*net.TCPConn); ok {
				_ = tcp.SetLinger(0) // fails only on a connection that is gone
			}
			_ = c.Close()
		}
	})
}

func newLink(to string) (*link, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("open a link: %w", err)
	}
	l := &link{listener: listener, to: to, changed: make(chan struct{}), pairs: make(map[*pair]bool)}
	l.group.Go(l.accept)
	return l, nil
}

func (l *link) addr() string { return l.listener.Addr().String() }

// set changes the weather. late counts for slow.
func (l *link) set(w weather, late time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.weather, l.late = w, late
	close(l.changed)
	l.changed = make(chan struct{})
}

// cut ends all connections of now.
func (l *link) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for p := range l.pairs {
		p.cut()
	}
}

func (l *link) close() {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	_ = l.listener.Close()
	l.cut()
	l.group.Wait()
}

func (l *link) accept() {
	for {
		near, err := l.listener.Accept()
		if err != nil {
			return // closed
		}
		l.group.Go(func() { l.serve(near) })
	}
}

func (l *link) serve(near net.Conn) {
	l.mu.Lock()
	now := l.weather
	l.mu.Unlock()
	if now == refuse {
		_ = near.Close()
		return
	}
	ctx, stop := context.WithTimeout(context.Background(), 5*time.Second)
	defer stop()
	far, err := new(net.Dialer).DialContext(ctx, "tcp", l.to)
	if err != nil {
		_ = near.Close() // the server is down
		return
	}
	p := &pair{near: near, far: far, gone: make(chan struct{})}
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		p.cut()
		return
	}
	l.pairs[p] = true
	l.mu.Unlock()
	var both sync.WaitGroup
	both.Go(func() { l.pump(p, far, near, false) })
	both.Go(func() { l.pump(p, near, far, true) })
	both.Wait()
	p.cut()
	l.mu.Lock()
	delete(l.pairs, p)
	l.mu.Unlock()
}

// pump passes on what comes from one side until that ends, and ends the other side in the same way.
func (l *link) pump(p *pair, to, from net.Conn, answers bool) {
	buf := make([]byte, 16<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 && !l.pass(p, to, buf[:n], answers) {
			p.cut()
			return
		}
		if err != nil {
			// The other direction may still have something to say.
			if tcp, ok := to.(*net.TCPConn); ok {
				_ = tcp.CloseWrite()
			}
			return
		}
	}
}

// pass hands a piece on as the weather has it.
func (l *link) pass(p *pair, to net.Conn, piece []byte, answers bool) bool {
	waited := false
	for {
		l.mu.Lock()
		now, late, changed := l.weather, l.late, l.changed
		l.mu.Unlock()
		switch {
		case now == silent:
			select {
			case <-changed:
				continue
			case <-p.gone:
				return false
			}
		case now == swallow && answers:
			// A hole in the stream: what comes behind it must not be passed on either.
			select {
			case <-changed:
			case <-p.gone:
			}
			return false
		case now == slow && !waited:
			select {
			case <-time.After(late):
				waited = true
				continue
			case <-p.gone:
				return false
			}
		}
		_, err := to.Write(piece)
		return err == nil
	}
}
