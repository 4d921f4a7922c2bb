package backend

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.uber.org/zap"

	"seqproxy/internal/tlsfiles"
	"seqproxy/protocol"
)

// ShardOptions describes one shard.
type ShardOptions struct {
	Name    string
	Nodes   []string     // "host:port" or "unix:/path"; at least one
	Schemas []string     // the schemas it owns
	Login   *Credentials // nil: each client's own
	// Probe is what to ask its servers with. The zero value is Login, or else
	// Options.Probe.
	Probe Credentials
	// Security is how connections to the nodes are secured; nil: not at all.
	Security *tlsfiles.Client
}

// Options describes all shards.
type Options struct {
	Shards  []ShardOptions // none: only keys are served
	Default string         // name of the shard of every schema that none owns
	// Probe is what to ask a server with that has no credentials of its own. Without a
	// user a server is asked only what it tells before a login.
	Probe Credentials
	// ConnectTimeout bounds connecting and logging in to a server.
	ConnectTimeout time.Duration
	Logger         *zap.Logger
}

// Shards routes schemas to shards and knows what all servers offer.
// It is safe for concurrent use.
type Shards struct {
	opts     Options
	shards   []*Shard
	bySchema map[string]*Shard
	fallback *Shard // nil without shards

	problems map[*Node]string // what was last logged of a probe

	stop context.CancelFunc
	wg   sync.WaitGroup
}

// New makes Shards of validated options. It does no I/O.
func New(opts Options) (*Shards, error) {
	s := &Shards{opts: opts, bySchema: make(map[string]*Shard), problems: make(map[*Node]string), stop: func() {}}
	for _, o := range opts.Shards {
		if len(o.Nodes) == 0 {
			return nil, fmt.Errorf("shard %s has no node", o.Name)
		}
		shard := &Shard{name: o.Name, creds: o.Login, probe: o.Probe}
		for _, a := range o.Nodes {
			shard.nodes = append(shard.nodes, newNode(a, o.Security))
		}
		for _, schema := range o.Schemas {
			if other, taken := s.bySchema[schema]; taken {
				return nil, fmt.Errorf("schema %s is owned by the shards %s and %s", schema, other.name, o.Name)
			}
			s.bySchema[schema] = shard
		}
		s.shards = append(s.shards, shard)
		if o.Name == opts.Default {
			s.fallback = shard
		}
	}
	if len(s.shards) > 0 && s.fallback == nil {
		return nil, fmt.Errorf("default shard %q is no shard", opts.Default)
	}
	return s, nil
}

// ForSchema returns the shard that owns a schema, the default shard if none does,
// nil if there are no shards at all. "" stands for no current schema.
func (s *Shards) ForSchema(schema string) *Shard {
	if shard, ok := s.bySchema[schema]; ok {
		return shard
	}
	return s.fallback
}

// Default returns the default shard, nil without shards.
func (s *Shards) Default() *Shard { return s.fallback }

// Many says whether a session may have to change from one shard to another.
func (s *Shards) Many() bool { return len(s.shards) > 1 }

// How often servers are asked what they offer.
const (
	reprobeUnknown = 2 * time.Second
	firstProbe     = 3 * time.Second
)

// Open asks every server what it offers, waiting for the answers for a short,
// bounded time, and goes on asking in the background those that did not answer.
// A server that is down is logged and is no error.
func (s *Shards) Open(ctx context.Context) {
	first, cancel := context.WithTimeout(ctx, min(firstProbe, s.opts.ConnectTimeout))
	unknown := s.probe(first, s.nodes())
	cancel()
	ctx, s.stop = context.WithCancel(context.WithoutCancel(ctx))
	if len(unknown) == 0 {
		return
	}
	s.wg.Go(func() {
		tick := time.NewTicker(reprobeUnknown)
		defer tick.Stop()
		for len(unknown) > 0 {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				unknown = s.probe(ctx, unknown)
			}
		}
	})
}

// Close ends the background work and waits for it.
func (s *Shards) Close() {
	s.stop()
	s.wg.Wait()
}

