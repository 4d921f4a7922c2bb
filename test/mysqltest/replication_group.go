package mysqltest

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"seqproxy/internal/mysqld"
)

// StartReplicationGroup starts n nodes with MySQL's group replication for this test only. The first
// is the primary. It skips the test if the server has no group replication. The nodes have no rows
// yet.
func StartReplicationGroup(t *testing.T, n int) *Group {
	t.Helper()
	bin, err := findBinary()
	if err != nil {
		t.Fatal(err)
	}
	if bin.Flavour != mysqld.MySQL {
		t.Skipf("%s has no group replication", bin)
	}
	g := &Group{began: make(map[int]string)}
	ports := freePorts(t, n)
	seeds := make([]string, n)
	for i, port := range ports {
		seeds[i] = fmt.Sprintf("127.0.0.1:%d", port)
	}
	for i := range n {
		node := StartUnsynced(t, fmt.Sprintf("--server-id=%d", i+1), "--log-bin=binlog", "--gtid-mode=ON", "--enforce-gtid-consistency=ON", "--sync-binlog=1",
			"--report-host=127.0.0.1", "--performance-schema=ON")
		pool := node.DB(t, "")
		if _, err := pool.Exec("INSTALL PLUGIN group_replication SONAME 'group_replication.so'"); err != nil {
			t.Skipf("%s has no plugin for group replication: %v", bin, err)
		}
		g.Nodes, g.pools = append(g.Nodes, node), append(g.pools, pool)
		g.exec(t, i,
			"RESET BINARY LOGS AND GTIDS",
			"SET GLOBAL group_replication_group_name = '11111111-2222-3333-4444-555555555555'",
			"SET GLOBAL group_replication_local_address = '"+seeds[i]+"'",
			"SET GLOBAL group_replication_group_seeds = '"+strings.Join(seeds, ",")+"'",
			"SET GLOBAL group_replication_ip_allowlist = '127.0.0.1/8'",
			"SET GLOBAL group_replication_recovery_get_public_key = ON",
			fmt.Sprintf("SET GLOBAL group_replication_bootstrap_group = %t", i == 0),
			"START GROUP_REPLICATION USER = 'root'",
			"SET GLOBAL group_replication_bootstrap_group = OFF")
	}
	for i := range n {
		g.AwaitOnline(t, i, n)
	}
	return g
}

// AwaitOnline waits until node i sees that many nodes online, one of them the primary.
func (g *Group) AwaitOnline(t *testing.T, i, nodes int) {
	t.Helper()
	var online, primaries int
	for deadline := time.Now().Add(replicationPatience); ; time.Sleep(20 * time.Millisecond) {
		err := g.pools[i].QueryRow("SELECT COUNT(*), IFNULL(SUM(MEMBER_ROLE = 'PRIMARY'), 0) FROM performance_schema.replication_group_members "+
			"WHERE MEMBER_STATE = 'ONLINE'").Scan(&online, &primaries)
		if err == nil && online == nodes && primaries == 1 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("node %d sees %d nodes of its group online, %d of them primary (%v); want %d and 1", i, online, primaries, err, nodes)
		}
	}
}
