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
	"seqproxy/proxy/keys"
	"seqproxy/proxy/kill"
	"seqproxy/proxy/login"
	"seqproxy/proxy/plan"
	"seqproxy/proxy/shown"
	"seqproxy/proxy/stats"
	"seqproxy/proxy/ticket"
	"seqproxy/sequence"
	"seqproxy/statement"
)

// UnknownSequence says what becomes of a NEXTVAL of a name that is not served.
type UnknownSequence = plan.Unknown

// The policies for unknown names.
const (
	UnknownError  = plan.UnknownError
	UnknownCreate = plan.UnknownCreate
	UnknownRelay  = plan.UnknownRelay
)

// sequencer is where keys come from, by what each part of a session sees of it.
// *sequence.Sequences implements it.
type sequencer interface {
	keys.Sequences
	keys.Names
	ticket.Sequences
	shown.Sequences
	sequenceNames
	sequenceSteps
	sequenceSetter
	columnOwners
	// Schema is the schema of the sequence table.
	Schema() string
}

// sequenceNames is what planning has to know of names.
type sequenceNames interface {
	// Exists says whether a sequence of that name is served.
	Exists(ctx context.Context, name []byte) (bool, error)
	// Same says whether two names are spellings of one sequence.
	Same(ctx context.Context, a, b []byte) (bool, error)
	// FormOf says what the keys of a sequence are.
	FormOf(ctx context.Context, name []byte) (sequence.Form, error)
	// InUTF8 returns a name that is in another character set of MySQL's; sequence.ErrNoText
	// says that it is no text.
	InUTF8(ctx context.Context, charset string, name []byte) ([]byte, error)
}

// sequenceSteps tells how far apart numbers are that applications count themselves.
type sequenceSteps interface {
	// Stride is how far apart the numbers of one sequence server are, where several divide the
	// numbers in steps; else 1. It does no I/O.
	Stride() uint64
	// Divided says whether several sequence servers divide the numbers, and by multiples of how
	// many others may move a row of theirs; 1: by none. It asks them.
	Divided(ctx context.Context) (several bool, multiple uint64, err error)
}

// sequenceSetter sets sequences on.
type sequenceSetter interface {
	// Identify returns what tells a sequence from others, however it is spelled.
	Identify(ctx context.Context, name []byte) (sequence.Identity, error)
	// SetValue has a sequence go on behind n, or at n if that is not used; ok is false if it
	// is beyond that already.
	SetValue(ctx context.Context, name []byte, n uint64, used bool) (value uint64, ok bool, err error)
}

// columnOwners tells which columns are filled from sequences.
type columnOwners interface {
	// Owners returns the columns that own sequences, without I/O; nil if they are not
	// known. LoadOwners waits until they are.
	Owners() *sequence.Owners
	LoadOwners(ctx context.Context) (*sequence.Owners, error)
}

// administrator answers statements about sequences as things (CREATE SEQUENCE, SHOW
// SEQUENCES, ...). *admin.Sequences implements it.
type administrator interface {
	// Execute runs an analysed statement of such a kind for a caller.
	Execute(ctx context.Context, st *statement.Statement, by Caller) (*protocol.Table, error)
	// Columns returns the columns of the answer to such a statement.
	Columns(st *statement.Statement) []protocol.Column
}

// Options is what a Server needs. Users, Shards, Sequences and Admin must be set.
type Options struct {
	Shards *backend.Shards
	KeyOptions
	AccountOptions
	TransportOptions
	LoginOptions
	StatementOptions

	// Version is the proxy's own, which servers are told; "" leaves it out.
	Version string

	Logger *zap.Logger
}

