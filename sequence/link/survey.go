package link

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"strings"
	"time"

	gomysql "github.com/go-mysql-org/go-mysql/mysql"
)

// Bounds of a survey of nodes.
const (
	lookers     = 2 // connections per node
	idleLookers = 1
)

// Standing is what a node says of itself.
type Standing struct {
	node     *Node
	Err      error  // why it could not be asked
	identity string // see Choice
	self     string
	// Differs between servers that run at the same time, whatever ids they have.
	place    string
	readOnly bool
	flush    string // innodb_flush_log_at_trx_commit
	binlog   string // sync_binlog; empty without a binary log
	// On a member of a replication group binlog counts as flush does. Elsewhere the proxy only warns.
	byBinlog bool
	cluster  string // the cluster and configuration of a member that may commit
	view     string // the expression for that, on a member of a cluster
	// The configuration of its cluster, which holds the sequences; also on a member that may not
	// commit.
	term  string
	group string // the part of term that outlives configurations
	index string // its place in the configuration, if it has one
	// It helps another node to join, or is out of step for a backup: a node in step is better.
	donor  bool
	apart  string // why a member of a cluster may not commit
	source string // the host that it replicates from, if replication runs
	// why source could not be read
	sourceErr error
	replica   string // the server's word for a replica
}

// unwritable returns why numbers cannot be reserved on the node; empty: they can.
func (s *Standing) unwritable() string {
	switch {
	case s.Err != nil:
		return s.Err.Error()
	case s.apart != "":
		return s.apart
	case s.readOnly:
		return "it is read only"
	}
	return ""
}

// rank is lower for the better of two writable nodes. A node that never flushes is refused at the
// connection to it, unless relaxed.
func (s *Standing) rank(relaxed bool) (rank int) {
	if s.flush == "0" && !relaxed {
		rank += 2
	}
	if s.donor {
		rank++
	}
	return rank
}

// together reports whether two nodes are different members of one cluster, in one configuration of
// it.
func (s *Standing) together(other *Standing) bool {
	return s.cluster != "" && s.cluster == other.cluster && (s.index == "" || s.index != other.index)
}

// stands describes a member of a cluster in errors.
func (s *Standing) stands() string {
	if s.index == "" {
		return s.cluster
	}
	return s.cluster + ", place " + s.index
}

// holder gives the numbers of this node: in a cluster its configuration, else the server.
func (s *Standing) holder() string {
	if s.term != "" {
		return s.term
	}
	return s.identity
}

// id differs between the nodes of a group. The members of a cluster may share a server_id.
func (s *Standing) id() string {
	if s.term != "" {
		return s.place + " " + s.index
	}
	return s.identity
}

// Choice is the node as the one to reserve numbers on.
func (s *Standing) Choice() *Choice {
	return &Choice{Node: s.node, Identity: s.identity, Self: cmp.Or(s.view, s.self), Cluster: s.cluster, Holder: s.holder()}
}

// Said is the part of a Standing for callers that compare nodes.
type Said struct {
	Identity  string // differs between the nodes of a group
	Holder    string // gives the numbers of this node
	Apart     string // why a member of a cluster may not commit
	Forgets   bool   // any crash loses commits
	Unflushed string // the statement that makes it flush at commit; empty: it does
	Writable  bool   // numbers can be reserved on it
}

// Ask asks a node for its Said.
func (n *Node) Ask(ctx context.Context) (Said, error) {
	s := n.look(ctx)
	all := Said{
		Identity: s.id(), Holder: s.holder(), Apart: s.apart, Forgets: s.flush == "0",
		Writable: s.unwritable() == "",
	}
	if settings := s.unflushed(); len(settings) > 0 {
		all.Unflushed = flushStatement(settings)
	}
	return all, s.Err
}

// Survey looks at all nodes at once.
func (l *Link) Survey(ctx context.Context) []Standing {
	return l.surveyUntil(ctx, func([]Standing) bool { return false })
}

