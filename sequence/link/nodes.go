package link

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

// Address is one address of a sequence server that is a group: a primary and its replicas, a Galera
// cluster, or a replication group.
type Address struct {
	Network string // "tcp" (also if empty) or "unix"
	Addr    string // "10.0.0.5:3306", or a socket's path
}

// Node is the way to one of a server's nodes.
type Node struct {
	Addr   string        // immutable
	dial   *mysql.Config // all but the account
	login  *Login
	timing *Timing
	last   atomic.Pointer[way] // remembers its TLS sessions

	// The settings that keep the node from flushing at commit; nil: not asked yet.
	unflushed atomic.Pointer[string]

	open sync.Once // as Link.open
	db   *sql.DB   // to look at it, writable or not
}

// nodes are the nodes of one sequence server. Numbers are reserved on the chosen one.
type nodes struct {
	all     []*Node
	choose  await.Lock             // locked while one is chosen
	current atomic.Pointer[Choice] // nil: none was found yet, or it failed
	last    atomic.Pointer[Choice] // the previous one, for the log
	changes atomic.Uint64          // see Changes
}

// Choice is a writable node as it was found. It is immutable.
type Choice struct {
	*Node
	Identity string // the server's id for life
	Self     string // the expression that evaluates to Holder
	// The cluster that it belongs to, which commits on a majority. Empty: replication may lose
	// commits.
	Cluster string
	Holder  string // gives the numbers of this node: in a cluster its configuration, else the server
}

// HolderSQL returns the expression for the holder. A server outside a cluster evaluates it itself.
// To read the configuration of a cluster in a statement that writes would lock it, so LeadsTo reads
// it afterwards.
func (c *Choice) HolderSQL() string {
	if c.Cluster != "" {
		return Literal(c.Holder)
	}
	return c.Self
}

// newNode does no I/O. cfg has what is equal for all nodes.
func newNode(cfg *mysql.Config, network, addr string, login *Login, timing *Timing) *Node {
	cfg = cfg.Clone()
	cfg.Net, cfg.Addr = network, addr
	return &Node{Addr: addr, dial: cfg, login: login, timing: timing}
}

