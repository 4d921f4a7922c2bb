package conf

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Validate checks a configuration that [Load] or [Parse] did not make, or that was changed later.
// The error is an [*Error] with everything that is wrong.
func (c *Config) Validate() error {
	if problems := c.problems(); len(problems) > 0 {
		return &Error{File: c.file, Problems: problems}
	}
	return nil
}

// checker collects problems.
type checker struct{ problems []string }

func (p *checker) add(key, format string, args ...any) {
	p.problems = append(p.problems, key+": "+fmt.Sprintf(format, args...))
}

func (c *Config) problems() []string {
	var p checker
	c.checkServing(&p)
	c.HTTP.check(&p)
	c.checkListeners(&p)
	if err := c.TLS.check(); err != nil {
		p.add("tls", "%v", err)
	}
	c.checkUsers(&p)
	c.checkSequence(&p)
	c.checkTickets(&p)
	c.checkShards(&p)
	c.checkBinds(&p)
	return p.problems
}

// checkListeners checks that the proxy can listen at all of its addresses.
func (c *Config) checkListeners(p *checker) {
	all := [...]struct{ key, address string }{{"listen", c.Listen}, {"admin.listen", c.Admin.Listen}, {"http.listen", c.HTTP.Listen}}
	for i, one := range all {
		for _, other := range all[:i] {
			if sameListener(one.address, other.address) {
				p.add(one.key, "must be another address than %s, is %q", other.key, one.address)
			}
		}
	}
}

// Bounds of logins. A shorter timeout, of a unit forgotten, would let nobody in, not even who could
// mend it; and the queue of logins multiplies their number.
const (
	minLoginTimeout = 100 * time.Millisecond
	maxLogins       = 1_000_000
)

// checkServing checks the keys before the first table, and [drain] and [log].
func (c *Config) checkServing(p *checker) {
	if _, err := checkHostPort(c.Listen, 0); err != nil {
		p.add("listen", `must be host:port such as "127.0.0.1:4306", is %q`, c.Listen)
	}
	c.checkAdmin(p)
	checkPositive(p, "connect_timeout", c.ConnectTimeout)
	checkAtLeast(p, "login_timeout", c.LoginTimeout, minLoginTimeout)
	checkPositive(p, "write_timeout", c.WriteTimeout)
	checkPositive(p, "pause_timeout", c.PauseTimeout)
	if c.Drain.Grace < 0 {
		p.add("drain.grace", "must not be negative, is %s", c.Drain.Grace)
	}
	if c.Drain.Timeout < 0 {
		p.add("drain.timeout", "must not be negative, is %s", c.Drain.Timeout)
	}
	if c.MaxStatement < KiB || c.MaxStatement > GiB {
		p.add("max_statement", "must be between 1KiB and 1GiB, is %s", c.MaxStatement)
	}
	if c.StatementMemory < MiB || c.StatementMemory > 1024*GiB {
		p.add("statement_memory", "must be between 1MiB and 1024GiB, is %s", c.StatementMemory)
	}
	if c.MaxConnections < 1 {
		p.add("max_connections", "must be >= 1, is %d", c.MaxConnections)
	}
	checkNotNegative(p, "max_user_connections", c.MaxUserConnections)
	if c.MaxLogins < 0 || c.MaxLogins > maxLogins {
		p.add("max_logins", "must be between 0 and %d, is %d", maxLogins, c.MaxLogins)
	}
	checkNotNegative(p, "failed_logins", c.FailedLogins)
	checkPositive(p, "failed_login_delay", c.FailedLoginDelay)
	checkNetworks(p, "failed_login_exempt", c.FailedLoginExempt)
	checkNetworks(p, "proxy_protocol_from", c.ProxyProtocolFrom)
	checkOneOf(p, "last_insert_id", c.LastInsertID, LastInsertIDAuto, LastInsertIDExact)
	checkOneOf(p, "multi_row", c.MultiRow, MultiRowRefuse, MultiRowFirst)
	checkOneOf(p, "unknown_sequence", c.UnknownSequence, UnknownSequenceError, UnknownSequenceCreate, UnknownSequenceRelay)
	checkOneOf(p, "log.level", c.Log.Level, "debug", "info", "warn", "error")
	checkOneOf(p, "log.format", c.Log.Format, "console", "json")
	if output := c.Log.Output; output != LogStderr {
		if info, err := os.Stat(filepath.Dir(output)); output == "" || err != nil || !info.IsDir() {
			p.add("log.output", `must be "stderr" or a file in a directory that exists, is %q`, output)
		}
	}
}

