package mysqltest

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"seqproxy/internal/mysqld"
)

// StartReplicationGroup starts n nodes with MySQL's group replication for this test only. The first
// is the primary, and where it is gone the next one, or with
// --loose-group-replication-single-primary-mode=OFF all are. It skips the test if the server has no
// group replication. The nodes have no rows yet. A node that was killed
// keeps its options, and begins outside of its group; see Rejoin and BootstrapGroup.
func StartReplicationGroup(t *testing.T, n int, extraArgs ...string) *Group {
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
		args := []string{
			fmt.Sprintf("--server-id=%d", i+1), "--log-bin=binlog", "--gtid-mode=ON", "--enforce-gtid-consistency=ON", "--sync-binlog=1",
			"--report-host=127.0.0.1", "--performance-schema=ON", "--plugin-load-add=group_replication.so",
			"--loose-group-replication-start-on-boot=OFF",
			"--loose-group-replication-group-name=11111111-2222-3333-4444-555555555555",
			"--loose-group-replication-local-address=" + seeds[i],
			"--loose-group-replication-group-seeds=" + strings.Join(seeds, ","),
			"--loose-group-replication-ip-allowlist=127.0.0.1/8",
			"--loose-group-replication-recovery-get-public-key=ON",
			fmt.Sprintf("--loose-group-replication-member-weight=%d", 90-10*i),
		}
		node := StartUnsynced(t, append(args, extraArgs...)...)
		pool := node.DB(t, "")
		var there bool
		if err := pool.QueryRow("SELECT COUNT(*) FROM information_schema.plugins WHERE plugin_name = 'group_replication'").Scan(&there); err != nil || !there {
			t.Skipf("%s has no plugin for group replication (%v)", bin, err)
		}
		g.Nodes, g.pools = append(g.Nodes, node), append(g.pools, pool)
		g.exec(t, i, "RESET BINARY LOGS AND GTIDS")
		if i == 0 {
			g.BootstrapGroup(t, i)
		} else {
			g.startReplication(t, i)
		}
	}
	for i := range n {
		g.AwaitOnline(t, i, n)
	}
	return g
}

// BootstrapGroup begins the group, or begins it again where it is gone, with one node alone.
func (g *Group) BootstrapGroup(t *testing.T, i int) {
	t.Helper()
	g.exec(t, i, "SET GLOBAL group_replication_bootstrap_group = ON")
	g.startReplication(t, i)
	g.exec(t, i, "SET GLOBAL group_replication_bootstrap_group = OFF")
	g.AwaitOnline(t, i, 1)
}

// Rejoin has a node come back to its group.
func (g *Group) Rejoin(t *testing.T, i int) {
	t.Helper()
	g.startReplication(t, i)
}

func (g *Group) startReplication(t *testing.T, i int) {
	t.Helper()
	g.exec(t, i, "START GROUP_REPLICATION USER = 'root'")
}

// AwaitOnline waits until node i sees that many nodes online, and no others. One of them is the
// primary, or all are.
func (g *Group) AwaitOnline(t *testing.T, i, nodes int) {
	t.Helper()
	var all, online, primaries int
	for deadline := time.Now().Add(replicationPatience); ; time.Sleep(20 * time.Millisecond) {
		err := g.pools[i].QueryRow("SELECT COUNT(*), IFNULL(SUM(MEMBER_STATE = 'ONLINE'), 0), IFNULL(SUM(MEMBER_STATE = 'ONLINE' AND MEMBER_ROLE = 'PRIMARY'), 0) "+
			"FROM performance_schema.replication_group_members").Scan(&all, &online, &primaries)
		if err == nil && all == nodes && online == nodes && (primaries == 1 || primaries == nodes) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("node %d sees %d of %d nodes of its group online, %d of them primary (%v); want %d", i, online, all, primaries, err, nodes)
		}
	}
}
