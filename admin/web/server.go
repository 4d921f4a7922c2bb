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

// Bounds of what one who asks can hold.
const (
	headerTimeout  = 5 * time.Second
	requestTimeout = 10 * time.Second
	answerTimeout  = 30 * time.Second
	idleTimeout    = time.Minute
	maxHeader      = 16 << 10 // bytes
	maxConnections = 128      // at one time; more wait to be accepted
)

// Server answers over HTTP. Listen, Serve and Shutdown are called in this order.
type Server struct {
	http     http.Server
	listener net.Listener
	open     sync.WaitGroup // connections
}

// NewServer makes a Server that answers with the pages. It does no I/O.
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

// connState counts the connections. StateNew is told by Serve's goroutine, the others by that of the connection as it ends.
func (s *Server) connState(_ net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		s.open.Add(1)
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

// Addr returns the address that is listened on. Listen must have succeeded.
func (s *Server) Addr() net.Addr { return s.listener.Addr() }

// Serve answers until Shutdown; it returns nil then.
func (s *Server) Serve() error {
	if err := s.http.Serve(s.listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("http: %w", err)
	}
	return nil
}

// Shutdown stops listening, lets answers end until ctx is done, and closes what is left. When it returns, and Serve has, no
// goroutine of the Server is left.
func (s *Server) Shutdown(ctx context.Context) {
	if err := s.http.Shutdown(ctx); err != nil {
		_ = s.http.Close() // nothing more can be done
	}
	_ = s.listener.Close() // also if Serve was never called
	s.open.Wait()
}

// limited accepts a number of connections at one time.
type limited struct {
	net.Listener
	places chan struct{} // holds one for each open connection
	closed chan struct{}
	once   sync.Once
}

func newLimited(l net.Listener, n int) *limited {
	return &limited{Listener: l, places: make(chan struct{}, n), closed: make(chan struct{})}
}

func (l *limited) Accept() (net.Conn, error) {
	select {
	case l.places <- struct{}{}:
	case <-l.closed:
		return nil, net.ErrClosed
	}
	c, err := l.Listener.Accept()
	if err != nil {
		<-l.places
		return nil, err
	}
	return &limitedConn{Conn: c, places: l.places}, nil
}

func (l *limited) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

type limitedConn struct {
	net.Conn
	places chan struct{}
	once   sync.Once
}

func (c *limitedConn) Close() error {
	err := c.Conn.Close()
	c.once.Do(func() { <-c.places })
	return err
}
