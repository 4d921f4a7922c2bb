package sequence

import (
	"cmp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"go.uber.org/zap"

	"seqproxy/internal/planted"
	"seqproxy/internal/tlsfiles"
	"seqproxy/sequence/change"
	"seqproxy/sequence/define"
	"seqproxy/sequence/link"
	"seqproxy/sequence/members"
	"seqproxy/sequence/store"
)

// What a sequence server must promise about a committed reservation.
const (
	// DurabilityStrict refuses a server that flushes its log once a second only
	// (innodb_flush_log_at_trx_commit=0): its crash would take reservations back. So it does a
	// cluster of which no majority of the nodes flushes at commit.
	DurabilityStrict = "strict"
	// DurabilityRelaxed accepts such a server. A crash of it can then repeat numbers; for tests and
	// throw-away data.
	DurabilityRelaxed = "relaxed"
)

// Defaults of [Options].
const (
	DefaultCacheSize       = 1000
	DefaultOutageCover     = define.UsualCover
	DefaultAllocateTimeout = 3 * time.Second
	DefaultTable           = "sequence"
	DefaultBlock           = 10_000
	defaultDialTimeout     = 2 * time.Second
	defaultIOTimeout       = 5 * time.Second
	defaultMaxConns        = 8
)

// Options says where the sequences live and how they are cached. Zero values mean the default that
// each field names.
type Options struct {
	Tuning

	// Servers are the sequence servers. Where there are several, a plan is in force among them, and
	// counts: this is where it is looked for. With InterleaveStep, where none is in force, the
	// first plan is made of them, if their rows stand as that has them.
	Servers []ServerOptions
	// Interleave says how a single server and the one that is added to it divide the numbers:
	// InterleaveBlock (also if empty) or InterleaveStep.
	Interleave string
	// Block is how many numbers a block has then; 0 means 10,000.
	Block uint64
	// StateDir is a directory of this process alone, where it keeps what the next one has to know:
	// see docs/operations.md. It is made if its parent is there. Empty: nothing is kept.
	StateDir string
	// LookOnly: no table is made. With CreateTable, a server that lacks all of them counts as one
	// without sequences.
	LookOnly bool
	// WorkerID is the only worker whose ticks this process takes, of each sequence of kind
	// SNOWFLAKE; nil: any that is free.
	WorkerID *uint64
	// Durability is DurabilityStrict (also if empty) or DurabilityRelaxed.
	Durability string
	// Logger may be nil.
	Logger *zap.Logger

	timing *timing          // nil: standardTiming
	wall   func() time.Time // the clock of the machine; nil: planted.Now
}

// Node is one address of a sequence server that is a group; see package link.
type Node = link.Address

// ServerOptions is the way to one sequence server.
type ServerOptions struct {
	Network string // "tcp" (also if empty) or "unix"
	Addr    string // "10.0.0.5:3306", or a socket's path; empty where there are Nodes
	// Nodes are the addresses of a server that is a group: all that could ever become its primary,
	// and the same in every proxy.
	Nodes []Node

	User     string
	Password string
	Database string // the schema that holds the table
	Table    string // at most 53 characters; empty means "sequence"

	// Security is how connections are secured; nil: not at all.
	Security *tlsfiles.Client

	login *link.Login // the account in use; see loginInUse

	DialTimeout time.Duration // connect and login; 0 means 2 seconds
	IOTimeout   time.Duration // each read and write; 0 means 5 seconds
	MaxConns    int           // 0 means 8
}

// loginInUse is the account in use, which stands there once defaults are set.
func (o *ServerOptions) loginInUse() *link.Login {
	if o.login == nil {
		o.login = link.NewLogin(Account{User: o.User, Password: o.Password, Security: o.Security})
	}
	return o.login
}

