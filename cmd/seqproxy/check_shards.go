package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"seqproxy/backend"
	"seqproxy/conf"
	"seqproxy/internal/inspect"
	"seqproxy/protocol"
)

// loggedIn is a login to a node of a shard.
type loggedIn struct {
	backend.Examined
	server *inspect.Server // nil if there was no account
	bound  map[int][]boundTable
}

// boundTable is a table of a [[bind]].
type boundTable struct {
	schema, table, column string // column is "" if the table lacks it
	columnType, extra     string
}

// nodeOf is a node of a shard.
type nodeOf struct {
	shard  *conf.Shard
	where  string
	logins []*loggedIn
	server *inspect.Server // from the first account that could log in
	hello  *backend.Hello
}

// shards examines the nodes of the shards.
func (k *connected) shards(ctx context.Context) error {
	shards, err := shardsToExamine(k.cfg)
	if err != nil {
		return err
	}
	defer shards.Close()
	accounts := make([]backend.Account, len(k.cfg.Users))
	for i := range k.cfg.Users {
		u := &k.cfg.Users[i]
		accounts[i] = backend.Account{
			Credentials: backend.Credentials{User: u.Name, Password: u.Password.Reveal(), OtherPassword: u.OldPassword.Reveal()}, Schema: u.Schema,
		}
	}
	var mu sync.Mutex
	byNode := make(map[[2]string][]*loggedIn)
	shards.Routes().Examine(ctx, accounts, func(e backend.Examined, ask backend.Ask) {
		l := &loggedIn{Examined: e}
		var numbering []backend.AutoIncrement
		if ask != nil {
			k.askShardNode(ctx, l, ask)
			numbering = k.askNumbering(ctx, l, ask)
		}
		mu.Lock()
		defer mu.Unlock()
		k.numbering = append(k.numbering, numbering...)
		at := [2]string{e.Shard, e.Node}
		byNode[at] = append(byNode[at], l)
	})
	var nodes []*nodeOf
	for i := range k.cfg.Shards {
		shard := &k.cfg.Shards[i]
		for _, address := range shard.Addresses() {
			n := &nodeOf{shard: shard, where: fmt.Sprintf("shard %s node %s", shard.Name, address), logins: byNode[[2]string{shard.Name, string(address)}]}
			k.shardNode(n)
			nodes = append(nodes, n)
		}
	}
	k.shardsTogether(nodes)
	k.binds(nodes)
	k.reportNumbering(shards.Routes())
	return nil
}

func (k *connected) askShardNode(ctx context.Context, l *loggedIn, ask backend.Ask) {
	if l.server, l.Err = inspect.Read(ctx, inspect.Ask(ask)); l.Err != nil {
		return
	}
	l.bound = make(map[int][]boundTable)
	for i, b := range k.cfg.Binds {
		schema, table, column, err := b.Column.Split()
		if err != nil {
			continue // it was refused before
		}
		where := "NOT IN ('information_schema', 'performance_schema', 'mysql', 'sys')"
		if schema != "" {
			where = fmt.Sprintf("= _utf8mb4 X'%X'", schema)
		}
		rows, err := ask(ctx, fmt.Sprintf("SELECT t.TABLE_SCHEMA, t.TABLE_NAME, IFNULL(c.COLUMN_NAME, ''), IFNULL(c.COLUMN_TYPE, ''), IFNULL(c.EXTRA, '') "+
			"FROM information_schema.TABLES t LEFT JOIN information_schema.COLUMNS c ON c.TABLE_SCHEMA = t.TABLE_SCHEMA AND c.TABLE_NAME = t.TABLE_NAME AND c.COLUMN_NAME = _utf8mb4 X'%X' "+
			"WHERE t.TABLE_TYPE IN ('BASE TABLE', 'SYSTEM VERSIONED') AND t.TABLE_NAME = _utf8mb4 X'%X' AND t.TABLE_SCHEMA %s ORDER BY 1, 2 LIMIT 1000", column, table, where))
		if err != nil {
			l.Err = err
			return
		}
		for _, r := range rows {
			l.bound[i] = append(l.bound[i], boundTable{r[0], r[1], r[2], r[3], r[4]})
		}
	}
}

