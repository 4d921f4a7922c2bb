package sequence

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"

	gomysql "github.com/go-mysql-org/go-mysql/mysql"
	"github.com/go-sql-driver/mysql"
	"go.uber.org/zap"

	"seqproxy/internal/await"
	"seqproxy/internal/logfield"
	"seqproxy/internal/rawio"
	"seqproxy/internal/tlsfiles"
)

// Node is one address of a sequence server that is a group: a primary and its replicas, a Galera
// cluster, or a replication group.
type Node struct {
	Network string // "tcp" (also if empty) or "unix"
	Addr    string // "10.0.0.5:3306", or a socket's path
}

// node is the way to one of a server's nodes.
type node struct {
	addr   string
	dial   *mysql.Config // all but the account
	login  *login
	timing *linkTiming
	last   atomic.Pointer[way] // see way

	// of a node of a cluster: the settings by which it does not flush at commit; nil: not asked yet
	unflushed atomic.Pointer[string]

	open sync.Once // as with link.open
	db   *sql.DB   // for looking at it, whether or not it is the one that is written to
}

// nodes are those of one sequence server. Numbers are reserved on the chosen one.
type nodes struct {
	all     []*node
	choose  await.Lock             // held while one is chosen
	current atomic.Pointer[choice] // nil: none was found yet, or it failed
	last    atomic.Pointer[choice] // the one before, for the log
	changes atomic.Uint64          // see Changes
}

// choice is a node that can be written to, as it was found. It is never changed.
type choice struct {
	*node
	identity string // what the server calls itself for life
	self     string // the expression that evaluates to holder
	// the cluster that it belongs to, which commits on a majority; empty: replication may lose what
	// was committed
	cluster string
	holder  string // who gives numbers by this node; see standing.holder
}

// holderSQL is the expression for the holder. A server that is no member of a cluster evaluates
// itself who it is. To read the configuration of a cluster in a statement that writes would lock
// it. So leadsTo reads that afterwards.
func (c *choice) holderSQL() string {
	if c.cluster != "" {
		return literal(c.holder)
	}
	return c.self
}

// newNode does no I/O. cfg has what is the same for all nodes.
func newNode(cfg *mysql.Config, network, addr string, login *login, timing *linkTiming) *node {
	cfg = cfg.Clone()
	cfg.Net, cfg.Addr = network, addr
	return &node{addr: addr, dial: cfg, login: login, timing: timing}
}

// connect dials and logs in, with the account, the certificates and keys of this moment.
func (n *node) connect(ctx context.Context) (*line, error) {
	way := n.way()
	cfg := n.dial.Clone()
	cfg.User, cfg.Passwd = way.account.User, way.account.Password
	security := way.target.Security()
	cfg.TLS, cfg.AllowFallbackToPlaintext = security.TLS, security.Optional
	if security.PublicKey != nil {
		// The driver takes keys by name only, until it has a connector. This name is nobody
		// else's meanwhile.
		cfg.ServerPubKey = fmt.Sprintf("seqproxy %p", cfg)
		mysql.RegisterServerPubKey(cfg.ServerPubKey, security.PublicKey)
		defer mysql.DeregisterServerPubKey(cfg.ServerPubKey)
	}
	var socket *rawio.Conn
	cfg.DialFunc = func(ctx context.Context, network, addr string) (_ net.Conn, err error) {
		if socket, err = rawio.Dial(ctx, new(net.Dialer), network, addr); err != nil {
			return nil, err // not a nil *rawio.Conn
		}
		return socket, nil
	}
	dialer, err := mysql.NewConnector(cfg)
	if err != nil {
		return nil, err
	}
	raw, err := dialer.Connect(ctx)
	switch {
	case errors.Is(err, mysql.ErrNoTLS):
		return nil, fmt.Errorf("%w (%s)", err, tlsfiles.NotOffered)
	case err != nil:
		return nil, tlsfiles.Explain(err)
	}
	return &line{driven: raw.(driven), socket: socket, node: n, account: way.account}, nil
}

