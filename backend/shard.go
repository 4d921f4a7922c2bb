package backend

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"seqproxy/internal/tlsfiles"
	"seqproxy/protocol"
)

// Credentials are what a login needs beside the client's flags.
type Credentials struct {
	User, Password string
	// OtherPassword is tried once if the server refuses Password: an account's
	// password may be changed on one server after the other. "": there is none.
	OtherPassword string
}

// Node is one MySQL server's address and what was learned of it.
// It is safe for concurrent use.
type Node struct {
	network, address string
	ip               netip.AddrPort // of an address without a name

	mu          sync.Mutex
	hello       *Hello    // nil until a login or probe succeeded
	modeKnown   bool      // hello.SQLMode was asked for
	unreachable time.Time // until when dials fail at once; see Dial
	met         meeting   // the last attempt to connect
	metSince    time.Time // since when attempts end as that one did
	lastFailure meeting   // the last attempt that failed, or connection that was lost
	doubtful    bool      // a connection broke since the last attempt

	refused atomic.Pointer[access] // that was not let in when the node was asked last; nil: it was

	asking chan struct{} // holds one while Usable asks

	counts nodeCounts
}

// Hello is what a server says of itself at a login.
type Hello struct {
	Version      string
	Capabilities protocol.Capability
	Collation    uint8
	MariaDB      bool
	// SQLMode is the server's global sql_mode, which sessions start with.
	SQLMode string
	// InitConnect: it has an init_connect, which may change what sessions start with.
	InitConnect bool
	// OwnCollation: it takes no notice of the collation that a login names.
	OwnCollation bool
	// FoldsTables: names of schemas and tables are the same in any letter case
	// (lower_case_table_names).
	FoldsTables bool
	// WaitTimeout and InteractiveTimeout are its global wait_timeout and
	// interactive_timeout, asked for together with SQLMode. 0: it could not be asked.
	WaitTimeout, InteractiveTimeout time.Duration
	// LoginPatience is its connect_timeout: for how long it waits for each packet of a
	// login. 0: it could not be asked.
	LoginPatience time.Duration
	// TellsSession: with SessionTrack every OK to a login describes the session, as in MariaDB 11.5
	// and later. In others only the OK to a login with a schema does.
	TellsSession bool
}

// ProvesCertificates says whether the server is one that lets clients trust its
// certificate by their password, as MariaDB since 11.4 does.
func (h *Hello) ProvesCertificates() bool {
	if !h.MariaDB {
		return false
	}
	major, minor := h.Numbers()
	return major > 11 || major == 11 && minor >= 4
}

// TrueVersion is the server's version, without what MariaDB puts before it in a greeting, for old
// replicas.
func (h *Hello) TrueVersion() string { return strings.TrimPrefix(h.Version, "5.5.5-") }

// Numbers returns the first two numbers of the server's version, or 0 for what is none.
func (h *Hello) Numbers() (major, minor int) {
	first, rest, _ := strings.Cut(h.TrueVersion(), ".")
	second, _, _ := strings.Cut(rest, ".")
	major, err := strconv.Atoi(first)
	minor, errMinor := strconv.Atoi(second)
	if err != nil || errMinor != nil {
		return 0, 0
	}
	return major, minor
}

// Number returns the server's version in one number, such as 101119 for 10.11.19, or 0 if the
// greeting has none.
func (h *Hello) Number() uint32 {
	var n uint32
	rest := h.TrueVersion()
	for range 3 {
		var part string
		part, rest, _ = strings.Cut(rest, ".")
		digits := 0
		for digits < len(part) && part[digits] >= '0' && part[digits] <= '9' {
			digits++
		}
		value, err := strconv.ParseUint(part[:digits], 10, 8)
		if err != nil || value > 99 {
			return 0
		}
		n = n*100 + uint32(value)
	}
	return n
}

// String returns the node's address as it is written in the configuration.
func (n *Node) String() string {
	if n.network == "unix" {
		return "unix:" + n.address
	}
	return n.address
}

// Hello returns what the server said last; ok is false if it never answered.
func (n *Node) Hello() (h Hello, ok bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.hello == nil {
		return Hello{}, false
	}
	return *n.hello, true
}

// Shard is a named group of nodes that hold the same rows.
type Shard struct {
	name   string
	nodes  []*Node
	access atomic.Pointer[access] // replaced by a reload, for connections opened from then on
	gate   *gate
}

// access is how connections to a shard's nodes are opened. It does not change.
type access struct {
	creds    *Credentials // nil: each client's own
	probe    Credentials
	client   *tlsfiles.Client
	security []*tlsfiles.Target // of each node
}

func newAccess(o *ShardOptions) *access {
	a := &access{creds: o.Login, probe: o.Probe, client: o.Security}
	for _, address := range o.Nodes {
		_, path := splitAddress(address)
		a.security = append(a.security, o.Security.To(path))
	}
	return a
}