// Greeting returns what clients are told before their user and schema are known:
// the default shard's version and collation, and the capabilities that every
// server has. Among them is LongPassword unless all are MariaDB: without it a greeting
// is MariaDB's, with it there are no Extended flags. ok is false while the default
// shard's server never answered.
func (s *Shards) Greeting() (h Hello, ok bool) {
	if s.fallback == nil {
		return Hello{}, false
	}
	h, ok = s.fallback.Hello()
	if !ok {
		return Hello{}, false
	}
	for _, shard := range s.shards {
		if other, known := shard.Hello(); known {
			h.Capabilities &= other.Capabilities
			h.MariaDB = h.MariaDB && other.MariaDB
		}
	}
	if !h.MariaDB {
		h.Capabilities = h.Capabilities&^protocol.Extended | protocol.LongPassword
	}
	return h, true
}

// target is a node with the shard whose credentials it is asked with.
type target struct {
	shard *Shard
	node  *Node
}

func (s *Shards) nodes() (all []target) {
	for _, shard := range s.shards {
		for _, n := range shard.nodes {
			all = append(all, target{shard, n})
		}
	}
	return all
}

// probe asks the given nodes at the same time and returns those that did not
// answer.
func (s *Shards) probe(ctx context.Context, nodes []target) (unknown []target) {
	errs := make([]error, len(nodes))
	var wg sync.WaitGroup
	for i, t := range nodes {
		wg.Go(func() { errs[i] = s.probeNode(ctx, t) })
	}
	wg.Wait()
	for i, t := range nodes {
		if errs[i] == nil {
			s.logProbe(t, "")
			continue
		}
		if _, known := t.node.Hello(); !known {
			unknown = append(unknown, t)
		}
		asked := !errors.Is(errs[i], errRecently)
		if asked && (ctx.Err() == nil || context.Cause(ctx) == context.DeadlineExceeded) {
			s.logProbe(t, errs[i].Error())
		}
	}
	return unknown
}

// logProbe tells when a server begins or ceases not to answer, and when it says
// something else: not every time that it is asked. Only one probe runs at a time.
func (s *Shards) logProbe(t target, problem string) {
	before := s.problems[t.node]
	s.problems[t.node] = problem
	fields := []zap.Field{zap.String("shard", t.shard.name), zap.Stringer("node", t.node)}
	switch {
	case problem == before:
	case problem == "":
		s.opts.Logger.Info("a shard's server can be asked what it offers again", fields...)
	default:
		s.opts.Logger.Warn("a shard's server cannot be asked what it offers; it is asked again until it answers",
			append(fields, zap.String("error", problem))...)
	}
}

func (s *Shards) probeNode(ctx context.Context, t target) error {
	creds := t.shard.probeCredentials(s.opts.Probe)
	if creds.User == "" {
		return s.greetNode(ctx, t)
	}
	c, err := s.dialEither(ctx, t.shard, t.node, Login{
		Credentials:  creds,
		Capabilities: protocol.Protocol41 | protocol.SecureConnection | protocol.PluginAuth,
		wish:         protocol.SessionTrack, // to see whether its OK tells of the session
		Collation:    latin1SwedishCI,
	})
	if err != nil {
		return err
	}
	defer c.Quit()
	return c.askMode(true)
}

// greetNode learns what a server tells everybody, without an account. The server
// counts that as a login that broke off (see protocol.ReadGreeting), so it is done
// once for each server: what is left to ask, the first session asks.
func (s *Shards) greetNode(ctx context.Context, t target) error {
	deadline := s.dialDeadline(ctx)
	nc, err := t.node.dial(until{ctx, deadline})
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
	t.node.learn(helloOf(g))
	t.node.meet(nil)
	return nil
}

// latin1SwedishCI is a collation that every server knows, and hardly any has for its
// default today.
const latin1SwedishCI = 8

// utf8mb4GeneralCI is a collation that every server since MySQL 5.5 knows.
const utf8mb4GeneralCI = 45