// connect dials and logs in, with the present account, certificates and keys.
func (n *Node) connect(ctx context.Context) (*Conn, error) {
	way := n.way()
	cfg := n.dial.Clone()
	cfg.User, cfg.Passwd = way.account.User, way.account.Password
	security := way.target.Security()
	cfg.TLS, cfg.AllowFallbackToPlaintext = security.TLS, security.Optional
	if security.PublicKey != nil {
		// The driver takes keys by name only, until it has a connector. This name is unique
		// meanwhile.
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
	return &Conn{DriverConn: raw.(DriverConn), socket: socket, Node: n, account: way.account}, nil
}

// Connect implements [driver.Connector] for a look at the node.
func (n *Node) Connect(ctx context.Context) (driver.Conn, error) {
	l, err := n.connect(ctx)
	if err != nil {
		return nil, err // not a nil *Conn
	}
	// Above all, each read must see the present, not the state at the first read.
	if err := (Raw{l}).setUp(ctx, n.timing.Silence); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// Driver implements [driver.Connector].
func (n *Node) Driver() driver.Driver { return mysql.MySQLDriver{} }

// Pool returns connections to look at the node; nil after close.
func (n *Node) Pool() *sql.DB {
	n.open.Do(func() {
		n.db = sql.OpenDB(n)
		n.db.SetMaxOpenConns(lookers)
		n.db.SetMaxIdleConns(idleLookers)
		n.db.SetConnMaxLifetime(n.timing.LookLife)
	})
	return n.db
}

func (n *Node) close() error {
	n.open.Do(func() {}) // no pool from now on
	if n.db == nil {
		return nil
	}
	return n.db.Close()
}

// Nodes returns the server's own address, or all nodes of a group. The caller does not change them.
func (l *Link) Nodes() []*Node { return l.nodes.all }

// Current returns the node that numbers are reserved on; nil while there is none.
func (l *Link) Current() *Choice { return l.nodes.current.Load() }

// Changes counts changes of the chosen node. What is remembered of a node is valid under one count.
func (l *Link) Changes() uint64 { return l.nodes.changes.Load() }

// Grouped reports whether the server has several nodes.
func (l *Link) Grouped() bool { return len(l.nodes.all) > 1 }

// clustered reports whether several of its nodes are writable and see each other's commits a little
// later.
func (l *Link) clustered() bool {
	last := l.nodes.last.Load() // also while a new one is looked for
	return last != nil && last.Cluster != ""
}

// At returns the name of the node under examination, for findings.
func (l *Link) At() string {
	if now := l.nodes.current.Load(); now != nil {
		return now.Addr
	}
	return l.Name()
}

// reach connects to the chosen node and checks it.
func (l *Link) reach(ctx context.Context) (driver.Conn, error) {
	if !l.Grouped() {
		return l.openNode(ctx, l.nodes.all[0])
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
	if next := l.nodes.current.Load(); next != nil && next != now { // another caller was faster
		return l.openChosen(ctx, next)
	}
	next, err := l.findWritable(ctx)
	if err != nil {
		l.nodes.current.Store(nil)
		return nil, err
	}
	l.Settle(next)
	return l.openChosen(ctx, next)
}

// openChosen connects to the chosen node, if that is still what it was. A cluster that crashed as a
// whole may have started again from an older state, which is another configuration.
func (l *Link) openChosen(ctx context.Context, now *Choice) (driver.Conn, error) {
	raw, err := l.openNode(ctx, now.Node)
	if err != nil || now.Cluster == "" {
		return raw, err
	}
	rows, err := (Raw{raw}).Query(ctx, "SELECT "+now.Self)
	if err == nil {
		err = now.isStill(rows[0][0])
	}
	if err != nil {
		return nil, errors.Join(err, raw.Close())
	}
	return raw, nil
}

// openNode connects to one node and prepares the connection.
func (l *Link) openNode(ctx context.Context, n *Node) (driver.Conn, error) {
	raw, err := n.connect(ctx)
	if err != nil {
		return nil, err
	}
	if l.Grouped() {
		raw.nodes = &l.nodes
	}
	if err := l.prepare(ctx, raw); err != nil {
		return nil, errors.Join(err, raw.Close())
	}
	return raw, nil
}

// Settle makes next the node that numbers are reserved on.
func (l *Link) Settle(next *Choice) {
	before := l.nodes.last.Swap(next)
	l.nodes.current.Store(next)
	if before != nil && before.Identity == next.Identity && before.Addr == next.Addr && before.Holder == next.Holder {
		return
	}
	fields := []zap.Field{logfield.Node(next.Addr), zap.String("identity", next.Identity)}
	if next.Cluster != "" {
		fields = append(fields, zap.String("cluster", next.Cluster))
	}
	if before == nil {
		l.log.Info("sequence node chosen", fields...)
		return
	}
	l.nodes.changes.Add(1)
	l.log.Warn("sequence node changed", append(fields, zap.String("before", before.Addr))...)
	// Connections to the old node end now, or before their next use.
	l.db.SetMaxIdleConns(0)
	l.db.SetMaxIdleConns(l.opts.MaxConns)
}

// findWritable looks at all nodes and returns the one to reserve numbers on.
func (l *Link) findWritable(ctx context.Context) (*Choice, error) {
	all := l.surveyUntil(ctx, func(answered []Standing) bool {
		return isMajority(answered, len(l.nodes.all)) && l.flushes(answered) == nil
	})
	return l.Fitting(all)
}

// Fitting returns the node to reserve numbers on, if its cluster keeps what it commits.
func (l *Link) Fitting(all []Standing) (*Choice, error) {
	next, err := l.chosen(all)
	if err == nil && next.Cluster != "" {
		err = l.flushes(all)
	}
	if err != nil {
		return nil, err
	}
	return next, nil
}

// chosen returns the node to reserve numbers on, by what all nodes say.
func (l *Link) chosen(all []Standing) (*Choice, error) {
	var writable []*Standing
	var why []string
	for i := range all {
		s := &all[i]
		switch reason := s.unwritable(); {
		case reason == "":
			writable = append(writable, s)
		default:
			why = append(why, s.node.Addr+": "+reason)
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
			Server:  best.node.Addr,
			Finding: fmt.Sprintf("it can be written to and replicates from %s, whose changes would overwrite the counters", best.source),
			Remedy:  "STOP " + best.replica + " there, or make it read only if it is not the primary",
		}
	}
	now := l.nodes.last.Load()
	for _, s := range writable {
		// all proxies write to the first node of a cluster, which avoids conflicts, and stay where
		// they are
		stays := now != nil && now.Node == s.node
		if ours, others := s.rank(l.opts.Relaxed), best.rank(l.opts.Relaxed); ours < others || ours == others && stays {
			best = s
		}
	}
	return best.Choice(), nil
}

// contradiction returns why two nodes may not both be writable at once; nil if they may.
func (l *Link) contradiction(a, b *Standing) error {
	switch {
	case a.place == b.place, a.together(b):
		return nil // one server by two addresses, or members of one cluster
	case a.group != "" && a.group == b.group:
		return fmt.Errorf("%s and %s have not agreed yet on who is in their cluster: %s, and %s. While a node comes or goes that takes a moment; "+
			"if two parts of it were both made primary by hand, stop one of them: each would give the numbers of the other",
			a.node.Addr, b.node.Addr, a.stands(), b.stands())
	}
	return &UnfitError{
		Server:  l.Name(),
		Finding: fmt.Sprintf("%s and %s can both be written to and are no cluster: each would give the numbers of the other", a.node.Addr, b.node.Addr),
		Remedy:  "SET GLOBAL read_only = 1 on the one that is not the primary",
	}
}

// IsMoved: the chosen node is no longer writable.
func (l *Link) IsMoved(err error) bool {
	return l.Grouped() && (errors.Is(err, ErrMoved) || errors.Is(err, ErrUnchosen) || errors.Is(err, driver.ErrBadConn) || HasCode(err, wsrepNotReady, gomysql.ER_OPTION_PREVENTS_STATEMENT, gomysql.ER_READ_ONLY_MODE))
}

// Writable makes sure that a connection leads to the chosen node, and that this node is not read
// only: an account with SUPER can write there all the same.
func (l *Link) Writable(ctx context.Context, conn *sql.Conn) error {
	if !l.Grouped() {
		return nil
	}
	var readOnly string
	if err := conn.QueryRowContext(ctx, "SELECT @@global.read_only").Scan(&readOnly); err != nil {
		return err
	}
	if !IsOff(readOnly) {
		return l.ReadOnly()
	}
	err := l.LeadsTo(ctx, conn, l.nodes.current.Load())
	if errors.Is(err, driver.ErrBadConn) {
		Discard(conn)
	}
	return err
}

// LeadsTo makes sure that a connection leads to the chosen node and not to an earlier one, which
// may live on alone and whose writes the new one never sees. In a cluster any node in the
// configuration of the choice will do: what was committed before that answer was committed in it.
// The error is a driver.ErrBadConn.
func (l *Link) LeadsTo(ctx context.Context, on Querier, now *Choice) error {
	if now == nil {
		return fmt.Errorf("%w: %w", ErrUnchosen, driver.ErrBadConn)
	}
	var who sql.NullString
	if err := on.QueryRowContext(ctx, "SELECT "+now.Self).Scan(&who); err != nil {
		return err
	}
	return now.isStill(who.String)
}

// isStill is the error for a server that is not the chosen one, but calls itself who.
func (c *Choice) isStill(who string) error {
	switch {
	case who == c.Holder:
		return nil
	case c.Cluster != "":
		return fmt.Errorf("%s is in %q by now, and not in %s: %w", c.Addr, who, c.Holder, driver.ErrBadConn)
	}
	return fmt.Errorf("a connection leads to %s still, and not to %s at %s: %w", who, c.Holder, c.Addr, driver.ErrBadConn)
}

// Errors of one attempt in a group. The next attempt is on another node, if there is one.
var (
	ErrMoved    = errors.New("the node is read only")
	ErrUnchosen = errors.New("the node to write to is being looked for")
)

// wsrepNotReady is the answer of a Galera node that has lost its cluster.
const wsrepNotReady = gomysql.ER_UNKNOWN_COM_ERROR

// Moved discards the choice, so that the writable node is looked for again.
func (l *Link) Moved() { l.MovedFrom(l.nodes.current.Load()) }

// MovedFrom is Moved, unless another node was chosen since then.
func (l *Link) MovedFrom(then *Choice) {
	if l.nodes.current.CompareAndSwap(then, nil) {
		l.db.SetMaxIdleConns(0)
		l.db.SetMaxIdleConns(l.opts.MaxConns)
	}
}