// withDefaults returns a copy with the zero values filled in, or an error that wraps ErrBadOption.
func (o Options) withDefaults() (Options, error) {
	if len(o.Servers) == 0 || len(o.Servers) > change.MaxMembers {
		return o, define.BadOption("servers: got %d, want 1 to %d sequence servers", len(o.Servers), change.MaxMembers)
	}
	o.Servers = append([]ServerOptions(nil), o.Servers...)
	for i := range o.Servers {
		if err := o.Servers[i].setDefaults(); err != nil {
			return o, err
		}
		for _, other := range o.Servers[:i] {
			if other.Addr == o.Servers[i].Addr {
				return o, define.BadOption("servers: %s is named twice", other.Addr)
			}
		}
		if len(o.Servers) > 1 && len(o.Servers[i].Nodes) > 1 {
			return o, define.BadOption("servers: %v", &members.GroupError{Name: o.Servers[i].Addr})
		}
	}
	switch {
	case o.Interleave == "":
		o.Interleave = InterleaveBlock
	case o.Interleave != InterleaveBlock && o.Interleave != InterleaveStep:
		return o, define.BadOption("interleave %q: want %q or %q", o.Interleave, InterleaveBlock, InterleaveStep)
	}
	if o.Block == 0 {
		o.Block = DefaultBlock
	}
	if o.Block > members.MaxBlock {
		return o, define.BadOption("block %d: want up to %d", o.Block, uint64(members.MaxBlock))
	}
	o.Tuning.setDefaults()
	if o.OutageCover < 0 || o.AllocateTimeout < 0 {
		return o, define.BadOption("outage cover %v and allocate timeout %v must not be negative", o.OutageCover, o.AllocateTimeout)
	}
	switch o.Durability {
	case "":
		o.Durability = DurabilityStrict
	case DurabilityStrict, DurabilityRelaxed:
	default:
		return o, define.BadOption("durability %q: want %q or %q", o.Durability, DurabilityStrict, DurabilityRelaxed)
	}
	if o.Logger == nil {
		o.Logger = zap.NewNop()
	}
	timing := standardTiming()
	if o.timing != nil {
		timing = *o.timing
	}
	o.timing = &timing // its own
	if err := o.timing.check(); err != nil {
		return o, define.BadOption("%v", err)
	}
	return o, nil
}

// clock returns what tells the time.
func (o *Options) clock() func() time.Time {
	if o.wall != nil {
		return o.wall
	}
	return planted.Now
}

func (o *ServerOptions) setDefaults() error {
	if o.Network == "" {
		o.Network = "tcp"
	}
	if o.Table == "" {
		o.Table = DefaultTable
	}
	if o.DialTimeout == 0 {
		o.DialTimeout = defaultDialTimeout
	}
	if o.IOTimeout == 0 {
		o.IOTimeout = defaultIOTimeout
	}
	if o.MaxConns == 0 {
		o.MaxConns = defaultMaxConns
	}
	if err := o.setNodes(); err != nil {
		return err
	}
	o.loginInUse()
	switch {
	case o.Network != "tcp" && o.Network != "unix":
		return define.BadOption("network %q: want \"tcp\" or \"unix\"", o.Network)
	case o.Addr == "":
		return define.BadOption("address of the sequence server is empty")
	case o.Database == "":
		return define.BadOption("database of the sequence table is empty")
	case utf8.RuneCountInString(o.Table+store.PlanStartSuffix) > store.MaxIdentifier:
		return define.BadOption("sequence table %q is longer than %d characters, and so the name of the table beside it, which ends in %s, is too long",
			o.Table, store.MaxIdentifier-len(store.PlanStartSuffix), store.PlanStartSuffix)
	case o.DialTimeout < 0 || o.IOTimeout < 0 || o.MaxConns < 0:
		return define.BadOption("dial timeout, io timeout and connection limit of %s must not be negative", o.Addr)
	}
	return nil
}

// setNodes checks the nodes and has the group called by all of their addresses.
func (o *ServerOptions) setNodes() error {
	if len(o.Nodes) == 0 {
		return nil
	}
	if o.Addr != "" {
		return define.BadOption("sequence server %s: it has an address and nodes, want one of them", o.Addr)
	}
	o.Nodes = slices.Clone(o.Nodes)
	addrs := make([]string, len(o.Nodes))
	for i := range o.Nodes {
		n := &o.Nodes[i]
		n.Network = cmp.Or(n.Network, "tcp")
		if n.Network != "tcp" && n.Network != "unix" || n.Addr == "" || slices.Contains(addrs[:i], n.Addr) {
			return define.BadOption("node %q (%s) of a sequence server: want different addresses, of network \"tcp\" or \"unix\"", n.Addr, n.Network)
		}
		addrs[i] = n.Addr
	}
	o.Addr = strings.Join(addrs, ",")
	return nil
}

// nodes are the Nodes, or the one address.
func (o *ServerOptions) nodes() []Node {
	if len(o.Nodes) > 0 {
		return o.Nodes
	}
	return []Node{{Network: o.Network, Addr: o.Addr}}
}

// serverAt is the way to a server: as it is configured, or like the first one that is.
func (all *Options) serverAt(address string) (ServerOptions, error) {
	for _, o := range all.Servers {
		if slices.ContainsFunc(o.nodes(), func(n Node) bool { return n.Addr == address }) || o.Addr == address {
			return o, nil
		}
	}
	o := all.Servers[0]
	o.Network, o.Addr, o.Nodes = "tcp", address, nil
	if strings.HasPrefix(address, "/") {
		o.Network = "unix"
	}
	return o, o.setDefaults()
}
