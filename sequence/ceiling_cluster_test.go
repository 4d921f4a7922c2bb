package sequence_test

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"seqproxy/sequence"
	"seqproxy/sequence/limit"
	"seqproxy/sequence/link"
	"seqproxy/sequence/stats"
	"seqproxy/test/mysqltest"
)

// holdUp makes nodes apply nothing, while the others wait for none of them.
func holdUp(t *testing.T, nodes ...*mysqltest.Server) (release func()) {
	t.Helper()
	var ends []func()
	for _, node := range nodes {
		conn, err := node.DB(t, "").Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range []string{"SET GLOBAL wsrep_desync = ON", "FLUSH TABLES WITH READ LOCK"} {
			if _, err := conn.ExecContext(t.Context(), text); err != nil {
				t.Fatalf("%s: %v", text, err)
			}
		}
		ends = append(ends, func() {
			_, err := conn.ExecContext(context.WithoutCancel(t.Context()), "UNLOCK TABLES")
			if err := errors.Join(err, conn.Close()); err != nil {
				t.Error(err)
			}
			node.Exec(t, "SET GLOBAL wsrep_desync = OFF")
		})
	}
	release = sync.OnceFunc(func() {
		for _, end := range ends {
			end()
		}
	})
	t.Cleanup(release)
	return release
}

// Both nodes die, and one begins again alone. It has every window, but would open the next one
// alone.
func TestOfTwoGaleraNodesOneAloneGivesNothing(t *testing.T) {
	e, cluster := startClusterOf(t, 2, "photos")
	all := &given{}
	a := e.join(t, "a", all)
	a.take(t, "a", "photos", 20)
	a.cut(0, 1)
	for _, node := range e.Nodes {
		if err := node.Kill(); err != nil {
			t.Fatal(err)
		}
	}
	cluster.BootstrapFrom(t, 1)
	b := e.join(t, "b", all, patience(3*time.Second))
	number, err := b.Take(t.Context(), []byte("photos"), 1)
	if err == nil {
		t.Fatalf("got %d of a node that is alone", number)
	}
	wantText(t, err, "it is seen on 1 nodes of the sequence server, and must be on 2", e.linkOf(b, 0), "to mend it: have them be members of the cluster")
	var holders int
	if err := e.Nodes[1].DB(t, "app").QueryRow("SELECT COUNT(*) FROM sequence_holder").Scan(&holders); err != nil || holders != 1 {
		t.Errorf("there are %d holders (%v), want the configuration before alone", holders, err)
	}
	if err := e.Nodes[0].Restart(); err != nil {
		t.Fatal(err)
	}
	cluster.AwaitWhole(t)
	eventually(t, "numbers are given again", func() bool {
		_, err := sequence.Inside(b.Sequences).First().Reserve(t.Context(), "photos", 1, 1)
		return err == nil
	})
	b.take(t, "b", "photos", 200)
}

