package conf

import (
	"slices"
	"strings"
	"time"
)

// Config is the whole configuration. The toml tags are the keys of the file.
//
// go generate makes docs/config.md from the fields of this struct and of those below. A field's
// comment is its text there. The tag oneof lists all allowed values. The tag default is for a zero
// value that means something else. The tag reload says when a change in the file takes effect: see
// [When].
type Config struct {
	// TCP address for clients, `host:port`; without host all addresses, port 0 picks a free one.
	// `-listen` overrides it
	Listen string `toml:"listen" reload:"restart"`
	// users who may change sequences, KILL any session and say all [statements to the
	// proxy](statements.md). Each is a `[[user]]`, or an account of the server with
	// `unknown_user = "backend"`
	AdminUsers []string `toml:"admin_users" reload:"new"`
	// users who may use each SHOW as an admin does, and change nothing; named like `admin_users`
	MonitorUsers []string `toml:"monitor_users" reload:"new"`
	// a login that is no `[[user]]`: `"refuse"` is error 1045; with `"backend"` [the default
	// shard's server checks it](security.md#accounts-that-the-server-checks), and no `[[user]]` is
	// needed
	UnknownUser UnknownUser `toml:"unknown_user" oneof:"refuse,backend" reload:"new"`
	// shard of the schemas that no shard owns; required with more than one shard
	DefaultShard string `toml:"default_shard" reload:"now"`

	// bounds connecting to a shard, login included
	ConnectTimeout Duration `toml:"connect_timeout" reload:"now"`
	// bounds the login of a client; 100ms at least
	LoginTimeout Duration `toml:"login_timeout" reload:"new"`
	// a client that reads nothing of its answer for so long is disconnected
	WriteTimeout Duration `toml:"write_timeout" reload:"new"`
	// how long a statement waits for a [paused](operations.md#pause-and-resume) shard (then error
	// 1429), or for `statement_memory` (then 1041)
	PauseTimeout Duration `toml:"pause_timeout" reload:"now"`

	// statements up to this size, and to 16 MB, are analysed; longer ones are relayed as they are,
	// or get error 1235 where columns are filled in; 1KiB to 1GiB
	MaxStatement Size `toml:"max_statement" reload:"now"`
	// memory for statements above 64KiB (twice the size), many in a text, and rows that get keys;
	// others wait, slow ones get 1159. Open transactions may double it; 1MiB to 1024GiB
	StatementMemory Size `toml:"statement_memory" reload:"now"`
	// clients at one time; one more gets error 1040
	MaxConnections int `toml:"max_connections" reload:"new"`
	// clients of one user at one time; one more gets error 1203. 0 is any number
	MaxUserConnections int `toml:"max_user_connections" reload:"new"`
	// clients that log in at a time, four fifths of them from one address; others wait. They get
	// error 1040 after `login_timeout`, or if few `max_connections` are free. 0: any; 10^6 at most
	MaxLogins int `toml:"max_logins" reload:"new"`

	// how many failed logins from one address are answered at once; [further ones
	// wait](security.md#guessed-passwords). 0: none waits
	FailedLogins int `toml:"failed_logins" reload:"new"`
	// the longest that such a login waits; never more than half of `login_timeout`
	FailedLoginDelay Duration `toml:"failed_login_delay" reload:"new"`
	// addresses and networks (`"127.0.0.1"`, `"10.0.0.0/8"`) whose logins are never delayed, and
	// may take all of `max_logins`
	FailedLoginExempt []Network `toml:"failed_login_exempt" reload:"new"`

	// addresses and networks of balancers. Each connection from there must begin with a header of
	// the PROXY protocol, version 1 or 2; from elsewhere none may
	// ([more](operations.md#behind-a-balancer))
	ProxyProtocolFrom []Network `toml:"proxy_protocol_from" reload:"new"`

	// clients may compress their connections, by zlib, and by zstd if all shards' servers offer
	// that. Those to servers are not compressed
	Compression bool `toml:"compression" reload:"new"`

	// when the server gets a number of `SELECT NEXTVAL` as its LAST_INSERT_ID(): `"auto"`, before
	// statements that may read it; `"exact"`, before every statement, for triggers and views
	LastInsertID LastInsertID `toml:"last_insert_id" oneof:"auto,exact" reload:"now"`
	// NEXTVAL of an unknown name: `"error"` is 4091; `"create"` creates it, whoever asks, from 1 on;
	// `"relay"` asks the server, for [MariaDB's own sequences](sequences.md#beside-mariadbs-own)
	UnknownSequence UnknownSequence `toml:"unknown_sequence" oneof:"error,create,relay" reload:"now"`
	// an INSERT of several rows without keys, of a [kind](kinds.md) whose keys are not a step
	// apart: `"refuse"` is error 1235; `"first"` fills them in, and drivers know the first key only
	MultiRow MultiRow `toml:"multi_row" oneof:"refuse,first" reload:"now"`

	Drain    Drain    `toml:"drain"`
	Admin    Admin    `toml:"admin"`
	Log      Log      `toml:"log"`
	HTTP     HTTP     `toml:"http"`
	TLS      TLS      `toml:"tls"`
	Users    []User   `toml:"user" reload:"new"`
	Sequence Sequence `toml:"sequence"`
	Tickets  []Ticket `toml:"ticket" reload:"now"`
	Binds    []Bind   `toml:"bind" reload:"now"`
	Shards   []Shard  `toml:"shard" reload:"now"` // empty: keys only, nothing is relayed

	file     string   // name for messages; "" when not from a file
	warnings []string // about files, made when it was loaded
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

// MultiRow is a value of the key multi_row.
type MultiRow string

// The values of multi_row.
const (
	MultiRowRefuse MultiRow = "refuse" // error 1235
	MultiRowFirst  MultiRow = "first"  // the insert id tells the first row's key alone
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

// Admin is the table [admin].
type Admin struct {
	// TCP address for statements to the proxy alone, without PROXY protocol, of each `[[user]]` in
	// `admin_users` or `monitor_users`. `""` for none, port 0 for any. `-admin-listen` overrides it
	Listen string `toml:"listen" reload:"restart"`
	// whether statements to the proxy are answered where clients connect, too. With `false` they
	// are an error there; those about sequences are answered all the same
	DataPort bool `toml:"data_port" reload:"now"`
}

// LogStderr is the value of the key log.output that is no file.
const LogStderr = "stderr"

// Drain is the table [drain].
type Drain struct {
	// for how long a proxy that was asked to stop still accepts clients, while `/readyz` is 503:
	// what a balancer needs to notice
	Grace Duration `toml:"grace" reload:"now"`
	// how long running statements and open transactions may go on after `drain.grace`; `"0s"` ends
	// them at once
	Timeout Duration `toml:"timeout" reload:"now"`
}

// Log is the table [log].
type Log struct {
	// the lowest level that is logged
	Level string `toml:"level" oneof:"debug,info,warn,error" reload:"now"`
	// `"console"` for people, `"json"` for programs
	Format string `toml:"format" oneof:"console,json" reload:"restart"`
	// `"stderr"`, or a file that lines are appended to, in a directory that exists
	// ([more](operations.md#log-files))
	Output string `toml:"output" reload:"restart"`
	// statements that take at least so long are logged, with a ? for each literal; 0 logs none
	SlowStatement Duration `toml:"slow_statement" reload:"now"`
}

// User is one [[user]]: an account that clients log in with. Once loaded OldPassword
// holds the old password, wherever it came from.
type User struct {
	// required
	Name string `toml:"name" reload:"new"`
	Credential
	// a second valid password, while you [change it](security.md#changing-a-password)
	OldPassword Secret `toml:"old_password" reload:"new"`
	// a file with the old password in one line
	OldPasswordFile string `toml:"old_password_file" reload:"new"`
	// the environment variable that holds it
	OldPasswordEnv string `toml:"old_password_env" reload:"new"`
	// the current schema of a login that names none
	Schema string `toml:"schema" reload:"new"`
	// the user's clients at one time; one more gets 1226. 0 is `max_user_connections`
	MaxConnections int `toml:"max_connections" reload:"new"`
	// the sequences that the user may use; others, and keys above their counters, are 1227. Names as
	// in SQL; `video*` is each name that begins so, as the table has it. `[]`: none
	Sequences []string `toml:"sequences" default:"[\"*\"]" reload:"new"`
	// the user must come over TLS, as with `REQUIRE SSL` on a server
	RequireTLS bool `toml:"require_tls" reload:"new"`
	// the user must show a certificate signed by one of `tls.client_ca_file`, as with `REQUIRE
	// X509`
	RequireCertificate bool `toml:"require_certificate" reload:"new"`
	// the subject that the user's certificate must have, as with `REQUIRE SUBJECT`:
	// `"/C=SE/O=Photos/CN=app"`, as `openssl x509 -noout -subject -nameopt compat` writes it
	CertificateSubject string `toml:"certificate_subject" reload:"new"`
	// the issuer that it must have, as with `REQUIRE ISSUER`
	CertificateIssuer string `toml:"certificate_issuer" reload:"new"`
}

// NeedsCertificate says whether logins of the user must show a certificate.
func (u *User) NeedsCertificate() bool {
	return u.RequireCertificate || u.CertificateSubject != "" || u.CertificateIssuer != ""
}

// Credential says where a password stands: at most one of its keys; none of them
// is the empty password. In a loaded Config Password holds the password,
// wherever it came from.
type Credential struct {
	// the password itself, in a file that only the proxy can read
	Password Secret `toml:"password" reload:"new"`
	// a file with the password in one line
	PasswordFile string `toml:"password_file" reload:"new"`
	// the environment variable that holds it
	PasswordEnv string `toml:"password_env" reload:"new"`
}

// Sequence is the table [sequence].
type Sequence struct {
	// schema of the table
	Database string `toml:"database" reload:"restart"`
	// the table of the counters. Others, with `_options`, `_version`, `_proxy`, `_member`, `_plan`,
	// `_plan_start`, `_holder` and `_limit` behind its name, stand beside it
	Table string `toml:"table" reload:"restart"`
	// create schema and tables where they are missing; `seqproxy schema` prints the statements
	CreateTable bool `toml:"create_table" reload:"now"`

	// how many numbers are reserved at a time, at least; 1 to 10^12
	Cache int64 `toml:"cache" reload:"now"`
	// for how long numbers in memory last at the measured rate; more than `cache` is reserved for
	// that, a week at most. `"0s"`: only `cache`
	OutageCover Duration `toml:"outage_cover" reload:"now"`
	// how long a statement waits for the sequence servers when no number is in memory
	AllocateTimeout Duration `toml:"allocate_timeout" reload:"now"`
	// a directory for [what this proxy remembers](operations.md#what-a-proxy-remembers), of this
	// proxy alone; made if its parent is there. Under systemd `"/var/lib/seqproxy"`
	StateDir string `toml:"state_dir" reload:"restart"`
	// the only worker of [SNOWFLAKE](kinds.md#snowflake) sequences that this proxy takes, such as
	// the ordinal of a pod; another one in each proxy. -1: any that is free
	WorkerID int64 `toml:"worker_id" reload:"restart"`
	// the name of an environment variable that holds `worker_id`
	WorkerIDEnv string `toml:"worker_id_env" reload:"restart"`
	// [ORDER sequences](sequences.md#order) on a primary with replicas need a majority of the
	// nodes. `false`: they go on up to the ceiling, and a fail-over may break their order
	OrderRequiresReplica bool `toml:"order_requires_replica" reload:"now"`
	// `"strict"` refuses a server with `innodb_flush_log_at_trx_commit` = 0 and warns of 2; in a
	// [cluster](cluster.md#what-a-cluster-can-lose) a majority needs 1. `"relaxed"`: keys
	// may repeat after a crash
	Durability Durability `toml:"durability" oneof:"strict,relaxed" reload:"restart"`
	// whether applications count in the table themselves. With `true`, [ADD and REMOVE SEQUENCE
	// SERVER](members.md#changing-their-number) want to hear that they are stopped
	DirectWriters bool `toml:"direct_writers" reload:"now"`

	// how [several servers](members.md) divide the numbers: a `"block"` in
	// turn, or one number in turn (`"step"`). It counts when the second server is added, and not
	// later
	Interleave Interleave `toml:"interleave" oneof:"block,step" reload:"restart"`
	// how many numbers a block has, 1 to 10^12; it counts when `interleave` does
	Block int64 `toml:"block" reload:"restart"`

	Servers []SequenceServer `toml:"server" reload:"restart"`
}

// Interleave is a value of the key sequence.interleave.
type Interleave string

// The values of sequence.interleave.
const (
	InterleaveBlock Interleave = "block" // the servers divide the numbers in blocks
	InterleaveStep  Interleave = "step"  // the servers divide the numbers one by one, in steps
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

// SequenceServer is one [[sequence.server]]. In a loaded Config Database is never empty.
type SequenceServer struct {
	// `host:port` or `unix:/path/of/socket`; this or `nodes` is required
	Address Address `toml:"address" reload:"restart"`
	// in place of `address`: all nodes of [a group](sequence-servers.md#groups); the same list in
	// every proxy
	Nodes []Address `toml:"nodes" reload:"restart"`
	// required
	User string `toml:"user" reload:"new"`
	Credential
	Security
	// `sequence.database`, unless this says otherwise
	Database string `toml:"database" reload:"restart"`
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
	// required; `schema.table` on the sequence server: the table of the sequences (also without
	// schema), or one with an AUTO_INCREMENT column
	Table string `toml:"table" reload:"now"`
}

// Names splits Table. schema is "" if Table has none.
func (t Ticket) Names() (schema, table string) {
	if schema, table, found := strings.Cut(t.Table, "."); found {
		return schema, table
	}
	return "", t.Table
}

// Shard is one [[shard]]: a named group of nodes that hold the same rows.
type Shard struct {
	// required; letters, digits, `_`, `-` and `.`
	Name string `toml:"name" reload:"now"`
	// the schemas that it owns, spelled as on the server; applications must spell them so, too.
	// Each has one owner
	Schemas []string `toml:"schemas" reload:"now"`
	// the account that the proxy logs in with for every client; without it, the client's
	// own name and password
	User string `toml:"user" reload:"new"`
	Credential
	Security
	Nodes []Node `toml:"node" reload:"now"`
}

// Node is one [[shard.node]]. This version takes exactly one of a shard.
type Node struct {
	// required, exactly one node in this version; `host:port` or `unix:/path/of/socket`
	Address Address `toml:"address" reload:"now"`
}

// Addresses returns the addresses of the nodes.
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
		Listen:         "127.0.0.1:4306",
		MonitorUsers:   []string{},
		Admin:          Admin{Listen: "127.0.0.1:4307", DataPort: true},
		ConnectTimeout: Duration(5 * time.Second),
		LoginTimeout:   Duration(10 * time.Second),
		WriteTimeout:   Duration(time.Minute),
		PauseTimeout:   Duration(time.Minute),
		MaxStatement:   16 * MiB, StatementMemory: 512 * MiB,
		MaxConnections: 10000,
		MaxLogins:      500,

		FailedLogins:      10,
		FailedLoginDelay:  Duration(5 * time.Second),
		FailedLoginExempt: []Network{},

		ProxyProtocolFrom: []Network{},

		UnknownUser:     UnknownUserRefuse,
		Compression:     true,
		LastInsertID:    LastInsertIDAuto,
		UnknownSequence: UnknownSequenceError,
		MultiRow:        MultiRowRefuse,
		Log:             Log{Level: "info", Format: "console", Output: LogStderr, SlowStatement: Duration(10 * time.Second)},
		HTTP:            HTTP{Listen: "127.0.0.1:4308"},
		Drain:           Drain{Timeout: Duration(30 * time.Second)},
		Sequence: Sequence{
			Database:             "seqproxy",
			Table:                "sequence",
			CreateTable:          true,
			Cache:                1000,
			OutageCover:          Duration(15 * time.Minute),
			WorkerID:             -1,
			OrderRequiresReplica: true,
			AllocateTimeout:      Duration(3 * time.Second),
			Durability:           DurabilityStrict,
			DirectWriters:        true,
			Interleave:           InterleaveBlock,
			Block:                10_000,
		},
	}
}

// File is the name of the file that the configuration was read from, or "".
func (c *Config) File() string { return c.file }

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

// IsAdmin reports whether the user may change sequences.
func (c *Config) IsAdmin(user string) bool { return slices.Contains(c.AdminUsers, user) }

// IsMonitor reports whether the user is one of MonitorUsers.
func (c *Config) IsMonitor(user string) bool { return slices.Contains(c.MonitorUsers, user) }