// shardNode reports on one node.
func (k *connected) shardNode(n *nodeOf) {
	f := k.at(n.where)
	for _, l := range n.logins {
		if l.Err != nil {
			k.shardLoginFailed(f, n, l)
			continue
		}
		if n.hello == nil {
			n.hello = &l.Hello
		}
		if l.server == nil {
			f.OK("login", "its greeting says %s; without a [[user]] no account is known to look further", l.Hello.Version)
			continue
		}
		over := "without TLS"
		if l.TLS {
			over = "over TLS"
		}
		f.OK("login", "as %s, %s", l.server.Account, over)
		if n.server == nil {
			n.server = l.server
		}
	}
	if n.server != nil {
		k.seen = append(k.seen, seen{n.server, n.where})
		k.shardServer(f, n.server)
	}
}

func (k *connected) shardLoginFailed(f *inspect.Findings, n *nodeOf, l *loggedIn) {
	key, schema := fmt.Sprintf("user[%q]", l.User), l.Schema
	if n.shard.User != "" {
		key = fmt.Sprintf("shard[%q]", n.shard.Name)
	}
	add := f.Wrong
	switch code, _ := codeOf(l.Err); {
	case code == 0 || n.shard.User != "":
	case k.cfg.IsMonitor(l.User) && l.User != k.cfg.Users[0].Name:
		f.OK("login", "no account %q, and who asks at admin.listen alone needs none: %v", l.User, l.Err)
		return
	case n.shard.Name != k.cfg.DefaultShard, k.cfg.IsAdmin(l.User) && l.User != k.cfg.Users[0].Name:
		add = f.Warn // a user that need not log in there, except an admin for OWNED BY, CHECK and REPAIR
	}
	err := l.Err
	if unreachable := new(backend.UnreachableError); errors.As(err, &unreachable) {
		err = unreachable.Err
	}
	loginFailed(err, l.User, schema, key, add)
}

// shardServer reports on a node's server.
func (k *connected) shardServer(f *inspect.Findings, s *inspect.Server) {
	s.CheckVersion(f, k.now)
	before := len(f.All)
	if s.IsOn("read_only") || s.IsOn("super_read_only") {
		mend := "SET GLOBAL read_only = 0"
		if s.IsOn("super_read_only") {
			mend = "SET GLOBAL super_read_only = 0, GLOBAL read_only = 0"
		}
		f.Wrong("settings", "it is read only, and statements of all kinds go to it", "or name the primary as the node", mend)
	}
	if option := s.StartedReadOnly(); option != "" {
		f.Wrong("settings", "it was started with "+option+": nobody can write to InnoDB's tables, and statements of all kinds go to it", "start it without, or name the primary as the node")
	}
	mode := s.Variables["sql_mode"]
	if !strings.Contains(mode, "STRICT_TRANS_TABLES") && !strings.Contains(mode, "STRICT_ALL_TABLES") {
		f.Warn("settings", "sql_mode is not strict: a key above the maximum of its column is cut to that without an error", keepSetting+"; sessions that are there keep theirs",
			"SET GLOBAL sql_mode = CONCAT_WS(',', NULLIF(@@GLOBAL.sql_mode, ''), 'STRICT_TRANS_TABLES')")
	}
	if most := s.Number("max_connections"); most > 0 && most < uint64(k.cfg.MaxConnections) {
		f.Warn("settings", fmt.Sprintf("max_connections is %d there, and the proxy lets %d clients in, each with a connection of its own: further ones get error 1040", most, k.cfg.MaxConnections),
			fmt.Sprintf("or max_connections = %d in the configuration of the proxy", max(1, most-min(most-1, 10))), fmt.Sprintf("SET GLOBAL max_connections = %d", k.cfg.MaxConnections+10))
	}
	if len(f.All) == before {
		f.OK("settings", "as they should be")
	}
	k.checkClock(f, s)
}

