package backend

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"seqproxy/internal/logfield"
	"seqproxy/internal/tlsfiles"
	"seqproxy/protocol"
)

// ShardOptions describes one shard.
type ShardOptions struct {
	Name    string
	Nodes   []string     // "host:port" or "unix:/path"; at least one
	Schemas []string     // the schemas it owns
	Login   *Credentials // nil: each client uses its own
	// Probe is the account for the proxy's own questions. The zero value means Login, or
	// Options.Probe without a Login.
	Probe Credentials
	// Security says how connections to the nodes are secured; nil means plain.
	Security *tlsfiles.Client
}

// Options describes all shards.
type Options struct {
	Shards  []ShardOptions // may be empty: then the proxy serves keys only
	Default string         // name of the shard that gets all schemas without an owner
	// Probe is the account for shards without credentials of their own. Without a user, the proxy
	// only reads a server's greeting.
	Probe Credentials
	// ConnectTimeout bounds connecting and logging in to a server.
	ConnectTimeout time.Duration
	Logger         *zap.Logger
}

// Shards is the servers behind the proxy and what they have said about themselves. It asks servers
// that have never answered what they offer. It is safe for concurrent use.
type Shards struct {
	log     *zap.Logger
	routes  atomic.Pointer[Routes]
	leaving leaving

	probing  sync.Mutex       // locked while servers are asked
	problems map[*Node]string // what the last probe logged; guarded by probing

	changed chan struct{} // gets a value when the routes change
	stop    context.CancelFunc
	wg      sync.WaitGroup
}

// New makes Shards of validated options. It does no I/O.
func New(opts Options) (*Shards, error) {
	s := &Shards{log: opts.Logger, problems: make(map[*Node]string), changed: make(chan struct{}, 1), stop: func() {}}
	routes, err := newRoutes(opts, nil, nil)
	if err != nil {
		return nil, err
	}
	s.routes.Store(routes)
	return s, nil
}

// Routes returns the routes in force. They are immutable: a reload makes new ones.
func (s *Shards) Routes() *Routes { return s.routes.Load() }

// The intervals at which servers are asked what they offer.
const (
	reprobe    = 2 * time.Second // if it did not answer the last time
	firstProbe = 3 * time.Second
	// maxQuiet is how long a server may go without a login before the proxy asks whether it is up.
	maxQuiet = 10 * time.Second
)

// Open asks every server what it offers, and waits a short, bounded time for the answers. Then a
// goroutine asks those servers again that do not answer, or that were not asked for long. A server
// that is down is logged, and is no error. Close ends the goroutine.
func (s *Shards) Open(ctx context.Context) {
	routes := s.Routes()
	first, cancel := context.WithTimeout(ctx, min(firstProbe, routes.connectTimeout))
	s.probe(first, routes, routes.targets())
	cancel()
	ctx, s.stop = context.WithCancel(context.WithoutCancel(ctx))
	s.wg.Go(func() { s.askOn(ctx) })
}

// askOn asks the servers of the routes in force from time to time.
func (s *Shards) askOn(ctx context.Context) {
	tick := time.NewTicker(reprobe)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.changed:
		case <-tick.C:
		}
		routes := s.Routes()
		s.probe(ctx, routes, routes.due(time.Now()))
	}
}

// due returns the nodes to ask now. Without an account it omits nodes that answered the last time:
// see greetNode.
func (r *Routes) due(now time.Time) []target {
	return slices.DeleteFunc(r.targets(), func(t target) bool {
		asks := t.access.probeCredentials(r.probe).User != "" && t.node.refused.Load() != t.access
		n := t.node
		n.mu.Lock()
		defer n.mu.Unlock()
		if n.hello == nil || n.met.err != nil {
			return false
		}
		return !asks || !n.doubtful && now.Sub(n.met.at) < maxQuiet
	})
}

// Close ends the background work and waits for it.
func (s *Shards) Close() {
	s.stop()
	s.wg.Wait()
}

// target is a node, with the shard whose credentials the proxy uses there.
type target struct {
	shard  *Shard
	node   *Node
	access *access
}

