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

// Credentials are what a login needs besides the client's flags.
type Credentials struct {
	User, Password string
	// OtherPassword is tried once if the server refuses Password: an operator changes an account's
	// password on one server after the other. "" means none.
	OtherPassword string
}

// Node is one MySQL server's address and what the server has said about itself. It is safe for
// concurrent use.
type Node struct {
	network, address string
	ip               netip.AddrPort // set if the address is an IP address

	mu          sync.Mutex
	hello       *Hello    // nil until a login or probe succeeded
	hasMode     bool      // hello.SQLMode is valid
	unreachable time.Time // dials before this time fail at once; see Dial
	met         meeting   // the last attempt to connect
	metSince    time.Time // since when attempts have ended like met
	lastFailure meeting   // the last failed attempt or lost connection
	doubtful    bool      // a connection broke after the last attempt

	// refused is the access that the node refused in the last attempt, or nil.
	refused atomic.Pointer[access]

	asking chan struct{} // has one value while Usable asks

	counts nodeCounts
}

// Hello is what a server says about itself at a login.
type Hello struct {
	Version      string
	Capabilities protocol.Capability
	Collation    uint8
	MariaDB      bool
	// SQLMode is the server's global sql_mode, the initial value of sessions.
	SQLMode string
	// InitConnect reports whether the server has an init_connect, which may change the initial
	// values of sessions.
	InitConnect bool
	// IgnoresCollation reports whether the server ignores the collation that a login names.
	IgnoresCollation bool
	// FoldsTables reports whether the server ignores case in names of schemas and tables
	// (lower_case_table_names).
	FoldsTables bool
	// WaitTimeout and InteractiveTimeout are the global wait_timeout and interactive_timeout, asked
	// for together with SQLMode. 0 means unknown.
	WaitTimeout, InteractiveTimeout time.Duration
	// LoginPatience is the server's connect_timeout: how long it waits for each packet of a login.
	// 0 means unknown.
	LoginPatience time.Duration
	// DescribesSession reports whether, with SessionTrack, every OK to a login describes the
	// session, as in MariaDB 11.5 and later. Other servers describe it only if the login names a
	// schema.
	DescribesSession bool
}

// ProvesCertificates reports whether the server lets clients verify its certificate by their
// password, as MariaDB does since 11.4.
func (h *Hello) ProvesCertificates() bool {
	if !h.MariaDB {
		return false
	}
	major, minor := h.Numbers()
	return major > 11 || major == 11 && minor >= 4
}

// TrueVersion returns the server's version without the prefix that MariaDB puts into its greeting
// for old replicas.
func (h *Hello) TrueVersion() string { return strings.TrimPrefix(h.Version, "5.5.5-") }

// Numbers returns the first two numbers of the server's version. A part that is no number is 0.
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

// Number returns the server's version as one number, such as 101119 for 10.11.19, or 0 if the
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

// String returns the node's address as the configuration writes it.
func (n *Node) String() string {
	if n.network == "unix" {
		return "unix:" + n.address
	}
	return n.address
}

// Hello returns what the server said last. ok is false if it has never answered.
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
	access atomic.Pointer[access] // a reload replaces it, for connections opened later
	gate   *gate
	alone  *ShardSet // the set of this shard alone, which survives with the gate
}

// access says how to open connections to a shard's nodes. It is immutable.
type access struct {
	creds    *Credentials // nil: each client's own
	probe    Credentials
	client   *tlsfiles.Client
	security []*tlsfiles.Target // one for each node
}

func newAccess(o *ShardOptions) *access {
	a := &access{creds: o.Login, probe: o.Probe, client: o.Security}
	for _, address := range o.Nodes {
		_, path := splitAddress(address)
		a.security = append(a.security, o.Security.To(path))
	}
	return a
}

// newShard makes a shard. before is the shard of the same name before a reload, or nil.
func newShard(o *ShardOptions, before *Shard) *Shard {
	s := &Shard{name: o.Name}
	if before != nil {
		s.gate, s.alone = before.gate, before.alone // a pause survives a change of the nodes
	} else {
		s.gate = new(gate)
		s.alone = &ShardSet{[]*gate{s.gate}}
	}
	for _, address := range o.Nodes {
		s.nodes = append(s.nodes, newNode(address))
	}
	s.access.Store(newAccess(o))
	return s
}

// Name returns the shard's configured name.
func (s *Shard) Name() string { return s.name }