// A connection outlives a change of the configuration. What is reserved over it then is not given
// before that configuration is the holder.
func TestAReservationOverAConnectionOfTheConfigurationBeforeIsGivenToNobody(t *testing.T) {
	e, _ := startCluster(t, "photos", "albums")
	a := e.join(t, "a", &given{}, patience(time.Minute))
	a.take(t, "a", "photos", 20)
	settled(t, a.Sequences, "photos")
	v := sequence.Inside(a.Sequences).First()
	before := v.Current()
	var stays [2]*sql.Conn
	for i := range stays {
		var err error
		if stays[i], err = v.Conn(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := v.LeadsTo(t.Context(), stays[i], before); err != nil {
			t.Fatal(err)
		}
	}
	defer func() { _ = stays[1].Close() }() // it is broken
	lost := v.Lost(stats.UnusedRefused)
	if err := e.Nodes[2].Kill(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the configuration changes", func() bool { return v.LeadsTo(t.Context(), stays[0], before) != nil })
	if err := v.Writable(t.Context(), stays[1]); !v.IsMoved(err) {
		t.Errorf("of a connection to another configuration: %v, want an error by which another node is looked for", err)
	}
	if err := stays[0].Close(); err != nil { // another caller gets it now
		t.Fatal(err)
	}
	g, err := v.Reserve(t.Context(), "photos", 10, 10)
	if err != nil {
		t.Fatal(err)
	}
	now := v.Current()
	if now == nil || now.Holder == before.Holder {
		t.Errorf("%v was reserved under %s", g.Seg, before.Holder)
	}
	if now := v.Lost(stats.UnusedRefused); now == lost {
		t.Error("what was reserved over the connection before is not counted as lost")
	}
	e.wantHolder(t, 0, 2)
}

// A read finds the change by a new connection: the list of proxies may have lost its last commits.
func TestANewConnectionIsMadeInTheConfigurationOfTheChoice(t *testing.T) {
	e, _ := startCluster(t, "photos")
	a := e.join(t, "a", &given{}, patience(time.Minute))
	a.take(t, "a", "photos", 5)
	settled(t, a.Sequences, "photos")
	v := sequence.Inside(a.Sequences).First()
	before := v.Current()
	if err := e.Nodes[2].Kill(); err != nil {
		t.Fatal(err)
	}
	db := e.Nodes[0].DB(t, "")
	eventually(t, "the configuration changes", func() bool {
		var now string
		return db.QueryRow("SELECT "+before.Self).Scan(&now) == nil && now != before.Holder
	})
	for _, idle := range []int{0, v.MaxConns()} { // all are closed
		v.Pool().SetMaxIdleConns(idle)
	}
	if err := v.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
	if now := v.Current(); now == nil || now.Holder == before.Holder {
		t.Errorf("a connection was made under %s", before.Holder)
	}
	if sequence.Inside(a.Sequences).Enlisted() {
		t.Error("all proxies are said to be registered in a configuration that has just begun")
	}
}

// openWindow raises a ceiling, in one attempt.
func openWindow(t *testing.T, v sequence.Server, name string, n uint64) error {
	t.Helper()
	conn, err := v.Conn(t.Context())
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	if err := v.Writable(t.Context(), conn); err != nil {
		return err
	}
	w, err := v.Ceilings().Group(conn, v.Current()).Open(t.Context(), name, n, false)
	if w.Granted > 0 {
		v.Ceilings().Learn(name, w.Granted)
	}
	return err
}

// The node that is written to no longer flushes, and one of the others shows nothing. The third is
// no majority.
func TestANodeThatDoesNotFlushIsNoWitnessOfWhatIsWrittenToIt(t *testing.T) {
	e, _ := startCluster(t, "photos")
	a := e.join(t, "a", &given{})
	a.take(t, "a", "photos", 20)
	v := sequence.Inside(a.Sequences).First()
	e.Nodes[0].Exec(t, "SET GLOBAL innodb_flush_log_at_trx_commit = 2")
	holdUp(t, e.Nodes[2])
	const many = 1 << 20
	eventually(t, "the node says that it does not flush", func() bool {
		// A busy machine may not answer in time.
		err := openWindow(t, v, "photos", many)
		lost := new(limit.SeenError)
		if !errors.As(err, &lost) || lost.Seen != 1 || lost.Need != 2 {
			t.Fatalf("got %v, want that it is seen on 1 and must be on 2", err)
		}
		return strings.Contains(err.Error(), limit.ErrUnflushed.Error()) && strings.Contains(err.Error(), "SET GLOBAL innodb_flush_log_at_trx_commit = 1")
	})
	e.Nodes[0].Exec(t, "SET GLOBAL innodb_flush_log_at_trx_commit = 1")
	if err := openWindow(t, v, "photos", many); err != nil {
		t.Error(err)
	}
}

// A sequence that is moved ahead after a node has left is below a window of the present
// configuration.
func TestASequenceIsMovedAheadInEachConfigurationOfAGaleraCluster(t *testing.T) {
	e, cluster := startCluster(t, "photos", "albums")
	all := &given{}
	a := e.join(t, "a", all, patience(time.Minute))
	a.take(t, "a", "photos", 5)
	a.takeOf(t, "a", "albums", &given{})
	if err := e.Nodes[2].Stop(); err != nil {
		t.Fatal(err)
	}
	const to = 7_000_000
	if _, ok, err := a.SetValue(t.Context(), []byte("photos"), to, true); !ok || err != nil {
		t.Errorf("SETVAL after a node has left: %v, %v", ok, err)
	}
	wanted := func() (wanted uint64) {
		t.Helper()
		err := e.Nodes[0].DB(t, "app").QueryRow("SELECT l.`granted` FROM sequence_limit AS l JOIN sequence_holder AS h ON h.`complete` = 1 AND l.`term` = h.`term` " +
			"WHERE l.`name` = 'photos' AND CONCAT('Galera ', (SELECT CONCAT(cluster_uuid, ', configuration ', view_id, ' at ', view_seqno) FROM mysql.wsrep_cluster)) = h.`holder`").Scan(&wanted)
		if err != nil {
			t.Errorf("the ceiling of the present configuration: %v", err)
		}
		return wanted
	}
	if got := wanted(); got < to {
		t.Errorf("the ceiling is %d, want %d at least", got, to)
	}
	if err := e.Nodes[2].Restart(); err != nil {
		t.Fatal(err)
	}
	cluster.AwaitWhole(t)
	e.Nodes[0].Exec(t, "UPDATE app.sequence SET id = 5000000 WHERE name = 'albums'")
	if err := sequence.Inside(a.Sequences).First().Ceilings().KeepAbove(t.Context(), "albums", 5_000_000); err != nil {
		// Over connections of the configuration before.
		t.Errorf("a sequence that stands above its ceiling: %v", err)
	}
	next := uint64(9_000_000)
	if _, err := a.Alter(t.Context(), []byte("photos"), sequence.Alteration{Restart: &next}); err != nil {
		t.Errorf("RESTART after a node came back: %v", err)
	}
	if got := wanted(); got+1 < next {
		t.Errorf("the ceiling is %d, want %d at least", got, next-1)
	}
	a.take(t, "a", "photos", 50)
}

// A commit of a cluster is in memory on all nodes. It survives a crash of all where a majority
// shows it.
func TestWhatACrashOfAGaleraClusterCouldLoseIsWaitedFor(t *testing.T) {
	e, _ := startCluster(t, "photos")
	a := e.join(t, "a", &given{}, patience(time.Minute))
	a.take(t, "a", "photos", 5)
	v := sequence.Inside(a.Sequences).First()
	if all, err := v.Ceilings().OnNodes(t.Context()); !all || err != nil {
		t.Errorf("with all nodes in step: %v, %v", all, err)
	}
	release := holdUp(t, e.Nodes[2])
	if all, err := v.Ceilings().OnNodes(t.Context()); all || err != nil {
		t.Errorf("with one that lags: on all is %v, %v; want a majority", all, err)
	}
	holdUp(t, e.Nodes[1])
	if all, err := v.Ceilings().OnNodes(t.Context()); all || !errors.As(err, new(*limit.SeenError)) {
		t.Errorf("with two that lag: %v, %v; want that no majority has it", all, err)
	}
	release()
	if err := v.Ceilings().ShownOn(t.Context(), 0, 2); err != nil {
		t.Error(err)
	}
	// The list of proxies may be lost with the rest.
	v.Moved()
	if err := v.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
	if sequence.Inside(a.Sequences).Enlisted() {
		t.Error("all proxies are said to be registered with a choice that was just made")
	}
}

// A node without the ceilings that the others have is no copy of them. It is not asked for ever.
func TestAGaleraNodeThatLostItsCeilingsIsNamed(t *testing.T) {
	e, _ := startCluster(t, "photos")
	a := e.join(t, "a", &given{})
	a.take(t, "a", "photos", 5)
	settled(t, a.Sequences, "photos")
	v := sequence.Inside(a.Sequences).First()
	conn, err := e.Nodes[0].DB(t, "app").Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }() // both statements were answered
	eventually(t, "the node alone has no ceilings", func() bool {
		// The cluster may have the rows in use.
		_, off := conn.ExecContext(t.Context(), "SET SESSION wsrep_on = OFF")
		_, limits := conn.ExecContext(t.Context(), "DELETE FROM sequence_limit")
		_, holders := conn.ExecContext(t.Context(), "DELETE FROM sequence_holder")
		return errors.Join(off, limits, holders) == nil
	})
	begin := time.Now()
	err = v.Ceilings().TakeOver(t.Context(), "photos", limit.Holder{})
	if !errors.Is(err, limit.ErrOvertaken) {
		t.Fatalf("got %v, want ErrOvertaken", err)
	}
	wantText(t, err, "has recorded, it has in a moment, or is no copy")
	if took := time.Since(begin); took < sequence.Inside(a.Sequences).Timing().Conflict<<link.MaxAttempts/2 {
		t.Errorf("six attempts took %v: what comes in a moment was not waited for", took)
	}
}

// The account may not read in which configuration a node is.
func TestARightToReadTheConfigurationOfAGaleraClusterIsNamed(t *testing.T) {
	e, _ := startCluster(t, "photos")
	e.Nodes[0].Exec(t, "CREATE USER poor@'%'", "GRANT ALL ON app.* TO poor@'%'", "GRANT SLAVE MONITOR ON *.* TO poor@'%'")
	a := e.join(t, "a", &given{}, patience(3*time.Second), func(o *sequence.Options) { o.Servers[0].User = "poor" })
	_, err := a.Take(t.Context(), []byte("photos"), 1)
	if err == nil {
		t.Fatal("numbers are given without knowing of which configuration")
	}
	wantText(t, err, "GRANT SELECT ON `mysql`.`wsrep_cluster`")
	e.Nodes[0].Exec(t, "GRANT SELECT ON mysql.wsrep_cluster TO poor@'%'")
	eventually(t, "numbers are given", func() bool {
		_, err := a.Take(t.Context(), []byte("photos"), 1)
		return err == nil
	})
}

// A client writes the row of a ceiling on another node. The proxy that raises it tries again.
func TestAWindowThatACommitOnAnotherGaleraNodeForestalledIsOpenedAgain(t *testing.T) {
	names := []string{"photos", "albums", "tags", "likes", "users"} // each has a few windows, and few meet a commit
	e, _ := startCluster(t, names...)
	// Otherwise the server itself would try again.
	e.Nodes[0].Exec(t, "SET GLOBAL wsrep_retry_autocommit = 0")
	a := e.join(t, "a", &given{}, patience(time.Minute))
	for _, name := range names {
		mustTake(t, a.Sequences, name, 1)
		settled(t, a.Sequences, name)
	}
	ctx, stop := context.WithCancel(t.Context())
	var writer sync.WaitGroup
	defer writer.Wait()
	defer stop()
	elsewhere := e.Nodes[1].DB(t, "app")
	writer.Go(func() {
		for ctx.Err() == nil {
			begin := time.Now()
			// It may lose against another commit, too.
			_, _ = elsewhere.ExecContext(ctx, "UPDATE sequence_limit SET `floor` = 1 - `floor` WHERE `floor` <= 1")
			// On a slow machine it leaves as much room between its commits.
			time.Sleep(10*time.Millisecond + 2*time.Since(begin))
		}
	})
	v := sequence.Inside(a.Sequences).First()
	met := 0
	for n := uint64(1) << 20; n < 1<<50 && met < 3; n *= 2 {
		for _, name := range names {
			err := openWindow(t, v, name, n)
			if link.IsConflict(err) {
				met++
				_, err = v.Ceilings().MakeRoom(t.Context(), name, n, n)
			}
			if err != nil {
				t.Fatalf("a window of %s for %d: %v", name, n, err)
			}
		}
	}
	if met == 0 {
		t.Error("no window met another commit")
	}
}

func TestACommitThatAnotherMemberForestalledIsAConflict(t *testing.T) {
	if !link.IsConflict(&mysql.MySQLError{Number: 3101, Message: "Plugin instructed the server to rollback the current transaction."}) {
		t.Error("what a replication group answers is no conflict")
	}
}
