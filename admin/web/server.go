package web

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"go.uber.org/zap"
)

// Bounds on what one client can use.
const (
	headerTimeout  = 5 * time.Second
	requestTimeout = 10 * time.Second
	answerTimeout  = 30 * time.Second
	idleTimeout    = time.Minute
	maxHeader      = 16 << 10 // in bytes
	maxConnections = 256      // at the same time; more wait to be accepted

	// For how long a client may keep a place that another waits for.
	crowdedSilence = 250 * time.Millisecond // before its request, and between two requests
	crowdedAnswer  = readyPatience + 200*time.Millisecond
)

// Server answers over HTTP. Call Listen, Serve and Shutdown in this order.
type Server struct {
	http     http.Server
	listener *limited
	open     sync.WaitGroup // connections
}

// NewServer makes a Server for the given pages. It does no I/O.
func NewServer(pages http.Handler, log *zap.Logger) *Server {
	s := &Server{}
	s.http = http.Server{
		Handler:           pages,
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       requestTimeout,
		WriteTimeout:      answerTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeader,
		ConnState:         s.connState,
	}
	s.http.ErrorLog = connectionLog(log)
	return s
}

// connState counts the connections. Serve's goroutine calls it with StateNew, the connection's own
// goroutine with the other states.
func (s *Server) connState(c net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		s.open.Add(1)
	case http.StateActive:
		s.listener.extend(c, crowdedAnswer)
	case http.StateIdle:
		s.listener.extend(c, crowdedSilence)
	case http.StateClosed, http.StateHijacked:
		s.open.Done()
	}
}

// Listen opens the listening socket, "host:port".
func (s *Server) Listen(ctx context.Context, address string) error {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return err
	}
	s.listener = newLimited(l, maxConnections)
	return nil
}

// Addr returns the address of the listening socket. Call it after Listen has succeeded.
func (s *Server) Addr() net.Addr { return s.listener.Addr() }

// Serve answers until Shutdown, and then returns nil.
func (s *Server) Serve() error {
	if err := s.http.Serve(s.listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("http: %w", err)
	}
	return nil
}

// Shutdown stops listening, waits for running answers until ctx is done, and closes all
// connections. When both Shutdown and Serve have returned, no goroutine of the Server is left.
func (s *Server) Shutdown(ctx context.Context) {
	if err := s.http.Shutdown(ctx); err != nil {
		_ = s.http.Close() // there is nothing more to do
	}
	_ = s.listener.Close() // Serve may not have been called
	s.open.Wait()
}

// limited bounds the number of connections. If all places are taken, a new connection gets a place
// whose time is up. So a client that sends a request at once is answered soon, even if many others
// are silent or do not read their answers.
type limited struct {
	net.Listener
	places int
	freed  chan struct{} // gets a value when a place is free
	closed chan struct{}
	once   sync.Once

	mu    sync.Mutex
	until map[net.Conn]time.Time // when each one's time is up
}

func newLimited(l net.Listener, places int) *limited {
	return &limited{
		Listener: l, places: places, freed: make(chan struct{}, 1), closed: make(chan struct{}), until: make(map[net.Conn]time.Time),
	}
}

func (l *limited) Accept() (net.Conn, error) {
	nc, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	for wait := l.enter(nc); wait > 0; wait = l.enter(nc) {
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-l.freed:
		case <-l.closed:
			timer.Stop()
			return nil, errors.Join(net.ErrClosed, nc.Close())
		}
		timer.Stop()
	}
	return &limitedConn{Conn: nc, of: l}, nil
}

// enter gives nc a place, if necessary one whose time is up. Otherwise it returns when to try
// again.
func (l *limited) enter(nc net.Conn) (wait time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	if len(l.until) >= l.places {
		var first net.Conn
		for other, until := range l.until {
			if first == nil || until.Before(l.until[first]) {
				first = other
			}
		}
		if wait = l.until[first].Sub(now); wait > 0 {
			return wait
		}
		delete(l.until, first)
		_ = first.Close() // its goroutine notices
	}
	l.until[nc] = now.Add(crowdedSilence)
	return 0
}

// extend sets how long a connection keeps its place from now on.
func (l *limited) extend(nc net.Conn, by time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c, ok := nc.(*limitedConn)
	if !ok {
		return
	}
	if _, has := l.until[c.Conn]; has {
		l.until[c.Conn] = time.Now().Add(by)
	}
}

func (l *limited) leave(nc net.Conn) {
	l.mu.Lock()
	delete(l.until, nc)
	l.mu.Unlock()
	select {
	case l.freed <- struct{}{}:
	default: // a search is under way
	}
}

func (l *limited) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

// limitedConn is one that has a place.
type limitedConn struct {
	net.Conn
	of *limited
}

func (c *limitedConn) Close() error {
	c.of.leave(c.Conn)
	return c.Conn.Close()
}