// primary is the node that gets the statements.
func (s *Shard) primary() *Node { return s.nodes[0] }

// Primary returns the address of the node that gets the statements.
func (s *Shard) Primary() string { return s.primary().String() }

// Credentials returns the shard's own credentials, or the client's if it has none.
func (s *Shard) Credentials(client Credentials) Credentials {
	return s.access.Load().credentials(client)
}

func (a *access) credentials(client Credentials) Credentials {
	if a.creds != nil {
		return *a.creds
	}
	return client
}

// HasCredentials reports whether the shard has credentials of its own.
func (s *Shard) HasCredentials() bool { return s.access.Load().creds != nil }

// Probe returns an account that is sure to exist on the shard's servers. ok is false if none is.
func (s *Shard) Probe() (Credentials, bool) {
	probe := s.access.Load().probe
	return probe, probe.User != ""
}

// probeCredentials returns the credentials for the proxy's own questions to the shard's servers.
func (a *access) probeCredentials(usual Credentials) Credentials {
	if a.probe.User != "" {
		return a.probe
	}
	return a.credentials(usual)
}

// Hello returns what the shard's server said last.
func (s *Shard) Hello() (Hello, bool) { return s.primary().Hello() }

// recently is how long dials to a node fail at once after it did not answer in time. It spares
// other clients the wait.
const recently = 2 * time.Second

// errRecently is the error of a dial that was not tried.
var errRecently = errors.New("it did not answer in time a moment ago")

// dial connects to the node, without a login.
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

// keepAlive finds a server that vanished. The system sets interval and count.
var keepAlive = net.KeepAliveConfig{Enable: true, Idle: time.Minute, Interval: -1, Count: -1}

func (n *Node) markUnreachable() {
	n.mu.Lock()
	n.unreachable = time.Now().Add(recently)
	n.mu.Unlock()
}

// learn records a greeting and returns it with what was learned before. Connections share the
// Hello, so learn replaces it and never changes it.
func (n *Node) learn(h Hello) *Hello {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.unreachable = time.Time{}
	if n.hello != nil {
		h.SQLMode, h.DescribesSession = n.hello.SQLMode, n.hello.DescribesSession
		h.InitConnect, h.IgnoresCollation = n.hello.InitConnect, n.hello.IgnoresCollation
		h.WaitTimeout, h.InteractiveTimeout = n.hello.WaitTimeout, n.hello.InteractiveTimeout
		h.FoldsTables, h.LoginPatience = n.hello.FoldsTables, n.hello.LoginPatience
	}
	if n.hello == nil || h != *n.hello {
		changed := h // only this path allocates
		n.hello = &changed
	}
	return n.hello
}

// learnDescribes records Hello.DescribesSession. It needs an earlier learn.
func (n *Node) learnDescribes(describes bool) {
	n.mu.Lock()
	if n.hello.DescribesSession != describes {
		h := *n.hello
		h.DescribesSession = describes
		n.hello = &h
	}
	n.mu.Unlock()
}

// describesSession is Hello.DescribesSession.
func (n *Node) describesSession() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.hello != nil && n.hello.DescribesSession
}

// learnMode records the other initial values of sessions. It needs an earlier learn.
func (n *Node) learnMode(now Hello) {
	n.mu.Lock()
	h := *n.hello // connections share the old one
	h.SQLMode, h.InitConnect, h.IgnoresCollation = now.SQLMode, now.InitConnect, now.IgnoresCollation
	h.WaitTimeout, h.InteractiveTimeout, h.FoldsTables = now.WaitTimeout, now.InteractiveTimeout, now.FoldsTables
	h.LoginPatience = now.LoginPatience
	n.hello, n.hasMode = &h, true
	n.mu.Unlock()
}

func (n *Node) knowsMode() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.hasMode
}

// splitAddress splits "host:port" or "unix:/path" into a network and the address to dial.
func splitAddress(address string) (network, dial string) {
	if path, ok := strings.CutPrefix(address, "unix:"); ok {
		return "unix", path
	}
	return "tcp", address
}

// newNode makes a Node from "host:port" or "unix:/path".
func newNode(address string) *Node {
	n := &Node{asking: make(chan struct{}, 1)}
	n.network, n.address = splitAddress(address)
	// An address with a zone needs a look-up, for its interface.
	if ip, err := netip.ParseAddrPort(address); n.network == "tcp" && err == nil && ip.Addr().Zone() == "" {
		n.ip = ip
	}
	return n
}