// framing are the flags that change what clients can use, with names for people.
var framing = []struct {
	flag protocol.Capability
	name string
}{
	{protocol.DeprecateEOF, "DEPRECATE_EOF"},
	{protocol.SessionTrack, "SESSION_TRACK"},
	{protocol.QueryAttributes, "QUERY_ATTRIBUTES"},
	{protocol.OptionalMetadata, "OPTIONAL_RESULTSET_METADATA"},
	{protocol.MultiStatements, "MULTI_STATEMENTS"},
	{protocol.LocalFiles, "LOCAL_FILES"},
	{protocol.ExpiredPasswords, "CAN_HANDLE_EXPIRED_PASSWORDS"},
	{protocol.Progress, "MariaDB's PROGRESS"},
	{protocol.BulkOperations, "MariaDB's BULK_OPERATIONS"},
	{protocol.ExtendedMetadata, "MariaDB's EXTENDED_METADATA"},
	{protocol.CacheMetadata, "MariaDB's CACHE_METADATA"},
	{protocol.BulkUnitResults, "MariaDB's BULK_UNIT_RESULTS"},
}

// compressing are the flags that matter if compression is offered.
var compressing = []struct {
	flag protocol.Capability
	name string
}{{protocol.Compress, "COMPRESS"}, {protocol.CompressZstd, "ZSTD_COMPRESSION"}}

// shardsTogether reports how the nodes differ.
func (k *connected) shardsTogether(nodes []*nodeOf) {
	nodes = slices.DeleteFunc(slices.Clone(nodes), func(n *nodeOf) bool { return n.hello == nil })
	if len(nodes) < 2 {
		return
	}
	f := k.at("all shards")
	flags := framing
	if k.cfg.Compression {
		flags = append(slices.Clone(framing), compressing...)
	}
	for _, c := range flags {
		var with, without []string
		for _, n := range nodes {
			if n.hello.Capabilities.Has(c.flag) {
				with = append(with, n.where)
			} else {
				without = append(without, n.where)
			}
		}
		if len(with) > 0 && len(without) > 0 {
			f.Warn("framing", fmt.Sprintf("clients cannot use %s, which %s does not have", c.name, strings.Join(without, ", ")),
				"servers of one kind and version have the same; what all have is what clients are offered")
		}
	}
	differ := false
	answered := slices.DeleteFunc(nodes, func(n *nodeOf) bool { return n.server == nil })
	if len(answered) == 0 {
		return
	}
	for i, n := range answered {
		for _, other := range answered[:i] {
			if n.server.Place() == other.server.Place() && !slices.Equal(n.shard.Addresses(), other.shard.Addresses()) {
				f.Warn("addresses", fmt.Sprintf("%s and %s are one server", other.where, n.where), "write the same address in both, or correct the wrong one")
			}
		}
	}
	for _, v := range []struct{ variable, what string }{
		{"sql_mode", "the same statement may be read or judged differently on them"},
		{"lower_case_table_names", "the same name may mean different tables on them"},
		{"wait_timeout", "idle sessions end at different times"},
	} {
		differ = k.differs(answered, v.variable, v.what) || differ
	}
	differ = k.autoIncrement(answered) || differ
	if len(f.All) == 0 && !differ {
		f.OK("framing", "all offer clients the same, and have the same settings")
	}
}

// differs warns if a variable differs between nodes. It reports the nodes that differ from the
// first.
func (k *connected) differs(nodes []*nodeOf, variable, what string) (found bool) {
	for _, n := range nodes[1:] {
		first, value := nodes[0].server.Variables[variable], n.server.Variables[variable]
		if value == first {
			continue
		}
		found = true
		f := k.at(n.where)
		text := fmt.Sprintf("%s is %q there and %q on %s: %s", variable, value, first, nodes[0].where, what)
		switch variable {
		case "lower_case_table_names":
			f.Warn("settings", text, "it can be chosen when a server is set up")
		case "sql_mode":
			f.Warn("settings", text, keepSetting, fmt.Sprintf("SET GLOBAL sql_mode = '%s'", first))
		default:
			f.Warn("settings", text, keepSetting, fmt.Sprintf("SET GLOBAL %s = %s", variable, first))
		}
	}
	return found
}

