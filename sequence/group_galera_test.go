package sequence_test

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"seqproxy/sequence"
	"seqproxy/sequence/link"
	"seqproxy/sequence/store"
	"seqproxy/test/mysqltest"
)

// startCluster starts a Galera cluster of three nodes with a table that has rows of the names, all
// at 0.
func startCluster(t *testing.T, names ...string) (*estate, *mysqltest.Cluster) {
	t.Helper()
	return startClusterOf(t, 3, names...)
}

// startClusterOf is startCluster with n nodes.
func startClusterOf(t *testing.T, n int, names ...string) (*estate, *mysqltest.Cluster) {
	t.Helper()
	c := mysqltest.StartGalera(t, n)
	e := &estate{Group: &mysqltest.Group{Nodes: c.Nodes}, schema: "app"}
	statements := []string{"CREATE DATABASE app", fmt.Sprintf(store.CreateTable, "app.sequence")}
	for _, name := range names {
		statements = append(statements, "INSERT INTO app.sequence (name) VALUES ('"+name+"')")
	}
	c.Nodes[0].Exec(t, statements...)
	for _, node := range c.Nodes[1:] {
		eventually(t, "a node shows the sequences", func() bool {
			var rows int
			err := node.DB(t, "").QueryRow("SELECT COUNT(*) FROM app.sequence").Scan(&rows)
			return err == nil && rows == len(names)
		})
	}
	return e, c
}

func TestAGaleraClusterHasOneHolderAndOutlivesTheNodeThatIsWrittenTo(t *testing.T) {
	e, cluster := startCluster(t, "photos")
	nodes := cluster.Nodes
	all := &given{}
	a, b := e.join(t, "a", all, patience(time.Minute)), e.join(t, "b", all, patience(time.Minute))
	for range 20 {
		a.take(t, "a", "photos", 15)
		b.take(t, "b", "photos", 15)
	}
	// A proxy that cannot reach the node of the others writes to another one.
	c := e.join(t, "c", all, patience(time.Minute))
	c.cut(0)
	var tasks sync.WaitGroup
	for _, m := range []*member{a, b, c} {
		tasks.Go(func() {
			for range 300 {
				number, err := m.Take(t.Context(), []byte("photos"), 1)
				if err != nil {
					t.Error(err)
					return
				}
				m.given.add(t, "one of three at once", number)
			}
		})
	}
	tasks.Wait()
	if err := nodes[0].Kill(); err != nil {
		t.Fatal(err)
	}
	for range 20 {
		a.take(t, "a", "photos", 15)
		b.take(t, "b", "photos", 15)
		c.take(t, "c", "photos", 15)
	}
	a.wantLog(t, "sequence node changed")
	var holders int
	if err := nodes[1].DB(t, "app").QueryRow("SELECT COUNT(*) FROM sequence_holder").Scan(&holders); err != nil || holders != 1 {
		t.Errorf("a cluster has %d holders (%v), want one, which is its present configuration or the one before", holders, err)
	}
}

// Each of the nodes in turn dies, without an error for clients, and comes back.
func TestNodesOfAGaleraClusterAreKilledAndRejoinWhileNumbersAreTaken(t *testing.T) {
	e, cluster := startCluster(t, "photos")
	all := &given{}
	a, b := e.join(t, "a", all, patience(time.Minute)), e.join(t, "b", all, patience(time.Minute))
	for i, node := range e.Nodes {
		a.take(t, "a", "photos", 25)
		b.take(t, "b", "photos", 25)
		if err := node.Kill(); err != nil {
			t.Fatal(err)
		}
		for range 10 {
			a.take(t, "a", "photos", 15)
			b.take(t, "b", "photos", 15)
		}
		if err := node.Restart(); err != nil {
			t.Fatal(err)
		}
		cluster.AwaitWhole(t)
		fresh := e.join(t, fmt.Sprintf("one that began after node %d rejoined", i), all, patience(time.Minute))
		fresh.take(t, "the new one", "photos", 30)
	}
	a.wantLog(t, "sequence node changed")
}