// KeyOptions say where keys come from, and where they go.
type KeyOptions struct {
	Sequences sequencer
	Admin     administrator
	Unknown   UnknownSequence
	// Tickets are the tables whose ticket idioms are answered here.
	Tickets []TicketTable
	// Bindings are columns that are filled from sequences.
	Bindings []Binding
	// MultiRowFirst fills in several rows also with keys that are not a step apart: the insert id
	// tells the first one's alone.
	MultiRowFirst bool
	// LastInsertIDExact brings a number given by a SELECT of ours to the server
	// before every statement, for triggers and views that read it.
	LastInsertIDExact bool
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

// StatementOptions bound statements.
type StatementOptions struct {
	// PauseTimeout is how long a command waits for a shard that is paused.
	PauseTimeout time.Duration
	WriteTimeout time.Duration // how long a client may leave an answer unread
	// SlowStatement is how long a statement takes at least that is logged for it; 0: none is.
	SlowStatement time.Duration
	MaxStatement  int // bytes up to which a statement is held and analysed
	// StatementMemory is how many bytes statements above 64 KiB may take in all sessions; others
	// wait. 0: any number.
	StatementMemory int64
}

// Server accepts clients and runs their sessions.
type Server struct {
	shared
	instance kill.Instance

	serving   atomic.Bool   // clients are accepted since Serve
	announced atomic.Bool   // it is about to stop
	closed    atomic.Bool   // no client is accepted any more; changed under mu
	draining  atomic.Bool   // sessions of clients end when they can
	adminEnds atomic.Bool   // the same, both, at the admin address; changed under mu
	waiting   chan *session // to goroutines that wait for a client
	watch     *kill.Watch

	login login.Gate

	mu       sync.Mutex // guards what follows
	totals   stats.Totals
	sessions map[uint32]*session
	atAdmin  int    // of the sessions
	serial   uint64 // of the last session

	pausing sync.Mutex // held while shards are paused or resumed, or others take their place

	awaitEnd sync.Once
	ended    chan struct{} // closed when all sessions have ended, once that is waited for

	clients sync.WaitGroup // the sessions but for those at the admin address
	wg      sync.WaitGroup // of the sessions, and of the goroutines that serve them
}

// cachedTexts is how many texts are remembered with what they ask: 8 KiB each at most.
const cachedTexts = 1024

// New makes a Server. It does no I/O.
func New(opts Options) *Server {
	s := &Server{
		sessions: make(map[uint32]*session),
		instance: kill.NewInstance(),
		ended:    make(chan struct{}), waiting: make(chan *session),
		shared: shared{stopping: make(chan struct{}), killer: kill.New(opts.Shards, opts.Logger), log: opts.Logger, receivePeriod: receivePeriod, counters: stats.Counters{Since: time.Now()}, texts: statement.NewCache(cachedTexts)},
	}
	s.watch = kill.NewWatch(s, opts.Logger, s.stopping)
	s.login = login.Gate{Failed: login.NewFailures(), Attributes: login.ProxyAttributes(opts.Version), Stopping: s.stopping, Log: opts.Logger}
	s.settings.Store(newSettings(opts, opts.Shards.Routes(), nil))
	return s
}

// Listen opens the listening socket, "host:port".
func (s *Server) Listen(address string) error {
	config := listenConfig()
	l, err := config.Listen(context.Background(), "tcp", address)
	if err != nil {
		return err
	}
	s.listener = l
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
		s.log.Warn("client not accepted", logfield.Err(err))
		time.Sleep(delay)
		delay = min(2*delay, maxDelay)
	}
}

// Accepting says whether clients are accepted now.
func (s *Server) Accepting() bool { return s.serving.Load() && !s.closed.Load() }

