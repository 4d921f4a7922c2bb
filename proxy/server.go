package proxy

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-mysql-org/go-mysql/mysql"
	"go.uber.org/zap"

	"seqproxy/backend"
	"seqproxy/internal/logfield"
	"seqproxy/protocol"
	"seqproxy/proxy/hangup"
	"seqproxy/proxy/kill"
	"seqproxy/proxy/login"
	"seqproxy/proxy/session"
	"seqproxy/proxy/stats"
)

// Options is what a Server needs. Users, Shards, Sequences and Admin must be set.
type Options struct {
	Shards *backend.Shards
	KeyOptions
	AccountOptions
	TransportOptions
	LoginOptions
	StatementOptions

	// Version is the proxy's own, for servers; "" leaves it out.
	Version string

	Logger *zap.Logger
}

// AccountOptions say who may log in, and what he may do.
type AccountOptions struct {
	Users []User
	// RelayLogins has users that are not among Users checked by the default shard's
	// server; of them Admins may change sequences, and Monitors see what admins see.
	RelayLogins bool
	Admins      []string
	Monitors    []string
	// AdminAddressOnly has SEQPROXY, SHOW SEQPROXY and EXPLAIN FORMAT=ROUTE answered at the admin
	// address alone.
	AdminAddressOnly bool
}

// TransportOptions are about the clients' connections.
type TransportOptions struct {
	// ProxyProtocolFrom are the addresses from which a connection must begin with a
	// PROXY header, of IPv4 not written as IPv6.
	ProxyProtocolFrom []netip.Prefix

	Compression bool // offered to clients, as far as the servers offer it

	TLS        *tls.Config // nil: TLS is not offered
	RequireTLS bool        // clients without it get 3159
	RSA        *protocol.RSAKeys
}

// LoginOptions bound sessions and logins.
type LoginOptions struct {
	MaxConnections int // sessions at the same time; the next gets 1040
	// MaxUserConnections is how many sessions of one user there may be; 0: any number.
	MaxUserConnections int
	// MaxLogins is how many clients log in at the same time; others wait. 0: any number.
	MaxLogins    int
	LoginTimeout time.Duration // bounds a login, with such a wait
	// FailedLogins are how many an address may make before its logins are delayed, by
	// FailedLoginDelay at most; 0: any number. Those of FailedLoginExempt never are.
	FailedLogins      int
	FailedLoginDelay  time.Duration
	FailedLoginExempt []netip.Prefix
}

// Server accepts clients and runs their sessions.
type Server struct {
	shared   *session.Shared
	options  atomic.Pointer[Options] // those of now
	instance kill.Instance

	listener      net.Listener
	adminListener net.Listener // nil: there is no admin address

	serving   atomic.Bool           // clients are accepted since Serve
	announced atomic.Bool           // it is about to stop
	closed    atomic.Bool           // no client is accepted any more; changed under shared.Mu
	waiting   chan *session.Session // to goroutines that wait for a client
	watch     *hangup.Watch

	// shared.Mu guards what follows.
	sessions map[uint32]*session.Session
	atAdmin  int    // of the sessions
	serial   uint64 // of the last session

	pausing sync.Mutex // locked while shards are paused or resumed, or others take their place

	awaitEnd sync.Once
	ended    chan struct{} // closed when all sessions have ended, once that is waited for

	clients sync.WaitGroup // the sessions but for those at the admin address
	wg      sync.WaitGroup // of the sessions, and of the goroutines that serve them
}

// New makes a Server. It does no I/O.
func New(opts Options) *Server {
	s := &Server{
		shared:   session.NewShared(kill.New(opts.Shards, opts.Logger), opts.Version, opts.Logger),
		sessions: make(map[uint32]*session.Session), instance: kill.NewInstance(),
		ended: make(chan struct{}), waiting: make(chan *session.Session),
	}
	s.watch = hangup.NewWatch(s, opts.Logger, s.shared.Stopping)
	s.use(opts, opts.Shards.Routes())
	return s
}

// Listen opens the listening socket, "host:port".
func (s *Server) Listen(address string) error {
	config := listenConfig()
	l, err := config.Listen(context.Background(), "tcp", address)
	if err != nil {
		return err
	}
	s.listener, s.shared.Address = l, l.Addr()
	return nil
}

// Addr returns the address that is listened on. Listen must have succeeded.
func (s *Server) Addr() net.Addr { return s.listener.Addr() }