// No numbers come while no node runs. When the operator has started the cluster again, they go on
// above all that were given.
func TestAGaleraClusterThatWasStoppedAndBootstrappedGoesOnAboveAllThatWasGiven(t *testing.T) {
	e, cluster := startCluster(t, "photos")
	all := &given{}
	a, b := e.join(t, "a", all, patience(time.Minute)), e.join(t, "b", all, patience(time.Minute))
	for _, crash := range []bool{false, true} {
		a.take(t, "a", "photos", 35)
		b.take(t, "b", "photos", 35)
		for _, node := range e.Nodes {
			if crash {
				if err := node.Kill(); err != nil {
					t.Fatal(err)
				}
			} else if err := node.Stop(); err != nil {
				t.Fatal(err)
			}
		}
		a.waits(2 * time.Second)
		err := a.takeAll(t, "a", "photos", 1000) // the cached numbers come first
		a.waits(time.Minute)
		var unavailable *sequence.UnavailableError
		if !errors.As(err, &unavailable) {
			t.Errorf("with no node running: got %v, want an UnavailableError", err)
		}
		wantText(t, err, `sequence "photos"`, e.linkOf(a, 0))
		cluster.Bootstrap(t)
		for who, m := range map[string]*member{"a": a, "b": b} {
			eventually(t, who+" gives numbers again", func() bool {
				number, err := m.Take(t.Context(), []byte("photos"), 1)
				if err == nil {
					all.add(t, who, number)
				}
				return err == nil
			})
			m.take(t, who, "photos", 35)
		}
	}
}

// All nodes and the proxy die at once, while two nodes lag. The cluster begins again with these.
// Numbers of commits that only the first node had were given, and are lost.
func TestAGaleraClusterThatLostItsLastSecondsGoesOnAboveItsCeiling(t *testing.T) {
	e, cluster := startCluster(t, "photos")
	all := &given{}
	a := e.join(t, "a", all, patience(time.Minute))
	a.take(t, "a", "photos", 20)
	settled(t, a.Sequences, "photos")
	row := func(node *mysqltest.Server) (id uint64) {
		t.Helper()
		if err := node.DB(t, "app").QueryRow("SELECT id FROM sequence WHERE name = 'photos'").Scan(&id); err != nil {
			t.Fatal(err)
		}
		return id
	}
	for _, node := range e.Nodes[1:] {
		eventually(t, "the node has applied everything", func() bool { return row(node) == row(e.Nodes[0]) })
		conn, err := node.DB(t, "").Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		// The node was killed.
		defer func() { _ = conn.Close() }()
		for _, text := range []string{"SET GLOBAL wsrep_desync = ON", "FLUSH TABLES WITH READ LOCK"} {
			// No node waits for it, and it applies nothing.
			if _, err := conn.ExecContext(t.Context(), text); err != nil {
				t.Fatalf("%s: %v", text, err)
			}
		}
	}
	for range 30 {
		a.take(t, "a", "photos", 100)
	}
	ahead := row(e.Nodes[0])
	for i, node := range e.Nodes {
		if lags := row(node); i > 0 && lags+1000 > ahead {
			t.Fatalf("node %d is at %d, and the first one at %d: it does not lag", i, lags, ahead)
		}
	}
	a.cut(0, 1, 2) // it gives nothing any more
	for _, node := range e.Nodes {
		if err := node.Kill(); err != nil {
			t.Fatal(err)
		}
	}
	cluster.BootstrapFrom(t, 1)
	if again := row(e.Nodes[1]); again+1000 > ahead {
		t.Fatalf("the second node is at %d, and the first one was at %d: nothing is lost", again, ahead)
	}
	// Where a single address is configured, numbers do not go on above the ceilings.
	alone := e.join(t, "alone", all, patience(3*time.Second), func(o *sequence.Options) {
		o.Servers[0].Nodes, o.Servers[0].Addr = nil, e.Nodes[1].Addr()
	})
	if number, err := alone.Take(t.Context(), []byte("photos"), 1); err == nil || !strings.Contains(err.Error(), "list the group's servers under nodes") {
		t.Errorf("a node that is named alone gives %d, %v; want an error that says what to do", number, err)
	}
	b := e.join(t, "b", all, patience(time.Minute)) // it remembers nothing
	b.take(t, "b", "photos", 3000)
}

