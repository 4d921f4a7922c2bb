package torture

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/sync/errgroup"

	"seqproxy/internal/mysqld"
)

// group is a primary and its replicas by asynchronous replication. One fault changes it at a time:
// the one that has claimed groupPart.
type group struct {
	world   *world
	primary *server
	strayed map[*server]bool  // nodes that have what the primary lacks
	stood   map[string]uint64 // the counters of the primary when it became that
	// losses counts how often a replica became the primary without all that had been reserved.
	losses int
}

// groupPart stands for the role of the primary.
const groupPart part = "group"

// account is that of the proxies on the nodes of a group. It has no SUPER, which writes to a
// read-only server.
const account = "seqproxy"

// startGroup starts the nodes of a group. All start read-only, as in installations where another
// program chooses the primary.
func (w *world) startGroup(ctx context.Context, b mysqld.Binary) error {
	g := &group{world: w, strayed: make(map[*server]bool)}
	starting, startCtx := errgroup.WithContext(ctx)
	for i, s := range w.nodes {
		s.group = g
		args := append(mysqld.ReplicationArgs(b, i+1), "--read-only=ON")
		starting.Go(func() error { return s.start(startCtx, w, args...) })
	}
	if err := starting.Wait(); err != nil {
		return err
	}
	right := "SLAVE MONITOR"
	if b.Flavour == mysqld.MySQL {
		right = "REPLICATION CLIENT"
	}
	for _, s := range w.nodes {
		err := s.unlogged(ctx, "CREATE USER "+account, "GRANT SELECT, INSERT, UPDATE, DELETE, CREATE ON "+schemaOfSequences+".* TO "+account, "GRANT "+right+" ON *.* TO "+account)
		if err != nil {
			return err
		}
	}
	w.group, g.primary = g, w.nodes[0]
	if err := g.writable(ctx, g.primary, true); err != nil {
		return err
	}
	for _, s := range w.nodes[1:] {
		if err := g.follow(ctx, s, g.primary, ""); err != nil {
			return err
		}
	}
	return nil
}

// exec runs statements on one connection.
func (s *server) exec(ctx context.Context, texts ...string) error {
	conn, err := s.db.Conn(ctx)
	if err != nil {
		return fmt.Errorf("%s: %w", s.name, err)
	}
	defer conn.Close() //nolint:errcheck // every statement was answered
	return s.execOn(ctx, conn, texts...)
}

func (s *server) execOn(ctx context.Context, conn *sql.Conn, texts ...string) error {
	for _, text := range texts {
		if _, err := conn.ExecContext(ctx, text); err != nil {
			return fmt.Errorf("%s: %s: %w", s.name, text, err)
		}
	}
	return nil
}

// unlogged is exec for statements that no other node receives.
func (s *server) unlogged(ctx context.Context, texts ...string) error {
	return s.exec(ctx, append([]string{"SET sql_log_bin = 0"}, texts...)...)
}

// one reads a single value.
func (s *server) one(ctx context.Context, text string, args ...any) (value string, err error) {
	var v sql.NullString
	if err = s.db.QueryRowContext(ctx, text, args...).Scan(&v); err != nil {
		err = fmt.Errorf("%s: %s: %w", s.name, text, err)
	}
	return strings.ReplaceAll(v.String, "\n", ""), err
}

func (g *group) mysql() bool { return g.world.opts.Server.Flavour == mysqld.MySQL }

// replica is the word for replicas in the server's statements.
func (g *group) replica() string { return g.world.opts.Server.Replica() }

// replicas are all nodes but the primary.
func (g *group) replicas() (all []*server) {
	for _, s := range g.world.nodes {
		if s != g.primary {
			all = append(all, s)
		}
	}
	return all
}

// parts are all of the group, without the network.
func (g *group) parts() []part {
	all := []part{groupPart}
	for _, s := range g.world.nodes {
		all = append(all, s.part())
	}
	return all
}

// writable makes a node writable or read-only.
func (g *group) writable(ctx context.Context, s *server, yes bool) error {
	return s.exec(ctx, "SET GLOBAL read_only = "+map[bool]string{true: "0", false: "1"}[yes])
}

// position is how far a node has come.
func (g *group) position(ctx context.Context, s *server) (string, error) {
	if g.mysql() {
		return s.one(ctx, "SELECT @@global.gtid_executed")
	}
	binlog, err := s.one(ctx, "SELECT @@global.gtid_binlog_pos")
	if err != nil || binlog != "" {
		return binlog, err
	}
	return s.one(ctx, "SELECT @@global.gtid_slave_pos") // nothing was written since it was set up
}

