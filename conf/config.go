package conf

import (
	"strings"
	"time"
)

// Config is the whole configuration. The keys of the file are the toml tags.
type Config struct {
	// Listen is the TCP address for clients: "127.0.0.1:4306". Port 0 picks
	// a free one.
	Listen string `toml:"listen"`

	// AdminUsers may change sequences. Each is one of Users, or an account of the
	// server's where UnknownUser has it checked there.
	AdminUsers []string `toml:"admin_users"`
	// UnknownUser says who checks the login of a user that is not among Users.
	UnknownUser UnknownUser `toml:"unknown_user"`

	// DefaultShard names the shard of every schema that no shard owns. It is
	// empty only when there are no shards.
	DefaultShard string `toml:"default_shard"`

	// ConnectTimeout bounds connecting to a backend, login included.
	ConnectTimeout Duration `toml:"connect_timeout"`
	// LoginTimeout bounds the login of a client.
	LoginTimeout Duration `toml:"login_timeout"`
	// ShutdownTimeout bounds how long running statements may go on after
	// the proxy was asked to stop. 0 does not wait for them.
	ShutdownTimeout Duration `toml:"shutdown_timeout"`
	// WriteTimeout bounds how long a client may take nothing of what is
	// written to it.
	WriteTimeout Duration `toml:"write_timeout"`

	// MaxStatement is the longest statement that is analysed. A longer one
	// is relayed as it is.
	MaxStatement Size `toml:"max_statement"`
	// MaxConnections bounds the clients at one time.
	MaxConnections int `toml:"max_connections"`
	// MaxUserConnections bounds those of one user; 0 does not.
	MaxUserConnections int `toml:"max_user_connections"`
	// MaxLogins bounds the clients that log in at one time; 0 does not.
	MaxLogins int `toml:"max_logins"`

	// FailedLogins is how many logins of one address may fail before further ones
	// are delayed, up to FailedLoginDelay. 0 never delays.
	FailedLogins     int      `toml:"failed_logins"`
	FailedLoginDelay Duration `toml:"failed_login_delay"`
	// FailedLoginExempt are addresses whose logins are never delayed.
	FailedLoginExempt []Network `toml:"failed_login_exempt"`

	// ProxyProtocolFrom are the addresses of balancers that tell the address of
	// their client by the PROXY protocol. Every connection from there must.
	ProxyProtocolFrom []Network `toml:"proxy_protocol_from"`

	// Compression offers clients a compressed protocol, as far as the backends do.
	Compression bool `toml:"compression"`

	// LastInsertID says when a number that the proxy gave is brought over to
	// the backend.
	LastInsertID LastInsertID `toml:"last_insert_id"`
	// UnknownSequence says what a name gets that is no sequence here.
	UnknownSequence UnknownSequence `toml:"unknown_sequence"`

	Log      Log      `toml:"log"`
	TLS      TLS      `toml:"tls"`
	Users    []User   `toml:"user"`
	Sequence Sequence `toml:"sequence"`
	Tickets  []Ticket `toml:"ticket"`
	Binds    []Bind   `toml:"bind"`
	Shards   []Shard  `toml:"shard"` // empty: keys only, nothing is relayed

	file     string // name for messages; "" when not from a file
	warnings []string
}

// LastInsertID is a value of the key last_insert_id.
type LastInsertID string

// The values of last_insert_id.
const (
	// LastInsertIDAuto brings the number over before statements that could
	// read it by their text.
	LastInsertIDAuto LastInsertID = "auto"
	// LastInsertIDExact brings it over before every relayed statement, for
	// triggers and views that call LAST_INSERT_ID().
	LastInsertIDExact LastInsertID = "exact"
)

// UnknownUser is a value of the key unknown_user.
type UnknownUser string

// The values of unknown_user.
const (
	UnknownUserRefuse  UnknownUser = "refuse"  // nobody: error 1045
	UnknownUserBackend UnknownUser = "backend" // the default shard's server
)

// UnknownSequence is a value of the key unknown_sequence.
type UnknownSequence string

// The values of unknown_sequence.
const (
	UnknownSequenceError  UnknownSequence = "error"  // error 4091, as MariaDB
	UnknownSequenceCreate UnknownSequence = "create" // it is created and starts at 1
	UnknownSequenceRelay  UnknownSequence = "relay"  // the statement goes to the server as it is
)

// Log is the table [log].
type Log struct {
	Level  string `toml:"level"`  // "debug", "info", "warn" or "error"
	Format string `toml:"format"` // "console" or "json"
}

