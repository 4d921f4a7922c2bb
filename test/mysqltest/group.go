package mysqltest

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"testing"
	"time"

	"seqproxy/internal/mysqld"
)

// Group is a primary and its replicas, with asynchronous replication and global transaction ids.
// Node 0 is the first primary. Replicas are read-only.
type Group struct {
	Nodes []*Server
	pools []*sql.DB
	began map[int]string // MariaDB's position of a node when it was promoted
}

// replicationPatience bounds waits for replicas on a loaded machine.
const replicationPatience = 30 * time.Second

// StartGroup starts n nodes for this test alone. extraArgs are options of all of them.
func StartGroup(t testing.TB, n int, extraArgs ...string) *Group {
	t.Helper()
	b, err := findBinary()
	if err != nil {
		t.Fatal(err)
	}
	g := &Group{began: make(map[int]string)}
	for i := range n {
		args := append(mysqld.ReplicationArgs(b, i+1), "--skip-"+strings.ToLower(b.Replica())+"-start=ON")
		node := StartUnsynced(t, append(args, extraArgs...)...)
		g.Nodes = append(g.Nodes, node)
		g.pools = append(g.pools, node.DB(t, ""))
	}
	for i := 1; i < n; i++ {
		g.Follow(t, i, 0)
	}
	return g
}

// Addrs are the addresses of the nodes.
func (g *Group) Addrs() []string {
	addrs := make([]string, len(g.Nodes))
	for i, node := range g.Nodes {
		addrs[i] = node.Addr()
	}
	return addrs
}

// replica returns the word for replicas in statements.
func (g *Group) replica(i int) string { return g.Nodes[i].Binary().Replica() }

// Follow makes node i a read-only replica of another. It keeps its own changes, even if the other
// node does not have them.
func (g *Group) Follow(t testing.TB, i, of int) {
	t.Helper()
	source := g.Nodes[of]
	from := "@@gtid_slave_pos"
	if began, ok := g.began[of]; ok {
		from = "'" + began + "'"
	}
	change := []string{"STOP " + g.replica(i)}
	if g.Nodes[i].IsMariaDB() {
		change = append(change, "SET GLOBAL gtid_slave_pos = "+from)
	}
	change = append(change, mysqld.FollowStatement(source.Server))
	g.exec(t, i, append(change, "START "+g.replica(i), "SET GLOBAL read_only = 1")...)
}

// Cut stops the replication of node i. Later commits of the primary do not reach it.
func (g *Group) Cut(t testing.TB, i int) {
	t.Helper()
	g.exec(t, i, "STOP "+g.replica(i))
}

// Mend starts the replication again after Cut.
func (g *Group) Mend(t testing.TB, i int) {
	t.Helper()
	g.exec(t, i, "START "+g.replica(i))
}

// Promote makes node i a primary as it is. The old primary is not changed.
func (g *Group) Promote(t testing.TB, i int) {
	t.Helper()
	g.exec(t, i, "STOP "+g.replica(i))
	if g.Nodes[i].IsMariaDB() {
		var position string
		if err := g.pools[i].QueryRow("SELECT @@global.gtid_binlog_pos").Scan(&position); err != nil {
			t.Fatal(err)
		}
		g.began[i] = position
	}
	g.exec(t, i, "RESET "+g.replica(i)+" ALL", "SET GLOBAL read_only = 0")
}

// CatchUp waits until node i has applied all that another has committed.
func (g *Group) CatchUp(t testing.TB, i, with int) {
	t.Helper()
	have, want := "SELECT @@global.gtid_executed", "SELECT GTID_SUBSET('%s', @@global.gtid_executed)"
	if g.Nodes[i].IsMariaDB() {
		have, want = "SELECT @@global.gtid_binlog_pos", "SELECT MASTER_GTID_WAIT('%s', 0.01) = 0"
	}
	var position string
	if err := g.pools[with].QueryRow(have).Scan(&position); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithTimeout(context.Background(), replicationPatience)
	defer stop()
	for {
		var there bool
		if err := g.pools[i].QueryRowContext(ctx, fmt.Sprintf(want, strings.ReplaceAll(position, "\n", ""))).Scan(&there); err != nil {
			t.Fatalf("node %d does not catch up with node %d: %v", i, with, err)
		}
		if there {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func (g *Group) exec(t testing.TB, i int, statements ...string) {
	t.Helper()
	for _, text := range statements {
		if _, err := g.pools[i].Exec(text); err != nil {
			t.Fatalf("node %d: %s: %v", i, text, err)
		}
	}
}