// checkAdmin checks [admin].
func (c *Config) checkAdmin(p *checker) {
	switch a := &c.Admin; {
	case a.Listen == "":
		if !a.DataPort {
			p.add("admin.data_port", "must be true without admin.listen, or statements to the proxy are answered nowhere")
		}
	default:
		if _, err := checkHostPort(a.Listen, 0); err != nil {
			p.add("admin.listen", `must be host:port such as "127.0.0.1:4307", or empty, is %q`, a.Listen)
		}
	}
}

func checkNotNegative(p *checker, key string, n int) {
	if n < 0 {
		p.add(key, "must be >= 0, is %d", n)
	}
}

func checkNetworks(p *checker, key string, networks []Network) {
	for _, n := range networks {
		if _, err := n.Prefix(); err != nil {
			p.add(key, "%v, is %q", err, n)
		}
	}
}

func checkPositive(p *checker, key string, d Duration) { checkAtLeast(p, key, d, time.Millisecond) }

func checkAtLeast(p *checker, key string, d Duration, least time.Duration) {
	if d.D() < least {
		p.add(key, "must be >= %s, is %s", least, d)
	}
}

func checkOneOf[T ~string](p *checker, key string, value T, allowed ...T) {
	if slices.Contains(allowed, value) {
		return
	}
	quoted := make([]string, len(allowed))
	for i, a := range allowed {
		quoted[i] = fmt.Sprintf("%q", a)
	}
	p.add(key, "must be %s or %s, is %q", strings.Join(quoted[:len(quoted)-1], ", "), quoted[len(quoted)-1], value)
}

// maxUserName is MariaDB's limit in characters; MySQL's is 32.
const maxUserName = 128

func (c *Config) checkUsers(p *checker) {
	byServer := c.UnknownUser == UnknownUserBackend
	checkOneOf(p, "unknown_user", c.UnknownUser, UnknownUserRefuse, UnknownUserBackend)
	switch {
	case byServer && len(c.Shards) == 0:
		p.add("unknown_user", `must be "refuse" without a [[shard]]: there is no server that could check a login`)
	case !byServer && len(c.Users) == 0:
		p.add("user", `at least one [[user]] is required, or nobody can log in; or unknown_user = "backend", for the accounts of the server`)
	}
	seen := make(map[string]bool)
	for i, user := range c.Users {
		key := userKey(c, i)
		switch {
		case user.Name == "":
			p.add(key+".name", "is missing")
		case seen[user.Name]:
			p.add(key+".name", "must be given once, is there twice")
		case !utf8.ValidString(user.Name) || utf8.RuneCountInString(user.Name) > maxUserName || strings.ContainsRune(user.Name, 0):
			p.add(key+".name", "must be at most %d characters of UTF-8 without a zero byte", maxUserName)
		}
		seen[user.Name] = true
		c.checkRequired(p, key, &user)
		checkNotNegative(p, key+".max_connections", user.MaxConnections)
		for _, name := range user.Sequences {
			if name == "" || strings.Contains(strings.TrimSuffix(name, "*"), "*") {
				p.add(key+".sequences", `must be names of sequences, or their beginning with one * behind it, has %q`, name)
			}
		}
		if user.Schema != "" {
			checkIdentifier(p, key+".schema", user.Schema)
		}
	}
	for _, list := range [...]struct {
		key   string
		names []string
	}{{"admin_users", c.AdminUsers}, {"monitor_users", c.MonitorUsers}} {
		for _, name := range list.names {
			if !seen[name] && !byServer {
				p.add(list.key, "must name users that are there as [[user]], %q is not", name)
			}
		}
	}
}

// checkRequired checks what a user's logins need in addition to the password.
func (c *Config) checkRequired(p *checker, key string, user *User) {
	switch {
	case user.NeedsCertificate() && c.TLS.ClientCAFile == "":
		p.add(key, "a certificate is required of the user, but tls.client_ca_file is missing, so none can be shown")
	case user.RequireTLS && !c.TLS.Configured():
		p.add(key+".require_tls", "needs the table [tls], without which no client can use TLS")
	}
	for _, name := range [...]struct{ key, value string }{{"certificate_subject", user.CertificateSubject}, {"certificate_issuer", user.CertificateIssuer}} {
		if name.value != "" && !certificateName.MatchString(name.value) {
			p.add(key+"."+name.key, `must be in the form "/C=SE/O=Photos/CN=app", is %q`, name.value)
		}
	}
}

// certificateName is MySQL's form of the names in certificates: the parts in their order in the
// certificate, with \xHH for anything but printable ASCII.
var certificateName = regexp.MustCompile(`^(/[A-Za-z0-9.]+=[ -~]*)+$`)

// maxIdentifier is the servers' limit for the names of schemas and tables, in characters:
// https://dev.mysql.com/doc/refman/8.4/en/identifier-length.html
const maxIdentifier = 64

// longestSuffix is that of the tables beside the table of the sequences.
const longestSuffix = "_plan_start"