// newShard makes a shard. before is another one of the same name, from before a reload, or nil.
func newShard(o *ShardOptions, before *Shard) *Shard {
	s := &Shard{name: o.Name}
	if before != nil {
		s.gate = before.gate // what is paused stays so when its nodes change
	} else {
		s.gate = newGate()
	}
	for _, address := range o.Nodes {
		s.nodes = append(s.nodes, newNode(address))
	}
	s.access.Store(newAccess(o))
	return s
}

// Name returns the shard's configured name.
func (s *Shard) Name() string { return s.name }

// primary is the node that statements go to.
func (s *Shard) primary() *Node { return s.nodes[0] }

// Credentials returns what to log in with for a client that logged in with own:
// the shard's, if it names any.
func (s *Shard) Credentials(own Credentials) Credentials { return s.access.Load().credentials(own) }

func (a *access) credentials(own Credentials) Credentials {
	if a.creds != nil {
		return *a.creds
	}
	return own
}

// HasCredentials says whether the shard names what to log in with.
func (s *Shard) HasCredentials() bool { return s.access.Load().creds != nil }

// Probe returns the account that is on the shard's servers in any case, if one is known.
func (s *Shard) Probe() (Credentials, bool) {
	probe := s.access.Load().probe
	return probe, probe.User != ""
}

// probeCredentials returns what to ask the shard's servers with.
func (a *access) probeCredentials(usual Credentials) Credentials {
	if a.probe.User != "" {
		return a.probe
	}
	return a.credentials(usual)
}

// Hello returns what the shard's server said last.
func (s *Shard) Hello() (Hello, bool) { return s.primary().Hello() }

// recently is how long a node that did not answer in time is taken for
// unreachable without asking again, so that not every client waits as long.
const recently = 2 * time.Second

// errRecently is a dial that was not tried.
var errRecently = errors.New("it did not answer in time a moment ago")

// dial opens the transport to the node.
func (n *Node) dial(ctx context.Context) (net.Conn, error) {
	n.mu.Lock()
	until := n.unreachable
	n.mu.Unlock()
	if time.Now().Before(until) {
		return nil, errRecently
	}
	if n.ip.IsValid() {
		return dialIP(ctx, n.ip)
	}
	d := net.Dialer{KeepAliveConfig: keepAlive}
	return d.DialContext(ctx, n.network, n.address)
}

// keepAlive finds a server that vanished without a word; interval and count are the
// system's.
var keepAlive = net.KeepAliveConfig{Enable: true, Idle: time.Minute, Interval: -1, Count: -1}

func (n *Node) markUnreachable() {
	n.mu.Lock()
	n.unreachable = time.Now().Add(recently)
	n.mu.Unlock()
}

// learn takes note of a greeting and returns what is known with it. What is known is
// shared by all connections and replaced, never changed.
func (n *Node) learn(h Hello) *Hello {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.unreachable = time.Time{}
	if n.hello != nil {
		h.SQLMode, h.TellsSession = n.hello.SQLMode, n.hello.TellsSession
		h.InitConnect, h.OwnCollation = n.hello.InitConnect, n.hello.OwnCollation
		h.WaitTimeout, h.InteractiveTimeout = n.hello.WaitTimeout, n.hello.InteractiveTimeout
		h.FoldsTables, h.LoginPatience = n.hello.FoldsTables, n.hello.LoginPatience
	}
	if n.hello == nil || h != *n.hello {
		changed := h // here: else every login would allocate one
		n.hello = &changed
	}
	return n.hello
}

// learnTells takes note of Hello.TellsSession, after learn.
func (n *Node) learnTells(tells bool) {
	n.mu.Lock()
	if n.hello.TellsSession != tells {
		h := *n.hello
		h.TellsSession = tells
		n.hello = &h
	}
	n.mu.Unlock()
}

// tellsSession is Hello.TellsSession.
func (n *Node) tellsSession() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.hello != nil && n.hello.TellsSession
}

// learnMode takes note of what else of told sessions start with, after learn.
func (n *Node) learnMode(told Hello) {
	n.mu.Lock()
	h := *n.hello // copies of the pointer may be read elsewhere
	h.SQLMode, h.InitConnect, h.OwnCollation = told.SQLMode, told.InitConnect, told.OwnCollation
	h.WaitTimeout, h.InteractiveTimeout, h.FoldsTables = told.WaitTimeout, told.InteractiveTimeout, told.FoldsTables
	h.LoginPatience = told.LoginPatience
	n.hello, n.modeKnown = &h, true
	n.mu.Unlock()
}

func (n *Node) knowsMode() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.modeKnown
}

// splitAddress returns the network of "host:port" or "unix:/path", and what to dial there.
func splitAddress(address string) (network, dial string) {
	if path, ok := strings.CutPrefix(address, "unix:"); ok {
		return "unix", path
	}
	return "tcp", address
}

// newNode makes a Node of "host:port" or "unix:/path".
func newNode(address string) *Node {
	n := &Node{asking: make(chan struct{}, 1)}
	n.network, n.address = splitAddress(address)
	// An address with a zone needs a look-up after all: of its interface.
	if ip, err := netip.ParseAddrPort(address); n.network == "tcp" && err == nil && ip.Addr().Zone() == "" {
		n.ip = ip
	}
	return n
}