// surveyUntil is Survey, but once enough is true of the answers, the other nodes have only a moment
// to answer: one may hang.
func (l *Link) surveyUntil(ctx context.Context, enough func(answered []Standing) bool) []Standing {
	ctx, stop := context.WithTimeout(ctx, l.opts.DialTimeout)
	defer stop()
	all, answered := make([]Standing, len(l.nodes.all)), make([]Standing, 0, len(l.nodes.all))
	answers := make(chan int)
	for i, n := range l.nodes.all {
		go func() { // received below
			all[i] = n.look(ctx)
			answers <- i
		}()
	}
	var over <-chan time.Time
	for awaited := len(all); awaited > 0; {
		select {
		case i := <-answers:
			awaited--
			if answered = append(answered, all[i]); over == nil && awaited > 0 && enough(answered) {
				timer := time.NewTimer(l.timing.Late)
				defer timer.Stop()
				over = timer.C
			}
		case <-over:
			over = nil
			stop() // the others end soon
		}
	}
	return all
}

// isMajority reports whether more than half of n nodes say that they are one cluster. The answers
// of the others cannot change that.
func isMajority(answered []Standing, n int) bool {
	count := make(map[string]int, 1)
	for i := range answered {
		if s := &answered[i]; s.cluster != "" && s.unwritable() == "" {
			if count[s.cluster]++; 2*count[s.cluster] > n {
				return true
			}
		}
	}
	return false
}

// look asks a node for its Standing.
func (n *Node) look(ctx context.Context) (s Standing) {
	s = Standing{node: n, replica: "REPLICA"}
	db := n.Pool()
	if db == nil {
		s.Err = ErrClosed
		return s
	}
	conn, err := db.Conn(ctx)
	if err != nil {
		s.Err = err
		return s
	}
	defer func() { _ = conn.Close() }()
	variables, err := pairs(ctx, conn, "SHOW GLOBAL VARIABLES WHERE Variable_name IN ('hostname', 'port', 'server_id', 'server_uuid', 'version', "+
		"'read_only', 'super_read_only', 'wsrep_on', 'group_replication_group_name', 'innodb_flush_log_at_trx_commit', 'log_bin', 'sync_binlog', "+
		"'innodb_read_only', 'innodb_force_recovery')")
	if err != nil {
		s.Err = err
		return s
	}
	s.readOnly = !IsOff(variables["read_only"]) || variables["super_read_only"] != "" && !IsOff(variables["super_read_only"]) ||
		startedReadOnly(cmp.Or(variables["innodb_read_only"], "OFF"), cmp.Or(variables["innodb_force_recovery"], "0"), variables["version"]) != ""
	s.flush = variables["innodb_flush_log_at_trx_commit"]
	if variables["log_bin"] == "ON" {
		s.binlog = variables["sync_binlog"]
	}
	s.place = fmt.Sprintf("%s:%s %s %s", variables["hostname"], variables["port"], variables["server_id"], variables["server_uuid"])
	s.self, s.identity = identityOf(variables)
	if s.self != mysqlIdentity {
		s.replica = "SLAVE"
	}
	switch {
	case variables["wsrep_on"] == "ON":
		s.Err = s.lookAtGalera(ctx, conn)
	case variables["group_replication_group_name"] != "":
		s.byBinlog = true
		s.Err = s.lookAtGroup(ctx, conn, variables["group_replication_group_name"])
	}
	if s.Err == nil && s.cluster == "" && !s.readOnly {
		s.source, s.sourceErr = s.replicatesFrom(ctx, conn)
	}
	return s
}

// mysqlIdentity is the expression for a MySQL server's id for life.
const mysqlIdentity = "@@server_uuid"