// autoIncrement warns of keys that several servers would generate, although some have offsets to
// avoid that.
func (k *connected) autoIncrement(nodes []*nodeOf) (found bool) {
	var step uint64
	first := make(map[string]*nodeOf)
	var servers []*nodeOf // each server once
	for _, n := range nodes {
		if first[n.server.Place()] == nil {
			first[n.server.Place()] = n
			servers = append(servers, n)
			step = max(step, n.server.Number("auto_increment_increment"))
		}
	}
	if step <= 1 {
		return false // none has an offset: keys come from the proxy
	}
	step = max(step, uint64(len(servers)))
	taken := make(map[uint64]*nodeOf) // by offset
	var wrong []*nodeOf
	for _, n := range servers {
		offset := n.server.Number("auto_increment_offset")
		if n.server.Number("auto_increment_increment") == step && taken[offset] == nil && offset <= step {
			taken[offset] = n
			continue
		}
		wrong = append(wrong, n)
	}
	for _, n := range wrong {
		offset := uint64(1)
		for taken[offset] != nil {
			offset++
		}
		taken[offset] = n
		k.at(n.where).Warn("auto_increment", fmt.Sprintf("auto_increment_increment and _offset are %d and %d there, but %d servers divide the numbers: AUTO_INCREMENT gives the same key on several of them",
			n.server.Number("auto_increment_increment"), n.server.Number("auto_increment_offset"), len(servers)), keepSetting,
			fmt.Sprintf("SET GLOBAL auto_increment_increment = %d", step), fmt.Sprintf("SET GLOBAL auto_increment_offset = %d", offset))
	}
	return len(wrong) > 0
}

// binds reports bound columns that cannot be filled.
func (k *connected) binds(nodes []*nodeOf) {
	if len(k.cfg.Binds) == 0 || !slices.ContainsFunc(nodes, func(n *nodeOf) bool { return n.server != nil }) {
		return
	}
	for i, b := range k.cfg.Binds {
		f := k.at("configuration")
		key := fmt.Sprintf("bind[%q]", b.Column)
		found := 0
		for _, n := range nodes {
			reported := make(map[[2]string]bool)
			for _, l := range n.logins {
				for _, t := range l.bound[i] {
					if reported[[2]string{t.schema, t.table}] {
						continue
					}
					reported[[2]string{t.schema, t.table}] = true
					found++
					k.boundTable(f, key, n, b, t)
				}
			}
		}
		switch {
		case found == 0:
			f.Wrong("bind", key+": no account sees such a table on any shard", "create the table, GRANT SELECT on it, or correct the key")
		case len(f.All) == 0:
			f.OK("bind", "%s: %d tables", key, found)
		}
	}
}

func (k *connected) boundTable(f *inspect.Findings, key string, n *nodeOf, b conf.Bind, t boundTable) {
	_, _, column, _ := b.Column.Split()
	table := quoteName(t.schema, t.table)
	modify := fmt.Sprintf("ALTER TABLE %s MODIFY %s BIGINT UNSIGNED NOT NULL", table, quoteName(column))
	if strings.Contains(strings.ToLower(t.extra), "auto_increment") {
		modify += " AUTO_INCREMENT"
	}
	switch limit := backend.IntegerLimit(t.columnType); {
	case t.column == "":
		f.Wrong("bind", fmt.Sprintf("%s: %s on %s has no such column", key, table, n.where), "or correct the key",
			fmt.Sprintf("ALTER TABLE %s ADD %s BIGINT UNSIGNED NOT NULL", table, quoteName(column)))
	case limit == 0:
		f.Warn("bind", fmt.Sprintf("%s: the column of %s on %s is %s, which is no integer", key, table, n.where, t.columnType), "", modify)
	case limit < 1<<63-1:
		f.Warn("bind", fmt.Sprintf("%s: the column of %s on %s is %s, and ends at %d", key, table, n.where, t.columnType, limit),
			"or a MAXVALUE of the sequence", modify)
	}
}