// User is one [[user]]: an account that clients log in with.
type User struct {
	Name string `toml:"name"`
	Credential
	// OldPassword lets in, too, while a password is being changed. It is given as
	// Password is; once loaded it stands here wherever it came from.
	OldPassword     Secret `toml:"old_password"`
	OldPasswordFile string `toml:"old_password_file"`
	OldPasswordEnv  string `toml:"old_password_env"`
	Schema          string `toml:"schema"` // schema of a login that names none
	// MaxConnections bounds the user's clients, in place of MaxUserConnections; 0 is that.
	MaxConnections int `toml:"max_connections"`
	// Sequences are those that the user may take numbers of: names, or the beginning of
	// names with a * behind it. nil: all; empty: none.
	Sequences []string `toml:"sequences"`
	// RequireTLS and the three below are what a login must have beside the password.
	RequireTLS bool `toml:"require_tls"`
	// RequireCertificate wants a certificate of TLS.ClientCAFile's.
	RequireCertificate bool `toml:"require_certificate"`
	// CertificateSubject and CertificateIssuer want one with such a name.
	CertificateSubject string `toml:"certificate_subject"`
	CertificateIssuer  string `toml:"certificate_issuer"`
}

// NeedsCertificate says whether logins of the user must show a certificate.
func (u *User) NeedsCertificate() bool {
	return u.RequireCertificate || u.CertificateSubject != "" || u.CertificateIssuer != ""
}

// Credential says where a password stands: at most one of its keys; none of them
// is the empty password. In a loaded Config Password holds the password,
// wherever it came from.
type Credential struct {
	Password     Secret `toml:"password"`
	PasswordFile string `toml:"password_file"` // its content without the line end
	PasswordEnv  string `toml:"password_env"`  // name of an environment variable
}

// Sequence is the table [sequence].
type Sequence struct {
	Database    string `toml:"database"`     // schema of Table
	Table       string `toml:"table"`        // table of the counters
	CreateTable bool   `toml:"create_table"` // create schema and table where missing

	// Cache is how many numbers are reserved at once, at least. It grows with
	// the measured rate until OutageCover is reached.
	Cache int64 `toml:"cache"`
	// OutageCover is for how long cached numbers shall last at the measured
	// rate. 0 keeps to Cache.
	OutageCover Duration `toml:"outage_cover"`
	// AllocateTimeout bounds how long a client waits for a number when the
	// cache is empty.
	AllocateTimeout Duration `toml:"allocate_timeout"`
	// StateDir is a directory that the proxy keeps to itself, for what it has to
	// know when it starts again. Empty: it keeps nothing.
	StateDir string `toml:"state_dir"`
	// OrderRequiresReplica has the numbers of ORDER sequences stop while the proxy does
	// not see a majority of a group's nodes.
	OrderRequiresReplica bool `toml:"order_requires_replica"`
	// Durability says what is asked of the sequence server's commits.
	Durability Durability `toml:"durability"`
	// DirectWriters says whether applications count in the table themselves, which
	// matters when the set of sequence servers is changed.
	DirectWriters DirectWriters `toml:"direct_writers"`

	// Interleave and Block say how several servers divide the numbers, when their
	// first plan is made. After that the plan counts.
	Interleave Interleave `toml:"interleave"`
	Block      int64      `toml:"block"` // numbers in a block

	// Servers hold the table.
	Servers []SequenceServer `toml:"server"`
}

// Interleave is a value of the key sequence.interleave.
type Interleave string

// The values of sequence.interleave.
const (
	InterleaveBlock Interleave = "block" // the servers take turns in blocks of numbers
	InterleaveStep  Interleave = "step"  // the servers take turns in numbers
)

// Durability is a value of the key sequence.durability.
type Durability string

// The values of sequence.durability.
const (
	// DurabilityStrict refuses a server that does not flush at commit: a
	// number could be given again after it lost its last second.
	DurabilityStrict Durability = "strict"
	// DurabilityRelaxed takes any server, for trying things out.
	DurabilityRelaxed Durability = "relaxed"
)

// DirectWriters is a value of the key sequence.direct_writers.
type DirectWriters string

// The values of sequence.direct_writers.
const (
	// DirectWritersAuto assumes them where the table was there before seqproxy.
	DirectWritersAuto DirectWriters = "auto"
	DirectWritersYes  DirectWriters = "yes"
	DirectWritersNo   DirectWriters = "no"
)