// maxSequenceTable leaves room for it.
const maxSequenceTable = maxIdentifier - len(longestSuffix)

// isIdentifier reports whether a server takes name for a schema, table or column, "" apart.
func isIdentifier(name string) bool {
	return utf8.ValidString(name) && utf8.RuneCountInString(name) <= maxIdentifier && !strings.ContainsRune(name, 0) && !strings.HasSuffix(name, " ")
}

func checkIdentifier(p *checker, key, name string) {
	switch {
	case name == "":
		p.add(key, "must not be empty")
	case !isIdentifier(name):
		p.add(key, "must be a name of at most %d characters that does not end in a space, is %q", maxIdentifier, name)
	}
}

// maxCache keeps a typing error from using up a sequence: 2^63 numbers are 9 million reservations
// of this size.
const maxCache = 1_000_000_000_000

// maxOutageCover is a week, as for OUTAGE_COVER of a sequence.
const maxOutageCover = Duration(7 * 24 * time.Hour)

// mayBeDir reports whether path is a directory, or one that the proxy can make. What this process
// may not see, it takes for one: the proxy may be another user.
func mayBeDir(path string) bool {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		info, err = os.Stat(filepath.Dir(path))
	}
	return errors.Is(err, fs.ErrPermission) || err == nil && info.IsDir()
}

// Bounds for several sequence servers. They keep the arithmetic within 64 bits.
const (
	maxBlock           = 1_000_000_000_000
	maxSequenceServers = 64
)

// maxWorker is the highest worker that a sequence can have, with the most WORKER BITS.
const maxWorker = 1<<16 - 1

// resolveWorkerID reads worker_id_env, and returns what is wrong with it.
func (s *Sequence) resolveWorkerID() []string {
	if s.WorkerIDEnv == "" {
		return nil
	}
	const key = "sequence.worker_id_env"
	if s.WorkerID != -1 {
		return []string{key + ": at most one of worker_id and worker_id_env is allowed, has both"}
	}
	value, ok := os.LookupEnv(s.WorkerIDEnv)
	if !ok {
		return []string{fmt.Sprintf("%s: the environment variable %s is not set", key, s.WorkerIDEnv)}
	}
	worker, err := strconv.ParseInt(value, 10, 64)
	if err != nil || worker < 0 || worker > maxWorker {
		// A wrong name may be that of a secret, so the message omits the value.
		return []string{fmt.Sprintf("%s: the environment variable %s must be a number from 0 to %d, and is not", key, s.WorkerIDEnv, maxWorker)}
	}
	s.WorkerID = worker
	return nil
}

func (c *Config) checkSequence(p *checker) {
	s := &c.Sequence
	checkIdentifier(p, "sequence.database", s.Database)
	checkIdentifier(p, "sequence.table", s.Table)
	if n := utf8.RuneCountInString(s.Table); n > maxSequenceTable && n <= maxIdentifier {
		p.add("sequence.table", "must be at most %d characters, since a table <table>%s stands beside it, is %q", maxSequenceTable, longestSuffix, s.Table)
	}
	if s.Cache < 1 || s.Cache > maxCache {
		p.add("sequence.cache", "must be between 1 and %d, is %d", int64(maxCache), s.Cache)
	}
	if s.OutageCover < 0 || s.OutageCover > maxOutageCover {
		p.add("sequence.outage_cover", "must be between 0s and %s, is %s", maxOutageCover, s.OutageCover)
	}
	checkPositive(p, "sequence.allocate_timeout", s.AllocateTimeout)
	if s.WorkerID < -1 || s.WorkerID > maxWorker {
		p.add("sequence.worker_id", "must be 0 to %d, or -1 for any, is %d", maxWorker, s.WorkerID)
	}
	checkOneOf(p, "sequence.durability", s.Durability, DurabilityStrict, DurabilityRelaxed)

	checkOneOf(p, "sequence.interleave", s.Interleave, InterleaveBlock, InterleaveStep)
	if s.Block < 1 || s.Block > maxBlock {
		p.add("sequence.block", "must be 1 to %d, is %d", int64(maxBlock), s.Block)
	}

	switch {
	case len(s.Servers) == 0:
		p.add("sequence.server", "one [[sequence.server]] is required: it holds the table that keys are reserved from")
	case len(s.Servers) > maxSequenceServers:
		p.add("sequence.server", "must be %d at most, there are %d", maxSequenceServers, len(s.Servers))
	}
	seen := make(map[Address]string)
	for i, server := range s.Servers {
		key := sequenceServerKey(i)
		c.checkSequenceNodes(p, key, &server)
		if len(server.Nodes) > 1 && len(s.Servers) > 1 {
			p.add(key+".nodes", "must not be there beside another [[sequence.server]]: keep one group, or have several servers of one address each")
		}
		for _, address := range server.Addresses() {
			if other, ok := seen[address]; ok && other != key && address != "" {
				p.add(key+".address", "%q is the address of %s, too", address, other)
			}
			seen[address] = key
		}
		if server.User == "" {
			p.add(key+".user", "is missing")
		}
		if server.Database != "" && server.Database != s.Database {
			checkIdentifier(p, key+".database", server.Database)
		}
		p.checkSecurity(key, server.Security, server.Addresses()...)
	}
}

