package sequence_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"seqproxy/sequence"
	"seqproxy/test/mysqltest"
)

// wantRefused waits until the cluster gives nothing more because of its settings, and returns the
// error.
func (m *member) wantRefused(t *testing.T) (err error) {
	t.Helper()
	within(t, 2*time.Minute, "no numbers are reserved", func() bool {
		_, err = sequence.Inside(m.Sequences).First().Reserve(t.Context(), "photos", 1, 1)
		return errors.Is(err, sequence.ErrUnfit)
	})
	return err
}

// wantAgain waits until numbers are reserved.
func (m *member) wantAgain(t *testing.T) {
	t.Helper()
	eventually(t, "numbers are reserved", func() bool {
		_, err := sequence.Inside(m.Sequences).First().Reserve(t.Context(), "photos", 1, 1)
		return err == nil
	})
	m.take(t, "again", "photos", 20)
}

func TestAGaleraClusterOfWhichNoMajorityFlushesIsRefused(t *testing.T) {
	e, cluster := startCluster(t, "photos")
	all := &given{}
	set := func(values ...string) {
		t.Helper()
		for i, value := range values {
			cluster.Nodes[i].Exec(t, "SET GLOBAL innodb_flush_log_at_trx_commit = "+value)
		}
	}
	set("1", "0", "0")
	refused := e.join(t, "refused", all)
	_, err := refused.Take(t.Context(), []byte("photos"), 1)
	if !errors.Is(err, sequence.ErrUnfit) {
		t.Fatalf("1, 0 and 0: got %v, want ErrUnfit", err)
	}
	wantText(t, err, e.linkOf(refused, 0)+" has innodb_flush_log_at_trx_commit = 1", e.linkOf(refused, 1)+" has innodb_flush_log_at_trx_commit = 0", e.linkOf(refused, 2),
		"SET GLOBAL innodb_flush_log_at_trx_commit = 1", `durability = "relaxed"`)
	examined := refused.Examine(t.Context(), nil)
	if err := examined[0].Err; !errors.Is(err, sequence.ErrUnfit) {
		t.Errorf("the examination says %v, want ErrUnfit", err)
	}
	e.join(t, "relaxed", all, func(o *sequence.Options) { o.Durability = sequence.DurabilityRelaxed }).take(t, "relaxed", "photos", 20)

	// It is mended, and breaks again while the proxy runs. No connection is made meanwhile.
	set("1", "1", "2")
	refused.wantAgain(t)
	running := e.join(t, "running", all)
	running.take(t, "running", "photos", 20)
	eventually(t, "the node that does not flush is logged", func() bool {
		found := running.logs.FilterMessage("node of the cluster does not flush at commit").All()
		return len(found) == 1 && found[0].ContextMap()["node"] == e.linkOf(running, 2) && found[0].ContextMap()["value"] == "innodb_flush_log_at_trx_commit = 2"
	})
	servers, err := running.SequenceServers(t.Context())
	if err != nil || len(servers) != 1 || !strings.Contains(servers[0].Warning, e.linkOf(running, 2)) || strings.Contains(servers[0].Warning, e.linkOf(running, 1)) {
		t.Errorf("SequenceServers says %+v, %v", servers, err)
	}
	running.waits(3 * time.Second)
	set("1", "2", "2")
	wantText(t, running.wantRefused(t), e.linkOf(running, 1)+" has innodb_flush_log_at_trx_commit = 2")
	set("1", "1", "1")
	running.waits(usualPatience)
	running.wantAgain(t)
	within(t, 2*time.Minute, "no node is warned of", func() bool { return sequence.Inside(running.Sequences).First().FlushWarning() == "" })

	// The node that is written to stops flushing: another one is written to.
	set("0", "1", "1")
	moved := e.join(t, "moved", all)
	moved.take(t, "moved", "photos", 20)
	if now := sequence.Inside(moved.Sequences).First().Current(); now == nil || now.Addr != e.linkOf(moved, 1) {
		t.Errorf("%v is written to, want the second", now)
	}

	// A node that is off counts neither for nor against the others.
	set("1", "1", "1")
	if err := cluster.Nodes[2].Kill(); err != nil {
		t.Fatal(err)
	}
	two := e.join(t, "two", all, patience(time.Minute))
	two.take(t, "two", "photos", 20)
	set("1", "0")
	one := e.join(t, "one", all)
	wantText(t, one.wantRefused(t), e.linkOf(one, 2)+" does not answer")
}

func TestAReplicationGroupOfWhichNoMajorityFlushesItsBinaryLogIsRefused(t *testing.T) {
	e := &estate{Group: mysqltest.StartReplicationGroup(t, 2), schema: "app"}
	e.Nodes[0].Exec(t, "CREATE DATABASE app", "CREATE TABLE app.sequence (name varchar(50) NOT NULL PRIMARY KEY, id bigint unsigned NOT NULL DEFAULT 0) ENGINE=InnoDB",
		"INSERT INTO app.sequence (name) VALUES ('photos')", "SET GLOBAL sync_binlog = 1")
	e.Nodes[1].Exec(t, "SET GLOBAL sync_binlog = 0")
	all := &given{}
	m := e.join(t, "m", all)
	_, err := m.Take(t.Context(), []byte("photos"), 1)
	if !errors.Is(err, sequence.ErrUnfit) {
		t.Fatalf("got %v, want ErrUnfit", err)
	}
	wantText(t, err, e.linkOf(m, 1)+" has sync_binlog = 0", "SET GLOBAL sync_binlog = 1")
	e.Nodes[1].Exec(t, "SET GLOBAL sync_binlog = 1")
	m.wantAgain(t)
}