// Connect implements [driver.Connector] for looking at the node.
func (n *node) Connect(ctx context.Context) (driver.Conn, error) {
	l, err := n.connect(ctx)
	if err != nil {
		return nil, err // not a nil *line
	}
	// Above all each read is to see what is there by then, and not what was there at the first one.
	if err := (rawConn{l}).setUp(ctx, n.timing.silence); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// Driver implements [driver.Connector].
func (n *node) Driver() driver.Driver { return mysql.MySQLDriver{} }

// pool returns connections for looking at the node; nil after close.
func (n *node) pool() *sql.DB {
	n.open.Do(func() {
		n.db = sql.OpenDB(n)
		n.db.SetMaxOpenConns(lookers)
		n.db.SetMaxIdleConns(idleLookers)
		n.db.SetConnMaxLifetime(n.timing.lookLife)
	})
	return n.db
}

func (n *node) close() error {
	n.open.Do(func() {}) // no pool from now on
	if n.db == nil {
		return nil
	}
	return n.db.Close()
}

// Nodes are those of the server: its own address, or all of a group. They are not to be changed.
func (l *link) Nodes() []*node { return l.nodes.all }

// Current is the node that numbers are reserved on; nil while none was found.
func (l *link) Current() *choice { return l.nodes.current.Load() }

// Changes rises when another node is chosen than the one before; what is remembered of a node counts
// under one of them.
func (l *link) Changes() uint64 { return l.nodes.changes.Load() }

// grouped reports whether the server has several nodes.
func (l *link) grouped() bool { return len(l.nodes.all) > 1 }

// clustered reports whether several of its nodes can be written to, which see what is committed on
// the others a little later.
func (l *link) clustered() bool {
	last := l.nodes.last.Load() // while another one is looked for, too
	return last != nil && last.cluster != ""
}

// at is how findings call the node that is looked at.
func (l *link) at() string {
	if now := l.nodes.current.Load(); now != nil {
		return now.addr
	}
	return l.name()
}

// reach connects to the node that numbers are reserved on and makes sure that it is fit for that.
func (l *link) reach(ctx context.Context) (driver.Conn, error) {
	if !l.grouped() {
		return l.open1(ctx, l.nodes.all[0])
	}
	now := l.nodes.current.Load()
	if now != nil {
		raw, err := l.openChosen(ctx, now)
		if err == nil || ctx.Err() != nil {
			return raw, err
		}
	}
	if err := l.nodes.choose.Acquire(ctx); err != nil {
		return nil, fmt.Errorf("wait for the choice of the node that can be written to: %w", err)
	}
	defer l.nodes.choose.Release()
	if next := l.nodes.current.Load(); next != nil && next != now { // somebody else was faster
		return l.openChosen(ctx, next)
	}
	next, err := l.findWritable(ctx)
	if err != nil {
		l.nodes.current.Store(nil)
		return nil, err
	}
	l.settle(next)
	return l.openChosen(ctx, next)
}

// openChosen connects to the node that was chosen, if that is what it was. A cluster may have
// crashed as a whole and begun again from an older state, which is another configuration.
func (l *link) openChosen(ctx context.Context, now *choice) (driver.Conn, error) {
	raw, err := l.open1(ctx, now.node)
	if err != nil || now.cluster == "" {
		return raw, err
	}
	rows, err := (rawConn{raw}).query(ctx, "SELECT "+now.self)
	if err == nil {
		err = now.isStill(rows[0][0])
	}
	if err != nil {
		return nil, errors.Join(err, raw.Close())
	}
	return raw, nil
}

// open1 connects to one node and prepares the connection.
func (l *link) open1(ctx context.Context, n *node) (driver.Conn, error) {
	raw, err := n.connect(ctx)
	if err != nil {
		return nil, err
	}
	if l.grouped() {
		raw.nodes = &l.nodes
	}
	if err := l.prepare(ctx, raw); err != nil {
		return nil, errors.Join(err, raw.Close())
	}
	return raw, nil
}

// settle has numbers reserved on a node from now on.
func (l *link) settle(next *choice) {
	before := l.nodes.last.Swap(next)
	l.nodes.current.Store(next)
	if before != nil && before.identity == next.identity && before.addr == next.addr && before.holder == next.holder {
		return
	}
	fields := []zap.Field{logfield.Node(next.addr), zap.String("identity", next.identity)}
	if next.cluster != "" {
		fields = append(fields, zap.String("cluster", next.cluster))
	}
	if before == nil {
		l.log.Info("sequence node chosen", fields...)
		return
	}
	l.nodes.changes.Add(1)
	l.log.Warn("sequence node changed", append(fields, zap.String("before", before.addr))...)
	// Connections to the old one end now, or when they would be used next.
	l.db.SetMaxIdleConns(0)
	l.db.SetMaxIdleConns(l.opts.MaxConns)
}

// findWritable looks at all nodes and returns the one to reserve numbers on.
func (l *link) findWritable(ctx context.Context) (*choice, error) {
	all := l.surveyUntil(ctx, func(heard []standing) bool { return isMajority(heard, len(l.nodes.all)) && l.flushes(heard) == nil })
	return l.fitting(all)
}

// fitting is the node to reserve numbers on, if the cluster that it is of keeps what it commits.
func (l *link) fitting(all []standing) (*choice, error) {
	next, err := l.chosen(all)
	if err == nil && next.cluster != "" {
		err = l.flushes(all)
	}
	if err != nil {
		return nil, err
	}
	return next, nil
}

// chosen is the node to reserve numbers on, by what all of them say.
func (l *link) chosen(all []standing) (*choice, error) {
	var writable []*standing
	var why []string
	for i := range all {
		s := &all[i]
		switch reason := s.unwritable(); {
		case reason == "":
			writable = append(writable, s)
		default:
			why = append(why, s.node.addr+": "+reason)
		}
	}
	if len(writable) == 0 {
		return nil, fmt.Errorf("none of its nodes can be written to: %s", strings.Join(why, "; "))
	}
	for i, s := range writable {
		for _, other := range writable[:i] {
			if err := l.contradiction(other, s); err != nil {
				return nil, err
			}
		}
	}
	best := writable[0]
	if best.cluster == "" && best.source != "" {
		return nil, &UnfitError{
			Server:  best.node.addr,
			Finding: fmt.Sprintf("it can be written to and replicates from %s, whose changes would overwrite the counters", best.source),
			Remedy:  "STOP " + best.replica + " there, or make it read only if it is not the primary",
		}
	}
	now := l.nodes.last.Load()
	for _, s := range writable {
		// all proxies write to the first of a cluster, which keeps conflicts away, and stay where
		// they are
		stays := now != nil && now.node == s.node
		if ours, others := s.rank(l.opts.Relaxed), best.rank(l.opts.Relaxed); ours < others || ours == others && stays {
			best = s
		}
	}
	return best.choice(), nil
}

// contradiction is why two nodes that can both be written to may not be so at once, nil if they
// may.
func (l *link) contradiction(a, b *standing) error {
	switch {
	case a.place == b.place, a.together(b):
		return nil // one server by two addresses, or members of one cluster
	case a.group != "" && a.group == b.group:
		return fmt.Errorf("%s and %s have not agreed yet on who is in their cluster: %s, and %s. While a node comes or goes that takes a moment; "+
			"if two parts of it were both made primary by hand, stop one of them: each would give the numbers of the other",
			a.node.addr, b.node.addr, a.stands(), b.stands())
	}
	return &UnfitError{
		Server:  l.name(),
		Finding: fmt.Sprintf("%s and %s can both be written to and are no cluster: each would give the numbers of the other", a.node.addr, b.node.addr),
		Remedy:  "SET GLOBAL read_only = 1 on the one that is not the primary",
	}
}

// isMoved: the node that numbers were reserved on cannot be written to any more.
func (l *link) isMoved(err error) bool {
	return l.grouped() && (errors.Is(err, errMoved) || errors.Is(err, errUnchosen) || errors.Is(err, driver.ErrBadConn) || hasCode(err, wsrepNotReady, gomysql.ER_OPTION_PREVENTS_STATEMENT, gomysql.ER_READ_ONLY_MODE))
}

// writable makes sure that a connection leads to the node that was chosen, and that this is not
// read only by now: an account with SUPER writes there all the same.
func (l *link) writable(ctx context.Context, conn *sql.Conn) error {
	if !l.grouped() {
		return nil
	}
	var readOnly string
	if err := conn.QueryRowContext(ctx, "SELECT @@global.read_only").Scan(&readOnly); err != nil {
		return err
	}
	if !isOff(readOnly) {
		return l.readOnly()
	}
	err := l.leadsTo(ctx, conn, l.nodes.current.Load())
	if errors.Is(err, driver.ErrBadConn) {
		_ = conn.Raw(func(any) error { return driver.ErrBadConn }) // nobody gets it again
	}
	return err
}

// leadsTo makes sure that a connection leads to the node that was chosen, and not to one before.
// That may live on alone, and what is written there is nothing that the new one knows. Of a cluster
// any node will do that is in the configuration of the choice: what is committed before that is
// said, was committed in it. The error is a driver.ErrBadConn.
func (l *link) leadsTo(ctx context.Context, on querier, now *choice) error {
	if now == nil {
		return fmt.Errorf("%w: %w", errUnchosen, driver.ErrBadConn)
	}
	var who sql.NullString
	if err := on.QueryRowContext(ctx, "SELECT "+now.self).Scan(&who); err != nil {
		return err
	}
	return now.isStill(who.String)
}

// isStill is the error for a server that is not the one that was chosen, but calls itself who.
func (c *choice) isStill(who string) error {
	switch {
	case who == c.holder:
		return nil
	case c.cluster != "":
		return fmt.Errorf("%s is in %q by now, and not in %s: %w", c.addr, who, c.holder, driver.ErrBadConn)
	}
	return fmt.Errorf("a connection leads to %s still, and not to %s at %s: %w", who, c.holder, c.addr, driver.ErrBadConn)
}

// Errors of one attempt in a group. The next one is on another node, if there is one.
var (
	errMoved    = errors.New("the node is read only")
	errUnchosen = errors.New("the node to write to is being looked for")
)

// wsrepNotReady is what a Galera node answers that has lost its cluster.
const wsrepNotReady = gomysql.ER_UNKNOWN_COM_ERROR

// moved has the writable node looked for again.
func (l *link) moved() {
	l.nodes.current.Store(nil)
	l.db.SetMaxIdleConns(0)
	l.db.SetMaxIdleConns(l.opts.MaxConns)
}