// step returns the number at the end of a position such as "0-1-17".
func step(position string) (uint64, error) {
	_, number, _ := strings.Cut(position, "-")
	_, number, _ = strings.Cut(number, "-")
	if position == "" {
		return 0, nil
	}
	n, err := strconv.ParseUint(number, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("position %q: %w", position, err)
	}
	return n, nil
}

// beyond reports whether a node has something that is not part of a position.
func (g *group) beyond(ctx context.Context, s *server, position string) (bool, error) {
	mine, err := g.position(ctx, s)
	if err != nil {
		return false, err
	}
	if g.mysql() {
		subset, err := s.one(ctx, "SELECT GTID_SUBSET(?, ?)", mine, position)
		return subset == "0", err
	}
	a, err := step(mine)
	b, errOther := step(position)
	return a > b, errors.Join(err, errOther)
}

// follow makes a node a read-only replica of another. promoted is where that one stood when it
// became the primary, "" if it was that before: what the node has beyond that stays on it.
func (g *group) follow(ctx context.Context, s, of *server, promoted string) (err error) {
	texts := []string{"SET GLOBAL read_only = 1", "STOP " + g.replica()}
	if !g.mysql() && promoted != "" {
		from, err := g.position(ctx, s)
		if err != nil {
			return err
		}
		beyond, err := g.beyond(ctx, s, promoted)
		if err != nil {
			return err
		}
		if beyond {
			from = promoted // it has nothing of what came then
		}
		texts = append(texts, "SET GLOBAL gtid_slave_pos = '"+from+"'")
	}
	return s.exec(ctx, append(texts, mysqld.FollowStatement(of.Server), "START "+g.replica())...)
}

// promote makes a replica the primary, with its own rows, and returns where it stands. The other
// nodes do not learn of it.
func (g *group) promote(ctx context.Context, s *server) (position string, err error) {
	if err := s.exec(ctx, "STOP "+g.replica()); err != nil {
		return "", err
	}
	if position, err = g.position(ctx, s); err != nil {
		return "", err
	}
	if g.stood, err = s.rows(ctx); err != nil {
		return "", err
	}
	g.primary = s
	return position, s.exec(ctx, "RESET "+g.replica()+" ALL", "SET GLOBAL read_only = 0")
}

// caughtUp waits until a replica has all that the primary has now.
func (g *group) caughtUp(ctx context.Context, s *server) error {
	position, err := g.position(ctx, g.primary)
	if err != nil {
		return err
	}
	there := "SELECT MASTER_GTID_WAIT(?, 0.01) = 0"
	if g.mysql() {
		there = "SELECT GTID_SUBSET(?, @@global.gtid_executed)"
	}
	err = eventually(ctx, backWithin, func() error {
		if yes, err := s.one(ctx, there, position); err != nil {
			return err
		} else if yes != "1" {
			return fmt.Errorf("%s does not catch up with %s at %s", s.name, g.primary.name, position)
		}
		return nil
	})
	if err != nil {
		status, _ := s.status(ctx, "SHOW "+g.replica()+" STATUS")
		err = fmt.Errorf("%w (%s)", err, status)
	}
	return err
}

// status returns why a node does not replicate, from a statement's answer.
func (s *server) status(ctx context.Context, text string) (string, error) {
	rows, err := s.db.QueryContext(ctx, text)
	if err != nil {
		return "", err
	}
	defer rows.Close() //nolint:errcheck // Err tells
	columns, err := rows.Columns()
	if err != nil {
		return "", err
	}
	var said []string
	for rows.Next() {
		values := make([]any, len(columns))
		for i := range values {
			values[i] = new(sql.NullString)
		}
		if err := rows.Scan(values...); err != nil {
			return "", err
		}
		for i, name := range columns {
			if v := values[i].(*sql.NullString).String; v != "" && (strings.Contains(name, "Error") || strings.Contains(name, "Running") || strings.Contains(name, "State")) {
				said = append(said, name+": "+v)
			}
		}
	}
	return strings.Join(said, ", "), rows.Err()
}

