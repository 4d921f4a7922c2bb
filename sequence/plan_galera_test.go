package sequence

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"seqproxy/internal/mysqltest"
)

// clusterAndSingle is a Galera cluster of two nodes, in use, and a server beside it that is no member yet.
type clusterAndSingle struct {
	*estate
	links  []*mysqltest.Link // to the nodes
	single place
	h      *givenEver
}

func newClusterAndSingle(t *testing.T) *clusterAndSingle {
	t.Helper()
	c := mysqltest.StartGalera(t, 2)
	e := &clusterAndSingle{estate: &estate{Group: &mysqltest.Group{Nodes: c.Nodes}, schema: "app"}, single: newPlace(t), h: newGivenEver()}
	e.Nodes[0].Exec(t, "CREATE DATABASE app", "CREATE TABLE app.stall (n int PRIMARY KEY)")
	for _, node := range e.Nodes {
		e.links = append(e.links, mysqltest.NewLink(t, node.Addr()))
	}
	return e
}

// open makes a proxy that uses nodes of the cluster, and knows the way to the single server.
func (e *clusterAndSingle) open(t *testing.T, nodes ...int) *Sequences {
	t.Helper()
	server := ServerOptions{User: "root", Database: e.schema}
	for _, i := range nodes {
		server.Nodes = append(server.Nodes, Node{Addr: e.links[i].Addr()})
	}
	s := openWith(t, Options{
		Servers: []ServerOptions{server}, CreateTable: true, DirectWriters: DirectWritersNo, CacheSize: 10, OutageCover: time.Nanosecond, Block: 20, AllocateTimeout: 20 * time.Second,
	})
	o := ServerOptions{Addr: e.single.server.Addr(), User: "root", Database: e.single.schema}
	if err := o.setDefaults(); err != nil {
		t.Fatal(err)
	}
	s.opts.Servers = append(s.opts.Servers, o)
	if _, err := s.servers.addLocked(o); err != nil {
		t.Fatal(err)
	}
	return s
}

// usedBy is which node a proxy writes to.
func (e *clusterAndSingle) usedBy(t *testing.T, s *Sequences) int {
	t.Helper()
	now := s.servers.first().nodes.current.Load()
	i := slices.IndexFunc(e.links, func(l *mysqltest.Link) bool { return now != nil && now.addr == l.Addr() })
	if i < 0 {
		t.Fatalf("%v is written to", now)
	}
	return i
}

