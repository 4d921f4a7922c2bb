package sequence

import (
	"errors"
	"strings"
	"testing"
	"time"

	"seqproxy/test/mysqltest"
)

// A node that does not answer counts neither for nor against the others.
func TestNumbersNeedAMajorityOfTheClustersNodesThatFlushes(t *testing.T) {
	for _, test := range []struct {
		nodes string // how each flushes; - does not answer, / and what follows is sync_binlog
		want  bool
	}{
		{"1 1 1", true},
		{"1 1 0", true},
		{"0 1 1", true},
		{"1 0 0", false},
		{"1 2 2", false},
		{"1 0 2", false},
		{"0 0 0", false},
		{"3 3 0", true},
		{"1 1", true},
		{"1 0", false},
		{"1 1 0 0", false},
		{"1 1 1 0 0", true},
		{"1 - -", true},
		{"0 - -", false},
		{"1 0 -", false},
		{"1 1 0 -", true},
		{"1/1 1/1 1/0", true},
		{"1/1 1/0 1/0", false},
		{"1/0 2/1 1/1", false},
	} {
		words := strings.Fields(test.nodes)
		nodes := make([]Node, len(words))
		for i := range words {
			nodes[i].Addr = string(rune('a'+i)) + ":1"
		}
		for _, durability := range []string{DurabilityStrict, DurabilityRelaxed} {
			s, err := New(Options{Durability: durability, Servers: []ServerOptions{{Nodes: nodes, User: "x", Database: "app"}}})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = s.Close(t.Context()) })
			v := s.servers.first()
			var all []standing
			for i, word := range words {
				one := standing{node: v.nodes.all[i], place: nodes[i].Addr, group: "Galera u", cluster: "Galera u, configuration 5 of 3", index: nodes[i].Addr}
				one.flush, one.binlog, _ = strings.Cut(word, "/")
				if word == "-" {
					one = standing{node: v.nodes.all[i], err: errors.New("it is off")}
				}
				all = append(all, one)
			}
			switch _, err := v.fitting(all); {
			case (err == nil) != (test.want || durability == DurabilityRelaxed):
				t.Errorf("%s, %s: %v", test.nodes, durability, err)
			case err != nil && !errors.Is(err, ErrUnfit):
				t.Errorf("%s: %v is no UnfitError", test.nodes, err)
			case err != nil:
				wantText(t, err, "a:1", nodes[len(nodes)-1].Addr, "SET GLOBAL", `durability = "relaxed"`)
			}
		}
	}
}

// A node that flushes is preferred to one that a connection would be refused on, and one that is in
// step to a donor.
func TestTheNodeThatIsWrittenToFlushesIfOneDoes(t *testing.T) {
	s, err := New(Options{Servers: []ServerOptions{{Nodes: []Node{{Addr: "a:1"}, {Addr: "b:1"}, {Addr: "c:1"}}, User: "x", Database: "app"}}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close(t.Context()) }()
	v := s.servers.first()
	for _, test := range []struct{ flush, donors, want string }{
		{"1 1 1", "", "a:1"},
		{"0 1 1", "", "b:1"},
		{"2 1 1", "", "a:1"},
		{"0 1 1", "b", "c:1"},
		{"0 1 1", "bc", "b:1"},
		{"1 1 0", "ab", "a:1"},
	} {
		var all []standing
		for i, flush := range strings.Fields(test.flush) {
			name := string(rune('a' + i))
			all = append(all, standing{node: v.nodes.all[i], place: name, index: name, cluster: "Galera u", flush: flush, donor: strings.Contains(test.donors, name)})
		}
		if now, err := v.fitting(all); err != nil || now.addr != test.want {
			t.Errorf("flush %s, donors %q: got %v, %v, want %s", test.flush, test.donors, now, err, test.want)
		}
	}
}

// wantRefused waits until the cluster gives nothing more because of its settings, and returns the
// error.
func (m *member) wantRefused(t *testing.T) (err error) {
	t.Helper()
	within(t, 2*time.Minute, "no numbers are reserved", func() bool {
		_, err = m.servers.reserveOn(t.Context(), m.servers.first(), "photos", 1, 1)
		return errors.Is(err, ErrUnfit)
	})
	return err
}

// wantAgain waits until numbers are reserved.
func (m *member) wantAgain(t *testing.T) {
	t.Helper()
	eventually(t, "numbers are reserved", func() bool {
		_, err := m.servers.reserveOn(t.Context(), m.servers.first(), "photos", 1, 1)
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
	if !errors.Is(err, ErrUnfit) {
		t.Fatalf("1, 0 and 0: got %v, want ErrUnfit", err)
	}
	wantText(t, err, e.linkOf(refused, 0)+" has innodb_flush_log_at_trx_commit = 1", e.linkOf(refused, 1)+" has innodb_flush_log_at_trx_commit = 0", e.linkOf(refused, 2),
		"SET GLOBAL innodb_flush_log_at_trx_commit = 1", `durability = "relaxed"`)
	examined := refused.Examine(t.Context(), nil)
	if err := examined[0].Err; !errors.Is(err, ErrUnfit) {
		t.Errorf("the examination says %v, want ErrUnfit", err)
	}
	e.join(t, "relaxed", all, func(o *Options) { o.Durability = DurabilityRelaxed }).take(t, "relaxed", "photos", 20)

	// It is mended, and breaks again while the proxy runs. No connection is made meanwhile.
	set("1", "1", "2")
	refused.wantAgain(t)
	running := e.join(t, "running", all, func(o *Options) { o.AllocateTimeout = 3 * time.Second })
	running.take(t, "running", "photos", 20)
	eventually(t, "the node that does not flush is logged", func() bool {
		found := running.logs.FilterMessage("node of the cluster does not flush at commit").All()
		return len(found) == 1 && found[0].ContextMap()["node"] == e.linkOf(running, 2) && found[0].ContextMap()["value"] == "innodb_flush_log_at_trx_commit = 2"
	})
	servers, err := running.SequenceServers(t.Context())
	if err != nil || len(servers) != 1 || !strings.Contains(servers[0].Warning, e.linkOf(running, 2)) || strings.Contains(servers[0].Warning, e.linkOf(running, 1)) {
		t.Errorf("SequenceServers says %+v, %v", servers, err)
	}
	set("1", "2", "2")
	wantText(t, running.wantRefused(t), e.linkOf(running, 1)+" has innodb_flush_log_at_trx_commit = 2")
	set("1", "1", "1")
	running.wantAgain(t)
	within(t, 2*time.Minute, "no node is warned of", func() bool { return running.servers.first().flushWarning() == "" })

	// The node that is written to stops flushing: another one is written to.
	set("0", "1", "1")
	moved := e.join(t, "moved", all)
	moved.take(t, "moved", "photos", 20)
	if now := moved.servers.first().nodes.current.Load(); now == nil || now.addr != e.linkOf(moved, 1) {
		t.Errorf("%v is written to, want the second", now)
	}

	// One that is off counts neither for nor against the others.
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
	if !errors.Is(err, ErrUnfit) {
		t.Fatalf("got %v, want ErrUnfit", err)
	}
	wantText(t, err, e.linkOf(m, 1)+" has sync_binlog = 0", "SET GLOBAL sync_binlog = 1")
	e.Nodes[1].Exec(t, "SET GLOBAL sync_binlog = 1")
	m.wantAgain(t)
}