// identityOf returns a server's id for life, and the expression for it. Replicas must differ from
// their primary in it, or replication refuses them. It stays when a server moves to another host,
// which must not make it another holder.
func identityOf(variables map[string]string) (self, identity string) {
	if variables["server_uuid"] != "" && !strings.Contains(variables["version"], "MariaDB") {
		return mysqlIdentity, variables["server_uuid"]
	}
	return "CONCAT('server_id ', @@server_id)", "server_id " + variables["server_id"]
}

// lookAtGalera: https://mariadb.com/kb/en/galera-cluster-status-variables/
func (s *Standing) lookAtGalera(ctx context.Context, conn *sql.Conn) error {
	status, err := pairs(ctx, conn, "SHOW GLOBAL STATUS WHERE Variable_name IN ('wsrep_ready', 'wsrep_cluster_status', 'wsrep_local_state', "+
		"'wsrep_local_state_comment', 'wsrep_local_index', 'wsrep_cluster_state_uuid', 'wsrep_cluster_conf_id', 'wsrep_cluster_size')")
	if err != nil {
		return err
	}
	const donor, synced = "2", "4"
	state := status["wsrep_local_state"]
	if status["wsrep_cluster_status"] != "Primary" || state != synced && state != donor || status["wsrep_ready"] != "ON" {
		s.apart = fmt.Sprintf("it is not part of its Galera cluster: state %s, component %s", status["wsrep_local_state_comment"], status["wsrep_cluster_status"])
		return nil
	}
	// two halves that were both made primary by hand share the first part only
	s.group = "Galera " + status["wsrep_cluster_state_uuid"]
	s.cluster = fmt.Sprintf("%s, configuration %s of %s", s.group, status["wsrep_cluster_conf_id"], status["wsrep_cluster_size"])
	var view string
	err = conn.QueryRowContext(ctx, "SELECT `view_id`, "+galeraView+" FROM "+galeraViews).Scan(&view, &s.term)
	switch {
	case HasCode(err, gomysql.ER_NO_SUCH_TABLE):
		return fmt.Errorf("its cluster does not store its configurations, as Galera does since version 4: upgrade it, or name one address in place of `nodes`: %w", err)
	case err != nil:
		return unread(err, galeraViews)
	}
	if view != status["wsrep_cluster_conf_id"] {
		s.apart = fmt.Sprintf("its Galera cluster is in configuration %s, and it has stored %s so far", status["wsrep_cluster_conf_id"], view)
		s.cluster, s.term = "", ""
		return nil
	}
	s.view, s.index, s.donor = galeraView, status["wsrep_local_index"], state == donor
	return nil
}

// The expressions for the configuration of a node's cluster. A cluster that is bootstrapped counts
// its configurations from 1 again. Those of Galera have a position among all commits, above that of
// any commit in its tables. Those of MySQL have a random part that each bootstrap makes anew.
const (
	galeraViews = "`mysql`.`wsrep_cluster`" // one row
	galeraView  = "(SELECT CONCAT('Galera ', `cluster_uuid`, ', configuration ', `view_id`, ' at ', `view_seqno`) FROM " + galeraViews + ")"

	groupViews = "`performance_schema`.`replication_group_member_stats`"
	groupView  = "(SELECT CONCAT('replication group ', @@group_replication_group_name, ', view ', MAX(`VIEW_ID`)) FROM " + groupViews +
		" WHERE `MEMBER_ID` = @@server_uuid)"
)

// unread is the error for a member of a cluster whose configuration could not be read from tables.
func unread(err error, tables string) error {
	if IsDenied(err) {
		return fmt.Errorf("read the configuration of its cluster: %w; to mend it: GRANT SELECT ON %s TO the user", err, tables)
	}
	return fmt.Errorf("read the configuration of its cluster: %w", err)
}