// ask asks the nodes what they offer, all at the same time. It returns an error or nil for each.
func (r *Routes) ask(ctx context.Context, nodes []target) []error {
	errs := make([]error, len(nodes))
	var wg sync.WaitGroup
	for i, t := range nodes {
		wg.Go(func() { errs[i] = r.probeNode(ctx, t) })
	}
	wg.Wait()
	return errs
}

// probe asks the nodes, which belong to routes, and logs what is wrong with them.
func (s *Shards) probe(ctx context.Context, routes *Routes, nodes []target) {
	s.probing.Lock()
	defer s.probing.Unlock()
	maps.DeleteFunc(s.problems, func(n *Node, _ string) bool { return !routes.hasNode(n) })
	errs := routes.ask(ctx, nodes)
	for i, t := range nodes {
		if errs[i] == nil {
			t.node.refused.Store(nil)
			s.logProbe(t, "")
			continue
		}
		var refused *protocol.ServerError
		if errors.As(errs[i], &refused) {
			t.node.refused.Store(t.access)
		}
		asked := !errors.Is(errs[i], errRecently)
		if asked && (ctx.Err() == nil || context.Cause(ctx) == context.DeadlineExceeded) {
			s.logProbe(t, errs[i].Error())
		}
	}
}

// logProbe logs when a server stops answering, answers again, or fails with another error. It stays
// silent when nothing has changed.
func (s *Shards) logProbe(t target, problem string) {
	before := s.problems[t.node]
	s.problems[t.node] = problem
	fields := []zap.Field{logfield.Shard(t.shard.name), logfield.Node(t.node.String())}
	switch {
	case problem == before:
	case problem == "":
		s.log.Info("node usable again", fields...)
	default:
		s.log.Warn("node not usable", append(fields, zap.String(logfield.NameErr, problem))...)
	}
}

func (r *Routes) probeNode(ctx context.Context, t target) error {
	creds := t.access.probeCredentials(r.probe)
	if creds.User == "" {
		return r.greetNode(ctx, t)
	}
	c, err := r.dialEither(ctx, t.shard, t.node, Login{
		Credentials:  creds,
		Capabilities: protocol.Protocol41 | protocol.SecureConnection | protocol.PluginAuth,
		wish:         protocol.SessionTrack, // shows whether the OK describes the session
		Collation:    latin1SwedishCI,
		access:       t.access,
		probe:        true,
	})
	if err != nil {
		return err
	}
	defer c.Quit()
	defer context.AfterFunc(ctx, c.Abort)()
	if err := c.SetDeadline(r.dialDeadline(ctx, time.Now())); err != nil { // init_connect may wait
		return &UnreachableError{Shard: t.shard.Name(), Node: t.node.String(), Err: err}
	}
	return c.askMode(true)
}

// greetNode reads a server's greeting, without an account. The server counts a login that broke off
// (see protocol.ReadGreeting), so greetNode stops once the server has answered. The first session
// asks the rest.
func (r *Routes) greetNode(ctx context.Context, t target) error {
	err := r.readGreeting(ctx, t.node)
	if err == nil || ctx.Err() == nil && !errors.Is(err, errRecently) {
		t.node.count(err)
		t.node.meet(err)
	}
	return err
}

func (r *Routes) readGreeting(ctx context.Context, n *Node) error {
	deadline := r.dialDeadline(ctx, time.Now())
	n.counts.connecting.Add(1)
	defer n.counts.connecting.Add(-1)
	nc, err := n.dial(until{ctx, deadline})
	if err != nil {
		return err
	}
	pc, err := protocol.NewConn(nc, 0, 0)
	if err != nil {
		return err
	}
	defer pc.Close()
	defer pc.Drop()
	if err := pc.SetReadDeadline(deadline); err != nil {
		return err
	}
	g, err := protocol.ReadGreeting(pc)
	if err != nil {
		return err
	}
	n.learn(helloOf(g))
	return nil
}

// latin1SwedishCI is a collation that every server has, and hardly any has as its default.
const latin1SwedishCI = 8

// utf8mb4GeneralCI is a collation that every server since MySQL 5.5 has.
const utf8mb4GeneralCI = 45