// A node that is cut off from the others knows that it may not commit, and says 1047. Whatever it
// is asked, the proxy goes on with the others.
func TestANodeThatIsPartitionedFromItsGaleraClusterIsLeftForTheMajority(t *testing.T) {
	e, cluster := startCluster(t, "photos", "albums", "users")
	all := &given{}
	patient := patience(time.Minute)
	a, b, c := e.join(t, "a", all, patient), e.join(t, "b", all, patient), e.join(t, "c", all, patient)
	alone := e.join(t, "alone", all)
	alone.cut(1, 2)
	for who, m := range map[string]*member{"a": a, "b": b, "c": c} {
		m.take(t, who, "photos", 10) // all that was reserved
	}
	alone.take(t, "alone", "photos", 10) // up to the ceiling of the others: it sees no majority
	alone.waits(2 * time.Second)
	cluster.Isolate(t, 0)

	// One reserves, one looks up a name that is new to it, and one has only been asked whether it
	// works.
	a.take(t, "a", "photos", 30)
	if exists, err := b.Exists(t.Context(), []byte("albums")); !exists || err != nil {
		t.Errorf("a name that was not met before: got %v, %v", exists, err)
	}
	if err := sequence.Inside(c.Sequences).First().Ping(t.Context()); err != nil {
		t.Errorf("asked whether it works: got %v, want no error", err)
	}
	for who, m := range map[string]*member{"a": a, "b": b, "c": c} {
		m.take(t, who, "photos", 30)
		if now := sequence.Inside(m.Sequences).First().Current(); now == nil || now.Addr == e.linkOf(m, 0) {
			t.Errorf("%s writes to %v, want another node than the one that is alone", who, now)
		}
	}

	// A proxy that sees only that node gets nothing from it.
	if err := alone.takeAll(t, "alone", "photos", 1000); err == nil {
		t.Error("a node without its cluster gives numbers")
	} else {
		wantText(t, err, `sequence "photos"`, e.linkOf(alone, 0))
	}
	if err := sequence.Inside(alone.Sequences).First().Ping(t.Context()); err == nil {
		t.Error("a node without its cluster is said to be usable")
	}
	cluster.Rejoin(t, 0)
	for who, m := range map[string]*member{"a": a, "b": b, "c": c} {
		// They make the new configuration the holder, which a proxy that sees one node cannot.
		m.take(t, who, "photos", 200)
	}
	eventually(t, "the one that sees only the node that was alone gives numbers", func() bool {
		number, err := alone.Take(t.Context(), []byte("photos"), 1)
		if err == nil {
			all.add(t, "alone", number)
		}
		return err == nil
	})
	for who, m := range map[string]*member{"a": a, "b": b, "alone": alone} {
		m.take(t, who, "photos", 50)
	}
}

// Two writers on different nodes meet when they commit. The one that loses gets 1213 from the
// cluster, and tries again.
func TestAReservationThatACommitOnAnotherGaleraNodeForestalledIsMadeAgain(t *testing.T) {
	e, _ := startCluster(t, "photos")
	// Otherwise the server itself would try again.
	e.Nodes[0].Exec(t, "SET GLOBAL wsrep_retry_autocommit = 0")
	a := e.join(t, "a", &given{}, patience(time.Minute))
	a.take(t, "a", "photos", 1)
	elsewhere := e.Nodes[1].DB(t, "app")
	elsewhere.SetMaxOpenConns(1)
	ctx, stop := context.WithCancel(t.Context())
	var writer sync.WaitGroup
	defer writer.Wait()
	defer stop()
	writer.Go(func() { // an application that counts in the table itself
		for ctx.Err() == nil {
			result, err := elsewhere.ExecContext(ctx, "UPDATE sequence SET id = LAST_INSERT_ID(id + 1) WHERE name = 'photos'")
			if ctx.Err() != nil {
				return
			}
			if said := new(mysql.MySQLError); errors.As(err, &said) && (said.Number == 1213 || said.Number == 1205 || said.Number == 1020) {
				continue
			}
			if err != nil {
				t.Errorf("on the other node: got %v, want no error", err)
				return
			}
			number, err := result.LastInsertId()
			if err != nil {
				t.Error(err)
				return
			}
			a.given.add(t, "the application", uint64(number)) //nolint:gosec // no number gets that high
		}
	})
	v := sequence.Inside(a.Sequences).First()
	within(t, 2*time.Minute, "a reservation is refused at its commit and made again", func() bool {
		g, err := v.Reserve(t.Context(), "photos", 1, 1)
		if err == nil {
			a.given.add(t, "a", g.Seg.Next())
		} else if !link.IsConflict(err) { // each of its attempts lost
			t.Fatal(err)
		}
		return err == nil && v.Retries() > 0
	})
}

// A proxy that looks for a writable node does not wait for one that hangs, once the others have
// said that they are the cluster.
func TestANodeThatHangsKeepsNobodyFromChoosingAnotherOfItsCluster(t *testing.T) {
	e, _ := startCluster(t, "photos")
	defer mysqltest.StandStill(t, e.Nodes[0].PID())()
	s := e.join(t, "s", &given{}, patience(time.Minute), func(o *sequence.Options) {
		o.Servers[0].DialTimeout, o.Servers[0].IOTimeout = time.Hour, time.Hour
	})
	s.take(t, "s", "photos", 50)
}