// checkSequenceNodes checks the address of a sequence server, or the addresses of its nodes.
func (c *Config) checkSequenceNodes(p *checker, key string, server *SequenceServer) {
	if len(server.Nodes) == 0 {
		c.checkBackend(p, key+".address", server.Address)
		return
	}
	if server.Address != "" {
		p.add(key+".nodes", "and address exclude each other: name every address in nodes")
	}
	for i, node := range server.Nodes {
		if slices.Contains(server.Nodes[:i], node) {
			p.add(key+".nodes", "must name each address once, names %q twice", node)
			continue
		}
		c.checkBackend(p, key+".nodes", node)
	}
}

// checkBackend checks an address that the proxy will dial.
func (c *Config) checkBackend(p *checker, key string, address Address) {
	if address == "" {
		p.add(key, "is missing")
	} else if err := address.check(); err != nil {
		p.add(key, "%v, is %q", err, address)
	} else if sameEndpoint(address, c.Listen) {
		p.add(key, "must not be the proxy's own listen address, is %q", address)
	}
}

// shardName is a name that a hint, /*+ SHARD(photos1) */, can have without quotes.
var shardName = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}$`)

func (c *Config) checkShards(p *checker) {
	var names []string
	type owner struct{ schema, key string }
	owners := make(map[string]owner) // by schema in lower case
	for i, shard := range c.Shards {
		key := shardKey(c, i)
		switch {
		case shard.Name == "":
			p.add(key+".name", "is missing")
		case !shardName.MatchString(shard.Name):
			p.add(key+".name", "must be letters, digits, _, - and . (at most 64), is %q", shard.Name)
		case slices.Contains(names, shard.Name):
			p.add(key+".name", "must be given once, is there twice")
		}
		names = append(names, shard.Name)

		for _, schema := range shard.Schemas {
			checkIdentifier(p, key+".schemas", schema)
			switch first, ok := owners[strings.ToLower(schema)]; {
			case !ok:
				owners[strings.ToLower(schema)] = owner{schema, key}
			case first.schema == schema:
				p.add(key+".schemas", "a schema has one owner, but %q is owned by %s already", schema, first.key)
			default:
				p.add(key+".schemas", "a schema has one owner, but %q is owned by %s already, as %q; servers may ignore letter case", schema, first.key, first.schema)
			}
		}
		if shard.User == "" && (shard.Password.set || shard.PasswordFile != "" || shard.PasswordEnv != "") {
			p.add(key+".user", "is missing; a password of the shard needs it")
		}
		switch len(shard.Nodes) {
		case 0:
			p.add(key+".node", "one [[shard.node]] is required")
		case 1:
		default:
			p.add(key+".node", "exactly one [[shard.node]] per shard is supported in this version, there are %d", len(shard.Nodes))
		}
		for j, node := range shard.Nodes {
			c.checkBackend(p, elementKey(key+".node", j, "")+".address", node.Address)
		}
		p.checkSecurity(key, shard.Security, shard.Addresses()...)
	}
	c.checkDefaultShard(p, names)
}

func (c *Config) checkDefaultShard(p *checker, names []string) {
	switch {
	case len(names) == 0 && c.DefaultShard != "":
		p.add("default_shard", "must name a [[shard]], but there is none; is %q", c.DefaultShard)
	case len(names) == 0:
	case c.DefaultShard == "":
		p.add("default_shard", "is missing; with more than one [[shard]] it must be one of %s", strings.Join(names, ", "))
	case !slices.Contains(names, c.DefaultShard):
		p.add("default_shard", "must be one of %s, is %q", strings.Join(names, ", "), c.DefaultShard)
	}
}

// The next three name an element of a list for messages. They use its own name if it has one,
// rather than its position in the file.

func userKey(c *Config, i int) string { return elementKey("user", i, c.Users[i].Name) }

func shardKey(c *Config, i int) string { return elementKey("shard", i, c.Shards[i].Name) }

func sequenceServerKey(i int) string { return elementKey("sequence.server", i, "") }

func elementKey(list string, i int, name string) string {
	if name == "" {
		return fmt.Sprintf("%s #%d", list, i+1)
	}
	return fmt.Sprintf("%s[%q]", list, name)
}
