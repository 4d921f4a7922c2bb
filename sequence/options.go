package sequence

import (
	"time"
	"unicode/utf8"

	"go.uber.org/zap"

	"seqproxy/internal/tlsfiles"
)

// What a sequence server must promise about a committed reservation.
const (
	// DurabilityStrict refuses a server that flushes its log once a second only
	// (innodb_flush_log_at_trx_commit=0): its crash would take reservations back.
	DurabilityStrict = "strict"
	// DurabilityRelaxed accepts such a server. A crash of it can then repeat numbers; for tests and throw-away data.
	DurabilityRelaxed = "relaxed"
)

// Defaults of [Options].
const (
	DefaultCacheSize       = 1000
	DefaultOutageCover     = 15 * time.Minute
	DefaultAllocateTimeout = 3 * time.Second
	DefaultTable           = "sequence"
	defaultDialTimeout     = 2 * time.Second
	defaultIOTimeout       = 5 * time.Second
	defaultMaxConns        = 8
)

// Options says where the sequences live and how they are cached. Zero values mean the default that each field names.
type Options struct {
	// Servers are the sequence servers. Exactly one is supported.
	Servers []ServerOptions
	// CacheSize is how many numbers are reserved at once while a sequence is used little; 0 means 1000.
	CacheSize uint64
	// OutageCover is for how long the numbers in memory should last at the present rate; 0 means 15 minutes.
	OutageCover time.Duration
	// AllocateTimeout bounds how long one caller waits for a number; 0 means 3 seconds.
	AllocateTimeout time.Duration
	// CreateUnknown makes Take create a sequence that does not exist, starting at 1 (or above its tombstone).
	CreateUnknown bool
	// CreateTable allows the table to be created when it is missing.
	CreateTable bool
	// Durability is DurabilityStrict (also if empty) or DurabilityRelaxed.
	Durability string
	// Logger may be nil.
	Logger *zap.Logger
}

// ServerOptions is the way to one sequence server.
type ServerOptions struct {
	Network  string // "tcp" (also if empty) or "unix"
	Addr     string // "10.0.0.5:3306", or a socket's path
	User     string
	Password string
	Database string // the schema that holds the table
	Table    string // at most 56 characters; empty means "sequence"

	// Security is how connections are secured; nil: not at all.
	Security *tlsfiles.Client

	DialTimeout time.Duration // connect and login; 0 means 2 seconds
	IOTimeout   time.Duration // each read and write; 0 means 5 seconds
	MaxConns    int           // 0 means 8
}

// withDefaults returns a copy with the zero values filled in, or an error that wraps ErrBadOption.
func (o Options) withDefaults() (Options, error) {
	if len(o.Servers) != 1 {
		return o, badOption("servers: got %d, want exactly one sequence server", len(o.Servers))
	}
	o.Servers = append([]ServerOptions(nil), o.Servers...)
	for i := range o.Servers {
		if err := o.Servers[i].setDefaults(); err != nil {
			return o, err
		}
	}
	if o.CacheSize == 0 {
		o.CacheSize = DefaultCacheSize
	}
	if o.OutageCover == 0 {
		o.OutageCover = DefaultOutageCover
	}
	if o.AllocateTimeout == 0 {
		o.AllocateTimeout = DefaultAllocateTimeout
	}
	if o.OutageCover < 0 || o.AllocateTimeout < 0 {
		return o, badOption("outage cover %v and allocate timeout %v must not be negative", o.OutageCover, o.AllocateTimeout)
	}
	switch o.Durability {
	case "":
		o.Durability = DurabilityStrict
	case DurabilityStrict, DurabilityRelaxed:
	default:
		return o, badOption("durability %q: want %q or %q", o.Durability, DurabilityStrict, DurabilityRelaxed)
	}
	if o.Logger == nil {
		o.Logger = zap.NewNop()
	}
	return o, nil
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
	switch {
	case o.Network != "tcp" && o.Network != "unix":
		return badOption("network %q: want \"tcp\" or \"unix\"", o.Network)
	case o.Addr == "":
		return badOption("address of the sequence server is empty")
	case o.Database == "":
		return badOption("database of the sequence table is empty")
	case utf8.RuneCountInString(o.Table+optionsSuffix) > maxIdentifier:
		return badOption("sequence table %q is longer than %d characters, and so the name of the table beside it, which ends in %s, is too long",
			o.Table, maxIdentifier-len(optionsSuffix), optionsSuffix)
	case o.DialTimeout < 0 || o.IOTimeout < 0 || o.MaxConns < 0:
		return badOption("dial timeout, io timeout and connection limit of %s must not be negative", o.Addr)
	}
	return nil
}