// SequenceServer is one [[sequence.server]].
type SequenceServer struct {
	Address Address `toml:"address"`
	// Nodes are all addresses of a server that is a group: a primary and its replicas,
	// a Galera cluster, a replication group. Address is empty then.
	Nodes []Address `toml:"nodes"`
	User  string    `toml:"user"`
	Credential
	Security
	Database string `toml:"database"` // Sequence.Database unless the file says otherwise
}

// Addresses are all that the server is reached at.
func (s *SequenceServer) Addresses() []Address {
	if len(s.Nodes) > 0 {
		return s.Nodes
	}
	return []Address{s.Address}
}

// Ticket is one [[ticket]]: a table whose ticket idioms are answered by the proxy.
type Ticket struct {
	// Table is "schema.table". The table of the sequences may be named without its
	// schema.
	Table string `toml:"table"`
	// CutOver is the sequence that gives the numbers of a table with an AUTO_INCREMENT
	// column from now on; "": the column does.
	CutOver string `toml:"cut_over"`
	// PerStub gives each stub a sequence of its own, <CutOver>:<stub>.
	PerStub bool `toml:"per_stub"`
}

// Names splits Table. schema is "" where it does not name it.
func (t Ticket) Names() (schema, table string) {
	if schema, table, found := strings.Cut(t.Table, "."); found {
		return schema, table
	}
	return "", t.Table
}

// Shard is one [[shard]]: a named group of nodes that hold the same rows.
type Shard struct {
	Name    string   `toml:"name"`
	Schemas []string `toml:"schemas"` // those that it owns
	// User and its password are used for every client of the shard. Without
	// a User the proxy logs in as the client's user with its password.
	User string `toml:"user"`
	Credential
	Security
	// Nodes are the servers. This version takes exactly one.
	Nodes []Node `toml:"node"`
}

// Node is one [[shard.node]].
type Node struct {
	Address Address `toml:"address"`
}

// Addresses are those of the nodes.
func (s *Shard) Addresses() []Address {
	addresses := make([]Address, len(s.Nodes))
	for i, n := range s.Nodes {
		addresses[i] = n.Address
	}
	return addresses
}

// Default returns the configuration that an empty file stands for. It is not
// valid by itself: it lacks a user and a sequence server.
func Default() *Config {
	return &Config{
		Listen:          "127.0.0.1:4306",
		ConnectTimeout:  Duration(5 * time.Second),
		LoginTimeout:    Duration(10 * time.Second),
		ShutdownTimeout: Duration(30 * time.Second),
		WriteTimeout:    Duration(time.Minute),
		MaxStatement:    16 * MiB,
		MaxConnections:  10000,
		MaxLogins:       500,

		FailedLogins:      10,
		FailedLoginDelay:  Duration(5 * time.Second),
		FailedLoginExempt: []Network{},

		ProxyProtocolFrom: []Network{},

		UnknownUser:     UnknownUserRefuse,
		Compression:     true,
		LastInsertID:    LastInsertIDAuto,
		UnknownSequence: UnknownSequenceError,
		Log:             Log{Level: "info", Format: "console"},
		Sequence: Sequence{
			Database:             "seqproxy",
			Table:                "sequence",
			CreateTable:          true,
			Cache:                1000,
			OutageCover:          Duration(15 * time.Minute),
			OrderRequiresReplica: true,
			AllocateTimeout:      Duration(3 * time.Second),
			Durability:           DurabilityStrict,
			DirectWriters:        DirectWritersAuto,
			Interleave:           InterleaveBlock,
			Block:                10_000,
		},
	}
}

// File is the name of the file that the configuration was read from, or "".
func (c *Config) File() string { return c.file }

// Warnings are remarks on a valid configuration that somebody should read, each a
// line with file and key.
func (c *Config) Warnings() []string { return c.warnings }

// Shard returns the shard with this name, or nil.
func (c *Config) Shard(name string) *Shard {
	for i := range c.Shards {
		if c.Shards[i].Name == name {
			return &c.Shards[i]
		}
	}
	return nil
}

// User returns the user with this name, or nil. Names are compared byte by byte,
// as the servers do.
func (c *Config) User(name string) *User {
	for i := range c.Users {
		if c.Users[i].Name == name {
			return &c.Users[i]
		}
	}
	return nil
}

// IsAdmin tells whether the user may change sequences.
func (c *Config) IsAdmin(user string) bool {
	for _, name := range c.AdminUsers {
		if name == user {
			return true
		}
	}
	return false
}