// lookAtGroup:
// https://dev.mysql.com/doc/refman/8.4/en/performance-schema-replication-group-members-table.html
func (s *Standing) lookAtGroup(ctx context.Context, conn *sql.Conn, group string) error {
	var state, role string
	var view sql.NullString
	var online, members int
	err := conn.QueryRowContext(ctx, "SELECT IFNULL(MAX(IF(MEMBER_ID = @@server_uuid, MEMBER_STATE, NULL)), 'OFFLINE'), "+
		"IFNULL(MAX(IF(MEMBER_ID = @@server_uuid, MEMBER_ROLE, NULL)), ''), IFNULL(SUM(MEMBER_STATE = 'ONLINE'), 0), COUNT(*), "+
		groupView+" FROM performance_schema.replication_group_members").Scan(&state, &role, &online, &members, &view)
	if err != nil {
		return unread(err, groupViews+" and `performance_schema`.`replication_group_members`")
	}
	s.term, s.view = view.String, groupView
	switch {
	case state != "ONLINE" || 2*online <= members:
		s.apart = fmt.Sprintf("it is not part of its replication group: state %s, %d of %d members online", state, online, members)
	case role != "PRIMARY":
		s.readOnly, s.group = true, "replication group "+group
	default:
		s.group = "replication group " + group
		s.cluster = s.group
	}
	return nil
}

// replicatesFrom returns the host that the node replicates from, empty if it is no replica. The
// error says that the account may not see it.
func (s *Standing) replicatesFrom(ctx context.Context, conn *sql.Conn) (string, error) {
	text, source, threads := "SHOW REPLICA STATUS", "Source_Host", []string{"Replica_IO_Running", "Replica_SQL_Running"}
	if s.replica == "SLAVE" {
		text, source, threads = "SHOW ALL SLAVES STATUS", "Master_Host", []string{"Slave_IO_Running", "Slave_SQL_Running"}
	}
	rows, err := conn.QueryContext(ctx, text)
	if err != nil {
		return "", err
	}
	defer func() { _ = rows.Close() }()
	columns, err := rows.Columns()
	if err != nil {
		return "", err
	}
	values, into := make([]sql.NullString, len(columns)), make([]any, len(columns))
	for i := range values {
		into[i] = &values[i]
	}
	for rows.Next() {
		if err := rows.Scan(into...); err != nil {
			return "", err
		}
		line := make(map[string]string, len(columns))
		for i, column := range columns {
			line[column] = values[i].String
		}
		for _, thread := range threads {
			if line[thread] != "No" && line[thread] != "" {
				return line[source], nil
			}
		}
	}
	return "", rows.Err()
}

// pairs runs a SHOW statement whose rows are names and values.
func pairs(ctx context.Context, conn *sql.Conn, text string) (map[string]string, error) {
	rows, err := conn.QueryContext(ctx, text)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	all := make(map[string]string)
	for rows.Next() {
		var name string
		var value sql.NullString
		if err := rows.Scan(&name, &value); err != nil {
			return nil, err
		}
		all[strings.ToLower(name)] = value.String
	}
	return all, rows.Err()
}

// Holder is the server's name as a holder; see [Choice].
func (c Raw) Holder(ctx context.Context) (string, error) {
	rows, err := c.Query(ctx, "SHOW GLOBAL VARIABLES WHERE Variable_name IN ('server_id', 'server_uuid', 'version', 'wsrep_on', 'group_replication_group_name')")
	if err != nil {
		return "", fmt.Errorf("ask what the server calls itself: %w", err)
	}
	variables := make(map[string]string)
	for _, row := range rows {
		variables[row[0]] = row[1]
	}
	_, identity := identityOf(variables)
	view, views := "", ""
	switch {
	case variables["wsrep_on"] == "ON":
		view, views = galeraView, galeraViews
	case variables["group_replication_group_name"] != "":
		view, views = groupView, groupViews
	}
	if view != "" { // it may have been bootstrapped from an older state
		if rows, err = c.Query(ctx, "SELECT "+view); err != nil {
			return "", unread(err, views)
		}
		identity = cmp.Or(rows[0][0], identity)
	}
	return identity, nil
}