// claimed waits until a proxy has made the primary the holder of the sequences. A node must not be
// set up anew before: windows of the old primary that the new one has not received are known only
// there.
func (g *group) claimed(ctx context.Context) error {
	self := "CONCAT('server_id ', @@server_id)"
	if g.mysql() {
		self = "@@server_uuid"
	}
	return eventually(ctx, backWithin, func() error {
		yes, err := g.primary.one(ctx, "SELECT `holder` = "+self+" AND `complete` = 1 FROM seqproxy.sequence_holder ORDER BY `term` DESC, `holder` DESC LIMIT 1")
		if err == nil && yes != "1" {
			err = fmt.Errorf("%s, the new primary, does not hold the sequences", g.primary.name)
		}
		return err
	})
}

// rebuild discards the contents of a node, and makes it a replica of the primary with a copy of its
// present contents.
func (g *group) rebuild(ctx context.Context, s *server) error {
	// A server whose clock jumps may answer a statement too late.
	if err := eventually(ctx, backWithin, func() error { return g.copyTo(ctx, s) }); err != nil {
		return err
	}
	return g.caughtUp(ctx, s)
}

// copyTo is rebuild without the wait for what the primary has had since.
func (g *group) copyTo(ctx context.Context, s *server) error {
	position, texts, err := g.copyPrimary(ctx)
	if err != nil {
		return err
	}
	stop := []string{"SET GLOBAL read_only = 1", "STOP " + g.replica(), "RESET " + g.replica() + " ALL"}
	begin := []string{"RESET MASTER", "SET GLOBAL gtid_binlog_state = '" + position + "'", "SET GLOBAL gtid_slave_pos = '" + position + "'"}
	if g.mysql() {
		begin = []string{"RESET BINARY LOGS AND GTIDS", "SET GLOBAL gtid_purged = '" + position + "'"}
	}
	if err := s.exec(ctx, stop...); err != nil {
		return err
	}
	if err := s.unlogged(ctx, texts...); err != nil {
		return err
	}
	if err := s.exec(ctx, begin...); err != nil {
		return err
	}
	return g.follow(ctx, s, g.primary, "")
}

// copyPrimary returns the schema of the sequences on the primary as statements that make it, and
// its position then.
func (g *group) copyPrimary(ctx context.Context) (position string, texts []string, err error) {
	conn, err := g.primary.db.Conn(ctx)
	if err != nil {
		return "", nil, err
	}
	defer func() { err = errors.Join(err, conn.Close()) }() // closing unlocks the tables
	if err := g.primary.execOn(ctx, conn, "USE "+schemaOfSequences, "FLUSH TABLES WITH READ LOCK"); err != nil {
		return "", nil, err
	}
	if position, err = g.position(ctx, g.primary); err != nil {
		return "", nil, err
	}
	var tables []string
	if err := eachRow(ctx, conn, "SHOW TABLES", func(v []sql.NullString) { tables = append(tables, v[0].String) }); err != nil {
		return "", nil, err
	}
	texts = []string{"DROP DATABASE IF EXISTS " + schemaOfSequences, "CREATE DATABASE " + schemaOfSequences, "USE " + schemaOfSequences}
	for _, table := range tables {
		if err := eachRow(ctx, conn, "SHOW CREATE TABLE `"+table+"`", func(v []sql.NullString) { texts = append(texts, v[1].String) }); err != nil {
			return "", nil, err
		}
		err := eachRow(ctx, conn, "SELECT * FROM `"+table+"`", func(v []sql.NullString) {
			literals := make([]string, len(v))
			for i, one := range v {
				if literals[i] = "NULL"; one.Valid {
					literals[i] = "'" + strings.NewReplacer(`\`, `\\`, "'", "''").Replace(one.String) + "'"
				}
			}
			texts = append(texts, "INSERT INTO `"+table+"` VALUES ("+strings.Join(literals, ", ")+")")
		})
		if err != nil {
			return "", nil, err
		}
	}
	return position, texts, nil
}

func eachRow(ctx context.Context, conn *sql.Conn, text string, see func([]sql.NullString)) error {
	rows, err := conn.QueryContext(ctx, text)
	if err != nil {
		return fmt.Errorf("%s: %w", text, err)
	}
	defer rows.Close() //nolint:errcheck // Err tells
	columns, err := rows.Columns()
	if err != nil {
		return err
	}
	values, into := make([]sql.NullString, len(columns)), make([]any, len(columns))
	for i := range values {
		into[i] = &values[i]
	}
	for rows.Next() {
		if err := rows.Scan(into...); err != nil {
			return err
		}
		see(values)
	}
	return rows.Err()
}

// whole waits until every replica has what the primary has.
func (g *group) whole(ctx context.Context) error {
	for _, s := range g.replicas() {
		if err := g.caughtUp(ctx, s); err != nil {
			return err
		}
	}
	return nil
}
