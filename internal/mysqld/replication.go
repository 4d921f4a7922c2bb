package mysqld

import "fmt"

// ReplicationArgs returns the options of a server in a group with asynchronous replication and
// global transaction ids. Each server needs another id.
func ReplicationArgs(b Binary, id int) []string {
	args := []string{fmt.Sprintf("--server-id=%d", id), "--log-bin=binlog", "--binlog-format=ROW", "--sync-binlog=0"}
	if b.Flavour == MySQL {
		// With several workers, the coordinator waits for the rest of a transaction that will not
		// come after the receiver has stopped. STOP REPLICA then takes a minute by the wall clock.
		return append(args, "--loose-replica-parallel-workers=0", "--gtid-mode=ON", "--enforce-gtid-consistency=ON", "--log-replica-updates=ON", "--replica-exec-mode=IDEMPOTENT")
	}
	return append(args, "--log-slave-updates=ON", "--slave-exec-mode=IDEMPOTENT")
}

// Replica returns the server's word for a replica in statements.
func (b Binary) Replica() string {
	if b.Flavour == MySQL {
		return "REPLICA"
	}
	return "SLAVE"
}

// FollowStatement makes a server that has no source a replica of source. It needs ReplicationArgs.
func FollowStatement(source *Server) string {
	if source.Flavour() == MySQL {
		return fmt.Sprintf("CHANGE REPLICATION SOURCE TO SOURCE_HOST = '127.0.0.1', SOURCE_PORT = %d, SOURCE_USER = 'root', SOURCE_AUTO_POSITION = 1, "+
			"SOURCE_CONNECT_RETRY = 1, SOURCE_RETRY_COUNT = 86400, GET_SOURCE_PUBLIC_KEY = 1", source.Port())
	}
	return fmt.Sprintf("CHANGE MASTER TO MASTER_HOST = '127.0.0.1', MASTER_PORT = %d, MASTER_USER = 'root', MASTER_USE_GTID = slave_pos, MASTER_CONNECT_RETRY = 1",
		source.Port())
}