// Serve accepts clients until Shutdown; it returns nil then. Errors that pass,
// such as too many open files, are waited out.
func (s *Server) Serve(ctx context.Context) error {
	var atAdmin sync.WaitGroup
	var adminErr error
	if s.adminListener != nil {
		atAdmin.Go(func() { adminErr = s.accept(ctx, s.adminListener, true) })
	}
	s.serving.Store(true)
	err := s.accept(ctx, s.listener, false)
	s.serving.Store(false)
	if err != nil && s.adminListener != nil {
		s.adminListener.Close()
	}
	atAdmin.Wait()
	return errors.Join(err, adminErr)
}

// accept is Serve for one address.
func (s *Server) accept(ctx context.Context, l net.Listener, atAdmin bool) error {
	const firstDelay, maxDelay = 5 * time.Millisecond, time.Second
	delay := firstDelay
	for {
		nc, err := l.Accept()
		if err == nil {
			delay = firstDelay
			s.start(ctx, nc, atAdmin)
			continue
		}
		if s.closedTo(atAdmin) {
			return nil
		}
		if errors.Is(err, net.ErrClosed) {
			return fmt.Errorf("accept clients: %w", err)
		}
		s.shared.Log.Warn("client not accepted", logfield.Err(err))
		time.Sleep(delay)
		delay = min(2*delay, maxDelay)
	}
}

// Accepting reports whether clients are accepted now.
func (s *Server) Accepting() bool { return s.serving.Load() && !s.closed.Load() }

// start runs a client's session in a goroutine of its own, or refuses it.
func (s *Server) start(ctx context.Context, nc net.Conn, atAdmin bool) {
	set := s.shared.Settings.Load()
	conn, err := protocol.NewConn(nc, set.WriteTimeout, clientAhead)
	if err != nil {
		s.shared.Counters.Ends[stats.EndError].Add(1)
		s.shared.Log.Error("client connection unusable", logfield.Err(err))
		return
	}
	sess := session.New(ctx, s, s.shared, conn, atAdmin)
	if !s.register(sess) {
		s.countRefused(atAdmin)
		_ = conn.SetDeadline(time.Now().Add(time.Second))
		if s.closedTo(atAdmin) {
			_ = login.RefuseShutdown(conn)
		} else {
			_ = protocol.RefuseConnection(conn, mysql.ER_CON_COUNT_ERROR, "Too many connections")
		}
		sess.Drop()
		return
	}
	select {
	case s.waiting <- sess: // to a goroutine that has served before
	default:
		s.wg.Go(func() { s.work(sess) })
	}
}

// work serves one session after another. A goroutine is kept a moment for the next
// client, because its stack has grown to what a login needs: growing it anew is a
// twentieth of what connecting costs.
func (s *Server) work(sess *session.Session) {
	var idle *time.Timer
	for {
		s.serve(sess)
		if idle == nil { // not before: most sessions are long, and each would hold one
			idle = time.NewTimer(workerPatience)
			defer idle.Stop()
		} else {
			idle.Reset(workerPatience)
		}
		select {
		case sess = <-s.waiting:
		case <-idle.C:
			return
		case <-s.shared.Stopping:
			return
		}
	}
}

// serve runs a session to its end. A fault of ours in one must not end the others.
func (s *Server) serve(sess *session.Session) {
	defer s.unregister(sess)
	defer func() {
		if fault := recover(); fault != nil {
			s.shared.Counters.Ends[stats.EndError].Add(1)
			s.shared.Log.Error("session ended by a fault of the proxy",
				logfield.Conn(sess.ID()), zap.Any("fault", fault), zap.Stack("stack"))
		}
	}()
	sess.Serve()
}

// workerPatience is how long a goroutine waits for another client.
const workerPatience = 100 * time.Millisecond

// clientAhead bounds what is taken in of a client that sends statements but does
// not read the answers.
const clientAhead = 4 << 20

// MaxConnections is how many sessions there may be, without those at the admin address.
func (s *Server) MaxConnections() int { return s.options.Load().MaxConnections }

// StatementMemory returns how much memory large statements may use, how much they use, how many
// sessions wait for some, and how many waits there were since the start.
func (s *Server) StatementMemory() (size, used, waiting, waits uint64) {
	size, used, waiting = s.shared.Settings.Load().MemoryInUse()
	return size, used, waiting, s.shared.Counters.MemoryWaits.Load()
}

// stopWatching ends what watches over sessions. All of them have ended.
func (s *Server) stopWatching(ctx context.Context) {
	s.watch.Close()
	s.shared.Killer.Close(ctx)
}