// start runs a client's session in a goroutine of its own, or refuses it.
func (s *Server) start(ctx context.Context, nc net.Conn, atAdmin bool) {
	set := s.settings.Load()
	conn, err := protocol.NewConn(nc, set.WriteTimeout, clientAhead)
	if err != nil {
		s.counters.Ends[stats.EndError].Add(1)
		s.log.Error("client connection unusable", logfield.Err(err))
		return
	}
	sess := &session{srv: s, client: client{Conn: conn}}
	sess.login = login.New(sess, conn, &s.login, atAdmin)
	sess.connect(ctx, &s.shared, set)
	sess.numbers.For(sess.ctx, &sess.planning.facts)
	sess.kills = kill.By(sess.ctx, sess, s, s.killer)
	sess.numbers.From(set.Sequences, set.Sequences, set.MultiRowFirst)
	sess.connected = stats.Clock()
	sess.tally = stats.NewTally(&sess.mu, sess.connected)
	if !s.register(sess) {
		s.countRefused(atAdmin)
		_ = conn.SetDeadline(time.Now().Add(time.Second))
		if s.closedTo(atAdmin) {
			_ = login.RefuseShutdown(conn)
		} else {
			_ = protocol.RefuseConnection(conn, mysql.ER_CON_COUNT_ERROR, "Too many connections")
		}
		sess.cancel()
		conn.Close()
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
func (s *Server) work(sess *session) {
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
		case <-s.stopping:
			return
		}
	}
}

// serve runs a session to its end. A fault of ours in one must not end the others.
func (s *Server) serve(sess *session) {
	defer s.unregister(sess)
	defer func() {
		if fault := recover(); fault != nil {
			s.counters.Ends[stats.EndError].Add(1)
			s.log.Error("session ended by a fault of the proxy",
				logfield.Conn(sess.id), zap.Any("fault", fault), zap.Stack("stack"))
		}
	}()
	sess.serve()
}

// workerPatience is how long a goroutine waits for another client.
const workerPatience = 100 * time.Millisecond

// clientAhead bounds what is taken in of a client that sends statements but does
// not read the answers.
const clientAhead = 4 << 20

// register gives a session its connection id. It fails when there are too many
// sessions, or the server is shutting down.
func (s *Server) register(sess *session) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closedTo(sess.login.AtAdmin) || s.fullLocked(sess) {
		return false
	}
	if sess.login.AtAdmin {
		s.atAdmin++
	}
	for {
		s.serial++
		id := s.instance.ID(s.serial)
		if _, taken := s.sessions[id]; !taken {
			sess.id, sess.serial = id, s.serial
			s.sessions[id] = sess
			s.wg.Add(1) // here: Shutdown, once it has seen the sessions, waits for all of them
			if !sess.login.AtAdmin {
				s.clients.Add(1)
			}
			break
		}
	}
	s.watch.Began(s.serial)
	return true
}

// MaxConnections is how many sessions there may be, beside those at the admin address.
func (s *Server) MaxConnections() int { return s.settings.Load().MaxConnections }

// StatementMemory is how much memory large statements may take, and take now, how many sessions
// wait for some, and how many have since the start.
func (s *Server) StatementMemory() (size, used, waiting, waits uint64) {
	m := s.settings.Load().memory
	return uint64(m.size), uint64(m.used.Load()), uint64(m.waiting.Load()), s.counters.MemoryWaits.Load()
}

// fullLocked says whether there is no room for a further session.
func (s *Server) fullLocked(sess *session) bool {
	if sess.login.AtAdmin {
		return s.atAdmin >= maxAtAdmin
	}
	return len(s.sessions)-s.atAdmin >= sess.set.MaxConnections
}

// byConnectionID returns the session that an id was given to, nil if it has ended.
func (s *Server) byConnectionID(id uint32) *session {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sessions[id]
}

func (s *Server) unregister(sess *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sess.reportEnd()
	delete(s.sessions, sess.id)
	if sess.login.AtAdmin {
		s.atAdmin--
	} else {
		s.clients.Done()
	}
	sess.login.Uncount()
	s.wg.Done()
}

// stopWatching ends what runs beside the sessions, all of which have ended.
func (s *Server) stopWatching(ctx context.Context) {
	s.watch.Close()
	s.killer.Close(ctx)
}

// eachAt calls f with every session at the admin address, or with every other.
func (s *Server) eachAt(admin bool, f func(*session)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, sess := range s.sessions {
		if sess.login.AtAdmin == admin {
			f(sess)
		}
	}
}

// Sessions returns how many clients are connected.
func (s *Server) Sessions() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.sessions)
}
