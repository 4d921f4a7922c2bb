package sequence

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"strings"
	"sync"
	"time"
)

// Bounds of looking at nodes.
const (
	lookers     = 2 // connections per node
	idleLookers = 1
	lookerLife  = time.Minute
)

// standing is what a node says of itself.
type standing struct {
	node     *node
	err      error  // why it could not be asked
	identity string // see choice
	self     string
	place    string // differs between servers that run at the same time, whatever they call themselves
	readOnly bool
	flush    string // innodb_flush_log_at_trx_commit
	cluster  string // of a member that may commit
	apart    string // why a member of a cluster may not commit
	source   string // whom it replicates from, if that runs and may be seen
	replica  string // the server's word for a replica
}

// unwritable is why numbers cannot be reserved on the node; empty: they can.
func (s *standing) unwritable() string {
	switch {
	case s.err != nil:
		return s.err.Error()
	case s.apart != "":
		return s.apart
	case s.readOnly:
		return "it is read only"
	}
	return ""
}

// survey looks at all nodes at once.
func (v *server) survey(ctx context.Context) []standing {
	ctx, stop := context.WithTimeout(ctx, v.opts.DialTimeout)
	defer stop()
	all := make([]standing, len(v.nodes.all))
	var tasks sync.WaitGroup
	for i, n := range v.nodes.all {
		tasks.Go(func() { all[i] = n.look(ctx) })
	}
	tasks.Wait()
	return all
}

// look asks a node what it is.
func (n *node) look(ctx context.Context) (s standing) {
	s = standing{node: n, replica: "REPLICA"}
	db := n.pool()
	if db == nil {
		s.err = ErrClosed
		return s
	}
	conn, err := db.Conn(ctx)
	if err != nil {
		s.err = err
		return s
	}
	defer func() { _ = conn.Close() }()
	variables, err := pairs(ctx, conn, "SHOW GLOBAL VARIABLES WHERE Variable_name IN ('hostname', 'port', 'server_id', 'server_uuid', 'version', "+
		"'read_only', 'super_read_only', 'wsrep_on', 'group_replication_group_name', 'innodb_flush_log_at_trx_commit', "+
		"'innodb_read_only', 'innodb_force_recovery')")
	if err != nil {
		s.err = err
		return s
	}
	s.readOnly = !isOff(variables["read_only"]) || variables["super_read_only"] != "" && !isOff(variables["super_read_only"]) ||
		startedReadOnly(cmp.Or(variables["innodb_read_only"], "OFF"), cmp.Or(variables["innodb_force_recovery"], "0"), variables["version"]) != ""
	s.flush = variables["innodb_flush_log_at_trx_commit"]
	s.place = fmt.Sprintf("%s:%s %s %s", variables["hostname"], variables["port"], variables["server_id"], variables["server_uuid"])
	// Replicas must differ from their primary in this, or they are refused; and it stays when a server moves to another host, which must not
	// make it another holder.
	if variables["server_uuid"] != "" && !strings.Contains(variables["version"], "MariaDB") {
		s.self, s.identity = "@@server_uuid", variables["server_uuid"]
	} else {
		s.self = "CONCAT('server_id ', @@server_id)"
		s.identity = "server_id " + variables["server_id"]
		s.replica = "SLAVE"
	}
	switch {
	case variables["wsrep_on"] == "ON":
		s.err = s.lookAtGalera(ctx, conn)
	case variables["group_replication_group_name"] != "":
		s.err = s.lookAtGroup(ctx, conn, variables["group_replication_group_name"])
	}
	if s.err == nil && s.cluster == "" && !s.readOnly {
		s.source = s.replicatesFrom(ctx, conn)
	}
	return s
}

// lookAtGalera: https://mariadb.com/kb/en/galera-cluster-status-variables/
func (s *standing) lookAtGalera(ctx context.Context, conn *sql.Conn) error {
	status, err := pairs(ctx, conn, "SHOW GLOBAL STATUS WHERE Variable_name IN ('wsrep_ready', 'wsrep_cluster_status', 'wsrep_local_state', "+
		"'wsrep_local_state_comment', 'wsrep_cluster_state_uuid', 'wsrep_cluster_conf_id', 'wsrep_cluster_size')")
	if err != nil {
		return err
	}
	const synced = "4"
	if status["wsrep_cluster_status"] != "Primary" || status["wsrep_local_state"] != synced || status["wsrep_ready"] != "ON" {
		s.apart = fmt.Sprintf("it is not part of its Galera cluster: state %s, component %s", status["wsrep_local_state_comment"], status["wsrep_cluster_status"])
		return nil
	}
	// Two halves that were both made primary by hand share the first only.
	s.cluster = fmt.Sprintf("Galera %s, configuration %s of %s", status["wsrep_cluster_state_uuid"], status["wsrep_cluster_conf_id"], status["wsrep_cluster_size"])
	return nil
}

// lookAtGroup: https://dev.mysql.com/doc/refman/8.4/en/performance-schema-replication-group-members-table.html
func (s *standing) lookAtGroup(ctx context.Context, conn *sql.Conn, group string) error {
	var state, role string
	var online, members int
	err := conn.QueryRowContext(ctx, "SELECT IFNULL(MAX(IF(MEMBER_ID = @@server_uuid, MEMBER_STATE, NULL)), 'OFFLINE'), "+
		"IFNULL(MAX(IF(MEMBER_ID = @@server_uuid, MEMBER_ROLE, NULL)), ''), IFNULL(SUM(MEMBER_STATE = 'ONLINE'), 0), COUNT(*) "+
		"FROM performance_schema.replication_group_members").Scan(&state, &role, &online, &members)
	if err != nil {
		return fmt.Errorf("read the members of its replication group: %w", err)
	}
	switch {
	case state != "ONLINE" || 2*online <= members:
		s.apart = fmt.Sprintf("it is not part of its replication group: state %s, %d of %d members online", state, online, members)
	case role != "PRIMARY":
		s.readOnly = true
	default:
		s.cluster = "replication group " + group
	}
	return nil
}

// replicatesFrom is the host that the node takes changes from, empty if it takes none or does not tell.
func (s *standing) replicatesFrom(ctx context.Context, conn *sql.Conn) string {
	text, source, threads := "SHOW REPLICA STATUS", "Source_Host", []string{"Replica_IO_Running", "Replica_SQL_Running"}
	if s.replica == "SLAVE" {
		text, source, threads = "SHOW ALL SLAVES STATUS", "Master_Host", []string{"Slave_IO_Running", "Slave_SQL_Running"}
	}
	rows, err := conn.QueryContext(ctx, text)
	if err != nil {
		return "" // a right is missing
	}
	defer func() { _ = rows.Close() }()
	columns, err := rows.Columns()
	if err != nil {
		return ""
	}
	values, into := make([]sql.NullString, len(columns)), make([]any, len(columns))
	for i := range values {
		into[i] = &values[i]
	}
	for rows.Next() {
		if rows.Scan(into...) != nil {
			return ""
		}
		line := make(map[string]string, len(columns))
		for i, column := range columns {
			line[column] = values[i].String
		}
		for _, thread := range threads {
			if line[thread] != "No" && line[thread] != "" {
				return line[source]
			}
		}
	}
	return ""
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
