package mysqld

import "fmt"

// ReplicationArgs are the options of a server that is one of a group by asynchronous replication
// with global transaction ids. id differs in each of them.
func ReplicationArgs(b Binary, id int) []string {
	args := []string{fmt.Sprintf("--server-id=%d", id), "--log-bin=binlog", "--binlog-format=ROW", "--sync-binlog=0"}
	if b.Flavour == MySQL {
		// The coordinator of several workers does not end in the middle of a transaction whose rest
		// never comes, as the receiver was stopped: STOP REPLICA then takes a minute, by the wall
		// clock.
		return append(args, "--loose-replica-parallel-workers=0", "--gtid-mode=ON", "--enforce-gtid-consistency=ON", "--log-replica-updates=ON", "--replica-exec-mode=IDEMPOTENT")
	}
	return append(args, "--log-slave-updates=ON", "--slave-exec-mode=IDEMPOTENT")
}

// Replica is the word that the server's statements have for one.
func (b Binary) Replica() string {
	if b.Flavour == MySQL {
		return "REPLICA"
	}
	return "SLAVE"
}

// FollowStatement makes a server that replicates from nobody at present a replica of source, once
// it is started as one.
func FollowStatement(source *Server) string {
	if source.Flavour() == MySQL {
		return fmt.Sprintf("CHANGE REPLICATION SOURCE TO SOURCE_HOST = '127.0.0.1', SOURCE_PORT = %d, SOURCE_USER = 'root', SOURCE_AUTO_POSITION = 1, "+
			"SOURCE_CONNECT_RETRY = 1, SOURCE_RETRY_COUNT = 86400, GET_SOURCE_PUBLIC_KEY = 1", source.Port())
	}
	return fmt.Sprintf("CHANGE MASTER TO MASTER_HOST = '127.0.0.1', MASTER_PORT = %d, MASTER_USER = 'root', MASTER_USE_GTID = slave_pos, MASTER_CONNECT_RETRY = 1",
		source.Port())
}
