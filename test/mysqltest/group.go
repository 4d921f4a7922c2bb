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
		g.noteBegin(t, i)
	}
	g.exec(t, i, "RESET "+g.replica(i)+" ALL", "SET GLOBAL read_only = 0")
}

// noteBegin takes note of where a node of MariaDB stands that becomes a primary.
func (g *Group) noteBegin(t testing.TB, i int) {
	t.Helper()
	var position string
	if err := g.pools[i].QueryRow("SELECT @@global.gtid_binlog_pos").Scan(&position); err != nil {
		t.Fatal(err)
	}
	g.began[i] = position
}

// PromoteLate is Promote of a replica, cut off from its source, that first receives all that the
// source has, and has not applied it. ApplyLate has it do that.
func (g *Group) PromoteLate(t testing.TB, i, source int) {
	t.Helper()
	status := "SHOW BINARY LOG STATUS"
	if g.Nodes[i].IsMariaDB() {
		status = "SHOW MASTER STATUS"
		// by global transaction ids it forgets what it has received
		at := g.line(t, i, "SHOW SLAVE STATUS")
		g.exec(t, i, fmt.Sprintf("CHANGE MASTER TO MASTER_USE_GTID = no, MASTER_LOG_FILE = '%s', MASTER_LOG_POS = %s", at["Relay_Master_Log_File"], at["Exec_Master_Log_Pos"]))
	}
	g.exec(t, i, "START "+g.replica(i)+" IO_THREAD")
	has := g.line(t, source, status)
	word := g.sourceWord(i)
	g.await(t, i, func(at map[string]string) bool {
		return at[word+"_Log_File"] == has["File"] && at["Read_"+word+"_Log_Pos"] == has["Position"]
	})
	g.exec(t, i, "STOP "+g.replica(i)+" IO_THREAD")
	if g.Nodes[i].IsMariaDB() {
		g.noteBegin(t, i)
	}
	g.exec(t, i, "SET GLOBAL read_only = 0")
}

// ApplyLate has a node apply what it had received when it was promoted; see PromoteLate.
func (g *Group) ApplyLate(t testing.TB, i int) {
	t.Helper()
	word := g.sourceWord(i)
	g.exec(t, i, "START "+g.replica(i)+" SQL_THREAD")
	g.await(t, i, func(at map[string]string) bool {
		return at["Relay_"+word+"_Log_File"] == at[word+"_Log_File"] && at["Exec_"+word+"_Log_Pos"] == at["Read_"+word+"_Log_Pos"]
	})
	g.exec(t, i, "STOP "+g.replica(i)+" SQL_THREAD")
}

// sourceWord is the word that columns of SHOW REPLICA STATUS have for the source.
func (g *Group) sourceWord(i int) string {
	if g.Nodes[i].IsMariaDB() {
		return "Master"
	}
	return "Source"
}

// await waits until the replication of node i has come so far.
func (g *Group) await(t testing.TB, i int, ok func(status map[string]string) bool) {
	t.Helper()
	for deadline := time.Now().Add(replicationPatience); ; time.Sleep(2 * time.Millisecond) {
		at := g.line(t, i, "SHOW "+g.replica(i)+" STATUS")
		if ok(at) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("the replication of node %d stays at %v", i, at)
		}
	}
}

// line is the one row that a SHOW statement has, by column.
func (g *Group) line(t testing.TB, i int, text string) map[string]string {
	t.Helper()
	rows, err := g.pools[i].Query(text)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close() //nolint:errcheck // Err tells
	columns, err := rows.Columns()
	if err != nil {
		t.Fatal(err)
	}
	values, into := make([]sql.NullString, len(columns)), make([]any, len(columns))
	for i := range values {
		into[i] = &values[i]
	}
	line := make(map[string]string)
	for rows.Next() {
		if err := rows.Scan(into...); err != nil {
			t.Fatal(err)
		}
		for i, column := range columns {
			line[column] = values[i].String
		}
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return line
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