// behind has a node see nothing of what is committed on the other one, until catchUp is called: what it commits itself meanwhile waits for that, too, but has its place among the commits.
func (e *clusterAndSingle) behind(t *testing.T, node int) (catchUp func()) {
	t.Helper()
	ctx := context.Background()
	conn, err := e.Nodes[node].DB(t, "app").Conn(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.ExecContext(ctx, "LOCK TABLES stall WRITE"); err != nil {
		t.Fatal(err)
	}
	e.Nodes[1-node].Exec(t, "INSERT INTO app.stall SELECT COUNT(*) FROM app.stall")
	e.awaitThread(t, node, "the changes of the other node wait", "USER = 'system user' AND STATE = 'Waiting for table metadata lock'")
	var once sync.Once
	catchUp = func() {
		once.Do(func() {
			if _, err := conn.ExecContext(ctx, "UNLOCK TABLES"); err != nil {
				t.Error(err)
			}
			_ = conn.Close()
		})
	}
	t.Cleanup(catchUp)
	return catchUp
}

// awaitThread waits until a thread of a node is in a state.
func (e *clusterAndSingle) awaitThread(t *testing.T, node int, what, where string) {
	t.Helper()
	db := e.Nodes[node].DB(t, "")
	eventually(t, what, func() bool {
		var n int
		return db.QueryRow("SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE "+where).Scan(&n) == nil && n > 0
	})
}

// awaitCommit waits until a transaction on a node that is behind wants to be committed.
func (e *clusterAndSingle) awaitCommit(t *testing.T, node int) {
	t.Helper()
	e.awaitThread(t, node, "a commit waits", "INFO = 'COMMIT' AND STATE = 'Waiting for certification'")
}

// seesAll waits until a node has seen what was committed on the other one.
func (e *clusterAndSingle) seesAll(t *testing.T, node int) {
	t.Helper()
	position := func(i int) (n uint64) {
		var name string
		if err := e.Nodes[i].DB(t, "").QueryRow("SHOW GLOBAL STATUS LIKE 'wsrep_last_committed'").Scan(&name, &n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	end := position(1 - node)
	eventually(t, "a node sees what was committed on the other one", func() bool { return position(node) >= end })
}

// A sequence is made on one node of a member in the moment in which another node freezes the rows, which the first one has not heard of yet.
func TestASequenceThatIsMadeOnAnotherGaleraNodeWhileTheRowsAreFrozenGivesNoNumberTwice(t *testing.T) {
	e := newClusterAndSingle(t)
	s := e.open(t, 0, 1)
	mustCreate(t, s, CreateOptions{Name: "photos"})
	takeAll(t, s, e.h, "photos", 20)
	cluster, other := s.servers.first().opts.Addr, 1-e.usedBy(t, s)
	elsewhere := e.open(t, other)
	takeAll(t, elsewhere, e.h, "photos", 20)
	made := errors.New("the rows were never frozen")
	var catchUp func()
	s.planHook = func(step, address string) error {
		switch {
		case step == planFilled:
			e.seesAll(t, other)
			catchUp = e.behind(t, other)
		case step == planFrozen && address == cluster:
			outcome := make(chan error, 1)
			go func() {
				_, err := elsewhere.Create(context.Background(), CreateOptions{Name: "new"})
				outcome <- err
			}()
			e.awaitCommit(t, other)
			catchUp()
			if made = <-outcome; made == nil {
				takeAll(t, elsewhere, e.h, "new", 100)
			}
		}
		return nil
	}
	if _, err := s.ChangePlan(t.Context(), PlanChange{Add: e.single.server.Addr()}); err != nil {
		t.Fatal(err)
	}
	if !errors.Is(made, errPlanChanging) {
		t.Errorf("CREATE SEQUENCE while the rows are frozen: got %v, want that the set of servers is being changed", made)
	}
	if made != nil {
		mustCreate(t, elsewhere, CreateOptions{Name: "new"})
		takeAll(t, elsewhere, e.h, "new", 20)
	}

	// One that has not met the sequence, and for which the cluster is away for a moment.
	third := e.open(t, 0, 1)
	takeAll(t, third, e.h, "photos", 20)
	third.follow.work.await() // it is not taken in again
	defer third.follow.work.end()
	for _, link := range e.links {
		link.Cut()
	}
	third.servers.view.Load().members[0].leaveOut(errors.New("it was cut off"))
	if known, err := third.Known(t.Context(), []byte("new")); !known || err != nil {
		t.Fatalf("a new sequence is known: %v, %v", known, err)
	}
	for _, link := range e.links {
		link.Mend()
	}
	takeAll(t, third, e.h, "new", 200)
}

// A member is told how far another one may go on by itself, on one node, while another node freezes the rows. Were that written after all bounds were read, the other one could go on above what
// they are: the change would not know if it can be reached no more.
func TestABoundThatIsToldToAnotherGaleraNodeWhileTheRowsAreFrozenIsRefused(t *testing.T) {
	e := newClusterAndSingle(t)
	s := e.open(t, 0, 1)
	mustCreate(t, s, CreateOptions{Name: "photos"})
	now, err := s.ChangePlan(t.Context(), PlanChange{Add: e.single.server.Addr()})
	if err != nil {
		t.Fatal(err)
	}
	cluster, other := s.servers.first().opts.Addr, 1-e.usedBy(t, s)
	elsewhere := e.open(t, other)
	takeAll(t, elsewhere, e.h, "photos", 20)
	told := errors.New("the rows were never frozen")
	var catchUp func()
	s.planHook = func(step, address string) error {
		switch {
		case step == planFilled:
			e.seesAll(t, other)
			catchUp = e.behind(t, other)
		case step == planFrozen && address == cluster:
			outcome := make(chan error, 1)
			go func() {
				outcome <- elsewhere.servers.first().saveBound(context.Background(), now.Number, "photos", 1<<60, 0)
			}()
			e.awaitCommit(t, other)
			catchUp()
			told = <-outcome
		}
		return nil
	}
	if _, err := s.ChangePlan(t.Context(), PlanChange{Block: 30}); err != nil {
		t.Fatal(err)
	}
	if !errors.Is(told, errPlanChanging) {
		t.Errorf("a bound that was told while the rows are frozen: got %v, want that the set of servers is being changed", told)
	}
	takeAll(t, elsewhere, e.h, "photos", 50)
	takeAll(t, s, e.h, "photos", 50)
}

// The coordinator of a change loses the node on which it has frozen the rows, and goes on with one that has not heard of that: there it reads nothing about what was given.
func TestACoordinatorThatLosesItsGaleraNodeDoesNotTakeAMemberForOneThatGaveNothing(t *testing.T) {
	e := newClusterAndSingle(t)
	s := e.open(t, 0, 1)
	mustCreate(t, s, CreateOptions{Name: "photos"})
	takeAll(t, s, e.h, "photos", 500)
	cluster, used := s.servers.first().opts.Addr, e.usedBy(t, s)
	var catchUp func()
	var waiting sync.WaitGroup
	defer waiting.Wait()
	lost := false
	s.planHook = func(step, address string) error {
		switch {
		case catchUp == nil && step == planFilled:
			e.seesAll(t, 1-used)
			catchUp = e.behind(t, 1-used)
		case step == planFrozen && address == cluster && !lost:
			lost = true
			e.links[used].Cut()
			waiting.Go(func() {
				e.awaitCommit(t, 1-used) // whatever it writes there
				catchUp()
			})
		}
		return nil
	}
	_, err := s.ChangePlan(t.Context(), PlanChange{Add: e.single.server.Addr()})
	waiting.Wait()
	t.Logf("the change: %v", err)
	within(t, 2*time.Minute, "the change is made", func() bool {
		now, err := s.plan(t.Context())
		if err == nil && len(now.Members) == 2 && s.noChangeOpen(t.Context()) {
			return true
		}
		if _, err = s.ResumePlan(t.Context()); err != nil {
			_, err = s.ChangePlan(t.Context(), PlanChange{Add: e.single.server.Addr()})
		}
		t.Logf("again: %v", err)
		return false
	})
	if stands := e.single.id(t, "photos"); stands < e.h.high["photos"] {
		t.Errorf("the new server goes on above %d, and %d was given", stands, e.h.high["photos"])
	}
	takeAll(t, s, e.h, "photos", 100)
}