// A node that helps another one to join serves while there is none in step.
func TestAGaleraDonorServesWhereNoOtherNodeDoes(t *testing.T) {
	e, _ := startCluster(t, "photos")
	all := &given{}
	desync := func(nodes ...*mysqltest.Server) {
		t.Helper()
		for _, node := range nodes {
			node.Exec(t, "SET GLOBAL wsrep_desync = ON")
			eventually(t, "the node is a donor", func() bool {
				var name, state string
				err := node.DB(t, "").QueryRow("SHOW GLOBAL STATUS LIKE 'wsrep_local_state'").Scan(&name, &state)
				return err == nil && state == "2"
			})
		}
	}
	desync(e.Nodes[:2]...)
	first := e.join(t, "first", all, patience(time.Minute))
	first.take(t, "first", "photos", 50)
	if now := sequence.Inside(first.Sequences).First().Current(); now == nil || now.Addr != e.linkOf(first, 2) {
		t.Errorf("%v was chosen, want the one that is in step", now)
	}
	desync(e.Nodes[2])
	second := e.join(t, "second", all, patience(time.Minute))
	second.take(t, "second", "photos", 50)
	first.take(t, "first", "photos", 50)
}

// A node lets connections in, and commits nothing: it is the donor of another node, or a backup has
// locked its tables. The next one serves.
func TestANodeThatCommitsNothingIsLeftForAnotherOfItsCluster(t *testing.T) {
	e, _ := startCluster(t, "photos")
	m := e.join(t, "a", &given{}, steadySize(5), patience(time.Minute))
	m.take(t, "a", "photos", 50)
	v := sequence.Inside(m.Sequences).First()
	locked := v.Current()
	conn, err := e.Nodes[0].DB(t, "").Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	for _, text := range []string{"SET GLOBAL wsrep_desync = ON", "FLUSH TABLES WITH READ LOCK"} {
		if _, err := conn.ExecContext(t.Context(), text); err != nil {
			t.Fatal(err)
		}
	}
	m.take(t, "a", "photos", 200)
	now := v.Current()
	if now == nil || now.Addr == e.linkOf(m, 0) {
		t.Errorf("%v was chosen, want another than the one that is locked", now)
	}
	if v.MovedFrom(locked); v.Current() != now { // as an attempt says that ends late
		t.Error("the node that serves was given up for a failure of the one before")
	}
	if _, err := conn.ExecContext(t.Context(), "UNLOCK TABLES"); err != nil {
		t.Error(err)
	}
}

// A connection comes back to the pool after another one has found that the node is not writable. It
// does not keep the proxy from looking for the next node.
func TestAConnectionThatComesBackAfterItsNodeWasGivenUpIsNotUsedAgain(t *testing.T) {
	e := startEstate(t, 2, "photos")
	// No connection lives as long as a minute.
	a := e.join(t, "a", &given{}, patience(20*time.Second))
	a.take(t, "a", "photos", 10)
	v := sequence.Inside(a.Sequences).First()
	conn, err := v.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	v.Moved()
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	a.take(t, "a", "photos", 50)

	if conn, err = v.Conn(t.Context()); err != nil {
		t.Fatal(err)
	}
	err = conn.Raw(func(raw any) error { return raw.(*link.Conn).ResetSession(t.Context()) })
	if err != nil {
		t.Errorf("a connection to the chosen node: got %v, want no error", err)
	}
	v.Moved()
	err = conn.Raw(func(raw any) error { return raw.(*link.Conn).ResetSession(t.Context()) })
	if !errors.Is(err, driver.ErrBadConn) {
		t.Errorf("a connection to a node that was given up: got %v, want ErrBadConn", err)
	}
	_ = conn.Close() // it is broken
}

// LOCK TABLES holds on one node, so another could give what is reserved.
func TestATicketTableOfAClusterIsNotServed(t *testing.T) {
	for name, start := range map[string]func(t *testing.T) *mysqltest.Server{
		"Galera": func(t *testing.T) *mysqltest.Server { return mysqltest.StartGalera(t, 1).Nodes[0] },
		"a group with several primaries": func(t *testing.T) *mysqltest.Server {
			return mysqltest.StartReplicationGroup(t, 1, "--loose-group-replication-single-primary-mode=OFF").Nodes[0]
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := placeOn(t, start(t))
			p.exec(t, "CREATE TABLE ids (id BIGINT AUTO_INCREMENT PRIMARY KEY)")
			core, logs := observer.New(zap.WarnLevel)
			s := p.open(t, func(o *sequence.Options) { o.Logger = zap.New(core) })
			if got, err := s.TicketTable(p.schema, "ids").Insert(t.Context(), nil); !errors.Is(err, sequence.ErrNoTicket) {
				t.Errorf("got %+v, %v, want ErrNoTicket", got, err)
			}
			if said := fmt.Sprint(logs.All()); !strings.Contains(said, "seqproxy import -from ticket") {
				t.Errorf("logged %s, want the way out", said)
			}
		})
	}
}
